"""What people release of a table as noisy sums: histograms, contingency tables and the moments of a regression.

A query turns the records into contributions, one row each; the release is their mean with noise. ``reach`` is the
largest ℓ2 norm of a contribution and ``width`` the largest distance between two of them, both known without the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.errors import InputError, check_number

__all__ = ["Histogram", "RegressionMoments"]


MOST_CELLS = 10**5


@dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of the records in the cells between public edges; of several columns, the contingency table of all cells.

    A record is in one cell, or in none if a value is outside the edges: its contribution has length 1 at most, and two
    contributions are at most √2 apart.

    Parameters
    ----------
    edges : sequence of numbers, or one such sequence for each column
        Two or more rising numbers, fixed without the data. A cell holds its lower edge and not its upper one.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> ages = np.linspace(18, 90, 60)
    >>> query = wi.population.Histogram([0, 30, 60, 120])
    >>> query(ages[:, None]).sum(axis=0).tolist()
    [10.0, 25.0, 25.0]
    >>> found = wi.population.gaussian(ages, epsilon=4, delta=0.05, query=query, method="pairwise")
    >>> round(found.dp.accuracy(), 3), round(found.pmp.accuracy(), 3)
    (0.983, 0.98)
    """

    edges: tuple[Array, ...]

    def __init__(self, edges: ArrayLike | Sequence[ArrayLike]) -> None:
        parts = list(edges) if isinstance(edges, Sequence | np.ndarray) else [edges]
        several = bool(parts) and all(np.ndim(part) == 1 for part in parts)
        try:
            rows = tuple(np.asarray(part, dtype=np.float64) for part in (parts if several else [parts]))
        except (TypeError, ValueError):
            raise InputError(f"edges must be rising numbers, or such a list for each column, got {edges!r}") from None
        for row in rows:
            if row.ndim != 1 or len(row) < 2 or not (np.diff(row) > 0.0).all():
                raise InputError(f"edges must be two or more rising numbers for each column, got {row.tolist()!r}")
        object.__setattr__(self, "edges", rows)
        if math.prod(self.shape) > MOST_CELLS:
            raise InputError(f"edges must make at most {MOST_CELLS} cells, got {math.prod(self.shape)}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of each column."""
        return tuple(len(row) - 1 for row in self.edges)

    @property
    def reach(self) -> float:
        return 1.0

    @property
    def width(self) -> float:
        return math.nextafter(math.sqrt(2.0), 2.0)

    def __call__(self, records: Array) -> Array:
        """Return a row of 0 and a 1 for each record."""
        if records.shape[1] != len(self.edges):
            raise InputError(f"edges must be given for each of {records.shape[1]} columns, got {len(self.edges)}")
        found = np.zeros((len(records), math.prod(self.shape)))
        places = [
            np.searchsorted(row, column, side="right") - 1 for row, column in zip(self.edges, records.T, strict=True)
        ]
        inside = np.all([(at >= 0) & (at < size) for at, size in zip(places, self.shape, strict=True)], axis=0)
        cells = np.ravel_multi_index([at[inside] for at in places], self.shape)
        found[np.flatnonzero(inside), cells] = 1.0
        return found


@dataclass(frozen=True)
class RegressionMoments:
    """Moments from which a least-squares regression of the last column on the others is computed.

    With z = (1, x, y) the contribution is z·zᵀ, each pair once and those off the diagonal times √2, so that its length
    is ‖z‖². Records are scaled down to ‖(x, y)‖ ≤ ``bound`` first, a public number; so a contribution has a length of
    at most 1 + bound². The inner product of two contributions is (z·z')² ≥ 0, so they are at most √2 times that apart.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 2))
    >>> query = wi.population.RegressionMoments(bound=3.0)
    >>> query(rows).shape
    (200, 6)
    >>> found = wi.population.gaussian(rows, epsilon=8, delta=1e-3, query=query, method="pairwise")
    >>> found.pmp.epsilon < 6
    True
    """

    bound: float

    def __post_init__(self) -> None:
        check_number("bound", self.bound, low=0.0, open_low=True, open_high=True)

    @property
    def reach(self) -> float:
        return (1.0 + self.bound**2) * (1.0 + 2.0**-40)

    @property
    def width(self) -> float:
        return math.sqrt(2.0) * self.reach * (1.0 + 2.0**-40)

    def __call__(self, records: Array) -> Array:
        """Return one row of products for each record."""
        if records.shape[1] < 2:
            raise InputError(f"records must have two columns or more for a regression, got {records.shape[1]}")
        norms = np.linalg.norm(records, axis=1, keepdims=True)
        short = records * np.minimum(1.0, self.bound / np.maximum(norms, np.finfo(np.float64).tiny))
        z = np.column_stack([np.ones(len(short)), short])
        first, second = np.triu_indices(z.shape[1])
        return np.asarray(z[:, first] * z[:, second] * np.where(first == second, 1.0, math.sqrt(2.0)))
