"""Empirical-Bernstein limits: the formula, and how often they miss."""

import math

import numpy as np
import pytest

from whosin.errors import InputError
from whosin.numerics.bounded_means import empirical_bernstein_lower, empirical_bernstein_upper


def test_formula():
    """Maurer and Pontil, theorem 4, by hand: n = 100, V = 0.04, β = 0.05."""
    term = math.log(2 / 0.05)
    radius = math.sqrt(2 * 0.04 * term / 100) + 7 * term / (3 * 99)
    assert empirical_bernstein_upper(0.3, 0.04, 100, term) == pytest.approx(0.3 + radius, rel=1e-12)
    assert empirical_bernstein_lower(0.3, 0.04, 100, term) == pytest.approx(0.3 - radius, rel=1e-12)
    assert empirical_bernstein_upper(0.3, 0.04, 100, term) >= 0.3 + radius


def test_broadcasts():
    upper = empirical_bernstein_upper(np.zeros((2, 1)), np.array([0.0, 0.1, 0.2]), 10, 1.0)
    assert upper.shape == (2, 3)
    assert np.all(np.diff(upper, axis=1) > 0)


@pytest.mark.parametrize("chance", [0.02, 0.5, 0.97])
def test_coverage(chance):
    """Bernoulli samples, the widest law with its mean: misses at β = 0.2 judged by a binomial test at 1e-6."""
    from scipy.stats import binomtest

    rng = np.random.default_rng(4)
    runs, n, beta = 2000, 60, 0.2
    samples = rng.random((runs, n)) < chance
    mean, variance = samples.mean(axis=1), samples.var(axis=1, ddof=1)
    for limit, wrong in (
        (empirical_bernstein_upper(mean, variance, n, math.log(2 / beta)), lambda x: x < chance),
        (empirical_bernstein_lower(mean, variance, n, math.log(2 / beta)), lambda x: x > chance),
    ):
        misses = int(np.sum(wrong(limit)))
        assert binomtest(misses, runs, beta, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.5, -0.1, 10, 1.0), "variance"),
        ((0.5, math.nan, 10, 1.0), "variance"),
        ((0.5, 0.1, 1, 1.0), "count"),
        ((0.5, 0.1, 10, 0.0), "log_term"),
    ],
)
def test_bad_input(arguments, name):
    for limit in (empirical_bernstein_upper, empirical_bernstein_lower):
        with pytest.raises(InputError, match=name):
            limit(*arguments)
