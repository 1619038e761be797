"""What is left of a noisy sum's law beyond a degree of its Hermite series: its total mass.

The series of :mod:`whosin.population.sums.hermite` is cut at a degree K. The norm of what is beyond it over the normal
law is small only where noise makes a good part of the variance. Its mass needs less. With φ(θ) = E exp(θ·y) the
transform of the whitened law and φ_K that of the series up to K, for every κ ≥ 1

    (∫|beyond K|)² ≤ (κ/π)^d ∫∫ exp(-2κ|η|²)·|φ(iy+η) - φ_K(iy+η)|² dy dη,

by Cauchy and Schwarz with the normal law of variance κ and by Plancherel. Within |y|² + |η|² ≤ ϱ² the difference is the
rest of the series, outside it is φ less the series up to K, and forms of degree j have the share P(Gamma(d+j) ≤ ϱ²) of
their norm within. So the series need only be small on one side of ϱ, and φ on the other: with p the chance of being
drawn and weights w_l near p(1-p), tilted by η, and W their sum,

    |φ(iy+η)| ≤ e^{…}·mean over b of exp(-2Σ w_l·sin²(η_l·y/2 + b)) / P(m of N₁ are drawn),

where the mean is e^{-W}·I₀(|Σ w_l·exp(iη_l·y)|), and sin²x ≥ c(κ)·(x² - κx⁴) for every κ ≥ 1/π² turns the
differences of two records into second and fourth moments, up to frequencies at which the noise has made φ small by
itself. Waves so short that records may lie a whole one apart are met part by part: |Σ w_l·exp(iη_l·y)| is at most the
sum of what the parts have, and within a part of neighbours the waves are long. In many columns few directions of η and
y are as bad as the worst, and the integral is over all of them: means over directions take the place of the worst one
where quadratic forms decide. docs/theory.md has the proof. Cells are bounded from above, so that the sums that stand
for integrals are no smaller.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from whosin.arrays import Array, Indices
from whosin.population.sums.hermite import Draw, log_tails, sub_gaussian

if TYPE_CHECKING:
    from whosin.population.sums.normal import Sizes


Within = tuple[tuple[float, float], ...]
"""For each way to part the records: the least scatter within parts, and the largest fourth powers of differences."""

SPREADS = (1.0, 1.03, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
"""κ: variances of the normal law that masses are compared with."""
LEAST_ROOM = 0.3
"""2κ is so much above the growth of |φ|² in |η|²."""
FREQUENCIES, TILTS = (240, 140), (32, 16)
"""Cells in |y| and |η|, evenly in their squares and then in ratio."""
RADII = 120
"""How many ϱ are tried."""
LOWERING = 1e9
"""About how many multiplications the search for a fourth moment's limit may take."""
ROUNDS = 12
"""Rounds of k-means."""
NEAR = 2.0
"""Vectors farther from the mean of their part than so many mean squares are in no part."""


def largest_fourth(vectors: Array, parts: Indices | None = None) -> float:
    """Return a number that is at least Σ(v_j·e)⁴ for all unit vectors e, and near the largest of them.

    With ``parts``, numbers of the parts that the vectors belong to, of 2Σ(v_j·e)⁴ + 6Σ_c(Σ_{j in c}(v_j·e)²)²/n_c. The
    form is one of the products e_i·e_k by a symmetric matrix, and at most its largest eigenvalue. Many matrices
    stand for the form; the eigenvalue is lowered by steps along matrices that stand for 0. O(N·d⁴ + steps·d⁶).
    """
    d = vectors.shape[1]
    i, k = np.triu_indices(d)
    weights = np.where(i == k, 1.0, math.sqrt(2.0))
    products = vectors[:, i] * vectors[:, k] * weights
    form = products.T @ products
    if parts is not None:
        means, sizes = means_of(products, parts, int(parts.max()) + 1)
        form = 2.0 * form + 6.0 * (means * sizes[:, None]).T @ means
    far = vectors[np.argsort(-np.linalg.norm(vectors, axis=1), kind="stable")[:8]]
    e = np.vstack([far, np.linalg.eigh(vectors.T @ vectors)[1][:, -4:].T])
    goal = 0.0
    for _ in range(40):  # climbs from the longest vectors and the widest directions
        e /= np.maximum(np.linalg.norm(e, axis=1, keepdims=True), 1e-300)
        there = (e[:, i] * e[:, k] * weights) @ form
        goal = float(np.max(np.sum(there * e[:, i] * e[:, k] * weights, axis=1)))
        matrices = np.zeros((len(e), d, d))
        matrices[:, i, k] = matrices[:, k, i] = there / weights
        e = np.einsum("mij,mj->mi", matrices, e)
    least = float(np.trace(form))
    for _ in range(int(np.clip(LOWERING / len(form) ** 3, 2, 30))):
        values, bases = np.linalg.eigh(form)
        least = min(least, float(values[-1]))
        top = values > 0.85 * values[-1]
        if least <= 1.001 * goal or not top.any():
            break
        shares = np.exp((values[top] / values[-1] - 1.0) / 0.02)
        matrices = np.zeros((len(shares), d, d))
        matrices[:, i, k] = matrices[:, k, i] = (bases[:, top] / weights[:, None]).T
        tensor = np.einsum("m,mij,mkl->ijkl", shares / shares.sum(), matrices, matrices, optimize=True)
        nothing = (2.0 * tensor - tensor.transpose(0, 2, 1, 3) - tensor.transpose(0, 3, 2, 1)) / 3.0
        step = nothing[i, k][:, i, k] * weights[:, None] * weights
        form -= (values[-1] - goal) / max(float(np.sum(step**2)), 1e-24) * step
    return least * (1.0 + 1e-9)


def parts_of(vectors: Array, count: int) -> Indices:
    """Return for each vector the number of the part it belongs to, and -1 for those that are far from the others of it.

    Some rounds of k-means from evenly spaced rows; parts without vectors have no number.
    """
    centres = vectors[np.linspace(0, len(vectors) - 1, count).astype(np.intp)]
    parts = np.zeros(len(vectors), dtype=np.intp)
    for _ in range(ROUNDS):
        for start in range(0, len(vectors), 4096):
            some = slice(start, start + 4096)
            parts[some] = np.argmin(np.sum(centres**2, axis=1) - 2.0 * vectors[some] @ centres.T, axis=1)
        means, sizes = means_of(vectors, parts, count)
        centres = np.where(sizes[:, None] > 0, means, centres)
    squares = np.sum((vectors - centres[parts]) ** 2, axis=1)
    near = squares <= NEAR * np.mean(squares)
    parts[near] = np.unique(parts[near], return_inverse=True)[1]
    parts[~near] = -1
    return parts


def means_of(values: Array, parts: Indices, count: int) -> tuple[Array, Indices]:
    """The means of the rows of each part, and how many they are; 0 for none."""
    sums, sizes = np.zeros((count, *values.shape[1:])), np.bincount(parts, minlength=count)
    np.add.at(sums, parts, values)
    return sums / sizes.clip(1).reshape(-1, *[1] * (values.ndim - 1)), sizes


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


def masses_beyond(sizes: Sizes, log_squares: Array) -> tuple[Array, Array]:
    """Return for each K up to a degree upper limits on the mass ∫|·| and the norm of what is beyond K, of either side.

    Parameters
    ----------
    sizes : Sizes
        The norms of the pool, its largest fourth moment among them.
    log_squares : array
        ln of upper limits on j!·[Ψ_j]² of either side for all j up to the degree.
    """
    d, degree = len(sizes.eigenvalues), len(log_squares) - 1
    tails = log_tails(sizes.eigenvalues, sizes.draw, degree)
    radii = np.append(np.geomspace(0.5 * d, 2.0 * (d + degree), RADII), np.inf)
    inside, outside = _log_shares(d + np.arange(degree + 2.0), radii)
    rest = np.empty((RADII + 1, degree + 1))
    rest[:, degree] = tails[degree] + inside[:, degree + 1]
    for k in range(degree - 1, -1, -1):  # one more degree of the series, or all of the tail
        more = np.logaddexp(log_squares[k + 1] + inside[:, k + 1], rest[:, k + 1])
        rest[:, k] = np.minimum(more, tails[k] + inside[:, k + 1])
    series = 0.5 * np.logaddexp(rest, np.logaddexp.accumulate(log_squares + outside[:, :-1], axis=1))
    best = norms = series[-1]  # κ = 1 and no ϱ
    for kappa, far in _far_norms(sizes, radii[:-1]):
        best = np.minimum(best, 0.5 * d * math.log(kappa) + np.logaddexp(series[:-1], far[:, None]).min(axis=0))
    return tuple(np.exp(np.minimum(logs, 600.0)) * (1.0 + 1e-6) for logs in (best, norms))


def _log_shares(shapes: Array, radii: Array) -> tuple[Array, Array]:
    """ln of limits on P(Gamma(a) ≤ r) and P(Gamma(a) ≥ r), r down and a across: series at their largest quotients."""
    from scipy.special import gammaln

    a, r = shapes[None, :], np.minimum(radii, 1e9)[:, None]
    density = a * np.log(r) - r - gammaln(a + 1.0) + 1e-9
    fewer, more = 1.0 - r / (a + 1.0), 1.0 - (a - 1.0) / r  # the quotients, from 1
    below = np.where(fewer > 0.0, density - np.log(np.maximum(fewer, 1e-300)), 0.0)
    above = np.where(more > 0.0, density + np.log(a / r) - np.log(np.maximum(more, 1e-300)), 0.0)
    return np.minimum(below, 0.0), np.minimum(above, 0.0)


def _far_norms(sizes: Sizes, radii: Array) -> list[tuple[float, Array]]:
    """κ and ln of limits on (∫∫ exp(-2κ|η|²)·|φ|²)^{1/2}·π^{-d/2} beyond each ϱ² of ``radii``."""
    draw, d, largest = sizes.draw, len(sizes.eigenvalues), float(sizes.eigenvalues.max())
    growth = 1.0 + (draw.heaviness - 1.0) * largest
    spreads = [kappa for kappa in SPREADS if 2.0 * kappa - growth >= LEAST_ROOM]
    if not spreads or not 0.0 < largest < 1.0 - 1e-9:
        return []
    y, eta, transform = _cells(
        draw, tuple(sizes.eigenvalues), 2.0 * spreads[0] - growth, sizes.fourth, sizes.around, sizes.within
    )
    weight = 2.0 * transform + _log_shells(y, d)[None, :] + _log_shells(eta, d)[:, None]
    squares = (y[None, 1:] ** 2 + eta[1:, None] ** 2).ravel()
    order = np.argsort(-squares, kind="stable")
    counts = np.searchsorted(-squares[order], -radii)  # cells that reach beyond each radius
    norms = []
    for kappa in spreads:
        within = np.logaddexp.accumulate((weight - 2.0 * kappa * eta[:-1, None] ** 2).ravel()[order])
        beyond = _log_outside(draw, d, largest, 2.0 * kappa - growth, y[-1], eta[-1])
        total = np.logaddexp(np.append(-np.inf, within)[counts], beyond)
        norms.append((kappa, 0.5 * (total - d * math.log(math.pi))))
    return norms


@lru_cache(maxsize=4)
def _cells(
    draw: Draw, eigenvalues: tuple[float, ...], room: float, fourth: float, around: float, within: Within
) -> tuple[Array, Array, Array]:
    """Ends of the cells in |y| and |η|, so far that what is outside has no weight, and ln|φ| on them."""
    d, largest = len(eigenvalues), max(eigenvalues)
    y, eta = (
        np.sqrt(np.append(np.linspace(0.0, near, even), np.geomspace(near, max(end, 1.01 * near), odd + 1)[1:]))
        for near, end, (even, odd) in (
            (4.0 * d + 160.0, (d + 120.0) / (1.0 - largest), FREQUENCIES),
            (2.0 * d + 20.0, (d + 120.0) / room, TILTS),
        )
    )
    return y, eta, log_transform(draw, eigenvalues, fourth, around, within, y, eta)


def _log_shells(ends: Array, d: int) -> Array:
    """ln of the volumes between spheres."""
    from scipy.special import gammaln

    with np.errstate(divide="ignore"):
        inner, outer = np.log(ends[:-1]), np.log(ends[1:])
    volume = d * outer + np.log(-np.expm1(d * (inner - outer)))
    return np.asarray(volume + 0.5 * d * math.log(math.pi) - gammaln(0.5 * d + 1.0))


def _log_outside(draw: Draw, d: int, largest: float, room: float, y: float, eta: float) -> float:
    """ln of C²·∫∫ exp(-room·|η|² - (1-λ)|y|²) over |η| or |y| beyond the cells."""
    from scipy.special import gammaincc

    constant = max(sub_gaussian(draw.others, min(m, draw.others - m)) for m in draw.sizes)
    share = float(gammaincc(0.5 * d, room * eta**2) + gammaincc(0.5 * d, (1.0 - largest) * y**2)) + 1e-280
    volume = 0.5 * d * (2.0 * math.log(math.pi) - math.log(room) - math.log1p(-largest))
    return 2.0 * math.log(constant) + math.log(share) + volume


def log_transform(
    draw: Draw, eigenvalues: tuple[float, ...], fourth: float, around: float, within: Within, y: Array, eta: Array
) -> Array:
    """Return for each cell of |η| and |y| (ends given) an upper limit on ln|φ(iy+η)| of either side.

    |φ|² is a mean over the directions of η and y.

    Parameters
    ----------
    draw : Draw
    eigenvalues : tuple
        Of the covariance without noise, in units of the whole.
    fourth, around : float
        The largest Σ(η_j·e)⁴ and Σ|η_j|²(η_j·e)².
    within : tuple of pairs
        For each way to part the others, the least scatter Σ(η_j·e)² around the means of the parts, and the largest mean
        fourth power of differences within a part, summed over the records.
    y, eta : arrays
    """
    sides = {min(m, draw.others - m) for m in draw.sizes}
    values = np.array(eigenvalues)
    limits = [_log_transform_of(draw, m, values, fourth, around, within, y, eta) for m in sides]
    return np.asarray(np.max(limits, axis=0))


def _log_mean_exp(most: Array, share: float, d: int) -> Array:
    """ln of a limit on the mean of exp(ω·Bω) over directions ω, B ≥ 0 with eigenvalues ≤ ``most``, ``share`` in sum.

    A convex function of the eigenvalues, so it is largest where ⌊share⌋ of them are as large as may be and at most
    one is between: then ω·Bω is a beta variable times ``most``, or between two of them.
    """
    from scipy.special import hyp1f1

    whole = math.floor(min(share, d))
    part = min(share, d) - whole
    x = np.minimum(most, 600.0)
    mean = sum(
        weight * hyp1f1(0.5 * count, 0.5 * d, x)
        for weight, count in ((1.0 - part, whole), (part, min(whole + 1, d)))
        if weight > 0.0
    )
    return np.asarray(np.log(mean) + (most - x) + 1e-9)


def _log_mean_less(most: Array, eigenvalues: Array) -> Array:
    """ln of a limit on the mean of exp(-``most``·(1 - ω·Λω/λ)) over directions ω, λ the largest eigenvalue of Λ.

    It rises with every eigenvalue, and these are the largest.
    """
    least = float(eigenvalues.min() / eigenvalues.max())
    room = max(1.0 - least, 1e-12)
    share = float(np.sum(eigenvalues / eigenvalues.max() - least)) / room
    return np.minimum(_log_mean_exp(most * room, share, len(eigenvalues)) - most * room, 0.0)


def _log_transform_of(
    draw: Draw, m: int, eigenvalues: Array, fourth: float, around: float, within: Within, y: Array, eta: Array
) -> Array:
    """The same where m of the others are drawn."""
    from scipy.special import gammaln, ive

    n, p, d, largest = draw.others, m / draw.others, len(eigenvalues), float(eigenvalues.max())
    lean, variance = abs(1.0 - 2.0 * p), p * (1.0 - p)
    kappa, each = (part[:, None] for part in sine_bounds())
    c = np.minimum(each, draw.alpha / variance)  # then the direction of most variance is the worst
    low, high, tilts = y[:-1], y[1:], eta[1:, None] ** 2
    less, more = (largest * end**2 / (4.0 * draw.alpha * n) for end in (low, high))
    grown = c * (2.0 * less - 6.0 * kappa * more**2)  # by what y·Λy makes, from 0 to its largest
    spare = 0.5 * largest * low**2 - n * variance * np.maximum(grown, 0.0)  # so much more noise elsewhere
    elsewhere = 0.5 * _log_mean_less(2.0 * np.maximum(spare, 0.0), eigenvalues)
    apart = grown - c * kappa * fourth * high**4 / (8.0 * n)
    chosen = np.argmin(elsewhere - n * variance * np.maximum(apart, 0.0), axis=0)[None]
    apart, elsewhere = (np.take_along_axis(part, chosen, axis=0)[0] for part in (apart, elsewhere))
    apart = np.maximum(apart, 0.0)  # the mean of sin² of the difference of two records
    parted = np.zeros_like(low)  # the same within parts, in any direction
    for second, quartic in within:
        near = each * (0.5 * second * low**2 - kappa * quartic / 16.0 * high**4) / n
        parted = np.maximum(parted, near.max(axis=0))
    anywhere = 0.5 * _log_mean_less(largest * low**2, eigenvalues)
    tilted = largest / draw.alpha * tilts / n
    turned = fourth * high**2 * tilts / (4.0 * n)  # at the most, by the direction of the tilt
    best = np.zeros((len(eta) - 1, len(y) - 1)) + elsewhere
    for trade in np.geomspace(0.03, 1.0, 4) if lean > 0.0 else (1.0,):
        kept = 1.0 - 0.5 * lean * trade
        lost = (0.25 + 0.5 * lean / trade) / kept
        whole = n * variance * kept
        every = whole * np.maximum(1.0 - lost * tilted, 0.0)
        turning = 0.5 * _log_mean_exp(4.0 * whole * lost * turned, max(around / fourth, 1.0), d)
        ways = (
            (apart, np.minimum(more * tilted, tilted), turning + elsewhere),
            (apart, tilted, elsewhere),
            (parted, tilted, anywhere),
        )
        for distance, moved, price in ways[: 3 if within else 2]:
            drop = whole * np.maximum(distance - 2.0 * lost * moved, 0.0)
            if distance is parted:  # 1 - R is at least 1 - √(1-2s), not only s
                drop = whole * (1.0 - np.sqrt(np.maximum(1.0 - 2.0 * drop / whole, 0.0))) * (1.0 - 1e-12)
            left = np.maximum(every - drop, 0.0) * (1.0 - 1e-12)
            best = np.minimum(best, np.log(ive(0, left)) - drop + price)
    chosen_sets = gammaln(n + 1.0) - gammaln(m + 1.0) - gammaln(n - m + 1.0)
    log_chance = chosen_sets + m * math.log(p) + (n - m) * math.log1p(-p) - 1e-8 - 2.0**-48 * float(gammaln(n + 1.0))
    growth = 1.0 + (draw.heaviness - 1.0) * largest
    return np.asarray(best + 0.5 * growth * tilts - 0.5 * (1.0 - largest) * low**2 - log_chance)
