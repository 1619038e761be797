"""How numbers of a column are scaled and ranked, and how often values occur, from counts of its distinct values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array, Counts, Single
from whosin.tables.levels import Levels

_LIMIT = 1e6
_HEAVY = 100.0
_MOST_RANKS = 65_536


def smoothed_shares(counts: Counts) -> Array:
    """Return (count + ½)/(rows + (values + 1)/2) for the count of each value, of which ``values`` are above 0.

    The estimate of Krichevsky and Trofimov (1981) with one symbol more, which stands for all that was not seen: the
    shares of the values seen and that of "any other" sum to 1. So a share is above 0 and below 1, a value that was not
    seen is rarer than all that were, and how many others were not seen plays no part.
    """
    shares: Array = (counts + 0.5) / (counts.sum() + (np.count_nonzero(counts) + 1) / 2)
    return shares


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """How many rows of a table have each value of a column, and how many of its values so many rows have."""

    of_codes: Counts
    """Rows with each code, of all tables' values."""
    sizes: Counts
    """The different numbers of rows that a value of the table has, rising."""
    values: Counts
    """How many values have each of them."""

    @classmethod
    def of(cls, counts: Counts, of_codes: Counts) -> ValueCounts:
        """Count from the rows that each value of the table has, zeros left out, and those of each code."""
        return cls(of_codes, *np.unique(counts[counts > 0], return_counts=True))

    def shared_by(self, rows: Counts) -> Counts:
        """Return how many values of the table so many rows have."""
        places = np.searchsorted(self.sizes, rows).clip(max=len(self.sizes) - 1)
        return np.where(self.sizes[places] == rows, self.values[places], 0)


def learn_rules(levels: Levels, counts: Counts) -> Rules | None:
    """Learn how a column is scaled and ranked from how often each of its values was seen; those with 0 play no part.

    None for categories, and for a column in which one value alone, or nothing but missing cells, was seen: every other
    value is then as far as can be, which the codes of its cells tell as well.
    """
    if levels.kind == "category" or np.count_nonzero(counts) <= 1:
        return None
    known = counts[: levels.known]
    numbers, seen = levels.numbers[known > 0], known[known > 0]
    return Scaling.of(numbers, seen), Ranks.of(numbers, seen)


def scaled_levels(levels: Levels, rule: Scaling | Ranks | None) -> Single | None:
    """Return the scaled value of each level, 0 for a missing cell."""
    if rule is None:
        return None
    values = np.zeros(levels.size, dtype=np.float32)
    values[: levels.known] = rule(levels.numbers)
    return values


@dataclass(frozen=True)
class Scaling:
    """Takes the median off and divides by the distance of the quartiles, or by the standard deviation; cuts at ±10⁶.

    Numbers are first divided by a power of two, which is exact, so that no intermediate value overflows. Where all
    numbers learnt from are the same, others are cut at once.
    """

    exponent: int
    middle: float
    spread: float

    @classmethod
    def of(cls, numbers: Array, counts: Counts) -> Scaling:
        """Learn from distinct numbers in rising order and how often each occurs."""
        exponent = int(np.frexp(np.abs(numbers).max())[1])
        unit = np.ldexp(numbers, -exponent)
        low, middle, high = _quantiles(unit, counts, (0.25, 0.5, 0.75))
        spread = high - low
        if spread == 0.0:
            shares = counts / counts.sum()
            spread = float(np.sqrt(shares @ (unit - shares @ unit) ** 2))
        return cls(exponent, middle, spread)

    def __call__(self, numbers: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            unit = np.ldexp(numbers, -self.exponent)
            return np.clip(np.nan_to_num((unit - self.middle) / np.float64(self.spread)), -_LIMIT, _LIMIT)


def _quantiles(numbers: Array, counts: Counts, levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return the smallest value that has at least each share of the rows at or below it."""
    below = np.cumsum(counts)
    places = [int(np.searchsorted(below, level * below[-1])) for level in levels]
    return tuple(float(numbers[place]) for place in places)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Gives 2r/n − 1 for the average rank r of a number, so that the ranks of n distinct numbers fill (−1, 1).

    Of more than 65,536 distinct numbers some are known, evenly in their ranks; one between two of them stands at
    the lower end of the upper one.
    """

    numbers: Array
    below: Counts
    """Rows below each of the numbers, and all rows."""

    @classmethod
    def of(cls, numbers: Array, counts: Counts) -> Ranks:
        """Learn from distinct numbers in rising order and how often each occurs."""
        below = np.append(0, np.cumsum(counts))
        if len(numbers) > _MOST_RANKS:
            wanted = np.linspace(0.0, below[-1], _MOST_RANKS)
            kept = np.unique(np.searchsorted(below, wanted).clip(0, len(numbers) - 1))
            return cls(numbers[kept], np.append(below[kept], below[-1]))
        return cls(numbers, below)

    def __call__(self, numbers: Array) -> Array:
        under, upto = (self.below[np.searchsorted(self.numbers, numbers, side=side)] for side in ("left", "right"))
        ranks: Array = (under + upto) / self.below[-1] - 1.0
        return ranks


Rules = tuple[Scaling, Ranks]


def remarks(levels: Levels, rule: Scaling | None) -> list[str]:
    """Return what a reader should know about a column and how it is scaled."""
    said = []
    if levels.kind != "category" and rule is None:
        constant, seen = "is constant and left out of the numbers", "takes one value where scales are learnt"
        said.append(constant if levels.size == 1 else f"{seen}: others count as different, near or far")
    elif rule is not None:
        far = float(np.abs(rule(levels.numbers[[0, -1]])).max())
        heavy = f"has values up to {far:.3g} quartile distances from its median: take ranks or logarithms of it first"
        said += [heavy] if far > _HEAVY else []
    rows = int(levels.counts[: levels.known].sum())
    if levels.known == 0:
        said.append("has no values at all")
    elif levels.holds == "text" and levels.known > rows / 2 and levels.known > 2:
        said.append(f"has {levels.known} different texts in {rows} rows: free text or an identifier?")
    return said
