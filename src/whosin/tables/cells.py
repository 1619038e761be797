"""Cells of text files as numbers, dates or labels: the whole column decides.

A column is read as numbers if all its cells read so, blanks around them and missing ones aside; dates have the form
2026-01-31, with or without a time. Whole numbers with zeros in front (postcodes) and those beyond 2⁵³ stay labels. If
the caller names no words for missing cells, those of :data:`WORDS` count as missing among numbers and dates, and a
remark says so. If no decimal sign is named and cells are not separated by commas, commas are decimal signs where that
makes numbers of a column, and in at least one column of the file they cannot be thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from whosin.errors import InputError
from whosin.tables.columns import EXACT
from whosin.tables.dialect import MISSING, WORDS, Dialect

if TYPE_CHECKING:
    import polars as pl

__all__ = ["dates_in", "read_columns"]

_DATES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f%#z")
_WITH_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?([eE][+-]?\d+)?$"
_LOOK = 1000
"""Cells that say whether a column has few distinct ones."""
_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"


def read_columns(
    columns: Mapping[str, pl.Series], dialect: Dialect, raw: Sequence[str], place: Callable[[str, int], str]
) -> tuple[dict[str, pl.Series], list[str]]:
    """Return columns of text, each read as a whole, and remarks; what is numbers already stays.

    ``raw`` names columns that stay text, and ``place`` says in errors where a column has its row of some number.
    """
    import polars as pl

    decimal = dialect.decimal or "."
    if dialect.blanks:
        columns = {name: c.str.strip_chars_start(" ") if c.dtype == pl.String else c for name, c in columns.items()}
    series = {name: _read(cells, dialect.missing, decimal, stay=name in raw) for name, cells in columns.items()}
    remarks = []
    if dialect.decimal is None and dialect.separator != ",":
        commas = _with_commas({name: columns[name] for name in columns if name not in raw}, series, dialect.missing)
        series |= commas
        remarks += [f"commas are decimal signs in {_listed(commas)}"] if commas else []
    for name, cells in columns.items():
        if series[name].dtype.is_float() and (endless := series[name].is_infinite()).any():
            row = int(endless.arg_max() or 0)
            raise InputError(
                f"{place(name, row)} must be a finite number, got {cells[row]!r} ({int(endless.sum())} such cells); "
                "leave the column out, or name the word as a missing cell"
            )
        more = series[name].null_count() > cells.null_count()
        if dialect.missing is None and more and series[name].dtype != cells.dtype:
            remarks += _said(name, cells)
    return series, remarks


def _read(cells: pl.Series, missing: Sequence[str] | None, decimal: str, *, stay: bool = False) -> pl.Series:
    """Read a column by its distinct cells, if they are few: what they are decides."""
    import polars as pl

    if cells.dtype != pl.String:
        return cells
    if 2 * cells.head(_LOOK).n_unique() > min(len(cells), _LOOK):
        return _typed(cells, missing, decimal, stay)
    values = cells.unique()
    read = _typed(values, missing, decimal, stay)
    if read is values:
        return cells
    book = pl.DataFrame({"cell": values, "read": read})
    return cells.to_frame("cell").join(book, on="cell", how="left", maintain_order="left", nulls_equal=True)["read"]


def _typed(cells: pl.Series, missing: Sequence[str] | None, decimal: str, stay: bool) -> pl.Series:
    bare = cells.str.strip_chars()
    known = _without(bare, bare, MISSING if missing is None else missing)
    text = _without(cells, bare, MISSING if missing is None else missing)
    if stay or known.null_count() == len(known):
        return text
    for words in ((), WORDS if missing is None else ()):
        kept = _without(known, known, words)
        if kept.null_count() == len(kept):
            break
        numbers = _numbers(kept, decimal)
        if numbers is not None:
            return text if _are_labels(kept, numbers) else numbers
        dates = dates_in(kept)
        if dates is not None:
            return dates
    return text


def _without(cells: pl.Series, bare: pl.Series, words: Sequence[str]) -> pl.Series:
    import polars as pl

    gone = bare.is_in(list(words))
    return pl.select(pl.when(~gone).then(cells)).to_series() if gone.any() else cells


def _numbers(known: pl.Series, decimal: str) -> pl.Series | None:
    import polars as pl

    if decimal == ",":
        if not known.str.contains(_WITH_COMMA).all():
            return None
        known = known.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    numbers = known.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == known.null_count() else None


def _are_labels(known: pl.Series, numbers: pl.Series) -> bool:
    """Whether what reads as numbers is no quantity: zeros in front, or too long for floats to tell apart."""
    large = known.filter(numbers.abs() > EXACT)
    return bool(large.str.contains(r"^[+-]?\d+$").any()) or bool(known.str.contains(r"^0\d+$").any())


def _with_commas(
    columns: Mapping[str, pl.Series], series: Mapping[str, pl.Series], missing: Sequence[str] | None
) -> dict[str, pl.Series]:
    """Return the columns of text that commas as decimal signs make numbers; none if they may all be thousands."""
    import polars as pl

    found, sure = {}, False
    for name, cells in columns.items():
        if series[name].dtype == pl.String and cells.str.contains(",", literal=True).any():
            numbers = _read(cells, missing, ",")
            if numbers.dtype != pl.String:
                found[name] = numbers
                marked = cells.filter(cells.str.contains(",", literal=True)).str.strip_chars()
                sure = sure or not marked.str.contains(_THOUSANDS).all()
    return found if sure else {}


def _said(name: str, cells: pl.Series) -> list[str]:
    """Name the words that counted as missing in a column of numbers or dates."""
    bare = cells.str.strip_chars()
    found = bare.filter(bare.is_in(list(WORDS))).value_counts(sort=True)
    return [f"column {name!r}: {word!r} counts as missing in {count} rows" for word, count in found.iter_rows()]


def dates_in(known: pl.Series) -> pl.Series | None:
    """Return text as dates if every cell reads as one in the same form."""
    filled = known.drop_nulls()
    first = "" if filled.is_empty() else str(filled[0])
    if not (first[:4].isdigit() and first[4:5] == "-"):
        return None
    iso = known.str.replace(" ", "T", literal=True)
    for shape in _DATES:
        dates = iso.str.to_datetime(shape, time_unit="us", time_zone="UTC" if "z" in shape else None, strict=False)
        if dates.null_count() == known.null_count():
            return dates
    return None


def _listed(names: Mapping[str, object]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more columns"
