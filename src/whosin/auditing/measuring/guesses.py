"""Guesses about coins, in one training or in several, held against a promise.

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
from typing import Any

import numpy as np

from whosin.arrays import Array, Flags
from whosin.auditing.measuring import guess_bound
from whosin.auditing.measuring.compare import HeldAgainst
from whosin.guarantees import ApproxDP, Guarantee, PureDP
from whosin.guarantees.dp import DifferentialPrivacy
from whosin.numerics.proportions import clopper_pearson_lower
from whosin.numerics.rounding import at_least, at_most
from whosin.roc import Roc

GRID = np.append(0.0, np.geomspace(1e-3, 50.0, 1000))
"""Values of ε that are looked at where δ > 0."""
CURVE_SHARE = 4
"""A whole curve is held against the surest quarter of the units."""


@dataclass(frozen=True)
class OneRunComparison(HeldAgainst):
    """What one run says about a promise.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(400) < 0.5
    >>> run = wi.audit_one_run(rng.normal(3 * included, 1), included, guesses=100)
    >>> held = run.compare(wi.PureDP(0.5))
    >>> held.verdict, held.p_value < 1e-6
    ('violated', True)
    """

    verdict: str
    """"violated" or "inconclusive"."""
    text: str
    p_value: float
    """Upper limit on the chance of so many right guesses under the promise."""
    epsilon_lower: float
    epsilon_promised: float
    delta: float
    confidence_level: float
    guarantee: Guarantee

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        plain = ("verdict", "text", "p_value", "epsilon_lower", "delta", "confidence_level")
        promised = self.epsilon_promised
        return {
            **{name: getattr(self, name) for name in plain},
            "epsilon_promised": promised if math.isfinite(promised) else str(promised),
            "guarantee": self.guarantee.to_dict(),
        }


@dataclass(frozen=True)
class Tested:
    """What of a promise coins can test: under which adjacency, at one (ε, δ) or as a whole curve."""

    adjacency: str
    plain: PureDP | ApproxDP | None
    """The promise where it is one (ε, δ)."""
    curve: Roc

    @property
    def delta(self) -> float:
        """The δ of one (ε, δ); 0 for a curve."""
        return 0.0 if self.plain is None else float(self.plain.delta)

    def p_value(self, guessed: Guessed) -> float:
        """Return an upper limit on the chance of so many right guesses if the promise holds."""
        if self.plain is None:
            return guessed.curve_p_value(self.curve)
        return guessed.p_value(self.plain.epsilon, self.delta)


def what_is_tested(guarantee: DifferentialPrivacy, *, fixed_size: bool) -> Tested:
    """Return what a promise says about coins: where the size is fixed, about replacing one unit by another."""
    adjacency = getattr(guarantee, "adjacency", "add_remove")
    plain = guarantee if isinstance(guarantee, PureDP | ApproxDP) else None
    if not fixed_size or adjacency == "replace":
        return Tested(adjacency, plain, guarantee.roc)
    if plain is not None:
        plain = plain.implies(type(plain), adjacency="replace")
    return Tested("replace", plain, guarantee.replace_roc())


def guess_counts(scores: Array, coins: Flags, trainings: int, alpha: float) -> tuple[int, int]:
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
    by_release: bool = False
    """Whether the release chose their number, in the one training that there is."""

    def p_value(self, epsilon: float, delta: float) -> float:
        """Return an upper limit on the chance of so many right guesses under (ε, δ)-DP.

        For δ > 0 the smallest limit of all larger ε, each of which is promised too; O(grid·trainings).
        """
        guesses, right = sum(self.guesses), sum(self.right)
        if delta == 0.0 or len(self.guesses) == 1:
            return guess_bound.p_value(max(self.coins), guesses, right, epsilon, delta, by_release=self.by_release)
        return min(1.0, float(self._limits(epsilon + GRID, delta).min()))

    def epsilon_lower(self, delta: float, alpha: float) -> float:
        """Return the largest ε whose p-value is at most ``alpha``, from below; 0 if there is none."""
        if delta == 0.0 or len(self.guesses) == 1:
            counts = max(self.coins), sum(self.guesses), sum(self.right)
            return guess_bound.epsilon_lower(*counts, delta, alpha, by_release=self.by_release)
        refuted = GRID[self._limits(GRID, delta) <= alpha]
        return float(refuted.max(initial=0.0))

    def curve_p_value(self, promised: Roc) -> float:
        """Return Fisher's combination of the p-values of all trainings under a whole promised curve.

        Each of them is valid given the trainings before it, so that -2Σ ln p is at most χ² of twice as many degrees.
        """
        from scipy.special import chdtrc

        allowed = guess_bound.symmetric_divergence(promised)
        known: dict[tuple[int, int, int], float] = {}
        total = 0.0
        for case in zip(self.coins, self.guesses, self.right, strict=True):
            if case not in known:
                known[case] = guess_bound.curve_p_value(allowed, *case)
            total -= 2.0 * math.log(known[case])
        return min(1.0, float(chdtrc(2 * len(self.right), total)) * (1.0 + 1e-9))

    def _limits(self, epsilon: Array, delta: float) -> Array:
        """The limits at many ε, rounded up."""
        from scipy.special import betainc, expit

        guesses, right = sum(self.guesses), sum(self.right)
        tail = betainc(right, guesses - right + 1, expit(epsilon)) if right else np.ones(len(epsilon))
        more = expit(-epsilon) * max(self.coins) * delta * _modes(min(self.guesses), len(self.guesses), expit(epsilon))
        return np.asarray((tail + more) * (1.0 + 1e-9))


def guessed_units(scores: Array, coins: Flags, counts: tuple[int, int]) -> Guessed:
    """Guess the highest scores of each training in and the lowest out."""
    inside, outside = counts
    sides = np.take_along_axis(coins, np.argsort(scores, axis=1, kind="stable"), axis=1)
    trainings, units = sides.shape
    right = sides[:, units - inside :].sum(axis=1) + (~sides[:, :outside]).sum(axis=1)
    return Guessed(tuple(right.tolist()), (inside + outside,) * trainings, (units,) * trainings)


def guessed_pairs(scores: Array, coins: Flags, most: int, rng: np.random.Generator) -> Guessed:
    """Match members with outsiders at random, and guess the pairs whose scores differ most; equal scores are wrong."""
    found = []
    for wins in _pair_wins(scores, coins, rng):
        told = wins[:most]
        found.append((int(told.sum()), len(told), len(wins)))
    right, guesses, pairs = zip(*found, strict=True)
    return Guessed(right, guesses, pairs)


def pair_count(scores: Array, coins: Flags, trainings: int, alpha: float, rng: np.random.Generator) -> int:
    """Return how many pairs to guess: what would show the largest ε in so many trainings like these."""
    wins = _pair_wins(scores, coins, rng)
    least = min(len(one) for one in wins)
    hits = np.cumsum(np.mean([one[:least] for one in wins], axis=0))
    sizes = np.unique(np.geomspace(1, max(1, least), 20).astype(np.int64))
    guesses = sizes * trainings
    right = np.minimum(hits[sizes - 1] * trainings, guesses - 1.0) if least else np.zeros(1)
    return int(sizes[int(np.argmax(clopper_pearson_lower(np.maximum(right, 0.0), guesses, alpha)))])


def _pair_wins(scores: Array, coins: Flags, rng: np.random.Generator) -> list[Flags]:
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


def comparison_of(
    guarantee: Guarantee,
    value: float,
    limit: float,
    delta: float,
    confidence_level: float,
    counted: str,
    for_people: bool,
) -> OneRunComparison:
    """Return the verdict on a promise under which so many right guesses have at most a chance of ``value``."""
    violated = value <= 1.0 - confidence_level
    promised = f"{guarantee} for all records of a person together" if for_people else str(guarantee)
    if violated:
        text = (
            f"{counted}; under {promised} that many have a chance of at most {at_most(value)}. The training is not "
            "what was promised, or chance did not decide who was in as assumed"
        )
        text += f"; ε is at least {at_least(limit)}" + (f" at δ = {delta:g}." if delta else ".") if limit > 0.0 else "."
    else:
        text = (
            f"{counted}; under {promised} the chance of that is only limited by {at_most(value)}. This does not refute "
            "the promise, and does not confirm it: a stronger attack, or more coins, may tell more."
        )
    slope = max(guarantee.roc.slope_for(delta), guarantee.roc.reversed().slope_for(delta))
    promised_epsilon = getattr(guarantee, "epsilon", math.log(slope) if slope > 0.0 else 0.0)
    verdict = "violated" if violated else "inconclusive"
    return OneRunComparison(verdict, text, value, limit, promised_epsilon, delta, confidence_level, guarantee)
