"""Examples under every ``--help``, by command."""

from __future__ import annotations

import inspect

import typer

EXAMPLES = {
    "audit": (
        "whosin audit --train train.csv --holdout holdout.csv --synthetic release.csv",
        "whosin audit --train train.csv --holdout holdout.csv --synthetic release.csv --report audit.pdf",
        "whosin audit --scores scores.csv --member-column member --json",
    ),
    "explain": (
        "whosin explain --epsilon 8 --delta 1e-5",
        "whosin explain --noise-multiplier 0.8 --sample-rate 0.004 --steps 2000 --prior 0.01",
    ),
    "calibrate": (
        "whosin calibrate --accuracy 0.6",
        "whosin calibrate --advantage 0.1 --sample-rate 0.01 --steps 1000",
    ),
    "bounds": ("whosin bounds --epsilon 2 --delta 1e-5",),
    "demo": ("whosin demo --report demo.html",),
    "protect": ("whosin protect records.csv --statistic mean --eta 0.1 --out mean.json",),
    "deletions": ("whosin deletions --epsilon 1 --inclusion 0.01 --threshold 0.8",),
    "serve": ("whosin serve", "whosin serve --port 9000 --no-open"),
    "look": ("whosin look train.csv holdout.csv synthetic.csv", "whosin look people.csv --separator ';'"),
    "population gaussian": ("whosin population gaussian records.csv --epsilon 8 --delta 1e-5 --clip 2",),
    "population laplace": ("whosin population laplace records.csv --columns age --epsilon 8 --clip 80",),
    "population exponential": ("whosin population exponential records.csv --candidates grid.csv --epsilon 8 --clip 2",),
    "ledger add": ("whosin ledger add --name 'table of May' --dataset patients --epsilon 1",),
    "ledger list": ("whosin ledger list",),
    "ledger check": ("whosin ledger check",),
    "ledger verify": ("whosin ledger verify",),
    "ledger retract": ("whosin ledger retract 1 --note 'taken down'",),
    "ledger same-people": ("whosin ledger same-people --dataset patients --data may.csv",),
}


def add_examples(app: typer.Typer, before: str = "") -> None:
    """Put the examples of each command under its help, those of groups of commands too."""
    for info in app.registered_commands:
        name = info.name or getattr(info.callback, "__name__", "").replace("_", "-")
        info.short_help = (inspect.getdoc(info.callback) or "").partition("\n")[0]  # else it is cut at 45 letters
        lines = EXAMPLES.get(f"{before}{name}", ())
        if lines:
            info.epilog = "\b\n" + "\n".join(
                ["Examples:" if len(lines) > 1 else "Example:", *(f"  {x}" for x in lines)]
            )
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.short_help = group.typer_instance.info.help
            add_examples(group.typer_instance, f"{group.name} ")
