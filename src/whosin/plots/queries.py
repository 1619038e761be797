"""Numbers with limits, one a line: the advantage of each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.forest import draw_forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["QueriesDisplay"]

Array = NDArray[np.float64]


@dataclass
class QueriesDisplay:
    """The advantage of each query with its limits, the first on top, and the advantage of a blind guess as a line.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.queries import QueriesDisplay
    >>> found = np.array([0.5, 0.1])
    >>> display = QueriesDisplay(["nearest", "rarity"], found, found - 0.1, found + 0.1).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['nearest', 'rarity']
    """

    names: Sequence[str]
    estimate: Array
    lower: Array
    upper: Array
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> QueriesDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        self.ax_ = draw_forest(ax, self.names, self.estimate, self.lower, self.upper)
        self.ax_.set_xlabel("advantage (TPR - FPR)")
        return self
