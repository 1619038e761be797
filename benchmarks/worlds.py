"""Time of exact games over 184,756 worlds with 50 outputs: python benchmarks/worlds.py.

Every 10-subset of 20 people is a world; the mechanism publishes a noisy mean of the people's numbers. Run it with a
Python that has whosin. Writes benchmarks/results/worlds.json.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable

import _common

PEOPLE = range(20)
SIZE = 10
OUTPUTS = 50
SCALE = 1.5
SPACING = (len(PEOPLE) - 1) / (OUTPUTS - 1)


def loss(output: int, record: int) -> float:
    """Distance of an output's value to a record."""
    return abs(output * SPACING - record)


def callable_mechanism(records: Iterable[int]) -> dict[int, float]:
    """A mechanism as a plain Python function: the closer to the mean of the records, the likelier."""
    mean = sum(records) / SIZE
    weights = [math.exp(-abs(output * SPACING - mean) / SCALE) for output in range(OUTPUTS)]
    total = math.fsum(weights)
    return {output: weight / total for output, weight in enumerate(weights)}


def vectorised_mechanism():
    """A mechanism of the same size as a whosin object: all laws by one matrix product."""
    import whosin as wi

    return wi.mechanisms.Exponential(range(OUTPUTS), loss=loss, scale=SCALE)


def seconds_of(work: Callable[[], object]) -> tuple[object, dict[str, float]]:
    """Result, CPU seconds and wall seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}


def measure(mechanism: object) -> dict:
    """Time of building the game and of each answer read from it."""
    import whosin as wi

    record: dict = {"seconds": {}, "values": {}}
    game, record["seconds"]["play"] = seconds_of(lambda: wi.worlds.uniform_subsets(PEOPLE, SIZE).play(mechanism))
    for name in ("pmp", "mip", "dp"):
        value, record["seconds"][name] = seconds_of(getattr(game, name))
        try:
            record["values"][name] = float(value)
        except (TypeError, ValueError):
            record["values"][name] = str(value)
    return record


def mechanism_alone() -> dict[str, float]:
    """Time spent inside the Python function itself, without whosin."""

    def work() -> None:
        for world in itertools.combinations(PEOPLE, SIZE):
            callable_mechanism(world)

    return seconds_of(work)[1]


def main() -> int:
    """Measure the chosen mechanisms."""
    parser = _common.parser_for(__doc__, repeats=3)
    kinds = ("callable", "vectorised")
    parser.add_argument("--mechanisms", nargs="+", choices=kinds, default=kinds)
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")

    import whosin  # noqa: F401 - its import time is no part of the measurement

    makers = {"callable": lambda: callable_mechanism, "vectorised": vectorised_mechanism}
    runs: dict[str, list[dict]] = {kind: [] for kind in options.mechanisms}
    alone: list[dict[str, float]] = []
    for _ in range(options.repeats):
        alone.append(mechanism_alone())
        for kind in options.mechanisms:
            runs[kind].append(measure(makers[kind]()))

    rows = [("python mechanism alone", f"{_common.median([one['cpu_seconds'] for one in alone]):.3f}", "")]
    medians: dict[str, dict[str, float]] = {}
    for kind, records in runs.items():
        medians[kind] = {}
        for step in records[0]["seconds"]:
            medians[kind][step] = _common.median([one["seconds"][step]["cpu_seconds"] for one in records])
            value = records[0]["values"].get(step, "")
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            rows.append((f"{kind}: {step}", f"{medians[kind][step]:.3f}", shown))
    print(f"{math.comb(len(PEOPLE), SIZE):,} worlds, {OUTPUTS} outputs")
    _common.print_table(("step", "median CPU s", "value"), rows)

    content = {
        "worlds": math.comb(len(PEOPLE), SIZE),
        "outputs": OUTPUTS,
        "repeats": options.repeats,
        "mechanism_alone_seconds": alone,
        "runs": runs,
        "median_cpu_seconds": medians,
    }
    _common.write_results("worlds", ("whosin", "numpy"), content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
