"""Many writers at once lose nothing, and a writer that is killed leaves no half entry."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import dp_accounting.pld.pld_pmf  # noqa: F401 - once, before the writers are forked
import pytest

import whosin as wi
from whosin.ledger import Budget, BudgetError, Ledger

WRITERS, EACH = 8, 25


def write(address, writer, ready):
    ready.wait(60)
    ledger = Ledger(address)
    for number in range(EACH):
        ledger.add(f"{writer}/{number}", dataset="people", guarantee=wi.PureDP(0.01))


def spend(address, ready, kept):
    ready.wait(60)
    ledger = Ledger(address)
    for _ in range(5):
        try:
            ledger.add("x", dataset="people", guarantee=wi.PureDP(1.0), budget=Budget(epsilon=7.0))
        except BudgetError:
            continue
        with kept.get_lock():
            kept.value += 1


def run_together(target, count, *arguments):
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(count)
    processes = [
        context.Process(target=target, args=[*make(number, ready)]) for number in range(count) for make in arguments
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * count


def test_eight_writers_lose_nothing(address):
    """They start together, the first of them makes the ledger."""
    run_together(write, WRITERS, lambda number, ready: (address, number, ready))
    ledger = Ledger(address)
    entries = ledger.entries()
    assert [entry.number for entry in entries] == list(range(1, WRITERS * EACH + 1))
    assert {entry.name for entry in entries} == {f"{w}/{n}" for w in range(WRITERS) for n in range(EACH)}
    for writer in range(WRITERS):
        own = [entry.name for entry in entries if entry.name.startswith(f"{writer}/")]
        assert own == [f"{writer}/{number}" for number in range(EACH)]
    assert ledger.verify().intact


def test_a_budget_holds_against_many_writers(address):
    """The check and the entry are one transaction: seven releases of ε = 1 fit, and no eighth."""
    kept = multiprocessing.get_context("fork").Value("i", 0)
    run_together(spend, 4, lambda number, ready: (address, ready, kept))
    ledger = Ledger(address)
    assert len(ledger) == kept.value == 7
    assert ledger.check(dataset="people").epsilon == 7.0


DIES = """
import os, signal, sys
from sqlalchemy.engine import Connection
from whosin.ledger import Ledger
Connection.commit = lambda self: os.kill(os.getpid(), signal.SIGKILL)
Ledger(sys.argv[1]).add("half", dataset="people")
"""

GOES_ON = """
import sys
from whosin.ledger import Ledger
ledger = Ledger(sys.argv[1])
ledger.add("one", dataset="people")
print("ready", flush=True)
for number in range(100_000):
    ledger.add(str(number), dataset="people")
"""


def test_a_writer_killed_before_the_end_leaves_nothing(address):
    ledger = Ledger(address)
    ledger.add("whole", dataset="people")
    done = subprocess.run([sys.executable, "-c", DIES, address], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [entry.name for entry in ledger.entries()] == ["whole"]
    assert ledger.add("next", dataset="people").number == 2
    assert ledger.verify().intact


def test_writers_killed_at_any_time_leave_whole_entries(address):
    ledger = Ledger(address)
    ledger.add("first", dataset="people")
    chance = random.Random(1)
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", GOES_ON, address], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.2 * chance.random())
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
        assert ledger.verify().intact
    count = len(ledger)
    assert count >= 4
    assert ledger.add("last", dataset="people").number == count + 1


def test_a_busy_ledger_says_so(tmp_path, monkeypatch):
    from whosin.ledger import LedgerError, store

    ledger = Ledger(tmp_path / "l.db")
    ledger.add("x", dataset="people")
    monkeypatch.setattr(store, "WAIT", 0.05)
    with ledger._store._session(writing=True), pytest.raises(LedgerError, match="is busy: another writer"):
        ledger.add("y", dataset="people")
    assert ledger.add("y", dataset="people").number == 2
