"""The report of an audit by retraining: risk over trainings, and what it does not say about one release."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whosin.auditing.runs import RetrainedAudit
from whosin.numerics.rounding import about, at_least, at_most, confidence, count, percent
from whosin.reporting.blocks import Card, Grid, Picture, Pictures, Report, Section, Text, assumed, untested
from whosin.reporting.comparison import held_against
from whosin.reporting.painting import Line, chart, gauge
from whosin.reporting.provenance import Setting, reproduce
from whosin.reporting.verdict_card import people_picture, picked, what_to_do

LISTED = 10
"""People that are listed at most."""


def retrained_report(result: RetrainedAudit, setting: Setting) -> Report:
    """Return the report of an audit by retraining."""
    verdict, a, facts = result.verdict, result.advantage, result.to_dict()
    share, note = picked(facts)
    card = Card(
        verdict.state,
        verdict.title,
        verdict.headline,
        verdict.details,
        people=people_picture(share, note),
        people_note=note,
        gauge=gauge(
            a.estimate,
            a.lower,
            a.upper,
            verdict.tolerate,
            f"TPR - FPR about {about(a.estimate)}, in a typical training at least {at_least(a.lower)}.",
        ),
        level=f"{confidence(result.confidence_level)} limits",
        to_do=what_to_do(facts),
    )
    about_what = f"audit of a way of training, over {count(len(result.scores.coins))} trainings"
    return Report("What does this way of training give away?", about_what, tuple(_sections(result, setting)), card)


def _sections(result: RetrainedAudit, setting: Setting) -> Iterator[Section]:
    people = result.individual
    yield Section("answer", "The answer", [Text(result.explain())])
    yield Section("trainings", "Over trainings", [Pictures([_picture(result)]), _limits(result)])
    blocks: list[Text | Grid] = [Text(people.sentence(result.unit)), Text(_NOT_EXPOSURE, "small")]
    if setting.individuals and not people.alike:
        blocks.append(_listed(result))
    yield Section("risk", "Risk of single people over trainings", blocks)
    if len(result.groups):
        rows = [
            (row.name, count(row.units), about(row.advantage.estimate), at_least(row.advantage.lower))
            for row in result.groups
        ]
        caption = "TPR - FPR in each group, in a typical training; the limits hold together"
        yield Section("groups", "Groups", [Grid(caption, ("group", result.unit, "about", "at least"), rows)])
    yield from held_against(result, setting)
    yield assumed(result.assumes)
    yield untested(_UNTESTED)
    yield reproduce(
        setting,
        call=f"wi.audit_retrained(model, records, trainings={len(result.scores.coins)}, "
        f"confidence_level={result.confidence_level!r}, rng=…)",
        unknown="Model, records and the seed that was given are not kept in the result: fill them in.",
    )


def _picture(result: RetrainedAudit) -> Picture:
    fpr = np.linspace(0.0, 1.0, 101)
    tpr = np.asarray(result.roc.tpr(fpr))
    alt = f"Share of members found against share of outsiders accused: {percent(float(tpr[10]))} at 10%."
    return Picture(chart([Line(fpr, tpr, "all trainings together")], alt), "Members found by outsiders accused.")


def _limits(result: RetrainedAudit) -> Grid:
    a, worst = result.advantage, result.worst
    rows = [
        ("in a typical training", about(a.estimate), at_least(a.lower)),
        ("in four of five trainings", "–", at_least(result.most(0.8))),
        ("on average over trainings", "–", at_least(result.mean_lower)),
        (worst.about, about(worst.estimate), at_least(worst.lower)),
    ]
    level = confidence(result.confidence_level)
    return Grid(f"TPR - FPR, each limit with {level} confidence", ("what", "about", "at least"), rows)


def _listed(result: RetrainedAudit) -> Grid:
    rows = [
        (
            str(row.get("person", row["index"])),
            about(row["risk"]),
            at_least(row["simultaneous_lower"]),
            at_most(row["simultaneous_upper"]),
        )
        for row in result.individual.highest(LISTED)
    ]
    caption = f"Largest risks over trainings; the limits hold together for all {result.unit}"
    return Grid(caption, ("person" if result.person_level else "row", "about", "at least", "at most"), rows)


_NOT_EXPOSURE = (
    "Risk over trainings is what the next training may give away about somebody. It is not exposure in one given "
    "release: who is exposed there has to be measured on that release."
)
_UNTESTED = (
    "A release that was trained on all records: no theorem leads from random halves to it.",
    "What was fitted on all records before the trainings, such as scales or encodings.",
    "Other attackers: a stronger one may find more, and no upper limit covers all of them.",
    "Other harms: guessing the values of a person's record, linking it with other tables, or rebuilding it.",
)
