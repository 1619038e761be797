"""The exponential mechanism on a random subset of a pool, in a form that is kind to arithmetic: one row an outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from whosin.arrays import Array, Index

GENTLE = 300.0
"""Range of a record's logits up to which e^logit is tabulated; beyond, swaps are computed in the log domain."""

_CHUNK = 1024


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
        additions = _CHUNK + len(logits) / _CHUNK  # in a row, where a subset's logits are summed
        rounding = 2.0**-52 * (k + 1) * (float(np.abs(logits[0]).max()) + (24.0 + additions) * largest)
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
    def share(self) -> float:
        return self.k / self.records

    def log_law(self, drawn: Array) -> Array:
        """ln p_w (draws, outcomes) of subsets given as rows of 0 and 1."""
        sums = sum(drawn[:, a : a + _CHUNK] @ self.table[:, a : a + _CHUNK].T for a in range(0, self.records, _CHUNK))
        return np.asarray(log_softmax(self.offset - sums, axis=1))
