"""Pictures of an audit: the measured curve with its band, individual risks, and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import check_choice
from whosin.plots.forest import draw_forest
from whosin.plots.roc import COLOURS, GREY, RocDisplay, add_legend, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AuditDisplay", "GroupsDisplay", "IndividualDisplay", "RankedDisplay"]

Array = NDArray[np.float64]


@dataclass
class AuditDisplay:
    """A measured ROC, the band around it and, if one is given, the promised curve, at the same false positive rates.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.audit import AuditDisplay
    >>> fpr = np.linspace(0, 1, 5)
    >>> display = AuditDisplay(fpr, np.sqrt(fpr), fpr, fpr**0.25).plot()
    >>> display.ax_.get_ylabel()
    'true positive rate (members found)'
    """

    fpr: Array
    tpr: Array
    lower: Array
    upper: Array
    label: str = "measured"
    scale: str = "linear"
    promised: Array | None = None
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> AuditDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        scale = check_choice("scale", self.scale, ("linear", "log"))
        curve = RocDisplay(self.fpr, self.tpr, self.label, scale).plot(ax=ax)
        self.ax_ = curve.ax_
        colour = self.ax_.lines[-1].get_color()
        shown = self.fpr > 0 if scale == "log" else slice(None)
        self.ax_.fill_between(
            self.fpr[shown],
            self.lower[shown],
            self.upper[shown],
            color=colour,
            alpha=0.2,
            linewidth=0.0,
            label="limits",
        )
        if self.promised is not None:
            RocDisplay(self.fpr, self.promised, "promised: at most", scale).plot(
                ax=self.ax_, color=COLOURS[1], linestyle="-."
            )
        add_legend(self.ax_, inside=True)
        return self


@dataclass
class IndividualDisplay:
    """Risks of records in rising order, with limits that hold for all at once, and the prior as a line.

    Of n records the i-th fills the width from i/n to (i+1)/n, so that one record is seen as well as many.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.audit import IndividualDisplay
    >>> risk = np.array([0.3, 0.9, 0.5])
    >>> display = IndividualDisplay(risk, risk - 0.1, risk + 0.1, prior=0.5).plot()
    >>> display.ax_.get_ylabel()
    'probability of membership'
    """

    risk: Array
    lower: Array
    upper: Array
    prior: float
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> IndividualDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        edges = np.linspace(0.0, 1.0, len(self.risk) + 1)
        risk, lower, upper = (np.append(side, side[-1:]) for side in (self.risk, self.lower, self.upper))
        ax.step(edges, risk, where="post", color=COLOURS[0], label="probability after the answer")
        ax.fill_between(
            edges, lower, upper, step="post", color=COLOURS[0], alpha=0.2, linewidth=0.0, label="limits, all at once"
        )
        ax.axhline(
            self.prior, color=GREY, linestyle="--", linewidth=1.0, label=f"before the answer: {100 * self.prior:.4g}%"
        )
        ax.set_xlabel("share of the members, from the least to the most exposed")
        ax.set_ylabel("probability of membership")
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(0.0, 1.02)
        add_legend(ax)
        self.ax_ = ax
        return self


@dataclass
class RankedDisplay:
    """The probability of membership of named records with its limits, the most exposed on top, and the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.audit import RankedDisplay
    >>> risk = np.array([0.9, 0.7])
    >>> display = RankedDisplay(["row 4", "row 17"], risk, risk - 0.1, risk + 0.1, prior=0.5).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['row 4', 'row 17']
    """

    names: Sequence[str]
    risk: Array
    lower: Array
    upper: Array
    prior: float
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> RankedDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = draw_forest(ax, self.names, self.risk, self.lower, self.upper, reference=self.prior)
        ax.set_xlim(0.0, 1.02)
        ax.set_xlabel("probability of membership")
        self.ax_ = ax
        return self


@dataclass
class GroupsDisplay:
    """One advantage with its limits for each group, the first on top.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.audit import GroupsDisplay
    >>> found = np.array([0.5, 0.1])
    >>> display = GroupsDisplay(["rare", "common"], found, found - 0.1, found + 0.1).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['rare', 'common']
    """

    names: Sequence[str]
    estimate: Array
    lower: Array
    upper: Array
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> GroupsDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        self.ax_ = draw_forest(ax, self.names, self.estimate, self.lower, self.upper)
        self.ax_.set_xlabel("advantage (TPR - FPR) in the group")
        return self
