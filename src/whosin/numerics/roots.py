"""Root finding that ends on the safe side.

A calibration asks for the largest (or smallest) parameter whose risk stays at or below a target. Floating point makes
the exact root a coin toss, so every search here returns a point at which the condition was evaluated and held.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_FARTHEST = math.log(8.0)


def largest_holding(holds: Callable[[float], bool], low: float, high: float, *, tolerance: float = 1e-13) -> float:
    """Return the largest x in [low, high] with ``holds(x)``, up to ``tolerance`` (relative, absolute below 1), from
    below.

    ``holds`` is true up to some point and false after; ``holds(low)`` must be true. Bisection, about 50 evaluations.
    """
    if holds(high):
        return high
    while high - low > tolerance * max(1.0, abs(low)):
        middle = low + 0.5 * (high - low)
        if middle in (low, high):
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def smallest_holding(holds: Callable[[float], bool], low: float, high: float, *, tolerance: float = 1e-13) -> float:
    """Return the smallest x in [low, high] with ``holds(x)``, from above; ``holds(high)`` must be true."""
    return -largest_holding(lambda x: holds(-x), -high, -low, tolerance=tolerance)


def smallest_below(
    value: Callable[[float], float],
    target: float,
    guess: float,
    *,
    tolerance: float,
    slope: float | None = None,
    evaluations: int = 80,
) -> float:
    """Return an x with ``value(x) <= target`` at most ``tolerance`` (relative) above the smallest such x.

    ``value`` is positive and falls as x > 0 grows. Newton and secant steps on ln value against ln x, aimed just to
    either side of the root so that the bracket closes quickly, and kept inside it; bisection where they leave it.
    ``slope`` is d ln value / d ln x near the guess, and saves the evaluation that a first secant takes. ArithmeticError
    if no such x was found within so many ``evaluations``.
    """
    too_small, enough = 0.0, math.inf
    previous: tuple[float, float] | None = None
    x = guess
    for count in range(evaluations):
        current = value(x)
        if current <= target:
            enough = min(enough, x)
        else:
            too_small = max(too_small, x)
        if math.isfinite(enough) and enough - too_small <= tolerance * enough:
            return enough
        here = math.log(x), math.log(max(current, 1e-300) / target)
        if previous is not None and previous[0] != here[0]:
            slope = (here[1] - previous[1]) / (here[0] - previous[0])
        previous = here
        x = _next_point(here, None if count % 4 == 3 else slope, too_small, enough, tolerance)
    raise ArithmeticError(f"no value at or below {target!r} found within {evaluations} evaluations")


def _next_point(
    here: tuple[float, float], slope: float | None, too_small: float, enough: float, tolerance: float
) -> float:
    """Where the line through ``here`` meets the target, moved 0.3·tolerance to the side that is still missing.

    At most a factor of 8 away; without a line inside the bracket the middle of the bracket in ln x.
    """
    if slope is not None and slope < 0.0:
        step = min(max(-here[1] / slope, -_FARTHEST), _FARTHEST)
        side = 1.0 if here[1] > 0.0 else -1.0
        x = math.exp(here[0] + step) * (1.0 + side * 0.3 * tolerance)
        if too_small < x < enough:
            return x
    if math.isinf(enough):
        return 8.0 * too_small
    return enough / 8.0 if too_small == 0.0 else math.sqrt(too_small * enough)
