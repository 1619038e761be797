"""A caller that is killed or told to end: no process stays behind, and nothing that was done is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from whosin.cli.errors import clean_errors
from whosin.parallel import tasks
from whosin.parallel.journal import Journal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")

CALLER = """
import os, sys, time
import numpy as np
from whosin.parallel import tasks
from whosin.parallel.journal import Journal

def slow(item):
    with open(f"pid-{os.getpid()}", "w"):
        pass
    if item >= 4:
        time.sleep(600)
    return np.array([item, 1 / (item + 1)])

tasks.run(slow, range(12), n_jobs=2, journal=Journal("journal", "run"))
"""


@contextmanager
def started(command, **options):
    """A process that ends with the test, whatever fails: one of these sleeps for ten minutes."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(holds, process=None, seconds=60.0):
    end = time.monotonic() + seconds
    while not holds():
        assert process is None or process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.05)


def is_there(pid):
    """Whether a process runs; one that has ended may wait for ever to be fetched, where init does not do that."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return state != "" and not state.startswith("Z")


def kept(path):
    return {number: value.tolist() for number, value in Journal(path, "run").read(12)}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_caller(tmp_path, how):
    """Both workers are in the middle of a task of ten minutes."""
    pids = lambda: [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]  # noqa: E731
    with started([sys.executable, "-c", CALLER], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: (tmp_path / "journal").exists() and len(kept(tmp_path / "journal")) == 4, process)
        wait_until(lambda: len(pids()) == 2, process)
        workers = pids()
        assert all(is_there(pid) for pid in workers)
        process.send_signal(how)
        assert process.wait(30) == -how
    wait_until(lambda: not any(is_there(pid) for pid in workers), seconds=20)
    calls = []

    def again(item):
        calls.append(item)
        return np.array([item, 1 / (item + 1)])

    found = tasks.run(again, range(12), n_jobs=1, journal=Journal(tmp_path / "journal", "run"))
    assert calls == list(range(4, 12))
    np.testing.assert_array_equal(found, [[item, 1 / (item + 1)] for item in range(12)])


GENERATOR = """
import os, time

class Slow:
    def fit(self, records):
        self.records = records
        open(f"fit-{os.getpid()}-{time.monotonic_ns()}", "w").close()
        if len([name for name in os.listdir(".") if name.startswith("fit-")]) == 5 and os.path.exists("wait"):
            time.sleep(600)
        return self

    def sample(self, n, rng):
        return self.records.iloc[rng.integers(len(self.records), size=n)]

    def journal_key(self):
        return "slow"

slow = Slow()
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_command_that_is_told_to_end_keeps_its_journal(tmp_path, jobs):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a:.3f},{b:.3f}" for a, b in rng.normal(size=(60, 2)))
    (tmp_path / "records.csv").write_text(f"a,b\n{rows}\n")
    (tmp_path / "slow_generator.py").write_text(GENERATOR)
    words = ["audit", "--generator", "slow_generator:slow", "--records", "records.csv", "--trainings", "10", "--json"]
    words += ["--seed", "1", "--jobs", jobs, "--journal"]
    command = [sys.executable, "-m", "whosin", *words]
    options = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    (tmp_path / "wait").touch()
    fits = lambda: list(tmp_path.glob("fit-*"))  # noqa: E731
    with started([*command, "journal"], **options) as process:
        wait_until(lambda: len(fits()) >= 5, process)
        time.sleep(0.5)
        process.terminate()
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 143, said
    # not the last line for certain: loky's resource tracker may warn after it of files that are gone already
    assert "Ended by SIGTERM; a journal keeps what was done." in said.splitlines()
    (tmp_path / "wait").unlink()
    before = len(fits())
    done = subprocess.run([*command, "journal"], check=True, **options)
    resumed = len(fits()) - before
    assert resumed <= 10 - 3
    whole = subprocess.run([*command, "another"], check=True, **options)
    assert json.loads(done.stdout) == json.loads(whole.stdout)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_an_audit_in_blocks_that_is_ended_goes_on(tmp_path, how):
    rng = np.random.default_rng(0)
    for name, size in (("train", 500), ("holdout", 500), ("release", 30_000)):
        frame = pl.DataFrame({f"c{i}": rng.normal(size=size).round(2) for i in range(6)})
        frame.write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "tmp").mkdir()
    words = ["audit", "--train", "train.csv", "--holdout", "holdout.csv", "--synthetic", "release.csv", "--json"]
    command = [sys.executable, "-m", "whosin", *words, "--block-rows", "1000", "--seed", "1", "--journal"]
    options = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options["env"] = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    journal = tmp_path / "journal"
    blocks = lambda: journal.read_bytes().count(b"whosin journal") if journal.exists() else 0  # noqa: E731
    with started([*command, "journal"], **options) as process:
        wait_until(lambda: blocks() >= 3, process)
        process.send_signal(how)
        process.communicate(timeout=60)
        assert process.returncode == (143 if how == signal.SIGTERM else -how)
    if how == signal.SIGTERM:
        assert not list((tmp_path / "tmp").iterdir()), "the copy of the release in Parquet"
    before = journal.read_bytes()
    done = subprocess.run([*command, "journal"], check=True, **options)
    whole = subprocess.run([*command, "another"], check=True, **options)
    assert json.loads(done.stdout) == json.loads(whole.stdout)
    assert journal.read_bytes().startswith(before)
    lines = [kept.count(b"whosin journal") for kept in (before, (tmp_path / "another").read_bytes())]
    assert lines[0] < lines[1]


FOUR = """
import json, os, signal, subprocess, sys

import joblib
import numpy as np

import whosin as wi
from whosin.auditing.models import ReferenceModels
from whosin.mechanisms.secure import SeededSource

kind, how, journals = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
records = np.random.default_rng(0).normal(size=(60, 2))


class Redrawn:
    def fit(self, records):
        self.records = records
        return self

    def sample(self, n, rng):
        return self.records[rng.integers(len(self.records), size=n)]


class Means:
    def fit(self, X, y, rng):
        self.middle = X[y == 1].mean(axis=0)
        return self

    def predict_proba(self, X):
        near = 1 / (1 + np.exp(-X @ self.middle))
        return np.stack([1 - near, near], axis=1)


def median(records):
    return np.median(records, axis=0)


def end_in_the_middle(share):
    with open(journals[0], "rb") as file:
        known = file.read().count(b"whosin journal")
    if how and known >= 3:
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True)
        with open("children", "w") as file:
            file.write(found.stdout)
        os.kill(os.getpid(), how)


def answer(**options):
    if kind == "retraining":
        return wi.audit_retrained(Redrawn(), records, trainings=12, attack="linear", **options).to_dict()
    if kind == "reference models":
        labels = (records[:, 0] > 0).astype(int)
        return ReferenceModels.train(Means(), records, labels, models=8, **options).logits.tolist()
    if kind == "certificate":
        source = {"testing_source": SeededSource(7), "ball": "pilot"}
        return wi.protect(median, records, eta=0.3, subsets=64, **source, **options).to_dict()
    grid = np.linspace(-1.0, 1.0, 12).reshape(6, 2)
    asked = {"epsilon": 2.0, "clip": 1.0, "method": "monte_carlo", "draws": 300_000}
    return wi.population.exponential(records, grid, **asked, **options).to_dict()


with joblib.parallel_config(backend="loky", n_jobs=2):
    found = [answer(rng=1, journal=journal, progress=end_in_the_middle) for journal in journals]
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("retraining", signal.SIGKILL),
        ("reference models", signal.SIGKILL),
        ("certificate", signal.SIGKILL),
        ("certificate", signal.SIGTERM),
        ("population", signal.SIGKILL),
    ],
)
def test_a_run_on_processes_that_is_killed_goes_on(tmp_path, kind, how):
    """The caller ends itself when three results are known: no worker stays, a second run does only what is missing."""

    def run(how, *journals):
        command = [sys.executable, "-c", FOUR, kind, str(int(how)), *journals]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    def kept(journal):
        return (tmp_path / journal).read_bytes()

    killed = run(how, "journal")
    assert killed.returncode == -how, killed.stdout + killed.stderr
    children = [int(pid) for pid in (tmp_path / "children").read_text().split()]
    assert len(children) >= (1 if kind == "population" else 3), "ps, and two workers; populations draw in threads"
    wait_until(lambda: not any(is_there(pid) for pid in children), seconds=20)
    before = kept("journal")
    again, whole = json.loads(run(0, "journal", "another").stdout)
    assert again == whole
    assert kept("journal").startswith(before)
    lines = [content.count(b"whosin journal") for content in (before, kept("journal"), kept("another"))]
    assert 3 <= lines[0] < lines[1] == lines[2]


STARTING = """
import os, signal, subprocess
from functools import partial

import joblib

from whosin.parallel import tasks

double = partial(tasks._beside, int, os.getpid())
running = joblib.Parallel(n_jobs=2, return_as="generator")(joblib.delayed(double)(i) for i in range(4))
found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True)
print(found.stdout, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_that_were_still_starting_when_their_caller_was_killed_end_too():
    """Their first task arrives after its end. They hold its output open, so that reading it ends when they do."""
    command = [sys.executable, "-c", STARTING]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(killed.stdout.split()) >= 3, "ps, and two workers"
    wait_until(lambda: not any(is_there(int(pid)) for pid in killed.stdout.split()), seconds=20)


@pytest.mark.parametrize("before", [signal.SIG_IGN, lambda *_: None, signal.SIG_DFL])
def test_a_host_that_hears_or_ignores_sigterm_still_does_in_a_command(before):
    during = []
    command = clean_errors(lambda: during.append(signal.getsignal(signal.SIGTERM)))
    kept = signal.signal(signal.SIGTERM, before)
    try:
        command()
        assert signal.getsignal(signal.SIGTERM) == before
    finally:
        signal.signal(signal.SIGTERM, kept)
    assert (during[0] == before) == (before != signal.SIG_DFL)
