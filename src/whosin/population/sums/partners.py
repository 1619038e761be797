"""Who takes a record's place when records are drawn with unequal chances.

Records come independently with chances p_j, and the data set is what came given that k came (conditional Bernoulli, Li
et al.'s D_B). Given x in, k - 1 of the others are drawn, given x out k of them. There is a coupling in which the second
set is the first and one more record (docs/theory.md), so adjacent data sets are compared as in a uniform draw, with a
partner j for x that has the chance

    π_x(j) = P(j among k of the others) - P(j among k - 1 of the others),

by the marginals alone. Both are quotients of Poisson-binomial probabilities without x and j, which are means over roots
of unity of Π(1 - p_i + p_i z)/((1 - p_x + p_x z)(1 - p_j + p_j z)): one matrix product for all pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.errors import InputError

MOST_RECORDS = 2000
"""Above, the matrix of partners is too large."""

_U = 2.0**-53


def partner_chances(chances: ArrayLike, count: int, k: int) -> Array:
    """Return π_x(j), one row for each of ``count`` records x, rounded up; 0 on the diagonal.

    O(N³) time at the speed of matrix products, O(N²) memory.

    Examples
    --------
    With equal chances every other record is equally likely:

    >>> partner_chances([0.3, 0.3, 0.3], 3, 1).round(6).tolist()
    [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    """
    p = _tilted(_checked(chances, count), k)
    roots = count + 1 + count % 2  # odd, so that -1 is none of them
    z = np.exp(2j * np.pi / roots * np.arange(roots))
    factors = (1.0 - p[:, None]) + p[:, None] * z
    sizes = np.abs(factors)
    product = np.exp(np.log(factors).sum(axis=0)) / roots
    slips = _U * ((20.0 + 12.0 / sizes).sum(axis=0) * (1.0 + np.abs(np.log(sizes)).max(axis=0)) + 4.0 * roots)
    inverse = 1.0 / factors
    slip = 2.0 * float(np.sum(np.abs(product) * slips / sizes.min(axis=0) ** 2))

    def without(m: int) -> tuple[Array, Array]:
        """Chances that m come, without each x, and without each x and j."""
        weights = product * z ** (-m % roots)
        return (inverse @ weights).real, ((inverse * weights) @ inverse.T).real

    one, (whole, before) = without(k)[0], without(k - 1)
    if min(one.min(), whole.min()) <= 4.0 * slip:
        raise InputError(
            f"chances must leave every record room to be in or out when {k} are drawn, got some that do not"
        )
    earlier = without(k - 2)[1] if k >= 2 else np.zeros_like(before)
    shares = p * (before / one[:, None] - earlier / whole[:, None])
    shares = np.maximum(shares, 0.0) + 8.0 * slip * (1.0 / one[:, None] + 1.0 / whole[:, None])
    np.fill_diagonal(shares, 0.0)
    return np.minimum(shares, 1.0)


def _checked(chances: ArrayLike, count: int) -> Array:
    try:
        p = np.asarray(chances, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"chances must be numbers, got {chances!r}") from None
    if p.shape != (count,):
        raise InputError(f"chances must be one number for each of {count} records, got an array of shape {p.shape}")
    if not ((p > 0.0) & (p < 1.0)).all():
        raise InputError("chances must be above 0 and below 1, got others")
    if count > MOST_RECORDS:
        raise InputError(f"chances must be those of at most {MOST_RECORDS} records, got {count}")
    return p


def _tilted(p: Array, k: int) -> Array:
    """Chances with the same ratios of odds, which the draw depends on alone, that add up to about k."""
    from scipy.special import expit, logit

    odds = logit(p)
    low, high = -odds.max() - 50.0, -odds.min() + 50.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(odds + middle).sum() < k else (low, middle)
    return np.asarray(expit(odds + high))
