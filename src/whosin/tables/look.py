"""A look at tables before anything is run: what they hold, what would be compared, and what not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError
from whosin.tables.columns import Column
from whosin.tables.frames import as_table
from whosin.tables.reading import read_table
from whosin.tables.roles import ColumnChoice
from whosin.tables.schema import match_tables, plain_label, row_groups
from whosin.tables.stream import TableStream
from whosin.tables.table import Table

ROLES = ("train", "holdout", "synthetic", "reference")
_PAIRS = (("train", "holdout"), ("train", "synthetic"), ("holdout", "synthetic"), ("train", "reference"))


@dataclass(frozen=True)
class Preview:
    """What tables hold; made by :func:`look`.

    Examples
    --------
    >>> import whosin as wi
    >>> people = {"number": list(range(100, 140)), "age": [20 + i % 37 for i in range(40)], "sex": ["f", "m"] * 20}
    >>> seen = wi.tables.look(people)
    >>> print(seen)
    data (train) 40 rows; 2 columns would be compared, 1 left out
    >>> [column["name"] for column in seen.columns if column["left_out"]]
    ['number']
    """

    tables: tuple[dict[str, Any], ...]
    """For each table its role, origin, rows, columns and notes on how it was read."""
    columns: tuple[dict[str, Any], ...] = field(repr=False)
    """For each column its name, kind, different values, missing cells by table, tables without a label in common with
    the first, labels that are alike but for capitals, blanks or ways to write a letter, whether it is the same in every
    row, and why it would be left out."""
    persons: Mapping[str, int] = field(default_factory=dict)
    """People by table, where a column says whose a row is."""
    overlaps: Mapping[str, int] = field(default_factory=dict)
    """Rows that occur twice in a table, and rows of one table that appear in another, by the columns compared."""

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns that would be compared."""
        return tuple(column["name"] for column in self.columns if column["left_out"] is None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; no cell of any table."""
        return {
            "tables": [dict(table) for table in self.tables],
            "columns": [dict(column) for column in self.columns],
            "compared": list(self.compared),
            "persons": dict(self.persons),
            "overlaps": dict(self.overlaps),
        }

    def _repr_html_(self) -> str:
        parts = ("name", "kind", "left_out")
        cells = ["".join(f"<td>{escape(str(column[part] or ''))}</td>" for part in parts) for column in self.columns]
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        head = "<tr><th>column</th><th>holds</th><th>left out</th></tr>"
        return f"<p>{escape(str(self))}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    def __str__(self) -> str:
        sizes = ", ".join(f"{table['origin']} ({table['role']}) {table['rows']} rows" for table in self.tables)
        left = len(self.columns) - len(self.compared)
        return f"{sizes}; {len(self.compared)} columns would be compared, {left} left out"

    __repr__ = __str__


def look(
    train: Any,
    holdout: Any = None,
    synthetic: Any = None,
    reference: Any = None,
    *,
    person: str | None = None,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> Preview:
    """Look at the tables of an audit, or at one table alone.

    Parameters
    ----------
    train, holdout, synthetic, reference : table or path
        As in :func:`whosin.audit_synthetic`, all held in memory; only the first is needed.
    person : str, optional
        The column that says whose a row is.
    columns, ignore, keep, categories
        As in :func:`whosin.audit_synthetic`.

    Returns
    -------
    Preview

    Notes
    -----
    O(cells log rows). Nothing is compared but whole rows, for equality.

    Examples
    --------
    >>> rows = {"row": range(30), "age": [20 + i % 7 for i in range(30)]}
    >>> found = wi.tables.look({name: list(cells) for name, cells in rows.items()})
    >>> print(found)
    data (train) 30 rows; 1 columns would be compared, 1 left out
    >>> found.columns[0]["left_out"]
    'a running number'
    """
    given = dict(zip(ROLES, (train, holdout, synthetic, reference), strict=True))
    tables = {role: _table(part, categories) for role, part in given.items() if part is not None}
    if "train" not in tables:
        raise InputError("train must be a table, got none")
    whole = dict(tables)
    if person is not None:
        if not any(person in table.names for table in tables.values()):
            raise InputError(
                f"person must be a column of a table, got {person!r}; there are {', '.join(tables['train'].names)}"
            )
        tables = {role: table.without(person) for role, table in tables.items()}
    records = [tables[role] for role in ("train", "holdout") if role in tables]
    others = [tables[role] for role in ("synthetic", "reference") if role in tables]
    chosen, left = ColumnChoice(columns, ignore, keep).among(records, others, none=True)
    rows = row_groups(*match_tables(*tables.values(), columns=chosen, at_least=1)) if chosen else ()
    return preview_of(whole, left, chosen, dict(zip(tables, rows, strict=bool(chosen))), person)


def preview_of(
    tables: Mapping[str, Table | TableStream],
    left: Mapping[str, str],
    compared: Sequence[str],
    rows: Mapping[str, NDArray[np.int64]],
    person: Any = None,
) -> Preview:
    """Describe tables by their role, as :func:`look` and every audit do.

    ``rows`` has a number for every row of each table in memory, the same exactly for rows that are equal in the columns
    compared. Of a release that is read in blocks there are size and names alone.
    """
    described = [
        {
            "role": role,
            "origin": table.origin,
            "rows": table.rows,
            "columns": len(table.names),
            "notes": list(table.notes),
        }
        for role, table in tables.items()
    ]
    held = {role: table for role, table in tables.items() if isinstance(table, Table)}
    names = dict.fromkeys(name for table in tables.values() for name in table.names)
    columns = [_described(name, held, _why(name, left, compared, person)) for name in names]
    overlaps = {
        f"{role} rows that repeat an earlier one": len(numbers) - len(np.unique(numbers))
        for role, numbers in rows.items()
    }
    for one, other in _PAIRS:
        if one in rows and other in rows:
            overlaps[f"{one} rows that appear in {other}"] = int(np.isin(rows[one], rows[other]).sum())
    people = _people(held, person)
    if "train" in people and "holdout" in people:
        overlaps["train people who are in holdout"] = len(people["train"] & people["holdout"])
    return Preview(tuple(described), tuple(columns), {role: len(who) for role, who in people.items()}, overlaps)


def _people(tables: Mapping[str, Table], person: Any) -> dict[str, set[Any]]:
    """Return whose rows each table has, where a column says so."""
    if not isinstance(person, str):
        return {}
    return {role: set(table.column(person).tolist()) for role, table in tables.items() if person in table.names}


def _why(name: str, left: Mapping[str, str], compared: Sequence[str], person: Any) -> str | None:
    if name == person:
        return "says whose a row is"
    return left.get(name) or (None if name in compared else "not among the columns to use")


def _described(name: str, tables: Mapping[str, Table], why: str | None) -> dict[str, Any]:
    columns = {role: table.stored(name) for role, table in tables.items() if name in table.names}
    first = next(iter(columns.values()), None)
    return {
        "name": name,
        "kind": None if first is None else first.kind,
        "different": None if first is None else _different(first),
        "missing": {role: int(column.missing.sum()) for role, column in columns.items()},
        "apart": [] if why is not None else _apart(columns),
        "alike": 0 if why is not None else _alike(columns.values()),
        "constant": len(columns) == len(tables) and _is_constant(list(columns.values())),
        "left_out": why,
    }


def _is_constant(columns: Sequence[Column]) -> bool:
    """Whether all rows of all tables have the same cell, or none."""
    alike = (column.missing.all() or (column.values == column.values[0]).all() for column in columns)
    return len({column.show(0) for column in columns}) == 1 and all(alike)


def _apart(columns: Mapping[str, Column]) -> list[str]:
    """Return the tables in which no label of a column occurs that the first table has: "<=50K" here, "<=50K." there."""
    labels = {role: set(column.labels) for role, column in columns.items() if column.kind == "category"}
    first = next(iter(labels.values()), set())
    return [role for role, others in labels.items() if (first or others) and first.isdisjoint(others)]


def _alike(columns: Iterable[Column]) -> int:
    """Count labels that are the same as another but for capitals, blanks or ways to write a letter."""
    labels = {label for column in columns for label in column.labels}
    return len(labels) - len({plain_label(label) for label in labels})


def _different(column: Any) -> int:
    if column.kind == "category":
        return len(column.labels)
    return len(np.unique(column.values[~column.missing]))


def _table(data: Any, categories: Sequence[str]) -> Table:
    if isinstance(data, str | Path):
        return read_table(data, categories=categories)
    return as_table(data, categories=categories)
