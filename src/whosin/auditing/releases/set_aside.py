"""Held-out rows that serve as a reference where none is given.

Many more held-out than training rows hardly narrow the limits, whose width is that of the smaller side. As a reference
they find more (:doc:`the guide </guide/reference>`). So some of them are set aside: drawn at random, whole people
together, before anything is asked, and then neither asked about nor counted. Given them, the others are still
independent draws from the population, and an answer about a record is a function of that record, the release and rows
that are not counted. So every limit holds as it does with a reference of the caller's own: those of the splits, and
those from all thresholds of every query.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.measuring.people import People

TIMES = 2.0
"""Held-out records for each training record from which some are set aside."""
WIDER = 1.1
"""Factor by which the standard error of a difference of two shares may grow."""
FEWEST, MOST = 100, 5_000
"""Fewest that are set aside at all, and most."""


@dataclass(frozen=True, eq=False)
class Aside:
    """Which held-out rows are counted, and which are set aside; both rise."""

    counted: NDArray[np.int64]
    rows: NDArray[np.int64]


def number_aside(train: int, holdout: int) -> int:
    """Return how many of the held-out records (or people) are set aside.

    None of fewer than two for each training record. Otherwise as many as leave √(1/n₁ + 1/n₂) within 1.1 times what it
    is, but at most 5,000, and none rather than fewer than 100. Measured on seven releases of five tables, mean lower
    limits without and with: .245 and .273 at twice as many held-out as training rows, .255 and .298 at five times; at
    as many, .236 and .246, where three of the seven lose.
    """
    if holdout < TIMES * train:
        return 0
    kept = math.ceil(1.0 / (WIDER**2 * (1.0 / train + 1.0 / holdout) - 1.0 / train))
    aside = min(MOST, holdout - kept)
    return aside if aside >= FEWEST else 0


def set_aside(rows: int, people: People | None, count: int, rng: np.random.Generator) -> Aside:
    """Draw so many of the held-out records, or so many people with all their records, given whose each row is."""
    units = np.arange(rows) if people is None else people.number
    chosen = np.isin(units, rng.permutation(rows if people is None else len(people))[:count])
    return Aside(np.flatnonzero(~chosen), np.flatnonzero(chosen))
