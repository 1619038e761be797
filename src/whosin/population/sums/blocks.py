"""Noisy sums with little noise: a bound against somebody who is told about everybody outside a block of the pool.

The normal approximation (:mod:`whosin.population.sums.normal`) says nothing where the noise is small against what the
records of a large pool add up to. Fewer records make it say something again. Fix a block B of n records with x among
them, and let the attacker know who outside B was drawn. By data processing that only helps him. Given that j of B were
drawn they are any j of them with the same chance, and j has the chance P(j) given x in and Q(j) given x out, so

    E_γ(in‖out) ≤ Σ_j P(j)·E_{γQ(j)/P(j)}(j of B drawn),   Q(j)/P(j) = (n-j)/j · k/(N-k),

and with P and Q exchanged in the other direction: the count is worth some 2/√n to the attacker, and what the others
would have hidden is lost. Counts far from their mean go in with a divergence of 1. For some counts together and all
blocks of the pool one error is computed, from the largest norms, and E_γ' is interpolated linearly in γ', of which it
is a convex function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.errors import check_probability
from whosin.numerics.gaussian_noise import epsilon_for
from whosin.numerics.roots import smallest_holding
from whosin.parallel.one_thread import one_thread
from whosin.population.sums.normal import (
    Error,
    Sizes,
    Whitened,
    covered,
    degrees,
    divergence,
    error_of,
    limits_of,
)
from whosin.population.sums.pairwise import check_pool, in_units

__all__ = ["block_epsilons"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

SMALLEST, LARGEST = 50, 500
"""Sizes of blocks that are tried, each half as large as the last."""
LEFT_OUT = 0.02
"""Share of δ that counts far from their mean may use."""
SHELLS = (1.0, 1.7, 2.4)
"""Counts are taken together by their distance to the mean, in standard deviations."""
CELL_RATIO = 1.1
"""Records with shifts within this factor are judged together."""
GRID = (0.0, 0.3, 0.6, 0.8, 0.9, 1.0, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 2.5, 3.5, 6.0)
"""Where E_γ' is bounded, in shares of the normal approximation with what the count tells."""


def block_epsilons(f: ArrayLike, k: int, scale: float, delta: float) -> Array:
    """Return for each record an upper limit on ε̃ at δ, infinite where this bound shows nothing.

    Parameters and units as for :func:`~whosin.population.sums.normal.normal_epsilons`. Deterministic.

    Notes
    -----
    The size of the blocks is the one that serves the record with the largest shift best, or the median one if none
    does. O(N·n·d) for each of some 3·√n counts and as many series: seconds for n = 100, a minute for n = 1,000.
    """
    pool, scale = in_units(check_pool(f), scale)
    delta = check_probability("delta", delta)
    count = len(pool)
    infinite = np.full(count, np.inf)
    if not 0.0 < delta < 1.0 or not 0 < k < count:
        return infinite
    with one_thread, np.errstate(over="ignore", invalid="ignore"):
        size = _best_size(pool / scale, k, delta)
        return infinite if size is None else _limits(pool / scale, k, size, delta)


def _blocks(pool: Array, size: int) -> list[Indices]:
    """Blocks of ``size`` records each that cover the pool, alike: dealt out by their distance to the mean."""
    order = np.argsort(-np.linalg.norm(pool - pool.mean(axis=0), axis=1), kind="stable")
    parts = len(pool) // size
    blocks = [order[start : start + parts * size : parts] for start in range(parts)]
    rest = order[parts * size :]
    return [*blocks, np.concatenate([rest, blocks[0][len(rest) :]])] if len(rest) else blocks


def _best_size(pool: Array, k: int, delta: float) -> int | None:
    """The size of blocks with the smallest limit for the record with the largest shift, or else for the median one."""
    count = len(pool)
    sizes, size = [], min(count // 2, LARGEST)
    while size >= min(SMALLEST, count // 2):
        sizes.append(size)
        size //= 2
    found: dict[int, Array] = {}
    for size in sizes:
        block, drawn = _blocks(pool, size)[0], round(size * k / count)
        if covered(size, drawn, pool.shape[1]):
            whitened = Whitened(pool[block], drawn)
            order = np.argsort(whitened.shifts)
            found[size] = limits_of(whitened, order[[-1, size // 2]], delta)
    for place in (0, 1):
        finite = {size: limits[place] for size, limits in found.items() if np.isfinite(limits[place])}
        if finite:
            return min(finite, key=lambda size: finite[size])
    return None


def counts_of(count: int, k: int, size: int, left_out: float) -> tuple[Indices, Array, Array, float]:
    """How many of a block are drawn: counts, their chances given one of it is in and given it is out, and what is left
    out of either, at most ``left_out``. Logarithms of factorials are rounded: all is raised by more than that."""
    from scipy.special import gammaln

    def log_ways(n: int, m: Any) -> Array:
        return np.asarray(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))

    j = np.arange(max(1, k - (count - size)), min(size - 1, k) + 1)
    inside = log_ways(size - 1, j - 1) + log_ways(count - size, k - j) - log_ways(count - 1, np.array(k - 1))
    outside = log_ways(size - 1, j) + log_ways(count - size, k - j) - log_ways(count - 1, np.array(k))
    p, q = np.exp(inside), np.exp(outside)
    rounding = 1e-8 + 2.0**-48 * float(gammaln(count + 1))
    middle = int(np.argmax(p + q))
    width = 0
    while True:
        low, high = max(0, middle - width), min(len(j), middle + width + 1)
        left = 1.0 - min(p[low:high].sum(), q[low:high].sum()) + rounding
        if left <= left_out or high - low == len(j):
            return j[low:high], p[low:high] * (1.0 + rounding), q[low:high] * (1.0 + rounding), left
        width += 1


def _limits(pool: Array, k: int, size: int, delta: float) -> Array:
    """Limits of all records, each in its block."""
    limits = np.full(len(pool), np.inf)
    counts, inside, outside, left = counts_of(len(pool), k, size, LEFT_OUT * delta)
    if left > 0.5 * delta or not all(covered(size, int(j), pool.shape[1]) for j in counts):
        return limits
    off = np.abs(counts - inside @ counts / inside.sum())
    shells = np.digitize(off / math.sqrt(inside @ off**2 / inside.sum()), SHELLS)
    errors: list[Error | None] = []
    shifts = np.stack([np.full(len(pool), np.inf), np.zeros(len(pool))])
    for shell in range(shells.max() + 1):
        errors.append(_shared_error(pool, _blocks(pool, size), counts[shells == shell], shifts))
    ratios = np.log((size - counts) / counts * (k / (len(pool) - k)))
    told = math.sqrt(inside @ ratios**2)
    low, high = shifts[0] * (1.0 - 1e-7), shifts[1] * (1.0 + 1e-9)
    floor = max(float(high.max()) / 8.0, 1e-12)
    cells = np.ceil(np.log(np.maximum(high, floor) / floor) / math.log(CELL_RATIO) - 1e-9).astype(np.int64)
    for cell in np.unique(cells):
        rows = cells == cell
        laws = _Laws(errors, float(low[rows].min()), float(high[rows].max()), told, delta)
        limits[rows] = laws.smallest(shells, ratios, inside, outside, left)
    return limits


def _shared_error(pool: Array, blocks: list[Indices], counts: Indices, shifts: Array) -> Error | None:
    """One error for all blocks and some counts, or None; ``shifts`` takes up the least and the largest."""
    error: Error | None = None
    for j in counts:
        joined: Sizes | None = None
        for block in blocks:
            whitened = Whitened(pool[block], int(j))
            sizes = whitened.sizes(np.arange(len(block)))
            joined = sizes if joined is None else joined.joined(sizes)
            shifts[0, block] = np.minimum(shifts[0, block], whitened.shifts)
            shifts[1, block] = np.maximum(shifts[1, block], whitened.shifts)
        assert joined is not None
        own = error_of(joined, degrees(joined)[0] if error is None else error.degree)
        if own is None:
            return None
        error = own if error is None else error.joined(own)
    return error


class _Laws:
    """Upper limits on E_γ for all shifts in [low, high], one curve for each shell of counts."""

    def __init__(self, errors: list[Error | None], low: float, high: float, told: float, delta: float) -> None:
        self.delta = delta
        self.epsilons = np.array(GRID) * (epsilon_for(1.0, delta, math.hypot(high, told)) + 0.05)
        self.curves = [
            np.ones(len(GRID))
            if error is None
            else np.minimum.accumulate([divergence(error, low, high, float(at), 0.0) for at in self.epsilons])
            for error in errors
        ]

    def _beyond(self, shell: int, gamma: Array) -> Array:
        """E_γ; below γ = 1 from E_{1/γ} in the other direction."""
        above = np.interp(np.maximum(gamma, 1.0 / gamma), np.exp(self.epsilons), self.curves[shell]) * (1.0 + 1e-12)
        return np.where(gamma >= 1.0, above, 1.0 - gamma + gamma * above)

    def smallest(self, shells: Indices, ratios: Array, inside: Array, outside: Array, left: float) -> float:
        """The smallest ε found at which Σ_j P(j)·E_{γQ(j)/P(j)} ≤ δ in both directions."""

        def holds(epsilon: float) -> bool:
            for chances, turned in ((inside, ratios), (outside, -ratios)):
                total = left
                for shell in range(len(self.curves)):
                    own = shells == shell
                    total += float(np.sum(chances[own] * self._beyond(shell, np.exp(epsilon + turned[own]))))
                if total > self.delta:
                    return False
            return True

        top = float(self.epsilons[-1])
        return smallest_holding(holds, 0.0, top, tolerance=1e-4 * (1.0 + top)) if holds(top) else math.inf
