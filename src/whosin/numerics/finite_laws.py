"""How close two finite laws are: the smallest γ with Σ(p - γq)_+ ≤ δ, row by row."""

from __future__ import annotations

import numpy as np

from whosin.arrays import Array


def closeness_slopes(p: Array, q: Array, delta: float) -> Array:
    """Return, for each row, the smallest γ such that p exceeds γ·q by at most ``delta`` in total.

    For δ = 0 it is the largest ratio p/q. Otherwise the outputs are taken in falling order of their ratio; with T and F
    the sums of p and q so far, γ is the largest (T - δ)/F. Infinite where p has more than δ outside the support of q.
    Sums are compared with δ up to a relative 1e-14, the rounding of the sums themselves.
    Cost O(rows × outputs × log outputs).
    """
    if len(p) == 0:
        return np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(p > 0, p / q, 0.0)
    if delta == 0.0:
        return np.asarray(ratios.max(axis=1))
    order = np.argsort(-ratios, axis=1, kind="stable")
    tpr, fpr = (np.cumsum(np.take_along_axis(law, order, axis=1), axis=1) for law in (p, q))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = np.where(tpr > delta * (1.0 + 1e-14), (tpr - delta) / fpr, 0.0)
    return np.asarray(slopes.max(axis=1))


def closeness_epsilons(log_p: Array, log_q: Array, delta: float) -> Array:
    """Return ln of :func:`closeness_slopes` from the logarithms of both laws, for δ > 0.

    The ratio may be beyond e^709 and a probability below e^-745: only p, which is compared with δ, leaves the log
    domain. Minus infinity where all of p together is at most δ.
    """
    if len(log_p) == 0:
        return np.zeros(0)
    with np.errstate(invalid="ignore"):
        ratios = np.where(np.isneginf(log_p), -np.inf, log_p - log_q)
    order = np.argsort(-ratios, axis=1, kind="stable")
    tpr = np.cumsum(np.exp(np.take_along_axis(log_p, order, axis=1)), axis=1)
    log_fpr = np.logaddexp.accumulate(np.take_along_axis(log_q, order, axis=1), axis=1)
    above = tpr > delta * (1.0 + 1e-14)
    slopes = np.log(tpr - delta, out=np.full(tpr.shape, -np.inf), where=above)
    np.subtract(slopes, log_fpr, out=slopes, where=above)
    return np.asarray(slopes.max(axis=1))
