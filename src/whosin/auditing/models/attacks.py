"""Attacks with reference models: how unusual are a model's logits for models with the record, and without it.

Every attack takes the scaled logits of the target (N,), those of the reference models (models, N), and two masks of the
same shape: which of these models were trained with the record, and which without. Models in neither mask are not
used for that record. A higher score speaks for membership. Cost O(models·N), O(models·N + P log P) for RMIA.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, check_choice, check_number

__all__ = ["VARIANCES", "lira", "lira_kde", "lira_offline", "lira_rank", "rmia"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

VARIANCES = ("auto", "record", "global")
FEW = 32
"""Fewest models on either side of a record for a variance of its own."""
LARGEST = 1e100
"""Largest size of a logit: the squares of larger ones are no floats."""
SMALLEST = 1e-12
"""Smallest variance: logits that never change give a score of 0 where the target agrees, and no 0/0."""


def lira(target: Array, logits: Array, inside: Mask, outside: Mask, *, variance: str = "auto") -> Array:
    """Return the log likelihood ratio of two normal laws, of models with and without each record (online LiRA).

    ln N(x; μ_in, σ²_in) - ln N(x; μ_out, σ²_out), with the moments of each record's reference models. ``variance`` is
    that of each record ("record"), or one for all records on each side ("global", which few models call for); "auto"
    is by record from 32 models a side on.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis, Tramèr (2022), Membership inference attacks from first principles.
    """
    target, logits, inside, outside = _checked(target, logits, inside, outside, least_inside=1)
    spread = _variance_rule(variance, inside, outside)
    means = [_mean(logits, side) for side in (inside, outside)]
    variances = [_variance(logits, side, spread) for side in (inside, outside)]
    laws = [-0.5 * ((target - m) ** 2 / v + np.log(v)) for m, v in zip(means, variances, strict=True)]
    return np.asarray(laws[0] - laws[1])


def lira_offline(target: Array, logits: Array, inside: Mask, outside: Mask, *, variance: str = "auto") -> Array:
    """Return -ln of the chance that a model without the record is as sure of it: one-sided, normal (offline LiRA).

    Only models without the record are used. Source as for :func:`lira`.
    """
    from scipy.special import log_ndtr

    target, logits, _, outside = _checked(target, logits, inside, outside, least_inside=0)
    spread = _variance_rule(variance, outside)
    score = (target - _mean(logits, outside)) / np.sqrt(_variance(logits, outside, spread))
    return np.asarray(-log_ndtr(-score))


def lira_rank(target: Array, logits: Array, inside: Mask, outside: Mask) -> Array:
    """Return the share of models without the record that are less sure of it, ties counted half: no normal law.

    (below + ½·equal + ½)/(n + 1), an empirical one-sided p-value from 1.
    """
    target, logits, _, outside = _checked(target, logits, inside, outside, least_inside=0)
    below = np.sum(outside & (logits < target), axis=0) + 0.5 * np.sum(outside & (logits == target), axis=0)
    return np.asarray((below + 0.5) / (outside.sum(axis=0) + 1.0))


def lira_kde(target: Array, logits: Array, inside: Mask, outside: Mask, *, variance: str = "auto") -> Array:
    """Return the log ratio of two Gaussian kernel densities, of models with and without each record.

    Bandwidth 1.06·σ·n^(-1/5) (Scott 1992) with σ as in :func:`lira`; a wide one for few models, so no density is 0.
    """
    target, logits, inside, outside = _checked(target, logits, inside, outside, least_inside=1)
    spread = _variance_rule(variance, inside, outside)
    densities = []
    for side in (inside, outside):
        width = 1.06 * np.sqrt(_variance(logits, side, spread)) * side.sum(axis=0) ** -0.2
        kernels = np.where(side, -0.5 * ((target - logits) / width) ** 2, -np.inf)
        peak = kernels.max(axis=0)
        densities.append(peak + np.log(np.exp(kernels - peak).sum(axis=0) / side.sum(axis=0)) - np.log(width))
    return np.asarray(densities[0] - densities[1])


def rmia(
    target: Array,
    logits: Array,
    inside: Mask,
    outside: Mask,
    *,
    population: tuple[Array, Array] | None = None,
    gamma: float = 2.0,
    a: float | None = 0.3,
) -> Array:
    """Return the share of population records z that x beats: (p(x|θ)/p(x)) / (p(z|θ)/p(z)) ≥ γ (RMIA).

    p(x|θ) is the target's probability of x's label. p(x) averages over models: offline ½((1+a)·p_out + 1 - a), with the
    mean p_out over models without x; online, for ``a=None``, the mean of p_in and p_out.

    Parameters
    ----------
    population : pair (P,), (models, P), optional
        Scaled logits, of the target and of the references, of records in no training; by default the other records. For
        them p(z) is offline, with a = 1 where ``a`` is None.
    gamma : float
        How many times likelier x must be than z, at least 1.
    a : float or None
        From 0 to 1: how far p_in lies from p_out (p_in ≈ a·p_out + 1 - a).

    References
    ----------
    Zarifzadeh, Liu, Shokri (2024), Low-cost high-power membership inference attacks.
    """
    gamma = check_number("gamma", gamma, low=1.0)
    a = None if a is None else check_number("a", a, low=0.0, high=1.0)
    target, logits, inside, outside = _checked(target, logits, inside, outside, least_inside=int(a is None))
    chances = _expit(logits)
    if a is None:
        typical = 0.5 * (_mean(chances, inside) + _mean(chances, outside))
    else:
        typical = _offline(_mean(chances, outside), a)
    ratios = _expit(target) / typical
    others = ratios if population is None else _population_ratios(population, a)
    return np.asarray(np.searchsorted(np.sort(others), ratios / gamma, side="right") / len(others))


def _population_ratios(population: tuple[Array, Array], a: float | None) -> Array:
    target, logits = (np.asarray(part, dtype=np.float64) for part in population)
    if target.ndim != 1 or target.size == 0 or logits.ndim != 2 or logits.shape[1] != len(target):
        raise InputError(
            f"population must be logits of shapes (P,) and (models, P), got {target.shape} and {logits.shape}"
        )
    return np.asarray(_expit(target) / _offline(_expit(logits).mean(axis=0), 1.0 if a is None else a))


def _offline(outside: Array, a: float) -> Array:
    return 0.5 * ((1.0 + a) * outside + 1.0 - a)


def _expit(logits: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(logits))


def _mean(values: Array, mask: Mask) -> Array:
    return np.asarray(np.sum(values, axis=0, where=mask) / mask.sum(axis=0))


def _variance(logits: Array, mask: Mask, rule: str) -> Array:
    """Return the unbiased variance of each record's models, or the pooled one, at least SMALLEST."""
    squares = np.sum((logits - _mean(logits, mask)) ** 2, axis=0, where=mask)
    freedom = mask.sum(axis=0) - 1
    if rule == "global":
        return np.full(len(squares), max(SMALLEST, squares.sum() / freedom.sum()))
    return np.asarray(np.maximum(squares / freedom, SMALLEST))


def _variance_rule(variance: str, *sides: Mask) -> str:
    rule = check_choice("variance", variance, VARIANCES)
    fewest = min(int(side.sum(axis=0).min()) for side in sides)
    if rule == "auto":
        rule = "record" if fewest >= FEW else "global"
    if rule == "record" and fewest < 2:
        raise InputError(f"variance='record' needs at least 2 models on either side of each record, got {fewest}")
    if rule == "global" and any(int((side.sum(axis=0) - 1).sum()) < 1 for side in sides):
        raise InputError(
            "logits must have at least 2 models on either side of some record, got one each: train more models"
        )
    return rule


def _checked(
    target: Array, logits: Array, inside: Mask, outside: Mask, *, least_inside: int
) -> tuple[Array, Array, Mask, Mask]:
    target, logits = np.asarray(target, dtype=np.float64), np.asarray(logits, dtype=np.float64)
    masks = [np.asarray(mask) for mask in (inside, outside)]
    if target.ndim != 1 or target.size == 0 or logits.ndim != 2 or logits.shape[1] != len(target):
        raise InputError(
            f"target and logits must have shapes (N,) and (models, N), got {target.shape} and {logits.shape}"
        )
    for name, mask, least in (("inside", masks[0], least_inside), ("outside", masks[1], 1)):
        if mask.shape != logits.shape or mask.dtype != np.bool_:
            raise InputError(f"{name} must be booleans of shape {logits.shape}, got {mask.dtype} of shape {mask.shape}")
        if int(mask.sum(axis=0).min()) < least:
            raise InputError(f"{name} must have at least {least} model for each record, got a record with none")
    if np.any(masks[0] & masks[1]):
        raise InputError("inside and outside must be different models, got one that is both with and without a record")
    if not ((np.abs(target) <= LARGEST).all() and (np.abs(logits) <= LARGEST).all()):
        raise InputError(f"target and logits must be finite numbers up to {LARGEST:g} in size, got NaN or larger ones")
    return target, logits, masks[0], masks[1]
