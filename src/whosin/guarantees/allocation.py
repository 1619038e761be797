"""Random allocation ("balls and bins"): in every epoch each record goes into one of T batches, chosen at random.

Against nobody in its place an epoch is no easier to attack than telling (1/T)·Σ_t N(e_t) from N(0, I_T) (Chua et al.
2024; docs/theory.md). The likelihood ratio is Λ = (1/T)·ΣW_t with W_t independent and lognormal under N(0, I_T), so
E_γ(in‖out) = E(Λ - γ)₊ and E_γ(out‖in) = E(1 - γΛ)₊. Each W is moved to the two points of a linear grid around it so
that its mean stays the same: both functions are convex, so both only grow (Jensen). W above the cut counts as revealed.
The sum of T such W is one FFT to the power T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["allocation_law"]

Array = NDArray[np.float64]

_MOST_POINTS = 2**21
_CUT = 7.5  # standard deviations above the mean under "in"
_FFT_NOISE = 1e-12


def allocation_law(noise: float, batches: int, outsider: bool) -> tuple[Callable[[Array], Array], float, float]:
    """Return E_{e^t} of one epoch as a function of t, rounded up, and the range of its losses."""
    ratios, masses, revealed = _ratio_law(noise, batches)
    weights = masses * ratios
    if outsider:
        below, below_in = (np.concatenate([[0.0], np.cumsum(values)]) for values in (masses, weights))

        def outside(losses: Array) -> Array:
            gamma = np.exp(losses)
            i = np.searchsorted(ratios, 1.0 / gamma, side="left")
            return _between(below[i] - gamma * below_in[i] + _FFT_NOISE, losses)

        least = float(ratios[max(1, int(np.searchsorted(below, _FFT_NOISE)) - 1)])
        return outside, -math.log(float(ratios[-1])), -math.log(least)
    above, above_in = (np.append(np.cumsum(values[::-1])[::-1], 0.0) for values in (masses, weights))

    def member(losses: Array) -> Array:
        gamma = np.exp(losses)
        i = np.searchsorted(ratios, gamma, side="right")
        return _between(above_in[i] - gamma * above[i] + revealed + _FFT_NOISE, losses)

    last = min(len(ratios) - 1, int(np.searchsorted(-above_in, -_FFT_NOISE)) + 1)
    return member, math.log(float(ratios[1])), math.log(float(ratios[last]))


def _between(value: Array, losses: Array) -> Array:
    return np.asarray(np.clip(value, np.maximum(0.0, -np.expm1(losses)), 1.0))


@lru_cache(maxsize=8)
def _ratio_law(noise: float, batches: int) -> tuple[Array, Array, float]:
    """Law of Λ under "out" on a grid, its mean kept, and the mass of "in" that lies above the cut."""
    from scipy.special import ndtr

    mu = 1.0 / noise
    cut = math.exp(min(mu * (mu + _CUT) - mu * mu / 2.0, 300.0))
    spread = math.sqrt(batches * math.expm1(min(mu * mu, 300.0)))
    longest = min(batches * cut, batches + 40.0 * spread + 4.0 * cut)
    step = max(longest / _MOST_POINTS, 1e-4)
    grid = np.arange(math.ceil(cut / step) + 1) * step
    with np.errstate(divide="ignore"):
        at = (np.log(grid) + mu * mu / 2.0) / mu
    below, below_in = ndtr(at), ndtr(at - mu)
    mass, mean = np.diff(below), np.diff(below_in)
    upper = np.clip((mean - grid[:-1] * mass) / step, 0.0, mass)
    one = np.zeros(len(grid))
    one[:-1] += mass - upper
    one[1:] += upper
    one[0] += 1.0 - below[-1]
    size = 1 << (math.ceil(longest / step) + 1).bit_length()
    total = np.maximum(np.fft.irfft(np.fft.rfft(one, size) ** batches, size), 0.0)
    return np.arange(size) * step / batches, total, float(ndtr(mu - at[-1]))
