"""A band around the measured ROC that holds at every false positive rate at once.

The curve in question is that of the score with mixing: what attackers reach who compare the score with a threshold,
or toss a coin between two thresholds (its concave hull). Two limits are laid over each other, with half of δ each:

* Dvoretzky-Kiefer-Wolfowitz on both samples, for all thresholds; good in the middle;
* Clopper-Pearson at some thirty thresholds that the fit part chose, with a union bound; good at low rates. Between
  two of them the rates are monotone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.answers import Said
from whosin.arrays import Array
from whosin.auditing.measuring.attack import Candidate, Evidence
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper, dkw_radius
from whosin.numerics.rounding import at_least, at_most, confidence
from whosin.roc import Roc

GRID = 32


@dataclass(frozen=True, eq=False)
class Band(Said):
    """Two curves between which the score's ROC lies everywhere, with probability ``confidence_level``.

    Each of the two alone holds with probability (1 + confidence_level)/2.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> band = wi.audit(rng.normal(2, 1, 500), rng.normal(0, 1, 500)).band
    >>> [round(float(curve.tpr(0.2)), 2) for curve in (band.lower, band.upper)]
    [0.78, 1.0]
    """

    lower: Roc
    upper: Roc
    confidence_level: float

    def to_dict(self, points: int = 201) -> dict[str, Any]:
        """Return both curves for JSON."""
        return {
            "lower": self.lower.to_dict(points),
            "upper": self.upper.to_dict(points),
            "confidence_level": self.confidence_level,
        }

    def __str__(self) -> str:
        low, high = at_least(self.lower.divergence(1.0)), at_most(self.upper.divergence(1.0))
        return f"band of {confidence(self.confidence_level)} confidence, advantage {low} to {high}"


def band_of(evidence: Evidence, candidate: Candidate, delta: float, most: float = 1.0) -> Band:
    """Return the band of a candidate's score on the held-out part; cost O(N log N) once.

    The lower curve is kept at or below FPR + ``most``, so that it never claims a larger gap than is stated elsewhere.
    """
    counts = candidate.held_out_counts(evidence.held_out(candidate.view))
    few = counts.thinned()
    up, right = dkw_radius(counts.members, delta / 8), dkw_radius(counts.non_members, delta / 8)
    wide = _Limits(few.tpr - up, few.tpr + up, few.fpr - right, few.fpr + right)
    grid = counts.at(candidate.judged.thinned(GRID).thresholds)
    alpha = delta / (8 * len(grid.thresholds))
    fine = _Limits(
        clopper_pearson_lower(grid.found, grid.members, alpha),
        clopper_pearson_upper(grid.found, grid.members, alpha),
        clopper_pearson_lower(grid.accused, grid.non_members, alpha),
        clopper_pearson_upper(grid.accused, grid.non_members, alpha),
    )
    ceiling = Roc(np.array([0.0, 1.0 - most, 1.0]), np.array([most, 1.0, 1.0]))
    lower = _lower_envelope(_lower_curve(wide, fine), ceiling) if most < 1.0 else _lower_curve(wide, fine)
    return Band(lower, _lower_envelope(_upper_curve(wide), _upper_curve(fine)), 1.0 - delta)


@dataclass(frozen=True, eq=False)
class _Limits:
    """Limits on both rates at falling thresholds, where both rates rise."""

    tpr_lower: Array
    tpr_upper: Array
    fpr_lower: Array
    fpr_upper: Array


def _lower_curve(*limits: _Limits) -> Roc:
    """Join the points (largest FPR, smallest TPR), all of which lie below the curve."""
    fpr = np.concatenate([np.clip(np.minimum.accumulate(part.fpr_upper[::-1])[::-1], 0.0, 1.0) for part in limits])
    tpr = np.concatenate([np.clip(part.tpr_lower, 0.0, 1.0) for part in limits])
    order = np.argsort(fpr, kind="stable")
    return Roc(fpr[order], np.maximum.accumulate(tpr[order])).hull()


def _upper_curve(limits: _Limits) -> Roc:
    """Join the outer corners of the staircase: below the smallest FPR of threshold j the TPR is at most that of j."""
    fpr = np.clip(np.maximum.accumulate(limits.fpr_lower), 0.0, 1.0)
    tpr = np.clip(np.minimum.accumulate(limits.tpr_upper[::-1])[::-1], 0.0, 1.0)
    return Roc(np.append(0.0, fpr), np.append(tpr, 1.0)).hull()


def _lower_envelope(one: Roc, other: Roc) -> Roc:
    """Return the smaller of two concave piecewise-linear curves, with the points where they cross."""
    assert one.vertices is not None
    assert other.vertices is not None
    x = np.union1d(one.vertices[:, 0], other.vertices[:, 0])
    gap = one.tpr(x) - other.tpr(x)
    cross = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    share = gap[cross] / (gap[cross] - gap[cross + 1])
    x = np.union1d(x, x[cross] + share * (x[cross + 1] - x[cross]))
    return Roc(x, np.minimum(one.tpr(x), other.tpr(x)))
