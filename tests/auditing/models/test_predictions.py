"""What is read off a classifier's predictions, against definitions in many digits, and what is refused."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from whosin.auditing.models.predictions import SIGNALS, Predictions, log_probabilities, predict
from whosin.errors import InputError, InputTypeError


class Fixed:
    """A model that predicts what it was told."""

    def __init__(self, table, classes=None):
        self.table = table
        if classes is not None:
            self.classes_ = classes

    def predict_proba(self, X):
        return self.table


def signal(name, table, label):
    table = np.asarray(table, dtype=float)
    return SIGNALS[name][1](Predictions(table, np.asarray(label), np.arange(table.shape[1])))


@given(arrays(float, (4, 3), elements=st.floats(0.01, 1)), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_signals_by_definition(weights, labels):
    table = weights / weights.sum(axis=1, keepdims=True)
    for row, label in enumerate(labels):
        p = [mpmath.mpf(float(x)) for x in table[row]]
        y, others = p[label], [x for j, x in enumerate(p) if j != label]
        expected = {
            "loss": -mpmath.log(y),
            "confidence": y,
            "scaled_logit": mpmath.log(y) - mpmath.log(sum(others)),
            "entropy": -sum(x * mpmath.log(x) for x in p),
            "modified_entropy": -(1 - y) * mpmath.log(y) - sum(x * mpmath.log(1 - x) for x in others),
            "correctness": float(np.argmax(table[row]) == label),
        }
        for name, value in expected.items():
            assert signal(name, table, labels)[row] == pytest.approx(float(value), rel=1e-9, abs=1e-12)


def test_logit_does_not_cancel():
    """1 - p would be off by a tenth; the sum of the others is 1.2e-15."""
    p = 1.0 - 1.2e-15
    assert signal("scaled_logit", [[p, 1.2e-15]], [0])[0] == pytest.approx(-np.log(1.2e-15), rel=1e-9)
    assert signal("scaled_logit", [[p, 1.2e-15]], [1])[0] == pytest.approx(np.log(1.2e-15), rel=1e-9)


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("label", [0, 1, 2, -1])
def test_certain_predictions_are_finite(name, label):
    assert np.isfinite(signal(name, [[1.0, 0.0, 0.0]], [label])).all()


def test_certain_and_right_against_certain_and_wrong():
    right, wrong = signal("modified_entropy", [[1.0, 0.0], [1.0, 0.0]], [0, 1])
    assert right == 0.0
    assert wrong > 30
    assert signal("scaled_logit", [[1.0, 0.0], [1.0, 0.0]], [0, 1]).tolist() == pytest.approx([36.841361, -36.841361])


def test_log_probabilities_put_the_label_first():
    table = np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]])
    found = np.exp(log_probabilities(Predictions(table, np.array([0, 1]), np.arange(3))))
    assert found.tolist() == [pytest.approx([0.2, 0.5, 0.3]), pytest.approx([0.5, 0.3, 0.2])]


def test_renaming_classes_changes_nothing():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    plain = predict(LogisticRegression().fit(X, y), X, y)
    named = np.where(y == 1, "a benign", "z malign")
    turned = predict(LogisticRegression().fit(X, named), X, named)
    assert turned.classes.tolist() == ["a benign", "z malign"]
    for name, (_, compute) in SIGNALS.items():
        np.testing.assert_allclose(compute(plain), compute(turned), rtol=1e-2, atol=1e-4, err_msg=name)


def test_columns_without_names_are_0_1_2():
    assert predict(Fixed([[0.1, 0.9]]), [[0.0]], [1]).of_label.tolist() == [0.9]


def test_a_model_of_one_class():
    found = predict(Fixed(np.ones((2, 1)), np.array([5])), np.zeros((2, 1)), [5, 5])
    assert found.of_label.tolist() == [1.0, 1.0]
    assert np.isfinite(SIGNALS["modified_entropy"][1](found)).all()


def test_label_that_is_missing_has_no_probability():
    model = Fixed([[0.4, 0.6]] * 2, np.array([0, 1]))
    found = predict(model, [[0.0]] * 2, [7, 1], missing=True)
    assert (found.of_label[0], found.of_others[0]) == (0.0, 1.0)
    with pytest.raises(InputError, match=r"members must be labels that the model knows, got .*7.* in row 0"):
        predict(model, [[0.0]] * 2, [7, 1])
    with pytest.raises(InputError, match="labels that the model knows"):
        predict(model, [[0.0]] * 2, [7, 8], missing=True)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([[0.5, np.nan]], "finite probabilities.*row 0"),
        ([[0.5, np.inf]], "finite probabilities"),
        ([[0.5, 0.2]], "sum to 1"),
        ([[1.2, -0.2]], "sum to 1"),
        ([0.5, 0.5], "shape"),
        ([[0.5, 0.5], [0.5, 0.5]], "shape"),
        ([np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])], "several outputs"),
    ],
)
def test_bad_probabilities(table, words):
    with pytest.raises(InputError, match=words):
        predict(Fixed(table), [[0.0]], [0])


def test_bad_models_and_records():
    with pytest.raises(InputTypeError, match="predict_proba"):
        predict(object(), [[0.0]], [0])
    with pytest.raises(InputError, match="one class per column"):
        predict(Fixed([[0.5, 0.5]], np.arange(3)), [[0.0]], [0])
    with pytest.raises(InputError, match="one label each"):
        predict(Fixed([[0.5, 0.5]]), [[0.0]], [0, 1])
    with pytest.raises(InputError, match="one label each"):
        predict(Fixed(np.zeros((0, 2))), np.zeros((0, 1)), [])
    with pytest.raises(InputTypeError, match="numbers"):
        predict(Fixed([["a", "b"]]), [[0.0]], [0])
