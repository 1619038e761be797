"""A printed limit is a limit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosin.numerics.rounding import (
    about,
    at_least,
    at_most,
    capital,
    clean,
    confidence,
    counted,
    limits,
    of_hundred,
    percent,
    percent_down,
    percent_up,
)  # fmt: skip

numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(numbers, st.integers(2, 12))
def test_outwards_and_close(value, digits):
    up, down = float(at_most(value, digits)), float(at_least(value, digits))
    slack = 2e-12 * abs(value)
    assert up >= value - slack
    assert down <= value + slack
    assert up - down <= 2.1 * 10.0 ** (1 - digits) * abs(value) + 2 * slack


@pytest.mark.parametrize(
    ("value", "digits", "up", "down"),
    [(0.0, 4, "0", "0"), (1 / 3, 4, "0.3334", "0.3333"), (0.1 + 0.2, 4, "0.3", "0.3"), (-1 / 3, 2, "-0.33", "-0.34")],
)
def test_examples(value, digits, up, down):
    assert (at_most(value, digits), at_least(value, digits)) == (up, down)


def test_counts_are_written_out():
    assert (about(999.7), about(1000.0), about(12_345.0), at_most(12_345.0), about(1.5e12)) == (
        "1000", "1000", "12300", "12400", "1.5e+12",
    )  # fmt: skip


def test_what_is_no_number():
    assert (at_most(math.inf), at_least(-math.inf), at_most(math.nan), about(None)) == ("∞", "-∞", "–", "–")


@given(numbers)
def test_estimates_lie_between_limits(value):
    assert float(at_least(value)) <= float(about(value)) <= float(at_most(value))


def test_an_estimate_and_its_dictionary_read_alike():
    found = {"estimate": 0.1236, "lower": 0.12349, "upper": 0.12351}
    assert limits(found) == ("0.124", "0.123", "0.124")


@given(st.floats(0, 1))
def test_percentages_are_rounded_outwards(share):
    low, middle, high = (float(text(share).removesuffix("%")) for text in (percent_down, percent, percent_up))
    assert low <= 100 * share + 1e-9
    assert high >= 100 * share - 1e-9
    assert low <= middle <= high


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


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.0, "0"), (0.004, "fewer than 1"), (0.01, "1"), (0.374, "37"), (0.996, "more than 99"), (1.0, "100")],
)
def test_rates_as_people(rate, text):
    assert of_hundred(rate) == text


def test_counts_have_their_word():
    assert [counted(number, "member") for number in (0, 1, 2000)] == ["0 members", "1 member", "2,000 members"]


def test_confidence_is_told_as_asked():
    assert confidence(0.95) == "95%"
    assert confidence(0.999) == "99.9%"


def test_clean_text_keeps_what_can_be_read():
    assert clean("漢字 é\t\n<b>") == "漢字 é\t\n<b>"
    assert clean("a\x00\x1b\x85\ud800\u202e\u2066b") == "a" + 6 * "\ufffd" + "b"


@pytest.mark.parametrize(
    ("text", "shown"), [("abc def", "Abc def"), ("", ""), ("ε is", "ε is"), ("aε", "Aε"), ("x", "X")]
)
def test_a_sentence_begins_with_a_capital_unless_a_symbol_does(text, shown):
    assert capital(text) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0.99999987, "99.9999%"), (0.999987, "99.9987%"), (1.23e-9, "0.00000012%")]
)
def test_shares_next_to_everything_have_four_decimals_at_most(share, shown):
    assert percent_down(share) == shown
