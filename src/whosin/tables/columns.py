"""One column of a table: numbers, dates or categories, and cells that are missing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Column", "Kind", "as_category", "column_from_series", "nothing"]

Kind = Literal["number", "date", "category"]

EXACT = 2**53 - 1
"""Whole numbers up to here are told apart by 64-bit floats, from each other and from larger ones."""
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
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        gone: NDArray[np.bool_] = self.values < 0 if self.kind == "category" else np.isnan(self.values)
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
        return _numbers(_finite(_floats(series), place), "number", "numbers")
    if dtype.is_temporal():
        return _dates(series)
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return _text(series.cast(pl.String), raw)
    raise InputTypeError(f"{place} must hold numbers, text, truth values or dates, got {dtype}")


def _inexact(series: pl.Series) -> bool:
    low, high = series.min(), series.max()
    return int(low) < -EXACT or int(high) > EXACT  # type: ignore[arg-type]


def _floats(series: pl.Series) -> NDArray[np.float64]:
    import polars as pl

    return np.array(series.cast(pl.Float64).fill_null(np.nan).to_numpy(), dtype=np.float64)


def _finite(values: NDArray[np.float64], place: str) -> NDArray[np.float64]:
    endless = np.isinf(values)
    if endless.any():
        row = int(np.argmax(endless))
        raise InputError(
            f"{place} must hold finite numbers, got {values[row]} in row {row} ({int(endless.sum())} such rows)"
        )
    return values


def _numbers(values: NDArray[np.float64], kind: Kind, holds: str) -> Column:
    plain = np.where(np.isnan(values), np.nan, values) + 0.0
    return Column(kind, holds, plain) if not np.isnan(plain).all() else nothing(len(plain))


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
    import polars as pl

    labels = series.drop_nulls().unique().sort()
    book = pl.DataFrame({"label": labels, "code": np.arange(len(labels), dtype=np.int32)})
    coded = series.to_frame("label").join(book, on="label", how="left", maintain_order="left")["code"]
    codes = coded.fill_null(-1).to_numpy()
    words = labels.to_list()
    if not raw and len(words) <= 6 and {word.strip().lower() for word in words} <= TRUTH:
        return _categories([word.strip().capitalize() for word in words], codes, "truth values")
    return Column("category", "text", np.array(codes, dtype=np.int32), tuple(words))


def _categories(labels: Any, codes: NDArray[Any], holds: str) -> Column:
    """Sort the labels, join equal ones and drop those that no cell has; −1 stays missing."""
    used = np.bincount(codes[codes >= 0], minlength=len(labels)) > 0
    kept = sorted({label for label, here in zip(labels, used.tolist(), strict=True) if here})
    if not kept:
        return nothing(len(codes))
    place = {label: code for code, label in enumerate(kept)}
    book = np.array([place.get(label, -1) for label in labels] + [-1], dtype=np.int32)
    return Column("category", holds, book[codes], tuple(kept))
