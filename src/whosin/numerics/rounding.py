"""Numbers as text, for all that people read: three significant digits, and a printed limit is a limit.

Upper limits are rounded up, lower limits down, estimates to the nearest; text from the data cannot disturb the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

NOT_MEASURED = "–"

_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters, lone surrogates, and marks that turn the direction of the text around them."""


def float_above(exact: Fraction) -> float:
    """Return the smallest float that is not below a fraction."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def at_least(value: float | None, digits: int = 3) -> str:
    """Write a lower limit in so many significant digits, rounded down (but for the last bits of a float)."""
    return _rounded(value, digits, ROUND_FLOOR, -1)


def at_most(value: float | None, digits: int = 3) -> str:
    """Write an upper limit in so many significant digits, rounded up (but for the last bits of a float)."""
    return _rounded(value, digits, ROUND_CEILING, 1)


def about(value: float | None, digits: int = 3) -> str:
    """Write an estimate in so many significant digits, rounded to the nearest."""
    return _rounded(value, digits, ROUND_HALF_EVEN, 0)


def limits(found: Any) -> tuple[str, str, str]:
    """Write an estimate, or its dictionary, with its lower and its upper limit."""
    sides = ("estimate", "lower", "upper")
    value, low, high = (found[side] if isinstance(found, Mapping) else getattr(found, side) for side in sides)
    return about(value), at_least(low), at_most(high)


def percent_up(share: float | None) -> str:
    """Write an upper limit of a share as a percentage, rounded up."""
    return _percent(share, ROUND_CEILING)


def percent_down(share: float | None) -> str:
    """Write a lower limit of a share as a percentage, rounded down."""
    return _percent(share, ROUND_FLOOR)


def percent(share: float | None) -> str:
    """Write a measured share as a percentage, rounded to the nearest."""
    return _percent(share, ROUND_HALF_EVEN)


def of_hundred(rate: float) -> str:
    """Write a rate as a number of people in a hundred."""
    share = 100.0 * rate
    if share == 0.0:
        return "0"
    if share < 1.0:
        return "fewer than 1"
    return "more than 99" if 99.0 < share < 100.0 else f"{share:.0f}"


def confidence(level: float) -> str:
    """Write a confidence level as a percentage, as it was asked for."""
    return f"{100 * level:.10g}%"


def count(number: int) -> str:
    """Write a whole number with its thousands apart."""
    return f"{number:,}"


def counted(number: int, word: str) -> str:
    """Return a count with its word: "1 member", "2,000 members"."""
    return f"{count(number)} {word}" if number == 1 else f"{count(number)} {word}s"


def clean(text: Any) -> str:
    """Return the text with characters that HTML forbids, or that reorder what surrounds them, made visible as �."""
    return _UNFIT.sub("\ufffd", str(text))


def capital(text: str) -> str:
    """Return the text with its first letter large, unless it is a sign such as ε, whose large form nobody knows."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def sentence(line: str) -> str:
    """Return a line as a sentence: a capital in front, a full stop behind unless there is one."""
    return capital(line) if line.endswith((".", "…", "!", "?")) else f"{capital(line)}."


def _rounded(value: float | None, digits: int, rounding: str, outwards: int) -> str:
    if value is None or math.isnan(value):
        return NOT_MEASURED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    exact = Decimal(value) - outwards * abs(Decimal(value)) * Decimal("1e-12")
    rounded = float(Context(prec=digits, rounding=rounding).plus(exact)) + 0.0
    return f"{rounded:.0f}" if 10.0**digits <= abs(rounded) < 1e9 else f"{rounded:.{digits}g}"


def _percent(share: float | None, direction: str) -> str:
    if share is None or math.isnan(share):
        return NOT_MEASURED
    # twelve leading digits, so that 0.1 + 0.2 does not become 30.1%
    rounded = Decimal(f"{100.0 * share:.12g}").quantize(Decimal(1).scaleb(-_decimals(share)), rounding=direction)
    text = f"{abs(rounded) if rounded == 0 else rounded:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def _decimals(share: float) -> int:
    """Decimals of a percentage that show two significant digits of the rarer side; at most four next to 100%."""
    rarer = min(abs(share), abs(1.0 - share))
    most = 12 if share < 0.5 else 4
    return 1 if rarer >= 0.02 or rarer == 0.0 else min(most, -1 - math.floor(math.log10(rarer)))
