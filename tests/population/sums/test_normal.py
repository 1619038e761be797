"""The proved normal approximation: never below the truth, near it where the noise is moderate."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from whosin.numerics.gaussian_noise import epsilon_for, noise_for
from whosin.population.sums import hermite, normal
from whosin.population.sums.hermite import Draw
from whosin.population.sums.normal import Error, Whitened, _revealed, degree_of, divergence, error_of, normal_epsilons
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


def enumerated_divergences(f, x, k, scale, gammas):
    """E_γ(in‖out) and E_γ(out‖in) of a record in two columns, by listing all k-subsets and integrating over a grid."""
    others = [i for i in range(len(f)) if i != x]
    sums = {}
    for inside, size in ((True, k - 1), (False, k)):
        chosen = np.array(list(itertools.combinations(others, size)))
        sums[inside] = f[chosen].sum(axis=1) + (f[x] if inside else 0.0)
    both = np.concatenate(list(sums.values()))
    grids = [np.linspace(both[:, c].min() - 7 * scale, both[:, c].max() + 7 * scale, 161) for c in (0, 1)]
    density = {}
    for inside, points in sums.items():
        kernels = [np.exp(-0.5 * ((g[:, None] - points[:, c]) / scale) ** 2) for c, g in enumerate(grids)]
        density[inside] = kernels[0] @ kernels[1].T / (len(points) * 2 * math.pi * scale**2)
    cell = np.prod([g[1] - g[0] for g in grids])
    return [
        max(float(np.maximum(density[a] - gamma * density[not a], 0.0).sum() * cell) for a in (True, False))
        for gamma in gammas
    ]


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize(("k", "spread"), [(7, 2.0), (7, 6.0), (4, 2.0), (10, 4.0), (2, 6.0)])
def test_never_below_the_enumerated_divergence(kind, k, spread):
    f = pool_of(kind, 14, 2)
    centred = np.linalg.norm(f - f.mean(axis=0), axis=1)
    scale = spread * float(centred.max())
    whitened = Whitened(f / scale, k)
    for x in (int(np.argmax(centred)), int(np.argmin(centred))):
        error = error_of(whitened.sizes(np.array([x])), 8)
        assert error is not None
        epsilons = (0.0, 0.1, 0.3)
        for epsilon, truth in zip(epsilons, enumerated_divergences(f, x, k, scale, np.exp(epsilons)), strict=True):
            assert divergence(error, whitened.shifts[x], whitened.shifts[x], epsilon, 0.0) >= truth - 1e-9


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize(
    ("count", "k", "epsilon", "delta"),
    [(14, 7, 1.0, 0.05), (40, 20, 2.0, 0.01), (31, 9, 1.5, 0.02), (26, 22, 1.0, 0.02)],
)
def test_never_below_the_exact_answer_in_one_column(kind, count, k, epsilon, delta):
    f = pool_of(kind, count, 1)
    scale = noise_for(epsilon, delta, float(np.ptp(f)))
    records = np.unique(np.linspace(0, count - 1, 3).astype(int))
    lower = SubsetSumLaws(f, k, scale, records=records).epsilon(delta)[:, 0]
    limits = normal_epsilons(f, k, scale, delta)[records]
    assert (limits >= lower).all()


@pytest.mark.parametrize(("k", "far"), [(8, [3]), (5, [3]), (8, [3, 9])])
def test_somebody_who_is_told_about_far_records_learns_more(k, far):
    """At the limit the enumerated divergences of all draws of 16 are at most δ, in both directions."""
    f = pool_of("normal", 16, 2, seed=4)
    f[far] *= 40.0
    scale, delta = 9.0, 0.02
    asked = np.array([0, 1, 12])
    limits = _revealed(f / scale, k, np.array(far), asked, delta)
    assert np.isfinite(limits).all()
    for x, limit in zip(asked, limits, strict=True):
        assert enumerated_divergences(f, int(x), k, scale, [math.exp(limit)])[0] <= delta


def test_one_far_record_does_not_spoil_the_others(monkeypatch):
    f = pool_of("normal", 60, 2, seed=1)
    f[5] *= 30.0 / np.linalg.norm(f[5])
    scale = noise_for(6.0, 0.01, 34.0)
    limits = normal_epsilons(f, 30, scale, 0.01)
    assert Whitened(f / scale, 30).far.tolist() == [5]
    near = np.arange(60) != 5
    assert (limits[near] < 0.8 * pairwise_epsilons(f, scale, 0.01)[near]).all()
    monkeypatch.setattr(normal, "MOST_FAR", 0)
    assert np.isinf(normal_epsilons(f, 30, scale, 0.01)).all()


def projected(f, x, k, scale, delta):
    """A lower limit on a record's ε̃: that of somebody who looks in the direction of the mean difference only."""
    others = np.delete(f, x, axis=0)
    centred = others - others.mean(axis=0)
    v = scale**2 * np.eye(f.shape[1]) + Draw(len(others), k).alpha * centred.T @ centred
    e = np.linalg.solve(v, f[x] - others.mean(axis=0))
    return SubsetSumLaws(f @ (e / np.linalg.norm(e)), k, scale, records=[x]).epsilon(delta)[0, 0]


@pytest.mark.parametrize(
    ("columns", "count", "k", "epsilon", "most"),
    [
        (2, 200, 100, 3.0, 1.06),
        (2, 301, 60, 3.0, 1.15),
        (5, 300, 150, 2.0, 1.06),
        (20, 200, 100, 2.0, 1.06),
        pytest.param(3, 2000, 1500, 3.0, 1.1, marks=pytest.mark.long),
        pytest.param(20, 1000, 300, 2.0, 1.1, marks=pytest.mark.long),
        pytest.param(20, 10_000, 5000, 1.0, 1.05, marks=pytest.mark.long),
        pytest.param(5, 10_000, 2000, 2.0, 1.05, marks=pytest.mark.long),
    ],
)
def test_the_truth_lies_between_the_exact_projection_and_the_bound(columns, count, k, epsilon, most):
    f = pool_of("normal", count, columns, seed=7)
    far = np.linalg.norm(f - f.mean(axis=0), axis=1)
    scale = noise_for(epsilon, 0.01, 2.0 * float(far.max()))
    limits = normal_epsilons(f, k, scale, 0.01)
    for x in (int(np.argmax(far)), int(np.argsort(far)[count // 2])):
        lower = projected(f, x, k, scale, 0.01)
        assert lower <= limits[x] <= most * lower + 2e-3


@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_every_degree_is_above_the_exact_norm(kind):
    """Σ ρ^{2j}·j!·[Ψ_j]² of the mean of both sides and of half their difference, by two copies of the listed sums.

    E|Ψ(ρζ)|² for a complex normal ζ is a normal integral for each pair of sums; by ρ = 1/4 the low degrees decide.
    """
    f = pool_of(kind, 14, 2) / 8.0
    for k, x in ((4, 3), (12, 0)):
        whitened = Whitened(f, k)
        error = error_of(whitened.sizes(np.array([x])), 8)
        others = np.delete(f, x, axis=0)
        xi = others - others.mean(axis=0)
        v = np.eye(2) + whitened.draw.alpha * xi.T @ xi
        values, vectors = np.linalg.eigh(v)
        root = vectors / np.sqrt(values) @ vectors.T
        covariance = np.eye(2) - root @ root
        axes = np.linalg.eigh(covariance)
        sums, weights = [], []
        for side, m in enumerate((k - 1, k)):
            chosen = np.array(list(itertools.combinations(range(13), m)))
            sums.append(xi[chosen].sum(axis=1) @ root @ axes[1])
            weights.append(np.array([0.5, 0.5 * (-1) ** side]) / len(chosen) * np.ones((len(chosen), 2)))
        s, w = np.concatenate(sums), np.concatenate(weights).T
        parted = normal._log_squares(error.apart, hermite.scale_of(8))
        for which, parts in ((0, np.exp(error.shared)), (1, np.exp(parted))):
            for rho in (0.1, 0.25):
                lam = rho**2 * axes[0]
                plus = (s[:, None] + s[None]) ** 2 / (4 * (1 + lam))
                minus = (s[:, None] - s[None]) ** 2 / (4 * (1 - lam))
                kernel = np.exp(rho**2 * (plus - minus).sum(axis=2)) / math.sqrt(np.prod(1 - lam**2))
                exact = float(w[which] @ kernel @ w[which]) - (1.0 if which == 0 else 0.0)
                bound = float(np.sum(parts * rho ** (2 * np.arange(len(parts))))) + rho**18 * error.tails[-1] ** 2
                assert -1e-12 <= exact <= bound + 1e-12


def test_the_normal_approximation_itself_is_no_bound():
    """So the error terms are needed: without them a lattice would be certified too low."""
    f = np.repeat([0.0, 1.0], [2, 12])[:, None]
    whitened = Whitened(f / 0.5, 7)
    truth = SubsetSumLaws(f, 7, 0.5, records=[0]).divergence(0, 1.0)[0]
    u = float(whitened.shifts[0])
    normal = divergence(no_error(), u, u, 1.0, 0.0)
    assert normal < truth


def no_error(mass=0.0, tail=0.0):
    """A pool that is exactly normal up to degree 8."""
    nothing = np.zeros(9)
    return Error(nothing, nothing, np.full(9, -np.inf), np.full(9, mass), np.full(9, tail))


def test_what_is_beyond_the_last_degree_counts():
    """Against the formulas of the statement on a dense grid of half-lines, with an error above all degrees only."""
    tail, mass, u, gamma = 0.05, 0.01, 0.4, math.exp(0.2)
    t = np.linspace(-8.0, 8.0, 40_001)
    part = lambda v: np.minimum(0.5, tail / 2 + np.sqrt(v + tail**2 / 4))  # noqa: E731
    above, below = ndtr(u / 2 - t), ndtr(-u / 2 - t)
    stated = float(np.max(above - gamma * below + tail * (part(above) + gamma * part(below))))
    assert stated <= divergence(no_error(1.0, tail), u, u, 0.2, 0.0) <= stated + 1e-3
    stated = float(np.max(above - gamma * below)) + mass * (1.0 + gamma)
    assert stated <= divergence(no_error(mass, 1.0), u, u, 0.2, 0.0) <= stated + 1e-3


@pytest.mark.parametrize(
    ("columns", "count", "k", "epsilon", "most"),
    [(2, 80, 40, 3.0, 1.12), (12, 100, 50, 1.0, 1.06), (2, 80, 24, 3.0, 1.2), (12, 101, 20, 1.0, 1.08)],
)
def test_close_to_the_normal_approximation_for_all_records(columns, count, k, epsilon, most):
    f = pool_of("normal", count, columns, seed=5)
    scale = noise_for(epsilon, 0.01, 2.0 * float(np.linalg.norm(f - f.mean(axis=0), axis=1).max()))
    limits = normal_epsilons(f, k, scale, 0.01)
    shifts = Whitened(f / scale, k).shifts
    worst = int(np.argmax(shifts))
    assert epsilon_for(1.0, 0.01, shifts[worst]) <= limits[worst] <= most * epsilon_for(1.0, 0.01, shifts[worst])
    assert np.median(limits / pairwise_epsilons(f, scale, 0.01)) < 0.75


@pytest.mark.parametrize("k", [15, 6])
def test_drawing_the_others_is_the_same_game(k):
    """Who is drawn and who is not change places when the sum is taken from the whole."""
    f = pool_of("skewed", 20, 2)
    one, other = (normal_epsilons(f, size, 8.0, 0.01) for size in (k, 20 - k))
    assert np.isfinite(one).sum() == 19
    assert one == pytest.approx(other, rel=1e-9)


def test_where_the_pool_lies_does_not_matter():
    """A mean far from 0 is rounded; limits were below the exact answer once that moved the centre."""
    f = np.round(4.0 * pool_of("normal", 40, 1)) / 4.0
    far = f + (2.0**48 + 2**47 // 3)
    assert normal_epsilons(far, 20, 4.0, 0.01) == pytest.approx(normal_epsilons(f, 20, 4.0, 0.01), rel=1e-6)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_record_that_is_alone_in_its_direction_has_no_limit(columns):
    f = np.vstack([pool_of("normal", 39, columns), np.full((1, columns), 1e6)])
    limits = normal_epsilons(f, 20, 8.0, 0.01)
    assert np.isinf(limits[-1])
    assert np.isfinite(limits[:-1]).all()


def test_little_noise_shows_nothing_and_says_so():
    assert np.isinf(normal_epsilons(pool_of("normal", 40, 3), 20, 0.01, 0.01)).all()


@pytest.mark.parametrize(("count", "k"), [(13, 6), (12, 6), (20, 1), (20, 19)])
def test_pools_that_are_not_covered(count, k):
    assert np.isinf(normal_epsilons(pool_of("normal", count, 2), k, 5.0, 0.01)).all()


def test_equal_records_have_nothing_to_hide():
    assert normal_epsilons(np.ones((20, 3)), 10, 1.0, 0.01).tolist() == [0.0] * 20


@pytest.mark.parametrize("k_drawn", [12, 5])
@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_norms_cover_the_others_of_every_record(kind, k_drawn):
    """Against the sums over all pairs of the other records, whitened without the record."""
    f = pool_of(kind, 24, 3)
    f = f / 4.0
    whitened = Whitened(f, k_drawn)
    whole, cross = whitened.norms
    for x in (0, 7, int(np.argmax(whitened.shifts))):
        others = np.delete(f, x, axis=0)
        centred = others - others.mean(axis=0)
        v = np.eye(3) + whitened.draw.alpha * centred.T @ centred
        values, vectors = np.linalg.eigh(v)
        eta = centred @ (vectors / np.sqrt(values)) @ vectors.T
        w = (vectors / np.sqrt(values)) @ vectors.T @ (f[x] - others.mean(axis=0))
        assert whitened.shifts[x] == pytest.approx(np.linalg.norm(w), rel=1e-6)
        g = eta @ eta.T
        a = eta @ (w / np.linalg.norm(w))
        across = g - np.outer(a, a)
        for k in (3, 4, 6, 8):
            exact = math.sqrt(max(0.0, float(np.sum(g**k))))
            assert exact <= whole[x, k]
            assert kind == "skewed" or whole[x, k] <= 2.0 * exact + 1e-3 * 2.0**k
            touching = math.sqrt(max(0.0, float(np.sum(g**k - across**k))))
            assert touching <= cross[x, k] * (1 + 1e-9)
        assert np.sqrt(np.max(np.sum(eta**2, axis=1))) <= whitened.longest(np.array([x])) * (1 + 1e-9)


def test_coefficients_of_omega_against_sympy():
    sympy = pytest.importorskip("sympy")
    z, v = sympy.symbols("z v")
    square = v * (1 - v)
    third = square * (1 - 2 * v) / 6
    law = sympy.exp(-square * z**2 / 2 - third * z**3) * ((1 - v) * sympy.exp(-v * z) + v * sympy.exp((1 - v) * z))
    series = sympy.series(law, z, 0, 8).removeO().expand()
    draw = Draw(20, 6)
    for j in range(4, 8):
        powers = sympy.Poly(series.coeff(z, j) * math.factorial(j), v).all_coeffs()[::-1]
        assert [int(c) for c in powers] == hermite._signed()[j][: len(powers)]
        moved = sympy.Poly(series.coeff(z, j).subs(v, v + sympy.Rational(11, 40)), v).all_coeffs()[::-1]
        assert np.abs(np.array(moved, dtype=float)) == pytest.approx(hermite._around(draw)[j][: len(moved)], rel=1e-12)


@pytest.mark.parametrize("k", [40, 17])
def test_positive_majorant_is_above_the_signed_coefficients(k):
    draw = Draw(79, k)
    signed = hermite.omega(draw, 60, 0.7)
    positive = hermite._positive(draw, 60, 0.7, draw.folding(62), hermite._kept(60))
    assert (signed[4:41] <= positive[4:41] * (1 + 1e-12)).all()


@pytest.mark.parametrize("k", [10, 4, 19])
def test_moments_against_chances(k):
    """|L[y^r (v(1-v) - α)^j]|, v^a being the chance that a given records are all among m of the others."""
    from fractions import Fraction

    others, draw = 20, Draw(20, k)
    p = Fraction(2 * k - 1, 2 * others)
    alpha = Fraction(sum(m * (others - m) for m in (k - 1, k)), 2 * others * (others - 1))
    assert float(alpha) == pytest.approx(draw.alpha, rel=1e-15)

    def chance(m, a):
        return math.prod((Fraction(m - i, others - i) for i in range(a)), start=Fraction(1))

    def times(one, two):
        out = [Fraction(0)] * (len(one) + len(two) - 1)
        for i, a in enumerate(one):
            for j, b in enumerate(two):
                out[i + j] += a * b
        return out

    mean, half, plain = hermite._log_moments(draw, 12)
    for r in range(4):
        for j in range(4):
            row = [Fraction(1)]
            for factor in [[-p, Fraction(1)]] * r + [[-alpha, Fraction(1), Fraction(-1)]] * j:
                row = times(row, factor)
            sides = [sum(c * chance(m, a) for a, c in enumerate(row)) for m in (k - 1, k)]
            for table, exact in ((mean, abs(sides[0] + sides[1]) / 2), (half, abs(sides[0] - sides[1]) / 2)):
                assert float(exact) <= math.exp(table[r, j]) <= float(exact) * (1 + 1e-9) + 1e-290
            if j == 0:
                assert max(abs(side) for side in sides) <= math.exp(plain[r]) * (1 + 1e-12)


@pytest.mark.parametrize("k", [16, 8])
def test_folding_and_the_triangle_inequality_only_raise_the_bound(k, monkeypatch):
    """Few powers of y and no exact power of s - α, against all of them."""
    draw, norms, eigenvalues = Draw(31, k), np.full(25, 0.4), np.array([0.5, 0.3])
    norms[:3] = 0.0
    powers = hermite.quadratic_powers(eigenvalues, 13)
    full = hermite.majorant(norms, powers, draw, 0.5)
    monkeypatch.setattr(hermite, "_kept", lambda degree: 8)
    monkeypatch.setattr(hermite, "EXACT_POWERS", 2)
    hermite._log_moments.cache_clear()
    folded = hermite.majorant(norms, powers, draw, 0.5)
    hermite._log_moments.cache_clear()
    for one, other in zip(full[:2], folded[:2], strict=True):
        assert (one <= other * (1 + 1e-9)).all()
    assert (folded[0][4:9:2] <= 1.2 * full[0][4:9:2]).all()


@pytest.mark.parametrize("m", [6, 3, 1, 11])
def test_tail_constant_is_above_the_exact_transform(m):
    """E exp(θ·S) of exact draws of 13 against C·exp(κ·Σ(θ·ξ)²/2), κ = (1-2p)/(2 ln((1-p)/p))."""
    f = pool_of("skewed", 14, 2)[1:]
    xi = f - f.mean(axis=0)
    p = m / 13
    kappa = (1 - 2 * p) / (2 * math.log((1 - p) / p))
    chosen = np.array(list(itertools.combinations(range(13), m)))
    rng = np.random.default_rng(1)
    for size in (0.1, 0.3, 1.0, 3.0):
        for theta in size * rng.standard_normal((20, 2)):
            exact = np.exp((xi[chosen] @ theta).sum(axis=1)).mean()
            limit = hermite.sub_gaussian(13, m) * math.exp(0.5 * kappa * float(np.sum((xi @ theta) ** 2)))
            assert exact <= limit
    assert 1.0 <= hermite.sub_gaussian(13, m) < 1.4


def test_degrees_stay_within_the_pool():
    assert degree_of(Whitened(pool_of("normal", 20, 2), 10).sizes(np.arange(20))) <= 14
