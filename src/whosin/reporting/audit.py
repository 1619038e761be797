"""The report of an audit: the verdict first, then the numbers, how they were obtained, and what they leave open."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from whosin.auditing import Audit, Estimate
from whosin.auditing.releases.synthetic import SyntheticAudit
from whosin.guarantees import Guarantee
from whosin.plots.forest import height_of
from whosin.plots.queries import QueriesDisplay
from whosin.reporting.blocks import Block, Card, Grid, Heading, Items, Pictures, Report, Section, Text
from whosin.reporting.comparison import promised_against_measured
from whosin.reporting.curves import roc_pictures
from whosin.reporting.drawing import draw
from whosin.reporting.exposure import at_risk, groups, released_rows, spread_of_risk
from whosin.reporting.numbers import (
    NOT_MEASURED,
    about,
    capital,
    clean,
    confidence,
    count,
    down,
    percent,
    percent_down,
    percent_up,
    sentence,
    up,
)
from whosin.reporting.provenance import Setting, reproduce

__all__ = ["audit_report"]

LOW_RATES = (0.001, 0.01, 0.1)
MOST_QUERIES = 30
NO_VERDICT = (
    "The numbers of this report were measured, but they allow no verdict, neither a good nor a bad one: mend the "
    "set-up first, as the top of the report says."
)


def audit_report(result: Audit, setting: Setting) -> Report:
    """Return the report of an audit of scores or of a synthetic table."""
    return Report(
        "Can anyone tell who is in the data?",
        "audit of a synthetic table" if isinstance(result, SyntheticAudit) else "audit of an attack's scores",
        tuple(_sections(result, setting)),
        Card(result.verdict.state, result.verdict.sentence),
    )


def _sections(result: Audit, setting: Setting) -> Iterator[Section]:
    yield _question(result)
    yield _answer(result)
    yield _picture(result, setting.guarantee)
    yield _queries(result)
    yield at_risk(result, setting)
    yield spread_of_risk(result)
    yield groups(result)
    if isinstance(result, SyntheticAudit):
        yield released_rows(result.release_size, judged=result.problem is None)
    if setting.guarantee is not None:
        yield Section("promise", "Promised versus measured", _promise(result, setting.guarantee))
    yield _assumed(result, setting.guarantee)
    yield _untested(result)
    yield Section("method", "How it was measured", [Text(sentence(result.method))])
    yield reproduce(
        setting,
        call=_call(result),
        unknown="Queries and groups are not kept in the result, nor is rng if one was given: fill them in.",
        fingerprints=result.fingerprints if isinstance(result, SyntheticAudit) else None,
    )


def _question(result: Audit) -> Section:
    people = result.person_level
    inside = f"the records of {count(result.members)} people" if people else f"{count(result.members)} training records"
    outside = f"{count(result.non_members)} {'people' if people else 'records of people'}"
    if isinstance(result, SyntheticAudit):
        text = (
            f"A table of {count(result.synthetic)} rows was made from {inside}, to be released in their place. "
            "Somebody who sees the release wonders about a person: was this person's record among them? To find out "
            f"how well that can be answered, they were compared with {outside} who were not in the training data."
        )
    else:
        text = (
            f"Somebody wonders whether a person's record was in the data, and asks about it by {result.query}. To find "
            f"out how well the answers tell, those about {count(result.members)} members were compared with those "
            f"about {count(result.non_members)} others."
        )
    if people:
        text += " Several records of one person count once."
    return Section("question", "The question", [Text(text)])


def _answer(result: Audit) -> Section:
    blocks: list[Block] = []
    if result.problem is not None:
        blocks.append(Text(NO_VERDICT, "warning"))
    sides = (result.records_alone, result.dependence) if isinstance(result, SyntheticAudit) else ()
    blocks += [Text(found.sentence, "warning") for found in sides if found is not None and found.sentence]
    blocks += [
        Text(result.explain()),
        Text(
            "The advantage is the share of the members that an attack rightly accuses, less the share of the outsiders "
            "that it wrongly accuses: 0 for a blind guess, 1 for certainty."
        ),
        _numbers(result),
        _low_rates(result),
    ]
    return Section("answer", "The answer", blocks)


def _promise(result: Audit, guarantee: Guarantee) -> list[Block]:
    if result.problem is not None:
        return [Text(NO_VERDICT, "warning")]
    return promised_against_measured(result.compare(guarantee), result.prior)


def _numbers(result: Audit) -> Grid:
    prior = percent(result.prior)
    rows = [
        ("advantage", *_limits(result.advantage)),
        (f"advantage at prior {prior} (2·accuracy - 1)", *_limits(result.advantage_at_prior)),
        ("excess over a constant guess", *_limits(result.excess)),
    ]
    if result.metric not in ("advantage", "advantage_at_prior"):
        name = (
            result.metric if isinstance(result.metric, str) else getattr(result.metric, "name", "metric of the caller")
        )
        rows.append((str(name), *_limits(result.headline)))
    rows.append(
        (
            f"smallest advantage that so many {result.unit} show in four of five audits, were its attack known",
            up(result.smallest_visible),
            NOT_MEASURED,
            NOT_MEASURED,
        )
    )
    return Grid(
        f"The numbers ({confidence(result.confidence_level)} confidence; the upper limits cover {result.covered})",
        ("measure", "estimate", "at least", "at most"),
        rows,
    )


def _low_rates(result: Audit) -> Grid:
    """Return what attacks find that accuse few outsiders."""
    rows = []
    for target in LOW_RATES:
        found = result.tpr_at(target)
        assert found.fpr is not None
        accused = f"{percent(found.fpr.estimate)} ({percent_down(found.fpr.lower)} to {percent_up(found.fpr.upper)})"
        shares = percent(found.estimate), percent_down(found.lower), percent_up(found.upper)
        if not found.measurable:
            accused, shares = capital(found.about), (NOT_MEASURED, NOT_MEASURED, NOT_MEASURED)
        rows.append((percent(target), accused, *shares))
    return Grid(
        "Attacks that accuse few outsiders: each was chosen on some records and counted on others",
        ("outsiders accused, asked for", "measured", "members found", "at least", "at most"),
        rows,
        frozenset({1}),
    )


def _limits(found: Estimate) -> tuple[str, str, str]:
    return about(found.estimate), down(found.lower), up(found.upper)


def _picture(result: Audit, guarantee: Guarantee | None) -> Section:
    lowest = 10.0 ** math.floor(math.log10(0.5 / max(1, result.evidence.non_members)))
    text = (
        "Every point of the curve is an attack: how many outsiders it accuses, and how many members it finds. The "
        "further the curve lies above the diagonal, the more is given away."
    )
    if guarantee is not None:
        text += f" No attack may lie above the curve that {guarantee} promises, if the promise holds for this game."
    return Section(
        "picture",
        "The picture",
        [Text(text), roc_pictures((result.roc, result.band), guarantee, lowest=max(lowest, 1e-7))],
    )


def _queries(result: Audit) -> Section:
    *single, together = result.queries.items()
    ranked = [together, *sorted(single, key=lambda item: -item[1].estimate)]
    shown, level = ranked[:MOST_QUERIES], confidence(result.confidence_level)
    sides = [np.array([getattr(found, side) for _, found in shown]) for side in ("estimate", "lower", "upper")]
    names = [clean(name) for name, _ in shown]
    listed = "; ".join(f"{name} {about(found.estimate)}" for name, (_, found) in zip(names[:5], shown, strict=False))
    picture = draw(
        "queries",
        lambda ax: QueriesDisplay(names, sides[0], sides[1], sides[2]).plot(ax=ax),
        alt=f"Advantage by query with limits: {listed}.",
        caption=f"Advantage by query; on top that of the verdict. Lines: {level} limits; dashed: a blind guess.",
        size=(5.6, height_of(names)),
    )
    blocks: list[Block] = [
        Text(
            "A query is what the attacker asks about a record. The first line is the advantage of the verdict. Each of "
            "the others is that of one query alone, from one split of the records, with limits that hold for all of "
            "them at once: they are wider, and the upper ones cover attackers who use that query by a threshold or "
            "fixed cells."
        ),
        Pictures([picture]),
        Grid(
            f"Advantage by query ({level} confidence)",
            ("query", "estimate", "at least", "at most"),
            [(name, *_limits(found)) for name, found in shown],
        ),
    ]
    if len(ranked) > len(shown):
        blocks.append(
            Text(f"{len(ranked) - len(shown)} further queries with smaller estimates are not shown.", "small")
        )
    return Section("queries", "What the attacker may ask", blocks)


def _assumed(result: Audit, guarantee: Guarantee | None) -> Section:
    blocks: list[Block] = [
        Text("The numbers hold if these sentences are true. Nobody but the reader can check some of them."),
        Items([sentence(line) for line in result.assumes]),
    ]
    if guarantee is not None:
        blocks += [
            Heading(f"Assumed by {guarantee}"),
            Items([sentence(line) for line in guarantee.assumes]),
        ]
    return Section("assumed", "What was assumed", blocks)


def _untested(result: Audit) -> Section:
    items = [
        f"Small leaks: with {count(result.members)} members and {count(result.non_members)} outsiders, an advantage "
        f"below about {up(result.smallest_visible)} is found in fewer than four of five audits, even if its attack "
        "were known beforehand.",
        f"Other queries than these: {', '.join(result.queries)}. A better question may tell more.",
        f"Other attackers than {result.covered}: the upper limits say nothing about them.",
        "Membership beyond these records: people who are in neither of the two samples, and other trainings of the "
        "same model, may fare differently.",
        "Repeated releases: a second release from the same data adds to what the first gave away, and was not seen.",
        "Other harms: guessing the values of a person's record, linking it with other tables, or rebuilding it.",
    ]
    blocks: list[Block] = [
        Text("That nothing was found does not show that nothing is there. This audit did not look at:"),
        Items(items),
    ]
    if isinstance(result, SyntheticAudit) and result.failed:
        blocks += [
            Heading("Queries that could not be asked"),
            Items([f"{name}: {reason}" for name, reason in result.failed]),
        ]
    return Section("untested", "What was not tested", blocks)


def _call(result: Audit) -> str:
    name, data = (
        ("audit_synthetic", "train, holdout, synthetic")
        if isinstance(result, SyntheticAudit)
        else ("audit", "members, non_members")
    )
    metric = repr(result.metric) if isinstance(result.metric, str) else "…"
    more = "" if result.tolerate is None else f", tolerate={result.tolerate!r}"
    return (
        f"wi.{name}({data}, prior={result.prior!r}, metric={metric}, confidence_level={result.confidence_level!r}, "
        f"assignment={result.assignment!r}{', person=…' if result.person_level else ''}{more})"
    )
