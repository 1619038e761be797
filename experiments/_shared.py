"""What all experiments share: one style for the pictures, and JSON and PNG files in a folder ``results/``."""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from whosin.plots import COLOURS

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = COLOURS
GREY = "0.45"

STYLE = {
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.size": 9,
    "grid.color": "0.9",
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.8,
}

styled = matplotlib.rc_context(STYLE)
"""Decorator of every ``draw``: the same style, left as it was afterwards."""


def percent(axis: Any) -> None:
    """Label an axis of probabilities in percent."""
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def new_figure(panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure with that many panels side by side (no pyplot, so that nothing stays open)."""
    figure = Figure(figsize=(5.6, 4.0) if panels == 1 else (9.6, 4.0))
    return figure, [figure.add_subplot(1, panels, number + 1) for number in range(panels)]


def to_text(data: dict[str, Any]) -> str:
    """Return JSON with lists of numbers on as few lines as fit 118 characters."""

    def wrapped(numbers: re.Match[str]) -> str:
        body, indent = " ".join(numbers["body"].split()), numbers["indent"]
        if len(body) < 90:
            return f"[{body}]"
        return f"[\n{textwrap.fill(body, 118, initial_indent=indent + ' ', subsequent_indent=indent + ' ')}\n{indent}]"

    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    return re.sub(r"\[(?P<body>[-+.\de,\s]+)\n(?P<indent> *)\]", wrapped, text) + "\n"


@dataclass(frozen=True)
class Results:
    """A folder of results: ``<name>.json`` and, drawn from it, ``<name>.png``.

    ``helpers`` are the functions beside ``draw`` that decide how a picture looks.
    """

    folder: Path
    helpers: tuple[Callable[..., Any], ...] = ()

    def read(self, name: str) -> dict[str, Any]:
        """Return the numbers of ``<name>.json``."""
        data: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        return data

    def stamp(self, name: str, draw: Callable[..., Figure]) -> str:
        """Return a digest of the JSON file and of what draws it: a PNG carries the one that it was made from."""
        text = (self.folder / f"{name}.json").read_text(encoding="utf-8")
        sources = (inspect.getsource(part) for part in (draw, *self.helpers))
        return hashlib.sha256((text + "".join(sources)).encode()).hexdigest()

    def save(self, name: str, data: dict[str, Any], draw: Callable[[dict[str, Any]], Figure] | None = None) -> None:
        """Write ``<name>.json`` and, if it can be drawn, ``<name>.png``."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{name}.json").write_text(to_text(data), encoding="utf-8")
        written = f"{name}.json"
        if draw is not None:
            save_png(draw(self.read(name)), self.folder / f"{name}.png", self.stamp(name, draw))
            written += f", {name}.png"
        print(f"{self.folder}: {written}")


def save_png(figure: Figure, path: Path, description: str) -> None:
    """Write a PNG of at most 256 colours, which takes a third of the space and keeps the palette's own."""
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(100)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3]).quantize(256, dither=Image.Dither.NONE)
    notes = PngInfo()
    notes.add_text("Description", description)
    image.save(path, optimize=True, pnginfo=notes)


def run_some(package: ModuleType, description: str) -> None:
    """Run the files of a package of experiments that the command line names, or all of them.

    A file has ``compute`` and ``draw``, and a ``main`` only where it writes more than its results.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {package.__name__}", description=description)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(package.NAMES)}; all by default")
    wanted = parser.parse_args().names
    if unknown := sorted(set(wanted) - set(package.NAMES)):
        parser.error(f"no such experiment: {', '.join(unknown)}; there are {', '.join(package.NAMES)}")
    save = import_module(f"{package.__name__}._common").save
    for name in wanted or package.NAMES:
        module = import_module(f"{package.__name__}.{name}")
        if hasattr(module, "main"):
            module.main()
        else:
            save(name, module.compute(), module.draw)
