"""Practical membership privacy of a noisy sum, from distances between pairs of records.

The data set D is a uniform k-subset of N records and Σ_{i∈D} f_i plus noise is released. Draw D with x in it and x'
uniformly outside it: D - x + x' is then uniform among the data sets without x, and the two sums differ by f_x - f_x'.
By joint convexity of the hockey-stick divergence, for every k and in both directions,

    E_{e^ε}(in‖out) ≤ δ_x(ε) = mean over x' ≠ x of E_{e^ε}(noise, noise moved by f_x - f_x')

(Lowy et al. 2024, proposition 12, for Gaussian noise; the shift lemma of :mod:`whosin.numerics.gaussian_noise` for
noise with density ∝ exp(-‖x‖/s), ‖·‖ Euclidean, which is Laplace noise in one dimension). The summand is 0 where f_x =
f_x'.

Few records are compared one by one. For many, the distances of each record are sorted into bins, never to the low side:
with E'' ≥ -M on a bin [l, l + w], E lies below its chord plus M·w²/8, so the number of distances in the bin and their
sum suffice for an upper bound that is off by O(w²). The smallest ε then comes from tables over a grid, and between grid
points from the chord in e^ε, of which δ_x is a convex function. Everything returned is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array, Flags, Indices
from whosin.errors import InputError, InputTypeError, check_choice, check_number, check_probability, check_whole
from whosin.numerics.gaussian_noise import (
    laplace_epsilon_for,
    laplace_shift_divergence,
    laplace_shift_divergence_and_slope,
    shift_divergence,
    shift_divergence_and_slope,
)
from whosin.parallel.threads import Progress

NOISES = ("gaussian", "laplace")
EXACT_UP_TO = 3000
"""Pools of at most this many records are compared pair by pair, without bins."""

_ROUNDING = 2.0**-53
_SLACK = 1e-12
"""Relative room for the rounding of a computed divergence and of means over records."""
_LEAST = 1e-300
"""Smallest squared distance of different records that bins are told: smaller ones may be lost in products."""


def pairwise_epsilons(
    f: ArrayLike,
    scale: float,
    delta: float,
    *,
    noise: str = "gaussian",
    records: ArrayLike | None = None,
    shares: Array | None = None,
    memory: int = 2**30,
    progress: Progress | None = None,
) -> Array:
    """Return for each record the smallest ε with δ_x(ε) ≤ δ, rounded up; zero where δ_x(0) ≤ δ.

    The release of the sum is then (max ε, δ)-PMP for every size k of the data set.

    Parameters
    ----------
    f : array_like, shape (N,) or (N, d)
        What each record adds to the sum.
    scale : float
        Standard deviation of Gaussian noise in each coordinate, or s of noise with density ∝ exp(-‖x‖/s).
    delta : float
        In [0, 1]. At 0 Gaussian noise gives infinity (unless all records are equal).
    records : array_like of int, optional
        Which records to judge; all of them if not given.
    shares : array, shape (N, N), optional
        The chance that another record takes the place of each (:mod:`whosin.population.sums.partners`), if they are not
        all equal.
    memory : int
        Roughly how many bytes to use at a time.

    Notes
    -----
    O(N²·d) time. Exact up to 1e-12 for N ≤ 3000, otherwise within about 1e-5 above (bins of 1/256 of a distance).
    """
    (pool, scale), delta = in_units(check_pool(f), scale), check_probability("delta", delta)
    kind, chosen = _KINDS[check_choice("noise", noise, NOISES)], check_records(records, len(pool))
    solver = _Solver(pool, scale, delta, kind, check_whole("memory", memory, low=1), shares)
    epsilons = np.zeros(len(chosen))
    done = 0
    for rows in solver.blocks(len(chosen)):
        epsilons[rows] = solver.solve(chosen[rows])
        done += len(epsilons[rows])
        if progress is not None:
            progress(done / len(chosen))
    return epsilons


def pairwise_divergences(
    f: ArrayLike, scale: float, epsilon: float, *, noise: str = "gaussian", records: ArrayLike | None = None
) -> Array:
    """Return δ_x(ε) for each of the records, pair by pair and rounded up. O(records·N·d) time, O(N·d) memory.

    Divergences below 1e-307 may come out as 0.
    """
    pool, scale = in_units(check_pool(f), scale)
    epsilon = check_number("epsilon", epsilon, low=0.0)
    kind, chosen = _KINDS[check_choice("noise", noise, NOISES)], check_records(records, len(pool))
    means = [float(np.sum(kind.divergence(_distances(pool, chosen[[i]], scale), epsilon))) for i in range(len(chosen))]
    return np.minimum(1.0, np.array(means) / (len(pool) - 1) * (1.0 + _SLACK))


def check_pool(f: ArrayLike) -> Array:
    """Return contributions as a finite matrix (N, d) with at least two records."""
    try:
        pool = np.asarray(f, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"f must be an array of numbers, (N,) or (N, d), got {type(f).__name__}") from None
    if pool.ndim == 1:
        pool = pool[:, None]
    if pool.ndim != 2 or pool.shape[1] == 0:
        raise InputError(f"f must be an array of shape (N,) or (N, d), got shape {pool.shape}")
    if len(pool) < 2:
        raise InputError(f"f must have at least two records, got {len(pool)}")
    if not np.all(np.isfinite(pool)):
        row = int(np.flatnonzero(~np.isfinite(pool).all(axis=1))[0])
        raise InputError(f"f must hold finite numbers, got {pool[row].tolist()} at record {row}")
    return pool


def check_records(records: ArrayLike | None, count: int) -> Indices:
    """Return positions of records in the pool; all of them for None."""
    if records is None:
        return np.arange(count)
    chosen = np.atleast_1d(np.asarray(records))
    if chosen.ndim != 1 or len(chosen) == 0 or not np.issubdtype(chosen.dtype, np.integer):
        raise InputError(f"records must be a list of positions in the pool, got {records!r}")
    if chosen.min() < 0 or chosen.max() >= count:
        raise InputError(f"records must be positions from 0 to {count - 1}, got {records!r}")
    return chosen.astype(np.int64)


def in_units(pool: Array, scale: Any) -> tuple[Array, float]:
    """Return a pool and a noise scale over the same power of two, which is exact and brings the scale into [1/2, 1).

    So squares of distances neither overflow nor vanish because of the units that were chosen.
    """
    mantissa, exponent = math.frexp(check_number("scale", scale, low=0.0, open_low=True, open_high=True))
    with np.errstate(over="ignore"):
        scaled = np.ldexp(pool, -exponent)
    if not np.abs(scaled).max() <= 1e150:
        raise InputError("f must hold numbers of at most 1e150 noise scales, got larger ones")
    return scaled, mantissa


def _distances(pool: Array, rows: Indices, scale: float) -> Array:
    """Euclidean distances (rows, N) in noise scales, coordinate by coordinate and rounded up; 0 to itself.

    Rounded up by enough to cover the rounding of u/2 - ε/u in a divergence as well. Where squares may have vanished
    the sum of the coordinates' distances stands in, which is no smaller.
    """
    from scipy.spatial.distance import cdist

    distances = cdist(pool[rows], pool, "cityblock")
    if pool.shape[1] > 1:
        straight = cdist(pool[rows], pool)
        distances = np.where(straight > 1e-140, straight, distances)
    distances *= (1.0 + (pool.shape[1] + 12) * _ROUNDING) / scale
    distances[np.arange(len(rows)), rows] = 0.0
    return np.asarray(distances)


class _Kind(Protocol):
    """What the bounds need to know about a kind of noise."""

    def divergence(self, u: ArrayLike, epsilon: ArrayLike) -> Array:
        """E_{e^ε} at a distance of u scales."""

    def with_slope(self, u: ArrayLike, epsilon: ArrayLike) -> tuple[Array, Array]:
        """E_{e^ε} and -dE_{e^ε}/dε."""

    def bend(self, low: Array, high: Array, epsilon: Array) -> Array:
        """M ≥ -d²E/du² on [low, high]."""

    def enough(self, u: Array, delta: float) -> Array:
        """An ε that hides distances of u scales with δ, in closed form."""


class _Gaussian:
    """dE/du = φ(a), a = u/2 - ε/u, so -E'' = a·φ(a)·(1/2 + ε/u²) ≤ a·φ(a) where it is positive (there 2ε ≤ u²)."""

    def divergence(self, u: ArrayLike, epsilon: ArrayLike) -> Array:
        return shift_divergence(u, epsilon)

    def with_slope(self, u: ArrayLike, epsilon: ArrayLike) -> tuple[Array, Array]:
        return shift_divergence_and_slope(u, epsilon)

    def bend(self, low: Array, high: Array, epsilon: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            start, stop = (np.where(u > 0.0, u / 2.0 - epsilon / u, -np.inf) for u in (low, high))
        top = np.maximum(np.clip(1.0, start, stop), 0.0)
        return np.asarray(top * np.exp(-0.5 * np.minimum(top, 60.0) ** 2) / math.sqrt(2.0 * math.pi))

    def enough(self, u: Array, delta: float) -> Array:
        """From E ≤ Φ(u/2 - ε/u)."""
        from scipy.special import ndtri

        if delta in (0.0, 1.0):
            return np.where((u > 0.0) & (delta == 0.0), np.inf, 0.0)
        return np.asarray(np.maximum(0.0, u * (u / 2.0 - float(ndtri(delta))) * (1.0 + 1e-12)))


class _Laplace:
    """E is 0 up to u = ε and then 1 - e^{(ε-u)/2}, with -E'' = e^{(ε-u)/2}/4; the kink is convex."""

    def divergence(self, u: ArrayLike, epsilon: ArrayLike) -> Array:
        return laplace_shift_divergence(u, epsilon)

    def with_slope(self, u: ArrayLike, epsilon: ArrayLike) -> tuple[Array, Array]:
        return laplace_shift_divergence_and_slope(u, epsilon)

    def bend(self, low: Array, high: Array, epsilon: Array) -> Array:
        return np.where(high > epsilon, 0.25 * np.exp(np.minimum(0.0, (epsilon - low) / 2.0)), 0.0)

    def enough(self, u: Array, delta: float) -> Array:
        return np.array([laplace_epsilon_for(1.0, delta, float(distance)) for distance in u])


_KINDS: dict[str, _Kind] = {"gaussian": _Gaussian(), "laplace": _Laplace()}


# ---------------------------------------------------------------------------------------------------------------------
# Bins: [0, e_0), then 128 to the octave of the squared distance, then [e_last, ∞) where E counts as 1. A squared
# distance finds its bin by its exponent and the first 7 bits of its mantissa, without a logarithm.


class _Bins:
    _SHIFT = 52 - 7
    _OCTAVES = 32
    _CAP = 256.0

    def __init__(self, longest: float) -> None:
        top = np.float64(min(max(longest, 1e-100), self._CAP) ** 2 * (1.0 + 1e-6))
        last = int(top.view(np.int64) >> self._SHIFT) + 1
        self.first = last - (self._OCTAVES << 7)
        marks = np.arange(self.first, last + 1, dtype=np.int64) << self._SHIFT
        self.edges = np.concatenate([[0.0], np.sqrt(marks.view(np.float64))])
        self.widths = np.diff(self.edges)
        self.count = len(self.edges)

    def index(self, squared: Array) -> Indices:
        """The bin of each squared distance; the last one has no upper end."""
        codes = (squared.view(np.int64) >> self._SHIFT) - (self.first - 1)
        return np.asarray(np.clip(codes, 0, self.count - 1, out=codes))

    def histogram(self, squared: Array) -> tuple[Array, Array]:
        """For each row the number of distances in each bin, and how far into the bin they reach in total (in bins)."""
        rows = len(squared)
        where = self.index(squared)
        where += np.arange(0, rows * self.count, self.count)[:, None]
        flat = where.ravel()
        size = rows * self.count
        counts = np.bincount(flat, minlength=size).reshape(rows, self.count).astype(np.float64)
        sums = np.bincount(flat, np.sqrt(squared).ravel(), minlength=size).reshape(rows, self.count)
        reach = np.zeros_like(sums)
        rounding = 2.0 * _ROUNDING * (squared.shape[1] + 4)
        reach[:, :-1] = (sums[:, :-1] * (1.0 + rounding) - counts[:, :-1] * self.edges[:-1]) / self.widths
        return counts, np.clip(reach, 0.0, counts)


@dataclass
class _Table:
    """Upper bounds on E over the bins for a few ε: ``base`` for each distance plus ``rise`` for its reach."""

    epsilons: Array
    base: Array
    rise: Array

    @classmethod
    def build(cls, bins: _Bins, kind: _Kind, epsilons: Array) -> _Table:
        values = kind.divergence(bins.edges[:, None], epsilons)
        bend = kind.bend(bins.edges[:-1, None], bins.edges[1:, None], epsilons)
        base, rise = np.ones_like(values), np.zeros_like(values)
        base[:-1] = values[:-1] + bend * bins.widths[:, None] ** 2 / 8.0
        rise[:-1] = np.diff(values, axis=0)
        return cls(epsilons, base, rise)

    def bounds(self, counts: Array, reach: Array, others: int) -> Array:
        """δ_x at each ε, shape (rows, epsilons)."""
        return np.asarray((counts @ self.base + reach @ self.rise) * ((1.0 + _SLACK) / others))


@dataclass
class _Solver:
    """The smallest ε of some records, from bins and, in small pools, polished on the distances themselves."""

    pool: Array
    scale: float
    delta: float
    kind: _Kind
    memory: int
    shares: Array | None = None
    fine: dict[int, _Table] = field(default_factory=dict)

    _BINS_FROM = 500
    _COARSE = 64
    _FINE = 65

    def __post_init__(self) -> None:
        others = self.others = len(self.pool) - 1
        self.exact = others < EXACT_UP_TO or self.shares is not None
        centred = (self.pool - np.median(self.pool, axis=0)) / self.scale
        norms = np.einsum("ij,ij->i", centred, centred)
        self.least = _LEAST if centred.any() else 0.0
        self.bins = _Bins(2.0 * math.sqrt(float(norms.max())))
        # |x-y|² as one product of rows (-2x, |x|², 1)·(y, 1, |y|²); the norms carry what rounding may take away:
        # (3d + 20) rounding errors of |x|² + |y|² cover the product, the norms and the centring.
        norms = norms * (1.0 + (4 * self.pool.shape[1] + 32) * _ROUNDING)
        ones = np.ones(others + 1)
        self.left = np.column_stack([-2.0 * centred, norms, ones])
        self.right = np.ascontiguousarray(np.column_stack([centred, ones, norms]).T)

    def blocks(self, count: int) -> Iterator[slice]:
        """Slices of records such that tables and distances stay within the memory."""
        a_record = 8 * (6 * self.bins.count + (14 * (self.others + 1) if self.exact else 0))
        rows = max(1, min(1024, self.memory // (2 * a_record)))
        return (slice(start, min(start + rows, count)) for start in range(0, count, rows))

    def solve(self, rows: Indices) -> Array:
        """The smallest ε of each of the records."""
        return self._from_pairs(rows) if self.exact else self._from_bins(*self._histograms(rows))

    def _from_pairs(self, rows: Indices) -> Array:
        """By the distances themselves; for many of them Newton's method starts from the bins, otherwise from zero."""
        distances = _distances(self.pool, rows, self.scale)
        longest = distances.max(axis=1)
        high = self.kind.enough(longest, self.delta)
        if self.delta in (0.0, 1.0):
            return high
        shares = np.full((1, 1), 1.0 / self.others) if self.shares is None else self.shares[rows]
        if self.others < self._BINS_FROM or self.shares is not None:
            return self._polish(distances, shares, high, np.zeros(len(rows)))
        squared = np.where(distances > 0.0, np.maximum(distances * distances * (1.0 + 1e-15), _LEAST), 0.0)
        high = self._from_bins(*self.bins.histogram(squared), longest)
        return self._polish(distances, shares, high, high)

    def _histograms(self, rows: Indices) -> tuple[Array, Array, Array]:
        """Counts and reach of the bins, and the longest distance, of each record."""
        step = int(max(1, min(2**20, self.memory // 80) // (self.others + 1)))
        parts = []
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            squared = np.maximum(self.left[some] @ self.right, self.least)
            squared[np.arange(len(some)), some] = 0.0
            parts.append((*self.bins.histogram(squared), np.sqrt(squared.max(axis=1)) * (1.0 + 1e-15)))
        counts, reach, longest = (np.concatenate(part) for part in zip(*parts, strict=True))
        return counts, reach, longest

    def _from_bins(self, counts: Array, reach: Array, longest: Array) -> Array:
        """Two rounds of tables, then the chord in e^ε; from the longest distance where the bins show no ε."""
        if self.delta in (0.0, 1.0):
            return self.kind.enough(longest, self.delta)
        coarse = self._coarse()
        cells = _first_below(coarse.bounds(counts, reach, self.others), self.delta)
        epsilons = np.where(cells == 0, 0.0, np.inf)
        for cell in np.unique(cells[(cells > 0) & (cells < self._COARSE)]):
            chosen = np.flatnonzero(cells == cell)
            table = self._fine(int(cell))
            bounds = table.bounds(counts[chosen], reach[chosen], self.others)
            epsilons[chosen] = _chord(table.epsilons, bounds, self.delta)
        return np.where(np.isinf(epsilons), self.kind.enough(longest, self.delta), epsilons)

    def _coarse(self) -> _Table:
        if 0 not in self.fine:
            top = max(float(self.kind.enough(self.bins.edges[-1:], self.delta)[0]), 1e-12)
            grid = np.concatenate([[0.0], np.geomspace(1e-5 * top, top, self._COARSE - 1)])
            self.fine[0] = _Table.build(self.bins, self.kind, grid)
        return self.fine[0]

    def _fine(self, cell: int) -> _Table:
        """The table between two neighbouring ε of the coarse one."""
        if cell not in self.fine:
            low, high = self._coarse().epsilons[cell - 1 : cell + 1]
            self.fine[cell] = _Table.build(self.bins, self.kind, np.linspace(low, high, self._FINE))
        return self.fine[cell]

    def _polish(self, distances: Array, shares: Array, high: Array, at: Array) -> Array:
        """The smallest ε on these distances: Newton steps in e^ε below an upper bound, inside a bracket.

        δ_x is convex in e^ε, so a step from the right lands left of the root and one from the left stays there; the
        last step moves up by the tolerance, and what is returned was evaluated and held. Every fourth step halves the
        bracket: from far to the left Newton's method only creeps.
        """
        low, high, at = np.full(len(high), -1.0), high.copy(), at.copy()
        active = np.flatnonzero(np.isfinite(high) & (high > 0.0))
        shares = np.broadcast_to(shares, distances.shape)
        for count in range(300):
            if not len(active):
                break
            here = at[active]
            value, slope = self._exact_bounds(distances[active], shares[active], here)
            holds = value <= self.delta
            high[active] = np.where(holds, np.minimum(here, high[active]), high[active])
            low[active] = np.where(holds, low[active], np.maximum(here, low[active]))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = here + np.log1p((value - self.delta) / slope)
            middle = 0.5 * (np.maximum(low[active], 0.0) + high[active])
            at[active] = middle if count % 4 == 3 else _next(step, here, holds, low[active], high[active])
            narrow = (high[active] == 0.0) | (high[active] - low[active] <= _tolerance(high[active]))
            active = active[~narrow]
        return high

    def _exact_bounds(self, distances: Array, shares: Array, epsilons: Array) -> tuple[Array, Array]:
        """δ_x with room for rounding, and its slope -dδ_x/dε, each at its own ε."""
        parts = self.kind.with_slope(distances, epsilons[:, None])
        value, slope = (np.einsum("ij,ij->i", part, shares) for part in parts)
        return value * (1.0 + _SLACK), slope


def _tolerance(epsilons: Array) -> Array:
    return 2e-12 * epsilons + 1e-15


def _next(step: Array, here: Array, holds: Flags, low: Array, high: Array) -> Array:
    """The Newton point; just above a converged one; the middle of the bracket if it leads outside."""
    step = np.where(holds, np.maximum(step, 0.0), step)
    converged = ~holds & (np.abs(step - here) <= 0.25 * _tolerance(here))
    step = np.where(converged, here + 0.9 * _tolerance(here), step)
    inside = (step > low) & (step < high)
    return np.where(inside, step, 0.5 * (np.maximum(low, 0.0) + high))


def _first_below(bounds: Array, delta: float) -> Indices:
    """Position of the first bound at or below δ in each row; the number of columns if there is none."""
    below = bounds <= delta
    return np.asarray(np.where(below.any(axis=1), below.argmax(axis=1), bounds.shape[1]), dtype=np.int64)


def _chord(epsilons: Array, bounds: Array, delta: float) -> Array:
    """Where the chord in e^ε around the first bound at or below δ meets δ, rounded up."""
    right = np.clip(_first_below(bounds, delta), 1, len(epsilons) - 1)
    rows = np.arange(len(bounds))
    above, below = bounds[rows, right - 1], bounds[rows, right]
    share = np.clip((above - delta) / np.maximum(above - below, 1e-300), 0.0, 1.0)
    start, stop = epsilons[right - 1], epsilons[right]
    return np.minimum(stop, (start + np.log1p(share * np.expm1(stop - start))) * (1.0 + 1e-14))
