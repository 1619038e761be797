"""Linear models: noisy coefficients in a fresh clone that knows nothing else about the draw."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from whosin.errors import InputError, InputTypeError
from whosin.mechanisms.secure import SeededSource
from whosin.protection import protect

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
NUMBER = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.standard_normal(60) + 4.0
CLASS = np.where(NUMBER > 4.0, "yes", "no")
THREE = np.digitize(NUMBER, [3.0, 5.0])

ALLOWED = {"coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_"}


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (LinearRegression(), NUMBER),
        (LinearRegression(fit_intercept=False), NUMBER),
        (Ridge(alpha=0.1), NUMBER),
        (Lasso(alpha=0.01), NUMBER),
        (LogisticRegression(), CLASS),
        (LogisticRegression(), THREE),
        (LinearSVC(), CLASS),
        (SGDClassifier(), CLASS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_comes_back_with_noisy_coefficients_and_nothing_else(model, target):
    release = protect(model, (X, target), eta=0.2, subsets=40, rng=0)
    fitted = release.value
    assert type(fitted) is type(model)
    assert fitted.get_params() == model.get_params()
    plain = type(model)(**model.get_params()).fit(X, target)
    assert fitted.coef_.shape == plain.coef_.shape
    assert np.shape(fitted.intercept_) == np.shape(plain.intercept_)
    assert set(fitted.predict(X)) <= set(target) if hasattr(plain, "classes_") else fitted.predict(X).shape == (60,)
    assert {name for name in vars(fitted) if name.endswith("_")} <= ALLOWED
    assert release.to_dict()["value"]["model"] == type(model).__name__
    assert not hasattr(model, "coef_")


def test_little_noise_gives_the_fit_on_the_draw():
    release = protect(
        LinearRegression(),
        (X, NUMBER),
        eta=0.2,
        adjacent_bound=1e-9,
        testing_source=SeededSource(1),
        keep_training=True,
    )
    fitted = LinearRegression().fit(X[release.training], NUMBER[release.training])
    assert release.value.coef_ == pytest.approx(fitted.coef_, abs=1e-6)
    assert release.value.intercept_ == pytest.approx(fitted.intercept_, abs=1e-6)


def test_no_intercept_gets_no_noise():
    fitted = protect(LinearRegression(fit_intercept=False), (X, NUMBER), eta=0.2, subsets=40, rng=0).value
    assert fitted.intercept_ == 0.0


def test_frames_keep_their_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = protect(Ridge(), (frame, pd.Series(NUMBER)), eta=0.2, subsets=40, rng=0).value
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert fitted.predict(frame).shape == (60,)


def test_random_models_are_seeded_by_the_draws():
    with parallel_config(backend="threading"):
        one, two = (
            protect(SGDClassifier(), (X, CLASS), eta=0.2, subsets=40, rng=7, n_jobs=jobs).certificate.noise_scale
            for jobs in (1, 2)
        )
    assert np.array_equal(one, two)


def test_a_class_that_is_missing_in_a_subset():
    rare = np.array(["a"] * 59 + ["b"])
    with pytest.raises(InputError, match=r"failed on \d+ of 16 pilot subsets"):
        protect(LogisticRegression(), (X, rare), eta=0.2, subsets=40, rng=0)


def test_three_classes_of_which_one_is_missing():
    rare = np.array(["a"] * 30 + ["b"] * 29 + ["c"])
    with pytest.raises(InputError, match=r"the subset has classes \[.*\], the pool"):
        protect(LogisticRegression(), (X, rare), eta=0.2, subsets=40, rng=0)


class Odd(BaseEstimator):
    """Has coefficients, and predicts with something else."""

    def fit(self, x, y):
        self.coef_ = x.T @ y
        self.memory_ = x
        return self

    def predict(self, x):
        if not hasattr(self, "memory_"):
            raise NotFittedError("no memory")
        return x @ self.coef_


@pytest.mark.parametrize(
    ("model", "records", "message"),
    [
        (make_pipeline(StandardScaler(), LinearRegression()), (X, NUMBER), "coefficients are all that it learns"),
        (DecisionTreeRegressor(), (X, NUMBER), "a scikit-learn model with coef_"),
        (KMeans(2), X, "a scikit-learn model with coef_"),
        (PoissonRegressor(), (X, np.abs(NUMBER)), "predicts from coef_ and intercept_ alone"),
        (RidgeClassifier(), (X, THREE), "predicts from coef_ and intercept_ alone"),
        (Odd(), (X, NUMBER), "predicts from coef_ and intercept_ alone"),
    ],
    ids=["pipeline", "tree", "clusters", "poisson", "ridge classifier", "odd"],
)
def test_models_that_learn_more_are_refused(model, records, message):
    with pytest.raises(InputTypeError, match=message):
        protect(model, records, eta=0.2)


def test_a_model_that_fails_on_the_pool():
    with pytest.raises(InputError, match="estimator failed on the whole pool: ValueError"):
        protect(LinearRegression(), (np.full((10, 2), np.nan), np.zeros(10)), eta=0.2)


def test_a_model_without_target():
    with pytest.raises(InputError, match="estimator failed on the whole pool: TypeError"):
        protect(LinearRegression(), X, eta=0.2)
