"""What can be trained again and again: an adapter makes a model out of records, labels and a generator."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np

from whosin.errors import InputTypeError, short_repr


@runtime_checkable
class Adapter(Protocol):
    """Anything that trains models.

    ``fit`` returns a model with ``predict_proba(X)``, and with ``classes_`` unless its labels are 0, 1, …; or whatever
    the query of the reference models asks. It may return itself, and all its chance comes from ``rng``. Where weights
    are given it gets them as ``sample_weight``. An adapter is copied before each training and pickled for work in
    parallel.

    Examples
    --------
    A model that remembers whom it saw, as an adapter of one's own:

    >>> import numpy as np, whosin as wi
    >>> class Memory:
    ...     def fit(self, X, y, rng):
    ...         self.seen = {tuple(row) for row in X}
    ...         return self
    ...     def predict_proba(self, X):
    ...         sure = np.array([tuple(row) in self.seen for row in X])
    ...         return np.column_stack([1 - 0.9 * sure, 0.9 * sure])
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> references = wi.ReferenceModels.train(Memory(), X, np.ones(50, dtype=int), models=4, rng=0)
    >>> found = references.scores[:, 0] > 0
    >>> bool((found == references.included).all())
    True
    """

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> Any:
        """Train on these records; return the model."""


class SklearnAdapter:
    """An estimator or pipeline like scikit-learn's: a fresh clone per training, ``random_state`` drawn from ``rng``.

    Models of XGBoost take labels 0, 1, … without gaps. They are given such numbers, and answer by the labels that stand
    for them: text, and classes that a part of the records lacks, need no preparation.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``get_params``; it stays untouched.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from whosin.auditing.models import SklearnAdapter
    >>> model = SklearnAdapter(LogisticRegression()).fit([[0.0], [1.0]], ["no", "yes"], np.random.default_rng(0))
    >>> model.predict([[5.0]]).tolist()
    ['yes']
    """

    def __init__(self, estimator: Any) -> None:
        if inspect.isclass(estimator) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
            raise InputTypeError(
                "estimator must be an estimator like scikit-learn's, or an adapter with fit(X, y, rng) (a torch module "
                f"in a TorchAdapter), got {short_repr(estimator)}"
            )
        self.estimator = estimator

    def fit(self, X: Any, y: Any, rng: np.random.Generator, sample_weight: Any = None) -> Any:
        """Return a trained clone."""
        from sklearn.base import clone, is_classifier

        fresh = clone(self.estimator)
        names = sorted(name for name in fresh.get_params() if name.split("__")[-1] == "random_state")
        fresh.set_params(**{name: int(rng.integers(2**31)) for name in names})
        steps = getattr(fresh, "steps", None)
        last = steps[-1][1] if steps else fresh
        weights = {}
        if sample_weight is not None:
            weights[f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"] = sample_weight
        if not (type(last).__module__.startswith("xgboost") and is_classifier(last)):
            return fresh.fit(X, y, **weights)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        return _Recoded(fresh.fit(X, codes.reshape(-1), **weights), classes)


class _Recoded:
    """A classifier that was trained on the numbers of its classes."""

    def __init__(self, model: Any, classes: Any) -> None:
        self.model, self.classes_ = model, classes

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class."""
        return self.model.predict_proba(X)


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
