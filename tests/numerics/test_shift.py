"""Noise that hides a shift: divergences against integrals, scales on the safe side, averages against all pairs."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import laplace, norm

from whosin.errors import InputError
from whosin.numerics.shift import NOISES, AveragedShift, divergence, lengths, scale_for
from whosin.population.sums.pairwise import pairwise_divergences

LAWS = {"gaussian": norm, "norm_exponential": laplace}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("u", [0.01, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("gamma", [1.0, 1.25, 3.0])
def test_divergence_is_the_integral_in_one_dimension(noise, u, gamma):
    law = LAWS[noise]

    def gap(x):
        return max(0.0, law.pdf(x - u) - gamma * law.pdf(x))

    true, _ = quad(gap, -40, 60, points=[0, u / 2, u, math.log(gamma) / u + u / 2], limit=500)
    assert float(divergence(noise, u, math.log(gamma))) == pytest.approx(true, abs=1e-8)


@pytest.mark.parametrize("noise", NOISES)
def test_divergence_at_the_ends(noise):
    assert float(divergence(noise, 0.0)) == 0.0
    assert float(divergence(noise, math.inf)) == 1.0
    assert float(divergence(noise, math.inf, 1.0)) == 1.0


@example("gaussian", 0.9921875, 1.0, 0.0)
@given(st.sampled_from(NOISES), st.floats(1e-6, 0.999), st.floats(1e-6, 1e6), st.floats(0, 3))
def test_scale_keeps_the_target_and_less_does_not(noise, target, distance, log_gamma):
    scale = scale_for(noise, target, distance, log_gamma)
    assert float(divergence(noise, distance / scale, log_gamma)) <= target
    assert float(divergence(noise, distance / (scale * (1 - 1e-6)), log_gamma)) > target * (1 - 1e-9)


def test_scale_is_zero_where_nothing_is_to_hide():
    assert scale_for("gaussian", 0.1, 0.0) == 0.0
    assert scale_for("norm_exponential", 1.0, 5.0) == 0.0


@pytest.mark.parametrize(
    ("eta", "exponential", "gaussian"),
    [
        (0.01, 49.49831645250915, 39.89004984501131),
        (0.05, 9.491221581029903, 7.957896561090538),
        (0.1, 4.481420117724549, 3.9471538755427473),
        (0.25, 1.4426950408889634, 1.482602218505602),
        (0.4, 0.6213349345596118, 0.7803041460723791),
    ],
)
def test_scales_of_theory(eta, exponential, gaussian):
    """s/σ of the two-point algorithm, from 1/ln(1/(1-2η)) and 1/Φ⁻¹(1/2+η) in 16 digits."""
    for noise, true in (("norm_exponential", exponential), ("gaussian", gaussian)):
        found = scale_for(noise, 2 * eta, 2.0)
        assert true <= found <= true * (1 + 1e-10)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0, math.inf])
def test_lengths_are_norms_rounded_up(p):
    vectors = np.random.default_rng(0).standard_normal((50, 7))
    true = np.linalg.norm(vectors, ord=p, axis=1)
    found = lengths(vectors, p)
    assert np.all(found >= true * (1 - 1e-16))
    assert found == pytest.approx(true, rel=1e-13)


def test_lengths_of_tiny_and_huge_vectors():
    assert lengths(np.array([[0.0, 0.0], [1e-300, 1e-300], [1e300, 1e300]]), 2.0) == pytest.approx(
        [0.0, math.sqrt(2) * 1e-300, math.sqrt(2) * 1e300]
    )


def by_all_pairs(points, scale, noise, p, log_gamma):
    n = len(points)
    return max(
        np.mean(
            [
                float(divergence(noise, np.linalg.norm(points[i] - points[j], ord=p) / scale, log_gamma))
                for j in range(n)
                if j != i
            ]
        )
        for i in range(n)
    )


@pytest.mark.parametrize(("noise", "p"), [("gaussian", 2.0), ("norm_exponential", 1.0), ("norm_exponential", 3.0)])
@pytest.mark.parametrize("log_gamma", [0.0, 0.4])
def test_worst_is_the_largest_mean_over_all_pairs(noise, p, log_gamma):
    rng = np.random.default_rng(3)
    points = np.round(rng.standard_normal((23, 2)), 1)
    points[5:9] = points[4]
    shift = AveragedShift(points, noise=noise, norm=p, log_gamma=log_gamma)
    for scale in (0.1, 1.0, 5.0):
        true = by_all_pairs(points, scale, noise, p, log_gamma)
        assert true <= shift.worst(scale) <= true * (1 + 1e-11) + 1e-300


def test_worst_agrees_with_the_pairwise_bound():
    points = np.random.default_rng(4).standard_cauchy((300, 1))
    for noise, other in (("gaussian", "gaussian"), ("norm_exponential", "laplace")):
        shift = AveragedShift(points, noise=noise, log_gamma=0.3)
        assert shift.worst(2.0) == pytest.approx(pairwise_divergences(points, 2.0, 0.3, noise=other).max(), rel=1e-9)


def test_blocks_do_not_matter(monkeypatch):
    points = np.random.default_rng(5).standard_normal((100, 3))
    whole = AveragedShift(points, noise="gaussian")
    monkeypatch.setattr("whosin.numerics.shift._BLOCK", 700)
    parts = AveragedShift(points, noise="gaussian")
    assert parts._rows == 7
    assert parts.worst(1.0) == pytest.approx(whole.worst(1.0), rel=1e-14)
    assert parts.mean_distances == pytest.approx(whole.mean_distances)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("target", [0.01, 0.2, 0.8])
def test_smallest_scale_keeps_the_target_and_less_does_not(noise, target):
    points = np.random.default_rng(6).standard_t(2, (60, 2))
    shift = AveragedShift(points, noise=noise, log_gamma=0.1)
    scale = shift.smallest_scale(target)
    assert shift.worst(scale) <= target < shift.worst(scale * (1 - 1e-7))


def test_scale_zero():
    """With two equal halves every record agrees with almost half of the others; a constant pool needs no noise."""
    halves = np.repeat([[0.0], [1.0]], 5, axis=0)
    shift = AveragedShift(halves, noise="gaussian")
    assert shift.worst(0.0) == pytest.approx(5 / 9)
    assert shift.smallest_scale(0.6) == 0.0
    assert shift.smallest_scale(0.5) > 0.0
    assert AveragedShift(np.ones((4, 2)), noise="gaussian").worst(0.0) == 0.0


def test_tiny_differences_are_differences():
    points = np.array([[0.0], [1e-200], [1.0]])
    assert AveragedShift(points, noise="gaussian").worst(0.0) == 1.0


def test_rounding_is_added_between_unequal_contributions_only():
    points = np.array([[0.0], [0.0], [1.0]])
    shift = AveragedShift(points, noise="norm_exponential", rounding=0.5)
    assert shift.mean_distances == pytest.approx([0.75, 0.75, 1.5])


def test_fixture_of_theory():
    """Pool {-1.5, …, 3}, four of eight, Laplace noise 0.5, record 7: the adjacent bound is 0.2563684."""
    pool = np.array([-1.5, -1, -0.5, 0, 0.5, 1, 1.5, 3])[:, None] / 4
    assert 0.5 * AveragedShift(pool, noise="norm_exponential").worst(0.5) == pytest.approx(0.2563684, abs=1e-7)


def test_unknown_noise():
    with pytest.raises(InputError, match="noise must be one of"):
        divergence("uniform", 1.0)
    with pytest.raises(InputError, match="noise must be one of"):
        scale_for("uniform", 0.1, 1.0)
