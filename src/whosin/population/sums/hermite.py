"""How far the sum of a random half of a pool is from normal, in Hermite norms: upper limits for every degree.

Draw a half of N = 2n vectors f_j, condition on one of them being inside, whiten by noise plus covariance, and let L be
the centred law. Its density over the standard normal law is a series of Hermite polynomials; the part of degree k has
the norm √(k!)·[Ψ_k], where [·] is the Frobenius norm of a symmetric tensor and Ψ = ΣΨ_k the transform
E exp(θ·y - θ·θ/2). With T_k(θ) = Σ_j (η_j·θ)^k over the whitened vectors of the others and t distributed as
(1 + t²)^{-(N+2)/2},

    Ψ(θ) = E_t[(1 + it)·exp((t² - 1/(N-1))·T_2/2)·Π_j Ω(η_j·θ, t)],
    Ω(z, t) = exp(-itz - (1+t²)z²/2)·(cosh z + it·sinh z),

and Ω = exp(ω_3 z³)·(1 + Σ_{k≥4} ω_k(t) z^k). [fg] ≤ [f]·[g], and sums of products over different j factorise, so the
coefficients of one scalar series majorise all [Ψ_k] (docs/theory.md). Every operation on floating-point numbers here
adds, multiplies or divides positive numbers, so that its rounding errors only add up; they are counted and added.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["majorant", "omega", "quadratic_powers", "scale_of", "tail_norms"]

Array = NDArray[np.float64]

EXACT_DEGREES = 40
"""Degrees of ω whose coefficients are taken from integers, with their signs; above, a positive majorant is used."""
EXACT_POWERS = 40
"""Powers of T_2 whose moments are taken from integers; above, the triangle inequality is used."""
_BITS = 1500
_EPS = 2.0**-52


def scale_of(degree: int) -> float:
    """Return D: the k-th number of a series is kept as D^k times itself, which stays within floating point."""
    return math.sqrt(degree / 3.2)


def _kept(degree: int) -> int:
    """How many powers of t are kept; E t^{m+2} = (m+1)/(N-1-m)·E t^m folds the higher ones down, rounding up."""
    return degree + 2 if degree <= 300 else 200 if degree <= 700 else 100 if degree <= 1500 else 60


def _fold(powers: Array, ratio: float, top: int) -> Array:
    """Replace t^{m+2} by ratio·t^m above ``top`` (last axis)."""
    folded = powers[..., : top + 1].copy()
    for parity in (0, 1):
        beyond = powers[..., top + 1 + parity :: 2]
        folded[..., top - 1 + parity] += beyond @ ratio ** np.arange(1.0, beyond.shape[-1] + 1)
    return np.asarray(folded)


@lru_cache(maxsize=1)
def _signed() -> list[list[int]]:
    """k!·|coefficients in t| of Ω·exp(-ω_3 z³) for k up to EXACT_DEGREES, in integers.

    With y = it: C' = S - (y + (1-y²)z)·C, S' = C - (y + (1-y²)z)·S, C(0) = 1, S(0) = y and Ω = C.
    """
    width = EXACT_DEGREES + 4

    def minus(row: list[int], before: list[int], k: int) -> list[int]:
        out = [0] * width
        for m, value in enumerate(row[:-1]):
            out[m + 1] -= value
        for m, value in enumerate(before[:-2]):
            out[m] -= k * value
            out[m + 2] += k * value
        return out

    one, zero = [1] + [0] * (width - 1), [0] * width
    c, s = [one], [[0, 1] + [0] * (width - 2)]
    for k in range(EXACT_DEGREES):
        last_c, last_s = (c[k - 1], s[k - 1]) if k else (zero, zero)
        next_c = [a + b for a, b in zip(minus(c[k], last_c, k), s[k], strict=True)]
        next_s = [a + b for a, b in zip(minus(s[k], last_s, k), c[k], strict=True)]
        c.append(next_c)
        s.append(next_s)
    rows = []
    for k in range(EXACT_DEGREES + 1):
        total = [0] * width
        for j in range(k // 3 + 1):
            ways = math.factorial(k) // (math.factorial(k - 3 * j) * 3**j * math.factorial(j))
            for i in range(j + 1):  # (y - y³)^j
                factor = ways * math.comb(j, i) * (-1) ** i
                for m, value in enumerate(c[k - 3 * j]):
                    if value:
                        total[m + j + 2 * i] += factor * value
        rows.append([abs(value) for value in total])
    return rows


def omega(degree: int, unit: float, ratio: float) -> Array:
    """Return unit^k·|ω_k(t)| for k ≤ degree as rows of coefficients in t, folded and rounded up."""
    top = _kept(degree)
    rows = _positive(degree, unit, ratio, top)
    for k, exact in enumerate(_signed()[: degree + 1]):
        row = np.zeros(max(top + 1, len(exact)))
        row[: len(exact)] = [value / math.factorial(k) for value in exact]
        rows[k] = _fold(row, ratio, top) * unit**k
    rows[:4] = 0.0
    if degree >= 3:
        rows[3, [1, 3]] = unit**3 / 3.0
    return np.asarray(rows * (1.0 + (12 * degree + 200) * _EPS))


def _positive(degree: int, unit: float, ratio: float, top: int) -> Array:
    """The same with every sign positive, for all degrees."""
    c, s = np.zeros((2, degree + 1, top + 1))
    c[0, 0] = s[0, 1] = 1.0

    def step(rows: Array, k: int) -> Array:
        out = np.zeros(top + 3)
        out[1 : top + 2] += unit * rows[k]
        if k:
            out[: top + 1] += unit**2 * rows[k - 1]
            out[2:] += unit**2 * rows[k - 1]
        return _fold(out, ratio, top)

    for k in range(degree):
        c[k + 1], s[k + 1] = (step(c, k) + unit * s[k]) / (k + 1), (step(s, k) + unit * c[k]) / (k + 1)
    total, term = c.copy(), c
    for j in range(1, degree // 3 + 1):
        wider = np.zeros((degree + 1, top + 4))
        wider[3:, 1 : top + 2] += unit**3 / (3.0 * j) * term[:-3]
        wider[3:, 3:] += unit**3 / (3.0 * j) * term[:-3]
        term = _fold(wider, ratio, top)
        total += term
    return total


@lru_cache(maxsize=16)
def _log_moments(others: int, degree: int) -> tuple[Array, Array]:
    """ln of W[i, j] ≥ |E t^{2i}·(t² - 1/others)^j|, and ln E t^{2i}, rounded up."""
    top = degree // 2 + 2
    i = np.arange(top)
    plain = np.concatenate([[0.0], np.cumsum(np.log(2.0 * i + 1.0) - np.log(others - 2.0 * i))])
    plain += (np.arange(top + 1) + 2) * _EPS * (1.0 + np.abs(plain))
    moments = [1 << _BITS]
    for power in range(top):
        moments.append(moments[-1] * (2 * power + 1) // (others - 2 * power))
    table = np.full((min(_kept(degree), degree) // 2 + 2, top), -np.inf)
    row = np.array(moments, dtype=object)
    for j in range(top):
        rows = np.arange(min(len(table), top - j + 1))
        table[rows, j] = np.logaddexp(plain[rows + j], plain[rows] - j * math.log(others)) + 1e-12
        if j <= EXACT_POWERS:
            # each entry is off by less than 2^{j+1} units of 2^-1500, which the shift by one unit of 2^-1000 covers
            exact = [math.log((abs(int(value)) >> (_BITS - 1000)) + 1) - 1000.0 * math.log(2.0) for value in row[rows]]
            table[rows, j] = np.minimum(table[rows, j], np.array(exact) + 1e-12)
            row = row[1:] - row[:-1] // others
    return table, plain


def quadratic_powers(eigenvalues: Array, powers: int) -> Array:
    """Return ln [T_2^j] for j ≤ powers, T_2 = Σ λ_i θ_i²: [T_2^j]² = (j!)²/(2j)!·[y^j] Π(1 - 4yλ_i²)^{-1/2}."""
    from scipy.special import gammaln

    largest = max(float(eigenvalues.max(initial=0.0)), 1e-150)
    sums = 0.5 * np.array([np.sum((eigenvalues / largest) ** (2 * k)) for k in range(1, powers + 1)])
    series = np.zeros(powers + 1)
    series[0] = 1.0
    for k in range(1, powers + 1):
        series[k] = np.dot(sums[:k], series[k - 1 :: -1][:k]) / k
    j = np.arange(powers + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(series)
    return np.asarray(0.5 * (2 * gammaln(j + 1) - gammaln(2 * j + 1) + logs) + j * math.log(2.0 * largest))


def majorant(norms: Array, log_powers: Array, others: int, unit: float) -> tuple[Array, float]:
    """Return D^k times an upper limit on [Ψ_k] for each k, before rounding, and the relative rounding error.

    Parameters
    ----------
    norms : array, shape (K+1,)
        Upper limits on [T_k]/h^k.
    log_powers : array
        ln of upper limits on [T_2^j].
    others : int
        N - 1.
    unit : float
        h, the longest whitened vector.
    """
    from scipy.special import gammaln

    degree = len(norms) - 1
    scale, top = scale_of(degree), _kept(degree)
    ratio = (degree + 3) / (others - degree - 2)
    rows = omega(degree, scale * unit, ratio) * norms[:, None]
    weighted = np.arange(degree + 1)[:, None] * rows
    width = top + 1
    series = np.zeros((degree + 1, width))
    series[0, 0] = 1.0
    for k in range(1, degree + 1):  # exp of the series: k·E_k = Σ i·H_i·E_{k-i}
        first = max(1, k - degree)
        powers = min(width, k + 1)
        product = weighted[first : k + 1, :powers].T @ series[k - first :: -1][: k - first + 1, :powers]
        row = np.zeros(max(2 * powers - 1, width))
        row[: 2 * powers - 1] = _antidiagonals(product)
        series[k] = _fold(row, k / (others - k), top) / k
    table, plain = _log_moments(others, degree)
    total = np.zeros(degree + 1)
    for m in range(min(width, degree + 1)):
        j = np.arange((degree - m) // 2 + 1)
        if m >= top - 1:
            logs = plain[top // 2] + j * math.log(ratio + 1.0 / others)
        else:
            logs = table[(m + 1) // 2, : len(j)]
        factors = np.zeros(degree + 1)
        logs = logs + log_powers[: len(j)] - gammaln(j + 1) + j * math.log(scale**2 / 2.0)
        factors[: 2 * len(j) : 2] = np.exp(logs)
        total += np.convolve(series[:, m], factors)[: degree + 1]
    steps = degree * (degree / 2.0 + 2.0 * width + 20.0) + 20.0 * degree + 200.0
    logs_error = 8.0 * degree * (20.0 + math.log(degree + 2.0)) * _EPS
    return total, 2.0 * (steps * _EPS + logs_error)


def _antidiagonals(matrix: Array) -> Array:
    """Sums of the entries with the same i + j of a square matrix: the product of two polynomials."""
    size = len(matrix)
    shifted = np.zeros((size, 2 * size))
    shifted[:, :size] = matrix
    return np.asarray(shifted.reshape(-1)[:-size].reshape(size, 2 * size - 1).sum(axis=0))


@lru_cache(maxsize=16)
def _sub_gaussian(others: int) -> float:
    """C with E exp(θ·S) ≤ C·exp(θ·Aθ/2): the largest I(q)·exp(-(N-1)·ϑ(q)), from above on a grid of q."""
    from scipy.special import gammaln

    small = np.linspace(0.0, 60.0, 300) / others
    grid = np.unique(np.concatenate([small[small < 1.0], np.linspace(0.0, 1.0, 300)]))
    slack = 0.5 * np.log1p(-grid[:-1]) + 0.5 * np.arctanh(np.sqrt(grid[:-1])) ** 2
    points = 4 * others + 400
    squares = np.sin(np.pi * np.arange(points) / points) ** 2
    integrals = np.array([np.mean((1.0 - (1.0 - q) * squares) ** (others / 2.0)) for q in grid[1:]])
    base = math.exp(gammaln(others / 2 + 1) - gammaln(others / 2 + 1.5)) * math.sqrt(math.pi) / math.pi
    return float(np.max(integrals * np.exp(-others * slack))) / base * (1.0 + 1e-9)


def tail_norms(eigenvalues: Array, others: int, degree: int) -> Array:
    """Return for each k ≤ degree an upper limit on the norm of everything above degree k.

    ρ^{-2(k+1)}·C²·Π(1 - ρ²λ_i)^{-1/2} at the best ρ of a grid, λ_i the eigenvalues of the covariance without noise.
    """
    k = np.arange(degree + 1)
    best = np.full(degree + 1, np.inf)
    room = 1.0 / max(float(eigenvalues.max(initial=0.0)), 1e-3) - 1.0
    for share in np.linspace(0.02, 0.98, 97):
        rho = 1.0 + share * room
        best = np.minimum(best, -(k + 1) * math.log(rho) - 0.5 * np.sum(np.log1p(-rho * eigenvalues)))
    return np.asarray(np.exp(0.5 * best) * _sub_gaussian(others) * (1.0 + 1e-10))
