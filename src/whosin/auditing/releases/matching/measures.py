"""What is measured between a target and a released row, the best so far of each target, and the plain scan.

The plain scan evaluates every pair with numpy. It and the compiled one (:mod:`.compiled`) add and multiply the same
numbers in the same order, so that they are equal to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array, Flags, Index, Indices, Single

Tables = Sequence[ArrayLike | None]

SMALL = 2.0**-512
"""A product of shares that falls below is multiplied by 1/SMALL, and the power counted, so that none underflows."""
_ROWS, _WIDTH = 64, 512
"""Targets and released rows of a tile."""


@dataclass(frozen=True)
class Columns:
    """The columns, numeric ones last: ``order`` gives their old places; weights by code, and those of numeric ones."""

    order: Index
    weights: list[Array]
    numbers: list[Single]
    ranks: list[Single]

    @classmethod
    def of(cls, weights: Sequence[ArrayLike], numbers: Tables | None, ranks: Tables | None) -> Columns:
        """Return columns of which those are numeric that have a table of numbers, and one of ranks."""
        numbers, ranks = (tables if tables is not None else [None] * len(weights) for tables in (numbers, ranks))
        numeric = [column for column, table in enumerate(numbers) if table is not None]
        order = np.array([column for column, table in enumerate(numbers) if table is None] + numeric, dtype=np.intp)
        tables = [[np.asarray(table[i], dtype=np.float32) for i in numeric] for table in (numbers, ranks)]
        return cls(order, [np.asarray(weights[i], dtype=np.float64) for i in order], *tables)

    @property
    def others(self) -> int:
        """How many columns are not numeric."""
        return len(self.weights) - len(self.numbers)

    def targets(self, cells: NDArray[np.int32]) -> Targets:
        """Look up what the scans need of some targets, rows of codes in the order of the columns."""
        numeric = range(self.others, len(self.weights))
        weights = _looked_up(self.weights, cells, range(len(self.weights)), np.float64)
        return Targets(
            cells,
            weights,
            np.exp(-weights),
            _looked_up(self.numbers, cells, numeric, np.float32),
            _looked_up(self.ranks, cells, numeric, np.float32),
        )


def _looked_up(tables: list[Any], cells: NDArray[np.int32], places: range, kind: Any) -> NDArray[Any]:
    found = np.empty((len(cells), len(places)), dtype=kind)
    for column, (table, place) in enumerate(zip(tables, places, strict=True)):
        found[:, column] = table[cells[:, place]]
    return found


@dataclass(frozen=True)
class Targets:
    """Some targets: codes, weights and shares, (targets, columns); numbers and ranks, (targets, numeric columns)."""

    codes: NDArray[np.int32]
    weights: Array
    shares: Array
    numbers: Single
    ranks: Single


@dataclass(frozen=True)
class Batch:
    """Some released rows: their codes, -1 for a value that no target has; numbers and ranks; growing row numbers."""

    codes: NDArray[np.int32]
    numbers: Single
    ranks: Single
    rows: Indices

    def part(self, rows: slice) -> Batch:
        """Return some of the rows."""
        return Batch(*(getattr(self, one.name)[rows] for one in fields(self)))


@dataclass(frozen=True)
class State:
    """The best so far, one entry a target; updated in place. ``rest``·SMALL**``power`` is the smallest product."""

    matches: Indices
    weight: Array
    weight_index: Indices
    power: Indices
    rest: Array
    distance: Array
    distance_index: Indices
    second: Array
    run: Array

    @classmethod
    def empty(cls, count: int) -> State:
        """Return the state before the first row."""
        none, far = np.full(count, -1, dtype=np.int64), np.full(count, np.inf)
        power, rest = np.zeros(count, dtype=np.int64), np.ones(count)
        return cls(none, np.full(count, -1.0), none.copy(), power, rest, far, none.copy(), far.copy(), np.zeros(count))

    def part(self, rows: slice | Index) -> State:
        """Return some targets: a view for a slice, a copy for indices."""
        return State(*(getattr(self, one.name)[rows] for one in fields(self)))

    def set(self, other: State) -> None:
        """Take over the answers of another state of as many targets."""
        for one in fields(self):
            getattr(self, one.name)[:] = getattr(other, one.name)

    def copy(self) -> State:
        """Return the same answers, to be updated on their own."""
        return State(*(getattr(self, one.name).copy() for one in fields(self)))

    def merge(self, places: Indices, other: State) -> None:
        """Take over what is better in the answers that some targets have over other rows, or partly over the same.

        No sums: the order in which states are merged changes no bit. A row that both have seen counts once: if it is
        the nearest of both, the second is the nearest of what follows; and where the nearest rows differ, one of them
        was seen by one side alone.
        """
        own = self.part(places)
        np.maximum(own.matches, other.matches, out=own.matches)
        np.maximum(own.run, other.run, out=own.run)
        better = _before(-other.weight, other.weight_index, -own.weight, own.weight_index)
        own.weight[better], own.weight_index[better] = other.weight[better], other.weight_index[better]
        better = _before(-other.power, other.rest, -own.power, own.rest)
        own.power[better], own.rest[better] = other.power[better], other.rest[better]
        farther = np.where(own.distance_index == other.distance_index, np.inf, np.maximum(own.distance, other.distance))
        np.minimum(farther, np.minimum(own.second, other.second), out=own.second)
        better = _before(other.distance, other.distance_index, own.distance, own.distance_index)
        own.distance[better], own.distance_index[better] = other.distance[better], other.distance_index[better]
        for one in fields(self):
            getattr(self, one.name)[places] = getattr(own, one.name)

    def packed(self, places: Indices) -> Array:
        """Return some targets as rows of floats, whose whole numbers they hold up to 2**53."""
        return np.stack([getattr(self, one.name)[places].astype(np.float64) for one in fields(self)], axis=1)

    @classmethod
    def unpacked(cls, rows: Array) -> State:
        """Return what :meth:`packed` gave."""
        whole = {"matches", "weight_index", "power", "distance_index"}
        parts = zip(fields(cls), rows.T, strict=True)
        return cls(*(part.astype(np.int64 if one.name in whole else np.float64) for one, part in parts))

    @property
    def soft(self) -> Array:
        """The largest soft weight."""
        return np.asarray(-math.log(SMALL) * self.power - np.log(self.rest))


def _before(a: NDArray[Any], a_next: NDArray[Any], b: NDArray[Any], b_next: NDArray[Any]) -> Flags:
    """Whether pairs of numbers come before others, by the first of the pair and then by the second."""
    return np.asarray((a < b) | ((a == b) & (a_next < b_next)))


def scan_plain(columns: Columns, batches: Sequence[Batch], targets: Targets, state: State) -> Iterator[None]:
    """Bring the state up to date with one batch after another, every pair with numpy; stop after each."""
    for batch in batches:
        for first in range(0, len(targets.codes), _ROWS):
            rows = slice(first, first + _ROWS)
            some = Targets(*(getattr(targets, one.name)[rows] for one in fields(targets)))
            for left in range(0, len(batch.rows), _WIDTH):
                piece = batch.part(slice(left, left + _WIDTH))
                _update(state.part(rows), *_tile(columns, piece, some), piece.rows)
        yield


def _tile(columns: Columns, batch: Batch, targets: Targets) -> tuple[Indices, Array, Indices, Array, Array]:
    """Matches, weights, products (as powers and rests) and distances of some targets and rows."""
    shape = (len(targets.codes), len(batch.rows))
    matches, power = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    weight, rest, distance = np.zeros(shape), np.ones(shape), np.zeros(shape)
    for place in range(targets.codes.shape[1]):
        equal = targets.codes[:, place, None] == batch.codes[:, place]
        matches += equal
        weight += equal * targets.weights[:, place, None]
        share, number = targets.shares[:, place, None], place - columns.others
        if number < 0:
            rest *= np.where(equal, share, 1.0)
            distance += ~equal
        else:
            apart = _apart(targets.ranks[:, number], batch.ranks[:, number])
            rest *= np.minimum(share + apart, 1.0)
            distance += np.minimum(_apart(targets.numbers[:, number], batch.numbers[:, number]), 1.0)
        tiny = rest < SMALL
        if tiny.any():
            power += tiny
            rest[tiny] /= SMALL
    return matches, weight, power, rest, distance


def _apart(a: Single, b: Single) -> Array:
    """Differences of all pairs; a missing number is 0 from a missing one, and infinitely far from all others."""
    apart = np.abs(a.astype(np.float64)[:, None] - b.astype(np.float64))
    missing, also_missing = np.isnan(a)[:, None], np.isnan(b)
    if missing.any() or also_missing.any():
        apart = np.where(missing | also_missing, np.where(missing & also_missing, 0.0, np.inf), apart)
    return np.asarray(apart)


def _update(
    state: State, matches: Indices, weight: Array, power: Indices, rest: Array, distance: Array, rows: Indices
) -> None:
    everyone = np.arange(len(matches))
    np.maximum(state.matches, matches.max(axis=1), out=state.matches)
    place = weight.argmax(axis=1)
    found = weight[everyone, place]
    better = np.flatnonzero(found > state.weight)
    state.weight[better], state.weight_index[better] = found[better], rows[place[better]]
    most = power.max(axis=1)
    least = np.where(power == most[:, None], rest, np.inf).min(axis=1)
    better = np.flatnonzero((most > state.power) | ((most == state.power) & (least < state.rest)))
    state.power[better], state.rest[better] = most[better], least[better]
    place = distance.argmin(axis=1)
    nearest = distance[everyone, place]
    distance[everyone, place] = np.inf
    state.second[:] = np.minimum(np.maximum(state.distance, nearest), np.minimum(state.second, distance.min(axis=1)))
    better = np.flatnonzero(nearest < state.distance)
    state.distance[better], state.distance_index[better] = nearest[better], rows[place[better]]
