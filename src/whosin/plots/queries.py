"""Numbers with limits, one a line: the advantage of each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["QueriesDisplay"]

Array = NDArray[np.float64]


@dataclass
class QueriesDisplay:
    """The advantage of each query with its limits, the first on top, and the advantage of a blind guess as a line."""

    names: Sequence[str]
    estimate: Array
    lower: Array
    upper: Array
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> QueriesDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        place = np.arange(len(self.names))[::-1]
        ax.hlines(place, self.lower, self.upper, color=COLOURS[0])
        ax.plot(self.estimate, place, "o", color=COLOURS[0])
        ax.axvline(0.0, color="0.6", linestyle="--", linewidth=1.0)
        ax.set_yticks(place, list(self.names))
        ax.set_ylim(-0.6, len(self.names) - 0.4)
        ax.set_xlabel("advantage (TPR - FPR)")
        self.ax_ = ax
        return self
