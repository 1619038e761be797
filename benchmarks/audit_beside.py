"""What an audit costs a user: python benchmarks/audit_beside.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds bench_adult10k: train, holdout, leaky and safe as CSV files of
10,000 rows each. `whosin audit` runs as a user would run it, with the threads that libraries take by default: alone,
and beside a process that keeps one core busy, in turn. CPU and wall seconds of the whole command, imports included.
Writes benchmarks/results/audit_beside.json; --repeats changes the number of runs (default 3).
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import _common

DATASET = "bench_adult10k"
BUSY = "while True: pass"


def default_environment() -> dict[str, str]:
    """The environment of a user who set no number of threads."""
    return {name: value for name, value in os.environ.items() if name not in (*_common.THREADS, "PYTHONPATH")}


@contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    """Keep one core busy, or none."""
    if not wanted:
        yield
        return
    other = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def audit(folder: Path, release: str, busy: bool) -> dict:
    """Run one command and return its seconds and its verdict."""
    tables = {"--train": "train", "--holdout": "holdout", "--synthetic": release}
    command = [str(_common.executable(Path(sys.prefix), "whosin")), "audit", "--json"]
    for option, name in tables.items():
        command += [option, str(folder / f"{name}.csv")]
    with busy_core(busy):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, env=default_environment(), capture_output=True, text=True, check=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(done.stdout)
    return {"cpu_seconds": cpu, "wall_seconds": wall, "verdict": found["verdict"]["state"]}


def main() -> int:
    """Run every release alone and beside a busy core."""
    parser = _common.parser_for(__doc__, data=DATASET, repeats=3)
    options = parser.parse_args()
    folder = _common.data_folder(options.data, DATASET)
    audit(folder, "leaky", busy=False)
    runs: dict[str, list[dict]] = {}
    for _ in range(options.repeats):
        for release in ("leaky", "safe"):
            for busy in (False, True):
                name = f"{release}, {'one core busy' if busy else 'alone'}"
                runs.setdefault(name, []).append(audit(folder, release, busy))
    found = {
        name: {
            "cpu_seconds": statistics.median(run["cpu_seconds"] for run in done),
            "wall_seconds": statistics.median(run["wall_seconds"] for run in done),
            "runs": done,
        }
        for name, done in runs.items()
    }
    for name, cost in found.items():
        print(f"{name}: {cost['cpu_seconds']:.1f} CPU s, {cost['wall_seconds']:.1f} s", flush=True)
    _common.write_results("audit_beside", ("whosin",), found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
