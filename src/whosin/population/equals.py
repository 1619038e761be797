"""What a record's equals hide, whatever is released about the pool.

Of the c records with one contribution h are drawn. Knowing for every contribution how often it was drawn, somebody can
say no more of x than h/c: its equals are as likely. So for every mechanism that sees contributions alone, with any
noise or none, two laws of h bound what it tells of x, by data processing (docs/theory.md):

    P(h = j | x in) = C(c-1, j-1)·C(N-c, k-j) / C(N-1, k-1),   P(h = j | x out) = C(c-1, j)·C(N-c, k-j) / C(N-1, k).
"""

from __future__ import annotations

import numpy as np

from whosin.arrays import Array
from whosin.numerics.finite_laws import closeness_epsilons
from whosin.numerics.shift import equal_rows


def epsilons_among_equals(contributions: Array, k: int, delta: float) -> Array:
    """Return an upper limit on each record's ε̃ where k of the pool are drawn: infinite for a record alone, or δ = 0.

    Attained by releasing the counts themselves. O(N log N).
    """
    if delta == 0.0:
        return np.full(len(contributions), np.inf)
    classes = equal_rows(contributions)
    sizes, place = np.unique(np.bincount(classes), return_inverse=True)
    limits = np.array([_epsilon(int(size), len(classes), k, delta) for size in sizes])
    return np.asarray(limits[place][classes])


def _epsilon(size: int, records: int, k: int, delta: float) -> float:
    """The smallest ε for a record with ``size`` - 1 equals, rounded up."""
    from scipy.special import gammaln

    def log_ways(n: int, taken: Array) -> Array:
        possible = (taken >= 0) & (taken <= n)
        r = np.where(possible, taken, 0)
        return np.where(possible, gammaln(n + 1.0) - gammaln(r + 1.0) - gammaln(n - r + 1.0), -np.inf)

    drawn = np.arange(min(size, k) + 1.0)
    others = log_ways(records - size, k - drawn)
    inside = log_ways(size - 1, drawn - 1.0) + others - log_ways(records - 1, np.array(k - 1.0))
    outside = log_ways(size - 1, drawn) + others - log_ways(records - 1, np.array(float(k)))
    margin = 2.0**-48 * (1.0 + float(gammaln(records + 1.0)))
    ways = (inside, outside), (outside, inside)
    return max(0.0, *(float(closeness_epsilons(p[None] + margin, q[None] - margin, delta)[0]) for p, q in ways))
