"""Random allocation ("balls and bins"): in every epoch each record goes into one of T batches, chosen at random.

Against nobody in its place an epoch is no easier to attack than telling (1/T)·Σ_t N(e_t) from N(0, I_T) (Chua et al.
2024; docs/theory.md). The likelihood ratio is Λ = (1/T)·ΣW_t with W_t independent and lognormal under N(0, I_T), so
E_γ(in‖out) = E(Λ - γ)₊ and E_γ(out‖in) = E(1 - γΛ)₊. Each W is moved to the two points of a linear grid around it so
that its mean stays the same: both functions are convex, so both only grow (Jensen). W above the cut counts as revealed.
The sum of T such W is one FFT to the power T; under "in" one of them has the law of a drawn batch, so the law of Λ is
the same product with one factor changed.

Three things can take from what is computed, and all are given back. Rounding: both functions change by at most as much
as the mean of Λ (times γ), which is off by the roundings of the cells; their sums are rounded outwards. The FFT: a
proven limit on the sum of all its errors (:mod:`whosin.numerics.sums`). Sums beyond the grid wrap round to its start:
Chernoff limits their mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from whosin.arrays import Array
from whosin.guarantees.losses import sums_outwards
from whosin.guarantees.steps import limited
from whosin.numerics.sums import sums_of_draws

_EPS = float(np.finfo(np.float64).eps)

_MOST_POINTS = 2**21
_CUT = 7.5  # standard deviations above the mean under "in"
_TAIL = 1e-12  # mass beyond the range of losses that is looked at


def allocation_law(noise: float, batches: int, outsider: bool) -> tuple[Callable[[Array], Array], float, float]:
    """Return E_{e^t} of one epoch as a function of rising t, rounded up, and the range of its losses."""
    law = _ratio_law(noise, batches)
    ratios = law.ratios
    if outsider:
        below, below_in = sums_outwards(law.outside, law.outside * ratios)

        def outside(losses: Array) -> Array:
            gamma = np.exp(losses)
            i = np.searchsorted(ratios, 1.0 / gamma, side="left")
            found = below[i] - gamma * below_in[i] + law.lost_out + gamma * law.lost_mean
            return limited(np.minimum.accumulate(found), losses)

        least = float(ratios[max(1, int(np.searchsorted(below, _TAIL)) - 1)])
        return outside, -math.log(float(ratios[-1])), -math.log(least)
    shares = np.divide(law.inside, ratios, out=np.zeros_like(ratios), where=ratios > 0.0)
    above, above_out = (sums[::-1] for sums in sums_outwards(law.inside[::-1], shares[::-1]))

    def member(losses: Array) -> Array:
        gamma = np.exp(losses)
        i = np.searchsorted(ratios, gamma, side="right")
        return limited(above[i] - gamma * above_out[i] + law.lost_in, losses)

    last = min(len(ratios) - 1, int(np.searchsorted(-above, -_TAIL)) + 1)
    return member, math.log(float(ratios[1])), math.log(float(ratios[last]))


@dataclass(frozen=True)
class _RatioLaw:
    """Law of Λ on a grid under "out" and under "in", and what may be missing."""

    ratios: Array
    outside: Array
    inside: Array
    lost_out: float
    lost_in: float
    """With the mass above the cut, which counts as revealed."""
    lost_mean: float


@lru_cache(maxsize=8)
def _ratio_law(noise: float, batches: int) -> _RatioLaw:
    from scipy.fft import next_fast_len
    from scipy.special import ndtr

    mu = 1.0 / noise
    cut = math.exp(min(mu * (mu + _CUT) - mu * mu / 2.0, 300.0))
    spread = math.sqrt(batches * math.expm1(min(mu * mu, 300.0)))
    longest = min(batches * cut, batches + 40.0 * spread + 4.0 * cut)
    step = max(longest / _MOST_POINTS, 1e-4)
    grid = np.arange(math.ceil(cut / step) + 1, dtype=np.float64) * step
    with np.errstate(divide="ignore"):
        at = (np.log(grid) + mu * mu / 2.0) / mu
    (mass, size_out), (mean, size_in) = _cells(at), _cells(at - mu)
    upper = np.clip((mean - grid[:-1] * mass) / step, 0.0, mass)
    one = np.zeros(len(grid))
    one[:-1] += mass - upper
    one[1:] += upper
    one[0] += ndtr(-at[-1])
    size = next_fast_len(max(math.ceil(longest / step) + 1, len(grid)), real=True)
    (outside, lost), (inside, lost_in) = sums_of_draws(one, batches - 1, size, (one, one * grid))
    mean_lost = 100.0 * _EPS * float(np.sum(size_in + grid[1:] * size_out))
    mass_lost = batches * abs(1.0 - float(one.sum())) + 1e-14
    beyond = _beyond(one, grid, batches, size * step) + float(ndtr(mu - at[-1]))
    return _RatioLaw(
        np.arange(size) * step / batches,
        outside,
        inside,
        lost + mass_lost,
        lost_in + mass_lost + mean_lost + beyond,
        mean_lost,
    )


def _beyond(one: Array, grid: Array, batches: int, end: float) -> float:
    """Mass of sums beyond the end of the grid, under "in" (Chernoff); more than under "out"."""
    if batches * grid[-1] < end:
        return 0.0
    limits = []
    for rate in (1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0):
        grown = one * np.exp(rate * (grid / grid[-1]))
        log_moment = math.log(float(np.sum(grown * grid))) + (batches - 1) * math.log(float(np.sum(grown)))
        limits.append(log_moment - rate * end / float(grid[-1]))
    return math.exp(min(0.0, *limits))


def _cells(at: Array) -> tuple[Array, Array]:
    """Normal chances between places in order, from the nearer tail, and the size of what was subtracted."""
    from scipy.special import ndtr

    low, high = ndtr(at), ndtr(-at)
    right = at[:-1] > 0.0
    return np.where(right, high[:-1] - high[1:], low[1:] - low[:-1]), np.where(right, high[:-1], low[1:])
