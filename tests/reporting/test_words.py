"""Numbers as text: a limit stays a limit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosin.reporting.numbers import about, clean, confidence, down, percent, percent_down, percent_up, up

NEAR = 1e-11
"""What rounding to twelve digits may take from a number of size one."""


@given(st.floats(-2, 2))
def test_limits_are_rounded_outwards(value):
    assert float(down(value)) <= value + NEAR
    assert float(up(value)) >= value - NEAR
    assert float(up(value)) - float(down(value)) <= 0.001 + NEAR
    assert float(down(value)) <= float(about(value)) <= float(up(value))


@given(st.floats(0, 1))
def test_percentages_are_rounded_outwards(share):
    low, middle, high = (float(text(share).removesuffix("%")) for text in (percent_down, percent, percent_up))
    assert low <= 100 * share + 100 * NEAR
    assert high >= 100 * share - 100 * NEAR
    assert low <= middle <= high


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        (0.1 + 0.2, "0.300", "0.300"),
        (0.2538796, "0.253", "0.254"),
        (-0.1894886, "-0.190", "-0.189"),
        (-0.0001, "-0.001", "0.000"),
        (0.0, "0.000", "0.000"),
        (1e-20, "0.000", "0.001"),
        (math.inf, "∞", "∞"),
        (math.nan, "–", "–"),
    ],
)
def test_golden_limits(value, lower, upper):
    assert (down(value), up(value)) == (lower, upper)


@pytest.mark.parametrize(
    ("share", "lower", "upper"),
    [
        (0.0, "0%", "0%"),
        (1.0, "100%", "100%"),
        (0.5, "50%", "50%"),
        (0.7310585, "73.1%", "73.2%"),
        (0.0027145, "0.27%", "0.28%"),
        (0.99987654, "99.987%", "99.988%"),
        (1e-5, "0.001%", "0.001%"),
    ],
)
def test_golden_percentages(share, lower, upper):
    assert (percent_down(share), percent_up(share)) == (lower, upper)


def test_confidence_is_told_as_asked():
    assert confidence(0.95) == "95%"
    assert confidence(0.999) == "99.9%"


def test_clean_text_keeps_what_can_be_read():
    assert clean("漢字 é\t\n<b>") == "漢字 é\t\n<b>"
    assert clean("a\x00\x1b\x85\ud800\u202e\u2066b") == "a" + 6 * "\ufffd" + "b"
