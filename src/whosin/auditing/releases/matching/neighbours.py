"""Exact nearest neighbours and counts within a radius, Euclidean.

Every pair is compared, by matrix products of blocks in single precision
(:mod:`whosin.auditing.releases.matching.distance_blocks`); what their rounding leaves in doubt is evaluated again,
coordinate by coordinate in double precision on the numbers as given.

So the distances are those of the direct formula √Σ(x - y)² in double precision, and neighbours are nearest by it, of
equally near ones those of the lowest index. Distances below 1e-150 of the largest number may count as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array, Index, Indices
from whosin.auditing.releases.matching.distance_blocks import Block, Data, find_doubt, sweep
from whosin.parallel.threads import Progress, check_prefixes, number_of_threads

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
    O(N·M·d) time, about 3 ns per pair and 0.05 ns per pair and coordinate on one core; O((N + M)·log M) for d = 1 = k.
    References that come many times, all nearest, are all evaluated, and so are far clusters so tight that not even
    double precision tells products apart; both are slow, and exact. Memory beyond the input: about 200 MiB at most.
    """
    data = Data.of(points, references)
    sizes = check_prefixes(prefixes, len(data.references)) or (len(data.references),)
    shape = (len(data.points), len(sizes), k)
    distances, indices = np.empty(shape), np.empty(shape, dtype=np.int64)
    if data.dimension == 1 and k == 1:
        for place, size in enumerate(sizes):
            distances[:, place, 0], indices[:, place, 0] = _nearest_on_a_line(data.points, data.references[:size])
    else:
        squares, found = np.full((shape[0], k), np.inf), np.full((shape[0], k), _LAST, dtype=np.int64)

        def work(block: Block, rows: slice) -> None:
            _improve(data, block, rows, squares[rows], found[rows])

        def keep(place: int) -> None:
            distances[:, place], indices[:, place] = np.sqrt(squares) / data.factor, found

        sweep(data, sizes, work, keep, number_of_threads(n_jobs), progress)
    return (distances, indices) if prefixes is not None else (distances[:, 0], indices[:, 0])


def counts_within(
    points: ArrayLike,
    references: ArrayLike,
    radii: ArrayLike,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Indices:
    """Return how many references lie within each radius of each point, at a distance of at most the radius.

    Divided by the number of references this is the Monte-Carlo query of Hilprecht et al. (2019), the share of synthetic
    records in the ε-ball around a record; their median heuristic sets ε to the median over the records of the distance
    to the nearest synthetic record, which :func:`nearest` gives.

    Parameters are those of :func:`nearest`; ``radii`` is a finite number of at least 0, or a list of these. Returns an
    array (N, radii). O(N·M·d) time, and 1 ns per pair and radius.
    """
    data = Data.of(points, references)
    scaled = data.scaled_radii(np.atleast_1d(np.asarray(radii, dtype=np.float64)))

    def part(block: Block, rows: slice) -> NDArray[Any]:
        return _count(data, block, rows, scaled)

    return _summed(data, len(scaled), part, n_jobs, progress).astype(np.int64)


def ball_log_sums(
    points: ArrayLike,
    references: ArrayLike,
    radii: ArrayLike,
    *,
    floor: float = 0.0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Return -Σ ln(distance) over the references within each radius of each point.

    Divided by the number of references this is the query of Hilprecht et al. (2019) that weighs by distance, equation 1
    of Xu et al. (2022). Distances below ``floor`` count as ``floor``; with 0 the sum is infinite where a reference
    equals the point. Takes and returns what :func:`counts_within` does. Every pair within a radius is evaluated again:
    O(d) for each in numpy, some 30 times the cost of a pair in the matrix product.
    """
    data, limits = Data.of(points, references), np.atleast_1d(np.asarray(radii, dtype=np.float64))

    def part(block: Block, rows: slice) -> NDArray[Any]:
        return _log_sums(data, block, rows, limits, floor)

    return _summed(data, len(limits), part, n_jobs, progress)


def _summed(
    data: Data,
    width: int,
    part: Callable[[Block, slice], NDArray[Any]],
    n_jobs: int | None,
    progress: Progress | None,
) -> Array:
    """Add up over all blocks of references what each says of some points, in ``width`` numbers a point."""
    sums = np.zeros((len(data.points), width))

    def work(block: Block, rows: slice) -> None:
        sums[rows] += part(block, rows)

    sweep(data, (len(data.references),), work, lambda _: None, number_of_threads(n_jobs), progress)
    return sums


def _near_the_smallest(table: NDArray[Any], k: int) -> Index:
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


def _improve(data: Data, block: Block, rows: slice, squares: Array, found: Indices) -> None:
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
    doubt = find_doubt(block, points, products, limits, count_sure=False)
    exact = data.squares(rows.start + doubt.rows, doubt.places)

    owner = np.concatenate([np.repeat(active, k), doubt.rows])
    values = np.concatenate([squares[active].ravel(), exact])
    places = np.concatenate([found[active].ravel(), doubt.places])
    order = np.lexsort((places, values, owner))
    first = np.searchsorted(owner[order], active)
    best = order[first[:, None] + np.arange(k)]
    squares[active], found[active] = values[best], places[best]


def _count(data: Data, block: Block, rows: slice, radii: Array) -> Indices:
    """How many references of the block lie within each scaled radius of some points."""
    points = data.centred(data.points[rows])
    products = block.products(points, np.float32)
    counts = np.empty((len(points), len(radii)), dtype=np.int64)
    for place, radius in enumerate(radii):
        doubt = find_doubt(block, points, products, np.full(len(points), radius**2), count_sure=True)
        inside = np.sqrt(data.squares(rows.start + doubt.rows, doubt.places)) <= radius
        counts[:, place] = doubt.sure + np.bincount(doubt.rows[inside], minlength=len(points))
    return counts


def _log_sums(data: Data, block: Block, rows: slice, radii: Array, floor: float) -> Array:
    """-Σ ln(distance) over the references of the block within each radius of some points."""
    points = data.centred(data.points[rows])
    products = block.products(points, np.float32)
    outer = np.full(len(points), float(data.scaled_radii(radii).max()) ** 2)
    doubt = find_doubt(block, points, products, outer, count_sure=False)
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
        while np.any(apart := far - near != step):
            middle = (near + far + (step < 0)) // 2
            holds = np.abs(values[np.where(apart, middle, near)] - x) <= distances
            near, far = np.where(apart & holds, middle, near), np.where(apart & ~holds, middle, far)
        return near

    nearer = np.where(np.abs(x - values[left]) <= distances, left, right)
    ends = np.stack([last(nearer, -1, -1), last(nearer, len(values), 1) + 1], axis=1)
    padded = np.append(first, _LAST)
    return distances, np.minimum.reduceat(padded, ends.ravel())[::2]
