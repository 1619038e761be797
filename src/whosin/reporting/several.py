"""The report of several audits side by side: one table, one picture, then each in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from whosin.auditing import Audit
from whosin.guarantees import Guarantee
from whosin.numerics.rounding import (
    about,
    at_least,
    at_most,
    clean,
    confidence,
    count,
    limits,
    percent,
    percent_down,
    percent_up,
    sentence,
)
from whosin.reporting.blocks import (
    Block,
    Grid,
    Heading,
    Items,
    Picture,
    Pictures,
    Report,
    Section,
    Text,
    question,
    untested,
)
from whosin.reporting.painting import Interval, intervals
from whosin.reporting.provenance import Setting, reproduce

_SIDES = ("estimate", "lower", "upper")
RATE = 0.01
"""False positive rate at which the table reads each curve."""


def several_report(results: Mapping[str, Audit], setting: Setting) -> Report:
    """Return the report of audits by name, in their order; no record is named in it."""
    return Report(
        "Can anyone tell who is in the data?", f"{len(results)} audits side by side", tuple(_sections(results, setting))
    )


def _sections(results: Mapping[str, Audit], setting: Setting) -> Iterator[Section]:
    verdicts = [(name, found.verdict.state, found.verdict.sentence) for name, found in results.items()]
    yield Section(
        "answer",
        "The answer",
        [
            Text(_in_one_sentence(results), "answer"),
            Grid("The verdicts", ("audit", "verdict", "in words"), verdicts, frozenset({1, 2})),
            Text(_together(results)),
        ],
    )
    yield question(
        f"{len(results)} audits were run: {'; '.join(results)}. In which of them can somebody tell members from "
        "others, and how well?"
    )
    yield Section("picture", "The picture", [Pictures([_picture(results)]), _table(results)])
    yield Section("each", "Each audit in words", _each(results))
    if setting.guarantee is not None:
        yield Section("promise", "Promised versus measured", _promise(results, setting.guarantee))
    yield Section("assumed", "What was assumed", _assumed(results), folded=True)
    yield untested(_UNTESTED)
    methods = Items([f"{name}: {found.method}." for name, found in results.items()])
    yield Section("method", "How it was measured", [methods], folded=True)
    yield reproduce(
        setting,
        call="wi.report({name: audit, …}, path)",
        unknown="Each audit has a report of its own with its call, its queries and the members at risk.",
        fingerprints=_fingerprints(results),
    )


def _in_one_sentence(results: Mapping[str, Audit]) -> str:
    judged = {name: found.advantage for name, found in results.items() if found.problem is None}
    leaking = [name for name, found in judged.items() if found.lower > 0.0]
    parts = [f"In {len(leaking)} of {len(results)} audits a leak was found{_named(leaking)}."]
    if leaking:
        worst = max(leaking, key=lambda name: judged[name].lower)
        level = confidence(judged[worst].confidence_level)
        parts.append(
            f"The largest lower limit is that of {worst}: {at_least(judged[worst].lower)} ({level} confidence)."
        )
    elif judged:
        highest = at_most(max(found.upper for found in judged.values()))
        parts.append(f"An advantage of up to {highest} remains possible even for the attackers that each covers.")
    without = [name for name in results if name not in judged]
    if without:
        parts.append(f"No verdict is possible in {len(without)}{_named(without)}.")
    return " ".join(parts)


def _named(names: Sequence[str]) -> str:
    return f" ({'; '.join(names)})" if names else ""


def _together(results: Mapping[str, Audit]) -> str:
    missed = sum(1.0 - found.confidence_level for found in results.values())
    joint = f"with at least {percent_down(1.0 - missed)} confidence" if missed < 1.0 else "with no stated confidence"
    return (
        f"The limits of each audit hold by themselves; all {len(results)} hold together {joint}. Releases from the "
        "same data add up: none of these audits saw two of them at once."
    )


def _picture(results: Mapping[str, Audit]) -> Picture:
    rows = [Interval(name, *(getattr(found.advantage, side) for side in _SIDES)) for name, found in results.items()]
    listed = "; ".join(f"{clean(row.name)} {about(row.estimate)}" for row in rows)
    return Picture(
        intervals(rows, f"Advantage of each audit with limits: {listed}."),
        "Advantage by audit, in the order given, each with its limits.",
    )


def _table(results: Mapping[str, Audit]) -> Grid:
    rows = []
    for name, found in results.items():
        low = found.tpr_at(RATE)
        few = f"{percent(low.estimate)} ({percent_down(low.lower)} to {percent_up(low.upper)})"
        rows.append(
            (
                name,
                count(found.members),
                count(found.non_members),
                *limits(found.advantage),
                few if low.measurable else "not measurable",
                at_most(found.smallest_visible),
            )
        )
    head = (
        "audit",
        "members",
        "others",
        "advantage",
        "at least",
        "at most",
        f"members found at {percent(RATE)} accused",
        "smallest leak likely seen, were its attack known",
    )
    return Grid("The audits side by side; each with its own limits, for the attackers that it covers", head, rows)


def _each(results: Mapping[str, Audit]) -> list[Block]:
    blocks: list[Block] = []
    for name, found in results.items():
        surely = int(np.sum(found.individual.simultaneous_lower[: found.members] > found.prior))
        exposed = f"Surely likelier to be members than before the answer: {count(surely)} of {count(found.members)}."
        blocks += [Heading(name), Text(found.explain()), Text(exposed)]
    return blocks


def _promise(results: Mapping[str, Audit], guarantee: Guarantee) -> list[Block]:
    rows = []
    for name, found in results.items():
        held = found.compare(guarantee)
        verdict = held.verdict if found.problem is None else "no verdict"
        rows.append((name, at_most(held.promised_advantage), *limits(held.advantage), verdict))
    head = ("audit", "promised, at most", "measured", "at least", "at most", "verdict")
    return [
        Grid(f"Advantages held against {guarantee}", head, rows, frozenset({5})),
        Text(guarantee.explain()),
    ]


def _assumed(results: Mapping[str, Audit]) -> list[Block]:
    """Return what all audits assume, then what is assumed by some."""
    common = [line for line in next(iter(results.values())).assumes if all(line in r.assumes for r in results.values())]
    blocks: list[Block] = [Text("Every audit rests on these sentences."), Items([sentence(line) for line in common])]
    for name, found in results.items():
        own = [sentence(line) for line in found.assumes if line not in common]
        if own:
            blocks += [Heading(f"Assumed by {name}"), Items(own)]
    return blocks


def _fingerprints(results: Mapping[str, Audit]) -> dict[str, str]:
    return {
        f"{name}: {table}": value
        for name, found in results.items()
        for table, value in (getattr(found, "fingerprints", None) or {}).items()
    }


_UNTESTED = (
    "What two of the releases tell together: each audit looked at its own.",
    "Queries and attackers that none of the audits tried: the upper limits say nothing about them.",
    "Membership beyond these records: other people, and other trainings, may fare differently.",
    "Other harms: guessing the values of a person's record, linking it with other tables, or rebuilding it.",
)
