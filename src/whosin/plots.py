"""Pictures: plain arrays in, Matplotlib axes out. Each draws on ``ax``, or on new axes for None, and returns them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import check_choice, missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart by colour-blind readers."""
GREY = "#6E6E6E"
"""Lines that stand for nothing learnt: the blind guess, the prior."""
REFERENCE: dict[str, Any] = {"color": GREY, "linestyle": "--", "linewidth": 1.0}
BAND: dict[str, Any] = {"alpha": 0.2, "linewidth": 0.0}
STYLES = ("-", "--", "-.", ":")
LOWEST = 1e-6
"""Smallest rate on a logarithmic axis."""
NAME_LENGTH, LEGEND_WIDTH = 28, 60
"""Characters on a line of a name, and of the legend."""


def new_axes(height: float = 4.5, width: float = 5.0) -> Axes:
    """Return fresh Matplotlib axes, or say which extra is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing_extra("plots need Matplotlib", "plot") from None
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def draw_curve(
    ax: Axes | None, fpr: Array, tpr: Array, *, label: str | None = None, scale: str = "linear", **line: Any
) -> Axes:
    """Draw a ROC curve; the first on the axes sets their scale and limits.

    On the scale "log" both rates have logarithmic axes, where low false positive rates can be read.
    """
    check_choice("scale", scale, ("linear", "log"))
    ax = new_axes() if ax is None else ax
    if not ax.lines:
        _prepare(ax, fpr, scale)
    line.setdefault("color", COLOURS[(len(ax.lines) - 1) % len(COLOURS)])
    shown = fpr > 0 if scale == "log" else slice(None)
    ax.plot(fpr[shown], tpr[shown], label=label, **line)
    if label is not None:
        _add_legend(ax, inside=True)
    return _named(ax, "false positive rate (outsiders accused)", "true positive rate (members found)")


def draw_measured(
    ax: Axes | None,
    fpr: Array,
    tpr: Array,
    lower: Array,
    upper: Array,
    *,
    label: str = "measured",
    scale: str = "linear",
    promised: Array | None = None,
) -> Axes:
    """Draw a measured ROC, the band around it and, if one is given, the promised curve, at the same rates."""
    ax = draw_curve(ax, fpr, tpr, label=label, scale=scale)
    shown = fpr > 0 if scale == "log" else slice(None)
    colour = ax.lines[-1].get_color()
    ax.fill_between(fpr[shown], lower[shown], upper[shown], color=colour, label="limits", **BAND)
    if promised is not None:
        draw_curve(ax, fpr, promised, label="promised: at most", scale=scale, color=COLOURS[1], linestyle="-.")
    _add_legend(ax, inside=True)
    return ax


def draw_individual(ax: Axes | None, risk: Array, lower: Array, upper: Array, prior: float) -> Axes:
    """Draw risks of records in rising order, with limits that hold for all at once, and the prior as a line.

    Of n records the i-th fills the width from i/n to (i+1)/n, so that one record is seen as well as many.
    """
    ax = new_axes() if ax is None else ax
    edges = np.linspace(0.0, 1.0, len(risk) + 1)
    risk, lower, upper = (np.append(side, side[-1:]) for side in (risk, lower, upper))
    ax.step(edges, risk, where="post", color=COLOURS[0], label="probability after the answer")
    ax.fill_between(edges, lower, upper, step="post", color=COLOURS[0], label="limits, all at once", **BAND)
    ax.axhline(prior, label=f"before the answer: {100 * prior:.4g}%", **REFERENCE)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.02)
    _add_legend(ax)
    return _named(ax, "share of the members, from the least to the most exposed", "probability of membership")


def draw_forest(
    ax: Axes | None, names: Sequence[str], estimate: Array, lower: Array, upper: Array, *, label: str
) -> Axes:
    """Draw one line of limits with its estimate for each name, the first on top, and a dashed line at 0.

    New axes are as tall as the names need. Where there is no estimate (NaN) the limits stand alone.
    """
    shown = [two_lines(name, NAME_LENGTH) for name in names]
    ax = new_axes(height=height_of(shown), width=5.6) if ax is None else ax
    place = np.arange(len(shown))[::-1]
    ax.axvline(0.0, **REFERENCE)
    ax.hlines(place, lower, upper, color=COLOURS[0])
    ax.plot(estimate, place, "o", color=COLOURS[0])
    ax.set_yticks(place, shown, parse_math=False)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.set_xlabel(label)
    return ax


def draw_release_size(
    ax: Axes | None, sizes: NDArray[np.int64], estimate: Array, lower: Array, upper: Array, *, label: str = ""
) -> Axes:
    """Draw an advantage with its limits at growing sizes of the release; the limits are drawn at every size as well."""
    ax = new_axes() if ax is None else ax
    ax.plot(sizes, estimate, "o-", color=COLOURS[0], label=label or "estimate")
    ax.fill_between(sizes, lower, upper, color=COLOURS[0], label="limits", **BAND)
    ax.vlines(sizes, lower, upper, color=COLOURS[0], linewidth=1.0)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")
    ax.set_ylim(0.0, max(0.05, 1.1 * float(np.max(upper))))
    _add_legend(ax)
    return _named(ax, "rows released", "advantage (TPR - FPR)")


def draw_population(ax: Axes | None, per_record: Array, lines: Mapping[str, float]) -> Axes:
    """Draw sorted ε̃ of records, and named horizontal lines.

    Of n records the i-th fills the width from i/n to (i+1)/n. Records without a finite ε̃ leave their width empty and
    are counted in the legend; lines at one height are one line with all their names.
    """
    ax = new_axes() if ax is None else ax
    finite, heights = np.isfinite(per_record), _heights(lines)
    edges = np.linspace(0.0, 1.0, len(per_record) + 1)
    height = np.where(finite, per_record, np.nan)
    unlimited = int(np.sum(~finite))
    label = "knows the pool only (ε̃)" + (f"; without limit: {unlimited:,} records" if unlimited else "")
    ax.step(edges, np.append(height, height[-1:]), where="post", color=COLOURS[0], label=label)
    for i, (value, names) in enumerate(heights.items()):
        named = f"{' and '.join(names)}: {value:.3g}"
        ax.axhline(value, color=COLOURS[1 + i], linestyle=STYLES[1 + i % 3], label=named)
    ax.set_xlim(0.0, 1.0)
    highest = max([0.0, *per_record[finite].tolist(), *heights])
    ax.set_ylim(0.0, 1.05 * highest if highest > 0.0 else 1.0)
    _add_legend(ax)
    return _named(ax, "share of the records, from the least to the most exposed", "privacy parameter ε")


def draw_bounds(
    ax: Axes | None,
    names: Sequence[str],
    quantities: Sequence[str],
    values: Array,
    tightest: Sequence[bool],
    title: str = "",
) -> Axes:
    """Draw one dot for each bound, grouped by the quantity that it limits; the tightest are filled.

    Bounds on different quantities do not compare, so each group has its own heading and its own colour.
    """
    groups = list(dict.fromkeys(quantities))
    lines = len(names) + len(groups)
    ax = new_axes(height=1.0 + 0.27 * lines, width=6.0) if ax is None else ax
    place, labels = lines - 1, []
    for colour, group in zip(COLOURS, groups, strict=False):
        labels.append((place, f"{group}, at most"))
        place -= 1
        for i in [i for i, quantity in enumerate(quantities) if quantity == group]:
            ax.hlines(place, 0.0, values[i], color=colour, linewidth=1.0)
            ax.plot(values[i], place, "o", color=colour, markerfacecolor=colour if tightest[i] else "none")
            labels.append((place, names[i]))
            place -= 1
    ax.set_yticks([at for at, _ in labels], [text for _, text in labels], parse_math=False)
    for tick, (_, text) in zip(ax.get_yticklabels(), labels, strict=True):
        tick.set_fontweight("bold" if text.endswith(", at most") else "normal")
    ax.set_ylim(-0.6, lines - 0.4)
    ax.set_xlim(0.0, 1.03)
    ax.set_xlabel("bound (filled: the tightest of its quantity)")
    ax.set_title(title, loc="left", fontsize="medium")
    return ax


def draw_bounds_by_epsilon(
    ax: Axes | None, epsilon: Array, curves: Mapping[str, Array], quantity: str, marked: float
) -> Axes:
    """Draw bounds on one quantity against ε, a dotted line at one ε; curves that coincide are one with all names."""
    ax = new_axes(height=5.0, width=6.0) if ax is None else ax
    distinct: list[tuple[list[str], Array]] = []
    for name, curve in curves.items():
        same = next((names for names, other in distinct if np.allclose(curve, other, atol=1e-9)), None)
        if same is None:
            distinct.append(([name], curve))
        else:
            same.append(name)
    for i, (names, curve) in enumerate(distinct):
        label = textwrap.fill("; ".join(names), LEGEND_WIDTH)
        colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
        ax.plot(epsilon, curve, color=colour, linestyle=style, label=label)
    ax.axvline(marked, color=GREY, linestyle=":", linewidth=1.0)
    ax.set_xlim(float(epsilon[0]), float(epsilon[-1]))
    ax.set_ylim(0.5 if quantity == "accuracy" else 0.0, 1.02)
    _add_legend(ax)
    return _named(ax, "privacy parameter ε (dotted: the one of the table)", f"{quantity}, at most")


def height_of(names: Sequence[str]) -> float:
    """Return the height in inches of a picture with one line of limits for each name."""
    return 0.9 + (0.4 if any("\n" in two_lines(name, NAME_LENGTH) for name in names) else 0.3) * len(names)


def two_lines(text: str, width: int) -> str:
    """Return the text on at most two lines, with … where it does not fit; words longer than a line are cut."""
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1][: width - 1].rstrip()}…"]
    return "\n".join(lines)


def _prepare(ax: Axes, fpr: Array, scale: str) -> None:
    """Draw the diagonal and set the scale and the limits."""
    blind = np.geomspace(1e-7, 1.0, 50)
    ax.plot(blind, blind, label="blind guessing", **REFERENCE)
    if scale == "log":
        lowest = max(LOWEST, float(fpr[fpr > 0].min(initial=0.1)))
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(lowest, 1.0)
        ax.set_ylim(lowest, 1.2)
    else:
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(0.0, 1.02)


def _add_legend(ax: Axes, *, inside: bool = False) -> None:
    """Write the legend above the axes, where it hides nothing, or inside at the lower right; a $ stays a $."""
    if inside:
        legend = ax.legend(loc="lower right", frameon=False)
    else:
        legend = ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2, borderpad=0.0, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _named(ax: Axes, across: str, along: str) -> Axes:
    ax.set_xlabel(across)
    ax.set_ylabel(along)
    return ax


def _heights(lines: Mapping[str, float]) -> dict[float, list[str]]:
    """Return the names at each finite height, heights that differ by rounding alone joined."""
    heights: dict[float, list[str]] = {}
    for name, value in lines.items():
        if np.isfinite(value):
            same = next((height for height in heights if np.isclose(height, value, rtol=1e-6, atol=0.0)), value)
            heights.setdefault(same, []).append(name)
    return heights
