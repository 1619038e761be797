"""Where randomness comes from: the operating system, or a seed for tests.

Noise that protects people must not be guessable, so :class:`SecureSource` takes no seed. Both sources build every law
from random 64-bit words in the same way, hence a test of one is a test of the other.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.errors import InputTypeError, check_number, check_whole

Size = int | tuple[int, ...]
Words = NDArray[np.uint64]

DIGITS = 62
"""Bits of a fixed-point uniform; two of them are equal with probability 2^-62."""

_LARGEST_SUBSET_POOL = 10**9


class Source(ABC):
    """Random variates from random words.

    Normal and exponential variates come from comparisons of uniform digits alone (von Neumann 1951; Karney 2016,
    algorithm N): no logarithm is rounded on the way. Their laws before the last rounding to a float are within 2^-56 in
    total variation, the chance that two of the compared uniforms share all 62 digits.

    Examples
    --------
    Noise comes from a source; the secure one is the default, and a seeded one marks what it made:

    >>> import numpy as np, whosin as wi
    >>> [source.secure for source in (wi.mechanisms.SecureSource(), wi.mechanisms.SeededSource(0))]
    [True, False]
    >>> wi.mechanisms.SeededSource(0).below(np.array([6, 6, 6])).tolist()  # three dice
    [5, 1, 2]
    """

    name: ClassVar[str]
    secure: ClassVar[bool]

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return independent words, uniform over [0, 2^64)."""

    def digits(self, count: int) -> Words:
        """Return independent uniform whole numbers below 2^62."""
        return self.words(count) >> np.uint64(64 - DIGITS)

    def below(self, bounds: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return a uniform whole number below each bound, exactly: words past the last multiple are drawn again."""
        limits = bounds.astype(np.uint64)
        excess = (np.uint64(2**64 - 1) % limits + np.uint64(1)) % limits
        drawn = self.words(limits.size)
        again = np.flatnonzero(drawn > np.uint64(2**64 - 1) - excess)
        while again.size:
            drawn[again] = self.words(again.size)
            again = again[drawn[again] > np.uint64(2**64 - 1) - excess[again]]
        return (drawn % limits).astype(np.int64)

    def uniform(self, size: Size) -> Array:
        """Return numbers in the open interval (0, 1): 53 random bits after a random exponent, so small ones are fine.

        A number between 2^-(e+1) and 2^-e comes with probability 2^-(e+1), and steps there are 2^-(e+53) wide.
        """
        shape, count = _shape(size)
        exponent = np.zeros(count, dtype=np.int64)
        pending = np.arange(count)
        while pending.size:
            words = self.words(pending.size)
            zeros = _trailing_zeros(words)
            exponent[pending] += zeros
            pending = pending[(zeros == 64) & (exponent[pending] < 960)]
        mantissa = (self.words(count) >> np.uint64(12)).astype(np.float64) + 2.0**52
        return np.ldexp(mantissa, (-53 - exponent).astype(np.int32)).reshape(shape)

    def exponential(self, size: Size) -> Array:
        """Return standard exponential variates (von Neumann 1951)."""
        shape, count = _shape(size)
        whole = np.zeros(count)
        fraction = np.empty(count, dtype=np.uint64)
        pending = np.arange(count)
        while pending.size:
            drawn = self.digits(pending.size)
            accepted = _even_run(self, drawn)
            fraction[pending[accepted]] = drawn[accepted]
            pending = pending[~accepted]
            whole[pending] += 1.0
        return (whole + np.ldexp(fraction.astype(np.float64), -DIGITS)).reshape(shape)

    def normal(self, size: Size) -> Array:
        """Return standard normal variates: the nearest floats to :meth:`normal_digits`."""
        shape, count = _shape(size)
        negative, whole, fraction = self.normal_digits(count)
        variates = whole + np.ldexp(fraction.astype(np.float64), -DIGITS)
        return np.where(negative, -variates, variates).reshape(shape)

    def normal_digits(self, count: int) -> tuple[Flags, NDArray[np.int64], Words]:
        """Return standard normal variates as sign, whole part and 62 binary digits of the fraction (Karney 2016).

        A whole part k has weight exp(-k²/2), a fraction x is kept with probability exp(-x(2k+x)/2), so the pair has
        density proportional to exp(-(k+x)²/2). Expected cost: about ten words a variate.
        """
        whole = np.empty(count, dtype=np.int64)
        fraction = np.empty(count, dtype=np.uint64)
        pending = np.arange(count)
        while pending.size:
            k = np.searchsorted(_whole_parts(), self.words(pending.size), side="right").astype(np.int64)
            x = self.digits(pending.size)
            kept = _keep_fraction(self, k, x)
            whole[pending[kept]], fraction[pending[kept]] = k[kept], x[kept]
            pending = pending[~kept]
        return self.words(count) >= np.uint64(2**63), whole, fraction

    def gamma(self, shape: float, size: Size) -> Array:
        """Return gamma variates of scale 1 and any shape above 0 (Marsaglia and Tsang 2000), O(1) each.

        The rejection is exact in real numbers; in floats its acceptance probability is off by about shape · 2^-52.
        """
        a = check_number("shape", shape, low=0.0, open_low=True, open_high=True)
        dimensions, count = _shape(size)
        if a < 1.0:
            variates = self.gamma(a + 1.0, count) * self.uniform(count) ** (1.0 / a)
            return np.asarray(variates, dtype=np.float64).reshape(dimensions)
        d = a - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        variates = np.empty(count)
        pending = np.arange(count)
        while pending.size:
            x = self.normal(pending.size)
            log_u = -self.exponential(pending.size)
            step = np.maximum(c * x, -1.0)
            cubed = step * (3.0 + step * (3.0 + step))  # (1 + step)³ - 1
            with np.errstate(divide="ignore"):
                kept = (step > -1.0) & (log_u < 0.5 * x * x + d * (np.log1p(cubed) - cubed))
            variates[pending[kept]] = d * (1.0 + cubed[kept])
            pending = pending[~kept]
        return variates.reshape(dimensions)

    def subset(self, n: int, k: int) -> NDArray[np.int64]:
        """Return a uniform k-subset of 0..n-1 in rising order, O(n).

        The k smallest of n random keys; where the last key of the subset is drawn twice, all are drawn again, so every
        subset is exactly equally likely.
        """
        n = check_whole("n", n, high=_LARGEST_SUBSET_POOL)
        k = check_whole("k", k, high=n)
        if k in (0, n):
            return np.arange(k, dtype=np.int64)
        while True:
            keys = self.words(n)
            chosen = np.flatnonzero(keys <= np.partition(keys, k - 1)[k - 1])
            if chosen.size == k:
                return chosen.astype(np.int64)


class SecureSource(Source):
    """Randomness of the operating system (``os.urandom``): nobody can repeat it, and it takes no seed.

    Examples
    --------
    >>> import whosin as wi
    >>> noisy = wi.mechanisms.Laplace(sum, 0.001).sample([1, 2, 3], wi.mechanisms.SecureSource())
    >>> abs(noisy - 6) < 0.1  # fails once in 10⁴³ times
    True
    """

    name = "operating system"
    secure = True

    def words(self, count: int) -> Words:
        """Return independent words, uniform over [0, 2^64)."""
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


class SeededSource(Source):
    """Repeatable randomness for tests: whoever knows the seed can subtract the noise, so mark what comes of it.

    Parameters
    ----------
    rng : anything that numpy.random.default_rng takes

    Examples
    --------
    The same seed gives the same noise, which anybody can then subtract:

    >>> import whosin as wi
    >>> noise = [wi.mechanisms.SeededSource(7).normal(1)[0] for _ in range(2)]
    >>> float(noise[0] - noise[1])
    0.0
    """

    name = "seeded generator (for tests, protects nobody)"
    secure = False

    def __init__(self, rng: Any) -> None:
        if rng is None:
            raise InputTypeError(
                "rng must be a seed or a generator, got None: use SecureSource for unseeded randomness"
            )
        self._generator = np.random.default_rng(rng)

    def words(self, count: int) -> Words:
        """Return independent words, uniform over [0, 2^64)."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


def check_source(source: Any) -> Source:
    """Return ``source`` if it is one."""
    if not isinstance(source, Source):
        raise InputTypeError(f"source must be a SecureSource or, for tests, a SeededSource, got {source!r}")
    return source


def _shape(size: Size) -> tuple[tuple[int, ...], int]:
    shape = size if isinstance(size, tuple) else (size,)
    whole = tuple(check_whole("size", side) for side in shape)
    return whole, math.prod(whole)


def _trailing_zeros(words: Words) -> NDArray[np.int64]:
    """Return how many zero bits end each word; 64 for the word 0."""
    lowest = words & (~words + np.uint64(1))
    _, exponent = np.frexp(lowest.astype(np.float64))
    return np.where(words == 0, 64, exponent.astype(np.int64) - 1)


def _even_run(source: Source, start: Words, passes: Callable[[NDArray[np.int64]], Flags] | None = None) -> Flags:
    """Return whether a falling run of uniforms below ``start`` has even length: probability exp(-start).

    ``passes`` says of the runs with these numbers whether their next step counts; one of probability p makes it
    exp(-p·start).
    """
    even = np.ones(start.size, dtype=bool)
    last = start.copy()
    running = np.arange(start.size)
    while running.size:
        drawn = source.digits(running.size)
        falls = drawn < last[running]
        if passes is not None:
            falls &= passes(running)
        running = running[falls]
        last[running] = drawn[falls]
        even[running] ^= True
    return even


def _keep_fraction(source: Source, k: NDArray[np.int64], x: Words) -> Flags:
    """Return True with probability exp(-x(2k+x)/2): k + 1 events of probability exp(-x(2k+x)/(2k+2)) in a row."""
    kept = np.ones(k.size, dtype=bool)
    for turn in range(int(k.max()) + 1):
        asked = np.flatnonzero(kept & (k >= turn))
        kept[asked] = _one_keep(source, k[asked], x[asked])
    return kept


def _one_keep(source: Source, k: NDArray[np.int64], x: Words) -> Flags:
    """Return True with probability exp(-x(2k+x)/(2k+2)): a falling run whose every step also passes (2k+x)/(2k+2)."""

    def passes(running: NDArray[np.int64]) -> Flags:
        share, twice = source.below(2 * k[running] + 2), 2 * k[running]
        return np.asarray((share < twice) | ((share == twice) & (source.digits(running.size) < x[running])))

    return _even_run(source, x, passes)


@cache
def _whole_parts() -> Words:
    """Return the thresholds of a 64-bit word for the whole part k with weight exp(-k²/2); beyond 11 lie 2^-87."""
    half = _exp_minus_half()
    weights = [half ** (k * k) for k in range(12)]
    total = sum(weights)
    sums = [sum(weights[: k + 1]) for k in range(11)]
    return np.array([min(int(part / total * 2**64), 2**64 - 1) for part in sums], dtype=np.uint64)


def _exp_minus_half() -> Fraction:
    """Return exp(-1/2) to within 1/(2^30 30!), about 2^-137."""
    term, total = Fraction(1), Fraction(1)
    for n in range(1, 30):
        term *= Fraction(-1, 2 * n)
        total += term
    return total
