"""Certificates of ``wi.protect``: real releases against the strongest attacker, and how often a sampled one is false.

Pools are small, so that all draws can be listed. The attacker knows the pool and the law of the noise, and guesses by
the exact likelihoods of a release given that the target was drawn, and given that it was not.
"""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, norm

import whosin as wi
from whosin.mechanisms import SeededSource
from whosin.protection import release

pytestmark = pytest.mark.long

RELEASES = 3_000
TIGHT_RELEASES = 10_000

LONE = np.append(np.zeros(7), 1.0)
"""One record differs: the bound of the certificate is attained, and every bit of missing noise shows."""
LONE_OF_NINE = np.append(np.zeros(8), 1.0)
SPREAD = np.random.default_rng(5).standard_normal((10, 2)) * [1.0, 10.0]
FLAT = np.append(np.random.default_rng(6).standard_normal(7), 6.0)

ATTACKED = {
    "mean, tight": ("mean", LONE, {"eta": 0.25}),
    "a third drawn, tight": ("mean", LONE_OF_NINE, {"eta": 0.15, "train_fraction": 1 / 3}),
    "mean of normals": ("mean", FLAT, {"eta": 0.2}),
    "two columns": ("mean", SPREAD, {"eta": 0.2}),
    "median by spread": (
        "median",
        FLAT,
        {"eta": 0.25, "sensitivity": "moment", "subsets": 400, "confidence_level": 0.999, "rng": 1},
    ),
    "median by replacements": (
        "median",
        FLAT,
        {"eta": 0.25, "sensitivity": "average", "subsets": 150, "confidence_level": 0.999, "rng": 1},
    ),
}
STATISTICS = {"mean": np.mean, "median": np.median}


def draws_of(records, size):
    """Every draw, and for each whether each record is in it."""
    sets = np.array(list(combinations(range(records), size)))
    inside = np.zeros((len(sets), records), dtype=bool)
    np.put_along_axis(inside, sets, True, axis=1)
    return sets, inside


def log_density(gaps, noise, scale):
    """Log density of the noise up to a constant, at each row of gaps."""
    if noise == "gaussian":
        return -0.5 * np.sum((gaps / scale) ** 2, axis=-1)
    return -np.sqrt(np.sum(gaps**2, axis=-1)) / scale


def guesses(values, means, inside, target, noise, scale, share):
    """Whether the target was drawn, by the likelihoods of each value and the prior share."""
    likely = np.exp(log_density(values[:, None, :] - means[None, :, :], noise, scale))
    return share * likely[:, inside[:, target]].mean(axis=1) > (1 - share) * likely[:, ~inside[:, target]].mean(axis=1)


@pytest.mark.parametrize("noise", ["gaussian", "norm_exponential"])
@pytest.mark.parametrize("case", ATTACKED)
def test_the_strongest_attacker_stays_within_the_promise(case, noise, seed, judge, monkeypatch):
    """The plan is made once, for it is a function of the pool; every draw and all noise are drawn anew."""
    statistic, pool, options = ATTACKED[case]
    options = {**options, "noise": noise, "keep_training": True}
    first = wi.protect(statistic, pool, **options, testing_source=SeededSource(0)).certificate
    for name in ("_plan_for_sum", "_plan_for_black_box"):
        monkeypatch.setattr(release, name, _once(getattr(release, name)))
    target, releases = len(pool) - 1, TIGHT_RELEASES if "tight" in case else RELEASES
    values, drawn = np.zeros((releases, 1 if pool.ndim == 1 else pool.shape[1])), np.zeros(releases, dtype=bool)
    for run in range(releases):
        out = wi.protect(statistic, pool, **options, testing_source=SeededSource([41, seed, run]))
        values[run], drawn[run] = out.value, target in out.training
        assert np.array_equal(out.certificate.noise_scale, first.noise_scale)
    sets, inside = draws_of(len(pool), first.train_size)
    means = np.array([STATISTICS[statistic](pool[rows], axis=0) for rows in sets]).reshape(len(sets), -1)
    share = first.train_size / len(pool)
    guessed = guesses(values, means, inside, target, noise, first.noise_scale, share)
    right = int(np.sum(guessed == drawn))
    judge(right, releases, max(share, 1 - share) + first.eta)
    judge(int(drawn.sum()), releases, share)
    if pool.ndim == 1:
        exact = _accuracy(means[:, 0], inside[:, target], noise, first.noise_scale, share)
        assert exact <= max(share, 1 - share) + first.eta + 1e-9
        assert binomtest(right, releases, exact).pvalue > 1e-6
        assert "tight" not in case or exact > max(share, 1 - share) + first.eta - 1e-4


def _once(function):
    """The function, called once; later calls give the first answer."""
    kept = []

    def call(*args):
        if not kept:
            kept.append(function(*args))
        return kept[0]

    return call


def _accuracy(means, inside, noise, scale, share):
    """Accuracy of the best guess from one noisy number, by integration on a fine grid."""
    reach = 12 if noise == "gaussian" else 40
    x = np.linspace(means.min() - reach * scale, means.max() + reach * scale, 400_001)
    step = x[1] - x[0]
    sides = []
    for rows in (inside, ~inside):
        centres, counts = np.unique(np.round(means[rows], 12), return_counts=True)
        weight = counts / counts.sum()
        if noise == "gaussian":
            law = norm.pdf(x[:, None], centres, scale)
        else:
            law = np.exp(-np.abs(x[:, None] - centres) / scale) / (2 * scale)
        sides.append(law @ weight)
    return float(np.sum(np.maximum(share * sides[0], (1 - share) * sides[1])) * step)


def divergence(noise, u, gamma):
    """E_γ between the noise and the noise moved by u scales, for one number or Gaussian noise."""
    u = np.maximum(u, 1e-300)
    if noise == "gaussian":
        found = norm.cdf(u / 2 - math.log(gamma) / u) - gamma * norm.cdf(-u / 2 - math.log(gamma) / u)
    else:
        found = 1 - math.sqrt(gamma) * np.exp(-u / 2)
    return np.maximum(found, 0.0)


def lengths(moves, scale):
    """Length of each row in scales of the noise; infinite where it moves and there is no noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.linalg.norm(np.nan_to_num(moves / scale, nan=0.0, posinf=np.inf, neginf=-np.inf), axis=1)


def largest(rows):
    return np.max(rows)


def both(rows):
    return np.array([np.median(rows), 100.0 * np.max(rows)])


BOXES = {"median": np.median, "largest": largest, "both": both}
CERTIFICATES = 200


def _states(box, size):
    sets, _ = draws_of(len(FLAT), size)
    return sets, np.array([np.atleast_1d(BOXES[box](FLAT[rows])) for rows in sets])


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize(
    ("box", "noise"), [("median", "norm_exponential"), ("largest", "gaussian"), ("both", "gaussian")]
)
def test_certificates_from_the_spread_are_false_no_more_often_than_said(box, noise, level, seed, judge, monkeypatch):
    """The claim of a sampled scale s is E g(‖A(D) - c‖/s) ≤ η over all draws, around the centre c of the pilot."""
    pilots = []
    run_pilot = release.run_pilot

    def watched(*args, **options):
        found = run_pilot(*args, **options)
        pilots.append(found[1])
        return found

    monkeypatch.setattr(release, "run_pilot", watched)
    values = _states(box, 4)[1]
    false = 0
    for run in range(CERTIFICATES):
        made = wi.protect(
            BOXES[box], FLAT, eta=0.2, noise=noise, sensitivity="moment", subsets=48, confidence_level=level,
            rng=[43, seed, run], testing_source=SeededSource(0),
        ).certificate  # fmt: skip
        assert (made.route, made.confidence_level, made.ball) == ("moment", level, None)
        far = lengths(values - pilots[-1].centre, made.noise_scale)
        false += divergence(noise, far, 1.0).mean() > made.eta * (1 + 1e-9)
    judge(false, CERTIFICATES, 1 - level)


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("noise", ["gaussian", "norm_exponential"])
def test_certificates_in_a_ball_are_false_no_more_often_than_said(noise, level, seed, judge):
    """A centre and a radius that the user gives: the estimate is pulled into the ball before the noise."""
    values = _states("largest", 4)[1][:, 0]
    centre, radius = 1.0, 4.0
    moves = np.minimum(np.abs(values - centre), radius)[:, None]
    false = 0
    for run in range(CERTIFICATES):
        made = wi.protect(
            largest, FLAT, eta=0.2, noise=noise, ball=(centre, radius), subsets=48, confidence_level=level,
            rng=[47, seed, run], testing_source=SeededSource(0),
        ).certificate  # fmt: skip
        assert made.ball == radius
        false += divergence(noise, lengths(moves, made.noise_scale), 1.0).mean() > made.eta * (1 + 1e-9)
    judge(false, CERTIFICATES, 1 - level)


@pytest.mark.parametrize("size", [4, 3])
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize(
    ("box", "noise"), [("median", "norm_exponential"), ("largest", "gaussian"), ("both", "gaussian")]
)
def test_certificates_from_replacements_are_false_no_more_often_than_said(box, noise, level, size, seed, judge):
    """The claim is m·E E_γ(‖A(D) - A(D - x + x')‖/s) ≤ η for every record x, over all D with x and all x' outside."""
    sets, values = _states(box, size)
    place = {tuple(row): i for i, row in enumerate(sets.tolist())}
    records = len(FLAT)
    moves = [
        np.array([
            values[i] - values[place[tuple(sorted({*row, other} - {x}))]]
            for i, row in enumerate(sets.tolist()) if x in row
            for other in range(records) if other not in row
        ])
        for x in range(records)
    ]  # fmt: skip
    rarer = min(size, records - size) / records
    gamma = (1 - rarer) / rarer
    certificates, false = CERTIFICATES // 2, 0
    for run in range(certificates):
        made = wi.protect(
            BOXES[box], FLAT, eta=0.2, noise=noise, sensitivity="average", subsets=24, confidence_level=level,
            train_fraction=size / records, rng=[53, seed, run], testing_source=SeededSource(0),
        ).certificate  # fmt: skip
        assert (made.route, made.train_size) == ("average", size)
        excess = [rarer * divergence(noise, lengths(move, made.noise_scale), gamma).mean() for move in moves]
        false += max(excess) > made.eta * (1 + 1e-9)
    judge(false, certificates, 1 - level)
