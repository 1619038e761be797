"""What can be trained again and again: an adapter makes a model out of records, labels and a generator."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np

from whosin.errors import InputTypeError

__all__ = ["Adapter", "SklearnAdapter", "as_adapter", "row_count", "take"]


@runtime_checkable
class Adapter(Protocol):
    """Anything that trains classifiers.

    ``fit`` returns a model with ``predict_proba(X)``, and with ``classes_`` unless its labels are 0, 1, …; it may
    return itself, and all its chance comes from ``rng``. An adapter is copied before each training and pickled for work
    in parallel.
    """

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Any:
        """Train on these records; return the model."""


class SklearnAdapter:
    """A scikit-learn classifier or pipeline: a fresh clone a training, every ``random_state`` drawn from ``rng``."""

    def __init__(self, estimator: Any) -> None:
        if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
            raise InputTypeError(
                "estimator must be a scikit-learn classifier, or an adapter with fit(X, y, rng) (a torch module in a "
                f"TorchAdapter), got {type(estimator).__name__}"
            )
        self.estimator = estimator

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Any:
        """Return a trained clone."""
        from sklearn.base import clone

        fresh = clone(self.estimator)
        names = sorted(name for name in fresh.get_params() if name.split("__")[-1] == "random_state")
        fresh.set_params(**{name: int(rng.integers(2**31)) for name in names})
        return fresh.fit(X, y)


def as_adapter(estimator: Any) -> Adapter:
    """Return an adapter as it is, and an estimator of scikit-learn wrapped."""
    fit = getattr(estimator, "fit", None)
    if not inspect.isclass(estimator) and callable(fit) and "rng" in inspect.signature(fit).parameters:
        adapter: Adapter = estimator
        return adapter
    return SklearnAdapter(estimator)


def row_count(X: Any) -> int:
    """Return the number of records of an array, a sparse matrix, a frame or a list."""
    shape = getattr(X, "shape", None)
    try:
        return int(shape[0]) if shape else len(X)
    except TypeError:
        raise InputTypeError(f"X must be records, one row each, got {type(X).__name__}") from None


def take(X: Any, rows: Any) -> Any:
    """Return some records, in the type of ``X``; lists become arrays."""
    places = np.flatnonzero(rows) if np.asarray(rows).dtype == np.bool_ else np.asarray(rows)
    if hasattr(X, "iloc"):
        return X.iloc[places]
    return X[places] if hasattr(X, "shape") else np.asarray(X)[places]
