"""Options that several commands share: written once, as the arguments of a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

__all__ = ["takes"]


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
