"""No traceback reaches a user: a mistake in the library is one line and its own exit code, in every command."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from whosin.cli.app import app
from whosin.cli.errors import clean_errors
from whosin.errors import CalibrationError, InputError, InputTypeError

runner = CliRunner()


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("train", "holdout", "synthetic"):
        np.savetxt(tmp_path / f"{name}.csv", rng.normal(size=(30, 2)), delimiter=",", header="a,b", comments="")
    scores = [f"{i % 2},{x}" for i, x in enumerate(rng.normal(size=40))]
    (tmp_path / "scores.csv").write_text("member,score\n" + "\n".join(scores) + "\n")
    return tmp_path


LEDGER = ["--ledger", "{}/l.db"]
POPULATION = ["{}/train.csv", "--clip", "1", "--epsilon", "1"]
# every command: its arguments, and what is broken inside it
COMMANDS = {
    "explain": (["--epsilon", "1"], "whosin.guarantees.base.Guarantee.explain"),
    "calibrate": (["--accuracy", "0.6"], "whosin.calibrate.epsilon"),
    "bounds": (["--epsilon", "1"], "whosin.bounds.table"),
    "deletions": (["--epsilon", "1", "--inclusion", "0.1", "--threshold", "0.5"], "whosin.unlearning._capacity"),
    "demo": ([], "whosin.cli.demo.run"),
    "audit": (["--scores", "{}/scores.csv"], "whosin.tables.reading.series_from_text"),
    "look": (["{}/train.csv"], "whosin.tables.look"),
    "protect": (
        ["{}/train.csv", "--statistic", "mean", "--eta", "0.1", "--out", "{}/out.json"],
        "whosin.tables.reading.series_from_text",
    ),
    "serve": (["--no-open", "--data-dir", "{}/page"], "whosin.web.server.serve"),
    "population gaussian": ([*POPULATION, "--delta", "1e-5"], "whosin.tables.reading.series_from_text"),
    "population laplace": ([*POPULATION, "--columns", "a"], "whosin.population.laplace"),
    "population exponential": ([*POPULATION, "--candidates", "{}/holdout.csv"], "whosin.population.exponential"),
    "population randomized-response": (
        ["{}/train.csv", "--column", "a", "--epsilon", "1"],
        "whosin.population.randomized_response",
    ),
    "ledger add": (["--name", "x", "--epsilon", "1", "--dataset", "d", *LEDGER], "whosin.ledger.Ledger.add"),
    "ledger list": (LEDGER, "whosin.ledger.Ledger.entries"),
    "ledger check": (LEDGER, "whosin.ledger.Ledger.totals"),
    "ledger verify": (LEDGER, "whosin.ledger.Ledger.verify"),
    "ledger retract": (["1", "--note", "n", *LEDGER], "whosin.ledger.Ledger.retract"),
    "ledger same-people": (
        ["--dataset", "d", "--fingerprint", "0" * 64, *LEDGER],
        "whosin.ledger.Ledger.same_people",
    ),
}


def names(command, prefix=""):
    inner = getattr(command, "commands", None)
    if inner is None:
        return {prefix.strip()}
    return set().union(*(names(each, f"{prefix} {name}") for name, each in inner.items()))


def test_every_command_is_in_the_table():
    assert names(typer.main.get_command(app)) == set(COMMANDS)


def run(command, folder):
    arguments, _ = COMMANDS[command]
    result = runner.invoke(app, [*command.split(), *(each.format(folder) for each in arguments)])
    assert "Traceback" not in result.output
    return result


def break_it(monkeypatch, command, error):
    def broken(*args, **kwargs):
        raise error

    monkeypatch.setattr(COMMANDS[command][1], broken)


BUGS = [
    AttributeError("'NoneType' object has no attribute 'shape'\nand more"),
    TypeError("unsupported operand type(s) for +: 'int' and 'NoneType'"),
    ValueError("operands could not be broadcast together"),
    KeyError("column"),
    AssertionError(),
    ZeroDivisionError("float division by zero"),
    RecursionError("maximum recursion depth exceeded"),
]


@pytest.mark.parametrize(
    ("command", "error"),
    [*((command, error) for command in COMMANDS for error in BUGS[:2]), *(("explain", error) for error in BUGS[2:])],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_mistake_in_the_library_is_called_one(command, error, files, monkeypatch):
    if command == "serve":
        pytest.importorskip("uvicorn")
    monkeypatch.delenv("WHOSIN_DEBUG", raising=False)
    break_it(monkeypatch, command, error)
    result = run(command, files)
    assert result.exit_code == 70
    assert result.stderr.startswith(f"Error: this is a bug in whosin: {type(error).__name__}")
    assert result.stderr.endswith("; run with WHOSIN_DEBUG=1 for the traceback\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("rows must be more"), 2, "Error: rows must be more"),
        (InputTypeError("rows must be a number"), 2, "Error: rows must be a number"),
        (CalibrationError("no noise does"), 2, "Error: no noise does"),
        (PermissionError(errno.EACCES, "Permission denied", "a.csv"), 2, "Error: Permission denied: a.csv"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "a"), 2, "Error: Is a directory: a"),
        (OSError(errno.ENOSPC, "No space left on device"), 74, "Error: No space left on device"),
        (OSError(errno.EIO, "Input/output error", "a"), 74, "Error: Input/output error: a"),
        (MemoryError(), 74, "Error: the memory of this machine does not suffice"),
        (KeyboardInterrupt(), 130, "Stopped."),
    ],
    ids=repr,
)
@pytest.mark.parametrize("command", ["explain", "bounds", "ledger list"])
def test_what_is_expected_has_its_own_line_and_code(command, error, code, said, files, monkeypatch):
    break_it(monkeypatch, command, error)
    result = run(command, files)
    assert (result.exit_code, result.stderr, result.stdout) == (code, f"{said}\n", "")


def test_the_traceback_comes_when_asked_for():
    code = "import whosin as wi\nwi.bounds.table = lambda *a: None + 1\nfrom whosin.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code, "bounds", "--epsilon", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "WHOSIN_DEBUG": "1"},
        timeout=60,
    )
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback (most recent call last)")
    assert "this is a bug in whosin: TypeError: unsupported operand" in done.stderr.splitlines()[-1]


def test_only_a_raise_of_a_command_is_about_options():
    """A TypeError is the user's where a command says so, and ours where an operation fails."""

    def said(*, on_purpose):
        if on_purpose:
            raise InputTypeError("--a goes with --b")
        len(None)

    for on_purpose, code in ((True, 2), (False, 70)):
        with pytest.raises(SystemExit) as ended:
            clean_errors(said)(on_purpose=on_purpose)
        assert ended.value.code == code


@pytest.mark.parametrize("error", [typer.Exit(3), typer.Abort(), typer.BadParameter("no")], ids=repr)
def test_exits_pass(error):
    @clean_errors
    def command():
        raise error

    with pytest.raises(type(error)) as caught:
        command()
    assert caught.value is error


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
@pytest.mark.parametrize("command", [["bounds", "--epsilon", "1"], ["explain", "--epsilon", "1", "--json"]])
def test_a_reader_that_goes_away_ends_it_in_silence(command):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "whosin", *command], stdout=pipe, stderr=subprocess.PIPE, timeout=60, text=True
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_is_130():
    code = (
        "import os, signal, sys, time\n"
        "import whosin as wi\n"
        "def stuck(*a):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(20)\n"
        "wi.bounds.table = stuck\n"
        "from whosin.cli import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "bounds", "--epsilon", "1"],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


@pytest.mark.parametrize("words", [("explain", "--epsilon", "1", "--report"), ("demo", "--report")])
def test_a_report_never_replaces_a_pipe_or_a_device(tmp_path, words):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = CliRunner().invoke(app, [*words, str(pipe), "--force"])
    assert done.exit_code == 2
    assert "pipe" in done.stderr
    assert pipe.is_fifo()
