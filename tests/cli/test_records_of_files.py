"""population, protect and deletions on files as people have them."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from whosin.cli.app import app


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"age": rng.integers(20, 90, 60), "sex": rng.integers(0, 2, 60)})
    frame = frame.with_columns(pay=pl.col("age") * 10.5 + 3)
    frame = frame.with_columns(pay=pl.when(pl.int_range(60) < 2).then(None).otherwise(pl.col("pay")))
    frame.write_csv(tmp_path / "people.csv", separator=";", decimal_comma=True, null_value="?")
    return tmp_path / "people.csv"


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


GAUSSIAN = ("--epsilon", 1, "--delta", 1e-5, "--columns", "age", "--json")


def test_gaps_and_clips_are_said(people):
    refused = run("population", "gaussian", people, "--clip", 50, *GAUSSIAN[:4], "--columns", "pay")
    assert refused.exit_code == 2
    assert "people.csv line 2 column 'pay' must be a number, got a missing cell" in refused.stderr
    dropped = run("population", "gaussian", people, "--clip", 50, *GAUSSIAN[:4], "--columns", "pay", "--gaps", "drop")
    assert "2 rows with missing cells were dropped" in dropped.stdout
    found = json.loads(run("population", "gaussian", people, "--clip", 50, *GAUSSIAN).stdout)
    ages = pl.read_csv(people, separator=";")["age"].to_numpy()
    assert found["clipped"] == (ages > 50).sum()
    assert found["clipped_share_of_sum"] == pytest.approx(np.maximum(ages - 50, 0).sum() / ages.sum())


def test_a_clip_comes_from_a_public_range_or_from_the_user(people):
    neither = run("population", "gaussian", people, *GAUSSIAN)
    assert (neither.exit_code, "known without the data" in neither.stderr) == (2, True)
    found = json.loads(run("population", "gaussian", people, "--range", "0,120", *GAUSSIAN).stdout)
    assert found["clip"] == pytest.approx(120)
    assert found["clip"] >= 120
    assert found["clipped"] == 0
    for wrong in ("120", "120,0", "a,b"):
        assert run("population", "gaussian", people, "--range", wrong, *GAUSSIAN).exit_code == 2


def protect(people, tmp_path, *words):
    out = tmp_path / "out.json"
    seen = run("protect", people, "--eta", 0.3, "--out", out, "--seed", 1, "--subsets", 40, "--force", *words)
    assert seen.exit_code == 0, seen.output
    return json.loads(out.read_text())


def test_statistics_by_name(people, tmp_path):
    cells = protect(people, tmp_path, "--statistic", "histogram", "--columns", "age", "--edges", "0,40,60,120")
    assert np.shape(cells["value"]) == (3,)
    both = ("--statistic", "histogram", "--columns", "age,sex", "--edges", "0,60,120", "--edges", "0,1,2")
    assert np.shape(protect(people, tmp_path, *both)["value"]) == (2, 2)
    assert np.shape(protect(people, tmp_path, "--statistic", "count", "--columns", "sex")["value"]) in ((), (1,))
    quartiles = ("--statistic", "quantiles", "--quantiles", "0.25,0.75", "--columns", "age")
    assert np.size(protect(people, tmp_path, *quartiles)["value"]) == 2
    line = protect(people, tmp_path, "--statistic", "regression", "--columns", "age,pay", "--gaps", "drop")
    assert line["columns"] == ["intercept", "age"]


def test_what_cells_and_coefficients_are():
    from whosin.cli.statistics import statistic_of

    rows = np.array([[1.0, 0.0], [5.0, 1.0], [9.0, 1.0], [10.0, 0.0], [-1.0, 0.0]])
    cells = statistic_of("histogram", ["0,5,10", "0,1,2"], None, ["a", "b"]).f(rows).sum(axis=0)
    assert cells.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    line = statistic_of("regression", None, None, ["x", "y"])(np.array([[0.0, 3.0], [1.0, 5.0], [2.0, 7.0]]))
    np.testing.assert_allclose(line, [3.0, 2.0])
    assert statistic_of("count", None, None, ["a"]).f(rows).sum(axis=0).tolist() == [5.0, 2.0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--statistic", "histogram"), "--edges goes with --statistic histogram"),
        (("--statistic", "mean", "--quantiles", "0.5"), "--quantiles goes with --statistic quantiles"),
        (("--statistic", "histogram", "--columns", "age,sex", "--edges", "0,1"), "once for each column (age, sex)"),
        (("--statistic", "histogram", "--columns", "age", "--edges", "1,0"), "two or more rising numbers"),
        (("--statistic", "quantiles", "--columns", "age", "--quantiles", "2"), "numbers from 0 to 1"),
        (("--statistic", "regression", "--columns", "age"), "two columns or more"),
    ],
)
def test_mistakes(people, tmp_path, words, says):
    seen = run("protect", people, "--eta", 0.3, "--out", tmp_path / "o.json", "--gaps", "drop", *words)
    assert (seen.exit_code, says in seen.stderr) == (2, True), seen.stderr
