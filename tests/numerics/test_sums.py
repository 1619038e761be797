"""Laws of sums by FFT: what they are off by is no more than what is stated, by exact arithmetic and directly."""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from whosin.numerics import sums
from whosin.numerics.sums import sums_of_draws


def direct(law, first, others):
    """The same sum by products of whole numbers over 2^1074, which are exact."""
    scaled = [int(Fraction(float(x)) * 2**1074) for x in law]
    result = [int(Fraction(float(x)) * 2**1074) for x in first]
    for _ in range(others):
        longer = [0] * (len(result) + len(scaled) - 1)
        for i, a in enumerate(result):
            for j, b in enumerate(scaled):
                longer[i + j] += a * b
        result = longer
    return [Fraction(x, 2 ** (1074 * (others + 1))) for x in result]


def wrapped(masses, size):
    cells = [Fraction(0)] * size
    for i, mass in enumerate(masses):
        cells[i % size] += mass
    return cells


def laws(kind, rng):
    if kind == "even":
        law = rng.random(12)
    elif kind == "steep":
        law = 10.0 ** rng.uniform(-30, 0, 12)
    else:
        law = np.append(1.0, 1e-17 * rng.random(11))
    return law / law.sum(), rng.random(7) * 10.0 ** rng.uniform(-6, 0, 7)


@pytest.mark.parametrize("kind", ["even", "steep", "one"])
@pytest.mark.parametrize(("others", "size"), [(0, 16), (1, 24), (5, 80), (9, 50), (12, 150)])
def test_errors_are_within_the_stated_limit(kind, others, size):
    law, first = laws(kind, np.random.default_rng(others + size))
    ((own, own_lost), (changed, lost)) = sums_of_draws(law, others, size, (law, first))
    for start, found, limit in ((law, own, own_lost), (first, changed, lost)):
        truth = wrapped(direct(law, start, others), size)
        off = sum(abs(Fraction(float(x)) - y) for x, y in zip(found, truth, strict=True))
        assert off <= Fraction(limit)
        assert found.min() >= 0.0
        assert limit < 1e-12


def test_many_draws_against_a_direct_convolution(monkeypatch):
    """64 draws of 300 cells: sums of numbers of one sign lose no more than a few digits each, whatever their size.

    In 53 binary digits, as on machines without more, the limit holds too.
    """
    law = np.random.default_rng(3).gamma(0.3, size=300)
    law /= law.sum()
    truth = law
    for _ in range(6):
        truth = np.convolve(truth, truth)
    size = 20_000
    slack = 6 * 64 * 300 * 2.0**-52
    ((wide, lost),) = sums_of_draws(law, 63, size, (law,))
    assert np.abs(wide[: len(truth)] - truth).sum() + wide[len(truth) :].sum() <= lost + slack
    monkeypatch.setattr(sums, "_WIDE", np.float64)
    ((narrow, limit),) = sums_of_draws(law, 63, size, (law,))
    assert 1e-16 < np.abs(narrow - wide).sum() <= limit < 1e-9


@pytest.mark.parametrize("others", [0, 1, 2, 3, 7, 8, 1000])
def test_powers_by_squaring(others):
    values = np.exp(1j * np.linspace(0.0, 3.0, 50)).astype(np.clongdouble)
    found = sums.power_of(values, others, operator.mul)
    if others == 0:
        assert found is None
    else:
        assert np.allclose(found, np.exp(1j * others * np.linspace(0.0, 3.0, 50)), atol=1e-12)
    assert math.isclose(abs(values[0]), 1.0)
