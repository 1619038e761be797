"""Every value that a column takes in several tables, numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import InputError
from whosin.tables.columns import Column, Kind


@dataclass(frozen=True, eq=False)
class Levels:
    """The distinct values of a column over pooled rows, in rising order; missing cells come last, if there are any.

    Two cells have the same number exactly if they are equal, so that cells can be compared as integers. The order of
    the tables and of their rows plays no part.
    """

    kind: Kind
    holds: str
    """What the cells are, in words."""
    numbers: Array
    """Distinct values of numbers and dates; empty for categories."""
    labels: tuple[str, ...]
    """Distinct labels of categories; empty for numbers and dates."""
    counts: NDArray[np.int64]
    """Pooled rows that have each value, every one at least 1."""
    any_missing: bool

    @property
    def size(self) -> int:
        """Number of values, a missing one included."""
        return len(self.counts)

    @property
    def known(self) -> int:
        """Number of values, a missing one not included."""
        return self.size - self.any_missing

    @classmethod
    def pool(cls, columns: Sequence[Column]) -> Levels:
        """Number the values of columns of one kind. O(n log n) for numbers, O(n) for categories."""
        if columns[0].kind == "category":
            return _pool_labels(columns)
        values = np.concatenate([column.values for column in columns])
        numbers, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        gone = len(values) - int(counts.sum())
        return cls(columns[0].kind, columns[0].holds, numbers, (), _with_missing(counts, gone), gone > 0)

    def codes(self, column: Column, place: str) -> NDArray[np.int32]:
        """Return the number of each cell, or raise an error for one that the pooled rows do not have."""
        codes = self.find(column, place)
        strange = codes < 0
        if strange.any():
            row = int(np.argmax(strange))
            raise InputError(f"{place} must hold values that the pooled rows have, got {column.show(row)} in row {row}")
        return codes

    def find(self, column: Column, place: str) -> NDArray[np.int32]:
        """Return the number of each cell, -1 for one that the pooled rows do not have. O(n log n)."""
        if column.holds not in (self.holds, "nothing"):
            raise InputError(f"{place} must be {self.holds} as in the pooled rows, got {column.holds}")
        by_label = self.kind == "category" or column.holds == "nothing"
        return self._label_codes(column) if by_label else self._number_codes(column.values)

    def _number_codes(self, values: Array) -> NDArray[np.int32]:
        order = np.argsort(values)  # sorted values are looked up three times as fast
        rising = values[order]
        places = np.searchsorted(self.numbers, rising)
        missing = np.isnan(rising)
        strange = (np.append(self.numbers, np.nan)[places] != rising) & ~missing
        places[strange] = -1
        places[missing] = self.known if self.any_missing else -1
        codes = np.empty(len(values), dtype=np.int32)
        codes[order] = places
        return codes

    def _label_codes(self, column: Column) -> NDArray[np.int32]:
        place = {label: code for code, label in enumerate(self.labels)}
        gone = self.known if self.any_missing else -1
        book = np.array([place.get(label, -1) for label in column.labels] + [gone], dtype=np.int32)
        codes: NDArray[np.int32] = book[column.values]
        return codes


def _pool_labels(columns: Sequence[Column]) -> Levels:
    labels = tuple(sorted(set[str]().union(*(column.labels for column in columns))))
    holds = next((column.holds for column in columns if column.labels), "nothing")
    counts = np.zeros(len(labels) + 1, dtype=np.int64)
    every = Levels("category", holds, np.empty(0), labels, counts, True)
    for column in columns:
        counts += np.bincount(every._label_codes(column), minlength=len(counts))
    gone = int(counts[-1])
    return Levels("category", holds, np.empty(0), labels, _with_missing(counts[:-1], gone), gone > 0)


def _with_missing(counts: NDArray[np.int64], gone: int) -> NDArray[np.int64]:
    return np.append(counts, gone) if gone else counts


def row_ids(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return numbers that are equal where rows are equal, of finite numbers or of codes from 0 on.

    O(N·columns) time and a few sorts.
    """
    if rows.dtype.kind == "f":
        plain = np.ascontiguousarray(rows, dtype=np.float64) + 0.0
        return _compressed(plain.view(np.dtype((np.void, plain.strides[0]))).ravel())[0]
    cells = rows
    ids, limit = np.zeros(len(cells), dtype=np.int64), 1
    for column in cells.T:
        codes = int(column.max()) + 1
        if limit * codes > 2**62:
            ids, limit = _compressed(ids)
            if limit == len(cells):
                return ids
        ids, limit = ids * codes + column.astype(np.int64), limit * codes
    return _compressed(ids)[0]


def _compressed(ids: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    values, numbered = np.unique(ids, return_inverse=True)
    return numbered.astype(np.int64), len(values)
