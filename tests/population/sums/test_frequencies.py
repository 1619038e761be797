"""Masses beyond a degree, by transforms: never below what listing all draws shows, and small with little noise."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import eval_hermitenorm, gammainc, gammaincc, ndtr

from whosin.numerics.gaussian_noise import epsilon_for, noise_for
from whosin.population.sums import normal
from whosin.population.sums.frequencies import (
    _log_mean_exp,
    _log_mean_less,
    _log_shares,
    largest_fourth,
    log_transform,
    masses_beyond,
    parts_of,
    sine_bounds,
)
from whosin.population.sums.normal import Error, Whitened, _root, divergence, limits_of
from whosin.population.sums.pairwise import pairwise_epsilons
from whosin.population.sums.spectral import SubsetSumLaws

POOLS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) ** 1.5,
    "binary": lambda rng, shape: rng.integers(0, 2, size=shape).astype(float),
    "lattice": lambda rng, shape: rng.integers(-2, 3, size=shape).astype(float),
    "outlier": lambda rng, shape: np.vstack([rng.standard_normal((shape[0] - 1, shape[1])), np.full(shape[1], 5.0)]),
}


def pool_of(kind, count, columns, seed=0):
    return POOLS[kind](np.random.default_rng(seed), (count, columns))


def listed_sums(f, x, m, alpha):
    """The centred, whitened sums of all m of the others of x, and the covariance of the whitened noise."""
    others = np.delete(f, x, axis=0)
    xi = others - others.mean(axis=0)
    values, vectors = np.linalg.eigh(np.eye(f.shape[1]) + alpha * xi.T @ xi)
    root = vectors / np.sqrt(values) @ vectors.T
    chosen = np.array(list(itertools.combinations(range(len(others)), m)))
    return xi[chosen].sum(axis=1) @ root, root @ root


def test_sines_are_above_their_bounds():
    kappa, c = sine_bounds()
    x = np.linspace(0.0, 20.0, 100_001)[:, None]
    assert (np.sin(x) ** 2 >= c * (x**2 - kappa * x**4) - 1e-13).all()
    assert c[-1] == pytest.approx(1.0, abs=1e-4)
    assert kappa.min() >= 1.0 / math.pi**2


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize("columns", [1, 2, 3, 6])
def test_no_direction_has_a_larger_fourth_moment(kind, columns):
    vectors = pool_of(kind, 60, columns)
    fourth, found = largest_fourth(vectors), 0.0
    for e in np.random.default_rng(columns).standard_normal((40, columns)):
        for _ in range(50):  # climbs to a largest moment nearby
            e = (vectors @ e) ** 3 @ vectors
            e = e / np.linalg.norm(e)
        found = max(found, float(np.sum((vectors @ e) ** 4)))
    assert found <= fourth * (1.0 + 1e-12)
    assert fourth <= 1.1 * found or kind == "lattice"


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize("columns", [1, 2, 3, 6])
def test_fourth_powers_of_differences_within_parts(kind, columns):
    """The mean fourth power of differences within a part, summed over all vectors, pair by pair."""
    vectors = pool_of(kind, 60, columns)
    parts = parts_of(vectors, 7)
    near = parts >= 0
    assert near.any()
    assert (np.bincount(parts[near]) > 0).all()
    vectors, parts = vectors[near], parts[near]
    apart = vectors - np.array([vectors[parts == part].mean(axis=0) for part in range(parts.max() + 1)])[parts]
    e = np.random.default_rng(columns).standard_normal((400, columns))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    found = np.zeros(400)
    for part in range(parts.max() + 1):
        along = vectors[parts == part] @ e.T
        found += np.sum((along[:, None] - along) ** 4, axis=(0, 1)) / len(along)
    limit = largest_fourth(apart, parts)
    assert found.max() <= limit * (1.0 + 1e-12)
    assert limit <= 2.5 * found.max() + 1e-12


@pytest.mark.parametrize("kind", ["normal", "outlier", "lattice"])
def test_scatter_within_parts_without_a_record(kind, monkeypatch):
    """Squares of differences over the pairs of other records, divided by what the part had, are twice what is kept."""
    monkeypatch.setattr(normal, "QUIET", 1e9)
    whitened = Whitened(pool_of(kind, 24, 2), 12)
    eta, turns = whitened.eta, np.linspace(0.0, math.pi, 200)
    along = eta @ np.array([np.cos(turns), np.sin(turns)])
    tight = np.inf
    for number, (least, _, lost) in zip((1, 4), whitened.parts, strict=True):
        parts = parts_of(eta, number)
        for x in range(24):
            kept = np.zeros(200)
            for part in range(parts.max() + 1):
                own = parts == part
                rest = along[own & (np.arange(24) != x)]
                kept += np.sum((rest[:, None] - rest) ** 2, axis=(0, 1)) / own.sum()
            assert 2.0 * (least - lost[x]) <= kept.min() + 1e-9
            tight = min(tight, kept.min() - 2.0 * (least - lost[x]) if lost[x] else np.inf)
    assert tight < 0.3 * least


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize("columns", [1, 2])
def test_fourth_moments_of_the_others_of_each_record(kind, columns, monkeypatch):
    """Of the others as they are whitened without it: stretched, and around a mean that has moved."""
    monkeypatch.setattr(normal, "QUIET", 1e9)
    f = 3.0 * pool_of(kind, 16, columns)
    whitened = Whitened(f, 8)
    turns = np.linspace(0.0, math.pi, 100)
    around = np.ones((1, 1)) if columns == 1 else np.column_stack([np.cos(turns), np.sin(turns)])
    for x in range(16):
        others = listed_sums(f, x, 1, whitened.draw.alpha)[0]
        squares = (others @ around.T) ** 2
        fourth, weighted = whitened.fourth(np.array([x]))
        assert np.sum(squares**2, axis=0).max() <= fourth
        assert (np.sum(others**2, axis=1) @ squares).max() <= weighted
        if np.all(parts_of(whitened.eta, 1) == 0):
            apart = np.sum(((others[:, None] - others) @ around.T) ** 4, axis=(0, 1)).max()
            assert apart / 16.0 <= whitened.within(np.array([x]))[0][1]


def directions(columns):
    """Directions and weights for means over the sphere."""
    if columns == 1:
        return np.array([[-1.0], [1.0]]), np.full(2, 0.5)
    turns = 2.0 * math.pi * np.arange(16 if columns == 2 else 10) / (16 if columns == 2 else 10)
    circle = np.column_stack([np.cos(turns), np.sin(turns)])
    if columns == 2:
        return circle, np.full(16, 1.0 / 16.0)
    heights, weights = np.polynomial.legendre.leggauss(5)
    points = [np.column_stack([math.sqrt(1.0 - z * z) * circle, np.full(len(circle), z)]) for z in heights]
    return np.vstack(points), np.repeat(weights / 2.0 / len(circle), len(circle))


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_means_of_exponentials_over_directions(columns):
    rng = np.random.default_rng(columns)
    around, weights = directions(columns)
    for _ in range(30):
        values = rng.uniform(0.0, 1.0, columns) ** 3 * 1.5
        forms = around**2 @ values
        most = values.max() * rng.uniform(1.0, 1.3)
        limit = _log_mean_exp(np.array([most]), max(1.0, values.sum() / most), columns)[0]
        assert math.log(weights @ np.exp(forms)) <= limit + 1e-6
        assert limit <= most + 1e-8
        less = _log_mean_less(np.array([1.5]), values)[0]
        assert math.log(weights @ np.exp(-1.5 * (1.0 - forms / values.max()))) <= less + 1e-6
    assert _log_mean_exp(np.array([900.0, 3.0]), 1.0, 3)[0] > 800.0


def test_shares_of_forms_within_a_ball():
    """Chances of gamma variables, never too small however far out."""
    radii = np.append(np.geomspace(0.1, 1000.0, 60), np.inf)
    shapes = np.arange(1.0, 400.0, 7.0)
    found = (np.exp(logs) for logs in _log_shares(shapes, radii))
    exact = (gammainc(shapes, radii[:, None]), gammaincc(shapes, radii[:, None]))
    for limits, chances in zip(found, exact, strict=True):
        assert (limits >= chances * (1.0 - 1e-10)).all()
        known = chances > 1e-250
        assert (limits[known] <= 3.0 * chances[known]).all()


def exact_transforms(eta_j, m, theta):
    """E exp(θ·S) for m of the vectors and each row of θ, as means over the roots of unity."""
    n, p = len(eta_j), m / len(eta_j)
    a = 2.0 * math.pi * np.arange(n + 1) / (n + 1)
    roots = np.exp(1j * a)[:, None]
    drawn = math.comb(n, m) * p**m * (1.0 - p) ** (n - m)
    return (
        np.array(
            [
                abs(np.mean(np.exp(-1j * a * m) * np.prod(1.0 - p + p * np.exp(eta_j @ row) * roots, axis=1)))
                for row in theta
            ]
        )
        / drawn
    )


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize(
    ("count", "k", "columns", "spread", "reach"),
    [
        (14, 7, 2, 0.6, 5.0),
        (15, 4, 1, 0.3, 5.0),
        (14, 6, 3, 2.0, 5.0),
        (100, 50, 2, 1.0, 20.0),
        (40, 12, 3, 2.0, 12.0),
    ],
)
@pytest.mark.parametrize("parted", [False, True])
def test_no_transform_is_larger_than_its_limit(kind, count, k, columns, spread, reach, parted, monkeypatch):
    """|φ|² in the mean over the directions of η for every y, and over both with all eigenvalues."""
    monkeypatch.setattr(normal, "QUIET", 1e9 if parted else -1e9)
    rng = np.random.default_rng(count)
    f = pool_of(kind, count, columns) / spread
    f[:, 0] *= 2.0
    x = int(np.argmax(np.linalg.norm(f - f.mean(axis=0), axis=1)))
    whitened = Whitened(f, k)
    values = whitened.eigenvalues
    alike = np.full(columns, values.max())
    fourths = (*whitened.fourth(np.array([x])), whitened.within(np.array([x])))
    assert bool(fourths[-1]) == parted or kind in ("binary", "lattice")
    around, weights = directions(columns)
    useful = 0
    for m in (k - 1, k):
        each, noise = listed_sums(f, x, 1, whitened.draw.alpha)
        if count < 20:
            sums, theta = listed_sums(f, x, m, whitened.draw.alpha)[0], 2j * around[0] + around[-1]
            exact = exact_transforms(each, m, theta[None])[0]
            assert exact == pytest.approx(abs(np.mean(np.exp(sums @ theta))), rel=1e-6, abs=1e-12)
        for size, tilt in zip(reach * rng.uniform(0.0, [0.3, 0.3, 0.6, 1.0]), (0.0, 1.0, 2.0, 3.0), strict=True):
            ends = [np.array([0.99, 1.01]) * each for each in (size, tilt)]
            limits = [math.exp(log_transform(whitened.draw, tuple(v), *fourths, *ends)[0, 0]) for v in (alike, values)]
            squares = np.array([exact_transforms(each, m, 1j * size * y + tilt * around) ** 2 for y in around])
            forms = np.einsum("ij,jk,ik->i", around, noise, around)
            squares = squares @ (weights * np.exp(tilt**2 * forms)) * np.exp(-(size**2) * forms)
            assert (np.sqrt(squares) <= limits[0] + 1e-13).all()
            assert math.sqrt(squares @ weights) <= limits[1] + 1e-13
            useful += limits[1] < 0.5 * math.exp(0.5 * (tilt**2 - (1.0 - values.max()) * size**2))
    assert useful > 0 or count < 50 or kind in ("outlier", "skewed")


@pytest.mark.parametrize(("tilt", "half"), [(1.2, 0.5), (1.5, 0.6), (1.8, 0.7)])
def test_short_waves_where_chances_are_strongly_tilted(tilt, half, monkeypatch):
    """A pool of two values: tilted chances have less variance, so that waves take less from the transform."""
    monkeypatch.setattr(normal, "QUIET", 1e9)
    f = np.repeat([[-0.3], [0.3]], 200, axis=0)
    whitened = Whitened(f, 200)
    fourths = *whitened.fourth(np.array([0])), whitened.within(np.array([0]))
    each, noise = listed_sums(f, 0, 1, whitened.draw.alpha)
    theta = (tilt + 2j * half) / abs(each[0, 0])
    ends = [np.array([0.999, 1.001]) * size for size in (theta.imag, theta.real)]
    limit = log_transform(whitened.draw, tuple(whitened.eigenvalues), *fourths, *ends)[0, 0]
    for m in (199, 200):
        exact = exact_transforms(each, m, np.array([[theta]]))[0]
        assert math.log(exact) + 0.5 * (theta**2).real * noise[0, 0] <= limit


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize(("count", "k", "spread"), [(20, 4, 4.0), (20, 4, 12.0), (18, 9, 3.0), (18, 9, 1.0)])
def test_no_mass_and_no_norm_is_larger_than_its_limit(kind, count, k, spread):
    """In one column: what is beyond a degree, from the density of all listed sums and its Hermite coefficients."""
    f = pool_of(kind, count, 1) / (spread * 0.3)
    x = 3
    whitened = Whitened(f, k)
    masses, norms = known_beyond(whitened.sizes(np.array([x])), 14)
    assert np.isfinite(masses).all()
    t = np.linspace(-14.0, 14.0, 2001)
    step = t[1] - t[0]
    normal_density = np.exp(-0.5 * t**2) / math.sqrt(2.0 * math.pi)
    for m in (k - 1, k):
        sums, noise = listed_sums(f, x, m, whitened.draw.alpha)
        where, counts = np.unique(np.round(sums[:, 0], 3), return_counts=True)
        kernels = np.exp(-0.5 * (t[:, None] - where) ** 2 / noise[0, 0]) / math.sqrt(2.0 * math.pi * noise[0, 0])
        density = kernels @ (counts / counts.sum())
        series = np.zeros_like(t)
        near = np.abs(t) < 6.0  # farther out the quotient of norms is only rounding
        for j in range(13):
            hermite = eval_hermitenorm(j, t)
            series += float(np.sum(density * hermite) * step) / math.factorial(j) * hermite
            rest = density - normal_density * series
            assert np.sum(np.abs(rest)) * step <= masses[j] + 2e-3
            assert math.sqrt(np.sum((rest**2 / normal_density)[near]) * step) <= norms[j] + 2e-3


def known_beyond(sizes, degree):
    """Masses and norms beyond each degree, from the norms of the series."""
    from whosin.population.sums.hermite import majorant, quadratic_powers, scale_of

    norms = np.zeros(degree + 1)
    norms[3:9] = (sizes.whole / sizes.unit ** np.arange(9))[3:9]
    norms[8:] = norms[8]
    powers = quadratic_powers(sizes.eigenvalues / sizes.draw.alpha, degree // 2 + 1)
    mean, apart, rounding = majorant(norms, powers, sizes.draw, sizes.unit)
    mean[:3] = apart[:2] = 0.0
    mean[0] = 1.0
    return masses_beyond(sizes, normal._log_squares((mean + apart) * (1.0 + rounding), scale_of(degree)))


def test_masses_where_the_transform_alone_shows_them():
    f = pool_of("normal", 1000, 2)
    whitened = Whitened(f / noise_for(8.0, 0.01, 8.0), 500)
    sizes = whitened.sizes(np.array([0]))
    squares = np.full(normal.degree_of(sizes) + 1, -np.inf)
    squares[0] = 0.0  # as if the law were normal
    masses, norms = masses_beyond(sizes, squares)
    assert masses[8] < 1e-6
    assert norms[8] > 0.01
    more = squares.copy()
    more[9] = math.log(1e-8)
    beyond, norms = masses_beyond(sizes, more)
    assert min(beyond[8], norms[8]) >= 0.9e-4
    assert beyond[9] < 1e-6
    more = squares.copy()
    more[4] = math.log(1e40)  # below the cut: what of it lies where the transform is small counts too
    assert masses_beyond(sizes, more)[0][8] > 2.0 * masses[8]


def test_roots_of_tests_that_are_small():
    """H^{p/(p-1)} = v + χH, from above."""
    v = np.array([0.0, 1e-12, 1e-5, 0.3, 1.0])
    for power in normal.POWERS:
        q = power / (power - 1.0)
        for chi in (0.0, 1e-4, 0.05, 0.7):
            h = _root(v, chi, power)
            inside = h < 1.0
            assert (h**q >= np.minimum(v + chi * h, 1.0) * (1.0 - 1e-12)).all()
            assert (h[inside] ** q <= (v + chi * h)[inside] * (1.0 + 1e-6) + 1e-200).all()
    assert (_root(v, 1.5, 2.0) == 1.0).all()


def test_norms_of_an_error_of_degree_four_against_half_lines():
    """∫_t^∞ φ·He₄/√24 = φ(t)·He₃(t)/√24 is at most the norm in L^p times what a half-line leaves of it."""
    alike, zeros = np.zeros(9), np.zeros(9)
    alike[4] = normal.scale_of(8) ** 4 / math.sqrt(math.factorial(4))
    error = Error(alike, zeros, np.full(9, -np.inf), zeros, np.ones(9))
    norms = normal._unshared_norms(error, 0.0, 0.0, 0.0, 0.0, 8)
    assert norms == pytest.approx((np.array(normal.POWERS) - 1.0) ** 2, rel=1e-6)
    for t in (1.0, 2.0, 4.0, 6.0, 8.0):
        exact = eval_hermitenorm(3, t) * math.exp(-0.5 * t**2) / math.sqrt(48.0 * math.pi)
        for power, norm in zip(normal.POWERS, norms, strict=True):
            assert exact <= norm * _root(np.array([ndtr(-t)]), 0.0, power)[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_half_lines_far_out_and_an_error_of_degree_four(sign, monkeypatch):
    """Against normal laws that both carry it, on half-lines; norms in L² alone show several times as much."""
    u, gamma, size = 0.3, math.exp(1.3), 1e-3
    shared, alike, zeros = np.full(9, -np.inf), np.zeros(9), np.zeros(9)
    shared[4] = 2.0 * math.log(size)
    alike[4] = normal.scale_of(8) ** 4 * size / math.sqrt(math.factorial(4))
    error = Error(alike, zeros, shared, zeros, np.ones(9))

    def above(t):  # of φ·(1 + c·He₄/√24)
        beyond = eval_hermitenorm(3, t) * np.exp(-0.5 * t**2) / math.sqrt(48.0 * math.pi)
        return ndtr(-t) + sign * size * beyond

    t = np.linspace(0.0, 8.0, 2001)
    exact = float(np.max(above(t - u / 2.0) - gamma * above(t + u / 2.0)))
    found = divergence(error, u, u, 1.3, 0.0)
    assert exact <= found
    monkeypatch.setattr(normal, "POWERS", (2.0,))
    error.kept.clear()
    assert found < 0.9 * divergence(error, u, u, 1.3, 0.0)


@pytest.mark.parametrize("kind", ["normal", "skewed", "binary"])
@pytest.mark.parametrize(
    ("count", "k", "epsilon"),
    [
        (200, 100, 5.0),
        (400, 120, 4.0),
        (200, 100, 20.0),
        (300, 90, 40.0),
        pytest.param(600, 300, 8.0, marks=pytest.mark.long),
    ],
)
def test_with_little_noise_never_below_the_exact_answer_in_one_column(kind, count, k, epsilon):
    f = pool_of(kind, count, 1)
    scale = noise_for(epsilon, 0.01, float(np.ptp(f)))
    records = np.array([int(np.argmax(f)), int(np.argsort(f[:, 0])[count // 2])])
    lower = SubsetSumLaws(f, k, scale, records=records).epsilon(0.01)[:, 0]
    with np.errstate(over="ignore", invalid="ignore"):
        limits = limits_of(Whitened(f / scale, k), records, 0.01)
    assert (limits >= lower).all()


@pytest.mark.parametrize(
    ("columns", "count", "k", "epsilon", "most"),
    [
        (5, 1000, 500, 5.0, 1.05),
        (10, 1000, 500, 5.0, 1.05),
        (3, 1500, 500, 6.0, 1.1),
        (2, 200, 100, 12.0, 1.25),
        (2, 1000, 500, 20.0, 1.05),
        (5, 1000, 400, 15.0, 1.1),
        pytest.param(20, 1000, 500, 8.0, 1.1, marks=pytest.mark.long),
        pytest.param(5, 10_000, 5000, 8.0, 1.05, marks=pytest.mark.long),
        pytest.param(20, 10_000, 3000, 5.0, 1.05, marks=pytest.mark.long),
    ],
)
def test_little_noise_is_near_the_normal_approximation(columns, count, k, epsilon, most):
    """Where the norms alone show nothing, and pairs many times the truth."""
    f = pool_of("normal", count, columns, seed=7)
    far = np.linalg.norm(f - f.mean(axis=0), axis=1)
    scale = noise_for(epsilon, 0.01, 2.0 * float(far.max()))
    x = int(np.argmax(far))
    whitened = Whitened(f / scale, k)
    with np.errstate(over="ignore", invalid="ignore"):
        (limit,) = limits_of(whitened, np.array([x]), 0.01)
    least = epsilon_for(1.0, 0.01, float(whitened.shifts[x]))
    assert least <= limit <= most * least
    assert limit < 0.25 * pairwise_epsilons(f, scale, 0.01, records=[x])[0]
