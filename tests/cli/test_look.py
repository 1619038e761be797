"""``whosin look``: what is in files, before anything is run."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.app import app


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    paths = []
    for place, name in enumerate(("train", "holdout", "synthetic")):
        frame = pl.DataFrame(
            {
                "patient": rng.integers(0, 30, 40) + 100 * place,
                "row": np.arange(40),
                "age": [None, *rng.integers(20, 90, 39).tolist()],
                "job": rng.choice(["smith", "nurse"], 40),
                "key": [f"{name} {i}" for i in range(40)],
            }
        )
        paths.append(tmp_path / f"{name}.csv")
        frame.write_csv(paths[-1], separator=";", null_value="?")
    return paths


def run(*words):
    return CliRunner().invoke(app, ["look", *map(str, words)])


def test_what_files_hold(files):
    seen = run(*files, "--person", "patient")
    assert seen.exit_code == 0, seen.output
    text = " ".join(seen.output.split())
    for words in (
        "train.csv (train): 40 rows, 5 columns,",
        "its cells are separated by ';'",
        "column 'age': '?' counts as missing in 1 rows",
        "no: a running number",
        "no: different in every row: a key",
        "no: says whose a row is",
        "train rows that appear in holdout: 11",
        "train people who are in holdout: 0",
    ):
        assert words in text, words


def test_labels_that_two_files_do_not_share_and_the_next_step(tmp_path):
    rows = {"train": "<=50K", "holdout": "<=50K.", "synthetic": "<=50K"}
    paths = []
    for name, label in rows.items():
        paths.append(tmp_path / f"{name} 1.csv")
        paths[-1].write_text(f"age,income\n31,{label}\n45,{label}\n")
    seen = run(*paths)
    text = " ".join(seen.output.split())
    assert "yes, but no label of train appears in holdout" in text
    assert f"whosin audit --train '{paths[0]}' --holdout '{paths[1]}' --synthetic '{paths[2]}'" in seen.output
    assert "Next:" not in run(*paths[:2]).output
    assert [column["apart"] for column in wi.tables.look(*paths).columns] == [[], ["holdout"]]
    assert [column["apart"] for column in wi.tables.look(*paths, ignore=["income"]).columns] == [[], []]


def test_the_same_in_json_in_python_and_in_an_audit(files):
    shown = json.loads(run(*files, "--person", "patient", "--json").stdout)
    found = wi.tables.look(*files, person="patient")
    assert found.to_dict() == shown
    assert found.compared == ("age", "job")
    assert shown["columns"][2]["missing"] == {"train": 1, "holdout": 1, "synthetic": 1}
    audit = wi.audit_synthetic(*files, person="patient", rng=0).to_dict()
    assert audit["preview"] == shown
    assert shown["overlaps"]["train rows that appear in holdout"] == 11
    assert audit["left_out"] == {"row": "a running number", "key": "different in every row: a key"}


def test_one_file_alone_and_too_many(files):
    assert json.loads(run(files[0], "--keep", "row,key", "--json").stdout)["columns"][1]["left_out"] is None
    many = run(*[files[0]] * 5)
    assert (many.exit_code, "at most 4 files, got 5" in many.stderr) == (2, True)
    assert "no such file" in run("none.csv").stderr


def test_an_audit_of_a_release_in_blocks_repeats_what_is_in_memory(files):
    pl.read_csv(files[2], separator=";", null_values="?").write_parquet(files[2].with_suffix(".parquet"))
    audit = wi.audit_synthetic(*files[:2], files[2].with_suffix(".parquet"), person="patient", block_rows=7, rng=0)
    shown, whole = audit.to_dict()["preview"], wi.tables.look(*files, person="patient").to_dict()
    assert [table["rows"] for table in shown["tables"]] == [40, 40, 40]
    assert shown["compared"] == whole["compared"] == ["age", "job"]
    assert shown["overlaps"].items() < whole["overlaps"].items()
    assert {"train rows that appear in holdout", "train people who are in holdout"} < set(shown["overlaps"])


def test_files_of_keys_alone_are_looked_at_too(tmp_path):
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    for place, path in enumerate(paths):
        path.write_text("note\n" + "".join(f"text {place} {i}\n" for i in range(30)))
    seen = run(*paths)
    assert seen.exit_code == 0, seen.output
    assert "no: different in every row: a key" in " ".join(seen.output.split())
    assert "Next" not in seen.output  # an audit would refuse them
    assert run(*paths, "--keep", "note").output.strip().endswith("--keep note")


def test_the_next_step_repeats_the_options_and_constant_columns_are_named(files):
    seen = run(*files, "--categories", "age,patient", "--missing", "?", "--missing", "no one", "--header")
    assert seen.exit_code == 0, seen.output
    last = seen.output.strip().splitlines()[-1]
    assert last.endswith("--categories age,patient --missing '?' --missing 'no one' --header")
    for path in files:
        path.write_text("age,land,empty\n" + "31,DE,\n45,DE,\n")
    text = " ".join(run(*files).output.split())
    assert "land category 1 0 yes, but it is the same in every row" in text
    assert "empty category 0 6 yes, but it is empty" in text
    files[1].write_text("age,land,empty\n" + "31,FR,\n45,FR,\n")
    assert "the same in every row" not in run(*files).output


def test_names_with_commas_stand_in_double_quotes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('"age, years",town,sex\n31,Ulm,f\n45,Bonn,m\n')
    seen = run(path, "--ignore", '"age, years", town', "--json")
    assert json.loads(seen.stdout)["compared"] == ["sex"]
    assert 'there are "age, years", town, sex' in run(path, "--ignore", "age").stderr


def test_names_may_have_line_ends_and_quotes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('"age\n(years)","a ""b"", c",sex\n31,Ulm,f\n45,Bonn,m\n')
    seen = run(path, "--ignore", 'age\n(years), "a ""b"", c"', "--json")
    assert json.loads(seen.stdout)["compared"] == ["sex"]
    assert 'there are age\n(years), "a ""b"", c", sex' in run(path, "--ignore", "age").stderr


def test_labels_that_differ_in_capitals_blanks_or_letters_are_counted(tmp_path):
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    for path, towns in zip(
        paths, (["Zürich", "Bad Ems"], ["straße", "Zürich"], ["Zu\u0308rich", "STRASSE", "Bad\u00a0Ems"]), strict=True
    ):
        path.write_text("town,n\n" + "".join(f"{town},{i}\n" for i, town in enumerate(towns)), encoding="utf-8")
    assert [column["alike"] for column in wi.tables.look(*paths).columns] == [3, 0]
    assert "labels that differ only in capitals, blanks or ways to write a letter: 3" in " ".join(
        run(*paths).output.split()
    )
    assert wi.tables.look(*paths, ignore=["town"]).columns[0]["alike"] == 0
