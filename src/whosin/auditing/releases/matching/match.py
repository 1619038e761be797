"""How well released rows match each target: most, and rarest, equal cells, runs of them, nearest rows, copies.

A row is a tuple of cell codes, one a column; equal codes are equal values. A column carries tables indexed by its code:
a weight, -ln of the share p of the value, and, if it is numeric, a number, scaled so that a difference of 1 is the
largest that counts, and a rank from -1 to 1, whose differences are twice those of the distribution function. For a
target t and a released row s

* matches(t, s)  = number of columns with equal codes;
* weight(t, s)   = Σ over columns with equal codes of the weight of t;
* soft(t, s)     = the same, but of numeric columns Σ -ln min(1, p + |rank of t - rank of s|): what is nearly equal
  counts almost as much as what is equal, if few values lie between;
* run(t, s)      = the largest weight of neighbouring columns with equal codes;
* distance(t, s) = Σ over numeric columns of min(|a - b|, 1) + number of other columns with different codes

(Gower's distance, unnormalised, if numbers are scaled by their range). A missing number is NaN: 1 from every number and
0 from a missing one, and its rank infinitely far from all others. For each target the best over all released rows is
found by comparing every pair, without ever holding a matrix of pairs. Rows come in batches, and what is found does not
depend on how they are cut.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array, Indices, Single
from whosin.auditing.releases.matching.measures import Batch, Columns, State, Tables, scan_plain
from whosin.auditing.releases.matching.ordering import steps_of
from whosin.auditing.releases.matching.runs import heaviest_runs
from whosin.errors import InputError, check_choice, missing_extra
from whosin.parallel.threads import Progress, check_prefixes, number_of_threads, run_tasks
from whosin.tables.levels import row_ids

METHODS = ("auto", "compiled", "plain")
"""Ways to scan: chosen for you; vectorised by numba; numpy. All give the same answers to the last digit."""

MOST_COLUMNS = 8192
_COMPILED_FROM = 2**25
"""Pairs times columns from which loading the compiled code pays."""
_SECONDS_COMPILED, _SECONDS_PLAIN = 6.7e-8, 5e-9
"""Of (pairs and columns)^¾, as more pairs are passed over in large releases, and of a pair and a column."""
_SECONDS_TARGET, _SECONDS_ROW = 6e-5, 4e-7
_CHUNK = 512
"""Most targets of a task."""
_BATCH = 2**18
"""Most rows of a table in memory that are added at a time."""


@dataclass(frozen=True)
class PrefixMatches:
    """The best over the first rows of the synthetic table: arrays (targets, prefixes)."""

    sizes: tuple[int, ...]
    matches: Indices
    weight: Array
    soft: Array
    distance: Array
    second_distance: Array
    copies: Indices


@dataclass(frozen=True)
class RowMatches:
    """The best over all synthetic rows, one entry a target; of equally good rows the index is that of the first.

    ``second_distance`` is the second smallest distance (equal to the smallest if two rows are that near, infinite for a
    synthetic table of one row), ``copies`` the number of synthetic rows equal to the target in every column.
    """

    matches: Indices
    weight: Array
    weight_index: Indices
    soft: Array
    distance: Array
    distance_index: Indices
    second_distance: Array
    copies: Indices
    run: Array
    by_prefix: PrefixMatches | None


def match_rows(
    target_cells: ArrayLike,
    synthetic_cells: ArrayLike,
    weights: Sequence[ArrayLike],
    *,
    numbers: Tables | None = None,
    ranks: Tables | None = None,
    prefixes: Sequence[int] | None = None,
    method: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> RowMatches:
    """Return for each target the best over all rows of a table in memory, as :class:`Matcher` finds it.

    Parameters
    ----------
    target_cells, synthetic_cells : array_like of int, shape (targets, columns) and (rows, columns)
        Codes of the cells, coded together: in column c from 0 to ``len(weights[c]) - 1``.
    weights, numbers, ranks, method, n_jobs
        As for :class:`Matcher`.
    prefixes : sequence of int, optional
        Growing sizes; the best over the first so many synthetic rows is reported too, from the same pass.
    progress : callable, optional
        Called with the share of the work done.
    """
    synthetic, own = np.asarray(synthetic_cells), {"numbers": numbers, "ranks": ranks}
    matcher = Matcher(target_cells, weights, **own, method=method, n_jobs=n_jobs, rows=len(synthetic))
    sizes = check_prefixes(prefixes, len(synthetic))
    for start in range(0, len(synthetic), _BATCH):
        cells = synthetic[start : start + _BATCH]
        stop = start + len(cells)

        def share(part: float, start: int = start, stop: int = stop) -> None:
            if progress is not None:
                progress((start + part * (stop - start)) / len(synthetic))

        ends = [size - start for size in sizes if start < size <= stop]
        matcher.add(cells, *matcher.looked_up(cells), np.arange(start, stop), ends=ends, progress=share)
    return matcher.result()


class Matcher:
    """The best of each target over the batches of released rows that were added.

    Parameters
    ----------
    target_cells : array_like of int, shape (targets, columns)
        Codes of the cells, in column c from 0 to ``len(weights[c]) - 1``.
    weights : sequence of array_like
        For each column the weight of each of its codes, from 0 to 350: -ln of its share.
    numbers, ranks : sequence of array_like or None, optional
        For each column the scaled number, and the rank from -1 to 1, of each of its codes (NaN if missing), or None if
        the column is not numeric. Both are taken in single precision. By default no column is numeric.
    method : {"auto", "compiled", "plain"}
        ``"compiled"`` needs numba (extra ``whosin[fast]``). The answers do not depend on it.
    n_jobs : int, optional
        Threads, as in joblib. The answers do not depend on it.
    rows : int, optional
        About how many rows will be added, for ``method="auto"``; by default very many.

    Notes
    -----
    O(targets · rows · columns), but most pairs are passed over (:mod:`whosin.auditing.releases.matching.compiled`):
    with numba about 3 ns a pair at 15 columns and 2 ns at 42, and some 3 µs a target and batch; without, every pair is
    evaluated, in about 0.1 µs. Memory: a batch four times and the targets twice, 4 bytes for each of their cells, and
    80 bytes a target, and again for each prefix.

    Raises
    ------
    MissingExtraError
        For ``method="compiled"`` without numba.
    """

    def __init__(
        self,
        target_cells: ArrayLike,
        weights: Sequence[ArrayLike],
        *,
        numbers: Tables | None = None,
        ranks: Tables | None = None,
        method: str = "auto",
        n_jobs: int | None = None,
        rows: int = 2**62,
    ) -> None:
        targets, self._threads = np.asarray(target_cells), number_of_threads(n_jobs)
        if targets.shape[1] > MOST_COLUMNS:
            raise InputError(f"tables must have at most {MOST_COLUMNS} columns to be compared, got {targets.shape[1]}")
        self._columns = Columns.of(weights, numbers, ranks)
        _, first, self._back = np.unique(row_ids(targets), return_index=True, return_inverse=True)
        self._cells = np.ascontiguousarray(targets[first][:, self._columns.order]).astype(np.int32)
        self._state = State.empty(len(first))
        self._copies = _Copies.of(self._cells, [len(table) for table in self._columns.weights])
        self._kept: list[tuple[int, State, Indices]] = []
        self._rows, self._last = 0, -1
        self._compiled = _compiled_wanted(method, len(first) * targets.shape[1] * rows)
        self._steps = steps_of(self._columns, self._cells) if self._compiled else []

    @property
    def numeric(self) -> tuple[int, ...]:
        """The columns whose numbers and ranks :meth:`add` takes, in this order."""
        return tuple(int(column) for column in self._columns.order[self._columns.others :])

    def looked_up(self, cells: NDArray[Any]) -> tuple[Single, Single]:
        """Return numbers and ranks of rows all of whose values have codes, as :meth:`add` takes them."""
        tables = (self._columns.numbers, self._columns.ranks)
        found = np.empty((2, len(cells), len(self.numeric)), dtype=np.float32)
        for part, table in zip(found, tables, strict=True):
            for place, (column, own) in enumerate(zip(self.numeric, table, strict=True)):
                part[:, place] = own[cells[:, column]]
        return found[0], found[1]

    def add(
        self,
        cells: NDArray[Any],
        numbers: Single,
        ranks: Single,
        rows: Indices,
        *,
        ends: Sequence[int] = (),
        progress: Progress | None = None,
    ) -> None:
        """Compare a batch of released rows with every target.

        Parameters
        ----------
        cells : array of int, shape (rows, columns)
            Codes; -1 for a value that has none.
        numbers, ranks : array, shape (rows, numeric columns)
            Those of the columns :attr:`numeric`, NaN where missing.
        rows : array of int
            Growing row numbers, larger than those of earlier batches.
        ends : sequence of int
            Growing numbers of rows of this batch after which the answers over all rows so far are one of the prefixes
            of the result.
        progress : callable, optional
            Called with the share of this batch that is done.
        """
        if len(cells) == 0:
            return
        if rows[0] <= self._last or np.any(np.diff(rows) <= 0):
            raise InputError("rows must be growing row numbers, larger than those of earlier batches")
        self._last = int(rows[-1])
        codes = np.ascontiguousarray(cells[:, self._columns.order], dtype=np.int32)
        batch = Batch(codes, numbers.astype(np.float32), ranks.astype(np.float32), rows)
        pieces, kept = self._pieces(batch, ends)
        scan: Any = scan_plain
        if self._compiled:
            from whosin.auditing.releases.matching.compiled import Tiles, scan_compiled

            pieces, scan = [Tiles.of(self._columns, piece, self._steps) for piece in pieces], scan_compiled

        def work(part: slice) -> None:
            state = self._state.part(part)
            scans = scan(self._columns, pieces, self._columns.targets(self._cells[part]), state)
            for keep, _ in zip(kept, scans, strict=True):
                if keep is not None:
                    keep.part(part).set(state)

        def look_for_runs() -> None:
            run = heaviest_runs(self._cells, codes, self._columns.weights, np.argsort(self._columns.order))
            np.maximum(self._state.run, run, out=self._state.run)

        count = len(self._cells)
        chunk = min(_CHUNK, -(-count // (4 * self._threads)))
        chunks = [slice(start, min(start + chunk, count)) for start in range(0, count, chunk)]
        jobs: list[Callable[[], None]] = [look_for_runs, *(partial(work, part) for part in chunks)]
        finished = 0

        def done() -> None:
            nonlocal finished
            finished += 1
            if progress is not None:
                progress(finished / len(jobs))

        run_tasks(jobs, self._threads, done)

    def _pieces(self, batch: Batch, ends: Sequence[int]) -> tuple[list[Any], list[State | None]]:
        """Cut a batch where prefixes end, count its copies, and make room for the answers over each prefix."""
        pieces: list[Any] = []
        kept: list[State | None] = []
        start = 0
        for stop in sorted({*ends, len(batch.rows)}):
            pieces.append(batch.part(slice(start, stop)))
            self._copies.add(pieces[-1].codes)
            self._rows += stop - start
            kept.append(State.empty(len(self._cells)) if stop in ends else None)
            if kept[-1] is not None:
                self._kept.append((self._rows, kept[-1], self._copies.counts()))
            start = stop
        return pieces, kept

    NEW = 2 + len(fields(State))
    """Columns of :meth:`since`."""

    def begun(self) -> Matcher:
        """Return one that goes on from here for itself, in one thread: it knows the best so far, and no copies."""
        other = copy(self)
        other._state, other._copies, other._kept = self._state.copy(), self._copies.anew(), []
        other._threads, other._rows, other._last = 1, 0, -1
        return other

    def since(self, before: Matcher) -> Array:
        """Return what is new after :meth:`begun` of another one, as :meth:`take` takes it: one row per target."""
        copies = self._copies.counts()
        changed = copies > 0
        for one in fields(State):
            changed |= getattr(self._state, one.name) != getattr(before._state, one.name)
        places = np.flatnonzero(changed)
        return np.column_stack([places, copies[places], self._state.packed(places)])

    def take(self, found: Array) -> None:
        """Take in what was found over other rows, or partly over the same, and the copies among those that are new."""
        places = found[:, 0].astype(np.int64)
        self._state.merge(places, State.unpacked(found[:, 2:]))
        self._copies.found[self._copies.place[places]] += found[:, 1].astype(np.int64)

    def follow(self, other: Matcher, rows: int) -> None:
        """Take in the best that another one knows, and the copies that it counted in so many rows: a prefix ends."""
        self._state.merge(np.arange(len(self._cells)), other._state)
        self._copies.found[:] += other._copies.found
        self._rows += rows
        self._kept.append((self._rows, self._state.copy(), self._copies.counts()))

    def result(self) -> RowMatches:
        """Return the answers over all rows."""
        if self._rows == 0:
            raise InputError("the synthetic table must have at least one row, got none")
        by_prefix, state, back = None, self._state.part(self._back), self._back
        if self._kept:
            sizes, states, copies = zip(*self._kept, strict=True)
            tables = [(one.matches, one.weight, one.soft, one.distance, one.second) for one in states]
            columns = [np.stack(part)[:, back].T for part in (*zip(*tables, strict=True), copies)]
            by_prefix = PrefixMatches(sizes, *columns)
        return RowMatches(
            state.matches,
            state.weight,
            state.weight_index,
            state.soft,
            state.distance,
            state.distance_index,
            state.second,
            self._copies.counts()[back],
            state.run,
            by_prefix,
        )


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

    def anew(self) -> _Copies:
        """Return the same with nothing counted."""
        return _Copies(self.sizes, self.stages, self.place, np.zeros_like(self.found))

    def counts(self) -> Indices:
        """Rows so far that equal each target."""
        return self.found[self.place]

    def _looked_up(self, stage: int, keys: Indices, alive: Indices) -> tuple[Indices, Indices]:
        known = self.stages[stage]
        places = np.searchsorted(known, keys)
        there = known[np.minimum(places, len(known) - 1)] == keys
        return places[there], alive[there]


def _compiled_wanted(method: str, work: int) -> bool:
    """Whether a method stands for compiled code, given the pairs times columns to compare."""
    method = check_choice("method", method, METHODS)
    if method == "compiled" and not _has_numba():
        raise missing_extra('method="compiled" needs numba', "fast")
    return method == "compiled" or (method == "auto" and work >= _COMPILED_FROM and _has_numba())


def expected_seconds(targets: int, rows: int, columns: int, threads: int) -> float:
    """Return about how long an audit of a release takes: for saying it before the start, within a factor of a few.

    A second, what records and rows cost by themselves, and pairs times columns, each at what it came to in
    ``benchmarks/release_blocks.py``; where every pair is evaluated, in ``docs/guide/streaming.md``.
    """
    work = targets * rows * columns
    pairs = _SECONDS_COMPILED * work**0.75 if _compiled_wanted("auto", work) else _SECONDS_PLAIN * work
    return 1.0 + _SECONDS_TARGET * targets + _SECONDS_ROW * rows + pairs / threads


def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None
