"""Encoding mixed columns for comparing records: scaled numbers, codes of categories, and exact cells.

Values are numbered over the pooled rows of all tables. Scales and frequencies are learnt from the pooled rows too, so
an encoding cannot tell the tables apart: exchanging them, or permuting rows, changes nothing. Or they are learnt from
some of the tables (``learn_from=``; in audits the release and the reference): then scales and frequencies of a row of
another table do not depend on the rows that stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, check_whole
from whosin.tables.levels import Levels
from whosin.tables.schema import match_tables
from whosin.tables.table import Table

__all__ = [
    "Encoded",
    "Ranks",
    "Scaling",
    "TableEncoder",
    "learn_ranks",
    "learn_scaling",
    "remarks",
    "scaled_levels",
    "smoothed_shares",
]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
_LIMIT = 1e6
_HEAVY = 100.0
_MOST_RANKS = 65_536


@dataclass(frozen=True, eq=False)
class Encoded:
    """The rows of one table as arrays, in their order. Tables that one encoder has encoded can be compared.

    Examples
    --------
    >>> import whosin as wi
    >>> table = wi.tables.as_table({"age": [30, 40, 50], "city": ["Bern", "Ulm", "Ulm"]})
    >>> encoded = wi.tables.TableEncoder.fit(table).transform(table)
    >>> print(encoded)
    3 rows: 1 columns of numbers, 1 of categories
    >>> encoded.numbers[:, 0].tolist(), encoded.cells[:, 1].tolist()
    ([-0.5, 0.0, 0.5], [0, 1, 1])
    """

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
    """For each column of ``cells`` the share of rows that has each code, as in :attr:`TableEncoder.frequencies`."""
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
                f"memory must be at least {wanted} bytes for a matrix of {len(self)} rows and {self.matrix_width} "
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
    """What the rows that it learnt from say about each column; made by :meth:`fit`.

    Examples
    --------
    Numbers are compared in units of the distance of the quartiles, and the rarer value has the smaller share:

    >>> import whosin as wi
    >>> table = wi.tables.as_table({"age": [30, 40, 50], "city": ["Bern", "Ulm", "Ulm"]})
    >>> encoder = wi.tables.TableEncoder.fit(table)
    >>> encoder.scaled[0].tolist(), encoder.frequencies[1].round(3).tolist()
    ([-0.5, 0.0, 0.5], [0.333, 0.667])
    """

    names: tuple[str, ...]
    levels: tuple[Levels, ...] = field(repr=False)
    """The values of each column, numbered."""
    scaled: tuple[NDArray[np.float32] | None, ...] = field(repr=False)
    """For each column of numbers the scaled values of its levels; None for categories, and where only one was seen."""
    ranks: tuple[NDArray[np.float32] | None, ...] = field(repr=False)
    """For the same columns the ranks of the levels, from -1 to 1."""
    frequencies: tuple[NDArray[np.float64], ...] = field(repr=False)
    """For each column the share of rows that has each code, smoothed where rows were left out of learning."""
    rows: int
    """Number of pooled rows."""
    notes: tuple[str, ...]
    """What a reader should know about single columns."""

    @classmethod
    def fit(cls, *tables: Table, learn_from: Sequence[Table] | None = None) -> TableEncoder:
        """Learn an encoding of tables with the same columns.

        Numbers lose their median and are divided by the distance of the quartiles; where that is zero, by the standard
        deviation. They are cut at ±10⁶. A column in which only one value was seen, or nothing but missing cells, is
        left out of the numbers, and a note says so.

        Parameters
        ----------
        *tables : Table
            All tables that will be encoded. The result is the same for any order of tables and rows.
        learn_from : sequence of Table, optional
            Those of the tables that scales and frequencies are learnt from; by default all of them. With it,
            frequencies are smoothed (:func:`smoothed_shares`), since the other tables may have further values.

        Notes
        -----
        O(n log n) for a column of numbers, O(n) for one of categories; memory for the distinct values of every column.
        """
        matched = match_tables(*tables, at_least=1)
        rows = sum(len(table) for table in matched)
        names = matched[0].names
        levels = [Levels.pool([table.columns[i] for table in matched]) for i in range(len(names))]
        counts = [column.counts for column in levels]
        if learn_from is not None:
            counts = _counts(names, levels, learn_from)
        shares = [smoothed_shares(seen) if learn_from is not None else seen / seen.sum() for seen in counts]
        scaled, ranks, notes = [], [], []
        for name, column, seen in zip(names, levels, counts, strict=True):
            rule = learn_scaling(column, seen)
            scaled.append(scaled_levels(column, rule))
            ranks.append(scaled_levels(column, learn_ranks(column, seen)))
            notes += [f"column {name!r} {remark}" for remark in remarks(column, rule)]
        return cls(names, tuple(levels), tuple(scaled), tuple(ranks), tuple(shares), rows, tuple(notes))

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


def _counts(names: Sequence[str], levels: Sequence[Levels], tables: Sequence[Table]) -> list[Counts]:
    """Return how many rows of some tables have each value."""
    counts = [np.zeros(column.size, dtype=np.int64) for column in levels]
    for table in tables:
        for total, codes in zip(counts, _codes(names, levels, table), strict=True):
            total += np.bincount(codes, minlength=len(total))
    return counts


def smoothed_shares(counts: Counts) -> Array:
    """Return (count + ½)/(rows + (values + 1)/2) for the count of each value, of which ``values`` are above 0.

    The estimate of Krichevsky and Trofimov (1981) with one symbol more, which stands for all that was not seen: the
    shares of the values seen and that of "any other" sum to 1. So a share is above 0 and below 1, a value that was not
    seen is rarer than all that were, and how many others were not seen plays no part.
    """
    shares: Array = (counts + 0.5) / (counts.sum() + (np.count_nonzero(counts) + 1) / 2)
    return shares


def learn_scaling(levels: Levels, counts: Counts) -> Scaling | None:
    """Learn how a column is scaled from how often each of its values was seen; those with the count 0 play no part.

    None for categories, and for a column in which one value alone, or nothing but missing cells, was seen: every other
    value is then as far as can be, which the codes of its cells tell as well.
    """
    seen = _seen(levels, counts)
    return None if seen is None else Scaling.of(*seen)


def learn_ranks(levels: Levels, counts: Counts) -> Ranks | None:
    """Learn the ranks of the numbers of a column, of just those columns that are scaled."""
    seen = _seen(levels, counts)
    return None if seen is None else Ranks.of(*seen)


def _seen(levels: Levels, counts: Counts) -> tuple[Array, Counts] | None:
    """Return the numbers that were seen, and how often; None where nothing is to be scaled."""
    if levels.kind == "category" or np.count_nonzero(counts) <= 1:
        return None
    known = counts[: levels.known]
    return levels.numbers[known > 0], known[known > 0]


def scaled_levels(levels: Levels, rule: Scaling | Ranks | None) -> NDArray[np.float32] | None:
    """Return the scaled value of each level, 0 for a missing cell."""
    if rule is None:
        return None
    values = np.zeros(levels.size, dtype=np.float32)
    values[: levels.known] = rule(levels.numbers)
    return values


@dataclass(frozen=True)
class Scaling:
    """Takes the median off and divides by the distance of the quartiles, or by the standard deviation; cuts at ±10⁶.

    Numbers are first divided by a power of two, which is exact, so that no intermediate value overflows. Where all
    numbers learnt from are the same, others are cut at once.
    """

    exponent: int
    middle: float
    spread: float

    @classmethod
    def of(cls, numbers: Array, counts: Counts) -> Scaling:
        """Learn from distinct numbers in rising order and how often each occurs."""
        exponent = int(np.frexp(np.abs(numbers).max())[1])
        unit = np.ldexp(numbers, -exponent)
        low, middle, high = _quantiles(unit, counts, (0.25, 0.5, 0.75))
        spread = high - low
        if spread == 0.0:
            shares = counts / counts.sum()
            spread = float(np.sqrt(shares @ (unit - shares @ unit) ** 2))
        return cls(exponent, middle, spread)

    def __call__(self, numbers: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            unit = np.ldexp(numbers, -self.exponent)
            return np.clip(np.nan_to_num((unit - self.middle) / np.float64(self.spread)), -_LIMIT, _LIMIT)


def _quantiles(numbers: Array, counts: Counts, levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return the smallest value that has at least each share of the rows at or below it."""
    below = np.cumsum(counts)
    places = [int(np.searchsorted(below, level * below[-1])) for level in levels]
    return tuple(float(numbers[place]) for place in places)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Gives 2r/n − 1 for the average rank r of a number, so that the ranks of n distinct numbers fill (−1, 1).

    Of more than 65,536 distinct numbers some are known, evenly in their ranks; one between two of them stands at
    the lower end of the upper one.
    """

    numbers: Array
    below: Counts
    """Rows below each of the numbers, and all rows."""

    @classmethod
    def of(cls, numbers: Array, counts: Counts) -> Ranks:
        """Learn from distinct numbers in rising order and how often each occurs."""
        below = np.append(0, np.cumsum(counts))
        if len(numbers) > _MOST_RANKS:
            wanted = np.linspace(0.0, below[-1], _MOST_RANKS)
            kept = np.unique(np.searchsorted(below, wanted).clip(0, len(numbers) - 1))
            return cls(numbers[kept], np.append(below[kept], below[-1]))
        return cls(numbers, below)

    def __call__(self, numbers: Array) -> Array:
        under, upto = (self.below[np.searchsorted(self.numbers, numbers, side=side)] for side in ("left", "right"))
        ranks: Array = (under + upto) / self.below[-1] - 1.0
        return ranks


def remarks(levels: Levels, rule: Scaling | None) -> list[str]:
    """Return what a reader should know about a column and how it is scaled."""
    said = []
    if levels.kind != "category" and rule is None:
        constant, seen = "is constant and left out of the numbers", "takes one value where scales are learnt"
        said.append(constant if levels.size == 1 else f"{seen}: others count as different, near or far")
    elif rule is not None:
        far = float(np.abs(rule(levels.numbers[[0, -1]])).max())
        heavy = f"has values up to {far:.3g} quartile distances from its median: take ranks or logarithms of it first"
        said += [heavy] if far > _HEAVY else []
    rows = int(levels.counts[: levels.known].sum())
    if levels.known == 0:
        said.append("has no values at all")
    elif levels.holds == "text" and levels.known > rows / 2 and levels.known > 2:
        said.append(f"has {levels.known} different texts in {rows} rows: free text or an identifier?")
    return said
