"""Exact laws of a mechanism with two outcomes over all k-subsets of N records, in polynomial time.

Outcome 0 is published with probability 1/(1 + e^S), S = offset + Σ_{i∈D} h_i, outcome 1 with the rest. Wanted are the
means over the k-subsets D with a record x, and over those without it, also where they are as small as e^-100 or less.
Enumeration ends near N = 40; this goes on to thousands. (The exponential mechanism with two distinct candidates: h_i
is the difference of record i's two logits, and offset = ln(c₁/c₀) if the candidates occur c₀ and c₁ times.)

**Tilt.** Give record i the odds e^{l - t·h_i} of being in, independently, and choose l so that k are expected. Then for
every function g, with P, E for this product law over the other records,

    mean over D ∌ x of g(S) = E[g(S)·e^{tS}; k others in] · e^{-t·offset - k·l} · Π_{i≠x} (1 + e^{l - t·h_i}) / C(N-1,
    k),

and alike with k-1 for D ∋ x. With t at the saddle point, where E[S] = 0, what is left to compute is not small.

**Invert.** For 0 < u < 1, e^{uS}/(1 + e^S) = ∫ π/sin(π(u - iω))·e^{iωS} dω/2π, and the event "k in" is a mean over
roots of unity z. So the expectation is a sum over frequencies ω and angles θ of products of N factors f_i = 1 - p_i +
p_i·e^{i(ωh_i + θ)}; one record is left out by dividing by its factor. The trapezoidal rule errs by the values at
distance 2π/(step of ω), and Z roots of unity by the probability that the number in is off by Z: both are exponentially
small, and bounded here by Bernstein's inequality. As |f_i| ≤ 1, points whose product has become negligible are dropped
on the way; most are.

**Residues.** The contour may pass poles: 1/(1 + e^S) = e^{-S} - e^{-S}/(1 + e^S), so a saddle point t between 1 and 2
is served by E[e^{-S}] less a small integral; with t < 0, the outcomes change places (h, offset and t change signs).

Cost: N times the number of points, some (range of S + 40/distance to a pole)·√N of them before dropping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.errors import InputError, InputTypeError, check_number, check_whole

__all__ = ["two_outcome_log_laws"]

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_ROUNDING = 2.0**-53
_TAIL = 43.0  # tails are cut where their bound is e^-43, 2e-19
_HIGHEST_FREQUENCY = 13.5  # the kernel is below 2π·e^(-π·13.5), 2e-18, beyond
_NEGLIGIBLE = 1e-21
_SMALLEST_FACTOR = 1e-150
_FARTHEST = 2.0  # saddle points are sought between -2 and 2; beyond, two terms of the series in e^-S are enough
_REDO_ABOVE = 1e-10  # error estimate (at up to 1000 records) above which a record gets a tilt of its own
_CHUNK = 2**16
_MOST_WORK = 10**11  # points times records, before dropping: some ten minutes


def two_outcome_log_laws(
    h: ArrayLike, offset: float, k: int, records: Iterable[int] | None = None
) -> tuple[Array, Array]:
    """Return the logarithms of both outcomes' laws with and without each record, and their errors.

    Claim: with P(outcome 0 | D) = 1/(1 + e^S), S = offset + Σ_{i∈D} h_i, and D uniform among the k-subsets of the N
    records, row x holds ln P(0 | x ∈ D), ln P(0 | x ∉ D), ln P(1 | x ∈ D), ln P(1 | x ∉ D). Source: exponential
    tilting and Fourier inversion (module docstring). Cost grows like N^1.5 to N^2 times the range of S: under a second
    for N = 400 and some seconds for N = 2000 with |h| around 1.

    Parameters
    ----------
    h : array of shape (N,)
        What each record adds to S.
    offset : float
        S of the empty set.
    k : int
        Size of the subsets, from 1 to N-1.
    records : iterable of int, optional
        Records to answer for; all by default. The rows of the result follow its order.

    Returns
    -------
    log_laws : ndarray of shape (records, 4)
    errors : ndarray of shape (records, 4)
        Estimated absolute error of each logarithm, meant to be exceeded by none: bounds on both truncations, and the
        rounding error of every term, taken as if all errors had the same sign. Usually below 1e-11. It grows, up to
        inf, where the sums S come in clusters far apart compared with 1 (single records with |h| in the hundreds) and
        the mass lies on one side of a wide gap; then ask ``subset_laws``, if N allows.
    """
    steps, offset, k, chosen = _check(h, offset, k, records)
    values, first_of, back = np.unique(steps[chosen], return_index=True, return_inverse=True)
    representatives = chosen[first_of]  # records with equal h have equal laws
    logs = np.empty((len(values), 4))
    errors = np.empty((len(values), 4))
    together = _means(steps, offset, k, representatives)
    logs[:, 0::2], errors[:, 0::2] = together.inside
    logs[:, 1::2], errors[:, 1::2] = together.outside
    # A tilt of one's own helps against a poor tilt, not against the rounding of large numbers.
    rounding = 20.0 * _ROUNDING * (abs(offset) + float(np.abs(steps).sum()))
    redo = ~(errors <= _REDO_ABOVE * max(1.0, len(steps) / 1000.0) + rounding)
    for row in np.flatnonzero(redo.any(axis=1)):
        others = np.delete(steps, representatives[row])
        for side, (start, size) in enumerate(((offset + float(values[row]), k - 1), (offset, k))):
            if redo[row, side::2].any():
                again, error = _means(others, start, size, None).everyone
                better = ~(errors[row, side::2] <= error)
                logs[row, side::2] = np.where(better, again, logs[row, side::2])
                errors[row, side::2] = np.where(better, error, errors[row, side::2])
    return logs[back.reshape(-1)], errors[back.reshape(-1)]


def _check(
    h: ArrayLike, offset: float, k: int, records: Iterable[int] | None
) -> tuple[Array, float, int, NDArray[np.intp]]:
    try:
        steps = np.array(h, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"h takes a list of numbers, got {h!r}") from None
    if steps.ndim != 1 or len(steps) < 2:
        raise InputError(f"h takes one number for each of at least two records, got shape {steps.shape}")
    if not np.isfinite(steps).all():
        record = int(np.flatnonzero(~np.isfinite(steps))[0])
        raise InputError(f"h takes finite numbers, got {steps[record]} for record {record}")
    offset = check_number("offset", offset, open_low=True, open_high=True)
    k = check_whole("k", k)
    n_records = len(steps)
    if not 1 <= k <= n_records - 1:
        missing = "without" if k else "with"
        raise InputError(
            f"k takes a whole number from 1 to {n_records - 1} for {n_records} records, got {k}: "
            f"there would be no subset {missing} a given record"
        )
    if records is None:
        return steps, offset, k, np.arange(n_records)
    chosen = [check_whole("records", record, high=n_records - 1) for record in records]
    return steps, offset, k, np.array(chosen, dtype=np.intp)


# ---------------------------------------------------------------------------------------------------------------------
# From sums to laws


@dataclass(frozen=True)
class _Means:
    """ln P(outcome 0), ln P(outcome 1) in columns, with their errors: a pair of arrays for each kind of mean."""

    inside: tuple[Array, Array]
    outside: tuple[Array, Array]
    everyone: tuple[Array, Array]


def _means(steps: Array, offset: float, k: int, records: NDArray[np.intp] | None) -> _Means:
    """Means over the k-subsets with and without each of the records, or (records None) over all k-subsets."""
    if k in (0, len(steps)):  # one subset
        total = math.fsum(steps) if k else 0.0
        only = _sigmoid_logs(np.array([offset + total]), abs(offset) + abs(total))
        return _Means(only, only, (only[0][0], only[1][0]))
    tilt = _saddle_point(steps, offset, k)
    mirrored = tilt < 0.0
    if mirrored:
        steps, offset, tilt = -steps, -offset, -tilt
    law = _Tilted.at(steps, offset, k, tilt)
    # Keep a distance to the poles at 0, 1 and 2 that costs a factor of about e^2 in the sum, one digit, at the most.
    nearest = min(0.25, 2.0 / max(law.deviation, 1e-300))
    if abs(tilt - 1.0) < nearest:
        tilt = 1.0 - nearest
    tilt = min(max(tilt, nearest), _FARTHEST - nearest)
    law = _Tilted.at(steps, offset, k, tilt)
    if tilt < 1.0:
        logs, errors = law.integral(records, 0)
    else:
        moments, moment_errors = _Tilted.at(steps, offset, k, 1.0).moment(records)
        upper, _ = law.moment(records)
        with np.errstate(invalid="ignore", over="ignore"):
            most = np.exp(upper - moments)
        if (most < math.exp(-_TAIL)).all():  # e^{-S}/(1 + e^S) ≤ e^{-tS}
            shares, share_errors = np.zeros_like(moments), most
        else:
            rest, rest_errors = law.integral(records, 1)
            with np.errstate(invalid="ignore", over="ignore"):
                shares = np.exp(rest - moments)
                share_errors = shares * np.expm1(np.minimum(rest_errors + moment_errors, 700.0))
        logs, errors = _less(moments, moment_errors, shares, share_errors)
    with np.errstate(invalid="ignore", over="ignore"):
        shares = np.exp(logs)
        share_errors = shares * np.expm1(np.minimum(errors, 700.0))
    zeros = np.zeros_like(logs)
    other, other_errors = _less(zeros, zeros, shares, share_errors)
    order = [1, 0] if mirrored else [0, 1]
    both = np.stack([logs, other], axis=-1)[..., order]
    both_errors = np.stack([errors, other_errors], axis=-1)[..., order]
    if records is None:
        pair = both[0], both_errors[0]
        return _Means(pair, pair, pair)
    inside, outside = (both[:, 0], both_errors[:, 0]), (both[:, 1], both_errors[:, 1])
    sign = -1.0 if mirrored else 1.0
    total, largest = math.fsum(steps), float(np.abs(steps).max())
    if k == 1:
        inside = _sigmoid_logs(sign * (offset + steps[records]), abs(offset) + largest)
    if k == len(steps) - 1:
        outside = _sigmoid_logs(sign * (offset + (total - steps[records])), abs(offset) + abs(total) + largest)
    return _Means(inside, outside, inside)


def _less(logs: Array, errors: Array, shares: Array, share_errors: Array) -> tuple[Array, Array]:
    """ln(e^logs·(1 - shares)) and its error; inf where the share may be 1."""
    left = 1.0 - shares
    with np.errstate(invalid="ignore", divide="ignore"):
        result = logs + np.log1p(-np.minimum(shares, 1.0))
        relative = (share_errors + 2.0 * _ROUNDING) / left
        lost = ~(left > 0.0) | ~(relative < 0.5)
        error = np.where(lost, np.inf, errors - np.log1p(-np.where(lost, 0.0, relative)))
    return result, error + 2.0 * _ROUNDING * np.where(np.isfinite(result), np.abs(result), 0.0)


def _sigmoid_logs(sums: Array, size: float) -> tuple[Array, Array]:
    """-ln(1 + e^S) and -ln(1 + e^-S) in columns, with their errors; ``size`` is that of the terms of S."""
    logs = np.stack([-np.logaddexp(0.0, sums), -np.logaddexp(0.0, -sums)], axis=-1)
    return logs, 8.0 * _ROUNDING * (1.0 + size + np.abs(sums))[:, None] * np.ones(2)


# ---------------------------------------------------------------------------------------------------------------------
# The tilted law


def _inclusion(steps: Array, k: int, tilt: float) -> tuple[float, Array, Array]:
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


def _saddle_point(steps: Array, offset: float, k: int) -> float:
    """The t in [-2, 2] at which E[S] = 0, or the end nearer to it; E[S] falls as t grows."""

    def mean(tilt: float) -> float:
        return offset + float(_inclusion(steps, k, tilt)[1] @ steps)

    low, high = -_FARTHEST, _FARTHEST
    if mean(low) <= 0.0:
        return low
    if mean(high) >= 0.0:
        return high
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if mean(middle) > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@dataclass(frozen=True)
class _Tilted:
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
    def at(cls, steps: Array, offset: float, k: int, tilt: float) -> _Tilted:
        """Solve for the level; subtract from every step what changes S by a constant on the k-subsets."""
        _, inside, outside = _inclusion(steps, k, tilt)
        spread = inside * outside
        weight = float(spread.sum())
        centre = float(spread @ steps) / weight if weight > 1e-200 else float(np.median(steps))
        centred = steps - centre
        rounding = 2.0 * _ROUNDING * (abs(offset) + 2.0 * k * abs(centre) + float(np.abs(centred).sum()))
        offset = offset + k * centre
        level, inside, outside = _inclusion(centred, k, tilt)
        deviation = math.sqrt(float((inside * outside) @ centred**2))
        mean = offset + float(inside @ centred)
        return cls(centred, offset, k, tilt, level, inside, outside, deviation, mean, rounding)

    def moment(self, records: NDArray[np.intp] | None) -> tuple[Array, Array]:
        """ln of the mean of e^{-tS}, columns inside and outside (or one entry for all k-subsets), and errors."""
        angles, weights = self._angles()
        points = _Points(np.zeros(1), angles, np.zeros(len(angles), np.intp), np.arange(len(angles)), weights)
        return self._finish(self._multiply(points), records, 2.0 * math.exp(-_TAIL))

    def integral(self, records: NDArray[np.intp] | None, pole: int) -> tuple[Array, Array]:
        """ln of the mean of e^{-pole·S}/(1 + e^S), for a tilt between pole and pole + 1, and errors."""
        position = self.tilt - pole
        distance = min(position, 1.0 - position)
        largest = float(np.abs(self.steps).max())
        extremes = float(np.abs(self.steps).sum())
        reach = abs(self.mean) + largest + min(_bernstein(self.deviation**2, largest), 2.0 * extremes)
        period = reach + _TAIL / distance
        step = 2.0 * math.pi / period
        n_frequencies = int(_HIGHEST_FREQUENCY / step) + 2
        angles, angle_weights = self._angles()
        if n_frequencies * len(angles) * len(self.steps) > _MOST_WORK:
            raise InputError(
                f"h takes sums that spread over less: {len(self.steps)} records with |h| up to {largest:.3g} would "
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
        truncation = math.exp(-math.pi * _HIGHEST_FREQUENCY) + (3.0 * repeats + 2.0) * math.exp(-_TAIL)
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

    def _finish(self, points: _Points, records: NDArray[np.intp] | None, truncation: float) -> tuple[Array, Array]:
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
        constant_error = 4.0 * _ROUNDING * logs_size + (1.0 + self.tilt) * self.rounding
        if records is None:
            everyone = np.array([float(points.values.real.sum())])
            error = np.array([_ROUNDING * float(sizes @ trouble) + truncation])
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
            errors[row] = _ROUNDING * float((sizes / size) @ (trouble + 4.0 / size)) + truncation
            constant = log_product - float(odds[record]) + shift
            constants[row, 0] = constant + inside_constant - self.tilt * float(self.steps[record])
            constants[row, 1] = constant + outside_constant
        return _log_with_error(values, errors, constants, constant_error)


@dataclass
class _Points:
    """Points (ω, θ) as indices into grids, a complex value at each, and the sum of 1/|factor| that went into it."""

    frequencies: Array
    angles: Array
    at_frequency: NDArray[np.intp]
    at_angle: NDArray[np.intp]
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

    def only(self, keep: NDArray[np.bool_]) -> _Points:
        """The points to keep."""
        points = _Points(self.frequencies, self.angles, self.at_frequency[keep], self.at_angle[keep], self.values[keep])
        points.roughness = self.roughness[keep]
        return points


def _bernstein(variance: float, largest: float) -> float:
    """x with P(|sum - mean| ≥ x) ≤ 2e^-43 for independent terms of which none strays by more than ``largest``."""
    linear = largest * _TAIL / 3.0
    return linear + math.sqrt(linear**2 + 2.0 * _TAIL * variance)


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
