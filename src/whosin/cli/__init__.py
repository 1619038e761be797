"""The command line: parse, call, print."""

from __future__ import annotations

import gc
import io
import sys

__all__ = ["main", "show_any_letter"]

_COLLECTED_FROM = 50_000
"""New objects between two collections: loading modules makes very many that stay, and searching them takes 0.1 s."""


def main() -> None:
    """Run the ``whosin`` command."""
    gc.set_threshold(_COLLECTED_FROM)
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
