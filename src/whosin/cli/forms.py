"""The forms of the page, made from the options of the commands: both are always the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from whosin.cli.files import WRITTEN
from whosin.web.tools import Command, Field, Tool

LEFT_OUT = {
    "json", "out", "force", "journal", "jobs", "ledger", "help", "report", "certificate", "audit-json", "seed",
    "fingerprint",
}  # fmt: skip
"""Options that make no sense on a page, or that name files of the server."""
SIGNS = {"Epsilon": "ε", "Delta": "δ", "Eta": "η", "Mu": "μ", "Zcdp": "ρ"}
TABS = {
    "protect": ("Release a number with a promise", "A statistic of your records, with noise and a proof.", "protect"),
    "population": (
        "What does ε mean on these records?",
        "The labelled ε, and what it means for somebody who does not know who was drawn.",
        "population gaussian", "population laplace", "population exponential",
    ),
    "ledger": (
        "What was released so far?",
        "Releases from the same data add up. The ledger is the one that the command line uses.",
        "ledger list", "ledger add", "ledger check", "ledger verify", "ledger retract", "ledger same-people",
    ),
    "deletions": (
        "How many deletions are covered?",
        "Requests to be forgotten that a private training answers without training again.",
        "deletions",
    ),
}  # fmt: skip
"""By tab: title, a sentence, the commands."""


def forms(app: typer.Typer) -> dict[str, Tool]:
    """Return the tabs with the forms of their commands."""
    root: Any = typer.main.get_command(app)
    return {
        tab: Tool(title, about, tuple(_command(root, name) for name in names))
        for tab, (title, about, *names) in TABS.items()
    }


def _command(root: Any, name: str) -> Command:
    found = root
    for word in name.split():
        found = found.commands[word]
    fields = [_field(each) for each in found.params]
    writes = "out" if any(each.name == "out" for each in found.params) else ""
    return Command(tuple(name.split()), (found.help or "").split("\n")[0], tuple(f for f in fields if f), writes)


def _field(parameter: Any) -> Field | None:
    name = max(parameter.opts, key=len).removeprefix("--")
    if name in LEFT_OUT or getattr(parameter, "is_flag", False):
        return None
    word = _type_of(parameter)
    positional = parameter.param_type_name == "argument"
    if (positional and word == "path") or name in ("data", "candidates", "requested", "records"):
        kind = "file"
    elif word in ("path", "file", "filename"):
        return None  # a visitor must not name files of the server
    else:
        kind = "number" if word in ("float", "int", "integer") else "text"
    folded = "How the file is written" if parameter.name in WRITTEN else ""
    default = parameter.default if isinstance(parameter.default, int | float | str) else ""
    if str(default) and not parameter.required:
        folded = folded or "More settings"
    label = "Records" if positional and kind == "file" else name.replace("-", " ").capitalize()
    return Field(
        Path(name).name,
        SIGNS.get(label, label),
        (getattr(parameter, "help", None) or "").replace("--", ""),
        kind,
        str(default),
        bool(parameter.required),
        positional,
        folded,
    )


def _type_of(parameter: Any) -> str:
    """Return the type of an option in a word: newer versions of Typer keep the Python type, older ones Click's."""
    described = getattr(parameter, "type_descriptor", None)
    given = getattr(parameter, "type", None) if described is None else described.annotation
    word = str(getattr(given, "__name__", None) or getattr(given, "name", None) or given)
    return word.split(" ")[0].lower()
