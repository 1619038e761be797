"""Wall time of the whosin command line against bare imports: python benchmarks/cli_startup.py.

Writes benchmarks/results/cli_startup.json. Standard library only.
"""

from __future__ import annotations

import subprocess
import sys
import time

import _common


def commands() -> dict[str, list[str]]:
    """The measured commands by their label."""
    python = _common.whosin_python()
    program = _common.executable(python.parent.parent, "whosin")
    whosin = [str(program)] if program.exists() else [str(python), "-m", "whosin"]
    found = {
        "whosin explain --epsilon 8": [*whosin, "explain", "--epsilon", "8"],
        "import numpy": [str(python), "-c", "import numpy"],
    }
    if _common.imports_in(_common.RISKCAL_ENV, "riskcal"):
        found["import riskcal"] = [str(_common.executable(_common.RISKCAL_ENV)), "-c", "import riskcal"]
    return found


def wall_seconds(command: list[str]) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    done = subprocess.run(command, env=_common.child_environment(), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise _common.SideFailed("\n".join(done.stderr.strip().splitlines()[-15:]))
    return seconds


def main() -> int:
    """Run every command once to warm the file caches, then alternately."""
    parser = _common.parser_for(__doc__, repeats=7)
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")

    measured = commands()
    seconds: dict[str, list[float]] = {label: [] for label in measured}
    try:
        for command in measured.values():
            wall_seconds(command)
        for _ in range(options.repeats):
            for label, command in measured.items():
                seconds[label].append(wall_seconds(command))
    except _common.SideFailed as failure:
        print(failure, file=sys.stderr)
        return 2

    medians = {label: _common.median(values) for label, values in seconds.items()}
    base = next(iter(medians.values()))
    rows = [(label, f"{value:.3f}", f"{value / base:.2f}") for label, value in medians.items()]
    _common.print_table(("command", "median wall s", "times whosin's"), rows)
    content = {
        "repeats": options.repeats,
        "wall_seconds": seconds,
        "median_wall_seconds": medians,
        "median_relative_to_whosin": {label: value / base for label, value in medians.items()},
    }
    _common.write_results("cli_startup", ("whosin",), content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
