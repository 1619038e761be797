"""Exact nearest neighbours and counts within a radius, Euclidean, by matrix products of blocks.

Squared distances ‖x‖² + ‖y‖² - 2·x·y of all pairs of a block come from one matrix product in single precision, after
the mean of the references is taken off and everything is divided by a power of two near the largest number. With u the
unit roundoff and d coordinates, such a number is off by at most c·(‖x‖² + ‖y‖²), c = (2.1·d + 30)·u: the sum of d + 1
products in any order (Higham 2002, section 3.1) by 1.01·(d + 1)·u·(2·|x|·|y| + ‖y‖²), the rounding of coordinates, of
norms and of the evaluation below by less than 30·u. Whatever lies within that error of the answer is evaluated again,
coordinate by coordinate in double precision on the numbers as given, and that evaluation decides. Where single
precision leaves many pairs in doubt (tight clusters far apart), the product is repeated in double precision first.

So the distances are those of the direct formula √Σ(x - y)² in double precision, and neighbours are nearest by it, of
equally near ones those of the lowest index. Distances below 1e-150 of the largest number may count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.compute.threads import Progress, check_prefixes, number_of_threads, run_tasks
from whosin.errors import InputError, InputTypeError, check_number, check_whole

__all__ = ["ball_log_sums", "counts_within", "nearest"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ROWS = 256
"""Points of a task."""

_WIDTH = 4096
"""Most references of a block."""

_NUMBERS = 2**22
"""Most numbers of a block of references, and of the pairs evaluated at a time, about."""

_DOUBTFUL = 64
"""From this many pairs in doubt for one point and block on, double precision narrows them down first."""

_LARGEST = 1e290
_LAST = 2**62


def nearest(
    points: ArrayLike,
    references: ArrayLike,
    *,
    k: int = 1,
    prefixes: Sequence[int] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Array, Indices]:
    """Return the distances to the k nearest references of each point, and their indices, the nearest first.

    Parameters
    ----------
    points, references : array_like, shape (N, d) and (M, d), or (N,) and (M,)
        Finite numbers. Single precision and whole numbers stay as they are and are not copied.
    k : int
        From 1 to M.
    prefixes : sequence of int, optional
        Growing sizes of at least k. The answers are then those among the first so many references.
    n_jobs : int, optional
        Threads, as in joblib. The answers do not depend on it.
    progress : callable, optional
        Called with the share of the work done.

    Returns
    -------
    distances, indices : ndarray, shape (N, k), or (N, prefixes, k) with prefixes

    Notes
    -----
    O(N·M·d) time, about 0.03 ns for each factor of it plus 1 ns a pair on one core; O((N + M)·log M) for d = 1 = k.
    References that come many times, all nearest, are all evaluated. Memory beyond the input: about 200 MiB at most.
    """
    data = _Data.of(points, references)
    k = check_whole("k", k, low=1, high=len(data.references))
    sizes = check_prefixes(prefixes, len(data.references)) or (len(data.references),)
    if sizes[0] < k:
        raise InputError(f"prefixes takes sizes of at least k = {k}, got {sizes[0]}")
    shape = (len(data.points), len(sizes), k)
    distances, indices = np.empty(shape), np.empty(shape, dtype=np.int64)
    if data.dimension == 1 and k == 1:
        for place, size in enumerate(sizes):
            distances[:, place, 0], indices[:, place, 0] = _nearest_on_a_line(data.points, data.references[:size])
    else:
        squares, found = np.full((shape[0], k), np.inf), np.full((shape[0], k), _LAST, dtype=np.int64)

        def work(block: _Block, rows: slice) -> None:
            _improve(data, block, rows, squares[rows], found[rows])

        def keep(place: int) -> None:
            distances[:, place], indices[:, place] = np.sqrt(squares) / data.factor, found

        _sweep(data, sizes, work, keep, number_of_threads(n_jobs), progress)
    return (distances, indices) if prefixes is not None else (distances[:, 0], indices[:, 0])


def counts_within(
    points: ArrayLike,
    references: ArrayLike,
    radii: ArrayLike,
    *,
    prefixes: Sequence[int] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Indices:
    """Return how many references lie within each radius of each point, at a distance of at most the radius.

    Divided by the number of references this is the Monte-Carlo query of Hilprecht et al. (2019), the share of synthetic
    records in the ε-ball around a record; their median heuristic sets ε to the median over the records of the distance
    to the nearest synthetic record, which :func:`nearest` gives.

    Parameters are those of :func:`nearest`; ``radii`` is a number or a list of numbers of at least 0. Returns an array
    (N, radii), or (N, prefixes, radii) with prefixes. O(N·M·d) time and about 1 ns a pair and radius on one core.
    """
    data, limits = _Data.of(points, references), _radii(radii)
    sizes = check_prefixes(prefixes, len(data.references)) or (len(data.references),)
    counts = np.zeros((len(data.points), len(limits)), dtype=np.int64)
    kept = np.zeros((len(data.points), len(sizes), len(limits)), dtype=np.int64)

    def work(block: _Block, rows: slice) -> None:
        counts[rows] += _count(data, block, rows, limits * data.factor)

    def keep(place: int) -> None:
        kept[:, place] = counts

    _sweep(data, sizes, work, keep, number_of_threads(n_jobs), progress)
    return kept if prefixes is not None else kept[:, 0]


def ball_log_sums(
    points: ArrayLike,
    references: ArrayLike,
    radii: ArrayLike,
    *,
    floor: float = 0.0,
    prefixes: Sequence[int] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Return -Σ ln(distance) over the references within each radius of each point.

    Divided by the number of references this is the query of Hilprecht et al. (2019) that weighs by distance, equation 1
    of Xu et al. (2022). Distances below ``floor`` count as ``floor``; with 0 the sum is infinite where a reference
    equals the point. Takes and returns what :func:`counts_within` does. Every pair within a radius is evaluated again:
    O(d) for each in numpy, some 30 times the cost of a pair in the matrix product.
    """
    data, limits = _Data.of(points, references), _radii(radii)
    floor = check_number("floor", floor, low=0.0, open_high=True)
    sizes = check_prefixes(prefixes, len(data.references)) or (len(data.references),)
    sums = np.zeros((len(data.points), len(limits)))
    kept = np.zeros((len(data.points), len(sizes), len(limits)))

    def work(block: _Block, rows: slice) -> None:
        sums[rows] += _log_sums(data, block, rows, limits, floor)

    def keep(place: int) -> None:
        kept[:, place] = sums

    _sweep(data, sizes, work, keep, number_of_threads(n_jobs), progress)
    return kept if prefixes is not None else kept[:, 0]


# ---------------------------------------------------------------------------------------------------------------------
# The data, and blocks of it


@dataclass(frozen=True)
class _Data:
    """Points and references as given, the mean of the references, and a power of two that makes the largest about 1."""

    points: NDArray[Any]
    references: NDArray[Any]
    centre: Array
    factor: float

    @classmethod
    def of(cls, points: ArrayLike, references: ArrayLike) -> _Data:
        x, y = _checked("points", points), _checked("references", references)
        if x.shape[1] != y.shape[1]:
            raise InputError(f"references takes as many columns as points, {x.shape[1]}, got {y.shape[1]}")
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
class _Products:
    """Squared distances of some points from a block, up to a number for each point and to rounding.

    ``low + short`` is at most the squared distance plus ``tiny``, ``low + tall`` at least that distance minus ``tiny``.
    """

    low: NDArray[Any]
    short: Array
    tall: Array
    tiny: float

    def reach(self, squares: Array, smallest: NDArray[np.intp]) -> Mask:
        """Which points may have a squared distance of at most this, given where ``low`` is smallest."""
        least = self.low[np.arange(len(self.low)), smallest]
        return np.asarray(least <= self._limits(squares - self.short + self.tiny, np.inf))

    def within(self, squares: Array) -> Mask:
        """Which pairs may be within a squared distance."""
        return np.asarray(self.low <= self._limits(squares - self.short + self.tiny, np.inf)[:, None])

    def surely_within(self, squares: Array) -> Mask:
        """Which pairs are within a squared distance without a doubt."""
        return np.asarray(self.low <= self._limits(squares - self.tall - self.tiny, -np.inf)[:, None])

    def _limits(self, values: Array, towards: float) -> NDArray[Any]:
        limits = values.astype(self.low.dtype)
        return np.asarray(np.nextafter(limits, np.asarray(towards, dtype=limits.dtype)))


class _Block:
    """Some references, centred and scaled, ready for products in either precision."""

    def __init__(self, data: _Data, start: int, stop: int) -> None:
        self.start, self.stop, self.data = start, stop, data
        self.table = data.centred(data.references[start:stop])
        self.norms = np.einsum("ij,ij->i", self.table, self.table)
        self._single = self._augmented(np.float32)

    def products(self, points: Array, dtype: Any) -> _Products:
        """Compare centred points with the block."""
        error = self._error(dtype)
        norms = np.einsum("ij,ij->i", points, points)
        left = np.ones((len(points), points.shape[1] + 1), dtype=dtype)
        left[:, :-1] = points
        low = left @ (self._single if dtype is np.float32 else self._augmented(dtype)).T
        tall = norms * (1.0 + error) + 2.0 * error * float(self.norms.max())
        tiny = points.shape[1] * (1e-37 if dtype is np.float32 else 1e-300)
        return _Products(low, norms * (1.0 - error), tall, tiny)

    def _error(self, dtype: Any) -> float:
        steps = 2.1 * self.data.dimension + 30.0
        return float(steps * (np.finfo(dtype).eps / 2.0 + 2.0**-53))

    def _augmented(self, dtype: Any) -> NDArray[Any]:
        table = np.empty((len(self.table), self.table.shape[1] + 1), dtype=dtype)
        table[:, :-1] = -2.0 * self.table
        table[:, -1] = self.norms * (1.0 - self._error(dtype))
        return table


def _sweep(
    data: _Data,
    sizes: tuple[int, ...],
    work: Callable[[_Block, slice], None],
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
                block = _Block(data, start, min(start + width, size))

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


# ---------------------------------------------------------------------------------------------------------------------
# What is done with a block


class _Doubt(NamedTuple):
    """Pairs (row of the points, index of the reference) to evaluate, and how many of each point are surely within."""

    rows: Indices
    places: Indices
    sure: Indices


def _doubt(block: _Block, points: Array, products: _Products, squares: Array, *, count_sure: bool) -> _Doubt:
    """Find the pairs that may be within the squared distances, but for those that surely are if these are counted."""

    def judge(table: _Products, limits: Array) -> tuple[Mask, Indices]:
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
    return _Doubt(rows, block.start + places, sure)


def _row_counts(mask: Mask) -> Indices:
    """How many entries of each row hold; a call for each row is quicker here than one along an axis."""
    return np.fromiter(map(np.count_nonzero, mask), dtype=np.int64, count=len(mask))


def _near_the_smallest(table: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Places of k entries in each row, the smallest ones or nearly so: the smallest of pieces of the row."""
    pieces = 16 * k
    width = table.shape[1] // pieces
    if width < 16:
        return np.argpartition(table, k - 1, axis=1)[:, :k]
    cut = table[:, : pieces * width].reshape(len(table), pieces, width)
    places = cut.argmin(axis=2)
    values = np.take_along_axis(cut, places[:, :, None], axis=2)[:, :, 0]
    chosen = np.argpartition(values, k - 1, axis=1)[:, :k]
    return np.asarray(chosen * width + np.take_along_axis(places, chosen, axis=1))


def _improve(data: _Data, block: _Block, rows: slice, squares: Array, found: Indices) -> None:
    """Merge the block into the k nearest so far of some points."""
    k = squares.shape[1]
    points = data.centred(data.points[rows])
    products = block.products(points, np.float32)
    smallest = products.low.argmin(axis=1)
    active = np.flatnonzero(products.reach(squares[:, -1], smallest))
    if len(active) == 0:
        return
    limits = np.full(len(points), -np.inf)
    limits[active] = squares[active, -1]
    if k <= products.low.shape[1]:
        low = products.low if len(active) == len(points) else products.low[active]
        guess = smallest[active] if k == 1 else _near_the_smallest(low, k).ravel()
        guessed = data.squares(np.repeat(rows.start + active, k), block.start + guess)
        limits[active] = np.minimum(limits[active], guessed.reshape(-1, k).max(axis=1))
    doubt = _doubt(block, points, products, limits, count_sure=False)
    exact = data.squares(rows.start + doubt.rows, doubt.places)

    owner = np.concatenate([np.repeat(active, k), doubt.rows])
    values = np.concatenate([squares[active].ravel(), exact])
    places = np.concatenate([found[active].ravel(), doubt.places])
    order = np.lexsort((places, values, owner))
    first = np.searchsorted(owner[order], active)
    best = order[first[:, None] + np.arange(k)]
    squares[active], found[active] = values[best], places[best]


def _count(data: _Data, block: _Block, rows: slice, radii: Array) -> Indices:
    """How many references of the block lie within each scaled radius of some points."""
    points = data.centred(data.points[rows])
    products = block.products(points, np.float32)
    counts = np.empty((len(points), len(radii)), dtype=np.int64)
    for place, radius in enumerate(radii):
        doubt = _doubt(block, points, products, np.full(len(points), radius**2), count_sure=True)
        inside = np.sqrt(data.squares(rows.start + doubt.rows, doubt.places)) <= radius
        counts[:, place] = doubt.sure + np.bincount(doubt.rows[inside], minlength=len(points))
    return counts


def _log_sums(data: _Data, block: _Block, rows: slice, radii: Array, floor: float) -> Array:
    """-Σ ln(distance) over the references of the block within each radius of some points."""
    points = data.centred(data.points[rows])
    products = block.products(points, np.float32)
    outer = np.full(len(points), float(radii.max() * data.factor) ** 2)
    doubt = _doubt(block, points, products, outer, count_sure=False)
    distances = np.sqrt(data.squares(rows.start + doubt.rows, doubt.places)) / data.factor
    with np.errstate(divide="ignore"):
        logs = -np.log(np.maximum(distances, floor))
    sums = np.empty((len(points), len(radii)))
    for place, radius in enumerate(radii):
        inside = distances <= radius
        sums[:, place] = np.bincount(doubt.rows[inside], weights=logs[inside], minlength=len(points))
    return sums


def _nearest_on_a_line(points: NDArray[Any], references: NDArray[Any]) -> tuple[Array, Indices]:
    """One coordinate: the neighbours in sorted order, and among all values at the same distance the lowest index.

    Distances are rounded, so that values that differ may be equally near; they are neighbours of each other, and a
    bisection on either side finds the last of them.
    """
    x = points[:, 0].astype(np.float64)
    values, first = np.unique(references[:, 0].astype(np.float64), return_index=True)
    right = np.searchsorted(values, x).clip(0, len(values) - 1)
    left = (right - 1).clip(0)
    distances = np.minimum(np.abs(x - values[left]), np.abs(values[right] - x))

    def last(start: Indices, stop: int, step: int) -> Indices:
        """The farthest from ``start`` towards ``stop`` that is not farther than ``distances``."""
        near, far = start.copy(), np.full(len(x), stop)
        while np.any(far - near != step):
            middle = np.where(far - near == step, near, (near + far) // 2 if step > 0 else -((-near - far) // 2))
            holds = np.abs(values[middle] - x) <= distances
            near, far = np.where(holds, middle, near), np.where(holds, far, middle)
        return near

    nearer = np.where(np.abs(x - values[left]) <= distances, left, right)
    ends = np.stack([last(nearer, -1, -1), last(nearer, len(values), 1) + 1], axis=1)
    padded = np.append(first, _LAST)
    return distances, np.minimum.reduceat(padded, ends.ravel())[::2]


def _radii(radii: ArrayLike) -> Array:
    limits = np.atleast_1d(np.asarray(radii))
    if limits.dtype.kind not in "iuf":
        raise InputTypeError(f"radii takes a number or a list of numbers, got {radii!r}")
    if limits.ndim != 1 or len(limits) == 0 or not np.all(limits >= 0.0) or np.any(np.isinf(limits)):
        raise InputError(f"radii takes one or more finite numbers of at least 0, got {radii!r}")
    return limits.astype(np.float64)


def _checked(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array (rows, coordinates) of finite numbers, as given."""
    table = np.asarray(values)
    if table.dtype.kind not in "iuf":
        raise InputTypeError(f"{name} takes an array of numbers, (N,) or (N, d), got {table.dtype}")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(f"{name} takes an array of shape (N,) or (N, d) with at least one number, got {table.shape}")
    if not max(abs(float(table.min())), abs(float(table.max()))) <= _LARGEST:
        row = int(np.flatnonzero(~(np.abs(table) <= _LARGEST).all(axis=1))[0])
        raise InputError(f"{name} takes finite numbers of at most {_LARGEST:g} in size, got {table[row]} in row {row}")
    return table
