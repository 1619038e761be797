"""JSON lines: one object per line, each a row."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, short_repr
from whosin.tables.dialect import decoded
from whosin.tables.frames import series_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["frame_from_lines"]


def frame_from_lines(data: bytes, origin: str) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return the fields of all lines as columns, missing where a line lacks one, and the line of each row.

    polars reads what is all of one kind; the rest is read line by line, which also finds the line that is wrong.
    Numbers and text in one field become text. O(bytes).
    """
    import polars as pl

    data, _ = decoded(data, origin, None)
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
        names = dict.fromkeys(name for row in rows for name in row)
        frame = pl.DataFrame(series_of({name: [row.get(name) for row in rows] for name in names}, origin))
    return frame, lines


def _parsed(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place} must be JSON, got {short_repr(line.decode('utf-8', 'replace'))}: {error}") from None
    if not isinstance(row, dict):
        raise InputError(f'{place} must be an object such as {{"age": 31}}, got {short_repr(row)}')
    for name, cell in row.items():
        if isinstance(cell, list | dict):
            raise InputError(f"{place} column {name!r} must be a single value, got {short_repr(cell)}")
    return row
