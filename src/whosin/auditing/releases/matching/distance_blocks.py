"""Squared Euclidean distances of blocks of pairs by matrix products, with a bound on what rounding leaves in doubt.

Squared distances ‖x‖² + ‖y‖² - 2·x·y of all pairs of a block come from one matrix product in single precision, after
the mean of the references is taken off and everything is divided by a power of two near the largest number. With u the
unit roundoff and d coordinates, such a number is off by at most c·(‖x‖² + ‖y‖²), c = (2.1·d + 30)·u: the sum of d + 1
products in any order (Higham 2002, section 3.1) by 1.01·(d + 1)·u·(2·|x|·|y| + ‖y‖²), the rounding of coordinates, of
norms and of the evaluation below by less than 30·u. Whatever lies within that error of the answer is evaluated again,
coordinate by coordinate in double precision on the numbers as given, and that evaluation decides. Where single
precision leaves many pairs in doubt (tight clusters far apart), the product is repeated in double precision first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array, Flags, Index, Indices
from whosin.errors import InputError
from whosin.parallel.threads import Progress, run_tasks

_ROWS = 256
"""Points of a task."""

_WIDTH = 4096
"""Most references of a block."""

_NUMBERS = 2**22
"""Most numbers of a block of references, and of the pairs evaluated at a time, about."""

_DOUBTFUL = 64
"""From this many pairs in doubt for one point and block on, double precision narrows them down first."""

_LARGEST = 1e290


@dataclass(frozen=True)
class Data:
    """Points and references as given, the mean of the references, and a power of two that makes the largest about 1."""

    points: NDArray[Any]
    references: NDArray[Any]
    centre: Array
    factor: float

    @classmethod
    def of(cls, points: ArrayLike, references: ArrayLike) -> Data:
        x, y = _checked("points", points), _checked("references", references)
        largest = max(abs(float(end)) for end in (x.min(), x.max(), y.min(), y.max()))
        centre: Array = y.mean(axis=0, dtype=np.float64)
        return cls(x, y, centre, 2.0 ** -max(math.frexp(largest)[1], -1000))

    @property
    def dimension(self) -> int:
        """How many coordinates there are."""
        return int(self.points.shape[1])

    def centred(self, table: NDArray[Any]) -> Array:
        """Points around the mean, scaled."""
        moved: Array = table.astype(np.float64)
        moved -= self.centre
        moved *= self.factor
        return moved

    def scaled_radii(self, radii: Array) -> Array:
        """Radii, scaled, and cut where they reach everything anyway: no scaled distance comes near 1e15."""
        return np.minimum(radii, 1e15 / self.factor) * self.factor

    def squares(self, rows: Indices, places: Indices) -> Array:
        """Squared scaled distances of pairs, coordinate by coordinate."""
        result = np.empty(len(rows))
        step = max(_NUMBERS // (2 * self.dimension), 1)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            apart = self.points[rows[part]].astype(np.float64)
            apart -= self.references[places[part]]
            apart *= self.factor
            apart *= apart
            result[part] = apart.sum(axis=1)
        return result


@dataclass(frozen=True)
class Products:
    """Squared distances of some points from a block, up to a number for each point and to rounding.

    ``low + short`` is at most the squared distance plus ``tiny``, ``low + tall`` at least that distance minus ``tiny``.
    """

    low: NDArray[Any]
    short: Array
    tall: Array
    tiny: float

    def reach(self, squares: Array, smallest: Index) -> Flags:
        """Which points may have a squared distance of at most this, given where ``low`` is smallest."""
        least = self.low[np.arange(len(self.low)), smallest]
        return np.asarray(least <= self._limits(squares - self.short + self.tiny, np.inf))

    def within(self, squares: Array) -> Flags:
        """Which pairs may be within a squared distance."""
        return np.asarray(self.low <= self._limits(squares - self.short + self.tiny, np.inf)[:, None])

    def surely_within(self, squares: Array) -> Flags:
        """Which pairs are within a squared distance without a doubt."""
        return np.asarray(self.low <= self._limits(squares - self.tall - self.tiny, -np.inf)[:, None])

    def _limits(self, values: Array, towards: float) -> NDArray[Any]:
        limits = values.astype(self.low.dtype)
        return np.asarray(np.nextafter(limits, np.asarray(towards, dtype=limits.dtype)))


class Block:
    """Some references, centred and scaled, ready for products in either precision."""

    def __init__(self, data: Data, start: int, stop: int) -> None:
        self.start, self.stop, self.data = start, stop, data
        self.table = data.centred(data.references[start:stop])
        self.norms = np.einsum("ij,ij->i", self.table, self.table)
        self._single = self._augmented(np.float32)

    def products(self, points: Array, dtype: Any) -> Products:
        """Compare centred points with the block."""
        error = self._error(dtype)
        norms = np.einsum("ij,ij->i", points, points)
        left = np.ones((len(points), points.shape[1] + 1), dtype=dtype)
        left[:, :-1] = points
        low = left @ (self._single if dtype is np.float32 else self._augmented(dtype)).T
        tall = norms * (1.0 + error) + 2.0 * error * float(self.norms.max())
        tiny = points.shape[1] * (1e-37 if dtype is np.float32 else 1e-300)
        return Products(low, norms * (1.0 - error), tall, tiny)

    def _error(self, dtype: Any) -> float:
        steps = 2.1 * self.data.dimension + 30.0
        return float(steps * (np.finfo(dtype).eps / 2.0 + 2.0**-53))

    def _augmented(self, dtype: Any) -> NDArray[Any]:
        table = np.empty((len(self.table), self.table.shape[1] + 1), dtype=dtype)
        table[:, :-1] = -2.0 * self.table
        table[:, -1] = self.norms * (1.0 - self._error(dtype))
        return table


def sweep(
    data: Data,
    sizes: tuple[int, ...],
    work: Callable[[Block, slice], None],
    keep: Callable[[int], None],
    threads: int,
    progress: Progress | None,
) -> None:
    """Do the work for every block of references up to the largest size, and keep what there is at every size."""
    chunks = [slice(start, min(start + _ROWS, len(data.points))) for start in range(0, len(data.points), _ROWS)]
    width = min(max(_NUMBERS // data.dimension, _ROWS), _WIDTH)
    finished = 0
    start = 0
    with _one_blas_thread() if threads > 1 else nullcontext():
        for place, size in enumerate(sizes):
            while start < size:
                block = Block(data, start, min(start + width, size))

                def done(pairs: int = block.stop - block.start) -> None:
                    nonlocal finished
                    finished += pairs
                    if progress is not None:
                        progress(min(finished / (sizes[-1] * len(chunks)), 1.0))

                run_tasks([partial(work, block, rows) for rows in chunks], threads, done)
                start = block.stop
            keep(place)


def _one_blas_thread() -> AbstractContextManager[Any]:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits


class Doubt(NamedTuple):
    """Pairs (row of the points, index of the reference) to evaluate, and how many of each point are surely within."""

    rows: Indices
    places: Indices
    sure: Indices


def find_doubt(block: Block, points: Array, products: Products, squares: Array, *, count_sure: bool) -> Doubt:
    """Find the pairs that may be within the squared distances, but for those that surely are if these are counted."""

    def judge(table: Products, limits: Array) -> tuple[Flags, Indices]:
        within = table.within(limits)
        if not count_sure:
            return within, np.zeros(len(limits), dtype=np.int64)
        sure = table.surely_within(limits)
        within ^= sure
        return within, _row_counts(sure)

    mask, sure = judge(products, squares)
    rows, places = np.divmod(np.flatnonzero(mask), mask.shape[1])
    many = np.flatnonzero(np.bincount(rows) > _DOUBTFUL)
    if len(many):
        mask[many], sure[many] = judge(block.products(points[many], np.float64), squares[many])
        rows, places = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return Doubt(rows, block.start + places, sure)


def _row_counts(mask: Flags) -> Indices:
    """How many entries of each row hold; a call for each row is quicker here than one along an axis."""
    return np.fromiter(map(np.count_nonzero, mask), dtype=np.int64, count=len(mask))


def _checked(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array (rows, coordinates) as given, of numbers whose squares are floats."""
    table = np.asarray(values)
    table = table[:, None] if table.ndim == 1 else table
    if not max(abs(float(table.min())), abs(float(table.max()))) <= _LARGEST:
        row = int(np.flatnonzero(~(np.abs(table) <= _LARGEST).all(axis=1))[0])
        raise InputError(
            f"{name} must hold finite numbers of at most {_LARGEST:g} in size, got {table[row]} in row {row}"
        )
    return table
