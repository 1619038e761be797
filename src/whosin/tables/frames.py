"""Tables from what users hold: arrays, dictionaries, rows, data frames of any library that narwhals knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError, listed
from whosin.tables.columns import Column, as_category, column_from_series, for_each
from whosin.tables.objects import flat_series, series_from_objects
from whosin.tables.table import Table, check_names

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import polars as pl


def as_table(data: Any, name: str = "data", *, categories: Sequence[str] = ()) -> Table:
    """Return data as a :class:`Table`.

    Parameters
    ----------
    data : array, mapping of columns, data frame, series, list of rows, or Table
        Arrays have one or two dimensions, or named fields; their columns are called "column 0", "column 1"… Frames and
        series may come from pandas, polars, pyarrow or any library that narwhals knows. Rows are lists or tuples.
    name : str, default "data"
        What errors call the table; a Table keeps its own.
    categories : sequence of str, optional
        Columns to take as categories although they look like numbers or dates: codes, postcodes, identifiers.

    Notes
    -----
    Numbers stay numbers, dates and times become seconds, and truth values, text, categoricals and all other objects (by
    ``str``, lists as JSON has them) become categories, as do whole numbers beyond 2⁵³. NaN, None, NaT and nulls are
    missing cells. Infinite numbers, no rows and names that occur twice are errors. O(cells).

    Examples
    --------
    >>> import whosin as wi
    >>> columns = {"postcode": [3012, 8001], "age": [31, 45]}
    >>> print(wi.tables.as_table(columns))
    data: 2 rows, columns: 2 of numbers
    >>> print(wi.tables.as_table(columns, categories=["postcode"]))
    data: 2 rows, columns: 1 of numbers, 1 of categories
    """
    if isinstance(data, Table):
        return _recategorised(data, _listed(categories, data.names, data.origin))
    return table_from_series(series_of(data, name), name, categories, _index(data))


def _index(data: Any) -> list[str]:
    """Say that the named index of a pandas frame is no column."""
    names = [name for name in getattr(getattr(data, "index", None), "names", ()) if name is not None]
    return [f"its index {listed(map(repr, names))} is no column; reset_index() makes it one"] if names else []


def table_from_series(
    series: Mapping[str, pl.Series], name: str, categories: Sequence[str] = (), notes: Sequence[str] = ()
) -> Table:
    """Return named polars series as a table."""
    check_names(tuple(series), name)
    chosen = _listed(categories, tuple(series), name)

    def make(label: str) -> Column:
        return column_from_series(series[label], _at(name, label), category=label in chosen)

    columns = for_each(make, list(series), max(map(len, series.values())))
    return Table(tuple(series), tuple(columns), name, tuple(notes))


def _recategorised(table: Table, chosen: set[str]) -> Table:
    if not chosen:
        return table
    columns = (as_category(column) if label in chosen else column for label, column in table)
    return Table(table.names, tuple(columns), table.origin, table.notes, table.places)


def _listed(categories: Sequence[str], names: tuple[str, ...], origin: str) -> set[str]:
    if isinstance(categories, str):
        raise InputTypeError(f"categories must be a list of column names, got the text {categories!r}")
    unknown = [label for label in categories if label not in names]
    if unknown:
        raise InputError(f"{origin} has no column {unknown[0]!r}; it has {listed(names)}")
    return set(categories)


def series_of(data: Any, name: str) -> dict[str, pl.Series]:
    """Return the columns of anything that holds records as named polars series."""
    if isinstance(data, str | bytes | Path):
        raise InputTypeError(f"{name} must be records, got {data!r}: read_table reads files")
    if isinstance(data, Mapping):
        return _named(name, data.items(), _from_any)
    framed = _from_frame(data, name)
    if framed is not None:
        return framed
    if isinstance(data, list | tuple):
        return _from_rows(data, name)
    if hasattr(data, "__array__"):
        return _from_array(data if isinstance(data, np.ma.MaskedArray) else np.asarray(data), name)
    raise InputTypeError(f"{name} must be an array, a data frame, a dictionary of columns or rows, got {_type(data)}")


def _named(
    name: str, columns: Iterable[tuple[Any, Any]], make: Callable[[Any, str], pl.Series]
) -> dict[str, pl.Series]:
    pairs = [(str(label), values) for label, values in columns]
    check_names([label for label, _ in pairs], name)
    return {label: make(values, _at(name, label)) for label, values in pairs}


def _from_frame(data: Any, name: str) -> dict[str, pl.Series] | None:
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(data, pass_through=True, allow_series=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
    except DuplicateError:
        names = [str(label) for label in data.columns]
        check_names(names, name)
        raise
    if isinstance(frame, nw.Series):
        label = "column 0" if frame.name in (None, "") else str(frame.name)
        return {label: _from_narwhals(frame, _at(name, label))}
    if not isinstance(frame, nw.DataFrame):
        return None
    return _named(name, ((series.name, series) for series in frame.iter_columns()), _from_narwhals)


def _from_narwhals(series: nw.Series[Any], place: str) -> pl.Series:
    import narwhals.stable.v2 as nw
    import polars as pl

    native = series.to_native()
    if isinstance(native, pl.Series):
        return series_from_objects(native.to_list(), place) if native.dtype == pl.Object else flat_series(native)
    dtype = series.dtype
    if dtype.is_float():
        return pl.Series(np.asarray(series.to_numpy(), dtype=np.float64))
    if dtype.is_integer() and not series.is_null().any():
        return pl.Series(np.ascontiguousarray(series.to_numpy()))
    if dtype in (nw.Datetime, nw.Duration):
        moments = np.asarray(series.to_numpy())
        if moments.dtype.kind in "mM":
            return _from_moments(moments, getattr(dtype, "time_zone", None))
    if dtype in (nw.Categorical, nw.Enum):
        values = series_from_objects(_objects(series), place)
        return values if values.dtype == pl.String else _as_text(values, place)
    return series_from_objects(_objects(series), place)


def _as_text(values: pl.Series, place: str) -> pl.Series:
    """Return what a categorical lists as text, so that it stays a category."""
    column = column_from_series(values, place, category=True)
    labels = np.array([*column.labels, None], dtype=object)
    return series_from_objects(labels[column.values].tolist(), place)


def _objects(series: nw.Series[Any]) -> list[Any]:
    gone = series.is_null()
    values = series.to_list()
    return [None if out else value for out, value in zip(gone.to_list(), values, strict=True)] if gone.any() else values


def _from_moments(values: NDArray[Any], zone: str | None = None) -> pl.Series:
    import polars as pl

    series = pl.Series(values.astype(values.dtype.str[:2].replace(">", "<") + "8[us]"))
    return series if zone is None else series.dt.replace_time_zone("UTC")


def _from_array(array: NDArray[Any], name: str) -> dict[str, pl.Series]:
    if array.dtype.names is not None:
        return _named(name, ((label, array[label]) for label in array.dtype.names), _from_vector)
    if array.ndim not in (1, 2):
        raise InputError(f"{name} must be a vector or a matrix, got {array.ndim} dimensions")
    matrix = array[:, None] if array.ndim == 1 else array
    return _named(name, ((f"column {i}", matrix[:, i]) for i in range(matrix.shape[1])), _from_vector)


def _from_vector(vector: NDArray[Any], place: str) -> pl.Series:
    import polars as pl

    if vector.ndim != 1:
        raise InputError(f"{place} must have one value per row, got {vector.ndim} dimensions")
    if isinstance(vector, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(vector).tolist()
        return series_from_objects([None if h else v for h, v in zip(hidden, vector.data.tolist(), strict=True)], place)
    if vector.dtype.kind in "biu":
        return pl.Series(np.ascontiguousarray(vector.astype(vector.dtype.newbyteorder("="))))
    if vector.dtype.kind == "f":
        return pl.Series(vector.astype(np.float64))
    if vector.dtype.kind in "mM":
        return _from_moments(vector)
    if vector.dtype.kind in "UOT":
        return series_from_objects(vector.tolist(), place)
    raise InputTypeError(f"{place} must hold numbers, text, truth values or dates, got {vector.dtype}")


def _from_any(values: Any, place: str) -> pl.Series:
    import narwhals.stable.v2 as nw

    series = nw.from_native(values, pass_through=True, series_only=True)
    if isinstance(series, nw.Series):
        return _from_narwhals(series, place)
    if isinstance(values, list | tuple):
        return series_from_objects(values, place)
    if hasattr(values, "categories") and hasattr(values, "codes"):  # a bare pandas.Categorical
        return _as_text(series_from_objects(list(values), place), place)
    if hasattr(values, "__array__"):
        return _from_vector(np.asanyarray(values), place)
    raise InputTypeError(f"{place} must be a list or an array, got {_type(values)}")


def _from_rows(rows: Sequence[Any], name: str) -> dict[str, pl.Series]:
    if not rows:
        raise InputError(f"{name} must have at least one row, got none")
    if not any(isinstance(row, list | tuple | np.ndarray) for row in rows):
        if any(isinstance(row, Mapping) for row in rows):
            raise InputTypeError(
                f"{name} must have rows as lists or tuples, got dictionaries: make a data frame of them"
            )
        return {"column 0": series_from_objects(rows, _at(name, "column 0"))}
    width = len(rows[0]) if isinstance(rows[0], list | tuple | np.ndarray) else 1
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple | np.ndarray) or len(row) != width:
            cells = len(row) if isinstance(row, list | tuple | np.ndarray) else 1
            raise InputError(f"{name} must have rows of {width} cells, got {cells} in row {number}")
    columns = enumerate(zip(*rows, strict=True))
    return _named(name, ((f"column {i}", values) for i, values in columns), series_from_objects)


def _at(name: str, label: str) -> str:
    return f"{name} column {label!r}"


def _type(value: Any) -> str:
    return type(value).__name__
