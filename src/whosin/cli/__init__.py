"""The command line: parse, call, print."""

from __future__ import annotations

import io
import sys

__all__ = ["main", "show_any_letter"]


def main() -> None:
    """Run the ``whosin`` command."""
    from whosin.cli.app import app
    from whosin.tables.quiet_polars import hide_panics

    show_any_letter()
    hide_panics()
    app()


def show_any_letter() -> None:
    """Let a letter that the encoding of the output lacks appear as an escape, rather than end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
