"""Tables larger than memory: rows in blocks, in their order, as often as they are asked for.

Parquet files and Arrow files are read where they are. A lazy frame is evaluated once, into a temporary Parquet file,
and text files and frames that come one by one go there too: what is learnt from a table takes several readings.
"""

from __future__ import annotations

import glob
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whosin.errors import InputError, InputTypeError, check_whole, listed
from whosin.tables.dialect import Dialect
from whosin.tables.frames import series_of, table_from_series
from whosin.tables.objects import flat_series
from whosin.tables.parquet_pages import check_parquet
from whosin.tables.quiet_polars import without_panics
from whosin.tables.reading import TEXT, check_file, file_ending, opened, unpacking
from whosin.tables.table import Table, check_names
from whosin.tables.text_blocks import TextBlocks

if TYPE_CHECKING:
    import polars as pl

BLOCK_ROWS = 2**20
"""Rows of a block unless the caller says otherwise."""
_PART_ROWS = 2**17
"""Frames that come one by one are put together up to so many rows before they are written."""
_PIECE_ROWS = 2**15
"""A file is read at least so many rows at a time, however small the blocks are."""
_STREAMED = (".parquet", ".arrow", ".feather")
LARGE_TEXT = 2**28
"""Text files of more bytes are read in blocks."""
_PACKED = 6
"""How many bytes one of a packed file may stand for."""


@dataclass(frozen=True, eq=False)
class TableStream:
    """A table that is read in blocks; made by :func:`as_stream`.

    Examples
    --------
    >>> import polars as pl, whosin as wi
    >>> stream = wi.tables.as_stream(pl.LazyFrame({"age": range(10)}), block_rows=4)
    >>> print(stream)
    data: 10 rows, 1 columns, in blocks of 4 rows
    >>> [(first, block.height) for first, block in stream.blocks(["age"])]
    [(0, 4), (4, 4), (8, 2)]
    """

    origin: str
    """What errors call it."""
    dtypes: dict[str, Any] = field(repr=False)
    """The polars type of each column."""
    rows: int
    block_rows: int
    _open: Callable[[list[str], int, int], Iterator[pl.DataFrame]] = field(repr=False)
    """Gives the named columns of the rows from one number up to another, in pieces of any size."""
    notes: tuple[str, ...] = field(default=(), repr=False)
    """What was recognised when the file was read."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.dtypes)

    def __len__(self) -> int:
        return self.rows

    def __str__(self) -> str:
        return f"{self.origin}: {self.rows} rows, {len(self.names)} columns, in blocks of {self.block_rows} rows"

    def blocks(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the number of the first row and the named columns of each block, of all rows or of those of a range.

        Memory: two blocks or so.
        """
        import polars as pl

        waiting: list[pl.DataFrame] = []
        held, first = 0, start
        for frame in self._open(list(columns), start, self.rows if stop is None else stop):
            waiting, held = [*waiting, frame], held + frame.height
            if held >= self.block_rows:
                joined = pl.concat(waiting)
                while joined.height >= self.block_rows:
                    yield first, joined.head(self.block_rows)
                    first, joined = first + self.block_rows, joined.slice(self.block_rows)
                waiting, held = [joined], joined.height
        if held:
            yield first, pl.concat(waiting)

    def select(self, names: Sequence[str]) -> TableStream:
        """Return the named columns, in this order."""
        absent = next((name for name in names if name not in self.dtypes), None)
        if absent is not None:
            raise InputError(f"{self.origin} has no column {absent!r}; it has {listed(self.names)}")
        return replace(self, dtypes={name: self.dtypes[name] for name in names})

    def without(self, name: str) -> TableStream:
        """Return the other columns."""
        return self.select([other for other in self.names if other != name])

    def table(self) -> Table:
        """Read everything into memory."""
        import polars as pl

        frame = pl.concat([block for _, block in self.blocks(self.names)])
        return table_from_series({name: frame.get_column(name) for name in self.names}, self.origin)


def is_streamable(data: Any) -> bool:
    """Whether :func:`as_stream` takes it: a path, a lazy frame of polars, an iterator of frames or a list of them.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.tables.is_streamable("people.parquet"), wi.tables.is_streamable([[1, 2], [3, 4]])
    (True, False)
    """
    import polars as pl

    if isinstance(data, str | Path | pl.LazyFrame | Iterator | TableStream):
        return True
    return isinstance(data, list | tuple) and len(data) > 0 and _is_frame(data[0])


def is_blockwise(path: Path) -> bool:
    """Whether a file is read in blocks unless it is small: by its ending, and text by its size too."""
    if path.name.lower().endswith(_STREAMED):
        return True
    unpacked = 1 if path.suffix.lower() in TEXT else _PACKED
    return path.is_file() and file_ending(path) in TEXT and path.stat().st_size * unpacked > LARGE_TEXT


def as_stream(
    data: Any, name: str = "data", *, block_rows: int = BLOCK_ROWS, categories: Sequence[str] = (), **written: Any
) -> TableStream:
    """Return a table that is read in blocks.

    Parameters
    ----------
    data : path, polars.LazyFrame, or iterable of data frames
        A file that ends in .parquet, .arrow or .feather (the Arrow IPC file format), by its path or its URL (s3://,
        gs://, az://, which polars reads, with fsspec to see that it stays the same), or of separated text. Frames may
        come from any library that :func:`as_table` knows and must have the same columns of the same kinds; whole
        numbers may become fractions, and columns without a single cell go with any kind.
    name : str, default "data"
        What errors call the table; a file goes by its name.
    block_rows : int, default 1,048,576
        Rows of a block.
    categories, **written : optional
        For text files as in :func:`read_table`, which reads the same cells.

    Notes
    -----
    Text files are read twice: all cells of a column decide on its kind. They, lazy frames and iterables are written to
    a temporary Parquet file, which goes when the stream goes. Row numbers in errors count from 0 over the whole table.

    Examples
    --------
    >>> import polars as pl, whosin as wi
    >>> frames = (pl.DataFrame({"age": [start, start + 1]}) for start in range(0, 10, 2))
    >>> len(wi.tables.as_stream(frames))
    10
    """
    import polars as pl

    size = check_whole("block_rows", block_rows, low=1)
    if isinstance(data, TableStream):
        return data
    if isinstance(data, str) and _is_url(data):
        return _from_url(data, size)
    if isinstance(data, str | Path):
        return _from_file(Path(data), size, categories, written)
    if isinstance(data, pl.LazyFrame):
        return _from_temporary(_from_lazy, data, name, size)
    if isinstance(data, Iterable):
        return _from_temporary(_from_frames, data, name, size)
    raise InputTypeError(f"{name} must be a path, a lazy frame or frames in an iterable, got {type(data).__name__}")


def _is_frame(value: Any) -> bool:
    import narwhals.stable.v2 as nw

    return isinstance(nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame)


def _is_url(path: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.]+://", path) is not None


def _from_url(url: str, size: int) -> TableStream:
    ending = next((end for end in _STREAMED if url.lower().endswith(end)), None)
    if ending is None:
        raise InputError(f"a URL must end in one of {', '.join(_STREAMED)}, got {url!r}")
    return _scanned(url, ending, url.rpartition("/")[2], size)


def _from_file(path: Path, size: int, categories: Sequence[str], written: Mapping[str, Any]) -> TableStream:
    check_file(path)
    ending = file_ending(path)
    if ending in TEXT:
        dialect = Dialect(**{name: value for name, value in written.items() if name != "sheet"})
        with unpacking(path):
            blocks = TextBlocks.of(lambda: opened(path), path.name, dialect, ending, categories)
            stamp = _stamp(path)
            stream = _from_temporary(_from_frames, blocks.frames(), path.name, size)
            _check_unchanged(path, path.name, stamp)
        return replace(stream, notes=blocks.notes)
    if ending not in _STREAMED:
        raise InputError(
            f"{path.name} cannot be read in blocks: that needs text, {', '.join(_STREAMED)}; save it as one of these"
        )
    return _scanned(path, ending, path.name, size)


@dataclass
class _Scan:
    """A file of columns that is read where it is, by this process or by others that reach it under the same path."""

    path: Path | str
    """A path, or the URL of an object store."""
    ending: str
    origin: str
    size: int
    rows: int
    stamp: tuple[Any, ...]
    counted: bool = False
    """Whether the rows were counted: the total in the footer of a Parquet file is only a statement."""

    def __call__(self, columns: list[str], start: int, stop: int) -> Iterator[pl.DataFrame]:
        import polars as pl

        piece = min(max(self.size, _PIECE_ROWS), BLOCK_ROWS)
        for first in range(start, stop, piece):
            try:
                self._count()
                with without_panics(self.ending):
                    frame = _lazy(self.path, self.ending).select(columns).slice(first, min(piece, stop - first))
                    read = [flat_series(series) for series in frame.collect()]
            except _failures() as error:
                _check_unchanged(self.path, self.origin, self.stamp)
                raise InputError(f"{self.origin} cannot be read to its end: {error}") from None
            _check_unchanged(self.path, self.origin, self.stamp)
            yield pl.DataFrame(read)

    def _count(self) -> None:
        if self.counted or self.ending != ".parquet":
            return
        held = _held(_lazy(self.path, self.ending))
        if held != self.rows:
            _check_unchanged(self.path, self.origin, self.stamp)
            raise InputError(f"{self.origin} is damaged: it states {self.rows} rows and holds {held}")
        self.counted = True


def _lazy(path: Path | str, ending: str) -> pl.LazyFrame:
    import polars as pl

    if ending == ".parquet":
        return pl.scan_parquet(path, glob=False)
    return pl.scan_ipc(path if isinstance(path, str) else glob.escape(str(path)))


def _failures() -> tuple[type[BaseException], ...]:
    import polars as pl

    return pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError


def _scanned(path: Path | str, ending: str, origin: str, size: int) -> TableStream:
    import polars as pl

    words = "Parquet" if ending == ".parquet" else "the Arrow IPC file format"
    try:
        stamp = _stamp(path)
        with without_panics(ending):
            schema = _lazy(path, ending).collect_schema()
            dtypes = {name: flat_series(pl.Series(dtype=dtype)).dtype for name, dtype in schema.items()}
            rows = int(_lazy(path, ending).select(pl.len()).collect().item())
        if ending == ".parquet":
            with _opened(path) as file:
                check_parquet(file, origin)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except PermissionError as error:
        raise InputError(f"{origin} cannot be opened: {error}") from None
    except _failures() as error:
        raise InputError(f"{origin} must be {words}, got something else or part of it: {error}") from None
    return _checked(TableStream(origin, dtypes, rows, size, _Scan(path, ending, origin, size, rows, stamp)))


def _held(frame: pl.LazyFrame) -> int:
    """Count the rows of a Parquet file by the cells of a column: the total in its footer is only a statement."""
    import polars as pl

    counted = frame.select((pl.first().is_null().cast(pl.Int8) >= 0).sum()).collect(engine="streaming").item()
    return int(counted)


def _stamp(path: Path | str) -> tuple[Any, ...]:
    """What changes with a file: place, size and time, or what an object store says of it."""
    if isinstance(path, str):
        store, place = _store(path)
        store.invalidate_cache()
        return (store.ukey(place),)
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _opened(path: Path | str) -> Any:
    if isinstance(path, Path):
        return path.open("rb")
    store, place = _store(path)
    return store.open(place, "rb")


def _store(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the place there."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        store, place = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"a release at {url.partition('://')[0]}:// needs fsspec and its package for that store (s3fs, gcsfs, "
            f"adlfs): {error}"
        ) from None
    return store, str(place)


def _check_unchanged(path: Path | str, origin: str, stamp: tuple[Any, ...]) -> None:
    """Refuse a file that is not what it was when it was opened: answers would mix two releases."""
    try:
        same = _stamp(path) == stamp
    except FileNotFoundError:
        raise InputError(
            f"{origin} changed while it was read: it is gone, or a worker cannot reach {str(path)!r}, which must be a "
            "path that all workers have"
        ) from None
    except OSError:
        same = False
    if not same:
        raise InputError(f"{origin} changed while it was read: the file must stay as it is until the end")


def _from_temporary(make: Callable[[Any, str, int, Path], TableStream], data: Any, name: str, size: int) -> TableStream:
    """Make a stream from files in a temporary folder that goes with it and its parts, and at once after an error."""
    folder = Path(tempfile.mkdtemp(prefix="whosin-"))
    try:
        stream = make(data, name, size, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(stream._open, shutil.rmtree, folder, ignore_errors=True)
    return stream


def _from_lazy(data: pl.LazyFrame, name: str, size: int, folder: Path) -> TableStream:
    import polars as pl

    path = folder / "lazy.parquet"
    try:
        data.sink_parquet(path, compression="lz4", statistics=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"{name} is a lazy frame that cannot be evaluated, or takes more room for a copy in the temporary folder "
            f"{folder.parent} (the variable TMPDIR names another): {error}"
        ) from None
    return _scanned(path, ".parquet", name, size)


def _from_frames(frames: Iterable[Any], name: str, size: int, folder: Path) -> TableStream:
    import polars as pl

    parts = _Parts(folder, name)
    for frame in frames:
        parts.add(pl.DataFrame(_named(frame, name)))
    parts.flush()
    return _checked(TableStream(name, parts.dtypes, parts.rows, size, _Files(parts.paths, parts.ends, parts.dtypes)))


@dataclass(frozen=True)
class _Files:
    """Frames that came one by one, in temporary files; ``ends`` counts the rows up to the end of each."""

    paths: list[Path]
    ends: list[int]
    dtypes: dict[Any, Any]

    def __call__(self, columns: list[str], start: int, stop: int) -> Iterator[pl.DataFrame]:
        import polars as pl

        for path, first, last in zip(self.paths, [0, *self.ends], self.ends, strict=False):
            if first < stop and last > start:
                try:
                    frame = pl.read_parquet(path, columns=columns)
                except FileNotFoundError:
                    raise InputError(
                        f"a worker cannot reach the temporary folder {path.parent.parent}: set the variable TMPDIR to "
                        "one that all workers have, or write the release as Parquet"
                    ) from None
                low, high = max(start - first, 0), min(stop, last) - first
                yield frame[low:high].select(columns).cast({c: self.dtypes[c] for c in columns})


def _named(frame: Any, name: str) -> list[pl.Series]:
    import polars as pl

    columns = [series.alias(label) for label, series in series_of(frame, name).items()]
    text = (pl.Categorical, pl.Enum)
    return [column.cast(pl.String) if column.dtype in text else column for column in columns]


class _Parts:
    """Frames that come one by one, on disk; their types are joined, and kinds that differ are an error."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.dtypes: dict[Any, Any] = {}
        self.paths: list[Path] = []
        self.ends: list[int] = []
        self.rows = 0
        self._waiting: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Take a frame; columns may come in another order."""
        import polars as pl

        if frame.height == 0:
            return
        if not self.dtypes:
            self.dtypes = {column: pl.Null() for column in frame.columns}
        if set(frame.columns) != set(self.dtypes):
            raise InputError(
                f"{self.name} must have frames with the same columns, {', '.join(self.dtypes)}, "
                f"got {', '.join(frame.columns)} from row {self.rows} on"
            )
        for column, dtype in frame.schema.items():
            self.dtypes[column] = self._joined(column, dtype)
        self._waiting.append(frame.select(list(self.dtypes)))
        self.rows += frame.height
        if sum(part.height for part in self._waiting) >= _PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        import polars as pl

        if self._waiting:
            path = self.folder / f"{len(self.paths)}.parquet"
            joined = pl.concat([part.cast(self.dtypes) for part in self._waiting])
            try:
                joined.write_parquet(path, compression="lz4")
            except (pl.exceptions.PolarsError, OSError) as error:
                raise InputError(
                    f"{self.name} needs room for a copy in the temporary folder {self.folder.parent} (the variable "
                    f"TMPDIR names another): {error}"
                ) from None
            self.paths.append(path)
            self.ends.append(self.rows)
            self._waiting = []

    def _joined(self, column: str, dtype: Any) -> Any:
        import polars as pl

        known = self.dtypes[column]
        if dtype == pl.Null or known == dtype:
            return known
        if known == pl.Null:
            return dtype
        if _kind(known) != _kind(dtype):
            raise InputError(
                f"{self.name} column {column!r} must hold one kind of cells, got {_kind(known)} up to row "
                f"{self.rows - 1} and {_kind(dtype)} from row {self.rows} on"
            )
        if known.is_integer() and dtype.is_integer():
            wide = {pl.UInt64, pl.Int128} & {known.base_type(), dtype.base_type()}
            return pl.Int128() if wide else pl.Int64()
        if known.is_numeric():
            return pl.Float64()
        if _kind(known) == "durations":
            return pl.Duration("us")
        return pl.Datetime("us", "UTC" if _kind(known) == "dates with a time zone" else None)


def _kind(dtype: Any) -> str:
    """What the cells are, in words."""
    import polars as pl

    if dtype == pl.Boolean:
        return "truth values"
    if dtype.is_numeric():
        return "numbers"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype == pl.Datetime and dtype.time_zone is not None:
        return "dates with a time zone"
    words = {pl.Date: "dates", pl.Datetime: "dates", pl.Duration: "durations", pl.Time: "times of day"}
    return next((word for kind, word in words.items() if dtype == kind), "nothing")


def _checked(stream: TableStream) -> TableStream:
    check_names(stream.names, stream.origin)
    if stream.rows == 0:
        raise InputError(f"{stream.origin} must have at least one row, got none")
    return stream
