"""Exact laws of a mechanism with two outcomes over all k-subsets of N records, in polynomial time.

Outcome 0 is published with probability 1/(1 + e^S), S = offset + Σ_{i∈D} h_i, outcome 1 with the rest. Wanted are the
means over the k-subsets D with a record x, and over those without it, also where they are as small as e^-100 or less.
Enumeration ends near N = 40; this goes on to thousands. (The exponential mechanism with two distinct candidates: h_i
is the difference of record i's two logits, and offset = ln(c₁/c₀) if the candidates occur c₀ and c₁ times.)

The probability is a function of the sum S, and ``tilted_subsets`` has the means of such functions: tilted so that S is
about 0 in the mean (the saddle point), what is left to compute is not small.

**Residues.** The contour may pass poles: 1/(1 + e^S) = e^{-S} - e^{-S}/(1 + e^S), so a saddle point t between 1 and 2
is served by E[e^{-S}] less a small integral; with t < 0, the outcomes change places (h, offset and t change signs).

Cost: N times the number of points, some (range of S + 40/distance to a pole)·√N of them before dropping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array, Index
from whosin.errors import InputError, InputTypeError, check_number, check_whole
from whosin.population.exponential.tilted_subsets import ROUNDING, TAIL, Tilted, inclusion

_FARTHEST = 2.0  # saddle points are sought between -2 and 2; beyond, two terms of the series in e^-S are enough
_REDO_ABOVE = 1e-10  # error estimate (at up to 1000 records) above which a record gets a tilt of its own


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
    rounding = 20.0 * ROUNDING * (abs(offset) + float(np.abs(steps).sum()))
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


def _check(h: ArrayLike, offset: float, k: int, records: Iterable[int] | None) -> tuple[Array, float, int, Index]:
    try:
        steps = np.array(h, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"h must be a list of numbers, got {h!r}") from None
    if steps.ndim != 1 or len(steps) < 2:
        raise InputError(f"h must have one number for each of at least two records, got shape {steps.shape}")
    if not np.isfinite(steps).all():
        record = int(np.flatnonzero(~np.isfinite(steps))[0])
        raise InputError(f"h must be finite numbers, got {steps[record]} for record {record}")
    offset = check_number("offset", offset, open_low=True, open_high=True)
    k = check_whole("k", k)
    n_records = len(steps)
    if not 1 <= k <= n_records - 1:
        missing = "without" if k else "with"
        raise InputError(
            f"k must be a whole number from 1 to {n_records - 1} for {n_records} records, got {k}: "
            f"there would be no subset {missing} a given record"
        )
    if records is None:
        return steps, offset, k, np.arange(n_records)
    chosen = [check_whole("records", record, high=n_records - 1) for record in records]
    return steps, offset, k, np.array(chosen, dtype=np.intp)


@dataclass(frozen=True)
class _Means:
    """ln P(outcome 0), ln P(outcome 1) in columns, with their errors: a pair of arrays for each kind of mean."""

    inside: tuple[Array, Array]
    outside: tuple[Array, Array]
    everyone: tuple[Array, Array]


def _means(steps: Array, offset: float, k: int, records: Index | None) -> _Means:
    """Means over the k-subsets with and without each of the records, or (records None) over all k-subsets."""
    if k in (0, len(steps)):  # one subset
        total = math.fsum(steps) if k else 0.0
        only = _sigmoid_logs(np.array([offset + total]), abs(offset) + abs(total))
        return _Means(only, only, (only[0][0], only[1][0]))
    tilt = _saddle_point(steps, offset, k)
    mirrored = tilt < 0.0
    if mirrored:
        steps, offset, tilt = -steps, -offset, -tilt
    law = Tilted.at(steps, offset, k, tilt)
    # Keep a distance to the poles at 0, 1 and 2 that costs a factor of about e^2 in the sum, one digit, at the most.
    nearest = min(0.25, 2.0 / max(law.deviation, 1e-300))
    if abs(tilt - 1.0) < nearest:
        tilt = 1.0 - nearest
    tilt = min(max(tilt, nearest), _FARTHEST - nearest)
    law = Tilted.at(steps, offset, k, tilt)
    if tilt < 1.0:
        logs, errors = law.integral(records, 0)
    else:
        moments, moment_errors = Tilted.at(steps, offset, k, 1.0).moment(records)
        upper, _ = law.moment(records)
        with np.errstate(invalid="ignore", over="ignore"):
            most = np.exp(upper - moments)
        if (most < math.exp(-TAIL)).all():  # e^{-S}/(1 + e^S) ≤ e^{-tS}
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
        relative = (share_errors + 2.0 * ROUNDING) / left
        lost = ~(left > 0.0) | ~(relative < 0.5)
        error = np.where(lost, np.inf, errors - np.log1p(-np.where(lost, 0.0, relative)))
    return result, error + 2.0 * ROUNDING * np.where(np.isfinite(result), np.abs(result), 0.0)


def _sigmoid_logs(sums: Array, size: float) -> tuple[Array, Array]:
    """-ln(1 + e^S) and -ln(1 + e^-S) in columns, with their errors; ``size`` is that of the terms of S."""
    logs = np.stack([-np.logaddexp(0.0, sums), -np.logaddexp(0.0, -sums)], axis=-1)
    return logs, 8.0 * ROUNDING * (1.0 + size + np.abs(sums))[:, None] * np.ones(2)


def _saddle_point(steps: Array, offset: float, k: int) -> float:
    """The t in [-2, 2] at which E[S] = 0, or the end nearer to it; E[S] falls as t grows."""

    def mean(tilt: float) -> float:
        return offset + float(inclusion(steps, k, tilt)[1] @ steps)

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
