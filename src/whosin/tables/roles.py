"""Which columns are attributes of people, and which number, name or describe rows.

A column is left out if

1. in the records (the training rows, and the held-out rows, each on their own) it is a running number of at least 20
   rows, or whole numbers that are all different in so many although they lie so close that an attribute would repeat:
   n different numbers within a span of n²/20 or less. Numbers that any law draws independently do that with
   probability at most e⁻⁹: given the smallest, which must be single, the n − 1 others are draws above it, and within
   s − 1 values they differ with probability at most exp(−(n−1)(n−2)/(2(s−1))), s ≤ n²/20;
2. in the first 100,000 rows of the release it is whole numbers or text of which more than half are different, at least
   20 cells in all, and it is called an id (``id``, ``patient_id``, ``key``, ``index`` and the like) or has no name, as
   the index of a frame;
3. in these rows it is text of which more than half is different, at least 20 cells in all, and at most one in ten of
   the different texts occurs again: among n towns, drawn from k, about n/2k of the different ones do. Numbers or dates
   of the records that the release has as text are not left out but refused: they are attributes, written otherwise.

Where the release has no such column, or there is no release, the records decide by 2 and 3: nothing else can be done
with the column than to leave it out or to refuse the tables. So by 2 and 3 the records never choose what is asked about
them, and the limits of an audit hold as they stand (section 13 of the theory); by 1 an attribute is dropped with
probability at most e⁻⁹.

A copied name or key is a leak all the same: of the columns of 2 and 3 that the release has (:func:`key_columns`) an
audit asks how rare the values are that the release repeats, unless its rows are numbered in order: then equal numbers
say little. So it does where 1 leaves them out too, unless rows of the records are numbered in order or one side has all
the smaller numbers.
The column that says whose a row is, which is never compared, is looked up likewise (:func:`person_column`).
Columns that are the same in every row stay: they change no answer. What is left out is named with the reason; ``keep=``
compares it all the same, and ``columns=`` switches the rules off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import InputError, InputTypeError, listed
from whosin.tables.columns import Column
from whosin.tables.frames import table_from_series
from whosin.tables.schema import check_same_names
from whosin.tables.stream import TableStream
from whosin.tables.table import Table

FEWEST_ROWS = 20
"""Values of fewer rows may be different by chance."""
CLOSE = 20
"""All different within a span of n²/CLOSE: chance does that with probability below e^(-CLOSE/2)."""
FIRST_ROWS = 100_000
"""Rows of the release that are looked at."""
_MOST_DIGITS = 300
"""Most digits that are read as one number, which is finite then."""
_ID = re.compile(
    r"(^|[^a-z])(id|key|uuid|guid|hash|index|idx|nr)$|[a-z](Id|ID)$|^Unnamed: \d+$|^__index_level_", re.ASCII
)
_KEYS = CALLED_ID, KEY, TEXTS = (
    "mostly different, and called an id",
    "different in every row: a key",
    "mostly different: free text, names or keys",
)


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
    O(rows log rows) for a column of whole numbers or text, and of a release in blocks one reading of its first rows.
    """
    every = [*records, *others]
    known = dict.fromkeys(name for table in every for name in table.names)
    for option, names in (("ignore", ignore), ("keep", keep)):
        if isinstance(names, str):
            raise InputTypeError(f"{option} must be a list of column names, got the text {names!r}")
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            raise InputError(f"{option} must name columns, got {unknown!r}; there are {listed(known)}")
    left: dict[str, str] = {}
    seen = _first_rows(others[0], [*ignore, *keep]) if others else None
    for name in known:
        if name in ignore:
            left[name] = "named to be ignored"
        elif name not in keep and (why := _reason(name, records, others, seen)) is not None:
            left[name] = why
    check_same_names([(table.origin, [name for name in table.names if name not in left]) for table in every])
    return [name for name in records[0].names if name not in left], left


@dataclass(frozen=True)
class ColumnChoice:
    """What the caller says about columns."""

    columns: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    keep: Sequence[str] = ()

    def among(
        self, records: Sequence[Table], others: Sequence[Table | TableStream], *, none: bool = False
    ) -> tuple[list[str], dict[str, str]]:
        """Return the columns to compare, and the reason for each that is left out by rule; some unless ``none`` may."""
        if self.columns is None:
            chosen, left = attributes(records, others, ignore=self.ignore, keep=self.keep)
            if not chosen and not none:
                reasons = "; ".join(f"{name!r} is {why}" for name, why in left.items())
                raise InputError(
                    f"there must be a column to compare, got none: {reasons}; keep= names those to compare all the "
                    "same, and texts can be compared by an embedding"
                )
            return chosen, left
        if isinstance(self.columns, str):
            raise InputTypeError(f"columns must be a list of column names, got the text {self.columns!r}")
        return [name for name in self.columns if name not in self.ignore], {}


def key_columns(left: Mapping[str, str], tables: Sequence[Table | TableStream]) -> list[str]:
    """Return the columns that were left out as keys or texts and that all tables have: a release may repeat values."""
    return [name for name, why in left.items() if why in _KEYS and all(name in table.names for table in tables)]


def person_column(person: Any, tables: Sequence[Table | TableStream]) -> list[str]:
    """Return the column that says whose a row is, if the release, the third table, has it: it may repeat people.

    Not where values number people: in the release in order (synthetic people often get numbers of their own), or in
    the records so that one side has all the smaller ones; nor where a side has fewer than 20 such people.
    """
    if not isinstance(person, str) or any(person not in table.names for table in tables[:3]):
        return []
    parts = [table if isinstance(table, Table) else _head(table, [person]) for table in tables[:3]]
    *sides, released = (_people_numbers(table.stored(person)) for table in parts)
    if released is not None and bool(np.all(np.diff(released) == 1.0)):
        return []
    if any(side is None for side in sides):
        return [person]
    mixed = max(side.min() for side in sides) < min(side.max() for side in sides)
    return [person] if mixed and min(map(len, sides)) >= FEWEST_ROWS else []


def _people_numbers(column: Column) -> Any:
    """Return different numbers, or those in texts that differ in their digits alone, as they come; None for others."""
    if column.kind == "category" and len({re.sub(r"\d", "", label) for label in column.labels}) > 1:
        return None
    known, numbers = column.values[~column.missing], as_numbers(column)
    first = np.sort(np.unique(known, return_index=True)[1])
    return numbers.values[~column.missing][first] if len(first) and numbers.kind != "category" else None


def as_numbers(column: Column) -> Column:
    """Return texts as the numbers that their digits make, if all have some: in them an order can be seen."""
    digits = [re.sub(r"\D", "", label) for label in column.labels]
    if column.kind != "category" or not digits or not all(0 < len(part) <= _MOST_DIGITS for part in digits):
        return column
    return Column("number", "numbers", np.array([*map(float, digits), np.nan])[column.values])


def said(left: Mapping[str, str]) -> tuple[str, ...]:
    """Say of each column that was left out why."""
    return tuple(f"column {name!r} was left out: {why} (keep it by name to compare it)" for name, why in left.items())


def _reason(
    name: str, records: Sequence[Table], others: Sequence[Table | TableStream], seen: Table | None
) -> str | None:
    """Say why a column is no attribute, or return None; ``seen`` are first rows of the release."""
    here = [table for table in records if name in table.names]
    if not here:  # a column that only the release has, such as the index of a frame
        tables = [table for table in others if isinstance(table, Table) and name in table.names]
        running = bool(tables) and all(is_running(table.stored(name)) for table in tables)
        return "a running number" if running else None
    sides = [table.stored(name) for table in here]
    if all(is_running(side) for side in sides):
        return "a running number"
    released = None if seen is None or name not in seen.names else seen.stored(name)
    key = None if released is None else _key(name, released)
    if key is not None and released is not None and is_running(released):
        key = "a running number in the release"
    if all(_numbers_rows(side) for side in sides):
        mixed = max(side.values.min() for side in sides) < min(side.values.max() for side in sides)
        if key in _KEYS and mixed:
            return key
        return "different in every row and within a narrow span, as numbers of rows are"
    if others and name in others[0].names:
        texts = all(side.kind == "category" for side in sides)
        return key if texts or _is_called_id(name) else None
    reasons = {_key(name, side) for side in sides}
    return reasons.pop() if len(reasons) == 1 else TEXTS if None not in reasons else None


def _first_rows(release: Table | TableStream, skip: Sequence[str]) -> Table | None:
    """Return the first rows of the release in the columns that may hold keys or texts; None if there are none such."""
    if isinstance(release, Table):
        names = [name for name, column in release if column.kind == "category" or _is_called_id(name)]
    else:
        names = [name for name, dtype in release.dtypes.items() if not dtype.is_numeric() or _is_called_id(name)]
    names = [name for name in names if name not in skip]
    if not names:
        return None
    if isinstance(release, Table):
        chosen = release.select(names)
        return chosen.take(np.arange(FIRST_ROWS)) if release.rows > FIRST_ROWS else chosen
    return _head(release, names)


def _head(release: TableStream, names: Sequence[str]) -> Table:
    """Read some columns of the first rows."""
    import polars as pl

    parts: list[pl.DataFrame] = []
    for start, block in release.blocks(names):
        parts.append(block.head(FIRST_ROWS - start))
        if start + block.height >= FIRST_ROWS:
            break
    frame = pl.concat(parts)
    return table_from_series({name: frame.get_column(name) for name in names}, release.origin)


def is_running(column: Column) -> bool:
    """Whether each of at least 20 rows has the number of the row before it, and 1 more."""
    if column.kind != "number" or len(column) < FEWEST_ROWS:
        return False
    return bool(np.all(np.diff(column.values[:10]) == 1.0)) and bool(np.all(np.diff(column.values) == 1.0))


def _numbers_rows(column: Column) -> bool:
    """Whether whole numbers of at least 20 rows are all different within so narrow a span that draws would repeat."""
    if column.kind != "number" or len(column) < FEWEST_ROWS:
        return False
    few = column.values[:1000]
    if not np.all(few == np.floor(few)) or len(np.unique(few)) < len(few):
        return False
    span = column.values.max() - column.values.min() + 1
    if not CLOSE * span <= len(column) ** 2:  # also where a cell is missing
        return False
    return bool(np.all(column.values == np.floor(column.values))) and len(np.unique(column.values)) == len(column)


def _key(name: str, column: Column) -> str | None:
    """Say why a column holds ids, keys or texts, or return None."""
    cells = column.values[~column.missing]
    if column.kind == "number":
        if not _is_called_id(name) or not np.all(cells == np.floor(cells)):
            return None
    elif column.holds != "text":
        return None
    counts = np.unique(cells, return_counts=True)[1]
    if len(cells) < FEWEST_ROWS or 2 * len(counts) <= len(cells):
        return None
    if column.kind == "number":
        return CALLED_ID
    if len(counts) == len(column):
        return KEY
    if _is_called_id(name):
        return CALLED_ID
    return None if 10 * np.sum(counts > 1) > len(counts) else TEXTS


def _is_called_id(name: str) -> bool:
    return bool(_ID.search(name) or _ID.search(name.lower()))
