"""Numbers with limits, one a line with its name: what the pictures of groups, queries and ranked records share."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.plots.roc import COLOURS, GREY, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_forest", "height_of", "two_lines"]

Array = NDArray[np.float64]

NAME_LENGTH = 28
"""Characters on a line of a name."""


def draw_forest(
    ax: Axes | None, names: Sequence[str], estimate: Array, lower: Array, upper: Array, *, reference: float = 0.0
) -> Axes:
    """Draw one line of limits with its estimate for each name, the first on top, and the reference as a dashed line.

    New axes are as tall as the names need. Where there is no estimate (NaN) the limits stand alone.
    """
    shown = [two_lines(name, NAME_LENGTH) for name in names]
    ax = new_axes(height=height_of(shown), width=5.6) if ax is None else ax
    place = np.arange(len(shown))[::-1]
    ax.axvline(reference, color=GREY, linestyle="--", linewidth=1.0)
    ax.hlines(place, lower, upper, color=COLOURS[0])
    ax.plot(estimate, place, "o", color=COLOURS[0])
    ax.set_yticks(place, shown, parse_math=False)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    return ax


def height_of(names: Sequence[str]) -> float:
    """Return the height in inches of a picture with one line of limits for each name."""
    return 0.9 + (0.4 if any("\n" in two_lines(name, NAME_LENGTH) for name in names) else 0.3) * len(names)


def two_lines(text: str, width: int) -> str:
    """Return the text on at most two lines, with … where it does not fit; words longer than a line are cut."""
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1][: width - 1].rstrip()}…"]
    return "\n".join(lines)
