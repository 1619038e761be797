"""What files hold and what is compared, from the dictionary of a look at them: before a run, and in its report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from whosin.numerics.rounding import NOT_MEASURED, capital, clean, count
from whosin.reporting.blocks import Block, Grid, Items, Text

ROLES = {
    "train": "training rows",
    "holdout": "held-out rows",
    "synthetic": "rows to be released",
    "reference": "reference rows",
}
KINDS = {"category": "labels", "number": "numbers", "date": "dates"}
LISTED = 24
"""Columns in the table; those that are left out or have gaps come first."""


def preview_blocks(found: Mapping[str, Any], files: Mapping[str, str] | None = None) -> list[Block]:
    """Return what a ``Preview.to_dict()`` says of files, by the names in ``files`` where they are known."""
    names, columns = files or {}, found["columns"]
    judged = found["tables"][0]["role"] != "scores"
    opening = what_is_compared(columns)
    notes = _notes(found["tables"], names)
    notes += [f"{capital(_in_words(what))}: {count(number)}" for what, number in found["overlaps"].items() if number]
    first = ROLES.get(found["tables"][0]["role"])
    notes += [
        f"{clean(column['name'])}: no label of the {first} appears among the {ROLES[role]}"
        for column in columns
        for role in column["apart"]
    ]
    notes += [
        f"{clean(column['name'])}: labels that differ from another only in capitals, blanks or ways to write a letter: "
        f"{count(column['alike'])}; if they mean the same, write them in one way"
        for column in columns
        if column["alike"]
    ]
    notes += [
        f"{clean(column['name'])}: {'the same in every row' if column['different'] else 'empty'}, so it changes nothing"
        for column in columns
        if judged and column["constant"] and column["left_out"] is None
    ]
    blocks: list[Block] = [*([Text(opening)] if judged else []), _tables(found, names)]
    if notes:
        blocks.append(Items(notes))
    return [*blocks, _columns(columns, judged)]


def what_is_compared(columns: Sequence[Mapping[str, Any]]) -> str:
    """Say how many columns are compared, and of the others why not."""
    left = [f"{clean(column['name'])} ({column['left_out']})" for column in columns if column["left_out"] is not None]
    said = f"{count(len(columns) - len(left))} of {count(len(columns))} columns are compared."
    if not left:
        return said
    more = f" and {len(left) - 6} more" if len(left) > 6 else ""
    return f"{said} Left out: {', '.join(left[:6])}{more}."


def _notes(tables: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[str]:
    """Return what was recognised in each file, once where it is the same in all."""
    everywhere = [note for note in tables[0]["notes"] if all(note in table["notes"] for table in tables)]
    shared = [f"All files: {note}" for note in everywhere] if len(tables) > 1 else []
    own = [(table, note) for table in tables for note in table["notes"] if not shared or note not in everywhere]
    return shared + [f"{_file(table, names)}: {note}" for table, note in own]


def _file(table: Mapping[str, Any], names: Mapping[str, str]) -> str:
    return clean(names.get(table["role"], table["origin"]))


def _tables(found: Mapping[str, Any], names: Mapping[str, str]) -> Grid:
    people = bool(found["persons"])
    rows = [
        (
            _file(table, names),
            ROLES.get(table["role"], table["role"]),
            count(table["rows"]),
            count(table["columns"]),
            *([_people(found["persons"].get(table["role"]))] if people else []),
        )
        for table in found["tables"]
    ]
    head = ("file", "holds", "rows", "columns", *(["people"] if people else []))
    return Grid("The files", head, rows, frozenset({1}))


def _people(number: int | None) -> str:
    return NOT_MEASURED if number is None else count(number)


def _columns(columns: list[Mapping[str, Any]], judged: bool) -> Grid:
    """The columns that need a look first: left out, then by gaps, then as they stand in the file.

    Which columns of scores count is for the audit to say: nothing is ``judged`` there.
    """
    ranked = sorted(columns, key=lambda column: (column["left_out"] is None, -sum(column["missing"].values())))
    rows = [
        (
            clean(column["name"]),
            KINDS.get(column["kind"], column["kind"] or NOT_MEASURED),
            NOT_MEASURED if column["different"] is None else count(column["different"]),
            count(sum(column["missing"].values())),
            *(["yes" if column["left_out"] is None else f"no: {column['left_out']}"] if judged else []),
        )
        for column in ranked[:LISTED]
    ]
    more = f"; {count(len(columns) - LISTED)} more are compared and have fewer gaps" if len(columns) > LISTED else ""
    head = ("column", "holds", "different values", "missing cells", "compared")
    return Grid(f"The columns{more}", head[: 4 + judged], rows, frozenset({1, 4}))


def _in_words(what: str) -> str:
    """Return an overlap in the words of the page."""
    said = re.sub(r"\bin (holdout|synthetic|reference)$", lambda found: f"among the {ROLES[found[1]]}", what)
    said = said.replace("train people who are", "people of the training rows who are")
    return re.sub(r"^(train|holdout|synthetic|reference) rows", lambda found: ROLES[found[1]], said)
