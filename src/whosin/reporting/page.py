"""One self-contained HTML file, or its PDF: from a result to the page, and from the page to the disk."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, overload

import numpy as np

from whosin.auditing import Audit, Comparison, OneRunAudit, OneRunComparison
from whosin.auditing.runs import RetrainedAudit
from whosin.errors import InputError, InputTypeError, missing_extra, short_repr
from whosin.guarantees import Guarantee
from whosin.numerics.rounding import clean
from whosin.parallel.storage import whole_file
from whosin.population import PopulationPrivacy
from whosin.protection import Certificate, Release
from whosin.reporting.audit import audit_report
from whosin.reporting.blocks import Report
from whosin.reporting.certificate import certificate_report
from whosin.reporting.comparison import comparison_report
from whosin.reporting.one_run import one_run_report
from whosin.reporting.pdf import check_pdf, to_pdf
from whosin.reporting.population import population_report
from whosin.reporting.promise import guarantee_report
from whosin.reporting.provenance import Setting
from whosin.reporting.retrained import retrained_report
from whosin.reporting.several import several_report

Measured = Audit | OneRunAudit | RetrainedAudit
Single = Measured | Comparison | OneRunComparison | Guarantee | PopulationPrivacy | Release | Certificate
Result = Single | Mapping[str, Audit]
_REPORTS: tuple[tuple[Any, Callable[[Any, Setting], Report]], ...] = (
    (Audit, audit_report),
    (Mapping, several_report),
    (OneRunAudit, one_run_report),
    (RetrainedAudit, retrained_report),
    (Comparison | OneRunComparison, comparison_report),
    (Guarantee, guarantee_report),
    (PopulationPrivacy, population_report),
    (Release | Certificate, certificate_report),
)
"""What writes the report of each kind of result."""


@overload
def report(
    result: Result,
    path: None = None,
    *,
    title: str | None = None,
    guarantee: Guarantee | None = None,
    ids: Sequence[Any] | None = None,
    individuals: bool | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
    force: bool = False,
    date: datetime.date | None = None,
) -> str: ...


@overload
def report(
    result: Result,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    guarantee: Guarantee | None = None,
    ids: Sequence[Any] | None = None,
    individuals: bool | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
    force: bool = False,
    date: datetime.date | None = None,
) -> Path: ...


def report(
    result: Result,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    guarantee: Guarantee | None = None,
    ids: Sequence[Any] | None = None,
    individuals: bool | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
    force: bool = False,
    date: datetime.date | None = None,
) -> Path | str:
    """Write a result as one HTML or PDF file that a privacy officer can read, sign and send.

    Parameters
    ----------
    result : an audit of any kind, Comparison, Guarantee, PopulationPrivacy, Release, Certificate or mapping of audits
        What to report. Several audits go in as a mapping of a name to each, and are laid side by side.
    path : path, optional
        File to write, as PDF if its name ends so (by Chromium or WeasyPrint); without it the page is returned as text.
    title : str, optional
        Heading of the report.
    guarantee : Guarantee, optional
        For one audit or several, and for one run: the promise that the measurement is held against.
    ids : sequence, optional
        For an audit: one name or number for each member, in their order; for a population: one for each record. They
        stand in the list of exposed records instead of row numbers.
    individuals : bool, optional
        Whether the most exposed records are listed. By default they are left out, since reports travel, unless ``ids``
        are given.
    command : str, optional
        The command or call that gave the result, printed under how to reproduce it.
    files : mapping of str to str, optional
        For an audit: what the files were called, by role ("train", "holdout", "synthetic" or "scores").
    force : bool, default False
        Replace a file that is there already.
    date : datetime.date, optional
        Date of the report, today (UTC) by default.

    Returns
    -------
    Path or str
        Where the file was written, or the page itself.

    Raises
    ------
    MissingExtraError
        Without Jinja2; for a PDF, without Chromium and WeasyPrint.

    Notes
    -----
    The page has its style and pictures inside, runs no program and asks the network for nothing. It holds no record:
    exposed ones are named by row number or id. Limits are rounded outwards. The same input, versions and date give the
    same bytes. The file appears whole or not at all. Cost: that of the parts of an audit that are computed on demand.

    Examples
    --------
    >>> import datetime, whosin as wi
    >>> page = wi.report(wi.PureDP(1.0), date=datetime.date(2026, 1, 1))
    >>> page.startswith("<!DOCTYPE html>"), "73.2%" in page
    (True, True)
    """
    target = None if path is None else _check_path(path, force)
    _check_result(result)
    _check_options(title=title, command=command, individuals=individuals, files=files, date=date, guarantee=guarantee)
    if guarantee is not None and not isinstance(result, Measured | Mapping):
        raise InputTypeError(f"guarantee goes with an audit, got result of type {type(result).__name__}")
    named = ids is not None if individuals is None else bool(individuals)
    day = datetime.datetime.now(datetime.UTC).date() if date is None else datetime.date(date.year, date.month, date.day)
    setting = Setting(guarantee, _check_ids(result, ids, individuals), command, day, named, files or {})
    if find_spec("jinja2") is None:
        raise missing_extra("reports need Jinja2", "report")
    found = next(make for kind, make in _REPORTS if isinstance(result, kind))(result, setting)
    names_records = named and isinstance(result, Audit | RetrainedAudit | PopulationPrivacy)
    page = _render(found, title, day, names_records)
    if target is None:
        return page
    content = to_pdf(page) if target.suffix.lower() == ".pdf" else page.encode("utf-8")
    with whole_file(target) as draft:
        draft.write_bytes(content)
        _refuse_to_replace(target, force)
    return target


def _render(content: Report, title: str | None, date: datetime.date, named: bool) -> str:
    from importlib.metadata import version

    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("whosin.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters["capitalise"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["drawing"] = Markup
    environment.filters["css"] = lambda text: Markup(_css_string(text))
    heading = title or content.title
    prints = "  ".join(f"{name} {value[:8]}" for name, value in content.fingerprints.items())
    footer = "  ·  ".join(part for part in (heading, content.data, prints, date.isoformat()) if part)
    page = environment.get_template("page.html.j2").render(
        report=content,
        title=heading,
        date=date.isoformat(),
        version=version("whosin"),
        named=named,
        footer=clean(footer),
    )
    return f"{page.rstrip()}\n"


def _css_string(text: str) -> str:
    """Return the text as a string of CSS, in letters that can end neither it nor the style sheet."""
    plain = "".join(letter if letter.isalnum() or letter in " .,:;()·-_/" else f"\\{ord(letter):x} " for letter in text)
    return f'"{plain}"'


def _check_path(path: Any, force: bool) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path must be the name of a file, got {path!r} of type {type(path).__name__}")
    target = Path(os.fsdecode(path))
    _check_name(target)
    if target.is_dir() or not target.name:
        raise InputError(f"path must be the name of a file, got the folder {str(target)!r}")
    if not target.parent.is_dir():
        raise InputError(f"path={str(target)!r} lies in a folder that does not exist: {str(target.parent)!r}")
    _refuse_to_replace(target, force)
    if target.suffix.lower() == ".pdf":
        check_pdf()
    return target


def _check_name(target: Path) -> None:
    """Refuse a name that no file can have."""
    try:
        os.lstat(target)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except (OSError, ValueError) as error:
        raise InputError(f"path must be a name that a file can have, got {_glimpse(str(target))}: {error}") from None


def _refuse_to_replace(target: Path, force: bool) -> None:
    if target.exists() and not target.is_file():
        raise InputError(f"path={str(target)!r} is no regular file; a report does not replace a device or a pipe")
    if os.path.lexists(target) and not force:
        raise InputError(f"path={str(target)!r} is there already; force=True replaces it")


def _check_result(result: Any) -> None:
    if isinstance(result, Mapping):
        if not result:
            raise InputError("result must have at least one audit, got an empty mapping")
        for name, found in result.items():
            if not isinstance(name, str) or not name.strip() or not isinstance(found, Audit):
                raise InputTypeError(
                    f"result must be a mapping of names to audits, got {_glimpse(name)}: {type(found).__name__}"
                )
    elif not isinstance(result, Single):
        raise InputTypeError(
            "result must be an audit, a guarantee, a population, a release, a certificate, a comparison or a mapping "
            f"of audits, got {_glimpse(result)} of type {type(result).__name__}"
        )


def _check_ids(result: Result, ids: Any, individuals: Any) -> Sequence[Any] | None:
    """Names or numbers only: a record must not slip in as its own id."""
    if ids is None:
        return None
    if individuals is not None and not individuals:
        raise InputError("ids names the exposed records, and individuals=False leaves them out: give one of the two")
    if isinstance(result, Audit):
        expected, whose = result.members, "member"
    elif isinstance(result, PopulationPrivacy):
        expected, whose = result.records, "record"
    else:
        raise InputTypeError(f"ids goes with an audit or a population, got result of type {type(result).__name__}")
    if isinstance(ids, str | bytes | dict | set) or not hasattr(ids, "__len__"):
        raise InputTypeError(f"ids must be a sequence of one name or number for each {whose}, got {_glimpse(ids)}")
    names = list(ids)
    if len(names) != expected:
        raise InputError(f"ids must be one name or number for each {whose}, {expected} in all, got {len(names)}")
    for place, name in enumerate(names):
        if not isinstance(name, str | int | float | np.integer | np.floating):
            raise InputTypeError(f"ids must be names or numbers, got type {type(name).__name__} at position {place}")
    return names


_KINDS: dict[str, tuple[Any, str]] = {
    "title": (str, "text"),
    "command": (str, "text"),
    "individuals": (bool | np.bool_, "True or False"),
    "files": (Mapping, "a mapping of roles to names"),
    "date": (datetime.date, "a datetime.date"),
    "guarantee": (Guarantee, "one of whosin's guarantees"),
}
"""What each option must be, by type and in words."""


def _check_options(**options: Any) -> None:
    for name, value in options.items():
        kind, words = _KINDS[name]
        if value is not None and not isinstance(value, kind):
            raise InputTypeError(f"{name} must be {words}, got {_glimpse(value)} of type {type(value).__name__}")
        if isinstance(value, str) and not value.strip():
            raise InputError(f"{name} must be {words}, got {value!r}")
    if not all(isinstance(part, str) for item in (options["files"] or {}).items() for part in item):
        raise InputTypeError(f"files must be a mapping of roles to names, got {_glimpse(options['files'])}")


def _glimpse(value: Any) -> str:
    """Show a wrong argument without printing the data that it may hold."""
    text = short_repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
