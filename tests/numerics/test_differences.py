"""Limits of gains: golden values, true miss rates by enumeration, Hoeffding's closed form, edges and bad input."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from whosin.errors import InputError
from whosin.numerics import differences
from whosin.numerics.differences import first_counts, gain_lower, gain_upper, gain_upper_of_one, newcombe
from whosin.numerics.proportions import clopper_pearson_upper

SIZES = [(7, 7), (6, 13), (14, 5), (1, 4), (20, 20)]
PRIORS = [(1.0, 1.0), (0.2, 1.8), (1.8, 0.2)]


def chances(n1, n2, p1, p2):
    """Return P(x, y) as (pairs, x, y)."""
    return (
        binom.pmf(np.arange(n1 + 1), n1, p1[:, None])[:, :, None]
        * (binom.pmf(np.arange(n2 + 1), n2, p2[:, None])[:, None, :])
    )


def truths_below(limits, weights, fine):
    """Return pairs whose gain is just under a value that the limit takes, and pairs on a grid."""
    u, v = weights
    p2 = np.linspace(0.0, 1.0, fine)
    values = np.unique(np.round(limits, 12))
    if len(values) > 40:
        values = values[:: len(values) // 40 + 1]
    gains = np.repeat(values - 1e-9, fine)
    p2 = np.tile(p2, len(values))
    p1 = (gains + v * p2) / u
    inside = (p1 >= 0) & (p1 <= 1)
    grid = np.linspace(0.0, 1.0, 21)
    q1, q2 = (g.ravel() for g in np.meshgrid(grid, grid))
    return np.concatenate([p1[inside], q1]), np.concatenate([p2[inside], q2])


@pytest.mark.parametrize(
    ("counts", "limit"),
    [
        ((90, 142, 1, 143), 0.541),
        ((50, 500, 0, 500), 0.075),
        ((285, 500, 215, 500), 0.077),
        ((5700, 10_000, 5000, 10_000), 0.0561),
    ],
)
def test_golden_values(counts, limit):
    """The values of an independent implementation."""
    assert gain_lower(*counts, 0.025) == pytest.approx(limit, abs=1e-3)


@pytest.mark.parametrize("weights", PRIORS)
@pytest.mark.parametrize("sizes", SIZES)
def test_true_miss_rate(sizes, weights):
    """Over all outcomes, the limit is above the truth with chance at most α; where n is not tiny, not far below it."""
    n1, n2 = sizes
    u, v = weights
    alpha = 0.1 if max(sizes) < 20 else 0.025
    limits = np.array(
        [[gain_lower(x, n1, y, n2, alpha, weights=weights) for y in range(n2 + 1)] for x in range(n1 + 1)]
    )
    p1, p2 = truths_below(limits, weights, 101)
    worst = 0.0
    for i in range(0, len(p1), 500):
        misses = limits > (u * p1[i : i + 500] - v * p2[i : i + 500])[:, None, None] + 1e-13
        worst = max(worst, float((chances(n1, n2, p1[i : i + 500], p2[i : i + 500]) * misses).sum(axis=(1, 2)).max()))
    assert worst <= alpha
    if min(sizes) > 4 and weights == (1.0, 1.0):
        assert worst > 0.9 * alpha


@pytest.mark.parametrize("weights", PRIORS)
@pytest.mark.parametrize("sizes", [(7, 7), (5, 12), (9, 2)])
def test_upper_limit_of_a_class(sizes, weights):
    """Against all outcomes of the attack that is best in truth: missed with chance at most α, and not far below it."""
    n1, n2 = sizes
    u, v = weights
    alpha = 0.1
    sample = u * np.arange(n1 + 1)[:, None] / n1 - v * np.arange(n2 + 1) / n2
    limits = np.array([[gain_upper(w, n1, n2, alpha, weights=weights) for w in row] for row in sample])
    assert np.all(limits >= sample)
    assert np.all(limits <= u)
    p1, p2 = truths_below(limits + 2e-9, weights, 401)
    misses = limits < (u * p1 - v * p2)[:, None, None] - 1e-13
    worst = (chances(n1, n2, p1, p2) * misses).sum(axis=(1, 2)).max()
    assert 0.85 * alpha < worst <= alpha


@pytest.mark.parametrize("n", [50, 500, 10_000])
@pytest.mark.parametrize("share", [-0.2, 0.0, 0.2, 0.7, 0.9])
def test_upper_limit_has_a_closed_form_at_equal_sizes(n, share):
    """Hoeffding (1956): at a fixed mean, equal chances have the heaviest tail, so X + (n - Y) is binomial at worst."""
    exact = 2 * float(clopper_pearson_upper(round(n * (1 + share)), 2 * n, 0.025)) - 1
    limit = gain_upper(share, n, n, 0.025)
    assert exact - 1e-9 <= limit <= exact + 0.01 * (exact - share) + 1e-9


def test_region_against_enumeration():
    """The windows, and the bound on the second derivative."""
    region = differences._region(0.1, 30, 40, 1.5, (1.0, 2.0), (0.0, 1.0), 0.5, 1e-8)
    rng = np.random.default_rng(0)
    p1, p2 = rng.random((2, 20))
    needed = first_counts(0.1, 30, np.arange(41), 40, 1.5, (1.0, 2.0))
    inside = np.arange(31)[:, None] >= needed
    exact = (chances(30, 40, p1, p2) * inside).sum(axis=(1, 2))
    assert np.all(region.chances(p1, p2) >= exact)
    assert region.chances(p1, p2) == pytest.approx(exact, abs=1e-6)

    d, h = 0.1, 1e-4
    middle = np.linspace(0.02, 0.4, 30)
    at = [(chances(30, 40, region.path(d, p), p) * inside).sum(axis=(1, 2)) for p in (middle - h, middle, middle + h)]
    bend = -(at[0] - 2 * at[1] + at[2]) / h**2
    assert bend.max() > 0
    assert np.all(bend <= region.bends(at[1], d, middle, middle))


@pytest.mark.parametrize("n", [2, 7, 40])
def test_no_chance_of_one_sample_bends_more_than_the_bound(n):
    """f'' of the chance of a set of counts is n·(n - 1) times the mean of its second differences over n - 2 trials."""
    p = np.linspace(0.01, 0.99, 99)
    few, all_of_them = (binom.pmf(np.arange(m + 1), m, p[:, None]) for m in (n - 2, n))
    for inside in np.random.default_rng(n).random((50, n + 1)) < 0.5:
        inside[n // 2] = True
        bend = -n * (n - 1) * few @ np.diff(inside.astype(float), 2)
        assert np.all(bend <= differences._bend(all_of_them @ inside, p, n) * (1.0 + 1e-9))
    some = np.linspace(0.01, 1.0, 99)
    np.testing.assert_allclose(differences._bend(some, p, n), differences._bend(some, p[::-1], n))


def test_windows_hold_what_they_promise():
    n, left_out = 5000, 1e-9
    width = differences._width(n, 0.1, 0.3, left_out)
    p = np.linspace(0.1, 0.3, 50)
    starts, relative = differences._window(n, p, width)
    assert width < n / 4
    assert np.all(binom.cdf(starts - 1, n, p) <= left_out)
    assert np.all(binom.sf(starts + width - 1, n, p) <= left_out)
    shares = relative / relative.sum(axis=1, keepdims=True)
    assert shares[7] == pytest.approx(binom.pmf(starts[7] + np.arange(width), n, p[7]), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("weights", PRIORS)
@pytest.mark.parametrize("z", [0.0, 1.0, 3.0])
def test_ordering_is_monotone(weights, z):
    x, y = np.arange(13)[:, None], np.arange(10)
    order = newcombe(x, 12, y, 9, z, weights)
    assert np.all(np.diff(order, axis=0) >= -1e-15)
    assert np.all(np.diff(order, axis=1) <= 1e-15)
    for threshold in (-1.9, -0.3, 0.0, 0.4, 2.0, float(order[5, 4])):
        expected = (order < threshold - 1e-11).sum(axis=0)
        assert np.array_equal(first_counts(threshold, 12, y, 9, z, weights), expected)


def test_monotone_in_counts_and_level():
    for (x, y), alpha in itertools.product([(10, 3), (25, 0), (40, 39)], [0.2, 0.01]):
        here = gain_lower(x, 40, y, 40, alpha)
        assert here <= x / 40 - y / 40
        assert gain_lower(x - 1, 40, y, 40, alpha) <= here
        assert gain_lower(x, 40, y + 1, 40, alpha) <= here
        assert gain_lower(x, 40, y, 40, alpha / 2) <= here
    assert gain_upper(0.2, 40, 30, 0.05) <= gain_upper(0.25, 40, 30, 0.05)


def test_sides_exchanged():
    assert gain_upper_of_one(30, 40, 10, 50, 0.025, weights=(0.5, 1.5)) == -gain_lower(
        10, 50, 30, 40, 0.025, weights=(1.5, 0.5)
    )
    assert gain_lower(30, 40, 10, 50, 0.025) < 0.55 < gain_upper_of_one(30, 40, 10, 50, 0.025)


def test_scale_of_the_weights():
    assert gain_lower(30, 40, 10, 50, 0.025, weights=(3.0, 3.0)) == pytest.approx(
        3 * gain_lower(30, 40, 10, 50, 0.025), abs=1e-3
    )


@pytest.mark.parametrize("alpha", [1e-12, 0.025, 0.999])
@pytest.mark.parametrize("counts", [(0, 5, 5, 5), (0, 5, 0, 5), (5, 5, 5, 5), (5, 5, 0, 5), (1, 1, 0, 1), (0, 1, 0, 1)])
def test_edges(counts, alpha):
    lower, upper = gain_lower(*counts, alpha), gain_upper_of_one(*counts, alpha)
    seen = counts[0] / counts[1] - counts[2] / counts[3]
    assert -1.0 <= lower <= seen <= upper <= 1.0
    assert gain_upper(seen, counts[1], counts[3], alpha) >= seen


def test_tiny_levels():
    """All of n against none of n, where the chance of the one outcome is p1^n·(1 - p2)^n."""
    alpha, n = 1e-12, 60
    limit = gain_lower(n, n, 0, n, alpha)
    p2 = np.linspace(0.0, 1.0 - limit, 2001)
    highest = ((limit + p2) ** n * (1 - p2) ** n).max()
    assert 0.9 * 0.98 * alpha < highest <= alpha


def test_no_records():
    assert gain_lower(0, 0, 3, 5, 0.025, weights=(0.4, 1.6)) == -1.6
    assert gain_lower(3, 5, 0, 0, 0.025) == -1.0
    assert gain_upper(0.0, 0, 5, 0.025, weights=(0.4, 1.6)) == 0.4
    assert gain_upper(0.0, 5, 0, 0.025) == 1.0
    assert gain_upper(1.0, 5, 5, 0.025) == 1.0


def test_very_unequal_and_large_samples():
    """With one side known nearly exactly, the limit is nearly that of the other side alone."""
    alone = 1 - 0.025 ** (1 / 1000)
    assert gain_lower(500_000, 10**6, 0, 1000, 0.025) == pytest.approx(0.5 - alone, abs=3e-3)
    limit = gain_lower(510_000, 10**6, 500_000, 10**6, 0.025)
    assert limit == pytest.approx(0.01 - 1.96 * (0.5 / 10**6) ** 0.5, abs=3e-5)
    assert gain_upper(0.01, 10**5, 5 * 10**4, 0.025) == pytest.approx(0.01 + 1.96 * (3 / 4 / 10**5) ** 0.5, abs=1e-4)


def test_bad_input():
    with pytest.raises(InputError, match="found"):
        gain_lower(6, 5, 0, 5, 0.1)
    with pytest.raises(InputError, match="alpha"):
        gain_lower(5, 5, 0, 5, 0.0)
    with pytest.raises(InputError, match="largest"):
        gain_upper(1.1, 5, 5, 0.1)
    with pytest.raises(InputError, match="weights"):
        gain_upper(0.1, 5, 5, 0.1, weights=(0.0, 1.0))
    with pytest.raises(InputError, match="weights"):
        gain_upper(0.1, 5, 5, 0.1, weights=(1.0,))


def test_errors_name_the_count():
    with pytest.raises(InputError, match=r"^accused must be"):
        gain_lower(1, 10, 11, 10, 0.05)
    with pytest.raises(InputError, match=r"^found must be"):
        gain_lower(11, 10, 1, 10, 0.05)
