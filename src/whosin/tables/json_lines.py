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
    object by object, which also finds the one that is wrong. Numbers and text in one field become text, and so do
    lists; fields of objects within objects are columns, "home.town". O(bytes).
    """
    import polars as pl

    data, _ = decoded(data, origin, None)
    if data.lstrip()[:1] == b"[" and (listed := _listed(data, origin)) is not None:
        return _frame(listed, origin), None
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
        whole = _whole_table(rows[0]) if len(rows) == 1 and isinstance(rows[0], dict) else None
        return (_frame(rows, origin, lines), lines) if whole is None else (_frame(whole, origin), None)
    return frame.select(_names(data_lines, frame.width)), lines


def _names(lines: Sequence[bytes], many: int) -> list[str]:
    """Return the fields in the order in which they first occur, which polars keeps for few fields only."""
    names: dict[str, None] = {}
    for line in lines:
        if len(names) == many:
            break
        names |= dict.fromkeys(json.loads(line) if line.strip() else ())
    return list(names)


def _frame(rows: Sequence[Any], origin: str, lines: NDArray[np.int64] | None = None) -> pl.DataFrame:
    import polars as pl

    places = [f"{origin} row {i}" if lines is None else f"{origin} line {lines[i]}" for i in range(len(rows))]
    found = [_fields(row, place, alone=len(rows) == 1) for row, place in zip(rows, places, strict=True)]
    names = dict.fromkeys(name for row in found for name in row)
    return pl.DataFrame(series_of({name: [row.get(name) for row in found] for name in names}, origin))


def _whole_table(found: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of one object that is a table, as to_json() of pandas writes it; None if it is none.

    Either one of its fields is the list of rows, or all are columns: lists of one length, or objects of the same keys.
    """
    parts = list(found.values())
    listed = [part for part in parts if isinstance(part, list) and part and all(isinstance(row, dict) for row in part)]
    if len(listed) == 1:
        return listed[0]
    if not all(isinstance(part, dict | list) for part in parts):
        return None
    sides = [[*part] if isinstance(part, dict) else [*range(len(part))] for part in parts]
    cells = [[*part.values()] if isinstance(part, dict) else part for part in parts]
    if any(side != sides[0] for side in sides) or any(isinstance(cell, dict | list) for part in cells for cell in part):
        return None
    if isinstance(parts[0], dict) and all(map(str.isdigit, found)) and not all(map(str.isdigit, sides[0])):
        return parts  # by row, and numbered
    return [dict(zip(found, row, strict=True)) for row in zip(*cells, strict=True)]


def _listed(data: bytes, origin: str) -> list[Any] | None:
    """Return the list that a file is; None if it is one list after the other."""
    try:
        rows = json.loads(data)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return None
        raise InputError(f"{origin} must be JSON, a list of objects or one object per line: {error}") from None
    if not rows:
        raise InputError(f"{origin} is empty")
    return list(rows)


def _parsed(line: bytes, place: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        got = short_repr(line.decode("utf-8", "replace"))
        raise InputError(f"{place} must be JSON, got {got}: {error}; {WAY_OUT}") from None


def _fields(row: Any, place: str, *, alone: bool) -> dict[str, Any]:
    """Return the fields of an object, those of objects in it as "outer.inner".

    Refuse what is no object, and one that is ``alone`` in its file and holds lists or objects: it is no row.
    """
    if not isinstance(row, dict):
        raise InputError(f'{place} must be an object such as {{"age": 31}}, got {short_repr(row)}')
    found: dict[str, Any] = {}
    for name, cell in row.items():
        if alone and isinstance(cell, list | dict):
            raise InputError(f"{place} column {name!r} must be a single value, got {short_repr(cell)}; {WAY_OUT}")
        if isinstance(cell, dict) and cell:
            found |= {f"{name}.{inner}": part for inner, part in _fields(cell, place, alone=False).items()}
        else:
            found[name] = cell
    return found
