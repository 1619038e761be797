"""Drawings: what they show is where it should be, and names cannot break them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from report_pages import HOSTILE, QUOTED

from whosin.reporting.painting import RATES, Axis, Interval, Line, bars, chart, gauge, histogram, intervals, people

EVIL = HOSTILE + QUOTED


def test_drawings_have_no_style_and_escape_names():
    rates = np.linspace(0, 1, 5)
    line = Line(rates, rates, EVIL, rates, rates)
    low = tuple(replace(axis, low=1e-4, log=True) for axis in RATES)
    drawn = [
        chart([line, line], EVIL),
        chart([line], EVIL, axes=low),
        intervals([Interval(EVIL, 0.5, -1.0, 2.0), Interval("nothing", np.nan, 0.0, 1.0)], EVIL),
        bars([(EVIL, 0.1), ("b", -0.1)], EVIL, Axis("x", -0.1, 0.1)),
        histogram([0, 3, 2], EVIL, Axis("x"), mark=0.5),
        people(0.37, EVIL),
        gauge(0.5, 0.0, 1.0, 0.9, EVIL),
    ]
    for svg in drawn:
        assert not re.search(r"style=|<script|<img|nan|inf|\u202e", svg)


def points(svg, kind="curve line-0"):
    path = re.search(rf'class="{kind}" d="M([^"]+)"', svg)[1]
    return np.array([[float(x) for x in pair.split()] for pair in path.split("L")])


def test_a_curve_is_drawn_where_it_is():
    """The drawn points, read back through the axes, are the curve."""
    fpr, tpr = np.array([0.0, 0.1, 1.0]), np.array([0.2, 0.6, 1.0])
    (left, bottom), middle, (right, top) = points(chart([Line(fpr, tpr)], "x"))
    base = bottom + (bottom - top) * 0.2 / 0.8
    assert (middle[0] - left) / (right - left) == pytest.approx(0.1, abs=1e-3)
    assert (base - middle[1]) / (base - top) == pytest.approx(0.6, abs=1e-3)


def test_logarithmic_axes_are_logarithmic():
    axes = tuple(replace(axis, low=1e-4, log=True) for axis in RATES)
    rates = np.array([1e-4, 1e-2, 1.0])
    drawn = points(chart([Line(rates, rates)], "x", axes=axes))
    assert np.diff(drawn[:, 0]) == pytest.approx(np.full(2, np.diff(drawn[:, 0])[0]), abs=0.2)


@pytest.mark.parametrize(
    ("low", "high", "log", "marks"),
    [
        (0.0, 1.0, False, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 560.0, False, [0.0, 200.0, 400.0]),
        (0.0, 0.9, False, [0.0, 0.2, 0.4, 0.6, 0.8]),
        (1e-4, 1.0, True, [1e-4, 1e-3, 1e-2, 0.1, 1.0]),
        (10.0, 1000.0, True, [10.0, 50.0, 200.0, 1000.0]),
        (3.0, 3.0, False, [3.0]),
    ],
)
def test_marks_are_round_and_few(low, high, log, marks):
    assert Axis("x", low, high, log).marks() == pytest.approx(marks)


@pytest.mark.parametrize(("share", "picked"), [(0.0, 0), (0.374, 37), (1.0, 100), (2.0, 100)])
def test_a_hundred_people(share, picked):
    svg = people(share, "x")
    filled, empty = re.findall(r'class="(?:picked|rest)" d="([^"]*)"', svg)
    assert (filled.count("a3.4"), empty.count("a3.4")) == (picked, 100 - picked)


def test_the_bar_holds_limits_and_tolerance():
    svg = gauge(0.36, 0.3, 0.42, 0.1, "x")
    assert [text in svg for text in (">0.3<", ">0.42<", ">tolerated 0.1<", ">0<", ">1<")] == [True] * 5
    left, width = map(float, re.search(r'class="reach" x="([\d.]+)" y="26" width="([\d.]+)"', svg).groups())
    assert ((left - 14) / 272, width / 272) == pytest.approx((0.3, 0.12), abs=1e-3)
