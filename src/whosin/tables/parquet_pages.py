"""Damage in a Parquet file that polars does not survive, found before polars reads it.

A page header that states an absurd number of values, a negative one for instance, makes polars ask for memory that no
machine has, and that ends the process, not only the call. So the headers of all pages are held against the footer.

The layout is that of the format's specification (apache/parquet-format, ``parquet.thrift`` and the compact protocol of
Thrift). This finds damage. It is no wall against whoever makes a file on purpose: for such files take a process of its
own, as the page does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

from whosin.errors import InputError

_MAGIC = b"PAR1"
_TAIL = 8
_DEEPEST = 16
_WINDOWS = (2**9, 2**16, 2**31)
"""Bytes in which a page header is looked for, one after the other: statistics make some long."""
_MOST = 2**31 - 1
_DATA, _INDEX, _DICTIONARY, _DATA_2 = range(4)
_OWN_FIELD = {_DATA: 5, _INDEX: 6, _DICTIONARY: 7, _DATA_2: 8}
"""The field of a page header that is for this kind of page."""

Struct = dict[int, Any]


class _Damage(Exception):
    """What is wrong, in words."""


def check_parquet(file: BinaryIO, name: str) -> None:
    """Raise InputError if the headers of the pages contradict the footer, or lie outside the file.

    Parameters
    ----------
    file : binary file
        Open for reading and seeking.
    name : str
        What errors call it.

    Notes
    -----
    O(pages + columns · row groups) time, whatever the number of rows: the values of the pages are not looked at.
    """
    try:
        body, footer = _footer(file)
        for group in footer[4]:
            for column in group[1]:
                _check_column(file, column[3], body)
    except (_Damage, IndexError, KeyError, TypeError) as error:
        what = str(error) if isinstance(error, _Damage) else "its footer or a page header is no such thing"
        raise InputError(f"{name} must be Parquet, got something else or part of it: {what}") from None


def _footer(file: BinaryIO) -> tuple[int, Struct]:
    """Return where the footer begins, and what it says."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    if len(tail) < _TAIL or tail[4:] != _MAGIC:
        raise _Damage("it does not end as a Parquet file does")
    start = size - _TAIL - int(struct.unpack("<I", tail[:4])[0])
    if start < len(_MAGIC):
        raise _Damage("its footer is larger than the file")
    file.seek(start)
    return start, _Compact(file.read(size - _TAIL - start)).struct()


def _check_column(file: BinaryIO, column: Struct, body: int) -> None:
    """Check the pages of a column in a row group, up to the last of the values that the footer states."""
    left = _within(column[5], 2**63 - 1, "number of values of a column")
    most_bytes = _within(column[6], 2**63 - 1, "size of a column")
    at = _within(column[11 if 11 in column else 9], body, "place of a column")
    end = at + _within(column[7], body - at, "size of a column")
    while left > 0:
        header, at = _page_header(file, at, end)
        _within(header[2], min(most_bytes, _MOST), "size of a page")
        stored = _within(header[3], end - at, "size of a page")
        at += stored
        left -= _within(_values(header, stored), left, "number of values of a page")


def _values(header: Struct, stored: int) -> int:
    """Return how many values of the column a page states."""
    kind = header[1]
    if kind not in _OWN_FIELD:
        raise _Damage(f"there is no page of kind {kind}")
    page: Struct = header[_OWN_FIELD[kind]]
    if not isinstance(page, dict):
        raise TypeError
    if kind == _INDEX:
        return 0
    values = _within(page[1], _MOST, "number of values of a page")
    if kind == _DICTIONARY:
        _within(values, header[2], "number of entries of a dictionary")
        return 0
    if kind == _DATA_2:
        for field in (2, 3):
            _within(page[field], values, "number of rows or gaps of a page")
        _within(page[6], stored - _within(page[5], stored, "size of levels"), "size of levels")
    return values


def _page_header(file: BinaryIO, at: int, end: int) -> tuple[Struct, int]:
    """Return the header of the page at this place, and where it ends."""
    for window in _WINDOWS:
        file.seek(at)
        reader = _Compact(file.read(min(window, end - at)))
        try:
            header = reader.struct()
        except IndexError:
            if window < end - at:
                continue
            raise _Damage("the pages of a column hold fewer values than the footer states") from None
        return header, at + reader.at
    raise _Damage("a page header does not end")


def _within(number: int, most: int, what: str) -> int:
    if type(number) is not int:
        raise TypeError
    if not 0 <= number <= most:
        raise _Damage(f"the {what} is stated as {number}, and can be at most {most}")
    return number


class _Compact:
    """Structs in Thrift's compact protocol, as dictionaries from a field's number to its value."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> Struct:
        if depth > _DEEPEST:
            raise _Damage("its structs are nested too deeply")
        found: Struct = {}
        field = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self._signed()
            if field in found:
                raise _Damage("a field stands twice in one struct")
            found[field] = kind == 1 if kind <= 2 else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            return list(self._entries(depth))
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (1, 2, 3):
            return self._byte()
        if kind == 7:
            return self._bytes(8)
        raise _Damage(f"there is no field of type {kind}")

    def _entries(self, depth: int) -> Iterator[Any]:
        head = self._byte()
        count = head >> 4
        for _ in range(self._unsigned() if count == 15 else count):
            yield self._value(head & 15, depth + 1)

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise IndexError
        self.at += count
        return self.data[self.at - count : self.at]

    def _unsigned(self) -> int:
        number = shift = 0
        while shift < 70:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise _Damage("a number does not end")

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)
