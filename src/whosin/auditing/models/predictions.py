"""What a classifier predicts about labelled records, checked, and the numbers that attacks read off it.

Probabilities of 0 and 1 are real answers (of trees, of neighbours, of sure networks). Logarithms are taken of the
larger of the probability and 1e-16, below which 1 - p cannot be told from 1, so that all classes are treated alike.
That of 1 - p is taken of the sum of the other probabilities: nothing cancels.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError, WhosinError, short_repr
from whosin.training.adapters import row_count

FLOOR = 1e-16
"""Smallest probability whose logarithm is taken: scaled logits lie within ±36.9."""
SMALLEST, LARGEST = 1e-300, 1e300


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of the classes (N, k), and the column of each record's label; -1 if the model has no such class."""

    probabilities: Array
    label: NDArray[np.int64]
    classes: NDArray[Any]

    @property
    def of_label(self) -> Array:
        """Probability of each record's own label."""
        rows = np.arange(len(self.label))
        return np.where(self.label >= 0, self.probabilities[rows, self.label], 0.0)

    @property
    def of_others(self) -> Array:
        """Probability of all other labels, summed up rather than taken from 1."""
        others = self.probabilities.copy()
        known = np.flatnonzero(self.label >= 0)
        others[known, self.label[known]] = 0.0
        return np.asarray(np.minimum(others.sum(axis=1), 1.0))


def predict(model: Any, X: Any, y: Any, name: str = "members", *, missing: bool = False) -> Predictions:
    """Ask a classifier about labelled records.

    It is asked for probabilities; if it has none, for margins (``decision_function``, or those of a native Booster of
    XGBoost or LightGBM), whose softmax is taken; if it has none either, for labels, which get probability 1.

    ``missing`` allows some labels that the model does not know (it gives them no probability), as for a training half
    that lacks a rare class.
    """
    labels = _labels(X, y, name)
    if callable(getattr(model, "predict_proba", None)):
        table = _table(_asked(model.predict_proba, X, name), len(labels))
    elif booster(model) or callable(getattr(model, "decision_function", None)):
        ask = booster(model) or model.decision_function
        table = _from_margins(_asked(ask, X, name), len(labels), _of_pairs(model))
    else:
        return _from_labels(np.asarray(_asked(_need(model), X, name)), labels)
    classes = np.asarray(getattr(model, "classes_", np.arange(table.shape[1])))
    if classes.shape != (table.shape[1],):
        raise InputError(
            f"model must have one class per column: it gives {table.shape[1]}, and classes_ has shape {classes.shape}"
        )
    places = {value: column for column, value in enumerate(classes.tolist())}
    columns = np.array([places.get(value, -1) for value in labels.tolist()], dtype=np.int64)
    if (columns < 0).any() and not (missing and (columns >= 0).any()):
        row = int(np.flatnonzero(columns < 0)[0])
        raise InputError(
            f"{name} must be labels that the model knows, got {labels[row : row + 1].tolist()[0]!r} in row {row}; "
            f"it knows {short_repr(classes.tolist())}"
        )
    return Predictions(table, columns, classes)


def residuals(model: Any, X: Any, y: Any, name: str = "members") -> Array:
    """Ask a regressor: how far each prediction is from the true value."""
    values = _labels(X, y, name)
    found = np.asarray(_asked(booster(model, margins=False) or _need(model), X, name))
    if found.size != len(values) or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise InputError(f"model must predict a finite number per record, got {found.dtype} of shape {found.shape}")
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InputError(f"{name} must have finite numbers as values of a regressor, got {short_repr(y)}")
    return np.asarray(found.reshape(-1) - values, dtype=np.float64)


def regresses(model: Any, y: Any) -> bool:
    """Whether a model predicts numbers rather than labels.

    A native Booster and an estimator of scikit-learn say so; of other models, those that only have ``predict`` do if
    the true values are fractions.
    """
    if booster(model):
        return not _objective(model).startswith(("binary", "multi", "cross_entropy", "xentropy"))
    if hasattr(model, "__sklearn_tags__"):
        from sklearn.base import is_regressor

        return bool(is_regressor(model))
    if hasattr(model, "_estimator_type"):
        return bool(model._estimator_type == "regressor")
    plain = not any(hasattr(model, name) for name in ("predict_proba", "decision_function", "classes_"))
    values = np.asarray(y)
    return plain and values.dtype.kind == "f" and bool(np.any(values != np.floor(values)))


def gives_labels_only(model: Any) -> bool:
    """Whether a classifier gives neither probabilities nor margins."""
    return not (booster(model) or any(hasattr(model, name) for name in ("predict_proba", "decision_function")))


def booster(model: Any, *, margins: bool = True) -> Callable[[Any], Any] | None:
    """Return what gives the margins, or the values, of a native Booster of XGBoost or LightGBM; None for others."""
    if type(model).__name__ != "Booster":
        return None
    if type(model).__module__.startswith("xgboost"):
        matrix = sys.modules["xgboost"].DMatrix
        return lambda X: model.predict(
            X if isinstance(X, matrix) else matrix(X, enable_categorical=True), output_margin=margins
        )
    return lambda X: model.predict(X, raw_score=margins)


def _objective(model: Any) -> str:
    if type(model).__module__.startswith("xgboost"):
        return str(json.loads(model.save_config())["learner"]["objective"]["name"])
    return str(model.dump_model(num_iteration=1)["objective"])


def _labels(X: Any, y: Any, name: str) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != row_count(X) or labels.size == 0:
        raise InputError(
            f"{name} must hold records and one label each, got {row_count(X)} and labels of shape {labels.shape}"
        )
    return labels


def _need(model: Any) -> Callable[[Any], Any]:
    method = getattr(model, "predict", None)
    if not callable(method):
        raise InputTypeError(
            "model must be an object with predict_proba, decision_function or predict (a torch module in a "
            f"TorchModel), got {type(model).__name__}"
        )
    found: Callable[[Any], Any] = method
    return found


def _asked(method: Callable[[Any], Any], X: Any, name: str) -> Any:
    """Return what the model says; an error of its own names the records that it was asked about."""
    try:
        return method(X)
    except (WhosinError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"model must predict the records of {name}, got from it {type(error).__name__}: {error}"
        ) from error


def _of_pairs(model: Any) -> int:
    """Return how many classes there are if margins are those of pairs of them, as of an SVC that says "ovo"; else 0."""
    model = getattr(model, "best_estimator_", model)
    last = getattr(model, "steps", [("", model)])[-1][1]
    return len(last.classes_) if getattr(last, "decision_function_shape", "") == "ovo" else 0


def _from_margins(given: Any, rows: int, of_pairs: int = 0) -> Array:
    margins = np.asarray(given, dtype=np.float64)
    if margins.ndim not in (1, 2) or len(margins) != rows or not np.isfinite(margins).all():
        raise InputError(f"model must give {rows} rows of finite margins, got shape {margins.shape}")
    if margins.ndim == 1 or margins.shape[1] == 1:
        margins = np.column_stack([np.zeros(rows), margins])
    elif of_pairs:
        first, second = np.triu_indices(of_pairs, 1)
        margins = margins @ (np.eye(of_pairs)[first] - np.eye(of_pairs)[second])
    weights = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _from_labels(found: NDArray[Any], labels: NDArray[Any]) -> Predictions:
    if found.shape != labels.shape:
        raise InputError(f"model must predict one label per record, got shape {found.shape} for {len(labels)} records")
    if len({any(isinstance(label, str) for label in side.tolist()) for side in (found, labels)}) > 1:
        raise InputError(f"model must predict labels like {labels.tolist()[0]!r}, got {found.tolist()[0]!r}")
    right = np.array([said == true for said, true in zip(found.tolist(), labels.tolist(), strict=True)], dtype=bool)
    table = np.column_stack([right, ~right]).astype(np.float64)
    return Predictions(table, np.zeros(len(labels), dtype=np.int64), np.array(["the label", "another"]))


def _table(given: Any, rows: int) -> Array:
    if isinstance(given, list) and given and np.ndim(given[0]) == 2:
        raise InputError("model must give one label per record, got predict_proba of a model with several outputs")
    try:
        table = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"model must have predict_proba that returns numbers, got {type(given).__name__}"
        ) from None
    if table.ndim != 2 or len(table) != rows or table.shape[1] == 0:
        raise InputError(f"model must have predict_proba of shape ({rows}, classes), got shape {table.shape}")
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise InputError(
            f"model must give finite probabilities, got {table[bad][0].tolist()} for row {int(bad.argmax())}"
        )
    bad = (table < -1e-6).any(axis=1) | (np.abs(table.sum(axis=1) - 1.0) > 1e-3)
    if bad.any():
        raise InputError(
            f"model must give probabilities that sum to 1, got {table[bad][0].tolist()} for row {int(bad.argmax())}"
        )
    return np.clip(table, 0.0, 1.0)


def _log(probabilities: Array) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, FLOOR)))


def loss(p: Predictions) -> Array:
    """Cross-entropy, -ln p_y (Yeom et al. 2018)."""
    return -_log(p.of_label)


def scaled_logit(p: Predictions) -> Array:
    """ln p_y - ln Σ_{j≠y} p_j, which is close to normal over trainings (Carlini et al. 2022)."""
    return _log(p.of_label) - _log(p.of_others)


def entropy(p: Predictions) -> Array:
    """-Σ p_j ln p_j; it needs no label."""
    return np.asarray(-np.sum(p.probabilities * _log(p.probabilities), axis=1))


def modified_entropy(p: Predictions) -> Array:
    """-(1-p_y) ln p_y - Σ_{j≠y} p_j ln(1-p_j) (Song and Mittal 2021): 0 if sure and right, large if sure and wrong."""
    table = p.probabilities
    rest = np.empty_like(table)
    for column in range(table.shape[1]):
        rest[:, column] = np.delete(table, column, axis=1).sum(axis=1)
    terms = table * _log(np.minimum(rest, 1.0))
    known = np.flatnonzero(p.label >= 0)
    terms[known, p.label[known]] = 0.0
    return np.asarray(-p.of_others * _log(p.of_label) - terms.sum(axis=1))


def correctness(p: Predictions) -> Array:
    """1 where the most probable class is the label."""
    return np.asarray(p.probabilities.argmax(axis=1) == p.label, dtype=np.float64)


def log_probabilities(p: Predictions) -> Array:
    """Log probabilities (N, k): of the label first, then of the other classes from the likeliest on.

    Sorting makes the columns mean the same for every label (Salem et al. 2019).
    """
    others = p.probabilities.copy()
    known = np.flatnonzero(p.label >= 0)
    others[known, p.label[known]] = -1.0
    ranked = -np.sort(-others, axis=1)[:, : others.shape[1] - 1]
    return _log(np.column_stack([p.of_label, ranked]))


SIGNALS: Mapping[str, tuple[str, Callable[[Predictions], Array]]] = {
    "loss": ("cross-entropy of the label", loss),
    "confidence": ("probability of the label", lambda p: p.of_label),
    "scaled_logit": ("log odds of the label", scaled_logit),
    "entropy": ("entropy of the prediction", entropy),
    "modified_entropy": ("entropy that knows the label", modified_entropy),
    "correctness": ("whether the label is predicted", correctness),
}


RESIDUALS: Mapping[str, tuple[str, Callable[[Array], Array]]] = {
    "loss": ("squared residual", lambda r: np.minimum(r**2, LARGEST)),
    "residual": ("residual, with its sign", lambda r: r),
}
"""The same for regressors."""


def reference_score(model: Any, X: Any, y: Any) -> Array:
    """Return what reference models are asked: scaled logits of a classifier, minus log residuals of a regressor.

    Residuals are in units of the spread of ``y``, and those below 1e-4 of it count as equal.
    """
    if not regresses(model, y):
        return scaled_logit(predict(model, X, y, "X, y", missing=True))
    far = np.abs(residuals(model, X, y, "X, y"))
    return np.asarray(-np.log(far / max(float(np.std(y)), SMALLEST) + 1e-4))
