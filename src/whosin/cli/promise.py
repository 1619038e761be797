"""A guarantee from the options of a command: the same options, and the same rules, wherever one is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.errors import InputTypeError

if TYPE_CHECKING:
    from whosin.guarantees import Guarantee

__all__ = ["Adjacency", "Epsilon", "Eta", "Maybe", "Mu", "NoiseMultiplier", "SampleRate", "Steps", "guarantee_of"]

Maybe = float | None
Epsilon = Annotated[Maybe, typer.Option(help="ε of differential privacy.")]
Adjacency = Annotated[
    str | None, typer.Option(help="What the accountant compared: add_remove (the default) or replace.")
]
Mu = Annotated[Maybe, typer.Option(help="μ of Gaussian differential privacy.")]
NoiseMultiplier = Annotated[Maybe, typer.Option(help="DP-SGD: noise over clipping norm.")]
SampleRate = Annotated[Maybe, typer.Option(help="DP-SGD: share of the records in a batch.")]
Steps = Annotated[int | None, typer.Option(help="DP-SGD: number of steps.")]
Eta = Annotated[Maybe, typer.Option(help="η of membership inference privacy.")]


def guarantee_of(
    *,
    epsilon: Maybe,
    delta: Maybe,
    adjacency: str | None,
    mu: Maybe,
    run: tuple[Maybe, Maybe, int | None],
    eta: Maybe,
) -> Guarantee | None:
    """Return the guarantee that the options name, None if they name none; several are an error.

    ``delta`` without ``epsilon`` is left to the caller, whose other options may take it.
    """
    import whosin as wi

    noise, rate, steps = run
    is_run = any(value is not None for value in run)
    if sum([epsilon is not None, mu is not None, is_run, eta is not None]) > 1:
        raise InputTypeError(
            "give one guarantee at most: --epsilon [--delta], --mu, --eta, or --noise-multiplier --sample-rate --steps"
        )
    if adjacency is not None and epsilon is None and mu is None:
        raise InputTypeError("--adjacency goes with --epsilon or --mu")
    compared: Any = adjacency or "add_remove"
    if epsilon is not None:
        return wi.ApproxDP(epsilon, delta, compared) if delta else wi.PureDP(epsilon, compared)
    if mu is not None:
        return wi.GaussianDP(mu, compared)
    if eta is not None:
        return wi.MIP(eta)
    if not is_run:
        return None
    if noise is None or rate is None or steps is None:
        raise InputTypeError("a DP-SGD run needs all of --noise-multiplier, --sample-rate and --steps")
    return wi.DPSGD(noise, rate, steps)
