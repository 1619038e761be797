"""The picture of one or more ROC curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whosin.errors import MissingExtraError, check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RocDisplay", "new_axes"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart by colour-blind readers."""


class _Curve(Protocol):
    def tpr(self, fpr: Any) -> Any: ...


def new_axes() -> Axes:
    """Return fresh Matplotlib axes, or say which extra is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("plots take Matplotlib: pip install 'whosin[plot]'") from None
    return plt.subplots(figsize=(5.0, 4.5), layout="constrained")[1]


@dataclass
class RocDisplay:
    """A ROC curve ready to draw.

    Parameters
    ----------
    fpr, tpr : ndarray
        Points of the curve.
    label : str, optional
        Name in the legend.
    scale : {"linear", "log"}
        "log" shows both rates on logarithmic axes, where low false positive rates can be read.
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
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        fresh = not ax.lines
        if fresh:
            blind = np.geomspace(1e-7, 1.0, 50)
            ax.plot(blind, blind, color="0.6", linestyle="--", linewidth=1.0, label="blind guessing")
        line.setdefault("color", COLOURS[(len(ax.lines) - 1) % len(COLOURS)])
        shown = self.fpr > 0 if self.scale == "log" else slice(None)
        ax.plot(self.fpr[shown], self.tpr[shown], label=self.label, **line)
        ax.set_xlabel("false positive rate (outsiders accused)")
        ax.set_ylabel("true positive rate (members found)")
        if self.scale == "log":
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xlim(1e-6, 1.0)
            ax.set_ylim(1e-6, 1.2)
        else:
            ax.set_xlim(0.0, 1.0)
            ax.set_ylim(0.0, 1.02)
        if self.label is not None:
            ax.legend(loc="lower right", frameon=False)
        self.ax_ = ax
        return self
