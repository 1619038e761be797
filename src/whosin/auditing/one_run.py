"""Testing a DP claim with one training run.

*The game* (Steinke, Nasr and Jagielski 2023). Each of m canaries is in the training data if a fair coin of its own says
so. An auditor sees the trained model and guesses for r of them whether they were in; R guesses are right. Let
q = e^ε/(1+e^ε).

*Pure DP* (their theorem). If training is ε-DP under adding or removing one record, R is stochastically dominated by
Binomial(r, q), because each guess is right with probability at most q given the model and the coins before it. So
P(R ≥ v) ≤ f(v) = P(Binomial(r, q) ≥ v), with equality for randomised response.

*Approximate DP.* The correction is derived here. It is not the 2mδ·max_i (f(v-i) - f(v))/i of implementations in use,
which mechanisms in small worlds exceed where f(v) is large (m = r = 2, v = 1). Take the coins in any order. Given the
coins before the i-th, the two laws of the model under in and out are (ε, δ)-close, so each is (1-δ)·(a law within e^±ε
of its twin) + δ·(another) (Kairouz, Oh and Viswanath 2015). Hence the i-th guess is right with probability at most
q + (1-q)·φ_i, where φ_i in [0, 1] depends on the model and the earlier coins and has mean δ. Let n_i be the number of
guesses still to come and V_n(w) = P(w + Binomial(n, q) ≥ v). Step i raises the mean of V by at most
(1-q)·φ_i·P(Binomial(n_i, q) = v-1-w) ≤ (1-q)·φ_i·g(n_i), g(n) being the largest probability of Binomial(n, q), and by
nothing where the auditor abstains. So

    P(R ≥ v) ≤ f(v) + (1-q)·Σ_i E[φ_i·1{i is guessed}·g(n_i)].

This holds for every order of the coins; take the average over all orders. If l coins follow, i is guessed with chance
r/m, and then n_i is hypergeometric (l draws out of m-1 others with r-1 guesses), whatever the model. As g falls in n,
the l-th term is largest with φ on the smallest n: at most K_l = Σ_n g(n)·(mass of n under the lowest δ of the law).
The correction (1-q)·Σ_l K_l is at most (1-q)·m·δ, and falls in ε, because (1-q)·P(Binomial(n, q) = k) falls in q where
k is the mode; f rises in ε.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.compute.proportions import clopper_pearson_lower
from whosin.compute.roots import smallest_holding
from whosin.errors import (
    AssumptionWarning,
    ImplicationError,
    InputError,
    InputTypeError,
    check_number,
    check_probability,
    check_whole,
)
from whosin.guarantees import ApproxDP, Guarantee, PureDP

__all__ = ["OneRunAudit", "OneRunComparison", "audit_one_run"]

Array = NDArray[np.float64]
Guesses = int | tuple[int, int]

_SLACK = 1e-6
"""Relative outward rounding of the correction: above the error of the hypergeometric law by logarithms."""
_LARGEST = 60.0
"""Largest ε that is looked at where δ > 0."""
_OMITTED = 1e-30
"""Probability that may be left out of a law of guesses to come."""
_START = 0.9
"""Share of the allowed error that the correction may take at the smallest ε looked at."""
_EXACT_PLACES = 1024
"""Places of a coin that are treated one by one; beyond, they are grouped, on the safe side."""


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
class OneRunAudit:
    """What one training run with random canaries says about the ε of the training."""

    epsilon_lower: float
    """Training that is (ε, δ)-DP (add/remove) has ε at least this, at the confidence level."""
    delta: float
    guesses: int
    """Guesses of the way to guess that gave the limit."""
    right: int
    canaries: int
    confidence_level: float
    counts: tuple[Count, ...]
    """Every way to guess that was tried; the confidence is shared among them (union bound)."""

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the limit rests on, in words."""
        tried = len(self.counts)
        chosen = "fixed before the scores were seen" if tried == 1 else f"one of {tried} fixed beforehand (union bound)"
        return (
            "each canary was included by a fair coin of its own, and nothing else about the training depends on it",
            "the scores were computed from the model and the canaries, without knowing who was included",
            f"the number of guesses was {chosen}",
            "DP compares data with and without one record (add/remove), and a canary is one record",
        )

    def p_value(self, epsilon: float, delta: float | None = None) -> float:
        """Return an upper limit on the chance of so many right guesses if the training were (ε, δ)-DP."""
        epsilon = check_number("epsilon", epsilon, low=0.0)
        delta = self.delta if delta is None else check_probability("delta", delta)
        beta = self._share
        values = [_p_value(self.canaries, c.guesses, c.right, epsilon, delta, beta) for c in self.counts]
        return min(1.0, len(self.counts) * min(values))

    def epsilon_lower_at(self, delta: float) -> float:
        """Return the lower limit on ε for another δ."""
        delta = check_probability("delta", delta)
        return max(_epsilon_lower(self.canaries, c.guesses, c.right, delta, self._share) for c in self.counts)

    @property
    def _share(self) -> float:
        return (1.0 - self.confidence_level) / len(self.counts)

    def compare(self, guarantee: Guarantee) -> OneRunComparison:
        """Hold the run against a promise of the training.

        "violated" if so many right guesses had at most the allowed chance under the promise, otherwise "inconclusive":
        a run that a weak attack saw through badly confirms nothing. A guarantee with a whole curve of (ε, δ) is
        taken at the δ of this audit.

        Raises
        ------
        ImplicationError
            For a promise from which no add/remove DP follows.
        """
        if not isinstance(guarantee, Guarantee):
            raise InputTypeError(f"guarantee takes one of whosin's guarantees, got {guarantee!r}")
        promise = _as_dp(guarantee, self.delta)
        value = self.p_value(promise.epsilon, promise.delta)
        violated = value <= 1.0 - self.confidence_level
        limit = self.epsilon_lower_at(promise.delta)
        return OneRunComparison(
            "violated" if violated else "inconclusive",
            _comparison_text(violated, value, promise, limit, self),
            value,
            limit,
            promise.epsilon,
            promise.delta,
            self.confidence_level,
            guarantee,
        )

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        level = f"{100 * self.confidence_level:g}%"
        opening = (
            f"{self.canaries} canaries were included in the training or left out by coin toss. Of {self.guesses} "
            f"guesses who was in, {self.right} were right; blind guesses are right half of the time."
        )
        if self.epsilon_lower <= 0.0:
            return (
                f"{opening} That is no more than chance explains, so this run says nothing against any ε. It does not "
                "show that the training is private: a stronger attack, or more canaries, may find more."
            )
        delta = f" with δ = {self.delta:g}" if self.delta else ""
        return (
            f"{opening} If the training is differentially private{delta}, its ε is at least "
            f"{_down(self.epsilon_lower)} ({level} confidence). How much larger it is, one run does not tell."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        plain = ("epsilon_lower", "delta", "guesses", "right", "canaries", "confidence_level")
        return {
            **{name: getattr(self, name) for name in plain},
            "counts": [{"in": c.guessed_in, "out": c.guessed_out, "right": c.right} for c in self.counts],
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }

    def __str__(self) -> str:
        delta = f" at δ = {self.delta:g}" if self.delta else ""
        return (
            f"ε ≥ {_down(self.epsilon_lower)}{delta} with {100 * self.confidence_level:g}% confidence "
            f"({self.right} of {self.guesses} guesses right, {self.canaries} canaries, one run)"
        )

    def _repr_html_(self) -> str:
        from html import escape

        items = "".join(f"<li>{escape(line)}</li>" for line in self.assumes)
        return f"<p><b>{escape(str(self))}</b></p><p>{escape(self.explain())}</p><p>Assumes:</p><ul>{items}</ul>"


@dataclass(frozen=True)
class OneRunComparison:
    """What one run says about a promise."""

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

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p><b>{escape(self.verdict)}</b></p><p>{escape(self.text)}</p>"


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    guesses: Guesses | list[Guesses] | None = None,
    delta: float = 0.0,
    confidence_level: float = 0.95,
    rng: Any = None,
) -> OneRunAudit:
    """Give a lower limit on the ε of a training from one run with randomly included canaries.

    Parameters
    ----------
    scores : array-like of shape (m,)
        A score of each canary, from the model alone; a high one speaks for inclusion.
    included : array-like of bool, shape (m,)
        Which canaries were included, each by a fair coin of its own.
    guesses : int, pair of int, or list of these, optional
        How many canaries are guessed: a number r (the highest scores are guessed in and the lowest out, half of r each)
        or a pair (in, out). It must be fixed before the scores are compared with ``included``. A list tries several
        and shares the confidence among them. None tries all m, m/2, m/4, … down to 8.
    delta : float
        The δ for which ε is wanted.
    confidence_level : float
        Probability with which the limit holds, over coins and training.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes; it breaks ties between equal scores.

    Returns
    -------
    OneRunAudit

    Warns
    -----
    AssumptionWarning
        If so many or so few canaries are included that fair coins are out of the question.

    Notes
    -----
    Cost O(m log m), for δ > 0 also about O(min(m, 2000)·r).

    References
    ----------
    Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run. The correction for δ is our own.
    """
    level = check_number("confidence_level", confidence_level, low=0.0, high=1.0, open_low=True, open_high=True)
    delta = check_probability("delta", delta)
    values, inside = _canaries(scores, included)
    ways = _ways(guesses, len(values))
    order = np.lexsort((np.random.default_rng(rng).random(len(values)), values))
    sorted_inside = inside[order]
    counts = tuple(_count(sorted_inside, *way) for way in ways)
    share = (1.0 - level) / len(counts)
    limits = [_epsilon_lower(len(values), c.guesses, c.right, delta, share) for c in counts]
    best = max(range(len(counts)), key=lambda i: (limits[i], counts[i].right / counts[i].guesses))
    return OneRunAudit(limits[best], delta, counts[best].guesses, counts[best].right, len(values), level, counts)


def _canaries(scores: ArrayLike, included: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"scores takes one number a canary, got {scores!r}") from None
    given = np.asarray(included)
    if values.ndim != 1 or given.shape != values.shape or values.size == 0:
        raise InputError(f"scores and included take one entry a canary, got shapes {values.shape} and {given.shape}")
    if np.isnan(values).any():
        raise InputError(f"scores takes numbers, got NaN for canary {int(np.flatnonzero(np.isnan(values))[0])}")
    if given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise InputError(f"included takes True or False for each canary, got values of type {given.dtype}")
    inside = given.astype(np.bool_)
    share = float(inside.mean())
    if 2.0 * math.exp(-2.0 * len(inside) * (share - 0.5) ** 2) < 1e-6:
        warnings.warn(
            f"included: {int(inside.sum())} of {len(inside)} canaries are in, which fair coins do not give; "
            "the limit assumes that each was included with probability 1/2",
            AssumptionWarning,
            stacklevel=3,
        )
    return values, inside


def _ways(guesses: Any, canaries: int) -> list[tuple[int, int]]:
    """Return pairs (guessed in, guessed out)."""
    if guesses is None:
        sizes = [canaries]
        while sizes[-1] // 2 >= 8:
            sizes.append(sizes[-1] // 2)
        return [_way(size, canaries) for size in sizes]
    if isinstance(guesses, list):
        if not guesses:
            raise InputError("guesses takes at least one number, got an empty list")
        return [_way(item, canaries) for item in guesses]
    return [_way(guesses, canaries)]


def _way(item: Any, canaries: int) -> tuple[int, int]:
    if isinstance(item, Sequence) and not isinstance(item, str):
        if len(item) != 2:
            raise InputError(f"guesses takes a number or a pair (in, out), or a list of these, got {item!r}")
        inside, outside = (check_whole("guesses", part) for part in item)
    else:
        size = check_whole("guesses", item, low=1)
        inside, outside = size - size // 2, size // 2
    if not 1 <= inside + outside <= canaries:
        raise InputError(f"guesses takes 1 to {canaries} guesses for {canaries} canaries, got {item!r}")
    return inside, outside


def _count(sorted_inside: NDArray[np.bool_], inside: int, outside: int) -> Count:
    highest = sorted_inside[len(sorted_inside) - inside :]
    return Count(inside, outside, int(highest.sum()) + int(np.sum(~sorted_inside[:outside])))


def _p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float, beta: float) -> float:
    """Return an upper limit on P(R ≥ right) under (ε, δ)-DP.

    Where the correction alone takes up β, that of a larger ε is used, which (ε, δ)-DP implies.
    """
    if delta > 0.0:
        epsilon = max(epsilon, _least_epsilon(canaries, guesses, delta, beta))
    chance = 1.0 if right == 0 else _at_least(right, guesses, _right_chance(epsilon))
    return min(1.0, chance + _correction(canaries, guesses, delta, epsilon))


def _epsilon_lower(canaries: int, guesses: int, right: int, delta: float, beta: float) -> float:
    """Return an ε below which every p-value is at most ``beta``; 0 where there is none.

    On [a, b] the p-value is at most f(b) + correction(a). Each step goes to the largest b where that is ``beta``.
    """
    if delta == 0.0:
        return _epsilon_of(right, guesses, beta)
    reached = _least_epsilon(canaries, guesses, delta, beta)
    refuted = 0.0
    for _ in range(60):
        left = beta - _correction(canaries, guesses, delta, reached)
        further = _epsilon_of(right, guesses, left) if left > 0.0 else 0.0
        if further <= reached * (1.0 + 1e-12):
            break
        reached = refuted = further
    return refuted


def _epsilon_of(right: int, guesses: int, beta: float) -> float:
    """Return the ε at which P(Binomial(guesses, q) ≥ right) is ``beta``, rounded down."""
    q = float(clopper_pearson_lower(right, guesses, beta))
    return max(0.0, math.log(q / (1.0 - q)) * (1.0 - 1e-12)) if q > 0.5 else 0.0


def _at_least(right: int, guesses: int, q: float) -> float:
    from scipy.special import betainc

    return min(1.0, float(betainc(right, guesses - right + 1, q)) * (1.0 + 1e-10))


def _right_chance(epsilon: float) -> float:
    return 1.0 / (1.0 + math.exp(-epsilon))


@lru_cache(maxsize=256)
def _least_epsilon(canaries: int, guesses: int, delta: float, beta: float) -> float:
    """Return the smallest ε whose correction leaves a part of ``beta``; it is fixed before the guesses are counted."""
    return smallest_holding(
        lambda e: e >= _LARGEST or _correction(canaries, guesses, delta, e) <= _START * beta,
        0.0,
        _LARGEST,
        tolerance=1e-6,
    )


def _correction(canaries: int, guesses: int, delta: float, epsilon: float) -> float:
    """Return (1-q)·Σ_l K_l, at most (1-q)·m·δ; rounded up."""
    if delta == 0.0:
        return 0.0
    q = _right_chance(epsilon)
    wrong = math.exp(-epsilon) * q
    return wrong * float(_masses(canaries, guesses, delta) @ _largest_probability(guesses, q)) * (1.0 + _SLACK)


def _largest_probability(count: int, q: float) -> Array:
    """Return the largest probability of Binomial(n, q) for n = 0, …, count - 1."""
    from scipy.special import gammaln, xlog1py, xlogy

    n = np.arange(count, dtype=np.float64)
    mode = np.minimum(np.floor((n + 1.0) * q), n)
    logs = gammaln(n + 1) - gammaln(mode + 1) - gammaln(n - mode + 1) + xlogy(mode, q) + xlog1py(n - mode, -q)
    return np.minimum(1.0, np.exp(logs) * (1.0 + 1e-9))


@lru_cache(maxsize=64)
def _masses(canaries: int, guesses: int, delta: float) -> Array:
    """Return, for each number n of guesses to come, the mass that the worst φ puts there, summed over places l."""
    total = np.zeros(guesses)
    for place, weight in _places(canaries):
        low, law = _guesses_to_come(canaries, guesses, place)
        before = np.concatenate([[0.0], np.cumsum(law)[:-1]])
        total[low : low + len(law)] += weight * np.clip(delta - before, 0.0, law)
    total[0] += canaries * _OMITTED
    return total


def _guesses_to_come(canaries: int, guesses: int, place: int) -> tuple[int, Array]:
    """Return the smallest n looked at, and r/m times the hypergeometric law from there on.

    By Bernstein's inequality, which holds for draws without replacement too, less than e^-70 lies outside the window.
    """
    from scipy.special import gammaln

    others = canaries - guesses
    mean = place * (guesses - 1) / max(1, canaries - 1)
    reach = 12.0 * math.sqrt(mean) + 50.0
    low = max(0, place - others, math.floor(mean - reach))
    high = min(guesses - 1, place, math.ceil(mean + reach))
    n = np.arange(low, high + 1, dtype=np.float64)
    rest = place - n
    logs = gammaln(guesses) - gammaln(n + 1) - gammaln(guesses - n)
    logs += gammaln(others + 1) - gammaln(rest + 1) - gammaln(others - rest + 1)
    logs -= gammaln(canaries) - gammaln(place + 1) - gammaln(canaries - place)
    return low, np.exp(logs) * guesses / canaries


def _places(canaries: int) -> list[tuple[int, int]]:
    """Return numbers l of coins to come with their weights; groups are counted at their smallest l, the worst."""
    starts = list(range(min(canaries, _EXACT_PLACES)))
    while starts[-1] + 1 < canaries:
        starts.append(min(canaries - 1, max(starts[-1] + 1, math.floor(starts[-1] * 1.02))))
    ends = [*starts[1:], canaries]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def _as_dp(guarantee: Guarantee, delta: float) -> PureDP | ApproxDP:
    if isinstance(guarantee, PureDP | ApproxDP):
        promise: PureDP | ApproxDP = guarantee
    elif delta == 0.0:
        raise InputError(
            f"{type(guarantee).__name__} promises a curve of (ε, δ): pass delta= to audit_one_run, got delta=0"
        )
    else:
        promise = guarantee.implies(ApproxDP, delta=delta)
    if promise.adjacency != "add_remove":
        raise ImplicationError(
            "replace-one DP says nothing about canaries that are included by coin toss: the number of records may be "
            "published under it. Use a guarantee with adjacency='add_remove'"
        )
    return promise


def _comparison_text(violated: bool, value: float, promise: PureDP | ApproxDP, limit: float, run: OneRunAudit) -> str:
    counted = f"{run.right} of {run.guesses} guesses about {run.canaries} canaries are right"
    if violated:
        return (
            f"{counted}; under {promise} that many have a chance of at most {_up(value)}. The training is not what was "
            f"promised, or the canaries were not included by independent fair coins; ε is at least {_down(limit)}."
        )
    return (
        f"{counted}; under {promise} the chance of that is only limited by {_up(value)}. This run does not refute the "
        "promise, and does not confirm it: a stronger attack or more canaries may tell more."
    )


def _up(value: float) -> str:
    digits = max(3, 2 - math.floor(math.log10(value))) if value > 0.0 else 3
    return f"{math.ceil(value * 10**digits * (1 - 1e-12)) / 10**digits:g}"


def _down(value: float) -> str:
    return f"{math.floor(value * 1000) / 1000:g}"
