"""A caller that is killed or told to end: no process stays behind, and nothing that was done is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
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
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


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
