"""Limits that stay limits, as floats and as text: a printed upper limit is one, and so is a printed lower limit."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

__all__ = ["at_least", "at_most", "float_above"]


def float_above(exact: Fraction) -> float:
    """Return the smallest float that is not below a fraction."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def at_least(value: float, digits: int = 4) -> str:
    """Write a lower limit in so many significant digits, rounded down (but for the last bits of a float)."""
    return _rounded(value, digits, ROUND_FLOOR, -1)


def at_most(value: float, digits: int = 4) -> str:
    """Write an upper limit in so many significant digits, rounded up (but for the last bits of a float)."""
    return _rounded(value, digits, ROUND_CEILING, 1)


def _rounded(value: float, digits: int, rounding: str, outwards: int) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    exact = Decimal(value) - outwards * abs(Decimal(value)) * Decimal("1e-12")
    return f"{float(Context(prec=digits, rounding=rounding).plus(exact)):.{digits}g}"
