"""The Gaussian copula: laws of the columns, what they share, gaps, kinds of frames, bad input."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from whosin.errors import InputError, InputTypeError
from whosin.training import GaussianCopula


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=4000)
    income = np.exp(z[:, 0])
    job = np.where(z[:, 1] > 1.0, "C pilot", np.where(z[:, 1] > -0.5, "B clerk", "A cook"))
    return pl.DataFrame(
        {
            "income": [None if i % 10 == 0 else value for i, value in enumerate(income.tolist())],
            "age": rng.integers(18, 90, 4000),
            "job": [None if i % 7 == 0 else value for i, value in enumerate(job.tolist())],
            "alone": rng.random(4000) < 0.3,
            "country": ["here"] * 4000,
        }
    )


def test_the_columns_keep_their_laws_and_what_they_share(people):
    made = GaussianCopula().fit(people).sample(4000, rng=1)
    assert made.schema == people.schema
    assert made["income"].null_count() == pytest.approx(400, abs=5 * 20)
    assert made["job"].null_count() == pytest.approx(4000 / 7, abs=5 * 23)
    assert made["income"].median() == pytest.approx(people["income"].median(), rel=0.1)
    assert made["alone"].mean() == pytest.approx(people["alone"].mean(), abs=0.04)
    assert set(made["country"]) == {"here"}
    for frame in (people, made):
        means = frame.group_by("job").agg(pl.col("income").median())
        found = dict(means.iter_rows())
        assert found["C pilot"] > 1.25 * found["B clerk"]
    shares = [frame["job"].value_counts(normalize=True).sort("job")["proportion"] for frame in (people, made)]
    assert np.abs(shares[0].to_numpy() - shares[1].to_numpy()).max() < 0.03


def test_normal_columns_keep_their_correlation():
    rng = np.random.default_rng(3)
    rows = rng.multivariate_normal([0, 1], [[1, -0.6], [-0.6, 1]], size=5000)
    made = GaussianCopula().fit(rows).sample(5000, rng=4)
    assert made.dtype == np.float64
    assert np.corrcoef(made.T)[0, 1] == pytest.approx(-0.6, abs=0.04)
    assert len(np.intersect1d(made[:, 0], rows[:, 0])) <= 2 * 50


def test_whole_numbers_stay_whole_and_within_their_range():
    table = pl.DataFrame({"number": np.random.default_rng(0).integers(-1000, 1000, 3000)})
    made = GaussianCopula(knots=20).fit(table).sample(3000, 0)["number"]
    assert made.dtype == pl.Int64
    assert table["number"].min() <= made.min() <= made.max() <= table["number"].max()


def test_few_values_are_kept_as_they_are():
    table = pl.DataFrame({"number": [0.5, 2.5, 2.5, 9.0]})
    made = GaussianCopula().fit(table).sample(4000, 0)["number"]
    assert made.value_counts().sort("number")["count"].to_numpy() / 4000 == pytest.approx([0.25, 0.5, 0.25], abs=0.04)


def test_the_frame_comes_back_as_the_kind_that_went_in_and_from_the_seed():
    frame = pd.DataFrame({"a": [1.0, 2.0, None, 4.0], "b": ["x", None, "y", "x"], "c": [True, False, True, True]})
    model = GaussianCopula().fit(frame)
    first, again = model.sample(50, 3), model.sample(50, 3)
    assert isinstance(first, pd.DataFrame)
    assert list(first.columns) == ["a", "b", "c"]
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(model.sample(50, 4))


def test_columns_that_say_the_same_and_gaps_alone_are_no_trouble():
    frame = pl.DataFrame({"a": [1, 2, 3, 4], "b": [1, 2, 3, 4], "gaps": [None] * 4})
    made = GaussianCopula().fit(frame).sample(20, 0)
    assert made["a"].to_list() == made["b"].to_list()
    assert made["gaps"].null_count() == 20


def test_pandas_columns_that_have_gaps_of_their_own_are_read():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, 2, None] * 40, dtype="Int64"),
            "many": pd.array([*range(119), None], dtype="Int64"),
            "true": pd.array([True, None, False] * 40, dtype="boolean"),
            "word": pd.array(["a", None, "b"] * 40, dtype="string"),
        }
    )
    made = GaussianCopula().fit(frame).sample(300, 0)
    for name in ("whole", "true", "word"):
        assert made[name].isna().mean() == pytest.approx(1 / 3, abs=0.15)
        assert set(made[name].dropna()) == set(frame[name].dropna())


def test_columns_keep_their_kinds():
    frame = pl.DataFrame(
        {
            "small": pl.Series(range(300), dtype=pl.Int16),
            "large": pl.Series([2**64 - 1 - i for i in range(300)], dtype=pl.UInt64),
            "single": pl.Series(np.linspace(0, 1, 300), dtype=pl.Float32),
            "category": pl.Series(["x", None, "y"] * 100, dtype=pl.Categorical),
            "choice": pl.Series(["a", "b", "a"] * 100, dtype=pl.Enum(["b", "a"])),
            "gaps": pl.Series([None] * 300, dtype=pl.String),
        }
    )
    made = GaussianCopula().fit(frame).sample(200, 0)
    assert made.schema == frame.schema
    assert made["large"].max() <= frame["large"].max()
    assert GaussianCopula().fit(frame.to_pandas()[["small", "single", "category"]]).sample(5, 0).dtypes.tolist() == [
        np.dtype("int16"),
        np.dtype("float32"),
        "category",
    ]


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (pl.DataFrame({"a": [1]}), InputError, "at least 2 rows and 1 column, got 1 and 1"),
        (pl.DataFrame(), InputError, "at least 2 rows and 1 column, got 0 and 0"),
        (pl.DataFrame({"a": [1.0, np.inf]}), InputError, "infinity in column 'a'"),
        (pl.DataFrame({"a": [datetime.date(2020, 1, 1)] * 2}), InputTypeError, "got date in column 'a'"),
        (pd.DataFrame({"a": [1, "x"]}), InputTypeError, "text and numbers in column 'a'"),
        (np.array([[1.0, np.nan], [1.0, 2.0]]), InputError, "NaN or infinity"),
        (np.arange(3.0), InputTypeError, "a data frame or a matrix"),
        ("table.csv", InputTypeError, "got str"),
    ],
)
def test_bad_tables_are_named(table, error, message):
    with pytest.raises(error, match=message):
        GaussianCopula().fit(table)


def test_other_bad_arguments_are_named():
    with pytest.raises(InputError, match="not trained yet"):
        GaussianCopula().sample(3)
    with pytest.raises(InputError, match="knots must be"):
        GaussianCopula(knots=1)
    with pytest.raises(InputError, match="n must be"):
        GaussianCopula().fit(np.eye(3)).sample(0)
