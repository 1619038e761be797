"""Rényi and zero-concentrated differential privacy as limits on the attacker's curve.

D_α(P‖Q) = ln E_Q[(dP/dQ)^α]/(α-1) falls under any test, so an attacker with rates (FPR, TPR) satisfies
d_α(TPR‖FPR) ≤ ε(α) and d_α(FPR‖TPR) ≤ ε(α), where d_α is the divergence of two coins. Each such pair of rates is itself
a mechanism (the answer of the test), so no smaller region is true: this is the sharpest curve that follows, sharper
than any conversion to one (ε, δ). The region is convex (D_α is jointly quasi-convex: van Erven and Harremoës 2014,
theorem 13). It is enclosed by tangents, each taken at a point that lies just outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from whosin.arrays import Array, Flags
from whosin.errors import InputError, check_number
from whosin.guarantees.dp import Adjacency, DifferentialPrivacy
from whosin.guarantees.profile import check_numbers, profile_roc
from whosin.roc import Roc

_FPRS = -np.concatenate([np.linspace(0.0, 4.0, 320), np.linspace(4.05, 30.0, 220), np.geomspace(30.3, 740.0, 200)])
"""Log odds of the FPRs at which the region is touched; those above 1/2 follow by symmetry."""
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class RenyiDP(DifferentialPrivacy):
    """Rényi differential privacy (Mironov 2017): D_α(A(D)‖A(D')) ≤ ε(α) for adjacent D, D' and every listed order α.

    Parameters
    ----------
    orders : sequence of float
        Orders α above 1, infinity included (pure differential privacy).
    epsilons : sequence of float
        One ε for each order.
    adjacency : {"add_remove", "replace", "zero_out"}, default "add_remove"
        What was compared.

    Notes
    -----
    Cost of the first look at the curve: a few milliseconds for each order, kept for later looks.

    Examples
    --------
    >>> import whosin as wi
    >>> run = wi.RenyiDP([2, 4, 8, 16, 32], [0.1, 0.2, 0.4, 0.8, 1.6])
    >>> round(run.implies(wi.ApproxDP, delta=1e-5).epsilon, 3)
    1.318
    """

    orders: Sequence[float]
    epsilons: Sequence[float]
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        orders = [
            check_number("orders", value, low=1.0, open_low=True) for value in check_numbers("orders", self.orders)
        ]
        found = [check_number("epsilons", value, low=0.0) for value in check_numbers("epsilons", self.epsilons)]
        if len(orders) != len(found) or len(set(orders)) < len(orders):
            raise InputError(
                f"orders and epsilons must be equally long lists without the same order twice, got {len(orders)} "
                f"orders ({len(set(orders))} different) and {len(found)} epsilons"
            )
        pairs = sorted(zip(orders, found, strict=True))
        self._set(orders=tuple(order for order, _ in pairs), epsilons=tuple(value for _, value in pairs))

    def _build_roc(self) -> Roc:
        return _renyi_roc(tuple(self.orders), tuple(self.epsilons))

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return (-ε, ε) of the order infinity, which bounds the ratio; (0, 0) where some ε is 0."""
        bound = 0.0 if min(self.epsilons) == 0.0 else self.epsilons[-1] if math.isinf(self.orders[-1]) else math.inf
        return -bound, bound


@dataclass(frozen=True)
class ZeroConcentratedDP(DifferentialPrivacy):
    """ρ-zero-concentrated differential privacy (Bun and Steinke 2016): D_α(A(D)‖A(D')) ≤ ρ·α for every order α > 1.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.ZeroConcentratedDP(0.5).advantage, 3)
    0.479
    """

    rho: float
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        self._set(rho=check_number("rho", self.rho, low=0.0))

    def at(self, orders: Sequence[float]) -> RenyiDP:
        """Return what it says of these orders."""
        return RenyiDP(orders, [_product(self.rho, order) for order in orders], self.adjacency)

    def _build_roc(self) -> Roc:
        if self.rho == 0.0 or math.isinf(self.rho):
            return Roc([0.0], [float(self.rho > 0.0)])
        orders = 1.0 + np.geomspace(1e-4, 60.0, 120) / math.sqrt(self.rho)
        return self.at(orders[(orders > 1.0) & np.isfinite(orders)].tolist()).roc

    def replace_roc(self) -> Roc:
        """Return the limit between data sets that differ by one replacement: two steps are 4ρ (Bun and Steinke)."""
        if self.adjacency == "replace":
            return self.roc
        return ZeroConcentratedDP(4.0 * self.rho, "replace").roc


def renyi_at(guarantee: RenyiDP, order: float) -> float:
    """Return ε at any order: (α-1)·ε(α) is convex in α, so chords limit it; ε rises with α."""
    orders, found = guarantee.orders, guarantee.epsilons
    above = [(a, e) for a, e in zip(orders, found, strict=True) if a >= order]
    if not above:
        return math.inf
    best = min(e for _, e in above)
    for a, e in zip(orders, found, strict=True):
        for b, f in above:
            if a < order < b < math.inf and math.isfinite(e) and math.isfinite(f):
                share = (order - a) / (b - a)
                best = min(
                    best, ((1.0 - share) * (a - 1.0) * e + share * (b - 1.0) * f) / (order - 1.0) * (1 + 8 * _EPS)
                )
    return best


def epsilon_of_orders(guarantee: RenyiDP | ZeroConcentratedDP, delta: float) -> float:
    """Return an ε at δ by the conversion of each order alone (Canonne, Kamath and Steinke 2020, proposition 12).

    No curve is as low as :attr:`roc`, but this one has no end: it holds where e^ε or δ is no float.
    """
    if delta <= 0.0:
        return math.inf
    if isinstance(guarantee, ZeroConcentratedDP):
        if guarantee.rho == 0.0 or math.isinf(guarantee.rho):
            return guarantee.rho
        best = math.sqrt(-math.log(delta) / guarantee.rho)
        orders = 1.0 + np.geomspace(0.3, 3.0, 200) * max(best, 1e-9 / math.sqrt(guarantee.rho))
        guarantee = guarantee.at(orders[(orders > 1.0) & np.isfinite(orders)].tolist())
    found = np.array(
        [pair for pair in zip(guarantee.orders, guarantee.epsilons, strict=True) if np.isfinite(pair).all()]
    )
    if not len(found):
        return math.inf
    orders, epsilons = found.T
    parts = epsilons, -np.log1p(1.0 / (orders - 1.0)), -(math.log(delta) + np.log(orders)) / (orders - 1.0)
    rounding = 16.0 * _EPS * np.sum(np.abs(parts), axis=0)
    return max(0.0, float(np.min(np.sum(parts, axis=0) + rounding)))


def _product(rho: float, order: float) -> float:
    return math.nextafter(rho * order, math.inf) if rho > 0.0 else 0.0


@lru_cache(maxsize=64)
def _renyi_roc(orders: tuple[float, ...], epsilons: tuple[float, ...]) -> Roc:
    if min(epsilons) == 0.0:
        return Roc([0.0], [0.0])
    pure = epsilons[-1] if math.isinf(orders[-1]) else math.inf
    known = np.array([pair for pair in zip(orders, epsilons, strict=True) if math.isfinite(pair[0] + pair[1])])
    lines, deltas = _tangents(known[:, :1], known[:, 1:]) if len(known) else (np.empty(0), np.empty(0))
    lines, deltas = np.append(lines, pure), np.append(deltas, 0.0 if math.isfinite(pure) else 1.0)
    return profile_roc(lines, deltas, deltas)


def _tangents(orders: Array, epsilons: Array) -> tuple[Array, Array]:
    """ε and δ of lines that touch the region, each of the order that seems to count at its FPR; slopes ≥ 1.

    The line of any order is true, so the order may be chosen roughly; the point where it touches is found exactly.
    """
    out = _FPRS[None, :]
    first = np.argmin(_just_outside(orders, epsilons, out, 22), axis=0)
    alpha, out = orders[first, 0], out[0]
    inside = _just_outside(alpha, epsilons[first, 0], out, 64)
    from_out = _largest_divergence(alpha, inside, out)[1]
    log_r, log_s = _log_share(inside) - _log_share(out), _log_share(-inside) - _log_share(-out)
    gap = log_s - log_r
    lower, upper = np.expm1((alpha - 1.0) * gap), np.expm1(alpha * gap)
    slope = np.where(from_out, (1.0 - 1.0 / alpha) * upper / lower, lower / upper / (1.0 - 1.0 / alpha))
    log_slope = np.log(slope) + np.where(from_out, log_r, log_s)
    tpr, run = np.exp(_log_share(inside)), np.exp(log_slope + _log_share(out))
    deltas = np.clip(tpr - run + 64.0 * _EPS * (tpr + run), 0.0, 1.0)
    kept = np.isfinite(log_slope) & (log_slope >= 0.0)
    return log_slope[kept], deltas[kept]


def _just_outside(orders: Array, epsilons: Array, out: Array, halvings: int) -> Array:
    """Log odds of a TPR that no test reaches at these FPRs; halvings bring it nearer to the largest that one does."""
    low, high = np.broadcast_arrays(out + 0.0 * orders, 745.0)
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        outside = _largest_divergence(orders, middle, out)[0] > epsilons
        low, high = np.where(outside, low, middle), np.where(outside, middle, high)
    return np.asarray(high)


def _largest_divergence(orders: Array, inside: Array, out: Array) -> tuple[Array, Flags]:
    """The larger of d_α(TPR‖FPR) and d_α(FPR‖TPR) at log odds of the rates, rounded down; whether it is the first."""
    parts = _log_share(inside), _log_share(-inside), _log_share(out), _log_share(-out)
    first, second = _coins(orders, *parts), _coins(orders, *parts[2:], *parts[:2])
    return np.maximum(first, second), np.asarray(first >= second)


def _coins(orders: Array, p: Array, not_p: Array, q: Array, not_q: Array) -> Array:
    """d_α of two coins from the logarithms of their chances, less what rounding may have added to it.

    Of equal coins both terms cancel, so a small divergence at an order near 1 may be rounding alone.
    """
    more = orders - 1.0
    one, two = orders * p - more * q, orders * not_p - more * not_q
    total = np.logaddexp(one, two)
    shares = np.exp(one - total), np.exp(two - total)
    sizes = orders * np.abs(p) + more * np.abs(q), orders * np.abs(not_p) + more * np.abs(not_q)
    rounding = shares[0] * sizes[0] + shares[1] * sizes[1] + np.minimum(*shares)
    return np.asarray((total - 8.0 * _EPS * rounding) / more)


def _log_share(log_odds: Array) -> Array:
    return np.asarray(-np.logaddexp(0.0, -log_odds))
