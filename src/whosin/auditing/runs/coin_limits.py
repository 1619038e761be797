"""Limits over trainings whose coins were tossed independently, for attacks that were learned on earlier trainings.

The trainings are independent, the units of one training are not: a mechanism that releases all coins, or all of them
turned over by one hidden coin, guesses everything or nothing. So the sample size of a statement about trainings is the
number of trainings. With fair coins and guesses made from the release and from earlier trainings:

*Typical training.* If the success X of a training exceeds c with chance at most ρ, whatever came before, then the
number of trainings where it does is at most Binomial(n, ρ): an order statistic is an exact limit, and no price is paid
for the range of X, as nothing is averaged.

*Mean.* If E[X_t | past] ≤ m for all t, X in [-1, 1], the capital Π(1 - c_t + c_t(1+X_t)/(1+m)) of a gambler who sets
c_t in [0, 1) beforehand is a supermartingale, and reaches 1/α with chance at most α (Ville). It falls in m, so that
bisection is exact. If all X_t are x, the limit is (1+x)α^{1/n} - 1 at best, and no valid limit is larger.

*One unit.* It is guessed right with chance (1+a)/2 given the past, where a is at most its best advantage: the number of
right guesses is at most binomial, and Clopper and Pearson's limit holds.
"""

from __future__ import annotations

import math

import numpy as np

from whosin.arrays import Array
from whosin.numerics.roots import largest_holding

STAKES = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99])


def typical(values: Array, alpha: float, share: float = 0.5) -> float:
    """Return c such that more than ``share`` of all trainings have a value of at least c; -inf where too few were seen.

    The k-th smallest value, k the largest number with P(Binomial(n, 1 - share) ≤ k - 1) ≤ α. Misses with chance at most
    α. Of values with the sign changed, minus the answer is the upper limit that goes with it.
    """
    from scipy.special import bdtr

    ordered = np.sort(values)
    below = bdtr(np.arange(len(ordered)), len(ordered), 1.0 - share)
    k = int(np.sum(below <= alpha))
    return float(ordered[k - 1]) if k else -math.inf


def mean_at_least(values: Array, alpha: float, pilot: Array) -> float:
    """Return a lower limit on the largest mean, given the past, of values in [-1, 1]; ``pilot`` chooses the stakes."""
    stakes = np.array([_stake(np.append(pilot, values[:t]), len(values), alpha) for t in range(len(values))])
    wanted = math.log(1.0 / alpha)

    def rich(m: float) -> bool:
        return bool(np.cumsum(np.log(1.0 - stakes + stakes * (1.0 + values) / (1.0 + m))).max() >= wanted)

    lowest = -1.0 + 1e-9
    return largest_holding(rich, lowest, 1.0, tolerance=1e-9) if rich(lowest) else -1.0


def _stake(past: Array, draws: int, alpha: float) -> float:
    """Return the stake that would have given the highest limit on so many values like those of the past."""
    low, high = np.full(len(STAKES), -1.0), np.full(len(STAKES), 1.0)
    for _ in range(30):
        middle = 0.5 * (low + high)
        gains = np.log(1.0 - STAKES[:, None] + STAKES[:, None] * (1.0 + past) / (1.0 + middle[:, None])).mean(axis=1)
        good = draws * gains >= math.log(1.0 / alpha)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return float(STAKES[int(np.argmax(low))])
