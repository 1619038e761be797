"""Gaussian and Laplace noise on a sum over a pool of records (Lowy et al. 2024, proposition 12, and beyond).

The release is Σ_{x in D} f(x) + noise with |D| = k. Replacing x by x' moves it by f(x) - f(x'), so by the adjacent
coupling the laws given in and given out of a record x are, on average over x' ≠ x, no further apart than the noise and
the noise moved by that much: the pairwise bound. The exact answer for one column is the spectral one; for several
columns groups of data sets are compared instead of single ones.

Several noisy sums of one draw are one noisy sum: write the contributions side by side, each in units of its own noise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
from whosin.guarantees import PMP, ApproxDP, PureDP
from whosin.numerics.gaussian_noise import epsilon_for, laplace_epsilon_for, noise_for
from whosin.population.equals import epsilons_among_equals
from whosin.population.pool import clipped, flattened, totals, train_size, widest_distance
from whosin.population.result import PopulationPrivacy
from whosin.population.sums.groups import group_epsilons
from whosin.population.sums.most_exposed import exact_largest
from whosin.population.sums.normal import normal_epsilons
from whosin.population.sums.pairwise import in_units, pairwise_epsilons
from whosin.population.sums.partners import partner_chances
from whosin.population.sums.spectral import ENUMERATED, SubsetSumLaws
from whosin.tables import numeric_records

Query = str | Callable[[Array], Any]
Numbers = float | Sequence[float]

METHODS = ("auto", "pairwise", "exact", "normal", "groups")
EXACT_RECORDS = 400
"""Largest pool in which "auto" solves every record exactly; in a larger one those that may be the most exposed."""
PAIRS_RECORDS = 20_000
"""Largest pool whose pairs are compared where the normal bound is finite."""
EXACT_SETS = 2**14
"""Largest number of data sets that "auto" lists for Laplace noise and δ = 0."""
GROUP_RECORDS = 300
"""Largest pool for which "auto" samples groups where the normal bound shows nothing."""


def gaussian(
    records: Any,
    *,
    epsilon: Numbers,
    delta: float,
    clip: Numbers | None = None,
    query: Query | Sequence[Query] = "mean",
    person: Any = None,
    chances: Any = None,
    train_fraction: float = 0.5,
    method: str = "auto",
    confidence_level: float = 0.95,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
    rng: Any = None,
) -> PopulationPrivacy:
    """Return what an (ε, δ)-DP Gaussian release tells somebody who knows the pool about each record.

    Parameters
    ----------
    records : array-like or data frame
        The pool, one row per record.
    epsilon, delta : float
        The labelled guarantee (replace-one); δ > 0. It sets the noise, by the analytic calibration of Balle and Wang.
        With several queries one ε labels all of them together, and they share it evenly; a list labels each of them,
        and the result states what they add up to at this δ.
    clip : float or list of float, optional
        Largest ℓ2 norm of a record's contribution; longer ones are scaled down. One for each query if they are several.
        Not needed for queries that know it: :class:`Histogram` and :class:`RegressionMoments`.
    query : {"mean", "sum"} or callable, or a list of them, default "mean"
        What is released: the mean or the sum of the clipped rows; or a function from the matrix of records to a
        matrix of contributions, one row per record, which are clipped and averaged, such as :class:`Histogram` (also
        contingency tables) or :class:`RegressionMoments`. A list: all of them, of the same drawn records, each with
        noise of its own.
    person : array-like, optional
        Whose record each row is, a person's or a household's name: whole persons are drawn, each contributes the sum of
        its rows, ``clip`` limits that sum, "mean" divides by the number of persons drawn, and ``per_record`` has one ε̃
        per person in the order of their first rows. One row is one person if not given.
    chances : array-like, optional
        Chance of each record (or person) to come by itself, if they are not all equal: the data set is what came given
        that so many came. "pairwise" is the only method then, up to 2,000 records, and ``pmp`` says that the draw is
        not uniform.
    train_fraction : float, default 0.5
        Share of the pool that is drawn.
    method : {"auto", "pairwise", "exact", "normal", "groups"}, default "auto"
        "pairwise" is the paper's bound, O(N²). "exact" is spectral, for contributions along one line. "normal" is the
        smallest of pairwise, a proved normal approximation in any number of columns, and what equal records hide
        (:mod:`whosin.population.equals`), which is sharp for histograms. "groups" is a sampled bound for
        any number of columns that holds with ``confidence_level``. "auto" takes the best that is quick and says which:
        along one line ε̃ of the pool is exact, by solving those records exactly that may be the most exposed;
        otherwise it is "normal", or "groups" in small pools where "normal" shows nothing.
    confidence_level : float, default 0.95
        Probability that the limit of "groups" holds.
    journal : path, optional
        File that keeps the finished draws of "groups", which resumes from it with the same ``rng`` if it was
        interrupted. The other methods have nothing to keep.
    n_jobs : int, optional
        Processes for the draws, -1 for all cores; None means one.
    progress : callable, optional
        Called with the finished share of the work, rising to 1.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes, for "groups".

    Returns
    -------
    PopulationPrivacy
        With ε̃ at the same δ as the label.

    Examples
    --------
    What ε = 2 means for the mean of forty numbers, to somebody who knows all forty and not which twenty were drawn:

    >>> import numpy as np, whosin as wi
    >>> found = wi.population.gaussian(np.linspace(-1, 1, 40), epsilon=2.0, delta=1e-3, clip=1.0)
    >>> round(found.dp.accuracy(), 3), round(found.pmp.accuracy(), 3)
    (0.881, 0.677)

    The mean age and the mean income of the same drawn half, ε = 4 for both together:

    >>> people = np.column_stack([np.linspace(20, 80, 100), np.linspace(1, 9, 100) ** 2])
    >>> queries = [lambda rows: rows[:, :1], lambda rows: rows[:, 1:]]
    >>> both = wi.population.gaussian(people, epsilon=4, delta=1e-5, clip=[100, 100], query=queries)
    >>> both.pmp.epsilon < both.dp.epsilon, both.sensitivity
    (True, (4.0, 4.0))
    """
    delta = check_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    queries, many = (list(query), True) if isinstance(query, list | tuple) else ([query], False)
    clips = _one_each("clip", clip, len(queries)) or [clip] * len(queries)
    pools = [_pool(records, each, own, person, train_fraction) for each, own in zip(clips, queries, strict=True)]
    label, scales = _noises(epsilon, delta, [pool.sensitivity for pool in pools])
    pool, scale = _side_by_side(pools, scales)
    on_records = min(label.epsilon, epsilon_for(scale, delta, pool.widest))
    result = _result(
        "gaussian", pool, label, ApproxDP(on_records, delta, "replace"), delta, scale, chances, method,
        confidence_level, journal, n_jobs, progress, rng,
    )  # fmt: skip
    if not many:
        return result
    return replace(result, sensitivity=tuple(each.sensitivity for each in pools), noise_scale=tuple(scales))


def laplace(
    records: Any,
    *,
    epsilon: float,
    clip: float | None = None,
    delta: float = 0.0,
    query: Query = "mean",
    person: Any = None,
    chances: Any = None,
    train_fraction: float = 0.5,
    method: str = "auto",
    confidence_level: float = 0.95,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
    rng: Any = None,
) -> PopulationPrivacy:
    """Return what an ε-DP Laplace release of one number tells somebody who knows the pool about each record.

    As :func:`gaussian`, for one column. With δ > 0 "auto" encloses ε̃ of the pool by the spectral computation; the
    method is called "exact" where both ends are within a per cent, and "spectral" otherwise: the spectrum of Laplace
    noise falls slowly, so the smaller δ the wider they are, and a pool may take a minute or two. Where too many records
    would have to be solved, the pairwise bound stands. With δ = 0 a record's ε̃ is limited by its largest distance to
    another record; "exact" lists the data sets, and "auto" takes it up to 2¹⁴ of them (8 out of 16 records).

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> found = wi.population.laplace(np.linspace(-1, 1, 12), epsilon=2.0, clip=1.0, delta=0.01)
    >>> found.method, round(found.dp.accuracy(), 3), round(found.pmp.accuracy(), 3)
    ('exact', 0.881, 0.732)
    """
    epsilon = check_number("epsilon", epsilon, low=0.0, open_low=True, open_high=True)
    delta = check_probability("delta", delta)
    pool = _pool(records, clip, query, person, train_fraction)
    if pool.contributions.shape[1] != 1:
        raise InputError(
            f"records must have one column for Laplace noise, got {pool.contributions.shape[1]}; use gaussian"
        )
    scale = pool.sensitivity / epsilon
    label = PureDP(epsilon, "replace")
    here = PureDP(min(epsilon, laplace_epsilon_for(scale, 0.0, pool.widest)), "replace")
    return _result(
        "laplace", pool, label, here, delta, scale, chances, method, confidence_level, journal, n_jobs, progress, rng
    )


@dataclass(frozen=True)
class _Pool:
    contributions: Array
    size: int
    sensitivity: float

    @property
    def widest(self) -> float:
        return widest_distance(self.contributions)


def _pool(records: Any, clip: float | None, query: Query, person: Any, train_fraction: float) -> _Pool:
    matrix = numeric_records(records)
    if clip is None:
        clip = getattr(query, "reach", None) if person is None else None
    if clip is None:
        raise InputTypeError("clip is needed: the largest norm of a contribution, known without the records")
    rows = matrix
    if callable(query):
        rows = numeric_records(query(matrix))
        if len(rows) != len(matrix):
            raise InputError(
                f"query must be a function with a row for each record, {len(matrix)} rows, got {len(rows)}"
            )
    else:
        check_choice("query", query, ("mean", "sum"))
    rows = clipped(rows if person is None else totals(rows, person), clip)
    size = train_size(len(rows), train_fraction)
    share = 1.0 if query == "sum" else 1.0 / size
    apart = 2.0 * clip if person is not None else min(2.0 * clip, getattr(query, "width", math.inf))
    return _Pool(rows * share, size, apart * share)


def _one_each(name: str, value: Any, queries: int) -> list[Any] | None:
    """The values of a list, one for each query; None for a single value."""
    if not isinstance(value, list | tuple | np.ndarray):
        return None
    if queries == 0 or len(value) != queries:
        raise InputError(f"{name} must be one number, or one for each of {queries} queries, got {len(value)}")
    return list(value)


def _noises(epsilon: Any, delta: float, sensitivities: list[float]) -> tuple[ApproxDP, list[float]]:
    """The label of all queries together, and the noise of each.

    Gaussian mechanisms with shifts of at most u_j = Δ_j/s_j are together one with a shift of at most √Σu_j².
    """
    if not sensitivities:
        raise InputError("query must be at least one query, got an empty list")
    own = _one_each("epsilon", epsilon, len(sensitivities))
    if own is None:
        label = check_number("epsilon", epsilon, low=0.0, open_high=True)
        share = 1.0 if len(sensitivities) == 1 else math.sqrt(len(sensitivities)) * (1.0 + 1e-15)
        return ApproxDP(label, delta, "replace"), [noise_for(label, delta, each) * share for each in sensitivities]
    labels = [check_number("epsilon", each, low=0.0, open_high=True) for each in own]
    scales = [noise_for(each, delta, width) for each, width in zip(labels, sensitivities, strict=True)]
    if len(labels) == 1:
        return ApproxDP(labels[0], delta, "replace"), scales
    shift = math.hypot(*(width / scale for width, scale in zip(sensitivities, scales, strict=True)))
    return ApproxDP(epsilon_for(1.0, delta, shift * (1.0 + 1e-15)), delta, "replace"), scales


def _side_by_side(pools: list[_Pool], scales: list[float]) -> tuple[_Pool, float]:
    """All contributions in one pool, and the scale of its noise: in units of their own noise if they are several."""
    if len(pools) == 1:
        return pools[0], scales[0]
    blocks = [pool.contributions / scale for pool, scale in zip(pools, scales, strict=True)]
    shift = math.hypot(*(pool.sensitivity / scale for pool, scale in zip(pools, scales, strict=True)))
    return _Pool(np.hstack(blocks), pools[0].size, shift), 1.0


def _result(
    mechanism: Literal["gaussian", "laplace"],
    pool: _Pool,
    label: PureDP | ApproxDP,
    on_records: PureDP | ApproxDP,
    delta: float,
    scale: float,
    chances: Any,
    method: str,
    confidence_level: float,
    journal: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: Any,
    rng: Any,
) -> PopulationPrivacy:
    check_confidence(confidence_level)
    if chances is not None:
        method = check_choice("method", method, ("auto", "pairwise")) and "pairwise"
    check_choice("method", method, METHODS)
    if progress is not None:
        check_callable("progress", progress)
    equals = epsilons_among_equals(pool.contributions, pool.size, 0.0 if chances is not None else delta)
    pool, unit, slack = _flat(pool, scale, delta, on_records.epsilon) if method != "pairwise" else (pool, scale, 0.0)
    chosen = _choose(method, pool, mechanism, delta)
    f, k = pool.contributions, pool.size
    lower: Array | None = None
    enough = delta - slack
    if chosen == "normal":
        per_record, shown = _normal(pool, unit, enough, progress)
        if method == "auto" and not (shown or np.isfinite(equals).all()) and len(f) <= GROUP_RECORDS:
            chosen = "groups"
    if chosen == "exact" and method == "auto" and len(f) > EXACT_RECORDS:
        lower, per_record = exact_largest(f[:, 0], k, unit, enough, noise=mechanism, progress=progress).T
        if not np.isfinite(per_record).all():
            chosen = "normal" if mechanism == "gaussian" else "pairwise"
            others = (
                _normal(pool, unit, enough, progress)[0]
                if mechanism == "gaussian"
                else pairwise_epsilons(f, unit, enough, noise=mechanism, progress=progress)
            )
            per_record = np.minimum(per_record, others)
        if slack > 0.0:
            lower = _looking_one_way(f, k, unit, delta + slack, int(np.argmax(per_record)))
    elif chosen == "exact":
        laws = SubsetSumLaws(f[:, 0], k, unit, noise=mechanism)
        lower, per_record = laws.epsilon(enough, progress).T
        lower = lower if slack == 0.0 else laws.epsilon(delta + slack)[:, 0]
    elif chosen == "groups":
        per_record, _ = group_epsilons(
            f, k, unit, enough, confidence_level=confidence_level, noise=mechanism, rng=rng, n_jobs=n_jobs,
            progress=progress, journal=journal,
        )  # fmt: skip
    elif chosen == "pairwise":
        shares = None if chances is None else partner_chances(chances, len(f), k)
        per_record = pairwise_epsilons(f, unit, enough, noise=mechanism, shares=shares, progress=progress)
    if method in ("auto", "normal"):
        per_record = np.minimum(per_record, equals)
    per_record = np.minimum(per_record, on_records.epsilon)
    if chosen in ("normal", "groups") and mechanism == "gaussian" and len(f) <= PAIRS_RECORDS:
        lower = _looking_one_way(f, k, unit, delta + slack, int(np.argmax(per_record)))
    lower = None if lower is None else np.minimum(lower, per_record)
    if chosen == "exact" and method == "auto" and lower is not None and lower.max() < 0.99 * per_record.max():
        chosen = "spectral"
    return PopulationPrivacy(
        mechanism=mechanism,
        pmp=PMP(float(per_record.max()), delta, k / len(f), uniform=chances is None),
        dp=label,
        dp_at_most=label,
        dp_on_records=on_records,
        per_record=per_record,
        per_record_lower=lower,
        sensitivity=pool.sensitivity,
        noise_scale=scale,
        method=chosen,
        confidence_level=confidence_level if chosen == "groups" else None,
        records=len(f),
        train_size=k,
    )


def _flat(pool: _Pool, scale: float, delta: float, epsilon: float) -> tuple[_Pool, float, float]:
    """The pool in the fewest columns, the noise in the same units, and the cost in δ: at most a ten-thousandth of it.

    Contributions that lie off by ξ in sum move no probability by more than ξ/(scale·√(2π)), so no E_{e^ε} by more than
    1 + e^ε times that; above ε(X) nothing need be shown.
    """
    points, unit = in_units(pool.contributions, scale)
    price = (1.0 + math.exp(min(epsilon, 700.0))) / (unit * math.sqrt(2.0 * math.pi))
    flat, off = flattened(points, pool.size, 1e-4 * delta / price)
    return replace(pool, contributions=flat), unit, off * price * (1.0 + 1e-12)


def _looking_one_way(f: Array, k: int, scale: float, delta: float, record: int) -> Array:
    """Lower limits on each record's ε̃: 0 but for one, whose limit is that of somebody who looks in one direction only.

    That direction is the one in which the two laws would differ most if they were normal. What rounding the projected
    contributions may move is taken from the other side, as in :func:`_flat`.
    """
    apart = f[record] - np.delete(f, record, axis=0).mean(axis=0)
    centred = f - f.mean(axis=0)
    share = k / len(f) * (1.0 - k / len(f))
    direction = np.linalg.solve(scale**2 * np.eye(f.shape[1]) + share * centred.T @ centred, apart)
    lower = np.zeros(len(f))
    size = float(np.linalg.norm(direction))
    if size > 0.0 and 0.0 < delta < 1.0:
        laws = SubsetSumLaws(centred @ (direction / size), k, scale, records=[record])
        off = k * (f.shape[1] + 16) * 2.0**-50 * float(np.linalg.norm(centred, axis=1).max()) / scale
        first = laws.epsilon(delta)[0, 0]
        lower[record] = laws.epsilon(min(delta + (1.0 + math.exp(min(first, 700.0))) * off, 1.0))[0, 0]
    return lower


def _choose(method: str, pool: _Pool, mechanism: str, delta: float) -> str:
    count, columns = pool.contributions.shape
    if method == "exact" and columns != 1:
        raise InputError(f"method='exact' needs contributions along one line, got {columns} directions; use 'normal'")
    few = math.comb(count, pool.size) <= (EXACT_SETS if method == "auto" else ENUMERATED)
    if mechanism == "laplace" and delta == 0.0:
        return "exact" if few and method in ("auto", "exact") else "pairwise"
    if method != "auto":
        return method
    return "exact" if columns == 1 else "normal"


def _normal(pool: _Pool, scale: float, delta: float, progress: Any) -> tuple[Array, bool]:
    """The smaller of the normal and the pairwise bound for each record, and whether the normal one shows anything."""
    f = pool.contributions
    limits = normal_epsilons(f, pool.size, scale, delta, progress=progress)
    shown = np.isfinite(limits)
    rest = np.arange(len(f)) if len(f) <= PAIRS_RECORDS else np.flatnonzero(~shown)
    if len(rest):
        limits[rest] = np.minimum(limits[rest], pairwise_epsilons(f, scale, delta, records=rest, progress=progress))
    return limits, bool(shown.any())
