"""Errors about the input become one line on standard error and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from whosin.errors import WhosinError

__all__ = ["clean_errors"]


def clean_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that no traceback reaches its user."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (WhosinError, TypeError) as error:
            typer.echo(f"Error: {error}", err=True)
            sys.exit(2)

    return run
