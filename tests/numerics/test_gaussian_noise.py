"""Divergence of shifted noise and its calibration, against mpmath, integrals and the printed values."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

from whosin.errors import CalibrationError, InputError, InputTypeError
from whosin.guarantees.dp import shifted_normal_divergence
from whosin.numerics.gaussian_noise import (
    epsilon_for,
    laplace_epsilon_for,
    laplace_noise_for,
    laplace_shift_divergence,
    laplace_shift_divergence_and_slope,
    noise_for,
    relative_error,
    shift_divergence,
    shift_divergence_and_slope,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))["thudi"]


def exact(u, epsilon):
    """Balle and Wang's formula with 120 digits, enough for values down to 1e-80."""
    with mpmath.workdps(120):
        u, epsilon = mpmath.mpf(u), mpmath.mpf(epsilon)
        return mpmath.ncdf(u / 2 - epsilon / u) - mpmath.exp(epsilon) * mpmath.ncdf(-u / 2 - epsilon / u)


def integral(u, epsilon, density):
    """∫(p - e^ε q)_+ on a fine grid."""
    x = np.linspace(-60.0, 60.0, 1_200_001)
    values = np.maximum(density(x - u) - math.exp(epsilon) * density(x), 0.0)
    return float(np.sum(values) * (x[1] - x[0]))


# --- divergences ------------------------------------------------------------------------------------------------------


def test_gaussian_divergence_keeps_its_digits():
    rng = np.random.default_rng(0)
    for _ in range(300):
        u = 10 ** rng.uniform(-8.0, 1.7)
        epsilon = rng.choice([0.0, 10 ** rng.uniform(-8.0, 2.0), u * 10 ** rng.uniform(-2.0, 1.2)])
        truth = exact(u, epsilon)
        if truth > 1e-70:
            computed = float(shift_divergence(u, epsilon))
            assert abs(computed / truth - 1) <= relative_error(float(truth)), (u, epsilon)


def test_gaussian_divergence_is_the_integral():
    for u, epsilon in ((0.05, 0.0), (0.3, 0.1), (2.0, 1.0), (6.0, 4.0)):
        normal = integral(u, epsilon, lambda x: np.exp(-x * x / 2) / math.sqrt(2 * math.pi))
        assert float(shift_divergence(u, epsilon)) == pytest.approx(normal, abs=1e-9)
        if epsilon:
            assert float(shift_divergence(u, epsilon)) == pytest.approx(
                shifted_normal_divergence(u, math.exp(epsilon)), abs=1e-14
            )


def test_series_meets_the_direct_form():
    epsilon = np.linspace(0.0, 1.0, 101)
    below, above = (shift_divergence(u, epsilon) for u in (np.nextafter(0.1, 0.0), 0.1))
    np.testing.assert_allclose(below, above, rtol=3e-13)


def test_ends():
    inf = math.inf
    found = shift_divergence([0, 0, 0, inf, 1, 50, inf], [0, 1, inf, 3, inf, 0, inf])
    np.testing.assert_array_equal(found, [0, 0, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(laplace_shift_divergence([0, 0, inf, 1, 2], [0, 1, 3, inf, 2]), [0, 0, 1, 0, 0])
    assert shift_divergence(np.ones((2, 1)), np.zeros(3)).shape == (2, 3)
    assert shift_divergence(1.0, 1.0).shape == ()


def test_slopes_are_derivatives():
    u = np.array([0.0, 0.03, 0.5, 2.0, 7.0])
    for value_and_slope in (shift_divergence_and_slope, laplace_shift_divergence_and_slope):
        for epsilon in (0.31, 1.7):
            step = 1e-5
            left, right = (value_and_slope(u, epsilon + side * step)[0] for side in (-1, 1))
            np.testing.assert_allclose(value_and_slope(u, epsilon)[1], (left - right) / (2 * step), atol=1e-9)


def test_laplace_divergence_is_the_integral():
    for u, epsilon in ((0.3, 0.1), (2.0, 1.0), (2.0, 3.0), (6.0, 0.0)):
        direct = integral(u, epsilon, lambda x: np.exp(-np.abs(x)) / 2)
        assert float(laplace_shift_divergence(u, epsilon)) == pytest.approx(direct, abs=1e-7)


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_laplace_form_bounds_exponential_norm_noise(noise):
    """The shift lemma in three dimensions, by simulation: E = mean of (1 - e^ε·ratio)_+."""
    rng = np.random.default_rng(3)
    normal = rng.standard_normal((200_000, 3))
    x = normal / np.linalg.norm(normal, axis=1, keepdims=True) * rng.standard_gamma(3.0, (200_000, 1)) * noise
    shift = np.array([1.0, -2.0, 0.5])
    ratio = np.exp((np.linalg.norm(x, axis=1) - np.linalg.norm(x - shift, axis=1)) / noise)
    for epsilon in (0.0, 0.2, 0.6):
        samples = np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0)
        bound = laplace_shift_divergence(np.linalg.norm(shift) / noise, epsilon)
        assert samples.mean() - 4.0 * samples.std() / math.sqrt(len(samples)) <= bound


# --- calibration ------------------------------------------------------------------------------------------------------


def test_noise_for_golden():
    """The analytic calibration's values in golden.json, found there by another root search."""
    assert noise_for(1.0, 1e-5, 1.0) == pytest.approx(GOLDEN["noise_balle_wang_sens1"], rel=2e-15)
    assert noise_for(1.0, 1e-5, 2.0) == pytest.approx(GOLDEN["noise_balle_wang_sens2"], rel=2e-15)
    assert float(shift_divergence(1 / 4.0412, 1.0)) == pytest.approx(GOLDEN["delta_at_eps1_sigma4.0412"], rel=1e-13)
    assert epsilon_for(4.0412, 1e-5, 1.0) == pytest.approx(0.91599, abs=5e-6)


def test_noise_is_safe_and_tight():
    rng = np.random.default_rng(1)
    for _ in range(60):
        delta = 10 ** rng.uniform(-12, -0.01)
        epsilon = rng.choice([0.0, 10 ** rng.uniform(-3, 1.5)])
        sensitivity = 10 ** rng.uniform(-3, 3)
        noise = noise_for(epsilon, delta, sensitivity)
        with mpmath.workdps(120):
            held = exact(mpmath.mpf(sensitivity) / mpmath.mpf(noise), epsilon)
            less = exact(mpmath.mpf(sensitivity) / (mpmath.mpf(noise) * (1 - mpmath.mpf(10) ** -11)), epsilon)
        assert held <= delta < less


def test_epsilon_is_safe_tight_and_inverse():
    rng = np.random.default_rng(2)
    for _ in range(40):
        delta, noise, distance = 10 ** rng.uniform(-10, -0.5), 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-1, 1)
        epsilon = epsilon_for(noise, delta, distance)
        with mpmath.workdps(120):
            u = mpmath.mpf(distance) / mpmath.mpf(noise)
            assert exact(u, epsilon) <= delta
            if epsilon > 0.0:
                assert exact(u, epsilon * (1 - 1e-11)) > delta
                assert noise_for(epsilon, delta, distance) == pytest.approx(noise, rel=1e-11)


def test_noise_for_a_huge_epsilon_is_safe():
    """u/2 and ε/u nearly cancel: what rounding takes there is covered too."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        delta, epsilon = 10 ** rng.uniform(-60, -1), 10 ** rng.uniform(3, 9)
        noise = noise_for(epsilon, delta, 1.0)
        u = mpmath.mpf(1) / mpmath.mpf(noise)
        with mpmath.workdps(120):
            a, b = epsilon / u - u / 2, epsilon / u + u / 2
            held = mpmath.ncdf(-a) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-b)
            assert held <= delta
            assert epsilon_for(noise, delta, 1.0) == pytest.approx(epsilon, rel=1e-13)


def test_laplace_calibration():
    noise = laplace_noise_for(0.7, 0.01, 3.0)
    assert float(laplace_shift_divergence(3.0 / noise, 0.7)) <= 0.01
    assert noise == pytest.approx(3.0 / (0.7 - 2.0 * math.log(0.99)), rel=1e-14)
    assert laplace_epsilon_for(noise, 0.01, 3.0) == pytest.approx(0.7, rel=1e-14)
    assert laplace_epsilon_for(2.0, 0.0, 3.0) == pytest.approx(1.5)
    assert laplace_epsilon_for(2.0, 0.9, 1.0) == 0.0


def test_trivial_targets():
    assert noise_for(1.0, 0.1, 0.0) == noise_for(1.0, 1.0, 2.0) == noise_for(math.inf, 0.0, 1.0) == 0.0
    assert epsilon_for(1.0, 0.1, 0.0) == epsilon_for(1.0, 1.0, 5.0) == epsilon_for(10.0, 0.5, 1.0) == 0.0
    assert epsilon_for(1.0, 0.0, 1.0) == epsilon_for(0.0, 0.1, 1.0) == laplace_epsilon_for(0.0, 0.1, 1.0) == math.inf
    with pytest.raises(CalibrationError, match="delta"):
        noise_for(1.0, 0.0, 1.0)
    with pytest.raises(CalibrationError, match="epsilon"):
        laplace_noise_for(0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((-1.0, 0.1, 1.0), "epsilon"), ((1.0, 2.0, 1.0), "delta"), ((1.0, 0.1, math.nan), "sensitivity")],
)
def test_bad_targets(arguments, name):
    for calibrate in (noise_for, laplace_noise_for):
        with pytest.raises(InputError, match=name):
            calibrate(*arguments)
    with pytest.raises(InputTypeError, match="noise"):
        epsilon_for("1", 0.1, 1.0)


@pytest.mark.parametrize("divergence", [shift_divergence, laplace_shift_divergence])
def test_bad_distances(divergence):
    with pytest.raises(InputError, match="u must be"):
        divergence([1.0, -1.0], 0.0)
    with pytest.raises(InputError, match="u must be"):
        divergence(math.nan, 0.0)
    with pytest.raises(InputError, match="epsilon must be"):
        divergence(1.0, -0.5)


def test_no_divergence_has_no_error():
    assert relative_error(0.0) == 0.0


def test_laplace_noise_as_wide_as_the_distance_takes_epsilon_one():
    assert 1.0 <= laplace_epsilon_for(1.0, 0.0, 1.0) <= 1.0 + 1e-12
    assert laplace_epsilon_for(1.0, 0.0, 0.0) == 0.0


def test_errors_name_what_is_wrong():
    with pytest.raises(InputError, match=r"^sensitivity must be"):
        laplace_noise_for(1.0, 0.0, -1.0)
    with pytest.raises(InputError, match=r"u must be numbers in \[0, inf\], got .*-2"):
        shift_divergence(np.array([0.0, -2.0]), 1.0)
