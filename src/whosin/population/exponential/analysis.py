"""The exponential mechanism on a pool of records (Lowy et al. 2024, propositions 9 and 5, corrected).

The mechanism chooses candidate w with probability proportional to exp(-λ·mean loss of w over D), λ = ε/(2Δ). Four
numbers describe it, from the most to the least cautious:

* the label ε = 2λΔ, Δ the largest change of a candidate's mean loss by replacing one record;
* the worst case by the range: replacing x by x' moves all log probabilities by at most the *range* over candidates of
  their logit changes, for the normaliser takes out what they have in common. For distances that is
  2λ·(largest distance between candidates)/k, whatever the clipping;
* ε(X), the largest log ratio over adjacent data sets of this pool;
* ε̃, the largest |ln P(w | x in)/P(w | x out)| for somebody who knows the pool only: both directions count.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import (
    InputError,
    InputTypeError,
    check_callable,
    check_choice,
    check_confidence,
    check_number,
    check_probability,
)
from whosin.guarantees import PMP, PureDP
from whosin.numerics.finite_laws import closeness_epsilons
from whosin.parallel.threads import Progress
from whosin.population.equals import epsilons_among_equals
from whosin.population.exponential.adjacent import adjacent_epsilon, range_bound
from whosin.population.exponential.exact import estimate_seconds, subset_count, subset_laws
from whosin.population.exponential.monte_carlo import certify
from whosin.population.exponential.two_outcomes import two_outcome_log_laws
from whosin.population.pool import clipped, totals, train_size
from whosin.population.result import PopulationPrivacy
from whosin.tables import numeric_records

MOST_SUBSETS = 2 * 10**11
AUTO_SUBSETS = 2 * 10**8
METHODS = ("auto", "exact", "two_outcomes", "monte_carlo")
LOSSES = ("distance", "squared", "quantile")


def exponential(
    records: Any,
    candidates: Any,
    *,
    epsilon: float,
    clip: float,
    delta: float = 0.0,
    loss: str | Array = "distance",
    quantile: float | None = None,
    sensitivity: float | None = None,
    person: Any = None,
    train_fraction: float = 0.5,
    method: str = "auto",
    confidence_level: float = 0.95,
    draws: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    rng: Any = None,
) -> PopulationPrivacy:
    """Return what the ε-DP exponential mechanism tells somebody who knows the pool about each record.

    Parameters
    ----------
    records : array-like or data frame
        The pool, one row per record; rows are clipped to an ℓ2 norm of ``clip``.
    candidates : array-like
        The possible outputs, one row each, in the same columns.
    epsilon : float
        The labelled guarantee, which sets λ = ε/(2Δ).
    clip : float
        Largest norm of a record.
    delta : float, default 0
        δ of the practical guarantee.
    loss : {"distance", "squared", "quantile"} or matrix, default "distance"
        Euclidean distance (the geometric median of the paper, in one column the median), its square, the check loss of
        ``quantile`` in one column (candidates are then the places of a grid), or the losses themselves, one row per
        record and one column for each candidate; then ``sensitivity`` is needed.
    quantile : float, optional
        With ``loss="quantile"``: which one, from 0 to 1.
    sensitivity : float, optional
        Largest change of a candidate's mean loss by replacing one record, computed for the named losses unless given.
        One that the records at hand contradict is refused.
    person : array-like, optional
        Whose record each row is, a person's or a household's name: whole persons are drawn, a person's loss is the mean
        of the losses of its rows, and ``per_record`` has one ε̃ per person in the order of their first rows.
    train_fraction : float, default 0.5
        Share of the pool that is drawn.
    method : {"auto", "exact", "two_outcomes", "monte_carlo"}, default "auto"
        "exact" enumerates all data sets (meet in the middle; up to 20 of 40 records); "two_outcomes" is exact for two
        distinct candidates and hundreds of records; "monte_carlo" certifies an upper limit for any size with
        ``confidence_level``. "auto" takes the best that is quick.
    confidence_level : float, default 0.95
        Probability that the limit of "monte_carlo" holds.
    draws : int, optional
        Data sets that "monte_carlo" draws; by default as many as a pilot says are worth their while, at most about a
        minute of one core.
    journal : path, optional
        File that keeps the finished parts of a long run, exact or "monte_carlo", which resumes from it if it was
        interrupted. A simulated one needs ``rng``, the same in both runs.
    n_jobs : int, optional
        Processes or threads, -1 for all cores; one by default.
    progress : callable, optional
        Called with the finished share of the work, rising to 1.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes, for "monte_carlo".

    Returns
    -------
    PopulationPrivacy

    Notes
    -----
    Cost: exact O(C(N, k)·candidates) at a few nanoseconds a data set; Monte Carlo O(draws·N·candidates).

    Examples
    --------
    Twelve people of whom six are drawn, and the better one of two places for a post box:

    >>> import numpy as np, whosin as wi
    >>> homes = np.linspace(-1, 1, 12)
    >>> found = wi.population.exponential(homes, [[-0.5], [0.5]], epsilon=2.0, clip=1.0)
    >>> found.method, round(found.pmp.epsilon, 3)
    ('exact', 0.305)
    """
    epsilon = check_number("epsilon", epsilon, low=0.0, open_high=True)
    delta, _ = check_probability("delta", delta), check_confidence(confidence_level)
    if progress is not None:
        check_callable("progress", progress)
    pool = clipped(records, clip)
    rows = np.ones(len(pool)) if person is None else totals(np.ones(len(pool)), person)
    k = train_size(len(rows), train_fraction)
    options = numeric_records(candidates, "candidates", at_least=1)
    with np.errstate(over="ignore", invalid="ignore"):
        losses, change, spread = _losses(pool, options, clip, loss, quantile, sensitivity, k)
        losses = losses if person is None else totals(losses, person) / rows[:, None]
    if not (np.isfinite(losses).all() and np.isfinite([change, spread]).all()):
        raise InputError("records, candidates and clip must be numbers whose losses are finite, got larger ones")
    scale = epsilon / (2.0 * change) if change > 0.0 else 0.0
    logits = scale * losses / k
    chosen = _choose(method, logits, k)
    per_record, lower = _solve(chosen, logits, k, delta, confidence_level, draws, journal, n_jobs, progress, rng)
    on_records = adjacent_epsilon(logits, k)
    notes = (
        ()
        if on_records[0] == on_records[1]
        else (f"ε(X) lies between {on_records[0]:.6g} and {on_records[1]:.6g}; the upper end is shown",)
    )
    return PopulationPrivacy(
        mechanism="exponential",
        pmp=PMP(float(per_record.max()), delta, k / len(rows)),
        dp=PureDP(epsilon, "replace"),
        dp_at_most=PureDP(min(epsilon, scale * spread / k), "replace"),
        dp_on_records=PureDP(min(epsilon, on_records[1]), "replace"),
        per_record=per_record,
        per_record_lower=lower,
        sensitivity=change,
        noise_scale=scale,
        method=chosen,
        confidence_level=confidence_level if chosen == "monte_carlo" else None,
        records=len(rows),
        train_size=k,
        notes=notes,
    )


def _losses(
    pool: Array,
    options: Array,
    clip: float,
    loss: str | Array,
    quantile: float | None,
    sensitivity: float | None,
    k: int,
) -> tuple[Array, float, float]:
    """Losses of each record, the sensitivity of their mean, and the largest range of a logit change (times k/λ)."""
    if (quantile is not None) != (isinstance(loss, str) and loss == "quantile"):
        raise InputTypeError("quantile goes with loss='quantile', and loss='quantile' with quantile")
    if not isinstance(loss, str):
        matrix = numeric_records(loss, "loss")
        if matrix.shape != (len(pool), len(options)):
            raise InputError(
                f"loss must be a matrix of {len(pool)} records × {len(options)} candidates, got {matrix.shape}"
            )
        if sensitivity is None:
            raise InputTypeError("sensitivity is needed with a matrix of losses: it cannot be read off one pool")
        change = _checked_sensitivity(sensitivity, matrix, k)
        return matrix, change, 2.0 * change * k
    if options.shape[1] != pool.shape[1]:
        raise InputError(f"candidates must have {pool.shape[1]} columns like the records, got {options.shape[1]}")
    power = 2.0 if check_choice("loss", loss, LOSSES) == "squared" else 1.0
    if quantile is not None:
        losses, largest, spread = _check_losses(pool, options, clip, check_probability("quantile", quantile))
        change = largest / k if sensitivity is None else _checked_sensitivity(sensitivity, losses, k)
        return losses, change, spread
    distances = np.sqrt(np.maximum(0.0, _squared_distances(pool, options)))
    norms = np.linalg.norm(options, axis=1)
    largest = np.max((clip + norms) ** power - np.maximum(0.0, norms - clip) ** power)
    losses = distances**power
    change = float(largest) / k if sensitivity is None else _checked_sensitivity(sensitivity, losses, k)
    diameter = float(np.sqrt(np.max(_squared_distances(options, options))))
    spread = 2.0 * diameter if power == 1.0 else 4.0 * clip * diameter
    return losses, change, spread


def _check_losses(pool: Array, places: Array, clip: float, level: float) -> tuple[Array, float, float]:
    """Losses q·(x - w)₊ + (1 - q)·(w - x)₊, their largest change by x in [-clip, clip], and the range of such a change.

    In w the loss has slopes between -q and 1 - q, so the difference of two candidates' losses changes by no more than
    their distance.
    """
    if places.shape[1] != 1:
        raise InputError(f"loss='quantile' needs one column, got {places.shape[1]}")

    def loss(x: Array) -> Array:
        return np.asarray(np.maximum(level * (x - places[:, 0]), (level - 1.0) * (x - places[:, 0])))

    ends, nearest = loss(np.array([[-clip], [clip]])), loss(np.clip(places[:, 0], -clip, clip))
    return loss(pool), float(np.max(ends - nearest)), float(np.ptp(places))


def _checked_sensitivity(sensitivity: float, losses: Array, k: int) -> float:
    """Return the sensitivity if no two records of the pool contradict it."""
    change = check_number("sensitivity", sensitivity, low=0.0, open_high=True)
    shown = float(np.ptp(losses, axis=0).max()) / k
    if change < shown * (1.0 - 1e-12):
        raise InputError(
            f"sensitivity must be at least {shown:.6g}, by which replacing a record of this pool changes the mean loss "
            f"of a candidate, got {sensitivity!r}"
        )
    return change


def _squared_distances(a: Array, b: Array) -> Array:
    """One row for each of ``a`` and one column for each of ``b``; memory for one column of differences at a time."""
    return np.column_stack([((a - row) ** 2).sum(axis=1) for row in b])


def _choose(method: str, logits: Array, k: int) -> str:
    check_choice("method", method, METHODS)
    count, two = subset_count(len(logits), k), len(np.unique(logits, axis=1).T) <= 2
    if method == "exact" and count > MOST_SUBSETS:
        raise InputError(
            f"method='exact' allows at most {MOST_SUBSETS:.0e} data sets, got {count:.3g} (about "
            f"{estimate_seconds(len(logits), k, logits.shape[1]) / 3600:.3g} hours); use method='monte_carlo'"
        )
    if method == "two_outcomes" and not two:
        raise InputError(
            "method='two_outcomes' needs candidates with at most two distinct losses; use 'exact' or 'monte_carlo'"
        )
    if method != "auto":
        return method
    if count <= AUTO_SUBSETS:
        return "exact"
    return "two_outcomes" if two and len(logits) <= 1000 else "monte_carlo"


def _solve(
    method: str,
    logits: Array,
    k: int,
    delta: float,
    confidence_level: float,
    draws: int | None,
    journal: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: Progress | None,
    rng: Any,
) -> tuple[Array, Array | None]:
    """Upper limits on each record's ε̃, and lower ones where known."""
    if method == "monte_carlo":
        certificate = certify(
            logits,
            k,
            delta=delta,
            confidence_level=confidence_level,
            draws=draws,
            rng=rng,
            n_jobs=n_jobs,
            progress=progress,
            journal=journal,
        )
        return np.minimum(certificate.per_record, epsilons_among_equals(logits, k, delta)), None
    if method == "exact":
        laws = subset_laws(logits, k, n_jobs=n_jobs, progress=progress, journal=journal)
        lower, upper = _limits(laws.log_inside, laws.log_outside, np.full(len(logits), laws.error), delta)
    else:
        log_laws, errors = two_outcome_log_laws(*_two_outcomes(logits), k)
        lower, upper = _limits(log_laws[:, 0::2], log_laws[:, 1::2], errors.max(axis=1), delta)
        if progress is not None:
            progress(1.0)
    ranges = range_bound(logits)[1] * (1.0 + 1e-12) + 1e-15 * np.ptp(logits, axis=1).max()
    return np.minimum(upper, ranges), lower


def _two_outcomes(logits: Array) -> tuple[Array, float]:
    """Difference of the two distinct columns, and the log of how often each stands."""
    distinct, counts = np.unique(logits, axis=1, return_counts=True)
    if distinct.shape[1] == 1:
        return np.zeros(len(logits)), 0.0
    return distinct[:, 0] - distinct[:, 1], math.log(counts[1] / counts[0])


def _limits(log_inside: Array, log_outside: Array, errors: Array, delta: float) -> tuple[Array, Array]:
    """Lower and upper limits on each record's ε̃ from logarithms of its two laws, each off by up to the record's error.

    The divergence rises with one law and falls with the other, so both are moved by the error and by the rounding of
    the sums: with δ > 0 a small error of a law may be a large one of ε̃. Where nothing is known, from 0 to infinity.
    """
    margin = (errors + 4e-14 + log_inside.shape[1] * 2.0**-51)[:, None]
    known = np.isfinite(margin[:, 0])
    lower, upper = np.zeros(len(errors)), np.full(len(errors), np.inf)
    inside, outside, margin = log_inside[known], log_outside[known], margin[known]
    if delta == 0.0:
        value = np.abs(inside - outside).max(axis=1)
        lower[known] = np.maximum(0.0, value - 2.0 * margin[:, 0])
        upper[known] = value + 2.0 * margin[:, 0]
    else:
        rounding = (2 + log_inside.shape[1]) * 2.0**-51
        lower[known] = _epsilons(inside, outside, -margin, delta) * (1.0 - rounding)
        upper[known] = _epsilons(inside, outside, margin, delta) * (1.0 + rounding)
    return lower, upper


def _epsilons(log_inside: Array, log_outside: Array, margin: Array, delta: float) -> Array:
    """The larger of both directions, with the first law raised and the second lowered by the margin."""
    both = np.maximum(
        *(
            closeness_epsilons(first + margin, second - margin, delta)
            for first, second in ((log_inside, log_outside), (log_outside, log_inside))
        )
    )
    return np.asarray(np.maximum(both, 0.0))
