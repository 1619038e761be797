"""Several ways to guess the same coins, under pure DP: what they show together.

*Together.* Under ε-DP (add/remove, independent fair coins) every guess is right with chance at most q = e^ε/(1+e^ε),
given the release and the coins before it, in whichever order coins are looked at. So, given the release, all guesses
together are dominated by independent coins that are right with chance q: whatever rises with them, rises at most as
often. Two consequences:

* the guesses may be chosen by the scores, which the release tells, as long as no coin is looked at;
* for ways i = 1, …, k, with cᵢ right guesses wanted of each, P(any way has its cᵢ) is at most the chance of that with
  independent coins, if no canary is guessed in by one way and out by another. The ways share most of their guesses, so
  that this is far below the sum over the ways. Of ways that contradict each other one is always right, so that their
  chances are added.

*One number.* Each way has the limit ℓᵢ, the q at which so many right guesses have the chance aᵢ, and the statistic is
T = max ℓᵢ. It never falls with a right guess, so P_q(T ≥ t) rises in q. The largest q at which it is at most α, for
the t that was seen, is above the true one with chance at most α. The aᵢ, fixed or chosen by the scores, only say how
ways are weighed against each other.

*Two groups.* Where the release repeats some records and not others, scores fall into two groups. They are split where
two normal laws of one variance explain them best, if clearly better than one (by the likelihood of scores and groups),
and the upper group is guessed first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whosin.arrays import Array
from whosin.numerics.proportions import clopper_pearson_lower
from whosin.numerics.roots import largest_holding

EACH = 0.25
"""Level, as a share of the error, at which ways are compared if none is the first."""
FIRST, OTHERS = 0.8, 0.1
"""Levels of the way that the scores suggest, and of each other one."""
SMALLEST_GROUP = 8
"""Fewest scores of a group."""
MOST_JOINT = 2000
"""Most guesses for which the two ends of the scores are followed at once; of more, ways in one order only."""
CLEARLY = 0.1
"""Log likelihood for each score by which two groups must be better than one; evenly spread scores have 0."""
_TINY = 1e-16
_SLACK = 1e-6


@dataclass(frozen=True)
class Count:
    """One way to guess: so many canaries guessed in and out, and how many guesses were right."""

    guessed_in: int
    guessed_out: int
    right: int

    @property
    def guesses(self) -> int:
        """Guesses in all."""
        return self.guessed_in + self.guessed_out


@dataclass(frozen=True)
class SeveralWays:
    """Right guesses of several ways: the highest scores guessed in, the lowest out, no coin looked at beforehand."""

    canaries: int
    counts: tuple[Count, ...]
    first: bool
    """Whether the first of the ways is the one that the scores suggest."""
    alpha: float
    """The level for which they are weighed against each other."""

    @property
    def _levels(self) -> list[float]:
        if len(self.counts) == 1:
            return [self.alpha]
        shares = [FIRST, *[OTHERS] * (len(self.counts) - 1)] if self.first else [EACH] * len(self.counts)
        return [self.alpha * share for share in shares]

    @cached_property
    def _limits(self) -> Array:
        """The q of each way at which so many right guesses have the chance of its level."""
        rows = [(count.right, count.guesses) for count in self.counts]
        return np.array([clopper_pearson_lower(*row, level) for row, level in zip(rows, self._levels, strict=True)])

    @property
    def best(self) -> Count:
        """The way that shows most, of equals the one with the larger share of right guesses."""
        shares = [count.right / count.guesses for count in self.counts]
        return self.counts[max(range(len(shares)), key=lambda i: (self._limits[i], shares[i]))]

    @cached_property
    def _needed(self) -> list[int]:
        """The fewest right guesses of each way that show as much as was seen; one more than there are if none do."""
        from scipy.special import betainc

        seen, needed = float(self._limits.max()), []
        for count, level, limit in zip(self.counts, self._levels, self._limits, strict=True):
            right = np.arange(1, count.guesses + 1)
            tails = betainc(right, count.guesses - right + 1, seen)
            least = 1 + int(np.searchsorted(-tails, -level * (1.0 + 1e-9)))
            needed.append(min(least, count.right) if limit == seen else least)
        return needed

    def p_value(self, epsilon: float) -> float:
        """Return the largest chance, under ε-DP, of right guesses that show as much; rounded up, it rises in ε."""
        q = 1.0 / (1.0 + math.exp(-epsilon))
        if q == 1.0 or self._limits.max() == 0.0:
            return 1.0
        ways = [(count.guessed_in, count.guessed_out) for count in self.counts]
        return chance_of_any(ways, self._needed, q, self.canaries)

    def epsilon_lower(self) -> float:
        """Return the largest ε whose p-value is at most ``alpha``, from below; 0 where there is none."""
        rows = [clopper_pearson_lower(count.right, count.guesses, self.alpha) for count in self.counts]
        q = float(max(rows))
        if q <= 0.5 or self.p_value(0.0) > self.alpha:
            return 0.0
        most = math.log(q / (1.0 - q)) * (1.0 - 1e-12)
        if len(self.counts) == 1:
            return most
        return largest_holding(lambda epsilon: self.p_value(epsilon) <= self.alpha, 0.0, most, tolerance=1e-5)


def chance_of_any(ways: Sequence[tuple[int, int]], needed: Sequence[int], q: float, canaries: int) -> float:
    """Return the chance that one of the ways has as many right guesses as it needs, from above.

    Guesses are independent and right with chance q; a way (in, out) is about that many of the highest and of the
    lowest of the same ``canaries`` scores. Ways are followed in one order where each holds those before it, up to 2,000
    guesses also those of one end beside those of both, if none of them guesses a canary in that another guesses out;
    the chances of several orders are added. O(q(1-q)·guesses·ways·log) for 2,000
    guesses (10 ms), and about the root of that for more.
    """
    from scipy.special import betainc

    joint = max(a + b for a, b in ways) <= MOST_JOINT
    chains: list[list[tuple[int, int, int]]] = []
    for a, b, need in sorted((*way, need) for way, need in zip(ways, needed, strict=True)):
        lowest = [max(step[1] for step in one) for one in chains]
        fits = (
            one
            for one, low in zip(chains, lowest, strict=True)
            if (b >= low or (joint and b == 0)) and a + max(b, low) <= canaries
        )
        chain = next(fits, None)
        if chain is None:
            chains.append([(a, b, need)])
        else:
            chain.append((a, b, need))
    total = 0.0
    for chain in chains:
        tails = [float(betainc(need, a + b - need + 1, q)) if need <= a + b else 0.0 for a, b, need in chain]
        walked = chain if joint else [(a + b, 0, need) for a, b, need in chain]
        total += sum(tails) if len(chain) == 1 else min(sum(tails), _crossing(walked, q))
    return min(1.0, total * (1.0 + 1e-9) + 1e-300)


def _crossing(chain: Sequence[tuple[int, int, int]], q: float) -> float:
    """Return the chance that a way of one order has what it needs: right guesses at both ends, step by step."""
    law, starts, sizes = np.ones((1, 1)), [0, 0], [0, 0]
    crossed = 0.0
    for a, b, need in chain:
        for axis, size in enumerate((a, b)):
            if size > sizes[axis]:
                law, first, lost = _added(law, size - sizes[axis], q, axis)
                starts[axis], sizes[axis], crossed = starts[axis] + first, size, crossed + lost
        right = np.zeros(law.shape)
        for axis, size in enumerate((a, b)):
            if size:
                places = starts[axis] + np.arange(law.shape[axis])
                right = right + np.expand_dims(places, 1 - axis)
        crossed += float(law[right >= need].sum())
        law = np.where(right >= need, 0.0, law)
        for axis in (0, 1):
            held = np.flatnonzero(law.sum(axis=1 - axis) > _TINY)
            if not len(held):
                return (crossed + float(law.sum())) * (1.0 + _SLACK) + 1e-13
            kept = np.take(law, np.arange(held[0], held[-1] + 1), axis=axis)
            crossed += max(0.0, float(law.sum() - kept.sum()))
            law, starts[axis] = kept, starts[axis] + int(held[0])
    return crossed * (1.0 + _SLACK) + 1e-13


def _added(law: Array, guesses: int, q: float, axis: int) -> tuple[Array, int, float]:
    """Return the law with so many more guesses along one axis, where it starts, and the mass that was left out."""
    from scipy.signal import fftconvolve
    from scipy.special import betaln, xlog1py, xlogy

    reach = 9.0 * math.sqrt(guesses * q * (1.0 - q)) + 12.0
    first, last = max(0, math.floor(guesses * q - reach)), min(guesses, math.ceil(guesses * q + reach))
    k = np.arange(first, last + 1, dtype=np.float64)
    logs = xlogy(k, q) + xlog1py(guesses - k, -q) - betaln(k + 1, guesses - k + 1) - math.log(guesses + 1)
    mass = np.exp(logs)
    spread = np.maximum(0.0, fftconvolve(law, np.expand_dims(mass, 1 - axis), axes=axis))
    return spread, first, max(0.0, 1.0 - float(mass.sum()))


def upper_group(scores: Array) -> int:
    """Return how many scores make the upper of two groups, and 0 where there are no two; O(m log m).

    Infinities and overflow are no matter of groups: scores that are not finite leave none.
    """
    values = np.sort(scores)
    with np.errstate(over="ignore", invalid="ignore"):
        values = values - values.mean()
        total = float(values @ values)
    if len(values) < 2 * SMALLEST_GROUP or not math.isfinite(total) or total == 0.0:
        return 0
    n = len(values)
    low = np.arange(SMALLEST_GROUP, n - SMALLEST_GROUP + 1)
    high = n - low
    sums = np.cumsum(values)[low - 1]
    within = np.maximum(1e-12, 1.0 - sums**2 * (1.0 / low + 1.0 / high) / total)
    gain = low * np.log(low / n) + high * np.log(high / n) - 0.5 * n * np.log(within)
    best = int(np.argmax(gain))
    return int(high[best]) if gain[best] > CLEARLY * n else 0
