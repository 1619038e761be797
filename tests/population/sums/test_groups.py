"""The sampled bound over groups of data sets: the draws, the statistics, and how often it misses the truth."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from whosin.errors import InputError
from whosin.numerics.gaussian_noise import noise_for
from whosin.population.sums import groups
from whosin.population.sums.groups import group_epsilons
from whosin.population.sums.pairwise import pairwise_divergences, pairwise_epsilons
from whosin.population.sums.spectral import SubsetSumLaws

POOL = np.random.default_rng(20).standard_normal(12)


def plan(pool, k, noise="gaussian", size=8, draws=500):
    pool = np.asarray(pool, dtype=float)
    return groups._Plan(pool.reshape(len(pool), -1), k, size, draws, noise)


def all_ratios(the_plan, record, seed=0):
    batches = groups._Batches(the_plan, np.array([record]))
    return groups._ratios(batches, np.random.default_rng(seed), None, None, None)[0]


def means(the_plan, record, epsilon):
    """Mean of the samples at ε in both directions, and its standard error."""
    ratios = all_ratios(the_plan, record)
    samples = np.maximum(1.0 - math.exp(epsilon) * ratios, 0.0)
    return samples.mean(axis=1), samples.std(axis=1) / math.sqrt(the_plan.draws)


# --- the draws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 3), (6, 3), (7, 1), (7, 6), (7, 2), (2, 1)])
def test_pairs_are_uniform(n, k):
    """Powers of two as contributions show who is in: (D, D') is uniform over the adjacent pairs, for every record."""
    pool = 2.0 ** np.arange(n)
    batch = groups._draw(plan(pool, k, size=4), 6000, np.random.default_rng(0))
    for record in (0, n - 1):
        inside = groups._membership(plan(pool, k, size=4), batch, record)
        with_it = np.where(inside, batch.sums[..., 0], batch.less[..., 0] + pool[record])
        without = np.where(inside, batch.more[..., 0] - pool[record], batch.sums[..., 0])
        for subset in range(4):  # subsets of one group depend on each other, so each is judged alone
            seen = Counter(zip(with_it[:, subset].astype(int), without[:, subset].astype(int), strict=True))
            expected = set()
            for members in itertools.combinations(range(n), k):
                if record in members:
                    total = sum(1 << i for i in members)
                    swaps = [i for i in range(n) if i not in members]
                    expected |= {(total, total - (1 << record) + (1 << i)) for i in swaps}
            assert set(seen) == expected
            if len(expected) > 1:
                assert chisquare([seen[pair] for pair in expected]).pvalue > 1e-6


def test_bundles_of_a_large_pool():
    """More rows than bundles: sums are those of k distinct records."""
    pool = np.random.default_rng(21).integers(0, 2**20, 700) * 2.0
    pool[0] += 1.0  # an odd sum tells that record 0 is in
    for k in (350, 100, 650):
        the_plan = plan(pool, k, size=3)
        batch = groups._draw(the_plan, 400, np.random.default_rng(0))
        np.testing.assert_array_equal(batch.sums[..., 0] % 2 == 1, groups._membership(the_plan, batch, 0))
        assert batch.sums.mean() == pytest.approx(k * pool.mean(), rel=0.02)
        spread = math.sqrt(k * (1 - k / 700) * pool.var() * 700 / 699)
        assert batch.sums[:, 0].std() == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_one_pair_is_the_pairwise_bound(noise):
    the_plan = plan(POOL, 4, noise, size=1, draws=40_000)
    for epsilon in (0.0, 0.5):
        found, error = means(the_plan, 3, epsilon)
        np.testing.assert_array_less(
            np.abs(found - pairwise_divergences(POOL, 1.0, epsilon, noise=noise)[3]), 5 * error
        )


def test_groups_fall_to_the_truth():
    lower, upper = SubsetSumLaws(POOL, 4, 1.0, records=[3]).divergence(3, 0.2)
    found = {size: means(plan(POOL, 4, size=size, draws=8000), 3, 0.2) for size in (1, 8, 64)}
    assert found[1][0][0] > found[8][0][0] > found[64][0][0]
    assert found[64][0][0] + 5 * found[64][1][0] >= lower
    assert found[64][0][0] == pytest.approx(upper, abs=0.02)


def test_a_line_in_the_plane():
    """Isotropic noise sees only the distances: a pool on a line gives the one-dimensional divergence."""
    line = np.outer(POOL, [0.6, 0.8])
    found, error = means(plan(line, 6, size=64, draws=8000), 0, 0.1)
    flat, _ = means(plan(POOL, 6, size=64, draws=8000), 0, 0.1)
    np.testing.assert_array_less(np.abs(found - flat), 8 * error)


def test_noise_of_exponential_norm():
    """Radius Gamma(d), direction uniform."""
    shocks = groups._shocks(plan(np.zeros((4, 3)), 2, "laplace"), 40_000, np.random.default_rng(0))
    radius = np.linalg.norm(shocks, axis=1)
    assert radius.mean() == pytest.approx(3.0, rel=0.02)
    assert radius.var() == pytest.approx(3.0, rel=0.05)
    np.testing.assert_allclose((shocks / radius[:, None]).mean(axis=0), 0.0, atol=0.02)


def test_moments():
    ratios = np.random.default_rng(22).lognormal(0.0, 2.0, 500)
    grid = np.array([0.0, 0.3, 2.0, 9.0, 400.0])
    mean, variance = groups._moments(ratios, grid)
    for i, epsilon in enumerate(grid[:-1]):
        samples = np.maximum(1.0 - math.exp(epsilon) * ratios, 0.0)
        assert mean[i] == pytest.approx(samples.mean(), abs=1e-12)
        assert variance[i] == pytest.approx(samples.var(ddof=1), abs=1e-9)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_misses_are_rare():
    """All records of a small pool, both directions: the runs that miss any truth, judged by a binomial test at 1e-6.
    With 64 pairs out of 5 data sets a group is nearly the truth, so the statistics are on trial: the estimates, which
    have no room for chance, are found out by the same judge.
    """
    f, scale, delta, runs = np.array([0.0, 0.0, 1.0, 3.0, 3.5]), 1.2, 0.25, 60
    truth = SubsetSumLaws(f, 1, scale).epsilon(delta)[:, 0]
    assert np.all(truth > 0.4)
    found = [group_epsilons(f, 1, scale, delta, draws=400, rng=seed) for seed in range(runs)]
    for column, honest in ((0, True), (1, False)):
        misses = sum(bool(np.any(limits[column] < truth)) for limits in found)
        assert (binomtest(misses, runs, 0.05, alternative="greater").pvalue > 1e-6) == honest
    assert np.mean([limits[0] for limits in found]) < pairwise_epsilons(f, scale, delta).mean()


def test_between_truth_and_pairs():
    """n = 100 normal records, ε(X) = 5: .643 exact, 2.848 by pairs; the groups come most of the way."""
    x = np.random.default_rng(5).standard_normal(200) / 100
    record, scale = int(x.argmax()), (x.max() - x.min()) * noise_for(5.0, 0.01, 1.0)
    upper, estimate = group_epsilons(x, 100, scale, 0.01, records=[record], rng=0, draws=10_000)
    assert 0.643 < estimate[0] < upper[0] < 1.3
    laplace = group_epsilons(x, 100, scale, 0.01, records=[record], rng=0, draws=10_000, noise="laplace")[0]
    truth = SubsetSumLaws(x, 100, scale, "laplace", records=[record]).epsilon(0.01)[0, 1]
    assert truth < laplace[0] < pairwise_epsilons(x, scale, 0.01, noise="laplace", records=[record])[0]


def test_never_above_the_pairwise_bound():
    f = np.random.default_rng(23).standard_normal((30, 2))
    for delta in (1e-6, 0.05):
        upper, estimate = group_epsilons(f, 10, 1.0, delta, draws=50, rng=0)
        bound = pairwise_epsilons(f, 1.0, delta)
        assert np.all(upper <= bound)
        assert np.all(estimate <= upper)
    assert np.all(group_epsilons(f, 10, 1.0, 1e-6, draws=50, rng=0)[0] == pairwise_epsilons(f, 1.0, 1e-6))


def test_limits_stop_at_the_first_failure():
    """Going down from the top, which needs no proof."""
    grid = np.arange(6.0)
    assert groups._last_below(grid, np.array([9.0, 0.0, 9.0, 0.0, 0.0, 9.0]), 1.0) == 3.0
    assert groups._last_below(grid, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.0]), 1.0) == 0.0
    assert groups._last_below(grid, np.full(6, 9.0), 1.0) == 5.0


def test_seeds_and_choice_of_records():
    f = np.random.default_rng(24).standard_normal((20, 2))
    one, two = (group_epsilons(f, 8, 1.0, 0.1, draws=300, rng=3) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.any(one[0] != group_epsilons(f, 8, 1.0, 0.1, draws=300, rng=4)[0])
    some = group_epsilons(f, 8, 1.0, 0.1, draws=300, rng=3, records=[5, 2])
    np.testing.assert_array_equal(some[1], one[1][[5, 2]])  # the same draws
    assert np.all(some[0] <= one[0][[5, 2]])  # fewer statements to be right about


def test_batches_fill_all_draws(monkeypatch):
    seen = []
    monkeypatch.setattr(groups, "_BATCH", 10_000)
    group_epsilons(POOL, 6, 0.5, 0.1, draws=100, groups=4, rng=0, progress=seen.append)
    assert len(seen) > 2
    assert seen[-1] == 1.0
    assert np.all(np.isfinite(all_ratios(plan(POOL, 6, draws=101), 0)))


def test_rounding_of_far_sums_is_allowed_for():
    """Sums near 1e14 scales are known to a hundredth of a scale: nothing below the pairwise bound is claimed then."""
    f = np.array([0.0, 1.0, 2.0, 1e14])
    upper, _ = group_epsilons(f, 2, 1.0, 0.3, draws=4000, rng=0)
    np.testing.assert_array_equal(upper, pairwise_epsilons(f, 1.0, 0.3))


# --- ends and bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_ends(noise):
    upper, estimate = group_epsilons(np.full((5, 2), 0.1), 2, 1.0, 0.01, noise=noise, rng=0)
    np.testing.assert_array_equal(upper, np.zeros(5))
    np.testing.assert_array_equal(estimate, np.zeros(5))
    np.testing.assert_array_equal(group_epsilons(POOL, 3, 1.0, 1.0, noise=noise, rng=0)[0], np.zeros(12))
    bound = pairwise_epsilons(POOL, 1.0, 0.0, noise=noise)
    np.testing.assert_array_equal(group_epsilons(POOL, 3, 1.0, 0.0, noise=noise, rng=0, draws=20)[0], bound)


def test_huge_distances():
    upper, _ = group_epsilons([0.0, 1e8, 3e8], 1, 1.0, 0.01, draws=50, rng=0)
    np.testing.assert_array_equal(upper, pairwise_epsilons([0.0, 1e8, 3e8], 1.0, 0.01))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"f": [1.0]}, "f must have at least two"),
        ({"f": [1.0, math.nan, 2.0]}, "f must hold finite"),
        ({"f": [1.0, 0.0, 1e300], "scale": 1e-100}, "1e150"),
        ({"k": 0}, "k must be"),
        ({"k": 3}, "k must be"),
        ({"scale": 0.0}, "scale"),
        ({"delta": -0.1}, "delta"),
        ({"groups": 0}, "groups"),
        ({"draws": 1}, "draws"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"records": [3]}, "records"),
        ({"noise": "uniform"}, "noise"),
    ],
)
def test_bad_input(change, name):
    with pytest.raises(InputError, match=name):
        group_epsilons(**({"f": [0.0, 1.0, 2.0], "k": 1, "scale": 1.0, "delta": 0.1} | change))
