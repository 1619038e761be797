"""Exact privacy of a noisy sum of numbers, at any pool size, from characteristic functions.

The data set D is a uniform k-subset of N numbers f, and Σ_{i∈D} f_i plus Gaussian or Laplace noise is released. Given
that x is out, the sum without noise has the characteristic function

    φ_out(ω) = [z^k] Π_{j≠x} (1 - p + p·z·e^{iωf_j}) / [z^k] (1 - p + p·z)^{N-1},

and given that x is in, e^{iωf_x} times the same with k - 1. The coefficient of z^k is a mean over Z roots of unity, and
leaving x out is a division, which p ≠ 1/2 keeps away from zero. Times the noise's characteristic function, an inverse
Fourier transform gives both densities on a grid, and with their second derivatives an enclosure of
E_γ = ∫ (p - γq)_+.

What is known about the error, all of it in the enclosures (L is the window, u the unit of rounding 2⁻⁵³):

* Outside the window lies a mass of at most τ, by Chernoff's bound: for 0 < q < 1 the coefficients of positive
  polynomials give E e^{tS} ≤ Π(1 - q + q·e^{tf_j})/P(Bin(n, q) = m), and P(Bin(n, m/n) = m) ≥ 1/√(8·m·(1 - m/n)). The
  Fourier series repeats the window's outside inside; that costs τ_p + γ·τ_q.
* Coefficients that were left out: a mean over roots of unity is at most the largest term, and the term at z is at most
  e^{1/2 - p(1-p)(N - Re(z·Σ_j e^{iωf_j}))} over the binomial probability, so few pairs (ω, z) need be visited. What
  this bound leaves for the others is added. So is what lies beyond the last frequency Ω: less than 1e-18 for Gaussian
  noise; for Laplace noise the tail of 1/(1 + s²ω²) is bounded in the mean square, ∫|error| ≤ √(L/(3π·s⁴·Ω³)), which
  makes 1e-8 to 1e-5 in practice.
* Fewer roots of unity than N add coefficients that are a multiple of Z away: bounded by the binomial tail (1e-20).
* Rounding: each product of N factors is off by at most u·Σ(4 + (p·(6|ωf_j| + 8) + 1)/|factor_j|), relatively, and this
  is carried along. The transforms add 8·u·log₂(M)·Σ|coefficients|, sums over the grid 1e-13·(1 + γ).
* Between grid points the trigonometric polynomial f = p - γq is replaced by the cubic with its values and second
  derivatives at both ends, off by at most 5/384·h⁴·max|f⁗|. A cubic without a change of sign at the ends has none
  inside if its values exceed h²/8 times the second derivatives; elsewhere what it may hide is added.

Where the data sets with Laplace noise are few they are listed instead (:mod:`whosin.population.sums.laplace_sums`).

For pools of a thousand numbers the enclosures are about 1e-10·(1 + γ) wide with Gaussian noise, so they say little
where γ = e^ε is beyond 1e8. An upper limit is never above the pairwise one (:mod:`whosin.population.sums.pairwise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array, Flags, Index, Indices
from whosin.errors import InputError, check_choice, check_number, check_probability, check_whole
from whosin.parallel.threads import Progress
from whosin.population.sums.laplace_sums import LaplaceLaws, LaplaceSums
from whosin.population.sums.pairwise import (
    NOISES,
    check_pool,
    check_records,
    in_units,
    pairwise_divergences,
    pairwise_epsilons,
)

Complex = NDArray[np.complex128]

ENUMERATED = 2**18
"""Largest number of data sets that are listed for Laplace noise, whose spectrum falls slowly."""

_U = 2.0**-53
_SUMMING = 1e-13
"""Room for the rounding of e^ε, of p - γq and of sums over the grid, relative to 1 + γ."""

_TAIL = {"gaussian": 1e-18, "laplace": 1e-11}
"""Mass that may lie beyond either end of the window."""

_NEGLIGIBLE = {"gaussian": (1e-20,), "laplace": (1e-14, 1e-11, 1e-8)}
"""What a pair (ω, z) must be able to contribute to be visited; where there is a choice, the best is taken."""

_CHUNK = 2**12
"""Points of the grid that are worked on at a time."""

_CLOSE = 1e-10
"""Distance, relative to 1 + ε, at which the search for ε ends."""

_LARGEST = 300.0
"""Largest ε that is tried."""

_LAST = 9.4
"""Highest frequency for Gaussian noise, in units of 1/scale: e^{-ω²/2} is below 1e-19 there."""

_MOST_FREQUENCIES = 2**20
_MOST_PHASES = 2**31
_MOST_PAIRS = 2**22
_MOST_KEPT = 2**18
_MOST_FACTORS = 10**9
_MOST_POINTS = 2**21


class SubsetSumLaws:
    """The two laws of a noisy subset sum, given that a record is in and given that it is out.

    Parameters
    ----------
    f : array_like, shape (N,) or (N, 1)
        What each record adds to the sum.
    k : int
        How many records are drawn, 1 ≤ k < N.
    scale : float
        Standard deviation of the Gaussian noise, or scale of the Laplace noise.
    noise : {"gaussian", "laplace"}
    records : array_like of int, optional
        The records that will be asked about; all of them if not given.

    Notes
    -----
    Preparation takes O(N·W) multiplications for W frequencies and O(N·V) complex factors for the V pairs of frequency
    and root of unity that matter; each record then O(V) divisions, transforms of M points, O(M) for each divergence.
    V is some thousands for hundreds to thousands of spread-out numbers drawn by half. W grows as the window over the
    scale. At most 10⁹ factors are formed, 20 s; where that does not suffice the enclosures widen. Laplace noise on at
    most ENUMERATED data sets takes a step for each of them and record instead.
    """

    def __init__(
        self, f: ArrayLike, k: int, scale: float, noise: str = "gaussian", records: ArrayLike | None = None
    ) -> None:
        pool = check_pool(f)
        if pool.shape[1] != 1:
            raise InputError(
                f"f must have one number per record, got {pool.shape[1]}: the spectral method is for sums in 1-d"
            )
        self.f = pool[:, 0]
        self.k = check_whole("k", k, low=1, high=len(pool) - 1)
        self.scale = check_number("scale", scale, low=0.0, open_low=True, open_high=True)
        in_units(pool, self.scale)
        self.noise = check_choice("noise", noise, NOISES)
        self.records = check_records(records, len(pool))
        self._kept: dict[int, _Laws] = {}
        few = self.noise == "laplace" and math.comb(len(pool), self.k) <= ENUMERATED
        self._sums = LaplaceSums(self.f, self.k, self.scale) if few else None

    @cached_property
    def _spectrum(self) -> _Spectrum:
        return _Spectrum.of(_Setting.of(self.f, self.k, self.scale, self.noise, self.records))

    def densities(self, record: int) -> tuple[Array, Array, Array]:
        """Return points of the window, and the densities of the output there given in and given out."""
        laws = _Densities.of(self._spectrum, self._prepared(record))
        points = self._spectrum.setting.middle + self.scale * laws.points
        return points, laws.values[0][:-1] / self.scale, laws.values[1][:-1] / self.scale

    def divergence(self, record: int, epsilon: float, swapped: bool = False) -> tuple[float, float]:
        """Return (lower, upper) limits of E_{e^ε}(in‖out) of a record, or of E_{e^ε}(out‖in) where ``swapped``."""
        laws, epsilon = self._laws(record), check_number("epsilon", epsilon, low=0.0)
        if math.isinf(epsilon):
            return 0.0, 0.0
        lower, upper, _ = laws.divergence(min(epsilon, _LARGEST), swapped)
        lower = lower if epsilon <= _LARGEST else 0.0
        pairs = pairwise_divergences(self.f, self.scale, epsilon, noise=self.noise, records=[record])
        upper = min(upper, float(pairs[0]))
        return min(lower, upper), upper

    def epsilon(self, delta: float, progress: Progress | None = None, *, records: ArrayLike | None = None) -> Array:
        """Return (lower, upper) limits of the smallest ε that is enough in both directions, for each of the records.

        Of all that were prepared, or of some of them.

        The divergence exceeds δ in one direction just below the lower limit, and is at most δ in both at the upper one.
        """
        delta = check_probability("delta", delta)
        asked = self.records if records is None else check_records(records, len(self.f))
        limits = np.zeros((len(asked), 2))
        limits[:, 1] = pairwise_epsilons(self.f, self.scale, delta, noise=self.noise, records=asked)
        for row, record in enumerate(asked):
            if limits[row, 1] > 0.0:
                lower, upper = _limits(self._laws(int(record)), delta)
                upper = min(limits[row, 1], upper)
                limits[row] = min(lower, upper), upper
            if progress is not None:
                progress((row + 1) / len(asked))
        return limits

    def _prepared(self, record: int) -> int:
        record = check_whole("record", record, high=len(self.f) - 1)
        if record not in self.records:
            raise InputError(f"record must be one of the records that were prepared, got {record!r}")
        return record

    def _laws(self, record: int) -> _Laws:
        record = self._prepared(record)
        if record not in self._kept:
            if len(self._kept) >= 2:
                self._kept.clear()
            self._kept[record] = self._judged(record)
        return self._kept[record]

    def _judged(self, record: int) -> _Laws:
        if self._sums is not None:
            return self._sums.laws(record)
        return _Densities.of(self._spectrum, record) if self._spectrum.left_out < 1.0 else _Nothing()


class _Laws(Protocol):
    """Both laws of a record, as a search for ε sees them."""

    def divergence(self, epsilon: float, swapped: bool) -> tuple[float, float, float]:
        """Lower and upper limit of E_{e^ε}, and its slope -dE/dε (not enclosed)."""


class _Nothing:
    """Laws of which nothing is known: the window is too wide for the frequencies."""

    def divergence(self, epsilon: float, swapped: bool) -> tuple[float, float, float]:
        return 0.0, 1.0, 0.0


def _limits(laws: _Laws, delta: float) -> tuple[float, float]:
    """Limits of the smallest ε that is enough in both directions: found in one, and searched in the other if that one
    is not satisfied with it."""
    if delta == 0.0 and isinstance(laws, LaplaceLaws):
        return laws.largest_log_ratio()
    surely, enough = _one_sided_limits(laws, delta, False, 0.0)
    if math.isfinite(enough) and laws.divergence(enough, True)[1] <= delta:
        return surely, enough
    other, more = _one_sided_limits(laws, delta, True, surely)
    return max(surely, other), max(enough, more)


def _one_sided_limits(laws: _Laws, delta: float, swapped: bool, start: float) -> tuple[float, float]:
    """The largest ε ≥ start found with a divergence surely above δ (or start), and the smallest with one at most δ."""

    def excess(side: int) -> Callable[[float], float]:
        if delta == 0.0:
            return lambda epsilon: laws.divergence(epsilon, swapped)[side]
        return lambda epsilon: math.log(min(max(laws.divergence(epsilon, swapped)[side] / delta, 1e-6), 1e300))

    lower, upper, slope = laws.divergence(start, swapped)
    if upper <= delta:
        return start, start
    surely, step = start, 1e-6
    if lower > delta:
        guess = min(max(math.log1p((lower - delta) / max(slope, 1e-300)), 1e-6), 1.0)
        surely, beyond = _around(excess(0), start, excess(0)(start), guess)
        lower, upper, slope = laws.divergence(surely, swapped)
        if upper <= delta:
            return surely, surely
        step = beyond - surely
    step += min(1.5 * (upper - delta) / slope, 1.0) if slope > 0.0 else 1.0
    return surely, _around(excess(1), surely, excess(1)(surely), step)[1]


def _around(excess: Callable[[float], float], left: float, above: float, step: float) -> tuple[float, float]:
    """Two neighbouring ε, the first with a positive excess, the second without, or infinite if none is found.

    ``left`` has the excess ``above`` > 0. Steps that double find a bracket; false position (Illinois) with a
    bisection every fourth time narrows it.
    """
    right = left + step
    while (below := excess(right)) > 0.0:
        left, above, step = right, below, 2.0 * step
        right += step
        if right > _LARGEST:
            return left, math.inf
    for turn in range(200):
        if right - left <= _CLOSE * (1.0 + right):
            break
        share = 0.5 if turn % 4 == 3 else min(max(above / (above - below), 1e-3), 0.999)
        at = left + share * (right - left)
        value = excess(at)
        if value > 0.0:
            left, above, below = at, value, 0.5 * below
        else:
            right, below, above = at, value, 0.5 * above
    return left, right


# ---------------------------------------------------------------------------------------------------------------------
# The window: where the output lies, but for a mass of τ beyond either end


def _log_mgf_noise(noise: str, t: Array) -> Array:
    return 0.5 * t * t if noise == "gaussian" else -np.log1p(-t * t)


def _log_mgf_sums(g: Array, own: float, m: int, t: Array) -> Array:
    """Bounds on ln E e^{tS}, S the sum of m of the records other than ``own``, for each t."""
    n = len(g) - 1
    if m in (0, n):
        return np.asarray(t * (g.sum() - own) * (m == n))
    q = m / n
    terms = np.logaddexp(math.log1p(-q), math.log(q) + np.outer(t, g)).sum(axis=1)
    mine = np.logaddexp(math.log1p(-q), math.log(q) + t * own)
    return np.asarray(terms - mine + 0.5 * math.log(8.0 * m * (1.0 - q)))


def _window(g: Array, k: int, noise: str, records: Indices) -> tuple[float, float]:
    """Ends such that all the laws (in and out, of every record asked about) have a mass of at most τ beyond each.

    For t > 0 the bound given in grows with the record's own number, and the one given out falls.
    """
    log_tail = math.log(_TAIL[noise])
    steps = np.geomspace(1e-9, 12.0 if noise == "gaussian" else 0.999, 200)
    ends = []
    for sign in (1.0, -1.0):
        own = sign * g[records]
        inside = steps * own.max() + _log_mgf_sums(sign * g, float(own.max()), k - 1, steps)
        outside = _log_mgf_sums(sign * g, float(own.min()), k, steps)
        reach = (np.maximum(inside, outside) + _log_mgf_noise(noise, steps) - log_tail) / steps
        end = float(reach.min())
        ends.append(end + 1e-9 * (1.0 + abs(end)))
    return -ends[1], ends[0]


# ---------------------------------------------------------------------------------------------------------------------
# The characteristic functions


@dataclass(frozen=True)
class _Setting:
    """The numbers in noise scales and relative to the middle of the window, and how coefficients are extracted."""

    g: Array
    reach: Array
    k: int
    noise: str
    middle: float
    length: float
    p: float
    roots: int
    aliased: float
    log_whole: float

    @classmethod
    def of(cls, f: Array, k: int, scale: float, noise: str, records: Indices) -> _Setting:
        centre = float(f.mean())
        g = (f - centre) / scale
        low, high = _window(g, k, noise, records)
        shift = 0.5 * (low + high) / k
        p = _tilt(len(f), k)
        log_whole = float(np.min(_log_binomial(len(f) - 1, np.array([k - 1.0, k]), p)))
        roots, aliased = _roots(len(f), k, p, log_whole)
        middle = k * (centre + scale * shift)
        return cls(g - shift, np.abs(g) + abs(shift), k, noise, middle, high - low, p, roots, aliased, log_whole)

    @property
    def step(self) -> float:
        """Distance of the frequencies."""
        return 2.0 * math.pi / self.length


@dataclass(frozen=True)
class _Pairs:
    """Frequencies (as multiples of the step) and, sorted by them, pairs with roots of unity (as numbers of turns).

    ``count`` frequencies from 0 on were looked at; ``left_out`` limits ∫|density| of what was dropped among them.
    """

    count: int
    frequencies: Indices
    which: Indices
    turns: Indices
    left_out: float

    @property
    def starts(self) -> Indices:
        """Where the pairs of each frequency start."""
        return np.searchsorted(self.which, np.arange(len(self.frequencies))).astype(np.int64)

    def omega(self, step: float) -> Array:
        """The frequencies themselves."""
        return np.asarray(self.frequencies * step, dtype=np.float64)

    def only(self, kept: Flags, left_out: float) -> _Pairs:
        """These pairs only; the zero frequency must be among them."""
        used, which = np.unique(self.which[kept], return_inverse=True)
        return _Pairs(self.count, self.frequencies[used], which, self.turns[kept], left_out)


@dataclass(frozen=True)
class _Spectrum:
    """The product over all records at the pairs (ω, z) that matter, and what the others may contribute."""

    setting: _Setting
    pairs: _Pairs
    starts: Indices
    product: Complex
    rounding: Array
    left_out: float

    @classmethod
    def of(cls, setting: _Setting) -> _Spectrum:
        pairs = _choose_pairs(setting)
        product, rounding = _products(setting, pairs)
        pairs, kept = _prune(setting, pairs, product)
        left_out = pairs.left_out + _truncated(pairs.count, setting.length, setting.noise)
        return cls(setting, pairs, pairs.starts, product[kept], rounding[kept], left_out)

    @property
    def omega(self) -> Array:
        """The frequencies that were kept."""
        return self.pairs.omega(self.setting.step)

    def coefficients(self, record: int) -> list[tuple[Complex, Array]]:
        """φ·(noise) of a record given in and given out at the kept frequencies, each with limits on the errors."""
        setting, omega = self.setting, self.omega
        phase = omega * setting.reach[record]
        turn = np.exp(1j * omega * setting.g[record])
        factor = _factor(setting, turn[self.pairs.which], self.pairs.turns)
        rest = self.product / factor
        slip = np.abs(rest) * (_U * (self.rounding + _factor_rounding(setting.p, phase[self.pairs.which], factor)))
        error = np.add.reduceat(slip, self.starts) / setting.roots
        damping = _damping(setting.noise, omega)
        results = []
        for size, spin in ((setting.k - 1, turn), (setting.k, np.ones_like(turn))):
            back = _root(-size * self.pairs.turns, setting.roots)
            raw = np.add.reduceat(rest * back, self.starts) / setting.roots
            whole = raw[0].real
            relative = np.abs(raw) / whole * (error[0] / whole + _U * (6.0 * phase + 3.0 * omega**2 + 20.0))
            relative += error / whole + 2.0 * setting.aliased
            results.append((raw / whole * spin * damping, relative * damping))
        return results


def _tilt(n: int, k: int) -> float:
    """A probability near k/N, but not so near 1/2 that a factor could vanish."""
    p, step = k / n, min(0.6 / math.sqrt(n), 0.15)
    if abs(p - 0.5) >= step:
        return p
    return 0.5 - step if p <= 0.5 else 0.5 + step


def _log_binomial(n: int, m: ArrayLike, p: float) -> Array:
    from scipy.special import gammaln

    m = np.asarray(m, dtype=np.float64)
    ways = gammaln(n + 1.0) - gammaln(m + 1.0) - gammaln(n - m + 1.0)
    return np.asarray(ways + m * math.log(p) + (n - m) * math.log1p(-p))


def _roots(count: int, k: int, p: float, log_whole: float) -> tuple[int, float]:
    """How many roots of unity to take, and the limit on what aliasing then adds to a characteristic function."""
    n = count - 1
    weights = np.exp(_log_binomial(n, np.arange(count), p) - log_whole) * (1.0 + 1e-9)
    below, above = np.cumsum(weights), np.cumsum(weights[::-1])[::-1]
    roots = np.arange(2, count)
    beyond = np.where(roots <= k, below[np.maximum(k - roots, 0)], 0.0)
    beyond += np.where(roots <= count - k, above[np.minimum(k - 1 + roots, n)], 0.0)
    enough = np.flatnonzero(beyond <= 1e-20)
    return (int(roots[enough[0]]), float(beyond[enough[0]])) if len(enough) else (count, 0.0)


def _root(turns: Indices, roots: int) -> Complex:
    """e^{2πi·turns/roots}, from the remainder so that large powers keep their digits."""
    return np.asarray(np.exp(2j * math.pi / roots * (turns % roots)))


def _damping(noise: str, omega: Array) -> Array:
    """The noise's characteristic function."""
    return np.asarray(np.exp(-0.5 * omega * omega) if noise == "gaussian" else 1.0 / (1.0 + omega * omega))


def _truncated(count: int, length: float, noise: str) -> float:
    """Limit on ∫|density| that the frequencies from the count-th on could add within the window."""
    last = max(count - 1, 0) * 2.0 * math.pi / length
    if noise == "gaussian":
        return length / math.pi * math.sqrt(math.pi / 2.0) * math.erfc(last / math.sqrt(2.0))
    return math.sqrt(length / (3.0 * math.pi * last) / last / last) if last > 0.0 else math.inf


def _phases(g: Array, step: float, count: int) -> Complex:
    """Σ_j e^{iωg_j} at ω = 0, step, 2·step, ...: blocks of frequencies by one matrix product each."""
    block = math.isqrt(count - 1) + 1
    inner = np.exp(1j * np.outer(g, step * np.arange(block)))
    sums = np.empty((block, block), dtype=np.complex128)
    rows = max(1, 2**22 // len(g))
    for start in range(0, block, rows):
        outer = np.exp(1j * np.outer(step * block * np.arange(start, min(start + rows, block)), g))
        sums[start : start + rows] = outer @ inner
    return sums.ravel()[:count]


@dataclass(frozen=True)
class _Bound:
    """What is known of the products before any is formed.

    ln |product without one factor| ≤ -p(1-p)·(N - |Σ e^{iωg_j}|·cos(angle between z and the sum)) + 1/2. The sum is
    known up to 6u·N·(largest phase) < 1e-4, as at most 2³¹ phases are formed, each below 2π times its frequency's
    number.
    """

    sums: Complex
    spread: Array
    allowance: Array

    @classmethod
    def of(cls, setting: _Setting) -> _Bound:
        n, spread = len(setting.g), setting.p * (1.0 - setting.p)
        most = min(_MOST_FREQUENCIES, max(64, _MOST_PHASES // n))
        count = min(most, math.ceil(_LAST / setting.step) + 1) if setting.noise == "gaussian" else most
        sums = _phases(setting.g, setting.step, count)
        log_damping = np.log(_damping(setting.noise, setting.step * np.arange(count, dtype=np.float64)))
        length = np.minimum(np.abs(sums) * (1.0 + 1e-9) + 1e-4, n)
        return cls(sums, spread * length, 0.5 - setting.log_whole + log_damping - spread * n)

    def choose(self, setting: _Setting, threshold: float) -> tuple[int, Index, Array, float]:
        """How many frequencies can be looked at, which matter, how far from the sum's direction, and the loss."""
        needed = (math.log(threshold) - self.allowance) / self.spread
        needed[0] = -1.0  # all roots at frequency zero, by which the others are divided
        angle = np.arccos(np.clip(needed, -1.0, 1.0))
        numbers = np.where(needed <= 1.0, np.minimum(np.ceil(angle / math.pi * setting.roots) + 1, setting.roots), 0)
        limit = min(_MOST_PAIRS, _MOST_FACTORS // len(setting.g))
        count = max(1, int(np.searchsorted(np.cumsum(numbers), limit, side="right")))
        matter = needed[:count] <= 1.0
        dropped = float(np.exp((self.allowance + self.spread)[:count][~matter]).sum())
        return count, np.flatnonzero(matter), angle[:count][matter], 2.0 * (dropped + int(matter.sum()) * threshold)


def _choose_pairs(setting: _Setting) -> _Pairs:
    """Keep the pairs (ω, z) where the bound on the product is not negligible, up to a limit on their number.

    What counts as negligible is what loses least: a high threshold drops more, and reaches further.
    """
    bound = _Bound.of(setting)
    choices = [bound.choose(setting, threshold) for threshold in _NEGLIGIBLE[setting.noise]]
    losses = [loss + _truncated(count, setting.length, setting.noise) for count, _, _, loss in choices]
    count, kept, angles, loss = choices[int(np.argmin(losses))]
    which, turns = _near(np.angle(bound.sums[kept]), angles, setting.roots)
    used, which = np.unique(which, return_inverse=True)
    return _Pairs(count, kept[used], which, turns, loss)


def _prune(setting: _Setting, pairs: _Pairs, product: Complex) -> tuple[_Pairs, Flags]:
    """Drop the smallest pairs, as long as that adds little to the loss, and frequencies beyond a limit on the pairs.

    Leaving a factor out divides by at least |1 - 2p|.
    """
    damping = _damping(setting.noise, pairs.omega(setting.step))
    size = np.abs(product) * damping[pairs.which] * (2.0 / setting.roots)
    size /= math.exp(setting.log_whole) * abs(1.0 - 2.0 * setting.p)
    room = max(1e-16, 0.05 * (pairs.left_out + _truncated(pairs.count, setting.length, setting.noise)))
    order = np.argsort(size)
    kept = np.ones(len(size), dtype=bool)
    kept[order[np.cumsum(size[order]) <= room]] = False
    kept |= pairs.which == 0
    count = pairs.count
    if kept.sum() > _MOST_KEPT:
        beyond = pairs.which >= pairs.which[np.flatnonzero(kept)[_MOST_KEPT]]
        count = int(pairs.frequencies[pairs.which[beyond][0]])
        kept &= ~beyond
    return replace(pairs.only(kept, pairs.left_out + room), count=count), kept


def _near(centres: Array, angles: Array, roots: int) -> tuple[Indices, Indices]:
    """For each frequency the roots of unity within ``angle`` of the direction opposite to the sum's."""
    which, turns = [], []
    nodes = 2.0 * math.pi / roots * np.arange(roots)
    rows = max(1, 2**20 // roots)
    for start in range(0, len(centres), rows):
        part = slice(start, start + rows)
        away = np.abs(np.mod(nodes + centres[part, None] + math.pi, 2.0 * math.pi) - math.pi)
        row, column = np.nonzero(away <= angles[part, None] + 1e-9)
        which.append(row + start)
        turns.append(column)
    return np.concatenate(which), np.concatenate(turns)


def _factor(setting: _Setting, turn: Complex, turns: Indices) -> Complex:
    return np.asarray((1.0 - setting.p) + setting.p * turn * _root(turns, setting.roots))


def _factor_rounding(p: float, phase: Array, factor: Complex) -> Array:
    """Relative rounding error of a factor and of the multiplication with it, in units of u."""
    return np.asarray(4.0 + (p * (6.0 * phase + 8.0) + 1.0) / np.abs(factor))


def _products(setting: _Setting, pairs: _Pairs) -> tuple[Complex, Array]:
    """Π_j (1 - p + p·z·e^{iωg_j}) at the pairs, and its relative rounding error in units of u."""
    total = np.ones(len(pairs.which), dtype=np.complex128)
    rounding = np.full(len(total), 2.0 * setting.roots + 20.0)
    p, tilted = setting.p, setting.p * _root(pairs.turns, setting.roots)
    omega = pairs.omega(setting.step)
    width = 2**13
    for start in range(0, len(total), width):
        part = slice(start, start + width)
        first, last = pairs.which[part][0], pairs.which[part][-1] + 1
        here, some = pairs.which[part] - first, omega[first:last]
        for g, reach in zip(setting.g, setting.reach, strict=True):
            factor = (1.0 - p) + np.exp(1j * some * g)[here] * tilted[part]
            total[part] *= factor
            rounding[part] += _factor_rounding(p, (some * reach)[here], factor)
    return total, rounding


# ---------------------------------------------------------------------------------------------------------------------
# The densities on a grid, and the divergence


@dataclass(frozen=True)
class _Densities:
    """Both densities and their second derivatives over the window, first point repeated at the end; in noise scales."""

    points: Array
    values: tuple[Array, Array]
    bends: tuple[Array, Array]
    step: float
    errors: tuple[float, float]
    tail: float

    @classmethod
    def of(cls, spectrum: _Spectrum, record: int) -> _Densities:
        laws = spectrum.coefficients(record)
        omega, length, frequencies = spectrum.omega, spectrum.setting.length, spectrum.pairs.frequencies
        sharp = [float(np.sum(omega**4 * np.abs(law)) * 2.0 / length) for law, _ in laws]
        count = _grid_size(int(frequencies[-1]), length, max(sharp), max(1e-12, 0.05 * spectrum.left_out))
        step = length / count
        errors = []
        for (law, slip), fourth in zip(laws, sharp, strict=True):
            pointwise = (slip + 8.0 * _U * math.log2(count) * np.abs(law)) * (1.0 + (step * omega) ** 2 / 8.0)
            cubic = length * 5.0 / 384.0 * step**4 * fourth
            errors.append(float(2.0 * np.sum(pointwise)) + spectrum.left_out + cubic)
        inside, outside = (_series(law, frequencies, count, length) for law, _ in laws)
        bends = tuple(_series(-(omega**2) * law, frequencies, count, length) for law, _ in laws)
        points = step * np.arange(-(count // 2), count - count // 2, dtype=np.float64)
        tail = 2.0 * _TAIL[spectrum.setting.noise]
        return cls(points, (inside, outside), (bends[0], bends[1]), step, (errors[0], errors[1]), tail)

    def divergence(self, epsilon: float, swapped: bool) -> tuple[float, float, float]:
        """Lower and upper limit of E_{e^ε}, and its slope -dE/dε (not enclosed)."""
        gamma = math.exp(epsilon)
        first, second = (1, 0) if swapped else (0, 1)
        error = self.errors[first] + gamma * self.errors[second] + _SUMMING * (1.0 + gamma)
        floor = 1e-3 * error / (self.step * len(self.points))
        low = high = slope = 0.0
        for start in range(0, len(self.points), _CHUNK):
            part = slice(start, start + _CHUNK + 1)
            other = self.values[second][part]
            height = self.values[first][part] - gamma * other
            bend = self.bends[first][part] - gamma * self.bends[second][part]
            below, above = _positive_part(height, bend, self.step, floor)
            low, high = low + below, high + above
            slope += gamma * self.step * float(other[:-1] @ (height[:-1] > 0.0))
        lower, upper = low - error - self.tail, high + error + (1.0 + gamma) * self.tail
        return min(1.0, max(0.0, lower)), min(1.0, max(0.0, upper)), slope


def _grid_size(highest: int, length: float, sharp: float, target: float) -> int:
    """A power of two: at least four points to the shortest wave, and cubic pieces off by ``target`` in total."""
    wanted = length * (5.0 / 384.0 * length * sharp / target) ** 0.25
    return min(1 << max(8, math.ceil(math.log2(max(wanted, 4.0 * (highest + 1))))), _MOST_POINTS)


def _series(coefficients: Complex, frequencies: Indices, count: int, length: float) -> Array:
    """Real trigonometric polynomial with these coefficients at ``count`` points from -length/2 on, and the first again.

    Waves that the points do not resolve are left out. The error of the cubics covers that: step·ω ≥ π makes it
    5/384·π⁴ > 1 of their size.
    """
    sign = np.where(frequencies % 2 == 0, 1.0, -1.0)
    dense = np.zeros(count // 2 + 1, dtype=np.complex128)
    inside = 2 * frequencies < count
    dense[frequencies[inside]] = (np.conj(coefficients) * sign)[inside] * (count / length)
    values = np.fft.irfft(dense, count)
    return np.append(values, values[0])


def _positive_part(height: Array, bend: Array, step: float, floor: float) -> tuple[float, float]:
    """Limits of ∫ g_+, g the cubics with these values and second derivatives at neighbouring points."""
    size, curve, positive = np.abs(height), np.abs(bend), height > 0.0
    bulge = (step * step / 8.0) * np.maximum(curve[:-1], curve[1:])
    crossed = positive[:-1] != positive[1:]
    whole = (step / 2.0) * (height[:-1] + height[1:]) - (step**3 / 24.0) * (bend[:-1] + bend[1:])
    low = float(whole @ (positive[:-1] & positive[1:]))
    doubt = np.maximum(bulge - np.minimum(size[:-1], size[1:]), 0.0)
    high = low + step * float(doubt @ ~crossed)
    at = np.flatnonzero(crossed)
    largest = size[at] + size[at + 1] + bulge[at]
    tiny = np.maximum(size[at], size[at + 1]) <= floor  # below the noise floor: nothing is claimed
    winding = np.abs(height[at] - height[at + 1]) <= 4.0 * bulge[at]
    high += step * float(largest @ (tiny | winding))
    at = at[~tiny]
    if not len(at):
        return low, high
    cells, missed = _crossed(height[at], height[at + 1], bend[at], bend[at + 1], step)
    return low + cells, high + cells + missed


def _crossed(left: Array, right: Array, bend: Array, bend_after: Array, step: float) -> tuple[float, float]:
    """∫ of the cubics over the part of each cell between a zero and the positive end, and a limit on what is missed.

    Cells are nearly straight, so a few Newton steps find the zero; if one is not found to the last digit, the
    integral misses at most the cell's width times the value there.
    """
    rising = right > left
    # counted from the positive end: values a, b and second derivatives c, d at the positive and at the other end
    a, b = np.where(rising, right, left), np.where(rising, left, right)
    c, d = (step**2 * np.where(rising, *pair) for pair in ((bend_after, bend), (bend, bend_after)))
    r = a / (a - b)
    for _ in range(3):
        s = 1.0 - r
        value = a * s + b * r + (c * s * (s * s - 1.0) + d * r * (r * r - 1.0)) / 6.0
        slope = b - a + (c * (1.0 - 3.0 * s * s) + d * (3.0 * r * r - 1.0)) / 6.0
        r = np.minimum(np.maximum(r - value / np.where(slope == 0.0, b - a, slope), 0.0), 1.0)
    s = 1.0 - r
    value = a * s + b * r + (c * s * (s * s - 1.0) + d * r * (r * r - 1.0)) / 6.0
    line = a * (r - r * r / 2.0) + b * r * r / 2.0
    s, r = s * s, r * r
    curve = c * (-1.0 / 24.0 - s * (s - 2.0) / 24.0) + d * r * (r - 2.0) / 24.0
    return float((step * (line + curve)).sum()), float((step * np.abs(value)).sum())
