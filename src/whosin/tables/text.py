"""Separated text (CSV, TSV) as polars series.

A file in which every line has the same number of cells is read by polars; any other goes, slowly, through the csv
module, which finds the line that is wrong or the odd quoting that is right. Both see the whole file before a column has
a type.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError
from whosin.tables.cells import read_columns
from whosin.tables.columns import EXACT
from whosin.tables.dialect import MISSING, Dialect, decoded, first_rows, is_number
from whosin.tables.table import check_names

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Layout", "irregular_frames", "is_regular", "series_from_text"]

Bytes = NDArray[np.uint8]

_CHUNK = 2**18
_HEAD = 2**16
"""Bytes that are looked at to recognise how a file is written."""
_QUOTE = ord('"')
_NEWLINE = ord("\n")
_BLOCK_ROWS = 2**17


@dataclass(frozen=True)
class Layout:
    """Where the rows of a text file start, and how they are written; made by :meth:`of`."""

    origin: str
    """The file, for errors."""
    dialect: Dialect
    names: tuple[str, ...]
    start: int
    """The byte at which the rows start."""
    first_line: int
    """The line on which they start."""
    remarks: tuple[str, ...]
    numeric: tuple[bool, ...] = field(repr=False)
    """For each column whether the first rows have numbers in it."""

    @classmethod
    def of(cls, data: bytes, origin: str, dialect: Dialect, ending: str) -> Layout:
        """Recognise the layout by the bytes of a file, in UTF-8, or by the first megabyte of them."""
        if not data or data.isspace():
            raise InputError(f"{origin} is empty")
        start = 0
        for _ in range(dialect.skip_lines):
            start = data.find(b"\n", start) + 1 or len(data)
        start += len(data[start:]) - len(data[start:].lstrip(b"\n"))
        line = data.count(b"\n", 0, start) + 1
        head = data[start : start + _HEAD].decode("utf-8", "ignore")
        whole = len(data) - start <= _HEAD
        found = dialect.recognised(head, whole, ending)
        rows = first_rows(head, whole, str(found.separator))
        remarks = _remarks(dialect, found, ending)
        if not rows:
            raise InputError(f"{origin} line {line} must have names or numbers, got a line that cannot be read")
        if not found.header:
            names, end, line_end = [f"column {i}" for i in range(len(rows[0]))], start, line
        else:
            names, repeated = _names(rows.pop(0))
            remarks += repeated
            end, line_end = _after_names(data, start, line, str(found.separator))
        check_names(names, origin)
        columns = list(zip(*(row for row in rows if len(row) == len(names)), strict=True)) or [()] * len(names)
        numeric = tuple(_are_numbers(cells) for cells in columns)
        return cls(origin, found, tuple(names), end, line_end, tuple(remarks), numeric)

    @property
    def separator(self) -> str:
        """What separates cells."""
        return str(self.dialect.separator)


def series_from_text(
    data: bytes, origin: str, dialect: Dialect, ending: str = ".csv", raw: Sequence[str] = ()
) -> tuple[dict[str, pl.Series], list[str], NDArray[np.int64]]:
    """Return the columns of separated text, remarks on how they were read, and the line of each row.

    Parameters
    ----------
    data : bytes
        Blank lines do not count.
    origin : str
        The file, for errors.
    dialect : Dialect
        How it is written, as far as that is known.
    ending : str
        That of the file: it decides where nothing can be recognised.
    raw : sequence of str
        Columns that stay text.

    Notes
    -----
    O(cells). How a column is read: :mod:`whosin.tables.cells`.
    """
    import polars as pl

    data, remark = decoded(data, origin, dialect.encoding)
    layout = Layout.of(data, origin, dialect, ending)
    if layout.separator == " ":
        data = re.sub(rb"(?m)^ +| +$", b"", re.sub(rb"[ \t]+", b" ", data))
        layout = replace(Layout.of(data, origin, layout.dialect, ending), remarks=layout.remarks)
    if len(data) == layout.start or data[layout.start : layout.start + 2 * _HEAD].isspace():
        raise InputError(f"{origin} has names but no rows")
    frame = _read_regular(data, layout)
    if frame is not None:
        lines = layout.first_line + np.arange(frame.height)
    else:
        parts = list(irregular_frames(io.BytesIO(data[layout.start :]), layout))
        frame, lines = pl.concat([part for part, _ in parts]), np.concatenate([part for _, part in parts])
    columns = {name: frame.to_series(i) for i, name in enumerate(layout.names)}
    series, remarks = read_columns(
        columns, layout.dialect, raw, lambda name, row: f"{origin} line {lines[row]} column {name!r}"
    )
    return series, [*([] if remark is None else [remark]), *layout.remarks, *remarks], lines


def _remarks(asked: Dialect, found: Dialect, ending: str) -> list[str]:
    """Say what was recognised, where a reader may want to know."""
    said = []
    if asked.separator is None and found.separator != ("\t" if ending == ".tsv" else ","):
        shown = {"\t": "tabs", " ": "blanks"}.get(str(found.separator), repr(found.separator))
        said.append(f"its cells are separated by {shown}")
    if asked.header is None and not found.header:
        said.append("its first line was taken as a row, not as names")
    return said


def _names(cells: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of columns, the second of two equal ones with a number, and remarks."""
    names: list[str] = []
    remarks = []
    for i, cell in enumerate(cells):
        name = given = cell.strip() or f"column {i}"
        number = 0
        while name in names:
            number += 1
            name = f"{given}.{number}"
        if number:
            remarks.append(f"column {i} is called {name!r}, as {given!r} is there already")
        names.append(name)
    return names, remarks


def _after_names(data: bytes, start: int, line: int, separator: str) -> tuple[int, int]:
    """Return the byte and the line after the row of names."""
    reader = csv.reader(_lines(io.BytesIO(data[start : start + 2 * _HEAD])), delimiter=separator)
    next(reader)
    for _ in range(reader.line_num):
        start = data.find(b"\n", start) + 1 or len(data)
    return start, line + reader.line_num


def _are_numbers(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if cell not in MISSING]
    return bool(known) and all(map(is_number, known))


def _lines(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, encoding="utf-8", newline="", errors="ignore")


def _read_regular(data: bytes, layout: Layout) -> pl.DataFrame | None:
    """Return the cells as text, or numbers where the first rows have some and all read so; None if lines are odd."""
    text = np.frombuffer(data, dtype=np.uint8)[layout.start : len(data) - data.endswith(b"\n")]
    rows, labels = is_regular(text, layout)
    if not rows:
        return None
    missing = MISSING if layout.dialect.missing is None else layout.dialect.missing
    quick = [number and not label for number, label in zip(layout.numeric, labels, strict=True)]
    ways: list[tuple[list[bool], list[str] | None]] = [([False] * len(quick), None)]
    if any(quick) and layout.dialect.decimal != "," and "" in missing:
        ways = [(quick, None), (quick, list(missing)), *ways]
    for numbers, words in ways:
        frame = _parsed(data, layout, numbers, words)
        if frame is not None and frame.height == rows and not _is_beyond(frame):
            return frame
    return None


def _parsed(data: bytes, layout: Layout, numbers: Sequence[bool], missing: list[str] | None) -> pl.DataFrame | None:
    import polars as pl

    schema = {str(i): pl.Float64 if number else pl.String for i, number in enumerate(numbers)}
    try:
        return pl.read_csv(
            io.BytesIO(data),
            has_header=False,
            skip_lines=layout.first_line - 1,
            schema=schema,
            separator=layout.separator,
            null_values=missing,
        )
    except (pl.exceptions.PolarsError, OSError):
        return None


def _is_beyond(frame: pl.DataFrame) -> bool:
    """Whether numbers are so large that they may be labels, or endless: then their text has to be seen."""
    tops: list[Any] = [column.abs().max() for column in frame if column.dtype.is_float()]
    return any(top is not None and top > EXACT for top in tops)


def is_regular(text: Bytes, layout: Layout) -> tuple[int, list[bool]]:
    """Return the number of lines, and for each column whether a cell starts with 0 and another digit.

    The number is 0 if a line is blank or has another number of cells, or if a quote opens within a cell. O(bytes), a
    piece at a time.
    """
    width, separator = len(layout.names), ord(layout.separator)
    labels = np.zeros(width, dtype=bool)
    labels[0] = re.match(rb'"?0\d', bytes(text[:3])) is not None
    cells, inside, last = 0, False, _NEWLINE
    for start in range(0, len(text), _CHUNK):
        piece = text[start : start + _CHUNK]
        quotes = piece == _QUOTE
        quoted = bool(inside or quotes.any())
        places = np.flatnonzero((piece == separator) | (piece == _NEWLINE) | quotes)
        if quoted:
            kinds = piece[places]
            within = (np.cumsum(kinds == _QUOTE, dtype=np.uint32) & 1) != inside
            opens = places[(kinds == _QUOTE) & within]
            before = np.where(opens, piece[opens - 1], last)
            if not ((before == separator) | (before == _NEWLINE) | (before == _QUOTE)).all():
                return 0, labels.tolist()
            inside = bool(within[-1]) if len(within) else inside
            places = places[(kinds != _QUOTE) & ~within]
        ends = piece[places] == _NEWLINE
        first = (width - 1 - cells) % width
        blank = width == 1 and (np.any(np.diff(places) == 1) or (last == piece[0] == _NEWLINE))
        if blank or np.count_nonzero(ends) != len(ends[first::width]) or not ends[first::width].all():
            return 0, labels.tolist()
        found = _zeros_after(places, text[start : start + _CHUNK + 3], quoted)
        labels[(cells + 1 + found) % width] = True
        cells, last = cells + len(places), int(piece[-1])
    return (0 if inside or (cells + 1) % width else (cells + 1) // width), labels.tolist()


def _zeros_after(places: NDArray[np.int64], text: Bytes, quoted: bool) -> NDArray[np.int64]:
    """Return which of the places are followed by a cell that starts with 0 and another digit, in quotes or not."""
    ahead = np.append(text, np.zeros(3, dtype=np.uint8))
    zeros = (ahead[:-1] == ord("0")) & (ahead[1:] - ord("0") < 10)
    found = zeros[places + 1]
    if quoted:
        found |= (ahead[places + 1] == _QUOTE) & zeros[places + 2]
    return np.flatnonzero(found)


def irregular_frames(file: IO[bytes], layout: Layout) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
    """Yield the cells of odd rows as text, as the csv module reads them, and their lines, block by block."""
    import polars as pl

    reader = csv.reader(_lines(file), delimiter=layout.separator)
    numbered = _checked_rows(reader, layout)
    while block := list(islice(numbered, _BLOCK_ROWS)):
        columns = zip(*(row for row, _ in block), strict=True)
        frame = pl.DataFrame([pl.Series(str(i), cells, dtype=pl.String) for i, cells in enumerate(columns)])
        yield frame, np.array([line for _, line in block])


def _checked_rows(reader: Any, layout: Layout) -> Iterator[tuple[list[str], int]]:
    """Yield rows that are not blank with the line on which each starts."""
    width, line = len(layout.names), layout.first_line
    try:
        for row in reader:
            if row and len(row) != width:
                more = "" if width > 1 else "; if the first lines are no part of the table, skip_lines leaves them out"
                raise InputError(
                    f"{layout.origin} line {line} must have {width} cells like line {layout.first_line - 1 or 1}, "
                    f"separated by {layout.separator!r}, got {len(row)}{more}"
                )
            if row:
                yield row, line
            line = layout.first_line + reader.line_num
    except csv.Error as error:
        raise InputError(f"{layout.origin} line {line} cannot be read: {error}") from None
