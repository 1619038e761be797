"""Root finding that ends on the safe side: the returned point was evaluated and held."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from whosin.numerics.roots import largest_holding, smallest_below, smallest_holding

numbers = st.floats(-1e6, 1e6)


class Seen:
    """A condition that remembers where it was asked and what it said."""

    def __init__(self, condition):
        self.condition, self.asked = condition, {}

    def __call__(self, x):
        self.asked[x] = self.condition(x)
        return self.asked[x]


@given(numbers, st.floats(0.0, 1e6), st.floats(0.0, 1.0))
def test_largest_holding_is_safe_and_close(low, width, share):
    high = low + width
    edge = low + share * width
    holds = Seen(lambda x: x <= edge)
    found = largest_holding(holds, low, high)
    assert low <= found <= high
    assert found <= edge
    assert edge - found <= 1e-13 * max(1.0, abs(found)) * 1.01
    assert found == low or holds.asked[found] is True
    assert len(holds.asked) < 120


@given(numbers, st.floats(0.0, 1e6), st.floats(0.0, 1.0))
def test_smallest_holding_is_safe_and_close(low, width, share):
    high = low + width
    edge = low + share * width
    found = smallest_holding(lambda x: x >= edge, low, high)
    assert found >= edge
    assert found - edge <= 1e-13 * max(1.0, abs(found)) * 1.01
    assert low <= found <= high


def test_zero_tolerance_goes_to_the_last_digit():
    edge = math.sqrt(2.0)
    found = largest_holding(lambda x: x * x <= 2.0, 0.0, 2.0, tolerance=0.0)
    assert found * found <= 2.0
    assert math.nextafter(found, 3.0) ** 2 > 2.0
    assert found == pytest.approx(edge, rel=1e-15)
    assert largest_holding(lambda x: x <= 0.0, 0.0, 1.0, tolerance=0.0) == 0.0
    assert smallest_holding(lambda x: x > 0.0, 0.0, 1.0, tolerance=0.0) == 5e-324


def test_the_whole_interval_may_hold():
    assert largest_holding(lambda x: True, 1.0, 5.0) == 5.0
    assert smallest_holding(lambda x: True, 1.0, 5.0) == 1.0
    assert largest_holding(lambda x: x <= 1.0, 1.0, 1.0) == 1.0


def test_a_wide_interval():
    assert largest_holding(lambda x: x <= 3e7, 0.0, 1e300) == pytest.approx(3e7, rel=1e-12)


FALLING = {
    "hyperbola": lambda x: 1.0 / x,
    "square": lambda x: 1.0 / min(x, 1e100) ** 2,
    "exponential": lambda x: math.exp(-x),
    "logistic": lambda x: 1.0 / (1.0 + min(x, 1e100) ** 3),
    "steep": lambda x: math.exp(-(min(x, 1e100) ** 2)),
    "flat": lambda x: 1.0 / (1.0 + math.log1p(x)),
}


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, target) for name in FALLING for target in (0.9, 0.3, 1e-2) if (name, target) != ("flat", 1e-2)],
)
@each("guess", [0.1, 1.0, 50.0])
@each("slope", [None, -2.0, -0.1, 1.0])
def test_smallest_below_is_safe_and_close(name, target, guess, slope):
    value, tolerance = FALLING[name], 1e-4
    asked = []

    def counted(x):
        asked.append(x)
        return value(x)

    found = smallest_below(counted, target, guess, tolerance=tolerance, slope=slope)
    assert value(found) <= target
    assert value(found * (1 - 1.01 * tolerance)) > target
    assert found in asked
    assert len(asked) <= 80


@pytest.mark.parametrize("name", ["exponential", "steep"])
def test_smallest_below_recovers_from_a_start_where_the_value_is_flat(name):
    value = FALLING[name]
    found = smallest_below(value, 0.3, 1e-3, tolerance=1e-4)
    assert value(found) <= 0.3 < value(found * (1 - 1.01e-4))


def test_smallest_below_is_quick_on_power_laws():
    asked = []

    def value(x):
        asked.append(x)
        return 1.0 / x**2

    found = smallest_below(value, 1e-3, 1.0, tolerance=1e-4, slope=-2.0)
    assert found == pytest.approx(math.sqrt(1e3), rel=1e-4)
    assert value(found) <= 1e-3
    assert len(asked) <= 6


def test_smallest_below_copes_with_steps_and_zeros():
    found = smallest_below(lambda x: 0.0 if x >= 2.5 else 1.0, 0.5, 1.0, tolerance=1e-6)
    assert 2.5 <= found <= 2.5 * (1 + 1e-6)
    stairs = lambda x: math.exp(-math.floor(10 * x) / 10)  # noqa: E731
    found = smallest_below(stairs, math.exp(-0.7), 0.1, tolerance=1e-6)
    assert stairs(found) <= math.exp(-0.7)
    assert 0.7 <= found <= 0.7 * (1 + 1e-5)


def test_smallest_below_gives_up():
    with pytest.raises(ArithmeticError, match=r"0\.5"):
        smallest_below(lambda x: 1.0, 0.5, 1.0, tolerance=1e-4, evaluations=20)
    with pytest.raises(ArithmeticError, match="20 evaluations"):
        smallest_below(lambda x: 0.1, 0.5, 1.0, tolerance=1e-4, evaluations=20)
