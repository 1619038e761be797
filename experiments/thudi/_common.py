"""What these experiments share: theorem 1 from the library, axes in percent, and the folder of the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import whosin as wi
from experiments._shared import (
    Results,
)

RESULTS = Path(__file__).parent / "results"
_files = Results(RESULTS)
read, stamp, save = _files.read, _files.stamp, _files.save


def posterior_bound(epsilon: float, prior: float) -> float:
    """Return theorem 1's upper bound on the positive accuracy, P(x in D | S), at P(1) = prior, from the library."""
    return wi.PureDP(epsilon).posterior(prior)[1]


def series(function: Callable[[float], float], points: Iterable[float]) -> list[float]:
    """Return the function's values as plain floats."""
    return [float(function(point)) for point in points]
