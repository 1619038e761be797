"""``whosin audit``: what attackers learn from a released table, or from the scores of any attack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.cli import render
from whosin.cli.errors import INPUT, clean_errors
from whosin.cli.files import split, takes_files
from whosin.cli.options import Categories, Force, Ignore, Jobs, Json, Keep, Report
from whosin.cli.show_audit import show
from whosin.errors import InputTypeError

if TYPE_CHECKING:
    from whosin.auditing import Audit
    from whosin.auditing.measuring.verdict import Verdict
    from whosin.guarantees import Guarantee

FAILED = 1
"""Exit code of a gate that was not passed."""

Strings = list[str] | None


@clean_errors
@takes_files
def audit(
    train: Annotated[Path | None, typer.Option(help="Rows that the generator was trained on.")] = None,
    holdout: Annotated[Path | None, typer.Option(help="Rows of the same population that it never saw.")] = None,
    synthetic: Annotated[Path | None, typer.Option(help="The rows to be released.")] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Further rows of the population, never trained on; 'none' uses no spare held-out rows either."
        ),
    ] = None,
    scores: Annotated[Path | None, typer.Option(help="Instead: scores of any attack, one row per record.")] = None,
    generator: Annotated[
        str | None, typer.Option(help="Instead: module:name of a generator, trained again and again on --records.")
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(help="With --generator: all records. Else: training and held-out rows, told by --member-column."),
    ] = None,
    trainings: Annotated[int, typer.Option(min=10, help="With --generator: how often to train.")] = 32,
    release_rows: Annotated[
        int | None, typer.Option(min=1, help="With --generator: rows to be released from all records.")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(help="Keep what is done in this file, and go on from it; --generator needs --seed.")
    ] = None,
    member_column: Annotated[
        str, typer.Option(help="Column of --scores or --records that says who is a member (1 or 0).")
    ] = "member",
    member_value: Annotated[
        str | None, typer.Option(help="What that column says of members, such as train; all others are outsiders.")
    ] = None,
    query: Annotated[
        Strings, typer.Option(help="What the attacker asks; repeat for several. All that fit by default.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to use, separated by commas; all by default.")] = None,
    ignore: Ignore = None,
    keep: Keep = None,
    categories: Categories = None,
    embed: Annotated[
        str | None,
        typer.Option(
            help="For texts and images: module:name of a function from a list of texts or paths to rows of numbers. "
            "--train and the others are then folders, or tables with one column of texts, named by --columns."
        ),
    ] = None,
    group: Annotated[Strings, typer.Option(help="Report the groups of this column; repeat for several.")] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that says whose row it is: several rows of one person count once.")
    ] = None,
    prior: Annotated[float, typer.Option(help="Probability that a record is a member, before anything is seen.")] = 0.5,
    confidence_level: Annotated[float, typer.Option(help="Probability that the limits of an estimate hold.")] = 0.95,
    assignment: Annotated[
        str,
        typer.Option(help="How members were chosen: unknown, random, coins, or 'independent trainings' (scores)."),
    ] = "unknown",
    target: Annotated[
        float | None, typer.Option(help="Largest tolerable advantage: says how many rows may be released.")
    ] = None,
    promised_epsilon: Annotated[
        float | None, typer.Option(help="ε that was promised for the release: held against the measurement.")
    ] = None,
    promised_delta: Annotated[float | None, typer.Option(help="δ that was promised; 0 by default.")] = None,
    tolerate: Annotated[
        float | None,
        typer.Option("--tolerate", "--fail-above", help="Largest tolerable advantage: exit code 1 if more is shown."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="With --tolerate: exit code 1 if undecided too.")] = False,
    top: Annotated[int, typer.Option(min=0, help="How many of the most exposed records to list.")] = 5,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the splits; taken from the data by default.")] = None,
    block_rows: Annotated[
        int | None,
        typer.Option(
            min=1, help="Read a release of text, Parquet or Arrow in blocks of so many rows; large ones always are."
        ),
    ] = None,
    jobs: Jobs = -1,
    report: Report = None,
    force: Force = False,
    individuals: Annotated[
        bool,
        typer.Option("--individuals/--no-individuals", help="With --report: list the most exposed; not by default."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print all numbers, the assumptions and the method as well.")
    ] = False,
    json: Json = False,
    written: Any = None,
) -> None:
    """Measure what attackers can learn about who is in the data.

    Exit code 1: more than --tolerate is shown. 2: the input is wrong, or allows no verdict.
    """
    from whosin.cli.retrained import audit_generator_again, imported, show_retrained
    from whosin.errors import check_probability

    for name, limit in (("--target", target), ("--tolerate", tolerate)):
        if limit is not None:
            check_probability(name, limit)
    promised = _promised(promised_epsilon, promised_delta)
    render.check_report(report, force)
    tables: dict[str, Any] = {"--train": train, "--holdout": holdout, "--synthetic": synthetic}
    if strict and tolerate is None:
        raise InputTypeError("--strict goes with --tolerate")
    options: dict[str, Any] = {
        "groups": group,
        "person": person,
        "confidence_level": confidence_level,
        "tolerate": tolerate,
        "rng": seed,
    }
    once = {"columns": split(columns), "prior": prior, "assignment": assignment}
    chosen: dict[str, Any] = {"ignore": split(ignore) or (), "keep": split(keep) or ()}
    written["categories"] = split(categories) or ()
    useless = {**tables, "--reference": reference, "--query": query, "--target": target, "--block-rows": block_rows}
    useless |= {"--ignore": ignore, "--keep": keep, "--embed": embed}
    found: Any
    if generator is not None:
        if records is None:
            raise InputTypeError("--generator goes with --records")
        useless |= {"--scores": scores, "--member-value": member_value, "--columns": columns}
        _refuse(useless, "--generator", "it learns all columns of --records, and chance says which rows are held out")
        options |= {"trainings": trainings, "release_rows": release_rows, "journal": journal, "n_jobs": jobs}
        found, target = audit_generator_again(generator, records, written, **options), None
    elif scores is not None:
        useless |= {"--records": records, "--journal": journal}
        _refuse(useless, "--scores", "the scores are there already, and --columns names those to use")
        found = _of_scores(scores, member_column, {**options, **once, "member_value": member_value}, written)
    else:
        if records is not None:
            if synthetic is None:
                raise InputTypeError(
                    "--generator and --records go together, or --records, --member-column and --synthetic"
                )
            if train is not None or holdout is not None:
                raise InputTypeError("--records goes without --train and --holdout: it has both")
            tables |= _divided(records, member_column, member_value, written)
            train, holdout = tables["--train"], tables["--holdout"]
        if train is not None and holdout is None and synthetic is not None:
            if report is not None:
                raise InputTypeError("--report goes with --holdout: without held-out rows there is no audit to report")
            chosen |= {"columns": once["columns"], "person": person, "n_jobs": jobs}
            _without_holdout(train, synthetic, chosen, json, written)
            return
        if train is None or holdout is None or synthetic is None:
            missing = next(name for name, path in tables.items() if path is None)
            raise InputTypeError(f"give --train, --holdout and --synthetic, or --scores; {missing} is missing")
        chosen |= {"query": query or "auto", "block_rows": block_rows, "journal": journal, "n_jobs": jobs}
        if embed is not None:
            chosen["embed"] = imported("--embed", embed, "my_models:vectors")
        found = _of_tables(train, holdout, synthetic, reference, {**options, **once, **chosen}, written)
    if json:
        render.emit_json({**found.to_dict(), **_release_answer(found, target), **_compared(found, promised)})
    elif generator is not None:
        show_retrained(found, top=top, promised=promised)
    else:
        show(found, top=top, target=target, promised=promised, verbose=verbose)
    if report is not None:
        paths: dict[str, Any] = {"train": train, "holdout": holdout, "synthetic": synthetic, "scores": scores}
        files = {role: getattr(path, "name", None) or path.origin for role, path in paths.items() if path is not None}
        render.write_report(found, report, force, guarantee=promised, individuals=individuals, files=files)
    _end(found.verdict, strict, printed=not json)


def _refuse(useless: dict[str, Any], asked: str, why: str) -> None:
    """Refuse the first option that was given without need."""
    for name, value in useless.items():
        if value is not None:
            raise InputTypeError(f"{asked} goes without {name}: {why}")


def _end(verdict: Verdict, strict: bool, printed: bool = False) -> None:
    """End with the exit code of a verdict, and the reason on standard error unless the code is 0.

    A reason that was printed for people is not said twice on their terminal.
    """
    import sys

    codes = {"exceeds": FAILED, "undecided": FAILED if strict else 0, "no verdict": INPUT}
    code = codes.get(verdict.state, 0)
    if code:
        if not (printed and sys.stdout.isatty()):
            render.say("note", verdict.sentence)
        raise typer.Exit(code)


def _without_holdout(train: Any, synthetic: Path, options: dict[str, Any], json: bool, written: dict[str, Any]) -> None:
    """Print what copies alone show, and that it is no verdict."""
    from whosin.auditing.measuring.verdict import Verdict
    from whosin.auditing.releases.copies import NO_HOLDOUT, count_copies
    from whosin.tables import read_table

    train, synthetic_table = _read(train, written), read_table(synthetic, **written)
    with render.progress("Comparing every training row with every released row") as progress:
        found = count_copies(train, synthetic_table, progress=progress, **options)
    title, _, ways_out = NO_HOLDOUT.partition(". ")
    verdict = Verdict("no verdict", title, ways_out)
    if json:
        render.emit_json({"verdict": verdict.to_dict(), "copies": found.to_dict()})
    else:
        typer.echo(found.sentence)
    _end(verdict, strict=False)


def _promised(epsilon: float | None, delta: float | None) -> Guarantee | None:
    from whosin.guarantees.dp import dp_of

    if epsilon is None:
        if delta is not None:
            raise InputTypeError("--promised-delta goes with --promised-epsilon")
        return None
    return dp_of(epsilon, delta)


def _read(given: Any, written: dict[str, Any]) -> Any:
    """Read a file; a table passes."""
    from whosin.tables import read_table

    return read_table(given, **written) if isinstance(given, Path) else given


def _divided(path: Path, column: str, value: str | None, written: dict[str, Any]) -> dict[str, Any]:
    """Divide a file into training rows and held-out rows by a column, which is then left out."""
    from whosin.auditing.measuring.score_table import divided
    from whosin.tables import read_table

    return {f"--{role}": side for role, side in divided(read_table(path, **written), column, value).items()}


def _of_tables(
    train: Any, holdout: Any, released: Path, reference: Any, options: dict[str, Any], written: dict[str, Any]
) -> Audit:
    from whosin.auditing.releases.matching.match import expected_seconds
    from whosin.auditing.releases.synthetic import audit_synthetic
    from whosin.parallel.tasks import on_cluster
    from whosin.parallel.threads import number_of_threads
    from whosin.tables.stream import BLOCK_ROWS, as_stream, is_blockwise

    if "embed" in options:
        return _of_items([train, holdout, released], reference, options, written)
    train, holdout = (_read(part, written) for part in (train, holdout))
    reference = "auto" if reference is None else None if str(reference) == "none" else _read(reference, written)
    synthetic: Any
    if is_blockwise(released) or options["block_rows"] is not None or options["journal"] is not None:
        synthetic = as_stream(released, block_rows=options["block_rows"] or BLOCK_ROWS, **written)
    else:
        synthetic = _read(released, written)
    rows = len(train) + len(holdout)
    threads = number_of_threads(options["n_jobs"])
    expected = None if on_cluster() else expected_seconds(rows, len(synthetic), len(train.names), threads)
    with render.progress(f"Comparing {rows} records with {len(synthetic)} released rows", expected) as progress:
        return _heard(
            lambda: audit_synthetic(train, holdout, synthetic, reference=reference, progress=progress, **options)
        )


def _of_items(parts: list[Any], reference: Any, options: dict[str, Any], written: dict[str, Any]) -> Audit:
    """Audit folders of files, or columns of texts, by an embedding."""
    from whosin.auditing.releases.synthetic import audit_synthetic

    reference = "auto" if reference is None else None if str(reference) == "none" else reference
    every = [part if isinstance(part, Path) and part.is_dir() else _read(part, written) for part in parts]
    if isinstance(reference, Path) and not reference.is_dir():
        reference = _read(reference, written)
    with render.progress("Embedding and comparing") as progress:
        return _heard(lambda: audit_synthetic(*every, reference=reference, progress=progress, **options))


def _of_scores(path: Path, member_column: str, options: dict[str, Any], written: dict[str, Any]) -> Audit:
    from whosin.auditing.measuring.score_table import audit_score_table
    from whosin.auditing.models.sequences import token_table
    from whosin.tables import read_table

    tokens = token_table(path)
    table, names = (read_table(path, **written), None) if tokens is None else tokens
    options = {**options, "columns": options["columns"] or names}
    with render.progress(f"Auditing {len(table)} scores") as progress:
        return _heard(lambda: audit_score_table(table, member_column, progress=progress, **options))


def _heard(work: Callable[[], Audit]) -> Audit:
    """Run an audit and print its warnings on standard error, but for the reason why there is no verdict."""
    import warnings

    from whosin.errors import AssumptionWarning

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", AssumptionWarning)
        found = work()
    for warning in heard:
        if str(warning.message) != found.problem:
            render.say("warning", f"Warning: {warning.message}")
    return found


def _release_answer(found: Any, target: float | None) -> dict[str, Any]:
    """How many rows may be released; None where that is not known, or where the set-up allows no verdict."""
    if target is None:
        return {}
    curve = getattr(found, "release_size", None)
    rows = None if curve is None or found.problem is not None else curve.largest(target)
    return {"largest_release": {"target": target, "rows": rows}}


def _compared(found: Any, promised: Guarantee | None) -> dict[str, Any]:
    """The measurement against a promise; None where the set-up allows no verdict."""
    if promised is None:
        return {}
    judged = getattr(found, "problem", None) is None
    return {"comparison": found.compare(promised).to_dict() if judged else None}
