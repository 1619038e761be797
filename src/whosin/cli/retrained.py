"""``whosin audit --generator``: what a way of training gives away, by training again."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whosin.cli import render
from whosin.errors import InputError
from whosin.numerics.rounding import about, at_least, at_most, limits

if TYPE_CHECKING:
    from whosin.auditing.runs import RetrainedAudit
    from whosin.guarantees import Guarantee


def audit_generator_again(generator: str, records: Path, written: dict[str, Any], **options: Any) -> RetrainedAudit:
    """Train the named generator again and again on random halves of the records."""
    from whosin.auditing.runs import audit_retrained
    from whosin.tables import read_table

    model = _named(generator)
    with render.progress(f"Training {options['trainings']} times on random halves of {records.name}") as progress:
        return audit_retrained(model, read_table(records, **written), progress=progress, **options)


def _named(generator: str) -> Any:
    """Return the generator that ``module:name`` names: an object, a class or function that makes one, or a function."""
    found = imported("--generator", generator, "my_models:make_generator")
    if not (inspect.isclass(found) or (inspect.isroutine(found) and not _required(found))):
        return found
    try:
        return found()
    except Exception as error:
        raise InputError(f"--generator: {generator}() failed: {type(error).__name__}: {error}") from error


def imported(option: str, given: str, example: str) -> Any:
    """Return what ``module:name`` names; modules of the folder that whosin runs in are found too."""
    module, colon, name = given.partition(":")
    if not (module and colon and name):
        raise InputError(f"{option} must be module:name, such as {example}, got {given!r}")
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except Exception as error:
        said = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise InputError(f"{option}: {module} could not be imported: {said}") from error
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)  # worker processes, which get this list, import the module there again
    if not hasattr(found, name):
        raise InputError(f"{option}: {module} has no {name!r}")
    return getattr(found, name)


def _required(function: Any) -> int:
    parameters = inspect.signature(function).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in plain and p.default is inspect.Parameter.empty for p in parameters)


def show_retrained(found: RetrainedAudit, *, top: int, promised: Guarantee | None) -> None:
    """Print the verdict and a paragraph, the limits, what to do, people, groups, the promise and the assumptions."""
    from whosin.reporting.verdict_card import what_to_do

    console = render.console()
    console.print(found.explain())
    shown = render.table("TPR - FPR over trainings", "about", "at least", "at most")
    shown.add_row("in a typical training", *limits(found.advantage))
    shown.add_row("in four of five trainings", "-", at_least(found.most(0.8)), "-")
    shown.add_row("on average", "-", at_least(found.mean_lower), "-")
    shown.add_row(found.worst.about, about(found.worst.estimate), at_least(found.worst.lower), "-")
    console.print()
    console.print(shown)
    facts = {"verdict": found.verdict.to_dict(), "trainings": len(found.scores.coins)}
    render.listed(console, "What to do now", what_to_do(facts), numbered=True)
    rows = found.individual.highest(top)
    if rows:
        who = "person" if found.person_level else "row"
        people = render.table(f"largest risk over trainings ({who})", "about", "at least", "at most")
        for row in rows:
            sides = at_least(row["simultaneous_lower"]), at_most(row["simultaneous_upper"])
            people.add_row(str(row.get("person", row["index"])), about(row["risk"]), *sides)
        console.print()
        console.print(people)
    if len(found.groups):
        groups = render.table("group", found.unit, "about", "at least", "at most")
        for group in found.groups:
            groups.add_row(group.name, str(group.units), *limits(group.advantage))
        console.print()
        console.print(groups)
    if promised is not None:
        console.print()
        console.print(f"Promised: {promised}. {found.compare(promised)}")
    render.assumptions(console, found.assumes)
