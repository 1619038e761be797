"""population, protect and deletions on files as people have them."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import whosin as wi
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


def test_what_was_recognised_is_said_and_the_most_exposed_row_is_found_in_the_file(people, tmp_path):
    asked = ("population", "gaussian", people, "--clip", 50, *GAUSSIAN[:4], "--columns", "pay", "--gaps", "drop")
    seen = " ".join(run(*asked).stdout.split())
    for words in ("people.csv: its cells are separated by ';'", "commas are decimal signs in 'pay'", "'?' counts as"):
        assert words in seen
    found = json.loads(run(*asked, "--json").stdout)
    row = found["most_exposed"]
    assert f"Row {row}, counted from 0, is line {row + 4} of people.csv." in seen  # names, and two rows with gaps
    assert found["notes"][0] == "its cells are separated by ';'"
    other = json.loads(run("population", "gaussian", people, "--clip", 50, *GAUSSIAN).stdout)
    assert not any("'?'" in note for note in other["notes"])  # those are in another column
    out = tmp_path / "mean.json"
    said = run("protect", people, "--statistic", "mean", "--eta", 0.1, "--out", out, "--columns", "age")
    assert "people.csv: its cells are separated by ';'" in said.stdout


def test_a_clip_comes_from_a_public_range_or_from_the_user(people):
    neither = run("population", "gaussian", people, *GAUSSIAN)
    assert (neither.exit_code, "known without the data" in neither.stderr) == (2, True)
    found = json.loads(run("population", "gaussian", people, "--range", "0,120", *GAUSSIAN).stdout)
    assert found["clip"] == pytest.approx(120)
    assert found["clip"] >= 120
    assert found["clipped"] == 0
    for wrong in ("120", "120,0", "a,b"):
        assert run("population", "gaussian", people, "--range", wrong, *GAUSSIAN).exit_code == 2


def test_whose_rows_they_are_and_how_likely(tmp_path):
    import whosin as wi

    visits, whose = np.arange(12.0), np.repeat(["b", "a", "d", "c", "f", "e"], 2)
    chances = np.repeat([0.2, 0.3, 0.4, 0.5, 0.6, 0.7], 2)
    path = tmp_path / "visits.csv"
    pl.DataFrame({"visits": visits, "who": whose, "chance": chances}).write_csv(path)
    asked = (
        "population",
        "gaussian",
        path,
        "--clip",
        20,
        "--epsilon",
        4,
        "--delta",
        0.05,
        "--columns",
        "visits",
        "--json",
    )
    common = {"epsilon": 4, "delta": 0.05, "clip": 20}
    by_person = json.loads(run(*asked, "--person", "who").stdout)
    assert by_person["per_record"] == wi.population.gaussian(visits, person=whose, **common).per_record.tolist()
    both = json.loads(run(*asked, "--person", "who", "--chances", "chance").stdout)
    expected = wi.population.gaussian(visits, person=whose, chances=chances[::2], **common)
    assert both["per_record"] == expected.per_record.tolist()
    assert not both["pmp"]["uniform"]
    plain = run(
        "population", "laplace", path, "--epsilon", 2, "--clip", 20, "--chances", "chance", "--columns", "visits"
    )
    assert "chances that differ" in " ".join(plain.stdout.split())
    for wrong, words in (
        (("--person", "nobody"), "--person must be a column"),
        (("--person", "who", "--gaps", "drop"), "goes without --person"),
    ):
        assert words in " ".join(run(*asked, *wrong).stderr.split())
    pl.DataFrame({"visits": visits, "who": whose, "chance": chances + np.arange(12) / 100}).write_csv(path)
    assert "same in all rows of a person" in run(*asked, "--person", "who", "--chances", "chance").stderr


def test_counts_histograms_and_regressions_of_populations(people):
    """The same as the library's own queries say."""
    import whosin as wi

    few = pl.read_csv(people, separator=";").select("age", "sex").head(20)
    few.write_csv(people, separator=";")
    rows = few.to_numpy().astype(float)
    common = {"epsilon": 2.0, "delta": 1e-5}
    shown = ("population", "gaussian", people, "--epsilon", 2, "--delta", 1e-5, "--columns", "age,sex", "--json")
    cells = wi.population.Histogram([[0, 60, 120], [0, 1, 2]])
    for words, options, clip in (
        (("--query", "histogram", "--edges", "0,60,120", "--edges", "0,1,2"), {"query": cells}, None),
        (("--query", "count"), {"query": lambda records: (records != 0).astype(float), "clip": 2**0.5}, None),
        (
            ("--query", "regression", "--clip", 60),
            {"query": wi.population.RegressionMoments(60.0)},
            60,
        ),
    ):
        found = json.loads(run(*shown, *words).stdout)
        exact = wi.population.gaussian(rows, **common, **options).to_dict()
        assert found["pmp"]["epsilon"] == pytest.approx(exact["pmp"]["epsilon"], rel=1e-9)
        assert found.get("clip") == clip
        if clip:
            assert found["clipped"] == (np.hypot(*rows.T) > 60).sum()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--query", "histogram"), "--query histogram and --edges, such as 0,18,65,120, go together"),
        (("--edges", "0,1", "--clip", 3), "--query histogram and --edges"),
        (("--query", "histogram", "--edges", "0,x"), "--edges must be numbers separated by commas, got '0,x'"),
        (
            ("--query", "histogram", "--edges", "0,1", "--edges", "0,1"),
            "--edges must be given once for each column (age)",
        ),
        (("--query", "count", "--clip", 3), "--query count goes without --clip and --range"),
        (("--query", "mode", "--clip", 3), "--query must be one of 'mean', 'sum', 'count'"),
        (("--query", "quantiles", "--clip", 3), "exponential --loss quantile --quantile 0.5 --grid 0,120,121 chooses"),
    ],
)
def test_mistakes_with_queries_of_populations(people, words, says):
    seen = run("population", "gaussian", people, *GAUSSIAN, *words)
    assert (seen.exit_code, says in seen.stderr) == (2, True), seen.stderr


def test_randomised_response_of_a_column(tmp_path):
    path, values = tmp_path / "survey.csv", ["no"] * 8 + ["yes"]
    path.write_text("smoker,zip\n" + "".join(f"{value},7\n" for value in values))
    asked = ("population", "randomized-response", path, "--column", "smoker")
    found = json.loads(run(*asked, "--epsilon", 2, "--json").stdout)
    exact = wi.population.randomized_response(values, epsilon=2.0)
    assert found["per_record"] == exact.per_record.tolist()
    more = json.loads(run(*asked, "--epsilon", 2, "--delta", 0.1, "--categories", "no,yes,perhaps", "--json").stdout)
    same = wi.population.randomized_response(values, epsilon=2.0, delta=0.1, categories=["no", "yes", "perhaps"])
    assert more["per_record"] == same.per_record.tolist()
    assert 0.49 < json.loads(run(*asked, "--target", 0.5, "--json").stdout)["pmp"]["epsilon"] <= 0.5
    numbers = json.loads(run(*asked[:-1], "zip", "--epsilon", 1, "--categories", "7,8", "--json").stdout)
    assert numbers["pmp"]["epsilon"] < 1e-9  # all have the same value
    seen = run(*asked, "--epsilon", 2)
    assert "of which 1 was drawn at random" in " ".join(seen.stdout.split())
    assert "Row 8, counted from 0, is line 10 of survey.csv." in seen.stdout
    path.write_text("smoker,zip\nno,7\n,7\nyes,7\n")
    refused = run(*asked, "--epsilon", 2)
    assert (refused.exit_code, "got 1 missing cells" in refused.stderr) == (2, True)


def test_populations_write_their_report(people, tmp_path):
    page = tmp_path / "answer.html"
    asked = ("population", "gaussian", people, "--clip", 50, *GAUSSIAN, "--report", page)
    assert run(*asked).exit_code == 0
    text = page.read_text()
    assert "What does the privacy parameter mean on these records?" in text
    again = run(*asked)
    assert (again.exit_code, "--force replaces it" in again.stderr) == (2, True)
    assert run(*asked, "--force").exit_code == 0


def test_quantiles_of_populations(people, tmp_path):
    """Chosen from a public grid, which may come from a file; the same as the library says."""
    import whosin as wi

    few = pl.read_csv(people, separator=";").select("age").head(14)
    few.write_csv(tmp_path / "few.csv")
    shown = ("population", "exponential", tmp_path / "few.csv", "--epsilon", 4, "--range", "0,120", "--json")
    asked = ("--loss", "quantile", "--quantile", 0.25)
    found = json.loads(run(*shown, *asked, "--grid", "0,120,13").stdout)
    grid = np.arange(0.0, 121.0, 10.0)[:, None]
    clip = float(np.nextafter(120.0, np.inf))
    exact = wi.population.exponential(few["age"], grid, epsilon=4, clip=clip, loss="quantile", quantile=0.25)
    assert found["pmp"]["epsilon"] == exact.to_dict()["pmp"]["epsilon"]
    assert exact.pmp.epsilon != wi.population.exponential(few["age"], grid, epsilon=4, clip=clip).pmp.epsilon
    pl.DataFrame({"age": grid[:, 0]}).write_csv(tmp_path / "grid.csv")
    assert json.loads(run(*shown, *asked, "--candidates", tmp_path / "grid.csv").stdout)["pmp"] == found["pmp"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give either --candidates, or --grid with limits that are known without the data"),
        (("--grid", "0,1,5", "--loss", "quantile"), "--loss quantile and --quantile, such as 0.5, go together"),
        (("--grid", "0,1,5", "--quantile", 0.5), "--loss quantile and --quantile, such as 0.5, go together"),
        *(
            (("--grid", bad), f"such as 0,120,121, got '{bad}'")
            for bad in ("0,120", "120,0,5", "0,1,1", "0,1,2.5", "0,inf,5", "0,1,nan", "nan,1,5", "0,1,1e9")
        ),
    ],
)
def test_mistakes_with_grids(people, words, says):
    seen = run("population", "exponential", people, "--epsilon", 1, "--columns", "age", "--clip", 90, *words)
    assert (seen.exit_code, says in " ".join(seen.stderr.split())) == (2, True), seen.stderr


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
    assert line["certificate"]["estimator"] == "vector of regression coefficients"
    assert cells["certificate"]["estimator"] == "histogram"


TOWNS = ("--columns", "town,age", "--labels", "town=York,Leeds,Hull")


def test_contingency_tables_of_labels(people, tmp_path):
    """Labels are public, those that are not named are in no cell, and gaps are gaps."""
    towns = people.with_name("towns.csv")
    lines, cells = ["town,age"], []
    for age in range(20, 80):
        place = age % 3 - 1
        lines.append(f"{('Bath', 'York', 'Leeds')[place + 1]},{age}")
        cells.append((place, age))
    towns.write_text("\n".join([*lines, ",50"]))
    words = (*TOWNS, "--edges", "0,50,120", "--gaps", "drop")
    assert np.shape(protect(towns, tmp_path, "--statistic", "histogram", *words)["value"]) == (3, 2)
    query = ("--query", "histogram", "--epsilon", 4, "--delta", 0.05)
    seen = run("population", "gaussian", towns, *query, *words, "--json")
    assert seen.exit_code == 0, seen.stderr
    found, table = json.loads(seen.stdout), wi.population.Histogram([[0, 1, 2, 3], [0, 50, 120]])
    same = wi.population.gaussian(np.array(cells, dtype=float), epsilon=4, delta=0.05, query=table)
    assert found["dropped"] == 1
    assert found["pmp"] == json.loads(json.dumps(same.to_dict()))["pmp"]
    outside = "20 of 60 records are in no cell of the histogram and count nowhere"
    assert found["notes"][-1] == outside
    out = ("--eta", 0.3, "--out", tmp_path / "cells.json")
    assert outside in run("protect", towns, "--statistic", "histogram", *words, *out).stdout
    wrong = run("population", "gaussian", towns, *query, "--columns", "town", "--labels", "town=york,leeds")
    assert wrong.stderr == (
        "Error: towns.csv column 'town' must have one of the labels york, leeds in some row, got others in all, such "
        "as 'Leeds'; capitals count\n"
    )
    seen = run("population", "gaussian", towns, *query, "--columns", "town", "--edges", "0,1")
    assert "got 'Leeds'; --columns chooses others, such as age; in a histogram --labels names its" in seen.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--labels", "town=York,York"), "--labels must be a column and its labels, such as town=Leeds,York"),
        (("--labels", "town"), "got 'town'"),
        (("--labels", "shoe=a,b"), "--labels must be of columns that are taken (age), got 'shoe'"),
    ],
)
def test_mistakes_in_labels(people, tmp_path, words, says):
    for command in (("protect", people, "--eta", 0.3, "--out", tmp_path / "o.json", "--statistic", "histogram"),
                    ("population", "gaussian", people, "--query", "histogram", *GAUSSIAN[:4])):  # fmt: skip
        seen = run(*command, "--columns", "age", "--gaps", "drop", "--edges", "0,120", *words)
        assert (seen.exit_code, says in " ".join(seen.stderr.split())) == (2, True), seen.stderr


def test_columns_without_numbers_are_named_with_those_that_have_some(people, tmp_path):
    words = people.with_name("words.csv")
    words.write_text("born;name;age\n31.01.1990;x;1\n01.02.1991;y;2\n")
    for name, cell in (("born", "1990-01-31 00:00:00"), ("name", "'x'")):
        seen = run("population", "gaussian", words, "--clip", 50, *GAUSSIAN[:4], "--columns", name)
        message = (
            f"words.csv line 2 column {name!r} must be a number, got {cell}; --columns chooses others, such as age"
        )
        assert (seen.exit_code, message in seen.stderr) == (2, True), seen.stderr


def test_what_cells_and_coefficients_are():
    from whosin.cli.statistics import statistics_of

    rows = np.array([[1.0, 0.0], [5.0, 1.0], [9.0, 1.0], [10.0, 0.0], [-1.0, 0.0]])
    cells = statistics_of(["histogram"], ["0,5,10", "0,1,2"], None, ["a", "b"]).f(rows).sum(axis=0)
    assert cells.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    line = statistics_of(["regression"], None, None, ["x", "y"])(np.array([[0.0, 3.0], [1.0, 5.0], [2.0, 7.0]]))
    np.testing.assert_allclose(line, [3.0, 2.0])
    assert statistics_of(["count"], None, None, ["a"]).f(rows).sum(axis=0).tolist() == [5.0, 2.0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--statistic", "histogram"), "--statistic histogram needs --edges, such as 0,18,65,120"),
        (("--statistic", "quantiles"), "--statistic quantiles needs --quantiles, such as 0.25"),
        (
            ("--statistic", "mode"),
            "must be one of mean, sum, median, cov, count, histogram, quantiles, regression, got",
        ),
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


def test_several_releases_of_one_draw(people, tmp_path):
    both = ("--statistic", "mean", "--statistic", "count", "--columns", "age,sex")
    found = protect(people, tmp_path, *both)
    assert found["certificate"]["route"] == "average"
    assert {name: np.shape(value) for name, value in found["value"].items()} == {"mean": (2,), "count": (2,)}
    options = ("--epsilon", 2, "--delta", 1e-5, "--json", "--columns", "age", "--columns", "sex")
    seen = json.loads(run("population", "gaussian", people, *options, "--clip", 90, "--clip", 1).stdout)
    assert seen["sensitivity"] == [pytest.approx(180 / 30), pytest.approx(2 / 30)]
    assert seen["noise_scale"][0] == pytest.approx(90 * seen["noise_scale"][1])
    ranged = json.loads(run("population", "gaussian", people, *options, "--range", "0,90", "--range", "0,1").stdout)
    assert ranged["pmp"]["epsilon"] == pytest.approx(seen["pmp"]["epsilon"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--clip", 1, "--clip", 2, "--clip", 3), "--clip must be given once, or for each of 2 --columns, got 3"),
        (("--clip", 1, "--query", "sum"), "--query must be mean with several --columns, got sum"),
    ],
)
def test_mistakes_with_several_releases(people, words, says):
    seen = run("population", "gaussian", people, "--epsilon", 2, "--delta", 1e-5, *("--columns", "age") * 2, *words)
    assert (seen.exit_code, says in seen.stderr) == (2, True), seen.stderr


def test_several_statistics_go_to_json_once_each(people, tmp_path):
    for out, words, says in (
        ("o.csv", ("--statistic", "mean", "--statistic", "sum"), "--out must end in .json"),
        ("o.json", ("--statistic", "mean", "--statistic", "mean"), "name each statistic once"),
    ):
        seen = run("protect", people, "--columns", "age", "--eta", 0.3, "--out", tmp_path / out, *words)
        assert (seen.exit_code, says in seen.stderr) == (2, True), seen.stderr
