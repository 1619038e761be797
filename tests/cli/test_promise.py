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
    pair = "epsilon", "delta"
    assert pairs_of("a,b\n1,2\n3,4\n", *pair) == ([1.0, 3.0], [2.0, 4.0])
    assert pairs_of("1,2\n3,4\n", *pair) == ([1.0, 3.0], [2.0, 4.0])
    assert pairs_of("Delta,run,ε\n0.1,7,2\n0.2,8,1\n", *pair) == ([2.0, 1.0], [0.1, 0.2])
    for text, message in (
        ("1,2\nx,3\n", "row 2"),
        ("a,b\n", "none"),
        ("1\n2\n", "row 2"),
        ("delta,x\n1,2\n", "must have a column epsilon, got delta, x"),
        ("epsilon,run,delta\n1,2\n", "row 2"),
    ):
        with pytest.raises(InputError, match=message):
            pairs_of(text, *pair)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"order,epsilon\n2,-1\n", "epsilons must be a number in [0, inf], got -1.0"),
        (b"order,epsilon\n2,nan\n", "got nan"),
        (b"order,epsilon\n0.5,1\n", "orders must be"),
        (b"alpha,delta\n2,1\n", "must have a column epsilon"),
        (b"", "two columns of numbers, got none"),
        (b"\xff\xfe\x00", "must be a CSV file in UTF-8"),
    ],
)
def test_files_that_are_none_of_an_accountant(tmp_path, text, message):
    path = tmp_path / "rdp.csv"
    path.write_bytes(text)
    for command in (["explain"], ["ledger", "add", "--name", "x", "--dataset", "d", "--ledger", tmp_path / "book"]):
        result = CliRunner().invoke(app, [*map(str, command), "--rdp", str(path)])
        assert result.exit_code == 2
        assert message in result.stderr
        assert "--rdp" in result.stderr


BATCHES = ["--batch-size", "100", "--dataset-size", "10000", "--epochs", "10"]


def test_runs_as_training_loops_are_called(tmp_path):
    run = explained("--noise-multiplier", 1.0, *BATCHES, "--sampling", "partition", "--adjacency", "zero_out")
    like = wi.DPSGD.of_batches(
        1.0, batch_size=100, dataset_size=10_000, epochs=10, sampling="partition", adjacency="zero_out"
    )
    assert run["advantage"] == like.advantage
    book = ["--dataset", "d", "--ledger", str(tmp_path / "book")]
    for options in (["--noise-multiplier", "2", *BATCHES], ["--zcdp", "0.01"], ["--mu", "0.1"], ["--epsilon", "0.1"]):
        added = CliRunner().invoke(app, ["ledger", "add", "--name", "x", *book, *options])
        assert added.exit_code == 0, added.stderr
    total = CliRunner().invoke(app, ["ledger", "check", *book, "--delta", "1e-5", "--json"])
    parts = [wi.DPSGD(2.0, 0.01, 1000), wi.ZeroConcentratedDP(0.01), wi.GaussianDP(0.1), wi.PureDP(0.1)]
    together = wi.ledger.compose(parts, delta=1e-5)
    assert str(together.epsilon) in total.stdout
    assert together.way == "product of the worst pairs"


def test_noise_for_a_target_of_epsilon_and_delta():
    targets = ["--epsilon", "1", "--delta", "1e-5"]
    result = CliRunner().invoke(app, ["calibrate", *targets, *BATCHES, "--json"])
    found = json.loads(result.stdout)["parameters"]
    like = wi.calibrate.dpsgd(epsilon=1.0, delta=1e-5, batch_size=100, dataset_size=10_000, epochs=10)
    assert (found["noise_multiplier"], found["steps"]) == (like.noise_multiplier, 1000)
    result = CliRunner().invoke(app, ["calibrate", *targets, *BATCHES])
    assert "keeps ε ≤ 1 and δ ≤ 1e-05" in " ".join(result.stdout.split()), result.stderr
    drawn = {"sampling": "shuffled", "adjacency": "replace"}
    options = [word for name, value in drawn.items() for word in (f"--{name}", value)]
    result = CliRunner().invoke(app, ["calibrate", "--advantage", "0.2", *BATCHES, *options, "--json"])
    like = wi.calibrate.dpsgd(advantage=0.2, batch_size=100, dataset_size=10_000, epochs=10, **drawn)
    assert json.loads(result.stdout)["parameters"]["noise_multiplier"] == like.noise_multiplier
    for rest, message in (
        (BATCHES[:4], "--batch-size, --dataset-size and --epochs"),
        ([*BATCHES, "--steps", "3"], "a DP-SGD run needs"),
        ([*BATCHES, "--advantage", "0.1"], "exactly one target"),
        (["--sampling", "shuffled"], "--sampling goes with a search for a DP-SGD run"),
    ):
        result = CliRunner().invoke(app, ["calibrate", *targets, *rest])
        assert result.exit_code == 2
        assert message in result.stderr


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
