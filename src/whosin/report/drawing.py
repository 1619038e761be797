"""Matplotlib to inline SVG: reproducible, legible on light and dark pages, and with no name that meets another's."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from whosin.errors import MissingExtraError
from whosin.report.blocks import Picture
from whosin.report.words import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

INK = "#010203"
"""Stands for the colour of the text of the page, which the reader's light or dark setting decides."""

_STYLE: dict[str, Any] = {
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
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("reports take Jinja2 and Matplotlib: pip install 'whosin[report]'") from None
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


def _inline(svg: str, name: str, alt: str) -> str:
    """Return the drawing without namespaces, metadata and fixed size, its ids prefixed, its ink that of the page."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        parent.tag = _local(parent.tag)
        parent.attrib = {_local(key): _own(_local(key), value, name) for key, value in parent.attrib.items()}
        for child in [child for child in parent if _local(child.tag) in ("metadata", "style")]:
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
    return _REFERENCE.sub(rf"url(#{name}-\1)", value).replace(INK, "currentColor")
