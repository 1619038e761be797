"""From limits on θ and on the outcomes' probabilities to (ε̃, δ), rare outcomes included.

E_{e^ε}(P_in ‖ P_out) = Σ_w P(w)·φ(θ_xw), φ(t) = (e^t - e^ε)_+/(q·e^t + 1 - q), which rises with t; the reverse has -θ
and 1 - q. So limits t_xw on θ_xw and limits on the P(w) bound it. Outcomes too rare to be estimated have the averaged
range as t_xw (``caps``), and their P(w) enter as nested sums T_i of the i rarest, in an order that separate
draws decide: for weights c_1, …, c_j in that order and b_i = max_{i≤l≤j} c_l, Σ c_i P_i ≤ Σ b_i(T_i - T_{i-1}), which
rises with each T_i because the b_i fall. One limit for each sum, not for each outcome, keeps many rare outcomes cheap;
for a few of them, out of order, Σ c_i·(limit on P_i) may be smaller. All limits hold at once, so ε, j and the smaller
of both may be chosen after seeing them; no floor below which an outcome is rare has to be set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array, Index
from whosin.numerics.bounded_means import empirical_bernstein_lower, empirical_bernstein_upper
from whosin.population.exponential.draws import Sums
from whosin.population.exponential.limits import Ratios


@dataclass(frozen=True, eq=False)
class Probabilities:
    """What is known about the P(w).

    ``upper``, in order of ``ranking``, are limits on the P(w) themselves; ``masses`` the same, but for the first
    ``loose`` outcomes the rises of the limits on the nested sums.
    """

    ranking: Index
    estimate: Array
    lower: Array
    upper: Array
    masses: Array
    loose: int

    @classmethod
    def known(cls, chances: Array, ranking: Index) -> Probabilities:
        """Numbers that are taken as they are."""
        return cls(ranking, chances, chances, chances[ranking], chances[ranking], 0)

    @classmethod
    def of(cls, sums: Sums, ranking: Index, beta: float, slack: float) -> Probabilities:
        """All limits hold at once except with probability ``beta``: empirical Bernstein, three limits an outcome.

        Outcomes up to the last one that is not known to within a factor of two are taken together.
        """
        m = len(ranking)
        log_term = math.log(2.0 * 3.0 * m / beta)
        mean, variance, count = sums.mean, sums.variance + slack, int(sums.count)
        lower = np.maximum(0.0, empirical_bernstein_lower(mean[:m], variance[:m], count, log_term) - slack)
        upper = np.minimum(1.0, empirical_bernstein_upper(mean, variance, count, log_term) + slack)
        known, own = lower[ranking], upper[:m][ranking]
        nested = np.minimum(upper[m:], 1.0 - (known.sum() - np.cumsum(known)) + 2.0**-46)
        nested = np.minimum.accumulate(nested[::-1])[::-1]
        loose = int(np.max(np.flatnonzero(own > 2.0 * known), initial=-1)) + 1
        masses = np.concatenate([np.diff(nested[:loose], prepend=0.0), own[loose:]])
        return cls(ranking, mean[:m], lower, own, masses, loose)


def excess(ratios: Array, epsilon: Array, share: float, chances: Probabilities) -> Array:
    """Upper limit on E_{e^ε}(P_in ‖ P_out) per record; rows in order of the ranking."""
    over = np.minimum(np.minimum(epsilon, 1e300) - ratios, 0.0)
    weights = -np.expm1(over) / (share + (1.0 - share) * np.exp(-ratios))
    own = chances.upper @ weights
    rare = weights[: chances.loose]
    rare[:] = np.maximum.accumulate(rare[::-1], axis=0)[::-1]
    return np.asarray(np.minimum(own, chances.masses @ weights))


def both_excesses(ratios: Ratios, epsilon: Array, share: float, chances: Probabilities) -> Array:
    return np.maximum(excess(ratios.into, epsilon, share, chances), excess(ratios.out, epsilon, 1.0 - share, chances))


def smallest_epsilons(ratios: Ratios, delta: float, share: float, chances: Probabilities) -> Array:
    """Per record the smallest ε, from above, at which neither direction exceeds by more than δ. 44 steps of O(N·m)."""
    high = ratios.largest
    if delta == 0.0:
        return high
    target = delta * (1.0 - 2.0**-40)
    for start in range(0, len(high), 2**15):
        part = slice(start, start + 2**15)
        piece = Ratios(ratios.into[:, part], ratios.out[:, part])
        top, low = high[part], np.zeros(len(high[part]))
        top[both_excesses(piece, low, share, chances) <= target] = 0.0
        for _ in range(44):
            middle = 0.5 * (low + top)
            holds = both_excesses(piece, middle, share, chances) <= target
            top[holds] = middle[holds]
            low[~holds] = middle[~holds]
    return high
