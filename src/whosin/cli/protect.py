"""``whosin protect``: release a statistic of the records of a file with a membership guarantee."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors
from whosin.cli.files import remarks, takes_files
from whosin.cli.files import split as listed
from whosin.cli.options import Edges, Gaps, Json, Labels, Records
from whosin.cli.statistics import edges_of, labels_of, statistics_of, with_outside
from whosin.errors import InputError
from whosin.parallel.storage import whole_file

if TYPE_CHECKING:
    from whosin.protection import Certificate, Release

ENDINGS = (".json", ".csv", ".npy")
SUMS = ("mean", "sum", "count", "histogram")
"""Statistics that are sums over records."""


@clean_errors
@takes_files
def protect(
    records: Records,
    statistic: Annotated[
        list[str],
        typer.Option(
            help="What to release: mean, sum, median, cov, count, histogram, quantiles or regression; several times "
            "for several of the same draw, under one η."
        ),
    ],
    eta: Annotated[float, typer.Option(help="How much better than a blind guess an attacker may be, below 0.5.")],
    out: Annotated[Path, typer.Option(help="Where to write: .json (value and certificate), .csv or .npy (value).")],
    noise: Annotated[str, typer.Option(help="gaussian or norm_exponential.")] = "gaussian",
    split: Annotated[
        str, typer.Option(help="Gaussian noise among columns: relative (each in its units) or total (least variance).")
    ] = "relative",
    columns: Annotated[str | None, typer.Option(help="Columns to take, separated by commas; all by default.")] = None,
    edges: Edges = None,
    labels: Labels = None,
    quantiles: Annotated[
        str | None, typer.Option(help="With quantiles: which, separated by commas, such as 0.25,0.5,0.75.")
    ] = None,
    gaps: Gaps = "refuse",
    train_fraction: Annotated[float, typer.Option(help="Share of the records that is drawn.")] = 0.5,
    ball: Annotated[
        str | None,
        typer.Option(help="Pull the estimate into a ball before the noise: pilot, or a radius around a pilot."),
    ] = None,
    subsets: Annotated[int, typer.Option(help="Random subsets that certify the median and cov.")] = 256,
    confidence_level: Annotated[float, typer.Option(help="Probability that a sampled certificate holds.")] = 0.95,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of those subsets; the draw and the noise have none.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes for the subsets; -1 takes all cores.")] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps what each subset gave, so that a run resumes; as confidential as the records."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: Json = False,
    written: Any = None,
) -> None:
    """Release a statistic of a random half of the records, with noise that hides who was drawn."""
    from whosin.population import Histogram
    from whosin.protection import protect as release
    from whosin.tables import read_numeric

    _check_out(out, force)
    if len(statistic) > 1 and out.suffix.lower() != ".json":
        raise InputError(f"--out must end in .json for several statistics, got {out.name!r}")
    public = labels_of(labels)
    found = read_numeric(records, listed(columns), gaps=gaps, labels=public, **written)
    matrix, names = found.records, found.names
    estimator = statistics_of(statistic, edges, quantiles, names, public)
    if "histogram" in statistic:
        found = with_outside(found, Histogram(edges_of(edges or (), public, names)))
    if ball is not None and set(statistic) <= set(SUMS):
        raise InputError(f"--ball goes with medians and the like, got {statistic[0]}: its noise is computed exactly")
    parts = ["intercept", *names[:-1]] if statistic == ["regression"] else names
    with _place(out, force) as part:
        with render.progress(f"Protecting the {' and '.join(statistic)} of {len(matrix)} records") as progress:
            result = release(
                estimator,
                matrix,
                eta=eta,
                noise=noise,
                split=split,
                train_fraction=train_fraction,
                ball=_radius(ball),
                subsets=subsets,
                confidence_level=confidence_level,
                n_jobs=jobs,
                rng=seed,
                progress=progress,
                journal=journal,
            )
        _fill(result, parts, part, out.suffix.lower())
    if json:
        render.emit_json(
            {"columns": parts, "dropped": found.dropped, "notes": found.notes, "out": str(out), **result.to_dict()}
        )
    else:
        for line in remarks(found, records.name):
            typer.echo(line)
        _print(result.certificate, out)


def _radius(ball: str | None) -> Any:
    try:
        return ball if ball is None or ball == "pilot" else float(ball)
    except ValueError:
        raise InputError(f"--ball must be pilot or a number, got {ball!r}") from None


def _check_out(out: Path, force: bool) -> None:
    """Refuse what cannot be written before anything is released."""
    if out.suffix.lower() not in ENDINGS:
        raise InputError(f"--out must be a file with one of the endings {', '.join(ENDINGS)}, got {out.name!r}")
    render.check_new_file("--out", out, force)


@contextmanager
def _place(out: Path, force: bool) -> Iterator[Path]:
    """Give a file that takes its place in the end, for its owner alone, so that the release is there whole or not.

    The file is made before anything is released, so that a folder that takes none costs no release.
    """
    try:
        with whole_file(out, mode=0o600) as part:
            yield part
            _check_out(out, force)
    except OSError as error:
        raise InputError(f"--out cannot be written: {error}") from None


def _fill(result: Release, names: list[str], part: Path, ending: str) -> None:
    import numpy as np

    if ending == ".json":
        text = json_text.dumps({"columns": names, **result.to_dict()}, ensure_ascii=False, allow_nan=False, indent=2)
        part.write_text(text + "\n", encoding="utf-8")
        return
    value = np.atleast_1d(np.asarray(result.value, dtype=np.float64))
    if ending == ".npy":
        with part.open("wb") as file:
            np.save(file, value)
        return
    table = value.reshape(-1, value.shape[-1])
    heads = names if len(names) == table.shape[1] else [f"cell {i}" for i in range(table.shape[1])]
    rows = [",".join(_quoted(name) for name in heads)]
    rows += [",".join(repr(number) for number in row) for row in table.tolist()]
    part.write_text("\n".join(rows) + "\n", encoding="utf-8")


def _quoted(name: str) -> str:
    """A heading of CSV; spreadsheets take what begins with one of these signs for a formula, so an apostrophe leads."""
    if name.startswith(("=", "+", "-", "@", "\t", "\r")):
        name = f"'{name}"
    return '"' + name.replace('"', '""') + '"' if any(mark in name for mark in ',"\n') else name


def _print(certificate: Certificate, out: Path) -> None:
    console = render.console()
    console.print(f"{certificate.explain()}\n\nWritten to {out}.")
    render.assumptions(console, certificate.assumes)
    render.listed(console, "Not protected:", certificate.not_protected)
