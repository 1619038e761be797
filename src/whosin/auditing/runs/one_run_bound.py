"""How likely so many right guesses are under an (ε, δ)-DP claim.

Notation as in :mod:`whosin.auditing.runs.one_run`: m canaries with fair coins, r guesses of which R are right,
q = e^ε/(1+e^ε), f(v) = P(Binomial(r, q) ≥ v). For δ = 0, P(R ≥ v) ≤ f(v).

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
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from whosin.numerics.proportions import clopper_pearson_lower
from whosin.numerics.roots import smallest_holding

__all__ = ["epsilon_lower", "p_value"]

Array = NDArray[np.float64]

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


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float, beta: float) -> float:
    """Return an upper limit on P(R ≥ right) under (ε, δ)-DP.

    Where the correction alone takes up β, that of a larger ε is used, which (ε, δ)-DP implies.
    """
    if delta > 0.0:
        epsilon = max(epsilon, _least_epsilon(canaries, guesses, delta, beta))
    chance = 1.0 if right == 0 else _at_least(right, guesses, _right_chance(epsilon))
    return min(1.0, chance + _correction(canaries, guesses, delta, epsilon))


def epsilon_lower(canaries: int, guesses: int, right: int, delta: float, beta: float) -> float:
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
