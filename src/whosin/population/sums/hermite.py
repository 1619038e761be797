"""How far the sum of a random part of a pool is from normal, in Hermite norms: upper limits for every degree.

Draw k of N vectors f_j, condition on one of them being inside or outside, so that m = k - 1 or m = k of the N₁ = N - 1
others are drawn. The chance that a given of them are in and b others out is L_m[v^a(1-v)^b], a linear functional of
polynomials in v, and with y = v - p, p = (k - 1/2)/N₁, s = v(1-v) its moments follow from

    (N₁ - r)·L[y^{r+1}] = -r·p(1-p)·L[y^{r-1}] - (r(1-2p) ± 1/2)·L[y^r],   + inside, - outside.

Whiten by noise plus α times the scatter of the others, α the mean of the two variances L[s], and let Ψ = ΣΨ_j be the
transform E exp(θ·y - θ·θ/2) of a centred law. With T_j(θ) = Σ (η·θ)^j over the whitened vectors of the others

    Ψ(θ) = L[exp((s - α)·T_2/2)·Π Ω(η·θ, v)],   Ω(z, v) = exp(-sz²/2)·((1-v)·e^{-vz} + v·e^{(1-v)z}),

and Ω = exp(ω_3 z³)·(1 + Σ_{j≥4} ω_j(v) z^j). The part of degree j of the law's density over the normal one has the norm
√(j!)·[Ψ_j], [·] the Frobenius norm of a symmetric tensor. [fg] ≤ [f]·[g], and sums of products over different records
factorise, so the coefficients of one scalar series majorise all [Ψ_j] (docs/theory.md), for the mean of the two
functionals and for half their difference. Every operation on floating-point numbers here adds, multiplies or divides
positive numbers, so that its rounding errors only add up; they are counted and added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from whosin.arrays import Array

EXACT_DEGREES = 40
"""Degrees of ω whose coefficients are taken from integers, with their signs; above, a positive majorant is used."""
EXACT_POWERS = 40
"""Powers of s - α whose moments are taken from integers; above, the triangle inequality is used."""
_EPS = 2.0**-52


@dataclass(frozen=True)
class Draw:
    """k of N records are drawn, one of which is asked about: k - 1 or k of ``others`` = N - 1."""

    others: int
    k: int

    @property
    def sizes(self) -> tuple[int, int]:
        return self.k - 1, self.k

    @property
    def rational(self) -> tuple[int, int]:
        """p as a fraction."""
        return 2 * self.k - 1, 2 * self.others

    @property
    def p(self) -> float:
        return (2 * self.k - 1) / (2 * self.others)

    @property
    def variance(self) -> float:
        """p(1-p)."""
        return self.p * (1.0 - self.p)

    @property
    def lean(self) -> float:
        """|1 - 2p|."""
        return abs(self.others - 2 * self.k + 1) / self.others

    @cached_property
    def alpha(self) -> float:
        """The mean over both sides of m(N₁ - m)/(N₁(N₁ - 1)), the variance of a membership times N₁/(N₁ - 1)."""
        return sum(m * (self.others - m) for m in self.sizes) / (2.0 * self.others * (self.others - 1))

    @cached_property
    def heaviness(self) -> float:
        """Largest sub-Gaussian variance of a membership on either side (Kearns and Saul 1998), over α; at least 1."""
        return max(1.0, *(_kearns_saul(1.0 - 2.0 * m / self.others) / self.alpha for m in self.sizes)) * (1.0 + 1e-14)

    def folding(self, degree: int) -> tuple[float, float]:
        """c₀ and c₁ with y^{r+1} ≤ c₀·y^{r-1} + c₁·y^r under the majorant of both functionals, for r ≤ degree."""
        left = self.others - degree
        return degree * self.variance / left, (degree * self.lean + 0.5) / left


def _kearns_saul(lean: float) -> float:
    return 0.25 if abs(lean) < 1e-8 else lean / (4.0 * math.atanh(lean))


def scale_of(degree: int) -> float:
    """Return D: the j-th number of a series is kept as D^j times itself, which stays within floating point."""
    return math.sqrt(degree / 3.2)


def _kept(degree: int) -> int:
    """How many powers of y are kept; the recursion of the moments folds the higher ones down, rounding up."""
    return degree + 2 if degree <= 300 else 200 if degree <= 700 else 100 if degree <= 1500 else 60


def _fold(powers: Array, pair: tuple[float, float], top: int) -> Array:
    """Replace powers of y above ``top`` (last axis) by the two below, as y² ≤ c₀ + c₁·y."""
    folded = powers[..., : top + 1].copy()
    beyond = powers[..., top + 1 :]
    chain = [0.0, 1.0]
    for _ in range(beyond.shape[-1]):
        chain.append(pair[1] * chain[-1] + pair[0] * chain[-2])
    folded[..., top - 1] += beyond @ (pair[0] * np.array(chain[1:-1]))
    folded[..., top] += beyond @ np.array(chain[2:])
    return np.asarray(folded)


def _times(one: list[int], two: list[int]) -> list[int]:
    """The product of two polynomials."""
    out = [0] * (len(one) + len(two) - 1)
    for i, value in enumerate(one):
        if value:
            for j, other in enumerate(two):
                out[i + j] += value * other
    return out


def _plus(one: list[int], two: list[int], factor: int = 1) -> list[int]:
    """The first polynomial plus a multiple of the second."""
    width = max(len(one), len(two))
    pad = [row + [0] * (width - len(row)) for row in (one, two)]
    return [a + factor * b for a, b in zip(*pad, strict=True)]


@lru_cache(maxsize=1)
def _signed() -> list[list[int]]:
    """j!·ω_j as polynomials in v for j up to EXACT_DEGREES, in integers.

    With C = Ω and H = exp(-sz²/2)·(e^{(1-v)z} - e^{-vz}): C' = s(H - zC), H' = C + (1-2v)H - szH, C(0) = 1, H(0) = 0.
    """
    s, lean = [0, 1, -1], [1, -2]
    c: list[list[int]] = [[1]]
    h: list[list[int]] = [[0]]
    for j in range(EXACT_DEGREES):
        last_c, last_h = (c[j - 1], h[j - 1]) if j else ([0], [0])
        c.append(_times(s, _plus(h[j], last_c, -j)))
        h.append(_plus(_plus(c[j], _times(lean, h[j])), _times(s, last_h), -j))
    third, powers = _times(s, lean), [[1]]
    for _ in range(EXACT_DEGREES // 3):
        powers.append(_times(powers[-1], third))
    rows = []
    for j in range(EXACT_DEGREES + 1):
        total = [0]
        for i in range(j // 3 + 1):  # exp(-ω_3 z³), ω_3 = s(1-2v)/6
            ways = math.factorial(j) // (math.factorial(j - 3 * i) * 6**i * math.factorial(i))
            total = _plus(total, _times(c[j - 3 * i], powers[i]), (-1) ** i * ways)
        rows.append(total)
    return rows


@lru_cache(maxsize=16)
def _around(draw: Draw) -> list[Array]:
    """|coefficients in y| of ω_j for j up to EXACT_DEGREES."""
    up, down = draw.rational
    rows = []
    for j, exact in enumerate(_signed()):
        top = len(exact) - 1
        row = []
        for r in range(top + 1):
            value = sum(exact[i] * math.comb(i, r) * up ** (i - r) * down ** (top - i) for i in range(r, top + 1))
            row.append(abs(value) / (down ** (top - r) * math.factorial(j)))
        rows.append(np.array(row))
    return rows


@lru_cache(maxsize=1)
def omega(draw: Draw, degree: int, unit: float) -> Array:
    """Return unit^j·|ω_j| for j ≤ degree as rows of coefficients in y, folded and rounded up."""
    top = _kept(degree)
    pair = draw.folding(degree + 2)
    rows = _positive(draw, degree, unit, pair, top)
    for j, exact in enumerate(_around(draw)[: degree + 1]):
        exact = np.trim_zeros(exact, "b")
        row = np.zeros(max(top + 1, len(exact)))
        row[: len(exact)] = exact
        rows[j] = _fold(row, pair, top) * unit**j
    rows[:4] = 0.0
    if degree >= 3:
        lean, variance = draw.lean, draw.variance  # 6·ω_3 = s(1-2v)
        rows[3, :4] = np.array([variance * lean, abs(lean**2 - 2.0 * variance), 3.0 * lean, 2.0]) * unit**3 / 6.0
    return np.asarray(rows * (1.0 + (20 * degree + 200) * _EPS))


def _positive(draw: Draw, degree: int, unit: float, pair: tuple[float, float], top: int) -> Array:
    """The same with every sign positive, for all degrees."""
    s, lean = np.array([draw.variance, draw.lean, 1.0]), np.array([draw.lean, 2.0])
    c, h = np.zeros((2, degree + 1, top + 1))
    c[0, 0] = 1.0
    nothing = np.zeros(top + 1)
    for j in range(degree):
        last_c, last_h = (c[j - 1], h[j - 1]) if j else (nothing, nothing)
        share = unit / (j + 1)
        c[j + 1] = _fold(np.convolve(s, h[j] + unit * last_c), pair, top) * share
        more = np.convolve(lean, h[j])
        more[: top + 1] += c[j]
        h[j + 1] = _fold(_longer(more, np.convolve(unit * s, last_h)), pair, top) * share
    third = np.convolve(s, lean) * unit**3 / 6.0
    total, term = c.copy(), c
    for i in range(1, degree // 3 + 1):
        wider = np.zeros((degree + 1, top + 4))
        for power, factor in enumerate(third / i):
            wider[3:, power : power + top + 1] += factor * term[:-3]
        term = _fold(wider, pair, top)
        total += term
    return total


def _longer(short: Array, long: Array) -> Array:
    long[: len(short)] += short
    return long


@lru_cache(maxsize=16)
def _log_moments(draw: Draw, degree: int) -> tuple[Array, Array, Array]:
    """ln of upper limits on |L[y^r (s-α)^j]|, r and j, of the mean of both sides and of half their difference;
    and ln of a sequence that majorises the moments of y of both and obeys ``folding``.

    In fixed point with so many bits that errors, which the recursions multiply by 4^degree at the most (the moments)
    and by 2.25 a power of s - α, stay below the last bit that is read.
    """
    n, (up, down), top = draw.others, draw.rational, degree + 2
    bits = 2000 + 6 * degree
    mean, half = [1 << bits], [0]
    for r in range(top):
        past_mean, past_half = (mean[r - 1], half[r - 1]) if r else (0, 0)
        step = r * up * (down - up), r * (down - 2 * up) * down, down * down // 2
        whole = down * down * (n - r)
        mean.append(-(step[0] * past_mean + step[1] * mean[r] + step[2] * half[r]) // whole)
        half.append(-(step[0] * past_half + step[1] * half[r] + step[2] * mean[r]) // whole)
    plain = [0.0]
    for r in range(top):
        last = math.exp(plain[r - 1] - plain[r]) if r else 0.0
        plain.append(plain[r] + math.log((r * draw.variance * last + r * draw.lean + 0.5) / (n - r)))
    logs = np.array(plain) + 8.0 * np.arange(1, top + 2) * _EPS * (1.0 + np.abs(plain))
    tables = [_by_power(draw, row, bits, degree) for row in (mean, half)]
    return tables[0], tables[1], logs


def _by_power(draw: Draw, moments: list[int], bits: int, degree: int) -> Array:
    """ln of limits on |L[y^r (s-α)^j]| from the moments of y: c₀ + c₁y - y² times each other."""
    n, (up, down) = draw.others, draw.rational
    whole = 2 * n * (n - 1)
    none = up * (down - up) * whole - down * down * sum(m * (n - m) for m in draw.sizes)  # p(1-p) - α
    one, unit = (down - 2 * up) * down * whole, down * down * whole
    powers = degree // 2 + 2
    table = np.full((min(_kept(degree), degree) + 1, powers), -np.inf)
    kept = bits - 4 * degree - 200
    row = np.array(moments, dtype=object)
    lines = np.zeros(0)
    log_none, log_one = (math.log(abs(c) / unit) if c else -math.inf for c in (none, one))
    for j in range(powers):
        if j <= EXACT_POWERS:
            lines = np.array([math.log((abs(int(v)) >> (bits - kept)) + 1) for v in row]) - kept * math.log(2.0) + 1e-12
            row = (row[:-2] * none + row[1:-1] * one) // unit - row[2:]
        else:
            terms = np.logaddexp(log_none + lines[:-2], log_one + lines[1:-1])
            lines = np.logaddexp(terms, lines[2:])
            lines = lines + 8.0 * _EPS * (1.0 + np.abs(lines))
        rows = min(len(table), len(lines))
        table[:rows, j] = lines[:rows]
        if len(lines) <= 2:
            break
    return table


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


def majorant(norms: Array, log_powers: Array, draw: Draw, unit: float) -> tuple[Array, Array, float]:
    """Return D^j times upper limits on [Ψ_j] of the mean of both sides and of half their difference, before rounding,
    and the relative rounding error.

    Parameters
    ----------
    norms : array, shape (K+1,)
        Upper limits on [T_j]/h^j.
    log_powers : array
        ln of upper limits on [T_2^j].
    draw : Draw
    unit : float
        h, the longest whitened vector.
    """
    from scipy.special import gammaln

    degree = len(norms) - 1
    scale, top = scale_of(degree), _kept(degree)
    rows = omega(draw, degree, scale * unit) * norms[:, None]
    weighted = np.arange(degree + 1)[:, None] * rows
    width = top + 1
    series = np.zeros((degree + 1, width))
    series[0, 0] = 1.0
    for k in range(1, degree + 1):  # exp of the series: k·E_k = Σ i·H_i·E_{k-i}
        powers = min(width, k + 1)
        product = weighted[1 : k + 1, :powers].T @ series[k - 1 :: -1][:k, :powers]
        row = np.zeros(max(k + 1, width))
        found = _antidiagonals(product)[: k + 1]  # a power of y never exceeds the degree
        row[: len(found)] = found
        series[k] = _fold(row, draw.folding(k), top) / k
    mean, half, plain = _log_moments(draw, degree)
    totals = np.zeros((2, degree + 1))
    for m in range(min(width, degree + 1)):
        j = np.arange((degree - m) // 2 + 1)
        rest = log_powers[: len(j)] - gammaln(j + 1) + j * math.log(scale**2 / 2.0)
        if m >= top - 1:
            folded = _folded_powers(draw, degree, len(j), plain, m - top + 1, top)
            sides = [folded, folded]
        else:
            sides = [mean[m, : len(j)], half[m, : len(j)]]
        for total, logs in zip(totals, sides, strict=True):
            factors = np.zeros(degree + 1)
            factors[: 2 * len(j) : 2] = np.exp(logs + rest)
            total += np.convolve(series[:, m], factors)[: degree + 1]
    steps = degree * (degree / 2.0 + 2.0 * width + 20.0) + 20.0 * degree + 200.0
    logs_error = 8.0 * degree * (20.0 + math.log(degree + 2.0)) * _EPS
    return totals[0], totals[1], 2.0 * (steps * _EPS + logs_error)


def _folded_powers(draw: Draw, degree: int, count: int, plain: Array, place: int, top: int) -> Array:
    """ln of limits on y^m·(|p(1-p) - α| + |1-2p|·y + y²)^j under the folding majorant, m = top - 1 or top, by j."""
    pair = draw.folding(degree + 2)
    shift = np.array([[0.0, pair[0]], [1.0, pair[1]]])  # times y, in the basis of the two kept powers
    step = abs(draw.variance - draw.alpha) * (1.0 + 1e-9) * np.eye(2) + draw.lean * shift + shift @ shift
    vector, grown = np.eye(2)[place], 0.0
    logs = np.empty(count)
    for j in range(count):
        with np.errstate(divide="ignore"):
            logs[j] = np.logaddexp(*(np.log(vector) + plain[top - 1 : top + 1])) + grown + 1e-12
        vector = step @ vector
        size = float(vector.sum())
        vector, grown = vector / size, grown + math.log(size)
    return logs


def _antidiagonals(matrix: Array) -> Array:
    """Sums of the entries with the same i + j of a square matrix: the product of two polynomials."""
    size = len(matrix)
    shifted = np.zeros((size, 2 * size))
    shifted[:, :size] = matrix
    return np.asarray(shifted.reshape(-1)[:-size].reshape(size, 2 * size - 1).sum(axis=0))


@lru_cache(maxsize=16)
def sub_gaussian(others: int, m: int) -> float:
    """Return C with E exp(θ·S) ≤ C·exp(κ·Σ(θ·ξ)²/2), κ the variance of Kearns and Saul, S a sum of m of the others.

    The largest I(v)·exp(-N₁·ϑ(v)) over v ≥ (1-2p)², from above on a grid; docs/theory.md.
    """
    from scipy.special import gammaln

    p = m / others
    lean = abs(1.0 - 2.0 * p)
    kappa, least = _kearns_saul(lean), lean**2
    spread = 60.0 / others if lean < 1e-8 else 12.0 / math.sqrt(others)
    near = least + np.linspace(0.0, min(spread, 1.0 - least), 300)
    grid = np.unique(np.concatenate([near, np.linspace(least, 1.0, 300)]))

    def slack(v: Array) -> Array:
        return np.asarray(2.0 * kappa * np.arctanh(np.sqrt(v)) ** 2 + 0.5 * np.log1p(-v))

    points = 4 * others + 400
    squares = np.sin(np.pi * np.arange(points) / points) ** 2
    integrals = np.array([np.mean((1.0 - (1.0 - v) * squares) ** (others / 2.0)) for v in grid[1:]])
    gap = np.maximum(slack(grid[:-1]) - slack(np.array([least]))[0] - 1e-15, 0.0)
    ways = gammaln(others + 1) - gammaln(m + 1) - gammaln(others - m + 1)
    base = math.exp(ways + m * math.log(p) + (others - m) * math.log1p(-p))
    return float(np.max(integrals * np.exp(-others * gap))) / base * (1.0 + 1e-8)


def log_tails(eigenvalues: Array, draw: Draw, degree: int) -> Array:
    """Return for each k ≤ degree ln of a limit on the squared norm of everything above degree k, of either side.

    ρ^{-2(k+1)}·C²·Π((1 - ρ²λ_i)(1 + ρ²λ_i - βρ²λ_i))^{-1/2} at the best ρ of a grid, λ_i the eigenvalues of the
    covariance without noise and β the heaviness.
    """
    k = np.arange(degree + 1)
    best = np.full(degree + 1, np.inf)
    beta = draw.heaviness
    room = 1.0 / max(float(eigenvalues.max(initial=0.0)) * max(1.0, beta - 1.0), 1e-3) - 1.0
    for share in np.linspace(0.02, 0.98, 97) if room > 0.0 else ():
        grown = (1.0 + share * room) * eigenvalues
        loss = 0.5 * np.sum(np.log1p(-grown) + np.log1p((1.0 - beta) * grown))
        best = np.minimum(best, -(k + 1) * math.log1p(share * room) - loss)
    constant = max(sub_gaussian(draw.others, min(m, draw.others - m)) for m in draw.sizes)
    return np.asarray(best + 2.0 * math.log(constant) + 1e-9)
