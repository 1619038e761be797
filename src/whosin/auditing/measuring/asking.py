"""Asking several queries about every target; a query that cannot be answered is named, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError, short_repr


@dataclass(frozen=True)
class Query:
    """A number about each target; a larger one speaks for membership.

    Parameters
    ----------
    says : str
        What it measures, in words.
    answer : callable
        From a release to one number per target.
    """

    says: str
    answer: Callable[[Any], Array]


@dataclass(frozen=True)
class Answers:
    """What the queries answered, one row per target and one column per query, and those that could not be answered."""

    names: tuple[str, ...]
    values: Array
    failed: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    """What else is to be said of answers."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What failed and what is to be said, in words."""
        return (*(f"query {name} was left out: {why}" for name, why in self.failed), *self.remarks)


def ask(release: Any, known: Mapping[str, Query], wanted: Sequence[str]) -> Answers:
    """Answer the wanted queries; those that this release cannot answer are named in ``failed``.

    The answers themselves leave no query out: queries share the chance of error of the limits, and the shares must be
    fixed before the records are seen. One that says the same about everybody is kept, and where an answer is no number,
    it counts as the smallest.

    Raises
    ------
    InputError
        For a name that is not known, and if no query could be answered.
    """
    answered: dict[str, Array] = {}
    failed, remarks = [], []
    for name in wanted:
        if name not in known:
            raise InputError(f"query must be one of {', '.join(known)} here, got {name!r}")
        try:
            column = np.asarray(known[name].answer(release), dtype=np.float64)
        except (InputError, InputTypeError) as problem:
            failed.append((name, str(problem)))
            continue
        unanswered = np.isnan(column)
        answered[name] = np.where(unanswered, -np.inf, column)
        if unanswered.any():
            remarks.append(f"query {name} has no number for {unanswered.sum()} records: there it counts as smallest")
        elif column.min() == column.max():
            remarks.append(f"query {name} is {column[0] + 0.0:.6g} for every record")
    if not answered:
        raise InputError(f"query: none could be answered: {_reasons(failed)}")
    values = np.column_stack(list(answered.values()))
    if np.isneginf(values).all():
        raise InputError(f"query: none has a number for any record: {', '.join(answered)}")
    return Answers(tuple(answered), values, tuple(failed), tuple(remarks))


def given_scores(scores: Any, sizes: tuple[int, int], taken: Collection[str]) -> dict[str, Array]:
    """Return the caller's own scores of both sides, training side first, by names that are not ``taken``."""
    if scores is None:
        return {}
    if not isinstance(scores, Mapping):
        raise InputTypeError(f"scores must be a mapping from names to scores, got {short_repr(scores)}")
    found = {}
    for name, pair in scores.items():
        if not isinstance(name, str) or name in taken:
            raise InputError(f"scores must have names of their own, got {name!r}")
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputTypeError(
                f"scores must be pairs of arrays, of train and holdout, got {short_repr(pair)} for {name!r}"
            )
        try:
            sides = [np.asarray(side, dtype=np.float64) for side in pair]
        except (TypeError, ValueError) as error:
            raise InputError(f"scores must be numbers for {name!r}, got {type(error).__name__}: {error}") from error
        if [side.shape for side in sides] != [(size,) for size in sizes]:
            shapes = " and ".join(str(side.shape) for side in sides)
            raise InputError(f"scores must be {sizes[0]} and {sizes[1]} numbers for {name!r}, got shapes {shapes}")
        found[name] = np.concatenate(sides)
        gap = np.isnan(found[name])
        if gap.any():
            side, row = ("train", gap.argmax()) if gap.argmax() < sizes[0] else ("holdout", gap.argmax() - sizes[0])
            raise InputError(f"scores must be numbers for {name!r}, got NaN for row {row} of {side}")
    return found


def _reasons(failed: Sequence[tuple[str, str]]) -> str:
    """Return why each query failed, and a reason that they share once."""
    shared = {why for _, why in failed}
    return shared.pop() if len(shared) == 1 else "; ".join(f"{name}: {why}" for name, why in failed)
