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
    assert "probability at least 0.873335" in flat(result.stdout)
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


@pytest.mark.parametrize("missing", ["--epsilon", "--inclusion", "--threshold"])
def test_what_is_needed(missing):
    at = ASKED.index(missing)
    result = run(*ASKED[:at], *ASKED[at + 2 :])
    assert result.exit_code == 2
    assert missing in result.stderr
