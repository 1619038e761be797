"""Reading files: text (CSV, TSV), JSON lines, Excel, Parquet, Arrow, NumPy."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError, check_choice, listed
from whosin.tables.cells import read_texts
from whosin.tables.dialect import Dialect
from whosin.tables.frames import series_of, table_from_series
from whosin.tables.json_lines import frame_from_lines
from whosin.tables.numeric import numeric_records
from whosin.tables.parquet_pages import check_parquet
from whosin.tables.quiet_polars import without_panics
from whosin.tables.table import Places, Table, place_of
from whosin.tables.text import series_from_text
from whosin.tables.workbooks import series_from_sheet

if TYPE_CHECKING:
    import polars as pl

TEXT = (".csv", ".tsv", ".txt", ".data", ".dat")
"""Endings of separated text."""
_LINES = (".jsonl", ".ndjson", ".json")
_EXCEL = (".xlsx", ".xls", ".xlsb", ".ods")
_PACKED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_NO_TEXT = {
    rb"PK\x03\x04": "a workbook or a zip; .xlsx or .zip must be its ending",
    rb"PAR1": "a Parquet file; .parquet must be its ending",
    rb"ARROW1": "an Arrow file; .arrow must be its ending",
    rb"\x1f\x8b": "a gzip; .gz must follow its ending",
    rb"(?i)(\xef\xbb\xbf)?<(!doctype|html|\?xml|table)": "a web page or XML, no table; save the table itself as CSV",
    rb'(\[\s*)?\{\s*"': "JSON; .json or .jsonl must be its ending",
    rb"(?i)(%[^\n]*\n\s*)*@relation": "a file of Weka; save it as CSV there",
    rb"SQLite format 3\0": "a database; save the table as CSV there",
    rb"%PDF-": "a PDF, no table; save the table itself as CSV",
    rb"version https://git-lfs": "a pointer of Git LFS; git lfs pull gets the file itself",
}
"""How files start that text is taken for, and what they are."""
_ENDINGS = (*TEXT, *_LINES, *_EXCEL, ".parquet", ".arrow", ".feather", ".npy", ".npz")


@dataclass(frozen=True)
class _Read:
    """What a file has: its columns, remarks on how it was read, and where its rows stand."""

    series: dict[str, pl.Series]
    remarks: Sequence[str] = ()
    places: Places | None = None


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
    header: bool | None = None,
    skip_lines: int = 0,
    sheet: str | None = None,
) -> Table:
    """Return a file as a :class:`Table`.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .tsv, .txt, .data or .dat, or is plain text (separated text), .jsonl, .ndjson or .json
        (one object per line, or a list of objects), each also packed (.gz, .bz2, .xz, .zip with one file in it); .xlsx,
        .xls, .xlsb or .ods (with the extra "excel"); .parquet, .arrow or .feather (Arrow IPC), .npy, or .npz (one
        array).
    columns : sequence of str, optional
        The columns to keep, in this order; all by default.
    categories : sequence of str, optional
        Columns to take as categories although they look like numbers or dates. In text files they stay as written.
    separator, encoding, decimal : str, optional
        How a text file is written. By default recognised: a tab, ``;``, ``|`` or ``,`` between cells, and blanks in
        .txt, .data and .dat; UTF-8, UTF-16 or Windows-1252; a point or a comma before decimals.
    missing : sequence of str, optional
        Cells of text, JSON and workbooks that are missing, in every column, blanks around them aside; an empty cell
        always is. By default NA, NaN, nan and null; and among numbers and dates also ``?``, ``-``, ``N/A`` and the
        like.
    header : bool, optional
        Whether the first line of a text file, or row of a sheet, has names. By default it has, unless all its cells
        are numbers (0, 1, 2… aside), or some are and the labels beside them occur again below.
    skip_lines : int, default 0
        Lines, or rows of a sheet, at the top that are no part of the table. Up to ten that are one cell above rows of
        several are left out by themselves.
    sheet : str, optional
        The sheet of a workbook; by default the first.

    Notes
    -----
    The whole file decides on the type of a column, so the same bytes always give the same table; what was recognised is
    in its ``notes``. O(cells) time. A text file is held in memory with its cells, unless it is plain ASCII and regular.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age;height;postcode\\n31;1,72;01234\\n?;1,8;99999\\n")
    >>> table = wi.tables.read_table(file)
    >>> print(table)
    people.csv: 2 rows, columns: 2 of numbers, 1 of categories
    >>> for note in table.notes:
    ...     print(note)
    its cells are separated by ';'
    commas are decimal signs in 'height'
    column 'age': '?' counts as missing in 1 rows
    """
    file = _as_path(path)
    dialect = Dialect(separator, encoding, decimal, missing, header, skip_lines)
    found = _read(file, dialect, raw=categories, sheet=sheet)
    table = replace(table_from_series(found.series, file.name, categories, found.remarks), places=found.places)
    return table if columns is None else table.select(columns)


class Numbers(NamedTuple):
    """Numeric columns of a file; made by :func:`read_numeric`."""

    records: NDArray[np.float64]
    names: list[str]
    dropped: int
    """Rows with gaps that were left out."""
    places: Places
    """Where the others stand in the file."""
    notes: tuple[str, ...]
    """What was recognised when the file was read, as far as it is about these columns."""


def read_numeric(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    at_least: int = 2,
    gaps: str = "refuse",
    labels: Mapping[str, Sequence[str]] | None = None,
    **written: Any,
) -> Numbers:
    """Return the numeric columns of a file as a matrix, their names, how many rows with gaps were dropped, and more.

    Parameters
    ----------
    path : path
        Any file that :func:`read_table` takes.
    columns : sequence of str, optional
        The columns to take; all of them by default, and then every one must be numeric.
    at_least : int, default 2
        The rows that there must be.
    gaps : {"refuse", "drop"}, default "refuse"
        What becomes of rows in which a cell is missing.
    labels : mapping, optional
        By column its labels, which become 0, 1, …; all others become -1.
    **written
        How the file is written, as in :func:`read_table`.

    Examples
    --------
    >>> import pathlib, tempfile, whosin as wi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("age,height\\n31,1.70\\n45,\\n60,1.62\\n")
    ...     records, names, dropped, places, _ = wi.tables.read_numeric(file, gaps="drop")
    >>> records.tolist(), names, dropped
    ([[31.0, 1.7], [60.0, 1.62]], ['age', 'height'], 1)
    >>> places.word, places.numbers.tolist()
    ('line', [2, 4])
    """
    path = _as_path(path)
    check_choice("gaps", gaps, ("refuse", "drop"))
    sheet = written.pop("sheet", None)
    found = _read(path, Dialect(**written), sheet=sheet)
    names = list(found.series) if columns is None else list(columns)
    absent = [name for name in names if name not in found.series]
    if absent:
        raise InputError(f"{path.name} has no column {absent[0]!r}; it has {listed(found.series)}")
    own = labels or {}
    matrix = np.column_stack([_numbers(found, name, path, gaps, own.get(name)) for name in names])
    rows = np.flatnonzero(~np.isnan(matrix).any(axis=1)) if gaps == "drop" else np.arange(len(matrix))
    kept = matrix[rows]
    word, numbers = found.places or Places("row", np.arange(len(matrix)))
    others = [repr(name) for name in found.series if name not in names]
    ours = [repr(name) for name in names]
    notes = tuple(
        note for note in found.remarks if any(map(note.__contains__, ours)) or not any(map(note.__contains__, others))
    )
    records = numeric_records(kept, path.name, at_least=at_least)
    return Numbers(records, names, len(matrix) - len(kept), Places(word, numbers[rows]), notes)


def _read(path: Path, dialect: Dialect, raw: Sequence[str] = (), sheet: str | None = None) -> _Read:
    check_file(path)
    ending = file_ending(path)
    if ending in TEXT:
        name = path.name.lower()
        packed = name.endswith((*_PACKED, ".zip"))
        source = _bytes(path) if packed else path
        series, remarks, lines = series_from_text(source, path.name, dialect, ending, raw)
        known = path.with_suffix("").name.lower().endswith(TEXT) if packed else name.endswith(TEXT)
        unknown = [] if known else ["it was read as text, by its content"]
        return _Read(series, [*unknown, *remarks], Places("line", lines))
    if ending in _LINES:
        return _read_lines(_bytes(path), path.name, dialect, raw)
    if ending in _EXCEL:
        series, remarks, rows = series_from_sheet(path, sheet, dialect, raw)
        return _Read(series, remarks, Places("sheet row", rows))
    if ending in (".npy", ".npz"):
        return _Read(series_of(_load_array(path), path.name))
    return _Read(series_of(_load_frame(path, ending), path.name))


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
    if folder:
        raise InputError(f"{str(path)!r} is a folder: name a file in it; audits take folders with an embedding (embed)")
    if path.exists():
        raise InputError(f"{str(path)!r} must be a file, got a pipe or a device: write what it gives to a file first")
    if re.match(r"[a-z][a-z0-9+.]+:/", str(path)):
        raise InputError(f"no such file: {path}; download it first: only as_stream reads from a URL, Parquet and Arrow")
    raise InputError(f"no such file: {path}")


def file_ending(path: Path) -> str:
    """Return the ending that says what is in a file, that of packing aside."""
    name = path.name.lower()
    packing = next((end for end in (*_PACKED, ".zip") if name.endswith(end)), "")
    ending = next((end for end in _ENDINGS if name.removesuffix(packing).endswith(end)), None)
    if ending is None or ending in _EXCEL:  # programs call tables of text or of HTML .xls
        ending = _by_content(path) or ending
    if ending is None or (packing and ending not in (*TEXT, *_LINES)):
        raise InputError(
            f"a file must have one of the endings {', '.join(_ENDINGS)}, text and JSON also with "
            f"{', '.join(_PACKED)} or .zip behind it, or hold plain text, got {path.name!r}; save it as one of these "
            "where it was made, as CSV or Parquet, or unpack it"
        )
    if ending in TEXT:
        _check_text(path)
    return ending


def _check_text(path: Path) -> None:
    """Refuse a file whose ending says text and whose first bytes say something else."""
    if not path.is_file():
        return
    with unpacking(path), opened(path) as file:
        head = file.read(2**10).lstrip()
    found = next((kind for start, kind in _NO_TEXT.items() if re.match(start, head)), None)
    if found is not None:
        raise InputError(f"{path.name} must be separated text, got {found}")


def _by_content(path: Path) -> str | None:
    """Return the ending that a file of another ending, packed or not, should have if it is text; None if it is not."""
    if not path.is_file():
        return None
    with unpacking(path), opened(path) as file:
        head = file.read(2**12)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ".txt"
    if not head.strip() or re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", head):
        return None
    return ".jsonl" if re.match(rb'\s*(\[\s*)?\{\s*"', head) else ".txt"


def opened(path: Path) -> IO[bytes]:
    """Open a text file, unpacked."""
    name = path.name.lower()
    if name.endswith(".zip"):
        return _only_file(path)
    unpack = next((_PACKED[end] for end in _PACKED if name.endswith(end)), None)
    return path.open("rb") if unpack is None else unpack(path)


def _only_file(path: Path) -> IO[bytes]:
    try:
        packed = zipfile.ZipFile(path)
        files = [name for name in packed.namelist() if not name.endswith("/")]
        (name,) = [name for name in files if "__MACOSX" not in name and "/." not in f"/{name}"]
    except ValueError:
        raise InputError(f"{path.name} must be a zip with one file in it, got {len(files)}; unpack it") from None
    return packed.open(name)


def _bytes(path: Path) -> bytes:
    with unpacking(path), opened(path) as file:
        return file.read()


@contextlib.contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Say of a file that cannot be unpacked so."""
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as error:
        if isinstance(error, PermissionError):
            raise
        packing = path.suffix.lower().removeprefix(".")
        raise InputError(
            f"{path.name} must be packed as {packing}, got something else or part of it: {error}; if it is not packed, "
            f"its name must not end in .{packing}"
        ) from None


def _read_lines(data: bytes, origin: str, dialect: Dialect, raw: Sequence[str]) -> _Read:
    """Read JSON: one object per row, with the same fields or some of them.

    Text is read as a text file has it where that makes dates of it, or numbers beside words for missing cells; numbers
    that are all written as text stay text.
    """
    import polars as pl

    frame, lines = frame_from_lines(data, origin)
    places = None if lines is None else Places("line", lines)
    series = series_of(frame, origin)
    texts = [name for name, cells in series.items() if cells.dtype == pl.String]
    numerals = [name for name in texts if _all_numbers(series[name])]
    read, remarks = read_texts(
        series, dialect, [*raw, *numerals], lambda name, row: f"{origin} {place_of(places, row)} column {name!r}"
    )
    if dialect.missing is None:
        read |= {name: series[name] for name in texts if read[name].dtype == pl.String}
    return _Read(read, remarks, places)


def _all_numbers(cells: pl.Series) -> bool:
    import polars as pl

    return cells.str.strip_chars().cast(pl.Float64, strict=False).null_count() == cells.null_count()


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
        named = ", ".join(loaded.files)
        raise InputError(f"{path.name} must hold one array, got {len(arrays)}: {named}; save the one you mean as .npy")
    return arrays[0]


def _numbers(
    found: _Read, name: str, path: Path, gaps: str, labels: Sequence[str] | None = None
) -> NDArray[np.float64]:
    import polars as pl

    series = found.series[name]
    if labels is not None:
        text = series.cast(pl.String).str.strip_chars()
        numbers = text.replace_strict(
            list(labels), np.arange(len(labels), dtype=float), default=-1.0, return_dtype=pl.Float64
        ).set(series.is_null(), None)
        if (numbers == -1.0).all() and not text.is_empty():
            raise InputError(
                f"{path.name} column {name!r} must have one of the labels {listed(labels)} in some row, got others in "
                f"all, such as {series[0]!r}; capitals count"
            )
    elif series.dtype.is_numeric() or series.dtype == pl.Boolean:
        numbers = series.cast(pl.Float64)
    else:
        numbers = series.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    missing = series.is_null() | numbers.is_nan().fill_null(False)
    strange = numbers.is_null() & ~missing if gaps == "drop" else numbers.is_null() | missing
    if strange.any():
        row = int(strange.arg_max() or 0)
        numbers_in = [name for name, cells in found.series.items() if cells.dtype.is_numeric()]
        some = listed(numbers_in[:12]) + (", …" if len(numbers_in) > 12 else "")
        shown = repr(series[row]) if isinstance(series[row], str) else str(series[row])
        other = f"{shown}; columns= chooses others" + (f", such as {some}" if some else "")
        other += "; in a histogram labels= names its public labels" if not series.dtype.is_temporal() else ""
        got = "a missing cell; gaps='drop' leaves such rows out" if missing[row] else other
        raise InputError(f"{path.name} {place_of(found.places, row)} column {name!r} must be a number, got {got}")
    return numbers.fill_null(np.nan).to_numpy()
