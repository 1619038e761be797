"""Any risk, measured: the two algorithms of Xu et al. (2022) for generalised metrics, with intervals.

Where the denominator does not depend on the guess (their lemma 2: accuracy, AM, weighted accuracy) the metric is
linear in the two rates, and :mod:`whosin.auditing.measuring.limits` limits what any attacker of a class reaches.
Otherwise (algorithm 3, F1 and the like) the threshold is searched on the fit part; the lower limit is the smallest
ratio over the rectangle of the two Clopper-Pearson intervals, the upper limit the metric of the upper curve of the
band.

PPV and NPV without a constraint are degenerate: the best attacker accuses (acquits) almost nobody, and the sample's
best is noise. TPR and TNR are 1 for whoever accuses (acquits) everybody. Both are refused with a way out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from whosin import risks
from whosin.arrays import Array
from whosin.auditing.measuring.attack import Attack, Evidence, Gain, Judge
from whosin.auditing.measuring.band import Band, band_of
from whosin.auditing.measuring.counts import ScoreCounts
from whosin.auditing.measuring.estimate import Estimate, TprAtFpr
from whosin.auditing.measuring.limits import ADVANTAGE, best_value, gain_at_prior, rectangle
from whosin.auditing.measuring.splits import Splits
from whosin.errors import InputError, check_number
from whosin.risks import RatioMetric
from whosin.roc import Roc

PPV = RatioMetric((0, 1, 0, 0, 0), (0, 1, 1, 0, 0), name="ppv")
NPV = RatioMetric((0, 0, 0, 0, 1), (0, 0, 0, 1, 1), name="npv")

_NAMES = tuple(name for name in sorted(risks.NAMED) if name != "posterior")
_BY_FUNCTION: dict[Any, str] = {risks.NAMED[name]: name for name in _NAMES}


def check_metric(metric: Any) -> Any:
    """Return a metric by its name where it has one, or the callable; refuse those that say nothing."""
    if isinstance(metric, RatioMetric):
        return metric
    if callable(metric):
        return _BY_FUNCTION.get(metric, metric)
    if metric in ("tpr", "tnr"):
        everybody = "accuses" if metric == "tpr" else "acquits"
        raise InputError(f'metric="{metric}" is 1 for an attacker who {everybody} everybody: use tpr_at(fpr)')
    if metric == "posterior":
        return "ppv"
    if not isinstance(metric, str) or metric not in _NAMES:
        raise InputError(
            f"metric must be one of {', '.join(_NAMES)}, a RatioMetric or a callable (roc, prior), got {metric!r}"
        )
    return metric


def measure(
    splits: Splits,
    metric: Any,
    delta: float,
    *,
    roc: Callable[[], Roc],
    band: Callable[[], Band],
    prior: float,
    fpr: float | None = None,
    min_share: float | None = None,
) -> Estimate:
    """Return the metric of the best attacker at a prior; see :meth:`whosin.auditing.Audit.risk`."""
    metric = check_metric(metric)
    evidence = splits.first
    if fpr is not None or min_share is not None:
        return _constrained(evidence, metric, delta, prior, fpr, min_share)
    if metric == "accuracy":
        return _linear(splits, gain_at_prior(prior), delta).scaled(0.5, 0.5)
    if metric in ("ppv", "npv"):
        raise InputError(_needs_constraint(metric))
    linear = risks.linear_of(risks.NAMED[metric] if isinstance(metric, str) else metric, prior)
    if linear is not None:
        return _linear(splits, Gain(linear.constant, linear.tpr, linear.fpr), delta)
    if not isinstance(metric, RatioMetric):
        return _of_curves(metric, prior, roc(), band())
    _, bottom = metric._linear(prior)
    if min(bottom.at(0.0, 0.0), bottom.at(1.0, 1.0)) <= 0.0:
        raise InputError(_needs_constraint(metric.name))
    return _searched(evidence, metric, delta, prior)


def measure_tpr_at(evidence: Evidence, fpr: float, delta: float) -> TprAtFpr:
    """Return the TPR of the attack that the fit part chose for this FPR; see :meth:`whosin.auditing.Audit.tpr_at`."""
    fpr = check_number("fpr", fpr, low=0.0, high=1.0)
    attack = evidence.choose(_at_fpr(fpr))
    limits = rectangle(attack, delta / 4)
    level = 1.0 - delta
    why = _unmeasured(evidence, attack, fpr, limits.fpr_lower)
    if why is not None:
        nothing = float("nan")
        unknown = Estimate(nothing, 0.0, 1.0, level)
        return TprAtFpr(nothing, 0.0, 1.0, level, about=why, target=fpr, fpr=unknown, measurable=False)
    return TprAtFpr(
        attack.tpr,
        limits.tpr_lower,
        limits.tpr_upper,
        level,
        about=f"the attack on {attack.candidate}, chosen on other data",
        target=fpr,
        fpr=Estimate(attack.fpr, limits.fpr_lower, limits.fpr_upper, level),
    )


def _unmeasured(evidence: Evidence, attack: Attack, fpr: float, lowest: float) -> str | None:
    """Why nothing can be said of this rate; None if it can."""
    if fpr * evidence.non_members < 1.0:
        needed = math.ceil(1.0 / fpr) if fpr > 1e-300 else "infinitely many" if fpr == 0.0 else f"1/{fpr:g}"
        return f"not measurable with {evidence.non_members} outsiders: it takes at least {needed}"
    if lowest > fpr:
        return f"not measured: the attack chosen for it on other records accused {attack.fpr:.3g} of the outsiders"
    return None


def _at_fpr(most: float) -> Judge:
    """Judge an attack by its TPR if it may be expected to accuse at most this share of others, else not at all.

    A threshold with k of n outsiders above it has (k + 1)/(n + 1) of all outsiders above the next one, on average.
    """

    def judge(counts: ScoreCounts) -> Array:
        expected = (counts.accused + 1.0) / (counts.non_members + 1.0)
        return np.where((expected <= most) | (counts.accused == 0), counts.tpr, -np.inf)

    return judge


def _by_value(value: Callable[[Array, Array], Array]) -> Judge:
    """Judge an attack by a function of its FPR and TPR."""
    return lambda counts: value(counts.fpr, counts.tpr)


def _linear(splits: Splits, gain: Gain, delta: float) -> Estimate:
    """Return the value of a gain; one that is a rescaled other, as AM is of the advantage, by the limits of that."""
    if gain.tpr > 0.0 and gain.tpr == -gain.fpr:
        return best_value(splits, ADVANTAGE, delta).value.scaled(gain.tpr, gain.constant)
    return best_value(splits, gain, delta).value


def _of_curves(metric: Callable[[Roc, float], float], prior: float, roc: Roc, band: Band) -> Estimate:
    """Apply a metric that never falls when the curve rises to the curve and to both ends of its band."""
    low, middle, high = (float(metric(curve, prior)) for curve in (band.lower, roc.hull(), band.upper))
    about = "attackers who compare the score with a threshold; the metric must not fall when the curve rises"
    return Estimate(min(max(middle, low), high), low, high, band.confidence_level, about)


def _searched(evidence: Evidence, metric: RatioMetric, delta: float, prior: float) -> Estimate:
    attack = evidence.choose(_by_value(_ratio(metric, prior)))
    blind = max(_ratio(metric, prior)(np.array([0.0, 1.0]), np.array([0.0, 1.0])))
    band = band_of(evidence, attack.candidate, delta)
    upper = max(float(metric(band.upper, prior)), float(blind))
    low, _ = _extremes(metric, prior, attack, delta / (8 if _turns(metric, prior) else 4))
    lower = min(upper, max(low, float(blind)))
    found = float(_ratio(metric, prior)(np.array([attack.fpr]), np.array([attack.tpr]))[0])
    about = f"upper limit: every attacker who accuses by {attack.candidate}, at any threshold"
    return Estimate(min(max(found, lower), upper), lower, upper, 1.0 - delta, about)


def _constrained(
    evidence: Evidence, metric: Any, delta: float, prior: float, fpr: float | None, min_share: float | None
) -> Estimate:
    """Return a ratio of one attack, chosen on the fit part at an FPR or with a smallest share of such guesses."""
    ratio = {"ppv": PPV, "npv": NPV}.get(metric, metric) if isinstance(metric, str) else metric
    if not isinstance(ratio, RatioMetric) or (fpr is not None and min_share is not None):
        raise InputError("fpr and min_share go with ppv, npv or a RatioMetric, one of them at a time")
    value = _ratio(ratio, prior)
    if fpr is not None:
        most = check_number("fpr", fpr, low=0.0, high=1.0)
        attack = evidence.choose(_at_fpr(most))
    else:
        least = check_number("min_share", min_share, low=0.0, high=1.0, open_low=True)

        def allowed(x: Array, y: Array) -> Array:
            share = prior * y + (1.0 - prior) * x
            return np.where((1.0 - share if ratio.name == "npv" else share) >= least - 1e-12, value(x, y), -np.inf)

        attack = evidence.choose(_by_value(allowed))
    low, high = _extremes(ratio, prior, attack, delta / 4)
    found = float(value(np.array([attack.fpr]), np.array([attack.tpr]))[0])
    if not math.isfinite(found):
        found = 1.0 - prior if ratio.name == "npv" else prior
    about = f"the attack on {attack.candidate}, chosen on other data, not every attacker"
    return Estimate(min(max(found, low), high), low, high, 1.0 - delta, about)


def _ratio(metric: RatioMetric, prior: float) -> Callable[[Array, Array], Array]:
    """Return the metric of an attack by its rates, -inf where it is not defined."""
    top, bottom = metric._linear(prior)

    def value(fpr: Array, tpr: Array) -> Array:
        above, below = np.asarray(top.at(fpr, tpr) + 0.0 * fpr), np.asarray(bottom.at(fpr, tpr) + 0.0 * fpr)
        return np.asarray(np.divide(above, below, out=np.full(above.shape, -np.inf), where=below > 0))

    return value


def _extremes(metric: RatioMetric, prior: float, attack: Attack, alpha: float) -> tuple[float, float]:
    """Smallest and largest ratio over the rectangle: at corners, since a ratio of linear functions is quasi-linear.

    A corner where both sides vanish (PPV of an attacker who accuses nobody) is left out: near it the ratio takes the
    values of the two edges. A denominator that is not positive elsewhere has no limits.
    """
    fpr, tpr = np.array(rectangle(attack, alpha).corners).T
    above, below = (side.at(fpr, tpr) + 0.0 * fpr for side in metric._linear(prior))
    tiny = 1e-12 * max(1.0, *map(abs, metric.a), *map(abs, metric.b))
    defined = below > tiny
    if np.any(~defined & ((below < -tiny) | (np.abs(above) > tiny))):
        raise InputError(
            f"metric={metric.name!r} needs a denominator that is positive for every attacker, got {below.min():.6g}"
        )
    values = above[defined] / below[defined]
    return float(values.min()), float(values.max())


def _turns(metric: RatioMetric, prior: float) -> bool:
    """Whether a rate raises the ratio at some values of the other rate and lowers it at others.

    If not, the smallest ratio over a rectangle stands at the same two sides whatever the rectangle, and only these two
    can fail.
    """
    top, bottom = metric._linear(prior)

    def slopes(mine: str, other: str) -> list[float]:
        return [
            getattr(top, mine) * (bottom.constant + getattr(bottom, other) * rate)
            - getattr(bottom, mine) * (top.constant + getattr(top, other) * rate)
            for rate in (0.0, 1.0)
        ]

    return any(math.prod(slopes(*rates)) < 0.0 for rates in (("tpr", "fpr"), ("fpr", "tpr")))


def _needs_constraint(name: str) -> str:
    return (
        f"metric={name!r} is best for an attacker who accuses (or acquits) almost nobody, and cannot be measured: "
        "give fpr=… or min_share=…"
    )
