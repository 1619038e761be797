"""What both measured sides share: the task parameters, the clock and the one-line JSON report."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

CURVE = {"noise_multiplier": 0.8, "sample_rate": 0.004, "steps": 2000}
CURVE_POINTS = 100
CURVE_LOWEST_FPR = 1e-6
CHECK_FPR = [1e-5, 1e-4, 1e-3, 1e-2]
TRUE_TPR = [6.26e-5, 4.63e-4, 3.45e-3, 0.02531]
TRAINING = {"sample_rate": 0.001, "steps": 10_000}
TARGET_ADVANTAGE = 0.1
TARGET_TPR = 0.02
TARGET_FPR = 0.01
LEAST_NOISE = 0.5  # where riskcal starts to search; from its default of 0.1 it takes up to ten times as long


def curve_fpr() -> list[float]:
    """The false positive rates of the curve task: log-spaced from 1e-6 to 1."""
    low = math.log10(CURVE_LOWEST_FPR)
    return [10 ** (low * (1 - k / (CURVE_POINTS - 1))) for k in range(CURVE_POINTS)]


@dataclass
class Timed:
    """A result and what it cost."""

    value: object
    cpu_seconds: float
    wall_seconds: float


def timed(work: Callable[[], object]) -> Timed:
    """Run the work once and measure the CPU time of this process and the wall time."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return Timed(value, time.process_time() - cpu, time.perf_counter() - wall)


def attempt(work: Callable[[], object]) -> dict[str, object]:
    """What a call with bad input did: the value it returned or the error it raised.

    A misspelt name or a wrong signature is a fault of the benchmark, not a refusal: it is passed on.
    """
    try:
        value = work()
    except (AttributeError, NameError, TypeError):
        raise
    except Exception as error:
        return {"raised": type(error).__name__, "message": str(error)}
    return {"returned": plain(value)}


def plain(value: object) -> object:
    """Turn numpy scalars and arrays into JSON values; non-finite numbers become strings."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return repr(value)


def report(task: str, cost: Timed, values: dict, import_seconds: float, versions: dict[str, str]) -> None:
    """Print the one JSON line."""
    line = {
        "task": task,
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "import_seconds": import_seconds,
        "values": plain(values),
        "versions": versions,
    }
    print(json.dumps(line, allow_nan=False))
