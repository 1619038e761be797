"""Guarantees from options and files: the words of accountants on the command line."""

import json
import math

import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.app import app
from whosin.errors import InputError
from whosin.guarantees.accountants import pairs_of


def explained(*arguments):
    result = CliRunner().invoke(app, ["explain", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_concentrated_promises_and_runs():
    assert explained("--zcdp", 0.5)["advantage"] == wi.ZeroConcentratedDP(0.5).advantage
    run = explained("--noise-multiplier", 1.0, "--sample-rate", 0.01, "--steps", 100, "--sampling", "shuffled")
    assert run["advantage"] == wi.DPSGD(1.0, 0.01, 100, "shuffled").advantage
    assert run["parameters"]["sampling"] == "shuffled"


def test_files_of_an_accountant(tmp_path):
    orders, points = tmp_path / "rdp.csv", tmp_path / "profile.csv"
    orders.write_text("order,epsilon\n2,0.1\n8,0.4\ninf,3\n", encoding="utf-8")
    points.write_text("0.5,0.01\n\n1,0.0001\n", encoding="utf-8")
    assert explained("--rdp", orders)["advantage"] == wi.RenyiDP([2, 8, math.inf], [0.1, 0.4, 3.0]).advantage
    found = explained("--profile", points, "--adjacency", "replace")
    assert found["advantage"] == wi.PrivacyProfile([0.5, 1.0], [0.01, 0.0001], "replace").advantage


def test_two_columns_of_numbers():
    assert pairs_of("a,b\n1,2\n3,4\n") == ([1.0, 3.0], [2.0, 4.0])
    for text, message in (("1,2\nx,3\n", "row 2"), ("a,b\n", "none"), ("1\n2\n", "row 2")):
        with pytest.raises(InputError, match=message):
            pairs_of(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--zcdp", "0.1", "--mu", "1"], "one guarantee at most"),
        (["--zcdp", "0.1", "--sampling", "shuffled"], "--sampling goes with"),
        (["--eta", "0.1", "--adjacency", "replace"], "--adjacency goes with"),
        (["--zcdp", "-1"], "--zcdp must be"),
        (["--rdp", "no-such-file.csv"], "no-such-file"),
    ],
)
def test_options_that_do_not_go_together(arguments, message):
    result = CliRunner().invoke(app, ["explain", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
