"""Auditing one classifier: an overfit one leaks, a constant one does not, and errors name what is wrong."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import whosin as wi
from whosin.auditing.models import ReferenceModels, SklearnAdapter, audit_classifier, audit_with_references
from whosin.auditing.models.predictions import predict, regresses, residuals, scaled_logit
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
    assert {"loss", "calibrated_loss"} <= set(found.queries)
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


@pytest.mark.parametrize("seed", [0, 2])
def test_one_model_refutes_no_promise(seed):
    """The tree's few values tie: the threshold that the fit part chose for the promise shows nothing here."""
    found = audit_classifier(TREE, **SIDES, assignment="random", rng=seed)
    held = found.compare(wi.PureDP(0.1))
    assert held.verdict == "exceeds the promise on this model"
    assert f"{held.promised_advantage:.3g}" in held.text or held.tpr_lower > held.promised_tpr


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


class Labels:
    """A model that gives labels only."""

    def __init__(self, model):
        self.predict = model.predict


def test_models_that_give_labels_only():
    half = np.arange(len(Y)) % 2 == 0
    names = np.array([f"digit {label}" for label in Y])
    model = Labels(DecisionTreeClassifier(random_state=0).fit(X[half], names[half]))
    found = audit_classifier(model, (X[half], names[half]), (X[~half], names[~half]), rng=0)
    assert {"correctness", "label_only"} <= set(found.queries)
    assert found.advantage.lower > 0.1
    alone = audit_classifier(model, (X[half], names[half]), (X[~half], names[~half]), query="label_only", rng=0)
    assert alone.advantage.lower > 0.1


def test_models_that_call_the_labels_otherwise_are_refused():
    """A target trained on 0 and 1 knows no label of a pool of words, and would look as if it gave nothing away."""
    names = np.where(Y % 2, "odd", "even")
    model = DecisionTreeClassifier(random_state=0).fit(X, Y % 2)
    with pytest.raises(InputError, match=r"must predict labels like .*, got [01]"):
        audit_classifier(Labels(model), (X, names), (X, names))
    references = ReferenceModels.train(DecisionTreeClassifier(max_depth=3), X[:60], names[:60], models=4, rng=0)
    with pytest.raises(InputError, match="X, y must be labels that the model knows"):
        audit_with_references(references, model, np.arange(60) % 2)


def test_margins_of_support_vectors_are_log_odds():
    for labels in (Y % 2, Y % 3):
        model = SVC(C=10).fit(X[:200], labels[:200])
        margins = model.decision_function(X)
        found = predict(model, X, labels)
        odds = scaled_logit(found)
        if margins.ndim == 1:
            np.testing.assert_allclose(odds, np.where(labels == 1, margins, -margins), rtol=1e-6)
        else:
            rest = np.where(np.arange(3) == labels[:, None], -np.inf, margins)
            np.testing.assert_allclose(odds, margins[np.arange(len(X)), labels] - logsumexp(rest, axis=1), rtol=1e-6)
    assert audit_classifier(model, (X[:200], labels[:200]), (X[200:], labels[200:]), rng=0).query == "loss, entropy"
    two = Y % 2
    model = SVC(C=10).fit(X[:200], two[:200])
    assert audit_classifier(model, (X[:200], two[:200]), (X[200:], two[200:]), rng=0).query == "loss"


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_margins_of_pairs_of_classes(classes):
    """Three pairs of three classes look like three classes: what counts is that the model says "ovo"."""
    labels, svc = Y % classes, SVC(C=10, decision_function_shape="ovo")
    for model in (svc, make_pipeline(svc), GridSearchCV(svc, {"C": [10.0]})):
        model.fit(X[:200], labels[:200])
        found = predict(model, X, labels)
        assert np.mean(found.probabilities.argmax(axis=1) == model.predict(X)) > 0.9


def test_an_estimator_that_is_only_like_those_of_scikit_learn():
    """Parameters without scikit-learn's tags: what it is good for is seen in what it has."""

    class Own:
        def get_params(self, deep=True):
            return {}

        def set_params(self):
            return self

        def fit(self, X, y):
            self.tree = DecisionTreeClassifier(random_state=0).fit(X, y)
            return self

        def predict_proba(self, X):
            return self.tree.predict_proba(X)

    assert (
        audit_classifier(Own().fit(X[::2], Y[::2]), (X[::2], Y[::2]), (X[1::2], Y[1::2]), rng=0).advantage.lower > 0.2
    )
    assert wi.ReferenceModels.train(Own(), X, Y, models=2, rng=0).log_odds


def test_regressors():
    rng = np.random.default_rng(0)
    values = X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X))
    model, other = (DecisionTreeRegressor(random_state=0).fit(X[i::3], values[i::3]) for i in (0, 1))
    sides = (X[::3], values[::3]), (X[2::3], values[2::3])
    found = audit_classifier(model, *sides, rng=0)
    assert (found.query, found.advantage.lower > 0.8) == ("loss", True)
    both = audit_classifier(model, *sides, query=["residual", "calibrated_loss"], reference=other, rng=0)
    assert both.advantage.lower > 0.8
    with pytest.raises(
        InputError, match="query must be auto, loss, residual, or a function, for a regressor, got 'ent"
    ):
        audit_classifier(model, *sides, query="entropy")
    null = audit_classifier(LinearRegression().fit(X[1::3], values[1::3]), *sides, rng=0)
    assert null.advantage.lower == 0.0


class Booster:
    """Looks like a native Booster of LightGBM."""

    def __init__(self, objective):
        self.objective = objective

    def dump_model(self, num_iteration):
        return {"objective": self.objective}

    def predict(self, X, raw_score):
        return X[:, 0] if raw_score else 100 * X[:, 0]


def test_native_boosters_answer_by_margins():
    X = np.linspace(-3, 3, 20)[:, None]
    y = (X[:, 0] > 0).astype(int)
    np.testing.assert_allclose(scaled_logit(predict(Booster("binary sigmoid:1"), X, y)), np.abs(X[:, 0]), rtol=1e-9)
    assert not regresses(Booster("binary sigmoid:1"), y)
    assert regresses(Booster("regression"), y)
    np.testing.assert_allclose(residuals(Booster("regression"), X, y), 100 * X[:, 0] - y)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SimpleNamespace(predict=lambda X: np.zeros((len(X), 2))), "one label per record"),
        (SimpleNamespace(decision_function=lambda X: np.full(len(X), np.nan)), "finite margins"),
        (SimpleNamespace(decision_function=lambda X: np.zeros((len(X), 3)), classes_=[0, 1]), "one class per column"),
    ],
)
def test_models_whose_answers_make_no_sense(model, words):
    with pytest.raises(InputError, match=words):
        audit_classifier(model, (X, Y), (X, Y))
    with pytest.raises(InputError, match="predict a finite number per record"):
        audit_classifier(SimpleNamespace(predict=lambda X: X), (X, Y + 0.5), (X, Y + 0.5))


def test_classes_of_xgboost_are_numbered_for_it():
    """A stand-in that takes only labels 0, 1, … without gaps, as XGBClassifier does."""
    kind = type("XGBLike", (DecisionTreeClassifier,), {"fit": _strict_fit, "__module__": "xgboost.sklearn"})
    names = np.array(["rare", *["often", "always"] * 20])
    rows = np.arange(1, 41)
    model = SklearnAdapter(kind(max_depth=2)).fit(X[rows], names[rows], np.random.default_rng(0))
    assert model.classes_.tolist() == ["always", "often"]
    assert predict(model, X[:41], names, missing=True).label[0] == -1
    numbers = np.where(names == "rare", 0, np.where(names == "often", 2, 5))
    model = SklearnAdapter(kind(max_depth=2)).fit(X[rows], numbers[rows], np.random.default_rng(0))
    assert model.classes_.tolist() == [2, 5]


def _strict_fit(self, X, y, **more):
    assert np.array_equal(np.unique(y), np.arange(len(np.unique(y))))
    return DecisionTreeClassifier.fit(self, X, y, **more)
