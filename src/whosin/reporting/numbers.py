"""Numbers as text: upper limits rounded up, lower limits rounded down, and text that cannot disturb the page."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

__all__ = [
    "about", "capital", "clean", "confidence", "count", "down", "percent", "percent_down", "percent_up", "sentence",
    "up",
]  # fmt: skip

NOT_MEASURED = "–"

_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters, lone surrogates, and marks that turn the direction of the text around them."""


def up(value: float, digits: int = 3) -> str:
    """Return an upper limit, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def down(value: float, digits: int = 3) -> str:
    """Return a lower limit, rounded down."""
    return _rounded(value, digits, ROUND_FLOOR)


def about(value: float, digits: int = 3) -> str:
    """Return an estimate, rounded to the nearest."""
    return _rounded(value, digits, ROUND_HALF_EVEN)


def percent_up(share: float) -> str:
    """Return an upper limit of a share as a percentage, rounded up."""
    return _percent(share, ROUND_CEILING)


def percent_down(share: float) -> str:
    """Return a lower limit of a share as a percentage, rounded down."""
    return _percent(share, ROUND_FLOOR)


def percent(share: float) -> str:
    """Return a measured share as a percentage, rounded to the nearest."""
    return _percent(share, ROUND_HALF_EVEN)


def confidence(level: float) -> str:
    """Return a confidence level as a percentage, as it was asked for."""
    return f"{100 * level:.10g}%"


def count(number: int) -> str:
    """Return a whole number with its thousands apart."""
    return f"{number:,}"


def clean(text: Any) -> str:
    """Return the text with characters that HTML forbids, or that reorder what surrounds them, made visible as �."""
    return _UNFIT.sub("\ufffd", str(text))


def capital(text: str) -> str:
    """Return the text with its first letter large."""
    return text[:1].upper() + text[1:]


def sentence(line: str) -> str:
    """Return a line as a sentence: a capital in front, a full stop behind unless there is one."""
    return capital(line) if line.endswith((".", "…", "!", "?")) else f"{capital(line)}."


def _rounded(value: float, digits: int, direction: str) -> str:
    """Round the twelve leading digits, so that 0.1 + 0.2 does not become 0.301."""
    if math.isnan(value):
        return NOT_MEASURED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    rounded = Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-digits), rounding=direction)
    return f"{abs(rounded) if rounded == 0 else rounded:f}"


def _percent(share: float, direction: str) -> str:
    if math.isnan(share):
        return NOT_MEASURED
    text = _rounded(100.0 * share, _decimals(share), direction)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def _decimals(share: float) -> int:
    """Decimals of a percentage that show two significant digits of the rarer side."""
    rarer = min(abs(share), abs(1.0 - share))
    return 1 if rarer >= 0.02 or rarer == 0.0 else min(10, -1 - math.floor(math.log10(rarer)))
