"""What somebody believes after the output, against what they believed before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, GREY, add_legend, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PosteriorDisplay"]

Array = NDArray[np.float64]


@dataclass
class PosteriorDisplay:
    """The range of the posterior of membership at each prior, and the prior itself as a line.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.posterior import PosteriorDisplay
    >>> prior = np.linspace(0.01, 0.99, 9)
    >>> display = PosteriorDisplay(prior, prior**2, np.sqrt(prior)).plot()
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('belief in membership before the output', 'belief in membership after the output')
    """

    prior: Array
    lower: Array
    upper: Array
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> PosteriorDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        ax.fill_between(self.prior, self.lower, self.upper, color=COLOURS[0], alpha=0.2, linewidth=0.0)
        ax.plot(self.prior, self.upper, color=COLOURS[0], label="at most")
        ax.plot(self.prior, self.lower, color=COLOURS[1], linestyle="-.", label="at least")
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linestyle="--", linewidth=1.0, label="unchanged")
        ax.set_xlabel("belief in membership before the output")
        ax.set_ylabel("belief in membership after the output")
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(0.0, 1.02)
        add_legend(ax, inside=True)
        self.ax_ = ax
        return self
