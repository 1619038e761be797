"""Promised against measured: what may be called a violation, and the lower limit on ε."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

import whosin as wi
from whosin.auditing import audit
from whosin.errors import InputError, InputTypeError


def response(rng, n, epsilon):
    """Randomised response: the game of PureDP(epsilon), with equality."""
    keep = 1 / (1 + math.exp(-epsilon))
    return (rng.random(n) < keep).astype(int), (rng.random(n) >= keep).astype(int)


LEAK = audit(*response(np.random.default_rng(0), 2000, 1.0), rng=0)


def test_one_model_refutes_nothing():
    found = LEAK.compare(wi.PureDP(0.1))
    assert found.verdict == "exceeds the promise on this model"
    assert "no refutation" in found.text
    assert LEAK.compare(wi.PureDP(0.1), assignment="random").verdict == found.verdict
    assert LEAK.compare(wi.PureDP(0.1), assignment="random", trainings=3999).verdict == found.verdict


@pytest.mark.parametrize(
    "options", [{"assignment": "independent trainings"}, {"assignment": "random", "trainings": 4000}]
)
def test_own_trainings_can_refute(options):
    found = LEAK.compare(wi.PureDP(0.1), **options)
    assert found.verdict == "violated"
    assert found.tpr_lower > found.promised_tpr
    assert found.promised_tpr == pytest.approx(wi.PureDP(0.1).tpr_at(found.fpr_upper))
    assert 0.7 < found.epsilon_lower < 1.0


def test_assignment_of_the_audit_is_the_default():
    x, y = response(np.random.default_rng(0), 500, 2.0)
    assert audit(x, y, assignment="independent trainings", rng=0).compare(wi.PureDP(0.1)).verdict == "violated"


def test_consistent_and_inconclusive():
    rng = np.random.default_rng(3)
    small, promise = audit(rng.normal(0.3, 1, 2000), rng.normal(0, 1, 2000)), wi.ApproxDP(1.5, 0.2)
    within = small.compare(promise)
    assert within.verdict == "consistent"
    assert small.advantage.upper <= within.promised_advantage
    assert promise.roc.dominates(small.band.upper)
    assert "at every FPR" in within.text
    assert small.covered in within.text
    between = LEAK.compare(wi.PureDP(1.0))
    advantage_alone = LEAK.compare(wi.PureDP(3.0))
    assert LEAK.advantage.upper <= advantage_alone.promised_advantage
    for found in (between, advantage_alone):
        assert found.verdict == "inconclusive"
    for found in (within, between):
        assert "safe" not in found.text
        assert str(found).startswith(found.verdict)
        assert found.verdict in found._repr_html_()
        json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("guarantee", [wi.MIP(0.05), wi.PMP(0.1), wi.GaussianDP(0.1), wi.ApproxDP(0.1, 1e-5)])
def test_every_kind_of_guarantee(guarantee):
    assert LEAK.compare(guarantee).verdict == "exceeds the promise on this model"


def test_true_promises_are_not_called_violated():
    """Independent scores from a mechanism that meets its promise with equality: false alarms at most 5 %.

    At a level of 20 % the limit is near enough to the truth to miss it now and then.
    """
    rng = np.random.default_rng(1)
    alarms = above = missed = 0
    for run in range(40):
        a = audit(*response(rng, 250, 1.0), rng=run, assignment="independent trainings")
        found = a.compare(wi.PureDP(1.0))
        alarms += found.verdict == "violated"
        above += found.epsilon_lower > 1.0
        missed += replace(a, confidence_level=0.2).compare(wi.PureDP(1.0)).epsilon_lower > 1.0
    for misses in (alarms, above):
        assert binomtest(misses, 40, 0.05, alternative="greater").pvalue > 1e-4
    assert missed > 0


def test_delta_lowers_epsilon():
    """Reveal membership with probability .05, else say nothing: ε is unbounded at δ = 0, and 0 at δ = .05."""
    rng = np.random.default_rng(2)
    x, y = np.where(rng.random(3000) < 0.05, 2, 1), np.where(rng.random(3000) < 0.05, 0, 1)
    a = audit(x, y, rng=0)
    pure, approximate = a.compare(wi.PureDP(1.0)), a.compare(wi.ApproxDP(1.0, 0.05))
    assert pure.epsilon_lower > 1.5
    assert approximate.epsilon_lower == 0.0
    assert approximate.delta == 0.05
    assert pure.delta == 0.0


def test_nothing_to_choose_from():
    a = audit([0.5], [0.25], rng=0)
    found = a.compare(wi.PureDP(0.1))
    assert found.verdict == "inconclusive"
    assert found.epsilon_lower == 0.0


def test_bad_input():
    with pytest.raises(InputTypeError, match="guarantee"):
        LEAK.compare(1.0)
    with pytest.raises(InputError, match="assignment"):
        LEAK.compare(wi.PureDP(1.0), assignment="sure")
    with pytest.raises(InputError, match="trainings"):
        LEAK.compare(wi.PureDP(1.0), trainings=0)


@pytest.mark.parametrize(("adjacency", "words"), [("replace", "replace one"), ("add_remove", "add/remove one")])
def test_a_violation_names_the_game(adjacency, words):
    """The number of records is 0-DP under replace-one and tells members under independent inclusion: no violation."""
    found = audit([1] * 300, [0] * 300, assignment="independent trainings", rng=0)
    seen = found.compare(wi.PureDP(0.5, adjacency))
    assert seen.verdict == "violated"
    assert "provided that members were chosen as it assumes" in seen.text
    assert words in seen.text
