"""Games with one number as output: an estimate plus Laplace or Gaussian noise.

Given that a record is in, the output is a mixture of noise around the estimates of the data sets that hold it; given
that it is out, of the others. The hockey-stick divergence ∫(p - γq)_+ is the mass of p minus γ times that of q on the
set where p > γq, so only the end points of that set are needed; the masses come from distribution functions.

* Laplace noise: between neighbouring centres p - γq is a·e^{-u} + b·e^{u}, with at most one zero, in closed form.
  Exact.
* Gaussian noise: zeros of f = p - γq are bracketed on a grid of 1/100 of the noise scale and polished to rounding. A
  cell of width h could hide two more zeros only if |f'| ≤ h·max|f''| at both its ends and, where no zero was seen,
  |f| ≤ h²/8·max|f''| at one of them; what it hides is at most h³/8·max|f''|. The sum over such cells is stated as
  ``error`` and added to every limit (so are the tails beyond 9 scales, below 1e-18).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from whosin.arrays import Array, Flags, Index
from whosin.errors import InputError, check_number
from whosin.numerics.roots import smallest_holding
from whosin.risks import posterior_at
from whosin.roc import Roc
from whosin.worlds.game import Game, adjacent_pairs
from whosin.worlds.world import World

_CURVE_POINTS = 801
_FARTHEST = 1e100  # squares of larger numbers are no floats
_LARGEST_LOG_RATIO = 60.0


class ContinuousGame(Game):
    """A game whose output is an estimate plus noise.

    Attributes
    ----------
    centres : ndarray
        The estimate on each data set of the world.
    error : float
        Largest error of the divergences computed so far, from undetected zeros; rounding (about 1e-15) apart.

    Examples
    --------
    >>> import whosin as wi
    >>> game = wi.worlds.uniform_subsets(range(4), 2).play(wi.mechanisms.Gaussian(sum, 1.0))
    >>> round(game.posterior(3, 4.0), 4)  # the sum came out as 4
    0.7461
    >>> round(game.accuracy(3), 4)
    0.7729
    """

    def __init__(self, world: World, centres: Array, noise: str, scale: float) -> None:
        self.world, self.centres, self.noise, self.scale = world, centres, noise, scale
        distinct, which = _distinct(centres, 1e-12 * scale)
        members = world.membership
        self._inside, self._outside = (np.full((len(world.universe), len(distinct)), np.nan) for _ in range(2))
        for i in self._uncertain_records():
            for table, chosen, share in (
                (self._inside, members[:, i], world.inside_mass[i]),
                (self._outside, ~members[:, i], world.outside_mass[i]),
            ):
                table[i] = np.bincount(which[chosen], world.prior[chosen], len(distinct)) / share
        kind = _LaplaceMixtures if noise == "laplace" else _GaussianMixtures
        with np.errstate(over="ignore"):
            measured = distinct / scale
        if not (np.abs(measured) <= kind.FARTHEST).all():
            largest = float(np.abs(distinct).max())
            raise InputError(
                f"scale must be a number of at least {1.0 / kind.FARTHEST:g} times the largest estimate, {largest:g}, "
                f"got {scale!r}"
            )
        self._mixtures = kind(measured)
        self.error = 0.0

    def roc(self, record: Any) -> Roc:
        """Return the ROC of the best attacker on this record, as a polygon through exact points.

        The points belong to 803 likelihood ratios, most of them near 1; between them the curve is a little higher.
        Numbers such as :meth:`accuracy` do not come from this polygon.
        """
        index = self._uncertain(record)
        low, high = (min(math.log(self._ratio(index, side)), _LARGEST_LOG_RATIO) for side in (True, False))
        spread = np.sinh(np.linspace(-8.0, 8.0, _CURVE_POINTS)) / math.sinh(8.0)
        logs = np.concatenate(
            [np.where(spread < 0, low * spread, high * spread), [-low * (1 - 1e-9), high * (1 - 1e-9)]]
        )
        masses = [self._masses(index, math.exp(t), swapped=False) for t in logs]
        tpr, fpr = ([min(1.0, max(0.0, each[side])) for each in masses] for side in (0, 1))
        return Roc(fpr, tpr).hull()

    def posterior(self, record: Any, output: float) -> float:
        """Return P(record in D | output) from the two densities at that number."""
        index = self._uncertain(record)
        at = check_number("output", output, open_low=True, open_high=True) / self.scale
        at = min(max(at, -_FARTHEST), _FARTHEST)
        log_ratio = self._mixtures.log_density(self._inside[index], at) - self._mixtures.log_density(
            self._outside[index], at
        )
        return posterior_at(float(self.world.inclusion[index]), log_ratio)

    def _masses(self, index: int, gamma: float, swapped: bool) -> tuple[float, float, float]:
        """Masses of in and out on the set where in > γ·out (roles exchanged where swapped), and what they may miss."""
        p, q = (self._outside, self._inside) if swapped else (self._inside, self._outside)
        tpr, fpr, error = self._mixtures.masses(p[index], q[index], gamma)
        self.error = max(self.error, error)
        return tpr, fpr, error

    def _divergence(self, index: int, gamma: float, swapped: bool) -> float:
        tpr, fpr, error = self._masses(index, gamma, swapped)
        return max(0.0, tpr - gamma * fpr + error)

    def _closeness(self, delta: float) -> float:
        rows = self._uncertain_records()
        if delta == 0.0:
            worst = max(self._ratio(i, side) for i in rows for side in (False, True))
            return math.log(worst) if math.isfinite(worst) else math.inf
        top = 1.0

        def holds(epsilon: float) -> bool:
            return all(self._divergence(i, math.exp(epsilon), side) <= delta for i in rows for side in (False, True))

        while not holds(top):
            if top >= 700.0:
                return math.inf
            top = min(2.0 * top, 700.0)
        return smallest_holding(holds, 0.0, top, tolerance=1e-13)

    def _ratio(self, index: int, negative: bool) -> float:
        p, q = (self._outside, self._inside) if negative else (self._inside, self._outside)
        return max(1.0, self._mixtures.largest_ratio(p[index], q[index]))

    def _widest_step(self) -> float:
        """Largest distance of the estimates on adjacent data sets, in noise scales."""
        gaps = (
            np.abs(self.centres[one] - self.centres[two]).max(initial=0.0) for one, two in adjacent_pairs(self.world)
        )
        return max(gaps, default=0.0) / self.scale

    def _adjacent_epsilon(self, delta: float) -> float:
        return self._mixtures.shift_epsilon(self._widest_step(), delta)

    def _one_sided_ratio(self, negative: bool) -> float:
        epsilon = self._mixtures.shift_epsilon(self._widest_step(), 0.0)
        return math.exp(epsilon) if epsilon < 709.0 else math.inf


def _distinct(centres: Array, tolerance: float) -> tuple[Array, Index]:
    """Distinct centres; those within the tolerance of their left neighbour (sums up to rounding) are one."""
    values, which = np.unique(centres, return_inverse=True)
    group = np.concatenate([[0], np.cumsum(np.diff(values) > tolerance)])
    first = np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1])
    return values[first], group[which]


class _Mixtures(ABC):
    """Mixtures of unit-scale noise around sorted distinct centres, given by two vectors of weights."""

    FARTHEST = _FARTHEST
    """Largest centre."""

    def __init__(self, centres: Array) -> None:
        self.centres = centres

    @abstractmethod
    def masses(self, p: Array, q: Array, gamma: float) -> tuple[float, float, float]:
        """Masses of p and q on {p > γq}, and a limit on the error of their divergence."""

    @abstractmethod
    def log_kernels(self, at: float) -> Array:
        """Logarithm of the noise density around each centre at a point, up to what they share; nothing cancels."""

    def log_density(self, weights: Array, at: float) -> float:
        """Logarithm of the mixture's density at a point, up to what all mixtures share; no underflow in the tails."""
        terms = self.log_kernels(at)[weights > 0] + np.log(weights[weights > 0])
        top = float(terms.max())
        return top + math.log(float(np.exp(terms - top).sum()))

    @abstractmethod
    def largest_ratio(self, p: Array, q: Array) -> float:
        """Supremum of p/q."""

    @abstractmethod
    def shift_epsilon(self, shift: float, delta: float) -> float:
        """Smallest ε such that the noise and the noise moved by ``shift`` scales are (ε, δ)-close."""


class _LaplaceMixtures(_Mixtures):
    """Between centres c_j and c_{j+1}, with u the distance from c_j: density (A_j e^{-u} + B_j e^{-(g_j - u)})/2."""

    def __init__(self, centres: Array) -> None:
        super().__init__(centres)
        self.gaps = np.diff(centres)

    def log_kernels(self, at: float) -> Array:
        inside = min(max(at, self.centres[0]), self.centres[-1])
        return np.asarray(-np.abs(inside - self.centres))

    def _pieces(self, weights: Array) -> tuple[Array, Array]:
        """A_j seen from c_j of all centres up to j, and B_j seen from c_j of all centres from j on."""
        left, right = weights.copy(), weights.copy()
        shrink = np.exp(-self.gaps)
        for j in range(1, len(weights)):
            left[j] += left[j - 1] * shrink[j - 1]
        for j in range(len(weights) - 2, -1, -1):
            right[j] += right[j + 1] * shrink[j]
        return left, right

    def masses(self, p: Array, q: Array, gamma: float) -> tuple[float, float, float]:
        (p_left, p_right), (q_left, q_right) = self._pieces(p), self._pieces(q)
        totals = [0.0, 0.0]
        for j, (mine, other) in ((0, (p_right, q_right)), (-1, (p_left, q_left))):
            if mine[j] > gamma * other[j]:
                totals = [totals[0] + 0.5 * mine[j], totals[1] + 0.5 * other[j]]
        start, stop = self._positive_part(p_left[:-1] - gamma * q_left[:-1], p_right[1:] - gamma * q_right[1:])
        for k, (left, right) in enumerate(((p_left, p_right), (q_left, q_right))):
            down = left[:-1] * (np.exp(-start) - np.exp(-stop))
            up = right[1:] * (np.exp(stop - self.gaps) - np.exp(start - self.gaps))
            totals[k] += 0.5 * float(np.sum(np.where(stop > start, down + up, 0.0)))
        return float(totals[0]), float(totals[1]), 0.0

    def _positive_part(self, falling: Array, rising: Array) -> tuple[Array, Array]:
        """Where falling·e^{-u} + rising·e^{-(gap - u)} is positive within each gap, as [start, stop]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = 0.5 * (self.gaps + np.log(np.abs(falling)) - np.log(np.abs(rising)))
        zero = np.clip(np.where(np.sign(falling) * np.sign(rising) < 0, zero, 0.0), 0.0, self.gaps)
        start = np.where((falling <= 0) & (rising <= 0), self.gaps, np.where((falling < 0) & (rising > 0), zero, 0.0))
        stop = np.where((falling > 0) & (rising < 0), zero, self.gaps)
        return start, stop

    def largest_ratio(self, p: Array, q: Array) -> float:
        """The ratio is monotone between centres and constant beyond the last, so a centre attains its supremum."""
        log_ratio = float(np.max(self._log_at_centres(p) - self._log_at_centres(q)))
        return math.exp(log_ratio) if log_ratio < 709.0 else math.inf

    def _log_at_centres(self, weights: Array) -> Array:
        """Logarithm of the density at the centres, up to a constant; nothing underflows."""
        with np.errstate(divide="ignore"):
            left, right = np.log(weights), np.log(weights)
        for j in range(1, len(weights)):
            left[j] = np.logaddexp(left[j], left[j - 1] - self.gaps[j - 1])
        below = np.concatenate([[-np.inf], left[:-1] - self.gaps])
        for j in range(len(weights) - 2, -1, -1):
            right[j] = np.logaddexp(right[j], right[j + 1] - self.gaps[j])
        return np.asarray(np.logaddexp(below, right))

    def shift_epsilon(self, shift: float, delta: float) -> float:
        """E_{e^ε} = 1 - e^{(ε - shift)/2}."""
        return max(0.0, shift + 2.0 * math.log1p(-delta)) if delta < 1.0 else 0.0


class _GaussianMixtures(_Mixtures):
    """Unit Gaussian noise; zeros of p - γq on a grid, polished by bisection."""

    FARTHEST = 1e8
    """Largest centre, beyond which the places of the nodes are rounded by more than the results."""
    _STEP = 0.01
    _REACH = 9.0

    def __init__(self, centres: Array) -> None:
        super().__init__(centres)
        breaks = np.flatnonzero(np.diff(centres) > 2.0 * self._REACH) + 1
        clusters = np.split(centres, breaks)
        self.nodes = np.concatenate([self._grid(cluster[0], cluster[-1]) for cluster in clusters])
        self._cache: dict[bytes, tuple[Array, Array, Array]] = {}

    def _grid(self, first: float, last: float) -> Array:
        """Nodes around a cluster of centres; between clusters there is no mass to speak of."""
        count = math.ceil((last - first + 2.0 * self._REACH) / self._STEP) + 1
        return np.asarray(first - self._REACH + self._STEP * np.arange(count), dtype=np.float64)

    def masses(self, p: Array, q: Array, gamma: float) -> tuple[float, float, float]:
        apart = float(np.abs(p - q).sum())
        if apart <= 1e-13:
            return (1.0, 1.0, apart) if gamma < 1.0 else (0.0, 0.0, apart)
        (p_density, p_slope, p_bend), (q_density, q_slope, q_bend) = self._at_nodes(p), self._at_nodes(q)
        height = p_density - gamma * q_density
        weights = p - gamma * q
        crossings = np.flatnonzero((height[:-1] > 0) != (height[1:] > 0))
        zeros = self._polish(weights, self.nodes[crossings], self.nodes[crossings + 1], height[crossings + 1] > 0)
        edges = np.concatenate([[-np.inf], zeros, [np.inf]])
        positive = np.flatnonzero(self._signs(height, crossings))
        p_mass, q_mass = (self._mass(law, edges)[positive].sum() for law in (p, q))
        return (
            float(p_mass),
            float(q_mass),
            self._missed(height, p_slope - gamma * q_slope, p_bend + gamma * q_bend, crossings),
        )

    def log_kernels(self, at: float) -> Array:
        nearest = self.centres[np.abs(self.centres - at).argmin()]
        return np.asarray(0.5 * (self.centres - nearest) * (2.0 * at - self.centres - nearest))

    def _signs(self, height: Array, crossings: Index) -> Flags:
        """Whether p > γq on each stretch between crossings."""
        return np.concatenate([height[:1], height[crossings + 1]]) > 0

    def _missed(self, height: Array, slope: Array, bend: Array, crossings: Index) -> float:
        """Largest mass that undetected pairs of zeros can hold."""
        step = self._STEP
        curvature = 1.25 * np.maximum(bend[:-1], bend[1:])
        near_zero = np.minimum(np.abs(height[:-1]), np.abs(height[1:])) <= curvature * step**2 / 8
        near_zero[crossings] = True
        may_turn = np.maximum(np.abs(slope[:-1]), np.abs(slope[1:])) <= curvature * step
        return float(np.sum(curvature[near_zero & may_turn]) * step**3 / 8) + 2e-18

    def _at_nodes(self, weights: Array) -> tuple[Array, Array, Array]:
        """Density and its slope at the nodes, and a limit on the size of its second derivative there."""
        key = weights.tobytes()
        if key not in self._cache:
            density, slope, bend = (np.zeros(len(self.nodes)) for _ in range(3))
            blocks = max(1, len(self.nodes) * len(weights) // 10**7 + 1)
            for block in np.array_split(np.arange(len(self.nodes)), blocks):
                z = self.nodes[block, None] - self.centres
                bell = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
                density[block] = bell @ weights
                slope[block] = -(bell * z) @ weights
                bend[block] = (bell * np.abs(z * z - 1)) @ weights + 0.01 * density[block]
            if len(self._cache) > 64:
                self._cache.clear()
            self._cache[key] = density, slope, bend
        return self._cache[key]

    def _polish(self, weights: Array, low: Array, high: Array, rising: Flags) -> Array:
        """Zeros of Σ weights·φ(x - centre) in the brackets, by bisection to the last digit."""
        low, high = low.copy(), high.copy()
        for _ in range(60):
            middle = 0.5 * (low + high)
            past = (self._height(weights, middle) > 0) == rising
            low, high = np.where(past, low, middle), np.where(past, middle, high)
        return 0.5 * (low + high)

    def _height(self, weights: Array, x: Array) -> Array:
        return np.asarray(np.exp(-((x[:, None] - self.centres) ** 2) / 2) @ weights)

    def _mass(self, weights: Array, edges: Array) -> Array:
        """Mass of the mixture between neighbouring edges, from the nearer tail so that small ones keep their digits."""
        from scipy.special import ndtr

        z = edges[:, None] - self.centres
        below, above = ndtr(z), ndtr(-z)
        masses = np.where(z[:-1] > 0, above[:-1] - above[1:], below[1:] - below[:-1])
        return np.asarray(masses @ weights)

    def largest_ratio(self, p: Array, q: Array) -> float:
        """Infinite unless both reach equally far; otherwise an upper limit on a ratio of two exponential sums.

        ln(p/q) moves by at most the width of the centres a unit, and beyond ±x it is that of the outermost centres up
        to 1e-12, so a grid over [-x, x] with half a step's movement added limits it. Centres much nearer to one another
        than their width make the grid coarse and the limit loose.
        """
        reach_p, reach_q = np.flatnonzero(p > 0), np.flatnonzero(q > 0)
        if reach_p[0] < reach_q[0] or reach_p[-1] > reach_q[-1]:
            return math.inf
        ends = max(p[i] / q[i] for i in (reach_q[0], reach_q[-1]))
        used = self.centres[(p > 0) | (q > 0)]
        if len(used) == 1:
            return float(ends)
        width, gap = float(used[-1] - used[0]), float(np.min(np.diff(used)))
        least = min(float(p[p > 0].min()), float(q[q > 0].min()))
        far = float(np.abs(used).max()) + (math.log(len(used) / least) + 30.0) / gap
        x = np.linspace(-far, far, 200_001)
        step = (x[1] - x[0]) * width
        inner = max(self._log_ratios(p, q, block) for block in np.array_split(x, 1 + len(x) * len(p) // 10**7))
        if inner + 0.5 * step > 700.0:
            return math.inf
        return max(
            float(ends) * (1.0 + 1e-12), math.exp(inner + 0.5 * step) if ends == 0.0 or inner > math.log(ends) else 0.0
        )

    def _log_ratios(self, p: Array, q: Array, x: Array) -> float:
        """Largest ln(p/q) at the points."""
        from scipy.special import logsumexp

        exponents = x[:, None] * self.centres - 0.5 * self.centres**2
        return float(np.max(logsumexp(exponents, b=p, axis=1) - logsumexp(exponents, b=q, axis=1)))

    def shift_epsilon(self, shift: float, delta: float) -> float:
        """From the curve of two Gaussians ``shift`` apart."""
        from whosin.guarantees.dp import shifted_normal_roc

        slope = shifted_normal_roc(shift).slope_for(delta)
        return math.inf if math.isinf(slope) else max(0.0, math.log(slope) if slope > 0 else 0.0)
