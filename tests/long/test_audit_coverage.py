"""The large sweep over known laws, priors and sizes, every limit judged by a binomial test."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

import whosin as wi
from whosin.auditing import audit

pytestmark = pytest.mark.long

RUNS = 400
LEVEL = 0.9


def gaussian(shift):
    curve = wi.GaussianDP(shift) if shift else None
    return (
        lambda rng, n, m: (rng.normal(shift, 1, n), rng.normal(0, 1, m)),
        2 * norm.cdf(shift / 2) - 1,
        lambda p: 2 * curve.accuracy(p) - 1 if curve else abs(2 * p - 1),
    )


def table(r, q):
    r, q = np.asarray(r), np.asarray(q)
    return (
        lambda rng, n, m: (rng.choice(len(r), n, p=r), rng.choice(len(q), m, p=q)),
        0.5 * np.abs(r - q).sum(),
        lambda p: np.abs(p * r - (1 - p) * q).sum(),
    )


TILT = np.where(np.arange(60) % 2, 1.2, 0.8) / 60
LAWS = {
    "equal gaussians": gaussian(0.0),
    "advantage 0.1": gaussian(2 * norm.ppf(0.55)),
    "shift 1": gaussian(1.0),
    "shift 3": gaussian(3.0),
    "equal table of 4": table([0.25] * 4, [0.25] * 4),
    "tilted table of 4": table([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]),
    "equal table of 60": table([1 / 60] * 60, [1 / 60] * 60),
    "tilted table of 60": table([1 / 60] * 60, TILT / TILT.sum()),
    "rare symbol": table([0.02, 0.98], [0.001, 0.999]),
}


@pytest.mark.parametrize(
    ("law", "prior", "sizes"),
    list(itertools.product(LAWS, [0.5, 0.1, 0.9], [(30, 30), (500, 500), (60, 2000), (2000, 60)])),
)
def test_limits_hold(law, prior, sizes, seed, judge):
    """Each side misses with probability at most half of δ, for both advantages."""
    draw, truth, at_prior = LAWS[law]
    rng = np.random.default_rng([17, seed])
    misses = np.zeros(4, dtype=int)
    for run in range(RUNS):
        a = audit(*draw(rng, *sizes), prior=prior, rng=run, confidence_level=LEVEL)
        for i, (found, value) in enumerate(((a.advantage, truth), (a.advantage_at_prior, at_prior(prior)))):
            misses[2 * i] += found.lower > value + 1e-12
            misses[2 * i + 1] += found.upper < value - 1e-12
    for count in misses:
        judge(count, RUNS, (1 - LEVEL) / 2)


@pytest.mark.parametrize("kind", ["independent", "correlated"])
def test_several_queries_do_not_cry_wolf(kind, seed, judge):
    rng = np.random.default_rng([19, seed])
    alarms = 0
    for run in range(100):
        x, y = rng.normal(size=(2, 200, 3))
        if kind == "correlated":
            x[:, 1:] += 5 * x[:, :1]
            y[:, 1:] += 5 * y[:, :1]
        a = audit(x, y, rng=run)
        alarms += a.advantage.lower > 0 or any(e.lower > 0 for e in a.queries.values())
    judge(alarms, 100, 0.05)


def test_power(seed):
    shift = 2 * norm.ppf(0.55)
    rng = np.random.default_rng([23, seed])
    found = sum(
        audit(rng.normal(shift, 1, 2500), rng.normal(0, 1, 2500), rng=run).advantage.lower > 0 for run in range(500)
    )
    assert found >= 0.8 * 500


@pytest.mark.parametrize("queries", [1, 7])
def test_null_audits_do_not_cry_wolf(queries, seed, judge):
    """Scan and vote together, learned score included, at half of δ for the lower side."""
    rng = np.random.default_rng([29, seed])
    alarms = sum(
        audit(rng.normal(size=(150, queries)), rng.normal(size=(150, queries))).advantage.lower > 0 for _ in range(300)
    )
    judge(alarms, 300, 0.025)


def test_people_do_not_cry_wolf(seed, judge):
    """100 people a side with ten near-equal rows each, counted once each."""
    rng = np.random.default_rng([31, seed])
    whose = np.repeat(np.arange(100), 10), np.repeat(np.arange(100, 200), 10)
    alarms = 0
    for _ in range(300):
        rows = rng.normal(size=(2, 100, 1)) + 0.3 * rng.normal(size=(2, 100, 10))
        alarms += audit(rows[0].ravel(), rows[1].ravel(), person=whose).advantage.lower > 0
    judge(alarms, 300, 0.025)


@pytest.mark.parametrize(("case", "share"), [("spike", 0.1), ("shift", 0.2), ("scale", 1.6)])
def test_what_is_found_is_true(case, share, seed, judge):
    """Lower limits above 0 stay below the truth, where something leaks."""
    rng, misses = np.random.default_rng([37, seed]), 0
    shift = 2 * norm.ppf(0.5 + share / 2) if case == "shift" else 0.0
    cut = np.sqrt(2 * np.log(1.6) / (1 - 1.6**-2))
    truth = {"spike": 0.1, "shift": 0.2, "scale": 2 * (norm.sf(cut / 1.6) - norm.sf(cut))}[case]
    for _ in range(200):
        x, y = rng.normal(size=(2, 285))
        x = x * share if case == "scale" else x + shift
        if case == "spike":
            x[rng.random(285) < share] += 8.0
        misses += audit(x, y).advantage.lower > truth
    judge(misses, 200, 0.025)
