"""The result: its parts, its words, its JSON, and how others build on it."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosin.auditing import Estimate, Experiment, audit, run_audit
from whosin.errors import InputError
from whosin.guarantees import PureDP
from whosin.numerics.rounding import at_least, at_most

RNG = np.random.default_rng(0)
X, Y = RNG.normal(1, 1, 400), RNG.normal(0, 1, 300)
AUDIT = audit(X, Y, prior=0.25, names=["loss"], groups=(["a", "b"] * 200, ["a"] * 300), rng=0)


def test_contract_of_the_json():
    seen = json.loads(json.dumps(AUDIT.to_dict(), allow_nan=False))
    assert set(seen["advantage"]) >= {"estimate", "lower", "upper", "confidence_level"}
    assert seen["prior"] == 0.25
    assert (seen["members"], seen["non_members"]) == (400, 300)
    assert seen["query"] == "loss"
    assert seen["kind"] == "continuous"
    assert len(seen["roc"]["fpr"]) == len(seen["roc"]["tpr"]) <= 201
    assert len(seen["individual"]["highest"]) == 20
    assert len(seen["assumes"]) >= 3
    assert [group["name"] for group in seen["groups"]] == ["a", "b"]
    assert seen["verdict"]["state"] == "leak"
    assert seen["person_level"] is False
    assert (seen["seed"], seen["splits"]) == (AUDIT._splits.seed, AUDIT._splits.count)
    assert set(seen["point_estimates"]) >= {"plug_in", "cross_fit"}
    assert 0 < seen["smallest_visible"] < 1


def test_an_attack_is_one_line():
    attack = AUDIT.attack
    line = f"{attack.candidate}: {attack.found} of {attack.members} members found"
    assert repr(attack).startswith(line)
    assert str(attack) == repr(attack)


def test_excess_is_what_the_query_adds():
    for side in ("estimate", "lower", "upper"):
        assert getattr(AUDIT.excess, side) == pytest.approx(getattr(AUDIT.advantage_at_prior, side) - 0.5)


def test_words():
    assert str(AUDIT).startswith("Leak found: advantage 0.")
    text = AUDIT.explain()
    assert text.startswith("Leak found: ")
    assert "If 0.25 of all records are members beforehand" in text
    assert "safe" not in text
    assert f"a vote over {AUDIT._splits.count} splits" in AUDIT.method
    assert "all thresholds of every query on all records" in AUDIT.method
    assert "threshold" in AUDIT.advantage.about
    assert any("no other attacker" in line for line in AUDIT.assumes)
    assert AUDIT._repr_html_().count("<li>") == len(AUDIT.assumes)
    assert "evidence" not in repr(AUDIT)


def test_assignment_is_carried():
    for assignment, words in (
        ("unknown", "nobody checked"),
        ("random", "at random"),
        ("independent trainings", "of its own"),
    ):
        a = audit(X, Y, assignment=assignment, rng=0)
        assert any(words in line for line in a.assumes)


def test_others_can_build_on_it():
    progress = []
    a = run_audit(
        Experiment(X, Y, 0.5), query="distance", notes=("scores were rounded",), rng=0, progress=progress.append
    )
    assert a.query == "distance"
    assert a.assumes[-1] == "scores were rounded"
    assert progress[0] == 0.0
    assert progress[-1] == 1.0
    assert progress == sorted(progress)
    b = dataclasses.replace(a, notes=(*a.notes, "again"), query="other")
    assert b.assumes[-2:] == ("scores were rounded", "again")
    assert b.advantage == a.advantage
    assert b.to_dict()["query"] == "other"


def test_pickles_with_its_parts():
    assert AUDIT.individual is AUDIT.individual
    copy = pickle.loads(pickle.dumps(AUDIT))
    assert copy.to_dict() == AUDIT.to_dict()
    assert copy.tpr_at(0.05) == AUDIT.tpr_at(0.05)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        AUDIT.prior = 0.5


def test_plot_with_a_promise():
    promise = PureDP(0.5)
    lines = AUDIT.plot(guarantee=promise).get_lines()
    promised = [line for line in lines if "promised" in str(line.get_label())]
    assert len(promised) == 1
    fpr, tpr = promised[0].get_data()
    assert np.allclose(tpr, promise.roc.tpr(np.asarray(fpr)))


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_plot(scale):
    axes = AUDIT.plot(scale=scale)
    assert axes.get_xscale() == scale
    assert len(axes.collections) == 1
    assert AUDIT.plot(ax=axes, scale=scale) is axes
    with pytest.raises(InputError, match="scale"):
        AUDIT.plot(scale="cubic")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"confidence_level": 0.0}, "confidence_level"),
        ({"assignment": "sure"}, "assignment"),
        ({"metric": "tpr"}, "metric"),
        ({"metric": "volume"}, "metric"),
        ({"prior": 2.0}, "prior"),
        ({"kind": "odd"}, "kind"),
    ],
)
def test_bad_options(options, word):
    with pytest.raises(InputError, match=word):
        audit(X, Y, **options)


def test_estimate():
    e = Estimate(0.5, 0.4, 0.6, 0.95)
    assert str(e) == "0.5 [0.4, 0.6] at 95%"
    assert e.to_dict() == {"estimate": 0.5, "lower": 0.4, "upper": 0.6, "confidence_level": 0.95}
    assert Estimate(float("nan"), -1.0, 1.0, 0.9, "nobody").to_dict()["estimate"] is None
    assert Estimate(0.5, 0.4, 0.6, 0.95, "us").to_dict()["about"] == "us"
    assert e.scaled(2.0, -1.0) == Estimate(0.0, 2.0 * 0.4 - 1.0, 2.0 * 0.6 - 1.0, 0.95)
    assert "0.4" in e._repr_html_()


def test_tighter_confidence_is_narrower():
    widths = [
        (lambda e: e.upper - e.lower)(audit(X, Y, confidence_level=level, rng=0).advantage)
        for level in (0.5, 0.9, 0.99)
    ]
    assert widths == sorted(widths)


@given(st.floats(-1, 1), st.integers(3, 6))
def test_printed_limits_are_limits(value, digits):
    low, high = float(at_least(value, digits)), float(at_most(value, digits))
    slack = 1e-11 * abs(value)
    assert low <= value + slack
    assert high >= value - slack
    assert high - low <= 10.0 ** (1 - digits) * abs(value) * (1 + 1e-9)


def test_limits_are_printed_outwards():
    assert str(Estimate(0.12345, 0.12346, 0.98761, 0.95)).startswith("0.123 [0.123, 0.988]")
    assert str(Estimate(float("nan"), -0.12341, 0.0, 0.9)) == "– [-0.124, 0] at 90%"
