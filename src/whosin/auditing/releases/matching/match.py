"""How well the rows of a synthetic table match each target row: best match, rarest match, nearest row, copies.

A row is a tuple of cell codes, one a column; equal codes are equal values. A column may carry two tables indexed by its
code: a weight (rarity, such as minus the logarithm of a frequency) and, if it is numeric, a number, scaled so that a
difference of 1 is the largest that counts. For a target t and a synthetic row s

* matches(t, s)  = number of columns with equal codes;
* weight(t, s)   = Σ over columns with equal codes of the weight of the code;
* distance(t, s) = Σ over numeric columns of min(|a - b|, 1) + number of other columns with different codes

(Gower's distance, unnormalised, if numbers are scaled by their range). A missing number is NaN: 1 from every number and
0 from a missing one. For each target the best over all synthetic rows is found by comparing every pair, without ever
holding a matrix of pairs; :mod:`whosin.auditing.releases.matching.scan` says how.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.auditing.releases.matching.scan import LARGEST_BLOCK, MOST_COLUMNS, Block, Columns, State, scan_plain
from whosin.errors import InputError, InputTypeError, check_choice, missing_extra
from whosin.parallel.threads import Progress, check_prefixes, number_of_threads, run_tasks

__all__ = [
    "METHODS",
    "PrefixMatches",
    "RowMatches",
    "checked_cells",
    "checked_numbers",
    "checked_weights",
    "compiled_wanted",
    "match_rows",
    "row_ids",
]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Cells = NDArray[np.int64]

METHODS = ("auto", "compiled", "plain")
"""Ways to scan: chosen for you; vectorised by numba; numpy. All give the same answers to the last digit."""

_COMPILED_FROM = 2**25
"""Pairs times columns from which loading the compiled code pays."""

_CHUNK = 4096
"""Most targets of a task."""


@dataclass(frozen=True)
class PrefixMatches:
    """The best over the first rows of the synthetic table: arrays (targets, prefixes)."""

    sizes: tuple[int, ...]
    matches: Indices
    weight: Array
    distance: Array
    second_distance: Array
    copies: Indices


@dataclass(frozen=True)
class RowMatches:
    """The best over all synthetic rows, one entry a target; of equally good rows the index is that of the first.

    ``second_distance`` is the second smallest distance (equal to the smallest if two rows are that near, infinite for a
    synthetic table of one row), ``copies`` the number of synthetic rows equal to the target in every column.
    ``matches_index`` is None if the rows came in batches, where nobody looks for it.
    """

    matches: Indices
    matches_index: Indices | None
    weight: Array
    weight_index: Indices
    distance: Array
    distance_index: Indices
    second_distance: Array
    copies: Indices
    by_prefix: PrefixMatches | None


def match_rows(
    target_cells: ArrayLike,
    synthetic_cells: ArrayLike,
    weights: Sequence[ArrayLike],
    *,
    numbers: Sequence[ArrayLike | None] | None = None,
    prefixes: Sequence[int] | None = None,
    method: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> RowMatches:
    """Return for each target the best match, the best weight and the smallest distances over all synthetic rows.

    Parameters
    ----------
    target_cells, synthetic_cells : array_like of int, shape (targets, columns) and (rows, columns)
        Codes of the cells, coded together: in column c from 0 to ``len(weights[c]) - 1``.
    weights : sequence of array_like
        For each column the weight of each of its codes, finite and at least 0.
    numbers : sequence of array_like or None, optional
        For each column the scaled number of each of its codes (NaN if missing), or None if the column is not numeric.
    prefixes : sequence of int, optional
        Growing sizes; the best over the first so many synthetic rows is reported too, from the same pass.
    method : {"auto", "compiled", "plain"}
        ``"compiled"`` needs numba (extra ``whosin[fast]``). The answers do not depend on it.
    n_jobs : int, optional
        Threads, as in joblib. The answers do not depend on it.
    progress : callable, optional
        Called with the share of the work done.

    Notes
    -----
    Weights and distances are float64 sums, over the other columns first and then over the numeric ones. Time grows as
    distinct targets × synthetic rows × columns: about 3 ns a pair at 15 columns and 5 ns at 41 on one core with numba,
    and 1.5 µs a target and prefix; some 20 times as much with numpy alone. Targets to which very many rows are equally
    near by numbers take longer, as only an exact evaluation tells ties. Memory beyond the input: the codes of both
    tables once more, 60 bytes a target, 80 bytes a target and prefix, and a few MiB a thread.

    Raises
    ------
    MissingExtraError
        For ``method="compiled"`` without numba.
    """
    targets, synthetic = checked_cells("target_cells", target_cells), checked_cells("synthetic_cells", synthetic_cells)
    if targets.shape[1] != synthetic.shape[1]:
        raise InputError(
            f"synthetic_cells must have as many columns as target_cells, {targets.shape[1]}, got {synthetic.shape[1]}"
        )
    tables = checked_weights(weights, {"target_cells": targets, "synthetic_cells": synthetic})
    columns = Columns.of(tables, checked_numbers(numbers, weights))
    sizes = check_prefixes(prefixes, len(synthetic))
    ids = row_ids(np.concatenate([targets, synthetic]))
    _, first, back = np.unique(ids[: len(targets)], return_index=True, return_inverse=True)
    scan = _scanner(method, len(first) * synthetic.size)

    state = State.empty(len(first))
    kept = _Kept.empty(len(sizes), len(first))
    distinct = np.ascontiguousarray(targets[first][:, columns.order])
    _scan(distinct, synthetic[:, columns.order], columns, sizes, state, kept, scan, number_of_threads(n_jobs), progress)
    copies = _copies(ids[first], ids[len(targets) :], (*sizes, len(synthetic)))
    by_prefix = None
    if prefixes is not None:
        by_prefix = PrefixMatches(
            sizes,
            kept.matches[:, back].T,
            kept.weight[:, back].T,
            kept.distance[:, back].T,
            kept.second[:, back].T,
            copies[:-1][:, back].T,
        )
    return RowMatches(
        state.matches[back],
        state.matches_index[back],
        state.weight[back],
        state.weight_index[back],
        state.distance[back],
        state.distance_index[back],
        state.second[back],
        copies[-1][back],
        by_prefix,
    )


def row_ids(cells: NDArray[Any]) -> Indices:
    """Return numbers that are equal where rows of non-negative codes are equal. O(N·columns) time and a few sorts."""
    ids, limit = np.zeros(len(cells), dtype=np.int64), 1
    for column in cells.T:
        codes = int(column.max()) + 1
        if limit * codes > 2**62:
            ids, limit = _compressed(ids)
            if limit == len(cells):
                return ids
        ids, limit = ids * codes + column.astype(np.int64), limit * codes
    return _compressed(ids)[0]


@dataclass(frozen=True)
class _Kept:
    """The state after each prefix, arrays (prefixes, targets)."""

    matches: Indices
    weight: Array
    distance: Array
    second: Array

    @classmethod
    def empty(cls, prefixes: int, targets: int) -> _Kept:
        shape = (prefixes, targets)
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def keep(self, prefix: int, rows: slice, state: State) -> None:
        self.matches[prefix, rows], self.weight[prefix, rows] = state.matches, state.weight
        self.distance[prefix, rows], self.second[prefix, rows] = state.distance, state.second


Scan = Callable[[Columns, Block, Any, State, int, int], None]


def _scan(
    targets: NDArray[Any],
    synthetic: NDArray[Any],
    columns: Columns,
    sizes: tuple[int, ...],
    state: State,
    kept: _Kept,
    scan: Scan,
    threads: int,
    progress: Progress | None,
) -> None:
    """Go through the synthetic table block by block, and in each through the targets on threads."""
    chunk = min(_CHUNK, -(-len(targets) // (4 * threads)))
    chunks = [slice(start, min(start + chunk, len(targets))) for start in range(0, len(targets), chunk)]
    blocks = [slice(start, start + LARGEST_BLOCK) for start in range(0, len(synthetic), LARGEST_BLOCK)]
    finished = 0.0

    def work(block: Block, first_row: int, rows: slice) -> None:
        part, own = block.targets(targets[rows]), state.part(rows)
        start, stop = first_row, first_row + block.count
        for prefix, size in enumerate(sizes):
            if start < size <= stop:
                scan(columns, block, part, own, start - first_row, size - first_row)
                kept.keep(prefix, rows, own)
                start = size
        scan(columns, block, part, own, start - first_row, stop - first_row)

    for rows in blocks:
        block = Block.of(columns, synthetic[rows], rows.start)

        def done(share: float = block.count / len(synthetic) / len(chunks)) -> None:
            nonlocal finished
            finished = min(finished + share, 1.0)
            if progress is not None:
                progress(finished)

        run_tasks([partial(work, block, rows.start, part) for part in chunks], threads, done)


def _copies(target_ids: Indices, synthetic_ids: Indices, sizes: tuple[int, ...]) -> Indices:
    """How many of the first synthetic rows equal each target, (sizes, targets)."""
    numbers = int(max(target_ids.max(), synthetic_ids.max())) + 1
    counts, table, start = np.zeros(numbers, dtype=np.int64), [], 0
    for size in sizes:
        counts += np.bincount(synthetic_ids[start:size], minlength=numbers)
        table.append(counts[target_ids])
        start = size
    return np.stack(table)


def _compressed(ids: Indices) -> tuple[Indices, int]:
    values, numbered = np.unique(ids, return_inverse=True)
    return numbered.astype(np.int64), len(values)


def compiled_wanted(method: str, work: int) -> bool:
    """Whether a method stands for compiled code, given the pairs times columns to compare."""
    method = check_choice("method", method, METHODS)
    if method == "compiled" and not _has_numba():
        raise missing_extra('method="compiled" needs numba', "fast")
    return method == "compiled" or (method == "auto" and work >= _COMPILED_FROM and _has_numba())


def _scanner(method: str, work: int) -> Scan:
    if not compiled_wanted(method, work):
        return scan_plain
    from whosin.auditing.releases.matching.compiled import scan_compiled

    return scan_compiled


def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def checked_cells(name: str, cells: ArrayLike) -> NDArray[Any]:
    """Return codes as a matrix."""
    table = np.asarray(cells)
    if not np.issubdtype(table.dtype, np.integer):
        raise InputTypeError(f"{name} must be an array of whole numbers, got {table.dtype}")
    if table.ndim != 2 or 0 in table.shape or table.shape[1] > MOST_COLUMNS:
        raise InputError(
            f"{name} must have at least one row and from 1 to {MOST_COLUMNS} columns, got an array of shape "
            f"{table.shape}"
        )
    if table.min() < 0:
        raise InputError(f"{name} must be codes of at least 0, got {int(table.min())}")
    return table


def checked_weights(weights: Sequence[ArrayLike], coded: Mapping[str, NDArray[Any]]) -> list[Array]:
    """Return the weights of each column, one for each code that the named cells have."""
    tables = [_table("weights", column, table) for column, table in enumerate(weights)]
    width = next(iter(coded.values())).shape[1]
    if len(tables) != width:
        raise InputError(f"weights must have a table for each of {width} columns, got {len(tables)}")
    for column, table in enumerate(tables):
        if not np.all(np.isfinite(table)) or np.any(table < 0.0):
            raise InputError(f"weights must hold finite numbers of at least 0, got another in column {column}")
        for name, cells in coded.items():
            largest = int(cells[:, column].max())
            if largest >= len(table):
                raise InputError(
                    f"{name} must be codes below {len(table)}, the number of weights, in column {column}, got {largest}"
                )
    return tables


def checked_numbers(numbers: Sequence[ArrayLike | None] | None, weights: Sequence[ArrayLike]) -> list[Array | None]:
    """Return the numbers of each column, one per code, or None."""
    if numbers is None:
        return [None] * len(weights)
    if len(numbers) != len(weights):
        raise InputError(f"numbers must have a table or None for each of {len(weights)} columns, got {len(numbers)}")
    tables: list[Array | None] = []
    for column, (given, others) in enumerate(zip(numbers, weights, strict=True)):
        table = None if given is None else _table("numbers", column, given)
        codes = len(np.asarray(others))
        if table is not None and (len(table) != codes or np.any(np.isinf(table))):
            raise InputError(f"numbers must have {codes} finite numbers or NaN for column {column}, one per code")
        tables.append(table)
    return tables


def _table(name: str, column: int, values: ArrayLike) -> Array:
    table = np.asarray(values)
    if table.dtype.kind not in "iuf" or table.ndim != 1:
        raise InputTypeError(f"{name} must be a list of numbers for each column, got {values!r} in column {column}")
    return table.astype(np.float64)
