"""The commands."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from whosin.cli import audit, backend, deletions, ledger, look, population, protect, render, serve
from whosin.cli.errors import Commands, clean_errors
from whosin.cli.options import Force, Json, Report
from whosin.cli.promise import BATCH_SIZE, DATASET_SIZE, EPOCHS, ONE, SAMPLING, Number, run_of, takes_guarantee
from whosin.errors import InputTypeError
from whosin.guarantees.base import facts, in_words

app = typer.Typer(
    name="whosin",
    cls=Commands,
    help="Can anyone tell who is in your data? What a privacy guarantee means against membership inference.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.callback()(backend.choose_backend)
app.command("audit")(audit.audit)
app.command("look")(look.look)
app.command("protect")(protect.protect)
app.command("deletions")(deletions.deletions)
app.command("serve")(serve.serve)
app.add_typer(population.app, name="population")
app.add_typer(ledger.app, name="ledger")

Prior = Annotated[float, typer.Option(help="Probability that the record is in, before anything is seen.")]


@app.command()
@clean_errors
@takes_guarantee
def explain(
    guarantee: Any = None,
    prior: Prior = 0.5,
    report: Report = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Say what a guarantee means against any membership inference attack."""
    render.check_report(report, force)
    if guarantee is None:
        raise InputTypeError(f"give one guarantee: {ONE}")
    if json:
        render.emit_json(facts(guarantee, prior))
    else:
        render.guarantee_text(guarantee, prior)
    if report is not None:
        render.write_report(guarantee, report, force)


@app.command()
@clean_errors
def calibrate(
    accuracy: Annotated[Number, typer.Option(help="Largest tolerable accuracy at the prior.")] = None,
    advantage: Annotated[Number, typer.Option(help="Largest tolerable TPR - FPR.")] = None,
    posterior: Annotated[Number, typer.Option(help="Largest tolerable belief in membership after any output.")] = None,
    tpr: Annotated[Number, typer.Option(help="Largest tolerable share of members found, at --fpr.")] = None,
    fpr: Annotated[Number, typer.Option(help="The false positive rate at which --tpr counts.")] = None,
    prior: Annotated[Number, typer.Option(help="Probability that the record is in; 0.5 by default.")] = None,
    delta: Annotated[Number, typer.Option(help="δ of the guarantee to look for; 0 by default.")] = None,
    sample_rate: Annotated[Number, typer.Option(help="Look for a DP-SGD run with this share in a batch.")] = None,
    steps: Annotated[int | None, typer.Option(help="Look for a DP-SGD run with this many steps.")] = None,
    batch_size: Annotated[int | None, typer.Option(help=BATCH_SIZE)] = None,
    dataset_size: Annotated[int | None, typer.Option(help=DATASET_SIZE)] = None,
    epochs: Annotated[Number, typer.Option(help=EPOCHS)] = None,
    sampling: Annotated[str | None, typer.Option(help=SAMPLING)] = None,
    adjacency: Annotated[
        str | None, typer.Option(help="DP-SGD: what is compared: add_remove (default), replace or zero_out.")
    ] = None,
    mip: Annotated[bool, typer.Option("--mip", help="Look for η of membership inference privacy instead.")] = False,
    zcdp: Annotated[bool, typer.Option("--zcdp", help="Look for ρ of zero-concentrated DP instead.")] = False,
    rdp_order: Annotated[Number, typer.Option(help="Look for ε of Rényi DP at this order instead.")] = None,
    epsilon: Annotated[
        Number,
        typer.Option(
            help="With --posterior: how many records to keep before ε-DP training. With --delta and a DP-SGD run: the "
            "target."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Turn a tolerable risk into parameters, on the safe side."""
    import whosin as wi

    if (tpr is None) != (fpr is None):
        raise InputTypeError("--tpr and --fpr go together")
    targets: dict[str, Any] = {"accuracy": accuracy, "advantage": advantage, "posterior": posterior}
    targets["tpr_at"] = None if tpr is None or fpr is None else (tpr, fpr)
    targets = {name: value for name, value in targets.items() if value is not None}
    run = run_of(sample_rate, steps, batch_size, dataset_size, epochs)
    if run is not None and epsilon is not None and delta is not None:
        targets |= {"epsilon": epsilon, "delta": delta}
        epsilon = delta = None
    sought: dict[str, Any] = {"a DP-SGD run": run, "--mip": mip or None, "--zcdp": zcdp or None}
    sought |= {"--rdp-order": rdp_order, "--epsilon": epsilon}
    named = [option for option, value in sought.items() if value is not None]
    if len(named) > 1:
        raise InputTypeError(f"one thing can be looked for at a time, got {' and '.join(named)}")
    drawn = {"sampling": sampling, "adjacency": adjacency}
    for name, value in drawn.items():
        _goes_with(f"--{name}", value, "a search for a DP-SGD run", run is not None)
    _goes_with("--prior", prior, "a search for ε, ρ or a DP-SGD run", epsilon is None and not mip)
    _goes_with("--delta", delta, "a search for ε", not named)
    fits = not named or epsilon is not None or rdp_order is not None
    _goes_with("--posterior", posterior, "a search for ε or a share of records", fits)
    chance = 0.5 if prior is None else prior
    if epsilon is not None:
        if list(targets) != ["posterior"] or posterior is None:
            raise InputTypeError("--epsilon goes with --posterior alone: it asks for the share of records to keep")
        _print_rate(wi.calibrate.sampling_rate(epsilon, posterior=posterior), epsilon, posterior, json)
        return
    if len(targets) != 1 and set(targets) != {"epsilon", "delta"}:
        words = {"tpr_at": "--tpr with --fpr"}
        got = ", ".join(words.get(name, f"--{name}") for name in targets) or "none"
        raise InputTypeError(
            f"exactly one target is needed of --accuracy, --advantage, --posterior, or --tpr with --fpr (for a DP-SGD "
            f"run also --epsilon with --delta), got {got}"
        )
    guarantee: wi.Guarantee
    if run is not None:
        with render.progress("Searching for the smallest noise"):
            given = targets | {name: value for name, value in drawn.items() if value is not None}
            guarantee = wi.calibrate.dpsgd(*run, prior=chance, **given)
    elif mip:
        guarantee = wi.calibrate.mip(**targets)
    elif zcdp:
        guarantee = wi.calibrate.zcdp(prior=chance, **targets)
    elif rdp_order is not None:
        guarantee = wi.calibrate.rdp(rdp_order, prior=chance, **targets)
    else:
        guarantee = wi.calibrate.epsilon(prior=chance, delta=delta or 0.0, **targets)
    if json:
        target = {name: list(value) if isinstance(value, tuple) else value for name, value in targets.items()}
        render.emit_json({"target": target, **facts(guarantee, chance)})
    else:
        signs = {"epsilon": "ε", "delta": "δ"}
        wanted = " and ".join(
            f"{signs.get(name, name)} ≤ {value:g}" for name, value in targets.items() if name != "tpr_at"
        )
        wanted = wanted or f"TPR ≤ {tpr:g} at FPR {fpr:g}"
        render.guarantee_text(guarantee, chance, f"{in_words(guarantee, keeps=True)} keeps {wanted}")


def _goes_with(option: str, value: Any, what: str, fits: bool) -> None:
    """Refuse an option that would have no effect."""
    if value is not None and not fits:
        raise InputTypeError(f"{option} goes with {what}")


def _print_rate(rate: float, epsilon: float, posterior: float, json: bool) -> None:
    if json:
        render.emit_json({"target": {"posterior": posterior}, "epsilon": epsilon, "sampling_rate": rate})
    else:
        typer.echo(
            f"Keep each record with probability {rate!r} before training with {epsilon:g}-DP (add/remove): then "
            f"nobody's belief that a given record was used exceeds {posterior:g}."
        )


@app.command()
@clean_errors
def bounds(
    epsilon: Annotated[float, typer.Option(help="ε of differential privacy.")],
    delta: Annotated[float, typer.Option(help="δ of differential privacy.")] = 0.0,
    prior: Prior = 0.5,
    json: Json = False,
) -> None:
    """Set the bounds of the literature side by side."""
    import whosin as wi

    table = wi.bounds.table(epsilon, delta, prior)
    if json:
        render.emit_json(table.to_dict())
    else:
        render.bounds_text(table)


@app.command()
@clean_errors
def demo(
    report: Report = None,
    force: Force = False,
) -> None:
    """Audit two synthetic tables of real patients, explain a training run, check a theorem."""
    from whosin.cli.demo import run

    render.check_report(report, force)
    found = run()
    if report is not None:
        render.write_report(found, report, force)


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
    "population randomized-response": ("whosin population randomized-response survey.csv --column smoker --epsilon 2",),
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


add_examples(app)
