"""Texts and images as vectors, by an embedding that the user brings, before an audit compares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whosin.auditing.releases.tables_to_answers import group_labels
from whosin.errors import InputError, InputTypeError
from whosin.tables import Table, as_table, embedded, read_table
from whosin.tables.texts import items_of

NAMES = ("train", "holdout", "synthetic", "reference")


def embedded_parts(
    parts: Sequence[Any], embed: Callable[[list[Any]], Any], columns: Sequence[str] | None, groups: Any, person: Any
) -> tuple[list[Any], Any, Any, list[Any]]:
    """Return vectors for the items of each part, groups and people of the first two as arrays, and places of all items.

    A part is a folder of files, a list of items, or a table or its path, of which ``columns`` names one column of
    texts. None passes. Vectors of two parts must be equally long.
    """
    found: list[Any] = []
    tables: list[Table] = []
    places: list[Any] = []
    for part, name in zip(parts, NAMES, strict=False):
        if part is None:
            found.append(None)
            continue
        items = part if _are_items(part) else _table(part, name)
        places.append(items.places if isinstance(items, Table) else None)
        if isinstance(items, str | Path):
            items = items_of(part)
            places[-1] = [str(path.relative_to(part)) for path in items]
        if isinstance(items, Table):
            tables.append(items)
            items = _texts(items, columns)
            if columns is None and tables[-1].names != tables[0].names:
                raise InputError(
                    f"tables must call their column of texts alike, got {tables[0].names[0]!r} in {tables[0].origin} "
                    f"and {tables[-1].names[0]!r} in {tables[-1].origin}; if these are texts, header=False reads them "
                    "so"
                )
        vectors = embedded(items, embed)
        if found and vectors.shape[1] != found[0].shape[1]:
            raise InputError(
                f"embed must return vectors of one length, got {found[0].shape[1]} numbers for train and "
                f"{vectors.shape[1]} for {name}"
            )
        found.append(vectors)
    if isinstance(person, str) or isinstance(groups, str) or _named(groups):
        if len(tables) < 2:
            raise InputTypeError("person and groups must be arrays with folders and lists: these have no columns")
        if isinstance(person, str):
            person = tables[0].column(person), tables[1].column(person)
        groups = group_labels(groups, tables[0], tables[1])
    return found, groups, person, places


def _are_items(part: Any) -> bool:
    """Whether a part is a folder, or a list of texts, paths or arrays, and no table."""
    if isinstance(part, str | Path):
        return Path(part).is_dir()
    if isinstance(part, np.ndarray):
        return True
    return isinstance(part, list | tuple) and not (part and isinstance(part[0], dict | list | tuple))


def _table(part: Any, name: str) -> Table:
    return read_table(part) if isinstance(part, str | Path) else as_table(part, name)


def _texts(table: Table, columns: Sequence[str] | None) -> list[str]:
    """Return the column of texts."""
    names = list(table.names) if columns is None else list(columns)
    if len(names) != 1:
        raise InputError(f"columns must name the one column of {table.origin} that embed takes, got {', '.join(names)}")
    texts: list[Any] = table.column(names[0]).tolist()
    gone = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
    if gone is not None:
        raise InputError(f"{table.origin} {table.place(gone)} column {names[0]!r} must be a text, got {texts[gone]!r}")
    return texts


def _named(groups: Any) -> bool:
    return isinstance(groups, list | tuple) and bool(groups) and all(isinstance(name, str) for name in groups)
