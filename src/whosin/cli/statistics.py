"""Statistics that ``whosin protect`` releases by name, beyond those of the library: all need public cells or places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from whosin.population import Histogram
    from whosin.tables.reading import Numbers

Array = NDArray[np.float64]

NAMES = ("count", "histogram", "quantiles", "regression")
_EXAMPLES = {"--edges": "0,18,65,120 (public limits of the cells)", "--quantiles": "0.25,0.5,0.75"}


def statistics_of(
    names: Sequence[str],
    edges: Sequence[str] | None,
    quantiles: str | None,
    columns: Sequence[str],
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """Return what :func:`whosin.protect` takes for a statistic by name, or for several; other names pass.

    count: rows in which each column is not 0. histogram: rows in each cell between public edges, of several columns the
    contingency table of all their cells; values outside the edges count in no cell, and so do other labels than those
    that are public, which come as numbers from 0. quantiles: of each column.
    regression: intercept and coefficients of the last column on the others, by least squares.
    """
    from whosin.protection.estimators import STATISTICS

    for option, value, use in (("--edges", edges, "histogram"), ("--quantiles", quantiles, "quantiles")):
        if value is None and use in names and not (labels and use == "histogram"):
            raise InputTypeError(f"--statistic {use} needs {option}, such as {_EXAMPLES[option]}")
        if value is not None and use not in names:
            raise InputTypeError(f"{option} goes with --statistic {use}")
    if labels and "histogram" not in names:
        raise InputTypeError("--labels goes with --statistic histogram")
    unknown = next((name for name in names if name not in (*STATISTICS, *NAMES)), None)
    if unknown is not None:
        raise InputError(f"--statistic must be one of {', '.join((*STATISTICS, *NAMES))}, got {unknown!r}")
    if len(set(names)) < len(names):
        raise InputError(f"--statistic must name each statistic once, got {', '.join(names)}")
    found = {name: _statistic(name, edges, quantiles, columns, labels or {}) for name in names}
    return found if len(names) > 1 else found[names[0]]


def _statistic(
    name: str,
    edges: Sequence[str] | None,
    quantiles: str | None,
    columns: Sequence[str],
    labels: Mapping[str, Sequence[str]],
) -> Any:
    from whosin.protection import SumQuery

    if name == "count":
        return SumQuery(lambda records: (records != 0).astype(float), False, "count of cells that are not 0")
    if name == "histogram":
        return SumQuery(_cells(edges_of(edges or (), labels, columns)), False, name)
    if name == "quantiles":
        levels = numbers_of("--quantiles", quantiles or "")
        if ((levels < 0) | (levels > 1)).any():
            raise InputError(f"--quantiles must be numbers from 0 to 1, got {quantiles}")
        return _named("vector of quantiles", lambda records: np.quantile(records, levels, axis=0))
    if name == "regression":
        if len(columns) < 2:
            raise InputError(f"--statistic regression must have two columns or more, got {', '.join(columns)}")
        return _named("vector of regression coefficients", _coefficients)
    return name


def _named(name: str, estimate: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Give a function the name that certificates say."""
    estimate.__name__ = name
    return estimate


def numbers_of(option: str, text: str) -> Array:
    """Return numbers that were separated by commas."""
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise InputError(f"{option} must be numbers separated by commas, got {text!r}") from None


def labels_of(parts: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the public labels of columns from ``column=label,label``."""
    found = {}
    for part in parts or ():
        name, _, rest = part.partition("=")
        labels = rest.split(",")
        if not all(labels) or len(set(labels)) < len(labels):
            raise InputError(f"--labels must be a column and its labels, such as town=Leeds,York, got {part!r}")
        found[name] = labels
    return found


def edges_of(edges: Sequence[str], labels: Mapping[str, Sequence[str]], columns: Sequence[str]) -> list[Array]:
    """Return the edges of each column's cells; labels are numbers from 0."""
    unknown = next((name for name in labels if name not in columns), None)
    if unknown is not None:
        raise InputError(f"--labels must be of columns that are taken ({', '.join(columns)}), got {unknown!r}")
    others = [name for name in columns if name not in labels]
    if len(edges) != len(others):
        raise InputError(
            f"--edges must be given once for each column ({', '.join(others)}), got {len(edges)}: they are public "
            "limits of the cells, never taken from the data"
        )
    numbers = (numbers_of("--edges", part) for part in edges)
    return [np.arange(len(labels[name]) + 1.0) if name in labels else next(numbers) for name in columns]


def with_outside(found: Numbers, cells: Histogram) -> Numbers:
    """Add a note on how many records a histogram leaves out, if it does."""
    outside = len(found.records) - round(float(cells(found.records).sum()))
    note = f"{outside} of {len(found.records)} records are in no cell of the histogram and count nowhere"
    return found._replace(notes=(*found.notes, note)) if outside else found


def _cells(edges: Sequence[Array]) -> Callable[[Array], Array]:
    from whosin.population import Histogram

    for part in edges:
        if len(part) < 2 or not (np.diff(part) > 0).all():
            raise InputError(f"--edges must be two or more rising numbers, got {', '.join(map(str, part))}")
    cells = Histogram(edges)
    return lambda records: cells(records).reshape(len(records), *cells.shape)


def _coefficients(records: Array) -> Array:
    design = np.column_stack([np.ones(len(records)), records[:, :-1]])
    return np.asarray(np.linalg.lstsq(design, records[:, -1], rcond=None)[0])
