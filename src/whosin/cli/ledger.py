"""``whosin ledger``: record releases, list them, and say what all of them promise together."""

from __future__ import annotations

import json as json_text
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors
from whosin.cli.options import Json, takes
from whosin.cli.promise import Number, takes_guarantee
from whosin.errors import InputError, InputTypeError, check_number, short_repr

if TYPE_CHECKING:
    from whosin.ledger import Entry, Ledger, Total

app = typer.Typer(
    help="Record what was released, and say what all releases from the same people promise together.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

BEYOND_BUDGET = 3

Address = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="File, or postgresql:// URL. By default the variable WHOSIN_LEDGER (the place for a URL with a password), "
        "or a file in your data folder.",
    ),
]
Dataset = Annotated[str | None, typer.Option(help="Name of the people behind the data; one name counts together.")]
By = Annotated[str | None, typer.Option(help="Who records this.")]
Note = Annotated[str | None, typer.Option(help="Anything else.")]


def _data(
    data: Annotated[
        Path | None, typer.Option(help="File that the release was made from; its fingerprint is kept.")
    ] = None,
    fingerprint: Annotated[
        str | None, typer.Option(help="Instead of --data: its fingerprint, 64 hexadecimal digits.")
    ] = None,
) -> Any:
    from whosin.tables import read_table

    if data is not None and fingerprint is not None:
        raise InputTypeError("give --data or --fingerprint, not both")
    if fingerprint is not None and not re.fullmatch("[0-9a-f]{64}", fingerprint):
        raise InputError(f"--fingerprint must be 64 hexadecimal digits, got {short_repr(fingerprint)}")
    return fingerprint if data is None else read_table(data)


def _budget(
    budget_epsilon: Annotated[
        Number, typer.Option(help=f"Largest ε of the total; exit code {BEYOND_BUDGET} beyond.")
    ] = None,
    budget_delta: Annotated[Number, typer.Option(help="With --budget-epsilon: the δ at which it counts.")] = None,
    budget_advantage: Annotated[
        Number, typer.Option(help=f"Largest TPR - FPR of the total; exit code {BEYOND_BUDGET} beyond.")
    ] = None,
) -> Any:
    from whosin.ledger import Budget

    given = {"epsilon": budget_epsilon, "delta": budget_delta, "advantage": budget_advantage}
    if budget_epsilon is None and budget_delta is not None:
        raise InputTypeError("--budget-delta goes with --budget-epsilon")
    for name, value in given.items():
        if value is not None:
            check_number(f"--budget-{name}", value, low=0.0, high=math.inf if name == "epsilon" else 1.0)
    return None if budget_epsilon is None and budget_advantage is None else Budget(**given)


takes_source, takes_budget = takes("source", _data), takes("budget", _budget)


@app.command()
@clean_errors
@takes_guarantee
@takes_source
@takes_budget
def add(
    name: Annotated[str, typer.Option(help="What was released.")],
    source: Any = None,
    dataset: Dataset = None,
    guarantee: Any = None,
    certificate: Annotated[Path | None, typer.Option(help="JSON file that whosin protect wrote.")] = None,
    audit_json: Annotated[Path | None, typer.Option(help="What whosin audit --json printed.")] = None,
    kind: Annotated[str, typer.Option(help="What sort of thing it is.")] = "release",
    by: By = None,
    note: Note = None,
    budget: Any = None,
    ledger: Address = None,
    json: Json = False,
) -> None:
    """Record a release. With a budget it is refused, and not recorded, where the total would go beyond."""
    from whosin.ledger import BudgetError

    if guarantee is not None and certificate is not None:
        raise InputTypeError("give one guarantee at most: --certificate has one already")
    if source is None and dataset is None:
        raise InputTypeError("give --data, --fingerprint or --dataset: from whom does the release come?")
    book = _open(ledger)
    try:
        entry = book.add(
            name,
            data=source,
            dataset=dataset,
            guarantee=guarantee,
            certificate=None if certificate is None else _read_json(certificate, "--certificate"),
            audit=None if audit_json is None else _read_json(audit_json, "--audit-json"),
            kind=kind,
            by=by,
            note=note,
            budget=budget,
        )
    except BudgetError as error:
        render.say("error", f"Not recorded: {error}")
        raise typer.Exit(BEYOND_BUDGET) from None
    _written(book, entry, json)


@app.command("list")
@clean_errors
def show(
    after: Annotated[int, typer.Option(help="Start behind the entry with this number.")] = 0,
    limit: Annotated[int, typer.Option(help="How many to show.")] = 100,
    ledger: Address = None,
    json: Json = False,
) -> None:
    """List the entries in the order in which they were written."""
    book = _open(ledger)
    entries, count = book.entries(after=after, limit=limit), len(book)
    more = bool(entries) and entries[-1].number < count
    if json:
        listed = [entry.to_dict() for entry in entries]
        render.emit_json({"ledger": book.place, "count": count, "entries": listed, "more": more})
        return
    for entry in entries:
        typer.echo(f"{entry}{_source(entry)}")
    if more:
        typer.echo(f"{count} entries in all; go on with --after {entries[-1].number}.")
    elif not entries:
        typer.echo("No entries." if count == 0 else f"No entries after {after}; there are {count}.")


@app.command()
@clean_errors
@takes_source
@takes_budget
def check(
    source: Any = None,
    dataset: Dataset = None,
    delta: Annotated[Number, typer.Option(help="The δ at which ε of the total is wanted.")] = None,
    budget: Any = None,
    ledger: Address = None,
    json: Json = False,
) -> None:
    """Say what all releases from the same people promise together; of everybody where nobody is named."""
    if budget is not None and budget.delta is not None:
        if delta is not None:
            raise InputTypeError("--delta goes without --budget-delta")
        delta = budget.delta
    book = _open(ledger)
    if source is None and dataset is None:
        totals = book.totals(delta=delta)
    else:
        totals = (book.check(source, dataset=dataset, delta=delta),)
    problems = [() if budget is None else budget.problems(total) for total in totals]
    if json:
        found = [
            {**total.to_dict(), "beyond_budget": list(beyond)} for total, beyond in zip(totals, problems, strict=True)
        ]
        render.emit_json({"ledger": book.place, "totals": found})
    else:
        _print(totals)
    for beyond in problems:
        for problem in beyond:
            render.say("error", f"Beyond the budget: {problem}.")
    if any(problems):
        raise typer.Exit(BEYOND_BUDGET)


@app.command()
@clean_errors
def verify(
    head: Annotated[str | None, typer.Option(help="A head that was noted earlier; it must still be there.")] = None,
    ledger: Address = None,
    json: Json = False,
) -> None:
    """Check that no entry was changed or taken away.

    Exit code 1 where one was.
    """
    book = _open(ledger)
    found = book.verify(head)
    if json:
        render.emit_json({"ledger": book.place, **found.to_dict()})
    else:
        typer.echo(str(found))
    if not found.intact:
        raise typer.Exit(1)


@app.command()
@clean_errors
def retract(
    number: Annotated[int, typer.Argument(help="Number of the release.")],
    note: Annotated[str, typer.Option(help="Why.")],
    void_guarantee: Annotated[
        bool, typer.Option("--void-guarantee", help="Its guarantee turned out wrong: count it as one without.")
    ] = False,
    by: By = None,
    ledger: Address = None,
    json: Json = False,
) -> None:
    """Add a note to a release that was withdrawn. It still counts: what went out cannot be taken back."""
    book = _open(ledger)
    _written(book, book.retract(number, note, voids_guarantee=void_guarantee, by=by), json)


@app.command()
@clean_errors
@takes_source
def same_people(
    dataset: Annotated[str, typer.Option(help="Name of the people behind the data.")],
    source: Any = None,
    by: By = None,
    note: Note = None,
    ledger: Address = None,
    json: Json = False,
) -> None:
    """Declare whose data a file is, so that its releases count together with those of other versions."""
    if source is None:
        raise InputTypeError("give --data or --fingerprint")
    book = _open(ledger)
    _written(book, book.same_people(source, dataset, by=by, note=note), json)


def _open(address: str | None) -> Ledger:
    from whosin.ledger import Ledger

    return Ledger(address)


def _read_json(path: Path, option: str) -> dict[str, Any]:
    try:
        known = json_text.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{option} must be a file that can be read, got {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{option} must be a JSON file, got {path}, which is not one") from None
    if not isinstance(known, dict):
        raise InputError(f"{option} must be a JSON object, got {type(known).__name__} in {path}")
    return known


def _written(book: Ledger, entry: Entry, json: bool) -> None:
    if json:
        render.emit_json({"ledger": book.place, "entry": entry.to_dict()})
    else:
        typer.echo(f"Recorded in {book.place}: {entry}")


def _source(entry: Entry) -> str:
    parts = [entry.dataset] if entry.dataset else []
    parts += [f"{entry.fingerprint[:12]}…"] if entry.fingerprint else []
    return f" (from {', '.join(parts)})" if parts and entry.action == "release" else ""


def _print(totals: tuple[Total, ...]) -> None:
    console = render.console()
    if not totals:
        console.print("No releases are recorded.")
    for total in totals:
        named = [*total.datasets, *(f"{fingerprint[:12]}…" for fingerprint in total.fingerprints)]
        console.print(f"{', '.join(named) or 'Nothing recorded'}:")
        console.print(total.explain())
        render.assumptions(console, total.assumes)
        console.print()
