"""``whosin population``: what a large ε means on the records of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors
from whosin.errors import InputTypeError

if TYPE_CHECKING:
    from whosin.population import PopulationPrivacy

__all__ = ["app"]

app = typer.Typer(
    help="What a guarantee with a large ε means on these records, for somebody who knows only the pool.",
    no_args_is_help=True,
)

Records = Annotated[Path, typer.Argument(help="CSV, NumPy or Parquet file, one row per record.")]
Epsilon = Annotated[float | None, typer.Option(help="The labelled ε.")]
Target = Annotated[float | None, typer.Option(help="Instead of --epsilon: look for the largest ε with ε̃ below this.")]
Clip = Annotated[float, typer.Option(help="Largest norm of a record; longer ones are scaled down.")]
Columns = Annotated[str | None, typer.Option(help="Columns to take, separated by commas; all by default.")]
Query = Annotated[str, typer.Option(help="What is released: mean or sum.")]
Method = Annotated[str, typer.Option(help="How to compute it; auto takes the best that is quick.")]
Fraction = Annotated[float, typer.Option(help="Share of the records that is drawn into the data set.")]
Level = Annotated[float, typer.Option(help="Probability that a sampled limit holds.")]
Jobs = Annotated[int, typer.Option(help="Processor cores to use; -1 for all.")]
JournalFile = Annotated[
    Path | None,
    typer.Option("--journal", help="File that keeps the finished parts of a long run, so that it resumes."),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of sampled methods.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


@app.command()
@clean_errors
def gaussian(
    records: Records,
    clip: Clip,
    delta: Annotated[float, typer.Option(help="δ of the label and of the practical guarantee.")],
    epsilon: Epsilon = None,
    target: Target = None,
    columns: Columns = None,
    query: Query = "mean",
    method: Method = "auto",
    train_fraction: Fraction = 0.5,
    confidence_level: Level = 0.95,
    seed: Seed = None,
    jobs: Jobs = -1,
    journal: JournalFile = None,
    json: Json = False,
) -> None:
    """Gaussian noise on a mean or a sum."""
    options: dict[str, Any] = {"delta": delta, "clip": clip, "query": query, "method": method}
    options |= {"train_fraction": train_fraction, "n_jobs": jobs, "journal": journal}
    _run("gaussian", records, columns, epsilon, target, confidence_level, seed, json, options)


@app.command()
@clean_errors
def laplace(
    records: Records,
    clip: Clip,
    delta: Annotated[float, typer.Option(help="δ of the practical guarantee.")] = 0.0,
    epsilon: Epsilon = None,
    target: Target = None,
    columns: Columns = None,
    query: Query = "mean",
    method: Method = "auto",
    train_fraction: Fraction = 0.5,
    confidence_level: Level = 0.95,
    seed: Seed = None,
    jobs: Jobs = -1,
    journal: JournalFile = None,
    json: Json = False,
) -> None:
    """Laplace noise on the mean or the sum of one column."""
    options: dict[str, Any] = {"delta": delta, "clip": clip, "query": query, "method": method}
    options |= {"train_fraction": train_fraction, "n_jobs": jobs, "journal": journal}
    _run("laplace", records, columns, epsilon, target, confidence_level, seed, json, options)


@app.command()
@clean_errors
def exponential(
    records: Records,
    clip: Clip,
    candidates: Annotated[Path, typer.Option(help="File of the possible outputs, one row each, in the same columns.")],
    delta: Annotated[float, typer.Option(help="δ of the practical guarantee.")] = 0.0,
    loss: Annotated[str, typer.Option(help="distance or squared.")] = "distance",
    epsilon: Epsilon = None,
    target: Target = None,
    columns: Columns = None,
    method: Method = "auto",
    train_fraction: Fraction = 0.5,
    confidence_level: Level = 0.95,
    seed: Seed = None,
    jobs: Jobs = -1,
    journal: JournalFile = None,
    json: Json = False,
) -> None:
    """The exponential mechanism that chooses one of several candidates."""
    from whosin.tables import read_numeric

    options: dict[str, Any] = {"delta": delta, "clip": clip, "loss": loss, "method": method}
    options |= {"train_fraction": train_fraction, "n_jobs": jobs, "journal": journal}
    options["candidates"], _, _ = read_numeric(candidates, _split(columns), at_least=1)
    _run("exponential", records, columns, epsilon, target, confidence_level, seed, json, options)


def _run(
    mechanism: str,
    path: Path,
    columns: str | None,
    epsilon: float | None,
    target: float | None,
    confidence_level: float,
    seed: int | None,
    json: bool,
    options: dict[str, Any],
) -> None:
    from whosin import population
    from whosin.tables import read_numeric

    if (epsilon is None) == (target is None):
        raise InputTypeError("give either --epsilon or --target")
    records, names, _ = read_numeric(path, _split(columns))
    common = {"confidence_level": confidence_level, "rng": seed, **options}
    with render.progress(f"Analysing {len(records)} records") as progress:
        common["progress"] = progress
        if epsilon is None:
            result = population.largest_epsilon(records, mechanism=mechanism, target=target, **common)  # type: ignore[arg-type]
        else:
            result = getattr(population, mechanism)(records, epsilon=epsilon, **common)
    if json:
        render.emit_json({"columns": names, **result.to_dict()})
    else:
        _print(result)


def _split(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def _print(result: PopulationPrivacy) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(result.explain())
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("who attacks")
    table.add_column("ε at most", justify="right")
    table.add_column("accuracy at most", justify="right")
    for who, promise in (
        ("knows everybody else, any records (label)", result.dp),
        ("knows everybody else, any records (worst case)", result.dp_at_most),
        ("knows everybody else, these records", result.dp_on_records),
        (f"knows the pool only ({result.method})", result.pmp),
    ):
        table.add_row(who, render.number(promise.epsilon), render.number(promise.accuracy()))
    console.print(table)
    render.assumptions(console, result.assumes)
