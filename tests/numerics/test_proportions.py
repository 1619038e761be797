"""Limits for proportions: golden values, exact coverage by enumeration, outward rounding, and bad input."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest

from whosin.errors import InputError, InputTypeError
from whosin.numerics.proportions import (
    bounded_differences_radius,
    clopper_pearson_lower,
    clopper_pearson_upper,
    dkw_radius,
)


def test_golden_values():
    """Scipy's exact binomial interval, and the closed forms at both ends: α^(1/n) and 1 - α^(1/n)."""
    interval = binomtest(7, 20).proportion_ci(0.9, method="exact")
    assert clopper_pearson_lower(7, 20, 0.05) == pytest.approx(interval.low, rel=1e-9)
    assert clopper_pearson_upper(7, 20, 0.05) == pytest.approx(interval.high, rel=1e-9)
    assert clopper_pearson_lower(10, 10, 0.05) == pytest.approx(0.05**0.1, rel=1e-9)
    assert clopper_pearson_upper(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1, rel=1e-9)
    assert clopper_pearson_lower(0, 10, 0.05) == 0.0
    assert clopper_pearson_upper(10, 10, 0.05) == 1.0


def test_no_trials_say_nothing():
    assert clopper_pearson_lower(0, 0, 0.05) == 0.0
    assert clopper_pearson_upper(0, 0, 0.05) == 1.0
    assert dkw_radius(0, 0.05) == 1.0


@given(n=st.integers(1, 10**6), share=st.floats(0, 1), alpha=st.sampled_from([0.4, 0.0125, 1e-4, 1e-9]))
def test_rounded_outwards(n, share, alpha):
    """Around the observed share, and next to the quantiles of the two beta laws."""
    x = round(share * n)
    low, high = float(clopper_pearson_lower(x, n, alpha)), float(clopper_pearson_upper(x, n, alpha))
    assert 0.0 <= low <= x / n <= high <= 1.0
    assert low == pytest.approx(beta.ppf(alpha, x, n - x + 1), rel=1e-8) if x else low == 0.0
    assert high == pytest.approx(beta.isf(alpha, x + 1, n - x), rel=1e-8) if x < n else high == 1.0


@pytest.mark.parametrize(("x", "n"), [(1, 1), (3, 10), (50, 100), (1, 10_000), (9_999, 10_000), (120, 300)])
@pytest.mark.parametrize("alpha", [0.0125, 1e-6])
def test_outward_against_mpmath(x, n, alpha):
    with mpmath.workdps(40):
        low = mpmath.mpf(float(clopper_pearson_lower(x, n, alpha)))
        assert mpmath.betainc(x, n - x + 1, 0, low, regularized=True) <= alpha
        assert mpmath.betainc(x, n - x + 1, 0, low * (1 + mpmath.mpf(10) ** -8), regularized=True) > alpha * (1 - 1e-12)
        if x < n:
            high = mpmath.mpf(float(clopper_pearson_upper(x, n, alpha)))
            assert mpmath.betainc(x + 1, n - x, high, 1, regularized=True) <= alpha


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("theta", [0.001, 0.1, 0.5, 0.93])
def test_exact_coverage(n, theta):
    """Every count weighted with its probability: each limit misses with probability at most α."""
    x = np.arange(n + 1)
    weight = binom.pmf(x, n, theta)
    assert weight[clopper_pearson_lower(x, n, 0.05) > theta].sum() <= 0.05
    assert weight[clopper_pearson_upper(x, n, 0.05) < theta].sum() <= 0.05


def test_dkw_formula_and_coverage():
    assert dkw_radius(200, 0.05) == pytest.approx(math.sqrt(math.log(20) / 400), rel=1e-9)
    assert dkw_radius(200, 0.9) == dkw_radius(200, 0.5)
    rng = np.random.default_rng(0)
    samples = np.sort(rng.random((4000, 50)), axis=1)
    largest = np.max(np.arange(1, 51) / 50 - samples, axis=1)
    misses = int(np.sum(largest > dkw_radius(50, 0.1)))
    assert binomtest(misses, 4000, 0.1, alternative="greater").pvalue > 1e-6
    assert misses > 200, "Massart's constant is nearly exact, so a wider band would be a mistake"


def test_mcdiarmid_is_hoeffding_for_a_mean():
    """A mean of n samples in [0, 1] has n changes of 1/n: Hoeffding's √(ln(1/α)/(2n))."""
    assert bounded_differences_radius(100 * 0.01**2, 0.05) == pytest.approx(math.sqrt(math.log(20) / 200), rel=1e-9)
    assert bounded_differences_radius(0.0, 0.05) == 0.0


def test_broadcasts():
    assert clopper_pearson_lower(np.arange(3)[:, None], np.array([5, 10]), 0.1).shape == (3, 2)


@pytest.mark.parametrize(("x", "n"), [(-1, 5), (6, 5), (math.nan, 5), (1, math.inf)])
def test_bad_counts(x, n):
    for limit in (clopper_pearson_lower, clopper_pearson_upper):
        with pytest.raises(InputError, match="successes"):
            limit(x, n, 0.05)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_bad_alpha(alpha):
    for call in (
        lambda: clopper_pearson_lower(1, 2, alpha),
        lambda: clopper_pearson_upper(1, 2, alpha),
        lambda: dkw_radius(3, alpha),
        lambda: bounded_differences_radius(1.0, alpha),
    ):
        with pytest.raises(InputError, match="alpha"):
            call()
    with pytest.raises(InputTypeError, match="alpha"):
        dkw_radius(3, "much")
    with pytest.raises(InputError, match="squares"):
        bounded_differences_radius(-1.0, 0.05)


@given(st.integers(1, 10**6), st.floats(1e-300, 0.5))
def test_a_band_is_rounded_up_and_at_most_one(trials, alpha):
    exact = mpmath.sqrt(mpmath.log(1 / mpmath.mpf(alpha)) / (2 * trials))
    assert min(1, exact) <= dkw_radius(trials, alpha) <= min(1.0, float(exact) * (1 + 1e-9))


def test_a_band_of_one_trial_reaches_one_and_stays_there():
    assert dkw_radius(1, 1e-9) == 1.0
