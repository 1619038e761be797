"""Practical membership privacy of a noisy sum in any dimension: a sampled bound that groups data sets.

The data set D is a uniform k-subset of N records and Σ_{i∈D} f_i plus noise is released. Draw K pairs (D_i, D_i') as in
:mod:`whosin.population.sums.pairwise`: D_i holds x, D_i' = D_i - x + x' does not. Let p_K and q_K be the mixtures of
the noise around the K sums of either side. Their means over the draw are the laws given in and given out, so by joint
convexity

    E_{e^ε}(in‖out) ≤ E[E_{e^ε}(p_K‖q_K)] = E[(1 - e^ε·q_K(y)/p_K(y))_+],  y drawn from p_K.

K = 1 is the pairwise bound; as K grows the right side falls to the true divergence. One draw of the group and of y
gives a sample in [0, 1], whose mean has an empirical-Bernstein upper limit (:mod:`whosin.numerics.bounded_means`).

*Why no price is paid for searching ε.* The grid runs from the deterministic pairwise ε down to 0 and is fixed before
any draw. Going down it, stop at the first ε whose limit exceeds δ. The result is too small only if the search passed
the largest grid point whose true divergence exceeds δ; that one point is determined by the pool alone, and its limit is
too small with probability at most β. With β = (1 - confidence_level)/(2·records) for each record and direction all the
results hold together, by the union bound; records whose pairwise ε is 0 need no draws and do not count.

*How subsets are drawn.* Within a group only the law of each pair counts, so the K subsets may depend on one another. A
group takes one random permutation of the pool, cuts r·c of its records into r rows of c (r the smaller of k and N - k),
gathers the rows into B bundles, and picks for each subset and bundle one of the c columns; the picked records, or the
others if k > N/2, are the subset. For every fixed choice of columns it is a uniform k-subset, and its sum is a sum of B
out of B·c vectors known beforehand. All records are judged on the same subsets: one with x in it plays D_i and
exchanges x for a random outsider, one without x plays D_i' and exchanges a random member for x.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array, Flags, Indices
from whosin.errors import check_choice, check_confidence, check_number, check_probability, check_rng, check_whole
from whosin.numerics.bounded_means import empirical_bernstein_upper
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal, check_seeded
from whosin.parallel.tasks import stream
from whosin.parallel.threads import Progress, number_of_threads
from whosin.population.sums.pairwise import NOISES, check_pool, check_records, pairwise_epsilons

_GRID = 1024
_CELLS = 256
"""Most bundles times columns of a group."""

_BATCH = 2**22
"""Numbers held at a time, about."""

_LARGEST = 300.0
"""Largest ε tried below the pairwise one."""

_UNIT = 2.0**-53
_ROUNDING = 1e-9
"""Room for the rounding of likelihood ratios and their means."""


def group_epsilons(
    f: ArrayLike,
    k: int,
    scale: float,
    delta: float,
    *,
    groups: int = 64,
    draws: int = 20_000,
    confidence_level: float = 0.95,
    records: ArrayLike | None = None,
    noise: str = "gaussian",
    rng: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> tuple[Array, Array]:
    """Return upper limits on the smallest ε of each record, which hold together at a level, and estimates.

    Parameters
    ----------
    f : array_like, shape (N,) or (N, d)
        What each record adds to the sum.
    k : int
        How many records are drawn, 1 ≤ k < N.
    scale : float
        Standard deviation of Gaussian noise in each coordinate, or s of noise with density ∝ exp(-‖x‖/s), Euclidean.
    delta : float
        In [0, 1]. Limits stay at the pairwise ones where δ is below about 7·ln(4·records/(1 - level))/(3·draws).
    groups : int
        K, the number of pairs in a group: more come closer to the truth.
    draws : int
        Independent groups, one sample each.
    confidence_level : float
        Probability, at least, with which all the upper limits hold.
    records : array_like of int, optional
        Which records to judge; all of them if not given. Their number widens the limits by its logarithm only.
    rng : optional
        Seed or numpy generator. A seed gives the same numbers for every number of processes, whatever runs beside.
    n_jobs : int, optional
        Processes, -1 for all cores; None means one. With a backend of other machines (Dask, Ray) the draws go there.
    journal : path, optional
        A file that keeps the finished batches of draws, some 21 bytes a record and draw. A run that was interrupted
        resumes from it with the same ``rng``, which must be given.

    Returns
    -------
    upper, estimate : ndarray
        The upper limits are never above the pairwise bound. The estimates are those of the K-group bound itself, above
        the truth on average.

    Notes
    -----
    O(draws·(N + 256·K)·d) for the subsets and O(draws·K·d) for each record. Draws and grid are fixed beforehand.
    """
    pool = check_pool(f)
    chosen = check_records(records, len(pool))
    k = check_whole("k", k, low=1, high=len(pool) - 1)
    scale = check_number("scale", scale, low=0.0, open_low=True, open_high=True)
    delta = check_probability("delta", delta)
    level = check_confidence(confidence_level)
    top = pairwise_epsilons(pool, scale, delta, noise=noise, records=chosen)
    check_seeded(journal, rng)
    plan = _Plan(
        pool=(pool - pool.mean(axis=0)) / scale,
        k=k,
        groups=check_whole("groups", groups, low=1),
        draws=check_whole("draws", draws, low=2),
        noise=check_choice("noise", noise, NOISES),
    )
    number_of_threads(n_jobs)  # refused here if it makes no sense
    generator = check_rng(rng)
    open_ = np.flatnonzero((top > 0.0) & np.isfinite(top)) if delta < 1.0 else np.zeros(0, dtype=np.int64)
    upper, estimate = top.copy(), top.copy()
    if len(open_):
        log_term = math.log(4.0 * len(open_) / (1.0 - level))
        ratios = _ratios(_Batches(plan, chosen[open_]), generator, n_jobs, progress, journal)
        for row, both in zip(open_, ratios, strict=True):
            upper[row], estimate[row] = _search(both, float(top[row]), delta, log_term, plan.shift)
    elif progress is not None:
        progress(1.0)
    return upper, estimate


def _search(both: Array, top: float, delta: float, log_term: float, shift: float) -> tuple[float, float]:
    """Limit and estimate of a record from its likelihood ratios (direction, draw): the worse of the directions."""
    grid = np.linspace(0.0, min(top, _LARGEST), _GRID + 1)
    grid[-1] = top
    rounding = _ROUNDING + (1.0 + np.exp(np.minimum(grid, _LARGEST))) * shift
    upper, estimate = 0.0, 0.0
    for ratios in both:
        mean, variance = _moments(ratios, grid)
        limit = empirical_bernstein_upper(mean, variance, len(ratios), log_term) + rounding
        upper = max(upper, _last_below(grid, limit, delta))
        estimate = max(estimate, _last_below(grid, mean, delta))
    return upper, estimate


def _last_below(grid: Array, values: Array, delta: float) -> float:
    """Going down the grid from its top, which needs no proof, the last point before the first value above δ."""
    above = np.flatnonzero(values[:-1] > delta)
    return float(grid[above[-1] + 1]) if len(above) else float(grid[0])


def _moments(ratios: Array, grid: Array) -> tuple[Array, Array]:
    """Mean and unbiased variance of (1 - e^ε·ratio)_+ at each ε, from sums over the sorted ratios below e^{-ε}."""
    n = len(ratios)
    ratios = np.sort(ratios)
    first, second = (np.concatenate([[0.0], np.cumsum(ratios**power)]) for power in (1, 2))
    gamma = np.exp(np.minimum(grid, _LARGEST))
    below = np.searchsorted(ratios, 1.0 / gamma)
    total = below - gamma * first[below]
    squares = below - 2.0 * gamma * first[below] + gamma**2 * second[below]
    variance = (squares - total**2 / n) / (n - 1)
    return np.maximum(total / n, 0.0), np.maximum(variance, 0.0) * (1.0 + 1e-9) + 8.0 * _UNIT * n


# ---------------------------------------------------------------------------------------------------------------------
# Draws


@dataclass(frozen=True)
class _Plan:
    """The pool in noise scales and what is drawn from it."""

    pool: Array
    k: int
    groups: int
    draws: int
    noise: str

    @property
    def rows(self) -> int:
        """Records that a subset picks; the subset is made of the others if k > N/2."""
        return min(self.k, len(self.pool) - self.k)

    @property
    def columns(self) -> int:
        """Records among which each row picks one."""
        return min(len(self.pool) // self.rows, _CELLS)

    @property
    def bundles(self) -> int:
        """Groups of rows that pick the same column."""
        return max(1, min(self.rows, _CELLS // self.columns))

    @property
    def shift(self) -> float:
        """How far rounding may move a sum, which moves its noise by no more than that in total variation."""
        norms = np.sort(np.linalg.norm(self.pool, axis=1))
        additions = self.rows / self.bundles + self.bundles + 10.0
        whole = np.linalg.norm(self.pool.sum(axis=0))
        return float(_UNIT * (additions * norms[-self.rows :].sum() + 2.0 * whole))


@dataclass(frozen=True)
class _Batch:
    """Some groups: the sums of their subsets, of what a swap makes of them, and who is in."""

    sums: Array
    less: Array
    more: Array
    position: Indices
    picked: NDArray[np.int16]
    component: Indices
    shock: Array


@dataclass(frozen=True)
class _Batches:
    """The tasks: a batch of draws each, from a seed of its own."""

    plan: _Plan
    chosen: Indices

    @property
    def size(self) -> int:
        """Draws of a batch."""
        n, d = self.plan.pool.shape
        return max(1, _BATCH // int(n * (d + 3) + self.plan.groups * (_CELLS // 2 + 6 * d)))

    def __call__(self, job: tuple[int, int]) -> Array:
        """q_K(y)/p_K(y) for each record, direction and draw of a batch."""
        count, seed = job
        batch = _draw(self.plan, count, np.random.default_rng(seed))
        return np.stack([_record_ratios(self.plan, batch, int(record)) for record in self.chosen])


def _ratios(
    batches: _Batches,
    generator: np.random.Generator,
    n_jobs: int | None,
    progress: Progress | None,
    journal: str | os.PathLike[str] | None,
) -> Array:
    """q_K(y)/p_K(y) for each record, direction and draw."""
    draws, size = batches.plan.draws, batches.size
    starts = range(0, draws, size)
    seeds = [int.from_bytes(generator.bytes(16), "little") for _ in starts]
    jobs = [(min(size, draws - start), seed) for start, seed in zip(starts, seeds, strict=True)]
    book = None if journal is None else Journal(journal, fingerprint("groups", batches, _CELLS, jobs))
    ratios, done = np.empty((len(batches.chosen), 2, draws)), 0
    with contextlib.closing(stream(batches, jobs, n_jobs=n_jobs, journal=book)) as found:
        for number, part in found:
            start = starts[number]
            ratios[:, :, start : start + part.shape[2]] = part
            done += part.shape[2]
            if progress is not None:
                progress(done / draws)
    return ratios


def _draw(plan: _Plan, count: int, rng: np.random.Generator) -> _Batch:
    """Groups of subsets, each with one random member and one random outsider to exchange."""
    n, d = plan.pool.shape
    r, c, b = plan.rows, plan.columns, plan.bundles
    order = rng.permuted(np.broadcast_to(np.arange(n), (count, n)), axis=1)
    picked = rng.integers(0, c, (count, plan.groups, b), dtype=np.int16)
    bundle = np.arange(r) * b // r
    cells = plan.pool[order[:, : r * c]].reshape(count, c, r, d)
    cells = np.add.reduceat(cells, np.searchsorted(bundle, np.arange(b)), axis=2)
    one_hot = (picked[:, :, None, :] == np.arange(c)[:, None]).reshape(count, plan.groups, c * b)
    sums = one_hot.astype(np.float64) @ cells.reshape(count, c * b, d)
    swaps = [plan.pool[who(plan, order, picked, rng)] for who in (_picked_one, _other_one)]
    if plan.k != r:
        sums, swaps = plan.pool.sum(axis=0) - sums, swaps[::-1]
    position = np.empty_like(order)
    np.put_along_axis(position, order, np.broadcast_to(np.arange(n), (count, n)), axis=1)
    return _Batch(
        sums=sums,
        less=sums - swaps[0],
        more=sums + swaps[1],
        position=position,
        picked=picked,
        component=rng.integers(0, plan.groups, count),
        shock=_shocks(plan, count, rng),
    )


def _choices(plan: _Plan, picked: NDArray[np.int16], row: Indices) -> Indices:
    """The column that each subset picks in its row."""
    return np.take_along_axis(picked, (row * plan.bundles // plan.rows)[:, :, None], axis=2)[:, :, 0].astype(np.int64)


def _picked_one(plan: _Plan, order: Indices, picked: NDArray[np.int16], rng: np.random.Generator) -> Indices:
    """A random one of the picked records, for each subset."""
    row = rng.integers(0, plan.rows, picked.shape[:2])
    return np.take_along_axis(order, _choices(plan, picked, row) * plan.rows + row, axis=1)


def _other_one(plan: _Plan, order: Indices, picked: NDArray[np.int16], rng: np.random.Generator) -> Indices:
    """A random one of the records that are not picked, for each subset: in a row, or among those left over."""
    r, c = plan.rows, plan.columns
    number = rng.integers(0, len(plan.pool) - r, picked.shape[:2])
    row, column = number % r, number // r
    column = column + (column >= _choices(plan, picked, row))
    place = np.where(number < r * (c - 1), column * r + row, number + r)
    return np.take_along_axis(order, place, axis=1)


def _shocks(plan: _Plan, count: int, rng: np.random.Generator) -> Array:
    """Noise of unit scale: normal, or with density ∝ exp(-‖x‖)."""
    d = plan.pool.shape[1]
    normal = rng.standard_normal((count, d))
    if plan.noise == "gaussian":
        return normal
    radius = rng.standard_gamma(d, (count, 1))
    return np.asarray(radius * normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _record_ratios(plan: _Plan, batch: _Batch, record: int) -> Array:
    """The ratios of a record in both directions, shape (2, draws of the batch)."""
    own, inside = plan.pool[record], _membership(plan, batch, record)[:, :, None]
    with_it = np.where(inside, batch.sums, batch.less + own)
    without = np.where(inside, batch.more - own, batch.sums)
    draw = np.arange(len(with_it))
    ratios = np.empty((2, len(draw)))
    for direction, (mine, other) in enumerate(((with_it, without), (without, with_it))):
        y = (mine[draw, batch.component] + batch.shock)[:, None, :]
        ratios[direction] = np.exp(_log_mixture(y - other, plan.noise) - _log_mixture(y - mine, plan.noise))
    return ratios


def _membership(plan: _Plan, batch: _Batch, record: int) -> Flags:
    """Whether the record is in each subset, shape (draws, groups)."""
    place = batch.position[:, record]
    column, row = place // plan.rows, place % plan.rows
    bundle = np.broadcast_to((row * plan.bundles // plan.rows)[:, None, None], (*batch.picked.shape[:2], 1))
    picked = np.take_along_axis(batch.picked, bundle, axis=2)[:, :, 0]
    chosen = picked == column[:, None]  # never for those left over, whose column is beyond the last
    return np.asarray(chosen if plan.k == plan.rows else ~chosen)


def _log_mixture(away: Array, noise: str) -> Array:
    """Logarithm of the sum of the noise's densities at these distances (draws, groups, d), up to a constant."""
    squared = np.einsum("gkd,gkd->gk", away, away)
    logs = -0.5 * squared if noise == "gaussian" else -np.sqrt(squared)
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))
