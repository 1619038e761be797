"""Pictures of an audit: the measured curve with its band, individual risks, and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import check_choice
from whosin.plots.roc import COLOURS, RocDisplay, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AuditDisplay", "GroupsDisplay", "IndividualDisplay"]

Array = NDArray[np.float64]


@dataclass
class AuditDisplay:
    """A measured ROC and the band around it, all three at the same false positive rates."""

    fpr: Array
    tpr: Array
    lower: Array
    upper: Array
    label: str = "measured"
    scale: str = "linear"
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> AuditDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        scale = check_choice("scale", self.scale, ("linear", "log"))
        curve = RocDisplay(self.fpr, self.tpr, self.label, scale).plot(ax=ax)
        colour = curve.ax_.lines[-1].get_color()
        shown = self.fpr > 0 if scale == "log" else slice(None)
        curve.ax_.fill_between(
            self.fpr[shown], self.lower[shown], self.upper[shown], color=colour, alpha=0.2, linewidth=0.0
        )
        self.ax_ = curve.ax_
        return self


@dataclass
class IndividualDisplay:
    """Risks of records in rising order, with limits that hold for all at once, and the prior as a line."""

    risk: Array
    lower: Array
    upper: Array
    prior: float
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> IndividualDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        share = (np.arange(len(self.risk)) + 1) / len(self.risk)
        ax.fill_between(share, self.lower, self.upper, step="post", color=COLOURS[0], alpha=0.2, linewidth=0.0)
        ax.step(share, self.risk, where="post", color=COLOURS[0], label="risk after the query")
        ax.axhline(self.prior, color="0.6", linestyle="--", linewidth=1.0, label=f"before: {self.prior:g}")
        ax.set_xlabel("share of the members, from the least to the most exposed")
        ax.set_ylabel("probability of membership")
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(0.0, 1.0)
        ax.legend(loc="upper left", frameon=False)
        self.ax_ = ax
        return self


@dataclass
class GroupsDisplay:
    """One advantage with its limits for each group."""

    names: Sequence[str]
    estimate: Array
    lower: Array
    upper: Array
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> GroupsDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        place = np.arange(len(self.names))
        ax.hlines(place, self.lower, self.upper, color=COLOURS[0])
        ax.plot(self.estimate, place, "o", color=COLOURS[0])
        ax.axvline(0.0, color="0.6", linestyle="--", linewidth=1.0)
        ax.set_yticks(place, list(self.names))
        ax.set_xlabel("advantage (TPR - FPR) of the attack in the group")
        self.ax_ = ax
        return self
