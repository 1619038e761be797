"""Matplotlib to inline SVG: reproducible, legible on light and dark pages, and with no name that meets another's."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from whosin.plots.roc import COLOURS, GREY
from whosin.reporting.blocks import Picture
from whosin.reporting.numbers import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["as_percent", "draw", "label_axis"]

INK = "#010203"
"""Stands for the colour of the text of the page, which the reader's light or dark setting decides."""

_COLOURS = {
    INK: "currentColor",
    GREY.lower(): "var(--quiet)",
    **{colour.lower(): f"var(--line-{i})" for i, colour in enumerate(COLOURS[:4])},
}
"""Colours that the style sheet sets for light and for dark pages."""

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "whosin",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 2.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def draw(
    name: str, paint: Callable[[Axes], Any], *, alt: str, caption: str, size: tuple[float, float] = (5.0, 4.2)
) -> Picture:
    """Let ``paint`` draw on fresh axes and return the picture; ``name`` is unique in the report.

    The reader's own Matplotlib settings are set aside and put back, and no global figure is left behind.
    """
    import matplotlib
    from matplotlib.figure import Figure

    stream = io.StringIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        # The browser draws the letters, so a letter that Matplotlib's own font lacks does no harm.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        paint(figure.subplots())
        figure.savefig(stream, format="svg", metadata=_NO_METADATA)
    return Picture(_inline(stream.getvalue(), clean(name), alt), alt, caption)


def label_axis(axis: Axis, text: Callable[[float], str]) -> None:
    """Write plain text at the large ticks of an axis, even or logarithmic, and leave the small ones out."""
    from matplotlib.ticker import NullLocator

    axis.set_major_formatter(lambda value, _: text(float(value)))
    axis.set_minor_locator(NullLocator())


def as_percent(share: float) -> str:
    """Return the text of a tick that marks a share."""
    return f"{100.0 * share:.6g}%"


def _inline(svg: str, name: str, alt: str) -> str:
    """Return the drawing without namespaces, style sheet and fixed size, its ids prefixed, its ink that of the page."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        parent.tag = _local(parent.tag)
        parent.attrib = {_local(key): _own(_local(key), value, name) for key, value in parent.attrib.items()}
        for child in [child for child in parent if _local(child.tag) == "style"]:
            parent.remove(child)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": alt,
        "style": "stroke-linejoin: round; stroke-linecap: butt",
    }
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _own(key: str, value: str, name: str) -> str:
    """Make a name that the drawing uses its own, and its ink the page's."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    for given, shown in _COLOURS.items():
        value = value.replace(given, shown)
    return _REFERENCE.sub(rf"url(#{name}-\1)", value)
