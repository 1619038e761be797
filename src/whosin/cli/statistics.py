"""Statistics that ``whosin protect`` releases by name, beyond those of the library: all need public cells or places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError

__all__ = ["NAMES", "statistics_of"]

Array = NDArray[np.float64]

NAMES = ("count", "histogram", "quantiles", "regression")


def statistics_of(
    names: Sequence[str], edges: Sequence[str] | None, quantiles: str | None, columns: Sequence[str]
) -> Any:
    """Return what :func:`whosin.protect` takes for a statistic by name, or for several; other names pass.

    count: rows in which each column is not 0. histogram: rows in each cell between public edges, of several columns the
    contingency table of all their cells; values outside the edges count in no cell. quantiles: of each column.
    regression: intercept and coefficients of the last column on the others, by least squares.
    """
    for option, value, use in (("--edges", edges, "histogram"), ("--quantiles", quantiles, "quantiles")):
        if (value is not None) != (use in names):
            raise InputTypeError(f"{option} goes with --statistic {use}, and --statistic {use} with {option}")
    if len(set(names)) < len(names):
        raise InputError(f"--statistic must name each statistic once, got {', '.join(names)}")
    found = {name: _statistic(name, edges, quantiles, columns) for name in names}
    return found if len(names) > 1 else found[names[0]]


def _statistic(name: str, edges: Sequence[str] | None, quantiles: str | None, columns: Sequence[str]) -> Any:
    from whosin.protection import SumQuery

    if name == "count":
        return SumQuery(lambda records: (records != 0).astype(float), average=False)
    if name == "histogram":
        return SumQuery(_cells([_numbers("--edges", part) for part in edges or ()], columns), average=False)
    if name == "quantiles":
        levels = _numbers("--quantiles", quantiles or "")
        if ((levels < 0) | (levels > 1)).any():
            raise InputError(f"--quantiles must be numbers from 0 to 1, got {quantiles}")
        return lambda records: np.quantile(records, levels, axis=0)
    if name == "regression":
        if len(columns) < 2:
            raise InputError(f"--statistic regression must have two columns or more, got {', '.join(columns)}")
        return _coefficients
    return name


def _numbers(option: str, text: str) -> Array:
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
