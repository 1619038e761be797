"""What these experiments share: noise scales by every route, proposition 11's data set, and the files."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments._shared import Results
from whosin.numerics.shift import scale_for

Array = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
_files = Results(RESULTS)
read, stamp, save = _files.read, _files.stamp, _files.save
ETAS = (0.05, 0.1, 0.25)


def dp_scale(sensitivity: float, eta: float) -> float:
    """Return the scale of ε-DP on the subsets of the pool, with the ε that theorem 4 makes η: Δ/ln((1+2η)/(1-2η))."""
    return sensitivity / math.log((1.0 + 2.0 * eta) / (1.0 - 2.0 * eta))


def moment_scale(deviation: float, eta: float) -> float:
    """Return the scale of exp(-‖x‖/s) noise that is η-MIP whenever E‖θ - c‖ ≤ deviation: σ/ln(1/(1-2η))."""
    return scale_for("norm_exponential", 2.0 * eta, 2.0 * deviation)


def special_data_set(n: int, text: str) -> Array:
    """Return the data set of proposition 11, as in the "appendix" or as in the "main" text."""
    special = math.sqrt(math.comb(n, n // 2)) ** (-1 if text == "appendix" else 1)
    return np.array([*(2.0**i for i in range(n - 1)), special - (2.0 ** (n // 2 - 1) - 1.0)])


class Halves:
    """1/sum on every half of a pool of numbers."""

    def __init__(self, values: Array) -> None:
        self.n = len(values)
        self.masks = np.array([sum(1 << i for i in who) for who in itertools.combinations(range(self.n), self.n // 2)])
        self.members = (self.masks[:, None] >> np.arange(self.n) & 1).astype(bool)
        self.theta = 1.0 / (self.members @ values)
        self._by_mask = np.full(1 << self.n, np.nan)
        self._by_mask[self.masks] = self.theta

    def adjacent(self, record: int) -> Array:
        """Return |A(D) - A(D - x + x')| for every D that holds the record x and every x' outside D."""
        held = self.members[:, record]
        steps = []
        for other in range(self.n):
            rows = held & ~self.members[:, other]
            moved = self._by_mask[self.masks[rows] ^ (1 << record) ^ (1 << other)]
            steps.append(np.abs(self.theta[rows] - moved))
        return np.concatenate(steps)

    def sensitivity(self) -> float:
        """Return Δ, the largest of them over all records."""
        return max(float(self.adjacent(record).max()) for record in range(self.n))

    def deviation(self) -> float:
        """Return E|θ - c| about the median, the smallest over c."""
        return float(np.mean(np.abs(self.theta - np.median(self.theta))))
