"""The exponential mechanism on a random subset of a pool, in a form that is kind to arithmetic: one row an outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Game"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

GENTLE = 300.0
"""Range of a record's logits up to which e^logit is tabulated; beyond, swaps are computed in the log domain."""


@dataclass(frozen=True, eq=False)
class Game:
    """The pool in a form that is kind to arithmetic: one row an outcome.

    p_w(D) does not change when a constant is added to all logits of a record, or when a column is shifted and
    ``offset`` takes the shift up. Rows are differences from record 0, centred per record, so that no entry exceeds
    A_x/2. Columns that differ by a constant have the same log ratios; they are merged: ``group`` says into which row,
    ``portion`` is their share of it. ``rounding`` bounds the error of a computed probability, relative or absolute.
    """

    table: Array
    offset: Array
    group: Index
    portion: Array
    k: int
    rounding: float
    raised: Array | None
    lowered: Array | None

    @classmethod
    def prepared(cls, logits: Array, k: int) -> Game:
        shifted = np.ascontiguousarray((logits - logits[0]).T) + 0.0
        rows, group = np.unique(shifted, axis=0, return_inverse=True)
        group = group.reshape(-1)
        shift = -float(k) * logits[0]
        shift -= shift.max()
        offset = np.full(len(rows), -np.inf)
        np.logaddexp.at(offset, group, shift)
        rows -= 0.5 * (rows.max(axis=0) + rows.min(axis=0))
        largest = float(np.abs(rows).max())
        rounding = 2.0**-52 * k * (float(np.abs(logits[0]).max()) + (24.0 + math.log2(k)) * largest)
        gentle = 2.0 * largest <= GENTLE
        return cls(
            table=rows,
            offset=offset,
            group=group,
            portion=np.exp(shift - offset[group]),
            k=k,
            rounding=8.0 * rounding + 2.0**-46,
            raised=np.exp(rows) if gentle else None,
            lowered=np.exp(-rows) if gentle else None,
        )

    @property
    def outcomes(self) -> int:
        return len(self.table)

    @property
    def records(self) -> int:
        return len(self.table[0])

    @property
    def matched(self) -> int:
        return min(self.k, self.records - self.k)

    @property
    def share(self) -> float:
        return self.k / self.records

    def log_law(self, orders: Index, space: Array) -> Array:
        """ln p_w(D), (outcomes, draws), for the first k of each order; ``space`` has room for the smaller side."""
        if 2 * self.k <= self.records:
            weights = -_gathered_sum(self.table, orders[:, : self.k], space)
        else:
            weights = _gathered_sum(self.table, orders[:, self.k :], space) - self.table.sum(axis=1)[:, None]
        weights += self.offset[:, None]
        weights -= weights.max(axis=0)
        weights -= np.log(np.exp(weights).sum(axis=0))
        return weights


def _gathered_sum(table: Array, chosen: Index, space: Array) -> Array:
    np.take(table, chosen, axis=1, out=space, mode="clip")
    return np.asarray(space.sum(axis=2))
