"""Reading files: CSV, TSV, Parquet, Arrow, NumPy."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError
from whosin.tables.frames import series_of, table_from_series
from whosin.tables.numeric import numeric_records
from whosin.tables.parquet_pages import check_parquet
from whosin.tables.quiet_polars import without_panics
from whosin.tables.table import Table
from whosin.tables.text import MISSING, series_from_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["check_file", "file_ending", "read_numeric", "read_table"]

Numbers = tuple[NDArray[np.float64], list[str]]

_TEXT = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_ENDINGS = (*_TEXT, ".parquet", ".arrow", ".feather", ".npy", ".npz")


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    missing: Sequence[str] = MISSING,
    header: bool | None = None,
    separator: str | None = None,
) -> Table:
    """Return a file as a :class:`Table`.

    Parameters
    ----------
    path : path
        A file that ends in .csv or .tsv (both also .gz), .parquet, .arrow or .feather (Arrow IPC), .npy, or .npz (one
        array).
    columns : sequence of str, optional
        The columns to keep, in this order; all by default.
    categories : sequence of str
        Columns to take as categories although they look like numbers or dates. In text files they stay as written.
    missing : sequence of str
        Cells of text files that are missing, blanks around them aside.
    header : bool, optional
        Whether the first line of a text file has names. By default it has unless all its cells are numbers.
    separator : str, optional
        What separates the cells of a text file: a comma in .csv, a tab in .tsv.

    Notes
    -----
    The whole file decides on the type of a column, so the same bytes always give the same table. O(cells) time; a text
    file is held in memory with its cells.
    """
    file = _as_path(path)
    series = _read(file, missing=missing, raw=categories, header=header, separator=separator)
    table = table_from_series(series, file.name, categories)
    return table if columns is None else table.select(columns)


def read_numeric(path: str | Path, columns: Sequence[str] | None = None, *, at_least: int = 2) -> Numbers:
    """Return the numeric columns of a file as a matrix, and their names.

    Parameters
    ----------
    path : path
        Any file that :func:`read_table` takes.
    columns : sequence of str, optional
        The columns to take; all of them by default, and then every one must be numeric.
    """
    path = _as_path(path)
    series = _read(path, missing=("",))
    names = list(series) if columns is None else list(columns)
    absent = [name for name in names if name not in series]
    if absent:
        raise InputError(f"{path.name} has no column {absent[0]!r}; it has {', '.join(series)}")
    matrix = np.column_stack([_numbers(series[name], name, path) for name in names])
    return numeric_records(matrix, path.name, at_least=at_least), names


def _read(
    path: Path,
    *,
    missing: Sequence[str],
    raw: Sequence[str] = (),
    header: bool | None = None,
    separator: str | None = None,
) -> dict[str, pl.Series]:
    check_file(path)
    ending = file_ending(path)
    if ending in _TEXT:
        data = _unpacked(path) if ending.endswith(".gz") else path.read_bytes()
        separator = _TEXT[ending] if separator is None else separator
        return series_from_text(data, path.name, separator=separator, header=header, missing=missing, raw=raw)
    if ending in (".npy", ".npz"):
        return series_of(_load_array(path), path.name)
    return series_of(_load_frame(path, ending), path.name)


def _as_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path must be the name of a file, got {type(path).__name__}")
    return Path(os.fsdecode(path))


def check_file(path: Path) -> None:
    """Refuse a path where there is no file."""
    try:
        if path.is_file():
            return
        folder = path.is_dir()
    except OSError as error:
        raise InputError(f"no file can have this name: {error.strerror}, got {str(path)[:100]!r}") from None
    raise InputError(f"{str(path)!r} is a folder: name a file in it" if folder else f"no such file: {path}")


def file_ending(path: Path) -> str:
    """Return the ending that says what is in a file."""
    ending = next((e for e in sorted(_ENDINGS, key=len, reverse=True) if path.name.lower().endswith(e)), None)
    if ending is None:
        raise InputError(f"a file must be one of the endings {', '.join(_ENDINGS)}, got {path.name!r}")
    return ending


def _unpacked(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path.name} must be gzip, got something else or part of it: {error}") from None


def _load_frame(path: Path, ending: str) -> pl.DataFrame:
    import polars as pl

    data = path.read_bytes()
    if ending == ".parquet":
        check_parquet(io.BytesIO(data), path.name)
    readers = (pl.read_parquet,) if ending == ".parquet" else (pl.read_ipc, pl.read_ipc_stream)
    reason: BaseException | None = None
    for reader in readers:
        try:
            with without_panics(ending):
                return reader(io.BytesIO(data))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = error
    words = "Parquet" if ending == ".parquet" else "Arrow IPC"
    raise InputError(f"{path.name} must be {words}, got something else or part of it: {reason}")


def _load_array(path: Path) -> NDArray[np.generic]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = [loaded] if isinstance(loaded, np.ndarray) else [loaded[name] for name in loaded.files]
    except MemoryError as error:
        message = f"{path.name} must be an array that fits into memory, got a header that states more: {error}"
        raise InputError(message) from None
    except Exception:  # what NumPy, zipfile and zlib raise for damaged files has no common kind
        message = f"{path.name} must be a plain NumPy array, got something else (objects are not loaded)"
        raise InputError(message) from None
    if len(arrays) != 1:
        raise InputError(f"{path.name} must hold one array, got {len(arrays)}")
    return arrays[0]


def _numbers(series: pl.Series, name: str, path: Path) -> NDArray[np.float64]:
    import polars as pl

    place = f"{path.name} must hold numbers in column {name!r}"
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        numbers = series.cast(pl.Float64)
    else:
        numbers = series.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    wrong = np.flatnonzero(numbers.is_null().to_numpy())
    if wrong.size:
        cell = series[int(wrong[0])]
        raise InputError(f"{place}, got {('' if cell is None else cell)!r} in record {wrong[0]}; choose other columns")
    return numbers.to_numpy()
