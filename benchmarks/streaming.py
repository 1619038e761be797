"""Time and memory of audits of releases that are read in blocks: python benchmarks/streaming.py.

Writes Parquet files of a made-up population (five categorical and five numeric columns, seeded) to a temporary folder,
one row in a hundred being a training row in which each cell is redrawn with probability 0.1, and audits them on two
threads. Each task runs in a fresh process; memory is the largest resident memory of that process, seconds begin when
the records are in memory. Writes benchmarks/results/streaming.json after each task, and leaves there what others found.

growth_N     N million released rows against 10,000 and 10,000; the slope is that of log CPU seconds against log N
records_N    1 million released rows against N thousand records, half of them training rows; the same for N
full_10      10 million released rows against 100,000 training rows and 100,000 held-out rows
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import _common

PACKAGES = ("whosin", "numpy", "scipy", "scikit-learn", "numba", "polars")
TASKS = {
    **{f"growth_{millions}": (millions, 10_000) for millions in (1, 2, 4, 8)},
    **{f"records_{thousands}": (1, 500 * thousands) for thousands in (100, 200, 400)},
    "full_10": (10, 100_000),
}
RECORDS, PIECE = 100_000, 500_000
LEAKED, REDRAWN = 0.01, 0.1


def people(rng, rows: int):
    """A made-up population of mixed columns, some of them linked."""
    import numpy as np
    import polars as pl

    job = rng.choice(12, rows, p=[0.2, 0.15, 0.12, 0.1, 0.1, 0.08, 0.07, 0.06, 0.05, 0.04, 0.02, 0.01])
    school = np.clip(job // 3 + rng.integers(-1, 2, rows), 0, 5)
    married = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])

    def words(letter: str, codes):
        names = np.array([f"{letter}{i}" for i in range(int(codes.max()) + 1)])
        return names[codes]

    return pl.DataFrame(
        {
            "town": words("town", rng.zipf(1.5, rows).clip(1, 60)),
            "job": words("job", job),
            "school": words("school", school),
            "sex": rng.random(rows) < 0.5,
            "married": words("m", married),
            "age": np.clip(rng.normal(40 + 5 * married, 14, rows), 17, 95).round(),
            "hours": np.where(rng.random(rows) < 0.45, 40, np.clip(rng.normal(38, 12, rows), 1, 99).round()),
            "income": rng.lognormal(10 + 0.15 * school, 0.7, rows).round(-2),
            "gain": np.where(rng.random(rows) < 0.9, 0.0, rng.lognormal(7, 1, rows).round()),
            "score": rng.normal(0, 1, rows).round(3),
        }
    )


def records(count: int = RECORDS):
    """So many training rows and held-out rows. The first RECORDS of either side are always the same."""
    import numpy as np
    import polars as pl

    sides = [], []
    for seed in range(-(-count // RECORDS)):
        rng = np.random.default_rng(seed)
        for side in sides:
            side.append(people(rng, RECORDS))
    return tuple(pl.concat(side).head(count) for side in sides)


def pieces(rows: int):
    """The release, piece by piece: fresh rows, and some training rows with cells redrawn."""
    import numpy as np
    import polars as pl

    train, _ = records()
    for start in range(0, rows, PIECE):
        rng = np.random.default_rng((1, start))
        count = min(PIECE, rows - start)
        fresh, leaked = people(rng, count), round(LEAKED * count)
        copies = train[rng.integers(RECORDS, size=leaked)]
        redrawn = [
            pl.select(
                pl.when(pl.Series(rng.random(leaked) < REDRAWN)).then(fresh[name][:leaked]).otherwise(copies[name])
            )
            .to_series()
            .alias(name)
            for name in fresh.columns
        ]
        yield pl.concat([pl.DataFrame(redrawn), fresh[leaked:]])


def write(path: Path, rows: int) -> None:
    """Write the release; the pieces go through the disk, so that this too takes little memory."""
    import polars as pl

    parts = []
    for number, piece in enumerate(pieces(rows)):
        parts.append(path.with_name(f"part {number}.parquet"))
        piece.write_parquet(parts[-1])
    pl.scan_parquet(parts).sink_parquet(path, compression="zstd")
    for part in parts:
        part.unlink()
    print("{}")


def audit(path: Path, count: int) -> Callable[[], dict]:
    """A whole audit of a file with so many records on either side."""
    import whosin as wi

    train, holdout = records(count)

    def run() -> dict:
        found = wi.audit_synthetic(train, holdout, path, n_jobs=2, rng=0)
        return {
            "rows": found.synthetic,
            "advantage": [found.advantage.estimate, found.advantage.lower, found.advantage.upper],
            "copies": list(found.copies),
            "near_copies": list(found.near_copies or ()),
            "fingerprint": found.fingerprints["synthetic"],
        }

    return run


def measure(path: Path, count: int) -> None:
    """Load what is loaded late, then run and report one audit."""
    start = time.process_time()
    import numba  # noqa: F401
    import polars  # noqa: F401
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401

    _common.report_cost(audit(path, count), PACKAGES, time.process_time() - start)


def slope(runs: dict[str, dict], tasks: str, size: str) -> float | None:
    """Least-squares slope of log CPU seconds against the log of a size, over tasks whose names begin so."""
    points = [(one[size], one["cpu_seconds"]) for name, one in runs.items() if name.startswith(tasks)]
    if len(points) < 2:
        return None
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    middle, level = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - middle) * (y - level) for x, y in zip(xs, ys, strict=True)) / sum((x - middle) ** 2 for x in xs)


def show(runs: dict[str, dict]) -> None:
    """Print what was measured."""
    table = [
        (
            task,
            f"{one['cpu_seconds']:.0f}",
            f"{one['wall_seconds']:.0f}",
            f"{one['peak_mebibytes']:.0f}",
            f"{one['file_mebibytes']:.0f}",
            "{:.4f} ({:.4f} to {:.4f})".format(*one["values"]["advantage"]),
        )
        for task, one in runs.items()
    ]
    _common.print_table(("task", "CPU s", "wall s", "peak MiB", "file MiB", "advantage"), table)


def main() -> int:
    """Write and measure every release, or measure one file in this process."""
    parser = _common.parser_for(__doc__)
    parser.add_argument("--tasks", nargs="+", choices=tuple(TASKS), default=tuple(TASKS), help="these tasks alone")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(Path(options.write[0]), int(options.write[1]))
        return 0
    if options.run:
        measure(Path(options.run[0]), int(options.run[1]))
        return 0
    written = _common.RESULTS / "streaming.json"
    runs: dict[str, dict] = json.loads(written.read_text(encoding="utf-8"))["runs"] if written.exists() else {}
    python = _common.whosin_python()
    for task in options.tasks:
        millions, count = TASKS[task]
        print(task, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "release.parquet"
            # in a process of its own: where processes start by vfork, the peak of the parent counts as the child's
            _common.run_side(python, Path(__file__).name, "--write", str(path), str(millions * 1_000_000))
            size = path.stat().st_size / 2**20
            runs[task] = _common.run_side(python, Path(__file__).name, "--run", str(path), str(count))
            runs[task] |= {"file_mebibytes": size, "rows": millions * 1_000_000, "records": 2 * count}
        content = {
            "runs": {name: runs[name] for name in TASKS if name in runs},
            "growth_log_log_slope": slope(runs, "growth", "rows"),
            "records_log_log_slope": slope(runs, "records", "records"),
        }
        _common.write_results("streaming", PACKAGES, content)
    show(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
