"""Laws of the privacy loss on a grid: rounded up, composed by FFT, and back to a curve.

The divergence of a pair is rounded up onto a grid (connect the dots: Doroshenko et al. 2022) and composed by FFT. Laws
are kept as Google's dp-accounting keeps them. The composed law is finite, so its curve is piecewise linear: TPR(FPR) =
min over ε of δ(ε) + e^ε·FPR, exact for the rounded-up law and therefore never below the truth. What the FFT may have
moved by its rounding has a proven limit (:mod:`whosin.numerics.sums`), and as much mass more is at infinite loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.numerics.sums import power_of, sums_of_draws
from whosin.roc import Roc

MOST_POINTS = 2**21
_EPS = float(np.finfo(np.float64).eps)
_LOST = 1e-15  # mass beyond the grid, which counts as infinite loss
_SHARES = (0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0)  # of the slope that is best for a normal law


def law_of_divergence(divergence: Callable[[Array], Array], low: float, high: float, spacing: float) -> Any:
    """Return the law that connects the dots: E_{e^t} at the points of the grid, and what is left at infinite loss.

    With d the fall of E over a cell and h the spacing, mass d + (d - next d)/(e^h - 1) lies at its end. Both terms use
    the same e^h - 1: one of e^h rounded by itself would be off by eps/h of it, in all cells the same way.
    """
    from dp_accounting.pld import pld_pmf

    first, last = math.floor(low / spacing), math.ceil(high / spacing)
    deltas = divergence(spacing * np.arange(first, last + 1, dtype=np.float64))
    # Divergences fall in t but for their rounding; a rise would be a negative mass. Repaired upwards, the safe way.
    falling = np.maximum.accumulate(deltas[::-1])[::-1]
    falls = np.concatenate([[0.0], -np.diff(falling), [0.0]])
    masses = falls[:-1] - np.diff(falls) / math.expm1(spacing)
    masses[0] += 1.0 - falling[0]
    return pld_pmf.DensePLDPmf(spacing, first, np.maximum(masses, 0.0), float(falling[-1]), True)


def composed_law(law_at: Callable[[float], Any], times: int, spacing: float) -> Any:
    """Return the law of a sum of so many draws of ``law_at(spacing)``, coarser where it spreads too far."""
    one = law_at(spacing)
    # 24 standard deviations of the sum have to fit into the grid: beyond 12 a side hardly any mass is left
    wider = 24.0 * _spread(one._lower_loss, one._probs, spacing) * math.sqrt(times) / MOST_POINTS
    return many_of(law_at(wider) if wider > spacing else one, times)


def many_of(one: Any, times: int) -> Any:
    """Return the law of a sum of so many draws."""
    if times == 1:
        return one
    if times * math.log1p(-min(one._infinity_mass, 1.0 - 1e-16)) < math.log(_LOST):
        return type(one)(one._discretization, 0, np.zeros(1), 1.0, True)
    low, high = _range_of_sum(one._probs, times)
    if high - low > 4 * MOST_POINTS:  # the direct limits are too wide: double the law, and cut its tails each time
        return power_of(one, times, joined)
    return _power(one, times, low, high)


def _power(one: Any, times: int, low: int, high: int) -> Any:
    """The law of the sum by one FFT; what wraps round and what rounding may have moved counts as infinite loss too."""
    from dp_accounting.pld import pld_pmf
    from scipy.fft import next_fast_len

    size = next_fast_len(max(high - low + 1, len(one._probs)), real=True)
    ((masses, lost),) = sums_of_draws(one._probs, times - 1, size, (one._probs,))
    infinite = _LOST + lost - math.expm1(times * math.log1p(-min(one._infinity_mass, 1.0 - 1e-16)))
    places = np.arange(low, high + 1) % size
    return pld_pmf.DensePLDPmf(
        one._discretization, one._lower_loss * times + low, masses[places], min(1.0, infinite), True
    )


def _range_of_sum(masses: Array, times: int) -> tuple[int, int]:
    """Cells between which a sum of draws lies but for a mass of 1e-15: Chernoff's limits, at slopes near the best."""
    cells = np.arange(len(masses), dtype=np.float64)
    mean = _dot(masses, cells)
    deviation = math.sqrt(max(times * _dot(masses, (cells - mean) ** 2), 1e-30))
    ends = []
    for sign in (-1.0, 1.0):
        best = math.inf
        for share in _SHARES:
            slope = share * math.sqrt(2.0 * -math.log(0.5 * _LOST)) / deviation
            exponents = sign * slope * (cells - mean)
            top = float(exponents.max())
            moment = top + math.log(max(_dot(masses, np.exp(exponents - top)), 1e-300))
            best = min(best, (times * moment - math.log(0.5 * _LOST)) / slope)
        ends.append(times * mean + sign * best)
    longest = times * (len(masses) - 1)
    return max(0, math.floor(ends[0]) - 1), min(longest, math.ceil(ends[1]) + 1)


def _dot(masses: Array, values: NDArray[Any]) -> float:
    """Σ mass·value in one thread: those of a BLAS would cost more than they save."""
    return float(np.sum(masses * values))


def _spread(lowest: int, masses: Array, spacing: float) -> float:
    """Standard deviation of the finite losses."""
    losses = (lowest + np.arange(len(masses))) * spacing
    total = float(masses.sum())
    mean = _dot(masses, losses) / total
    return math.sqrt(max(0.0, _dot(masses, (losses - mean) ** 2) / total))


def joined(one: Any, other: Any) -> Any:
    """Return the law of the sum of two draws, its tails cut: the low one moves up, the high one to infinite loss."""
    from scipy.fft import next_fast_len

    count = len(one._probs) + len(other._probs) - 1
    size = next_fast_len(count, real=True)
    ((masses, lost),) = sums_of_draws(other._probs, 1, size, (one._probs,))
    masses = masses[:count]
    first, spare = (int(np.searchsorted(np.cumsum(side), 0.5 * _LOST)) for side in (masses, masses[::-1]))
    first = min(first, count - 1)
    last = max(count - spare, first + 1)
    kept = masses[first:last].copy()
    kept[0] += masses[:first].sum()
    infinite = one._infinity_mass + other._infinity_mass * (1.0 - one._infinity_mass)
    infinite += lost + float(masses[last:].sum())
    place = one._lower_loss + other._lower_loss + first
    return type(one)(one._discretization, place, kept, min(1.0, infinite), True)


def deltas_of_law(law: Any, epsilons: Array) -> Array:
    """Return δ at each ε of a law of dp-accounting on a dense grid, with the same room for rounding as its curve."""
    masses, certain = _kept(law._probs, law._infinity_mass)
    losses = (law._lower_loss + np.arange(len(masses))) * law._discretization
    above, above_out = (sums[::-1] for sums in _sums_from_above(masses[::-1], losses[::-1]))
    i = np.searchsorted(losses, epsilons, side="right")
    with np.errstate(over="ignore", invalid="ignore"):
        found = above[i] * (1.0 + 4.0 * _EPS) - np.nan_to_num(np.exp(epsilons) * above_out[i]) * (1.0 - 4.0 * _EPS)
    return np.asarray(np.clip(certain + np.maximum(found, 0.0), 0.0, 1.0))


def _sums_from_above(masses: Array, losses: Array) -> tuple[Array, Array]:
    """Running sums of masses under "in", rounded up, and under "out", rounded down, in falling order of loss.

    Mass p at loss l stands for p·e^{-l} under "out", whose rounding grows with the loss; under the least normal float
    three products may round up by as many halves of the last digit.
    """
    with np.errstate(over="ignore"):
        outside = masses * np.exp(-losses) * (1.0 - _EPS * (4.0 + 2.0 * np.abs(losses)))
    return sums_outwards(masses, np.maximum(outside - 2.0 * math.ulp(0.0), 0.0))


def sums_outwards(up: Array, down: Array) -> tuple[Array, Array]:
    """Running sums from 0 on of two lists of as many numbers of at least 0: one rounded up, the other down.

    Sums within blocks and over blocks of √n numbers are off by no more than 2√n + 2 roundings, of eps/2 each.
    """
    width = math.isqrt(max(len(up) - 1, 0)) + 1
    rounding = _EPS * (width + 6.0)
    return _running(up, width) * (1.0 + rounding), _running(down, width) * (1.0 - rounding)


def _running(values: Array, width: int) -> Array:
    blocks = np.zeros((width, width))
    blocks.ravel()[: len(values)] = values
    inner = np.cumsum(blocks, axis=1)
    inner[1:] += np.cumsum(inner[:-1, -1])[:, None]
    return np.append(0.0, inner.ravel()[: len(values)])


def _kept(masses: Array, infinite: float) -> tuple[Array, float]:
    """Masses without FFT noise, and the mass at infinite loss with all that the noise could have hidden."""
    infinite = max(0.0, infinite)
    noise_floor = max(0.0, -float(masses.min(initial=0.0)))
    kept = np.maximum(masses, 0.0)
    missing = max(0.0, 1.0 - infinite - float(kept.sum()))
    return kept, min(1.0, infinite + missing + len(masses) * noise_floor)


def roc_of_law(law: Any) -> Roc:
    """Return the member curve of a law of dp-accounting on a dense grid.

    Mass p at loss l stands for p·e^{-l} under "out". Taken in falling order of loss these are the edges of the curve;
    extra mass only raises it. Negative masses are FFT noise: they are set to zero, and as much mass as that noise
    could have hidden in all cells together is moved to infinite loss. So is what the masses fall short of one. All sums
    are rounded outwards.
    """
    losses = (law._lower_loss + np.arange(len(law._probs))) * law._discretization
    positive, certain = _kept(law._probs, law._infinity_mass)
    kept = positive > 0.0
    found, accused = _sums_from_above(positive[kept][::-1], np.asarray(losses[kept][::-1]))
    tpr, fpr = (certain + found) * (1.0 + _EPS), accused
    tpr[0] = certain
    inside = (fpr < 1.0) & (tpr < 1.0)
    count = int(np.argmin(inside)) if not inside.all() else len(inside)
    x, y = fpr[:count], tpr[:count]
    if count and count < len(fpr) and fpr[count] < 1.0:
        share = (1.0 - y[-1]) / (tpr[count] - y[-1])
        x, y = np.append(x, x[-1] + share * (fpr[count] - x[-1])), np.append(y, 1.0)
    return Roc(x, y) if count else Roc([0.0], [1.0])
