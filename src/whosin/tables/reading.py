"""Reading files: CSV, NumPy, Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, MissingExtraError
from whosin.tables.numeric import numeric_records

__all__ = ["read_numeric"]

Numbers = tuple[NDArray[np.float64], list[str]]


def read_numeric(path: str | Path, columns: Sequence[str] | None = None, *, at_least: int = 2) -> Numbers:
    """Return the numeric columns of a file as a matrix, and their names.

    Parameters
    ----------
    path : path
        A .csv (with or without a header), .npy, .npz (one array) or .parquet file.
    columns : sequence of str, optional
        The columns to take; all of them by default, and then every one must be numeric.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    readers = {".csv": _read_csv, ".npy": _read_numpy, ".npz": _read_numpy, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise InputError(f"a file takes one of the endings {', '.join(readers)}, got {path.name!r}")
    values, names = readers[path.suffix.lower()](path)
    if columns is not None:
        missing = [name for name in columns if name not in names]
        if missing:
            raise InputError(f"{path.name} has no column {missing[0]!r}; it has {', '.join(names)}")
        order = [names.index(name) for name in columns]
        values, names = [values[i] for i in order], list(columns)
    matrix = np.column_stack([_numbers(column, name, path) for column, name in zip(values, names, strict=True)])
    return numeric_records(matrix, path.name, at_least=at_least), names


def _read_csv(path: Path) -> tuple[list[Any], list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise InputError(f"{path.name} is empty")
    header = not all(_is_number(cell) for cell in rows[0])
    names = [cell.strip() for cell in rows[0]] if header else [f"column {i}" for i in range(len(rows[0]))]
    body = rows[1:] if header else rows
    for number, row in enumerate(body, start=2 if header else 1):
        if len(row) != len(names):
            raise InputError(f"{path.name} line {number} takes {len(names)} cells, got {len(row)}")
    return [list(column) for column in zip(*body, strict=True)] or [[] for _ in names], names


def _read_numpy(path: Path) -> tuple[list[Any], list[str]]:
    try:
        loaded = np.load(path, allow_pickle=False)
    except ValueError:
        raise InputError(f"{path.name} takes a plain NumPy array, got something else") from None
    if not isinstance(loaded, np.ndarray):
        if len(loaded.files) != 1:
            raise InputError(f"{path.name} takes one array, got {len(loaded.files)}")
        loaded = loaded[loaded.files[0]]
    matrix = loaded[:, None] if loaded.ndim == 1 else loaded
    if matrix.ndim != 2:
        raise InputError(f"{path.name} takes a vector or a matrix, got {loaded.ndim} dimensions")
    return list(matrix.T), [f"column {i}" for i in range(matrix.shape[1])]


def _read_parquet(path: Path) -> tuple[list[Any], list[str]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("Parquet files take pyarrow: pip install 'whosin[parquet]'") from None
    table = parquet.read_table(path)
    return [column.to_numpy() for column in table.columns], list(table.column_names)


def _numbers(column: Any, name: str, path: Path) -> NDArray[np.float64]:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        wrong = next((i, cell) for i, cell in enumerate(column) if not _is_number(cell))
        raise InputError(
            f"{path.name} takes numbers in column {name!r}, got {wrong[1]!r} in record {wrong[0]}; choose other columns"
        ) from None


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
