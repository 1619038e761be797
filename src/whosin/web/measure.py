"""From the files of an audit to its numbers, its details and its report."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import AssumptionWarning, InputError

if TYPE_CHECKING:
    from whosin.auditing import Audit
    from whosin.guarantees import Guarantee
    from whosin.tables import Table

__all__ = ["measure"]

Progress = Callable[[float], None]
Measured = tuple[dict[str, Any], dict[str, Any], str]

CURVE_POINTS = 201
RATES = (0.001, 0.01, 0.1)
_REPORT_SHARE = 0.1
"""Share of the progress that is left for the report."""


def measure(folder: Path, request: Mapping[str, Any], progress: Progress) -> Measured:
    """Return the summary that stays in the history, the details, and the report.

    Raises an error of :mod:`whosin.errors` for whatever is wrong with the files or the options.
    """
    import whosin as wi

    options, files = request["options"], request["files"]
    tables = {role: _read(folder, role, file["type"], request) for role, file in files.items()}

    def work(share: float) -> None:
        progress((1.0 - _REPORT_SHARE) * share)

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", AssumptionWarning)
        if request["kind"] == "scores":
            found = _of_scores(tables["scores"], options, work)
        else:
            found = _of_tables(tables, options, work)
        remarks = [str(warning.message) for warning in heard if issubclass(warning.category, AssumptionWarning)]
    promised = _promised(options)
    summary = _summary(found, promised, remarks)
    report = wi.report(found, title=request["name"] or None, guarantee=promised, command=_command(request))
    progress(1.0)
    return summary, found.to_dict(), report


def _read(folder: Path, role: str, ending: str, request: Mapping[str, Any]) -> Table:
    from whosin.tables import read_table

    table = read_table(folder / f"{role}.{ending}")
    for what, count, limit in (
        ("rows", len(table), request["rows"]),
        ("columns", len(table.names), request["columns"]),
    ):
        if count > limit:
            raise InputError(f"{role} takes at most {limit:,} {what} on this server, got {count:,}")
    return table


def _of_tables(tables: Mapping[str, Table], options: Mapping[str, Any], progress: Progress) -> Audit:
    from whosin.auditing.synthetic import audit_synthetic

    return audit_synthetic(
        tables["train"],
        tables["holdout"],
        tables["synthetic"],
        columns=options["columns"] or None,
        groups=options["groups"] or None,
        prior=options["prior"],
        confidence_level=options["confidence_level"],
        assignment=options["assignment"],
        n_jobs=-1,
        rng=options["seed"],
        progress=progress,
    )


def _of_scores(table: Table, options: Mapping[str, Any], progress: Progress) -> Audit:
    from whosin.auditing import audit

    truth = options["member_column"]
    inside = _truth(table, truth)
    groups = {name: (table.column(name)[inside], table.column(name)[~inside]) for name in options["groups"]}
    names = list(options["columns"]) or [name for name in table.names if name != truth and name not in groups]
    if truth in names:
        raise InputError(f"columns takes scores, got {truth!r}, which says who is a member")
    texts = [name for name in names if table.kind(name) == "category"]
    if not names or (texts and len(names) > 1):
        raise InputError(f"scores takes columns of numbers, got {', '.join(texts) or 'none'}; name the columns to use")
    for name in names:
        gaps = np.flatnonzero([value is None or value != value for value in table.column(name)])
        if gaps.size:
            raise InputError(f"scores takes a value in every row of column {name!r}, got none in row {gaps[0] + 1}")
    answers = np.column_stack([table.column(name) for name in names])
    return audit(
        answers[inside],
        answers[~inside],
        prior=options["prior"],
        confidence_level=options["confidence_level"],
        groups=groups or None,
        names=names,
        assignment=options["assignment"],
        rng=options["seed"],
        progress=progress,
    )


def _truth(table: Table, name: str) -> NDArray[np.bool_]:
    known = {"1": True, "0": False, "true": True, "false": False, "yes": True, "no": False}
    texts = [str(value).strip().lower().removesuffix(".0") for value in table.column(name)]
    strange = next((text for text in texts if text not in known), None)
    if strange is not None:
        raise InputError(f"scores takes 1 or 0 in column {name!r}, got {strange!r}")
    return np.array([known[text] for text in texts], dtype=bool)


def _promised(options: Mapping[str, Any]) -> Guarantee | None:
    from whosin.guarantees import ApproxDP, PureDP

    epsilon, delta = options["promised_epsilon"], options["promised_delta"]
    if epsilon is None:
        return None
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def _summary(found: Audit, promised: Guarantee | None, remarks: list[str]) -> dict[str, Any]:
    """Return what stays in the history: curves and sentences, and no record, not even as a row number."""
    fpr = np.unique(np.concatenate([np.linspace(0.0, 1.0, CURVE_POINTS), np.geomspace(1e-4, 1.0, 41)]))
    verdict = None if promised is None else found.compare(promised)
    return {
        "explanation": found.explain(),
        "advantage": _limits(found.advantage),
        "accuracy": _limits(found.risk("accuracy")),
        "tpr_at": {f"{rate:g}": _limits(found.tpr_at(rate)) for rate in RATES},
        "members": found.members,
        "non_members": found.non_members,
        "released": getattr(found, "synthetic", None),
        "prior": found.prior,
        "query": found.query,
        "detectable": found.detectable,
        "roc": {
            "fpr": fpr.tolist(),
            "tpr": np.asarray(found.roc.tpr(fpr)).tolist(),
            "lower": np.asarray(found.band.lower.tpr(fpr)).tolist(),
            "upper": np.asarray(found.band.upper.tpr(fpr)).tolist(),
        },
        "assumes": list(found.assumes),
        "remarks": remarks,
        "comparison": None if verdict is None else {"verdict": verdict.verdict, "text": verdict.text},
        "promise": None if promised is None else str(promised),
    }


def _limits(found: Any) -> dict[str, float]:
    return {name: float(getattr(found, name)) for name in ("estimate", "lower", "upper", "confidence_level")}


def _command(request: Mapping[str, Any]) -> str:
    """Return the line that gives the same numbers from the command line, with the files' names as they were."""
    options = request["options"]
    words = ["whosin", "audit"]
    for role, file in request["files"].items():
        name = str(file["name"])
        words += [f"--{role}", f"./{name}" if name.startswith("-") else name]
    if request["kind"] == "scores":
        words += ["--member-column", options["member_column"]]
    if options["columns"]:
        words += ["--columns", ",".join(options["columns"])]
    for name in options["groups"]:
        words += ["--group", name]
    for name in ("prior", "confidence_level", "assignment", "promised_epsilon", "promised_delta", "seed"):
        if options[name] is not None:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    return shlex.join(words)
