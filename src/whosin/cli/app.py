"""The commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from whosin.cli import render
from whosin.errors import WhosinError

__all__ = ["app"]

app = typer.Typer(
    name="whosin",
    help="Can anyone tell who is in your data? What a privacy guarantee means against membership inference.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Prior = Annotated[float, typer.Option(help="Probability that the record is in, before anything is seen.")]
Maybe = float | None


def _clean_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors about the input into one line on standard error and exit code 2."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (WhosinError, TypeError) as error:
            typer.echo(f"Error: {error}", err=True)
            sys.exit(2)

    return run


@app.command()
@_clean_errors
def explain(
    epsilon: Annotated[Maybe, typer.Option(help="ε of differential privacy.")] = None,
    delta: Annotated[float, typer.Option(help="δ of differential privacy.")] = 0.0,
    adjacency: Annotated[str, typer.Option(help="What the accountant compared: add_remove or replace.")] = "add_remove",
    mu: Annotated[Maybe, typer.Option(help="μ of Gaussian differential privacy.")] = None,
    noise_multiplier: Annotated[Maybe, typer.Option(help="DP-SGD: noise over clipping norm.")] = None,
    sample_rate: Annotated[Maybe, typer.Option(help="DP-SGD: share of the records in a batch.")] = None,
    steps: Annotated[int | None, typer.Option(help="DP-SGD: number of steps.")] = None,
    eta: Annotated[Maybe, typer.Option(help="η of membership inference privacy.")] = None,
    prior: Prior = 0.5,
    json: Json = False,
) -> None:
    """Say what a guarantee means against any membership inference attack."""
    import whosin as wi

    run = (noise_multiplier, sample_rate, steps)
    given = [epsilon is not None, mu is not None, any(value is not None for value in run), eta is not None]
    if sum(given) != 1:
        raise TypeError(
            "give one guarantee: --epsilon [--delta], --mu, --eta, or --noise-multiplier --sample-rate --steps"
        )
    guarantee: wi.Guarantee
    if epsilon is not None:
        guarantee = wi.PureDP(epsilon, adjacency) if delta == 0.0 else wi.ApproxDP(epsilon, delta, adjacency)  # type: ignore[arg-type]
    elif mu is not None:
        guarantee = wi.GaussianDP(mu, adjacency)  # type: ignore[arg-type]
    elif eta is not None:
        guarantee = wi.MIP(eta)
    else:
        if noise_multiplier is None or sample_rate is None or steps is None:
            raise TypeError("a DP-SGD run takes all of --noise-multiplier, --sample-rate and --steps")
        guarantee = wi.DPSGD(noise_multiplier, sample_rate, steps)
    if json:
        render.emit_json(render.facts(guarantee, prior))
    else:
        render.guarantee_text(guarantee, prior)


@app.command()
@_clean_errors
def calibrate(
    accuracy: Annotated[Maybe, typer.Option(help="Largest tolerable accuracy at the prior.")] = None,
    advantage: Annotated[Maybe, typer.Option(help="Largest tolerable TPR - FPR.")] = None,
    posterior: Annotated[Maybe, typer.Option(help="Largest tolerable belief in membership after any output.")] = None,
    tpr: Annotated[Maybe, typer.Option(help="Largest tolerable share of members found, at --fpr.")] = None,
    fpr: Annotated[Maybe, typer.Option(help="The false positive rate at which --tpr counts.")] = None,
    prior: Prior = 0.5,
    delta: Annotated[float, typer.Option(help="δ of the guarantee to look for.")] = 0.0,
    sample_rate: Annotated[Maybe, typer.Option(help="Look for a DP-SGD run with this share in a batch.")] = None,
    steps: Annotated[int | None, typer.Option(help="Look for a DP-SGD run with this many steps.")] = None,
    mip: Annotated[bool, typer.Option("--mip", help="Look for η of membership inference privacy instead.")] = False,
    epsilon: Annotated[
        Maybe, typer.Option(help="With --posterior: how many records to keep before ε-DP training.")
    ] = None,
    json: Json = False,
) -> None:
    """Turn a tolerable risk into parameters, on the safe side."""
    import whosin as wi

    if (tpr is None) != (fpr is None):
        raise TypeError("--tpr and --fpr go together")
    targets: dict[str, Any] = {"accuracy": accuracy, "advantage": advantage, "posterior": posterior}
    targets["tpr_at"] = None if tpr is None or fpr is None else (tpr, fpr)
    targets = {name: value for name, value in targets.items() if value is not None}
    if (sample_rate is None) != (steps is None):
        raise TypeError("--sample-rate and --steps go together")
    if epsilon is not None:
        if list(targets) != ["posterior"] or sample_rate is not None or mip or posterior is None:
            raise TypeError("--epsilon goes with --posterior alone: it asks for the share of records to keep")
        _print_rate(wi.calibrate.sampling_rate(epsilon, posterior=posterior), epsilon, posterior, json)
        return
    guarantee: wi.Guarantee
    if sample_rate is not None and steps is not None:
        with render.progress("Searching for the smallest noise"):
            guarantee = wi.calibrate.dpsgd(sample_rate, steps, prior=prior, **targets)
    elif mip:
        guarantee = wi.calibrate.mip(**targets)
    else:
        guarantee = wi.calibrate.epsilon(prior=prior, delta=delta, **targets)
    if json:
        render.emit_json(
            {
                "target": {k: list(v) if isinstance(v, tuple) else v for k, v in targets.items()},
                **render.facts(guarantee, prior),
            }
        )
    else:
        wanted = ", ".join(f"{name} ≤ {value}" for name, value in targets.items())
        render.guarantee_text(guarantee, prior, f"{guarantee} keeps {wanted}")


def _print_rate(rate: float, epsilon: float, posterior: float, json: bool) -> None:
    if json:
        render.emit_json({"target": {"posterior": posterior}, "epsilon": epsilon, "sampling_rate": rate})
    else:
        typer.echo(
            f"Keep each record with probability {rate:.9g} before training with {epsilon:g}-DP "
            f"(add/remove): then nobody's "
            f"belief that a given record was used exceeds {posterior:g}."
        )


@app.command()
@_clean_errors
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
@_clean_errors
def demo() -> None:
    """Explain and calibrate a DP-SGD run, and check a theorem in a small world."""
    from whosin.cli.demo import run

    run()
