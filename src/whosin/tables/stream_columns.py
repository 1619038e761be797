"""What one column of a streamed table holds: its kind, its distinct values and their counts, its part of a fingerprint.

A column is read on its own, block by block: once, twice if it holds 64-bit whole numbers (do floats tell them apart?),
and once more for categories, whose codes are known only when all labels are. Memory: a block, and the distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import InputError
from whosin.tables.columns import EXACT, TRUTH, Column, Kind, column_from_series, nothing
from whosin.tables.stream import TableStream
from whosin.tables.table import Table, add_texts

if TYPE_CHECKING:
    import polars as pl

_MERGE = 2**20
"""Distinct values of blocks wait until they are so many, or as many as are merged already."""


@dataclass(frozen=True, eq=False)
class ColumnSurvey:
    """One column of a stream; made by :meth:`of`."""

    stream: TableStream
    name: str
    kind: Kind
    holds: str
    numbers: Array
    """Distinct numbers or dates, rising; empty for categories."""
    labels: Any
    """Distinct labels as a polars series, rising; empty for numbers."""
    counts: NDArray[np.int64]
    """Rows of each of them."""
    missing: int
    """Rows in which the cell is missing."""
    as_text: bool
    """Whether cells are text although the file has numbers."""

    @classmethod
    def of(cls, stream: TableStream, name: str) -> ColumnSurvey:
        """Read a column once, or twice. O(n log k) for k distinct values."""
        import polars as pl

        as_text = _is_inexact(stream, name)
        no_labels = pl.Series([], dtype=pl.String)
        numbers = _Distinct(_joined_numbers, None)
        labels = _Distinct(_joined_labels, (no_labels, np.empty(0, dtype=np.int64)))
        holds, kind, missing = "nothing", "category", 0
        for _, column in _columns(stream, name, as_text, truth=False):
            gone = int(column.missing.sum())
            missing += gone
            if gone == len(column):
                continue
            kind, holds = column.kind, column.holds
            if kind == "category":
                used = column.values[column.values >= 0]
                labels.add((list(column.labels), np.bincount(used, minlength=len(column.labels))))
            else:
                numbers.add(np.unique(column.values[~column.missing], return_counts=True))
        if kind == "category":
            words, counts = labels.merged()
            if _is_truth(holds, words):
                holds = "truth values"
                words, counts = _capitalised(words, counts)
            return cls(stream, name, "category", holds, np.empty(0), words, counts, missing, as_text)
        values, counts = numbers.merged()
        return cls(stream, name, kind, holds, values, no_labels, counts, missing, as_text)  # type: ignore[arg-type]

    def blocks(self) -> Iterator[tuple[int, Column]]:
        """Yield the first row and the cells of each block, all of one kind."""
        for first, column in _columns(self.stream, self.name, self.as_text, truth=self.holds == "truth values"):
            yield first, self._blank(len(column)) if column.holds == "nothing" else column

    def cells(self, series: pl.Series, first: int) -> Column:
        """Return some cells of the column, of its kind; ``first`` is the row of the first of them, for errors."""
        column = _column(series, self.stream.origin, self.name, self.as_text, self.holds == "truth values", first)
        return self._blank(len(column)) if column.holds == "nothing" else column

    def example(self) -> Column:
        """Return a few of the cells, for a comparison of schemas; a column without a cell has one that is missing."""
        if self.holds == "nothing":
            return nothing(1)
        if self.kind != "category":
            return Column(self.kind, self.holds, self.numbers[:1].copy())
        words = tuple(self.labels.head(100).to_list())
        return Column("category", self.holds, np.arange(len(words), dtype=np.int32), words)

    def settled(self, column: Column, digest: Any) -> ColumnSurvey:
        """Take the kind that tables agree on; feed the cells to a fingerprint as a table does; forget the values."""
        import polars as pl

        agreed = replace(self, kind=column.kind, holds=column.holds)
        add_texts(digest, (self.name, agreed.kind, agreed.holds))
        if agreed.kind == "category":
            add_texts(digest, self.labels.to_list())
            book = pl.DataFrame({"label": self.labels, "code": np.arange(len(self.labels), dtype=np.int32)})
        for _, part in agreed.blocks():
            if agreed.kind == "category":
                own = pl.DataFrame({"label": pl.Series(list(part.labels), dtype=pl.String)})
                codes = own.join(book, on="label", how="left", maintain_order="left")["code"].to_numpy()
                digest.update(np.append(codes, -1).astype("<i4")[part.values].tobytes())
            else:
                digest.update(np.where(part.missing, np.nan, part.values).astype("<f8").tobytes())
        return replace(
            agreed, numbers=self.numbers[:0].copy(), labels=self.labels.clear(), counts=self.counts[:0].copy()
        )

    def _blank(self, rows: int) -> Column:
        return nothing(rows) if self.kind == "category" else Column(self.kind, self.holds, np.full(rows, np.nan))


@dataclass(frozen=True, eq=False)
class SurveyedStream:
    """A table that is read in blocks and whose columns are known: rows of it are tables like those in memory."""

    stream: TableStream
    columns: tuple[ColumnSurvey, ...]
    _fingerprint: str

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.stream.names

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stream.rows

    def fingerprint(self) -> str:
        """Return what :meth:`Table.fingerprint` would."""
        return self._fingerprint

    def table(self, frame: pl.DataFrame, first: int) -> Table:
        """Return rows of a block, from some number on, as a table."""
        columns = tuple(column.cells(frame.get_column(column.name), first) for column in self.columns)
        return Table(self.names, columns, self.stream.origin)

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return the rows with these rising numbers; the stream is read once."""
        import polars as pl

        parts = []
        for start, frame in self.stream.blocks(self.names):
            first, last = np.searchsorted(rows, [start, start + frame.height])
            parts.append(frame[rows[first:last] - start])
        return self.table(pl.concat(parts), 0)


def _columns(stream: TableStream, name: str, as_text: bool, *, truth: bool) -> Iterator[tuple[int, Column]]:
    for first, frame in stream.blocks([name]):
        yield first, _column(frame.get_column(name), stream.origin, name, as_text, truth, first)


def _column(series: pl.Series, origin: str, name: str, as_text: bool, truth: bool, first: int) -> Column:
    import polars as pl

    place = f"{origin} column {name!r}"
    if series.dtype.is_float():
        _check_finite(series, place, first)
    if as_text:
        series = series.cast(pl.String)
    if series.dtype in (pl.String, pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
        return column_from_series(series, place, category=not truth)
    return column_from_series(series, place)


def _check_finite(series: pl.Series, place: str, first: int) -> None:
    endless = series.is_infinite().fill_null(False)
    if endless.any():
        row = int(endless.arg_max() or 0)
        raise InputError(
            f"{place} must hold finite numbers, got {series[row]} in row {first + row} "
            f"({int(endless.sum())} such rows in this block)"
        )


def _is_inexact(stream: TableStream, name: str) -> bool:
    import polars as pl

    dtype = stream.dtypes[name]
    if not dtype.is_integer() or dtype in (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32):
        return False
    for _, frame in stream.blocks([name]):
        low, high = frame.get_column(name).min(), frame.get_column(name).max()
        if low is not None and (int(low) < -EXACT or int(high) > EXACT):  # type: ignore[arg-type]
            return True
    return False


def _is_truth(holds: str, words: pl.Series) -> bool:
    few = words.head(7).to_list()
    return holds == "text" and 0 < len(few) <= 6 and {word.strip().lower() for word in few} <= TRUTH


def _capitalised(words: pl.Series, counts: NDArray[np.int64]) -> tuple[pl.Series, NDArray[np.int64]]:
    import polars as pl

    joined: dict[str, int] = {}
    for word, count in zip(words.to_list(), counts.tolist(), strict=True):
        joined[word.strip().capitalize()] = joined.get(word.strip().capitalize(), 0) + count
    kept = sorted(joined)
    return pl.Series(kept, dtype=pl.String), np.array([joined[word] for word in kept], dtype=np.int64)


class _Distinct:
    """Distinct values with counts, by block: those of new blocks wait until merging pays."""

    def __init__(self, join: Callable[[list[Any]], Any], none: Any) -> None:
        self._join, self._kept, self._none = join, None, none
        self._waiting: list[Any] = []

    def add(self, part: tuple[Any, NDArray[np.int64]]) -> None:
        """Add the values of a block and how many rows have each."""
        self._waiting.append(part)
        if self._kept is None or sum(len(one[1]) for one in self._waiting) > max(_MERGE, len(self._kept[1])):
            self.merged()

    def merged(self) -> Any:
        """Return all values, rising, and how many rows have each."""
        if self._waiting:
            self._kept = self._join(self._waiting if self._kept is None else [self._kept, *self._waiting])
            self._waiting = []
        return self._none if self._kept is None else self._kept


def _joined_numbers(parts: list[Any]) -> tuple[Array, NDArray[np.int64]]:
    values, counts = (np.concatenate(side) for side in zip(*parts, strict=True))
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return values[starts], np.add.reduceat(counts, starts)


def _joined_labels(parts: list[Any]) -> tuple[pl.Series, NDArray[np.int64]]:
    import polars as pl

    frames = [
        pl.DataFrame({"label": labels, "rows": rows}, schema_overrides={"label": pl.String}) for labels, rows in parts
    ]
    joined = pl.concat(frames).group_by("label").agg(pl.col("rows").sum()).sort("label")
    return joined["label"], joined["rows"].to_numpy()
