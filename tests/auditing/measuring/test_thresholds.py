"""Limits over all thresholds of a fixed score: exact level by listing all orders, draws by hand, ties, power, edges."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from whosin.auditing.measuring import thresholds
from whosin.auditing.measuring.thresholds import scan_lower, scan_statistic, scan_z
from whosin.errors import InputError
from whosin.numerics.differences import first_counts

WEIGHTS = [(1.0, 1.0), (0.6, 1.4), (1.4, 0.6)]


def statistics(n1, n2, z, weights):
    """Return {(ahead, behind, late): M of every order} of the least favourable law.

    ``ahead`` members stand before every non-member, ``behind`` after; ``late`` non-members stand after the other
    members; all orders of the rest are equally likely.
    """
    found = {}
    for ahead, behind, late in itertools.product(range(n1 + 1), range(n1 + 1), range(n2 + 1)):
        rest, others = n1 - ahead - behind, n2 - late
        if rest < 0:
            continue
        values = []
        for places in itertools.combinations(range(rest + others), rest):
            middle = [-float(i) for i in range(rest + others)]
            members = [1.0] * ahead + [middle[i] for i in places] + [-100.0] * behind
            non_members = [s for i, s in enumerate(middle) if i not in places] + [-50.0 - i for i in range(late)]
            values.append(scan_statistic(np.array(members), np.array(non_members), z, weights))
        found[ahead, behind, late] = np.array(values)
    return found


def chance_above(found, level, n1, n2, a, weights):
    """Return P(M >= level) if the best gain is a, under the least favourable law."""
    u, v = weights
    ahead, reached = a / u, min(1.0, (a + v) / u)
    late = max(0.0, 1.0 - (u - a) / v)
    total = 0.0
    for (i, j, k), values in found.items():
        of_members = math.comb(n1, i) * math.comb(n1 - i, j) * ahead**i * (1 - reached) ** j
        of_members *= (reached - ahead) ** (n1 - i - j)
        total += of_members * binom.pmf(k, n2, late) * np.mean(values >= level - 1e-12)
    return total


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("sizes", [(6, 6), (4, 6), (6, 4)])
def test_exact_level(sizes, weights):
    """The limit of each value of the statistic has a chance of at most α, and not far below it."""
    n1, n2 = sizes
    alpha = 0.2
    z = scan_z(alpha)
    found = statistics(n1, n2, z, weights)
    used = []
    for level in np.unique(np.concatenate(list(found.values()))):
        limit = scan_lower(level, n1, n2, alpha, z, weights)
        if limit > max(0.0, weights[0] - weights[1]):
            used.append(chance_above(found, level, n1, n2, limit, weights) / alpha)
    assert used
    assert max(used) <= 1.0
    assert min(used) > 0.8


@pytest.mark.parametrize("weights", WEIGHTS)
def test_chance_against_plain_draws(weights):
    n1, n2, alpha = 40, 60, 0.02
    z = scan_z(alpha)
    ranks = thresholds._ranks(n2)
    statistic = max(0.05, weights[0] - weights[1])
    limit = scan_lower(statistic, n1, n2, alpha, z, weights)
    needed = first_counts(statistic, n1, ranks, n2, z, weights)
    ranks, needed = ranks[needed <= n1], needed[needed <= n1]
    rng = np.random.default_rng(5)
    own, others = np.sort(rng.random((60_000, n1)), axis=1), np.sort(rng.random((60_000, n2)), axis=1)
    least = (weights[0] * own[:, needed - 1] - weights[1] * others[:, ranks]).min(axis=1)
    share = np.mean(least < limit)
    assert 0.7 * alpha < share < alpha


def test_order_statistics_given_one_of_them():
    """Given one, the others are those of the numbers below and above it."""
    rng = np.random.default_rng(1)
    orders = thresholds._orders(rng, np.array([2, 5, 5, 9]), 10)
    assert orders.mean(axis=0) == pytest.approx(np.array([2, 5, 5, 9]) / 11, abs=0.01)
    rows = np.arange(len(orders))
    given = thresholds._given(orders, rows, np.full(len(orders), 1), np.full(len(orders), 0.8))
    assert given[:, 1] == pytest.approx(0.8)
    assert given[:, 2] == pytest.approx(0.8)
    assert given[:, 0].mean() == pytest.approx(0.8 * 2 / 5, abs=0.01)
    assert given[:, 3].mean() == pytest.approx(0.8 + 0.2 * 4 / 6, abs=0.01)
    assert given[:, 3].var() == pytest.approx(0.04 * 4 * 2 / (36 * 7), rel=0.1)


def test_ties_count_against_the_attack():
    rng = np.random.default_rng(2)
    members, non_members = rng.integers(2, 8, 40).astype(float), rng.integers(0, 6, 50).astype(float)
    tied = scan_statistic(members, non_members, 2.0)
    assert tied == scan_statistic(members, non_members + 0.5, 2.0)
    assert tied < scan_statistic(members + 0.5, non_members, 2.0)


def test_only_the_order_counts():
    rng = np.random.default_rng(3)
    members, non_members = rng.normal(size=30) + 1, rng.normal(size=70)
    assert scan_statistic(members, non_members, 2.0) == scan_statistic(np.exp(members), np.exp(non_members), 2.0)
    assert scan_statistic(members, non_members, 2.0) == scan_statistic(members[::-1], non_members[::-1], 2.0)


def test_a_function_of_the_data():
    thresholds._limit.cache_clear()
    first = scan_lower(0.2, 100, 100, 0.001, scan_z(0.001))
    thresholds._limit.cache_clear()
    assert scan_lower(0.2, 100, 100, 0.001, scan_z(0.001)) == first
    assert scan_lower(0.2 + 1e-7, 100, 100, 0.001, scan_z(0.001)) == first


def test_small_clean_groups_and_weak_shifts_are_found():
    """One record in ten stands out, n = 285; a shift with an advantage of 0.6 has a limit near it."""
    alpha = 0.0125 / 2
    z = scan_z(alpha)
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(20):
        members = rng.normal(size=285) + 6 * (rng.random(285) < 0.1)
        found += scan_lower(scan_statistic(members, rng.normal(size=285), z), 285, 285, alpha, z) > 0
    assert found >= 19
    members = rng.normal(size=285) + 2 * norm.ppf(0.8)
    assert 0.4 < scan_lower(scan_statistic(members, rng.normal(size=285), z), 285, 285, alpha, z) < 0.6


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (1, 500), (500, 1), (2000, 30), (30, 2000), (10**6, 10**6)])
def test_any_sizes(n1, n2):
    z = scan_z(0.001)
    best = scan_statistic(np.ones(n1), np.zeros(n2), z)
    assert -1.0 <= scan_lower(best, n1, n2, 0.001, z) < 1.0
    assert scan_lower(scan_statistic(np.zeros(n1), np.ones(n2), z), n1, n2, 0.001, z) == -1.0


def test_all_members_in_front():
    """Every member ahead of every non-member: P(u·U_(n) - v·V_(1) < a) at most α for the last member alone."""
    z = scan_z(0.025)
    limit = scan_lower(scan_statistic(np.ones(50), np.zeros(50), z), 50, 50, 0.025, z)
    assert 0.8 < limit < 0.025 ** (1 / 50)


def test_edges():
    assert scan_lower(0.1, 0, 5, 0.1, 2.0) == -1.0
    assert scan_lower(0.1, 5, 0, 0.1, 2.0, (0.5, 1.5)) == -1.5
    assert scan_z(0.9) == scan_z(0.5) < scan_z(0.01)
    with pytest.raises(InputError, match="statistic"):
        scan_lower(0.99, 5, 5, 0.1, 2.0)
