"""The report of a promise held against a measurement, and the section of it in the report of an audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whosin.auditing import Comparison, OneRunComparison
from whosin.numerics.rounding import about, at_least, at_most, capital, confidence, percent_down, percent_up
from whosin.reporting.blocks import Block, Fold, Grid, Report, Section, Text, assumed, question, untested
from whosin.reporting.promise import promise_pictures
from whosin.reporting.provenance import Setting, reproduce


def comparison_report(result: Comparison | OneRunComparison, setting: Setting) -> Report:
    """Return the report of the verdict; how the measurement was obtained stands in the report of the audit."""
    guarantee = result.guarantee
    sections = (
        question(f"{guarantee} was promised, and attacks were measured. Do the two fit together?"),
        Section("answer", "The answer", promised_against_measured(result, prior=0.5)),
        Section("picture", "The picture of the promise", promise_pictures(guarantee)),
        assumed(
            guarantee.assumes,
            Text("The promise speaks of this comparison, and the measurement has to be of the same one:"),
        ),
        untested(_UNTESTED),
        reproduce(
            setting,
            call=f"….compare(wi.{guarantee!r})",
            unknown="The measurement is not kept in the comparison: report the audit for it, with this guarantee.",
        ),
    )
    return Report("Does the measurement fit the promise?", "report of a promise and a measurement", sections)


def held_against(result: Any, setting: Setting) -> Iterator[Section]:
    """Return the section that holds a measurement against the promise, if there is one."""
    if setting.guarantee is not None:
        found = promised_against_measured(result.compare(setting.guarantee), prior=0.5)
        yield Section("promise", "Promised versus measured", found)


def promised_against_measured(found: Comparison | OneRunComparison, prior: float) -> list[Block]:
    """Return the verdict, its reason, its numbers and what was promised."""
    level = confidence(found.confidence_level)
    rows = _one_run_rows(found) if isinstance(found, OneRunComparison) else _rows(found)
    return [
        Text(f"The measurement, held against the promise: {found.verdict}.", "answer"),
        Text(capital(found.text)),
        Fold(
            "What was promised, and the numbers",
            [
                Text(found.guarantee.explain(prior)),
                Grid(f"{found.guarantee} against the measurement ({level} confidence)", ("what", "value"), rows),
            ],
        ),
    ]


def _rows(found: Comparison) -> list[tuple[str, str]]:
    return [
        ("advantage promised, at most", at_most(found.promised_advantage)),
        ("advantage measured, estimate", about(found.advantage.estimate)),
        ("advantage measured, at least", at_least(found.advantage.lower)),
        ("advantage measured, at most", at_most(found.advantage.upper)),
        ("outsiders accused by the attack held against the promise, at most", percent_up(found.fpr_upper)),
        ("members found by it, at least", percent_down(found.tpr_lower)),
        ("members that the promise lets it find, at most", percent_up(found.promised_tpr)),
        (f"ε of the measured game at δ = {found.delta:g}, at least", at_least(found.epsilon_lower)),
    ]


def _one_run_rows(found: OneRunComparison) -> list[tuple[str, str]]:
    return [
        ("ε promised", f"{found.epsilon_promised:g}"),
        (f"ε measured at δ = {found.delta:g}, at least", at_least(found.epsilon_lower)),
        ("chance of so many right guesses if the promise held, at most", percent_up(found.p_value)),
    ]


_UNTESTED = (
    "Other attackers than those that were measured: a promise that no attack refuted is not shown to hold.",
    "Further releases from the same data: each adds to what is given away.",
    "Other harms: what the release says about everybody, members or not, can still be used against a person.",
)
