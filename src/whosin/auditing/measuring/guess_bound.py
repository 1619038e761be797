"""How likely so many right guesses are at most, over all mechanisms that keep a promise.

m canaries with fair coins of their own, exactly g guesses, at least c of them right. The promise: when one coin is
turned over, the law of what is released changes by E_γ ≤ δ(γ), for γ ≥ 1 and in both directions. Let v(m, g, c) be the
largest chance of that event over all such mechanisms.

*A small linear programme* (exact). The guesses are all that counts of a release. Turning random coins over and
shuffling the canaries, and undoing both in the guesses, keeps the promise (E_γ is jointly convex) and the number of
right guesses. Then the law of the mistakes depends on the number k right alone: weights w_k, and the promise reads
Σ_j (A_j - γB_j)₊ + (B_j - γA_j)₊ ≤ δ(γ), A_j = w_{j+1}(j+1)/m, B_j = w_j(g-j)/m. Conversely every such w is a
mechanism. A promise that differs by direction enters by the mean of its two sides, as coins are turned over at random.

*A certificate* that no solver has to be trusted for. Take any multipliers λ_i ≥ 0 of γ_i, Λ = Σλ_i and
F(α) = min{Σγ_iθ_i : Σθ_i = α, 0 ≤ θ_i ≤ λ_i}. With α_0 = F⁻¹(νm/g), α_k = min(Λ, F⁻¹((νm + kα_{k-1})/(g-k))) upwards
to α_{c-1}, and α_{g-1} = (1-ν)m/g, α_{k-1} = ((1-ν)m + (g-k)F(α_k))/k downwards to it: if no α is above Λ and the
downward α_{c-1} is at most the upward one, then v ≤ Σλ_iδ(γ_i) + ν. (Each θ in [0, λ_i] gives
Σλ_iδ(γ_i) ≥ Σ_j α_jA_j - F(α_j)B_j, and the recursions make the coefficient of every w_k at most ν.)

*(ε, δ)*: one γ = e^ε, and the recursions have a closed form. With S = P(Binomial(g, q) ≥ c), q = γ/(1+γ), and
b = P(Binomial(g, q) = c) they are α_k = νm·P(≤ k)/((k+1)·b_{k+1}) and (1-ν)m·P(≥ k+1)/((k+1)·b_{k+1}). They meet for
no ν below S, and Λ must be at least (1-ν)mS/(cb), the largest of the second as P(≥ k)/b_k falls in k. So the best is
ν = S, λ = m·S(1-S)/(cb), and

    v = min(1, S + δ·m·S(1-S)/(c·b)).

*Where the release chooses g*, the events of different g share one δ, and one multiplier must do for all of them. If λ
is fixed beforehand and at least m·S(1-S)/(c·b) for the g in use, the chance that any S + δλ falls to a level is at most
that level (the brackets of every g are at most its S). λ = m/4 is enough for five and more guesses in a tail; where it
is not, nothing is refuted. The limit v itself is then exceeded: m = 20, ε = 1, δ = .01, level .1: .1014 (tests).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.numerics.proportions import clopper_pearson_lower
from whosin.numerics.roots import largest_holding, smallest_holding
from whosin.roc import Roc

Divergence = Callable[[float], float]

LARGEST = 60.0
"""Largest ε that is looked at where δ > 0."""
GAMMAS = 24
"""Values of γ at which a curve is held against the guesses."""
FINE = 200
"""Values of γ that are looked at one by one."""
MOST_GUESSES = 400
"""Most guesses for which the linear programme is solved."""
NARROW = 1e-4
"""Values of γ at which the curve is this near to its limit at infinity are not looked at."""
MULTIPLIER = 0.25
"""λ/m where the release chooses the number of guesses."""
_SLACK = 1e-9
_STEP = 1e-13
"""Outward rounding of one step of a recursion: some hundred times the error of the arithmetic."""


def p_value(
    canaries: int, guesses: int, right: int, epsilon: float, delta: float, *, by_release: bool = False
) -> float:
    """Return the largest chance of so many right guesses under (ε, δ)-DP, rounded up; it rises in ε and δ.

    ``by_release`` says that the number of guesses was not fixed beforehand, but chosen by what was released.
    """
    from scipy.special import betainc, betaln, xlog1py, xlogy

    q = 1.0 / (1.0 + math.exp(-epsilon))
    if right == 0 or q == 1.0:
        return 1.0
    tail = float(betainc(right, guesses - right + 1, q))
    if tail > 1.0 - 1e-9:
        return 1.0
    log_mass = xlogy(right, q) + xlog1py(guesses - right, -q) - betaln(right + 1, guesses - right + 1)
    mass = math.exp(float(log_mass) - math.log(guesses + 1)) * (1.0 - _SLACK)
    if delta > 0.0:
        hazard = tail / mass if mass > 0.0 else 1.0
        share = hazard * (1.0 - tail) / right
        if by_release:
            share = MULTIPLIER if share <= MULTIPLIER else math.inf
        tail += delta * canaries * share
    return min(1.0, tail * (1.0 + _SLACK) + 1e-300)


def epsilon_lower(
    canaries: int, guesses: int, right: int, delta: float, beta: float, *, by_release: bool = False
) -> float:
    """Return the largest ε whose p-value is at most ``beta``, from below; 0 where there is none."""
    if delta == 0.0:
        q = float(clopper_pearson_lower(right, guesses, beta))
        return max(0.0, math.log(q / (1.0 - q)) * (1.0 - 1e-12)) if q > 0.5 else 0.0

    def refuted(epsilon: float) -> bool:
        return p_value(canaries, guesses, right, epsilon, delta, by_release=by_release) <= beta

    return largest_holding(refuted, 0.0, LARGEST, tolerance=1e-9) if refuted(0.0) else 0.0


def symmetric_divergence(roc: Roc) -> Divergence:
    """Return γ ↦ the mean of E_γ in both directions, what a promise allows when coins are turned over at random."""
    mirror = roc.reversed()
    return lambda gamma: min(1.0, 0.5 * (roc.divergence(gamma) + mirror.divergence(gamma)) * (1.0 + _SLACK) + 1e-15)


def curve_p_value(divergence: Divergence, canaries: int, guesses: int, right: int) -> float:
    """Return an upper limit on the chance of so many right guesses under a whole promised curve, rounded up.

    Exact up to the choice of 24 values of γ. One linear programme of about 24·guesses rows, which finds multipliers;
    the answer is their certificate, or that of the best single γ. Seconds for 200 guesses, and growing a little faster
    than their number; beyond 400 the best single γ alone is taken, at most about half as large again.
    """
    if right == 0:
        return 1.0
    single = []
    for gamma in _gammas(divergence, FINE):
        single.append(p_value(canaries, guesses, right, math.log(gamma), divergence(float(gamma))))
    if guesses > MOST_GUESSES:
        return min(single)
    gammas = _gammas(divergence)
    deltas = np.array([divergence(float(gamma)) for gamma in gammas])
    multipliers = _multipliers(gammas, deltas, canaries, guesses, right)
    return min(*single, certified(gammas, deltas, multipliers, canaries, guesses, right))


def certified(gammas: Array, deltas: Array, multipliers: Array, canaries: int, guesses: int, right: int) -> float:
    """Return what the multipliers, whichever they are, prove; rounded up. O(guesses) for each of about 45 ν."""
    used = multipliers > 0.0
    if not used.any():
        return 1.0
    heights = np.append(0.0, np.cumsum(multipliers[used]))
    costs = np.append(0.0, np.cumsum(multipliers[used] * gammas[used]))
    most = float(heights[-1])
    lines: list[tuple[float, float, float]] = list(
        zip(heights[:-1].tolist(), costs[:-1].tolist(), gammas[used].tolist(), strict=True)
    )

    def cost(height: float) -> float:
        return max(paid + gamma * (height - start) for start, paid, gamma in lines)

    def height(budget: float) -> float:
        return min(most, *(start + (budget - paid) / gamma for start, paid, gamma in lines))

    def meets(nu: float) -> bool:
        up = 0.0
        for k in range(right):
            up = height((nu * canaries + k * up) / (guesses - k)) * (1.0 - _STEP)
        down = 0.0
        for k in range(guesses, right - 1, -1):
            down = ((1.0 - nu) * canaries + (guesses - k) * (cost(down) if k < guesses else 0.0)) / k * (1.0 + _STEP)
            if down > most:
                return False
        return down <= up

    if not meets(1.0):
        return 1.0
    nu = smallest_holding(meets, 0.0, 1.0, tolerance=1e-12)
    return min(1.0, (float(multipliers @ deltas) + nu) * (1.0 + _SLACK))


def _gammas(divergence: Divergence, count: int = GAMMAS) -> Array:
    """Values of γ from 1 to where the curve has come down to its limit."""
    limit = divergence(math.inf)
    top = next((k for k in range(1, 200) if divergence(math.exp(0.25 * k)) <= limit + NARROW), 200)
    return np.exp(np.linspace(0.0, 0.25 * top, count))


def _multipliers(gammas: Array, deltas: Array, canaries: int, guesses: int, right: int) -> Array:
    """Solve the linear programme for the weights of the numbers right; return the multipliers of the promise."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    j, size, count = np.arange(guesses), guesses + 1, len(gammas)
    rows, columns, values, bounds = [], [], [], []
    for i, (gamma, delta) in enumerate(zip(gammas, deltas, strict=True)):
        start, slack = i * size, size + i * guesses + j
        rows += [start + j, start + j, start + j, np.full(guesses, start + guesses)]
        columns += [j + 1, j, slack, slack]
        values += [(j + 1) / canaries, -gamma * (guesses - j) / canaries, -np.ones(guesses), np.ones(guesses)]
        bounds += [np.zeros(guesses), np.array([delta])]
    width = size + count * guesses
    triple = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    gain = np.where((np.arange(width) >= right) & (np.arange(width) < size), -1.0, 0.0)
    found: Any = linprog(  # type: ignore[call-overload]
        gain,
        A_ub=coo_matrix(triple, shape=(count * size, width)).tocsr(),
        b_ub=np.concatenate(bounds),
        A_eq=coo_matrix((np.ones(size), (np.zeros(size, dtype=int), np.arange(size))), shape=(1, width)).tocsr(),
        b_eq=[1.0],
        method="highs-ipm",
    )
    if found.status != 0:
        return np.zeros(count)
    return np.asarray(np.maximum(0.0, -np.asarray(found.ineqlin.marginals)[guesses::size]))
