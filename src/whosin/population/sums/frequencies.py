"""What is left of a noisy sum's law beyond a degree of its Hermite series, in total, where the noise is little.

The series of :mod:`whosin.population.sums.hermite` is cut at a degree K. What is beyond it has a norm over the normal
law that is only known where noise makes a good part of the variance. Its total mass needs less. With
φ(θ) = E exp(θ·y) the transform of the whitened law and φ_K that of the series up to K, for every κ > 1

    (∫|beyond K|)² ≤ (κ/π)^d ∫∫ exp(-2κ|η|²)·|φ(iy+η) - φ_K(iy+η)|² dy dη,

by Cauchy and Schwarz with the normal law of variance κ and by Plancherel. Near 0 the difference is the rest of the
series, whose terms are bounded point by point: there the largest Σ(η_j·e)⁴ over directions e counts, several times
smaller than the norm of the tensor. Far away both φ and φ_K are small: with p_j the chance of being drawn, tilted by η,

    |φ(iy+η)| ≤ e^{…}·mean over b of exp(-2Σ p_j(1-p_j)·sin²(η_j·y/2 + b)) / P(m of N₁ are drawn),

and sin²x ≥ c(κ)·(x² - κx⁴) for every κ ≥ 1/π² turns the sum into second and fourth moments, up to frequencies at which
the noise has made φ small by itself. docs/theory.md has the proof. Cells are bounded from above, so that the sums that
stand for integrals are no smaller than these.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.population.sums.hermite import Draw, majorant, quadratic_powers, scale_of, sub_gaussian

if TYPE_CHECKING:
    from whosin.population.sums.normal import Sizes

Array = NDArray[np.float64]

SPREADS = (1.25, 1.5, 2.0, 3.0)
"""κ: variances of the normal law that masses are compared with."""
FREQUENCIES, TILTS, PHASES = (240, 140), (32, 16), 100
"""Cells in |y| and |η|, evenly in their squares and then in ratio, and in b."""
CUTS = range(8, 121, 8)
"""Degrees at which the series may be cut."""


def largest_moments(vectors: Array) -> tuple[float, float]:
    """Return numbers that are at least |Σ(v_j·e)³| and Σ(v_j·e)⁴ for all unit vectors e, and near the largest of them.

    The third also holds for complex e. e⊗e is a multiple of the identity plus a part without trace, so that forms on
    e⊗e are bounded block by block; O(N·d⁴ + d⁶).
    """
    d = vectors.shape[1]
    rows, columns = np.triu_indices(d)
    products = vectors[:, rows] * vectors[:, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    trace = (rows == columns) / math.sqrt(d)
    share = 1.0 / d
    cubic = vectors.T @ products
    along = cubic @ trace
    third = math.sqrt(share) * np.linalg.norm(along) + np.linalg.norm(cubic - np.outer(along, trace), 2)
    quartic = products.T @ products
    image = quartic @ trace
    both = float(trace @ image)
    across = float(np.linalg.norm(image - both * trace))
    rest = quartic - np.outer(trace, image) - np.outer(image, trace) + both * np.outer(trace, trace)
    fourth = share * both + 2.0 * math.sqrt(share * (1.0 - share)) * across
    fourth += (1.0 - share) * max(float(np.linalg.eigvalsh(rest)[-1]), 0.0)
    return float(third) * (1.0 + 1e-9), fourth * (1.0 + 1e-9)


@lru_cache(maxsize=1)
def sine_bounds() -> tuple[Array, Array]:
    """Return numbers κ ≥ 1/π² and c(κ) with sin²x ≥ c·(x² - κx⁴) for all x.

    Where the right side is positive |x| < π, and (sin x/x)² falls: c is the least quotient, from below on each cell.
    """
    kappa = np.minimum(np.append(1.0 + np.geomspace(1e-3, 2.28, 60), np.inf) / math.pi**2, 1.0 / 3.0)
    share = np.linspace(0.0, 1.0, 8001)
    x = share[None, :] / np.sqrt(kappa)[:, None]
    falling = np.sinc(x[:, 1:] / math.pi) ** 2
    quotients = falling / np.maximum(1.0 - share[None, :-1] ** 2, 1e-300)
    return kappa, np.minimum(quotients.min(axis=1), 1.0) * (1.0 - 1e-12)


def masses_beyond(sizes: Sizes, degree: int) -> Array:
    """Return for each K ≤ degree an upper limit on the mass ∫|·| of what is beyond K, of either side's law.

    Parameters
    ----------
    sizes : Sizes
        The norms of the pool, its largest fourth moments among them.
    degree : int
        How far the series is computed; it need not be small beyond.
    """
    draw, d, largest = sizes.draw, len(sizes.eigenvalues), float(sizes.eigenvalues.max())
    masses = np.full(degree + 1, np.inf)
    growth = max(1.0 + (draw.heaviness - 1.0) * largest, 1.0 + largest)
    room = 2.0 * SPREADS[0] - growth
    if not 0.0 < largest < 1.0 - 1e-9 or room < 0.05:
        return masses
    y, eta, far = _far(draw, d, largest, room, sizes.third, sizes.fourth)
    logs = _log_terms(sizes, degree)
    constant = max(sub_gaussian(draw.others, min(m, draw.others - m)) for m in draw.sizes)
    squares = y[None, 1:] ** 2 + eta[1:, None] ** 2
    end = float(squares.max())
    grid = np.append(np.linspace(0.0, min(800.0, end), 1000)[1:], np.geomspace(min(800.0, end), end, 400)[1:])
    grid[-1] = end
    place = np.minimum(np.searchsorted(grid, squares), len(grid) - 1)
    up, down = _sums(logs, grid)
    endless = _beyond_all(grid, degree, largest * (1.0 + draw.heaviness), constant)
    normal = 0.5 * (eta[1:, None] ** 2 - y[None, :-1] ** 2)
    weight = _log_shells(y, d)[None, :] + _log_shells(eta, d)[:, None]
    for cut in (cut for cut in CUTS if cut < degree):
        near = np.logaddexp(down[:, cut + 1], endless)[place] + normal
        difference = np.minimum(near, np.logaddexp(far, up[:, cut][place] + normal))
        outside = float(np.logaddexp(math.log(constant), np.logaddexp.reduce(_powers(logs[: cut + 1], cut / largest))))
        found = []
        for kappa in SPREADS:
            inside = np.logaddexp.reduce(2.0 * difference + weight - 2.0 * kappa * eta[:-1, None] ** 2, axis=None)
            beyond = 2.0 * outside + _log_outside(d, largest, 2.0 * kappa - growth, y[-1], eta[-1])
            found.append(0.5 * (d * math.log(kappa / math.pi) + np.logaddexp(inside, beyond)))
        masses[cut] = np.exp(np.minimum(found, 600.0)).min() * (1.0 + 1e-6)
    masses[np.isnan(masses)] = np.inf  # series that overflowed
    return masses


@lru_cache(maxsize=4)
def _far(draw: Draw, d: int, largest: float, room: float, third: float, fourth: float) -> tuple[Array, Array, Array]:
    """Ends of the cells in |y| and |η|, so far that what is outside has no weight, and ln|φ| on them."""
    y, eta = (
        np.sqrt(np.append(np.linspace(0.0, near, even), np.geomspace(near, max(end, 1.01 * near), odd + 1)[1:]))
        for near, end, (even, odd) in (
            (4.0 * d + 160.0, (d + 120.0) / (1.0 - largest), FREQUENCIES),
            (2.0 * d + 20.0, (d + 120.0) / room, TILTS),
        )
    )
    return y, eta, log_transform(draw, largest, third, fourth, y, eta)


def _log_terms(sizes: Sizes, degree: int) -> Array:
    """ln of p_j with |Ψ_j(θ)| ≤ p_j·|θ|^j for all complex θ, of either side.

    The series of the norms with Σ|z_j|^k ≤ M·h^{k-4}·|θ|^k, M the largest fourth moment, with the largest third one,
    and with |T_2| ≤ |θ|²·λ/α.
    """
    draw, unit, fourth = sizes.draw, sizes.unit, sizes.fourth
    second = float(sizes.eigenvalues.max()) / draw.alpha
    norms = np.full(degree + 1, fourth / unit**4)
    norms[:3], norms[3] = 0.0, min(math.sqrt(second * fourth), sizes.third) / unit**3
    powers = np.minimum(
        quadratic_powers(sizes.eigenvalues / draw.alpha, degree // 2 + 1),
        np.arange(degree // 2 + 2) * math.log(second),
    )
    mean, apart, rounding = majorant(norms, powers, draw, unit)
    mean[:3] = apart[:2] = 0.0
    mean[0] = 1.0
    return np.asarray(
        np.log((mean + apart) * (1.0 + rounding) + 1e-300) - np.arange(degree + 1) * math.log(scale_of(degree))
    )


def _powers(logs: Array, square: float) -> Array:
    """ln of p_j·ϱ^j."""
    return np.asarray(logs + 0.5 * np.arange(len(logs)) * math.log(max(square, 1e-300)))


def _sums(logs: Array, grid: Array) -> tuple[Array, Array]:
    """ln Σ_{j≤K} p_jϱ^j and ln Σ_{j≥K} p_jϱ^j for each ϱ² of the grid and each K."""
    terms = logs[None, :] + 0.5 * np.arange(len(logs))[None, :] * np.log(grid)[:, None]
    return np.logaddexp.accumulate(terms, axis=1), np.logaddexp.accumulate(terms[:, ::-1], axis=1)[:, ::-1]


def _beyond_all(grid: Array, degree: int, growth: float, constant: float) -> Array:
    """ln of a limit on Σ_{j>degree}|Ψ_j| at each ϱ²: |Ψ(θ)| ≤ C·exp(growth·|θ|²/2), by Cauchy's integral at t·θ."""
    squared = np.maximum(degree / (growth * grid), 1.0 + 1e-6)
    return np.asarray(
        math.log(constant)
        + 0.5 * growth * squared * grid
        - 0.5 * degree * np.log(squared)
        - np.log(np.sqrt(squared) - 1.0)
    )


def _log_shells(ends: Array, d: int) -> Array:
    """ln of the volumes between spheres."""
    from scipy.special import gammaln

    with np.errstate(divide="ignore"):
        inner, outer = np.log(ends[:-1]), np.log(ends[1:])
    volume = d * outer + np.log(-np.expm1(d * (inner - outer)))
    return np.asarray(volume + 0.5 * d * math.log(math.pi) - gammaln(0.5 * d + 1.0))


def _log_outside(d: int, largest: float, room: float, y: float, eta: float) -> float:
    """ln ∫∫ exp(-room·|η|² - (1-λ)|y|²) over |η| or |y| beyond the cells."""
    from scipy.special import gammaincc

    share = float(gammaincc(0.5 * d, room * eta**2) + gammaincc(0.5 * d, (1.0 - largest) * y**2)) + 1e-280
    return math.log(share) + 0.5 * d * (2.0 * math.log(math.pi) - math.log(room) - math.log1p(-largest))


def log_transform(draw: Draw, largest: float, third: float, fourth: float, y: Array, eta: Array) -> Array:
    """Return for each cell of |η| and |y| (ends given) an upper limit on ln|φ(iy+η)| of either side.

    Parameters
    ----------
    draw : Draw
    largest : float
        The largest eigenvalue of the covariance without noise, in units of the whole.
    third, fourth : float
        The largest |Σ(η_j·e)³| and Σ(η_j·e)⁴.
    y, eta : arrays
    """
    sides = {min(m, draw.others - m) for m in draw.sizes}
    return np.asarray(np.max([_log_transform_of(draw, m, largest, third, fourth, y, eta) for m in sides], axis=0))


def _log_transform_of(draw: Draw, m: int, largest: float, third: float, fourth: float, y: Array, eta: Array) -> Array:
    """The same where m of the others are drawn."""
    from scipy.special import gammaln

    n, p = draw.others, m / draw.others
    lean, variance = abs(1.0 - 2.0 * p), p * (1.0 - p)
    kappa, c = sine_bounds()
    c = np.minimum(c, draw.alpha / variance)[:, None]  # then the direction of most variance is the worst
    kappa = kappa[:, None]
    phases = 0.5 * math.pi * (np.arange(PHASES + 1) / PHASES) ** 2
    low, high = phases[:-1], phases[1:]
    widths = np.log((high - low) / (0.5 * math.pi))
    trade = np.geomspace(0.03, 1.0, 4) if lean > 0.0 else np.ones(1)
    kept, lost = (1.0 - 0.5 * lean * trade)[:, None, None], (0.25 + 0.5 * lean / trade)[:, None, None]
    ways = gammaln(n + 1.0) - gammaln(m + 1.0) - gammaln(n - m + 1.0)
    log_chance = ways + m * math.log(p) + (n - m) * math.log1p(-p) - 1e-8 - 2.0**-48 * float(gammaln(n + 1.0))
    tilts = eta[1:, None]
    whole = largest / draw.alpha
    out = np.empty((len(eta) - 1, len(y) - 1))
    for place, (near, far) in enumerate(pairwise(y)):
        less, more = (largest * end**2 / (4.0 * draw.alpha * n) for end in (near, far))
        moment = fourth * far**4 / (16.0 * n)
        skew = min(math.sqrt(more * moment), third * far**3 / (8.0 * n))
        factor = 1.0 - 6.0 * kappa * high**2  # of the second moment
        value = np.where(factor > 0.0, less, more) * factor + low**2
        value = value - kappa * (moment + 4.0 * high * skew + high**4)
        mean_square = np.maximum((c * value).max(axis=0), 0.0)
        moved = np.minimum((0.5 * math.sqrt(fourth) * far + high * math.sqrt(whole)) ** 2, whole) * tilts**2 / n
        exponent = np.maximum(kept * mean_square - lost * moved, 0.0).max(axis=0) * (-2.0 * n * variance)
        out[:, place] = np.logaddexp.reduce(exponent + widths, axis=1) - 0.5 * (1.0 - largest) * near**2
    growth = 1.0 + (draw.heaviness - 1.0) * largest
    return np.asarray(out + 0.5 * growth * tilts**2 - log_chance)
