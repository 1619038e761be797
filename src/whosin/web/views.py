"""What stands under the answer: numbers, pictures, assumptions, in the blocks that the reports are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whosin.guarantees import Guarantee
from whosin.numerics.rounding import about, at_most, capital, count, limits, percent, percent_down, percent_up, sentence
from whosin.reporting.audit import low_rates, numbers
from whosin.reporting.blocks import Block, Fold, Grid, Heading, Items, Picture, Pictures, Text
from whosin.reporting.curves import curve_picture, measured_curve
from whosin.reporting.painting import Interval, Line, chart, intervals
from whosin.reporting.verdict_card import card_of
from whosin.web import answers
from whosin.web.models import CalibrateQuery, CompareAnswer, ExplainAnswer, ExplainQuery


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
        ("advantage: members found less outsiders accused", at_most(answer.advantage)),
        ("belief in membership after the release", f"{percent_down(low)} to {percent_up(high)}"),
    ]
    rows += [
        (f"members found where {percent(float(rate))} of the outsiders are accused", percent_up(share))
        for rate, share in answer.tpr_at.items()
    ]
    caption = f"At most, for anybody who suspects {percent(answer.prior)} beforehand"
    return [
        Pictures([curve_picture(promised=guarantee, log=log)]),
        Text(answer.explanation),
        Grid(caption, ("what", "value"), rows),
        Heading("This assumes"),
        Items([sentence(line) for line in answer.assumes]),
    ]


def of_summary(facts: Mapping[str, Any]) -> list[Block]:
    """Return the verdict card first, then what was promised, the picture, and the rest folded."""
    blocks: list[Block] = [card_of(facts)]
    said = facts["verdict"]["sentence"]
    blocks += [Text(remark, "warning") for remark in facts["remarks"] if remark not in said]
    if (held := facts["comparison"]) is not None:
        blocks += [Heading(f"Held against {facts['promise']}: {held['verdict']}"), Text(capital(held["text"]))]
    rest: list[Block] = [
        Text(facts["explanation"].removeprefix(said).strip()),
        numbers(facts),
        low_rates(facts),
        Heading("This assumes"),
        Items([sentence(line) for line in facts["assumes"]]),
        Text(
            f"With {count(facts['members'])} members and {count(facts['non_members'])} outsiders ({facts['unit']}), an "
            f"advantage below about {at_most(facts['smallest_visible'])} is found in fewer than four of five audits, "
            "even if its attack were known beforehand. What was not found may be there.",
            "small",
        ),
    ]
    picture = curve_picture(measured_curve(facts), level=facts["band"]["confidence_level"])
    return [*blocks, Pictures([picture]), Fold("Numbers and assumptions", rest)]


def of_comparison(answer: CompareAnswer) -> list[Block]:
    """Return audits side by side: ranked in one table, their intervals and curves in one picture each."""
    known = [(audit.shown, audit.summary) for audit in answer.audits if audit.summary is not None]
    known.sort(key=lambda item: -item[1]["advantage"]["estimate"])
    held = any(facts["comparison"] is not None for _, facts in known)
    rows = [
        (
            name,
            facts["verdict"]["title"],
            *limits(facts["advantage"]),
            percent(facts["tpr_at"]["0.01"]["estimate"]),
            count(facts["members"]),
            count(facts["non_members"]),
            *([_held(facts)] if held else []),
        )
        for name, facts in known
    ]
    head = ("audit", "verdict", "advantage", "at least", "at most", "found at 1%", "members", "outsiders", "promise")
    bars = [
        Interval(name, *(facts["advantage"][side] for side in ("estimate", "lower", "upper"))) for name, facts in known
    ]
    lines = [Line(facts["roc"]["fpr"], facts["roc"]["tpr"], name) for name, facts in known]
    words = "; ".join(f"{name}: {about(facts['advantage']['estimate'])}" for name, facts in known)
    return [
        Grid("Side by side, the most exposed first", head[: 8 + held], rows, frozenset({1, 8})),
        Pictures(
            [
                Picture(
                    intervals(bars, f"Advantage with limits. {words}.", one_colour=False),
                    "The advantage of each, with its limits: audits whose lines meet are not shown to differ.",
                ),
                Picture(
                    chart(lines, f"Measured curves. {words}."),
                    "The measured curves; the higher, the more is given away. Thin dashes: a blind guess.",
                ),
            ]
        ),
    ]


def _held(facts: Mapping[str, Any]) -> str:
    return "none" if facts["comparison"] is None else f"{facts['promise']}: {facts['comparison']['verdict']}"
