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
from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array, Counts
from whosin.errors import InputError
from whosin.numerics.differences import Weights, first_counts, newcombe
from whosin.numerics.proportions import clopper_pearson_upper

_OFFSET = 1.0
"""Standard errors added to those of the level: more finds small clean groups, less finds weak shifts."""
_CUTS = 24
"""About how many cuts; 60 find no more."""
_GRID = 2.0**-16
"""Statistics are rounded down to multiples, so that answers can be kept."""
_DRAWS = 4096
"""Draws for one value of the limit."""
_CELLS = 128
"""Cells of the order statistic of non-members, at each cut."""
_CLOSE = 0.06
"""Share of the level that may stay unused for want of further steps."""
_SMALLEST = 1e-300
_TOO_FEW = 1e-7
"""Chance, over the seed, that the chance of one value of the limit is estimated too low."""


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

    -v where a side has no record. The chance in the definition of L is estimated from draws with fixed seeds, so the
    answer is a function of the data, and an upper limit of the estimate is held against ``alpha``: over the seeds, the
    level is exceeded with chance at most 10⁻⁶. The statistic is rounded down to a grid, which is safe. The cost is
    that of some ten thousand draws, whatever the level and the number of records.
    """
    if members == 0 or non_members == 0:
        return -weights[1]
    return _limit(math.floor(statistic / _GRID), members, non_members, alpha, z, weights)


@functools.lru_cache(maxsize=1024)
def _limit(step: int, n1: int, n2: int, alpha: float, z: float, weights: Weights) -> float:
    """Return the largest a found, by secants on the logarithm, at which the chance is shown to be at most α."""
    ranks = _ranks(n2)
    needed = first_counts(step * _GRID, n1, ranks, n2, z, weights)
    cuts = _Cuts(needed[needed <= n1], ranks[needed <= n1], n1, n2, weights, alpha)
    limit, a = -weights[1], step * _GRID
    if not len(cuts.needed):
        raise InputError("statistic must be a value of scan_statistic, got one that no sample has")
    if cuts.needed[0] <= 0:
        return limit
    slope = z / math.sqrt((weights[0] ** 2 / n1 + weights[1] ** 2 / n2) / 4)
    before: tuple[float, float] | None = None
    # Ten looks, each of which is too low with chance _TOO_FEW at most: more looks need a smaller _TOO_FEW.
    for seed in range(10):
        height = math.log(cuts.chance(a, np.random.default_rng(seed)) / alpha)
        if height <= 0:
            limit = max(limit, a)
        if -_CLOSE <= height <= 0:
            break
        if before is not None and abs(height - before[1]) > 10 * _CLOSE and a != before[0]:
            slope = max((height - before[1]) / (a - before[0]), slope / 10)
        before = a, height
        a -= (height + _CLOSE / 2) / slope
    return limit


@dataclass(frozen=True)
class _Cuts:
    """The events u·U_(needed) - v·V_(ranks + 1) < a, one for each cut."""

    needed: Counts
    ranks: Counts
    n1: int
    n2: int
    weights: Weights
    alpha: float

    def chance(self, a: float, rng: np.random.Generator) -> float:
        """Return an upper limit of the chance that one of the events happens.

        Owen, Maximov and Chertkov (2019): draw one event in proportion to its chance, then everything else given that
        it happens; the chance of the union is the sum of the chances times the mean of 1 / (number of events that
        happen). The event is drawn from a histogram above its density, and counted when it is under the density and a
        uniform number is below 1 / (number of events): a Clopper-Pearson limit holds for the count.
        """
        from scipy.special import betainc, betaincinv

        u, v = self.weights
        edges, below = self._histogram
        u1, u2 = self.needed[:, None], self.n1 + 1 - self.needed[:, None]
        heights = np.diff(below) * betainc(u1, u2, np.clip((a + v * edges[:, 1:]) / u, 0.0, 1.0))
        total = float(heights.sum())
        if total == 0.0:
            return _SMALLEST
        g, cell = np.divmod(rng.choice(heights.size, _DRAWS, p=heights.ravel() / total), heights.shape[1])
        rows = np.arange(_DRAWS)
        at = below[g, cell] + rng.random(_DRAWS) * (below[g, cell + 1] - below[g, cell])
        others = betaincinv(self.ranks[g] + 1, self.n2 - self.ranks[g], at)
        reach = betainc(self.needed[g], self.n1 + 1 - self.needed[g], np.clip((a + v * edges[g, cell + 1]) / u, 0, 1))
        own = betaincinv(self.needed[g], self.n1 + 1 - self.needed[g], rng.random(_DRAWS) * reach)
        all_own = _given(_orders(rng, self.needed, self.n1), rows, g, np.asarray(own, dtype=np.float64))
        all_others = _given(_orders(rng, self.ranks + 1, self.n2), rows, g, np.asarray(others, dtype=np.float64))
        # The event that was drawn has happened, also where rounding puts it on the border.
        events = np.maximum(1, np.count_nonzero(u * all_own - v * all_others < a, axis=1))
        counted = (u * own - v * others < a) & (rng.random(_DRAWS) * events < 1.0)
        share = clopper_pearson_upper(int(counted.sum()), _DRAWS, _TOO_FEW)
        return max(_SMALLEST, total * float(share) * (1.0 + 1e-9))

    @functools.cached_property
    def _histogram(self) -> tuple[Array, Array]:
        """Return the edges of cells of V_(ranks + 1), and its distribution function there."""
        from scipy.special import betainc, betaincinv

        k, others = self.ranks[:, None] + 1, self.n2 - self.ranks[:, None]
        ends = betaincinv(k, others, 1e-4 * self.alpha), 1.0 - betaincinv(others, k, 1e-4 * self.alpha)
        inner = ends[0] + (ends[1] - ends[0]) * np.linspace(0.0, 1.0, _CELLS + 1)
        edges = np.pad(inner, ((0, 0), (1, 1)), constant_values=((0, 0), (0.0, 1.0)))
        return edges, np.asarray(betainc(k, others, edges), dtype=np.float64)


def _orders(rng: np.random.Generator, ranks: Counts, n: int) -> Array:
    """Return draws of the order statistics of n uniform numbers at these ranks: partial sums of gamma spacings."""
    kept, back = np.unique(ranks, return_inverse=True)
    spacings = np.diff(np.concatenate([[0], kept, [n + 1]]))
    sums = np.cumsum(rng.standard_gamma(spacings, (_DRAWS, len(spacings))), axis=1)
    return np.asarray((sums[:, :-1] / sums[:, -1:])[:, back])


def _given(orders: Array, rows: Counts, columns: Counts, values: Array) -> Array:
    """Return the order statistics given that those in these columns have these values: both sides are stretched."""
    old, new = orders[rows, columns][:, None], values[:, None]
    return np.where(orders <= old, orders * (new / old), 1.0 - (1.0 - orders) * ((1.0 - new) / (1.0 - old)))


def _ranks(n: int) -> Counts:
    """Return the numbers of non-members above each cut: all of them, or some that are dense at both ends."""
    if n <= _CUTS:
        return np.arange(n)
    ends = np.unique(np.round(np.geomspace(1, n / 2, _CUTS // 2)).astype(np.int64)) - 1
    return np.unique(np.concatenate([ends, n - 1 - ends]))
