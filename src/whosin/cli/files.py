"""Options that say how files are written; every command that reads tables has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

import typer

__all__ = ["split", "takes_files"]

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "separator": (str | None, typer.Option(help="What separates cells of text files; recognised by default.")),
    "encoding": (str | None, typer.Option(help="Encoding of text files; recognised by default.")),
    "decimal": (str | None, typer.Option(help="Decimal sign of text files, '.' or ','; recognised by default.")),
    "missing": (
        list[str] | None,
        typer.Option(help="Word for a missing cell of text files; repeat for several. Recognised by default."),
    ),
    "header": (
        bool | None,
        typer.Option("--header/--no-header", help="Whether text files start with names; recognised by default."),
    ),
    "skip_lines": (int, typer.Option(min=0, help="Lines at the top of text files that are no part of the table.")),
    "sheet": (str | None, typer.Option(help="Sheet of workbooks; the first by default.")),
}


def takes_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of text files and workbooks; it gets them as one dictionary, ``written``."""
    hints = get_type_hints(command, include_extras=True)
    own = [
        part.replace(annotation=hints[part.name])
        for part in signature(command).parameters.values()
        if part.name != "written"
    ]
    more = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=0 if kind is int else None,
            annotation=Annotated[kind, option],
        )
        for name, (kind, option) in _OPTIONS.items()
    ]

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        written = {name: options.pop(name) for name in _OPTIONS}
        command(*args, written={name: value for name, value in written.items() if value not in (None, 0)}, **options)

    every = [part.replace(kind=Parameter.KEYWORD_ONLY) for part in (*own, *more)]
    run.__signature__ = signature(command).replace(parameters=every)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in every}
    return run


def split(names: str | None) -> list[str] | None:
    """Return names that were separated by commas."""
    return None if names is None else [name.strip() for name in names.split(",")]
