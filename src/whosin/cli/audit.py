"""``whosin audit``: what attackers learn from a released table, or from the scores of any attack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors
from whosin.errors import InputTypeError

if TYPE_CHECKING:
    from whosin.auditing import Audit, GroupTable
    from whosin.auditing.synthetic import SyntheticAudit
    from whosin.guarantees import Guarantee

__all__ = ["audit"]

Strings = list[str] | None


@clean_errors
def audit(
    train: Annotated[Path | None, typer.Option(help="Rows that the generator was trained on.")] = None,
    holdout: Annotated[Path | None, typer.Option(help="Rows of the same population that it never saw.")] = None,
    synthetic: Annotated[Path | None, typer.Option(help="The rows to be released.")] = None,
    reference: Annotated[Path | None, typer.Option(help="Further rows of the population, never trained on.")] = None,
    scores: Annotated[Path | None, typer.Option(help="Instead: scores of any attack, one row a record.")] = None,
    member_column: Annotated[
        str, typer.Option(help="Column of the scores file that says who is a member (1 or 0).")
    ] = "member",
    query: Annotated[
        Strings, typer.Option(help="What the attacker asks; repeat for several. All that fit by default.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to use, separated by commas; all by default.")] = None,
    group: Annotated[Strings, typer.Option(help="Report the groups of this column; repeat for several.")] = None,
    prior: Annotated[float, typer.Option(help="Probability that a record is a member, before anything is seen.")] = 0.5,
    confidence_level: Annotated[float, typer.Option(help="Probability that the limits of an estimate hold.")] = 0.95,
    assignment: Annotated[
        str, typer.Option(help="How members were chosen: unknown, random or, for scores, 'independent trainings'.")
    ] = "unknown",
    target: Annotated[
        float | None, typer.Option(help="Largest tolerable advantage: says how many rows may be released.")
    ] = None,
    promised_epsilon: Annotated[
        float | None, typer.Option(help="ε that was promised for the release: held against the measurement.")
    ] = None,
    promised_delta: Annotated[float | None, typer.Option(help="δ that was promised; 0 by default.")] = None,
    fail_above: Annotated[
        float | None, typer.Option(help="Exit with code 1 if the lower limit of the advantage exceeds this.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="With --fail-above: judge by the upper limit.")] = False,
    top: Annotated[int, typer.Option(min=0, help="How many of the most exposed records to list.")] = 5,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the split into choosing and reporting.")] = None,
    block_rows: Annotated[
        int | None,
        typer.Option(min=1, help="Read a Parquet or Arrow release in blocks of so many rows; large ones always are."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processor cores to use; -1 for all.")] = -1,
    report: Annotated[Path | None, typer.Option(help="Write the report to this HTML file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="With --report: replace a file that is there.")] = False,
    individuals: Annotated[
        bool, typer.Option("--individuals/--no-individuals", help="With --report: list the most exposed members.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Measure what attackers can learn about who is in the data."""
    from whosin.errors import check_probability

    for name, limit in (("--target", target), ("--fail-above", fail_above)):
        if limit is not None:
            check_probability(name, limit)
    promised = _promised(promised_epsilon, promised_delta)
    render.check_report(report, force)
    tables = {"--train": train, "--holdout": holdout, "--synthetic": synthetic}
    if strict and fail_above is None:
        raise InputTypeError("--strict goes with --fail-above")
    if scores is not None:
        given = [name for name, path in {**tables, "--reference": reference}.items() if path is not None]
        options = (("--query", query), ("--target", target), ("--block-rows", block_rows))
        given += [name for name, value in options if value is not None]
        if given:
            raise InputTypeError(f"--scores goes without {given[0]}: the scores are there already")
        found: Audit = _of_scores(
            scores,
            member_column,
            {
                "columns": _split(columns),
                "groups": group,
                "prior": prior,
                "confidence_level": confidence_level,
                "assignment": assignment,
                "rng": seed,
            },
        )
    else:
        if train is None or holdout is None or synthetic is None:
            missing = next(name for name, path in tables.items() if path is None)
            raise InputTypeError(f"give --train, --holdout and --synthetic, or --scores; {missing} is missing")
        found = _of_tables(
            train,
            holdout,
            synthetic,
            reference,
            {
                "query": query or "auto",
                "columns": _split(columns),
                "groups": group,
                "prior": prior,
                "confidence_level": confidence_level,
                "assignment": assignment,
                "block_rows": block_rows,
                "n_jobs": jobs,
                "rng": seed,
            },
        )
    if json:
        comparison = {} if promised is None else {"comparison": found.compare(promised).to_dict()}
        render.emit_json({**found.to_dict(), **_release_answer(found, target), **comparison})
    else:
        show(found, top=top, target=target, promised=promised)
    if report is not None:
        render.write_report(found, report, force, guarantee=promised, individuals=individuals)
    judged = found.advantage.upper if strict else found.advantage.lower
    if fail_above is not None and judged > fail_above:
        side = "upper" if strict else "lower"
        shown = render.number(judged, upper=strict)
        typer.echo(f"The {side} limit of the advantage, {shown}, exceeds {fail_above:g}.", err=True)
        raise typer.Exit(1)


def _promised(epsilon: float | None, delta: float | None) -> Guarantee | None:
    from whosin.guarantees import ApproxDP, PureDP

    if epsilon is None:
        if delta is not None:
            raise InputTypeError("--promised-delta goes with --promised-epsilon")
        return None
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def _of_tables(
    train_path: Path, holdout_path: Path, released: Path, reference_path: Path | None, options: dict[str, Any]
) -> Audit:
    import warnings

    from whosin.auditing.synthetic import audit_synthetic
    from whosin.errors import AssumptionWarning
    from whosin.tables import read_table
    from whosin.tables.stream import BLOCK_ROWS, as_stream, is_blockwise

    train, holdout = read_table(train_path), read_table(holdout_path)
    reference = None if reference_path is None else read_table(reference_path)
    synthetic: Any
    if is_blockwise(released) or options["block_rows"] is not None:
        synthetic = as_stream(released, block_rows=options["block_rows"] or BLOCK_ROWS)
    else:
        synthetic = read_table(released)
    rows = len(train) + len(holdout)
    with (
        warnings.catch_warnings(record=True) as heard,
        render.progress(f"Comparing {rows} records with {len(synthetic)} released rows") as progress,
    ):
        warnings.simplefilter("always", AssumptionWarning)
        found = audit_synthetic(train, holdout, synthetic, reference=reference, progress=progress, **options)
    for warning in heard:
        typer.echo(f"Warning: {warning.message}", err=True)
    return found


def _of_scores(path: Path, member_column: str, options: dict[str, Any]) -> Audit:
    from whosin.auditing.scores import audit_score_table
    from whosin.tables import read_table

    table = read_table(path)
    with render.progress(f"Auditing {len(table)} scores") as progress:
        return audit_score_table(table, member_column, progress=progress, **options)


def _split(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def _release_answer(found: Audit, target: float | None) -> dict[str, Any]:
    if target is None:
        return {}
    curve = getattr(found, "release_size", None)
    return {"largest_release": {"target": target, "rows": None if curve is None else curve.largest(target)}}


def show(found: Audit, *, top: int = 5, target: float | None = None, promised: Guarantee | None = None) -> None:
    """Print an audit: a paragraph, the queries, the people, the groups, the release size, the assumptions."""
    from rich.console import Console

    from whosin.auditing.synthetic import SyntheticAudit

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(found.explain())
    _queries(console, found)
    _people(console, found, top)
    _groups(console, "group", found.groups)
    if isinstance(found, SyntheticAudit):
        _groups(console, "most exposed groups found", found.exposed_groups)
        _release(console, found, target)
        for name, why in found.failed:
            console.print(f"Not asked: {name}, because {why}.")
    if promised is not None:
        console.print()
        console.print(f"Promised: {promised}. {found.compare(promised)}")
    render.assumptions(console, found.assumes)


def _table(*headings: str) -> Any:
    from rich.table import Table as Shown

    shown = Shown(box=None, pad_edge=False)
    for i, heading in enumerate(headings):
        shown.add_column(heading, justify="left" if i == 0 else "right")
    return shown


def _queries(console: Any, found: Audit) -> None:
    shown = _table("advantage by query", "estimate", "at least", "at most")
    for name, value in sorted(found.queries.items(), key=lambda item: -item[1].lower):
        shown.add_row(
            name, f"{value.estimate:.4f}", render.number(value.lower, upper=False), render.number(value.upper)
        )
    console.print()
    console.print(shown)
    rates = _table("members found at false positive rate", "estimate", "at least", "at most")
    for fpr in (0.001, 0.01, 0.1):
        seen = found.tpr_at(fpr)
        rates.add_row(
            f"{fpr:g} (really {seen.fpr.estimate:.4g})" if seen.fpr is not None else f"{fpr:g}",
            f"{seen.estimate:.4f}",
            render.number(seen.lower, upper=False),
            render.number(seen.upper),
        )
    console.print()
    console.print(rates)


def _people(console: Any, found: Audit, top: int) -> None:
    rows = found.individual.highest(top, "member")
    if not rows:
        return
    shown = _table("most exposed members (row)", "chance of membership", "at least", "at most")
    for row in rows:
        shown.add_row(
            str(row["index"]),
            f"{row['risk']:.3f}",
            render.number(row["simultaneous_lower"], upper=False),
            render.number(row["simultaneous_upper"]),
        )
    console.print()
    console.print(shown)


def _groups(console: Any, heading: str, rows: GroupTable) -> None:
    """Print one table of groups; its limits hold together."""
    if not len(rows):
        return
    shown = _table(heading, "members", "advantage", "at least", "at most", "more than the rest by")
    for row in rows:
        shown.add_row(
            row.name,
            str(row.members),
            f"{row.advantage.estimate:.3f}",
            render.number(row.advantage.lower, upper=False),
            render.number(row.advantage.upper),
            f"{row.difference.estimate:+.3f}" + (" *" if row.stands_out else ""),
        )
    console.print()
    console.print(shown)
    if any(row.stands_out for row in rows):
        console.print("* beyond chance")


def _release(console: Any, found: SyntheticAudit, target: float | None) -> None:
    curve = found.release_size
    if curve is None:
        return
    shown = _table("rows released", "advantage", "at least", "at most")
    for size, value in zip(curve.sizes, curve.advantages, strict=True):
        shown.add_row(
            str(size), f"{value.estimate:.4f}", render.number(value.lower, upper=False), render.number(value.upper)
        )
    console.print()
    console.print(shown)
    if target is not None:
        rows = curve.largest(target)
        said = "no size that was looked at" if rows is None else f"up to {rows} rows"
        console.print(
            f"An advantage of at most {target:g} by {curve.query} is shown for {said} "
            f"({100 * curve.confidence_level:g}% confidence); nothing is shown about other queries."
        )
