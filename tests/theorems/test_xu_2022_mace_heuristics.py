"""Xu et al. 2022, "MACE: membership privacy estimation", section 6: the heuristic attacks against the optimum.

Hayes et al. (2019) threshold a discriminator's score, of the model (white box) or of a shadow of it (black box);
Hilprecht et al. (2019) count released rows near a record (Monte Carlo), with the median and the distance heuristics.
On one query none of them beats the optimal adversary of lemma 1.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from theorem_support import answers, holds

import whosin as wi
from experiments.mace.densities import density
from experiments.mace.heuristics import monte_carlo_attack, threshold_attack


def gaussian_scores(rng, n1, n2, shift=1.0):
    return rng.normal(shift, 1, n1), rng.normal(0, 1, n2)


@pytest.mark.parametrize(("n1", "n2"), [(2000, 2000), (500, 4500)])
def test_hayes_white_box(n1, n2):
    """The N₁ highest discriminator scores: the rates are those of the exact threshold, below the optimum of lemma 1."""
    rng = np.random.default_rng([100, n1])
    share = n1 / (n1 + n2)
    at = brentq(lambda t: share * norm.sf(t - 1) + (1 - share) * norm.sf(t) - share, -5, 6)
    truth, optimum = norm.sf(at - 1) - norm.sf(at), 2 * norm.cdf(0.5) - 1
    found = threshold_attack(*gaussian_scores(rng, n1, n2))
    assert found.advantage.lower <= truth <= found.advantage.upper
    assert found.advantage.estimate == pytest.approx(truth, abs=5 / math.sqrt(n1))
    assert round(n1 * found.tpr.estimate + n2 * found.fpr.estimate) == n1
    assert truth <= optimum + 1e-12
    if n1 == n2:
        assert truth == pytest.approx(optimum, abs=1e-9)


def test_heuristics_are_bounded_by_the_audit_of_the_same_query():
    """Truth of the heuristic ≤ truth of the optimum: its lower limit stays below the audit's upper limit, 40 runs."""
    rng, misses = np.random.default_rng(101), 0
    for run in range(40):
        inside, outside = gaussian_scores(rng, 300, 600, shift=run % 4)
        a = wi.audit(inside, outside, rng=run)
        for share in (None, 0.5, 0.1):
            found = threshold_attack(inside, outside, share=share)
            misses += found.advantage.lower > a.advantage.upper
            slack = 3 * math.sqrt(1 / 300 + 1 / 600)
            assert found.advantage.estimate <= a.advantage.estimate + slack
    holds(misses, 120, 0.1)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8), st.floats(0, 1))
def test_w_n_bounds_every_attack_on_the_same_sample(cells, share):
    """Section 6.2 reads "W_N is above the heuristics" as a proof of theorem 5; it is so for every sample whatever."""
    x, y = (np.array(side) + (np.arange(len(cells)) == 0) for side in zip(*cells, strict=True))
    found = threshold_attack(answers(x), answers(y), share=share)
    assert found.advantage.estimate <= 0.5 * np.abs(x / x.sum() - y / y.sum()).sum() + 1e-12


def test_w_n_above_the_heuristic_validates_nothing():
    """Pure noise in 100 cells: W_N is .25 and the heuristic about 0, and so is the truth of both."""
    rng = np.random.default_rng(102)
    inside, outside = rng.random(500), rng.random(500)
    w = wi.audit(*(np.floor(100 * side) for side in (inside, outside)), kind="discrete", rng=0)
    hayes = threshold_attack(inside, outside)
    assert w.plug_in > 0.2
    assert abs(hayes.advantage.estimate) < 0.1
    assert w.advantage.lower == 0.0


def memorised(rng, n=400):
    """Members, others of the same law, and a release of the members with little noise, in the plane."""
    inside, outside = rng.normal(size=(2, n, 2))
    return inside, outside, inside + 0.02 * rng.normal(size=(n, 2))


def test_hayes_black_box_shadow_generator():
    """A shadow generator is fitted to the release; its best discriminator against the release scores the records."""
    rng = np.random.default_rng(103)
    inside, outside, released = memorised(rng)
    shadow = rng.multivariate_normal(released.mean(axis=0), np.cov(released.T), 4000)
    real, fake = density(released, bandwidth=0.05), density(shadow, bandwidth=0.3)
    scores = [real(side) / (real(side) + fake(side) + 1e-12) for side in (inside, outside)]
    found = threshold_attack(*scores)
    assert found.advantage.lower > 0.1
    a = wi.audit(*scores, rng=0)
    assert found.advantage.lower <= a.advantage.upper
    assert found.advantage.estimate <= a.advantage.estimate + 3 * math.sqrt(2 / 400)
    # Without memorising the same attack finds nothing.
    fresh = density(rng.normal(size=(400, 2)), bandwidth=0.05)
    idle = threshold_attack(*(fresh(side) / (fresh(side) + fake(side) + 1e-12) for side in (inside, outside)))
    assert idle.advantage.lower < 0 < idle.advantage.upper


@pytest.mark.parametrize("by_distance", [False, True])
def test_hilprecht_monte_carlo(by_distance):
    """More than the median mass within the median nearest distance: by brute force, and below the audit's limit."""
    rng = np.random.default_rng(104)
    inside, outside, released = memorised(rng)
    found = monte_carlo_attack(inside, outside, released, by_distance=by_distance)
    targets = np.concatenate([inside, outside])
    distance = np.linalg.norm(targets[:, None] - released[None], axis=2)
    radius = np.median(distance.min(axis=1))
    near = distance <= radius
    score = np.where(near, np.log(radius / distance) if by_distance else 1.0, 0.0).sum(axis=1)
    accused = score > np.sort(score)[400 - 1]
    assert found.tpr.estimate == accused[:400].mean()
    assert found.fpr.estimate == accused[400:].mean()
    assert found.advantage.lower > 0.1
    a = wi.audit(score[:400], score[400:], rng=0)
    assert found.advantage.lower <= a.advantage.upper
    assert found.advantage.estimate <= a.advantage.estimate + 3 * math.sqrt(2 / 400)


def test_equation_1_printed_depends_on_the_unit():
    """-ln d in units where all distances exceed 1: a full ball counts less than an empty one, members are spared."""
    rng = np.random.default_rng(105)
    inside, outside, released = memorised(rng)
    in_radii = monte_carlo_attack(inside, outside, released, by_distance=True)
    for unit in (1e-3, 1e3):
        scaled = monte_carlo_attack(unit * inside, unit * outside, unit * released, by_distance=True)
        assert scaled.advantage.estimate == pytest.approx(in_radii.advantage.estimate, abs=0.01)
        distance = unit * np.linalg.norm(np.concatenate([inside, outside])[:, None] - released[None], axis=2)
        near = distance <= np.median(distance.min(axis=1))
        printed = np.where(near, -np.log(distance), 0.0).sum(axis=1)
        attack = threshold_attack(printed[:400], printed[400:], share=0.5)
        if unit < 1:
            assert attack.advantage.lower > 0
        else:
            assert attack.advantage.upper < 0
    assert in_radii.advantage.lower > 0


def test_figure_3_at_a_small_prior():
    """At p = .1 the advantage of Hayes' attack may fall below that of a constant guess, |2p-1| = .8."""
    rng = np.random.default_rng(106)
    found = threshold_attack(*gaussian_scores(rng, 300, 2700))
    at_prior = found.advantage_at_prior(0.1)
    rates = found.tpr.estimate, found.fpr.estimate
    assert at_prior.estimate == pytest.approx(2 * (0.1 * rates[0] + 0.9 * (1 - rates[1])) - 1)
    assert at_prior.lower <= at_prior.estimate < 0.8
    best = wi.audit(*gaussian_scores(rng, 300, 2700), prior=0.1, rng=0).advantage_at_prior
    assert best.lower >= 0.8
