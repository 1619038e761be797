"""In what order released rows are cut into tiles, so that a tile says much about what its rows miss.

Each cell has one byte: of a category a part of its code, of a number its place among 190 levels of equal shares. Rows
are sorted by bits of these bytes. Which bits come first changes how many tiles can be passed over, and none of the
answers, so it may rest on a sample of the targets: those that tell most of the soft weight and of the distance that a
target misses in other groups, for each bit of their entropy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Index, Single
from whosin.auditing.releases.matching.measures import Columns, Targets

LEVELS = 190
MISSING = 255
"""The level of a missing number: farther from all others than 65 levels."""
_SAMPLE = 256
"""Most targets that are looked at."""
_FAR = 2.0
"""What the share of all distance counts, that of all soft weight being 1."""
_LEAST_BITS = 0.1
"""Entropy that a step costs at least: a column that is nearly constant comes late."""
_REVERSED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], dtype=np.uint8)

Step = tuple[int, int, int]
"""A column, how many of its bits came before, and how many there are with this step."""


def as_bytes(columns: Columns, codes: NDArray[np.int32], ranks: Single) -> NDArray[np.uint8]:
    """Return a byte for each cell: equal cells have equal bytes, and levels rise with ranks."""
    found = np.empty(codes.shape, dtype=np.uint8)
    found[:, : columns.others] = (codes[:, : columns.others] + 1) & 255
    levels = np.clip((ranks.astype(np.float64) + 1.0) * (LEVELS / 2), 0.0, LEVELS - 1.0)
    found[:, columns.others :] = np.where(np.isnan(levels), MISSING, np.nan_to_num(levels))
    return found


def sorted_rows(columns: Columns, table: NDArray[np.uint8], steps: Sequence[Step]) -> Index:
    """Order rows of bytes by steps, as many as 63 bits hold."""
    key, used = np.zeros(len(table), dtype=np.int64), 0
    for column, before, bits in steps:
        if used + bits - before > 63:
            break
        more = bits - before
        key = (key << more) + ((_by_bits(columns, table, column) >> (8 - bits)) & ((1 << more) - 1))
        used += more
    return np.argsort(key, kind="stable")


def _by_bits(columns: Columns, table: NDArray[np.uint8], column: int) -> NDArray[np.uint8]:
    """The bytes of a column; of categories turned round, as the low bits of codes tell most of them apart."""
    return _REVERSED[table[:, column]] if column < columns.others else table[:, column]


def steps_of(columns: Columns, cells: NDArray[np.int32]) -> list[Step]:
    """Return the steps in which rows are sorted for targets with these codes."""
    targets = columns.targets(cells[:: -(-len(cells) // _SAMPLE)])
    table = as_bytes(columns, targets.codes, targets.ranks)
    found = [_told(columns, targets, _by_bits(columns, table, column), column) for column in range(cells.shape[1])]
    whole = np.maximum(np.sum([told[-1, 1:] for told in found], axis=0), 1e-300)
    steps: list[tuple[float, int, int, int]] = []
    for column, told in enumerate(found):
        worth, bits = told[:, 1:] @ (np.array([1.0, _FAR]) / whole), 0
        while bits < 8:
            ratios = (worth[bits + 1 :] - worth[bits]) / np.maximum(told[bits + 1 :, 0] - told[bits, 0], _LEAST_BITS)
            more = int(np.argmax(ratios)) + 1
            steps.append((float(ratios[more - 1]), column, bits, bits + more))
            bits += more
    return [step[1:] for step in sorted(steps, key=lambda step: -step[0])]


def _told(columns: Columns, targets: Targets, levels: NDArray[np.uint8], column: int) -> Array:
    """Entropy, and soft weight and distance that targets miss at least in the groups of others, by bits from 0 to 8."""
    found, weights, number = np.zeros((9, 3)), targets.weights[:, column], column - columns.others
    for bits in range(1, 9):
        groups, counts = np.unique(levels >> (8 - bits), return_inverse=True, return_counts=True)[1:]
        shares = counts / len(levels)
        if number < 0:
            apart = np.where(np.arange(len(counts)) == groups[:, None], 0.0, np.inf)
            missed = [apart, apart]
        else:
            missed = [_apart(part[:, number], groups, len(counts)) for part in (targets.ranks, targets.numbers)]
        soft = np.minimum(np.log1p(missed[0] / targets.shares[:, column, None]), weights[:, None])
        found[bits] = -shares @ np.log2(shares), (soft @ shares).mean(), (np.minimum(missed[1], 1.0) @ shares).mean()
    return found


def _apart(numbers: Single, groups: Index, count: int) -> Array:
    """How far each number is from the range of each group; a missing one is infinitely far from all but its own."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.fmin.at(low, groups, numbers)
    np.fmax.at(high, groups, numbers)
    own = numbers.astype(np.float64)[:, None]
    apart = np.maximum(np.maximum(low - own, own - high), 0.0)
    return np.where(np.arange(count) == groups[:, None], 0.0, np.nan_to_num(apart, nan=np.inf, posinf=np.inf))
