"""Time and memory of large audits: python benchmarks/audit_scale.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds census_income_kdd with its two .csv.gz files, 299,285 rows of 42
columns. Each task runs in a fresh process; seconds and growth of memory begin after reading and splitting. Writes
benchmarks/results/audit_scale.json, and leaves there what other tasks found.

scores          limits, band, the risk of each record and 50 groups from the scores of a million members and a million
                non-members, one thread
census_leaky    100,000 training rows, 100,000 held-out rows, and a release of 100,000 rows, 30,000 of them copies of
                training rows with every cell redrawn from its column with probability 0.1; two threads
census_apart    the same with the 99,285 remaining rows as the release; two threads
growth_N        10,000 training rows, 10,000 held-out rows and a leaky release of N rows, one thread
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import _common

DATASET = "census_income_kdd"
SIZES = (10_000, 20_000, 40_000, 80_000)
COPIED, REDRAWN = 0.3, 0.1
PACKAGES = ("whosin", "numpy", "scipy", "scikit-learn", "numba", "polars")


def everyone(folder: Path):
    """Both files as one table."""
    from whosin.tables import read_table

    parts = [gzip.decompress(file.read_bytes()).rstrip() + b"\n" for file in sorted(folder.glob("*.csv.gz"))]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "census.csv"
        path.write_bytes(b"".join(parts))
        return read_table(path, header=False)


def split(folder: Path, records: int, released: int, copied: float):
    """Training rows, held-out rows, and a release of other rows with a share of perturbed copies of training rows."""
    import numpy as np

    from whosin.tables import Table

    table, rng = everyone(folder), np.random.default_rng(0)
    order = rng.permutation(table.rows)
    train, holdout, others = order[:records], order[records : 2 * records], order[2 * records :]
    copies = min(round(copied * released), records)
    sources = np.concatenate([rng.permutation(train)[:copies], others[: released - copies]])
    columns = []
    for column in table.columns:
        redrawn = (rng.random(released) < REDRAWN) & (np.arange(released) < copies)
        columns.append(column.take(np.where(redrawn, rng.choice(train, released), sources)))
    return table.take(train), table.take(holdout), Table(table.names, tuple(columns), "release")


def scores() -> Callable[[], dict]:
    """Two million scores, two normal laws half a deviation apart."""
    import numpy as np

    import whosin as wi

    rng = np.random.default_rng(0)
    members, others = rng.normal(0.5, 1.0, 1_000_000), rng.normal(0.0, 1.0, 1_000_000)
    groups = tuple([f"group {number}" for number in rng.integers(50, size=1_000_000)] for _ in range(2))

    def run() -> dict:
        found = wi.audit(members, others, groups=groups, rng=0)
        known = _short(found.to_dict())
        return known | {"groups": len(found.groups), "riskiest": found.individual.highest(1)[0]["lower"]}

    return run


def tables(folder: Path, records: int, released: int, copied: float, n_jobs: int) -> Callable[[], dict]:
    """A whole audit of a released table."""
    import whosin as wi

    parts = split(folder, records, released, copied)
    return lambda: _short(wi.audit_synthetic(*parts, groups=["column 12"], n_jobs=n_jobs, rng=0).to_dict())


def _short(found: dict) -> dict:
    known = {"advantage": {side: found["advantage"][side] for side in ("estimate", "lower", "upper")}}
    if "release_size" in found:
        known |= {"copies": found["copies"], "shared_rows": found["shared_rows"]}
        known |= {"records_alone": {side: found["records_alone"][side] for side in ("differs", "p_value")}}
    return known


TASKS: dict[str, Callable[[Path], Callable[[], dict]]] = {
    "scores": lambda _: scores(),
    "census_leaky": lambda folder: tables(folder, 100_000, 100_000, COPIED, 2),
    "census_apart": lambda folder: tables(folder, 100_000, 99_285, 0.0, 2),
    **{
        f"growth_{size}": (lambda folder, size=size: tables(folder, 10_000, size, COPIED, 1))  # type: ignore[misc]
        for size in SIZES
    },
}


def measure(task: str, folder: Path) -> None:
    """Prepare one task, load what is loaded late, then run and report it."""
    start = time.process_time()
    import numba  # noqa: F401
    import polars  # noqa: F401
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401

    run = TASKS[task](folder)
    _common.report_cost(run, PACKAGES, time.process_time() - start)


def main() -> int:
    """Measure every task, or one of them in this process."""
    parser = _common.parser_for(__doc__, data=DATASET, repeats=1)
    parser.add_argument("--tasks", nargs="+", choices=tuple(TASKS), default=tuple(TASKS), help="these tasks alone")
    parser.add_argument("--run", choices=tuple(TASKS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = _common.data_folder(options.data, DATASET)
    if options.run:
        measure(options.run, folder)
        return 0
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")

    written = _common.RESULTS / "audit_scale.json"
    before = json.loads(written.read_text(encoding="utf-8"))["runs"] if written.exists() else {}
    runs: dict[str, list[dict]] = {task: [] for task in options.tasks}
    python = _common.whosin_python()
    for repeat in range(options.repeats):
        for task in options.tasks:
            print(f"{task}: {repeat + 1}/{options.repeats}", file=sys.stderr, flush=True)
            runs[task].append(
                _common.run_side(python, Path(__file__).name, "--data", str(folder.parent), "--run", task)
            )

    table, medians = [], {}
    for task, records in runs.items():
        medians[task] = _common.median([one["cpu_seconds"] for one in records])
        wall = _common.median([one["wall_seconds"] for one in records])
        memory = max(one["peak_mebibytes"] or 0.0 for one in records)
        found = records[0]["values"]["advantage"]
        shown = f"{found['estimate']:.3f} ({found['lower']:.3f} to {found['upper']:.3f})"
        table.append((task, f"{medians[task]:.1f}", f"{wall:.1f}", f"{memory:.0f}", shown))
    _common.print_table(("task", "CPU s", "wall s", "peak MiB", "advantage"), table)
    everything = before | runs
    content = {
        "runs": everything,
        "median_cpu_seconds": {
            task: _common.median([one["cpu_seconds"] for one in records]) for task, records in everything.items()
        },
    }
    _common.write_results("audit_scale", PACKAGES, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
