"""Whether tables go together: the same columns of the same kinds, and which rows they share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError, check_whole
from whosin.tables.columns import Column, nothing
from whosin.tables.dialect import is_number
from whosin.tables.levels import Levels, row_ids
from whosin.tables.table import Table

_FEW_WORDS = 3
"""At most so many different texts among numbers may be words for missing cells."""


def match_tables(*tables: Table, columns: Sequence[str] | None = None, at_least: int = 2) -> tuple[Table, ...]:
    """Return tables with the same columns, of the same kinds and in the order of the first table.

    Parameters
    ----------
    *tables : Table
        For an audit: the training records, those held out, and the synthetic ones.
    columns : sequence of str, optional
        The columns to keep; every table must have them. By default all tables must have the same columns.
    at_least : int, default 2
        The rows that every table must have.

    Raises
    ------
    InputError
        If a column is missing from a table or stands in one only, or if its cells are of different kinds: numbers here
        and text there, whole numbers here and the same as text there. The message names the column and shows a cell.

    Notes
    -----
    1 and 1.0 are of one kind. A column without a single cell goes with any kind.

    Examples
    --------
    >>> import whosin as wi
    >>> train = wi.tables.as_table({"age": [31, 45], "city": ["Bern", "Ulm"]}, "train")
    >>> released = wi.tables.as_table({"city": ["Ulm", "Graz"], "age": ["30", "50"]}, "released")
    >>> try:
    ...     wi.tables.match_tables(train, released)
    ... except wi.errors.InputError as error:
    ...     print(error)
    column 'age' must hold one kind of cells, got numbers in train (31 in row 0) and text in released ('30' in row 0);
    write it in one way in all tables, take it as labels (categories= names it), or leave it out (ignore= names it)
    """
    if not tables:
        raise InputTypeError("match_tables needs at least one table, got none")
    for table in tables:
        if not isinstance(table, Table):
            raise InputTypeError(f"match_tables needs tables (as_table makes them), got {type(table).__name__}")
        if table.rows < check_whole("at_least", at_least, low=1):
            raise InputError(f"{table.origin} must have at least {at_least} rows, got {table.rows}")
    if columns is None:
        check_same_names([(table.origin, table.names) for table in tables])
        columns = tables[0].names
    chosen = [table.select(columns) for table in tables]
    parts = zip(*(table.columns for table in chosen), strict=True)
    agreed = (agreed_columns(name, chosen, part) for name, part in zip(columns, parts, strict=True))
    matched = zip(*agreed, strict=True)
    return tuple(Table(tuple(columns), parts, table.origin) for table, parts in zip(chosen, matched, strict=True))


def check_same_names(tables: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Refuse tables, each given by its origin and its names, whose columns are not the same."""
    here, first = tables[0]
    for origin, names in tables[1:]:
        theirs, ours = set(names), set(first)
        lacking = [name for name in first if name not in theirs]
        extra = [name for name in names if name not in ours]
        parts = [f"{origin} lacks {_listed(lacking)}"] if lacking else []
        parts += [f"{origin} has {_listed(extra)}, which {here} lacks"] if extra else []
        if parts:
            way = _same_names(origin, here, names, first) or "ignore= leaves columns out, columns= names those to use"
            raise InputError(f"tables must have the same columns: {'; '.join(parts)}; {way}")


def _same_names(origin: str, here: str, names: Sequence[str], first: Sequence[str]) -> str | None:
    """Say what to do where names differ as a whole: no line of names, or other capitals and blanks."""
    unnamed = [all(re.fullmatch(r"column \d+", name) for name in part) for part in (names, first)]
    if sum(unnamed) == 1:
        table, other = (origin, here) if unnamed[0] else (here, origin)
        return f"{table} has no line of names: write that of {other} above its rows"
    plain = [sorted(re.sub(r"[\W_]", "", plain_label(name)) for name in part) for part in (names, first)]
    if plain[0] == plain[1]:
        return "write names in one way, capitals, blanks and signs too"
    if len(names) == len(first) and 2 * len({*names} & {*first}) < len(first):
        return (
            "write names above the rows of each, or, if no file has names, take first lines as rows with header=False"
        )
    return None


def plain_label(label: str) -> str:
    """Return text without what may differ where the same is meant: capitals, blanks, ways to write a letter."""
    if not label.isascii():
        label = re.sub("[\u200b-\u200f\ufeff]", "", unicodedata.normalize("NFKC", label))
    return " ".join(label.casefold().split())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def agreed_columns(name: str, tables: Sequence[Any], columns: Sequence[Column]) -> list[Column]:
    """Return a column of several tables, of one kind where there are no cells; refuse kinds that differ."""
    filled = [i for i, column in enumerate(columns) if column.holds != "nothing"]
    if not filled:
        return list(columns)
    model = columns[filled[0]]
    for i in filled[1:]:
        if columns[i].holds != model.holds:
            raise InputError(_disagreement(name, (model, tables[filled[0]]), (columns[i], tables[i])))
    return [_blank_as(model, column) if column.holds == "nothing" else column for column in columns]


def _blank_as(model: Column, column: Column) -> Column:
    if model.kind == "category":
        return nothing(len(column))
    return Column(model.kind, model.holds, np.full(len(column), np.nan))


def _disagreement(name: str, *sides: tuple[Column, Any]) -> str:
    """Say which kinds a column has in two tables, with a cell of each, and what can be done."""
    seen = [f"{column.holds} in {table.origin} ({_example(column, table)})" for column, table in sides]
    ways = ["write it in one way in all tables"]
    if (text := next((column for column, _ in sides if column.holds == "text"), None)) is not None:
        odd = [label for label in text.labels if not is_number(label)]
        if len(odd) <= _FEW_WORDS and len(odd) < len(text.labels):
            ways += [f"count {_listed(odd)} as missing (missing= names each)"] if odd else []
        if any(label[:1] == "0" for label in text.labels) and not odd:
            ways[0] += ", with all zeros in front"
        ways.append("take it as labels (categories= names it)")
    return (
        f"column {name!r} must hold one kind of cells, got {' and '.join(seen)}; "
        f"{', '.join(ways)}, or leave it out (ignore= names it)"
    )


def _example(column: Column, table: Any) -> str:
    """Show a cell, one that is no number if there is one, and where it stands in a table that is held."""
    odd = [i for i, label in enumerate(column.labels) if not is_number(label)]
    row = int(np.argmax(column.values == odd[0] if odd else ~column.missing))
    if not isinstance(table, Table):
        return column.show(row)
    place = table.place(row)
    return f"{column.show(row)} {'on' if place.startswith('line') else 'in'} {place}"


def row_groups(*tables: Table) -> tuple[NDArray[np.int64], ...]:
    """Return a number for every row of every table, the same exactly for rows that are equal in all cells.

    Missing cells are equal to each other. No hashing, so no collisions (:func:`.levels.row_ids`).

    Examples
    --------
    >>> import whosin as wi
    >>> train = wi.tables.as_table({"age": [31, 45, 31], "city": ["Bern", "Ulm", "Bern"]})
    >>> released = wi.tables.as_table({"age": [45, 31], "city": ["Ulm", "Ulm"]})
    >>> [groups.tolist() for groups in wi.tables.row_groups(train, released)]
    [[0, 2, 0], [2, 1]]
    """
    matched = match_tables(*tables, at_least=1)
    codes = []
    for name, *columns in zip(matched[0].names, *(table.columns for table in matched), strict=True):
        levels = Levels.pool(columns)
        codes.append(np.concatenate([levels.codes(column, f"column {name!r}") for column in columns]))
    ends = np.cumsum([len(table) for table in matched])[:-1]
    return tuple(np.split(row_ids(np.column_stack(codes)), ends))


def shared_rows(a: Table, b: Table) -> int:
    """Count the rows of ``a`` that are equal in every cell to some row of ``b``.

    Examples
    --------
    >>> import whosin as wi
    >>> train = wi.tables.as_table({"age": [31, 45, 60], "city": ["Bern", "Ulm", "Graz"]})
    >>> released = wi.tables.as_table({"age": [45, 45, 31], "city": ["Ulm", "Ulm", "Graz"]})
    >>> wi.tables.shared_rows(train, released)
    1
    """
    ours, theirs = row_groups(a, b)
    return int(np.isin(ours, theirs).sum())


def duplicate_rows(a: Table) -> int:
    """Count the rows that repeat an earlier row.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.tables.duplicate_rows(wi.tables.as_table({"age": [31, 45, 31], "city": ["Bern", "Ulm", "Bern"]}))
    1
    """
    (groups,) = row_groups(a)
    return len(groups) - int(groups.max()) - 1
