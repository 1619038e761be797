"""Options that say how files are written; every command that reads tables has them."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli.options import takes
from whosin.errors import split_names

if TYPE_CHECKING:
    from whosin.tables.reading import Numbers


def _written(
    separator: Annotated[
        str | None, typer.Option(help="What separates cells of text files; recognised by default.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of text files; recognised by default.")] = None,
    decimal: Annotated[
        str | None, typer.Option(help="Decimal sign of text files, '.' or ','; recognised by default.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="Word for a missing cell of text, JSON or workbooks; repeat for several. Recognised by default."
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether text files and sheets start with names; recognised by default."
        ),
    ] = None,
    skip_lines: Annotated[
        int, typer.Option(min=0, help="Lines at the top of text files and sheets that are no part of the table.")
    ] = 0,
    sheet: Annotated[str | None, typer.Option(help="Sheet of workbooks; the first by default.")] = None,
) -> dict[str, Any]:
    given = {
        "separator": separator, "encoding": encoding, "decimal": decimal, "missing": missing, "header": header,
        "skip_lines": skip_lines or None, "sheet": sheet,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


WRITTEN = tuple(signature(_written).parameters)
"""The names of these options."""
takes_files = takes("written", _written)
"""Gives a command the options of text files and workbooks; it gets them as one dictionary, ``written``."""


def split(names: str | None) -> list[str] | None:
    """Return names that were separated by commas."""
    return None if names is None else split_names(names)


def remarks(found: Numbers, file: str) -> list[str]:
    """Return what there is to say of records as they were read."""
    said = [f"{file}: {note}" for note in found.notes]
    if found.dropped:
        said.append(f"{found.dropped} rows with missing cells were dropped; what follows speaks of the others.")
    return said
