"""The picture of a population: every record's practical parameter against the worst-case lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PopulationDisplay"]


@dataclass
class PopulationDisplay:
    """Sorted ε̃ of the records, and named horizontal lines."""

    per_record: NDArray[np.float64]
    lines: Mapping[str, float]
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> PopulationDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        share = (np.arange(len(self.per_record)) + 1) / len(self.per_record)
        ax.step(share, self.per_record, where="post", color=COLOURS[0], label="knows the pool only (ε̃)")
        for i, (label, value) in enumerate(self.lines.items()):
            if np.isfinite(value):
                ax.axhline(
                    value, color=COLOURS[1 + i], linestyle=("--", "-.", ":")[i % 3], label=f"{label}: {value:.3g}"
                )
        ax.set_xlabel("share of the records, from the least to the most exposed")
        ax.set_ylabel("privacy parameter ε")
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(bottom=0.0)
        ax.legend(frameon=False)
        self.ax_ = ax
        return self
