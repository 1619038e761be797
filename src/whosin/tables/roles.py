"""Which columns are attributes of people, and which number, name or describe rows.

A column is left out if, in the records (the training rows, and the held-out rows, each on their own),

1. it is a running number of at least 20 rows, or whole numbers that are all different in so many although they lie so
   close that an attribute would repeat: n different numbers within a span of n²/20 or less. Numbers that any law draws
   independently do that with probability at most e⁻⁹: given the smallest, which must be single, the n − 1 others are
   draws above it, and within s − 1 values they differ with probability at most exp(−(n−1)(n−2)/(2(s−1))), s ≤ n²/20;
2. it is whole numbers that are all different in at least 20 rows, is called an id (``id``, ``patient_id``, ``key``,
   ``index`` and the like), and no value of it appears in the release;
3. it is text that is mostly different (more than half of at least 20 cells), and no value of it appears in the release.

By 2 and 3 what a release repeats is always compared: a copied name or key is a leak. Columns that are the same in every
row stay: they change no answer, and leaving them out would let the answers about a record depend on others. The rules
treat both sides alike, so they favour neither; but they look at records that are counted, each side on its own. Rule 1
drops an attribute with probability at most e⁻⁹. By 2 and 3 one column can make two audits of one, with it and without
it, each with an error of at most α: together at most 2α in the worst case, and α where values of the column surely
repeat in the release or never do, since then one of the two is never chosen. What is left out is named with the reason;
``keep=`` compares it all the same, and ``columns=`` switches the rules off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whosin.errors import InputError, InputTypeError
from whosin.tables.columns import Column
from whosin.tables.schema import check_same_names
from whosin.tables.stream import TableStream
from whosin.tables.table import Table

__all__ = ["ColumnChoice", "attributes", "is_running", "said"]

FEWEST_ROWS = 20
"""Values of fewer rows may be different by chance."""
CLOSE = 20
"""All different within a span of n²/CLOSE: chance does that with probability below e^(-CLOSE/2)."""
_ID = re.compile(r"(^|[^a-z])(id|key|uuid|guid|hash|index|idx|nr)$|[a-z](Id|ID)$", re.ASCII)


def attributes(
    records: Sequence[Table],
    others: Sequence[Table | TableStream] = (),
    *,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> tuple[list[str], dict[str, str]]:
    """Return the columns to compare, and the reason for each column that is left out.

    Parameters
    ----------
    records : sequence of Table
        The training rows and, if there are some, the held-out rows.
    others : sequence of Table or TableStream
        The release first, then the reference.
    ignore, keep : sequence of str
        Columns to leave out, and columns to compare whatever they look like.

    Notes
    -----
    O(rows log rows) for a column of whole numbers or text, and a reading of the release for those of rules 2 and 3.
    """
    every = [*records, *others]
    known = dict.fromkeys(name for table in every for name in table.names)
    for option, names in (("ignore", ignore), ("keep", keep)):
        if isinstance(names, str):
            raise InputTypeError(f"{option} must be a list of column names, got the text {names!r}")
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            raise InputError(f"{option} must name columns, got {unknown!r}; there are {', '.join(known)}")
    left: dict[str, str] = {}
    for name in known:
        if name in ignore:
            left[name] = "named to be ignored"
        elif name not in keep and (why := _reason(name, records, others)) is not None:
            left[name] = why
    if all(name in left for name in records[0].names):
        reasons = "; ".join(f"{name!r} is {why}" for name, why in left.items())
        raise InputError(f"there must be a column to compare, got none: {reasons}; keep=[...] compares them")
    check_same_names([(table.origin, [name for name in table.names if name not in left]) for table in every])
    return [name for name in records[0].names if name not in left], left


@dataclass(frozen=True)
class ColumnChoice:
    """What the caller says about columns."""

    columns: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    keep: Sequence[str] = ()

    def among(
        self, records: Sequence[Table], others: Sequence[Table | TableStream]
    ) -> tuple[list[str], dict[str, str]]:
        """Return the columns to compare, and the reason for each that is left out by rule."""
        if self.columns is None:
            return attributes(records, others, ignore=self.ignore, keep=self.keep)
        if isinstance(self.columns, str):
            raise InputTypeError(f"columns must be a list of column names, got the text {self.columns!r}")
        return [name for name in self.columns if name not in self.ignore], {}


def said(left: Mapping[str, str]) -> tuple[str, ...]:
    """Say of each column that was left out why."""
    return tuple(f"column {name!r} was left out: {why} (keep it by name to compare it)" for name, why in left.items())


def _reason(name: str, records: Sequence[Table], others: Sequence[Table | TableStream]) -> str | None:
    """Say why a column is no attribute, or return None."""
    here = [table for table in records if name in table.names]
    if not here:  # a column that only the release has, such as the index of a frame
        tables = [table for table in others if isinstance(table, Table) and name in table.names]
        running = bool(tables) and all(is_running(_column(table, name)) for table in tables)
        return "a running number" if running else None
    sides = [_column(table, name) for table in here]
    if all(is_running(side) for side in sides):
        return "a running number"
    if not all(_mostly_different(side) for side in sides):
        return None
    if sides[0].kind == "number":
        if all(_are_close(side) for side in sides):
            return "different in every row and within a narrow span, as numbers of rows are"
        named = _ID.search(name) or _ID.search(name.lower())
        return None if not named or _repeats(name, sides, others) else "different in every row, and called an id"
    if _repeats(name, sides, others):
        return None
    keys = all(len(side.labels) == len(side) for side in sides)
    return "different in every row: a key" if keys else "mostly different: free text, names or keys"


def _column(table: Table, name: str) -> Column:
    return table.columns[table.names.index(name)]


def is_running(column: Column) -> bool:
    """Whether each of at least 20 rows has the number of the row before it, and 1 more."""
    if column.kind != "number" or len(column) < FEWEST_ROWS:
        return False
    return bool(np.all(np.diff(column.values[:10]) == 1.0)) and bool(np.all(np.diff(column.values) == 1.0))


def _mostly_different(column: Column) -> bool:
    """Whether whole numbers are all different, or texts mostly are."""
    if column.kind == "number":
        few = column.values[:1000]
        if len(column) < FEWEST_ROWS or not np.all(few == np.floor(few)) or len(np.unique(few)) < len(few):
            return False
        whole = bool(np.all(column.values == np.floor(column.values)))
        return whole and len(np.unique(column.values)) == len(column)
    filled = len(column) - int(column.missing.sum())
    return column.holds == "text" and filled >= FEWEST_ROWS and 2 * len(column.labels) > filled


def _are_close(column: Column) -> bool:
    span = column.values.max() - column.values.min() + 1
    return bool(CLOSE * span <= len(column) ** 2)


def _repeats(name: str, sides: Sequence[Column], others: Sequence[Table | TableStream]) -> bool:
    """Whether a value of the records appears in the release."""
    release = next((table for table in others[:1] if name in table.names), None)
    if release is None:
        return False
    text = sides[0].kind == "category"
    ours = {value for side in sides for value in (side.labels if text else side.values.tolist())}
    if isinstance(release, Table):
        column = _column(release, name)
        theirs = column.labels if column.kind == "category" else column.values.tolist()
        return not ours.isdisjoint(theirs)
    blocks = (frame.get_column(name).drop_nulls() for _, frame in release.blocks([name]))
    return any(not ours.isdisjoint(map(str, block) if text else block) for block in blocks)
