"""What is estimated: a sum over records, a named statistic, a function, or a scikit-learn model.

A sum is understood: how far it moves when one record is replaced can be computed. The others are black boxes that are
trained on subsets. A black box turns the rows of a subset into an array of numbers, and the noisy array into what the
user gets back.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array, Flags
from whosin.errors import InputError, InputTypeError, check_callable
from whosin.protection.pool import LARGEST, Pool
from whosin.tables import numeric_records

STATISTICS = ("mean", "sum", "median", "cov")


@dataclass(frozen=True)
class SumQuery:
    """An estimate that is a sum, or a mean, over records: its noise is computed exactly, without retraining.

    Parameters
    ----------
    f : callable, optional
        From the records to an array with one row per record: what each adds. The records themselves by default.
    average : bool, default True
        Divide by the number of records drawn.
    name : str, optional
        What certificates call it; by default by the function, such as "mean of f".

    Examples
    --------
    The share of people above thirty, and their mean age:

    >>> import numpy as np, whosin as wi
    >>> ages = np.arange(20.0, 60.0)
    >>> query = wi.protection.SumQuery(lambda rows: np.column_stack([rows > 30, rows]))
    >>> release = wi.protect(query, ages, eta=0.05, split="relative")
    >>> release.value.shape, release.certificate.kind
    ((2,), 'computed exactly')
    """

    f: Callable[..., Any] | None = None
    average: bool = True
    name: str | None = None

    def __post_init__(self) -> None:
        if self.f is not None:
            check_callable("f", self.f)


class Estimate:
    """What is released: the numbers and the scales of their noise as they are, unless a kind arranges them anew."""

    name: str
    """What it is called in certificates."""

    def rebuild(self, value: Array) -> Any:
        """Return what the user gets for a noisy estimate: a number for a number, an array for an array."""
        return float(value) if value.ndim == 0 else value

    def arrange(self, scales: Array) -> Array:
        """Return the scales of the noise as the user sees the numbers."""
        return scales


class BlackBox(Estimate, ABC):
    """An estimator that is trained on subsets."""

    @abstractmethod
    def train(self, parts: tuple[Any, ...], rng: np.random.Generator) -> Any:
        """Return the estimate on these rows, an array of numbers."""


@dataclass(frozen=True)
class Function(BlackBox):
    """A function of the rows. If it has a parameter ``rng`` it is given a generator for its own randomness."""

    function: Callable[..., Any]
    name: str
    random: bool

    def train(self, parts: tuple[Any, ...], rng: np.random.Generator) -> Any:
        """Return the function's value."""
        return self.function(*parts, rng=rng) if self.random else self.function(*parts)


@dataclass(frozen=True)
class Covariance(BlackBox):
    """The covariance matrix: each of its d·(d+1)/2 numbers gets its noise once, so the release is symmetric too.

    With the noise it may have negative eigenvalues.
    """

    columns: int
    name: str = "cov"

    def train(self, parts: tuple[Any, ...], rng: np.random.Generator) -> Any:
        """Return the upper triangle, row by row, of the covariance with divisor k - 1."""
        if len(parts[0]) < 2:
            raise InputError("the covariance of 1 record is not defined: more must be drawn")
        matrix = np.cov(parts[0], rowvar=False)
        return matrix[np.triu_indices(self.columns)] if matrix.ndim else matrix

    def rebuild(self, value: Array) -> Any:
        """Return the matrix; a number for a single list of numbers."""
        return self.arrange(value) if value.ndim else float(value)

    def arrange(self, scales: Array) -> Array:
        """Return the upper triangle as a symmetric matrix."""
        if scales.ndim == 0:
            return scales
        matrix = np.zeros((self.columns, self.columns))
        matrix[np.triu_indices(self.columns)] = scales
        return np.asarray(matrix + np.triu(matrix, 1).T)


@dataclass(frozen=True)
class Sum(Estimate):
    """Contributions of all records, summed over the drawn ones."""

    contributions: Array
    average: bool | Flags
    """Whether the sum is divided by the number of records drawn: for all of it, or for each column."""
    name: str

    def of(self, contributions: Array) -> Array:
        """Return the sum or mean of these rows: each column added up exactly and rounded once.

        So the value depends on what was drawn alone, not on an order of adding. O(records drawn · columns).
        """
        count = len(contributions)
        sums = np.array([math.fsum(column) for column in contributions.reshape(count, -1).T])
        return np.asarray(sums / np.where(self.average, count, 1)).reshape(contributions.shape[1:])


def as_numbers(value: Any) -> Array | None:
    """Return the value as an array of floats; None where it is none, as for text, dates and complex numbers."""
    try:
        given = np.asarray(value)
        if value is None or given.dtype.kind not in "biufO":
            return None
        return np.asarray(given, dtype=np.float64)
    except Exception:
        return None


def as_estimator(estimator: Any, records: Any) -> tuple[Sum | BlackBox, Pool]:
    """Return the estimator as a sum or a black box, and the pool on which it works."""
    from whosin.protection.models import Model

    if isinstance(estimator, str):
        return _statistic(estimator, records)
    pool = Pool(records)
    if isinstance(estimator, SumQuery):
        return _sum(estimator, pool), pool
    if hasattr(estimator, "fit") and hasattr(estimator, "get_params"):
        return Model(estimator, pool), pool
    if isinstance(estimator, type) or not callable(estimator):
        raise InputTypeError(
            f"estimator must be one of {', '.join(STATISTICS)}, a SumQuery, a function or a scikit-learn estimator, "
            f"got {estimator!r}"
        )
    return Function(estimator, _name(estimator), _takes_rng(estimator)), pool


def _statistic(name: str, records: Any) -> tuple[Sum | BlackBox, Pool]:
    if name not in STATISTICS:
        raise InputError(f"estimator must be one of {', '.join(STATISTICS)} as text, got {name!r}")
    if isinstance(records, tuple):
        raise InputTypeError(f"records must be one array, list or data frame for {name!r}, got a tuple")
    matrix = numeric_records(records)
    rows = matrix[:, 0] if np.ndim(records) == 1 else matrix
    pool = Pool(rows)
    if name in ("mean", "sum"):
        return Sum(_summable(rows), name == "mean", name), pool
    return Function(_median, name, False) if name == "median" else Covariance(matrix.shape[1]), pool


def _sum(query: SumQuery, pool: Pool) -> Sum:
    given = pool.parts[0] if query.f is None and not pool.aligned else None
    if given is None and query.f is None:
        raise InputTypeError("SumQuery needs a function f for aligned parts such as (X, y)")
    if query.f is not None:
        given = query.f(*pool.parts)
    elif hasattr(given, "columns"):
        given = numeric_records(given)
    contributions = as_numbers(given)
    if contributions is None:
        raise InputTypeError(f"f must be a function that returns numbers, got {type(given).__name__}")
    if contributions.ndim == 0 or len(contributions) != len(pool):
        raise InputError(f"f must have one row per record ({len(pool)}), got an array of shape {contributions.shape}")
    if contributions.size == 0:
        raise InputError(f"f must have at least one number per record, got an array of shape {contributions.shape}")
    flat = contributions.reshape(len(pool), -1)
    bad = ~np.isfinite(flat).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"f must hold finite numbers, got {flat[row].tolist()} at record {row} ({int(bad.sum())} such)"
        )
    called = "values" if query.f is None else _name(query.f)
    name = query.name or f"{'mean' if query.average else 'sum'} of {called}"
    return Sum(_summable(contributions), query.average, name)


def _summable(contributions: Array) -> Array:
    """Refuse numbers whose sum may overflow."""
    largest, limit = float(np.abs(contributions).max()), LARGEST / len(contributions)
    if largest > limit:
        raise InputError(f"records must hold numbers up to {limit:g} to be summed, got {largest:g}")
    return contributions


def _median(rows: Array) -> Array:
    return np.asarray(np.median(rows, axis=0))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _takes_rng(function: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
