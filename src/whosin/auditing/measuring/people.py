"""People, not rows: several records of one person count once.

Every limit of an audit rests on independent draws. Rows of one person, or of one family, are not: splitting and
counting them as if they were makes false alarms (families of ten near-equal rows: 64 % where 2.5 % are allowed). A
person's answer is any function of the answers about its records; here the largest and the mean, and the smallest where
small answers may speak for membership too. The population is then that of persons, and all limits hold word for word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Flags
from whosin.errors import InputError, InputTypeError

SEVERAL = "several"
"""The label of a person whose records have different ones."""


@dataclass(frozen=True, eq=False)
class People:
    """The people of one side, in the order in which they first appear."""

    names: NDArray[Any]
    number: NDArray[np.int64]
    """For each record the number of its person."""

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.number, kind="stable")

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.searchsorted(self.number[self._order], np.arange(len(self)))

    def pooled(self, values: NDArray[Any], how: str) -> NDArray[Any]:
        """Return the "largest", "smallest" or "mean" value of each person's records; O(records·columns)."""
        ordered = values[self._order]
        if how == "mean":
            counts = np.bincount(self.number, minlength=len(self))
            sums = np.add.reduceat(ordered, self._starts, axis=0)
            return np.asarray(sums / counts.reshape(-1, *[1] * (values.ndim - 1)))
        pick = np.maximum if how == "largest" else np.minimum
        return np.asarray(pick.reduceat(ordered, self._starts, axis=0))

    def first(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of each person's first record."""
        return values[self._order[self._starts]]

    def leading(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return for each person the number of the record with the largest value, the first of equals."""
        order = np.lexsort((np.arange(len(values)), -values, self.number))
        return np.asarray(order[self._starts])

    def sides(self, included: Flags, mend: str) -> Flags:
        """Return whether each person is in; ``mend`` says what to do if some are in with a part of their records."""
        some, every = self.pooled(included, "largest"), self.pooled(included, "smallest")
        split = np.flatnonzero(some & ~every)
        if split.size:
            raise InputError(
                f"person must put all records of a person on one side, but {split.size} are in with a part of theirs, "
                f"such as {str(self.names[split[0]])!r}: {mend}"
            )
        return every

    def labels(self, texts: NDArray[np.str_]) -> NDArray[np.str_]:
        """Return the label that all of a person's records have, or "several"."""
        _, codes = np.unique(texts, return_inverse=True)
        same = self.pooled(codes.reshape(-1), "largest") == self.pooled(codes.reshape(-1), "smallest")
        return np.where(same, self.first(texts), SEVERAL)


def people_in(person: Any, size: int, name: str = "records") -> People:
    """Return the people of one array of identifiers, one for each of ``size`` records."""
    return _numbered(_texts(person, name, size))


def people_of(person: Any, sizes: tuple[int, int]) -> tuple[People, People] | None:
    """Return the people of both sides from a pair of arrays of identifiers; None for None.

    Raises
    ------
    InputError
        If a person is on both sides: then nobody can say whether it is a member.
    """
    if person is None:
        return None
    try:
        inside, outside = person
    except (TypeError, ValueError):
        raise InputTypeError(
            "person must be a pair of arrays, one identifier per member and one per non-member, got "
            f"{type(person).__name__}"
        ) from None
    sides = [_texts(side, name, size) for side, name, size in zip((inside, outside), _SIDES, sizes, strict=True)]
    both = np.intersect1d(sides[0], sides[1])
    if both.size:
        raise InputError(
            f"person must put every person on one side, but {both.size} are on both, such as {str(both[0])!r}: move "
            "all rows of a person to the side that it belongs to, or leave these people out"
        )
    found = [_numbered(side) for side in sides]
    return found[0], found[1]


_SIDES = ("members", "non-members")


def _texts(side: Any, name: str, size: int) -> NDArray[np.str_]:
    values = np.asarray(side)
    if values.shape != (size,):
        raise InputError(f"person must have one identifier for each of the {size} {name}, got shape {values.shape}")
    texts = [_text(value) for value in values.tolist()]
    if None in texts:
        raise InputError(f"person must have an identifier in every row, got none in row {texts.index(None)} of {name}")
    return np.array(texts, dtype=str)


def _text(value: Any) -> str | None:
    """An identifier as text, so that 7, 7.0 and "7" are one person; None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _numbered(texts: NDArray[np.str_]) -> People:
    names, first, number = np.unique(texts, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return People(names[order], rank[number.reshape(-1)])
