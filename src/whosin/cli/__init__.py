"""The command line: parse, call, print."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the ``whosin`` command."""
    from whosin.cli.app import app

    app()
