"""Matching a synthetic table that comes in batches: the best so far of each target, exactly as over the whole table.

The measures are those of :mod:`whosin.auditing.releases.matching.match`; so are the answers, to the last digit. A batch
brings its own numbers, and codes only for values that targets have. With numba, tiles of a batch that cannot hold a
better row are passed over (:mod:`whosin.auditing.releases.matching.tiles`); without, every pair is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.auditing.releases.matching.match import (
    PrefixMatches,
    RowMatches,
    checked_cells,
    checked_numbers,
    checked_weights,
    compiled_wanted,
    row_ids,
)
from whosin.auditing.releases.matching.scan import LARGEST_BLOCK, Block, Columns, State, scan_plain
from whosin.errors import InputError
from whosin.parallel.threads import Progress, number_of_threads, run_tasks

__all__ = ["StreamMatcher"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_CHUNK = 512
"""Most targets of a task."""
_LATER = 2**61
"""Row numbers of a block while it is scanned; all others are smaller."""


class StreamMatcher:
    """The best match, weight and distances of each target over the batches that were added.

    Parameters
    ----------
    target_cells : array_like of int, shape (targets, columns)
        Codes of the cells, in column c from 0 to ``len(weights[c]) - 1``.
    weights : sequence of array_like
        For each column the weight of each of its codes, finite and at least 0.
    numbers : sequence of array_like or None
        For each column the scaled number of each of its codes (NaN if missing), or None if the column is not numeric.
        They are kept in single precision if that does not change them, else in double precision without tiles.
    method : {"auto", "compiled", "plain"}
        ``"compiled"`` needs numba (extra ``whosin[fast]``). The answers do not depend on it.
    n_jobs : int, optional
        Threads, as in joblib. The answers do not depend on it.

    Notes
    -----
    Time grows linearly in the rows, once the best rows are good: on one core with numba and 10 columns about 0.2 ns a
    pair of a target and a row in batches of a million rows, against 1.5 ns without tiles. Memory: the batch three
    times, a byte for each tile of 64 rows and each code (at most 512 codes a column, and codes that stand in many
    tiles), and 60 bytes a target.
    """

    def __init__(
        self,
        target_cells: ArrayLike,
        weights: Sequence[ArrayLike],
        *,
        numbers: Sequence[ArrayLike | None] | None = None,
        method: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        targets = checked_cells("target_cells", target_cells)
        tables, self._threads = checked_weights(weights, {"target_cells": targets}), number_of_threads(n_jobs)
        self._tables, self._numbers = tables, checked_numbers(numbers, weights)
        _, first, self._back = np.unique(row_ids(targets), return_index=True, return_inverse=True)
        self._columns = Columns.of(tables, self._numbers)
        self._order = self._columns.order
        self._cells = np.ascontiguousarray(targets[first][:, self._order]).astype(np.int32)
        self._state = State.empty(len(first))
        self._copies = _Copies.of(self._cells, [len(table) for table in self._columns.weights])
        self._kept: list[tuple[Indices, Array, Array, Array, Indices]] = []
        self._sizes: list[int] = []
        self._rows, self._last = 0, -1
        self._compiled = compiled_wanted(method, 2**62)

    @property
    def numeric(self) -> tuple[int, ...]:
        """The columns whose numbers :meth:`add` takes, in this order."""
        return tuple(int(column) for column in self._order[self._columns.others :])

    def add(self, cells: NDArray[Any], numbers: NDArray[Any], rows: Indices, progress: Progress | None = None) -> None:
        """Compare a batch of synthetic rows with every target.

        Parameters
        ----------
        cells : array of int, shape (rows, columns)
            Codes; -1 for a value that has none.
        numbers : array, shape (rows, numeric columns)
            The scaled numbers of the columns :attr:`numeric`, NaN where missing.
        rows : array of int
            Growing row numbers, larger than those of earlier batches.
        progress : callable, optional
            Called with the share of this batch that is done.
        """
        if len(cells) == 0:
            return
        if rows[0] <= self._last or np.any(np.diff(rows) <= 0):
            raise InputError("rows must be growing row numbers, larger than those of earlier batches")
        self._last = int(rows[-1])
        self._rows += len(rows)
        codes = np.ascontiguousarray(cells[:, self._order], dtype=np.int32)
        self._copies.add(codes)
        single = numbers.astype(np.float32)
        exact = np.array_equal(single, numbers, equal_nan=True)
        if self._compiled and exact:
            self._add_tiles(codes, single, rows, progress)
        else:
            self._add_pairs(codes, numbers.astype(np.float64), rows, progress)

    def keep(self) -> None:
        """Remember the answers over the rows so far, as one of the prefixes of the result."""
        state = self._state
        self._sizes.append(self._rows)
        self._kept.append(
            (
                state.matches.copy(),
                state.weight.copy(),
                state.distance.copy(),
                state.second.copy(),
                self._copies.counts(),
            )
        )

    def result(self) -> RowMatches:
        """Return the answers over all rows; ``matches_index`` is not looked for."""
        if self._rows == 0:
            raise InputError("the synthetic table must have at least one row, got none")
        back, state = self._back, self._state
        by_prefix = None
        if self._kept:
            tables = [np.stack(part)[:, back].T for part in zip(*self._kept, strict=True)]
            by_prefix = PrefixMatches(tuple(self._sizes), *tables)
        return RowMatches(
            state.matches[back],
            None,
            state.weight[back],
            state.weight_index[back],
            state.distance[back],
            state.distance_index[back],
            state.second[back],
            self._copies.counts()[back],
            by_prefix,
        )

    def _add_tiles(self, codes: NDArray[np.int32], numbers: Any, rows: Indices, progress: Progress | None) -> None:
        from whosin.auditing.releases.matching.tiles import Tiles, scan_tiles

        columns = self._columns
        tiles = Tiles.of(codes, numbers, rows, [len(table) for table in columns.weights])

        def work(part: slice) -> None:
            own = self._cells[part]
            weights = np.stack([table[code] for table, code in zip(columns.weights, own.T, strict=True)], axis=1)
            values = np.zeros((len(own), len(columns.numbers)))
            for place, table in enumerate(columns.numbers):
                values[:, place] = table[own[:, columns.others + place]]
            scan_tiles(tiles, own, weights, values, int(rows[0]), self._state.part(part))

        self._run(work, progress)

    def _add_pairs(self, codes: NDArray[np.int32], numbers: Array, rows: Indices, progress: Progress | None) -> None:
        for start in range(0, len(rows), LARGEST_BLOCK):
            piece = slice(start, start + LARGEST_BLOCK)
            columns, own = self._extended(codes[piece], numbers[piece])
            block = Block.of(columns, own, _LATER)
            self._run(partial(self._scan_pairs, columns, block), None)
            for index in (self._state.weight_index, self._state.distance_index):
                new = index >= _LATER
                index[new] = rows[piece][index[new] - _LATER]
            if progress is not None:
                progress(min((start + LARGEST_BLOCK) / len(rows), 1.0))

    def _scan_pairs(self, columns: Columns, block: Block, part: slice) -> None:
        scan_plain(columns, block, block.targets(self._cells[part]), self._state.part(part), 0, block.count)

    def _extended(self, codes: NDArray[np.int32], numbers: Array) -> tuple[Columns, NDArray[np.int64]]:
        """Give the values that no target has codes of their own, with the weight 0."""
        own, weights, tables = codes.astype(np.int64), [], []
        others = self._columns.others
        for column, table in enumerate(self._columns.weights):
            strange = own[:, column] < 0
            size = 1 if column < others else int(strange.sum())
            own[strange, column] = len(table) + (0 if column < others else np.arange(size))
            weights.append(np.append(table, np.zeros(size)))
            if column >= others:
                known = self._columns.numbers[column - others]
                tables.append(np.append(known, numbers[strange, column - others]))
        return Columns.of(weights, [None] * others + tables), own

    def _run(self, work: Any, progress: Progress | None) -> None:
        count = len(self._cells)
        chunks = [slice(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK)]
        finished = 0

        def done() -> None:
            nonlocal finished
            finished += 1
            if progress is not None:
                progress(finished / len(chunks))

        run_tasks([partial(work, part) for part in chunks], self._threads, done)


@dataclass(frozen=True)
class _Copies:
    """How many rows equal each of some distinct targets; no hashing, so no collisions.

    Columns are joined as digits of a mixed radix. Before 64 bits are full, the numbers are looked up among those of the
    targets, and rows that are not there are dropped.
    """

    sizes: list[int]
    stages: dict[int, Indices]
    place: Indices
    found: Indices

    @classmethod
    def of(cls, cells: NDArray[Any], sizes: list[int]) -> _Copies:
        keys, limit, stages = np.zeros(len(cells), dtype=np.int64), 1, {}
        for column, size in enumerate(sizes):
            if limit * size > 2**62:
                stages[column], keys = np.unique(keys, return_inverse=True)
                limit = len(stages[column])
            keys, limit = keys * size + cells[:, column], limit * size
        stages[len(sizes)], place = np.unique(keys, return_inverse=True)
        return cls(sizes, stages, place.astype(np.int64), np.zeros(len(stages[len(sizes)]), dtype=np.int64))

    def add(self, codes: NDArray[np.int32]) -> None:
        """Count the rows of a batch."""
        keys, alive = np.zeros(len(codes), dtype=np.int64), np.arange(len(codes))
        for column, size in enumerate(self.sizes):
            if column in self.stages:
                keys, alive = self._looked_up(column, keys, alive)
            own = codes[alive, column]
            known = own >= 0
            keys, alive = keys[known] * size + own[known], alive[known]
        keys, _ = self._looked_up(len(self.sizes), keys, alive)
        self.found[:] += np.bincount(keys, minlength=len(self.found))

    def counts(self) -> Indices:
        """Rows so far that equal each target."""
        return self.found[self.place]

    def _looked_up(self, stage: int, keys: Indices, alive: Indices) -> tuple[Indices, Indices]:
        known = self.stages[stage]
        places = np.searchsorted(known, keys)
        there = known[np.minimum(places, len(known) - 1)] == keys
        return places[there], alive[there]
