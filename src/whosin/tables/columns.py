"""One column of a table: numbers, dates or categories, and cells that are missing."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.errors import InputError

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
R = TypeVar("R")
Kind = Literal["number", "date", "category"]

EXACT = 2**53 - 1
"""Whole numbers up to here are told apart by 64-bit floats, from each other and from larger ones."""
_LOOK, _FEW = 2**15, 2**14
"""If so many first texts have at most so many distinct ones, polars codes them as it does categoricals."""
_MANY = 2**16
"""Rows from which on columns are made on threads."""
TRUTH = {"true", "false"}
"""Words, in lower case, that make a column of text one of truth values."""


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one column, in the order of the rows.

    Numbers and dates are 64-bit floats with NaN where a cell is missing; dates count seconds from 1970-01-01 (in UTC
    where they carry a time zone), told apart to the microsecond from 1698 to 2242. Categories are numbers of labels, −1
    where missing; labels are sorted by code point, and each occurs. Minus zero is zero.
    """

    kind: Kind
    holds: str
    """What the cells are, in words: kinds that agree and words that differ still do not match."""
    values: NDArray[Any] = field(repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> Flags:
        """Which cells are missing."""
        gone: Flags = self.values < 0 if self.kind == "category" else np.isnan(self.values)
        return gone

    def take(self, rows: NDArray[Any]) -> Column:
        """Return the cells in these rows."""
        values = self.values[rows]
        if self.kind == "category":
            return _categories(self.labels, values, self.holds)
        return _numbers(values, self.kind, self.holds)

    def show(self, row: int) -> str:
        """Return a cell as it would be written."""
        if self.missing[row]:
            return "a missing value"
        value = self.values[row]
        if self.kind == "category":
            return repr(self.labels[value])
        return str(date_text(float(value))) if self.holds.startswith("dates") else number_text(float(value))


def nothing(rows: int) -> Column:
    """Return a column in which every cell is missing; it matches a column of any kind."""
    return Column("category", "nothing", np.full(rows, -1, dtype=np.int32))


def as_category(column: Column) -> Column:
    """Return the same cells as text: 1.0 becomes "1", a date its ISO form."""
    if column.kind == "category":
        return column
    write = date_text if column.holds.startswith("dates") else number_text
    levels, codes = np.unique(column.values, return_inverse=True)
    known = levels[~np.isnan(levels)]
    codes = np.where(np.isnan(column.values), -1, codes)
    return _categories([write(value) for value in known.tolist()], codes, "text")


def number_text(value: float) -> str:
    """Write a number, whole ones without a point."""
    return str(int(value)) if value.is_integer() and abs(value) <= EXACT else repr(value)


def date_text(seconds: float) -> str:
    """Write seconds from 1970-01-01 as an ISO date, with the time unless it is midnight."""
    whole = math.floor(seconds)
    moment = np.datetime64(whole * 1_000_000 + round((seconds - whole) * 1e6), "us")
    day = moment.astype("datetime64[D]")
    return str(day) if day == moment else str(moment)


def for_each(make: Callable[[T], R], items: Sequence[T], rows: int) -> list[R]:
    """Return what is made of each item, a column for one; with many rows on threads, as polars and NumPy allow."""
    if rows < _MANY or len(items) < 2:
        return [make(item) for item in items]
    with ThreadPoolExecutor(min(len(items), os.cpu_count() or 1)) as pool:
        return list(pool.map(make, items))


def column_from_series(series: pl.Series, place: str, *, category: bool = False) -> Column:
    """Return a polars series as a column.

    Parameters
    ----------
    series : polars.Series
    place : str
        The table and the name of the column, for errors.
    category : bool
        Take the cells as text, whatever they are.
    """
    if series.null_count() == len(series):
        return nothing(len(series))
    column = _plain(series, place, category)
    if column.missing.all():
        return nothing(len(series))
    return as_category(column) if category else column


def _plain(series: pl.Series, place: str, raw: bool) -> Column:
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Boolean:
        codes = series.cast(pl.Int32).fill_null(-1).to_numpy()
        return _categories(("False", "True"), codes, "text" if raw else "truth values")
    if dtype.is_integer() and _inexact(series):
        return _text(series.cast(pl.String), raw=True)
    if dtype.is_numeric():
        return _numbers(_floats(series), "number", "numbers", place)
    if dtype.is_temporal():
        return _dates(series)
    return _text(series, raw)


def _inexact(series: pl.Series) -> bool:
    low, high = series.min(), series.max()
    return int(low) < -EXACT or int(high) > EXACT  # type: ignore[arg-type]


def _floats(series: pl.Series) -> Array:
    import polars as pl

    floats = series.cast(pl.Float64)
    return (floats.fill_null(np.nan) if floats.null_count() else floats).to_numpy(writable=True)


def _numbers(values: Array, kind: Kind, holds: str, place: str = "") -> Column:
    """Rid numbers, which nobody else holds, of minus zero and odd kinds of NaN; refuse endless ones, if asked."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = np.add(values, 0.0, out=values)
        if np.isfinite(plain.sum()):
            return Column(kind, holds, plain)
    gone, endless = np.isnan(plain), np.isinf(plain)
    if place and endless.any():
        row = int(np.argmax(endless))
        raise InputError(
            f"{place} must hold finite numbers, got {values[row]} in row {row} ({int(endless.sum())} such rows); "
            "put missing cells in their place"
        )
    plain[gone] = np.nan
    return nothing(len(plain)) if gone.all() else Column(kind, holds, plain)


def _dates(series: pl.Series) -> Column:
    import polars as pl

    zone = getattr(series.dtype, "time_zone", None)
    words = {pl.Date: "dates", pl.Datetime: "dates", pl.Duration: "durations", pl.Time: "times of day"}
    holds = next(word for dtype, word in words.items() if series.dtype == dtype)
    if series.dtype == pl.Date:
        seconds = _floats(series.to_physical()) * 86_400.0
    elif series.dtype == pl.Time:
        seconds = _floats(series.to_physical() // 1_000) / 1e6
    else:
        seconds = _floats(series.dt.cast_time_unit("us").to_physical()) / 1e6
    return _numbers(seconds, "date", holds if zone is None else "dates with a time zone")


def _text(series: pl.Series, raw: bool) -> Column:
    labels, codes = coded(series)
    words = labels.to_list()
    if not raw and len(words) <= 6 and {word.strip().lower() for word in words} <= TRUTH:
        return _categories([word.strip().capitalize() for word in words], codes, "truth values")
    return Column("category", "text", codes, tuple(words))


def categorical(series: pl.Series) -> pl.Series:
    """Return text of which few are distinct as polars codes it: faster if the first cells have all of them."""
    import polars as pl

    first = series.head(_LOOK).drop_nulls().unique().sort()
    listed = series.cast(pl.Enum(first), strict=False)
    return listed if listed.null_count() == series.null_count() else series.cast(pl.Categorical)


def coded(series: pl.Series) -> tuple[pl.Series, NDArray[np.int32]]:
    """Return the distinct texts of a column, rising, and for each cell the number of its own, -1 where it is missing.

    O(n + k log k) for k distinct ones.
    """
    import polars as pl

    if series.dtype == pl.String and series.head(_LOOK).n_unique() <= _FEW:
        series = categorical(series)
    if series.dtype == pl.String:
        labels = series.drop_nulls().unique().sort()
        book_frame = pl.DataFrame({"label": labels, "code": np.arange(len(labels), dtype=np.int32)})
        joined = series.to_frame("label").join(book_frame, on="label", how="left", maintain_order="left")
        return labels, joined["code"].fill_null(-1).to_numpy()
    kinds = series.unique().drop_nulls()
    order = kinds.cast(pl.String).arg_sort().to_numpy()
    numbers = kinds.to_physical().to_numpy()[order].astype(np.int64)
    codes = series.to_physical().cast(pl.Int32)
    codes = codes.fill_null(-1) if codes.null_count() else codes
    places = codes.to_numpy()
    if not np.array_equal(numbers, np.arange(len(numbers))):
        book = np.full(int(numbers.max(initial=-1)) + 2, -1, dtype=np.int32)
        book[numbers] = np.arange(len(numbers), dtype=np.int32)
        places = book[places]
    return kinds.cast(pl.String).gather(order), places


def _categories(labels: Any, codes: NDArray[Any], holds: str) -> Column:
    """Sort the labels, join equal ones and drop those that no cell has; −1 stays missing."""
    used = np.bincount(codes[codes >= 0], minlength=len(labels)) > 0
    kept = sorted({label for label, here in zip(labels, used.tolist(), strict=True) if here})
    if not kept:
        return nothing(len(codes))
    place = {label: code for code, label in enumerate(kept)}
    book = np.array([place.get(label, -1) for label in labels] + [-1], dtype=np.int32)
    return Column("category", holds, book[codes], tuple(kept))
