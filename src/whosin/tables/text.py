"""Separated text (CSV, TSV) as polars series.

A file in which every line has the same number of cells is read by polars; any other goes, slowly, through the csv
module, which finds the line that is wrong or the odd quoting that is right. Both see the whole file before a column has
a type.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError
from whosin.tables.columns import EXACT
from whosin.tables.table import check_names

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MISSING", "series_from_text"]

MISSING = ("", "NA", "NaN", "nan", "null")
"""Cells that are missing, blanks around them aside."""
_DATES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f%#z")
_CHUNK = 2**24
_QUOTE = ord('"')
_NEWLINE = ord("\n")


def series_from_text(
    data: bytes,
    origin: str,
    *,
    separator: str = ",",
    header: bool | None = None,
    missing: Sequence[str] = MISSING,
    raw: Sequence[str] = (),
) -> dict[str, pl.Series]:
    """Return the columns of separated text, each as numbers, dates or text.

    Parameters
    ----------
    data : bytes
        UTF-8, with or without a byte order mark. Blank lines do not count.
    origin : str
        The file, for errors.
    separator : str
    header : bool, optional
        Whether the first line has names. By default it has unless all its cells are numbers.
    missing : sequence of str
        Cells that are missing.
    raw : sequence of str
        Columns that stay text.

    Notes
    -----
    A column is numeric if all cells that are not missing read as numbers, blanks around them aside. Whole numbers
    beyond 2⁵³ stay text. Dates are cells of the form 2026-01-31, with or without a time. O(cells).
    """
    if not (isinstance(separator, str) and len(separator) == 1 and separator.isascii() and separator not in '"\r\n'):
        raise InputError(f"separator must be one plain character, got {separator!r}")
    data = _clean(data, origin)
    names, body, first_line = _split_header(data, origin, separator, header)
    check_names(names, f"{origin} (whose first line was taken as names)" if first_line > 1 else origin)
    if not body or body.isspace():
        raise InputError(f"{origin} has names but no rows")
    frame = _read_regular(body, len(names), separator)
    if frame is None:
        frame = _read_odd(body, len(names), separator, origin, first_line)
    return {name: typed(frame.to_series(i), missing, stay=name in raw) for i, name in enumerate(names)}


def _clean(data: bytes, origin: str) -> bytes:
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{origin} must be UTF-8, got the byte 0x{data[error.start]:02x} on line {line}") from None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data or data.isspace():
        raise InputError(f"{origin} is empty")
    return data


def _split_header(data: bytes, origin: str, separator: str, header: bool | None) -> tuple[list[str], bytes, int]:
    """Return the names, the bytes of the rows, and the line on which the rows start."""
    blank = len(data) - len(data.lstrip(b"\n"))
    reader = csv.reader(_lines(data[blank:]), delimiter=separator)
    try:
        cells = next(reader)
    except csv.Error as error:
        raise InputError(
            f"{origin} must have a first line of names or numbers, got one that cannot be read: {error}"
        ) from None
    other = next((s for s in ";\t|" if s != separator and s in cells[0]), None)
    if len(cells) == 1 and other is not None:
        raise InputError(f"{origin} has one column and {other!r} in its first line: is the separator {other!r}?")
    if header is None:
        header = not all(_is_number(cell) for cell in cells)
    if not header:
        return [f"column {i}" for i in range(len(cells))], data[blank:], blank + 1
    names = [cell.strip() or f"column {i}" for i, cell in enumerate(cells)]
    end = blank
    for _ in range(reader.line_num):
        end = data.find(b"\n", end) + 1 or len(data)
    return names, data[end:], blank + reader.line_num + 1


def _lines(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_regular(body: bytes, width: int, separator: str) -> pl.DataFrame | None:
    """Return the cells as text, or None if lines differ in length or quotes are odd."""
    import polars as pl

    body = body.strip(b"\n")
    rows = _regular_rows(body, width, separator)
    if rows is None:
        return None
    schema = {str(i): pl.String for i in range(width)}
    try:
        frame = pl.read_csv(io.BytesIO(body), has_header=False, schema=schema, separator=separator)
    except (pl.exceptions.PolarsError, OSError):
        return None
    return frame if frame.height == rows else None


def _regular_rows(body: bytes, width: int, separator: str) -> int | None:
    """Count the lines, or return None if one is blank, has not ``width`` cells or a quote that opens within a cell."""
    rows, inside, cells, last = 0, False, 0, _NEWLINE
    for start in range(0, len(body), _CHUNK):
        piece = np.frombuffer(body, dtype=np.uint8, count=min(_CHUNK, len(body) - start), offset=start)
        commas, ends = piece == ord(separator), piece == _NEWLINE
        quotes = piece == _QUOTE
        before = np.concatenate((np.array([last], dtype=np.uint8), piece[:-1]))
        if inside or quotes.any():
            after = np.logical_xor.accumulate(np.concatenate(([inside], quotes)))
            opens = quotes & ~after[:-1]
            if not np.isin(before[opens], (ord(separator), _NEWLINE, _QUOTE)).all():
                return None
            commas, ends, inside = commas & ~after[1:], ends & ~after[1:], bool(after[-1])
        counts, cells = _count_cells(commas, ends, cells)
        if (counts != width - 1).any() or (before[ends] == _NEWLINE).any():
            return None
        rows, last = rows + len(counts), int(piece[-1])
    return rows + 1 if cells == width - 1 and not inside else None


def _count_cells(commas: NDArray[np.bool_], ends: NDArray[np.bool_], open_cells: int) -> tuple[NDArray[np.int64], int]:
    """Return the separators of each line that ends here, and those of the line that stays open."""
    seen = np.searchsorted(np.flatnonzero(commas), np.flatnonzero(ends))
    counts = np.diff(seen, prepend=0)
    total = int(np.count_nonzero(commas))
    if not len(counts):
        return counts, open_cells + total
    counts[0] += open_cells
    return counts, total - int(seen[-1])


def _read_odd(body: bytes, width: int, separator: str, origin: str, first_line: int) -> pl.DataFrame:
    import polars as pl

    reader = csv.reader(_lines(body), delimiter=separator)
    rows, line = [], first_line
    try:
        for row in reader:
            if row and len(row) != width:
                raise InputError(f"{origin} line {line} must have {width} cells, got {len(row)}")
            if row:
                rows.append(row)
            line = first_line + reader.line_num
    except csv.Error as error:
        raise InputError(f"{origin} line {line} cannot be read: {error}") from None
    return pl.DataFrame([pl.Series(str(i), cells) for i, cells in enumerate(zip(*rows, strict=True))])


def typed(cells: pl.Series, missing: Sequence[str], *, stay: bool) -> pl.Series:
    """Return text as numbers or dates if every cell that is not missing reads so."""
    import polars as pl

    bare = cells.str.strip_chars()
    gone = bare.is_in(list(missing))
    kept = pl.when(~gone)
    text, known = (pl.select(kept.then(part)).to_series() if gone.any() else part for part in (cells, bare))
    if stay or text.null_count() == len(text):
        return text
    numbers = known.cast(pl.Float64, strict=False)
    if numbers.null_count() == known.null_count():
        return text if _inexact(known, numbers) else numbers
    dates = _dates(known)
    return text if dates is None else dates


def _inexact(known: pl.Series, numbers: pl.Series) -> bool:
    large = known.filter(numbers.abs() > EXACT)
    return bool(large.str.contains(r"^[+-]?\d+$").any())


def _dates(known: pl.Series) -> pl.Series | None:
    first = str(known.drop_nulls()[0])
    if not (first[:4].isdigit() and first[4:5] == "-"):
        return None
    iso = known.str.replace(" ", "T", literal=True)
    for shape in _DATES:
        dates = iso.str.to_datetime(shape, time_unit="us", time_zone="UTC" if "z" in shape else None, strict=False)
        if dates.null_count() == known.null_count():
            return dates
    return None
