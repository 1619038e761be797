"""``whosin look``: what files hold, and what an audit would compare, before anything is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors
from whosin.cli.files import split, takes_files
from whosin.cli.options import Categories, Ignore, Json, Keep
from whosin.errors import InputTypeError

if TYPE_CHECKING:
    from whosin.tables.look import Preview

MOST_FILES = 4


@clean_errors
@takes_files
def look(
    files: Annotated[
        list[Path],
        typer.Argument(help="One file, or those of an audit in this order: training, held-out, released, reference."),
    ],
    person: Annotated[str | None, typer.Option(help="Column that says whose row it is.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to use, separated by commas.")] = None,
    ignore: Ignore = None,
    keep: Keep = None,
    categories: Categories = None,
    json: Json = False,
    written: Any = None,
) -> None:
    """Say what files hold: rows, columns, gaps, overlaps, and what an audit would compare. Nothing else is run."""
    from whosin.tables import look as look_at
    from whosin.tables import read_table

    if len(files) > MOST_FILES:
        raise InputTypeError(f"FILES must be at most {MOST_FILES} files, got {len(files)}")
    tables = [read_table(path, categories=split(categories) or (), **written) for path in files]
    found = look_at(*tables, person=person, columns=split(columns), ignore=split(ignore) or (), keep=split(keep) or ())
    if json:
        render.emit_json(found.to_dict())
    else:
        chosen = {"person": person, "columns": columns, "ignore": ignore, "keep": keep, "categories": categories}
        _print(found, files, {**chosen, **written})


def _print(found: Preview, files: Sequence[Path], options: Mapping[str, Any]) -> None:
    from rich.table import Table

    console = render.console()
    for table in found.tables:
        people = f", {found.persons[table['role']]} people" if table["role"] in found.persons else ""
        role = f" ({table['role']})" if len(found.tables) > 1 else ""
        console.print(f"{table['origin']}{role}: {table['rows']} rows, {table['columns']} columns{people}")
        for note in table["notes"]:
            console.print(f"  {note}")
    shown = Table(box=None, pad_edge=False)
    for heading in ("column", "kind", "different", "missing", "compared"):
        shown.add_column(heading, justify="right" if heading in ("different", "missing") else "left")
    for column in found.columns:
        why = "yes" if column["left_out"] is None else f"no: {column['left_out']}"
        if column["constant"] and column["left_out"] is None:
            why += ", but it is the same in every row" if column["different"] else ", but it is empty"
        if column["apart"]:
            first = found.tables[0]["role"]
            why += f", but no label of {first} appears in {' or '.join(column['apart'])}"
        if column["alike"]:
            why += f"; labels that differ only in capitals, blanks or ways to write a letter: {column['alike']}"
        gaps = str(sum(column["missing"].values()))
        shown.add_row(column["name"], column["kind"] or "", str(column["different"]), gaps, why)
    console.print()
    console.print(shown)
    console.print()
    for what, count in found.overlaps.items():
        console.print(f"{what if len(found.tables) > 1 else what.partition(' ')[2]}: {count}")
    if len(found.tables) > 2 and found.compared:
        named = " ".join(
            f"--{table['role']} {quote(str(path))}" for table, path in zip(found.tables, files, strict=True)
        )
        console.print(f"\nNext: whosin audit {named}{_repeated(options)}", soft_wrap=True)


def _repeated(options: Mapping[str, Any]) -> str:
    """Return options as they are given to a command."""
    said = ""
    for name, value in options.items():
        option = f" --{name.replace('_', '-')}"
        if isinstance(value, bool):
            said += option if value else f" --no-{name}"
        elif value is not None:
            said += "".join(f"{option} {quote(str(one))}" for one in (value if isinstance(value, list) else [value]))
    return said
