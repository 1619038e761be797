"""Confidence limits for the mean of bounded samples.

Maurer and Pontil (2009), theorem 4: for n ≥ 2 independent samples in an interval of length 1, with sample variance V
(the unbiased one, divisor n - 1), with probability at least 1 - β

    E X ≤ mean + √(2·V·ln(2/β)/n) + 7·ln(2/β)/(3·(n - 1)),

and the same with the signs exchanged, by reflection. ``log_term`` is ln(2/β); a union bound over m statements takes
ln(2m/β). No assumption is made on the shape of the law.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.errors import InputError


def empirical_bernstein_upper(mean: ArrayLike, variance: ArrayLike, count: ArrayLike, log_term: float) -> Array:
    """Return the upper limit, which is not cut off at the end of the interval. Broadcasts; O(1) for each number."""
    return np.asarray(mean, dtype=np.float64) + _radius(variance, count, log_term)


def empirical_bernstein_lower(mean: ArrayLike, variance: ArrayLike, count: ArrayLike, log_term: float) -> Array:
    """Return the lower limit, which is not cut off at the end of the interval. Broadcasts; O(1) for each number."""
    return np.asarray(mean, dtype=np.float64) - _radius(variance, count, log_term)


def _radius(variance: ArrayLike, count: ArrayLike, log_term: float) -> Array:
    variance, count = np.asarray(variance, dtype=np.float64), np.asarray(count, dtype=np.float64)
    if not np.all(variance >= 0.0):
        raise InputError(f"variance must be numbers of at least 0, got {float(np.min(variance))!r}")
    if not np.all(count >= 2.0):
        raise InputError(f"count must be at least 2 samples, got {float(np.min(count))!r}")
    if not log_term > 0.0:
        raise InputError(f"log_term must be ln(2/β), a number above 0, got {log_term!r}")
    chance = np.sqrt(2.0 * variance * log_term / count)
    return np.asarray((chance + 7.0 * log_term / (3.0 * (count - 1.0))) * (1.0 + 1e-15))
