"""The pictures of a curve: measured with its band, promised, or both; with even steps, and with logarithmic ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.measuring.band import Band
from whosin.guarantees import Guarantee
from whosin.guarantees.dp import DifferentialPrivacy
from whosin.plots.audit import AuditDisplay
from whosin.plots.posterior import PosteriorDisplay
from whosin.plots.roc import COLOURS, RocDisplay
from whosin.reporting.blocks import Picture, Pictures
from whosin.reporting.drawing import as_percent, draw, label_axis
from whosin.reporting.numbers import confidence, percent, percent_down, percent_up
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["belief_after", "posterior_picture", "roc_pictures"]

Array = NDArray[np.float64]

READ_AT = (0.01, 0.1)
"""False positive rates at which the words beside a picture read the curve."""


def roc_pictures(
    measured: tuple[Roc, Band] | None = None, promised: Guarantee | None = None, *, lowest: float = 1e-5
) -> Pictures:
    """Draw the curves with even steps, and with logarithmic ones down to the false positive rate ``lowest``."""
    words = _in_words(measured, promised)
    limits = ""
    if measured is not None:
        level = confidence(measured[1].confidence_level)
        limits = f" Shaded: {level} limits, all at once, of attackers who compare this score with a threshold."
    captions = {
        "linear": "Members found against outsiders accused; the dashed diagonal is a blind guess." + limits,
        "log": "The same at low rates, on logarithmic axes: what an attacker reaches who hardly accuses anybody.",
    }
    return Pictures(
        [
            draw(
                f"roc-{scale}",
                lambda ax, scale=scale: _paint(ax, measured, promised, scale, lowest),  # type: ignore[misc]
                alt=f"ROC curve on {'even' if scale == 'linear' else 'logarithmic'} axes. {words}",
                caption=caption,
            )
            for scale, caption in captions.items()
        ]
    )


def belief_after(guarantee: Guarantee, prior: float) -> tuple[float, float]:
    """Return the range of the belief after any output, in the world that the guarantee's adjacency speaks of.

    Add/remove DP speaks of independent inclusion, replace-one DP of data sets of one known size.
    """
    if isinstance(guarantee, DifferentialPrivacy) and getattr(guarantee, "adjacency", "add_remove") == "replace":
        return guarantee.posterior(prior, world="fixed_size")
    return guarantee.posterior(prior)


def posterior_picture(guarantee: Guarantee) -> Picture:
    """Draw the range of the belief in membership after any output, against the belief before it."""
    prior = np.linspace(0.001, 0.999, 201)
    ends = np.array([belief_after(guarantee, float(p)) for p in prior])
    low, high = belief_after(guarantee, 0.5)
    return draw(
        "posterior",
        lambda ax: _paint_beliefs(ax, PosteriorDisplay(prior, ends[:, 0], ends[:, 1])),
        alt=f"Belief after the output against belief before it. From 50% it moves to at least {percent_down(low)} and "
        f"at most {percent_up(high)}.",
        caption="How far any output can move somebody's belief that a record is in the data.",
    )


def _paint_beliefs(ax: Axes, display: PosteriorDisplay) -> None:
    display.plot(ax=ax)
    label_axis(ax.xaxis, as_percent)
    label_axis(ax.yaxis, as_percent)


def _paint(ax: Axes, measured: tuple[Roc, Band] | None, promised: Guarantee | None, scale: str, lowest: float) -> None:
    curve = None if promised is None else promised.roc
    fpr = _grid([roc for roc in (None if measured is None else measured[0], curve) if roc is not None], scale, lowest)
    allowed = None if curve is None else np.asarray(curve.tpr(fpr))
    if measured is not None:
        roc, band = measured
        sides = roc.tpr(fpr), band.lower.tpr(fpr), band.upper.tpr(fpr)
        AuditDisplay(fpr, *sides, "measured", scale, allowed).plot(ax=ax)
    elif allowed is not None:
        RocDisplay(fpr, allowed, "promised: at most", scale).plot(ax=ax, color=COLOURS[1], linestyle="-.")
    if scale == "log":
        ax.set_xlim(lowest, 1.0)
        ax.set_ylim(lowest, 1.2)
    label_axis(ax.xaxis, as_percent)
    label_axis(ax.yaxis, as_percent)


def _grid(curves: Sequence[Roc], scale: str, lowest: float) -> Array:
    """Return false positive rates that show the curves; the corners of a curve are among them where they are few."""
    ends = np.geomspace(lowest, 1.0, 121)
    even = [np.linspace(0.0, 1.0, 101), 1.0 - ends] if scale == "linear" else []
    corners = [roc.vertices[:, 0] for roc in curves if roc.vertices is not None and len(roc.vertices) <= 50]
    return np.unique(np.concatenate([[0.0], ends, *corners, *even]))


def _in_words(measured: tuple[Roc, Band] | None, promised: Guarantee | None) -> str:
    sentences = []
    for rate in READ_AT:
        parts = []
        if measured is not None:
            roc, band = measured
            parts.append(
                f"the measured attack finds {percent(float(roc.tpr(rate)))} of the members (limits "
                f"{percent_down(float(band.lower.tpr(rate)))} to {percent_up(float(band.upper.tpr(rate)))})"
            )
        if promised is not None:
            parts.append(f"at most {percent_up(float(promised.tpr_at(rate)))} is promised")
        sentences.append(f"Where {percent(rate)} of the outsiders are accused, {' and '.join(parts)}.")
    return " ".join(sentences)
