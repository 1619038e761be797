"""A table of scores: one row per record, a column that says who is a member, and what any attack said of each.

Names of rows are no scores. A file's running number tells members from others if the file lists members first, whatever
the model did; so columns that name rows are left out, and the result says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Flags
from whosin.auditing.measuring.run import audit
from whosin.errors import InputError

if TYPE_CHECKING:
    from whosin.auditing.measuring.audit import Audit
    from whosin.tables import Table


_TRUTH = {"1": True, "0": False, "true": True, "false": False, "yes": True, "no": False}
_INDEX = ("", "index", "Unnamed: 0")
"""What pandas calls the column of its index in a file."""
FEWEST_ROWS = 20
"""Whole numbers and texts of fewer rows may be different by chance."""


def audit_score_table(
    table: Table,
    member_column: str = "member",
    *,
    member_value: str | None = None,
    columns: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    person: str | None = None,
    **options: Any,
) -> Audit:
    """Return the audit of the scores in a table.

    Parameters
    ----------
    table : Table
        One row per record.
    member_column : str
        The column that says who is a member: 1 or 0, true or false, yes or no.
    member_value : str, optional
        What that column says of members, such as "train"; then all other rows are outsiders.
    columns : sequence of str, optional
        The columns of scores, of which several must be numbers; by default all that are neither the truth nor groups
        nor people, and that do not name rows: running numbers, the index of a data frame, and whole numbers and texts
        that are different in each of at least 20 rows. The notes of the result say which were left out.
    groups : sequence of str, optional
        Columns whose groups are reported.
    person : str, optional
        The column that says whose each row is; several rows of one person count once.
    **options
        As in :func:`whosin.audit`: prior, confidence_level, assignment, tolerate, rng, progress.

    Notes
    -----
    O(cells·log rows) beside the audit itself.
    """
    inside = members_of(table, member_column, member_value)
    divided = {name: (table.column(name)[inside], table.column(name)[~inside]) for name in groups or ()}
    taken = {member_column: "says who is a member", **({} if person is None else {person: "says whose a row is"})}
    names, left_out = list(columns or ()), {}
    if not names:
        free = [name for name in table.names if name not in taken and name not in divided]
        left_out = {name: why for name in free if (why := _naming(table, name, inside)) is not None}
        names = [name for name in free if name not in left_out]
    notes = tuple(f"column {name!r} was left out: it is {why} (name it to use it)" for name, why in left_out.items())
    answers = _answers(table, names, taken, notes)
    owner = None if person is None else tuple(table.column(person)[side] for side in (inside, ~inside))
    found = audit(answers[inside], answers[~inside], groups=divided or None, names=names, person=owner, **options)
    return replace(found, notes=(*found.notes, *notes))


def divided(table: Table, member_column: str, member_value: str | None = None) -> dict[str, Table]:
    """Return the training rows and the held-out rows of a table by a column, which is then left out."""
    inside = members_of(table, member_column, member_value)
    rest = table.select([name for name in table.names if name != member_column])
    sides = {"train": rest.take(inside), "holdout": rest.take(~inside)}
    return {role: replace(side, origin=f"{table.origin} ({role})") for role, side in sides.items()}


def _naming(table: Table, name: str, inside: Flags) -> str | None:
    """Say in which way a column names the rows instead of scoring them, or return None."""
    values = table.column(name)
    if table.kind(name) == "category":
        _check_no_number_lost(table, name, values)
    elif not np.all(np.isfinite(values) & (values == np.floor(values))):
        return None
    elif name in _INDEX:
        return "the index of a data frame"
    elif _running(values) or (_running(values[inside]) and _running(values[~inside])):
        return "a running number"
    unique = len(values) >= FEWEST_ROWS and len(set(values.tolist())) == len(values)
    return "different in every row" if unique else None


def _check_no_number_lost(table: Table, name: str, values: NDArray[Any]) -> None:
    """Refuse numbers with a few texts among them: left out as names of rows, the column would hide what it shows."""
    texts = [row for row, value in enumerate(values) if not _is_number(value)]
    if 0 < len(texts) < len(values) / 2:
        place = f"{table.origin} {table.place(texts[0])} column {name!r}"
        got = f"got {values[texts[0]]!r}; if it is no score, name the columns to use"
        raise InputError(f"{place} must be a number as most of its cells are, {got}")


def _is_number(value: Any) -> bool:
    try:
        return float(value) == float(value)
    except (TypeError, ValueError):
        return False


def _running(values: NDArray[Any]) -> bool:
    return len(values) > 2 and bool(np.all(np.diff(values) == 1.0))


def _answers(table: Table, names: Sequence[str], taken: dict[str, str], notes: tuple[str, ...]) -> NDArray[Any]:
    for name, use in taken.items():
        if name in names:
            raise InputError(f"columns must be scores, got {name!r}, which {use}")
    texts = [name for name in names if table.kind(name) == "category"]
    if not names or (texts and len(names) > 1):
        raise InputError(
            f"{table.origin} must have columns of numbers as scores, got {', '.join(texts) or 'none'}; "
            f"{'; '.join((*notes, 'name the columns to use'))}"
        )
    for name in names:
        gaps = np.flatnonzero([value is None or value != value for value in table.column(name)])
        if gaps.size:
            place = f"{table.origin} {table.place(int(gaps[0]))} column {name!r}"
            raise InputError(f"{place} must have a score, got a missing cell")
    return np.column_stack([table.column(name) for name in names])


def members_of(table: Table, column: str, value: str | None = None) -> Flags:
    """Return which rows are members by a column: where it says ``value``, or 1 and not 0, true and not false."""
    if column not in table.names:
        raise InputError(
            f"member_column must be a column of {table.origin}, got {column!r}; it has {', '.join(table.names)}"
        )
    missing = table.stored(column).missing
    if missing.any():
        where = f"{table.origin} {table.place(int(missing.argmax()))} column {column!r}"
        raise InputError(f"{where} must say who is a member, got a missing cell; fill it in, or leave the row out")
    texts = [str(cell).strip().removesuffix(".0") for cell in table.column(column)]
    seen = ", ".join(repr(text) for text in sorted(set(texts))[:5])
    if value is not None:
        if value not in texts or set(texts) == {value}:
            raise InputError(f"{table.origin} must have {value!r} and others in column {column!r}, got {seen}")
        nearly = next((row for row, text in enumerate(texts) if text != value and text.lower() == value.lower()), None)
        if nearly is not None:
            where = f"{table.origin} {table.place(nearly)} column {column!r}"
            raise InputError(f"{where} must be {value!r} or another word, got {texts[nearly]!r}: write it in one way")
        return np.array([text == value for text in texts], dtype=bool)
    strange = next((row for row, text in enumerate(texts) if text.lower() not in _TRUTH), None)
    if strange is not None:
        raise InputError(
            f"{table.origin} {table.place(strange)} column {column!r} must be 1 or 0, got {texts[strange]!r}; "
            f"member_value= names the word that members have, one of {seen}"
        )
    inside = np.array([_TRUTH[text.lower()] for text in texts], dtype=bool)
    if inside.all() or not inside.any():
        whom = "members" if inside.all() else "others"
        raise InputError(f"{table.origin} must have members and others by column {column!r}, got {whom} alone")
    return inside
