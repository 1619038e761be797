"""A file that a command writes is the old one or the new one, never half: also on a full disk, and when killed.

A limit on the size of files stands for the disk: beyond it a write fails, or, with the default action of the signal,
the kernel ends the process in the middle of that very write.
"""

import os
import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="POSIX limits")

PROGRAM = """
import resource, signal, sys
from whosin.cli.app import app
import whosin, whosin.protection, whosin.reporting, whosin.tables, polars
how, size, *arguments = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if how == "killed" else signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
app(arguments)
"""

OUTPUTS = {
    "there.html": (2000, ["explain", "--epsilon", "1", "--report", "there.html", "--force"]),
    **{
        name: (size, ["protect", "records.csv", "--statistic", "mean", "--eta", "0.1", "--out", name, "--force"])
        for name, size in (("there.json", 100),)
    },
}


@pytest.mark.parametrize("how", ["full", "killed"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_the_old_file_survives(name, how, tmp_path):
    (tmp_path / "records.csv").write_text("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(30)))
    (tmp_path / name).write_bytes(b"old")
    size, arguments = OUTPUTS[name]
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, how, str(size), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path / "matplotlib"), "OMP_NUM_THREADS": "1"},
    )
    assert (tmp_path / name).read_bytes() == b"old"
    if how == "killed":
        assert done.returncode < 0
        return
    assert done.returncode in (2, 74), done.stderr
    assert "Traceback" not in done.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"records.csv", name, "matplotlib"}
    assert not left
