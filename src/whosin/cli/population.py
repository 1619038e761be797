"""``whosin population``: what a large ε means on the records of a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors
from whosin.cli.files import remarks, split, takes_files
from whosin.cli.options import Edges, Force, Gaps, Jobs, Json, Labels, Records, Report, takes
from whosin.cli.statistics import edges_of, labels_of, numbers_of, with_outside
from whosin.errors import InputError, InputTypeError, check_choice
from whosin.numerics.rounding import at_most

if TYPE_CHECKING:
    from rich.console import Console

    from whosin.population import PopulationPrivacy

app = typer.Typer(
    help="What a guarantee with a large ε means on these records, for somebody who knows only the pool.",
    no_args_is_help=True,
)

Delta = Annotated[float, typer.Option(help="δ of the practical guarantee.")]
Clip = Annotated[float | None, typer.Option(help="Largest norm of a record; longer ones are scaled down.")]
Columns = Annotated[str | None, typer.Option(help="Columns to take, separated by commas; all by default.")]
Query = Annotated[str, typer.Option(help="What is released: mean or sum.")]
Chances = Annotated[
    str | None,
    typer.Option(help="Column with the chance of each record to be drawn, given how many are; all equal by default."),
]
QUERIES = ("mean", "sum", "count", "histogram", "regression")
MOST_PLACES = 100_000
"""Most outputs of a grid."""


@dataclass(frozen=True)
class _Shown:
    """What becomes of the answer."""

    json: bool
    report: Path | None
    force: bool


def _shown(json: bool, report: Path | None, force: bool) -> _Shown:
    render.check_report(report, force)
    return _Shown(json, report, force)


@dataclass(frozen=True)
class _How:
    """What was asked of any mechanism."""

    epsilon: float | None
    target: float | None
    ranges: list[str] | None
    gaps: str
    shown: _Shown
    person: str | None
    options: dict[str, Any]


def _how(
    epsilon: Annotated[float | None, typer.Option(help="The labelled ε.")] = None,
    target: Annotated[
        float | None, typer.Option(help="Instead of --epsilon: look for the largest ε with ε̃ below this.")
    ] = None,
    public_range: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Instead of --clip: least and largest value, known without the data, as 0,120; once, or for each "
            "column.",
        ),
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that says whose row it is: whole persons or households are drawn.")
    ] = None,
    gaps: Gaps = "refuse",
    method: Annotated[str, typer.Option(help="How to compute it; auto takes the best that is quick.")] = "auto",
    train_fraction: Annotated[float, typer.Option(help="Share of the records that is drawn into the data set.")] = 0.5,
    confidence_level: Annotated[float, typer.Option(help="Probability that a sampled limit holds.")] = 0.95,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of sampled methods.")] = None,
    jobs: Jobs = -1,
    journal: Annotated[
        Path | None, typer.Option(help="File that keeps the finished parts of a long run, so that it resumes.")
    ] = None,
    json: Json = False,
    report: Report = None,
    force: Force = False,
) -> _How:
    options = {
        "method": method, "train_fraction": train_fraction, "confidence_level": confidence_level, "rng": seed,
        "n_jobs": jobs, "journal": journal,
    }  # fmt: skip
    return _How(epsilon, target, public_range, gaps, _shown(json, report, force), person, options)


@app.command()
@clean_errors
@takes_files
@takes("how", _how)
def gaussian(
    records: Records,
    delta: Annotated[float, typer.Option(help="δ of the label and of the practical guarantee.")],
    clip: Annotated[
        list[float] | None,
        typer.Option(help="Largest norm of a record; longer ones are scaled down. Once, or for each --columns."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to take, separated by commas; all by default. Several times for several releases of one "
            "draw, each with noise of its own; --epsilon is that of all together.",
        ),
    ] = None,
    query: Annotated[
        str, typer.Option(help="What is released: mean, sum, count (cells that are not 0), histogram or regression.")
    ] = "mean",
    edges: Edges = None,
    labels: Labels = None,
    chances: Chances = None,
    how: Any = None,
    written: Any = None,
) -> None:
    """Gaussian noise on a mean, a sum, counts, a histogram or the moments of a regression, or on several means."""
    parts = [split(part) or [] for part in columns or ()]
    taken = list(dict.fromkeys(name for part in parts for name in part)) or None
    if len(parts) > 1 and query != "mean":
        raise InputError(f"--query must be mean with several --columns, got {query}: a sum is so many means")
    if query in ("median", "quantile", "quantiles"):
        raise InputError(
            f"--query must be one of {', '.join(QUERIES)}, got {query}: a quantile is no sum, and one record may move "
            "it far; whosin population exponential --loss quantile --quantile 0.5 --grid 0,120,121 chooses it from a "
            "grid"
        )
    check_choice("query", query, QUERIES)
    if (edges is not None or labels is not None) != (query == "histogram"):
        raise InputTypeError("--query histogram and --edges, such as 0,18,65,120, go together: the edges are public")
    source = _Source(
        records,
        taken,
        clip,
        how.ranges,
        written,
        parts if len(parts) > 1 else [],
        query,
        edges or [],
        labels_of(labels),
    )
    _run("gaussian", source, how, {"delta": delta, "query": query}, chances)


@app.command()
@clean_errors
@takes_files
@takes("how", _how)
def laplace(
    records: Records,
    delta: Delta = 0.0,
    clip: Clip = None,
    columns: Columns = None,
    query: Query = "mean",
    chances: Chances = None,
    how: Any = None,
    written: Any = None,
) -> None:
    """Laplace noise on the mean or the sum of one column."""
    source = _Source(records, split(columns), clip, how.ranges, written)
    _run("laplace", source, how, {"delta": delta, "query": query}, chances)


@app.command()
@clean_errors
@takes_files
@takes("how", _how)
def exponential(
    records: Records,
    candidates: Annotated[
        Path | None, typer.Option(help="File of the possible outputs, one row each, in the same columns.")
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            help="Instead, of one column: least and largest output, known without the data, and how many at even "
            "distances, as 0,120,121."
        ),
    ] = None,
    delta: Delta = 0.0,
    loss: Annotated[str, typer.Option(help="distance, squared or quantile.")] = "distance",
    quantile: Annotated[
        float | None, typer.Option(help="With --loss quantile: which, from 0 to 1; 0.5 is the median.")
    ] = None,
    clip: Clip = None,
    columns: Columns = None,
    how: Any = None,
    written: Any = None,
) -> None:
    """The exponential mechanism that chooses one of several candidates: a middle, a mean or a quantile."""
    from whosin.tables import read_numeric

    if (candidates is None) == (grid is None):
        raise InputTypeError("give either --candidates, or --grid with limits that are known without the data")
    if (loss == "quantile") != (quantile is not None):
        raise InputTypeError("--loss quantile and --quantile, such as 0.5, go together")
    if candidates is not None:
        outputs = read_numeric(candidates, split(columns), at_least=1, **written).records
    else:
        outputs = _grid(str(grid))
    source = _Source(records, split(columns), clip, how.ranges, written)
    about = {"quantile": quantile} if quantile is not None else {}
    _run("exponential", source, how, {"delta": delta, "loss": loss, "candidates": outputs, **about})


@app.command()
@clean_errors
@takes_files
def randomized_response(
    records: Records,
    column: Annotated[str, typer.Option(help="Column with each person's own value, of which one person is asked.")],
    epsilon: Annotated[float | None, typer.Option(help="ε of the local guarantee.")] = None,
    target: Annotated[
        float | None, typer.Option(help="Instead of --epsilon: look for the largest ε with ε̃ below this.")
    ] = None,
    delta: Delta = 0.0,
    categories: Annotated[
        str | None,
        typer.Option(help="Public list of possible answers, separated by commas; those that occur by default."),
    ] = None,
    json: Json = False,
    report: Report = None,
    force: Force = False,
    written: Any = None,
) -> None:
    """Randomised response: one person of the pool answers for itself (local differential privacy)."""
    from whosin.tables import read_table

    shown = _shown(json, report, force)
    table = read_table(records, columns=[column], categories=[column], **written)
    values = table.column(column).tolist()
    if None in values:
        raise InputError(f"{column} must have a value in every row, got {values.count(None)} missing cells")
    options = {"delta": delta, "categories": split(categories)}
    result = _solved("randomized_response", values, epsilon, target, options)
    said = [f"{records.name}: {note}" for note in table.notes]
    _show(result, shown, {"columns": [column], "notes": table.notes}, said, records, table.places)


@dataclass(frozen=True)
class _Source:
    """The records of a file, and how far they may reach."""

    path: Path
    columns: list[str] | None
    clip: float | list[float] | None
    ranges: list[str] | None
    written: dict[str, Any]
    parts: list[list[str]] = field(default_factory=list)
    """Columns of each of several releases of one draw; empty for one release."""
    query: str = "mean"
    edges: list[str] = field(default_factory=list)
    """Public edges of the cells of a histogram, for each column of numbers."""
    labels: dict[str, list[str]] = field(default_factory=dict)
    """Its public labels, for each column of texts."""

    def asked(self, names: list[str]) -> tuple[dict[str, Any], list[float]]:
        """Return what the library takes for the query, and the norms to which records are clipped, if they are."""
        from whosin.population import Histogram, RegressionMoments

        if self.query in ("count", "histogram") and (self.clip is not None or self.ranges is not None):
            raise InputTypeError(
                f"--query {self.query} goes without --clip and --range: a record adds at most 1 to a cell"
            )
        if self.query == "histogram":
            return {"query": Histogram(edges_of(self.edges, self.labels, names))}, []
        if self.query == "count":
            return {"query": _not_zero, "clip": math.nextafter(math.sqrt(len(names)), math.inf)}, []
        clips = self.reach(names)
        if self.query == "regression":
            return {"query": RegressionMoments(clips[0])}, clips
        if len(clips) == 1:
            return {"clip": clips[0]}, clips
        return {"clip": clips, "query": [partial(_columns, places) for places in self.blocks(names)]}, clips

    def reach(self, names: list[str]) -> list[float]:
        """Return the clipping norms: those given, or those of the corners farthest from 0 in the public ranges."""
        if (self.clip is None) == (self.ranges is None):
            raise InputTypeError(
                "give either --clip, or --range with limits that are known without the data: a norm that is chosen "
                "from the records tells about them, and is then no part of the guarantee"
            )
        blocks = self.blocks(names)
        if self.clip is not None:
            clips = self.clip if isinstance(self.clip, list) else [self.clip]
            if len(clips) not in (1, len(blocks)):
                raise InputError(f"--clip must be given once, or for each of {len(blocks)} --columns, got {len(clips)}")
            return clips * len(blocks) if len(clips) == 1 else clips
        ranges, width = [_limits(part) for part in self.ranges or ()], len(names)
        if len(ranges) not in (1, width):
            raise InputError(f"--range must be given once, or for each of {width} columns, got {len(ranges)}")
        corner = [max(abs(low), abs(high)) for low, high in (ranges * width if len(ranges) == 1 else ranges)]
        return [math.nextafter(math.hypot(*(corner[i] for i in block)), math.inf) for block in blocks]

    def blocks(self, names: list[str]) -> list[list[int]]:
        """Return the positions of the columns of each release."""
        return [[names.index(name) for name in part] for part in self.parts] or [list(range(len(names)))]


def _grid(text: str) -> Any:
    import numpy as np

    parts = numbers_of("--grid", text)
    whole = len(parts) == 3 and bool(np.isfinite(parts).all()) and parts[2] == np.floor(parts[2])
    if not whole or not parts[0] < parts[1] or not 2 <= parts[2] <= MOST_PLACES:
        raise InputError(
            f"--grid must be the least value, the largest, and a number of places from 2 to {MOST_PLACES}, such as "
            f"0,120,121, got {text!r}"
        )
    return np.linspace(parts[0], parts[1], int(parts[2]))[:, None]


def _limits(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--range must be two numbers such as 0,120, got {text!r}") from None
    if not low <= high:
        raise InputError(f"--range must be the least and the largest value, got {text!r}")
    return low, high


def _run(mechanism: str, source: _Source, how: _How, options: dict[str, Any], chances: str | None = None) -> None:
    from whosin.population.pool import totals
    from whosin.tables import read_numeric

    columns, about_rows = _about_rows(source, how, chances)
    found = read_numeric(source.path, columns, gaps=how.gaps, labels=source.labels, **source.written)
    records, names = found.records, found.names
    (query, clips), blocks = source.asked(names), source.blocks(names)
    if source.query == "histogram":
        found = with_outside(found, query["query"])
    common = {**how.options, **options, **query, **about_rows}
    with render.progress(f"Analysing {len(records)} records") as progress:
        common["progress"] = progress
        result = _solved(mechanism, records, how.epsilon, how.target, common)
    persons = records if how.person is None else totals(records, about_rows["person"])
    cut = [_clipped(persons[:, places], clip) for places, clip in zip(blocks, clips, strict=False)]
    told: dict[str, list[Any]] = {
        "clip": clips,
        "clipped": [n for n, _ in cut],
        "clipped_share_of_sum": [moved for _, moved in cut],
    }
    about = {name: values if len(blocks) > 1 else values[0] for name, values in told.items() if values}
    said = remarks(found, source.path.name)
    for (clipped, moved), clip, places in zip(cut, clips, blocks, strict=False):
        if clipped and mechanism != "exponential":
            share = "" if moved is None else f", which moves the sum by {100 * moved:.3g}% of its length"
            where = f" in {', '.join(names[i] for i in places)}" if len(blocks) > 1 else ""
            said.append(
                f"{clipped} of {len(persons)} records are longer than {clip:g}{where} and were scaled down{share}."
            )
    facts = {"columns": names, "dropped": found.dropped, "notes": found.notes, **about}
    _show(result, how.shown, facts, said, source.path, found.places if how.person is None else None)


def _solved(
    mechanism: str, records: Any, epsilon: float | None, target: float | None, options: dict[str, Any]
) -> PopulationPrivacy:
    from whosin import population

    if (epsilon is None) == (target is None):
        raise InputTypeError("give either --epsilon or --target")
    if target is not None:
        return population.largest_epsilon(records, mechanism=mechanism, target=target, **options)
    found: PopulationPrivacy = getattr(population, mechanism)(records, epsilon=epsilon, **options)
    return found


def _about_rows(source: _Source, how: _How, chances: str | None) -> tuple[list[str] | None, dict[str, Any]]:
    """The columns that are records, and what other columns say of the rows: whose they are, and how likely."""
    import numpy as np

    from whosin.tables import read_table

    named = {"person": how.person, "chances": chances}
    asked = {option: name for option, name in named.items() if name is not None}
    if not asked:
        return source.columns, {}
    if how.gaps == "drop":
        raise InputTypeError(f"--gaps drop goes without --{next(iter(asked))}: fill the gaps, or leave those rows out")
    table = read_table(source.path, **source.written)
    for option, name in asked.items():
        if name not in table.names:
            raise InputError(f"--{option} must be a column of {source.path.name}, got {name!r}")
    found = {option: np.asarray(table.column(name)) for option, name in asked.items()}
    if len(found) == 2:  # one chance for each person, in the order of their first rows
        _, first, whose = np.unique(found["person"], return_index=True, return_inverse=True)
        if (found["chances"] != found["chances"][first][whose]).any():
            raise InputError(f"--chances must be the same in all rows of a person, got others in {chances!r}")
        found["chances"] = found["chances"][np.sort(first)]
    rest = [name for name in table.names if name not in asked.values()]
    return rest if source.columns is None else source.columns, found


def _not_zero(records: Any) -> Any:
    return (records != 0).astype(float)


def _columns(places: list[int], records: Any) -> Any:
    return records[:, places]


def _clipped(records: Any, clip: float) -> tuple[int, float | None]:
    """Return how many records are longer than the clipping norm, and by what share of its length that moves the sum."""
    import numpy as np

    norms = np.linalg.norm(records, axis=1)
    scale = clip / np.maximum(norms, clip)
    whole = float(np.linalg.norm(records.sum(axis=0)))
    lost = float(np.linalg.norm((records * (1.0 - scale)[:, None]).sum(axis=0)))
    return int(np.sum(norms > clip)), lost / whole if whole > 0 else None


def _show(
    result: PopulationPrivacy, shown: _Shown, facts: dict[str, Any], said: list[str], path: Path, places: Any
) -> None:
    """Print the answer and write the report; ``places`` says where the rows stand in the file, None for persons."""
    from whosin.tables.table import place_of

    if shown.json:
        render.emit_json({**facts, **result.to_dict()})
    else:
        console = render.console()
        for line in said:
            console.print(line)
        _print(console, result)
        place = "" if places is None else place_of(places, result.most_exposed)
        if place not in ("", f"row {result.most_exposed}"):
            console.print(f"\nRow {result.most_exposed}, counted from 0, is {place} of {path.name}.")
    if shown.report is not None:
        render.write_report(result, shown.report, shown.force)


def _print(console: Console, result: PopulationPrivacy) -> None:
    console.print(result.explain())
    console.print()
    table = render.table("who attacks", "ε at most", "accuracy at most")
    for who, promise in (
        ("knows everybody else, any records (label)", result.dp),
        ("knows everybody else, any records (worst case)", result.dp_at_most),
        ("knows everybody else, these records", result.dp_on_records),
        (f"knows the pool only ({result.method})", result.pmp),
    ):
        table.add_row(who, at_most(promise.epsilon), render.number(promise.accuracy()))
    console.print(table)
    render.assumptions(console, result.assumes)
