"""A lower limit of the best gain sup_t (u·P(s > t) - v·Q(s > t)) over all thresholds of one score, from all records.

The score was fixed before the records were seen; no record is set aside. The score is cut at fixed ranks of the
non-members, and the statistic M is the largest ordering S (`differences.newcombe`) over the cuts. If no threshold gains
more than a, then members are, on the scale of the false positive rate, stochastically behind max(0, (u·U - a)/v) with U
uniform: one least favourable law for every a. Under it M reaches m just when u·U_(c_g) - v·V_(y_g+1) < a at some cut g,
with order statistics of two independent uniform samples and c_g the smallest count of members whose ordering is m. So

    L(m) = sup{a : P(min_g [u·U_(c_g) - v·V_(y_g+1)] < a) <= α}

is above the truth with chance at most α, for every number of records. Proof in `docs/theory.md`, section 18.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from whosin.compute.differences import Weights, first_counts, newcombe

__all__ = ["scan_lower", "scan_statistic", "scan_z"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_OFFSET = 0.6
"""Standard errors added to those of the level: more finds small clean groups, less finds weak shifts."""
_TOO_MANY = 1e-6
"""Chance, over the seed, that the drawn quantile is above the true one."""
_EXPECTED = 400
"""Draws expected below the true quantile; the level that is used is then about 0.76 of the one allowed."""
_BLOCK = 8192
_GRID = 2.0**-13
_CUTS = 30


def scan_z(alpha: float) -> float:
    """Return the standard errors at which the cuts of a scan at level ``alpha`` are ordered."""
    from scipy.special import ndtri

    return max(0.0, -float(ndtri(alpha))) + _OFFSET


def scan_statistic(members: Array, non_members: Array, z: float, weights: Weights = (1.0, 1.0)) -> float:
    """Return the largest ordering over the cuts; high scores are accused, ties count against the attack.

    O(n log n). Both samples need a record.
    """
    n1, n2 = len(members), len(non_members)
    ranks = _ranks(n2)
    cuts = np.sort(non_members)[::-1][ranks]
    above = n1 - np.searchsorted(np.sort(members), cuts, side="right")
    return float(newcombe(above, n1, ranks, n2, z, weights).max())


def scan_lower(
    statistic: float, members: int, non_members: int, alpha: float, z: float, weights: Weights = (1.0, 1.0)
) -> float:
    """Return the lower limit of the best gain for a value of `scan_statistic` with the same ``z`` and weights.

    -v where a side has no record. The quantile is drawn with a fixed seed, so the answer is a function of the data,
    and a lower order statistic is taken than the one expected: the level is exceeded with chance 10⁻⁶ over the seed.
    The statistic is rounded down to a grid, which is safe. O(1/α), whatever the number of records.
    """
    if members == 0 or non_members == 0:
        return -weights[1]
    return _limit(math.floor(statistic / _GRID), members, non_members, alpha, z, weights)


@functools.lru_cache(maxsize=1024)
def _limit(step: int, n1: int, n2: int, alpha: float, z: float, weights: Weights) -> float:
    ranks = _ranks(n2)
    needed = first_counts(step * _GRID, n1, ranks, n2, z, weights)
    ranks, needed = ranks[needed <= n1], needed[needed <= n1]
    if needed[0] <= 0:
        return -weights[1]
    draws = math.ceil(_EXPECTED / alpha)
    rng = np.random.default_rng(13)
    least = np.empty(draws)
    for start in range(0, draws, _BLOCK):
        size = min(_BLOCK, draws - start)
        gaps = weights[0] * _orders(rng, needed, n1, size) - weights[1] * _orders(rng, ranks + 1, n2, size)
        gaps.min(axis=1, out=least[start : start + size])
    kept = _safe_rank(draws, alpha)
    return float(np.partition(least, kept - 1)[kept - 1]) if kept else -weights[1]


def _orders(rng: np.random.Generator, ranks: Counts, n: int, size: int) -> Array:
    """Return order statistics of n uniform numbers at these ranks: partial sums of gamma spacings."""
    kept, back = np.unique(ranks, return_inverse=True)
    spacings = np.diff(np.concatenate([[0], kept, [n + 1]]))
    sums = np.cumsum(rng.standard_gamma(spacings, (size, len(spacings))), axis=1)
    return np.asarray((sums[:, :-1] / sums[:, -1:])[:, back])


def _safe_rank(draws: int, alpha: float) -> int:
    """Return the largest k such that the k-th smallest draw is above the α-quantile with chance at most 10⁻⁶."""
    from scipy.special import betainc

    k = np.arange(1, math.ceil(alpha * draws) + 1)
    return int(np.sum(1.0 - betainc(k, draws - k + 1, alpha) <= _TOO_MANY))


def _ranks(n: int) -> Counts:
    """Return the numbers of non-members above each cut: all of them, or some that are dense at both ends."""
    if n <= _CUTS:
        return np.arange(n)
    ends = np.unique(np.round(np.geomspace(1, n / 2, _CUTS // 2)).astype(np.int64)) - 1
    return np.unique(np.concatenate([ends, n - 1 - ends]))
