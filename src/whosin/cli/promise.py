"""A guarantee from the options of a command: the same options, and the same rules, wherever one is named."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from whosin.guarantees import Guarantee

__all__ = [
    "Adjacency", "Epsilon", "Eta", "Maybe", "Mu", "NoiseMultiplier", "Profile", "Rdp", "SampleRate", "Sampling",
    "Steps", "Zcdp", "guarantee_of", "pairs_of",
]  # fmt: skip

Maybe = float | None
Epsilon = Annotated[Maybe, typer.Option(help="ε of differential privacy.")]
Adjacency = Annotated[
    str | None, typer.Option(help="What the accountant compared: add_remove (the default), replace or zero_out.")
]
Mu = Annotated[Maybe, typer.Option(help="μ of Gaussian differential privacy.")]
Zcdp = Annotated[Maybe, typer.Option(help="ρ of zero-concentrated differential privacy.")]
Rdp = Annotated[
    Path | None, typer.Option(help="Rényi differential privacy: a CSV file with one order and its ε per row.")
]
Profile = Annotated[
    Path | None, typer.Option(help="A CSV file with one ε and its δ per row, all of the same mechanism.")
]
NoiseMultiplier = Annotated[Maybe, typer.Option(help="DP-SGD: noise over clipping norm.")]
SampleRate = Annotated[Maybe, typer.Option(help="DP-SGD: share of the records in a batch.")]
Steps = Annotated[int | None, typer.Option(help="DP-SGD: number of steps.")]
Sampling = Annotated[
    str | None,
    typer.Option(
        help="DP-SGD: how batches are drawn: poisson (default), fixed_size, random_allocation, partition or shuffled."
    ),
]
Eta = Annotated[Maybe, typer.Option(help="η of membership inference privacy.")]

_ONE = (
    "--epsilon [--delta], --mu, --zcdp, --rdp FILE, --profile FILE, --eta, or --noise-multiplier --sample-rate --steps"
)


def guarantee_of(
    *,
    epsilon: Maybe,
    delta: Maybe,
    adjacency: str | None,
    mu: Maybe,
    run: tuple[Maybe, Maybe, int | None],
    eta: Maybe,
    zcdp: Maybe = None,
    rdp: Path | None = None,
    profile: Path | None = None,
    sampling: str | None = None,
) -> Guarantee | None:
    """Return the guarantee that the options name, None if they name none; several are an error.

    ``delta`` without ``epsilon`` is left to the caller, whose other options may take it.
    """
    import whosin as wi

    is_run = any(value is not None for value in run)
    if sum(value is not None for value in (epsilon, mu, eta, zcdp, rdp, profile)) + is_run > 1:
        raise InputTypeError(f"give one guarantee at most: {_ONE}")
    if adjacency is not None and eta is not None:
        raise InputTypeError("--adjacency goes with differential privacy, not with --eta")
    if sampling is not None and not is_run:
        raise InputTypeError("--sampling goes with --noise-multiplier --sample-rate --steps")
    compared: Any = adjacency or "add_remove"
    if epsilon is not None:
        return wi.ApproxDP(epsilon, delta, compared) if delta else wi.PureDP(epsilon, compared)
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
            raise InputTypeError(f"--adjacency goes with a guarantee: {_ONE}")
        return None
    noise, rate, steps = run
    if noise is None or rate is None or steps is None:
        raise InputTypeError("a DP-SGD run needs all of --noise-multiplier, --sample-rate and --steps")
    drawn: Any = sampling or "poisson"
    return wi.DPSGD(noise, rate, steps, drawn, compared)


def pairs_of(text: str) -> tuple[list[float], list[float]]:
    """Return two columns of numbers from CSV text; a first row without numbers is a header."""
    first, second = [], []
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        if not any(cell.strip() for cell in row):
            continue
        try:
            pair = float(row[0]), float(row[1])
        except (ValueError, IndexError):
            if number == 1:
                continue
            raise InputError(f"row {number} must hold two numbers, got {','.join(row)!r}") from None
        first.append(pair[0])
        second.append(pair[1])
    if not first:
        raise InputError("the file must hold two columns of numbers, got none")
    return first, second
