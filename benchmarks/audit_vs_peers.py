"""Compare whosin's audit with other tools on one benchmark: python benchmarks/audit_vs_peers.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds bench_adult10k: train, holdout, leaky and safe as CSV files of
10,000 rows each, and meta.json. Each tool lives in an environment of its own, which is made when absent. The tools run
alternately, each measure of each release in a fresh process with one thread; repetition k has seed k on every side.
Writes benchmarks/results/audit_vs_peers.json. Standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import _common

RELEASES = ("leaky", "safe")
SIDES = {
    "whosin": ("_audit_side.py", ("audit",)),
    "anonymeter": ("_anonymeter_side.py", ("linkability", "singling_out")),
    "sdmetrics": ("_sdmetrics_side.py", ("overfitting",)),
}
PINNED = {"anonymeter": "1.1.0", "sdmetrics": "0.32.0"}


def python_of(side: str) -> Path:
    """Interpreter of one side."""
    return _common.whosin_python() if side == "whosin" else _common.peer_python(side, PINNED[side])


def answer(measure: str, values: dict) -> str:
    """The main number of one measure, with its interval where it has one."""
    if measure == "audit":
        found = values["advantage"]
        return f"advantage {found['estimate']:.3f} ({found['lower']:.3f} to {found['upper']:.3f})"
    if measure == "overfitting":
        return f"score {values['score']:.3f}"
    low, high = values["interval"]
    return f"risk {values['risk']:.3f} ({low:.3f} to {high:.3f})"


def show(runs: dict) -> None:
    """Print the answers and costs."""
    rows = []
    for name, by_release in runs.items():
        measure = name.split()[1]
        for release, records in by_release.items():
            seconds = _common.median([one["cpu_seconds"] for one in records])
            memory = max(one["peak_mebibytes"] or 0.0 for one in records)
            answers = "; ".join(answer(measure, one["values"]) for one in records)
            rows.append((f"{name}, {release}", f"{seconds:.1f}", f"{memory:.0f}", answers))
    _common.print_table(("measure", "median CPU s", "peak MiB", "answer of each repetition"), rows)


def main() -> int:
    """Run the comparison."""
    parser = _common.parser_for(__doc__, data="bench_adult10k", repeats=2)
    parser.add_argument("--sides", nargs="+", choices=tuple(SIDES), default=tuple(SIDES), help="print, write nothing")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    folder = _common.data_folder(options.data, "bench_adult10k")

    pythons = {side: python_of(side) for side in options.sides}
    runs: dict[str, dict[str, list[dict]]] = {}
    versions: dict[str, dict] = {}
    try:
        for seed in range(options.repeats):
            for side, python in pythons.items():
                script, measures = SIDES[side]
                for measure in measures:
                    for release in RELEASES:
                        name = f"{side} {measure}"
                        print(f"{name}, {release}: {seed + 1}/{options.repeats}", file=sys.stderr, flush=True)
                        found = _common.run_side(python, script, measure, str(folder), release, str(seed))
                        versions[side] = found.pop("versions")
                        runs.setdefault(name, {}).setdefault(release, []).append(found)
    except _common.SideFailed as failure:
        print(failure, file=sys.stderr)
        return 2

    show(runs)
    if set(options.sides) == set(SIDES):
        content = {
            "repeats": options.repeats,
            "threads": 1,
            "versions": versions,
            "runs": runs,
        }
        _common.write_results("audit_vs_peers", (), content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
