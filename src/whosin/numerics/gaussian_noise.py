"""Gaussian and Laplace noise around two points a known distance apart: divergence, and calibration on the safe side.

With u the distance in noise scales, the hockey-stick divergence between the two is, whichever comes first,

* Gaussian: E_{e^ε} = Φ(u/2 - ε/u) - e^ε·Φ(-u/2 - ε/u) (Balle and Wang 2018, theorem 8);
* Laplace in one dimension: E_{e^ε} = max(0, 1 - e^{(ε - u)/2}). For noise with density ∝ exp(-‖x‖/s) in more dimensions
  the same expression is an upper bound, u = ‖v‖/s, in any norm: with t = (u - ε)/(2u), shifting the variable of
  integration by t·v shows that min(p, e^ε·p_v) keeps a mass of at least e^{-(u - ε)/2}.

Everything here is a handful of special functions for each number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.errors import CalibrationError, InputError, check_number, check_probability
from whosin.numerics.roots import largest_holding, smallest_holding

_CHUNK = 2**15
_SMALL = 0.1
_FAR = 60.0
"""Beyond this many scales the normal density is zero in double precision."""

_UP = 1.0 + 1e-15
"""Distances are moved up by this factor: dE/du·u is what rounding of u/2 and ε/u can take away, whatever their size."""


def relative_error(delta: float) -> float:
    """Return a limit on the relative error of a computed divergence near δ, but for that of u/2 - ε/u if u is large."""
    return 6e-15 - 1.5e-15 * math.log(delta) if delta > 0.0 else 0.0


def shift_divergence(u: ArrayLike, epsilon: ArrayLike) -> Array:
    """Return E_{e^ε} of two unit normals (or isotropic normals) u ≥ 0 apart, for ε ≥ 0.

    With a = ε/u - u/2, b = ε/u + u/2 and the Mills ratio m = (1 - Φ)/φ it equals φ(a)·(m(a) - m(b)), because
    e^ε·φ(b) = φ(a); for u < 0.1 the difference is taken from a Taylor series, so that small values keep about twelve
    digits. Zero at u = 0. Broadcasts; about 0.1 µs for each number.
    """
    return shift_divergence_and_slope(u, epsilon)[0]


def shift_divergence_and_slope(u: ArrayLike, epsilon: ArrayLike) -> tuple[Array, Array]:
    """Return E_{e^ε} as :func:`shift_divergence` does, and -dE_{e^ε}/dε = e^ε·Φ(-u/2 - ε/u), zero at u = 0."""
    u, epsilon = _checked(u, epsilon)
    value, slope = np.empty(u.shape), np.empty(u.shape)
    flat = u.reshape(-1), epsilon.reshape(-1), value.reshape(-1), slope.reshape(-1)
    for start in range(0, u.size, _CHUNK):
        distance, log_ratio, here, there = (part[start : start + _CHUNK] for part in flat)
        here[:], there[:] = _normal_shift(distance, log_ratio)
    return value, slope


def laplace_shift_divergence(u: ArrayLike, epsilon: ArrayLike) -> Array:
    """Return max(0, 1 - e^{(ε-u)/2}) for u, ε ≥ 0: exact for Laplace noise in one dimension, else an upper bound."""
    u, epsilon = _checked(u, epsilon)
    with np.errstate(invalid="ignore"):
        excess = np.where(u > epsilon, u - epsilon, 0.0)
    return np.asarray(-np.expm1(-excess / 2.0))


def laplace_shift_divergence_and_slope(u: ArrayLike, epsilon: ArrayLike) -> tuple[Array, Array]:
    """Return :func:`laplace_shift_divergence` and -dE_{e^ε}/dε = e^{(ε-u)/2}/2 where u > ε, else zero."""
    value = laplace_shift_divergence(u, epsilon)
    return value, np.where(np.asarray(u) > np.asarray(epsilon), 0.5 * (1.0 - value), 0.0)


def noise_for(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest Gaussian noise scale that is (ε, δ)-DP at this sensitivity.

    The analytic calibration of Balle and Wang (2018), by bisection to the last digit. The condition
    ``shift_divergence(sensitivity / noise, epsilon) <= delta`` was evaluated at the result and held, with room for the
    rounding of the evaluation, which costs the last digit or two.

    Raises
    ------
    CalibrationError
        At δ = 0, which no Gaussian noise reaches.
    """
    epsilon, delta, sensitivity = _targets(epsilon, delta, "sensitivity", sensitivity)
    if sensitivity == 0.0 or delta == 1.0 or math.isinf(epsilon):
        return 0.0
    if delta == 0.0:
        raise CalibrationError("delta must be a number above 0 for Gaussian noise: none is (epsilon, 0)-private")

    limit = delta * (1.0 - relative_error(delta))

    def holds(u: float) -> bool:
        return float(shift_divergence(u * _UP, epsilon)) <= limit

    high = 1.0
    while holds(high):
        high *= 2.0
    noise = max(sensitivity / largest_holding(holds, 0.0, high, tolerance=0.0), math.ulp(0.0))
    while not holds(sensitivity / noise):
        noise = math.nextafter(noise, math.inf)
    return noise


def epsilon_for(noise: float, delta: float, distance: float) -> float:
    """Return the smallest ε at which Gaussian noise of this scale hides a distance with δ; infinite if none does.

    The inverse of :func:`noise_for`: the condition was evaluated at the result and held, with room for rounding.
    """
    u, delta = _hidden(noise, delta, distance)
    if delta == 1.0 or u == 0.0:
        return 0.0
    if delta == 0.0 or math.isinf(u):
        return math.inf

    limit = delta * (1.0 - relative_error(delta))

    def holds(epsilon: float) -> bool:
        return float(shift_divergence(u, epsilon)) <= limit

    high = 1.0
    while not holds(high):
        high *= 2.0
    return smallest_holding(holds, 0.0, high, tolerance=0.0) if not holds(0.0) else 0.0


def laplace_noise_for(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest Laplace scale that is (ε, δ)-DP: sensitivity/(ε + 2·ln(1/(1-δ))), rounded up."""
    epsilon, delta, sensitivity = _targets(epsilon, delta, "sensitivity", sensitivity)
    if sensitivity == 0.0 or delta == 1.0 or math.isinf(epsilon):
        return 0.0
    widest = epsilon - 2.0 * math.log1p(-delta)
    if widest == 0.0:
        raise CalibrationError("epsilon must be a number above 0 where delta is 0: no noise hides everything")
    return sensitivity / widest * (1.0 + 1e-15)


def laplace_epsilon_for(noise: float, delta: float, distance: float) -> float:
    """Return the smallest ε at which Laplace noise hides a distance with δ: distance/noise + 2·ln(1-δ), rounded up."""
    u, delta = _hidden(noise, delta, distance)
    if delta == 1.0 or u == 0.0:
        return 0.0
    return max(0.0, u + 2.0 * math.log1p(-delta)) if math.isfinite(u) else math.inf


def _checked(u: ArrayLike, epsilon: ArrayLike) -> tuple[Array, Array]:
    u, epsilon = np.broadcast_arrays(np.asarray(u, dtype=np.float64), np.asarray(epsilon, dtype=np.float64))
    for name, value in (("u", u), ("epsilon", epsilon)):
        if not np.all(value >= 0.0):
            raise InputError(f"{name} must be numbers in [0, inf], got {value[~(value >= 0.0)].ravel()[0]!r}")
    return u, epsilon


def _targets(epsilon: float, delta: float, name: str, length: float) -> tuple[float, float, float]:
    return (
        check_number("epsilon", epsilon, low=0.0),
        check_probability("delta", delta),
        check_number(name, length, low=0.0, open_high=True),
    )


def _hidden(noise: float, delta: float, distance: float) -> tuple[float, float]:
    """The distance in noise scales, rounded up with room for what follows, and δ."""
    noise = check_number("noise", noise, low=0.0, open_high=True)
    delta = check_probability("delta", delta)
    distance = check_number("distance", distance, low=0.0, open_high=True)
    if distance == 0.0:
        return 0.0, delta
    return (math.nextafter(distance / noise * _UP, math.inf) if noise > 0.0 else math.inf), delta


def _normal_shift(u: Array, epsilon: Array) -> tuple[Array, Array]:
    """Divergence and slope of two normals u apart."""
    from scipy.special import ndtr

    u = np.where(np.isinf(epsilon), 0.0, u)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        centre = np.where(epsilon > 0.0, epsilon / u, 0.0)
    low = centre - u / 2.0
    bell, beyond = _normal(low), _mills(centre + u / 2.0)
    value = bell * (_mills(low) - beyond)
    # `_mills` is that of 0 for anything below 0: there the mass is at least a half, and `ndtr` loses no digits.
    part = np.flatnonzero(low <= 0.0)
    value[part] = ndtr(-low[part]) - bell[part] * beyond[part]
    part = np.flatnonzero(u < _SMALL)
    value[part] = _near(centre[part], u[part] / 2.0)
    return np.clip(value, 0.0, 1.0), np.where(u > 0.0, bell * beyond, 0.0)


def _normal(x: Array) -> Array:
    x = np.clip(x, -_FAR, _FAR)
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi))


def _mills(x: Array) -> Array:
    from scipy.special import erfcx

    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(np.maximum(x, 0.0) / math.sqrt(2.0)))


def _near(centre: Array, half: Array) -> Array:
    """φ(c-h)·(m(c-h) - m(c+h)) by the odd terms up to h⁹; the derivatives follow from m' = c·m - 1."""
    c = np.minimum(centre, _FAR)
    before, current = _mills(c), c * _mills(c) - 1.0
    power, series = half, half * current
    for order in range(2, 10):
        before, current = current, c * current + (order - 1) * before
        power = power * half / order
        if order % 2:
            series = series + power * current
    return -2.0 * _normal(c - half) * series
