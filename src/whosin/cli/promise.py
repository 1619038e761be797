"""A guarantee from the options of a command: the same options, and the same rules, wherever one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from whosin.cli.options import takes
from whosin.errors import InputError, InputTypeError, check_number

Number = float | None
File = Path | None
BATCH_SIZE = "DP-SGD: records of a batch, instead of --sample-rate and --steps."
DATASET_SIZE = "With --batch-size: records in all."
EPOCHS = "With --batch-size: passes over the records."
SAMPLING = "DP-SGD: how batches are drawn: poisson (default), fixed_size, random_allocation, partition or shuffled."


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
    batch_size: Annotated[int | None, typer.Option(help=BATCH_SIZE)] = None,
    dataset_size: Annotated[int | None, typer.Option(help=DATASET_SIZE)] = None,
    epochs: Annotated[Number, typer.Option(help=EPOCHS)] = None,
    sampling: Annotated[str | None, typer.Option(help=SAMPLING)] = None,
    eta: Annotated[Number, typer.Option(help="η of membership inference privacy.")] = None,
) -> Any:
    """Return the guarantee that the options name, None if they name none; several are an error."""
    import whosin as wi
    from whosin.guarantees.dp import dp_of

    run = (noise_multiplier, sample_rate, steps, batch_size, dataset_size, epochs)
    is_run = any(value is not None for value in run)
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
        return dp_of(epsilon, delta, compared)
    if practical_epsilon is not None:
        return wi.PMP(check_number("practical_epsilon", practical_epsilon, low=0.0), delta or 0.0)
    if mu is not None:
        return wi.GaussianDP(mu, compared)
    if zcdp is not None:
        return wi.ZeroConcentratedDP(zcdp, compared)
    if rdp is not None:
        return _from_file(wi.RenyiDP, "--rdp", rdp, ("order", "epsilon"), compared)
    if profile is not None:
        return _from_file(wi.PrivacyProfile, "--profile", profile, ("epsilon", "delta"), compared)
    if eta is not None:
        return wi.MIP(eta)
    if not is_run:
        if adjacency is not None:
            raise InputTypeError(f"--adjacency goes with a guarantee: {ONE}")
        return None
    rate_and_steps = run_of(*run[1:])
    if noise_multiplier is None or rate_and_steps is None:
        raise InputTypeError(f"a DP-SGD run needs --noise-multiplier and {RUN}")
    drawn: Any = sampling or "poisson"
    return wi.DPSGD(noise_multiplier, *rate_and_steps, drawn, compared)


def run_of(
    sample_rate: Number, steps: int | None, batch_size: int | None, dataset_size: int | None, epochs: Number
) -> tuple[float, int] | None:
    """Return the sample rate and the steps of a run, None where none is named; parts of one are an error."""
    from whosin.guarantees.sgd import rate_and_steps

    plain, batches = (sample_rate, steps), (batch_size, dataset_size, epochs)
    given = [value is not None for value in (*plain, *batches)]
    if not any(given):
        return None
    if sample_rate is not None and steps is not None and not any(given[2:]):
        return sample_rate, steps
    if batch_size is not None and dataset_size is not None and epochs is not None and not any(given[:2]):
        return rate_and_steps(batch_size, dataset_size, epochs)
    raise InputTypeError(f"a DP-SGD run needs {RUN}")


def _from_file(kind: Any, option: str, path: Path, columns: tuple[str, str], adjacency: Any) -> Any:
    from whosin.guarantees.accountants import pairs_of

    try:
        return kind(*pairs_of(path.read_text(encoding="utf-8-sig"), *columns), adjacency)
    except UnicodeDecodeError:
        raise InputError(f"{option} must be a CSV file in UTF-8, got {str(path)!r}") from None
    except InputError as error:
        raise InputError(f"{option} {path}: {error}") from None


RUN = "--sample-rate and --steps, or --batch-size, --dataset-size and --epochs"
ONE = (
    "--epsilon or --practical-epsilon [--delta], --mu, --zcdp, --rdp FILE, --profile FILE, --eta, or "
    "--noise-multiplier --sample-rate --steps"
)
takes_guarantee = takes("guarantee", _guarantee)
"""Gives a command the options that name a guarantee; it gets that as ``guarantee``, None where none is named."""
