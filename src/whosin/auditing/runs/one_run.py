"""Testing a DP claim with one training run.

*The game* (Steinke, Nasr and Jagielski 2023). Each of m canaries is in the training data if a fair coin of its own says
so. An auditor sees the trained model and guesses for r of them whether they were in; R guesses are right. Let
q = e^ε/(1+e^ε).

*Pure DP* (their theorem). If training is ε-DP under adding or removing one record, R is stochastically dominated by
Binomial(r, q), because each guess is right with probability at most q given the model and the coins before it. So
P(R ≥ v) ≤ f(v) = P(Binomial(r, q) ≥ v), with equality for randomised response.

Several ways to guess are held together, and the scores may suggest one
(:mod:`whosin.auditing.measuring.guess_ways`).

*Approximate DP and whole curves*: the worst case of all mechanisms is in :mod:`whosin.auditing.measuring.guess_bound`.

*People.* Where all records of a person share one coin, a person is the canary: m people, one guess each, and the ε is
that of adding or removing all records of a person.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from whosin.answers import Answer
from whosin.arrays import Array, Flags
from whosin.auditing.measuring.counts import count_scores
from whosin.auditing.measuring.experiment import FAR
from whosin.auditing.measuring.guess_bound import curve_p_value, epsilon_lower, p_value, symmetric_divergence
from whosin.auditing.measuring.guess_ways import Count, SeveralWays, upper_group
from whosin.auditing.measuring.guesses import CURVE_SHARE, OneRunComparison, comparison_of
from whosin.auditing.measuring.people import people_in
from whosin.errors import (
    AssumptionWarning,
    ImplicationError,
    InputError,
    InputTypeError,
    check_confidence,
    check_number,
    check_probability,
    check_truth,
    check_whole,
)
from whosin.guarantees import ApproxDP, Guarantee, PureDP
from whosin.guarantees.base import check_guarantee
from whosin.guarantees.dp import DifferentialPrivacy
from whosin.numerics.proportions import dkw_radius
from whosin.numerics.rounding import at_least

if TYPE_CHECKING:
    from matplotlib.axes import Axes
__all__ = ["OneRunAudit", "OneRunComparison", "audit_one_run"]

Guesses = int | tuple[int, int]


@dataclass(frozen=True)
class OneRunAudit(Answer):
    """What one training run with random canaries says about the ε of the training.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(400) < 0.5
    >>> run = wi.audit_one_run(rng.normal(3 * included, 1), included, guesses=100)
    >>> run.right, run.guesses, round(run.epsilon_lower, 2)
    (100, 100, 3.49)
    """

    epsilon_lower: float
    """Training that is (ε, δ)-DP (add/remove) has ε at least this, at the confidence level."""
    delta: float
    guesses: int
    """Guesses of the way to guess that gave the limit."""
    right: int
    canaries: int
    """How many were tossed for: records, or people."""
    confidence_level: float
    counts: tuple[Count, ...]
    """Every way to guess that was fixed beforehand; for δ > 0 the confidence is shared among them (union bound)."""
    _for_curves: tuple[Count, ...]
    """The ways to guess that a whole promised curve is held against."""
    person_level: bool = False
    """Whether a canary is a person, with all its records."""
    _suggested: Count | None = None
    """The way to guess that the scores suggest, by their two groups; only for δ = 0."""
    scores: Array | None = field(default=None, repr=False, compare=False)
    included: Flags | None = field(default=None, repr=False, compare=False)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the limit rests on, in words."""
        tried = len(self.counts)
        chosen = "fixed before the scores were seen" if tried == 1 else f"one of {tried} fixed beforehand"
        if self._suggested is not None and self.delta == 0.0:
            chosen = f"{self._suggested.guesses}, chosen by the scores and no coin, or {chosen}"
        unit = "person with all its records" if self.person_level else "record"
        return (
            "each canary was included by a fair coin of its own, and nothing else about the training depends on it",
            "the scores were computed from the model and the canaries, without knowing who was included",
            f"the number of guesses was {chosen}",
            f"DP compares data with and without one {unit} (add/remove), and a canary is one {unit}",
        )

    @property
    def _unit(self) -> str:
        return "people" if self.person_level else "canaries"

    def p_value(self, epsilon: float, delta: float | None = None) -> float:
        """Return an upper limit on the chance of so many right guesses if the training were (ε, δ)-DP."""
        epsilon = check_number("epsilon", epsilon, low=0.0)
        delta = self.delta if delta is None else check_probability("delta", delta)
        if delta == 0.0:
            return self._pure.p_value(epsilon)
        values = [p_value(self.canaries, c.guesses, c.right, epsilon, delta) for c in self.counts]
        return min(1.0, len(self.counts) * min(values))

    def epsilon_lower_at(self, delta: float) -> float:
        """Return the lower limit on ε for another δ."""
        delta = check_probability("delta", delta)
        if delta == 0.0:
            return self._pure.epsilon_lower()
        share = (1.0 - self.confidence_level) / len(self.counts)
        return max(epsilon_lower(self.canaries, c.guesses, c.right, delta, share) for c in self.counts)

    @property
    def ways(self) -> tuple[Count, ...]:
        """The ways to guess for which the limit holds together, at δ = 0 with the one that the scores suggest first.

        It takes the place of one that guesses everybody if it does so too.
        """
        if self._suggested is None or self.delta > 0.0:
            return self.counts
        everybody = self.canaries if self._suggested.guesses == self.canaries else None
        return (self._suggested, *(count for count in self.counts if count.guesses != everybody))

    @cached_property
    def _pure(self) -> SeveralWays:
        """All ways together, under pure DP."""
        pure = replace(self, delta=0.0).ways
        return SeveralWays(self.canaries, pure, pure[0] is self._suggested, 1.0 - self.confidence_level)

    def compare(self, guarantee: Guarantee) -> OneRunComparison:
        """Hold the run against a promise of the training.

        "violated" if so many right guesses had at most the allowed chance under the promise, otherwise "inconclusive":
        a run that a weak attack saw through badly confirms nothing. A promise of more than one (ε, δ) is held against
        the run as a whole curve, by the surest quarter of the guesses unless ``guesses`` was given. Where a canary is a
        person, the promise must be one for all records of a person.

        Raises
        ------
        ImplicationError
            For a promise from which no add/remove DP follows.
        """
        promise = _as_dp(guarantee)
        if isinstance(promise, PureDP | ApproxDP):
            delta, counts = promise.delta, self.counts
            each = [p_value(self.canaries, c.guesses, c.right, promise.epsilon, delta) for c in counts]
            if delta == 0.0:
                counts, each = (self._pure.best,), [self._pure.p_value(promise.epsilon)]
        else:
            delta, counts, allowed = self.delta, self._for_curves, symmetric_divergence(promise.roc)
            each = [curve_p_value(allowed, self.canaries, c.guesses, c.right) for c in counts]
        best = counts[int(np.argmin(each))]
        counted = f"{best.right} of {best.guesses} guesses about {self.canaries} {self._unit} are right"
        value, limit = min(1.0, len(counts) * min(each)), self.epsilon_lower_at(delta)
        return comparison_of(guarantee, value, limit, delta, self.confidence_level, counted, self.person_level)

    def plot(self, ax: Axes | None = None, *, guarantee: Guarantee | None = None, scale: str = "linear") -> Axes:
        """Draw the measured curve of the canaries' scores with its band, and a promise; return the axes.

        The picture shows how near the attack comes to the promise; what it says about the training is ``compare``. The
        band (Dvoretzky-Kiefer-Wolfowitz on both sides) takes the scores for independent draws, which those of one
        training are not.
        """
        from whosin.plots import draw_measured

        if guarantee is not None:
            check_guarantee(guarantee)
        if self.scores is None or self.included is None:
            raise InputError("plot needs an audit that audit_one_run returned, with its scores")
        inside, outside = self.scores[self.included], self.scores[~self.included]
        if not (len(inside) and len(outside)):
            raise InputError("plot needs canaries in and out of the training, got all on one side")
        measured = count_scores(inside, outside).roc()
        fpr = np.unique(np.concatenate([np.geomspace(1e-5, 0.1, 100), np.linspace(0.0, 1.0, 501)]))
        share = (1.0 - self.confidence_level) / 4.0
        up, right = dkw_radius(len(inside), share), dkw_radius(len(outside), share)
        lower = np.where(fpr >= right, measured.tpr(np.maximum(fpr - right, 0.0)) - up, 0.0)
        upper = measured.tpr(np.minimum(fpr + right, 1.0)) + up
        return draw_measured(
            ax,
            fpr,
            np.asarray(measured.tpr(fpr)),
            np.maximum(lower, 0.0),
            np.minimum(upper, 1.0),
            label=f"measured: ε ≥ {at_least(self.epsilon_lower)}",
            scale=scale,
            promised=None if guarantee is None else np.asarray(guarantee.roc.tpr(fpr)),
        )

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        level = f"{100 * self.confidence_level:g}%"
        opening = (
            f"{self.canaries} {self._unit} were included in the training or left out by coin toss. Of {self.guesses} "
            f"guesses who was in, {self.right} were right; blind guesses are right half of the time."
        )
        if self.epsilon_lower <= 0.0:
            return (
                f"{opening} That could be chance, so this run says nothing against any ε. It does not "
                "show that the training is private: a stronger attack, or more canaries, may find more."
            )
        delta = f" with δ = {self.delta:g}" if self.delta else ""
        delta += " for all records of a person together" if self.person_level else ""
        return (
            f"{opening} If the training is differentially private{delta}, its ε is at least "
            f"{at_least(self.epsilon_lower)} ({level} confidence). How much larger it is, one run does not tell."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        plain = ("epsilon_lower", "delta", "guesses", "right", "canaries", "person_level", "confidence_level")
        return {
            **{name: getattr(self, name) for name in plain},
            "counts": [{"in": c.guessed_in, "out": c.guessed_out, "right": c.right} for c in self.ways],
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }

    def __str__(self) -> str:
        delta = f" at δ = {self.delta:g}" if self.delta else ""
        return (
            f"ε ≥ {at_least(self.epsilon_lower)}{delta} with {100 * self.confidence_level:g}% confidence "
            f"({self.right} of {self.guesses} guesses right, {self.canaries} {self._unit}, one run)"
        )


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    guesses: Guesses | list[Guesses] | None = None,
    delta: float = 0.0,
    confidence_level: float = 0.95,
    person: Any = None,
    rng: Any = None,
) -> OneRunAudit:
    """Give a lower limit on the ε of a training from one run with randomly included canaries.

    Parameters
    ----------
    scores : array-like of shape (m,)
        A score of each canary, from the model alone; a high one speaks for inclusion.
    included : array-like of bool, shape (m,)
        Which canaries were included, each by a fair coin of its own.
    guesses : int, pair of int, or list of these, optional
        How many canaries are guessed: a number r (the highest scores are guessed in and the lowest out, half of r each)
        or a pair (in, out). It must be fixed before the scores are compared with ``included``. A list tries several;
        the limit holds for all of them together, which costs some confidence. None tries all m, m/2, m/4, … down to 8
        for a limit on ε, each half in and half out and, but for m, all in: where a release repeats some records, a low
        score says little. Where the scores fall into two groups, first of all (at δ = 0) the upper group is guessed in,
        and the lower out unless the upper has less than a quarter of all. Whole curves are held against the surest
        quarter: where about as many are guessed, a promise is refuted most easily.
    delta : float, default 0
        The δ for which ε is wanted.
    confidence_level : float, default 0.95
        Probability with which the limit holds, over coins and training.
    person : array-like of shape (m,), optional
        Whose each record is, where one coin was tossed for all records of a person. People are guessed, by the mean
        score of their records (the sum of log likelihood ratios is the best there is; the mean does not count records),
        and ε is that of adding or removing a person.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes; it breaks ties between equal scores.

    Returns
    -------
    OneRunAudit

    Warns
    -----
    AssumptionWarning
        If so many or so few canaries are included that fair coins are out of the question.

    Notes
    -----
    Cost O(m log m), and for several ways at δ = 0 some twenty walks over their right guesses, a second for m = 2,000.

    References
    ----------
    Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run. Mahloujifar, Melis, Chaudhuri (2024),
    Auditing f-differential privacy in one run. The worst cases for (ε, δ) and for curves are our own
    (:mod:`whosin.auditing.measuring.guess_bound`).

    Examples
    --------
    >>> import numpy as np
    >>> import whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> included = np.arange(400) % 2 == 0
    >>> found = wi.audit_one_run(rng.normal(size=400) + 3 * included, included, guesses=100)
    >>> found.epsilon_lower > 1.0
    True
    """
    level = check_confidence(confidence_level)
    delta = check_probability("delta", delta)
    values, inside = _canaries(scores, included, person)
    ways = _ways(guesses, len(values))
    order = np.lexsort((np.random.default_rng(rng).random(len(values)), values))
    sorted_inside = inside[order]
    counts = tuple(_count(sorted_inside, *way) for way in ways)
    quarter = _way(max(1, len(values) // CURVE_SHARE), len(values))
    surest = counts if guesses is not None else (_count(sorted_inside, *quarter),)
    group = upper_group(values) if guesses is None else 0
    lower = len(values) - group if group >= len(values) / CURVE_SHARE else 0
    suggested = _count(sorted_inside, group, lower) if group else None
    run = len(values), level, counts, surest, person is not None, suggested, values, inside
    audit = OneRunAudit(0.0, delta, 0, 0, *run)
    if delta == 0.0:
        best = audit._pure.best
    else:
        share = (1.0 - level) / len(counts)
        limits = [epsilon_lower(len(values), c.guesses, c.right, delta, share) for c in counts]
        best = counts[max(range(len(counts)), key=lambda i: (limits[i], counts[i].right / counts[i].guesses))]
    return OneRunAudit(audit.epsilon_lower_at(delta), delta, best.guesses, best.right, *run)


def _canaries(scores: ArrayLike, included: ArrayLike, person: Any) -> tuple[Array, Flags]:
    """Return score and coin of each canary: of each record, or of each person."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"scores must have one number per canary, got {scores!r}") from None
    if values.ndim != 1 or values.size == 0:
        raise InputError(f"scores must have one number per canary, got shape {values.shape}")
    if np.isnan(values).any():
        raise InputError(f"scores must be numbers, got NaN for canary {int(np.flatnonzero(np.isnan(values))[0])}")
    inside = check_truth("included", included, values.shape)
    unit = "canaries" if person is None else "people"
    if person is not None:
        people = people_in(person, len(values), "canaries")
        inside = people.sides(inside, "toss one coin for each person, or leave these people out")
        values = people.pooled(np.clip(values, -FAR, FAR), "mean")
    share = float(inside.mean())
    if 2.0 * math.exp(-2.0 * len(inside) * (share - 0.5) ** 2) < 1e-6:
        warnings.warn(
            f"included: {int(inside.sum())} of {len(inside)} {unit} are in, which fair coins do not give; "
            "the limit assumes that each was included with probability 1/2",
            AssumptionWarning,
            stacklevel=3,
        )
    return values, inside


def _ways(guesses: Any, canaries: int) -> list[tuple[int, int]]:
    """Return pairs (guessed in, guessed out)."""
    if guesses is None:
        sizes = [canaries]
        while sizes[-1] // 2 >= 8:
            sizes.append(sizes[-1] // 2)
        return [*(_way(size, canaries) for size in sizes), *((size, 0) for size in sizes[1:])]
    if isinstance(guesses, list):
        if not guesses:
            raise InputError("guesses must hold at least one number, got an empty list")
        return [_way(item, canaries) for item in guesses]
    return [_way(guesses, canaries)]


def _way(item: Any, canaries: int) -> tuple[int, int]:
    if isinstance(item, Sequence) and not isinstance(item, str):
        if len(item) != 2:
            raise InputError(f"guesses must be a number or a pair (in, out), or a list of these, got {item!r}")
        inside, outside = (check_whole("guesses", part) for part in item)
    else:
        size = check_whole("guesses", item, low=1)
        inside, outside = size - size // 2, size // 2
    if not 1 <= inside + outside <= canaries:
        raise InputError(f"guesses must be 1 to {canaries} guesses for {canaries} canaries, got {item!r}")
    return inside, outside


def _count(sorted_inside: Flags, inside: int, outside: int) -> Count:
    highest = sorted_inside[len(sorted_inside) - inside :]
    return Count(inside, outside, int(highest.sum()) + int(np.sum(~sorted_inside[:outside])))


def _as_dp(guarantee: Any) -> DifferentialPrivacy:
    """Return a promise that says what turning one coin over may change: add/remove DP."""
    check_guarantee(guarantee)
    promise = guarantee if isinstance(guarantee, DifferentialPrivacy) else guarantee.implies(ApproxDP)
    if getattr(promise, "adjacency", "add_remove") != "add_remove":
        raise ImplicationError(
            "replace-one DP says nothing about canaries that are included by coin toss: the number of records may be "
            "published under it. Use a guarantee with adjacency='add_remove'"
        )
    return promise
