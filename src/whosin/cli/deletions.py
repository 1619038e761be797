"""``whosin deletions``: how many deletion requests a model trained on a random sample covers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors
from whosin.cli.files import takes_files
from whosin.cli.options import Json
from whosin.errors import InputTypeError

if TYPE_CHECKING:
    from whosin.unlearning import Requested, Unlearning


@clean_errors
@takes_files
def deletions(
    *,
    epsilon: Annotated[float, typer.Option(help="ε of the training, one record added or removed.")],
    inclusion: Annotated[
        float | None,
        typer.Option(help="Probability with which each record was drawn for training; the largest where they differ."),
    ] = None,
    threshold: Annotated[float, typer.Option(help="Least probability that none of the deleted records was used.")],
    requests: Annotated[
        int | None, typer.Option(help="How many deletions were asked for so far; 0 by default.")
    ] = None,
    requested: Annotated[
        Path | None, typer.Option(help="Instead: a file with one row per request; --key says whose.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="With --requested: column that says whose row it is; each asks once.")
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(help="With --requested: the file that was drawn from; all records of those who ask count."),
    ] = None,
    inclusion_column: Annotated[
        str | None,
        typer.Option(help="With --requested: column with the probability of drawing each record."),
    ] = None,
    json: Json = False,
    written: Any = None,
) -> None:
    """Say how many deletion requests need no new training, because the records were probably never used."""
    from whosin.unlearning import Unlearning

    asked = None
    if requested is None:
        given = {"--key": key, "--records": records, "--inclusion-column": inclusion_column}
        extra = next((name for name, value in given.items() if value is not None), None)
        if extra is not None:
            raise InputTypeError(f"{extra} goes with --requested, a file of requests")
    else:
        if requests is not None:
            raise InputTypeError("--requested goes without --requests: the file says how many")
        if key is None:
            raise InputTypeError("--requested needs --key, the column that says whose row it is")
        asked = _asked(requested, key, records, inclusion_column, written)
    if inclusion is None:
        inclusion = None if asked is None else asked.inclusion
        if inclusion is None:
            raise InputTypeError("--inclusion is needed: the probability with which each record was drawn")
    result = Unlearning(epsilon, inclusion, threshold, asked.requests if asked else requests or 0)  # type: ignore[arg-type]
    if json:
        about = {} if asked is None else {"rows": asked.rows, "people": asked.people, "unknown": asked.unknown}
        render.emit_json({**about, **result.to_dict(), "explanation": result.explain()})
        return
    if asked is not None:
        typer.echo(f"{requested}: {asked}.\n")
    _print(result)


def _asked(path: Path, key: str, records: Path | None, inclusion: str | None, written: dict[str, Any]) -> Requested:
    from whosin.tables import read_table
    from whosin.unlearning import requested

    files = [None if file is None else read_table(file, categories=[key], **written) for file in (path, records)]
    return requested(files[0], key, files[1], inclusion_column=inclusion)


def _print(result: Unlearning) -> None:
    console = render.console()
    console.print(result.explain())
    table = render.table("", "")
    table.add_row("deletions covered", str(result.capacity))
    table.add_row("asked for so far", str(result.requests))
    table.add_row("still covered", str(result.remaining))
    table.add_row("none of them used, probability at least", render.number(result.none_used, upper=False))
    console.print(table)
    render.assumptions(console, result.assumes)
