"""The pool: whatever the user calls records, of which a part is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Indices
from whosin.errors import InputError, InputTypeError
from whosin.population.pool import train_size, whose

LARGEST = 1e300
"""Larger numbers are refused: their sums and differences may be infinite."""


@dataclass(frozen=True)
class Draw:
    """A uniform k-subset of n records, and what the attacker's accuracy makes of divergences.

    With q = k/n, m = min(q, 1-q) and γ = (1-m)/m the best attacker is right with probability 1 - m + m·E_γ, where E_γ
    compares the rarer with the commoner of "in" and "out".
    """

    records: int
    size: int

    @property
    def fraction(self) -> float:
        """q, the share that is drawn."""
        return self.size / self.records

    @property
    def rarer(self) -> float:
        """m, the prior probability of the rarer answer."""
        return min(self.size, self.records - self.size) / self.records

    @property
    def log_gamma(self) -> float:
        """ln γ, rounded down: divergences fall with γ."""
        small = min(self.size, self.records - self.size)
        if 2 * small == self.records:
            return 0.0
        return math.log((self.records - small) / small) * (1.0 - 4e-16)

    def per_divergence(self, eta: float) -> float:
        """η/m, the divergence that an excess of η allows, rounded down."""
        return eta / self.rarer * (1.0 - 4e-16)

    def excess(self, divergence: float) -> float:
        """m·E_γ, the excess that a divergence allows, rounded up."""
        return self.rarer * divergence * (1.0 + 4e-16)


def draw_of(records: int, train_fraction: float) -> Draw:
    """Return the draw of that share of the records; a half of an odd number is rounded down."""
    return Draw(records, train_size(records, train_fraction))


class Pool:
    """Records that can be counted and taken from, in whatever type they came.

    Arrays, lists and other sequences, pandas and polars frames and series, sparse matrices, and anything else with a
    length that can be indexed with an array of positions. A tuple holds aligned parts such as ``(X, y)``.
    """

    def __init__(self, records: Any) -> None:
        self.aligned = isinstance(records, tuple)
        self.parts: tuple[Any, ...] = records if isinstance(records, tuple) else (records,)
        counts = [_count(part, self.aligned) for part in self.parts]
        if not counts:
            raise InputError("records must have at least two records, got an empty tuple")
        if len(set(counts)) > 1:
            raise InputError(f"records must have aligned parts of one length, got lengths {counts}")
        if counts[0] < 2:
            raise InputError(f"records must have at least two records, got {counts[0]}")
        self.count = counts[0]
        self.whose: Indices | None = None

    def by_person(self, person: Any) -> Pool:
        """Return the pool of whole persons, in the order of their first rows."""
        persons = Pool(self.parts)
        persons.aligned, persons.whose = self.aligned, whose(person, self.count)
        persons.count = int(persons.whose.max()) + 1
        if persons.count < 2:
            raise InputError("person must name at least two persons, got one")
        return persons

    def rows(self, indices: Indices) -> Indices:
        """Return the positions of the rows of the chosen records or persons, those of persons in rising order."""
        if self.whose is None:
            return indices
        chosen = np.zeros(self.count, dtype=bool)
        chosen[indices] = True
        return np.flatnonzero(chosen[self.whose])

    def __len__(self) -> int:
        return self.count

    def take(self, indices: Indices) -> tuple[Any, ...]:
        """Return the chosen rows of every part, each in its own type."""
        rows = self.rows(indices)
        return tuple(_take(part, rows) for part in self.parts)


def _count(part: Any, aligned: bool) -> int:
    hint = ": a tuple holds aligned parts such as (X, y); give single records in a list" if aligned else ""
    if isinstance(part, str | bytes | dict | set) or not (hasattr(part, "shape") or hasattr(part, "__len__")):
        raise InputTypeError(f"records must be an array, a list or a data frame, got {type(part).__name__}{hint}")
    shape = getattr(part, "shape", None)
    if shape is not None and len(shape) == 0:
        raise InputTypeError(f"records must have one row per record, got a single number{hint}")
    return int(shape[0]) if shape is not None else len(part)


def _take(part: Any, indices: Indices) -> Any:
    if hasattr(part, "iloc"):
        return part.iloc[indices]
    if isinstance(part, Sequence):
        return [part[i] for i in indices.tolist()]
    if type(part).__module__.startswith("pyarrow"):
        return part.take(indices)
    return part[indices]
