"""Risks: what a number like "accuracy" or "PPV" reads off the attacker's ROC at a given prior.

A risk is a callable ``risk(roc, prior) -> float``: the largest value of the metric that any attacker on that curve
reaches when a record is a member with probability ``prior``.

The general family (Koyejo et al. 2014; Xu et al. 2022, eq. 8) are ratios of the confusion probabilities,

    (a0 + a11·TP + a10·FP + a01·FN + a00·TN) / (b0 + b11·TP + b10·FP + b01·FN + b00·TN),

first index the guess, second the truth, TP = prior·TPR, FN = prior·(1-TPR), FP = (1-prior)·FPR,
TN = (1-prior)·(1-FPR). Such a ratio is quasi-linear, so its maximum over the convex set of reachable
(FPR, TPR) lies on the curve (or on its mirror image, for metrics that reward being wrong).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import InputError, InputTypeError, check_number, check_prior, check_probability
from whosin.roc import Roc

__all__ = [
    "RatioMetric",
    "Risk",
    "accuracy",
    "advantage",
    "advantage_at_prior",
    "am",
    "npv",
    "ppv",
    "ppv_at_fpr",
    "resolve",
    "tpr_at_fpr",
    "weighted_accuracy",
]

Risk = Callable[[Roc, float], float]
"""From a curve and a prior to the largest value of a metric: what this module has, or a function of one's own."""


def accuracy(roc: Roc, prior: float = 0.5) -> float:
    """Return the best share of right guesses, prior·TPR + (1-prior)·(1-FPR); never below max(prior, 1-prior).

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.risks.accuracy(wi.PureDP(1.0).roc, prior=0.5), 4)
    0.7311
    """
    prior = check_prior(prior)
    return min(1.0, max(prior, 1.0 - prior, 1.0 - prior + roc.support(prior, prior - 1.0)))


def advantage(roc: Roc, prior: float = 0.5) -> float:
    """Return the largest TPR - FPR; it does not depend on the prior.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.risks.advantage(wi.PureDP(1.0).roc), 4)
    0.4621
    """
    check_prior(prior)
    return roc.divergence(1.0)


def advantage_at_prior(roc: Roc, prior: float = 0.5) -> float:
    """Return 2·accuracy - 1, the membership advantage of Xu et al. (definition 1).

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.risks.advantage_at_prior(wi.PureDP(1.0).roc, prior=0.4), 4)
    0.4621
    """
    return 2.0 * accuracy(roc, prior) - 1.0


def ppv(roc: Roc, prior: float = 0.5) -> float:
    """Return the highest probability that an accused record is a member (precision), over all attackers.

    It is the largest posterior that any output can cause. Where the likelihood ratio has no bound the value is 1,
    approached by attackers who accuse almost nobody: use :func:`ppv_at_fpr` for a number that tells more.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.risks.ppv(wi.PureDP(1.0).roc, prior=0.1), 4)
    0.232
    """
    return posterior_at(check_prior(prior), math.log(roc.slopes[1]) if roc.slopes[1] > 0 else -math.inf)


def npv(roc: Roc, prior: float = 0.5) -> float:
    """Return the highest probability that an acquitted record is no member, over all attackers.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.risks.npv(wi.PureDP(1.0).roc, prior=0.1), 4)
    0.9607
    """
    low = roc.slopes[0]
    return absence_at(check_prior(prior), math.log(low) if low > 0 else -math.inf)


def posterior_at(prior: float, log_ratio: float) -> float:
    """Return the posterior of membership after an output of this log likelihood ratio (Bayes)."""
    if log_ratio == -math.inf:
        return 0.0
    if log_ratio < 0:
        weight = math.exp(max(log_ratio, -700.0)) * prior / (1.0 - prior)
        return weight / (1.0 + weight) * math.exp(min(0.0, log_ratio + 700.0))
    return prior / (prior + math.exp(-log_ratio) * (1.0 - prior))


def absence_at(prior: float, log_ratio: float) -> float:
    """Return the posterior of absence after an output of this log likelihood ratio, one minus that of membership.

    Written out, because the subtraction would leave no digits where membership is nearly certain.
    """
    outside = 1.0 - prior
    if log_ratio > 0:
        return math.exp(-log_ratio) * outside / (prior + math.exp(-log_ratio) * outside)
    return outside / (outside + math.exp(log_ratio) * prior)


def am(roc: Roc, prior: float = 0.5) -> float:
    """Return the largest arithmetic mean of TPR and TNR (balanced accuracy); it does not depend on the prior.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.risks.am(wi.PureDP(1.0).roc), 4)
    0.7311
    """
    check_prior(prior)
    return 0.5 + 0.5 * roc.divergence(1.0)


def weighted_accuracy(member_weight: float) -> Risk:
    """Return the risk w·TP + (1-w)·TN over w·prior + (1-w)·(1-prior), with members counting ``member_weight`` = w.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.PureDP(1.0).risk(wi.risks.weighted_accuracy(0.7)), 4)
    0.7311
    """
    w = check_number("member_weight", member_weight, low=0.0, high=1.0, open_low=True, open_high=True)
    return RatioMetric((0.0, w, 0.0, 0.0, 1.0 - w), (0.0, w, 1.0 - w, w, 1.0 - w), name=f"weighted_accuracy({w:g})")


def tpr_at_fpr(fpr: float) -> Risk:
    """Return the risk "TPR at this FPR".

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.PureDP(1.0).risk(wi.risks.tpr_at_fpr(0.01)), 4)
    0.0272
    """
    rate = check_probability("fpr", fpr)

    def risk(roc: Roc, prior: float = 0.5) -> float:
        check_prior(prior)
        return float(roc.tpr(rate))

    return risk


def ppv_at_fpr(fpr: float) -> Risk:
    """Return the risk "PPV of the best attacker at this FPR" (Jayaraman et al. 2020).

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.PureDP(1.0).risk(wi.risks.ppv_at_fpr(0.01), prior=0.1), 4)
    0.232
    """
    rate = check_number("fpr", fpr, low=0.0, high=1.0, open_low=True)

    def risk(roc: Roc, prior: float = 0.5) -> float:
        prior = check_prior(prior)
        found = float(roc.tpr(rate))
        return prior / (prior + (1.0 - prior) * (rate / found)) if found > 0.0 else 0.0

    return risk


@dataclass(frozen=True)
class RatioMetric:
    """A ratio of two weighted sums of the confusion probabilities, as (a0, a11, a10, a01, a00) over the same of b.

    Parameters
    ----------
    a, b : sequence of five numbers
        Weights of (1, TP, FP, FN, TN) in the numerator and the denominator. The denominator must be positive
        wherever an attacker can get to; it may vanish together with the numerator at a corner (PPV at (0, 0)).
    name : str, default "ratio"
        A name for tables.

    Examples
    --------
    >>> import whosin as wi
    >>> f1 = wi.risks.RatioMetric(a=(0, 2, 0, 0, 0), b=(0, 2, 1, 1, 0), name="F1")
    >>> round(wi.PureDP(1.0).risk(f1, prior=0.5), 4)
    0.7311
    """

    a: Sequence[float]
    b: Sequence[float]
    name: str = "ratio"

    def __post_init__(self) -> None:
        for side in ("a", "b"):
            object.__setattr__(self, side, _five(side, getattr(self, side)))

    def __call__(self, roc: Roc, prior: float = 0.5) -> float:
        """Return the largest value that any attacker on the curve reaches, rounded up for smooth curves."""
        num, den = self._linear(check_prior(prior))
        self._check_denominator(roc, den)
        if roc.vertices is not None:
            return _best_vertex(roc, num, den)
        return _best_smooth(roc, num, den)

    def threshold(self, roc: Roc | None = None, prior: float = 0.5) -> float | None:
        """Return the posterior above which the best attacker says "member", or None where there is no such rule.

        Without a curve this is lemma 2 of Xu et al., corrected: with b11 = b01 and b10 = b00 the denominator does
        not depend on the guess and t = (a00 - a10) / κ, provided κ = a11 - a10 - a01 + a00 > 0 (for κ < 0 the
        direction flips, for κ = 0 the best guess is constant). With a curve it is lemma 3, which needs the optimum.
        """
        _, a11, a10, a01, a00 = self.a
        _, b11, b10, b01, b00 = self.b
        if b11 == b01 and b10 == b00:
            kappa = a11 - a10 - a01 + a00
            return (a00 - a10) / kappa if kappa > 0 else None
        if roc is None:
            return None
        best = self(roc, prior)
        gain_member = (a11 - a01) - best * (b11 - b01)
        gain_outsider = (a10 - a00) - best * (b10 - b00)
        kappa = gain_member - gain_outsider
        return -gain_outsider / kappa if kappa > 0 else None

    def _linear(self, prior: float) -> tuple[Linear, Linear]:
        return _linear(self.a, prior), _linear(self.b, prior)

    def _check_denominator(self, roc: Roc, den: Linear) -> None:
        smallest = den.constant - roc.support(-den.tpr, -den.fpr)
        scale = abs(den.constant) + abs(den.tpr) + abs(den.fpr)
        if smallest < -1e-12 * scale or scale == 0.0:
            raise InputError(
                f"b must have weights whose denominator is positive for every attacker, got {tuple(self.b)!r}: "
                f"the denominator reaches {smallest:.6g}"
            )


@dataclass(frozen=True)
class Linear:
    """A value that is linear in the two rates: constant + tpr·TPR + fpr·FPR."""

    constant: float
    tpr: float
    fpr: float

    def at(self, fpr: Any, tpr: Any) -> Any:
        """Return the value at the two rates."""
        return self.constant + self.tpr * tpr + self.fpr * fpr


def linear_of(metric: Any, prior: float) -> Linear | None:
    """Return a metric that is linear in the two rates at a prior as such, None for others."""
    if isinstance(metric, RatioMetric):
        top, bottom = metric._linear(prior)
        if bottom.tpr != 0.0 or bottom.fpr != 0.0 or bottom.constant <= 0.0:
            return None
        scale = 1.0 / bottom.constant
        return Linear(scale * top.constant, scale * top.tpr, scale * top.fpr)
    named = {
        advantage: Linear(0.0, 1.0, -1.0),
        am: Linear(0.5, 0.5, -0.5),
        advantage_at_prior: Linear(1.0 - 2.0 * prior, 2.0 * prior, -2.0 * (1.0 - prior)),
        accuracy: Linear(1.0 - prior, prior, -(1.0 - prior)),
    }
    return named.get(metric)


def _linear(weights: Sequence[float], prior: float) -> Linear:
    w0, w11, w10, w01, w00 = weights
    return Linear(w0 + w01 * prior + w00 * (1.0 - prior), prior * (w11 - w01), (1.0 - prior) * (w10 - w00))


def _five(side: str, weights: Sequence[float]) -> tuple[float, ...]:
    try:
        values = tuple(weights)
    except TypeError:
        raise InputTypeError(f"{side} must be five numbers (w0, w11, w10, w01, w00), got {weights!r}") from None
    if len(values) != 5:
        raise InputError(f"{side} must be five numbers (w0, w11, w10, w01, w00), got {len(values)}")
    return tuple(check_number(f"{side}[{i}]", v, open_low=True, open_high=True) for i, v in enumerate(values))


def _best_vertex(roc: Roc, num: Linear, den: Linear) -> float:
    """Largest ratio over the corners of the reachable polygon, those where both sides vanish left out."""
    assert roc.vertices is not None
    upper = np.vstack([np.zeros((1, 2)), roc.vertices])
    points = np.vstack([upper, 1.0 - upper])
    top, bottom = num.at(points[:, 0], points[:, 1]), den.at(points[:, 0], points[:, 1])
    positive = bottom > 0.0
    if np.any(top[~positive] > 0.0):
        return math.inf
    with np.errstate(over="ignore"):
        return float(np.max(top[positive] / bottom[positive]))


def _best_smooth(roc: Roc, num: Linear, den: Linear) -> float:
    """Smallest L with max over the curve of (numerator - L·denominator) ≤ 0, by bisection from above."""

    def gap(level: float) -> float:
        return num.constant - level * den.constant + roc.support(num.tpr - level * den.tpr, num.fpr - level * den.fpr)

    corners = [(num.at(f, t), den.at(f, t)) for f, t in ((0.0, 0.0), (1.0, 1.0))]
    low = max(n / d for n, d in corners if d > 0)
    width = 1.0
    while gap(low + width) > 0:
        width *= 2.0
        if width > 1e300:
            return math.inf
    if gap(low) <= 0:
        return float(low)
    high = float(low) + width
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if gap(middle) > 0 else (low, middle)
    return float(high)


NAMED: dict[str, Risk] = {
    "accuracy": accuracy,
    "advantage": advantage,
    "advantage_at_prior": advantage_at_prior,
    "am": am,
    "npv": npv,
    "posterior": ppv,
    "ppv": ppv,
}


def resolve(metric: str | Risk) -> Risk:
    """Return the risk of that name, or the callable itself.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.risks.resolve("ppv")(wi.PureDP(1.0).roc, 0.1), 4)
    0.232
    """
    if callable(metric):
        return metric
    if not isinstance(metric, str):
        raise InputTypeError(f"metric must be a name or a callable (roc, prior), got {metric!r}")
    if metric not in NAMED:
        raise InputError(f"metric must be one of {', '.join(sorted(NAMED))} or a callable (roc, prior), got {metric!r}")
    return NAMED[metric]
