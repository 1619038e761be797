"""Options that several commands share: written once, as the arguments of a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Force = Annotated[bool, typer.Option("--force", help="With --report: replace a file that is there.")]
Report = Annotated[Path | None, typer.Option(help="Write the report to this .html or .pdf file.")]
Jobs = Annotated[int, typer.Option(help="Processor cores to use; -1 for all.")]
Records = Annotated[Path, typer.Argument(help="Any file that audit takes, one row per record.")]
Gaps = Annotated[str, typer.Option(help="What becomes of rows with missing cells: refuse or drop.")]
Edges = Annotated[
    list[str] | None,
    typer.Option(help="With histogram: public edges of the cells, separated by commas; once for each column."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(help="With histogram: public labels of a column of texts, as town=Leeds,York; once for each such."),
]
Ignore = Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")]
Keep = Annotated[
    str | None, typer.Option(help="Columns to compare although they look like row numbers, keys or free text.")
]
Categories = Annotated[
    str | None, typer.Option(help="Columns to take as labels although they look like numbers, separated by commas.")
]


def takes(into: str, make: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of ``make`` in place of its argument ``into``, which is what ``make`` returns."""
    extra = _parts(make)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = _parts(command)
        place = next(number for number, part in enumerate(own) if part.name == into)
        every = [*own[:place], *extra, *own[place + 1 :]]

        @wraps(command)
        def run(**options: Any) -> None:
            given = {part.name: options.pop(part.name) for part in extra}
            command(**{into: make(**given)}, **options)

        run.__signature__ = Signature(every)  # type: ignore[attr-defined]
        run.__annotations__ = {part.name: part.annotation for part in every}
        return run

    return decorate


def _parts(function: Callable[..., Any]) -> list[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    return [
        part.replace(annotation=hints.get(part.name, Any), kind=Parameter.KEYWORD_ONLY)
        for part in signature(function).parameters.values()
    ]
