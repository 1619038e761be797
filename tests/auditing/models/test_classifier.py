"""Auditing one classifier: an overfit one leaks, a constant one does not, and errors name what is wrong."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import whosin as wi
from whosin.auditing.models import audit_classifier
from whosin.errors import InputError, InputTypeError

X, Y = load_digits(return_X_y=True)
RNG = np.random.default_rng(0)
Y = np.where(RNG.random(len(Y)) < 0.2, RNG.integers(10, size=len(Y)), Y)
HALF = RNG.random(len(Y)) < 0.5
SIDES = {"members": (X[HALF], Y[HALF]), "non_members": (X[~HALF], Y[~HALF])}
NAMES = [f"pixel {i}" for i in range(64)]
TREE = DecisionTreeClassifier(random_state=0).fit(*SIDES["members"])


@pytest.mark.parametrize("model", [TREE, KNeighborsClassifier(1).fit(*SIDES["members"])], ids=["tree", "1-NN"])
@pytest.mark.parametrize("query", ["auto", "loss", "correctness", "label_only", "log_probabilities"])
def test_an_overfit_model_leaks(model, query):
    found = audit_classifier(model, **SIDES, query=query, rng=0)
    assert found.advantage.lower > 0.2
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_model_that_learned_nothing_does_not_leak():
    lower = []
    for seed in range(10):
        half = np.random.default_rng(seed).random(len(Y)) < 0.5
        model = DummyClassifier().fit(X[half], Y[half])
        found = audit_classifier(model, (X[half], Y[half]), (X[~half], Y[~half]), rng=seed)
        lower.append(found.advantage.lower)
    assert np.sum(np.array(lower) > 0) <= 3  # P(Binomial(10, 0.05) > 3) = 0.001


def test_a_constant_model_says_nothing():
    class Constant:
        def predict_proba(self, X):
            return np.full((len(X), 10), 0.1)

    found = audit_classifier(Constant(), **SIDES, query=["loss", "entropy", "confidence"], rng=0)
    assert found.advantage.lower == 0.0
    assert any("for every record" in line for line in found.assumes)


def test_the_true_advantage_of_correctness():
    """A tree is right on every member: the advantage of correctness is its error outside."""
    found = audit_classifier(TREE, **SIDES, query="correctness", rng=0)
    error = 1 - TREE.score(*SIDES["non_members"])
    assert found.kind == "discrete"
    assert found.advantage.lower <= error <= found.advantage.upper
    assert found.plug_in == pytest.approx(error, abs=0.04)


def test_references_tell_hard_records_from_unknown_ones():
    third = RNG.integers(3, size=len(Y))
    soft = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
    model, other = (soft.fit(X[third == i], Y[third == i]) for i in (0, 1))
    model = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X[third == 0], Y[third == 0])
    sides = (X[third == 0], Y[third == 0]), (X[third == 2], Y[third == 2])
    found = audit_classifier(model, *sides, reference=other, rng=0)
    assert {"calibrated_loss", "calibrated_logit"} <= set(found.queries)
    several = audit_classifier(model, *sides, query="calibrated_logit", reference=[other, other], rng=0)
    one = audit_classifier(model, *sides, query="calibrated_logit", reference=other, rng=0)
    assert several.advantage == one.advantage


def test_own_query_and_shapes():
    def margin(model, X, y):
        top = np.sort(model.predict_proba(X), axis=1)
        return top[:, -1] - top[:, -2]

    assert audit_classifier(TREE, **SIDES, query=margin, rng=0).query == "margin"
    assert audit_classifier(TREE, **SIDES, query=lambda m, X, y: m.predict_proba(X)[:, :2], rng=0).query.count(",") == 1
    both = audit_classifier(TREE, **SIDES, query=["correctness", margin], rng=0)
    assert both.query == "correctness, margin"
    with pytest.raises(InputError, match="functions of different names, got margin, margin"):
        audit_classifier(TREE, **SIDES, query=[margin, margin])
    many = audit_classifier(TREE, **SIDES, query=lambda m, X, y: X[:, 16:40], rng=0)
    assert many.query == "lambda 1, …, lambda 24"
    with pytest.raises(InputError, match="each of"):
        audit_classifier(TREE, **SIDES, query=lambda m, X, y: np.zeros(3))
    with pytest.raises(InputError, match="one width"):
        audit_classifier(TREE, **SIDES, query=lambda m, X, y: np.zeros((len(X), len(X) % 7 + 1)))


def test_own_augmentation():
    calls = []

    def shift(X, rng):
        calls.append(rng.random())
        return np.roll(X, 1, axis=1)

    audit_classifier(TREE, **SIDES, query="label_only", augment=shift, augmentations=3, rng=0)
    assert len(calls) == 6
    with pytest.raises(InputError, match="keeps the number"):
        audit_classifier(TREE, **SIDES, query="label_only", augment=lambda X, rng: X[:2])


@pytest.mark.parametrize(
    ("frame", "series"),
    [(lambda t: pd.DataFrame(t, columns=NAMES), pd.Series), (lambda t: pl.DataFrame(t, schema=NAMES), pl.Series)],
    ids=["pandas", "polars"],
)
def test_frames_keep_their_columns(frame, series):
    model = DecisionTreeClassifier(random_state=0).fit(frame(X[HALF]), Y[HALF])
    sides = (frame(X[HALF]), series(Y[HALF])), (frame(X[~HALF]), series(Y[~HALF]))
    for query in ("auto", "label_only"):
        framed = audit_classifier(model, *sides, query=query, rng=0)
        assert framed.advantage == audit_classifier(TREE, **SIDES, query=query, rng=0).advantage


def test_same_seed_same_answer_and_progress():
    seen = []
    first = audit_classifier(TREE, **SIDES, query=["loss", "label_only"], rng=3, progress=seen.append)
    second = audit_classifier(TREE, **SIDES, query=["loss", "label_only"], rng=3)
    assert first.advantage == second.advantage
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)


def test_one_model_refutes_no_promise():
    found = audit_classifier(TREE, **SIDES, assignment="random", rng=0)
    assert found.compare(wi.PureDP(0.1)).verdict == "exceeds the promise on this model"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"query": "los"}, InputError, "query must be auto, loss.*'los'"),
        ({"query": []}, InputTypeError, "query must be names"),
        ({"query": [1]}, InputTypeError, "query must be names"),
        ({"query": ["loss", "loss"]}, InputError, "different names"),
        ({"query": "calibrated_loss"}, InputError, "reference="),
        ({"members": X}, InputTypeError, r"members must be a pair \(X, y\)"),
        ({"members": (X, Y[:5])}, InputError, "members must hold records and one label each"),
        ({"non_members": (X[:3], [0, 1, 11])}, InputError, "non_members must be labels.*11.* in row 2"),
        ({"model": object()}, InputTypeError, "predict_proba"),
        ({"augmentations": 0, "query": "label_only"}, InputError, "augmentations"),
        ({"prior": 1.0}, InputError, "prior"),
    ],
)
def test_bad_input(options, error, words):
    given = {"model": TREE, **SIDES, **options}
    with pytest.raises(error, match=words):
        audit_classifier(given.pop("model"), given.pop("members"), given.pop("non_members"), **given)


def test_text_needs_its_own_augmentation():
    class Words:
        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    sides = (np.array([["a"], ["b"]]), [0, 1]), (np.array([["c"], ["d"]]), [0, 1])
    with pytest.raises(InputError, match="augment is needed"):
        audit_classifier(Words(), *sides, query="label_only")
