"""A plan: the noise that will be added, and why it is enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError
from whosin.numerics.shift import lengths


@dataclass(frozen=True)
class Noise:
    """A kind of noise, "gaussian" or "norm_exponential", the p of its norm, and how it is split among coordinates."""

    kind: str
    norm: float
    split: str = "total"

    def shape(self, spread: Array) -> Array:
        """Return the scales of Gaussian noise up to a factor, for coordinates with these spreads; ones for other noise.

        Noise s_i on spreads σ_i promises by Σ(σ_i/s_i)². With s_i ∝ √σ_i the total Σs_i² is the least; with s_i ∝ σ_i
        the relative noise Σ(s_i/σ_i)² is, whatever the units.
        """
        if self.kind != "gaussian":
            return np.ones(len(spread))
        return spread if self.split == "relative" else np.asarray(np.sqrt(spread))

    def cost(self, scales: Array, spread: Array) -> float:
        """Return what the split keeps small: the total variance of the noise, or that relative to the spreads."""
        return float(np.sum((scales / spread) ** 2 if self.split == "relative" else scales**2))


@dataclass(frozen=True)
class Ball:
    """The set ‖(θ - centre)/shape‖ ≤ radius, to which an estimate is pulled before the noise."""

    centre: Array
    radius: float
    shape: Array | float
    norm: float

    def pull(self, value: Array) -> Array:
        """Return the value, moved towards the centre until it lies in the ball.

        Where the sum of centre and shift is rounded away from the centre, the next float on the way back is taken, so
        that no coordinate is further away than the shift says, however large the centre.
        """
        centre = check_centre(self.centre, len(value))
        away = value - centre
        with np.errstate(over="ignore"):
            length = float(lengths((away / self.shape)[None, :], self.norm)[0])
        if length <= self.radius:
            return value
        shift = away * (self.radius / length * (1.0 - 1e-14))
        pulled = centre + shift
        too_far = np.abs(pulled - centre) > np.abs(shift)
        return np.where(too_far, np.nextafter(pulled, centre), pulled)


def check_centre(centre: Array, size: int) -> Array:
    """Return the centre of a ball for estimates of that many numbers; one number stands for all."""
    if len(centre) not in (1, size):
        raise InputError(f"ball must have a centre of {size} numbers, like the estimate, got {len(centre)}")
    return np.broadcast_to(centre, (size,))


@dataclass(frozen=True)
class Plan:
    """Noise of ``scale``·``shape`` keeps the excess over a blind guess at or below ``bound``."""

    scale: float
    shape: Array | float
    bound: float
    route: str
    kind: str
    sensitivity: float
    reason: str
    confidence_level: float | None = None
    draws: int = 0
    ball: Ball | None = None
