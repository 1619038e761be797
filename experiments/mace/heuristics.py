"""The attacks of the literature on generative models: accuse the records of the highest scores.

* Hayes, Melis, Danezis, De Cristofaro (2019), LOGAN: as many records as there are members, those that the
  discriminator (white box), or that of a shadow model trained on the release (black box), takes for the most real.
* Hilprecht, Härterich, Bernau (2019), Monte Carlo and reconstruction attacks: those with more released rows near them
  than the median record has.

They are attacks that one may hold against :func:`whosin.audit`, which measures the best attacker on the same query;
Xu et al. (2022) compare with them in their figures 1 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.auditing.measuring.attack import Gain
from whosin.auditing.measuring.estimate import Estimate
from whosin.auditing.measuring.limits import ADVANTAGE, Rectangle, gain_at_prior
from whosin.auditing.releases.matching.neighbours import ball_log_sums, counts_within, nearest
from whosin.errors import InputError, InputTypeError, check_number, check_prior
from whosin.numerics.differences import gain_lower, gain_upper_of_one
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper, dkw_radius
from whosin.parallel.tasks import by_rows

__all__ = ["ThresholdAttack", "monte_carlo_attack", "shadow_scores", "threshold_attack"]

Array = NDArray[np.float64]

_FLOOR = 1e-9
"""Distances below this share of the radius count as this share: a copy is very near, not infinitely near."""


@dataclass(frozen=True)
class ThresholdAttack:
    """Accuse every record with a score above ``threshold``: how often that is right, for fresh records of either kind.

    The limits of both rates hold together, and so do those computed from them. With a fixed threshold the limits of the
    advantage are exact ones of a difference, and hold on their own.
    """

    tpr: Estimate
    """Share of the members accused."""
    fpr: Estimate
    """Share of the non-members accused."""
    threshold: float
    members: int
    non_members: int
    fixed: bool = False
    """Whether the threshold was fixed without these records, so that the counts are binomial."""

    @property
    def advantage(self) -> Estimate:
        """TPR - FPR."""
        return self._of(ADVANTAGE)

    def advantage_at_prior(self, prior: float) -> Estimate:
        """Return 2·accuracy - 1 of this attack at a prior (Xu et al. 2022, definition 1); it may be negative."""
        return self._of(gain_at_prior(check_prior(prior)))

    def _of(self, gain: Gain) -> Estimate:
        found = gain.at(self.fpr.estimate, self.tpr.estimate)
        if self.fixed and gain.weights is not None:
            found_members = round(self.tpr.estimate * self.members)
            counts = found_members, self.members, round(self.fpr.estimate * self.non_members), self.non_members
            alpha = (1.0 - self.tpr.confidence_level) / 2
            ends = [limit(*counts, alpha, weights=gain.weights) for limit in (gain_lower, gain_upper_of_one)]
            return Estimate(found, gain.constant + ends[0], gain.constant + ends[1], self.tpr.confidence_level)
        limits = Rectangle(self.tpr.lower, self.tpr.upper, self.fpr.lower, self.fpr.upper)
        values = [gain.at(*corner) for corner in limits.corners]
        return Estimate(found, min(values), max(values), self.tpr.confidence_level)


def threshold_attack(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    share: float | None = None,
    threshold: float | None = None,
    confidence_level: float = 0.95,
) -> ThresholdAttack:
    """Accuse the records of the highest scores.

    Parameters
    ----------
    members, non_members : array-like of shape (N,)
        Scores; a high one speaks for membership. For the attacks of Hayes et al. the output of a discriminator.
    share : float, optional
        Share of all these records to accuse. By default that of the members (Hayes et al.); 0.5 accuses what lies
        above the median (Hilprecht et al.). Of ties at the threshold nobody is accused, so it may be fewer.
    threshold : float, optional
        Instead, a threshold that was fixed without these records.
    confidence_level : float
        Probability that all limits hold, whatever the laws and the sample sizes.

    Notes
    -----
    The limits are those of Clopper and Pearson for a given threshold, at δ/4 each. A threshold that the same records
    chose makes their counts other than binomial; then they are those of Dvoretzky, Kiefer and Wolfowitz, which hold at
    every threshold at once. Cost O(N log N).
    """
    inside, outside = _scores("members", members), _scores("non_members", non_members)
    level = check_number("confidence_level", confidence_level, low=0.0, high=1.0, open_low=True, open_high=True)
    if threshold is not None:
        if share is not None:
            raise InputTypeError("share and threshold exclude each other: give one of them")
        limit = check_number("threshold", threshold, low=-np.inf, high=np.inf)
    else:
        limit = _top(inside, outside, share)
    sides = [_rate(side, limit, level, threshold is not None) for side in (inside, outside)]
    return ThresholdAttack(sides[0], sides[1], limit, len(inside), len(outside), threshold is not None)


def shadow_scores(shadow: Any, released: Any, *records: Any, **training: Any) -> list[Array]:
    """Return the scores of Hayes et al.'s black-box attack: those of a discriminator that learned the release.

    Parameters
    ----------
    shadow : Gan
        An untrained model of the attacker, such as ``JSGAN(architecture("vector", shape))``.
    released : array of shape (m, \\*shape)
        Synthetic records: all that the attacker has of the model.
    *records : arrays of shape (n, \\*shape)
        Records about which the attacker asks; :func:`threshold_attack` accuses those with the highest scores.
    **training
        For ``shadow.fit``, such as ``epochs`` and ``rng``.
    """
    (ask,) = shadow.fit(released, **training).discriminators
    return [ask(side) for side in records]


def monte_carlo_attack(
    members: ArrayLike,
    non_members: ArrayLike,
    synthetic: ArrayLike,
    *,
    radius: float | None = None,
    by_distance: bool = False,
    share: float = 0.5,
    confidence_level: float = 0.95,
    n_jobs: int | None = None,
) -> ThresholdAttack:
    """Accuse the records with many released rows within a radius (Hilprecht et al. 2019).

    Parameters
    ----------
    members, non_members, synthetic : array-like of shape (N, d)
        Records that were trained on, records that were not, and released rows.
    radius : float, optional
        By default the median over all records of the distance to the nearest released row (their median heuristic).
        The limits take it as given, though these records set it.
    by_distance : bool
        Weigh every row within the radius by ln(radius/distance) instead of 1. The paper (and equation 1 of Xu et al.
        2022) prints -ln(distance): the same in units of the radius, but in any other unit a row within the radius may
        count less than none.
    share : float
        Share of all records to accuse: those above the median by default.
    confidence_level, n_jobs
        As in :func:`threshold_attack`; threads, as in joblib.

    Notes
    -----
    Cost O(N·M·d) for N records and M released rows.
    """
    inside, outside, rows = (
        _records(name, given)
        for name, given in (("members", members), ("non_members", non_members), ("synthetic", synthetic))
    )
    if not inside.shape[1] == outside.shape[1] == rows.shape[1]:
        raise InputError(
            "members, non_members and synthetic take the same number of columns, "
            f"got {inside.shape[1]}, {outside.shape[1]} and {rows.shape[1]}"
        )
    targets, split = np.concatenate([inside, outside]), len(inside)
    if radius is None:
        radius = float(np.median(by_rows(nearest, targets, rows, n_jobs=n_jobs)[0]))
    radius = check_number("radius", radius, low=0.0, open_high=True)
    scores = by_rows(counts_within, targets, rows, radius, n_jobs=n_jobs)[:, 0].astype(np.float64)
    if by_distance and radius > 0.0:
        nearness = by_rows(ball_log_sums, targets, rows, radius, floor=_FLOOR * radius, n_jobs=n_jobs)[:, 0]
        scores = nearness + scores * math.log(radius)
    return threshold_attack(scores[:split], scores[split:], share=share, confidence_level=confidence_level)


def _records(name: str, given: ArrayLike) -> Array:
    values = _numbers(name, given)
    table = values[:, None] if values.ndim == 1 else values
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise InputError(f"{name} must be a non-empty table of finite numbers, got shape {values.shape}")
    return table


def _numbers(name: str, given: ArrayLike) -> Array:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name} must be an array of numbers, got {type(given).__name__}") from None


def _scores(name: str, given: ArrayLike) -> Array:
    values = _numbers(name, given)
    if values.ndim != 1 or values.size == 0:
        raise InputError(f"{name} must have at least one score in an array of shape (N,), got shape {values.shape}")
    if np.isnan(values).any():
        raise InputError(f"{name} must hold scores without gaps, got NaN at {int(np.flatnonzero(np.isnan(values))[0])}")
    return values


def _top(inside: Array, outside: Array, share: float | None) -> float:
    """Return the threshold above which at most that share of the records lies, the lowest such score."""
    both = np.sort(np.concatenate([inside, outside]))
    if share is None:
        most = len(inside)
    else:
        most = math.floor(check_number("share", share, low=0.0, high=1.0) * len(both) + 1e-9)
    return float(both[len(both) - 1 - most]) if most < len(both) else -np.inf


def _rate(scores: Array, threshold: float, level: float, given: bool) -> Estimate:
    count, size, alpha = int(np.sum(scores > threshold)), len(scores), (1.0 - level) / 4
    found = count / size
    if given:
        lower, upper = (float(side(count, size, alpha)) for side in (clopper_pearson_lower, clopper_pearson_upper))
    else:
        radius = dkw_radius(size, alpha)
        lower, upper = max(0.0, found - radius), min(1.0, found + radius)
    return Estimate(found, lower, upper, level)
