"""How unlikely a measurement is under each claimed ε: where the curve crosses the level, claims are refuted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, GREY, add_legend, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ChanceDisplay"]

Array = NDArray[np.float64]

LOWEST = 1e-6
"""Smallest chance on the axis."""


@dataclass
class ChanceDisplay:
    """An upper limit on the chance of what was seen, by claimed ε, and the chance at which a claim is refuted.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.chance import ChanceDisplay
    >>> epsilon = np.linspace(0, 4, 9)
    >>> display = ChanceDisplay(epsilon, np.exp(epsilon - 4), level=0.05).plot()
    >>> display.ax_.get_xlabel()
    'ε that is claimed'
    """

    epsilon: Array
    chance: Array
    level: float
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> ChanceDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        ax.plot(self.epsilon, np.maximum(self.chance, LOWEST), color=COLOURS[0], label="chance, at most")
        ax.axhline(
            self.level, color=GREY, linestyle="--", linewidth=1.0, label=f"refuted below {100 * self.level:.4g}%"
        )
        ax.set_yscale("log")
        ax.set_xlim(float(self.epsilon[0]), float(self.epsilon[-1]))
        ax.set_ylim(LOWEST, 1.5)
        ax.set_xlabel("ε that is claimed")
        ax.set_ylabel("chance of so many right guesses")
        add_legend(ax)
        self.ax_ = ax
        return self
