"""The picture of one or more ROC curves, and what all pictures share: axes, colours, legends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whosin.errors import check_choice, missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "GREY", "RocDisplay", "add_legend", "new_axes"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart by colour-blind readers."""
GREY = "#6E6E6E"
"""Lines that stand for nothing learnt: the blind guess, the prior."""
LOWEST = 1e-6
"""Smallest rate on a logarithmic axis."""


class _Curve(Protocol):
    def tpr(self, fpr: Any) -> Any: ...


def new_axes(height: float = 4.5, width: float = 5.0) -> Axes:
    """Return fresh Matplotlib axes, or say which extra is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing_extra("plots need Matplotlib", "plot") from None
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def add_legend(ax: Axes, *, inside: bool = False) -> None:
    """Write the legend above the axes, where it hides nothing, or inside at the lower right; a $ stays a $."""
    if inside:
        legend = ax.legend(loc="lower right", frameon=False)
    else:
        legend = ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2, borderpad=0.0, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


@dataclass
class RocDisplay:
    """A ROC curve ready to draw.

    Parameters
    ----------
    fpr, tpr : ndarray
        Points of the curve.
    label : str, optional
        Name in the legend.
    scale : {"linear", "log"}, default "linear"
        "log" shows both rates on logarithmic axes, where low false positive rates can be read.

    Examples
    --------
    >>> import whosin as wi
    >>> from whosin.plots.roc import RocDisplay
    >>> display = RocDisplay.from_roc(wi.PureDP(1.0).roc, label="ε = 1", scale="log").plot()
    >>> display.ax_.get_xscale(), display.ax_.get_legend_handles_labels()[1]
    ('log', ['blind guessing', 'ε = 1'])
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    label: str | None = None
    scale: str = "linear"
    ax_: Any = field(default=None, init=False)

    @classmethod
    def from_roc(cls, roc: _Curve, *, label: str | None = None, scale: str = "linear") -> RocDisplay:
        """Sample a curve densely at both ends."""
        ends = np.geomspace(1e-7, 0.5, 400)
        fpr = np.unique(np.concatenate([[0.0], ends, np.linspace(0.001, 0.999, 400), 1.0 - ends, [1.0]]))
        return cls(fpr, np.asarray(roc.tpr(fpr)), label, check_choice("scale", scale, ("linear", "log")))

    def plot(self, ax: Axes | None = None, **line: Any) -> RocDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``; the first curve on them sets their limits."""
        ax = new_axes() if ax is None else ax
        ax.set_xlabel("false positive rate (outsiders accused)")
        ax.set_ylabel("true positive rate (members found)")
        if not ax.lines:
            self._prepare(ax)
        line.setdefault("color", COLOURS[(len(ax.lines) - 1) % len(COLOURS)])
        shown = self.fpr > 0 if self.scale == "log" else slice(None)
        ax.plot(self.fpr[shown], self.tpr[shown], label=self.label, **line)
        if self.label is not None:
            add_legend(ax, inside=True)
        self.ax_ = ax
        return self

    def _prepare(self, ax: Axes) -> None:
        """Draw the diagonal and set the scale and the limits."""
        blind = np.geomspace(1e-7, 1.0, 50)
        ax.plot(blind, blind, color=GREY, linestyle="--", linewidth=1.0, label="blind guessing")
        if self.scale == "log":
            lowest = max(LOWEST, float(self.fpr[self.fpr > 0].min(initial=0.1)))
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xlim(lowest, 1.0)
            ax.set_ylim(lowest, 1.2)
        else:
            ax.set_xlim(0.0, 1.0)
            ax.set_ylim(0.0, 1.02)
