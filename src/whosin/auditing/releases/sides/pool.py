"""The records of both sides together: their columns, their people, and what other records say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags, Indices
from whosin.auditing.releases.queries import arrays as array_queries
from whosin.auditing.releases.queries import tables as table_queries
from whosin.tables.levels import row_ids
from whosin.tables.scaling import smoothed_shares


@dataclass(frozen=True, eq=False)
class Pool:
    """The training rows and, after them, the held-out rows: a table as codes, or plain numbers."""

    split: int
    """Number of training rows."""
    names: tuple[str, ...]
    cells: NDArray[np.int32] | None = None
    """Of a table: one code a cell, equal codes for equal values."""
    numbers: Sequence[Array | None] | None = None
    """With ``cells``: for each column the scaled number of each code (NaN if missing), None for categories."""
    rows: Array | None = None
    """Of plain arrays, instead of ``cells``: the numbers themselves."""
    people: Indices | None = None
    """The person of each row; nobody stands on both sides. Without it, each row is a person."""
    n_jobs: int | None = None

    @property
    def _table(self) -> NDArray[Any]:
        table = self.rows if self.cells is None else self.cells
        assert table is not None
        return table

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self._table)

    @cached_property
    def units(self) -> Indices:
        """The person of each row, numbered from 0."""
        if self.people is None:
            return np.arange(self.size)
        return np.unique(self.people, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def inside(self) -> Flags:
        """Whether each person stands on the training side."""
        sides = np.zeros(int(self.units.max()) + 1, dtype=bool)
        sides[self.units[: self.split]] = True
        return sides

    def values(self, column: int, rows: Indices) -> Array:
        """The numbers of a column, NaN where missing; codes for categories."""
        if self.cells is None:
            return np.asarray(self._table[rows, column], dtype=np.float64)
        codes = self.cells[rows, column]
        table = self._numbers[column]
        return np.asarray(codes if table is None else table[codes], dtype=np.float64)

    def code_counts(self, column: int, rows: Indices) -> Indices:
        """How many rows have each code of a column, or each number of plain arrays.

        At least as many as it has values, none of them more often than a value: different codes may be one number.
        """
        if self.cells is None:
            return np.unique(self._table[rows, column], return_counts=True)[1]
        counts = np.bincount(self.cells[rows, column])
        return np.asarray(counts[counts > 0])

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers."""
        return self.cells is None or self._numbers[column] is not None

    @property
    def _numbers(self) -> Sequence[Array | None]:
        assert self.numbers is not None
        return self.numbers

    def row_numbers(self) -> Indices:
        """Numbers that are equal where rows are equal in every cell."""
        return row_ids(self._table)

    def answers(self, targets: Indices, others: Indices) -> Array:
        """The audit's own queries about some records, with other records in the place of a release.

        Nothing in the answers depends on the sides. There must be two others at least. O(targets · others · columns).
        """
        release = self._release(targets, others)
        if isinstance(release, array_queries.ArrayRelease):
            return np.column_stack([array_queries.QUERIES[name].answer(release) for name in array_queries.DEFAULT])
        found = [table_queries.QUERIES[name].answer(release) for name in table_queries.DEFAULT]
        return np.column_stack([*found, release.rarity])

    def nearest(self, targets: Indices, others: Indices) -> Indices:
        """The nearest of the other records to each target; of equally near ones the one that is named first."""
        release = self._release(targets, others)
        if isinstance(release, array_queries.ArrayRelease):
            return others[release.nearest_row]
        return others[release.matches.distance_index]

    def _release(self, targets: Indices, others: Indices) -> array_queries.ArrayRelease | table_queries.TableRelease:
        if self.cells is None:
            return array_queries.ArrayRelease(self._table[targets], self._table[others], n_jobs=self.n_jobs)
        return table_queries.TableRelease(
            self.cells[targets],
            self.cells[others],
            self._frequencies(others),
            self._numbers,
            self._ranks,
            n_jobs=self.n_jobs,
        )

    @cached_property
    def _ranks(self) -> list[Array | None]:
        """For each column of numbers the rank of each code among all rows, from -1 to 1."""
        assert self.cells is not None
        found: list[Array | None] = []
        for codes, table in zip(self.cells.T, self._numbers, strict=True):
            if table is None:
                found.append(None)
                continue
            order = np.argsort(table, kind="stable")
            counts = np.bincount(codes, minlength=len(table))[order]
            ranks = np.empty(len(table))
            ranks[order] = (2.0 * np.cumsum(counts) - counts) / self.size - 1.0
            found.append(np.where(np.isnan(table), np.nan, ranks))
        return found

    def _frequencies(self, rows: Indices) -> list[Array]:
        """The share of each code among some rows, smoothed as those of a release are."""
        assert self.cells is not None
        shares = []
        for column, (codes, table) in enumerate(zip(self.cells[rows].T, self._numbers, strict=True)):
            known = int(self.cells[:, column].max()) + 1 if table is None else len(table)
            shares.append(smoothed_shares(np.bincount(codes, minlength=known)))
        return shares
