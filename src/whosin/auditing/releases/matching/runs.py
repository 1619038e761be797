"""The rarest run of neighbouring columns in which one released row equals a target.

A release that keeps some columns of a person and makes up the others has rows that agree with no record on the whole.
Columns that belong together mostly stand together, and chance breaks a run soon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int32]


def heaviest_runs(targets: Codes, rows: Codes, weights: Sequence[Array], columns: NDArray[Any]) -> Array:
    """Return for each target the largest weight of neighbouring columns whose codes one of the rows has all.

    ``columns`` gives the places of the columns in their order, ``weights`` for each place those of its codes. From the
    last column to the first, targets and rows are sorted by the columns that follow: of the rows, one of the two next
    to a target begins with the longest run. O((targets + rows)·columns) for sorting, and O(1) for each cell of a run.
    """
    cells = np.concatenate([targets, rows])[:, columns].T.copy()
    tables, count = [weights[place] for place in columns], len(targets)
    order, best, places = np.zeros(cells.shape[1], dtype=np.int64), np.zeros(count), np.arange(cells.shape[1])
    for first in range(len(columns) - 1, -1, -1):
        keys = cells[first] * (order.max() + 1) + order
        sorting = np.argsort(keys, kind="stable")
        order[sorting] = np.append(0, np.cumsum(np.diff(keys[sorting]) > 0))
        is_row = sorting >= count
        before = sorting[np.maximum.accumulate(np.where(is_row, places, 0))]
        after = sorting[np.minimum.accumulate(np.where(is_row, places, places[-1])[::-1])[::-1]]
        for beside in (before, after):
            row, going, weight = np.empty(len(beside), dtype=np.int64), np.arange(count), np.zeros(count)
            row[sorting] = beside
            for column, table in zip(cells[first:], tables[first:], strict=True):
                own = column[going]
                equal = (own == column[row[going]]) & (row[going] >= count)
                going, own = going[equal], own[equal]
                if len(going) == 0:
                    break
                weight[going] += table[own]
            np.maximum(best, weight, out=best)
    return best
