"""The report of a guarantee: what is promised, to whom, and what is not."""

from __future__ import annotations

from whosin.guarantees import Guarantee
from whosin.guarantees.base import belief_after
from whosin.numerics.rounding import at_most, percent, percent_down, percent_up
from whosin.reporting.blocks import Block, Grid, Pictures, Report, Section, Text, assumed, question, untested
from whosin.reporting.curves import posterior_picture, roc_pictures
from whosin.reporting.provenance import Setting, reproduce

PRIORS = (0.001, 0.01, 0.1, 0.5, 0.9)
LOW_RATES = (0.0001, 0.001, 0.01, 0.1)

NOT_PROMISED = (
    "Whether the program that ran does what the guarantee assumes: nothing was measured here. An audit can refute a "
    "promise, and does not prove one.",
    "Further releases from the same data: each adds to what is given away, and has to be counted with this one.",
    "Other harms: what the release says about everybody, members or not, can still be used against a person.",
)


def guarantee_report(guarantee: Guarantee, setting: Setting) -> Report:
    """Return the report of one promise."""
    right = (
        f"Whoever gives a record an even chance of being in the data guesses right at most "
        f"{percent_up(guarantee.accuracy(0.5))} of the time after seeing the release; without looking it is 50%."
    )
    sections = (
        question(
            f"{guarantee} is promised for a release. What can somebody who sees the release find out about whether a "
            "person's record was in the data behind it?"
        ),
        Section("answer", "The answer", [Text(right, "answer"), Text(guarantee.explain())]),
        Section("picture", "The picture", promise_pictures(guarantee)),
        Section("numbers", "The numbers", promise_numbers(guarantee)),
        assumed(guarantee.assumes),
        untested(NOT_PROMISED, "What was not tested, and is not promised"),
        reproduce(setting, call=f"wi.{guarantee!r}"),
    )
    return Report("What is promised to the people in the data?", "report of a guarantee", sections)


def promise_pictures(guarantee: Guarantee) -> list[Block]:
    """Return the promised curve, and how far it lets a belief move where there is a limit."""
    blocks: list[Block] = [
        Text(
            "No attack lies above the promised curve. Whoever guesses without looking lies on the dashed diagonal, so "
            "the room between the two is what may be given away."
        ),
        roc_pictures(promised=guarantee),
    ]
    if belief_after(guarantee, 0.5) != (0.0, 1.0):
        blocks.append(Pictures([posterior_picture(guarantee)]))
    return blocks


def promise_numbers(guarantee: Guarantee) -> list[Block]:
    """Return the promise at several priors and at several false positive rates."""
    beliefs = []
    for prior in PRIORS:
        low, high = belief_after(guarantee, prior)
        right = percent_up(guarantee.accuracy(prior))
        blind = percent_up(max(prior, 1.0 - prior))
        beliefs.append((percent(prior), blind, right, percent_down(low), percent_up(high)))
    head = (
        "belief before", "right guesses without looking", "right guesses, at most", "belief after, at least",
        "belief after, at most",
    )  # fmt: skip
    found = [(percent(rate), percent_up(float(guarantee.tpr_at(rate)))) for rate in LOW_RATES]
    return [
        Text(
            "The advantage of any attacker, members found less outsiders accused, is at most "
            f"{at_most(guarantee.advantage)}."
        ),
        Grid("Guesses and beliefs, by what was believed before the output", head, beliefs),
        Grid(
            "Members that can be found by an attacker who accuses few outsiders",
            ("outsiders accused", "members found, at most"),
            found,
        ),
    ]
