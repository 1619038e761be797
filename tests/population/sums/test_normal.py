"""The proved normal approximation: never below the truth, near it where the noise is moderate."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from whosin.numerics.gaussian_noise import epsilon_for, noise_for
from whosin.population.sums import hermite
from whosin.population.sums.normal import _degrees, _divergence, _error, _Halves, normal_epsilons
from whosin.population.sums.pairwise import pairwise_epsilons
from whosin.population.sums.spectral import SubsetSumLaws

POOLS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) ** 1.5,
    "binary": lambda rng, shape: rng.integers(0, 2, size=shape).astype(float),
    "outlier": lambda rng, shape: np.vstack([rng.standard_normal((shape[0] - 1, shape[1])), np.full(shape[1], 4.0)]),
}


def pool_of(kind, count, columns, seed=0):
    return POOLS[kind](np.random.default_rng(seed), (count, columns))


def enumerated_divergence(f, x, scale, gamma):
    """E_γ(in‖out) of a record in two columns, by listing all halves and integrating over a grid."""
    count = len(f)
    others = [i for i in range(count) if i != x]
    sums = {}
    for inside, size in ((True, count // 2 - 1), (False, count // 2)):
        chosen = np.array(list(itertools.combinations(others, size)))
        sums[inside] = f[chosen].sum(axis=1) + (f[x] if inside else 0.0)
    both = np.concatenate(list(sums.values()))
    grids = [np.linspace(both[:, c].min() - 7 * scale, both[:, c].max() + 7 * scale, 161) for c in (0, 1)]
    density = {}
    for inside, points in sums.items():
        kernels = [np.exp(-0.5 * ((g[:, None] - points[:, c]) / scale) ** 2) for c, g in enumerate(grids)]
        density[inside] = kernels[0] @ kernels[1].T / (len(points) * 2 * math.pi * scale**2)
    cell = np.prod([g[1] - g[0] for g in grids])
    return float(np.maximum(density[True] - gamma * density[False], 0.0).sum() * cell)


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize("spread", [2.0, 6.0])
def test_never_below_the_enumerated_divergence(kind, spread):
    f = pool_of(kind, 14, 2)
    centred = np.linalg.norm(f - f.mean(axis=0), axis=1)
    scale = spread * float(centred.max())
    halves = _Halves(f / scale)
    for x in (int(np.argmax(centred)), int(np.argmin(centred))):
        error = _error(halves, np.array([x]), 8)
        assert error is not None
        for epsilon in (0.0, 0.1, 0.3):
            truth = enumerated_divergence(f, x, scale, math.exp(epsilon))
            assert _divergence(error, halves.shifts[x], halves.shifts[x], epsilon, 0.0) >= truth - 1e-9


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize(("count", "epsilon", "delta"), [(14, 1.0, 0.05), (40, 2.0, 0.01)])
def test_never_below_the_exact_answer_in_one_column(kind, count, epsilon, delta):
    f = pool_of(kind, count, 1)
    scale = noise_for(epsilon, delta, float(np.ptp(f)))
    records = np.unique(np.linspace(0, count - 1, 3).astype(int))
    lower = SubsetSumLaws(f, count // 2, scale, records=records).epsilon(delta)[:, 0]
    limits = normal_epsilons(f, scale, delta)[records]
    assert (limits >= lower).all()


def test_the_normal_approximation_itself_is_no_bound():
    """So the error terms are needed: without them a lattice would be certified too low."""
    f = np.repeat([0.0, 1.0], [2, 12])[:, None]
    halves = _Halves(f / 0.5)
    truth = SubsetSumLaws(f, 7, 0.5, records=[0]).divergence(0, 1.0)[0]
    u = float(halves.shifts[0])
    normal = _divergence(_NoError(), u, u, 1.0, 0.0)
    assert normal < truth


class _NoError:
    """A pool that is exactly normal."""

    unshared = shared = tails = np.zeros(9)
    degree = 8


def test_what_is_beyond_the_last_degree_counts():
    """Against the formula of the statement on a dense grid of half-lines, with an error above all degrees only."""
    tail, u, gamma = 0.05, 0.4, math.exp(0.2)

    class Beyond(_NoError):
        tails = np.full(9, tail)

    t = np.linspace(-8.0, 8.0, 40_001)
    part = lambda v: np.minimum(0.5, tail / 2 + np.sqrt(v + tail**2 / 4))  # noqa: E731
    above, below = ndtr(u / 2 - t), ndtr(-u / 2 - t)
    stated = float(np.max(above - gamma * below + tail * (part(above) + gamma * part(below))))
    assert stated <= _divergence(Beyond(), u, u, 0.2, 0.0) <= stated + 1e-3


@pytest.mark.parametrize(("columns", "count", "epsilon", "most"), [(2, 80, 3.0, 1.12), (12, 100, 1.0, 1.06)])
def test_close_to_the_normal_approximation_for_all_records(columns, count, epsilon, most):
    f = pool_of("normal", count, columns, seed=5)
    scale = noise_for(epsilon, 0.01, 2.0 * float(np.linalg.norm(f - f.mean(axis=0), axis=1).max()))
    limits = normal_epsilons(f, scale, 0.01)
    shifts = _Halves(f / scale).shifts
    worst = int(np.argmax(shifts))
    assert epsilon_for(1.0, 0.01, shifts[worst]) <= limits[worst] <= most * epsilon_for(1.0, 0.01, shifts[worst])
    assert np.median(limits / pairwise_epsilons(f, scale, 0.01)) < 0.7


def test_little_noise_shows_nothing_and_says_so():
    assert np.isinf(normal_epsilons(pool_of("normal", 40, 3), 0.01, 0.01)).all()


@pytest.mark.parametrize("count", [13, 12])
def test_pools_that_are_not_covered(count):
    assert np.isinf(normal_epsilons(pool_of("normal", count, 2), 5.0, 0.01)).all()


def test_equal_records_have_nothing_to_hide():
    assert normal_epsilons(np.ones((20, 3)), 1.0, 0.01).tolist() == [0.0] * 20


@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_norms_cover_the_others_of_every_record(kind):
    """Against the sums over all pairs of the other records, whitened without the record."""
    f = pool_of(kind, 24, 3)
    f = f / 4.0
    halves = _Halves(f)
    whole, cross = halves.norms
    for x in (0, 7, int(np.argmax(halves.shifts))):
        others = np.delete(f, x, axis=0)
        half = 0.5 * (others - others.mean(axis=0))
        v = np.eye(3) + (1 + 1 / 23) * half.T @ half
        values, vectors = np.linalg.eigh(v)
        eta = half @ (vectors / np.sqrt(values)) @ vectors.T
        w = (vectors / np.sqrt(values)) @ vectors.T @ (f[x] - others.mean(axis=0))
        assert halves.shifts[x] == pytest.approx(np.linalg.norm(w), rel=1e-6)
        g = eta @ eta.T
        a = eta @ (w / np.linalg.norm(w))
        across = g - np.outer(a, a)
        for k in (3, 4, 6, 8):
            exact = math.sqrt(max(0.0, float(np.sum(g**k))))
            assert exact <= whole[x, k]
            assert kind == "skewed" or whole[x, k] <= 2.0 * exact + 1e-3
            touching = math.sqrt(max(0.0, float(np.sum(g**k - across**k))))
            assert touching <= cross[x, k] * (1 + 1e-9)
        assert np.sqrt(np.max(np.sum(eta**2, axis=1))) <= halves.longest(np.array([x])) * (1 + 1e-9)


def test_coefficients_of_omega_against_sympy():
    sympy = pytest.importorskip("sympy")
    z, y = sympy.symbols("z y")
    third = -y * (1 - y**2) / 3
    law = sympy.exp(-y * z - (1 - y**2) * z**2 / 2 - third * z**3) * (sympy.cosh(z) + y * sympy.sinh(z))
    series = sympy.series(law, z, 0, 8).removeO().expand()
    for k in range(4, 8):
        powers = sympy.Poly(series.coeff(z, k) * math.factorial(k), y).all_coeffs()[::-1]
        assert [abs(int(c)) for c in powers] == hermite._signed()[k][: len(powers)]


def test_positive_majorant_is_above_the_signed_coefficients():
    signed = hermite.omega(60, 0.7, 0.3)
    positive = hermite._positive(60, 0.7, 0.3, hermite._kept(60))
    assert (signed[4:41] <= positive[4:41] * (1 + 1e-12)).all()


def test_moments_against_integers():
    """W[i, j] ≥ |E t^{2i}(t² - 1/M)^j| by the binomial theorem in fractions."""
    from fractions import Fraction

    others = 19
    moment = [Fraction(1)]
    for i in range(9):
        moment.append(moment[-1] * (2 * i + 1) / (others - 2 * i))
    table, _ = hermite._log_moments(others, 12)
    for i in range(3):
        for j in range(4):
            exact = abs(sum(math.comb(j, m) * moment[i + m] * Fraction(-1, others) ** (j - m) for m in range(j + 1)))
            assert float(exact) <= math.exp(table[i, j]) <= float(exact) * (1 + 1e-9) + 1e-290


def test_tail_constant_is_above_the_exact_transform():
    """E exp(θ·S) of exact halves against C·exp(θ·Aθ/2)."""
    f = pool_of("skewed", 14, 2)[1:]
    half = 0.5 * (f - f.mean(axis=0))
    signs = np.array([[1 if i in chosen else -1 for i in range(13)] for chosen in itertools.combinations(range(13), 6)])
    rng = np.random.default_rng(1)
    for size in (0.3, 1.0, 3.0):
        theta = size * rng.standard_normal(2)
        exact = np.exp(signs @ half @ theta).mean()
        assert exact <= hermite._sub_gaussian(13) * math.exp(0.5 * float(np.sum((half @ theta) ** 2)))


def test_degrees_stay_within_the_pool():
    assert max(_degrees(_Halves(pool_of("normal", 20, 2)))) <= 14
