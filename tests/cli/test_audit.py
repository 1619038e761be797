"""``whosin audit`` as a user runs it."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from whosin.cli.app import app

runner = CliRunner()

RELEASE = ("--train", "{0}/train.csv", "--holdout", "{0}/holdout.parquet", "--synthetic", "{0}/leaky.csv")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    rng = np.random.default_rng(4)

    def rows(n):
        return pl.DataFrame(
            {"x": rng.normal(size=n).round(3), "y": rng.normal(size=n), "sex": rng.choice(["f", "m"], n)}
        )

    train, holdout, fresh = rows(300), rows(300), rows(300)
    train.write_csv(folder / "train.csv")
    holdout.write_parquet(folder / "holdout.parquet")
    pl.concat([train.head(200), fresh.head(100)]).write_csv(folder / "leaky.csv")
    fresh.write_ipc(folder / "fresh.arrow")
    scores = pl.DataFrame({"score": rng.normal(size=400) + np.repeat([1.5, 0.0], 200), "member": [1] * 200 + [0] * 200})
    scores.with_columns(group=pl.Series(["a", "b"] * 200)).write_csv(folder / "scores.csv")
    pl.DataFrame({"score": [0.5, None, 0.25], "member": [1, 0, 1]}).write_csv(folder / "gaps.csv")
    return folder


def run(*words):
    return runner.invoke(app, ["audit", *map(str, words)])


def tables(files, release="leaky.csv"):
    return (
        "--train", files / "train.csv", "--holdout", files / "holdout.parquet", "--synthetic", files / release,
        "--seed", 1, "--jobs", 1,
    )  # fmt: skip


def test_a_leak_in_words(files):
    seen = run(*tables(files), "--group", "sex", "--target", 0.5)
    assert seen.exit_code == 0, seen.output
    for words in ("Members can be told apart", "most exposed members", "sex=f", "rows released", "This assumes"):
        assert words in seen.output
    assert "safe" not in seen.output.lower()


def test_json_has_the_contract(files):
    seen = run(*tables(files), "--json", "--target", 0.5)
    payload = json.loads(seen.stdout)
    assert payload["advantage"]["lower"] > 0.3
    for key in ("prior", "members", "non_members", "query", "kind", "roc", "individual", "assumes", "largest_release"):
        assert key in payload


@pytest.mark.parametrize(
    ("release", "words", "code"),
    [
        ("leaky.csv", ("--fail-above", 0.2), 1),
        ("leaky.csv", ("--fail-above", 0.95), 0),
        ("fresh.arrow", ("--fail-above", 0.2), 0),
        ("fresh.arrow", ("--fail-above", 0.01, "--strict"), 1),
    ],
)
def test_gate(files, release, words, code):
    seen = run(*tables(files, release), *words, "--json")
    assert seen.exit_code == code, seen.output
    json.loads(seen.stdout)


def test_scores_of_any_attack(files):
    seen = run("--scores", files / "scores.csv", "--group", "group", "--seed", 0, "--json")
    payload = json.loads(seen.stdout)
    assert payload["advantage"]["lower"] > 0.25
    assert {row["name"] for row in payload["groups"]} == {"group=a", "group=b"}
    assert run("--scores", files / "scores.csv", "--columns", "score").exit_code == 0


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ((), "--train"),
        (("--train", "none.csv", "--holdout", "none.csv", "--synthetic", "none.csv"), "no such file"),
        (("--scores", "{0}/scores.csv", "--train", "{0}/train.csv"), "--scores goes without --train"),
        (("--scores", "{0}/scores.csv", "--member-column", "nobody"), "nobody"),
        (("--scores", "{0}/scores.csv", "--member-column", "score"), "takes 1 or 0"),
        (("--scores", "{0}/scores.csv", "--strict"), "--strict goes with"),
        (("--scores", "{0}/scores.csv", "--columns", "group,score"), "takes columns of numbers"),
        (("--scores", "{0}/scores.csv", "--columns", "score,member"), "which says who is a member"),
        (("--scores", "{0}/scores.csv", "--columns", "score", "--seed", -1), "--seed"),
        (("--scores", "{0}/scores.csv", "--columns", "score", "--top", -1), "--top"),
        (("--scores", "{0}/scores.csv", "--columns", "score", "--fail-above", "nan"), "--fail-above takes"),
        (("--scores", "{0}/gaps.csv"), "a score in every row of column 'score', got none in row 2"),
        ((*RELEASE, "--target", 1.5), "--target takes a number in [0, 1], got 1.5"),
        ((*RELEASE, "--jobs", 0), "n_jobs takes"),
        ((*RELEASE, "--assignment", "independent trainings"), "comes from one training"),
        ((*RELEASE, "--group", "height"), "no column 'height'"),
    ],
)
def test_mistakes_are_explained(files, words, match):
    seen = run(*(str(word).format(files) for word in words))
    assert seen.exit_code == 2
    assert match in seen.stderr
    assert seen.stdout == ""
    assert "Traceback" not in seen.output


def test_names_in_brackets_are_names(tmp_path):
    """What looks like the markup of the printing library is printed as it is."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"loss[/b]": rng.normal(size=80), "member": [1, 0] * 40, "[/x]": [":smile:", "[red]"] * 40})
    frame.write_csv(tmp_path / "odd.csv")
    seen = run("--scores", tmp_path / "odd.csv", "--group", "[/x]", "--columns", "loss[/b]", "--seed", 0)
    assert seen.exit_code == 0, seen.output
    for words in ("loss[/b]", "[/x]=:smile:", "[/x]=[red]"):
        assert words in seen.stdout


def test_a_group_of_a_column_that_is_not_compared(files):
    seen = run(*tables(files), "--columns", "x,y", "--group", "sex", "--json")
    assert [row["name"] for row in json.loads(seen.stdout)["groups"]] == ["sex=f", "sex=m"]


def test_a_holdout_of_another_population_warns_on_stderr(files, tmp_path):
    holdout = pl.read_parquet(files / "holdout.parquet").with_columns(pl.col("x") + 3.0)
    holdout.write_csv(tmp_path / "other.csv")
    seen = run(
        "--train", files / "train.csv", "--holdout", tmp_path / "other.csv", "--synthetic", files / "fresh.arrow",
        "--seed", 0, "--json",
    )  # fmt: skip
    assert "not from the same population" in seen.stderr
    json.loads(seen.stdout)


def test_a_release_read_in_blocks_gives_the_same(files):
    rows = ("--train", files / "train.csv", "--holdout", files / "holdout.parquet", "--seed", 1, "--jobs", 1, "--json")
    whole = run(*rows, "--synthetic", files / "fresh.arrow")
    blocks = run(*rows, "--synthetic", files / "fresh.arrow", "--block-rows", 70)
    assert (whole.exit_code, blocks.exit_code) == (0, 0)
    assert json.loads(blocks.stdout) == json.loads(whole.stdout)
    text = run(*rows, "--synthetic", files / "leaky.csv", "--block-rows", 70)
    assert text.exit_code == 2
    assert "cannot be read in blocks" in text.stderr
    scores = run("--scores", files / "scores.csv", "--block-rows", 70)
    assert scores.exit_code == 2
    assert "--scores goes without --block-rows" in scores.stderr


def test_a_report_with_and_without_the_list_of_people(files, tmp_path):
    pages = {}
    for option in ("--individuals", "--no-individuals"):
        path = tmp_path / f"{option}.html"
        done = run("--scores", files / "scores.csv", "--columns", "score", "--report", path, option)
        assert done.exit_code == 0, done.output
        pages[option] = path.read_text(encoding="utf-8")
    listed = "The members with the highest scores"
    assert listed in pages["--individuals"]
    assert listed not in pages["--no-individuals"]
