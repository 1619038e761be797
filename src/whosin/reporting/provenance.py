"""How to get the same report again: the call, the versions, the data, the date."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from whosin.guarantees import Guarantee
from whosin.reporting.blocks import Block, Code, Grid, Section, Text

PACKAGES = (
    "whosin", "numpy", "scipy", "scikit-learn", "narwhals", "polars", "numba", "dp-accounting",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What the caller of :func:`whosin.reporting.report` said beside the result."""

    guarantee: Guarantee | None
    ids: Sequence[object] | None
    command: str | None
    date: datetime.date
    individuals: bool = False
    """Whether exposed records are named."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What the files were called, by role."""


def reproduce(
    setting: Setting, *, call: str, unknown: str = "", fingerprints: Mapping[str, str] | None = None
) -> Section:
    """Return the last section; ``call`` stands in where no command was given, and ``unknown`` says what it lacks."""
    blocks: list[Block] = []
    if setting.command is not None:
        blocks += [Text("This was run:"), Code(setting.command)]
    else:
        blocks += [
            Text("The command was not handed to the report. From what the result knows, the call reads:"),
            Code(call),
        ]
        if unknown:
            blocks.append(Text(unknown, "small"))
    rows = [("date of the report", setting.date.isoformat()), ("Python", platform.python_version())]
    rows += [(name, found) for name in PACKAGES if (found := _version(name)) is not None]
    blocks.append(Grid("Date and versions", ("what", "value"), rows, frozenset({1})))
    if fingerprints:
        blocks.append(
            Grid(
                "Fingerprints of the data (SHA-256): the same table gives the same, any change gives another",
                ("table", "fingerprint"),
                list(fingerprints.items()),
                frozenset({1}),
            )
        )
    return Section("reproduce", "How to reproduce this", blocks, folded=True)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
