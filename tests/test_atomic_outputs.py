"""A file that whosin writes is the old one or the new one, never half: also on a full disk, and when killed.

A limit on the size of files stands for the disk: beyond it a write fails, or, with the default action of the signal,
the kernel ends the process in the middle of that very write. Kills at random moments are in test_killed_writers.py.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from killed_writers import Stateless
from small_disk import small_disk
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.app import app
from whosin.errors import InputError
from whosin.ledger import Ledger
from whosin.parallel.journal import Journal

pytest.importorskip("resource", reason="POSIX limits")

PROGRAM = """
import resource, signal, sys
import whosin, whosin.protection, whosin.reporting, whosin.tables, polars, matplotlib.font_manager
import whosin as wi
from whosin.cli.app import app
size, *arguments = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
app(arguments)
"""

PROTECT = ["protect", "records.csv", "--statistic", "mean", "--eta", "0.1", "--force", "--out"]
OUTPUTS = {
    "there.html": (2000, ["explain", "--epsilon", "1", "--force", "--report", "there.html"]),
    "there.json": (100, [*PROTECT, "there.json"]),
    "there.csv": (10, [*PROTECT, "there.csv"]),
    "there.npy": (100, [*PROTECT, "there.npy"]),
}


def on_a_full_disk(size, *arguments):
    """Run a command, which blames the disk in one line."""
    with small_disk(size):
        done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 74, done.output
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with records."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records.csv").write_text("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(30)))
    return tmp_path


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_old_file_survives_a_full_disk(name, folder):
    import matplotlib.font_manager  # noqa: F401 - it may write a list of fonts

    (folder / name).write_bytes(b"old")
    on_a_full_disk(OUTPUTS[name][0], *OUTPUTS[name][1])
    assert (folder / name).read_bytes() == b"old"
    assert names(folder) == {"records.csv", name}


@pytest.mark.parametrize("name", ["there.html", "there.json"])
def test_the_old_file_survives_a_kill_in_the_middle_of_a_write(name, folder):
    (folder / name).write_bytes(b"old")
    size, arguments = OUTPUTS[name]
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, str(size), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode < 0, done.stderr
    assert (folder / name).read_bytes() == b"old"


@pytest.mark.parametrize("size", [0, 5000, 20_000])
def test_a_ledger_keeps_its_entries(size, folder):
    pytest.importorskip("sqlalchemy")
    book = Ledger("l.db")
    for number in range(3):
        book.add(str(number), dataset="people")
    on_a_full_disk(size, "ledger", "add", "--name", "x", "--dataset", "people", "--ledger", "l.db")
    assert [entry.name for entry in book.entries()] == ["0", "1", "2"]
    assert book.add("3", dataset="people").number == 4
    assert book.verify().intact


@pytest.mark.parametrize("size", [0, 1, 700, 1500, 4444])
def test_a_journal_keeps_its_lines(size, folder):
    """What was written is there; the line that did not fit is passed over, and others follow it."""
    reported = set()
    book = Journal("j", "run")

    def write_on():
        for number in range(10):
            book.write(number, np.full(100, float(number)))
            reported.add(number)

    with small_disk(size), pytest.raises(InputError, match="journal must be a file that can be written"):
        write_on()
    assert len(reported) == {0: 0, 1: 0, 700: 0, 1500: 1, 4444: 3}[size]
    again = Journal("j", "run")
    again.write(10, np.full(100, 10.0))
    found = dict(again.read(11))
    assert set(found) == reported | {10}
    assert all(np.array_equal(value, np.full(100, float(number))) for number, value in found.items())


def test_checkpoints_keep_the_old_state(folder):
    torch = pytest.importorskip("torch")
    from experiments.gans import checkpoints
    from whosin.training.checkpoint import Checkpoint

    module, optimizer = torch.nn.Linear(90, 90), Stateless()
    kept, other = Checkpoint(folder / "kept" / "j", "key"), folder / "gan.pt"
    kept.write(module, optimizer, 1)
    checkpoints.write(other, {"key": "key", "weights": torch.ones(90, 90)})
    with small_disk(20_000), pytest.raises(InputError, match="journal must be a path that can be written"):
        kept.write(module, optimizer, 2)
    with small_disk(20_000), pytest.raises(InputError, match="checkpoint must be a path that can be written"):
        checkpoints.write(other, {"key": "key", "weights": torch.zeros(90, 90)})
    assert kept.read(module, optimizer) == 1
    assert bool((checkpoints.read(other, "key")["weights"] == 1).all())
    assert names(folder / "kept") == {kept.path.name}
    assert names(folder) == {"records.csv", "kept", "gan.pt"}


def test_files_are_on_the_disk_before_they_take_their_place(folder, monkeypatch):
    """A rename that reaches the disk before the content would leave an empty file after a power cut."""
    torch = pytest.importorskip("torch")
    from experiments.gans import checkpoints
    from whosin.training.checkpoint import Checkpoint

    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, real=real, name=name: [calls.append(name), real(*given)][1])
    writers = (
        lambda: wi.report(wi.PureDP(1.0), folder / "a.html"),
        lambda: Checkpoint(folder / "j", "key").write(torch.nn.Linear(2, 2), Stateless(), 1),
        lambda: checkpoints.write(folder / "gan.pt", {"key": "key"}),
    )
    for write in writers:
        calls.clear()
        write()
        assert calls == ["fsync", "replace"]


def test_the_name_of_a_journal_is_on_the_disk(folder, monkeypatch):
    synced, real = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: [synced.append(os.path.samestat(os.fstat(handle), os.stat(folder))), real(handle)]
    )
    Journal(folder / "j", "run").write(0, 1.0)
    assert synced == [False, True, False]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_output_that_nobody_can_keep():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "whosin", "explain", "--epsilon", "1", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (74, "Error: No space left on device\n")
