"""Confidence limits for proportions, for whole distribution functions, and for functions of many samples.

Every limit here is one-sided, holds for any number of samples (nothing is asymptotic), and is rounded outwards:

* Clopper and Pearson (1934): with x successes in n independent trials of chance θ, the lower limit is the α-quantile of
  Beta(x, n-x+1) and the upper limit the (1-α)-quantile of Beta(x+1, n-x); each misses θ with probability at most α.
* Dvoretzky, Kiefer and Wolfowitz with Massart's constant (1990): P(sup (F̂ - F) > √(ln(1/α)/(2n))) ≤ α for α ≤ ½.
* McDiarmid (1989): a function of independent samples that changes by at most c_i with the i-th exceeds its mean by more
  than √(ln(1/α)·Σc_i²/2) with probability at most α.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.errors import InputError, check_number

_SLACK = 1e-10
"""Relative outward rounding: some hundred times the error of the inverse incomplete beta function."""


def clopper_pearson_lower(successes: ArrayLike, trials: ArrayLike, alpha: float) -> Array:
    """Return the lower limits of the chance of success, each missed with probability at most ``alpha``.

    0 where there was no success, or no trial. Broadcasts; one inverse incomplete beta function for each number.
    """
    from scipy.special import betaincinv

    x, n = _counts(successes, trials)
    alpha = _level(alpha)
    limit = betaincinv(np.maximum(x, 1.0), n - x + 1.0, alpha) * (1.0 - _SLACK)
    return np.asarray(np.where(x > 0, limit, 0.0))


def clopper_pearson_upper(successes: ArrayLike, trials: ArrayLike, alpha: float) -> Array:
    """Return the upper limits of the chance of success, each missed with probability at most ``alpha``.

    1 where every trial was a success, or where there was none. Broadcasts.
    """
    from scipy.special import betainccinv

    x, n = _counts(successes, trials)
    alpha = _level(alpha)
    limit = betainccinv(x + 1.0, np.maximum(n - x, 1.0), alpha) * (1.0 + _SLACK)
    return np.asarray(np.where(x < n, np.minimum(limit, 1.0), 1.0))


def dkw_radius(trials: int, alpha: float) -> float:
    """Return the height of a one-sided band around an empirical distribution function, at most 1.

    For ``alpha`` above ½ the radius of ½ is taken, which the theorem needs.
    """
    alpha = min(_level(alpha), 0.5)
    return 1.0 if trials <= 0 else min(1.0, math.sqrt(math.log(1.0 / alpha) / (2.0 * trials)) * (1.0 + _SLACK))


def bounded_differences_radius(squares: float, alpha: float) -> float:
    """Return √(ln(1/α)·Σc²/2), where ``squares`` is the sum of the squared largest changes, one for each sample."""
    squares = check_number("squares", squares, low=0.0)
    return math.sqrt(0.5 * math.log(1.0 / _level(alpha)) * squares) * (1.0 + _SLACK)


def _level(alpha: float) -> float:
    return check_number("alpha", alpha, low=0.0, high=1.0, open_low=True, open_high=True)


def _counts(successes: ArrayLike, trials: ArrayLike) -> tuple[Array, Array]:
    x, n = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    if not np.all((x >= 0) & (x <= n) & np.isfinite(n)):
        raise InputError("successes must be counts from 0 to the number of trials, got a count outside")
    return x, n
