"""The advantage against the number of released rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, add_legend, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReleaseSizeDisplay"]

Array = NDArray[np.float64]


@dataclass
class ReleaseSizeDisplay:
    """An advantage with its limits at growing sizes of the release; the limits are drawn at every size as well.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.release_size import ReleaseSizeDisplay
    >>> found = np.array([0.1, 0.3, 0.6])
    >>> display = ReleaseSizeDisplay(np.array([10, 100, 1000]), found, found - 0.1, found + 0.1, "nearest").plot()
    >>> display.ax_.get_xscale(), display.ax_.get_xlabel()
    ('log', 'rows released')
    """

    sizes: NDArray[np.int64]
    estimate: Array
    lower: Array
    upper: Array
    label: str = ""
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> ReleaseSizeDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        ax.plot(self.sizes, self.estimate, "o-", color=COLOURS[0], label=self.label or "estimate")
        ax.fill_between(self.sizes, self.lower, self.upper, color=COLOURS[0], alpha=0.2, linewidth=0.0, label="limits")
        ax.vlines(self.sizes, self.lower, self.upper, color=COLOURS[0], linewidth=1.0)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")
        ax.set_ylim(0.0, max(0.05, 1.1 * float(np.max(self.upper))))
        ax.set_xlabel("rows released")
        ax.set_ylabel("advantage (TPR - FPR)")
        add_legend(ax)
        self.ax_ = ax
        return self
