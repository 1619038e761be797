"""A table of scores: one row a record, a column that says who is a member, and what any attack said of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.run import audit
from whosin.errors import InputError

if TYPE_CHECKING:
    from whosin.auditing.result import Audit
    from whosin.tables import Table

__all__ = ["audit_score_table"]

_TRUTH = {"1": True, "0": False, "true": True, "false": False, "yes": True, "no": False}


def audit_score_table(
    table: Table,
    member_column: str = "member",
    *,
    columns: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    **options: Any,
) -> Audit:
    """Return the audit of the scores in a table.

    Parameters
    ----------
    table : Table
        One row a record.
    member_column : str
        The column that says who is a member: 1 or 0, true or false, yes or no.
    columns : sequence of str, optional
        The columns of scores; by default all that are neither the truth nor groups. Several must be numbers.
    groups : sequence of str, optional
        Columns whose groups are reported.
    **options
        As in :func:`whosin.audit`: prior, confidence_level, assignment, rng, progress.

    Notes
    -----
    O(cells) beside the audit itself.
    """
    inside = _truth(table, member_column)
    divided = {name: (table.column(name)[inside], table.column(name)[~inside]) for name in groups or ()}
    names = list(columns or ()) or [name for name in table.names if name != member_column and name not in divided]
    answers = _answers(table, names, member_column)
    return audit(answers[inside], answers[~inside], groups=divided or None, names=names, **options)


def _answers(table: Table, names: Sequence[str], member_column: str) -> NDArray[Any]:
    if member_column in names:
        raise InputError(f"columns takes scores, got {member_column!r}, which says who is a member")
    texts = [name for name in names if table.kind(name) == "category"]
    if not names or (texts and len(names) > 1):
        raise InputError(
            f"{table.origin} takes columns of numbers as scores, got {', '.join(texts) or 'none'}; "
            "name the columns to use"
        )
    for name in names:
        gaps = np.flatnonzero([value is None or value != value for value in table.column(name)])
        if gaps.size:
            raise InputError(
                f"{table.origin} takes a score in every row of column {name!r}, got none in row {gaps[0] + 1}"
            )
    return np.column_stack([table.column(name) for name in names])


def _truth(table: Table, name: str) -> NDArray[np.bool_]:
    texts = [str(value).strip().lower().removesuffix(".0") for value in table.column(name)]
    strange = next((text for text in texts if text not in _TRUTH), None)
    if strange is not None:
        raise InputError(f"{table.origin} takes 1 or 0 in column {name!r}, got {strange!r}")
    return np.array([_TRUTH[text] for text in texts], dtype=bool)
