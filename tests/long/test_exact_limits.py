"""Limits of gains and of all thresholds, at the laws where they are tightest."""

import numpy as np
import pytest

from whosin.auditing.measuring.thresholds import scan_lower, scan_statistic, scan_z
from whosin.numerics.differences import gain_lower, gain_upper

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("members", "non_members", "weights", "gain"),
    [
        (100, 100, (1.0, 1.0), 0.0),
        (100, 100, (1.0, 1.0), 0.1),
        (285, 285, (1.0, 1.0), 0.4),
        (500, 150, (1.0, 1.0), 0.1),
        (150, 500, (1.0, 1.0), 0.1),
        (120, 80, (0.4, 1.6), 0.1),
        (120, 80, (1.6, 0.4), 1.3),
    ],
)
def test_all_thresholds_at_the_least_favourable_law(members, non_members, weights, gain, seed, judge):
    """A spike ahead of all non-members, the rest as far ahead as the gain allows; high statistics alone can miss."""
    rng = np.random.default_rng([41, seed])
    u, v = weights
    alpha, runs, found = 0.05, 4000, []
    z = scan_z(alpha)
    for _ in range(runs):
        rates = np.maximum(0.0, (u * rng.random(members) - gain) / v)
        found.append(scan_statistic(-rates, -rng.random(non_members), z, weights))
    highest = sorted(found, reverse=True)[: int(2 * alpha * runs)]
    limits = [scan_lower(statistic, members, non_members, alpha, z, weights) for statistic in highest]
    assert limits[-1] <= gain
    judge(sum(limit > gain for limit in limits), runs, alpha)


@pytest.mark.parametrize(
    ("members", "non_members", "weights"), [(60, 60, (1.0, 1.0)), (400, 90, (1.0, 1.0)), (90, 400, (0.2, 1.8))]
)
@pytest.mark.parametrize("non_member_rate", [0.0, 0.03, 0.4])
def test_one_attack_and_its_class(members, non_members, weights, non_member_rate, seed, judge):
    """Lower limits of one attack, and upper limits of a class of that attack alone."""
    rng = np.random.default_rng([43, seed])
    u, v = weights
    alpha, runs = 0.05, 4000
    p1, p2 = min(1.0, non_member_rate + 0.1), non_member_rate
    truth = u * p1 - v * p2
    above = below = 0
    for x, y in zip(rng.binomial(members, p1, runs), rng.binomial(non_members, p2, runs), strict=True):
        above += gain_lower(int(x), members, int(y), non_members, alpha, weights=weights) > truth
        seen = u * x / members - v * y / non_members
        below += gain_upper(float(seen), members, non_members, alpha, weights=weights) < truth
    judge(above, runs, alpha)
    judge(below, runs, alpha)
