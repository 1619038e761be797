"""Separated text (CSV, TSV) as polars series.

A file in which every line has the same number of cells is read by polars; any other goes, slowly, through the csv
module, which finds the line that is wrong or the odd quoting that is right. Both see the whole file before a column has
a type.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError
from whosin.tables.cells import Cells, Facts, Forms
from whosin.tables.columns import EXACT, for_each
from whosin.tables.dialect import (
    THOUSANDS,
    WITH_COMMA,
    WITH_POINT,
    WORDS,
    Dialect,
    are_counted,
    column_names,
    decoded,
    first_rows,
    is_number,
    single_blanks,
    whole_names,
)
from whosin.tables.table import check_names

if TYPE_CHECKING:
    import polars as pl

Bytes = NDArray[np.uint8]
Lines = NDArray[np.int64]

_CHUNK = 2**17
"""Bytes that are scanned at a time: they fit into the cache."""
_HEAD = 2**16
"""Bytes that are looked at to recognise how a file is written."""
_FEWEST_LINES = 8
"""Lines that must be in them, so that wide tables are recognised too, within the first megabyte."""
_START = 2**20
"""Bytes in which these lie, behind a title and the names. Files of more are not held in memory where that can be."""
_QUOTE = ord('"')
_NEWLINE = ord("\n")
_RETURN = ord("\r")
_POINT = ord(".")
_BLANK = ord(" ")
_ZERO = ord("0")
_BLOCK_ROWS = 2**17


def _head(data: bytes, start: int) -> tuple[int, int, str, bool]:
    """Return the byte and the line of the first line that is not blank, what follows it, and whether that is all."""
    start += len(data[start:]) - len(data[start:].lstrip(b"\n"))
    size = _HEAD
    while size < min(_START // 2, len(data) - start) and data.count(b"\n", start, start + size) < _FEWEST_LINES:
        size *= 2
    head = data[start : start + size].decode("utf-8", "ignore")
    return start, data.count(b"\n", 0, start) + 1, head, len(data) - start <= size


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
    decimal: str = field(default=".", repr=False)
    """The decimal sign of these."""
    commas: tuple[bool, ...] = field(default=(), repr=False)
    """For each column whether the first rows have a comma in it."""
    words: tuple[str, ...] = field(default=(), repr=False)
    """Words for missing cells, if there are some among these numbers."""
    unnamed: tuple[str, ...] = field(default=(), repr=False)
    """Columns whose name is empty: they are left out if all their cells are."""

    @classmethod
    def of(cls, data: bytes, origin: str, dialect: Dialect, ending: str) -> Layout:
        """Recognise the layout by the bytes of a file, in UTF-8, or by the first megabyte of them."""
        if not data or data.isspace():
            raise InputError(f"{origin} is empty")
        start = 0
        for _ in range(dialect.skip_lines):
            start = data.find(b"\n", start) + 1 or len(data)
        start, line, head, whole = _head(data, start)
        unnamed: tuple[str, ...] = ()
        asked, stated = dialect, re.match(r'"?sep=([^"\n])"?\n', head)  # for Excel
        if stated and dialect.separator in (None, stated[1]):
            dialect = replace(dialect, separator=stated[1])
        titles = 1 if stated else 0 if dialect.skip_lines else dialect.titles(head, whole, ending)
        if titles:
            below = len("\n".join(head.split("\n", titles)[:titles]).encode()) + 1
            start, line, head, whole = _head(data, start + below)
        found = dialect.recognised(head, whole, ending)
        rows = first_rows(head, whole, str(found.separator))
        remarks = _remarks(asked, found, ending)
        if titles:
            remarks.insert(0, f"lines before line {line} were left out: they are no part of the table")
        if not rows:
            raise InputError(f"{origin} line {line} must have names or numbers, got a line that cannot be read")
        late = next((cell for row in rows for cell in row if re.fullmatch(' +"[^"]*', cell)), None)
        if late is not None:
            above = head.count("\n", 0, head.find(late))
            raise InputError(
                f"{origin} line {line + above} must have quotes right behind the separator, got a blank before one; "
                "take it away"
            )
        if not found.header:
            names, end, line_end = column_names([""] * len(rows[0]))[0], start, line
        else:
            given = whole_names(rows)
            if given[0] == "" and len(given) > len(rows[0]):
                remarks.append("its first line has a name less than rows have cells: the first column has none")
            if asked.header is None and are_counted(given):
                remarks.append("its first line counts the columns, and was taken as names")
            names, repeated = column_names(given)
            unnamed = tuple(name for name, cell in zip(names, given, strict=True) if not cell.strip())
            rows.pop(0)
            remarks += repeated
            end, line_end = _after_names(data, start, line, str(found.separator))
        check_names(names, origin)
        if len(names) > 1 and all(re.fullmatch("'.*'", name, re.DOTALL) for name in names):
            raise InputError(
                f"{origin} line {line_end - 1} must have names in double quotes or in none, got single ones, "
                f"{names[0]}; write the file so"
            )
        if asked.separator is None and (mark := _in_whole_lines([names, *rows])) is not None:
            raise InputError(
                f"{origin} line {line_end - 1} must have each cell in quotes of its own or in none, got whole lines in "
                f"quotes, with {mark!r} between cells; take the quotes away, or name another separator if this is one "
                "column"
            )
        columns = list(zip(*(row for row in rows if len(row) == len(names)), strict=True)) or [()] * len(names)
        numeric = _numbers_in(columns, found)
        found = replace(found, commas=found.separator != "," or numeric[1] == ",")
        return cls(origin, found, tuple(names), end, line_end, tuple(remarks), *numeric, unnamed)

    @property
    def separator(self) -> str:
        """What separates cells."""
        return str(self.dialect.separator)

    def without_numbers(self, names: Sequence[str]) -> Layout:
        """Read some columns as text, whatever they hold."""
        numeric = (number and name not in names for number, name in zip(self.numeric, self.names, strict=True))
        return replace(self, numeric=tuple(numeric))

    def forms(self, facts: Mapping[str, Facts], raw: Sequence[str]) -> Forms:
        """Choose the form of every column that has a name or a cell."""
        kept = {name: fact for name, fact in facts.items() if name not in self.unnamed or fact.known or fact.words}
        return Forms.of(kept or facts, self.dialect, raw)

    def facts(self, name: str, column: Cells) -> Facts:
        """Say what a column, or a piece of it, can be read as; numbers were read with the decimal sign."""
        commas = False
        if self.decimal == "," and not column.text:
            commas = self.commas[self.names.index(name)] or bool((column.cells.floor() != column.cells).any())
        return Facts.of(column, self.dialect, commas=commas)


_Found = tuple[Layout, Mapping[str, Cells], Lines]
"""How a file is written, its columns, and the line on which each row starts."""


def series_from_text(
    source: Path | bytes, origin: str, dialect: Dialect, ending: str = ".csv", raw: Sequence[str] = ()
) -> tuple[dict[str, pl.Series], list[str], Lines]:
    """Return the columns of separated text, remarks on how they were read, and the line of each row.

    Parameters
    ----------
    source : path or bytes
        A file that is not packed, or what is in one. Blank lines do not count.
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
    found = _read_in_place(source, origin, dialect, ending, raw) if isinstance(source, Path) else None
    if found is None:
        found = _read_in_memory(
            source.read_bytes() if isinstance(source, Path) else source, origin, dialect, ending, raw
        )
    layout, cells, lines = found
    rows = len(lines)
    facts = for_each(lambda name: layout.facts(name, cells[name]), layout.names, rows)
    forms = layout.forms(dict(zip(layout.names, facts, strict=True)), raw)

    def where(name: str, row: int) -> str:
        return f"{origin} line {lines[row]} column {name!r}"

    read = for_each(lambda name: forms.read(name, cells[name], where), list(forms.chosen), rows)
    return dict(zip(forms.chosen, read, strict=True)), [*layout.remarks, *forms.remarks], lines


def _read_in_place(path: Path, origin: str, dialect: Dialect, ending: str, raw: Sequence[str]) -> _Found | None:
    """Let polars read a large file where it lies; None if it is not plain ASCII, its lines are odd, or it is small."""
    with path.open("rb") as file:
        head = file.read(_START)
    plain = head.isascii() and not re.search(rb"[\r\0]", head) and not head[:_HEAD].isspace()
    if len(head) < _START or not plain or dialect.skip_lines or dialect.encoding is not None:
        return None
    layout = Layout.of(head, origin, dialect, ending).without_numbers(raw)
    return None if layout.separator == " " else Piece(path, layout.start, layout.first_line).found(layout)


def _read_in_memory(data: bytes, origin: str, dialect: Dialect, ending: str, raw: Sequence[str]) -> _Found:
    import polars as pl

    data, remark = decoded(data, origin, dialect.encoding)
    layout = Layout.of(data, origin, dialect, ending)
    if layout.separator == " ":
        data = single_blanks(data)
        layout = replace(Layout.of(data, origin, layout.dialect, ending), remarks=layout.remarks)
    layout = layout.without_numbers(raw)
    if remark is not None:
        layout = replace(layout, remarks=(remark, *layout.remarks))
    if len(data) == layout.start or data[layout.start : layout.start + 2 * _HEAD].isspace():
        raise InputError(f"{origin} has names but no rows")
    found = Piece(data, layout.start, layout.first_line).found(layout)
    if found is not None:
        return found
    parts = list(irregular_frames(io.BytesIO(data[layout.start :]), layout, layout.first_line))
    frame = pl.concat([part for part, _ in parts])
    cells = {name: Cells.of(frame.to_series(i), layout.dialect) for i, name in enumerate(layout.names)}
    return layout, cells, np.concatenate([part for _, part in parts])


def _remarks(asked: Dialect, found: Dialect, ending: str) -> list[str]:
    """Say what was recognised, where a reader may want to know."""
    said = []
    if asked.separator is None and found.separator != ("\t" if ending == ".tsv" else ","):
        shown = {"\t": "tabs", " ": "blanks"}.get(str(found.separator), repr(found.separator))
        said.append(f"its cells are separated by {shown}")
    if asked.header is None and not found.header:
        said.append("its first line was taken as a row, not as names")
    return said


def _in_whole_lines(rows: Sequence[Sequence[str]]) -> str | None:
    """Return what separates cells within the only cell of every row, if there is such a thing."""
    if len(rows) < 2 or any(len(row) != 1 for row in rows):
        return None
    marks = (mark for mark in ",;\t|" if mark in rows[0][0])
    return next((mark for mark in marks if len({row[0].count(mark) for row in rows}) == 1), None)


def _after_names(data: bytes, start: int, line: int, separator: str) -> tuple[int, int]:
    """Return the byte and the line after the row of names."""
    reader = csv.reader(_lines(io.BytesIO(data[start : start + _START])), delimiter=separator)
    next(reader)
    for _ in range(reader.line_num):
        start = data.find(b"\n", start) + 1 or len(data)
    return start, line + reader.line_num


def _numbers_in(
    columns: Sequence[Sequence[str]], dialect: Dialect
) -> tuple[tuple[bool, ...], str, tuple[bool, ...], tuple[str, ...]]:
    """Return what the first rows say, for the last fields of a layout."""
    known = [[cell for cell in cells if cell not in dialect.gaps] for cells in columns]
    decimal = _decimal(dialect, known)
    numeric = [_are_numbers(cells, decimal) for cells in known]
    if decimal == dialect.separator or any(is_number(word) and float(word) == float(word) for word in dialect.gaps):
        numeric = [False] * len(columns)  # polars takes no commas for both, and a number for a gap has to be seen
    some = any(number and set(cells) & set(dialect.gaps) - {""} for number, cells in zip(numeric, columns, strict=True))
    commas = tuple(any("," in cell for cell in cells) for cells in known)
    return tuple(numeric), decimal, commas, tuple(dialect.gaps) if some else ()


def _are_numbers(known: Sequence[str], decimal: str) -> bool:
    reads = is_number if decimal == "." else re.compile(WITH_COMMA).match
    return bool(known) and all(map(reads, known))


def _decimal(dialect: Dialect, known: Sequence[Sequence[str]]) -> str:
    """Return the decimal sign by the first rows: a comma where it makes numbers and cannot stand for thousands.

    Where commas separate cells too, there must be no numbers with points: these may be decimal signs, and commas divide
    answers such as "1,2".
    """
    if dialect.decimal is not None:
        return dialect.decimal
    if dialect.missing is None:
        known = [[cell for cell in cells if cell not in WORDS] for cells in known]
    with_point = re.compile(WITH_POINT).match
    if dialect.separator == "," and any(all(map(with_point, cells)) and "." in "".join(cells) for cells in known):
        return "."
    marked = (cell for cells in known if _are_numbers(cells, ",") for cell in cells if "," in cell)
    return "," if any(not re.match(THOUSANDS, cell) for cell in marked) else "."


def _lines(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, encoding="utf-8", newline="", errors="ignore")


@dataclass(frozen=True)
class Piece:
    """Whole lines of a text file without its names, in UTF-8."""

    source: Path | bytes
    """The file if it is plain ASCII, as far as its start tells, or the bytes."""
    start: int
    """The byte at which they start."""
    first_line: int
    """The line of the file on which they start."""

    def found(self, layout: Layout) -> _Found | None:
        """Return the columns and the line on which each row starts, with the layout; None if lines are odd."""
        found = self._scanned_columns(layout)
        return None if found is None else (layout, found[0], found[1].rows_start(found[0], self.first_line))

    def _scanned_columns(self, layout: Layout) -> tuple[dict[str, Cells], _Scan] | None:
        """Return the cells of lines that are not odd, numbers as such where the first rows have some and all are.

        Odd are lines that are blank or have another number of cells, quotes within cells, and numbers of which the text
        has to be seen: zeros in front, whole numbers beyond 2⁵³. polars itself refuses a line with too many cells and
        fills one with too few, so all lines are whole if the separators of the file and those within cells add up.
        O(bytes), one pass beside that of polars.
        """
        ways = [layout.numeric] if any(layout.numeric) else []
        with ThreadPoolExecutor(1) as pool:
            scanned = pool.submit(_Scan.of, self, layout)
            for way in (*ways, (False,) * len(layout.names)):
                columns = self._columns(layout, way)
                if columns is not None and scanned.result().is_borne_out_by(columns, layout):
                    return columns, scanned.result()
        return None

    def _columns(self, layout: Layout, numbers: Sequence[bool]) -> dict[str, Cells] | None:
        frame = self._parsed(layout, numbers)
        if frame is None:
            return None
        made = for_each(lambda series: Cells.of(series, layout.dialect), frame.get_columns(), frame.height)
        return dict(zip(layout.names, made, strict=True))

    def _parsed(self, layout: Layout, numbers: Sequence[bool]) -> pl.DataFrame | None:
        import polars as pl

        schema = {str(i): pl.Float64 if number else pl.String for i, number in enumerate(numbers)}
        try:
            return pl.read_csv(
                self.source,
                has_header=False,
                skip_lines=self.first_line - 1 if self.start else 0,
                schema=schema,
                separator=layout.separator,
                null_values=list(layout.words) if any(numbers) and layout.words else None,
                decimal_comma=layout.decimal == "," and any(numbers),
                glob=False,
            )
        except (pl.exceptions.PolarsError, OSError):
            return None

    def chunks(self) -> Iterator[Bytes]:
        """Yield the bytes in parts, each with the two before it in front: a line end, at first, before anything."""
        buffer = memoryview(bytearray(_CHUNK + 2))
        held = np.frombuffer(buffer, dtype=np.uint8)
        held[:2] = 0, _NEWLINE
        with self.source.open("rb", buffering=0) if isinstance(self.source, Path) else io.BytesIO(self.source) as file:
            file.seek(self.start)
            while size := file.readinto(buffer[2:]):
                yield held[: size + 2]
                held[:2] = held[size : size + 2]


@dataclass(frozen=True)
class _Scan:
    """What the bytes of lines say, to be held against the cells that polars made of them."""

    plain: bool
    """Whether polars read them as they are: ASCII with plain line ends, or bytes in memory, which were made so."""
    lines: int
    """Line ends, in quotes or not, with one behind the last line."""
    blank: bool
    """Whether a line has nothing on it."""
    separators: int
    zeros: int
    """Zeros with another digit behind them that follow a separator, a line end, a quote or a blank, or are first."""
    quotes: int
    odd: bool
    """Whether a quote opens within a cell, or never closes."""
    points: int
    """Points, if commas are decimal signs."""

    @classmethod
    def of(cls, piece: Piece, layout: Layout) -> _Scan:
        """Pass over the bytes once."""
        lines = separators = zeros = quotes = points = 0
        plain, blank, odd, last = True, False, False, _NEWLINE
        separator = ord(layout.separator)
        for part in piece.chunks():
            new = part[2:]
            if isinstance(piece.source, Path):
                plain = plain and int(new.max()) < 128 and not (new == _RETURN).any()
            ends, between, quoted = part == _NEWLINE, part == separator, part == _QUOTE
            lines += int(np.count_nonzero(ends[2:]))
            separators += int(np.count_nonzero(between[2:]))
            if len(layout.names) == 1:
                blank = blank or bool((ends[1:-1] & ends[2:]).any())
            if layout.decimal == ",":
                points += int(np.count_nonzero(new == _POINT))
            ends |= between
            ends |= quoted
            if (here := int(np.count_nonzero(quoted[2:]))) > 0:
                opens = np.flatnonzero(quoted[2:])[quotes % 2 :: 2]
                odd = odd or not ends[1:-1][opens].all()
                quotes += here
            ends |= part == _BLANK
            found = part[1:-1] == _ZERO
            found &= new - _ZERO < 10
            found &= ends[:-2]
            zeros += int(np.count_nonzero(found))
            last = int(new[-1])
        return cls(plain, lines + (last != _NEWLINE), blank, separators, zeros, quotes, odd or bool(quotes % 2), points)

    def is_borne_out_by(self, columns: Mapping[str, Cells], layout: Layout) -> bool:
        """Whether cells account for all separators and line ends, and no number among them may be a label."""
        rows, width = len(next(iter(columns.values())).cells), len(columns)
        inner = [within(columns, re.escape(mark)) if self.quotes else 0 for mark in ("\n", layout.separator)]
        if self.odd or self.blank or not self.plain:
            return False
        if self.lines != rows + inner[0] or self.separators != rows * (width - 1) + inner[1]:
            return False
        numbers = [column.cells for column in columns.values() if not column.text]
        if not numbers:
            return True
        tops = [end for cells in numbers for end in (cells.min(), cells.max()) if end is not None]
        if any(abs(float(end)) > EXACT for end in tops):  # type: ignore[arg-type]
            return False
        if self.points and self.points != within(columns, r"\."):  # beside decimal commas they separate thousands
            return False
        pattern = rf'(?:^|[ "\n{re.escape(layout.separator)}])0[0-9]'
        return not self.zeros or self.zeros == within(columns, pattern)

    def rows_start(self, columns: Mapping[str, Cells], first_line: int) -> Lines:
        """Return the line on which each row starts: line ends within cells count."""
        lines = np.arange(first_line, first_line + len(next(iter(columns.values())).cells))
        if self.quotes:
            inner = sum(column.matches("\n") for column in columns.values() if column.text)
            lines[1:] += np.cumsum(np.broadcast_to(inner, lines.shape))[:-1]
        return lines


def within(columns: Mapping[str, Cells], pattern: str) -> int:
    """Count the matches of a pattern in all cells of text."""
    return sum(int(column.matches(pattern).sum()) for column in columns.values() if column.text)


def irregular_frames(file: IO[bytes], layout: Layout, start: int) -> Iterator[tuple[pl.DataFrame, Lines]]:
    """Yield the cells of odd rows from a line on as text, as the csv module reads them, and their lines, in blocks."""
    import polars as pl

    numbered = _checked_rows(_lines(file), layout, start)
    while block := list(islice(numbered, _BLOCK_ROWS)):
        columns = zip(*(row for row, _ in block), strict=True)
        frame = pl.DataFrame([pl.Series(str(i), cells, dtype=pl.String) for i, cells in enumerate(columns)])
        yield frame, np.array([line for _, line in block])


def _checked_rows(file: Iterable[str], layout: Layout, start: int) -> Iterator[tuple[list[str], int]]:
    """Yield rows that are not blank with the line on which each starts."""
    line, read, text, last, first = start, [], "", start, start == layout.first_line

    def lines() -> Iterator[str]:
        for part in file:
            read.append(part)
            yield part

    reader = csv.reader(lines(), delimiter=layout.separator)
    try:
        for row in reader:
            if row and len(row) != len(layout.names):
                raise InputError(_other_cells(row, line, layout, first))
            if row:
                first = False
                yield row, line
            text, last, line = "".join(read), line, start + reader.line_num
            read.clear()
    except csv.Error as error:
        raise InputError(f"{layout.origin} line {line} cannot be read: {error}") from None
    if _opens_a_quote(text, layout.separator):
        raise InputError(
            f"{layout.origin} line {last} must close its quote, got none to the end of the file; "
            "a quote that is part of a cell is written twice, in quotes"
        )


def _other_cells(row: Sequence[str], line: int, layout: Layout, first: bool) -> str:
    """Say what may be wrong with a row of more or fewer cells; the ``first`` may stand below titles."""
    width = len(layout.names)
    if len(row) > width and not any(row[width:]):
        way = "take away the separators at its end"
    elif len(row) > width > 1 and any('"' in cell for cell in row):
        way = "a quote in a cell is written twice, not behind a backslash"
    elif width == 1 or first:
        way = "if the first lines are no part of the table, skip_lines=1 (or more) leaves them out"
    elif len(row) < width:
        way = "a missing cell needs its separator too; remove the line if it is no row of the table"
    else:
        way = "cells with a separator in them stand in double quotes, and a quote in them is written twice"
    return (
        f"{layout.origin} line {line} must have {width} cells like line {layout.first_line - 1 or 1}, "
        f"separated by {layout.separator!r}, got {len(row)}; {way}"
    )


def _opens_a_quote(text: str, separator: str) -> bool:
    """Whether the text of the last row ends within a quote."""
    try:
        list(csv.reader([text], delimiter=separator, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False
