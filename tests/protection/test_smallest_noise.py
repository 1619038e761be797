"""The smallest certified scale: it is too small no more often than it may be, and not much too large."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from whosin.numerics.shift import NOISES, divergence
from whosin.protection.smallest_noise import ScaleTest

RUNS = 120


def smallest_true(noise, target, distances, weights, log_gamma=0.0):
    def excess(log_scale):
        return float(weights @ divergence(noise, distances / math.exp(log_scale), log_gamma)) - target

    return math.exp(brentq(excess, -20, 20, xtol=1e-12))


def judge(misses, runs, level):
    """The number of misses is not too large for a chance of ``level`` each."""
    return binom.sf(misses - 1, runs, level) > 1e-4


LAWS = {
    "two-point": (np.array([0.5, 3.0]), np.array([0.8, 0.2])),
    "spread": (np.linspace(0.1, 2.0, 40), np.full(40, 1 / 40)),
    "rare": (np.array([0.2, 50.0]), np.array([0.97, 0.03])),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("ball", [False, True])
def test_coverage(law, noise, ball):
    """The scale is below the true one in at most a share β of the runs, though it was chosen on the same draws."""
    values, weights = LAWS[law]
    rng = np.random.default_rng(7)
    target, level = 0.2, 0.2
    true = smallest_true(noise, target, values, weights)
    test = ScaleTest(noise, target, level, radius=float(values.max()) if ball else math.inf)
    misses = 0
    for _ in range(RUNS):
        pilot, draws = rng.choice(values, 16, p=weights), rng.choice(values, 60, p=weights)
        misses += test.smallest_scale(draws, pilot) < true
    assert judge(misses, RUNS, level)


@pytest.mark.parametrize("dependent", [False, True])
def test_coverage_for_many_records_at_the_full_level(dependent):
    """Every column must pass, so the level is not divided: the claim is wrong only if the worst column fooled us."""
    rng = np.random.default_rng(8)
    target, level, columns = 0.3, 0.2, 6
    values, weights = LAWS["two-point"]
    factors = np.linspace(0.5, 1.0, columns)
    true = smallest_true("gaussian", target, values, weights, 0.2)
    test = ScaleTest("gaussian", target, level, log_gamma=0.2)
    misses = 0
    for _ in range(RUNS):
        shape = (56, 1) if dependent else (56, columns)
        drawn = rng.choice(values, shape, p=weights) * factors
        misses += test.smallest_scale(drawn[16:], drawn[:16]) < true
    assert judge(misses, RUNS, level)
    assert misses > 0 or not dependent


def test_the_judge_would_see_a_level_that_is_too_high():
    """The same simulation with draws that know the future fails: the minimum over many samples is too small."""
    values, weights = LAWS["two-point"]
    rng = np.random.default_rng(9)
    true = smallest_true("gaussian", 0.2, values, weights)
    test = ScaleTest("gaussian", 0.2, 0.2)
    misses = 0
    for _ in range(30):
        pilot = rng.choice(values, 16, p=weights)
        best = min(test.smallest_scale(rng.choice(values, 60, p=weights), pilot) for _ in range(30))
        misses += best < true
    assert not judge(misses, 30, 0.2)


@pytest.mark.parametrize("noise", NOISES)
def test_the_scale_comes_close_with_many_draws(noise):
    values, weights = LAWS["spread"]
    rng = np.random.default_rng(10)
    true = smallest_true(noise, 0.1, values, weights)
    found = ScaleTest(noise, 0.1, 0.05).smallest_scale(
        rng.choice(values, 20_000, p=weights), rng.choice(values, 500, p=weights)
    )
    assert 0.98 * true < found < 1.03 * true


@pytest.mark.parametrize("radius", [math.inf, 4.0])
@pytest.mark.parametrize("noise", NOISES)
def test_the_test_is_monotone_in_the_scale(noise, radius):
    """Share minus target falls at every draw as the scale grows, which the choice of the scale rests on."""
    distances = np.linspace(0.0, 4.0, 41)
    test = ScaleTest(noise, 0.1, 0.05, radius=radius)
    before = None
    for scale in np.geomspace(0.01, 1e4, 300):
        share, target = test._share(distances, float(scale))
        gap = share - target
        if before is not None:
            assert np.all(gap <= before + 1e-12)
        before = gap


def test_a_known_radius_saves_noise():
    rng = np.random.default_rng(11)
    pilot, draws = rng.random(64), rng.random(256)
    free = ScaleTest("gaussian", 0.02, 0.05).smallest_scale(draws, pilot)
    inside = ScaleTest("gaussian", 0.02, 0.05, radius=2.0).smallest_scale(draws, pilot)
    assert inside < 0.5 * free


def test_no_draw_moved():
    zeros = np.zeros(100)
    assert ScaleTest("gaussian", 0.1, 0.05).smallest_scale(zeros, zeros[:16]) == 0.0
    assert ScaleTest("gaussian", 0.01, 0.05).smallest_scale(zeros, zeros[:16]) == math.inf


def test_few_moves_need_no_noise_and_many_do():
    rng = np.random.default_rng(12)
    test = ScaleTest("gaussian", 0.2, 0.05)
    few, many = ((rng.random(400) < share).astype(float) for share in (0.02, 0.5))
    assert test.smallest_scale(few, few[:64]) == 0.0
    assert test.smallest_scale(many, many[:64]) > 1.0


def test_too_few_draws_certify_nothing():
    assert ScaleTest("gaussian", 0.1, 0.05).smallest_scale(np.ones(20), np.ones(16)) == math.inf
    assert ScaleTest("gaussian", 0.1, 0.05).forecast(np.ones(16), 20) == math.inf


def test_a_pilot_that_saw_nothing_does_not_break_the_test():
    rng = np.random.default_rng(13)
    draws = rng.random(400)
    found = ScaleTest("gaussian", 0.2, 0.05).smallest_scale(draws, np.zeros(16))
    assert smallest_true("gaussian", 0.2, draws, np.full(400, 1 / 400)) < found < math.inf
