"""What the commands print: a paragraph first, then a table, or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from whosin.errors import InputError, InputTypeError
from whosin.guarantees.base import facts
from whosin.numerics.rounding import at_least, at_most

if TYPE_CHECKING:
    from rich.console import Console

    from whosin.bounds import BoundsTable
    from whosin.guarantees import Guarantee


def emit_json(payload: dict[str, Any]) -> None:
    """Print one JSON object on standard output; with escapes where its encoding lacks a letter."""
    import sys

    text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(payload, allow_nan=False)
    print(text)


def guarantee_text(guarantee: Guarantee, prior: float, headline: str | None = None) -> None:
    """Print the paragraph, the numbers and the assumptions of a guarantee."""
    known, shown = facts(guarantee, prior), console()
    shown.print(headline or known["guarantee"], style="bold")
    shown.print(f"\n{known['explanation']}\n")
    numbers = table(f"At most, against any attacker (prior {prior:g})", "")
    low, high = known["posterior"]
    numbers.add_row("accuracy", number(known["accuracy"]))
    numbers.add_row("advantage (TPR - FPR)", number(known["advantage"]))
    numbers.add_row("belief in membership after the output", f"{number(low, upper=False)} to {number(high)}")
    for fpr, tpr in known["tpr_at"].items():
        numbers.add_row(f"members found at false positive rate {fpr}", number(tpr))
    shown.print(numbers)
    assumptions(shown, known["assumes"])


def assumptions(console: Console, lines: Iterable[str]) -> None:
    """Print what a result rests on."""
    listed(console, "This assumes:", lines)


def listed(console: Console, heading: str, lines: Iterable[str], *, numbered: bool = False) -> None:
    """Print a heading and a list whose lines are indented under their marks."""
    import textwrap

    console.print(f"\n{heading}", markup=False)
    for place, line in enumerate(lines, 1):
        mark = f"  {place}. " if numbered else "  - "
        shown = textwrap.fill(
            line, console.width, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False
        )
        console.print(shown, markup=False, soft_wrap=True)


def bounds_text(table: BoundsTable) -> None:
    """Print the literature's bounds side by side."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, title_justify="left")
    for heading in ("quantity", "at most", "bound", "formula", "needs"):
        shown.add_column(heading, justify="right" if heading == "at most" else "left", overflow="fold")
    for row in table:
        value = "-" if row.value is None else number(row.value)
        shown.add_row(
            row.quantity, f"[bold]{value}*[/bold]" if row.tightest else f"{value} ", row.name, row.formula, row.needs
        )
    console = Console(highlight=False)
    console.print(f"[bold]Bounds at ε = {table.epsilon:g}, δ = {table.delta:g}, prior {table.prior:g}[/bold]")
    console.print("PPV is the chance that an accused record is a member. * marks the tightest of its quantity.")
    console.print()
    console.print(shown)


def console() -> Console:
    """Return where people read: nothing in a text is taken for markup, and no number is coloured."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


log_lines: ContextVar[bool] = ContextVar("log_lines", default=False)
"""Whether progress and all else that is said on standard error are lines of JSON (``--log-json``)."""
LOG_PAUSE = 1.0
"""Seconds between two such lines, at least."""


@contextmanager
def progress(message: str, expected: float | None = None) -> Iterator[Callable[[float], None]]:
    """Show a bar with the time left on a terminal and nothing elsewhere; yields the function that moves it to a share.

    Until the first share arrives it only says that work goes on, and how many seconds are ``expected`` if that is known
    and worth a word.
    """
    if log_lines.get():
        move = _logged(message, expected)
        yield move
        move(1.0)
        return
    if expected is not None and expected >= 30.0:
        minutes = expected / 60.0
        message += f" (about {minutes:.0f} minutes)" if minutes >= 1.5 else f" (about {expected:.0f} seconds)"
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:  # early versions of rich print an empty line even where they are told to be silent
        yield lambda share: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(message, total=None)
        yield lambda share: shown.update(task, total=1.0, completed=share)


def _logged(stage: str, expected: float | None) -> Callable[[float], None]:
    """Return what writes one JSON object a line: time, stage, share and seconds left, null where nobody knows."""
    import time

    from whosin.parallel.bar import seconds_left

    began = time.monotonic()
    written, ended = began, False

    def write(share: float, left: float | None) -> None:
        _line(stage=stage, share=share, seconds_left=None if left is None else round(left, 1))

    def move(share: float) -> None:
        nonlocal written, ended
        now, done = time.monotonic(), min(1.0, max(0.0, float(share)))
        if (now - written >= LOG_PAUSE or done == 1.0) and not ended:
            written, ended = now, done == 1.0
            write(done, 0.0 if ended else seconds_left(now - began, done))

    write(0.0, expected)
    return move


def say(kind: str, text: str) -> None:
    """Say a note, a warning or an error on standard error; with ``--log-json`` as a line of JSON under its kind."""
    if log_lines.get():
        _line(**{kind: text.removeprefix(f"{kind.capitalize()}: ")})
    else:
        typer.echo(text, err=True)


@contextmanager
def python_warnings_said() -> Iterator[None]:
    """Say the warnings of Python and of libraries like our own, for ``--log-json``."""
    import warnings

    def shown(message: Warning | str, *_: Any, **__: Any) -> None:
        say("warning", str(message))

    with warnings.catch_warnings():
        warnings.showwarning = shown
        yield


def _line(**found: Any) -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    typer.echo(json.dumps({"time": now, **found}), err=True)


def check_report(path: Path | None, force: bool) -> None:
    """Refuse a report that could not be written, before the work is done."""
    if path is not None:
        check_new_file("--report", path, force)
    elif force:
        raise InputTypeError("--force goes with --report")


def check_new_file(option: str, path: Path, force: bool) -> None:
    """Refuse a file that could not be written, or that is there already."""
    if not path.parent.is_dir():
        raise InputError(f"{option} must be a file in a folder that exists, got {path}")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} must be a new file, got {path}, which is a folder, a device or a pipe")
    if path.exists() and not force:
        raise InputError(f"{option} must be a new file, got {path}, which exists; --force replaces it")


def write_report(result: Any, path: Path, force: bool, **options: Any) -> None:
    """Write the report of a result and say where, on standard error."""
    import shlex
    import sys

    import whosin as wi

    command = shlex.join(["whosin", *sys.argv[1:]])
    written = wi.report(result, path, force=force, command=command, **options)
    say("note", f"Report: {written}")


def number(value: float, upper: bool = True) -> str:
    """Three significant digits, six next to 1, rounded up (or down, for lower limits): a printed limit is a limit."""
    digits = 3 if value < 0.99 else 6
    return at_most(value, digits) if upper else at_least(value, digits)


def table(*columns: str, headings: bool = True) -> Any:
    """Return a table without lines whose first column is text and whose others are numbers."""
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, show_header=headings)
    for place, name in enumerate(columns):
        shown.add_column(name, justify="right" if place and headings else "left", overflow="fold")
    return shown
