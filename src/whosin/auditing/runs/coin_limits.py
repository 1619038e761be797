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

*A promise.* Under ε-DP (add/remove, independent coins) every guess is right with chance at most q = e^ε/(1+e^ε), given
the release and all earlier coins, so nr guesses in n trainings are dominated by Binomial(nr, q). Under (ε, δ)-DP the
chance of v right guesses rises by at most (1-q)·N·δ·Σ_{u<n} g(ur), g(k) being the largest probability of
Binomial(k, q): coin by coin, the i-th raises the tail by (1-q)·φ_i·g(guesses to come), φ_i having mean δ.

*Pairs.* Under replacement, members are matched with as many outsiders at random, without looking at the release: given
the pairs, which of the two is in is a fair coin of its own, also where exactly half of all units are in, and turning it
over replaces one unit. Single units of balanced halves are no such coins: with two units and randomised response both
guesses are right together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.runs import one_run_bound
from whosin.numerics.proportions import clopper_pearson_lower
from whosin.numerics.roots import largest_holding
from whosin.roc import Roc

__all__ = ["Guessed", "guess_counts", "guessed_pairs", "guessed_units", "mean_at_least", "pair_count", "typical"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STAKES = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99])
GRID = np.append(0.0, np.geomspace(1e-3, 50.0, 1000))
"""Values of ε that are looked at where δ > 0."""


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


def guess_counts(scores: Array, coins: Mask, trainings: int, alpha: float) -> tuple[int, int]:
    """Return how many units to guess in and out: what would show the largest ε in so many trainings like these."""
    order = np.argsort(scores, axis=1, kind="stable")
    sides = np.take_along_axis(coins, order, axis=1)
    hits_in = np.append(0, np.cumsum(sides[:, ::-1].mean(axis=0)))
    hits_out = np.append(0, np.cumsum((~sides).mean(axis=0)))
    half = max(1, coins.shape[1] // 2)
    sizes = np.unique(np.append(0, np.geomspace(1, half, 14).astype(np.int64)))
    a, b = (part.reshape(-1)[1:] for part in np.meshgrid(sizes, sizes, indexing="ij"))
    guesses = (a + b) * trainings
    right = np.minimum((hits_in[a] + hits_out[b]) * trainings, guesses - 1.0)
    best = int(np.argmax(clopper_pearson_lower(np.maximum(right, 0.0), guesses, alpha)))
    return int(a[best]), int(b[best])


@dataclass(frozen=True)
class Guessed:
    """Guesses in each training, how many were right, and about how many coins they could have been."""

    right: tuple[int, ...]
    guesses: tuple[int, ...]
    coins: tuple[int, ...]

    def p_value(self, epsilon: float, delta: float) -> float:
        """Return an upper limit on the chance of so many right guesses under (ε, δ)-DP.

        For δ > 0 the smallest limit of all larger ε, each of which is promised too; O(grid·trainings).
        """
        guesses, right = sum(self.guesses), sum(self.right)
        if delta == 0.0:
            return one_run_bound.p_value(guesses, guesses, right, epsilon, 0.0)
        return min(1.0, float(self._limits(epsilon + GRID, delta).min()))

    def epsilon_lower(self, delta: float, alpha: float) -> float:
        """Return the largest ε whose p-value is at most ``alpha``, from below; 0 if there is none."""
        if delta == 0.0:
            return one_run_bound.epsilon_lower(0, sum(self.guesses), sum(self.right), 0.0, alpha)
        refuted = GRID[self._limits(GRID, delta) <= alpha]
        return float(refuted.max(initial=0.0))

    def curve_p_value(self, promised: Roc) -> float:
        """Return Fisher's combination of the p-values of all trainings under a whole promised curve.

        Each of them is valid given the trainings before it, so that -2Σ ln p is at most χ² of twice as many degrees.
        """
        from scipy.special import chdtrc

        allowed = one_run_bound.symmetric_divergence(promised)
        known: dict[tuple[int, int, int], float] = {}
        total = 0.0
        for case in zip(self.coins, self.guesses, self.right, strict=True):
            if case not in known:
                known[case] = one_run_bound.curve_p_value(allowed, *case)
            total -= 2.0 * math.log(known[case])
        return min(1.0, float(chdtrc(2 * len(self.right), total)) * (1.0 + 1e-9))

    def _limits(self, epsilon: Array, delta: float) -> Array:
        """The limits at many ε, rounded up."""
        from scipy.special import betainc, expit

        guesses, right = sum(self.guesses), sum(self.right)
        tail = betainc(right, guesses - right + 1, expit(epsilon)) if right else np.ones(len(epsilon))
        more = expit(-epsilon) * max(self.coins) * delta * _modes(min(self.guesses), len(self.guesses), expit(epsilon))
        return np.asarray((tail + more) * (1.0 + 1e-9))


def guessed_units(scores: Array, coins: Mask, counts: tuple[int, int]) -> Guessed:
    """Guess the highest scores of each training in and the lowest out."""
    inside, outside = counts
    sides = np.take_along_axis(coins, np.argsort(scores, axis=1, kind="stable"), axis=1)
    trainings, units = sides.shape
    right = sides[:, units - inside :].sum(axis=1) + (~sides[:, :outside]).sum(axis=1)
    return Guessed(tuple(right.tolist()), (inside + outside,) * trainings, (units,) * trainings)


def guessed_pairs(scores: Array, coins: Mask, most: int, rng: np.random.Generator) -> Guessed:
    """Match members with outsiders at random, and guess the pairs whose scores differ most; equal scores are wrong."""
    found = []
    for wins in _pair_wins(scores, coins, rng):
        told = wins[:most]
        found.append((int(told.sum()), len(told), len(wins)))
    right, guesses, pairs = zip(*found, strict=True)
    return Guessed(right, guesses, pairs)


def pair_count(scores: Array, coins: Mask, trainings: int, alpha: float, rng: np.random.Generator) -> int:
    """Return how many pairs to guess: what would show the largest ε in so many trainings like these."""
    wins = _pair_wins(scores, coins, rng)
    least = min(len(one) for one in wins)
    hits = np.cumsum(np.mean([one[:least] for one in wins], axis=0))
    sizes = np.unique(np.geomspace(1, max(1, least), 20).astype(np.int64))
    guesses = sizes * trainings
    right = np.minimum(hits[sizes - 1] * trainings, guesses - 1.0) if least else np.zeros(1)
    return int(sizes[int(np.argmax(clopper_pearson_lower(np.maximum(right, 0.0), guesses, alpha)))])


def _pair_wins(scores: Array, coins: Mask, rng: np.random.Generator) -> list[Mask]:
    """For each training, whether the member of each pair has the higher score, from the surest pair on."""
    found = []
    for score, sides in zip(scores, coins, strict=True):
        inside, outside = (rng.permutation(np.flatnonzero(side)) for side in (sides, ~sides))
        pairs = min(len(inside), len(outside))
        gaps = score[inside[:pairs]] - score[outside[:pairs]]
        found.append(gaps[np.argsort(-np.abs(gaps), kind="stable")] > 0)
    return found


def _modes(each: int, trainings: int, q: Array) -> Array:
    """For each q the sum of the largest probabilities of Binomial(u·each, q) over u = 0, …, trainings - 1."""
    from scipy.special import gammaln, xlog1py, xlogy

    n = each * np.arange(trainings, dtype=np.float64)[:, None]
    mode = np.minimum(np.floor((n + 1.0) * q), n)
    logs = gammaln(n + 1) - gammaln(mode + 1) - gammaln(n - mode + 1) + xlogy(mode, q) + xlog1py(n - mode, -q)
    return np.asarray(np.minimum(1.0, np.exp(logs) * (1.0 + 1e-9)).sum(axis=0))
