"""Records as a matrix of numbers, checked row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError


def numeric_records(records: Any, name: str = "records", *, at_least: int = 2) -> Array:
    """Return records as a float matrix, one row per record.

    Takes a list or array of numbers (one column), a matrix, or a data frame of numeric columns (anything with
    ``to_numpy``). Rows with NaN or infinity, text, and fewer than ``at_least`` rows are errors that name the place.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.tables.numeric_records([1, 2, 3]).shape
    (3, 1)
    >>> try:
    ...     wi.tables.numeric_records([[1.0, 2.0], [3.0, float("nan")]])
    ... except wi.errors.InputError as error:
    ...     print(error)
    records must hold finite numbers, got [3.0, nan] in row 1 (1 such rows)
    """
    if isinstance(records, str | Path):
        raise InputTypeError(f"{name} must hold numbers, got the path {str(records)!r}: read_numeric reads files")
    if hasattr(records, "to_numpy") and hasattr(records, "columns"):
        _check_columns(records, name)
        records = records.to_numpy()
    try:
        matrix = np.asarray(records, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name} must hold numbers in rows of one length, got {type(records).__name__}") from None
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise InputError(f"{name} must be a list of numbers or a matrix, got {matrix.ndim} dimensions")
    if matrix.shape[0] < at_least or matrix.shape[1] == 0:
        raise InputError(f"{name} must have at least {at_least} rows and one column, got shape {matrix.shape}")
    bad = ~np.isfinite(matrix).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} must hold finite numbers, got {matrix[row].tolist()} in row {row} ({int(bad.sum())} such rows)"
        )
    return np.ascontiguousarray(matrix)


def _check_columns(frame: Any, name: str) -> None:
    import polars as pl

    for column in frame.columns:
        try:
            values = np.asarray(frame[column].to_numpy() if hasattr(frame[column], "to_numpy") else frame[column])
        except (Exception, pl.exceptions.PanicException):  # a type of the frame that NumPy does not have
            raise InputTypeError(f"{name} must hold numeric columns, got {frame[column].dtype} in {column!r}") from None
        if values.dtype.kind not in "iufb":
            raise InputTypeError(f"{name} must hold numeric columns, got {values.dtype} in column {column!r}")
