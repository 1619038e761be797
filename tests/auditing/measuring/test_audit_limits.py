"""Do the limits hold? Seeded simulations on known laws, judged by a binomial test. The large sweep is in tests/long."""

import math
from dataclasses import replace

import numpy as np
import pytest
from null_audits import judge_alarms
from scipy.stats import binomtest, norm

import whosin as wi
from whosin.auditing import audit
from whosin.numerics.differences import gain_upper

RUNS = 24


def gaussian(shift):
    """Members N(shift, 1), non-members N(0, 1): the laws of GaussianDP(shift)."""
    curve = wi.GaussianDP(shift)
    return (
        lambda rng, n, m: (rng.normal(shift, 1, n), rng.normal(0, 1, m)),
        2 * norm.cdf(shift / 2) - 1,
        lambda prior: 2 * curve.accuracy(prior) - 1,
    )


def table(r, q):
    r, q = np.array(r), np.array(q)
    return (
        lambda rng, n, m: (rng.choice(len(r), n, p=r), rng.choice(len(q), m, p=q)),
        0.5 * np.abs(r - q).sum(),
        lambda prior: np.abs(prior * r - (1 - prior) * q).sum(),
    )


LAWS = {
    "shift": gaussian(0.6),
    "table": table([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]),
    "same table": table([0.25] * 4, [0.25] * 4),
}


def judge(misses, runs, level):
    assert binomtest(misses, runs, level, alternative="greater").pvalue > 1e-4, f"{misses} misses in {runs}"


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "m"), [(200, 200), (60, 900)])
def test_both_advantages_are_covered(law, n, m):
    """At a prior of 0.5 they are one and the same."""
    draw, truth, at_prior = LAWS[law]
    rng, prior = np.random.default_rng(7), 0.1
    misses = 0
    for run in range(RUNS):
        a = audit(*draw(rng, n, m), prior=prior, rng=run, confidence_level=0.8)
        wrong = not a.advantage.lower - 1e-12 <= truth <= a.advantage.upper + 1e-12
        misses += wrong
        p = a.advantage_at_prior
        assert abs(2 * prior - 1) <= p.lower + 1e-12
        assert p.lower <= p.estimate <= p.upper <= 1.0
        misses += not p.lower - 1e-12 <= at_prior(prior) <= p.upper + 1e-12
    judge(misses, 2 * RUNS, 0.2)
    assert replace(a, prior=0.5).advantage_at_prior == a.advantage
    assert at_prior(0.5) == pytest.approx(truth, abs=1e-9)


def test_lower_limit_is_not_idle():
    """The limits are close enough to miss now and then at a level of 20 %: a sign that they are not far too wide."""
    rng = np.random.default_rng(3)
    draw, truth, _ = LAWS["table"]
    lower = [audit(*draw(rng, 600, 600), rng=run, confidence_level=0.2).advantage.lower for run in range(RUNS)]
    assert np.mean(np.array(lower) > truth) > 0.02


def test_false_alarms_on_symbols():
    """Thirty symbols of one law; numbers are in test_decisions."""
    rng = np.random.default_rng(11)
    judge_alarms(audit(rng.integers(0, 30, 300), rng.integers(0, 30, 200), rng=run) for run in range(16))


def test_power():
    """An advantage of 0.1 is found in at least four of five audits of 2,500 and 2,500 records."""
    shift = 2 * norm.ppf(0.55)
    rng = np.random.default_rng(2)
    found = sum(
        audit(rng.normal(shift, 1, 2500), rng.normal(0, 1, 2500), rng=run).advantage.lower > 0 for run in range(30)
    )
    assert found >= 24


def test_two_sided_leak_is_found():
    """Members near the middle: the cells tell them apart, where a threshold in either direction is weaker."""
    rng = np.random.default_rng(0)
    a = audit(rng.normal(0, 0.5, 3000), rng.normal(0, 1, 3000), rng=0)
    truth = 0.3226  # TV of N(0, 0.5) and N(0, 1): crossing at √(2·ln 2·0.25/0.75)
    cross = math.sqrt(2 * math.log(2) * 0.25 / 0.75)
    assert 2 * (norm.cdf(2 * cross) - norm.cdf(cross)) == pytest.approx(truth, abs=1e-3)
    assert 0.25 < a.advantage.lower <= truth <= a.advantage.upper < 0.4
    assert "cells" in str(a.attack.candidate)


@pytest.mark.parametrize("sign", [1, -1])
def test_direction_does_not_matter(sign):
    rng = np.random.default_rng(4)
    x, y = sign * rng.normal(1, 1, 1000), sign * rng.normal(0, 1, 1000)
    a = audit(x, y, rng=0)
    assert a.advantage.lower <= 2 * norm.cdf(0.5) - 1 <= a.advantage.upper
    assert a.advantage.lower > 0.25


def test_several_queries_together():
    """Two queries of which only the difference leaks: each alone shows nothing, both together nearly everything."""
    rng = np.random.default_rng(5)
    common = rng.normal(0, 3, (2, 1500, 1))
    x = common[0] + rng.normal(0, 0.3, (1500, 2)) + np.array([0.4, -0.4])
    y = common[1] + rng.normal(0, 0.3, (1500, 2))
    a = audit(x, y, names=("loss", "reference"), rng=0)
    truth = 2 * norm.cdf(0.8 / (2 * math.sqrt(2) * 0.3)) - 1
    assert 0.45 < a.advantage.lower <= truth <= a.advantage.upper
    assert set(a.queries) == {"loss", "reference", "all queries together"}
    assert a.queries["loss"].lower < 0.1
    assert a.queries["all queries together"].lower > 0.4
    assert a.queries["all queries together"].lower == a.advantage.lower, "one headline"
    assert all(found.lower <= a.advantage.lower for found in a.queries.values())
    assert "all queries together" in a.method


def test_plug_in_is_biased_up_and_cross_fit_down():
    """Fifty equal symbols: W_N has mean about √(2k/(πN)) = .178 at N = 1000 though nothing leaks."""
    rng = np.random.default_rng(6)
    points = [audit(rng.integers(0, 50, 500), rng.integers(0, 50, 500), rng=run).point_estimates for run in range(24)]
    assert np.mean([p["plug_in"] for p in points]) == pytest.approx(math.sqrt(2 * 50 / (math.pi * 1000)), abs=0.02)
    assert abs(np.mean([p["cross_fit"] for p in points])) < 0.02


def test_upper_limit_formula():
    """One exact limit at the largest value in the sample, W; McDiarmid's is W + √(2·ln(2/δ)·(p²/N₁ + (1-p)²/N₂))."""
    x, y, p = [0] * 30 + [1] * 70, [0] * 600 + [1] * 300, 0.3
    a = audit(x, y, prior=p, rng=0)
    w = abs(p * 0.3 - 0.7 * 2 / 3) + abs(p * 0.7 - 0.7 / 3)
    radius = math.sqrt(2 * math.log(2 / 0.05) * (p**2 / 100 + 0.7**2 / 900))
    constant, weights = 1 - 2 * p, (2 * p, 2 * (1 - p))
    exact = constant + gain_upper(w - constant, 100, 900, 0.025, weights=weights)
    assert a.advantage_at_prior.upper == pytest.approx(exact, rel=1e-9)
    assert w < exact < w + radius
    half = 0.5 * (abs(0.3 - 2 / 3) + abs(0.7 - 1 / 3))
    assert a.point_estimates["plug_in"] == pytest.approx(half)
    wide = half + math.sqrt(math.log(40) / 2 * (1 / 100 + 1 / 900))
    assert a.advantage.upper == pytest.approx(gain_upper(half, 100, 900, 0.025), rel=1e-9)
    assert half < a.advantage.upper < wide


def test_members_that_are_all_there_are():
    """A fixed training set of repeated rows: its reported rows have a known TPR, and only outsiders are drawn.

    The limits treat members as draws, which they are not; that may widen the limits, never break them.
    """
    rng = np.random.default_rng(12)
    members = np.repeat(rng.normal(0.7, 1, 12), 10)
    misses = 0
    for run in range(RUNS):
        a = audit(members, rng.normal(0, 1, 90), rng=run, confidence_level=0.8)
        held = members[~a._evidence.fit_members]
        grid = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
        truth = a.attack.accuses(held).mean() - a.attack.accuses(grid).mean()
        misses += a.advantage.lower > max(0.0, truth) + 1e-4 or a.advantage.upper < truth - 1e-4
    judge(misses, RUNS, 0.2)
