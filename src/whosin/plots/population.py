"""The picture of a population: every record's practical parameter against the worst-case lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, add_legend, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PopulationDisplay"]


@dataclass
class PopulationDisplay:
    """Sorted ε̃ of the records, and named horizontal lines.

    Of n records the i-th fills the width from i/n to (i+1)/n. Records without a finite ε̃ leave their width empty and
    are counted in the legend; lines at one height are one line with all their names.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.population import PopulationDisplay
    >>> display = PopulationDisplay(np.array([0.1, 0.4, 0.2]), {"label": 2.0, "limit": 2.0}).plot()
    >>> display.ax_.get_legend_handles_labels()[1]
    ['knows the pool only (ε̃)', 'label and limit: 2']
    """

    per_record: NDArray[np.float64]
    lines: Mapping[str, float]
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> PopulationDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes() if ax is None else ax
        finite = np.isfinite(self.per_record)
        edges = np.linspace(0.0, 1.0, len(self.per_record) + 1)
        height = np.where(finite, self.per_record, np.nan)
        unlimited = int(np.sum(~finite))
        label = "knows the pool only (ε̃)" + (f"; without limit: {unlimited:,} records" if unlimited else "")
        ax.step(edges, np.append(height, height[-1:]), where="post", color=COLOURS[0], label=label)
        for i, (value, names) in enumerate(self._heights().items()):
            ax.axhline(
                value,
                color=COLOURS[1 + i],
                linestyle=("--", "-.", ":")[i % 3],
                label=f"{' and '.join(names)}: {value:.3g}",
            )
        ax.set_xlabel("share of the records, from the least to the most exposed")
        ax.set_ylabel("privacy parameter ε")
        ax.set_xlim(0.0, 1.0)
        highest = max([0.0, *self.per_record[finite].tolist(), *self._heights()])
        ax.set_ylim(0.0, 1.05 * highest if highest > 0.0 else 1.0)
        add_legend(ax)
        self.ax_ = ax
        return self

    def _heights(self) -> dict[float, list[str]]:
        """Return the names at each finite height, heights that differ by rounding alone joined."""
        heights: dict[float, list[str]] = {}
        for name, value in self.lines.items():
            if np.isfinite(value):
                same = next((height for height in heights if np.isclose(height, value, rtol=1e-6, atol=0.0)), value)
                heights.setdefault(same, []).append(name)
        return heights
