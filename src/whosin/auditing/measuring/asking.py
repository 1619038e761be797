"""Asking several queries about every target; a query that cannot be answered is named, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError

__all__ = ["Answers", "Query", "ask"]

Array = NDArray[np.float64]


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


def ask(release: Any, known: Mapping[str, Query], wanted: Sequence[str]) -> Answers:
    """Answer the wanted queries; those that fail or say the same about everybody are named in ``failed``.

    If all of them say the same about everybody, that is an answer too: the first of them is kept.

    Raises
    ------
    InputError
        For a name that is not known, and if no query could be answered.
    """
    useful: dict[str, Array] = {}
    constant: dict[str, Array] = {}
    failed = []
    for name in wanted:
        if name not in known:
            raise InputError(f"query must be one of {', '.join(known)} here, got {name!r}")
        try:
            column = np.asarray(known[name].answer(release), dtype=np.float64)
        except (InputError, InputTypeError) as problem:
            failed.append((name, str(problem)))
            continue
        if not np.isfinite(column).all():
            failed.append((name, "it is not finite for some records"))
        elif np.ptp(column) == 0.0:
            failed.append((name, f"it is {column[0]:.6g} for every record"))
            constant[name] = column
        else:
            useful[name] = column
    if not useful and not constant:
        raise InputError(f"query: none could be answered: {_reasons(failed)}")
    kept = useful or dict([next(iter(constant.items()))])
    return Answers(tuple(kept), np.column_stack(list(kept.values())), tuple(failed))


def _reasons(failed: Sequence[tuple[str, str]]) -> str:
    """Return why each query failed, and a reason that they share once."""
    shared = {why for _, why in failed}
    return shared.pop() if len(shared) == 1 else "; ".join(f"{name}: {why}" for name, why in failed)
