"""What stands under the answer: numbers, pictures, assumptions, in the blocks that the reports are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import whosin.reporting
from whosin.guarantees import Guarantee
from whosin.reporting.blocks import Block, Card, Grid, Heading, Items, Picture, Pictures, Text
from whosin.reporting.numbers import (
    NOT_MEASURED,
    about,
    capital,
    confidence,
    count,
    down,
    percent,
    percent_down,
    percent_up,
    up,
)
from whosin.web import answers
from whosin.web.drawing import Interval, Line, curves, intervals
from whosin.web.models import CalibrateQuery, CompareAnswer, ExplainAnswer, ExplainQuery, Limits, Rate, Summary

__all__ = ["BASE_STYLE", "calibrated", "explained", "of_comparison", "of_guarantee", "of_summary"]

BASE_STYLE = Path(whosin.reporting.__file__).parent / "templates" / "style.css.j2"
LOWEST = 1e-5


def explained(query: ExplainQuery) -> tuple[str, list[Block]]:
    """Return the sentence on a promise, and what stands under it."""
    guarantee = answers.guarantee_of(query)
    answer = answers.explain(guarantee, query.prior)
    return answer.sentence, of_guarantee(answer, guarantee, log=query.log)


def calibrated(query: CalibrateQuery) -> tuple[str, list[Block]]:
    """Return the sentence on a wish, and what stands under it."""
    answer, found = answers.calibrate(query)
    return answer.sentence, [] if found is None or answer.meaning is None else of_guarantee(answer.meaning, found)


def of_guarantee(answer: ExplainAnswer, guarantee: Guarantee, *, log: bool = False) -> list[Block]:
    """Return the curve, the numbers and the assumptions of a promise."""
    low, high = answer.posterior
    rows = [
        ("right guesses", percent_up(answer.accuracy)),
        ("advantage: members found less outsiders accused", up(answer.advantage)),
        ("belief in membership after the release", f"{percent_down(low)} to {percent_up(high)}"),
    ]
    rows += [
        (f"members found where {percent(float(rate))} of the outsiders are accused", percent_up(share))
        for rate, share in answer.tpr_at.items()
    ]
    caption = f"At most, for anybody who suspects {percent(answer.prior)} beforehand"
    return [
        Pictures([_promised(guarantee, log)]),
        Text(answer.explanation),
        Grid(caption, ("what", "value"), rows),
        Heading("This assumes"),
        Items([f"{line[:1].upper()}{line[1:]}." for line in answer.assumes]),
    ]


def _promised(guarantee: Guarantee, log: bool) -> Picture:
    roc = guarantee.roc
    fpr = _rates(log)
    found = percent_up(float(guarantee.tpr_at(0.01)))
    alt = f"Curve of the promise. Where 1% of the outsiders are accused, at most {found} of the members are found."
    line = Line(fpr, np.asarray(roc.tpr(fpr)), str(guarantee))
    return Picture(
        curves([line], alt, log=log, lowest=LOWEST),
        alt,
        "No attack lies above this curve. Dashed: a blind guess. The room between the two is what may be given away.",
    )


def _rates(log: bool) -> NDArray[np.float64]:
    low = np.geomspace(LOWEST, 1.0, 121)
    return low if log else np.unique(np.concatenate([[0.0], low, np.linspace(0.0, 1.0, 101), 1.0 - low]))


def of_summary(summary: Summary) -> list[Block]:
    """Return the verdict first, then the paragraph, the numbers, the picture and the rest of an audit."""
    found, level = summary.advantage, confidence(summary.advantage.confidence_level)
    said = summary.verdict.sentence
    blocks: list[Block] = [Card(summary.verdict.state, said), Text(summary.explanation.removeprefix(said).strip())]
    blocks += [Text(remark, "warning") for remark in summary.remarks]
    if summary.comparison is not None:
        text = f"{summary.comparison.text[:1].upper()}{summary.comparison.text[1:]}"
        blocks += [Heading(f"Held against {summary.promise}: {summary.comparison.verdict}"), Text(text)]
    rows = [("advantage", *_limits(found)), ("right guesses", *_shares(summary.accuracy))]
    caption = f"The numbers ({level} confidence; the upper limits cover {summary.covered})"
    rates = [(percent(float(asked)), *_rate(rate)) for asked, rate in summary.tpr_at.items()]
    head = ("outsiders accused, asked for", "measured", "members found", "at least", "at most")
    blocks += [
        Grid(caption, ("what", "estimate", "at least", "at most"), rows),
        Grid("Attacks that accuse few outsiders", head, rates, frozenset({1})),
    ]
    roc = summary.roc
    line = Line(
        np.array(roc.fpr), np.array(roc.tpr), "measured, with its limits", np.array(roc.lower), np.array(roc.upper)
    )
    alt = f"Measured curve. The advantage is about {about(found.estimate)}."
    caption = (
        f"Members found against outsiders accused. Shaded: {level} limits, all at once, of attackers who compare this "
        "score with a threshold; dashed: a blind guess."
    )
    blocks += [
        Pictures([Picture(curves([line], alt), alt, caption)]),
        Heading("This assumes"),
        Items([f"{text[:1].upper()}{text[1:]}." for text in summary.assumes]),
        Text(
            f"With {count(summary.members)} members and {count(summary.non_members)} others ({summary.unit}), an "
            f"advantage below about {up(summary.smallest_visible)} is found in fewer than four of five audits, even if "
            "its attack were known beforehand. What was not found may be there.",
            "small",
        ),
    ]
    return blocks


def of_comparison(answer: CompareAnswer) -> list[Block]:
    """Return audits side by side: their numbers in one table, their intervals and curves in one picture each."""
    known = [(audit.shown, audit.summary) for audit in answer.audits if audit.summary is not None]
    held = any(summary.comparison is not None for _, summary in known)
    rows = [
        (
            name,
            summary.verdict.state,
            *_limits(summary.advantage),
            _rate(summary.tpr_at["0.01"])[1],
            count(summary.members),
            count(summary.non_members),
            *([_held(summary)] if held else []),
        )
        for name, summary in known
    ]
    head = ("audit", "verdict", "advantage", "at least", "at most", "found at 1%", "members", "others", "promise")
    bars = [Interval(name, s.advantage.estimate, s.advantage.lower, s.advantage.upper) for name, s in known]
    lines = [Line(np.array(s.roc.fpr), np.array(s.roc.tpr), name) for name, s in known]
    words = "; ".join(f"{name}: {about(s.advantage.estimate)}" for name, s in known)
    return [
        Grid("Side by side", head[: 8 + held], rows, frozenset({1, 8})),
        Pictures(
            [
                Picture(
                    intervals(bars, f"Advantage with limits. {words}."),
                    words,
                    "The advantage of each, with its limits: audits whose lines meet are not shown to differ.",
                ),
                Picture(
                    curves(lines, f"Measured curves. {words}."),
                    words,
                    "The measured curves; the higher, the more is given away. Thin dashes: a blind guess.",
                ),
            ]
        ),
    ]


def _held(summary: Summary) -> str:
    return "none" if summary.comparison is None else f"{summary.promise}: {summary.comparison.verdict}"


def _limits(found: Limits) -> tuple[str, str, str]:
    return about(found.estimate), down(found.lower), up(found.upper)


def _shares(found: Limits) -> tuple[str, str, str]:
    return percent(found.estimate), percent_down(found.lower), percent_up(found.upper)


def _rate(found: Rate) -> tuple[str, str, str, str]:
    """The share of the outsiders accused, and the members found with limits."""
    if found.estimate is None or found.fpr is None:
        return capital(found.about), NOT_MEASURED, NOT_MEASURED, NOT_MEASURED
    return percent(found.fpr), percent(found.estimate), percent_down(found.lower), percent_up(found.upper)
