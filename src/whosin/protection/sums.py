"""Noise for a sum over records: exact, from all pairs of records, without retraining.

Replacing x by x' moves a mean over k records by (f_x - f_x')/k, whoever else was drawn. So for every record
η_x ≤ m · mean over x' ≠ x of E_γ(‖f_x - f_x'‖/(k·s)), and the smallest s is found on that average itself, of which the
linear form in s is only a limit. It falls like 1/n where bounds from the spread of the estimate fall like 1/√n.

With Gaussian noise each column has a scale of its own, by its spread in the pool. A column in which all records agree
needs none. Spread is the standard deviation; where single records stand out, the mean deviation or the range may serve
better, or no difference between columns at all, and what costs least is taken. All that is a function of the pool and
tells nothing about the draw.
"""

from __future__ import annotations

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError
from whosin.numerics.shift import AveragedShift, equal_rows, lengths
from whosin.protection.estimators import Sum
from whosin.protection.plan import Noise, Plan
from whosin.protection.pool import Draw

_ROUNDINGS = 8.0 * 2.0**-53

_NARROWEST = 1e-300
"""Columns that vary by less are left to numbers without full precision."""
_NARROWEST_SHARE = 1e-150
"""And so may be the squares of columns that vary by less than this part of the widest."""

_LOOKED_AT = 400
"""Records at which shapes are compared: the farthest, and some spread over the pool."""

_WORTH = 0.95
"""Another shape is taken if it costs less than this part of the first."""


def from_pairs(query: Sum, eta: float, draw: Draw, noise: Noise) -> Plan:
    """Return the plan for a sum query. O(n²·columns) once, then a few rows of pairs for each scale tried."""
    rows = query.contributions.reshape(draw.records, -1)
    moving = np.flatnonzero(np.ptp(rows, axis=0) > 0.0)
    rows, columns = rows[:, moving], rows.shape[1]
    exact = ("average", "computed exactly")
    if len(moving) == 0:
        return Plan(0.0, 1.0, 0.0, *exact, 0.0, "all records contribute the same, so the estimate tells nothing")
    _check_widths(np.ptp(rows, axis=0))
    centred = rows - np.median(rows, axis=0)
    average = np.broadcast_to(query.average, columns)[moving]
    share = np.where(average, 1.0 / draw.size, 1.0)
    shape = _shape(centred * share, noise)
    unit = float(lengths(np.ptp(centred, axis=0)[None, :] * share / shape, noise.norm)[0])
    # Two sums of floats may be further apart than the sums on paper, by a few roundings of their size. That includes
    # what centring and scaling round away here.
    size = np.abs(rows).max(axis=0) * np.where(average, 1.0, draw.size)
    rounding = float(lengths((_ROUNDINGS * size / shape)[None, :], noise.norm)[0]) / unit
    pairs = AveragedShift(
        centred * (share / (shape * unit)),
        noise=noise.kind,
        norm=noise.norm,
        log_gamma=draw.log_gamma,
        rounding=rounding,
        labels=equal_rows(rows),
    )
    scale = pairs.smallest_scale(draw.per_divergence(eta))
    bound = min(eta, draw.excess(pairs.worst(scale)))
    full = np.zeros(columns)
    full[moving] = shape
    mean = float(pairs.mean_distances.max()) * unit
    reason = "how far the estimate moves when one record is replaced was computed for every pair of records"
    return Plan(scale * unit * (1.0 + 1e-12), full, bound, *exact, mean, reason)


def _check_widths(widths: Array) -> None:
    narrow = float(widths.min())
    if narrow < max(_NARROWEST, _NARROWEST_SHARE * float(widths.max())):
        raise InputError(
            f"records must have columns that vary by at least {_NARROWEST:g}, and by {_NARROWEST_SHARE:g} of the "
            f"widest, to be summed, got one that varies by {narrow:g}: rescale or drop it"
        )


def _shape(centred: Array, noise: Noise) -> Array:
    """Return the scales of the columns up to a factor that are forecast to cost least.

    The forecast is the linear form of the bound: the largest mean distance of a record to the others, in the shape's
    own metric, among at most 400 records that include the farthest. O(400² · columns) for each of up to seven shapes.
    """
    widths = np.ptp(centred, axis=0)
    centred, widths = centred / widths.max(), widths / widths.max()
    deviation = widths * (centred / widths).std(axis=0)
    if noise.kind != "gaussian" or len(deviation) == 1:
        return noise.shape(deviation)
    spreads = [deviation, np.abs(centred).mean(axis=0), widths]
    shapes = [noise.shape(spread) for spread in spreads]
    if noise.split == "total":
        shapes += [*spreads, np.ones(len(deviation))]
    costs = []
    others = centred[np.unique(np.linspace(0, len(centred) - 1, _LOOKED_AT // 2).astype(np.int64))]
    for shape in shapes:
        far = np.argsort(-lengths(centred / shape, noise.norm), kind="stable")[: _LOOKED_AT // 2]
        mean = max(float(lengths((others - row) / shape, noise.norm).mean()) for row in centred[far])
        costs.append(noise.cost(mean * shape, deviation))
    best = int(np.argmin(costs))
    return shapes[best] if costs[best] < _WORTH * costs[0] else shapes[0]
