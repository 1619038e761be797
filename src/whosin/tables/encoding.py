"""Encoding mixed columns for comparing records: scaled numbers, codes of categories, and exact cells.

Everything is learnt from the pooled rows of all tables, so an encoding cannot tell the tables apart: exchanging them,
or permuting rows, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, check_choice, check_whole
from whosin.tables.levels import Levels
from whosin.tables.schema import match_tables
from whosin.tables.table import Table

__all__ = ["Encoded", "Scale", "TableEncoder", "level_remarks", "scaled_levels"]

_LIMIT = 1e6
_HEAVY = 100.0
_SCALINGS = ("robust", "rank")


@dataclass(frozen=True, eq=False)
class Encoded:
    """The rows of one table as arrays, in their order. Tables that one encoder has encoded can be compared."""

    names: tuple[str, ...]
    """The columns of ``cells``: all of them."""
    number_names: tuple[str, ...]
    """The columns of ``numbers``: numbers and dates that are not constant."""
    category_names: tuple[str, ...]
    """The columns of ``categories``."""
    numbers: NDArray[np.float32] = field(repr=False)
    """Scaled numbers, (N, a); 0, the middle, where a cell is missing."""
    number_missing: NDArray[np.bool_] = field(repr=False)
    """Which numbers are missing, (N, a)."""
    categories: NDArray[np.int32] = field(repr=False)
    """Codes of categories, (N, b); a missing cell has the last code of its column."""
    cells: NDArray[np.int32] = field(repr=False)
    """Codes of all columns, (N, d): equal exactly where cells are equal."""
    frequencies: tuple[NDArray[np.float64], ...] = field(repr=False)
    """For each column of ``cells`` the share of rows that has each code."""
    number_may_miss: tuple[bool, ...] = field(repr=False)
    """For each column of ``numbers`` whether a cell is missing in any of the pooled rows."""

    def __len__(self) -> int:
        return len(self.cells)

    def __str__(self) -> str:
        return (
            f"{len(self)} rows: {len(self.number_names)} columns of numbers, {len(self.category_names)} of categories"
        )

    @property
    def matrix_width(self) -> int:
        """Columns of :meth:`matrix`."""
        return len(self.number_names) + sum(self.number_may_miss) + sum(size for _, size in self._one_hot())

    def matrix(self, *, memory: int = 2**31) -> NDArray[np.float32]:
        """Return all columns as one matrix for Euclidean distances.

        Numbers as they are scaled, a 0/1 column for numbers that may be missing, and one column a category with 1/√2
        for the category that a row has: two rows of different categories are 1 apart, as far as two numbers that differ
        by one scale. Columns with a single category are left out. O(N · width).

        Parameters
        ----------
        memory : int
            Bytes that the matrix may take; an error names the column with the most categories if it would take more.
        """
        memory = check_whole("memory", memory, low=1)
        wanted = 4 * len(self) * self.matrix_width
        if wanted > memory:
            name, size = max(self._one_hot(), key=lambda item: item[1], default=(self.names[0], 1))
            raise InputError(
                f"memory takes at least {wanted} bytes for a matrix of {len(self)} rows and {self.matrix_width} "
                f"columns, got {memory}; column {name!r} has {size} categories: leave it out, or compare cells"
            )
        matrix = np.zeros((len(self), self.matrix_width), dtype=np.float32)
        start = len(self.number_names)
        matrix[:, :start] = self.numbers
        for missing in self.number_missing.T[np.array(self.number_may_miss, dtype=bool)]:
            matrix[:, start] = missing
            start += 1
        rows = np.arange(len(self))
        for name, size in self._one_hot():
            matrix[rows, start + self.cells[:, self.names.index(name)]] = np.sqrt(0.5)
            start += size
        return matrix

    def _one_hot(self) -> list[tuple[str, int]]:
        sizes = ((name, len(self.frequencies[self.names.index(name)])) for name in self.category_names)
        return [(name, size) for name, size in sizes if size > 1]


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """What the pooled rows say about each column; made by :meth:`fit`."""

    names: tuple[str, ...]
    levels: tuple[Levels, ...] = field(repr=False)
    """The values of each column, numbered."""
    scaled: tuple[NDArray[np.float32] | None, ...] = field(repr=False)
    """For each column of numbers the scaled values of its levels; None for categories and constants."""
    frequencies: tuple[NDArray[np.float64], ...] = field(repr=False)
    """For each column the share of rows of the reference that has each code."""
    scaling: str
    rows: int
    """Number of pooled rows."""
    notes: tuple[str, ...]
    """What a reader should know about single columns."""

    @classmethod
    def fit(cls, *tables: Table, scaling: str = "robust", reference: Table | None = None) -> TableEncoder:
        """Learn an encoding from the pooled rows of tables with the same columns.

        Parameters
        ----------
        *tables : Table
            All tables that will be encoded. The result is the same for any order of tables and rows.
        scaling : {"robust", "rank"}
            "robust" takes the median off and divides by the distance of the quartiles; where that is zero, by the
            standard deviation; a constant column is left out, and a note says so. Scaled numbers are cut at ±10⁶.
            "rank" replaces a number by twice its average rank among the pooled rows, as a share, minus one: from −1 to
            1, with quartiles one apart, whatever the tails.
        reference : Table, optional
            Rows from which frequencies are counted, values seen in the pooled rows; by default all pooled rows. A value
            that the reference does not have gets frequency 0.

        Notes
        -----
        O(n log n) for a column of numbers, O(n) for one of categories; memory for the distinct values of every column.
        """
        check_choice("scaling", scaling, _SCALINGS)
        matched = match_tables(*tables, at_least=1)
        rows = sum(len(table) for table in matched)
        names = matched[0].names
        levels, scaled, notes = [], [], []
        for i, name in enumerate(names):
            column = Levels.pool([table.columns[i] for table in matched])
            values, said = scaled_levels(column, scaling)
            levels.append(column)
            scaled.append(values)
            notes += [f"column {name!r} {remark}" for remark in (*said, *level_remarks(column))]
        counts = [column.counts for column in levels]
        if reference is not None:
            codes = _codes(names, levels, reference)
            counts = [np.bincount(code, minlength=column.size) for code, column in zip(codes, levels, strict=True)]
        shares = tuple(count / count.sum() for count in counts)
        return cls(names, tuple(levels), tuple(scaled), shares, scaling, rows, tuple(notes))

    def transform(self, table: Table) -> Encoded:
        """Return a table with the same columns, in any order, as arrays.

        Every value must occur in the pooled rows. O(n log k) for k distinct numbers in a column.
        """
        cells = np.empty((len(table), len(self.names)), dtype=np.int32)
        for i, codes in enumerate(_codes(self.names, self.levels, table)):
            cells[:, i] = codes
        scaled = [(i, values) for i, values in enumerate(self.scaled) if values is not None]
        numbers = np.empty((len(table), len(scaled)), dtype=np.float32)
        missing = np.zeros(numbers.shape, dtype=np.bool_)
        for j, (i, values) in enumerate(scaled):
            numbers[:, j] = values[cells[:, i]]
            if self.levels[i].any_missing:
                missing[:, j] = cells[:, i] == self.levels[i].known
        labelled = [i for i, levels in enumerate(self.levels) if levels.kind == "category"]
        return Encoded(
            names=self.names,
            number_names=tuple(self.names[i] for i, _ in scaled),
            category_names=tuple(self.names[i] for i in labelled),
            numbers=numbers,
            number_missing=missing,
            categories=np.ascontiguousarray(cells[:, labelled]),
            cells=cells,
            frequencies=self.frequencies,
            number_may_miss=tuple(self.levels[i].any_missing for i, _ in scaled),
        )

    def __str__(self) -> str:
        return f"encoder of {len(self.names)} columns, fitted on {self.rows} pooled rows, {len(self.notes)} notes"


def _codes(names: Sequence[str], levels: Sequence[Levels], table: Table) -> Iterator[NDArray[np.int32]]:
    chosen = table.select(names)
    for (name, column), known in zip(chosen, levels, strict=True):
        yield known.codes(column, f"{table.origin} column {name!r}")


def scaled_levels(levels: Levels, scaling: str) -> tuple[NDArray[np.float32] | None, list[str]]:
    """Return the scaled value of each level, and remarks."""
    if levels.kind == "category":
        return None, []
    if levels.known <= 1 and not levels.any_missing:
        return None, ["is constant and left out of the numbers"]
    values = np.zeros(levels.size, dtype=np.float32)
    if levels.known > 1:
        numbers, counts = levels.numbers, levels.counts[: levels.known]
        values[: levels.known] = Scale.of(numbers, counts)(numbers) if scaling == "robust" else _ranks(numbers, counts)
    far = float(np.abs(values).max())
    heavy = f"has values up to {far:.3g} quartile distances from its median; scaling='rank' would tame it"
    return values, [heavy] if far > _HEAVY else []


@dataclass(frozen=True)
class Scale:
    """Takes the median off and divides by the distance of the quartiles, or by the standard deviation; cuts at ±10⁶.

    Numbers are first divided by a power of two, which is exact, so that no intermediate value overflows.
    """

    exponent: int
    middle: float
    spread: float

    @classmethod
    def of(cls, numbers: NDArray[np.float64], counts: NDArray[np.int64]) -> Scale:
        """Learn from distinct numbers in rising order and how often each occurs."""
        exponent = int(np.frexp(np.abs(numbers).max())[1])
        unit = np.ldexp(numbers, -exponent)
        low, middle, high = _quantiles(unit, counts, (0.25, 0.5, 0.75))
        spread = high - low
        if spread == 0.0:
            shares = counts / counts.sum()
            spread = float(np.sqrt(shares @ (unit - shares @ unit) ** 2))
        return cls(exponent, middle, spread)

    def __call__(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scaled numbers; none of them may be missing."""
        unit = np.ldexp(numbers, -self.exponent)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.clip(np.nan_to_num((unit - self.middle) / np.float64(self.spread)), -_LIMIT, _LIMIT)


def _quantiles(numbers: NDArray[np.float64], counts: NDArray[np.int64], levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return the smallest value that has at least each share of the rows at or below it."""
    below = np.cumsum(counts)
    places = [int(np.searchsorted(below, level * below[-1])) for level in levels]
    return tuple(float(numbers[place]) for place in places)


def _ranks(numbers: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 2r/n − 1 for the average rank r of each value, so that the ranks of distinct numbers fill (−1, 1)."""
    above = np.cumsum(counts)
    ranks: NDArray[np.float64] = (2 * above - counts) / above[-1] - 1.0
    return ranks


def level_remarks(levels: Levels) -> list[str]:
    """Return what a reader should know about the values of a column."""
    remarks = []
    rows = int(levels.counts[: levels.known].sum())
    if levels.known == 0:
        remarks.append("has no values at all")
    elif levels.holds == "text" and levels.known > rows / 2 and levels.known > 2:
        remarks.append(f"has {levels.known} different texts in {rows} rows: free text or an identifier?")
    return remarks
