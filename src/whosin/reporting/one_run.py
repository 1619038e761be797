"""The report of one training run with random canaries: what it says about ε, and what it cannot say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whosin.auditing import OneRunAudit
from whosin.numerics.rounding import at_least, confidence, count, percent, percent_up
from whosin.reporting.blocks import Grid, Picture, Pictures, Report, Section, Text, assumed, question, untested
from whosin.reporting.comparison import held_against
from whosin.reporting.painting import Axis, Line, as_percent, chart
from whosin.reporting.provenance import Setting, reproduce

CLAIMS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Values of ε whose chance is shown."""
LOWEST = 1e-6
"""Smallest chance in the picture."""


def one_run_report(result: OneRunAudit, setting: Setting) -> Report:
    """Return the report of an audit in one run."""
    return Report("How private can this training be?", "audit of one training run", tuple(_sections(result, setting)))


def _sections(result: OneRunAudit, setting: Setting) -> Iterator[Section]:
    yield question(
        f"A model was trained on data into which {count(result.canaries)} made-up records (canaries) were put, each or "
        "not by the toss of a coin. Somebody who sees the model guesses which ones went in. A small ε allows only so "
        "many right guesses: how small can the ε of this training be?"
    )
    yield Section("answer", "The answer", [Text(_in_one_sentence(result), "answer"), Text(result.explain())])
    yield Section("picture", "The picture", [Text(_READ), Pictures([_picture(result)])])
    yield Section("numbers", "The numbers", [_ways(result), _claims(result)])
    yield from held_against(result, setting)
    yield assumed(result.assumes)
    yield untested(_UNTESTED)
    yield reproduce(
        setting,
        call=f"wi.audit_one_run(scores, included, guesses=…, delta={result.delta!r}, "
        f"confidence_level={result.confidence_level!r}, rng=…)",
        unknown="Scores, coins and the seed are not kept in the result: fill them in.",
    )


def _in_one_sentence(result: OneRunAudit) -> str:
    level, delta = confidence(result.confidence_level), f" at δ = {result.delta:g}" if result.delta else ""
    if result.epsilon_lower > 0.0:
        limit = at_least(result.epsilon_lower)
        return f"If the training is differentially private, its ε{delta} is at least {limit} ({level} confidence)."
    return f"This run refutes no ε{delta}: the right guesses could be chance ({level} confidence)."


def _picture(result: OneRunAudit) -> Picture:
    """Draw the chance of the guesses by claimed ε, up to twice the limit."""
    epsilon = np.linspace(0.0, max(2.0, 2.0 * result.epsilon_lower), 41)
    chance = np.array([result.p_value(float(claim)) for claim in epsilon])
    level = 1.0 - result.confidence_level
    highest = float(epsilon[-1])
    return Picture(
        chart(
            [Line(epsilon, np.maximum(chance, LOWEST), "chance, at most")],
            f"Chance of so many right guesses against the ε that is claimed: at most {percent_up(float(chance[0]))} "
            f"at ε = 0; claims below {at_least(result.epsilon_lower)} are refuted.",
            axes=(
                Axis("ε that is claimed", 0.0, highest, text=lambda value: f"{value:g}"),
                Axis("chance of so many right guesses", LOWEST, 1.0, True, as_percent),
            ),
            blind=[level, level],
        ),
        "The chance of so many right guesses, at most, by claimed ε. Below the dashed line a claim is refuted.",
    )


def _ways(result: OneRunAudit) -> Grid:
    rows = [
        (
            f"{count(way.guessed_in)} said to be in, {count(way.guessed_out)} out",
            count(way.right),
            count(way.guesses),
            percent(way.right / way.guesses) if way.guesses else "–",
        )
        for way in result.ways
    ]
    return Grid("Ways to guess; the limit holds for all of them together", ("guesses", "right", "of", "share"), rows)


def _claims(result: OneRunAudit) -> Grid:
    rows = [(f"{epsilon:g}", percent_up(result.p_value(epsilon))) for epsilon in CLAIMS]
    return Grid(
        f"Chance of so many right guesses if the training were ε-DP at δ = {result.delta:g}",
        ("ε", "chance, at most"),
        rows,
    )


_READ = (
    "The smaller the claimed ε, the less likely are so many right guesses. Claims left of where the curve crosses the "
    "dashed line do not fit the run."
)
_UNTESTED = (
    "How much larger than this limit ε is: a stronger attack, or more canaries, may find more.",
    "The people in the data: canaries were guessed, and people may be easier or harder to find.",
    "Other trainings: another run, with other data or settings, may give away more.",
    "Other harms: guessing the values of a person's record, linking it with other tables, or rebuilding it.",
)
