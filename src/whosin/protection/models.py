"""Linear scikit-learn models: trained on subsets, released as a model with noisy coefficients.

A fitted model carries more than its coefficients: singular values, numbers of iterations, paths of regularisation. All
of that depends on who was drawn and none of it has noise. So the released model is a fresh clone that is given noisy
``coef_`` and ``intercept_``, and otherwise only what the pool as a whole says: the number and names of features, and
the classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError
from whosin.protection.estimators import BlackBox
from whosin.protection.pool import Pool


class Model(BlackBox):
    """A scikit-learn estimator with ``coef_`` (and ``intercept_``), as a black box.

    The records are X, or the tuple (X, y) or (X, y, sample_weight). One fit on the whole pool settles the shapes and
    the classes: that tells nothing about who is drawn.
    """

    def __init__(self, estimator: Any, pool: Pool) -> None:
        from sklearn.base import clone

        if len(pool.parts) > 3:
            raise InputError(
                f"records must be X, (X, y) or (X, y, sample_weight) for a model, got {len(pool.parts)} parts"
            )
        self.name = type(estimator).__name__
        self.template = clone(estimator)
        if hasattr(estimator, "steps") or hasattr(estimator, "named_transformers_"):
            raise InputTypeError(
                f"estimator must be a model whose coefficients are all that it learns, got {self.name}: pass a "
                "function that returns every learned number, or transform the records beforehand without looking at "
                "them"
            )
        try:
            whole = self._fit(pool.parts, np.random.default_rng(0))
        except Exception as error:
            raise InputError(f"estimator failed on the whole pool: {type(error).__name__}: {error}") from error
        self.classes = getattr(whole, "classes_", None)
        self.shared = {
            name: getattr(whole, name) for name in ("n_features_in_", "feature_names_in_") if hasattr(whole, name)
        }
        self.shape = self._coefficients(whole).shape
        intercept = self._intercept(whole)
        self.intercept_shape = None if intercept is None else intercept.shape
        self._check_rebuilt(self._learned(whole), pool)

    def train(self, parts: tuple[Any, ...], rng: np.random.Generator) -> Array:
        """Return coefficients and intercepts of a fit on these rows, in one vector."""
        model = self._fit(parts, rng)
        if self.classes is not None and not np.array_equal(model.classes_, self.classes):
            raise InputError(f"the subset has classes {list(model.classes_)}, the pool {list(self.classes)}")
        return self._learned(model)

    def rebuild(self, value: Array) -> Any:
        """Return a fresh clone that holds these coefficients and nothing else that was learned from the draw."""
        from sklearn.base import clone

        model = clone(self.template)
        for name, shared in self.shared.items():
            setattr(model, name, shared)
        if self.classes is not None:
            model.classes_ = self.classes
        size = int(np.prod(self.shape))
        model.coef_ = value[:size].reshape(self.shape)
        model.intercept_ = 0.0 if self.intercept_shape is None else value[size:].reshape(self.intercept_shape)[()]
        return model

    def _learned(self, model: Any) -> Array:
        learned = [self._coefficients(model).ravel()]
        intercept = self._intercept(model)
        if intercept is not None:
            learned.append(intercept.ravel())
        return np.concatenate(learned)

    def _fit(self, parts: tuple[Any, ...], rng: np.random.Generator) -> Any:
        from sklearn.base import clone

        model = clone(self.template)
        settings = model.get_params(deep=False)
        if "random_state" in settings and settings["random_state"] is None:
            model.set_params(random_state=int(rng.integers(2**31)))
        weights = {"sample_weight": parts[2]} if len(parts) == 3 else {}
        return model.fit(*parts[:2], **weights)

    def _coefficients(self, model: Any) -> Array:
        if not hasattr(model, "coef_"):
            raise InputTypeError(
                f"estimator must be a scikit-learn model with coef_, got {self.name}: pass a function that returns its "
                "parameters"
            )
        return np.asarray(model.coef_, dtype=np.float64)

    def _intercept(self, model: Any) -> Array | None:
        """The intercept, None where the model is told to have none."""
        if not hasattr(model, "intercept_") or getattr(self.template, "fit_intercept", True) is False:
            return None
        return np.asarray(model.intercept_, dtype=np.float64)

    def _check_rebuilt(self, learned: Array, pool: Pool) -> None:
        """Refuse a model that cannot predict from its coefficients alone."""
        try:
            self.rebuild(learned).predict(pool.take(np.arange(1))[0])
        except Exception as error:
            raise InputTypeError(
                f"estimator must be a model that predicts from coef_ and intercept_ alone, got {self.name} ({error}): "
                "pass a function that returns its parameters"
            ) from error
