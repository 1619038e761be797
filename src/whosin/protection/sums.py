"""Noise for a sum over records: exact, from all pairs of records, without retraining.

Replacing x by x' moves a mean over k records by (f_x - f_x')/k, whoever else was drawn. So for every record
η_x ≤ m · mean over x' ≠ x of E_γ(‖f_x - f_x'‖/(k·s)), and the smallest s is found on that average itself, of which the
linear form in s is only a limit. It falls like 1/n where bounds from the spread of the estimate fall like 1/√n.

With Gaussian noise each column has a scale of its own, by its spread in the pool. A column in which all records agree
needs none. The scales are functions of the pool and tell nothing about the draw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whosin.compute.shift import AveragedShift, lengths
from whosin.protection.estimators import Sum
from whosin.protection.plan import Noise, Plan
from whosin.protection.pool import Draw

__all__ = ["from_pairs"]

Array = NDArray[np.float64]

_ROUNDINGS = 8.0 * 2.0**-53


def from_pairs(query: Sum, eta: float, draw: Draw, noise: Noise) -> Plan:
    """Return the plan for a sum query. O(n²·columns) once, then a few rows of pairs for each scale tried."""
    rows = query.contributions.reshape(draw.records, -1)
    moving = np.flatnonzero(np.ptp(rows, axis=0) > 0.0)
    exact = ("average", "computed exactly")
    if len(moving) == 0:
        return Plan(0.0, 1.0, 0.0, *exact, 0.0, "all records contribute the same, so the estimate tells nothing")
    centred = rows[:, moving] - np.median(rows[:, moving], axis=0)
    share = 1.0 / draw.size if query.average else 1.0
    shape = noise.shape(np.abs(centred).mean(axis=0))
    unit = float(lengths(np.ptp(centred, axis=0)[None, :] * share / shape, noise.norm)[0])
    # Two sums of floats may be further apart than the sums on paper, by a few roundings of their size.
    size = np.abs(rows[:, moving]).max(axis=0) * (1.0 if query.average else draw.size)
    rounding = float(lengths((_ROUNDINGS * size / shape)[None, :], noise.norm)[0]) / unit
    pairs = AveragedShift(
        centred * (share / (shape * unit)),
        noise=noise.kind,
        norm=noise.norm,
        log_gamma=draw.log_gamma,
        rounding=rounding,
    )
    scale = pairs.smallest_scale(draw.per_divergence(eta))
    bound = min(eta, draw.excess(pairs.worst(scale)))
    full = np.zeros(rows.shape[1])
    full[moving] = shape
    mean = float(pairs.mean_distances.max()) * unit
    reason = "how far the estimate moves when one record is replaced was computed for every pair of records"
    return Plan(scale * unit * (1.0 + 1e-12), full, bound, *exact, mean, reason)
