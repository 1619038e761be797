"""Statistics that ``whosin protect`` releases by name, beyond those of the library: all need public cells or places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError

Array = NDArray[np.float64]

NAMES = ("count", "histogram", "quantiles", "regression")
_EXAMPLES = {"--edges": "0,18,65,120 (public limits of the cells)", "--quantiles": "0.25,0.5,0.75"}


def statistics_of(
    names: Sequence[str], edges: Sequence[str] | None, quantiles: str | None, columns: Sequence[str]
) -> Any:
    """Return what :func:`whosin.protect` takes for a statistic by name, or for several; other names pass.

    count: rows in which each column is not 0. histogram: rows in each cell between public edges, of several columns the
    contingency table of all their cells; values outside the edges count in no cell. quantiles: of each column.
    regression: intercept and coefficients of the last column on the others, by least squares.
    """
    from whosin.protection.estimators import STATISTICS

    for option, value, use in (("--edges", edges, "histogram"), ("--quantiles", quantiles, "quantiles")):
        if value is None and use in names:
            raise InputTypeError(f"--statistic {use} needs {option}, such as {_EXAMPLES[option]}")
        if value is not None and use not in names:
            raise InputTypeError(f"{option} goes with --statistic {use}")
    unknown = next((name for name in names if name not in (*STATISTICS, *NAMES)), None)
    if unknown is not None:
        raise InputError(f"--statistic must be one of {', '.join((*STATISTICS, *NAMES))}, got {unknown!r}")
    if len(set(names)) < len(names):
        raise InputError(f"--statistic must name each statistic once, got {', '.join(names)}")
    found = {name: _statistic(name, edges, quantiles, columns) for name in names}
    return found if len(names) > 1 else found[names[0]]


def _statistic(name: str, edges: Sequence[str] | None, quantiles: str | None, columns: Sequence[str]) -> Any:
    from whosin.protection import SumQuery

    if name == "count":
        return SumQuery(lambda records: (records != 0).astype(float), False, "count of cells that are not 0")
    if name == "histogram":
        return SumQuery(_cells([numbers_of("--edges", part) for part in edges or ()], columns), False, name)
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


def _cells(edges: Sequence[Array], columns: Sequence[str]) -> Callable[[Array], Array]:
    from whosin.population import Histogram

    if len(edges) != len(columns):
        raise InputError(
            f"--edges must be given once for each column ({', '.join(columns)}), got {len(edges)}: they are public "
            "limits of the cells, never taken from the data"
        )
    for part in edges:
        if len(part) < 2 or not (np.diff(part) > 0).all():
            raise InputError(f"--edges must be two or more rising numbers, got {', '.join(map(str, part))}")
    cells = Histogram(edges)
    return lambda records: cells(records).reshape(len(records), *cells.shape)


def _coefficients(records: Array) -> Array:
    design = np.column_stack([np.ones(len(records)), records[:, :-1]])
    return np.asarray(np.linalg.lstsq(design, records[:, -1], rcond=None)[0])
