"""The bounds of the literature: all of them at one ε, and those on one quantity by ε."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, GREY, add_legend, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BoundsCurvesDisplay", "BoundsDisplay"]

Array = NDArray[np.float64]

STYLES = ("-", "--", "-.", ":")
LEGEND_WIDTH = 60
"""Characters on a line of the legend."""


@dataclass
class BoundsDisplay:
    """One dot for each bound, grouped by the quantity that it limits; the tightest are filled.

    Bounds on different quantities do not compare, so each group has its own heading and its own colour.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.bounds import BoundsDisplay
    >>> display = BoundsDisplay(["one", "other"], ["accuracy"] * 2, np.array([0.73, 0.8]), [True, False]).plot()
    >>> display.ax_.get_xlabel()
    'bound (filled: the tightest of its quantity)'
    """

    names: Sequence[str]
    quantities: Sequence[str]
    values: Array
    tightest: Sequence[bool]
    title: str = ""
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> BoundsDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        groups = list(dict.fromkeys(self.quantities))
        lines = len(self.names) + len(groups)
        ax = new_axes(height=1.0 + 0.27 * lines, width=6.0) if ax is None else ax
        place, labels = lines - 1, []
        for colour, group in zip(COLOURS, groups, strict=False):
            labels.append((place, f"{group}, at most"))
            place -= 1
            for i in [i for i, quantity in enumerate(self.quantities) if quantity == group]:
                ax.hlines(place, 0.0, self.values[i], color=colour, linewidth=1.0)
                fill = colour if self.tightest[i] else "none"
                ax.plot(self.values[i], place, "o", color=colour, markerfacecolor=fill)
                labels.append((place, self.names[i]))
                place -= 1
        ax.set_yticks([at for at, _ in labels], [text for _, text in labels], parse_math=False)
        for tick, (_, text) in zip(ax.get_yticklabels(), labels, strict=True):
            tick.set_fontweight("bold" if text.endswith(", at most") else "normal")
        ax.set_ylim(-0.6, lines - 0.4)
        ax.set_xlim(0.0, 1.03)
        ax.set_xlabel("bound (filled: the tightest of its quantity)")
        ax.set_title(self.title, loc="left", fontsize="medium")
        self.ax_ = ax
        return self


@dataclass
class BoundsCurvesDisplay:
    """Bounds on one quantity against ε, with a dotted line at one ε; curves that coincide are one with all names.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.plots.bounds import BoundsCurvesDisplay
    >>> epsilon = np.linspace(0, 4, 9)
    >>> curves = {"one": np.tanh(epsilon / 2), "the same": np.tanh(epsilon / 2)}
    >>> display = BoundsCurvesDisplay(epsilon, curves, "advantage", marked=1.0).plot()
    >>> display.ax_.get_legend_handles_labels()[1]
    ['one; the same']
    """

    epsilon: Array
    curves: Mapping[str, Array]
    quantity: str
    marked: float
    ax_: Any = field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> BoundsCurvesDisplay:
        """Draw on ``ax`` or on new axes, which are kept as ``ax_``."""
        ax = new_axes(height=5.0, width=6.0) if ax is None else ax
        for i, (names, curve) in enumerate(self._distinct()):
            ax.plot(
                self.epsilon,
                curve,
                color=COLOURS[i % len(COLOURS)],
                linestyle=STYLES[i % len(STYLES)],
                label=textwrap.fill("; ".join(names), LEGEND_WIDTH),
            )
        ax.axvline(self.marked, color=GREY, linestyle=":", linewidth=1.0)
        ax.set_xlabel("privacy parameter ε (dotted: the one of the table)")
        ax.set_ylabel(f"{self.quantity}, at most")
        ax.set_xlim(float(self.epsilon[0]), float(self.epsilon[-1]))
        ax.set_ylim(0.5 if self.quantity == "accuracy" else 0.0, 1.02)
        add_legend(ax)
        self.ax_ = ax
        return self

    def _distinct(self) -> list[tuple[list[str], Array]]:
        distinct: list[tuple[list[str], Array]] = []
        for name, curve in self.curves.items():
            same = next((names for names, other in distinct if np.allclose(curve, other, atol=1e-9)), None)
            if same is None:
                distinct.append(([name], curve))
            else:
                same.append(name)
        return distinct
