"""Several rows per person as one: tables that belong to a table of people, and series in long format.

The person is the unit of an audit. So what a person's rows hold is summarised in a fixed number of cells that do not
depend on other people: how many rows there are; of numbers and dates the smallest, the largest, the middle one and the
first few in rising order; of labels how many are different and the first few in alphabetical order; and of all columns
the cell of the last row. Every cell of a summary is a cell of the person's rows or a count of them, so a release that
repeats a person's rows repeats the summary word for word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, check_whole
from whosin.tables.columns import Column, as_category
from whosin.tables.frames import as_table
from whosin.tables.levels import Levels
from whosin.tables.reading import read_table
from whosin.tables.schema import match_tables
from whosin.tables.table import Table

Rows = NDArray[np.int64]


def linked(parent: Any, child: Any, *, key: str, order: str | None = None, first: int = 3) -> Table:
    """Return one row per person: the columns of a table of people, and summaries of the rows that belong to each.

    Parameters
    ----------
    parent : table, path or None
        One row per person; anything that :func:`as_table` takes. None for a series in long format: the people are those
        of ``child``, in the order in which they come.
    child : table, path, or mapping of names to these
        Any number of rows per person, none included. With a mapping the summaries carry its names.
    key : str
        The column that says whose a row is, in all tables, compared as text: 7 is "7" and not "007". It is not in the
        result.
    order : str, optional
        The column that orders the rows of a person, for the last cells; by default they come as they are. Where some
        of the tables lack it, theirs come as they are.
    first : int, default 3
        How many cells in rising order to keep of each column.

    Returns
    -------
    Table
        To be compared by :func:`whosin.audit_synthetic`: apply the same call to the training people, those held out and
        the synthetic ones.

    Notes
    -----
    Deterministic. Ties in ``order`` keep the order of the file. Missing cells are left out of all but the last.
    O(n log n) for each column.

    Examples
    --------
    >>> people = {"who": ["a", "b"], "age": [31, 47]}
    >>> visits = {"who": ["b", "a", "b"], "cost": [20.0, 75.0, 10.0]}
    >>> table = wi.tables.linked(people, visits, key="who", first=1)
    >>> table.names
    ('age', 'rows', 'cost smallest', 'cost largest', 'cost middle', 'cost 1', 'cost last')
    >>> table.column("rows").tolist(), table.column("cost largest").tolist()
    ([1.0, 2.0], [75.0, 20.0])
    """
    count = check_whole("first", first)
    children = dict(child) if isinstance(child, Mapping) and _holds_tables(child) else {"": child}
    tables = {name: _keyed(part, name or "child", key) for name, part in children.items()}
    if parent is None:
        one = next(iter(tables.values()))
        people = one.take(np.sort(np.unique(_codes(one, one, key)[1], return_index=True)[1])).select([key])
    else:
        people = _keyed(parent, "parent", key)
    if order is not None and not any(order in table.names for table in tables.values()):
        has = "; ".join(f"{table.origin} has {', '.join(table.names)}" for table in tables.values())
        raise InputError(f"order must be a column of a table of rows, got {order!r}; {has}")
    names = [name for name in people.names if name != key]
    columns = [people.stored(name) for name in names]
    for prefix, table in tables.items():
        for name, column in _summaries(people, table, key, order, count):
            names.append(f"{prefix}: {name}" if prefix else name)
            columns.append(column)
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise InputError(
            f"summaries must not be called like a column of {people.origin}, got {twice!r} twice; name the table of "
            "rows, child={'visits': ...}"
        )
    return Table(tuple(names), tuple(columns), people.origin)


def _holds_tables(child: Mapping[Any, Any]) -> bool:
    """Whether a mapping names tables; one that names columns is a table itself."""
    return all(isinstance(part, str | Path | Table | Mapping) or hasattr(part, "columns") for part in child.values())


def _keyed(data: Any, name: str, key: str) -> Table:
    table = read_table(data) if isinstance(data, str | Path) else as_table(data, name)
    if key not in table.names:
        raise InputError(f"key must be a column of {table.origin}, got {key!r}; it has {', '.join(table.names)}")
    place = table.names.index(key)
    keys = as_category(table.columns[place])
    if (missing := keys.missing).any():
        raise InputError(
            f"{table.origin} {table.place(int(missing.argmax()))} column {key!r} must say whose the row is, got "
            "nothing; write the key or take the row away"
        )
    return replace(table, columns=(*table.columns[:place], keys, *table.columns[place + 1 :]))


def _codes(people: Table, table: Table, key: str) -> list[NDArray[np.int32]]:
    keys = [part.columns[0] for part in match_tables(people.select([key]), table.select([key]), at_least=1)]
    levels = Levels.pool(keys)
    return [levels.codes(column, f"column {key!r}") for column in keys]


def _summaries(people: Table, table: Table, key: str, order: str | None, first: int) -> list[tuple[str, Column]]:
    ours, theirs = _codes(people, table, key)
    counts = np.bincount(ours)
    if (again := counts[ours] > 1).any():
        row = int(np.argmax(again))
        raise InputError(
            f"{people.origin} must have one row per person in {key!r}, got {counts[ours[row]]} of "
            f"{people.stored(key).show(row)}, the first in {people.place(row)}; parent=None takes "
            "people from the other table"
        )
    place = np.full(max(int(ours.max()), int(theirs.max())) + 1, -1)
    place[ours] = np.arange(len(ours))
    owner = place[theirs]
    if (owner < 0).any():
        row = int(np.argmax(owner < 0))
        who = table.stored(key).show(row)
        raise InputError(
            f"{table.origin} {table.place(row)} column {key!r} must be somebody in {people.origin}, got {who} "
            f"({int(np.sum(owner < 0))} such rows): leave out rows that belong to nobody"
        )
    size = len(ours)
    found = [("rows", Column("number", "numbers", np.bincount(owner, minlength=size).astype(np.float64)))]
    time = None if order is None or order not in table.names else table.stored(order)
    for name, column in table:
        if name != key:
            found += [(f"{name} {what}", part) for what, part in _of_column(column, owner, size, first, time)]
    return found


def _of_column(column: Column, owner: Rows, size: int, first: int, time: Column | None) -> list[tuple[str, Column]]:
    values = np.where(column.missing, np.inf, column.values)
    rising = np.lexsort((values, owner))
    known = np.bincount(owner[~column.missing], minlength=size)
    starts = np.searchsorted(owner[rising], np.arange(size))

    def at(step: Any) -> Column:
        """The cell so many steps above the smallest, missing where there are not so many."""
        rows = np.append(rising, -1)[np.minimum(starts + step, len(rising))]
        return _picked(column, np.where((step >= 0) & (step < known), rows, -1))

    steps = [(f"{i + 1}", np.full(size, i)) for i in range(first)]
    if column.kind == "category":
        pairs = np.unique(np.stack([owner, column.values])[:, ~column.missing], axis=1)[0].astype(np.int64)
        different = Column("number", "numbers", np.bincount(pairs, minlength=size).astype(np.float64))
        found = [("different", different)]
    else:
        steps = [
            ("smallest", np.zeros(size, dtype=np.int64)),
            ("largest", known - 1),
            ("middle", (known - 1) // 2),
            *steps,
        ]
        found = []
    found += [(what, at(step)) for what, step in steps]
    moments = np.arange(len(owner)) if time is None else np.where(time.missing, -np.inf, time.values)
    latest = np.lexsort((moments, owner))
    ends = np.searchsorted(owner[latest], np.arange(size), side="right") - 1
    last = np.where(np.bincount(owner, minlength=size) > 0, latest[ends], -1)
    return [*found, ("last", _picked(column, last))]


def _picked(column: Column, rows: Rows) -> Column:
    """Return the cells in these rows, missing where the number is -1."""
    gone = -1 if column.kind == "category" else np.nan
    return replace(column, values=np.append(column.values, np.asarray(gone, dtype=column.values.dtype))).take(rows)
