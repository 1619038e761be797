"""How a text file is written: its encoding, what separates its cells, and whether its first line has names.

What the caller does not name is recognised, by fixed rules, from the bytes alone: the same bytes always read the same.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO

from whosin.errors import InputError, check_choice, check_whole

MISSING = ("", "NA", "NaN", "nan", "null")
"""Cells that are missing wherever they stand, blanks around them aside."""
WORDS = (
    "?", "-", "--", "–", "—", ".", "...", "…", "N/A", "n/a", "na", "N.A.", "n.a.", "#N/A", "#N/A N/A", "#NA", "<NA>",
    "NaT", "NAN", "-nan", "-NaN", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "NULL", "Null", "(null)", "[NULL]", r"\N",
    "None", "none", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NV", "0000-00-00",
    "0000-00-00 00:00:00",
)  # fmt: skip
"""Cells that are missing among numbers and dates; among labels they are labels."""
WITH_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+(,\d+)?|\d+(,\d+)?|,\d+)([eE][+-]?\d+)?$"
"""Numbers with decimal commas, in which points separate thousands."""
WITH_POINT = r"^[+-]?([1-9]\d{0,2}(,\d{2})*(,\d{3})+(\.\d+)?|\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
"""Numbers with decimal points, in which commas may separate thousands, in India 12,34,567 too."""
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{2})*(,\d{3})+$"
"""Numbers in which commas may separate thousands."""
_SEPARATORS = ("\t", ";", "|", ",", "^", "~", "\x01")
"""In the order in which they are tried: a comma may also be a decimal sign, the others hardly occur elsewhere."""
_IN_TEXTS = (" ", ":")
"""Separators that texts have too: they are tried last, and must make a column of numbers below a name, or a matrix."""
_BLANK_ENDINGS = (".txt", ".data", ".dat")
"""Endings of files whose cells may be separated by blanks."""
_FEWEST_CELLS = 3
"""Cells that blanks or colons must make in every row."""
_HEAD_ROWS = 200
MOST_TITLES = 10
"""Lines, or rows of a sheet, above a table that may be left out."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_OLD = "cp1252"
_MOST_ZEROS = 0.05
"""Share of bytes that may be zero in text without an encoding of its own."""


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; None stands for what is recognised."""

    separator: str | None = None
    """One character; " " stands for any number of blanks."""
    encoding: str | None = None
    decimal: str | None = None
    """The decimal sign, "." or ","."""
    missing: Sequence[str] | None = None
    """Cells that are missing, in all columns; by default MISSING, and WORDS among numbers and dates."""
    header: bool | None = None
    skip_lines: int = 0
    """Lines at the top that are no part of the table."""
    blanks: bool = False
    """Whether a blank follows every separator, and is no part of the cell."""
    commas: bool = True
    """Whether cells may have decimal commas."""

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and not (
            isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '"\r\n'
        ):
            raise InputError(f"separator must be one plain character, such as ';' or '\\t', got {mark!r}")
        if self.decimal is not None:
            check_choice("decimal", self.decimal, (".", ","))
        if isinstance(self.missing, str):
            raise InputError(f"missing must be a list of words, got the text {self.missing!r}")
        check_whole("skip_lines", self.skip_lines)
        if self.encoding is not None:
            _check_encoding(self.encoding)

    @property
    def gaps(self) -> Sequence[str]:
        """Cells that are missing wherever they stand; a cell with nothing in it always is."""
        return MISSING if self.missing is None else ("", *self.missing)

    def titles(self, head: str, whole: bool, ending: str) -> int:
        """Return how many lines at the top are a title or a remark: they are one cell, and all rows below have several.

        Rows below must have three cells where these are separated by commas, which may also be decimal signs. Lines
        that start with # or stand above a blank one may have separators.
        """
        separator = self.separator or _separator(head, whole, ending)
        if _width(first_rows(head, whole, separator)) > 1:
            return 0
        marks: tuple[str, ...] = _SEPARATORS if self.separator is None else (self.separator,)
        lines = head.split("\n", MOST_TITLES + 1)
        for count in range(1, len(lines)):
            if lines[count - 1][:1] != "#" and lines[count].strip():
                marks = tuple(mark for mark in marks if mark not in lines[count - 1])
            for mark in marks:
                rows = first_rows("\n".join(lines[count:]), whole, mark)
                if len(rows) > 1 and {len(row) for row in rows} == {max(len(rows[0]), 3 if mark == "," else 2)}:
                    return count
        return 0

    def recognised(self, head: str, whole: bool, ending: str) -> Dialect:
        """Return the dialect with separator and header filled in, by the first characters of the file."""
        separator = self.separator or _separator(head, whole, ending)
        rows = first_rows(head, whole, separator)
        after = [cell for row in rows for cell in row[1:]]
        blanks = bool(after) and all(cell.startswith(" ") for cell in after)
        header = has_names(rows) if self.header is None else self.header
        return replace(self, separator=separator, header=header, blanks=blanks)


def decoded(data: bytes, origin: str, encoding: str | None) -> tuple[bytes, str | None]:
    """Return text as UTF-8 with plain line ends, and a remark if its encoding had to be recognised.

    A byte order mark decides; without one it is UTF-8; UTF-16 or UTF-32 if as many of the first bytes are zero; and
    otherwise, as old programs write, Windows-1252 (which has all letters of Latin-1), unless letters in UTF-8 come
    before the first byte that is none: such a file is damaged.
    """
    remark = None
    if encoding is not None:
        data = _decode(data, origin, encoding).encode("utf-8")
    else:
        name = next((name for mark, name in _MARKS if data.startswith(mark)), None) or _unmarked(data, origin)
        if name != "utf-8":
            data = _decode(data, origin, name).encode("utf-8")
        elif not data.isascii():
            data, remark = _as_utf8(data, origin)
    data = data.replace(codecs.BOM_UTF8, b"")  # files that were joined have marks inside
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data, remark


def recognised_encoding(file: IO[bytes], origin: str, encoding: str | None) -> tuple[str, str | None]:
    """Return the encoding of a file by the rules of :func:`decoded`, and a remark, without holding the file.

    A file in UTF-8 is read to its end.
    """
    if encoding is not None:
        return encoding, None
    start, lines, letters = file.read(2**20), 0, False
    for mark, name in _MARKS:
        if start.startswith(mark) and name != "utf-8":
            return name[:-3], None
    if (name := _unmarked(start, origin)) != "utf-8":
        return name, None
    decoder, part = codecs.getincrementaldecoder("utf-8")(), start
    while part:
        if letters or not part.isascii():
            try:
                decoder.decode(part)
            except UnicodeDecodeError as error:
                before, line = error.object[: error.start], lines + part.count(b"\n", 0, error.start) + 1
                if letters or not before.isascii():
                    raise InputError(_not_utf8(origin, error.object[error.start], line)) from None
                return _OLD, _as_old(line)
            letters = True
        lines, part = lines + part.count(b"\n"), file.read(2**24)
    if letters and decoder.getstate()[0]:
        raise InputError(_not_utf8(origin, decoder.getstate()[0][0], lines + 1))
    return "utf-8", None


def _as_old(line: int) -> str:
    return f"its letters were read as {_OLD}, since line {line} is not UTF-8; another encoding can be named"


def _not_utf8(origin: str, byte: int, line: int) -> str:
    return (
        f"{origin} must be UTF-8 to its end, got the byte 0x{byte:02x} on line {line} after letters in UTF-8; "
        "encoding='cp1252' or another names the one it has"
    )


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Read what Windows-1252 leaves undefined as Latin-1 does."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("whosin_latin_1", _as_latin_1)


def _check_encoding(name: str) -> None:
    try:
        "".encode(name)
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"encoding must be one that Python knows, such as utf-8, latin-1, cp1252 or utf-16, got {name!r}"
        ) from None


def _unmarked(data: bytes, origin: str) -> str:
    head = data[:1000]
    if len(head) > 3 and b"\0" in head:
        wide = (("utf-32-le", head[2::4] + head[3::4]), ("utf-32-be", head[::4] + head[1::4]))
        for name, high in (*wide, ("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
            if high.count(0) > 0.9 * len(high):
                return name
        if (zeros := head.count(0)) > _MOST_ZEROS * len(head):
            raise InputError(
                f"{origin} must be text, got {zeros} zero bytes among its first {len(head)}; encoding='utf-16-le' or "
                "another names its encoding if it has one"
            )
    return "utf-8"


def _as_utf8(data: bytes, origin: str) -> tuple[bytes, str | None]:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not data[: error.start].isascii():
            raise InputError(_not_utf8(origin, data[error.start], _line(data, error.start))) from None
        remark = _as_old(_line(data, error.start))
        return codecs.decode(data, _OLD, "whosin_latin_1").encode("utf-8"), remark
    return data, None


def _decode(data: bytes, origin: str, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{origin} must be text in {encoding}, got the byte 0x{data[error.start]:02x} on line "
            f"{_line(data, error.start)}; encoding= must name another"
        ) from None


def _line(data: bytes, place: int) -> int:
    return data.count(b"\n", 0, place) + 1


def first_rows(head: str, whole: bool, separator: str) -> list[list[str]]:
    """Return the first rows, all of which are complete, up to one that cannot be read so."""
    if not whole:
        head = head[: head.rfind("\n") + 1] or head
    if separator == " ":
        head = single_blanks(head.encode()).decode()
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(
            row for row in islice(csv.reader(io.StringIO(head, newline=""), delimiter=separator), _HEAD_ROWS) if row
        )
    return rows


def single_blanks(data: bytes) -> bytes:
    """Return lines whose cells are separated by any number of blanks with one between them."""
    return re.sub(rb"(?m)^ +| +$", b"", re.sub(rb"[ \t]+", b" ", data))


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Return how many cells all rows have, 0 if they differ; the first may be made whole (:func:`whole_names`)."""
    sizes = {len(row) for row in rows[1:]} or {len(row) for row in rows}
    if len(sizes) != 1:
        return 0
    (size,) = sizes
    fits = len(rows[0]) == size or (size > 1 and len(whole_names(rows)) == size)
    return size if fits else 0


def _has_blanks(head: str, whole: bool) -> bool:
    """Whether blanks divide all first rows into equally many cells, or several blanks stand between cells in each."""
    lines = [line for line in head.split("\n")[: None if whole else -1] if line.strip()]
    aligned = all(re.search(r"\S {2,}\S", line) for line in lines[:_HEAD_ROWS])
    return aligned or _width(first_rows(head, whole, " ")) >= _FEWEST_CELLS


def whole_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the first row with as many cells as the others have, if one is missing, or one is too many and empty.

    R leaves out the name of the first column, which numbers rows; other programs end lines with a separator.
    """
    first, others = list(rows[0]), rows[1:]
    if len(first) > 1 and others and all(len(row) == len(first) + 1 for row in others):
        if all(not row[-1].strip() for row in others):
            return [*first, ""]
        title = not any(map(is_number, others[0])) and any(is_number(cell) for row in others for cell in row)
        return first if title else ["", *first]
    if others and not first[-1].strip() and all(len(row) == len(first) - 1 for row in others):
        return first[:-1]
    return first


def _separator(head: str, whole: bool, ending: str) -> str:
    """Return the first separator that divides all first rows into equally many cells, at least two.

    If there is none, the first that is in all of them, so that an error names the line that has other cells.
    """
    rows = {mark: first_rows(head, whole, mark) for mark in _SEPARATORS}
    found = next((mark for mark in _SEPARATORS if _width(rows[mark]) > 1), None)
    if found is None and ending in _BLANK_ENDINGS and _has_blanks(head, whole):
        return " "
    if found is None:
        parts = {mark: first_rows(head, whole, mark) for mark in _IN_TEXTS}
        found = next((mark for mark in _IN_TEXTS if _has_numbers(parts[mark])), None)
        found = found or (" " if _are_matrix(parts[" "]) else None)
    in_all = (mark for mark in "\t;|" if len(rows[mark]) > 1 and min(map(len, rows[mark])) > 1)
    return found or next(in_all, "\t" if ending == ".tsv" else ",")


def _has_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have as many cells as the first, three or more, and one of its names stands above numbers."""
    if not rows or len(rows[0]) < _FEWEST_CELLS or {len(row) for row in rows} != {len(rows[0])}:
        return False
    return any(not is_number(name) and cells and all(map(is_number, cells)) for name, *cells in zip(*rows, strict=True))


def _are_matrix(rows: Sequence[Sequence[str]]) -> bool:
    """Whether blanks make two rows or more of as many numbers, three or more, and do not stand between thousands."""
    if len(rows) < 2 or len(rows[0]) < _FEWEST_CELLS or {len(row) for row in rows} != {len(rows[0])}:
        return False
    thousands = all(re.fullmatch(r"\d{3}([.,]\d+)?", cell) for row in rows for cell in row[1:])
    return not thousands and all(is_number(cell) for row in rows for cell in row)


def has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has names: not if it is all numbers, or some numbers beside labels that rows repeat.

    Numbers are names if they count at least three columns from 0 on.
    """
    if not rows:
        return True
    first, *rest = rows
    numbers = [is_number(cell) for cell in first]
    if all(numbers):
        return bool(rest) and are_counted(first)
    labels = {place: cell for place, cell in enumerate(first) if not numbers[place] and cell.strip()}
    repeated = any(len(row) > place and row[place] == cell for place, cell in labels.items() for row in rest)
    return not (any(numbers) and (repeated or len(set(labels.values())) < len(labels)))


def are_counted(cells: Sequence[str]) -> bool:
    """Whether at least three cells are the numbers from 0 on, as frames name columns that have no names."""
    return len(cells) > 2 and list(cells) == [str(i) for i in range(len(cells))]


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def column_names(cells: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of columns, the second of two equal ones with a number, and remarks.

    Where others have names, one without is called as pandas calls it: mostly it is the index of a frame.
    """
    names: list[str] = []
    remarks = []
    word = "Unnamed:" if any(map(str.strip, cells)) else "column"
    for i, cell in enumerate(cells):
        name = given = unicodedata.normalize("NFC", cell.strip()) or f"{word} {i}"
        number = 0
        while name in names:
            number += 1
            name = f"{given}.{number}"
        if number:
            remarks.append(f"column {i} is called {name!r}, as {given!r} is there already")
        names.append(name)
    return names, remarks
