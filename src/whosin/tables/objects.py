"""Lists of Python objects as polars series: what they have in common decides."""

from __future__ import annotations

import datetime as dt
import json
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.errors import InputError
from whosin.tables.columns import EXACT

if TYPE_CHECKING:
    import polars as pl

_NUMBERS = (numbers.Real, Decimal)
_TRUTH = (bool, np.bool_)
_DATES = (dt.date, np.datetime64)
_NESTED = (list, tuple, dict, set, frozenset, np.ndarray, bytes)


def series_from_objects(values: Sequence[Any], place: str) -> pl.Series:
    """Return objects as a series of truth values, numbers, dates or text.

    None, NaN, NaT and NA are missing. Objects that share none of the first three kinds become text by ``str``, and so
    do whole numbers beyond 2⁵³, which 64-bit floats do not tell apart; lists and objects as JSON has them. O(n).
    """
    import polars as pl

    if set(map(type, values)) <= {str, type(None)}:
        return _text(values, place)
    known = [_nested_text(v) if isinstance(v, _NESTED) else None if is_missing(v) else v for v in values]
    types = set(map(type, known)) - {type(None)}
    if _all(types, _TRUTH):
        return pl.Series([None if v is None else bool(v) for v in known], dtype=pl.Boolean)
    if _all(types, _NUMBERS) and not any(issubclass(t, _TRUTH) for t in types) and not any(map(_inexact, known)):
        return pl.Series([None if v is None else float(v) for v in known], dtype=pl.Float64)
    if _all(types, _DATES):
        dates = _dates(known)
        if dates is not None:
            return dates
    try:
        return _text([None if value is None else str(value) for value in known], place)
    except ValueError:
        raise InputError(f"{place} must hold numbers that can be written, got one of thousands of digits") from None


def flat_series(series: pl.Series) -> pl.Series:
    """Return lists, objects and bytes as text, all else as it is."""
    import polars as pl

    if series.dtype != pl.Binary and not series.dtype.is_nested():
        return series
    return pl.Series(series.name, [None if v is None else _nested_text(v) for v in series.to_list()], dtype=pl.String)


def _nested_text(value: Any) -> str:
    """Write a list or an object as JSON has it, and bytes as the text that they are in UTF-8, or else in hex."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    plain = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return json.dumps(plain, ensure_ascii=False, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))


def _all(types: set[type], wanted: tuple[Any, ...]) -> bool:
    return all(issubclass(t, wanted) for t in types)


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA from a value."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _inexact(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and abs(int(value)) > EXACT


def _dates(values: Sequence[Any]) -> pl.Series | None:
    """Return dates and times as one series, in UTC if they carry time zones; None if only some do."""
    import polars as pl

    moments = [None if value is None else _moment(value) for value in values]
    zoned = {moment.tzinfo is not None for moment in moments if moment is not None}
    if len(zoned) > 1:
        return None
    zone = "UTC" if zoned == {True} else None
    if zone:
        moments = [None if moment is None else moment.astimezone(dt.UTC) for moment in moments]
    return pl.Series(moments, dtype=pl.Datetime("us", zone))


def _moment(value: Any) -> dt.datetime:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    if isinstance(value, dt.datetime):
        return value
    return dt.datetime(value.year, value.month, value.day)


def _text(values: Sequence[str | None], place: str) -> pl.Series:
    import polars as pl

    try:
        return pl.Series(values, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise InputError(f"{place} must hold text in Unicode, got {error.object!r} with half a character") from None
