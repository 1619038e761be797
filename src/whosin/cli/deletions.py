"""``whosin deletions``: how many deletion requests a model trained on a random sample covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors

if TYPE_CHECKING:
    from whosin.unlearning import Unlearning

__all__ = ["deletions"]


@clean_errors
def deletions(
    epsilon: Annotated[float, typer.Option(help="ε of the training, one record added or removed.")],
    inclusion: Annotated[float, typer.Option(help="Probability with which each record was drawn for training.")],
    threshold: Annotated[float, typer.Option(help="Least probability that none of the deleted records was used.")],
    requests: Annotated[int, typer.Option(help="How many deletions were asked for so far.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Say how many deletion requests need no new training, because the records were probably never used."""
    from whosin.unlearning import Unlearning

    result = Unlearning(epsilon, inclusion, threshold, requests)
    if json:
        render.emit_json({**result.to_dict(), "explanation": result.explain()})
    else:
        _print(result)


def _print(result: Unlearning) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(result.explain())
    console.print()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("deletions covered", str(result.capacity))
    table.add_row("asked for so far", str(result.requests))
    table.add_row("still covered", str(result.remaining))
    table.add_row("none of them used, probability at least", render.number(result.none_used, upper=False))
    console.print(table)
    render.assumptions(console, result.assumes)
