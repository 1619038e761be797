"""Drawings for the report, the page and the notebook: plain SVG without a single style attribute.

Colours and dashes are those of the style sheet, by class, so that a drawing is right on light, dark and printed pages
and passes the page's content security policy. A drawing takes a millisecond, so that a curve follows a slider. Letters
are 16 units of the 440 that a drawing is wide: 12 pixels on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.numerics.rounding import about, at_least, at_most, clean, count

WIDTH, HEIGHT = 440.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 76.0, 30.0, 12.0, 56.0
COLOURS = 6
LONGEST = 42
"""Letters of a name beside or above a line."""


def as_percent(share: float) -> str:
    """Return the text of a mark at a share."""
    return f"{100.0 * share:.6g}%"


@dataclass(frozen=True)
class Axis:
    """What an axis shows, from where to where, in even or logarithmic steps."""

    name: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    text: Callable[[float], str] = as_percent

    def share(self, values: ArrayLike) -> Array:
        """Where values lie between the two ends, from 0 to 1."""
        clipped = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.high <= self.low:
            return np.zeros_like(clipped)
        if self.log:
            return np.asarray(np.log(clipped / self.low) / math.log(self.high / self.low))
        return np.asarray((clipped - self.low) / (self.high - self.low))

    def marks(self) -> list[float]:
        """Round values between the ends, three to six of them."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1.0,) if len(powers) > 3 else (1.0, 2.0, 5.0)
            found = [step * 10.0**power for power in powers for step in steps]
            found = [mark for mark in found if self.low * 0.999 <= mark <= self.high * 1.001]
            return found[:: max(1, math.ceil(len(found) / 6))]
        step = 10.0 ** math.floor(math.log10(max(self.high - self.low, 1e-12)))
        step *= next(factor for factor in (0.1, 0.2, 0.5, 1.0, 2.0) if (self.high - self.low) / (factor * step) <= 5.0)
        first = math.ceil(self.low / step - 1e-9)
        return [round(i * step, 12) for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


RATES = Axis("outsiders accused"), Axis("members found")
"""The axes of every ROC."""


@dataclass(frozen=True)
class Line:
    """A curve with its name, and limits where it was measured."""

    x: ArrayLike
    y: ArrayLike
    name: str = ""
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None


@dataclass(frozen=True)
class Interval:
    """A number with its name and limits."""

    name: str
    estimate: float
    lower: float
    upper: float


def chart(
    lines: Sequence[Line],
    alt: str,
    *,
    axes: tuple[Axis, Axis] = RATES,
    blind: ArrayLike | None = None,
    dots: bool = False,
    names_at: float | None = None,
) -> str:
    """Return curves with their limits.

    ``blind`` gives the heights of a dashed line at the two ends of the x axis; by default the diagonal of equal rates.
    The names stand around the height ``names_at``, by default at the bottom.
    """
    across, along = axes
    frame = _Frame(across, along)
    parts = [frame.grid()]
    parts += [frame.band(line, i) for i, line in enumerate(lines) if line.lower is not None]
    ends = np.geomspace(across.low, across.high, 101) if across.log else np.array([across.low, across.high])
    parts.append(f'<path class="blind" d="{frame.path(ends, ends if blind is None else np.asarray(blind))}"/>')
    for i, line in enumerate(lines):
        parts.append(f'<path class="curve line-{i % COLOURS}" d="{frame.path(line.x, line.y)}"/>')
        if dots:
            places = zip(frame.x(line.x), frame.y(line.y), strict=True)
            parts += [f'<circle class="dot line-{i % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in places]
    named = [(i, line.name) for i, line in enumerate(lines) if line.name]
    last = HEIGHT - BOTTOM - 14.0
    if names_at is not None:
        last = min(last, max(float(frame.y(names_at)) + 11.0 * len(named) - 4.0, TOP + 22.0 * len(named)))
    parts += [_legend(name, i, last - 22.0 * (len(named) - 1 - place)) for place, (i, name) in enumerate(named)]
    return _svg(WIDTH, HEIGHT, alt, parts)


def intervals(rows: Sequence[Interval], alt: str, *, one_colour: bool = True) -> str:
    """Return advantages with their limits, one below the other."""
    axis = Axis("advantage: 0 is a blind guess", text=lambda value: f"{value:g}")
    step = 45.0
    height = step * len(rows) + 62.0
    across, parts = _lying(axis, height)
    for i, row in enumerate(rows):
        y, colour = step * i + 36.0, 0 if one_colour else i % COLOURS
        parts.append(f'<text class="row" x="{across(axis.low) + 2:.1f}" y="{y - 13:.1f}">{_short(row.name)}</text>')
        if not math.isfinite(row.estimate):
            continue
        ends = f"M{across(row.lower):.1f} {y:.1f}H{across(row.upper):.1f}"
        parts.append(f'<path class="limits line-{colour}" d="{ends}"/>')
        parts.append(f'<circle class="dot line-{colour}" cx="{across(row.estimate):.1f}" cy="{y:.1f}" r="6"/>')
    return _svg(WIDTH, height, alt, parts)


def bars(rows: Sequence[tuple[str, float]], alt: str, axis: Axis) -> str:
    """Return one lying bar for each name, its number behind it."""
    step = 40.0
    height = step * len(rows) + 62.0
    across, parts = _lying(axis, height)
    start = across(max(axis.low, 0.0))
    for i, (name, value) in enumerate(rows):
        y = step * i + 22.0
        left, right = sorted((start, across(value)))
        parts.append(f'<text class="row" x="{across(axis.low) + 2:.1f}" y="{y - 4:.1f}">{_short(name)}</text>')
        parts.append(f'<rect class="bar" x="{left:.1f}" y="{y:.1f}" width="{right - left:.1f}" height="12"/>')
        shown = f'x="{min(right + 5, WIDTH - 52):.1f}" y="{y + 12:.1f}"'
        parts.append(f'<text class="row" {shown}>{about(value, 2)}</text>')
    return _svg(WIDTH, height, alt, parts)


def histogram(counts: Sequence[int], alt: str, axis: Axis, mark: float | None = None) -> str:
    """Return how many fall into each of equally wide bins between the ends of an axis, with the counts above them."""
    along = Axis("people", 0.0, max(1.0, 1.12 * max(counts)), text=lambda value: count(int(value)))
    frame = _Frame(axis, along, TOP + 8.0)
    edges = np.linspace(axis.low, axis.high, len(counts) + 1)
    parts = [frame.grid(vertical=False)]
    bottom = float(frame.y(0.0))
    for left, right, number in zip(frame.x(edges[:-1]), frame.x(edges[1:]), counts, strict=True):
        y = float(frame.y(number))
        place = f'x="{left + 1:.1f}" y="{y:.1f}" width="{right - left - 2:.1f}" height="{bottom - y:.1f}"'
        parts.append(f'<rect class="bar" {place}/>')
        if number:
            parts.append(f'<text class="tick" x="{(left + right) / 2:.1f}" y="{y - 4:.1f}">{count(number)}</text>')
    if mark is not None:
        x = float(frame.x(mark))
        parts.append(f'<path class="blind" d="M{x:.1f} {TOP:.1f}V{bottom:.1f}"/>')
    return _svg(WIDTH, HEIGHT, alt, parts)


def people(share: float, alt: str) -> str:
    """Return a hundred people, of whom the given share stands out by colour and by a filled shape."""
    picked = round(100.0 * min(1.0, max(0.0, share)))
    drawn = [_person(9.0 + 15.0 * (i % 20), 5.0 + 23.0 * (i // 20)) for i in range(100)]
    return _svg(
        303.0,
        114.0,
        alt,
        [
            f'<path class="picked" d="{"".join(drawn[:picked])}"/>',
            f'<path class="rest" d="{"".join(drawn[picked:])}"/>',
        ],
    )


def _person(x: float, y: float) -> str:
    return f"M{x:g} {y - 3.4:g}a3.4 3.4 0 1 0 .01 0zM{x - 4.8:g} {y + 15:g}v-5.4a4.8 4.8 0 0 1 9.6 0v5.4z"


def gauge(estimate: float, lower: float, upper: float, tolerate: float | None, alt: str) -> str:
    """Return a number between 0 and 1 with its limits and what is tolerated, on one bar."""
    left, right = 14.0, 286.0

    def across(value: float) -> float:
        return left + (right - left) * min(1.0, max(0.0, value))

    low, high = across(lower), across(upper)
    parts = [
        f'<rect class="rail" x="{left:g}" y="28" width="{right - left:g}" height="8" rx="4"/>',
        f'<rect class="reach" x="{low:.1f}" y="26" width="{max(2.0, high - low):.1f}" height="12" rx="3"/>',
        f'<circle class="here" cx="{across(estimate):.1f}" cy="32" r="7"/>',
    ]
    texts = [(low - 2.0, "end", at_least(lower)), (high + 2.0, "start", at_most(upper))]
    texts = [(15.0, "start", text) if x < 46.0 and anchor == "end" else (x, anchor, text) for x, anchor, text in texts]
    texts = [
        (285.0, "end", text) if x > 254.0 and anchor == "start" else (x, anchor, text) for x, anchor, text in texts
    ]
    if texts[0][0] > 60.0:
        texts.append((left, "middle", "0"))
    if texts[1][0] < 240.0:
        texts.append((right, "middle", "1"))
    parts += [f'<text class="{anchor}" x="{x:.1f}" y="57">{text}</text>' for x, anchor, text in texts]
    if tolerate is not None:
        x = across(tolerate)
        side, place = ("start", x + 4.0) if tolerate < 0.5 else ("end", x - 4.0)
        parts.append(f'<path class="limit" d="M{x:.1f} 16V44"/>')
        parts.append(f'<text class="{side}" x="{place:.1f}" y="17">tolerated {tolerate:g}</text>')
    return _svg(300.0, 62.0, alt, parts)


@dataclass(frozen=True)
class _Frame:
    across: Axis
    along: Axis
    top: float = TOP

    def x(self, values: ArrayLike) -> Array:
        return LEFT + (WIDTH - LEFT - RIGHT) * self.across.share(values)

    def y(self, values: ArrayLike) -> Array:
        return HEIGHT - BOTTOM - (HEIGHT - self.top - BOTTOM) * self.along.share(values)

    def path(self, x: ArrayLike, y: ArrayLike) -> str:
        """Return a line through the points; on logarithmic axes those left of the frame are left out."""
        across, along = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if self.across.log:
            inside = across >= self.across.low
            across, along = across[inside], along[inside]
        pairs = zip(self.x(across), self.y(along), strict=True)
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in pairs)

    def band(self, line: Line, place: int) -> str:
        assert line.lower is not None
        assert line.upper is not None
        x = np.asarray(line.x)
        there, back = self.path(x, line.upper), self.path(x[::-1], np.asarray(line.lower)[::-1])
        return f'<path class="band line-{place % COLOURS}" d="{there}L{back[1:]}Z"/>'

    def grid(self, vertical: bool = True) -> str:
        left, right = self.x([self.across.low, self.across.high])
        bottom, top = self.y([self.along.low, self.along.high])
        parts = []
        for mark in self.across.marks():
            x = float(self.x(mark))
            if vertical:
                parts.append(f'<path class="grid" d="M{x:.1f} {bottom:.1f}V{top:.1f}"/>')
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{bottom + 20:.1f}">{escape(self.across.text(mark))}</text>'
            )
        for mark in self.along.marks():
            y = float(self.y(mark))
            parts.append(f'<path class="grid" d="M{left:.1f} {y:.1f}H{right:.1f}"/>')
            parts.append(
                f'<text class="side" x="{left - 7:.1f}" y="{y + 5:.1f}">{escape(self.along.text(mark))}</text>'
            )
        parts.append(f'<path class="axis" d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}"/>')
        middle = (bottom + top) / 2
        parts.append(
            f'<text class="tick" x="{(left + right) / 2:.1f}" y="{HEIGHT - 10:.1f}">{escape(self.across.name)}</text>'
            f'<text class="tick" x="14" y="{middle:.1f}" transform="rotate(-90 14 {middle:.1f})">'
            f"{escape(self.along.name)}</text>"
        )
        return "".join(parts)


def _lying(axis: Axis, height: float) -> tuple[Callable[[float], float], list[str]]:
    """Return where a value lies across, and the axis below lying bars or intervals."""
    left, right, bottom = 16.0, WIDTH - 22.0, height - 52.0

    def across(value: float) -> float:
        return left + (right - left) * float(axis.share(value))

    parts = []
    for mark in axis.marks():
        parts.append(f'<path class="grid" d="M{across(mark):.1f} 4V{bottom:.1f}"/>')
        parts.append(f'<text class="tick" x="{across(mark):.1f}" y="{bottom + 20:.1f}">{axis.text(mark)}</text>')
    parts.append(f'<path class="axis" d="M{left:.1f} {bottom:.1f}H{right:.1f}"/>')
    parts.append(f'<text class="tick" x="{(left + right) / 2:.1f}" y="{height - 8:.1f}">{escape(axis.name)}</text>')
    return across, parts


def _legend(name: str, place: int, y: float) -> str:
    x = WIDTH - RIGHT - 250.0
    return (
        f'<path class="curve line-{place % COLOURS}" d="M{x:.1f} {y - 5:.1f}h26"/>'
        f'<text class="row" x="{x + 32:.1f}" y="{y:.1f}">{_short(name, 27)}</text>'
    )


def _short(name: str, longest: int = LONGEST) -> str:
    text = clean(name)
    return escape(text if len(text) <= longest else f"{text[: longest - 1]}…")


def _svg(width: float, height: float, alt: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(clean(alt))}">{"".join(parts)}</svg>'
    )
