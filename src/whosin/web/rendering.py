"""From a template to text; the report's own templates for paragraphs, tables and pictures are at hand."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from whosin.errors import listed
from whosin.numerics.rounding import about, at_least, at_most, clean


def render(name: str, **values: Any) -> str:
    """Return a template, filled in; whatever is no drawing of our own is escaped."""
    return _environment().get_template(name).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("whosin.web"), PackageLoader("whosin.reporting")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawing"] = Markup
    environment.filters.update(
        given=_given, duration=_duration, size=_size, moment=_moment, about=about, at_least=at_least, at_most=at_most,
        listed=listed,
    )  # fmt: skip
    return environment


def _size(count: int) -> str:
    """Return a number of bytes for people."""
    for unit, factor in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"


def _given(value: Any) -> Any:
    """Return a value for a field of a form; an empty text for none."""
    return "" if value is None else value


def _duration(seconds: float) -> str:
    """Return a time for people, roughly."""
    return f"{max(2, round(seconds))} seconds" if seconds < 90 else f"{round(seconds / 60)} minutes"


def _moment(seconds: float) -> str:
    """Return a time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
