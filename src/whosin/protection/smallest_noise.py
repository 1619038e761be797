"""The smallest noise that draws can certify.

Distances r_1 … r_B are drawn independently with one law, and a function h_s(r) in [0, 1] falls as the scale s grows:
the divergence that noise of scale s leaves at distance r. We want the smallest s with E h_s ≤ τ, and may only draw.

A test at one scale (:mod:`whosin.numerics.betting`) passes with probability at most β where E h_s > τ. The scale is
chosen on the same draws, at no extra cost in β. Let s* be the smallest scale with E h_s ≤ τ. The stake comes from a
pilot and does not depend on s, and h_s falls with s, so the test is monotone: if it passes at s it passes at every
larger scale. ŝ is the smallest scale at which it passes. For any s' < s* the event ŝ ≤ s' lies inside the event that
the test at s' passes, which has probability at most β because E h_{s'} > τ; let s' rise to s*: P(ŝ < s*) ≤ β.

Where all distances are known to be at most R, h_s lies in [0, h_s(R)] and the test is about h_s(r)/h_s(R) and
τ/h_s(R). It stays monotone for the concave divergences (γ = 1): u·g'(u)/g(u) falls with u for g = 1 - e^{-u/2} and for
g = 2Φ(u/2) - 1, so g(r/s)/g(R/s) falls as s grows, for r ≤ R.

With distances of several records in columns the claim is that E h_s ≤ τ holds for all of them, and every column has to
pass. A false claim needs a false pass of one fixed column, the one with the largest s*, so β is not divided by the
number of columns (an intersection-union test, Berger 1982); the columns may depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array
from whosin.numerics.betting import HIGHEST_STAKE, best_stake, log_wealth
from whosin.numerics.roots import smallest_holding
from whosin.numerics.shift import divergence

_FARTHEST = math.log(1e15)
_STEP = math.log(16.0)
_TOLERANCE = 1e-5
_ROUGHLY = 0.01


@dataclass(frozen=True)
class ScaleTest:
    """What is tested: that the mean of a divergence over random distances is at most a target, τ in (0, 1).

    ``level`` is β, the chance of a scale that is too small; ``log_gamma`` is ln γ of the divergence, 0 where a
    ``radius`` R is given, beyond which there is no distance.
    """

    noise: str
    target: float
    level: float
    log_gamma: float = 0.0
    radius: float = math.inf

    def forecast(self, pilot: Array, draws: int) -> float:
        """Return the scale at which the test will pass if the draws to come are like the pilot, within a percent or so.

        Infinite where it will pass at none. The pilot has a row for each draw, and maybe columns.
        """
        return self._smallest(lambda scale: self._best(pilot, draws, scale)[1] >= self._needed, pilot, _ROUGHLY)

    def smallest_scale(self, distances: Array, pilot: Array) -> float:
        """Return ŝ, infinite where the draws certify no scale.

        The distances, a row for each draw, are independent of the pilot, which sets the stake; columns of one draw may
        depend on each other. About 25 evaluations of O(size of the distances), 10 of O(25 · size of the pilot).
        """
        start = self.forecast(pilot, len(distances))
        stake = self._best(pilot, len(distances), start)[0] if math.isfinite(start) else HIGHEST_STAKE

        def holds(scale: float) -> bool:
            samples, target = self._share(distances, scale)
            return bool(np.all(log_wealth(samples, stake, target) >= self._needed))

        return self._smallest(holds, distances, _TOLERANCE)

    def _best(self, pilot: Array, draws: int, scale: float) -> tuple[float, float]:
        samples, target = self._share(pilot, scale)
        return best_stake(samples, target, draws)

    @property
    def _needed(self) -> float:
        return -math.log(self.level) * (1.0 + 1e-12)

    def _share(self, distances: Array, scale: float) -> tuple[Array, float]:
        """h_s(r)/h_s(R), rounded up, and τ/h_s(R), rounded down."""
        widest = 1.0
        if math.isfinite(self.radius):
            widest = float(self._divergence(np.array(self.radius), scale))
            if widest == 0.0:
                return np.zeros(distances.shape), math.inf
        found = self._divergence(np.minimum(distances, self.radius), scale)
        return np.minimum(1.0, found / widest * (1.0 + 1e-15)), self.target / widest * (1.0 - 1e-11)

    def _divergence(self, distances: Array, scale: float) -> Array:
        if scale == 0.0:
            return np.where(distances > 0.0, 1.0, 0.0)
        with np.errstate(over="ignore"):
            return divergence(self.noise, distances / scale, self.log_gamma)

    def _smallest(self, holds: Callable[[float], bool], distances: Array, tolerance: float) -> float:
        """The smallest scale that holds: 0, or bracketed from the longest distance and halved in ln s."""
        if holds(0.0):
            return 0.0
        longest = min(float(distances.max()), self.radius)
        if longest == 0.0:
            longest = self.radius if math.isfinite(self.radius) else 1.0
        high = math.log(longest)
        limit = high + _FARTHEST
        while not holds(math.exp(high)):
            high += _STEP
            if high > limit:
                return math.inf
        low = high - _STEP
        while holds(math.exp(low)):
            low, high = low - _STEP, low
        return math.exp(smallest_holding(lambda x: holds(math.exp(x)), low, high, tolerance=tolerance))
