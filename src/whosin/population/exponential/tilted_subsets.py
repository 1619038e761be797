"""Means over all k-subsets of a function of a sum, by exponential tilting and Fourier inversion, in polynomial time.

For S = offset + Σ_{i∈D} h_i and D uniform among the k-subsets of N records, with or without one of them.

**Tilt.** Give record i the odds e^{l - t·h_i} of being in, independently, and choose l so that k are expected. Then for
every function g, with P, E for this product law over the other records,

    mean over D ∌ x of g(S) = E[g(S)·e^{tS}; k others in]·e^{-t·offset - k·l}·Π_{i≠x} (1 + e^{l - t·h_i})/C(N-1, k),

and alike with k-1 for D ∋ x. With t at the saddle point, where E[S] = 0, what is left to compute is not small.

**Invert.** For 0 < u < 1, e^{uS}/(1 + e^S) = ∫ π/sin(π(u - iω))·e^{iωS} dω/2π, and the event "k in" is a mean over
roots of unity z. So the expectation is a sum over frequencies ω and angles θ of products of N factors f_i = 1 - p_i +
p_i·e^{i(ωh_i + θ)}; one record is left out by dividing by its factor. The trapezoidal rule errs by the values at
distance 2π/(step of ω), and Z roots of unity by the probability that the number in is off by Z: both are exponentially
small, and bounded here by Bernstein's inequality. As |f_i| ≤ 1, points whose product has become negligible are dropped
on the way; most are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags, Index
from whosin.errors import InputError

ComplexArray = NDArray[np.complex128]

ROUNDING = 2.0**-53
TAIL = 43.0
"""Tails are cut where their bound is e^-43, 2e-19."""

_HIGHEST_FREQUENCY = 13.5  # the kernel is below 2π·e^(-π·13.5), 2e-18, beyond
_NEGLIGIBLE = 1e-21
_SMALLEST_FACTOR = 1e-150
_CHUNK = 2**16
_MOST_WORK = 10**11  # points times records, before dropping: some ten minutes


@dataclass(frozen=True)
class Tilted:
    """Product law of the records at one tilt. ``steps`` are centred so that S and the number in are uncorrelated."""

    steps: Array
    offset: float
    k: int
    tilt: float
    level: float
    inside: Array
    outside: Array
    deviation: float
    mean: float
    rounding: float  # of S, by centring

    @classmethod
    def at(cls, steps: Array, offset: float, k: int, tilt: float) -> Tilted:
        """Solve for the level; subtract from every step what changes S by a constant on the k-subsets."""
        _, inside, outside = inclusion(steps, k, tilt)
        spread = inside * outside
        weight = float(spread.sum())
        centre = float(spread @ steps) / weight if weight > 1e-200 else float(np.median(steps))
        centred = steps - centre
        rounding = 2.0 * ROUNDING * (abs(offset) + 2.0 * k * abs(centre) + float(np.abs(centred).sum()))
        offset = offset + k * centre
        level, inside, outside = inclusion(centred, k, tilt)
        deviation = math.sqrt(float((inside * outside) @ centred**2))
        mean = offset + float(inside @ centred)
        return cls(centred, offset, k, tilt, level, inside, outside, deviation, mean, rounding)

    def moment(self, records: Index | None) -> tuple[Array, Array]:
        """ln of the mean of e^{-tS}, columns inside and outside (or one entry for all k-subsets), and errors."""
        angles, weights = self._angles()
        points = _Points(np.zeros(1), angles, np.zeros(len(angles), np.intp), np.arange(len(angles)), weights)
        return self._finish(self._multiply(points), records, 2.0 * math.exp(-TAIL))

    def integral(self, records: Index | None, pole: int) -> tuple[Array, Array]:
        """ln of the mean of e^{-pole·S}/(1 + e^S), for a tilt between pole and pole + 1, and errors."""
        position = self.tilt - pole
        distance = min(position, 1.0 - position)
        largest = float(np.abs(self.steps).max())
        extremes = float(np.abs(self.steps).sum())
        reach = abs(self.mean) + largest + min(_bernstein(self.deviation**2, largest), 2.0 * extremes)
        period = reach + TAIL / distance
        step = 2.0 * math.pi / period
        n_frequencies = int(_HIGHEST_FREQUENCY / step) + 2
        angles, angle_weights = self._angles()
        if n_frequencies * len(angles) * len(self.steps) > _MOST_WORK:
            raise InputError(
                f"h must have sums that spread over less: {len(self.steps)} records with |h| up to {largest:.3g} would "
                f"take {n_frequencies * len(angles):.1e} points"
            )
        frequencies: Array = step * np.arange(n_frequencies, dtype=np.float64)
        kernel = math.pi / np.sin(math.pi * (position - 1j * frequencies))
        kernel *= np.exp(1j * frequencies * self.offset) * (step / (2.0 * math.pi))
        kernel[1:] *= 2.0  # the negative frequencies are the conjugates
        kept: list[_Points] = []
        rows = max(_CHUNK // len(angles), 1)
        for start in range(0, len(frequencies), rows):
            some = frequencies[start : start + rows]
            at_frequency = np.repeat(np.arange(len(some)), len(angles))
            at_angle = np.tile(np.arange(len(angles)), len(some))
            weights = (kernel[start : start + rows, None] * angle_weights).reshape(-1)
            kept.append(self._multiply(_Points(some, angles, at_frequency, at_angle, weights)))
        points = _Points.joined(kept)
        # Frequencies cut, aliases of S, tails of S, wrong numbers of records, and the points dropped.
        repeats = 1.0 + 2.0 / (1.0 - math.exp(-distance * period))
        truncation = math.exp(-math.pi * _HIGHEST_FREQUENCY) + (3.0 * repeats + 2.0) * math.exp(-TAIL)
        truncation += _NEGLIGIBLE * _HIGHEST_FREQUENCY * math.pi / math.sin(math.pi * position)
        return self._finish(points, records, truncation)

    def _angles(self) -> tuple[Array, ComplexArray]:
        """Angles of an odd number of roots of unity, in order of size around 0, and the weights that pick out k."""
        needed = _bernstein(float(self.inside @ self.outside), 1.0) + 2.0
        number = min(int(needed) + 1, len(self.steps) + 1) | 1
        half = number // 2
        angles: Array = 2.0 * math.pi / number * np.arange(-half, half + 1, dtype=np.float64)
        weights: ComplexArray = np.exp(-1j * self.k * angles) / number
        return angles, weights

    def _factor(self, points: _Points, record: int) -> tuple[ComplexArray, ComplexArray]:
        """The record's turn e^{i(ωh + θ)}, and its factor 1 - p + p·e^{i(ωh + θ)}, at the points."""
        turns = np.exp(1j * self.steps[record] * points.frequencies)
        turn = turns[points.at_frequency] * points.turns[points.at_angle]
        factor = turn * self.inside[record] + self.outside[record]
        factor[np.abs(factor) < _SMALLEST_FACTOR] = _SMALLEST_FACTOR  # so that it can be divided out again
        return turn, factor

    def _multiply(self, points: _Points) -> _Points:
        """Multiply the weights by the factors of all records; drop the points that no longer count.

        A point counts as long as its product without its smallest factor does, since that factor may be divided out.
        """
        smallest = np.ones(len(points.values))
        scale = float(np.abs(points.values).max())
        for record in range(len(self.steps)):
            _, factor = self._factor(points, record)
            points.values *= factor
            size = np.abs(factor)
            np.minimum(smallest, size, out=smallest)
            points.roughness += 1.0 / size
            if record % 8 == 7 or record == len(self.steps) - 1:
                alive = np.abs(points.values) > _NEGLIGIBLE * min(scale, 1.0) * smallest
                if alive.sum() < 0.8 * len(alive):
                    points, smallest = points.only(alive), smallest[alive]
        return points

    def _finish(self, points: _Points, records: Index | None, truncation: float) -> tuple[Array, Array]:
        """Sum the points, leaving out one record at a time, and undo the tilt."""
        n_records = len(self.steps)
        odds = np.logaddexp(0.0, self.level - self.tilt * self.steps)
        log_product = math.fsum(odds)
        # Rounding of a product of N factors: each of them and its multiplication, and each angle.
        paths = np.abs(points.frequencies) * float(self.inside @ np.abs(self.steps) + abs(self.offset))
        trouble = 4.0 * points.roughness + 40.0 + 2.0 * paths[points.at_frequency]
        trouble += 4.0 * self.k * np.abs(points.angles[points.at_angle])
        sizes = np.abs(points.values)
        shift = -self.tilt * self.offset - self.k * self.level
        logs_size = log_product + abs(self.tilt * self.offset) + abs(self.k * self.level) + float(odds.max()) + 10.0
        constant_error = 4.0 * ROUNDING * logs_size + (1.0 + self.tilt) * self.rounding
        if records is None:
            everyone = np.array([float(points.values.real.sum())])
            error = np.array([ROUNDING * float(sizes @ trouble) + truncation])
            constants = np.array([log_product + shift - _log_binomial(n_records, self.k)])
            return _log_with_error(everyone, error, constants, constant_error)
        values, errors = np.empty((len(records), 2)), np.empty((len(records), 2))
        constants = np.empty((len(records), 2))
        inside_constant = self.level - _log_binomial(n_records - 1, self.k - 1)
        outside_constant = -_log_binomial(n_records - 1, self.k)
        for row, record in enumerate(records):
            turn, factor = self._factor(points, record)
            size = np.abs(factor)
            left = points.values / factor
            values[row, 1] = left.real.sum()
            values[row, 0] = (left * turn).real.sum()
            errors[row] = ROUNDING * float((sizes / size) @ (trouble + 4.0 / size)) + truncation
            constant = log_product - float(odds[record]) + shift
            constants[row, 0] = constant + inside_constant - self.tilt * float(self.steps[record])
            constants[row, 1] = constant + outside_constant
        return _log_with_error(values, errors, constants, constant_error)


def inclusion(steps: Array, k: int, tilt: float) -> tuple[float, Array, Array]:
    """Log-odds l with Σ p_i = k, p_i = 1/(1 + e^{t·h_i - l}), and the p_i and 1 - p_i."""
    slopes = tilt * steps
    low, high = float(slopes.min()) - 1.0, float(slopes.max()) + 1.0
    base = math.log(k) - math.log(len(steps) - k)
    low, high = low + base, high + base
    level = 0.5 * (low + high)
    for _ in range(200):
        inside, outside = _logistic(level - slopes), _logistic(slopes - level)
        excess = float(inside.sum()) - k
        if excess > 0.0:
            high = level
        else:
            low = level
        slope = float((inside * outside).sum())
        step = level - excess / slope if slope > 0.0 else math.inf
        following = step if low < step < high else 0.5 * (low + high)
        if following == level or abs(excess) < 1e-9:
            break
        level = following
    return level, inside, outside


def _logistic(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    result: Array = np.where(x >= 0.0, 1.0, small) / (1.0 + small)
    return result


@dataclass
class _Points:
    """Points (ω, θ) as indices into grids, a complex value at each, and the sum of 1/|factor| that went into it."""

    frequencies: Array
    angles: Array
    at_frequency: Index
    at_angle: Index
    values: ComplexArray
    roughness: Array = field(init=False)
    turns: ComplexArray = field(init=False)

    def __post_init__(self) -> None:
        self.roughness = np.zeros(len(self.values))
        self.turns = np.exp(1j * self.angles)

    @classmethod
    def joined(cls, parts: list[_Points]) -> _Points:
        """All points of the parts, which share their angles, with the frequencies that still occur."""
        starts = np.cumsum([0, *(len(part.frequencies) for part in parts)])
        at_frequency = np.concatenate([part.at_frequency + start for part, start in zip(parts, starts, strict=False)])
        used, at_used = np.unique(at_frequency, return_inverse=True)
        points = cls(
            np.concatenate([part.frequencies for part in parts])[used],
            parts[0].angles,
            at_used.reshape(-1),
            np.concatenate([part.at_angle for part in parts]),
            np.concatenate([part.values for part in parts]),
        )
        points.roughness = np.concatenate([part.roughness for part in parts])
        return points

    def only(self, keep: Flags) -> _Points:
        """The points to keep."""
        points = _Points(self.frequencies, self.angles, self.at_frequency[keep], self.at_angle[keep], self.values[keep])
        points.roughness = self.roughness[keep]
        return points


def _bernstein(variance: float, largest: float) -> float:
    """x with P(|sum - mean| ≥ x) ≤ 2e^-43 for independent terms of which none strays by more than ``largest``."""
    linear = largest * TAIL / 3.0
    return linear + math.sqrt(linear**2 + 2.0 * TAIL * variance)


def _log_binomial(n: int, k: int) -> float:
    return math.log(math.comb(n, k))


def _log_with_error(values: Array, errors: Array, constants: Array, constant_error: float) -> tuple[Array, Array]:
    """Logarithm of value·e^constant, and the error that the errors of both leave."""
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = errors / values
        lost = ~((relative > 0.0) & (relative < 0.5))
        logs = np.where(lost, -np.inf, np.log(np.where(lost, 1.0, values)) + constants)
        error = np.where(lost, np.inf, -np.log1p(-np.where(lost, 0.0, relative)))
    return logs, error + constant_error
