"""Blocks of synthetic rows, recoded for a fast scan, and the plain scan over them.

A block holds at most 65,533 rows, so that each of its columns has at most that many values and two bytes name them all:
0 stands for a value of a target that the block lacks, 1 for a column that pads. Targets are recoded for each block.

The plain scan evaluates weight and distance of every pair. The compiled one first looks at two-byte integers and
evaluates only pairs that can still beat the best so far:

* weights, multiplied by a scale s of the target and rounded up: a pair with the integer sum W has weight·s ≤ W;
* numbers, multiplied by a unit u, rounded down and cut at both ends around the median, neither of which moves numbers
  apart by more than one step: two of the integers that differ by D ≥ 2 stand for numbers at least (D - 2)/u apart.

Both scans are therefore exact, and equal to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LANES", "LARGEST_BLOCK", "MOST_COLUMNS", "Block", "Columns", "State", "Targets", "scan_plain"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Codes = NDArray[np.uint16]

LARGEST_BLOCK = 65_533
MOST_COLUMNS = 8192
LANES = 64
"""Pairs that a vectorised loop takes at a time, at most."""

_TOP = 65_535
_LARGEST_UNIT = 16_384
_ROWS, _WIDTH = 64, 512
"""Targets and synthetic rows of a tile of the plain scan."""


@dataclass(frozen=True)
class Columns:
    """The columns, numeric ones last: ``order`` gives their old places; tables by code; u; rounded numbers by code."""

    order: NDArray[np.intp]
    weights: list[Array]
    numbers: list[Array]
    unit: int
    rounded: list[Codes]

    @classmethod
    def of(cls, weights: list[Array], numbers: list[Array | None]) -> Columns:
        numeric = [column for column, table in enumerate(numbers) if table is not None]
        order = np.array([column for column, table in enumerate(numbers) if table is None] + numeric, dtype=np.intp)
        unit = min(_TOP // len(weights), _LARGEST_UNIT)
        tables = [table for table in numbers if table is not None]
        return cls(order, [weights[i] for i in order], tables, unit, [_rounded(table, unit) for table in tables])

    @property
    def others(self) -> int:
        """How many columns are not numeric."""
        return len(self.weights) - len(self.numbers)

    @property
    def numeric_from(self) -> int:
        """Where the numeric columns of a block start: the others are padded to a multiple of four."""
        return -(-self.others // 4) * 4

    @property
    def padded(self) -> int:
        """How many columns a block has: the numeric ones are padded to a multiple of two."""
        return self.numeric_from + -(-len(self.numbers) // 2) * 2

    @property
    def places(self) -> list[int]:
        """Where each column stands in a block."""
        numeric = range(self.numeric_from, self.numeric_from + len(self.numbers))
        return [*range(self.others), *numeric]


def _rounded(table: Array, unit: int) -> Codes:
    """Numbers in steps of 1/unit, rounded down and cut; missing ones are more than ``unit`` steps from all others."""
    missing = np.isnan(table)
    middle = float(np.median(table[~missing])) if not missing.all() else 0.0
    highest = float(_TOP - unit - 2)
    with np.errstate(over="ignore"):
        steps = np.floor((table - middle) * unit) + highest // 2.0
    return np.asarray(np.where(missing, float(_TOP), np.clip(steps, 0.0, highest))).astype(np.uint16)


@dataclass(frozen=True)
class State:
    """The best so far, one entry a target; updated in place."""

    matches: Indices
    matches_index: Indices
    weight: Array
    weight_index: Indices
    distance: Array
    distance_index: Indices
    second: Array

    @classmethod
    def empty(cls, count: int) -> State:
        def whole() -> Indices:
            return np.full(count, -1, dtype=np.int64)

        far = np.full(count, np.inf)
        return cls(whole(), whole(), np.full(count, -1.0), whole(), far, whole(), far.copy())

    def part(self, rows: slice) -> State:
        """A view of some targets."""
        return State(
            self.matches[rows],
            self.matches_index[rows],
            self.weight[rows],
            self.weight_index[rows],
            self.distance[rows],
            self.distance_index[rows],
            self.second[rows],
        )


@dataclass(frozen=True)
class Targets:
    """Some targets as a block sees them: arrays (targets, padded columns), or (targets, numeric columns)."""

    codes: Codes
    weights: Array
    rounded_weights: Codes
    weight_scale: Array
    largest_weight: Array
    numbers: Array
    rounded: Codes


@dataclass(frozen=True)
class Block:
    """Synthetic rows, column by column: arrays (padded columns, rows), or (numeric columns, rows).

    ``LANES`` more rows of two-byte integers match nothing, so that a scan may run over the end.
    """

    columns: Columns
    first_row: int
    count: int
    codes: Codes
    numbers: Array
    rounded: Codes
    translation: list[Codes]

    @classmethod
    def of(cls, columns: Columns, cells: NDArray[Any], first_row: int) -> Block:
        count = len(cells)
        codes = np.ones((columns.padded, count + LANES), dtype=np.uint16)
        numbers = np.zeros((len(columns.numbers), count))
        rounded = np.zeros((columns.padded - columns.numeric_from, count + LANES), dtype=np.uint16)
        translation = []
        for own, place, table in zip(cells.T, columns.places, columns.weights, strict=True):
            seen = np.zeros(len(table), dtype=np.bool_)
            seen[own] = True
            names = np.zeros(len(table), dtype=np.uint16)
            names[seen] = np.arange(2, int(seen.sum()) + 2)
            codes[place, :count] = names[own]
            translation.append(names)
        for place, (table, steps) in enumerate(zip(columns.numbers, columns.rounded, strict=True)):
            own = cells[:, columns.others + place]
            numbers[place], rounded[place, :count] = table[own], steps[own]
        return cls(columns, first_row, count, codes, numbers, rounded, translation)

    def targets(self, cells: NDArray[Any]) -> Targets:
        """Recode some targets, rows of codes in the order of the columns."""
        count, columns = len(cells), self.columns
        codes = np.zeros((count, columns.padded), dtype=np.uint16)
        weights = np.zeros((count, columns.padded))
        numbers = np.zeros((count, len(columns.numbers)))
        rounded = np.zeros((count, len(self.rounded)), dtype=np.uint16)
        tables = zip(cells.T, columns.places, self.translation, columns.weights, strict=True)
        for own, place, names, table in tables:
            codes[:, place], weights[:, place] = names[own], table[own]
        for place, (table, steps) in enumerate(zip(columns.numbers, columns.rounded, strict=True)):
            own = cells[:, columns.others + place]
            numbers[:, place], rounded[:, place] = table[own], steps[own]
        largest = np.zeros(count)
        for place in range(columns.padded):
            largest += weights[:, place]
        scale = np.where(largest > 1e-290, (_TOP - columns.padded - 1) / np.maximum(largest, 1e-290), 0.0)
        steps = np.where(weights > 0.0, np.floor(weights * scale[:, None]) + 1.0, 0.0).astype(np.uint16)
        return Targets(codes, weights, steps, scale, largest, numbers, rounded)


def scan_plain(columns: Columns, block: Block, targets: Targets, state: State, start: int, stop: int) -> None:
    """Bring the state up to date with the rows from ``start`` to ``stop`` of the block: every pair, with numpy."""
    for first in range(0, len(targets.codes), _ROWS):
        rows = slice(first, first + _ROWS)
        for left in range(start, stop, _WIDTH):
            right = min(left + _WIDTH, stop)
            _update(state.part(rows), *_tile(columns, block, targets, rows, slice(left, right)), block.first_row + left)


def _tile(
    columns: Columns, block: Block, targets: Targets, rows: slice, places: slice
) -> tuple[NDArray[np.int16], Array, Array]:
    """Matches, weights and distances of some targets and rows of the block."""
    shape = (len(targets.codes[rows]), places.stop - places.start)
    matches, weight, distance = np.zeros(shape, dtype=np.int16), np.zeros(shape), np.zeros(shape)
    for number, place in enumerate(columns.places):
        equal = targets.codes[rows, place, None] == block.codes[place, places]
        matches += equal
        weight += equal * targets.weights[rows, place, None]
        if number == columns.others - 1:
            distance += columns.others - matches
    for place in range(len(columns.numbers)):
        distance += _differences(targets.numbers[rows, place], block.numbers[place, places])
    return matches, weight, distance


def _differences(a: Array, b: Array) -> Array:
    with np.errstate(over="ignore"):
        apart = np.minimum(np.abs(a[:, None] - b), 1.0)
    missing, also_missing = np.isnan(a)[:, None], np.isnan(b)
    if missing.any() or also_missing.any():
        apart = np.where(missing | also_missing, missing ^ also_missing, apart)
    return apart


def _update(state: State, matches: NDArray[np.int16], weight: Array, distance: Array, first_row: int) -> None:
    everyone = np.arange(len(matches))
    for best, index, values in (
        (state.matches, state.matches_index, matches),
        (state.weight, state.weight_index, weight),
    ):
        place = values.argmax(axis=1)
        found = values[everyone, place]
        better = np.flatnonzero(found > best)
        best[better], index[better] = found[better], first_row + place[better]
    place = distance.argmin(axis=1)
    nearest = distance[everyone, place]
    distance[everyone, place] = np.inf
    state.second[:] = np.minimum(np.maximum(state.distance, nearest), np.minimum(state.second, distance.min(axis=1)))
    better = np.flatnonzero(nearest < state.distance)
    state.distance[better], state.distance_index[better] = nearest[better], first_row + place[better]
