"""``whosin deletions``: what it prints, what its JSON holds, and that mistakes end in one line and exit code 2."""

import json

import pytest
import typer
from typer.testing import CliRunner

from whosin.cli.deletions import deletions
from whosin.unlearning import Unlearning, deletion_capacity

alone = typer.Typer()
alone.command()(deletions)
runner = CliRunner()

ASKED = ("--epsilon", 1, "--inclusion", 0.01, "--threshold", 0.8)


def run(*arguments):
    result = runner.invoke(alone, [str(argument) for argument in arguments])
    assert "Traceback" not in result.output
    return result


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("requests", [0, 5, 8, 9])
def test_json(requests):
    result = run(*ASKED, "--requests", requests, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    shown = json.loads(result.stdout)
    exact = Unlearning(1.0, 0.01, 0.8, requests)
    assert shown == {**exact.to_dict(), "explanation": exact.explain()}
    assert shown["capacity"] == deletion_capacity(1.0, 0.01, 0.8) == 8
    assert shown["remaining"] == max(0, 8 - requests)
    assert shown["holds"] is (requests <= 8)


def test_text_starts_with_the_paragraph_and_ends_with_the_assumptions():
    result = run(*ASKED, "--requests", 5)
    assert result.exit_code == 0
    exact = Unlearning(1.0, 0.01, 0.8, 5)
    assert flat(result.stdout).startswith(flat(exact.explain()))
    assert "deletions covered 8" in flat(result.stdout)
    assert "still covered 3" in flat(result.stdout)
    assert "probability at least 0.873 " in flat(result.stdout)
    assert all(flat(line) in flat(result.stdout) for line in exact.assumes)
    assert flat(result.stdout).index("This assumes") > flat(result.stdout).index("deletions covered")


def test_nothing_is_covered():
    text = flat(run("--epsilon", 1, "--inclusion", 0.5, "--threshold", 0.8).stdout)
    assert "Not a single deletion is covered" in text


def test_infinity_is_text_in_json():
    shown = json.loads(run("--epsilon", "inf", "--inclusion", 0.5, "--threshold", 0.8, "--json").stdout)
    assert shown["epsilon"] == "inf"
    assert shown["capacity"] == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--epsilon", -1, "--inclusion", 0.01, "--threshold", 0.8), "epsilon"),
        (("--epsilon", "nan", "--inclusion", 0.01, "--threshold", 0.8), "epsilon"),
        (("--epsilon", 1, "--inclusion", 0, "--threshold", 0.8), "inclusion"),
        (("--epsilon", 1, "--inclusion", 1.5, "--threshold", 0.8), "inclusion"),
        (("--epsilon", 1, "--inclusion", 0.01, "--threshold", 0), "threshold"),
        (("--epsilon", 1, "--inclusion", 0.01, "--threshold", 1.2), "threshold"),
        ((*ASKED, "--requests", -1), "requests"),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_mistakes(arguments, named, form):
    result = run(*arguments, *form)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: --{named} must be")
    assert result.stderr.count("\n") == 1


def test_a_file_of_requests(tmp_path):
    (tmp_path / "asked.csv").write_text("id;why\n007;x\n123;y\n007;z\n099;x\n")
    pool = "".join(f"{i:03d};{'0,01' if i % 2 else '0,005'}\n" for i in [*range(100), 7])
    (tmp_path / "pool.csv").write_text("id;p\n" + pool)
    files = ("--requested", tmp_path / "asked.csv", "--key", "id")
    shown = json.loads(run(*ASKED, *files, "--json").stdout)
    assert (shown["requests"], shown["people"], shown["rows"], shown["unknown"]) == (3, 3, 4, 0)
    drawn = ("--epsilon", 1, "--threshold", 0.8, *files, "--records", tmp_path / "pool.csv", "--inclusion-column", "p")
    shown = json.loads(run(*drawn, "--json").stdout)
    exact = Unlearning(1.0, 0.01, 0.8, [0.01] * 3)
    assert (shown["requests"], shown["inclusion"], shown["unknown"]) == (3, 0.01, 1)
    assert shown["none_used"] == exact.none_used
    text = flat(run(*drawn).stdout)
    assert "4 rows ask for 3 different keys, which have 3 records; 1 of the keys belong to no record." in text
    assert "asked for so far 3" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--requested", "asked.csv"), "--requested needs --key"),
        (("--requested", "asked.csv", "--key", "id", "--requests", 3), "--requested goes without --requests"),
        (("--key", "id"), "--key goes with --requested"),
        (("--records", "pool.csv"), "--records goes with --requested"),
        (("--requested", "asked.csv", "--key", "who"), "asked.csv has no column 'who'; it has id"),
        (
            ("--requested", "asked.csv", "--key", "id", "--inclusion-column", "p"),
            "--inclusion-column must be a column of numbers in asked.csv, got 'p'",
        ),
        (("--requested", "nowhere.csv", "--key", "id"), "no such file: nowhere.csv"),
    ],
)
def test_mistakes_with_files(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asked.csv").write_text("id\n1\n2\n")
    result = run(*ASKED, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")


@pytest.mark.parametrize("missing", ["--epsilon", "--inclusion", "--threshold"])
def test_what_is_needed(missing):
    at = ASKED.index(missing)
    result = run(*ASKED[:at], *ASKED[at + 2 :])
    assert result.exit_code == 2
    assert missing in result.stderr
