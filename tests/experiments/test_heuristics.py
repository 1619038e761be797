"""Threshold attacks: who is accused, limits, ties and bad input. What they mean is in tests/theorems."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.neighbors import KernelDensity

from experiments.mace.heuristics import monte_carlo_attack, shadow_scores, threshold_attack
from whosin.errors import InputError, InputTypeError
from whosin.numerics.differences import gain_lower, gain_upper_of_one
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper, dkw_radius


def test_as_many_as_there_are_members():
    found = threshold_attack([5, 4, 1], [3, 2, 0, -1, -2])
    assert found.threshold == 2
    assert found.tpr.estimate == 2 / 3
    assert found.fpr.estimate == 1 / 5
    assert found.advantage.estimate == pytest.approx(2 / 3 - 1 / 5)
    assert (found.members, found.non_members) == (3, 5)


@pytest.mark.parametrize(("share", "accused"), [(0.0, 0), (0.25, 2), (0.29, 2), (0.5, 4), (1.0, 8)])
def test_share(share, accused):
    found = threshold_attack([8, 6, 4, 2], [7, 5, 3, 1], share=share)
    assert 4 * (found.tpr.estimate + found.fpr.estimate) == accused


def test_a_share_that_floats_round_down():
    """0.29·100 is 28.999… in floating point; 29 are accused."""
    found = threshold_attack(np.arange(50), np.arange(50) + 0.5, share=0.29)
    assert 50 * (found.tpr.estimate + found.fpr.estimate) == pytest.approx(29)


def test_of_ties_nobody_is_accused():
    found = threshold_attack([1, 1, 1, 2], [1, 1, 0, 0])
    assert found.tpr.estimate == 0.25
    assert found.fpr.estimate == 0.0
    constant = threshold_attack([1, 1], [1, 1])
    assert constant.tpr.estimate == constant.fpr.estimate == 0.0


def test_limits_of_a_given_threshold_are_exact_ones():
    found = threshold_attack(np.arange(20), np.arange(30) - 15, threshold=9.0, confidence_level=0.9)
    assert found.tpr.lower == pytest.approx(float(clopper_pearson_lower(10, 20, 0.1 / 4)), rel=1e-9)
    assert found.tpr.upper == pytest.approx(float(clopper_pearson_upper(10, 20, 0.1 / 4)), rel=1e-9)
    assert found.fpr.lower == pytest.approx(float(clopper_pearson_lower(5, 30, 0.1 / 4)), rel=1e-9)
    assert found.fpr.upper == pytest.approx(float(clopper_pearson_upper(5, 30, 0.1 / 4)), rel=1e-9)
    assert found.advantage.lower == gain_lower(10, 20, 5, 30, 0.05) > found.tpr.lower - found.fpr.upper
    assert found.advantage.upper == gain_upper_of_one(10, 20, 5, 30, 0.05) < found.tpr.upper - found.fpr.lower
    assert found.advantage.confidence_level == 0.9


def test_limits_of_a_threshold_from_the_same_records():
    found = threshold_attack(np.arange(1000) + 200, np.arange(1000))
    assert found.tpr.estimate == 0.6
    assert found.tpr.upper - found.tpr.estimate == pytest.approx(dkw_radius(1000, 0.05 / 4))
    assert found.fpr.estimate - found.fpr.lower == pytest.approx(dkw_radius(1000, 0.05 / 4))


def test_clopper_pearson_would_not_do_for_a_threshold_from_the_same_records():
    """Ten members below the top few of a thousand others: TPR counts the others' noise, and is not binomial."""
    rng, runs, exact, wide = np.random.default_rng(0), 300, 0, 0
    truth = 0.02  # 9.8 of the ten places go to others on average
    for _ in range(runs):
        outside = np.where(rng.random(1000) < 0.0098, 2.0, -1.0)
        found = threshold_attack(rng.random(10), outside, confidence_level=0.8)
        count = round(10 * found.tpr.estimate)
        exact += not clopper_pearson_lower(count, 10, 0.05) <= truth <= clopper_pearson_upper(count, 10, 0.05)
        wide += not found.tpr.lower <= truth <= found.tpr.upper
    assert binomtest(exact, runs, 0.1, alternative="greater").pvalue < 1e-6
    assert binomtest(wide, runs, 0.1, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize("share", [None, 0.5, 0.03])
def test_limits_cover_the_rates_of_fresh_records(share):
    rng, runs, misses = np.random.default_rng(1), 200, 0
    for _ in range(runs):
        found = threshold_attack(rng.random(60) ** 0.5, rng.random(140), share=share, confidence_level=0.7)
        tpr, fpr = 1 - found.threshold**2, 1 - found.threshold
        misses += not (found.tpr.lower <= tpr <= found.tpr.upper and found.fpr.lower <= fpr <= found.fpr.upper)
        assert found.advantage.lower <= found.advantage.estimate <= found.advantage.upper
    assert binomtest(misses, runs, 0.3, alternative="greater").pvalue > 1e-6


def test_advantage_at_prior():
    found = threshold_attack([3, 2, 0], [1, -1, -2, -3])
    even, rare = found.advantage_at_prior(0.5), found.advantage_at_prior(0.1)
    assert even.estimate == pytest.approx(found.advantage.estimate)
    assert even.lower == pytest.approx(found.advantage.lower)
    assert rare.estimate == pytest.approx(2 * (0.1 * 2 / 3 + 0.9 * 3 / 4) - 1)


def test_everybody_is_accused():
    assert threshold_attack([1.0], [0.0], share=1.0).threshold == -math.inf


def test_infinite_scores_are_the_largest():
    found = threshold_attack([np.inf, 1.0], [-np.inf, 0.0])
    assert (found.tpr.estimate, found.fpr.estimate) == (1.0, 0.0)


def test_one_record_on_either_side():
    found = threshold_attack([1.0], [0.0])
    assert found.advantage.estimate == 1.0
    assert found.advantage.lower == pytest.approx(-1.0)


@pytest.mark.parametrize("by_distance", [False, True])
def test_monte_carlo_of_exact_copies(by_distance):
    """Three of four records are copies: the median distance is 0, and the copies are accused."""
    inside, outside = np.array([[0.0], [1.0], [2.0]]), np.array([[10.0]])
    found = monte_carlo_attack(inside, outside, inside, by_distance=by_distance, share=0.8)
    assert (found.tpr.estimate, found.fpr.estimate) == (1.0, 0.0)


@pytest.mark.parametrize("by_distance", [False, True])
def test_monte_carlo_with_a_radius(by_distance):
    """One-dimensional records may come as plain numbers."""
    found = monte_carlo_attack([0.0, 5.0], [3.0, 9.0], [0.1, 5.1, 5.2], radius=1.0, by_distance=by_distance)
    assert (found.tpr.estimate, found.fpr.estimate) == (1.0, 0.0)


def test_monte_carlo_by_distance_weighs_near_rows():
    """Two rows on the rim of the ball count less than one near its centre, in any unit."""
    for unit in (1e-6, 1.0, 1e6):
        args = unit * np.array([[0.0]]), unit * np.array([[10.0]]), unit * np.array([[0.01], [9.1], [10.9]])
        plain = monte_carlo_attack(*args, radius=unit)
        near = monte_carlo_attack(*args, radius=unit, by_distance=True)
        assert (plain.tpr.estimate, plain.fpr.estimate) == (0.0, 1.0)
        assert (near.tpr.estimate, near.fpr.estimate) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: threshold_attack([], [1.0]), InputError, "members must have at least one"),
        (lambda: threshold_attack([1.0], [[1.0]]), InputError, "non_members .* shape"),
        (lambda: threshold_attack([1.0, np.nan], [1.0]), InputError, "NaN at 1"),
        (lambda: threshold_attack(["a"], [1.0]), InputTypeError, "members must be an array of numbers"),
        (lambda: threshold_attack([1.0], [1.0], share=1.5), InputError, "share"),
        (lambda: threshold_attack([1.0], [1.0], share=0.5, threshold=0.0), InputTypeError, "exclude"),
        (lambda: threshold_attack([1.0], [1.0], threshold=np.nan), InputError, "threshold"),
        (lambda: threshold_attack([1.0], [1.0], confidence_level=1.0), InputError, "confidence_level"),
        (lambda: threshold_attack([1.0], [1.0]).advantage_at_prior(0.0), InputError, "prior"),
        (lambda: monte_carlo_attack([[1.0]], [[1.0, 2.0]], [[1.0]]), InputError, "same number of columns, got 1, 2"),
        (lambda: monte_carlo_attack([[1.0]], [[2.0]], np.zeros((0, 1))), InputError, "synthetic must be a non-empty"),
        (lambda: monte_carlo_attack([[np.inf]], [[2.0]], [[1.0]]), InputError, "members must be a non-empty"),
        (lambda: monte_carlo_attack([[1.0]], [[2.0]], [["a"]]), InputTypeError, "synthetic must be an array"),
        (lambda: monte_carlo_attack([[1.0]], [[2.0]], [[1.0]], radius=-1.0), InputError, "radius"),
        (lambda: monte_carlo_attack([[1.0]], [[2.0]], 3.0), InputError, "synthetic must be a non-empty"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


class Density:
    """A shadow model that is not a network: the density of what it was given."""

    def fit(self, released, *, bandwidth):
        self.discriminators = (KernelDensity(bandwidth=bandwidth).fit(released).score_samples,)
        return self


def test_the_shadow_of_a_release_of_copies_knows_the_members():
    """Hayes et al., black box: the attacker has the released rows alone."""
    rng = np.random.default_rng(4)
    inside, outside = rng.normal(size=(200, 5)), rng.normal(size=(200, 5))
    copies = inside[rng.integers(200, size=1000)] + 0.01 * rng.normal(size=(1000, 5))
    assert threshold_attack(*shadow_scores(Density(), copies, inside, outside, bandwidth=0.1)).advantage.lower > 0.7
    fresh = rng.normal(size=(1000, 5))
    assert threshold_attack(*shadow_scores(Density(), fresh, inside, outside, bandwidth=0.1)).advantage.lower < 0.0
