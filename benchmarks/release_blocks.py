"""Blocks of a release on worker processes: python benchmarks/release_blocks.py.

Audits the releases of streaming.py twice: in one process on one thread, and on a Dask cluster of two worker processes
on this machine, which read their own rows. Compiled code is loaded and workers are started before the clock. Each side
runs in a fresh process; the answers of the sides must be equal. Memory is the largest resident memory of a process.
Other load on the machine stretches wall seconds: the ratio speaks of idle cores only. One process may be paused
(``kill -TSTP``, ``kill -CONT``), and its clock stands still. Writes
benchmarks/results/release_blocks.json, with what the figures come to for a billion rows, a million records and a
hundred workers.

small        1 million released rows against 10,000 and 10,000
middle       2 million released rows against 10,000 and 10,000
wide         10 million released rows against 25,000 and 25,000
full         10 million released rows against 100,000 and 100,000: some 10 minutes on idle cores
ceiling      not blocks: two processes that each do all of ``small``, at the same time; what the machine gives at most
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import _common
import streaming

TASKS = {
    "small": (1_000_000, 10_000),
    "middle": (2_000_000, 10_000),
    "wide": (10_000_000, 25_000),
    "full": (10_000_000, 100_000),
}
CEILING, CEILING_OF = "ceiling", "small"
SIDES = ("one process", "two workers")
WORKERS = 2
PAPER = {"rows": 10**9, "records": 10**6, "workers": 100}


def load() -> None:
    """Load the compiled code and what else is loaded late."""
    import numba  # noqa: F401
    import numpy as np
    import polars  # noqa: F401
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401

    from whosin.auditing.releases.matching.match import match_rows

    cells, table = np.zeros((2, 2), dtype=np.int32), np.zeros(1)
    match_rows(cells, cells, [table, table], numbers=[None, table], ranks=[None, table], method="compiled")


def used() -> dict[str, float]:
    """CPU seconds and largest memory of this process."""
    return {"process": os.getpid(), "cpu_seconds": time.process_time(), "peak_mebibytes": _common.peak_mebibytes() or 0}


class Clock:
    """Seconds since it was made, without those in which this process was paused."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        if hasattr(signal, "SIGTSTP"):
            signal.signal(signal.SIGTSTP, self._pause)

    def __call__(self) -> float:
        return time.perf_counter() - self.begin

    def _pause(self, *_: object) -> None:
        before = time.perf_counter()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.begin += time.perf_counter() - before


class Traffic:
    """Counts blocks, the bytes that come back from them, and those of a task's function, which each worker gets."""

    def __init__(self) -> None:
        from whosin.auditing.releases import streamed
        from whosin.parallel import clusters

        self.blocks, self.back, self.sent = 0, 0, 0
        carried, packed = streamed.tasks.stream, clusters._packed

        def counted(function, items, **options):
            for number, value in carried(function, items, **options):
                if isinstance(function, streamed._Block):
                    self.blocks, self.back = self.blocks + 1, self.back + value.nbytes
                yield number, value

        def weighed(pickler, function):
            found = packed(pickler, function)
            if isinstance(function, streamed._Block):
                self.sent += len(found)
            return found

        streamed.tasks.stream, clusters._packed = counted, weighed


def audit(path: Path, count: int) -> Callable[[], dict]:
    """A whole audit on one thread, or on the active backend."""
    import whosin as wi

    train, holdout = streaming.records(count)

    def run() -> dict:
        clock, ended = Clock(), {}

        def progress(share: float) -> None:
            for name, from_share in (("columns", 0.07), ("blocks", 0.7)):
                if share >= from_share - 1e-9:
                    ended.setdefault(name, clock())

        found = wi.audit_synthetic(train, holdout, path, n_jobs=1, rng=0, progress=progress)
        seconds = clock()
        return {
            "advantage": [found.advantage.estimate, found.advantage.lower, found.advantage.upper],
            "copies": list(found.copies),
            "fingerprint": found.fingerprints["synthetic"],
            "columns_seconds": ended["columns"],
            "blocks_seconds": ended["blocks"] - ended["columns"],
            "rest_seconds": seconds - ended["blocks"],
            "seconds": seconds,
        }

    return run


def measure(side: str, path: Path, count: int) -> dict:
    """Run one side in this process; its seconds are those of its clock."""
    load()
    found = (
        _common.measured(side, audit(path, count)) | {"workers": []} if side == SIDES[0] else on_cluster(path, count)
    )
    return found | {"wall_seconds": found["values"].pop("seconds")}


def on_cluster(path: Path, count: int) -> dict:
    """The side of two workers, with what they used and what travelled."""
    import joblib
    from distributed import Client, LocalCluster

    traffic = Traffic()
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, memory_limit="2GiB") as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask", client=client),
    ):
        sys.path.insert(0, str(_common.HERE))
        client.wait_for_workers(WORKERS)
        client.run(sys.path.insert, 0, str(_common.HERE))
        client.run(load)
        before = client.run(used)
        found = _common.measured(SIDES[1], audit(path, count))
        after = client.run(used)
    workers = [
        {
            "cpu_seconds": after[name]["cpu_seconds"] - one["cpu_seconds"],
            "peak_mebibytes": after[name]["peak_mebibytes"],
        }
        for name, one in before.items()
    ]
    return found | {
        "workers": workers,
        "blocks": traffic.blocks,
        "back_bytes": traffic.back,
        "sent_bytes": traffic.sent,
    }


def exchanged(rows: int, better: float) -> float:
    """Rows of answers that come back for each record, if a block betters ``better`` times its share of the rows so far.

    The first reading starts from nothing: each of its blocks returns every record, after each class.
    """
    first, *others = _readings(rows)
    total, before = float(first[1] * first[2]), first[0]
    for chosen, _, blocks in others:
        total += better * min(1.0, chosen / before / blocks) * blocks
        before += chosen
    return total


def _readings(rows: int) -> list[tuple[int, int, int]]:
    """Rows, classes and blocks of each reading of a release."""
    import numpy as np

    from whosin.auditing.releases import streamed
    from whosin.auditing.releases.release_size import sizes_up_to

    counts = np.diff(sizes_up_to(rows), prepend=0)
    plan = streamed.readings(counts, streamed.MOST_ROWS)
    return [(int(counts[group].sum()), len(group), len(cuts)) for group, cuts in plan]


def model(task: str, two: dict) -> dict:
    """What a pair, a row and a record cost, and what that comes to for the sizes of ``PAPER``.

    A pair costs less in larger releases, as more is passed over: taken as it is here, the time is an upper estimate.
    """
    from whosin.auditing.releases.matching.match import Matcher

    rows, records = TASKS[task][0], 2 * TASKS[task][1]
    pair = sum(one["cpu_seconds"] for one in two["workers"]) / (rows * records)
    row, tail = two["values"]["columns_seconds"] / rows, two["values"]["rest_seconds"] / records
    sent, width = two["sent_bytes"] / records / len(_readings(rows)), 8 * (1 + Matcher.NEW)
    base, slope = exchanged(rows, 0.0), exchanged(rows, 1.0) - exchanged(rows, 0.0)
    better = max(0.0, two["back_bytes"] / records / width - base) / slope
    large, many, workers = PAPER["rows"], PAPER["records"], PAPER["workers"]
    return {
        "seconds_per_pair": pair,
        "caller_seconds_per_row": row,
        "caller_seconds_per_record": tail,
        "bytes_of_an_answer": width,
        "bytes_back_per_record": two["back_bytes"] / records,
        "bytes_sent_per_record_worker_and_reading": sent,
        "bettered_per_share_of_rows": better,
        "paper": {
            **PAPER,
            "worker_hours": pair * large * many / 3600 / workers,
            "caller_hours": (row * large + tail * many) / 3600,
            "gibibytes_back": exchanged(large, better) * width * many / 2**30,
            "gibibytes_sent_to_each_worker": sent * many * len(_readings(large)) / 2**30,
            "caller_gibibytes_of_row_classes": 9 * large / 2**30,
        },
    }


def measured_here(side: str, path: Path, task: str) -> dict:
    """Run one side in a fresh process."""
    return _common.run_side(_common.whosin_python(), Path(__file__).name, "--run", side, str(path), str(TASKS[task][1]))


def release(task: str, folder: Path) -> Path:
    """The release of a task, written where it is not there yet."""
    rows = TASKS[task][0]
    path = folder / f"release_{rows}.parquet"
    if not path.exists():
        _common.run_side(_common.whosin_python(), "streaming.py", "--write", str(path), str(rows))
    return path


def run_task(task: str, folder: Path, sides: Sequence[str], known: dict) -> dict:
    """Measure sides of a task, take the others as they are known, and check that they agree."""
    path = release(task, folder)
    found = known.get("sides", {}) | {side: measured_here(side, path, task) for side in sides}
    if set(found) < set(SIDES):
        return {"sides": found}
    one, two = (found[side] for side in SIDES)
    for name in ("advantage", "copies", "fingerprint"):
        if one["values"][name] != two["values"][name]:
            raise SystemExit(f"{task}: the sides differ in {name}")
    ratio = one["wall_seconds"] / two["wall_seconds"]
    return {"sides": found, "speed_of_two_workers": ratio, "load": os.getloadavg()[0], "cost_model": model(task, two)}


def ceiling(folder: Path) -> dict:
    """How much faster two processes that know nothing of each other do two audits than one does."""
    path = release(CEILING_OF, folder)
    alone = measured_here(SIDES[0], path, CEILING_OF)["wall_seconds"]
    with ThreadPoolExecutor(WORKERS) as pool:
        beside = [pool.submit(measured_here, SIDES[0], path, CEILING_OF) for _ in range(WORKERS)]
        seconds = [one.result()["wall_seconds"] for one in beside]
    return {"alone_seconds": alone, "beside_seconds": seconds, "speed_of_two_processes": WORKERS * alone / max(seconds)}


def show(found: dict[str, dict]) -> None:
    """Print what was measured."""
    table = []
    for task, result in found.items():
        for side, one in result["sides"].items():
            own = max((worker["peak_mebibytes"] for worker in one["workers"]), default=one["peak_mebibytes"])
            cpu = one["cpu_seconds"] + sum(worker["cpu_seconds"] for worker in one["workers"])
            table.append((f"{task}, {side}", f"{one['wall_seconds']:.1f}", f"{cpu:.1f}", f"{own:.0f}"))
        if "cost_model" in result:
            table.append((f"{task}, ratio", f"{result['speed_of_two_workers']:.2f}", "", ""))
            print(json.dumps({task: result["cost_model"]}, indent=1))
    _common.print_table(("task", "wall s", "CPU s", "peak MiB a worker"), table)


def main() -> int:
    """Measure every task, or one side in this process."""
    parser = _common.parser_for(__doc__)
    names = (*TASKS, CEILING)
    parser.add_argument("--tasks", nargs="+", choices=names, default=names, help="these tasks alone")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES, help="the other is that of the last run")
    parser.add_argument("--folder", type=Path, help="keeps the releases (default: a temporary folder)")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        side, path, count = options.run
        print(json.dumps(measure(side, Path(path), int(count))))
        return 0
    written = _common.RESULTS / "release_blocks.json"
    content = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    kept = {"tasks": content.get("tasks", {}), CEILING: content.get(CEILING)}
    for task in options.tasks:
        print(task, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.folder or Path(temporary)
            if task == CEILING:
                kept[CEILING] = ceiling(folder)
            else:
                kept["tasks"][task] = run_task(task, folder, options.sides, kept["tasks"].get(task, {}))
        _common.write_results("release_blocks", (*streaming.PACKAGES, "dask", "distributed"), kept)
    show(kept["tasks"])
    print(json.dumps(kept[CEILING]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
