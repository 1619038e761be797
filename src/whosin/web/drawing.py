"""Drawings for the page: plain SVG without a single style attribute, which the page's content security policy forbids.

Colours and dashes are those of the style sheet, by class, so that a drawing is right on light and dark pages. They take
a millisecond, so that a curve follows a slider, and may be drawn in any thread; Matplotlib's take a hundred times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from whosin.reporting.drawing import as_percent
from whosin.reporting.numbers import clean

__all__ = ["Interval", "Line", "curves", "intervals"]

Array = NDArray[np.float64]

WIDTH, HEIGHT = 440.0, 350.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 22.0, 12.0, 48.0
LONGEST = 34


@dataclass(frozen=True)
class Line:
    """A curve with its name, and limits where it was measured."""

    fpr: Array
    tpr: Array
    name: str
    lower: Array | None = None
    upper: Array | None = None


@dataclass(frozen=True)
class Interval:
    """A number with its name and limits."""

    name: str
    estimate: float
    lower: float
    upper: float


def curves(lines: Sequence[Line], alt: str, *, log: bool = False, lowest: float = 1e-4) -> str:
    """Return a picture of members found against outsiders accused, on even or logarithmic axes."""
    frame = _Frame(log, lowest)
    parts = [frame.axes()]
    parts += [frame.band(line, i) for i, line in enumerate(lines) if line.lower is not None]
    steps = np.geomspace(lowest, 1.0, 101) if log else np.array([0.0, 1.0])
    parts.append(f'<path class="blind" d="{frame.path(steps, steps)}"/>')
    parts += [
        f'<path class="curve line-{i % 6}" d="{frame.path(line.fpr, line.tpr)}"/>' for i, line in enumerate(lines)
    ]
    if len(lines) > 1 or lines[0].lower is not None:
        parts += [_legend(line.name, i, len(lines)) for i, line in enumerate(lines)]
    return _svg(WIDTH, HEIGHT, alt, parts)


def intervals(rows: Sequence[Interval], alt: str) -> str:
    """Return a picture of numbers with their limits, one below the other, from 0 to 1."""
    height = 44.0 * len(rows) + 50.0
    bottom = height - 40.0

    def across(value: float) -> float:
        return LEFT / 2 + (WIDTH - LEFT / 2 - 20.0) * min(1.0, max(0.0, value))

    parts = [f'<path class="axis" d="M{across(0):.1f} {bottom:.1f}H{across(1):.1f}"/>']
    for value in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(f'<path class="grid" d="M{across(value):.1f} 8V{bottom:.1f}"/>')
        parts.append(f'<text class="tick" x="{across(value):.1f}" y="{bottom + 16:.1f}">{value:g}</text>')
    parts.append(f'<text class="name" x="{across(0.5):.1f}" y="{height - 6:.1f}">advantage: 0 is a blind guess</text>')
    for i, row in enumerate(rows):
        y = 44.0 * i + 36.0
        parts.append(f'<text class="row" x="{across(0) + 4:.1f}" y="{y - 10:.1f}">{_short(row.name)}</text>')
        parts.append(
            f'<path class="limits line-{i % 6}" d="M{across(row.lower):.1f} {y:.1f}H{across(row.upper):.1f}"/>'
        )
        parts.append(f'<circle class="dot line-{i % 6}" cx="{across(row.estimate):.1f}" cy="{y:.1f}" r="5"/>')
    return _svg(WIDTH, height, alt, parts)


@dataclass(frozen=True)
class _Frame:
    log: bool
    lowest: float

    def x(self, rate: Array) -> Array:
        return LEFT + (WIDTH - LEFT - RIGHT) * self._share(rate)

    def y(self, rate: Array) -> Array:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self._share(rate)

    def _share(self, rate: Array) -> Array:
        rates = np.asarray(rate, dtype=np.float64)
        if not self.log:
            return np.clip(rates, 0.0, 1.0)
        return 1.0 - np.log(np.clip(rates, self.lowest, 1.0)) / math.log(self.lowest)

    def path(self, fpr: Array, tpr: Array) -> str:
        """Return a line through the points; on logarithmic axes those left of the frame are left out but the last."""
        if self.log:
            inside = np.asarray(fpr) >= self.lowest
            fpr, tpr = np.asarray(fpr)[inside], np.asarray(tpr)[inside]
        pairs = zip(self.x(fpr), self.y(tpr), strict=True)
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in pairs)

    def band(self, line: Line, place: int) -> str:
        assert line.lower is not None
        assert line.upper is not None
        there, back = self.path(line.fpr, line.upper), self.path(line.fpr[::-1], line.lower[::-1])
        return f'<path class="band line-{place % 6}" d="{there}L{back[1:]}Z"/>'

    def axes(self) -> str:
        if self.log:
            marks = [10.0**power for power in range(round(math.log10(self.lowest)), 1)]
        else:
            marks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        (left, right), (bottom, top) = self.x(np.array([0.0, 1.0])), self.y(np.array([0.0, 1.0]))
        parts = []
        for mark in marks:
            x, y, text = float(self.x(np.array(mark))), float(self.y(np.array(mark))), as_percent(mark)
            parts.append(f'<path class="grid" d="M{x:.1f} {bottom:.1f}V{top:.1f}M{left:.1f} {y:.1f}H{right:.1f}"/>')
            parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 16:.1f}">{text}</text>')
            parts.append(f'<text class="tick side" x="{left - 6:.1f}" y="{y + 4:.1f}">{text}</text>')
        middle_x, middle_y = (left + right) / 2, (bottom + top) / 2
        parts.append(f'<path class="axis" d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}"/>')
        parts.append(f'<text class="name" x="{middle_x:.1f}" y="{HEIGHT - 8:.1f}">outsiders accused</text>')
        turned = f'transform="rotate(-90 12 {middle_y:.1f})"'
        parts.append(f'<text class="name" x="12" y="{middle_y:.1f}" {turned}>members found</text>')
        return "".join(parts)


def _legend(name: str, place: int, count: int) -> str:
    y = HEIGHT - BOTTOM - 14.0 - 18.0 * (count - 1 - place)
    x = WIDTH - RIGHT - 250.0
    return (
        f'<path class="curve line-{place % 6}" d="M{x:.1f} {y - 4:.1f}h26"/>'
        f'<text class="row" x="{x + 32:.1f}" y="{y:.1f}">{_short(name)}</text>'
    )


def _short(name: str) -> str:
    text = clean(name)
    return escape(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def _svg(width: float, height: float, alt: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(clean(alt))}">{"".join(parts)}</svg>'
    )
