"""Exact privacy of a sum of numbers plus Laplace noise, where all the data sets can be listed.

The data set D is a uniform k-subset of N numbers. Given in and given out, the output is a mixture of Laplace noise
around the sums. Between neighbouring sums, u away from the left one and with a gap g, each density is
(A·e^{-u} + B·e^{u-g})/2, A seen from the left and B from the right, so p - γq has at most one zero there and
E_γ = ∫(p - γq)_+ is a sum of exponentials. The ratio p/q is monotone between sums and constant beyond the last, so a
sum attains its supremum, which settles δ = 0.

What is known about the error, all of it in the enclosures (u the unit of rounding 2⁻⁵³):

* A sum is off by at most η = u·(r + 6)·(the r largest |f| in noise scales, added up), r the smaller of k and N - k,
  which changes a density by a factor within e^{±η}.
* A and B come from a recursion in logarithms that carries a limit on its error along: the mean of both terms' errors,
  weighted as the terms are, and some u·(1 + |logarithm|). That, too, is a factor, and so is what the differences and
  sums of E_γ lose.
* With all the factors within e^{±s}, e^{-s}·E_γ'' ≤ E_γ ≤ e^s·E_γ' for the computed densities, γ'' = γ·e^{2s} and
  γ' = γ·e^{-2s}. A zero that is off by 1e-13 costs its square: 1e-25 for each sum is added. So small divergences keep
  their digits, at any γ.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whosin.arrays import Array, Index

_U = 2.0**-53
_ARITHMETIC = 100.0 * _U
"""Relative rounding of p - γq, of the pieces of its integral and of their sum."""

_MISPLACED = 1e-25
"""What a zero may cost that is not quite where it should be, and what is lost below e^_FAINT."""

_FAINT = -700.0


class LaplaceSums:
    """The sums of all k-subsets of some numbers, in scales of the noise.

    Notes
    -----
    O(C(N, k)·min(k, N - k)) to list them. A record's laws then take O(C(N, k)) steps of a recursion in Python, half a
    second for 10⁵ data sets, and each divergence O(C(N, k)) in arrays, some hundredths of a second.
    """

    def __init__(self, f: Array, k: int, scale: float) -> None:
        g = (f - f.mean()) / scale
        few = min(k, len(g) - k)
        picks = itertools.chain.from_iterable(itertools.combinations(range(len(g)), few))
        self._picked = np.fromiter(picks, dtype=np.int32).reshape(-1, few)
        self._picks_members = few == k
        sums = g[self._picked].sum(axis=1) if self._picks_members else g.sum() - g[self._picked].sum(axis=1)
        reach = float(np.sort(np.abs(g))[-few:].sum()) + (0.0 if self._picks_members else abs(float(g.sum())))
        self.shift = _U * (few + 6.0) * reach
        self.centres, self._which = np.unique(sums, return_inverse=True)

    def laws(self, record: int) -> LaplaceLaws:
        """Return the laws of the output given that a record is in and given that it is out."""
        picked = (self._picked == record).any(axis=1)
        inside = picked if self._picks_members else ~picked
        gaps = np.diff(self.centres)
        sides = [_Side.of(self._which[chosen], len(self.centres), gaps) for chosen in (inside, ~inside)]
        return LaplaceLaws(gaps, (sides[0], sides[1]), self.shift)


@dataclass(frozen=True)
class _Side:
    """One mixture: ln A from each centre to the left, ln B to the right, and limits on the errors of both."""

    left: Array
    right: Array
    left_slip: Array
    right_slip: Array

    @classmethod
    def of(cls, which: Index, count: int, gaps: Array) -> _Side:
        with np.errstate(divide="ignore"):
            logs = np.log(np.bincount(which, minlength=count) / len(which))
        left, left_slip = _accumulated(logs, gaps)
        right, right_slip = _accumulated(logs[::-1], gaps[::-1])
        return cls(left, right[::-1], left_slip, right_slip[::-1])

    @cached_property
    def falling(self) -> Array:
        """A, at each centre."""
        return np.exp(self.left)

    @cached_property
    def rising(self) -> Array:
        """B, at each centre."""
        return np.exp(self.right)

    def slip(self) -> float:
        """Limit on the error of a logarithm, where it counts."""
        parts = ((self.left, self.left_slip), (self.right, self.right_slip))
        return max(float(slips[logs > _FAINT].max(initial=0.0)) for logs, slips in parts)

    def log_density(self, gaps: Array) -> tuple[Array, Array]:
        """ln 2·density at the centres, and limits on the errors."""
        below = np.concatenate([[-np.inf], self.left[:-1] - gaps])
        values = np.logaddexp(below, self.right)
        slips = np.maximum(np.concatenate([[0.0], self.left_slip[:-1]]), self.right_slip)
        return values, slips + 4.0 * _U * (1.0 + np.abs(np.where(np.isfinite(below), below, 0.0)) + np.abs(values))


@dataclass(frozen=True)
class LaplaceLaws:
    """Both laws of a record: ``sides`` are the mixtures given in and given out."""

    gaps: Array
    sides: tuple[_Side, _Side]
    shift: float

    @cached_property
    def _slip(self) -> float:
        """s, but for the rounding of ε."""
        return max(side.slip() for side in self.sides) + self.shift + _ARITHMETIC

    def divergence(self, epsilon: float, swapped: bool) -> tuple[float, float, float]:
        """Lower and upper limit of E_{e^ε}, and its slope -dE/dε (not enclosed); e^ε must be finite."""
        slip = self._slip + 2.0 * _U * epsilon
        if slip > 1.0:
            return 0.0, 1.0, 0.0
        lower, _ = self._computed(epsilon + 2.0 * slip, swapped)
        upper, slope = self._computed(epsilon - 2.0 * slip, swapped)
        lost = _MISPLACED * (len(self.gaps) + 1)
        return max(0.0, lower * math.exp(-slip) - lost), min(1.0, upper * math.exp(slip) + lost), slope

    def _computed(self, epsilon: float, swapped: bool) -> tuple[float, float]:
        """E_{e^ε} of the computed densities, and its slope."""
        gamma = math.exp(epsilon)
        one, two = self.sides[::-1] if swapped else self.sides
        falling, rising = one.falling - gamma * two.falling, one.rising - gamma * two.rising
        start, stop = _positive_part(falling[:-1], rising[1:], self.gaps)
        shares = -np.expm1(start - stop)

        def mass(left: Array, right: Array) -> float:
            pieces = shares * (left[:-1] * np.exp(-start) + right[1:] * np.exp(stop - self.gaps))
            ends = right[0] * (rising[0] > 0.0) + left[-1] * (falling[-1] > 0.0)
            return 0.5 * float(pieces.sum() + ends)

        return mass(falling, rising), gamma * mass(two.falling, two.rising)

    def largest_log_ratio(self) -> tuple[float, float]:
        """Lower and upper limit of the supremum of |ln p/q|, which is the smallest ε at δ = 0."""
        (one, first), (two, second) = (side.log_density(self.gaps) for side in self.sides)
        apart, slip = np.abs(one - two), first + second + 2.0 * self.shift
        slip = slip + 2.0 * _U * apart
        return max(0.0, float((apart - slip).max())), float((apart + slip).max())


def _accumulated(logs: Array, gaps: Array) -> tuple[Array, Array]:
    """ln Σ_{i≤j} e^{logs_i - (distance of i and j)} for each j, and limits on the errors."""
    values, slips = np.empty(len(logs)), np.empty(len(logs))
    value, slip = -math.inf, 0.0
    for j, (own, gap) in enumerate(zip(logs.tolist(), [0.0, *gaps.tolist()], strict=True)):
        value -= gap
        if own > value:
            share = math.exp(value - own)
            value, weight = own + math.log1p(share), share / (1.0 + share)
        elif value > -math.inf:
            share = math.exp(own - value)
            value, weight = value + math.log1p(share), 1.0 / (1.0 + share)
        else:
            weight = 0.0
        slip = weight * slip + _U * (4.0 * abs(value if value > -math.inf else 0.0) + 2.0 * weight * gap + 8.0)
        values[j], slips[j] = value, slip
    return values, slips


def _positive_part(falling: Array, rising: Array, gaps: Array) -> tuple[Array, Array]:
    """Where falling·e^{-u} + rising·e^{u - gap} is positive within each gap, as [start, stop]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = 0.5 * (gaps + np.log(np.abs(falling)) - np.log(np.abs(rising)))
    zero = np.clip(np.where(falling * rising < 0.0, zero, 0.0), 0.0, gaps)
    start = np.where(falling > 0.0, 0.0, np.where(rising > 0.0, zero, gaps))
    stop = np.where((falling > 0.0) & (rising < 0.0), zero, gaps)
    return start, stop
