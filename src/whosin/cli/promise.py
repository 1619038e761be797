"""A guarantee from the options of a command: the same options, and the same rules, wherever one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from whosin.cli.options import takes
from whosin.errors import InputTypeError, check_number

__all__ = ["ONE", "Number", "takes_guarantee"]

Number = float | None
File = Path | None


def _guarantee(
    epsilon: Annotated[Number, typer.Option(help="ε of differential privacy.")] = None,
    practical_epsilon: Annotated[Number, typer.Option(help="ε of practical membership privacy (PMP).")] = None,
    delta: Annotated[Number, typer.Option(help="With either ε: its δ; 0 by default.")] = None,
    adjacency: Annotated[
        str | None, typer.Option(help="What the accountant compared: add_remove (the default), replace or zero_out.")
    ] = None,
    mu: Annotated[Number, typer.Option(help="μ of Gaussian differential privacy.")] = None,
    zcdp: Annotated[Number, typer.Option(help="ρ of zero-concentrated differential privacy.")] = None,
    rdp: Annotated[
        File, typer.Option(help="Rényi differential privacy: a CSV file with one order and its ε per row.")
    ] = None,
    profile: Annotated[
        File, typer.Option(help="A CSV file with one ε and its δ per row, all of the same mechanism.")
    ] = None,
    noise_multiplier: Annotated[Number, typer.Option(help="DP-SGD: noise over clipping norm.")] = None,
    sample_rate: Annotated[Number, typer.Option(help="DP-SGD: share of the records in a batch.")] = None,
    steps: Annotated[int | None, typer.Option(help="DP-SGD: number of steps.")] = None,
    sampling: Annotated[
        str | None,
        typer.Option(
            help="DP-SGD: how batches are drawn: poisson (default), fixed_size, random_allocation, partition or "
            "shuffled."
        ),
    ] = None,
    eta: Annotated[Number, typer.Option(help="η of membership inference privacy.")] = None,
) -> Any:
    """Return the guarantee that the options name, None if they name none; several are an error."""
    import whosin as wi
    from whosin.guarantees.accountants import pairs_of

    is_run = any(value is not None for value in (noise_multiplier, sample_rate, steps))
    named = (epsilon, practical_epsilon, mu, eta, zcdp, rdp, profile)
    if sum(value is not None for value in named) + is_run > 1:
        raise InputTypeError(f"give one guarantee at most: {ONE}")
    if delta is not None and epsilon is None and practical_epsilon is None:
        raise InputTypeError("--delta goes with --epsilon or --practical-epsilon")
    if adjacency is not None and (eta is not None or practical_epsilon is not None):
        raise InputTypeError("--adjacency goes with differential privacy, not with --eta or --practical-epsilon")
    if sampling is not None and not is_run:
        raise InputTypeError("--sampling goes with --noise-multiplier --sample-rate --steps")
    compared: Any = adjacency or "add_remove"
    if epsilon is not None:
        return wi.ApproxDP(epsilon, delta, compared) if delta else wi.PureDP(epsilon, compared)
    if practical_epsilon is not None:
        return wi.PMP(check_number("practical_epsilon", practical_epsilon, low=0.0), delta or 0.0)
    if mu is not None:
        return wi.GaussianDP(mu, compared)
    if zcdp is not None:
        return wi.ZeroConcentratedDP(zcdp, compared)
    if rdp is not None:
        return wi.RenyiDP(*pairs_of(rdp.read_text(encoding="utf-8-sig")), compared)
    if profile is not None:
        return wi.PrivacyProfile(*pairs_of(profile.read_text(encoding="utf-8-sig")), compared)
    if eta is not None:
        return wi.MIP(eta)
    if not is_run:
        if adjacency is not None:
            raise InputTypeError(f"--adjacency goes with a guarantee: {ONE}")
        return None
    if noise_multiplier is None or sample_rate is None or steps is None:
        raise InputTypeError("a DP-SGD run needs all of --noise-multiplier, --sample-rate and --steps")
    drawn: Any = sampling or "poisson"
    return wi.DPSGD(noise_multiplier, sample_rate, steps, drawn, compared)


ONE = (
    "--epsilon or --practical-epsilon [--delta], --mu, --zcdp, --rdp FILE, --profile FILE, --eta, or "
    "--noise-multiplier --sample-rate --steps"
)
takes_guarantee = takes("guarantee", _guarantee)
"""Gives a command the options that name a guarantee; it gets that as ``guarantee``, None where none is named."""
