"""A Gaussian copula for tables: every column keeps its law, and normal scores carry what the columns share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError, check_whole

MOST_ROWS = 2**40
"""Most rows that can be asked for; the memory gives out long before."""


class GaussianCopula:
    """A synthesiser of tables with columns of numbers, text and truth values, with gaps.

    Parameters
    ----------
    knots : int, default 100
        A column of numbers with more different values than this is summarised by so many quantiles, between which
        samples are drawn evenly; one with fewer, like a column of text, by the frequency of each value.

    Notes
    -----
    A gap is a value of its own, below all others. Each cell becomes the normal quantile of its middle rank, and the
    correlations of these scores are kept. Sampling draws normal vectors with these correlations and maps them back.
    Text is ranked in the order of the alphabet, so what it shares with other columns is kept in part. What is kept of
    the training rows: the values of text and of columns with few values, ``knots`` quantiles (smallest and largest
    value among them) of the others, and the correlations; of a table with few rows whole rows may come back. It gives
    no guarantee of privacy. Fitting costs
    O(n·d² + d³), sampling n rows O(n·d²).

    References
    ----------
    Nelsen (2006), An introduction to copulas. Patki, Wedge, Veeramachaneni (2016), The synthetic data vault.

    Examples
    --------
    >>> import polars as pl
    >>> from whosin.training import GaussianCopula
    >>> people = pl.DataFrame({"age": [23, 35, 41, 58], "job": ["cook", "clerk", None, "clerk"]})
    >>> GaussianCopula().fit(people).sample(2, rng=0).columns
    ['age', 'job']
    """

    def __init__(self, *, knots: int = 100) -> None:
        self.knots = check_whole("knots", knots, low=2)
        self._margins: list[_Values | _Quantiles] = []

    def fit(self, table: Any) -> Self:
        """Learn a data frame (of any library that narwhals knows) or an array of numbers; return the model itself."""
        names, columns, frame = _columns(table)
        if len(names) == 0 or len(columns[0]) < 2:
            rows = 0 if not columns else len(columns[0])
            raise InputError(f"table must have at least 2 rows and 1 column, got {rows} and {len(names)}")
        self._names = names
        self._backend = None if frame is None else frame.implementation
        self._schema = None if frame is None else frame.schema
        self._margins = [_margin(column, self.knots) for column in columns]
        scores = np.column_stack([margin.scores(column) for margin, column in zip(self._margins, columns, strict=True)])
        self._root = _root(scores)
        return self

    def sample(self, n: int, rng: Any = None) -> Any:
        """Return n rows: a data frame of the library that was fitted, or an array.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : optional
            Anything that ``numpy.random.default_rng`` takes.
        """
        from scipy.special import ndtr

        if not self._margins:
            raise InputError("GaussianCopula is not trained yet: call fit first")
        count = check_whole("n", n, low=1, high=MOST_ROWS)
        normals = np.random.default_rng(rng).standard_normal((count, len(self._margins)))
        levels = ndtr(normals @ self._root.T)
        columns = [margin.values_at(level) for margin, level in zip(self._margins, levels.T, strict=True)]
        if self._backend is None:
            return np.column_stack(columns).astype(np.float64)
        import narwhals.stable.v2 as nw

        found = {name: column.tolist() for name, column in zip(self._names, columns, strict=True)}
        frame = nw.from_dict(found, backend=self._backend)
        assert self._schema is not None
        kinds = {name: kind for name, kind in self._schema.items() if _can_become(frame[name], kind)}
        return frame.with_columns(nw.col(name).cast(kind) for name, kind in kinds.items()).to_native()


@dataclass(frozen=True, eq=False)
class _Values:
    """The law of a column with few values, or of text: a frequency each. A gap is the first value."""

    values: list[Any]
    upper: Array
    """Cumulated frequencies."""

    def scores(self, column: list[Any]) -> Array:
        from scipy.special import ndtri

        places = {value: i for i, value in enumerate(self.values)}
        middle = self.upper - 0.5 * np.diff(self.upper, prepend=0.0)
        return np.asarray(ndtri(middle[[places[value] for value in column]]))

    def values_at(self, levels: Array) -> NDArray[Any]:
        chosen = np.minimum(np.searchsorted(self.upper, levels, side="right"), len(self.values) - 1)
        table = np.empty(len(self.values), dtype=object)
        table[:] = self.values
        return np.asarray(table[chosen])


@dataclass(frozen=True, eq=False)
class _Quantiles:
    """The law of a column of many numbers: the share of gaps, and quantiles of the rest."""

    missing: float
    quantiles: Array
    whole: tuple[int, int] | None
    """Smallest and largest value of a column of whole numbers."""

    def scores(self, column: list[Any]) -> Array:
        from scipy.special import ndtri
        from scipy.stats import rankdata

        gaps = np.array([value is None for value in column])
        levels = np.full(len(column), 0.5 * self.missing)
        present = np.array([value for value in column if value is not None], dtype=np.float64)
        ranks = (rankdata(present) - 0.5) / len(present)
        levels[~gaps] = self.missing + (1.0 - self.missing) * ranks
        return np.asarray(ndtri(levels))

    def values_at(self, levels: Array) -> NDArray[Any]:
        inside = (levels - self.missing) / (1.0 - self.missing)
        grid = np.linspace(0.0, 1.0, len(self.quantiles))
        numbers = np.interp(inside, grid, self.quantiles)
        found = np.empty(len(levels), dtype=object)
        if self.whole is None:
            found[:] = numbers.tolist()
        else:
            low, high = self.whole
            found[:] = [min(max(int(value), low), high) for value in np.rint(numbers)]
        found[inside < 0.0] = None
        return found


def _margin(column: list[Any], knots: int) -> _Values | _Quantiles:
    present = [value for value in column if value is not None]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in present)
    different = set(present)
    if numbers and len(different) > knots:
        whole = (min(present), max(present)) if all(isinstance(value, int) for value in present) else None
        quantiles = np.quantile(np.array(present, dtype=np.float64), np.linspace(0.0, 1.0, knots))
        return _Quantiles(1.0 - len(present) / len(column), quantiles, whole)
    values: list[Any] = sorted(different)
    if len(present) < len(column):
        values = [None, *values]
    places = {value: i for i, value in enumerate(values)}
    counts = np.bincount([places[value] for value in column], minlength=len(values))
    return _Values(values, np.cumsum(counts) / len(column))


def _root(scores: Array) -> Array:
    """A root of the correlations of the scores; a constant column has none with any other."""
    centred = scores - scores.mean(axis=0)
    spread = np.sqrt((centred**2).mean(axis=0))
    scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12)
    correlations = scaled.T @ scaled / len(scores)
    np.fill_diagonal(correlations, 1.0)
    values, vectors = np.linalg.eigh(correlations)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _columns(table: Any) -> tuple[list[str], list[list[Any]], Any]:
    """Return names and cells of the columns, gaps as None, and the frame (None for an array)."""
    import narwhals.stable.v2 as nw

    if isinstance(table, np.ndarray):
        if table.ndim != 2 or table.dtype.kind not in "iuf":
            raise InputTypeError(f"table must be a data frame or a matrix of numbers, got {table.dtype} {table.shape}")
        if not np.isfinite(table).all():
            raise InputError("table must hold finite numbers, got NaN or infinity")
        return [str(i) for i in range(table.shape[1])], [column.tolist() for column in table.T], None
    frame = nw.from_native(table, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame):
        raise InputTypeError(f"table must be a data frame or a matrix of numbers, got {type(table).__name__}")
    return list(frame.columns), [_cells(series) for series in frame.iter_columns()], frame


def _can_become(series: Any, kind: Any) -> bool:
    """Whether a generated column takes the kind of the fitted one; plain columns of pandas may not hold gaps."""
    import narwhals.stable.v2 as nw

    if series.dtype == kind or not (kind.is_numeric() or kind in (nw.String, nw.Categorical, nw.Enum, nw.Boolean)):
        return False
    plain = series.implementation.is_pandas_like() and (kind.is_integer() or kind == nw.Boolean)
    return not (plain and series.null_count() > 0)


def _cells(series: Any) -> list[Any]:
    cells: list[Any] = []
    for cell in series.to_list():
        value = cell.item() if isinstance(cell, np.generic) else cell
        if value is None or type(value).__name__ == "NAType" or value != value:
            cells.append(None)
        elif isinstance(value, bool | int | float | str):
            cells.append(value)
        else:
            raise InputTypeError(
                f"table must hold numbers, text and truth values, got {type(value).__name__} in column {series.name!r}"
            )
    present = {type(cell) for cell in cells if cell is not None}
    if str in present and len(present) > 1:
        raise InputTypeError(f"table must have columns of one kind, got text and numbers in column {series.name!r}")
    if any(isinstance(cell, float) and np.isinf(cell) for cell in cells):
        raise InputError(f"table must hold finite numbers, got infinity in column {series.name!r}")
    return cells
