"""A printed limit is a limit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosin.numerics.rounding import at_least, at_most

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


def test_infinity():
    assert at_most(math.inf) == "inf"
