"""Pairs that are (ε, δ)-close in both directions, one step or two, with twelve hundred digits.

The curve R of all such pairs has the corners (0, δ), (s(1-δ)/(1+s), δ + (1-δ)/(1+s)) and (1-δ, 1), s = e^{-ε} (Kairouz
et al. 2015); after two steps it is R∘R. What is read off them are differences that may be as small as a float can be
while the corners themselves are near 1/2 or 1, so floats keep no digit of them. Decimals do, at a cost of about a
millisecond, and every result is rounded up once, at the end.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from whosin.numerics.rounding import float_above

_DIGITS = Context(prec=1200, Emin=-(10**17), Emax=10**17)
_KEPT = Context(prec=800, Emin=-(10**17), Emax=10**17)
"""What is left of them (a float has up to 767): a result that is a float on paper is that float again."""

_LARGEST = 1e15
"""A larger ε counts as this much where s is needed: e^{-ε} is then nothing beside any other number here."""

Corners = list[tuple[Decimal, Decimal]]


def close_divergence(epsilon: float, delta: float, two_steps: bool, log_gamma: float) -> float:
    """Return E_γ(P‖Q), the largest TPR - γ·FPR on the curve, rounded up."""
    if math.isinf(epsilon):
        return 1.0
    with localcontext(_DIGITS):
        return min(
            1.0, float_above(_divergence(epsilon, delta, two_steps, Decimal(min(log_gamma, 2.0 * _LARGEST)).exp()))
        )


def close_excess(epsilon: float, delta: float, two_steps: bool, share: float) -> float:
    """Return the largest gain in accuracy over a blind guess where this share is in, rounded up: m·E_{(1-m)/m}."""
    rarer = min(Fraction(share), 1 - Fraction(share))
    if math.isinf(epsilon):
        return float_above(rarer)
    with localcontext(_DIGITS):
        return float_above(rarer * _divergence(epsilon, delta, two_steps, _decimal((1 - rarer) / rarer)))


def _divergence(epsilon: float, delta: float, two_steps: bool, gamma: Decimal) -> Fraction:
    found = max(y - gamma * x for x, y in _corners(epsilon, delta, two_steps))
    return min(Fraction(1), Fraction(max(Decimal(0), _KEPT.plus(found))))


def close_epsilon(epsilon: float, delta: float, at: float, two_steps: bool) -> float:
    """Return the smallest ε' ≥ 0 with E_{e^ε'} at most ``at``, rounded up; infinite where there is none."""
    if at >= 1.0:
        return 0.0
    if math.isinf(epsilon):
        return math.inf
    with localcontext(_DIGITS):
        limit, steepest = Decimal(at), Decimal(1)
        spare = max(Fraction(0), Fraction(epsilon) - Fraction(_LARGEST)) * (2 if two_steps else 1)
        for x, y in _corners(epsilon, delta, two_steps):
            if y > limit and x == 0:
                return math.inf
            if y > limit:
                steepest = max(steepest, (y - limit) / x)
        return float_above(Fraction(_KEPT.plus(steepest.ln())) + spare)


def log_above(ratio: Fraction) -> float:
    """Return ln of a ratio of at least 1, rounded up."""
    with localcontext(_DIGITS):
        return float_above(Fraction(_KEPT.plus(_decimal(ratio).ln())))


def sampled_epsilon(epsilon: float, rate: float) -> float:
    """Return ln(1 + β(e^ε - 1)) for ε up to 709, rounded up."""
    with localcontext(_DIGITS):
        return float_above(Fraction(_KEPT.plus((1 + Decimal(rate) * (Decimal(epsilon).exp() - 1)).ln())))


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _corners(epsilon: float, delta: float, two_steps: bool) -> Corners:
    """Corners of R, or of R∘R: where R(x) passes a corner of R, and those of R itself."""
    d, s = Decimal(delta), Decimal(-min(epsilon, _LARGEST)).exp()
    x, y = (1 - d) * s / (1 + s), d + (1 - d) / (1 + s)
    if not two_steps:
        return [(Decimal(0), d), (x, y), (1 - d, Decimal(1))]

    def curve(fpr: Decimal) -> Decimal:
        return min(d + fpr / s, 1 - s * (1 - d - fpr), Decimal(1))

    def inverse(tpr: Decimal) -> Decimal:
        return max((tpr - d) * s, 1 - d - (1 - tpr) / s, Decimal(0))

    return [(fpr, curve(curve(fpr))) for fpr in (Decimal(0), inverse(x), x, inverse(1 - d), 1 - d)]
