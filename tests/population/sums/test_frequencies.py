"""Masses beyond a degree, by transforms: never below what listing all draws shows, and small with little noise."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import eval_hermitenorm

from whosin.numerics.gaussian_noise import epsilon_for, noise_for
from whosin.population.sums import frequencies, normal
from whosin.population.sums.frequencies import largest_moments, log_transform, masses_beyond, sine_bounds
from whosin.population.sums.normal import Whitened, divergence, limits_of
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
def test_no_direction_has_larger_moments(kind, columns):
    rng = np.random.default_rng(columns)
    vectors = pool_of(kind, 60, columns)
    third, fourth = largest_moments(vectors)
    starts = rng.standard_normal((40, columns))
    for power, limit in ((3, third), (4, fourth)):
        for e in starts:
            for _ in range(50):  # climbs to a largest moment nearby
                e = (vectors @ e) ** (power - 1) @ vectors
                e = e / np.linalg.norm(e)
            assert abs(np.sum((vectors @ e) ** power)) <= limit * (1.0 + 1e-12)
    complex_e = starts + 1j * rng.standard_normal(starts.shape)
    complex_e /= np.linalg.norm(complex_e, axis=1)[:, None]
    assert (np.abs(((vectors @ complex_e.T) ** 3).sum(axis=0)) <= third).all()
    assert (np.sum(np.abs(vectors @ complex_e.T) ** 4, axis=0) <= fourth).all()


def exact_transform(eta_j, m, theta):
    """E exp(θ·S) for m of the vectors, as a mean over the roots of unity."""
    n, p = len(eta_j), m / len(eta_j)
    a = 2.0 * math.pi * np.arange(2 * n) / (2 * n)
    factors = np.prod(1.0 - p + p * np.exp((eta_j @ theta)[:, None] + 1j * a), axis=0)
    drawn = math.comb(n, m) * p**m * (1.0 - p) ** (n - m)
    return abs(np.mean(np.exp(-1j * a * m) * factors)) / drawn


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize(
    ("count", "k", "columns", "spread", "reach"),
    [
        (14, 7, 2, 0.6, 5.0),
        (15, 4, 1, 0.3, 5.0),
        (14, 6, 3, 2.0, 5.0),
        (120, 60, 2, 1.0, 20.0),
        (150, 30, 3, 2.0, 20.0),
    ],
)
def test_no_transform_is_larger_than_its_limit(kind, count, k, columns, spread, reach):
    rng = np.random.default_rng(count)
    f = pool_of(kind, count, columns) / spread
    x = int(np.argmax(np.linalg.norm(f - f.mean(axis=0), axis=1)))
    whitened = Whitened(f, k)
    largest = float(whitened.eigenvalues.max())
    useful = 0
    for m in (k - 1, k):
        each, noise = listed_sums(f, x, 1, whitened.draw.alpha)
        sums = listed_sums(f, x, m, whitened.draw.alpha)[0] if count < 20 else None
        for _ in range(40):
            y, eta = rng.standard_normal((2, columns))
            y *= rng.uniform(0.0, reach) / np.linalg.norm(y)
            eta *= rng.choice([0.0, rng.uniform(0.0, 3.0)]) / np.linalg.norm(eta)
            exact = exact_transform(each, m, 1j * y + eta)
            if sums is not None:
                assert exact == pytest.approx(abs(np.mean(np.exp(sums @ (1j * y + eta)))), rel=1e-6, abs=1e-12)
            ends = [np.array([0.99, 1.01]) * np.linalg.norm(v) for v in (y, eta)]
            limit = math.exp(log_transform(whitened.draw, largest, *whitened.moments, *ends)[0, 0])
            assert exact * math.exp(0.5 * (eta @ noise @ eta - y @ noise @ y)) <= limit + 1e-13
            useful += limit < 0.5 * math.exp(0.5 * (eta @ eta - (1.0 - largest) * (y @ y)))
    assert useful > 10 or count < 20 or kind in ("outlier", "skewed")


@pytest.mark.parametrize("kind", sorted(POOLS))
@pytest.mark.parametrize(("count", "k", "spread"), [(24, 5, 4.0), (24, 5, 12.0), (20, 9, 3.0)])
def test_no_mass_is_larger_than_its_limit(kind, count, k, spread, monkeypatch):
    """In one column: what is beyond a degree, from the density of all listed sums and its Hermite coefficients."""
    monkeypatch.setattr(frequencies, "CUTS", range(4, 13))
    f = pool_of(kind, count, 1) / (spread * 0.3)
    x = 3
    whitened = Whitened(f, k)
    masses = masses_beyond(whitened.sizes(np.array([x])), 14)
    assert np.isfinite(masses[4:13]).all()
    t = np.linspace(-14.0, 14.0, 4001)
    step = t[1] - t[0]
    normal_density = np.exp(-0.5 * t**2) / math.sqrt(2.0 * math.pi)
    for m in (k - 1, k):
        sums, noise = listed_sums(f, x, m, whitened.draw.alpha)
        where, counts = np.unique(np.round(sums[:, 0], 4), return_counts=True)
        kernels = np.exp(-0.5 * (t[:, None] - where) ** 2 / noise[0, 0]) / math.sqrt(2.0 * math.pi * noise[0, 0])
        density = kernels @ (counts / counts.sum())
        series = np.zeros_like(t)
        for j in range(13):
            hermite = eval_hermitenorm(j, t)
            series += float(np.sum(density * hermite) * step) / math.factorial(j) * hermite
            if j >= 4:
                assert np.sum(np.abs(density - normal_density * series)) * step <= masses[j] + 2e-3


def test_masses_count_in_the_divergence():
    """Against the formula of the statement on a dense grid of half-lines, with a mass beyond all degrees only."""
    mass, u, gamma = 0.01, 0.4, math.exp(0.2)
    zeros, infinite = np.zeros(9), np.full(9, np.inf)
    beyond = normal.Error(zeros, zeros, zeros, zeros, infinite, np.full(9, mass))
    exact = normal.Error(zeros, zeros, zeros, zeros, zeros, infinite)
    stated = divergence(exact, u, u, 0.2, 0.0) + mass * (1.0 + gamma)
    assert stated * (1.0 - 1e-9) <= divergence(beyond, u, u, 0.2, 0.0) <= stated + 1e-6


@pytest.mark.parametrize("kind", ["normal", "skewed", "binary"])
@pytest.mark.parametrize(
    ("count", "k", "epsilon"), [(200, 100, 5.0), (400, 120, 4.0), pytest.param(600, 300, 8.0, marks=pytest.mark.long)]
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
        pytest.param(20, 1000, 500, 5.0, 1.06, marks=pytest.mark.long),
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
