"""Gaussian noise on the sum of a random part of a pool, in any dimension: a bound close to the normal approximation.

Given that a record is inside and given that it is outside, the sum has nearly the same covariance, V in the mean, and
means that differ by m. Were both laws normal with V, the record's ε̃ would be that of a shift by u = |V^{-1/2} m|. They
are not; how far they are from it is bounded degree by degree (:mod:`whosin.population.sums.hermite`), and for γ = e^ε

    E_γ ≤ sup_t { Φ(u/2-t) - γΦ(-u/2-t) + R·φ(Φ(c-t)) + τ·[φ(Φ(u/2-t)) + γφ(Φ(-u/2-t))] },
    φ(v) = min(1/2, χ/2 + √(v + χ²/4)),

for every degree K and centre c ≥ 0: R is the error up to degree K that the two laws do not share, τ what is beyond K
and χ all of it. Where the noise is little, the mass m of what is beyond K is known while τ is not
(:mod:`whosin.population.sums.frequencies`): then m·(1+γ) stands for the terms with τ, and v + m/2 for v; and as what is
left has known norms in every L^p, R·φ falls nearly as v itself where tests are small (:func:`_root`). docs/theory.md
has the proof. Nothing is sampled, and the bound is infinite where neither shows anything.

What depends on a record is its shift u and a few norms. Records are therefore taken in groups of like u, and the error
of a group is computed once, from the largest norms in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array
from whosin.errors import check_probability
from whosin.numerics.gaussian_noise import epsilon_for
from whosin.numerics.roots import smallest_holding
from whosin.parallel.one_thread import one_thread
from whosin.parallel.threads import Progress
from whosin.population.sums.frequencies import Within, largest_fourth, masses_beyond, means_of, parts_of
from whosin.population.sums.hermite import Draw, majorant, omega, quadratic_powers, scale_of
from whosin.population.sums.pairwise import check_pool, in_units

MOST_COLUMNS = 60
"""Fourth moments of the pool are a tensor with columns⁴ entries."""
LEAST_RECORDS = 14
GRAM_RECORDS = 5000
"""Up to this many records sixth and eighth powers of all inner products are summed; above, they are bounded."""
GROUP_RATIO = 1.25
CELL_RATIO = 1.02
"""Records of one group have u within the first factor; those that share one evaluation within the second."""
CENTRES = (0.0, 0.5, 1.0, 1.5)
POWERS = (2.0, 3.0, 5.0)
"""p: norms in L^p of the error are tried; small tests ask for large p."""
FOURTH_RATIO = 1.04
QUIET = 80.0
MOST_PARTS = 1024
"""The pool is parted into neighbours, up to so many parts, until the waves that are left have e^{-QUIET/2} by noise."""
REACH = (0.0, 0.01, 0.03, 0.07, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0)
"""How far above the normal approximation the bound is looked for, in shares of it."""
FAR_SHARE = 0.2
"""A record is far if it makes this share of the pool's squared fourth norm by itself."""
MOST_FAR = 3
_STEP = 1e-4
_SLACK = 1e-9


def normal_epsilons(f: ArrayLike, k: int, scale: float, delta: float, *, progress: Progress | None = None) -> Array:
    """Return for each record an upper limit on ε̃ at δ, infinite where this bound shows nothing.

    Parameters
    ----------
    f : array-like, shape (N,) or (N, d)
        What each record adds to the sum.
    k : int
        How many of the records are drawn.
    scale : float
        Standard deviation of the noise in each coordinate.
    delta : float
        In (0, 1).

    Notes
    -----
    O(N·d⁴ + d⁶) once for the pool (and O(N²·d) up to 5,000 records), about a second for each group of records with like
    shifts, of which there are about a dozen. Deterministic; limits hold for every pool, rounding included. Where
    up to three records lie far out, the limit against somebody who is told about them is taken if it is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> epsilons = normal_epsilons(np.linspace(-1, 1, 32).reshape(16, 2), 8, 5.0, 0.01)
    >>> round(float(epsilons.max()), 3), round(float(epsilons[8]), 3)  # the ends stand out, the middle is hidden
    (0.422, 0.0)
    """
    pool, scale = in_units(check_pool(f), scale)
    delta = check_probability("delta", delta)
    if not 0.0 < delta < 1.0 or not covered(len(pool), k, pool.shape[1]):
        return np.full(len(pool), np.inf)
    with one_thread, np.errstate(over="ignore", invalid="ignore"):  # series that grow beyond bounds are cut before
        whitened = Whitened(pool / scale, k)
        limits = limits_of(whitened, np.arange(len(pool)), delta, progress)
        far = whitened.far
        if len(far):
            near = np.setdiff1d(np.arange(len(pool)), far)
            limits[near] = np.minimum(limits[near], _revealed(pool / scale, k, far, near, delta))
            for own in far if len(far) > 1 else ():
                limits[own] = min(limits[own], *_revealed(pool / scale, k, far[far != own], np.array([own]), delta))
    return limits


def covered(count: int, k: int, columns: int) -> bool:
    return count >= LEAST_RECORDS and 2 <= k <= count - 2 and columns <= MOST_COLUMNS


def limits_of(whitened: Whitened, asked: NDArray[np.int64], delta: float, progress: Progress | None = None) -> Array:
    """Limits of some records; infinite for one that is nearly alone in a direction."""
    limits = np.full(len(whitened.shifts), np.inf)
    asked, all_asked = asked[np.isfinite(whitened.shifts[asked])], asked
    groups = list(_groups(whitened.shifts[asked])) if len(asked) else []
    for done, group in enumerate(groups):
        limits[asked[group]] = _group_limits(whitened, asked[group], delta)
        if progress is not None:
            progress((done + 1) / len(groups))
    return limits[all_asked]


def _revealed(pool: Array, k: int, shown: NDArray[np.int64], asked: NDArray[np.int64], delta: float) -> Array:
    """Limits of some records against somebody who is also told which of ``shown``, none of them asked, were drawn.

    Given that j of these r were drawn, k - j of the others are; j has chances P(j) given in and Q(j) given out with
    Q/P = (N-r-k+j)/(k-j)·k/(N-k), so ε is enough where ε - |ln Q/P| is for every j.
    """
    count, hidden = len(pool), np.setdiff1d(np.arange(len(pool)), shown)
    limits = np.zeros(len(asked))
    for j in range(max(0, k - len(hidden)), min(len(shown), k) + 1):
        if not covered(len(hidden), k - j, pool.shape[1]):
            return np.full(len(asked), np.inf)
        price = abs(math.log((len(hidden) - k + j) / (k - j) * k / (count - k))) * (1.0 + 1e-12) + 1e-15
        whitened = Whitened(pool[hidden], k - j)
        limits = np.maximum(limits, limits_of(whitened, np.searchsorted(hidden, asked), delta) + price)
    return limits


def _groups(shifts: Array) -> Iterator[NDArray[np.int64]]:
    """Positions of the records with shifts within a factor of each other; the small ones together."""
    largest = float(shifts.max())
    floor = max(largest / 8.0, 1e-6)
    steps = np.floor(np.log(np.maximum(shifts, floor) / floor) / math.log(GROUP_RATIO)).astype(np.int64)
    for step in np.unique(steps)[::-1]:
        yield np.flatnonzero(steps == step)


class Whitened:
    """The whitened pool, and the norms of sums over it that the error needs, for each record.

    With ξ_j = f_j - mean and V = 1 + α·Σξξᵀ (noise of scale 1), η_j = V^{-1/2} ξ_j. Leaving record x out moves the mean
    by ξ_x/(N-1) and takes α·N/(N-1)·ξ_xξ_xᵀ from V: whitening by what is left stretches the direction e of η_x by
    1/√(1-q), q = α·N/(N-1)·|η_x|², and the shift is u² = (N/(N-1))²·|η_x|²/(1-q).
    """

    def __init__(self, pool: Array, k: int) -> None:
        self.others = len(pool) - 1
        self.draw = Draw(self.others, k)
        growth = 1.0 + 1.0 / self.others
        centred = pool - pool.mean(axis=0)
        centred -= centred.mean(axis=0)  # the first mean is rounded in units of the pool's distance from 0
        covariance = np.eye(pool.shape[1]) + self.draw.alpha * (centred.T @ centred)
        values, vectors = np.linalg.eigh(covariance)
        self.eta = centred @ (vectors / np.sqrt(values))
        norms = np.linalg.norm(self.eta, axis=1)
        self.directions = self.eta / np.maximum(norms, 1e-300)[:, None]
        self.lengths = norms * (1.0 + _SLACK)
        left = 1.0 - self.draw.alpha * growth * self.lengths**2  # of V along e without the record
        self.stretch = np.divide(1.0, left, out=np.full(len(pool), np.inf), where=left > 1e-7)
        self.shifts = growth * self.lengths * np.sqrt(self.stretch)
        self.eigenvalues = np.clip(1.0 - 1.0 / values[::-1], 0.0, None) * (1.0 + _SLACK) + 1e-15

    @property
    def far(self) -> NDArray[np.int64]:
        """Records that alone make a good part of the fourth norm, on which all errors depend: a few at the most."""
        pairs = (self.eta[:, :, None] * self.eta[:, None, :]).reshape(len(self.eta), -1)
        alone = np.flatnonzero(self.lengths**8 > FAR_SHARE * np.sum((pairs.T @ pairs) ** 2))
        return np.asarray(alone[np.argsort(-self.lengths[alone], kind="stable")[:MOST_FAR]])

    @cached_property
    def norms(self) -> tuple[Array, Array]:
        """[T_k] of the others for k = 3..8 after stretching (columns 3 to 8), and the part of it that touches e.

        Sums over the pool, less the record's own term, plus what moving the mean adds.
        """
        plain, own, along, cross_fourth = self._sums()
        absolute = plain.copy()  # norms of sums of |·|^k, which do not cancel
        absolute[0], absolute[3] = self.others, math.sqrt(plain[2] * plain[4])
        absolute[5], absolute[7] = math.sqrt(plain[4] * plain[6]), math.sqrt(plain[6] * plain[8])
        whole, cross = np.zeros((2, len(self.eta), 9))
        for k in (3, 4, 6, 8):
            moved = self._moved(absolute, k)
            less = self.lengths ** (2 * k) - 2.0 * own[:, k] + _SLACK * plain[k] ** 2
            base = np.sqrt(np.maximum(plain[k] ** 2 + less, 0.0)) + moved
            part = np.minimum(np.sqrt(np.maximum(along[:, k] + less, 0.0)) + moved, base)
            whole[:, k] = np.sqrt(base**2 + (self.stretch**k - 1.0) * part**2)
            cross[:, k] = np.minimum(whole[:, k], math.sqrt(k) * self.stretch ** (k / 2) * part)
        whole[:, 5], whole[:, 7] = np.sqrt(whole[:, 4] * whole[:, 6]), np.sqrt(whole[:, 6] * whole[:, 8])
        cross[:, 4] = np.minimum(cross[:, 4], cross_fourth + self.stretch**2 * self._moved(absolute, 4))
        return whole, cross

    def _sums(self) -> tuple[Array, Array, Array, Array]:
        """Norms of Σ_j η_j^{⊗k} by k; for each record Σ_j (η_x·η_j)^k and the squared norm with e in one place."""
        count, columns = self.eta.shape
        plain = np.zeros(9)
        own, along = np.zeros((2, count, 9))
        pairs = (self.eta[:, :, None] * self.eta[:, None, :]).reshape(count, -1)
        third, fourth = self.eta.T @ pairs, pairs.T @ pairs
        plain[1], plain[2] = self.lengths.max(), np.linalg.norm(self.eta.T @ self.eta)
        plain[3], plain[4] = np.linalg.norm(third), np.linalg.norm(fourth)
        own[:, 3] = np.einsum("ni,ni->n", self.eta @ third, pairs)
        along[:, 3] = np.sum((self.directions @ third) ** 2, axis=1)
        parts = self._fourth(fourth.reshape(columns, columns, columns, columns))
        own[:, 4], along[:, 4] = self.lengths**4 * np.sqrt(parts[:, 4]), parts[:, 1]
        if count <= GRAM_RECORDS:
            self._gram(plain, own, along)
        else:
            plain[6], plain[8] = plain[4] * plain[1] ** 2, plain[4] * plain[1] ** 4
            along[:, 6], along[:, 8] = plain[6] ** 2, plain[8] ** 2
            own[:, 6], own[:, 8] = 0.5 * self.lengths**12, 0.5 * self.lengths**16
        return plain * (1.0 + _SLACK), own, along, self._fourth_cross(parts)

    def _moved(self, absolute: Array, k: int) -> Array:
        """What moving the mean by ξ_x/(N-1) adds to [T_k] at the most."""
        step = self.lengths / self.others
        return np.asarray(sum(math.comb(k, i) * step**i * absolute[k - i] for i in range(1, k + 1)))

    def _fourth(self, tensor: Array) -> Array:
        """‖τ(e^i)‖² of τ = Σ η^{⊗4} for i = 0..4, each record's e."""
        e = self.directions
        columns = e.shape[1]
        out = np.empty((len(e), 5))
        out[:, 0] = np.sum(tensor**2)
        once = tensor.reshape(columns, -1)
        out[:, 1] = np.einsum("ni,ij,nj->n", e, once @ once.T, e, optimize=True)
        square = tensor.reshape(columns**2, columns**2)
        for start in range(0, len(e), 2048):
            part = e[start : start + 2048]
            twice = ((part[:, :, None] * part[:, None, :]).reshape(len(part), -1) @ square).reshape(
                -1, columns, columns
            )
            thrice = np.einsum("nij,nj->ni", twice, part)
            out[start : start + 2048, 2] = np.sum(twice**2, axis=(1, 2))
            out[start : start + 2048, 3] = np.sum(thrice**2, axis=1)
            out[start : start + 2048, 4] = np.einsum("ni,ni->n", thrice, part) ** 2
        return np.maximum(out, 0.0)

    def _fourth_cross(self, g: Array) -> Array:
        """Norm of the part of the stretched fourth tensor of the others with e in at least one place."""
        room = _SLACK * g[:, 0]
        stretch = self.stretch
        three, two = g[:, 3] - g[:, 4], g[:, 2] - 2.0 * g[:, 3] + g[:, 4]
        one = g[:, 1] - 3.0 * g[:, 2] + 3.0 * g[:, 3] - g[:, 4]
        four = np.maximum(np.sqrt(g[:, 4]) - self.lengths**4, 0.0) ** 2
        parts = [4.0 * stretch * one, 6.0 * stretch**2 * two, 4.0 * stretch**3 * three, stretch**4 * four]
        return np.asarray(np.sqrt(sum(np.maximum(part, 0.0) + 16.0 * stretch**4 * room for part in parts)))

    def _gram(self, plain: Array, own: Array, along: Array) -> None:
        """The sixth and eighth powers, from all inner products."""
        tensors = np.zeros((2, self.eta.shape[1], self.eta.shape[1]))
        for start in range(0, len(self.eta), 1000):
            rows = self.eta[start : start + 1000]
            g = rows @ self.eta.T
            square = g * g
            odd = square * square * g
            for place, k in enumerate((6, 8)):
                own[start : start + 1000, k] = np.einsum("ij,ij->i", odd, g)
                tensors[place] += rows.T @ (odd @ self.eta)
                odd = odd * square
        for place, k in enumerate((6, 8)):
            plain[k] = math.sqrt(float(own[:, k].sum()))
            along[:, k] = np.einsum("ni,ij,nj->n", self.directions, tensors[place], self.directions)

    def sizes(self, group: NDArray[np.int64]) -> Sizes:
        """What the errors of a group of records grow with."""
        whole, cross = (part[group].max(axis=0) for part in self.norms)
        fourths = *self.fourth(group), self.within(group)
        return Sizes(self.draw, whole, cross, self.longest(group), self.eigenvalues, *fourths)

    @cached_property
    def largest_fourth(self) -> tuple[float, float]:
        """The largest Σ(η_j·e)⁴ and Σ|η_j|²(η_j·e)² over directions e."""
        weighted = self.eta * self.lengths[:, None]
        return largest_fourth(self.eta), float(np.linalg.eigvalsh(weighted.T @ weighted)[-1]) * (1.0 + _SLACK)

    def fourth(self, group: NDArray[np.int64]) -> tuple[float, float]:
        """The same of the others of any record of the group, moved and stretched; rounded up, so that groups agree."""
        step = self.lengths[group] / self.others
        fourth = (self.largest_fourth[0] ** 0.25 + self.others**0.25 * step) ** 4
        total = math.sqrt(float(np.sum(self.lengths**2)))
        around = (math.sqrt(self.largest_fourth[1]) + 2.0 * total * step + math.sqrt(self.others) * step**2) ** 2
        stretch = self.stretch[group] ** 2
        return _raised(float(np.max(stretch * fourth))), _raised(float(np.max(stretch * around)))

    @cached_property
    def parts(self) -> list[tuple[float, float, Array]]:
        """Ways to part the pool into neighbours, finer by steps, where waves that are short for the pool count.

        For each the least scatter within parts over directions, the largest mean fourth power of differences within
        parts, summed over the records, and what leaving out each record may take from the scatter at the most.
        """
        count, columns = self.eta.shape
        largest = float(self.eigenvalues.max())
        quiet = (QUIET + 3.0 * columns) / (1.0 - largest)  # |y|² beyond which noise leaves nothing
        reach, number, found = 4.0 * self.draw.alpha * count / largest, 1, []
        while reach < quiet and number <= min(max(1, count // 4), MOST_PARTS):
            parts = parts_of(self.eta, number)
            near = np.flatnonzero(parts >= 0)
            parts, lost = parts[near], np.zeros(count)
            apart = self.eta[near] - means_of(self.eta[near], parts, number)[0][parts]
            squares = np.sum(apart**2, axis=1) * (1.0 + _SLACK)
            lost[near] = squares + means_of(squares, parts, number)[0][parts]
            least = float(np.linalg.eigvalsh(apart.T @ apart)[0]) - _SLACK * float(squares.sum())
            quartic = largest_fourth(apart, parts) * (1.0 + _SLACK) + 1e-300
            found.append((least, quartic, lost))
            reach, number = max(reach, 4.0 * math.pi**2 * least / quartic), max(2 * columns, 4 * number)
        return found

    def within(self, group: NDArray[np.int64]) -> Within:
        """The same of the others of any record of the group, stretched; rounded, so that groups agree."""
        stretch = float(np.max(self.stretch[group])) ** 2
        found = [(least - float(np.max(lost[group])), quartic) for least, quartic, lost in self.parts]
        return tuple((_raised(least, -1.0), _raised(stretch * quartic)) for least, quartic in found if least > 0.0)

    def longest(self, group: NDArray[np.int64]) -> float:
        """The longest whitened vector of another record, for any record of the group."""
        longest = 0.0
        for start in range(0, len(group), 256):
            some = group[start : start + 256]
            lengths = (
                self.lengths[:, None] ** 2 + (self.stretch[some] - 1.0) * (self.eta @ self.directions[some].T) ** 2
            )
            lengths[some, np.arange(len(some))] = 0.0
            moved = np.sqrt(lengths.max(axis=0)) + np.sqrt(self.stretch[some]) * self.lengths[some] / self.others
            longest = max(longest, float(moved.max()))
        return longest * (1.0 + _SLACK) + 1e-30


@dataclass
class Error:
    """How far the two laws of some records are from normal: upper limits by degree."""

    alike: Array
    """What both laws have in common and a normal law along e would not have, D^k times the norm of degree k."""
    apart: Array
    """Half the difference of the two laws, in the same units."""
    shared: Array
    """ln of k!·[Ψ_k]² of their mean."""
    masses: Array
    """The mass ∫|·| of everything beyond each degree, of either law."""
    tails: Array
    """The norm of everything beyond each degree, of either law less what stands for it."""
    kept: dict[Any, Array] = field(default_factory=dict)
    """What was computed and is asked for again."""

    @property
    def degree(self) -> int:
        return len(self.masses) - 1

    def known(self, power: float) -> Array:
        """The norm in L^p of the mean up to each degree, by hypercontractivity."""
        if power not in self.kept:
            logs = self.shared + math.log(power - 1.0) * np.arange(len(self.shared))
            self.kept[power] = np.exp(np.minimum(0.5 * np.logaddexp.accumulate(logs), 600.0))
        return self.kept[power]

    def moved(self, degree: int) -> Array:
        """The norms of the error up to the degree where it stands, for each power."""
        if ("moved", degree) not in self.kept:
            logs = _log_squares((self.alike + self.apart)[: degree + 1], scale_of(self.degree))
            each = logs + np.log(np.array(POWERS)[:, None] - 1.0) * np.arange(degree + 1)
            self.kept["moved", degree] = np.sqrt(np.exp(each).sum(axis=1))
        return self.kept["moved", degree]


def _raised(number: float, way: float = 1.0) -> float:
    """The next power of FOURTH_RATIO, or the last below for ``way`` = -1."""
    power = way * math.ceil(way * math.log(number + 1e-300) / math.log(FOURTH_RATIO) + 1e-9)
    return float(FOURTH_RATIO**power)


def _log_squares(numbers: Array, scale: float) -> Array:
    """ln of k!·(k-th number)²."""
    from scipy.special import gammaln

    k = np.arange(len(numbers))
    return np.asarray(gammaln(k + 1) - 2.0 * k * math.log(scale) + 2.0 * np.log(numbers + 1e-300) + 1e-9)


@dataclass
class Sizes:
    """What the error of some records grows with: the largest over them serves all."""

    draw: Draw
    whole: Array
    cross: Array
    unit: float
    eigenvalues: Array
    fourth: float
    around: float
    within: Within


def error_of(sizes: Sizes, degree: int) -> Error | None:
    """Return the error with the series computed up to a degree, None where it cannot help."""
    draw, scale, unit, whole, cross = sizes.draw, scale_of(degree), sizes.unit, sizes.whole, sizes.cross
    powers = unit ** np.arange(9)
    norms = np.zeros(degree + 1)
    norms[3:9], norms[8:] = (whole / powers)[3:9], (whole / powers)[8]
    crossing = math.sqrt(2.0) * norms
    crossing[3] = min(cross[3] / powers[3], norms[3])
    eigenvalues = sizes.eigenvalues / draw.alpha
    log_powers = quadratic_powers(eigenvalues, degree // 2 + 1)
    log_across = quadratic_powers(eigenvalues[1:], degree // 2 + 1)
    mean, apart, rounding = majorant(norms, log_powers, draw, unit)
    mean, apart = (np.nan_to_num(part * (1.0 + rounding), nan=np.inf) for part in (mean, apart))
    mean[:3] = apart[:2] = 0.0  # means are taken out, and the mean of the variances
    side = mean + apart
    side[0] = 1.0
    masses, tails = masses_beyond(sizes, _log_squares(side, scale))
    shared = _log_squares(mean, scale)
    if not np.min((np.exp(0.5 * np.logaddexp.accumulate(shared)) + np.minimum(masses, tails))[4:]) < 1.0:
        return None
    log_crossing = log_powers + 0.5 * np.log(-np.expm1(np.minimum(2.0 * (log_across - log_powers), -1e-12)))
    moved, _, _ = majorant(
        norms + _STEP * crossing, np.logaddexp(log_powers, log_crossing + math.log(_STEP)), draw, unit
    )
    slope = (moved * (1.0 + rounding) - mean * (1.0 - 2.0 * rounding)) / _STEP
    linear = omega(draw, degree, scale * unit)[:, 0]
    for p in (4, 6, 8):  # in the term that is linear in T_p signs may cancel
        slope[p] -= linear[p] * max(0.0, crossing[p] - cross[p] / powers[p]) * (1.0 - 1e-9)
    return Error(np.clip(slope, 0.0, mean), apart, shared, masses, tails * math.sqrt(1.5))


def _group_limits(whitened: Whitened, group: NDArray[np.int64], delta: float) -> Array:
    """Limits of the records of one group: cells of like shift share one search."""
    sizes = whitened.sizes(group)
    limits = np.full(len(group), np.inf)
    error = error_of(sizes, degree_of(sizes))
    if error is None:
        return limits
    shifts = whitened.shifts[group] * (1.0 + _SLACK)
    floor = max(float(shifts.max()) / 8.0, 1e-12)
    cells = np.ceil(np.log(np.maximum(shifts, floor) / floor) / math.log(CELL_RATIO) - 1e-9).astype(np.int64)
    for cell in np.unique(cells):
        own = cells == cell
        low, top = float(shifts[own].min()) * (1.0 - 100.0 * _SLACK), float(shifts[own].max())
        limits[own] = _smallest_epsilon(error, low, top, delta)
    return limits


def degree_of(sizes: Sizes) -> int:
    """How far the series goes: until noise or the frequencies that count have made what is beyond small."""
    columns, others = len(sizes.eigenvalues), sizes.draw.others
    largest = min(max(float(sizes.eigenvalues.max()) * max(1.0, sizes.draw.heaviness - 1.0), 1e-6), 1.0 - 1e-4)
    noise = 2.2 * (15 + columns) / -math.log(largest)
    return 2 * (max(8, int(min(noise, 240 + 16 * columns, 200 + others // 5, others - 5))) // 2)


def _smallest_epsilon(error: Error, low: float, high: float, delta: float) -> float:
    """The smallest ε found at which the bound holds for all shifts in [low, high]; infinite if there is none.

    The search starts at the normal approximation and goes up: the bound need not fall with ε, but what holds at one ε
    holds above it.
    """

    def holds(epsilon: float) -> bool:
        return divergence(error, low, high, epsilon, delta) <= delta

    below = least = epsilon_for(1.0, delta, high)
    for share in REACH:
        above = least + share * (least + 0.02)
        if holds(above):
            break
        below = above
    else:
        return math.inf
    return above if above == least else smallest_holding(holds, below, above, tolerance=2e-4 * (1.0 + least))


def divergence(error: Error, low: float, high: float, epsilon: float, target: float) -> float:
    """An upper limit on E_{e^ε} for every shift in [low, high]; stops at the first that is at most the target."""
    from scipy.special import ndtr

    gamma = math.exp(epsilon) * (1.0 + 1e-15)
    width = 1.25 ** math.ceil(math.log1p(high / 18.0) / math.log(1.25))
    t = np.linspace(-9.0, 9.0, 1201) * width
    left = np.concatenate([[-np.inf], t])
    right = np.concatenate([t, [np.inf]])
    peak = np.clip(epsilon / high if high > 0.0 else 0.0, left, right)
    main = ndtr(high / 2 - peak) - gamma * (1.0 - 1e-14) * ndtr(-high / 2 - peak)
    best = 1.0
    for degree, mass, tail in _cuts(error, gamma, target):
        rest = main + mass * (1.0 + gamma)
        if tail > 0.0:
            chi = math.sqrt(float(error.known(2.0)[degree]) ** 2 + tail**2)
            parts = [np.minimum(_root(ndtr(shift - left), chi, 2.0), 0.5) for shift in (high / 2, -low / 2)]
            rest = rest + tail * (parts[0] + gamma * parts[1])
        if rest.max() >= best or 0.0 < target < rest.max():
            continue
        for centre in CENTRES:
            norms = _unshared_norms(error, gamma, low, high, centre, degree)
            if not np.isfinite(norms[0]):
                continue
            tests = _factors(error, degree, mass, tail, centre, width, left)
            moved = np.minimum(np.min(norms[: len(tests), None] * tests, axis=0), 0.5 * norms[0])
            best = min(best, float(np.max(rest + moved)) * (1.0 + 1e-12) + 1e-15)
            if best <= target:
                return best
    return best


def _cuts(error: Error, gamma: float, target: float) -> list[tuple[int, float, float]]:
    """Degrees to cut at, with the mass or the norm of what is beyond: where it and what is known are least in sum.

    For tests of about the target's size; and a little below, for errors grow when laws are moved.
    """
    masses, tails = (1.0 + gamma) * error.masses, math.sqrt(target) * (1.0 + gamma) * error.tails
    least = {int(np.argmin((target ** (1.0 - 1.0 / p) * error.known(p) + masses)[4:])) for p in POWERS[:2]}
    cuts = [(4 + place, float(error.masses[4 + place]), 0.0) for place in sorted(least)]
    first = 4 + int(np.argmin((math.sqrt(target) * error.known(2.0) + tails)[4:]))
    below = sorted({max(4, int(first * share)) for share in (0.7, 0.85, 1.0)}, reverse=True)
    return cuts + [(place, 0.0, float(error.tails[place])) for place in below]


def _factors(error: Error, degree: int, mass: float, tail: float, centre: float, width: float, left: Array) -> Array:
    """H with ∫a·r ≤ ‖r‖_p·H for powers p, over N(c, 1) times the law across e, for the half-lines from ``left`` on.

    H = G^{1-1/p}, where G(a) ≤ v + χ_p·G(a)^{1-1/p} with v what the half-line has, and half of the mass. A norm of
    what is beyond the degree is one in L² only.
    """
    from scipy.special import ndtr

    key = degree, tail, centre, width
    if key not in error.kept:
        v = ndtr(centre - left) + 0.5 * mass
        error.kept[key] = np.array(
            [
                _root(v, math.sqrt(float(error.known(power)[degree]) ** 2 + tail**2), power)
                for power in (POWERS if tail == 0.0 else POWERS[:1])
            ]
        )
    return error.kept[key]


def _root(v: Array, chi: float, power: float) -> Array:
    """The largest H ≤ 1 with H^{p/(p-1)} ≤ v + χ·H, from above: Newton's method, as the difference is convex."""
    if not chi < 1.0:
        return np.ones_like(v)
    q, v = power / (power - 1.0), v + 1e-300
    h = np.maximum((2.0 * v) ** (1.0 / q), (2.0 * chi) ** (power - 1.0))
    for _ in range(12):
        grown = h ** (q - 1.0)
        h = h - (h * grown - chi * h - v) / (q * grown - chi)
    return np.asarray(np.minimum(h * (1.0 + 1e-9), 1.0))


def _unshared_norms(error: Error, gamma: float, low: float, high: float, centre: float, degree: int) -> Array:
    """R_p: the norm in L^p over N(c, 1) of the error up to the degree, for each power p and all shifts in [low, high].

    Degree k has Σ_m [F_{k-m}]·|(u/2-c)^m ∓ γ(-u/2-c)^m|/m!, minus for what both laws have in common and plus for half
    their difference; by hypercontractivity degree k counts (p-1)^{k/2} times in L^p. Beyond m = 120 the terms sum to
    less than 1e-18 of the norm of F as (p-1)·(u/2 + c)²·(degree + 121) ≤ 900; where it is more, R_p is infinite.
    """
    from scipy.special import gammaln

    scale = scale_of(error.degree)
    m = np.arange(121)
    weights = np.exp(m * math.log(scale) - gammaln(m + 1))
    inner, outer = np.array([low / 2 - centre, high / 2 - centre]), np.array([low / 2 + centre, high / 2 + centre])
    ends = inner[:, None] ** m
    first = np.where((m % 2 == 0) & (inner[0] * inner[1] < 0), 0.0, ends.min(axis=0)), ends.max(axis=0)
    reach = outer[:, None] ** m  # (-u/2-c)^m but for its sign
    total = np.zeros(degree + 121)
    for part, turned in ((error.alike, -gamma), (error.apart, gamma)):
        sign = np.where(m % 2 == 0, turned, -turned)
        apart = np.maximum(
            np.abs(first[1] + np.where(sign > 0, sign * reach[1], sign * reach[0])),
            np.abs(first[0] + np.where(sign > 0, sign * reach[0], sign * reach[1])),
        )
        apart += 400.0 * 2.0**-52 * (np.abs(first[1]) + gamma * reach[1])
        total += np.convolve(part[: degree + 1], apart * weights)
    powers = np.array(POWERS)
    each = _log_squares(total, scale) + np.log(powers[:, None] - 1.0) * np.arange(len(total))
    norms = np.sqrt(np.exp(each).sum(axis=1)) * (1.0 + 1e-9) + 1e-18 * (1.0 + gamma) * error.moved(degree)
    return np.where((powers - 1.0) * (high / 2 + centre) ** 2 * (degree + 121) <= 900.0, norms, np.inf)
