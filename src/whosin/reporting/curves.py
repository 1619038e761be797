"""The pictures of a curve: measured with its band, promised, or both; with even steps, and with logarithmic ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from whosin.guarantees import Guarantee
from whosin.guarantees.base import belief_after
from whosin.numerics.rounding import confidence, percent, percent_down, percent_up
from whosin.reporting.blocks import Picture, Pictures
from whosin.reporting.painting import RATES, Axis, Line, chart

READ_AT = (0.01, 0.1)
"""False positive rates at which the words beside a picture read the curve."""
LOWEST = 1e-5


def measured_curve(facts: Mapping[str, Any]) -> Line:
    """Return the curve of an audit's ``to_dict()`` with its band."""
    band = facts["band"]
    curves = facts["roc"], band["lower"], band["upper"]
    fpr = np.unique(np.concatenate([*(curve["fpr"] for curve in curves), np.geomspace(LOWEST, 1.0, 61)]))
    tpr, lower, upper = (np.interp(fpr, curve["fpr"], curve["tpr"]) for curve in curves)
    return Line(fpr, tpr, "measured, with its limits", lower, upper)


def roc_pictures(
    measured: Line | None = None, promised: Guarantee | None = None, *, lowest: float = LOWEST, level: float = 0.95
) -> Pictures:
    """Draw the curves with even steps, and with logarithmic ones down to the false positive rate ``lowest``."""
    return Pictures([curve_picture(measured, promised, log=log, lowest=lowest, level=level) for log in (False, True)])


def curve_picture(
    measured: Line | None = None,
    promised: Guarantee | None = None,
    *,
    log: bool = False,
    lowest: float = LOWEST,
    level: float = 0.95,
) -> Picture:
    """Draw the measured curve, the promised one, or both."""
    lines = [] if measured is None else [measured]
    if promised is not None:
        fpr = np.geomspace(lowest, 1.0, 161)
        if not log:
            fpr = np.unique(np.concatenate([[0.0], fpr, np.linspace(0.0, 1.0, 101), 1.0 - fpr]))
        name = "promised: at most" if measured is not None else ""
        lines.append(Line(fpr, np.asarray(promised.roc.tpr(fpr)), name))
    axes = RATES
    if log:
        axes = (replace(RATES[0], low=lowest, log=True), replace(RATES[1], low=lowest, log=True))
    limits = (
        f"Shaded: {confidence(level)} limits, all at once, of attackers who compare this score with a threshold."
        if measured is not None
        else "Members found against outsiders accused; the dashed diagonal is a blind guess."
    )
    caption = (
        "The same at low rates, on logarithmic axes: what an attacker reaches who hardly accuses anybody."
        if log
        else limits
    )
    alt = f"ROC curve on {'logarithmic' if log else 'even'} axes. {_in_words(measured, promised)}"
    return Picture(chart(lines, alt, axes=axes), caption)


def posterior_picture(guarantee: Guarantee) -> Picture:
    """Draw the range of the belief in membership after any output, against the belief before it."""
    prior = np.linspace(0.001, 0.999, 201)
    low, high = np.array([belief_after(guarantee, float(p)) for p in prior]).T
    at_half = belief_after(guarantee, 0.5)
    return Picture(
        chart(
            [Line(prior, high, "", low, high), Line(prior, low)],
            f"Belief after the output against belief before it. From 50% it moves to at least "
            f"{percent_down(at_half[0])} and at most {percent_up(at_half[1])}.",
            axes=(Axis("belief before"), Axis("belief after")),
        ),
        "How far any output can move somebody's belief that a record is in the data.",
    )


def _in_words(measured: Line | None, promised: Guarantee | None) -> str:
    sentences = []
    for rate in READ_AT:
        parts = []
        if measured is not None:
            sides = (measured.y, measured.lower, measured.upper)
            value, low, high = (float(np.interp(rate, measured.x, side)) for side in sides)  # type: ignore[arg-type]
            parts.append(
                f"the measured attack finds {percent(value)} of the members (limits {percent_down(low)} to "
                f"{percent_up(high)})"
            )
        if promised is not None:
            parts.append(f"at most {percent_up(float(promised.tpr_at(rate)))} is promised")
        sentences.append(f"Where {percent(rate)} of the outsiders are accused, {' and '.join(parts)}.")
    return " ".join(sentences)
