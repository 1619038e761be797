"""Several estimates of one draw under one certificate: against enumeration, and against one estimate of all numbers."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import whosin as wi
from whosin.errors import InputError, InputTypeError
from whosin.mechanisms.secure import SeededSource
from whosin.protection import SumQuery

PEOPLE = np.random.default_rng(0).normal([40.0, 3.0], [12.0, 0.9], size=(40, 2))


def exact_eta(columns, scales):
    """½·TV between "x in" and "x out" of noisy numbers of one uniform half, the worst record, on a grid of outputs."""
    n = len(columns[0])
    halves = list(itertools.combinations(range(n), n // 2))
    laws = np.ones((len(halves), 1, 1))
    for place, (column, scale) in enumerate(zip(columns, scales, strict=True)):
        centres = np.array([column[list(half)].sum() for half in halves])
        edges = np.linspace(centres.min() - 7 * scale, centres.max() + 7 * scale, 161)
        cells = np.diff(ndtr((edges - centres[:, None]) / scale), axis=1)
        laws = laws * (cells[:, :, None] if place == 0 else cells[:, None, :])
    etas = []
    for x in range(n):
        inside = np.array([x in half for half in halves])
        etas.append(0.25 * np.abs(laws[inside].mean(axis=0) - laws[~inside].mean(axis=0)).sum())
    return max(etas)


@pytest.mark.parametrize("seed", range(5))
def test_two_sums_of_one_half_keep_the_promise(seed):
    """A mean and a sum of other numbers in one release; with the noise of each alone the promise is broken."""
    a, b = np.random.default_rng(seed).uniform(0.0, 1.0, (2, 6)) ** (1 + seed)
    queries = [SumQuery(lambda rows: rows[:, 0]), SumQuery(lambda rows: rows[:, 1], average=False)]
    records = np.column_stack([a, b])
    release = wi.protect(queries, records, eta=0.1, split="relative")
    scales = np.asarray(release.certificate.noise_scale)
    together = exact_eta([a / 3, b], scales)
    assert 0.04 < together <= 0.1
    alone = [float(wi.protect(query, records, eta=0.1).certificate.noise_scale) for query in queries]
    assert exact_eta([a / 3, b], alone) > together


def test_sums_are_one_sum_of_columns_side_by_side():
    several = wi.protect(["mean", SumQuery(lambda rows: rows**2)], PEOPLE, eta=0.05)
    one = wi.protect(SumQuery(lambda rows: np.hstack([rows, rows**2])), PEOPLE, eta=0.05)
    assert several.certificate.route == "average"
    assert several.certificate.noise_scale == pytest.approx(one.certificate.noise_scale, rel=1e-9)
    assert [each.shape for each in several.value] == [(2,), (2,)]
    assert several.certificate.estimator == "mean and mean of <lambda>"


def test_a_list_with_a_black_box_is_a_black_box():
    frame = pd.DataFrame(PEOPLE, columns=["age", "income"])
    named = {"middle": "median", "spread": "cov", "mean": "mean", "largest": lambda rows: float(rows["age"].max())}
    seed = {"eta": 0.2, "rng": 3, "testing_source": SeededSource(5), "subsets": 64, "keep_training": True}
    release = wi.protect(named, frame, **seed)
    assert list(release.value) == list(named)
    assert release.value["spread"].shape == (2, 2)
    assert isinstance(release.value["largest"], float)
    assert release.certificate.route in ("moment", "ball")
    assert release.certificate.estimator == "middle and spread and mean and largest"
    assert np.shape(release.certificate.noise_scale) == (2 + 3 + 2 + 1,)

    def everything(rows):
        matrix = rows.to_numpy()
        spread = np.cov(matrix, rowvar=False)[np.triu_indices(2)]
        return np.concatenate([np.median(matrix, axis=0), spread, matrix.mean(axis=0), [rows["age"].max()]])

    one = wi.protect(everything, frame, **{**seed, "testing_source": SeededSource(5)})
    assert release.certificate.noise_scale == pytest.approx(one.certificate.noise_scale, rel=1e-9)
    assert (release.training == one.training).all()
    got = [release.value["middle"], release.value["spread"][np.triu_indices(2)], release.value["mean"]]
    assert np.concatenate([*got, [release.value["largest"]]]) == pytest.approx(one.value, rel=1e-9)
    assert json.loads(json.dumps(release.to_dict()))["value"]["middle"] == release.value["middle"].tolist()


def test_a_model_among_others_comes_back_as_a_model():
    from sklearn.linear_model import LinearRegression

    def ratio(x, y):
        return np.array([y.mean() / x.mean()])

    records = (PEOPLE[:, :1], PEOPLE[:, 1])
    release = wi.protect([LinearRegression(), ratio], records, eta=0.2, subsets=64, rng=0)
    model, found = release.value
    assert model.predict(records[0]).shape == (40,)
    assert found.shape == (1,)
    assert np.shape(release.certificate.noise_scale) == (3,)


@pytest.mark.parametrize(
    ("estimator", "error", "says"),
    [
        ([], InputError, "at least one"),
        (["mean", "mode"], InputError, "mode"),
        (["median", 3], InputTypeError, "3"),
        (["median", lambda rows: "x"], InputError, "array of numbers"),
        (["median", lambda rows: rows[: len(rows) // 3]], InputError, "shape"),
        (["median", lambda rows: 1 / 0], InputError, "whole pool"),
    ],
)
def test_bad_lists_of_estimators(estimator, error, says):
    with pytest.raises(error, match=says):
        wi.protect(estimator, PEOPLE, eta=0.2, subsets=64, rng=0)
