"""The largest ε whose practical parameter on these records stays at or below a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from whosin.errors import CalibrationError, check_choice, check_confidence, check_number, check_rng, check_whole
from whosin.population.exponential.analysis import exponential
from whosin.population.local import randomized_response
from whosin.population.result import PopulationPrivacy
from whosin.population.sums.analysis import gaussian, laplace

__all__ = ["largest_epsilon"]

MECHANISMS: dict[str, Callable[..., PopulationPrivacy]] = {
    "exponential": exponential,
    "gaussian": gaussian,
    "laplace": laplace,
    "randomized_response": randomized_response,
}

REFINEMENTS = 20
"""How many bisections follow the scan at the most."""
PRECISION = 1.0001
"""They end where the last good and the next bad ε are within this factor."""


def largest_epsilon(
    records: Any,
    *,
    mechanism: str,
    target: float,
    smallest: float = 0.01,
    largest: float = 100.0,
    points: int = 25,
    confidence_level: float = 0.95,
    progress: Callable[[float], None] | None = None,
    rng: Any = None,
    **options: Any,
) -> PopulationPrivacy:
    """Return the analysis at the largest ε found whose ε̃ is at most ``target`` (Lowy et al. advise 0.1).

    Parameters
    ----------
    mechanism : {"exponential", "gaussian", "laplace", "randomized_response"}
        Its other arguments (candidates, clip, delta, …) go in ``options``.
    target : float
        Largest tolerable ε̃.
    smallest, largest : float, default 0.01 and 100
        Where to look.
    points : int, default 25
        How many values of ε there are, evenly in ln ε; as many again, up to 20, refine the last good one.
    confidence_level : float, default 0.95
        Probability that the returned limit holds, where it is sampled.
    progress : callable, optional
        Called with the share of the evaluations done.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes, for methods that sample.

    Raises
    ------
    CalibrationError
        If no scanned ε keeps the target.

    Notes
    -----
    ε̃ is not monotone in ε for the exponential mechanism, so that all values are scanned; for the others the last good
    one is found by halving. It is refined towards the next bad one; the returned analysis was evaluated and keeps the
    target. A sampled method shares the missing confidence among all evaluations that there may be, so that the one that
    is chosen holds with ``confidence_level``. There are about 17 evaluations by halving and up to 45 by scanning, each
    as long as one call of the mechanism's function: ``method="pairwise"`` makes those of noisy sums quick and cautious.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> heights = np.linspace(-1, 1, 40)
    >>> found = wi.population.largest_epsilon(
    ...     heights, mechanism="gaussian", target=0.2, delta=1e-3, clip=1.0, points=5, method="pairwise"
    ... )
    >>> found.pmp.epsilon <= 0.2, round(found.dp.epsilon, 2)
    (True, 0.29)
    """
    target = check_number("target", target, low=0.0)
    play = MECHANISMS[check_choice("mechanism", mechanism, tuple(MECHANISMS))]
    low = check_number("smallest", smallest, low=0.0, open_low=True, open_high=True)
    high = check_number("largest", largest, low=low, open_high=True)
    count = check_whole("points", points, low=2)
    level = check_confidence(confidence_level)
    most = count + min(count, REFINEMENTS)
    seeds = _seeds(rng, most)
    looks = 0

    def look(epsilon: float) -> PopulationPrivacy:
        nonlocal looks
        sampling = {"confidence_level": 1.0 - (1.0 - level) / most, "rng": next(seeds)}
        own = {} if play is randomized_response else sampling
        seen = play(records, epsilon=float(epsilon), **own, **options)
        looks += 1
        if progress is not None:
            progress(looks / most)
        return seen if seen.confidence_level is None else replace(seen, confidence_level=level)

    grid = [float(epsilon) for epsilon in np.geomspace(low, high, count)]
    seen: dict[int, PopulationPrivacy] = {}

    def keeps(place: int) -> bool:
        seen[place] = look(grid[place])
        return seen[place].pmp.epsilon <= target

    last = max(filter(keeps, range(count)), default=-1) if play is exponential else _last(keeps, count)
    if last < 0:
        least = min(each.pmp.epsilon for each in seen.values())
        raise CalibrationError(
            f"target={target:g} cannot be reached for ε in [{low:g}, {high:g}]: the smallest ε̃ seen is {least:.6g}"
        )
    best = grid[last], seen[last]
    if last + 1 < count:
        best = _refine(look, best, grid[last + 1], target, most - count)
    if progress is not None:
        progress(1.0)
    return best[1]


def _last(keeps: Callable[[int], bool], count: int) -> int:
    """The last place that keeps the target, -1 for none, by halving: with less noise nothing is better hidden."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _seeds(rng: Any, most: int) -> Iterator[int | None]:
    if rng is None:
        return iter([None] * most)
    generator = check_rng(rng)
    return iter([int.from_bytes(generator.bytes(16), "little") for _ in range(most)])


def _refine(
    look: Callable[[float], PopulationPrivacy],
    best: tuple[float, PopulationPrivacy],
    bad: float,
    target: float,
    evaluations: int,
) -> tuple[float, PopulationPrivacy]:
    """Move towards the next bad ε by bisection, keeping what was seen to hold."""
    for _ in range(evaluations):
        if bad <= best[0] * PRECISION:
            break
        middle = float(np.sqrt(best[0] * bad))
        seen = look(middle)
        if seen.pmp.epsilon <= target:
            best = middle, seen
        else:
            bad = middle
    return best
