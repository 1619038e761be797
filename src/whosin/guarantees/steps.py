"""One step of DP-SGD: the pair of laws that no step is easier to tell apart than, for each way to draw a batch.

Clipping norm 1, noise N(0, σ²), q the chance to be in the batch. E_γ(P‖Q) at γ = e^t, for arrays of t, rounded up:

* Poisson, add/remove and zero-out: (1-q)N(0) + qN(1) against N(0), and the other way round (Zhu, Dong and Wang 2022).
* Poisson, replace: (1-q)N(0) + qN(1) against (1-q)N(0) + qN(-1), both ways (docs/theory.md: a reflection puts the other
  record's gradient opposite to the record's own; exact, for runs too).
* fixed size, add/remove: as Poisson with a shift of 2: the record's place is taken by another record.
* fixed size, replace: q·E_c(N(2)‖N(0)), c = 1 + (γ-1)/q, for γ ≥ 1, both ways; fixed size, zero-out: (1-q)N(-1) + qN(1)
  against (1-q)N(-1) + qN(0) one way, q·E_c(N(1)‖N(0)) the other. Attained for each γ, by different data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array
from whosin.guarantees.dp import shifted_normal_excess

Divergence = Callable[[Array], Array]

LEAST_MU, LEAST_RATE = 1e-100, 1e-290  # what is hidden better, or drawn more rarely, counts as this
_TAIL = 10.0  # standard deviations; mass beyond is below 1e-23 and goes to infinite loss


@dataclass(frozen=True)
class Step:
    """E_{e^t} of a worst pair as a function of t, and the range outside of which hardly any loss lies."""

    divergence: Divergence
    low: float
    high: float


def step_of(noise: float, rate: float, sampling: str, adjacency: str, outsider: bool = False) -> Step:
    """Return the worst pair of one step, "in" against "out", or with the roles swapped."""
    if sampling == "fixed_size" and adjacency != "zero_out":
        noise = 0.5 * noise
    low, high = math.log1p(-min(rate, 0.999999)), highest_loss(noise, rate)  # ln(1 - q) has no float at q = 1
    if adjacency == "add_remove" or (sampling, adjacency) == ("poisson", "zero_out"):
        if outsider:
            return Step(lambda t: outsider_divergence(noise, rate, t), -high, -low)
        return Step(lambda t: sampled_divergence(noise, rate, t), low, high)
    if sampling == "poisson":
        return _joined(*2 * (lambda t: split_divergence(noise, rate, t, zeroed=False),), high - low)
    if adjacency == "replace":
        return _joined(*2 * (lambda t: sampled_divergence(noise, rate, t),), high)
    ways: list[Divergence] = [
        lambda t: split_divergence(noise, rate, t, zeroed=True),
        lambda t: sampled_divergence(noise, rate, t),
    ]
    forth, back = reversed(ways) if outsider else ways
    return _joined(forth, back, highest_loss(0.5 * noise, rate))


def _joined(forth: Divergence, back: Divergence, high: float) -> Step:
    """The step with ``forth`` for γ ≥ 1 and for γ < 1 the mirror image of ``back``: 1 - γ + γ·E_{1/γ}(Q‖P)."""

    def divergence(losses: Array) -> Array:
        value = np.empty_like(losses)
        up = losses >= 0.0
        value[up] = forth(losses[up])
        below = losses[~up]
        value[~up] = np.minimum(1.0, (np.exp(below) * back(-below) - np.expm1(below)) * (1.0 + 1e-15))
        return value

    return Step(divergence, -high, high)


def highest_loss(noise: float, rate: float) -> float:
    """Privacy loss of one step exceeded with probability below 1e-23, or 690: more counts as infinite."""
    mu = 1.0 / noise
    highest = np.logaddexp(math.log1p(-min(rate, 0.999999)), math.log(rate) + mu * (_TAIL + mu) - mu * mu / 2.0)
    return min(690.0, float(highest))


def sampled_divergence(noise: float, rate: float, losses: Array) -> Array:
    """Return E_γ(in‖out) of one step at γ = e^t for an array of t, rounded up.

    It is q·E_{γ'} of the full Gaussian with γ' = (γ - (1-q))/q = 1 + (γ-1)/q, and 1-γ below γ = 1-q.
    """
    mu, rate = max(1.0 / noise, LEAST_MU), max(rate, LEAST_RATE)
    with np.errstate(over="ignore"):
        more = np.minimum(np.expm1(losses) / rate, 1e308)
    value = -np.expm1(losses)
    inside = more > -1.0
    value[inside] = rate * shifted_normal_excess(mu, np.log1p(more[inside]))
    return limited(value, losses)


def outsider_divergence(noise: float, rate: float, losses: Array) -> Array:
    """Return E_γ(out‖in) of one step at γ = e^t for an array of t, rounded up.

    out - γ·in = (1 - γ(1-q))·N(0) - γq·N(1), so nothing is left from γ = 1/(1-q) on.
    """
    mu, rate = max(1.0 / noise, LEAST_MU), max(rate, LEAST_RATE)
    with np.errstate(over="ignore"):
        rest = rate - (1.0 - rate) * np.expm1(losses) + 1e-15 * rate
    value = np.zeros_like(losses)
    inside = rest > 0.0
    log_inner = losses[inside] + math.log(rate) - np.log(rest[inside])
    value[inside] = rest[inside] * shifted_normal_excess(mu, log_inner)
    return limited(value, losses)


def limited(value: Array, losses: Array) -> Array:
    """The value, no less than guessing blindly reaches: 1 - γ."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(value, np.maximum(0.0, -np.expm1(losses)), 1.0))


def split_divergence(noise: float, rate: float, losses: Array, zeroed: bool) -> Array:
    """Return E_γ for t ≥ 0 of one step in which the record is replaced, or ``zeroed``.

    (1-q)N(0) + qN(1) against (1-q)N(0) + qN(-1), or (1-q)N(-1) + qN(1) against (1-q)N(-1) + qN(0): that is
    ∫(q·N(1) - c₁·N(0) - c₂·N(-1))₊, with c₁ = (γ-1)(1-q) and c₂ = γq, or zeroed the other way round.
    Split q = w₁ + w₂ in any way: (a + b)₊ ≤ a₊ + b₊ gives at most w₁·E_{c₁/w₁}(N(1)‖N(0)) + w₂·E_{c₂/w₂}(N(1)‖N(-1)),
    and equality where both thresholds are the same. That split solves a quadratic equation; any rounding of it leaves
    an upper limit.
    """
    mu, rate = max(1.0 / noise, LEAST_MU), max(rate, LEAST_RATE)
    with np.errstate(divide="ignore"):
        rest = np.log(np.expm1(losses)) + math.log1p(-rate)
    same = losses + math.log(rate)
    costs = (same, rest) if zeroed else (rest, same)
    first, second = costs[0] - mu * mu / 2.0, costs[1] - 2.0 * mu * mu
    root = np.logaddexp(first, 0.5 * np.logaddexp(2.0 * first, math.log(4.0 * rate) + second))
    z = math.log(2.0 * rate) - root
    shares = first + z, second + 2.0 * z
    over = np.logaddexp(*shares) - math.log(rate)
    total = np.zeros_like(losses)
    for cost, share, shift in zip(costs, shares, (mu, 2.0 * mu), strict=True):
        seen = np.isfinite(share)
        weight = share[seen] - over[seen]
        total[seen] += np.exp(weight) * shifted_normal_excess(shift, cost[seen] - weight)
    return limited(total * (1.0 + 1e-13), losses)
