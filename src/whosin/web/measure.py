"""From the files of an audit to its numbers, its details and its report."""

from __future__ import annotations

import csv
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whosin.errors import AssumptionWarning, InputError, listed
from whosin.parallel.threads import Progress

if TYPE_CHECKING:
    from whosin.auditing import Audit
    from whosin.tables import Table

Measured = tuple[dict[str, Any], dict[str, Any], str]

LONGEST_HEAD = 100_000
SEPARATORS = ",;\t|"
"""What cells of text may be separated by, where nobody says."""
_OPTIONS = (
    "person", "tolerate", "prior", "confidence_level", "assignment", "promised_epsilon", "promised_delta", "seed",
    "member_value", "separator", "encoding", "decimal", "skip_lines",
)  # fmt: skip
READ = 0.001
"""Share of the progress when the files are read."""
_AUDIT_SHARE = 0.8
"""Share of the progress that the audit itself takes; the rest is for what is computed on demand, and the report."""

_ON_DEMAND = ("queries", "individual", "groups", "exposed_groups", "release_size", "revealing_columns")


def measure(folder: Path, request: Mapping[str, Any], progress: Progress) -> Measured:
    """Return the summary that stays in the history, the details, and the report.

    Raises an error of :mod:`whosin.errors` for whatever is wrong with the files or the options.
    """
    import whosin as wi
    from whosin.guarantees.dp import dp_of

    options, files = request["options"], request["files"]
    tables = _tables(folder, request)
    progress(READ)

    def work(share: float) -> None:
        progress(max(READ, _AUDIT_SHARE * share))

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", AssumptionWarning)
        found = _audited(tables, options, work)
        remarks = [str(warning.message) for warning in heard if issubclass(warning.category, AssumptionWarning)]
    epsilon = options["promised_epsilon"]
    promised = None if epsilon is None else dp_of(epsilon, options["promised_delta"])
    for number, part in enumerate(_ON_DEMAND, 1):
        getattr(found, part, None)
        progress(_AUDIT_SHARE + 0.15 * number / len(_ON_DEMAND))
    held = None if promised is None or found.problem is not None else found.compare(promised).to_dict()
    details = {**found.to_dict(), "remarks": remarks, "promise": promised and str(promised), "comparison": held}
    report = wi.report(
        found,
        title=request["name"] or None,
        guarantee=promised,
        command=_command(request),
        files=names_of(files),
        individuals=options["individuals"],
    )
    progress(1.0)
    return without_names(details), details, report


def look_at(folder: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the files hold and what would be compared, as ``whosin look --json`` prints it."""
    from whosin.tables import look

    options, tables = request["options"], _tables(folder, request)
    if "scores" in tables:
        found = look(tables["scores"], columns=tables["scores"].names).to_dict()
        return {**found, "tables": [{**table, "role": "scores"} for table in found["tables"]]}
    chosen: dict[str, Any] = {name: options[name] for name in ("person", "ignore", "keep")}
    return look(**{**chosen, **tables}, columns=options["columns"] or None).to_dict()


def names_of(files: Mapping[str, Any]) -> dict[str, str]:
    """Return what the files of an audit were called, by role."""
    names = {role: str(file["name"]) for role, file in files.items()}
    if "records" in names:
        whole = names.pop("records")
        names |= {"train": f"{whole} (members)", "holdout": f"{whole} (others)"}
    return names


def _tables(folder: Path, request: Mapping[str, Any]) -> dict[str, Table]:
    """Read the files by role; one with all records is divided by its member column."""
    from whosin.auditing.measuring.score_table import divided

    tables = {role: _read(folder, role, file["type"], request) for role, file in request["files"].items()}
    if "records" not in tables:
        return tables
    options, records = request["options"], tables.pop("records")
    return {**divided(records, options["member_column"], options["member_value"]), **tables}


def _read(folder: Path, role: str, ending: str, request: Mapping[str, Any]) -> Table:
    from whosin.tables import read_table
    from whosin.web.models import AuditOptions

    options = AuditOptions.model_validate(request["options"])

    path = folder / f"{role}.{ending}"
    if ending == "parquet":
        _check_size(role, *_stated_size(path), request)
    elif ending in ("csv", "tsv", "txt"):
        _check_head(role, path, options.separator, request)
    table = read_table(path, categories=options.categories, **options.written())
    _check_size(role, len(table), len(table.names), request)
    return table


def _stated_size(path: Path) -> tuple[int, int]:
    """Return rows and columns by the footer of a Parquet file: a few bytes can stand for very many equal rows."""
    import polars as pl

    try:
        rows = pl.scan_parquet(path).select(pl.len()).collect().item()
        return int(rows), len(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return 0, 0  # damaged: the reader says how


def _check_head(role: str, path: Path, separator: str | None, request: Mapping[str, Any]) -> None:
    """Refuse too many columns, and names that are none, by the first line alone: reading them all takes long."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        line = file.readline(LONGEST_HEAD + 1)
    if len(line) > LONGEST_HEAD:
        raise InputError(f"{role} must have a first line of at most {LONGEST_HEAD:,} letters, got a longer one")
    signs = SEPARATORS if separator is None or len(separator) != 1 else separator
    _check_size(role, 0, max(len(next(csv.reader([line], delimiter=sign), [])) for sign in signs), request)


def _check_size(role: str, rows: int, columns: int, request: Mapping[str, Any]) -> None:
    for what, count in (("rows", rows), ("columns", columns)):
        limit = request[what]
        if count > limit:
            raise InputError(f"{role} must have at most {limit:,} {what} on this server, got {count:,}")


def _audited(tables: Mapping[str, Table], options: Mapping[str, Any], progress: Progress) -> Audit:
    from whosin.auditing.measuring.score_table import audit_score_table
    from whosin.auditing.releases.synthetic import audit_synthetic

    given: dict[str, Any] = {
        name: options[name] for name in ("person", "tolerate", "prior", "confidence_level", "assignment")
    }
    given |= {name: options[name] or None for name in ("columns", "groups")}
    given |= {"rng": options["seed"], "progress": progress}
    if "scores" in tables:
        if options["ignore"] or options["keep"]:
            asked = "ignore" if options["ignore"] else "keep"
            raise InputError(f"{asked}= must be left out with scores: columns= names those to use")
        truth = {name: options[name] for name in ("member_column", "member_value")}
        return audit_score_table(tables["scores"], **truth, **given)
    given |= {"reference": None, **tables, "ignore": options["ignore"], "keep": options["keep"]}
    return audit_synthetic(**given, n_jobs=-1)


def without_names(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stays in the history: curves, counts and sentences, and no record, not even as a row number."""
    individual = {name: value for name, value in details["individual"].items() if name != "highest"}
    return {**details, "individual": individual}


def _command(request: Mapping[str, Any]) -> str:
    """Return the line that gives the same numbers from the command line, with the files' names as they were."""
    options = request["options"]
    words = ["whosin", "audit"]
    for role, file in request["files"].items():
        name = str(file["name"])
        words += [f"--{role}", f"./{name}" if name.startswith("-") else name]
    if {"scores", "records"} & set(request["files"]):
        words += ["--member-column", options["member_column"]]
    for name in ("columns", "ignore", "keep", "categories"):
        if options[name]:
            words += [f"--{name}", ",".join(listed([one]) for one in options[name])]
    for option, name in (("--group", "groups"), ("--missing", "missing")):
        for value in options[name]:
            words += [option, value]
    for name in _OPTIONS:
        if options[name] is not None:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    if options["header"] is not None:
        words.append("--header" if options["header"] else "--no-header")
    if options["individuals"]:
        words.append("--individuals")
    return shlex.join(words)
