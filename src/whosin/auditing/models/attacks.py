"""Attacks with reference models: how unusual is a model's score of a record, for models with the record and without.

Every attack takes the scores of the target (N,), those of the reference models (models, N), and which of these models
were trained with which record, of the same shape. A higher score speaks for membership. Cost O(models·N).
"""

from __future__ import annotations

import numpy as np

from whosin.arrays import Array, Flags
from whosin.errors import InputError, check_number, check_truth

LARGEST = 1e100
"""Largest size of a score: the squares of larger ones are no floats."""
SMALLEST = 1e-12
"""Smallest variance: scores that never change give 0 where the target agrees, and no 0/0."""


def lira(target: Array, scores: Array, included: Flags) -> Array:
    """Return the log likelihood ratio of two normal laws, of models with and without each record (online LiRA).

    ln N(x; μ_in, σ²_in) - ln N(x; μ_out, σ²_out), the means being those of the record's models. Its variance is drawn
    towards the mean variance of all records, by as much as the spread of the variances says that they are alike
    (an inverse gamma law fitted by two moments): with few models that is one variance for all, with many each record
    has its own.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis, Tramèr (2022), Membership inference attacks from first principles. Smyth (2004),
    Linear models and empirical Bayes methods, for variances drawn together.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.auditing.models import lira
    >>> included = np.array([[True], [True], [False], [False]])
    >>> lira(np.array([2.0]), np.array([[1.0], [3.0], [-1.0], [1.0]]), included).round(3)
    array([1.])
    """
    target, scores, included = _checked(target, scores, included, inside=1)
    laws = []
    for side in (included, ~included):
        variance = _variance(scores, side)
        laws.append(-0.5 * ((target - _mean(scores, side)) ** 2 / variance + np.log(variance)))
    return np.asarray(laws[0] - laws[1])


def lira_offline(target: Array, scores: Array, included: Flags) -> Array:
    """Return -ln of the chance that a model without the record is as sure of it: one-sided, normal (offline LiRA).

    Only models without the record are used. Source and variance as for :func:`lira`.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.auditing.models import lira_offline
    >>> lira_offline(np.array([0.0]), np.array([[-1.0], [1.0]]), np.zeros((2, 1), bool)).round(4)
    array([0.6931])
    """
    from scipy.special import log_ndtr

    target, scores, included = _checked(target, scores, included, inside=0)
    outside = ~included
    return np.asarray(-log_ndtr((_mean(scores, outside) - target) / np.sqrt(_variance(scores, outside))))


def rmia(target: Array, scores: Array, included: Flags, *, a: float | None = None) -> Array:
    """Return ln p(x|θ) - ln p(x), how much likelier the target finds the record than models do on average (RMIA).

    The scores are log odds, ln p/(1-p), of the record's label. p(x) is the mean over models with the record and those
    without, each side counted half. Offline, with a number ``a`` from 0 to 1, models with the record are not used:
    p(x) = ½((1+a)·p_out + 1 - a).

    The published attack counts the other records z that x beats, (p(x|θ)/p(x))/(p(z|θ)/p(z)) ≥ γ. That is a step
    function of the ratio: it puts records in the same order, with ties.

    References
    ----------
    Zarifzadeh, Liu, Shokri (2024), Low-cost high-power membership inference attacks.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.auditing.models import rmia
    >>> rmia(np.log([3.0]), np.log([[1.0], [1 / 3]]), np.array([[True], [False]])).round(4)  # ln .75/.375
    array([0.6931])
    """
    a = None if a is None else check_number("a", a, low=0.0, high=1.0)
    target, scores, included = _checked(target, scores, included, inside=int(a is None))
    from scipy.special import expit, log_expit

    chances = expit(scores)
    outside = _mean(chances, ~included)
    typical = 0.5 * (_mean(chances, included) + outside if a is None else (1.0 + a) * outside + 1.0 - a)
    return np.asarray(log_expit(target) - np.log(np.maximum(typical, np.finfo(np.float64).tiny)))


def _mean(values: Array, mask: Flags) -> Array:
    return np.asarray(np.sum(values, axis=0, where=mask) / mask.sum(axis=0))


def _variance(scores: Array, mask: Flags) -> Array:
    """Return each record's variance over these models, drawn towards the mean one.

    Let s² have d degrees of freedom and the variances mean v and relative variance r: then s²/v has mean 1 and variance
    r + (1 + r)·2/d, which is solved for r. An inverse gamma law with these moments gives σ² the posterior mean
    (c·v + d·s²)/(c + d), c = 2 + 2/r.
    """
    squares = np.sum((scores - _mean(scores, mask)) ** 2, axis=0, where=mask)
    freedom = mask.sum(axis=0) - 1
    if freedom.sum() < 1:
        raise InputError("scores must have at least 2 models on either side of some record, got one: train more models")
    typical = max(SMALLEST, squares.sum() / freedom.sum())
    known = freedom > 0
    noise = np.mean(2.0 / freedom[known])
    spread = np.mean((squares[known] / freedom[known] / typical - 1.0) ** 2)
    alike = 2.0 + 2.0 / max((spread - noise) / (1.0 + noise), 1e-9)
    return np.asarray(np.maximum((alike * typical + squares) / (alike + freedom), SMALLEST))


def _checked(target: Array, scores: Array, included: Flags, *, inside: int) -> tuple[Array, Array, Flags]:
    target, scores = np.asarray(target, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if target.ndim != 1 or target.size == 0 or scores.ndim != 2 or scores.shape[1] != len(target):
        raise InputError(
            f"target and scores must have shapes (N,) and (models, N), got {target.shape} and {scores.shape}"
        )
    mask = check_truth("included", included, scores.shape)
    if int(mask.sum(axis=0).min()) < inside or mask.all(axis=0).any():
        raise InputError("included must have models with and without each record, got a record that lacks one side")
    if not ((np.abs(target) <= LARGEST).all() and (np.abs(scores) <= LARGEST).all()):
        raise InputError(f"target and scores must be finite and up to {LARGEST:g} in size, got NaN or larger ones")
    return target, scores, mask
