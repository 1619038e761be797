"""Cells: a query seen through finitely many intervals, the only way in which its laws can be compared with certainty.

The cells of a continuous query are fixed on the part of the data that nothing is reported on: quantiles, denser in
both tails, and a cell of its own for every value that occurs often. The symbols of a discrete query are its cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array, Counts

SMALLEST_TAIL = 20
"""Tails are halved until a cell would hold fewer values than this."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cell i holds the numbers with ``edges[i-1] <= x < edges[i]``."""

    edges: Array

    def __len__(self) -> int:
        return len(self.edges) + 1

    def locate(self, values: Array) -> Counts:
        """Return the number of the cell of each value; O(N log k)."""
        return np.searchsorted(self.edges, values, side="right")

    def count(self, located: Counts) -> Counts:
        """Return how many fell into each cell."""
        return np.bincount(located, minlength=len(self))


def symbol_cells(count: int) -> Cells:
    """Return one cell for each symbol 0, 1, …, count-1."""
    return Cells(np.arange(count - 1, dtype=np.float64) + 0.5)


def quantile_cells(values: Array) -> Cells:
    """Return about N^⅓ cells with equal shares of ``values``, halved towards both tails; O(N log N).

    The number grows slowly, so that the plug-in value of two equal laws, about √(2k/(πN)), goes to zero.
    A value with more than half a cell's share gets a cell of its own.
    """
    n = len(values)
    if n == 0:
        return Cells(np.zeros(0))
    ordered = np.sort(values)
    k = max(2, math.ceil(n ** (1 / 3)))
    tails = 2.0 ** -np.arange(1, 60) / k
    tails = tails[tails * n >= SMALLEST_TAIL]
    levels = np.concatenate([np.arange(1, k) / k, tails, 1.0 - tails])
    edges = ordered[np.minimum((levels * n).astype(np.int64), n - 1)]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.append(starts, n))
    atoms = ordered[starts[(lengths > n / (2 * k)) & (lengths > 1)]]
    with np.errstate(over="ignore"):
        beyond = np.nextafter(atoms, np.inf)
    return Cells(np.unique(np.concatenate([edges, atoms, beyond])))


def coarser(cells: Cells, values: Array, fewest: int) -> Cells:
    """Return the cells with neighbours joined, from the top down, until each holds ``fewest`` of ``values``.

    With fewer than twice ``fewest`` values a single cell is left. O(N log k).
    """
    counts = cells.count(cells.locate(values))
    below, kept, inside = np.cumsum(counts), [], 0
    for i in range(len(cells.edges) - 1, -1, -1):
        inside += int(counts[i + 1])
        if inside >= fewest and below[i] >= fewest:
            kept.append(cells.edges[i])
            inside = 0
    return Cells(np.array(kept[::-1], dtype=np.float64))


def log_ratios(members: Counts, non_members: Counts, totals: tuple[Any, Any] | None = None) -> Array:
    """Return ln(r̂/q̂) of each cell (last axis), drawn towards 0 by half a record a cell; 0 where nothing was seen.

    The half record is shared out like the two laws together, so that unequal samples do not tilt rare cells.
    ``totals`` are the numbers of members and non-members where the cells do not add up to them.
    """
    x, y = np.asarray(members, dtype=np.float64), np.asarray(non_members, dtype=np.float64)
    inside, outside = totals or (x.sum(axis=-1, keepdims=True), y.sum(axis=-1, keepdims=True))
    middle = 0.5 * (x / np.maximum(inside, 1.0) + y / np.maximum(outside, 1.0))
    weight = max(1.0, 0.5 * x.shape[-1])
    seen = middle > 0
    r, q = (x + weight * middle) / (inside + weight), (y + weight * middle) / (outside + weight)
    return np.asarray(np.log(np.divide(r, q, out=np.ones_like(r), where=seen)))


def log_ratios_without(members: Counts, non_members: Counts) -> tuple[Array, Array]:
    """Return the log ratio of each cell without one of its members, and without one of its non-members.

    They are what a record that was counted may be scored by; 0 where the cell has no such record.
    """
    inside, outside = int(members.sum()), int(non_members.sum())
    return (
        np.where(members > 0, log_ratios(np.maximum(members - 1, 0), non_members, (inside - 1, outside)), 0.0),
        np.where(non_members > 0, log_ratios(members, np.maximum(non_members - 1, 0), (inside, outside - 1)), 0.0),
    )
