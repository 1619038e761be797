"""JSON: one object per line, each a row, or one list of such objects."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, short_repr
from whosin.tables.dialect import decoded
from whosin.tables.frames import series_of

if TYPE_CHECKING:
    import polars as pl

WAY_OUT = "write one object per row, as to_json(orient='records') of pandas does"


def frame_from_lines(data: bytes, origin: str) -> tuple[pl.DataFrame, NDArray[np.int64] | None]:
    """Return the fields of all objects as columns, missing where one lacks it, and the line of each row.

    In a list of objects rows have no lines of their own. polars reads lines that are all of one kind; the rest is read
    object by object, which also finds the one that is wrong. Numbers and text in one field become text. O(bytes).
    """
    import polars as pl

    data, _ = decoded(data, origin, None)
    if data.lstrip()[:1] == b"[":
        return _frame(_listed(data, origin), origin), None
    data_lines = data.split(b"\n")
    lines = np.flatnonzero([bool(line.strip()) for line in data_lines]) + 1
    if not len(lines):
        raise InputError(f"{origin} is empty")
    try:
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        frame = None
    if frame is None or frame.height != len(lines) or any(dtype.is_nested() for dtype in frame.dtypes):
        rows = [_parsed(data_lines[line - 1], f"{origin} line {line}") for line in lines]
        return _frame(rows, origin), lines
    return frame.select(_names(data_lines, frame.width)), lines


def _names(lines: Sequence[bytes], many: int) -> list[str]:
    """Return the fields in the order in which they first occur, which polars keeps for few fields only."""
    names: dict[str, None] = {}
    for line in lines:
        if len(names) == many:
            break
        names |= dict.fromkeys(json.loads(line) if line.strip() else ())
    return list(names)


def _frame(rows: Sequence[dict[str, Any]], origin: str) -> pl.DataFrame:
    import polars as pl

    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame(series_of({name: [row.get(name) for row in rows] for name in names}, origin))


def _listed(data: bytes, origin: str) -> list[dict[str, Any]]:
    """Return the rows of a list of objects."""
    try:
        rows = json.loads(data)
    except ValueError as error:
        raise InputError(f"{origin} must be JSON, a list of objects or one object per line: {error}") from None
    if not rows:
        raise InputError(f"{origin} is empty")
    return [_checked(row, f"{origin} row {number}") for number, row in enumerate(rows)]


def _parsed(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place} must be JSON, got {short_repr(line.decode('utf-8', 'replace'))}: {error}") from None
    return _checked(row, place)


def _checked(row: Any, place: str) -> dict[str, Any]:
    """Refuse what is no object with single values."""
    if not isinstance(row, dict):
        raise InputError(f'{place} must be an object such as {{"age": 31}}, got {short_repr(row)}')
    for name, cell in row.items():
        if isinstance(cell, list | dict):
            raise InputError(f"{place} column {name!r} must be a single value, got {short_repr(cell)}; {WAY_OUT}")
    return row
