"""``whosin --backend``: a real scheduler and workers as a user starts them, and every mistake in one line."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli import backend
from whosin.cli.app import app

distributed = pytest.importorskip("distributed")

SECONDS = 60
COMMAND = ("bounds", "--epsilon", "1", "--json")


@contextlib.contextmanager
def started(*arguments):
    """Run a module of Python beside the test and end it afterwards."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-m", *map(str, arguments)], **quiet) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(answer):
    """Return the first answer that is true."""
    end = time.monotonic() + SECONDS
    while not (found := answer()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


@contextlib.contextmanager
def cluster(folder):
    """A scheduler and two workers that nobody starts again, as their address and the process of each worker."""
    place = folder / "scheduler.json"
    host = ("--host", "127.0.0.1", "--no-dashboard")
    with contextlib.ExitStack() as stack:
        stack.enter_context(started("distributed.cli.dask_scheduler", *host, "--port", 0, "--scheduler-file", place))
        where = ("--scheduler-file", place, "--no-nanny", "--nthreads", 1, "--no-dashboard", "--host", "127.0.0.1")
        for name in ("a", "b"):
            stack.enter_context(started("distributed.cli.dask_worker", *where, "--name", name))
        wait_for(lambda: place.exists() and place.read_text().endswith("}"))
        address = json.loads(place.read_text())["address"]
        with distributed.Client(address, timeout=SECONDS, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=SECONDS)
            yield address, client


def test_a_worker_is_killed_under_a_command(tmp_path):
    """It is frozen first, so that it certainly holds tasks when it dies."""
    rng = np.random.default_rng(5)
    records, candidates = rng.normal(size=(20, 2)), rng.normal(size=(4, 2))
    for name, rows in (("records", records), ("candidates", candidates)):
        np.save(tmp_path / f"{name}.npy", rows)
    options = ["--clip", "1", "--epsilon", "8", "--method", "exact", "--json", "--journal", str(tmp_path / "journal")]
    files = [str(tmp_path / "records.npy"), "--candidates", str(tmp_path / "candidates.npy")]
    with cluster(tmp_path) as (address, client):
        frozen, process = next(iter(client.run(os.getpid).items()))
        os.kill(process, signal.SIGSTOP)
        command = ["--backend", "dask", "--scheduler", address, "population", "exponential", *files, *options]
        with subprocess.Popen([sys.executable, "-m", "whosin", *command], stdout=subprocess.PIPE) as running:
            wait_for(lambda: client.processing().get(frozen))
            os.kill(process, signal.SIGKILL)
            printed, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0
    expected = wi.population.exponential(records, candidates, clip=1.0, epsilon=8.0, method="exact")
    shown = json.loads(printed)
    assert {name: shown[name] for name in expected.to_dict()} == json.loads(json.dumps(expected.to_dict()))
    assert (tmp_path / "journal").read_bytes().count(b'"task"') == 11


def run(*arguments, **environment):
    result = CliRunner().invoke(app, list(arguments), env=environment)
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--backend", "nonsense"), "--backend must be one of 'loky', 'threading', 'dask', 'ray'"),
        (("--backend", "dask"), "--backend dask needs --scheduler"),
        (("--backend", "dask", "--scheduler", "nonsense://here"), "unknown address scheme"),
        (("--backend", "dask", "--scheduler", "tcp://127.0.0.1:1"), "that answers within"),
        (("--backend", "loky", "--scheduler", "tcp://127.0.0.1:1"), "--scheduler goes with --backend dask or ray"),
        (("--backend", "loky", "--workers", "0"), "workers"),
        (("--workers", "2"), "go with --backend"),
        (("--scheduler", "x"), "go with --backend"),
    ],
)
def test_mistakes(arguments, words, monkeypatch):
    monkeypatch.setattr(backend, "ANSWER", 0.3)
    result = run(*arguments, *COMMAND)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(("name", "advice"), [("dask", "pip install 'dask>="), ("ray", "pip install 'ray>=")])
def test_a_missing_package(name, advice, monkeypatch):
    monkeypatch.setitem(sys.modules, {"dask": "distributed"}.get(name, name), None)
    result = run("--backend", name, "--scheduler", "tcp://127.0.0.1:1", *COMMAND)
    assert (result.exit_code, result.stdout) == (2, "")
    assert advice in result.stderr


@pytest.mark.parametrize("name", ["loky", "threading"])
def test_backends_of_this_machine_and_the_environment(name):
    plain = run(*COMMAND)
    assert run("--backend", name, "--workers", "2", *COMMAND).stdout == plain.stdout
    assert run(*COMMAND, WHOSIN_BACKEND=name, WHOSIN_WORKERS="2").stdout == plain.stdout
    assert run(*COMMAND, WHOSIN_SCHEDULER="tcp://127.0.0.1:1").stdout == plain.stdout
    assert run(*COMMAND, WHOSIN_BACKEND="nonsense").exit_code == 2


def test_backend_of_sets_the_number_of_workers():
    import joblib

    with backend.backend_of("threading", workers=3):
        assert joblib.effective_n_jobs(None) == 3
    assert joblib.effective_n_jobs(None) == 1
