"""Time of reading a text file beside polars alone: python benchmarks/reading.py.

Writes files of a made-up table of a million rows and 15 columns (nine of numbers, five of labels, one of dates) to a
temporary folder, as a plain CSV and in ways that people have, and reads each by turns with polars (which is told what
it cannot recognise) and with whosin.tables.read_table. Both use the default threads. The ratio is that of the medians.
Writes benchmarks/results/reading.json.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import _common

ROWS = 1_000_000
PACKAGES = ("whosin", "numpy", "polars")


def table(rows: int):
    """A table of mixed columns, seeded."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(17)
    words = np.array(["alpha", "beta", "gamma", "delta and phi"])
    return pl.DataFrame(
        {f"whole {i}": rng.integers(0, 100_000, rows) for i in range(5)}
        | {f"number {i}": rng.normal(size=rows).round(4) for i in range(4)}
        | {f"label {i}": words[rng.integers(0, 4, rows)] for i in range(5)}
        | {"day": np.datetime64("2020-01-01") + rng.integers(0, 3000, rows)}
    )


def written(folder: Path, rows: int) -> dict[str, tuple[Path, dict]]:
    """Write the table in several ways; with each what polars has to be told."""
    import polars as pl

    frame, ways = table(rows), {}
    frame.write_csv(folder / "plain.csv")
    ways["plain"] = folder / "plain.csv", {}
    frame.write_csv(folder / "commas.csv", separator=";", decimal_comma=True)
    ways["semicolons and decimal commas"] = folder / "commas.csv", {"separator": ";", "decimal_comma": True}
    some = pl.int_range(rows) % 50 == 7
    gaps = frame.with_columns(pl.when(some).then(None).otherwise(pl.col("whole 0")).alias("whole 0"))
    gaps.write_csv(folder / "gaps.csv", null_value="?")
    ways["'?' among the numbers"] = folder / "gaps.csv", {"null_values": ["?"]}
    frame.write_csv(folder / "quoted.csv", quote_style="non_numeric")
    ways["quoted labels"] = folder / "quoted.csv", {}
    return ways


def timed(work, *given, **named) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work(*given, **named)
    return time.perf_counter() - start


def main() -> int:
    """Write the files and read each by turns."""
    parser = _common.parser_for(__doc__, repeats=5)
    parser.add_argument("--rows", type=int, default=ROWS, help="fewer print, and write no results")
    options = parser.parse_args()
    import polars as pl

    from whosin.tables import read_table

    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (path, told) in written(Path(folder), options.rows).items():
            sides: dict[str, list[float]] = {"polars": [], "whosin": []}
            for _ in range(options.repeats):
                sides["polars"].append(timed(pl.read_csv, path, try_parse_dates=True, **told))
                sides["whosin"].append(timed(read_table, path))
            medians = {side: statistics.median(seconds) for side, seconds in sides.items()}
            ratio = medians["whosin"] / medians["polars"]
            results[name] = {"seconds": sides, "ratio": ratio}
            print(f"{name}: polars {medians['polars']:.2f} s, whosin {medians['whosin']:.2f} s, ratio {ratio:.2f}")
    if options.rows == ROWS:
        _common.write_results("reading", PACKAGES, {"rows": options.rows, "files": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
