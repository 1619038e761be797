"""Noise that protects people: from a secure source, added without leaving traces in the last bits of a float.

A float sum value + noise can reach some floats from one value and not from its neighbour, and so give the value away
(Mironov 2012). Here the sum is formed in whole numbers and only then rounded:

1. The grid 2^j is chosen from the scale of the noise (and the number of coordinates) alone, never from the value.
2. Value and noise are split into whole steps of the grid and 31 binary digits of a step, which moves the value by less
   than 2^-31 steps, and are added as integers.
3. The sum is rounded to whole steps, and these to the nearest float. Both are functions of the sum alone, so no
   attacker gains by them: rounding after the noise is post-processing.

What is left is the difference between the law of the noise as drawn and the law on paper; each function bounds it.
What is not covered: the time that a call takes, and the memory that it leaves behind.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError, check_number
from whosin.mechanisms.sources import DIGITS, SecureSource, SeededSource, Source, check_source

__all__ = ["SecureSource", "SeededSource", "Source", "gaussian", "gaussian_sampler", "norm_exponential"]

_LIMB = 31
_MASK = 2**_LIMB - 1
_GAUSSIAN_STEPS = 30
_EXPONENTIAL_STEPS = 8
_LOWEST_EXPONENT = -1074

Fixed = tuple[NDArray[np.int64], NDArray[np.int64]]
Exponents = NDArray[np.int32]


def gaussian(value: ArrayLike, scale: ArrayLike, source: Source) -> Array:
    """Return the value plus independent Gaussian noise, on the grid 2^j with 2^j ≤ scale · 2^-30 < 2^(j+1).

    The standard normal variate is exact digit by digit (:meth:`Source.normal_digits`, Karney 2016). It is multiplied
    by the scale, rounded up to a whole number of steps, in integer arithmetic.

    The result is a rounding of an ideal release whose noise has a standard deviation between scale and
    scale · (1 + 2^-30), up to a total variation of d · 2^-55 for d coordinates: two values can be told apart better
    than from the ideal release by at most twice that. Scales are one for all or one per coordinate; a coordinate of
    scale 0 comes back as it went in. Cost O(d): a second for 10⁶ coordinates.
    """
    centre = _finite("value", value)
    deviation = _scales(scale, centre.shape)
    check_source(source)
    noisy = deviation.ravel() > 0.0
    released = centre.ravel().copy()
    s = deviation.ravel()[noisy]
    exponent = _grid(s, _GAUSSIAN_STEPS)
    steps = np.ceil(np.ldexp(s, -exponent)).astype(np.int64)
    released[noisy] = _add(released[noisy], _scaled_normal(source, steps), exponent)
    return released.reshape(centre.shape)


def gaussian_sampler(source: Source) -> str:
    """Return in words where :func:`gaussian` takes its noise from, for certificates."""
    return f"Karney's algorithm N, {check_source(source).name}"


def norm_exponential(value: ArrayLike, scale: float, norm: float, source: Source) -> Array:
    """Return the value plus noise with density proportional to exp(-‖x‖_p / scale), p = ``norm``.

    The radius is Gamma(d, scale) and the direction Y / ‖Y‖_p has independent Y_i of density ∝ exp(-|y|^p), the cone
    measure. A one-dimensional radius with a Laplace law, as in Izzo et al. 2022, algorithm 1, is wrong for d > 1.

    The result lies on the grid 2^j with 2^j ≤ m · 2^-8 < 2^(j+1), m = scale · d^(1-1/p) the size of a coordinate of
    the noise. The noise itself is computed in floats. If its coordinates have a relative error of at most 2^-48 (some
    thirty roundings and a logarithm, power or root), the release is a rounding of the ideal one up to a total
    variation of about d · 2^-38 at each value. That last step is an estimate, not a proof: the chance that an error
    crosses a border of the grid. At scale 0 the value comes back unchanged. Cost O(d).
    """
    centre = _finite("value", value)
    s = check_number("scale", scale, low=0.0, open_high=True)
    p = check_number("norm", norm, low=1.0)
    check_source(source)
    d = centre.size
    if s == 0.0 or d == 0:
        return centre
    mantissa, power = math.frexp(s)
    noise = _norm_noise(1, d, p, source)[0] * mantissa
    size = np.array([mantissa * d ** (1.0 - 1.0 / p)])
    exponent = np.maximum(_grid(size, _EXPONENTIAL_STEPS), np.int32(_LOWEST_EXPONENT - power))
    released = _add(centre.ravel(), _split(np.ldexp(noise, -exponent)), exponent + np.int32(power))
    return released.reshape(centre.shape)


def _norm_noise(rows: int, d: int, p: float, source: Source) -> Array:
    """Return rows of d coordinates with density ∝ exp(-‖x‖_p): a Gamma(d) radius times the cone measure Y / ‖Y‖_p.

    |Y|^p is Gamma(1/p), hence |Y| = G^(1/p) U with G of shape 1 + 1/p and U uniform; for p = ∞ that leaves U.
    """
    size = (rows, d)
    magnitudes = source.uniform(size) if p > 1.0 else source.exponential(size) + source.uniform(size) * 2.0**-DIGITS
    if 1.0 < p < math.inf:
        magnitudes = magnitudes * source.gamma(1.0 + 1.0 / p, size) ** (1.0 / p)
    signs = np.where(source.words(rows * d) >= np.uint64(2**63), -1.0, 1.0).reshape(size)
    scaled = magnitudes / magnitudes.max(axis=1, keepdims=True)
    length = 1.0 if p == math.inf else np.sum(scaled**p, axis=1, keepdims=True) ** (1.0 / p)
    radius = source.gamma(d, (rows, 1))
    return np.asarray(radius * signs * scaled / length, dtype=np.float64)


def _scaled_normal(source: Source, steps: NDArray[np.int64]) -> Fixed:
    """Return floor(steps · N · 2^31) / 2^31 for standard normal N, as whole part and 31 digits.

    N has 93 digits after the point; the product is exact, and cut only at its end.
    """
    negative, whole, fraction = source.normal_digits(steps.size)
    high, middle = (fraction >> np.uint64(_LIMB)).astype(np.int64), (fraction & np.uint64(_MASK)).astype(np.int64)
    low = (source.words(steps.size) >> np.uint64(64 - _LIMB)).astype(np.int64)
    carried = middle * steps + (low * steps >> _LIMB)
    carried = high * steps + (carried >> _LIMB)
    parts, digits = whole * steps + (carried >> _LIMB), carried & _MASK
    # Below zero too it is cut downwards: cut towards zero, the cells on its two sides would be one of twice the chance.
    return np.where(negative, -parts - 1, parts), np.where(negative, _MASK - digits, digits)


def _grid(size: Array, finer: int) -> Exponents:
    """Return j with 2^j ≤ size · 2^-finer < 2^(j+1), not below the finest float."""
    _, exponent = np.frexp(size)
    return np.asarray(np.maximum(exponent - (1 + finer), _LOWEST_EXPONENT), dtype=np.int32)


def _split(steps: Array) -> Fixed:
    """Return the whole part and 31 binary digits of the rest."""
    whole = np.floor(steps)
    return whole.astype(np.int64), np.floor(np.ldexp(steps - whole, _LIMB)).astype(np.int64)


def _add(value: Array, noise: Fixed, exponent: Exponents) -> Array:
    """Return value + noise, rounded to whole steps of 2^exponent and then to the nearest finite float."""
    exponent = np.broadcast_to(exponent, value.shape)
    with np.errstate(over="ignore", under="ignore"):
        steps = np.ldexp(value, -exponent)
    large = np.abs(steps) >= 2.0**61
    whole, digits = _split(np.where(large, 0.0, steps))
    moved = noise[0] + ((digits + noise[1] + 2 ** (_LIMB - 1)) >> _LIMB)
    limit = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        released = np.asarray(np.clip(np.ldexp((whole + moved).astype(np.float64), exponent), -limit, limit))
    for i in np.flatnonzero(large):
        released[i] = _add_large(float(value[i]), int(moved[i]), int(exponent[i]))
    return released


def _add_large(value: float, steps: int, exponent: int) -> float:
    """Return value + steps · 2^exponent for a value of so many steps that it is a whole number of them."""
    total = Fraction(value) + steps * Fraction(2) ** exponent
    limit = Fraction(float(np.finfo(np.float64).max))
    return float(max(-limit, min(limit, total)))


def _finite(name: str, values: ArrayLike) -> Array:
    try:
        given = np.asarray(values)
    except ValueError:
        given = np.asarray(None)
    if given.dtype.kind not in "iuf":
        raise InputTypeError(f"{name} must be a number or an array of numbers, got {values!r}")
    numbers = given.astype(np.float64)
    if not np.all(np.isfinite(numbers)):
        raise InputError(
            f"{name} must hold finite numbers, got {float(numbers.ravel()[~np.isfinite(numbers.ravel())][0])}"
        )
    return numbers


def _scales(scale: ArrayLike, shape: tuple[int, ...]) -> Array:
    scales = _finite("scale", scale)
    if np.any(scales < 0.0):
        raise InputError(f"scale must be numbers of at least 0, got {float(scales.min())}")
    if scales.ndim and scales.shape != shape:
        raise InputError(f"scale must be one number or one per coordinate, shape {shape}, got shape {scales.shape}")
    return np.array(np.broadcast_to(scales, shape))
