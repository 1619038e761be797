"""``whosin audit --generator``: training again from the command line."""

import json
import sys

import numpy as np
import polars as pl
import pytest
from joblib.externals.loky import get_reusable_executor
from typer.testing import CliRunner

from whosin.cli.app import app

MODELS = """
import os, pathlib, signal


class Bootstrap:
    def fit(self, table):
        self.table = table
        return self

    def sample(self, n, random_state=None):
        return self.table.sample(n, replace=True, random_state=random_state)


class Mortal(Bootstrap):
    def sample(self, n, random_state=None):
        made = pathlib.Path("made")
        with made.open("a") as file:
            file.write("x")
        if made.stat().st_size == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().sample(n, random_state)


def make():
    return Bootstrap()


def again(records, rng):
    return records


def unread(records, rng):
    return records.assign(age=50, job="cook", who=1, pay=100.0)


def broken():
    raise ValueError("no card")


ready = Bootstrap()
number = 3
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    people = {"age": rng.integers(18, 90, 40), "job": rng.choice(["cook", "clerk"], 40), "who": np.arange(40) // 2}
    pl.DataFrame({**people, "pay": rng.lognormal(10, 1, 40).round()}).write_csv(tmp_path / "people.csv")
    (tmp_path / "retrained_models.py").write_text(MODELS)
    (tmp_path / "broken_models.py").write_text("x = unknown")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    return tmp_path


def run(*arguments):
    given = ["audit", "--records", "people.csv", "--trainings", "16", "--jobs", "1", *arguments]
    return CliRunner().invoke(app, given)


@pytest.mark.parametrize("name", ["Bootstrap", "make", "again", "ready"])
def test_every_way_to_name_a_generator(place, name):
    found = run("--generator", f"retrained_models:{name}", "--json")
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert answer["verdict"]["state"] == "leak"
    assert answer["trainings"] == 16
    assert answer["units"] == 40


def test_processes_find_the_module_too_and_what_was_done_outlives_one_that_is_killed(place):
    """Only its own folder has the module, which is in no path of the workers but that of the command."""
    get_reusable_executor().shutdown(wait=True)  # a command's workers are new ones, not those of an earlier test
    words = "--generator", "retrained_models:Mortal", "--seed", "3", "--json"
    several = *words, "--jobs", "2", "--journal", "audit.journal"
    killed = run(*several)
    assert killed.exit_code == 2
    assert "a worker process ended in the middle of its work" in killed.stderr
    found = run(*several)
    assert found.exit_code == 0, found.output
    assert 16 < (place / "made").stat().st_size < 7 + 16  # quick trainings come back in batches, some were on their way
    assert json.loads(found.stdout) == json.loads(run(*words).stdout)


def test_words_report_people_and_promise(place):
    found = run(
        "--generator", "retrained_models:again", "--person", "who", "--group", "job", "--promised-epsilon", "0.1",
        "--report", "audit.html", "--tolerate", "0.05", "--seed", "1", "--journal", "audit.journal",
    )  # fmt: skip
    assert found.exit_code == 1
    for words in ("in a typical training", "20 people", "violated", "job=cook", "This assumes:", "1. Do not"):
        assert words.lower() in found.output.lower(), words
    page = (place / "audit.html").read_text()
    assert "risk over trainings" in page.lower()
    assert "not exposure in one given release" in page
    assert "Out of 100 people" in page
    assert "Do not publish what this way of training makes." in page
    assert (place / "audit.journal").exists()


def test_what_to_do_where_nothing_is_found(place):
    found = run("--generator", "retrained_models:unread")
    assert found.exit_code == 0, found.output
    assert "Audit again with more trainings" in found.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--generator", "retrained_models"), "module:name"),
        (("--generator", "retrained_models:nobody"), "nobody"),
        (("--generator", "no_such_module:x"), "could not be imported"),
        (("--generator", "broken_models:x"), "broken_models could not be imported: NameError"),
        (("--generator", "retrained_models:broken"), "retrained_models:broken() failed: ValueError: no card"),
        (("--generator", "retrained_models:number"), "model must"),
        ((), "go together"),
        (("--generator", "retrained_models:make", "--ignore", "age"), "--generator goes without --ignore"),
        (("--generator", "retrained_models:make", "--holdout", "people.csv"), "--generator goes without --holdout"),
        (("--generator", "retrained_models:make", "--separator", ";", "--person", "who"), "who"),
    ],
)
def test_bad_input(place, arguments, words):
    found = run(*arguments)
    assert found.exit_code == 2
    assert words in found.output
