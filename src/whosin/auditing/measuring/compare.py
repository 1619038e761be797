"""Promised against measured.

What a measurement can say about a promise depends on where the scores come from. A guarantee of the training
(differential privacy above all) speaks of a random draw of the records and of the training. The records of one
trained model, however many, are one draw: an attack that does better on them than promised may mean that members
and non-members differ for other reasons (Xu et al., theorem 1(4) is false for a fixed training set). So "violated"
is said only for scores that each come from a training of its own, of records that were included at random, and in the
way of which the promise speaks: one that compares data sets of one size (replace one) is not broken by a release that
gives the number of records away. One run can refute a promise too, by guesses about coins
(:mod:`whosin.auditing.measuring.guesses`), whose test is not this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whosin.answers import card
from whosin.arrays import Array
from whosin.auditing.measuring.attack import Attack, Evidence
from whosin.auditing.measuring.band import Band
from whosin.auditing.measuring.counts import ScoreCounts
from whosin.auditing.measuring.estimate import Estimate
from whosin.auditing.measuring.limits import rectangle
from whosin.errors import check_choice, check_whole
from whosin.guarantees import Guarantee
from whosin.guarantees.base import check_guarantee
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper
from whosin.numerics.rounding import at_least, at_most

Rates = tuple[Array, Array]
"""FPRs and TPRs."""

ASSIGNMENTS = ("unknown", "random", "coins", "independent trainings")


class HeldAgainst:
    """What a measurement says about a promise: a verdict, and why."""

    verdict: str
    text: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"

    def _repr_html_(self) -> str:
        return card(self.verdict, self.text)


@dataclass(frozen=True)
class Comparison(HeldAgainst):
    """What a measurement says about a promise.

    Examples
    --------
    Two hundred trainings with a record and two hundred without, by a training that promises too much:

    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> found = wi.audit(rng.normal(2, 1, 200), rng.normal(0, 1, 200), assignment="independent trainings")
    >>> found.compare(wi.PureDP(0.5)).verdict, found.compare(wi.PureDP(4.0)).verdict
    ('violated', 'inconclusive')
    """

    verdict: str
    """"violated", "exceeds the promise on this model", "consistent" or "inconclusive"."""
    text: str
    epsilon_lower: float
    """Every ε for which the measured game is (ε, δ)-private is at least this, at the confidence level."""
    delta: float
    """The δ of the promise that goes with ``epsilon_lower``."""
    confidence_level: float
    promised_advantage: float
    advantage: Estimate
    fpr_upper: float
    """The attack that was held against the promise: it accuses at most this share …"""
    tpr_lower: float
    """… and finds at least this share, where …"""
    promised_tpr: float
    """… the promise allows this."""
    guarantee: Guarantee
    assignment: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        plain = ("verdict", "text", "delta", "confidence_level", "promised_advantage", "fpr_upper", "tpr_lower")
        return {
            **{name: getattr(self, name) for name in plain},
            "promised_tpr": self.promised_tpr,
            "epsilon_lower": self.epsilon_lower if math.isfinite(self.epsilon_lower) else str(self.epsilon_lower),
            "advantage": self.advantage.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "assignment": self.assignment,
        }


def compare(
    evidence: Evidence,
    guarantee: Guarantee,
    advantage: Estimate,
    band: Band,
    delta: float,
    assignment: str,
    trainings: int,
) -> Comparison:
    """Hold the measured attacks against a promise; see :meth:`whosin.auditing.Audit.compare`.

    Two tests, each at half the error, may say that more than promised is found: the lower limit of the advantage, and
    the rates of one attack, which shows the few members whom an advantage says little about. For the same reason
    "consistent" takes the whole upper band under the promised curve besides the upper limit of the advantage under the
    promised one. No sample shows this of a promise that allows nothing at an FPR of 0, as pure differential privacy.
    """
    check_guarantee(guarantee)
    assignment = check_choice("assignment", assignment, ASSIGNMENTS)
    trainings = check_whole("trainings", trainings, low=1)
    slack = float(getattr(guarantee, "delta", 0.0))
    epsilon_lower = _epsilon_lower(evidence, slack, delta)
    attack = _strongest(evidence, guarantee, delta / 2)
    limits = rectangle(attack, delta / 4)
    allowed = float(guarantee.roc.tpr(limits.fpr_upper))
    promised = guarantee.advantage
    records = len(evidence.fit_members) + len(evidence.fit_non_members)
    own_training = assignment == "independent trainings" or (assignment in ("random", "coins") and trainings >= records)
    if limits.tpr_lower > allowed or advantage.lower > promised:
        verdict = "violated" if own_training else "exceeds the promise on this model"
    else:
        within = advantage.upper <= promised and guarantee.roc.dominates(band.upper)
        verdict = "consistent" if within else "inconclusive"
    held = limits.fpr_upper, limits.tpr_lower, allowed
    found = Comparison(
        verdict, "", epsilon_lower, slack, 1.0 - delta, promised, advantage, *held, guarantee, assignment
    )
    return replace(found, text=_text(found, attack))


def _strongest(evidence: Evidence, guarantee: Guarantee, delta: float) -> Attack:
    """Return the attack that exceeds the promise on the fit part by most, measured by the width of its limits."""
    curve = guarantee.roc

    def excess(point: Rates, limits: Rates) -> Array:
        above, surely = (tpr - curve.tpr(fpr) for fpr, tpr in (point, limits))
        return np.asarray(above / np.maximum(above - surely, 1e-12))

    return _by_limits(evidence, excess, delta)


def _epsilon_lower(evidence: Evidence, slack: float, delta: float) -> float:
    """Return a lower limit of max(ln((TPR - δ)/FPR), ln((TNR - δ)/FNR)) of an attack that the fit part chose."""

    def epsilon(_: Rates, limits: Rates) -> Array:
        fpr, tpr = limits
        with np.errstate(divide="ignore", invalid="ignore"):
            sides = [
                np.where(top > slack, np.log(np.maximum(top - slack, 0.0) / bottom), -np.inf)
                for top, bottom in ((tpr, fpr), (1.0 - fpr, 1.0 - tpr))
            ]
        return np.maximum(sides[0], sides[1])

    limits = rectangle(_by_limits(evidence, epsilon, delta), delta / 2)
    ends = np.array(limits.fpr_upper), np.array(limits.tpr_lower)
    return max(0.0, float(epsilon(ends, ends)))


def _by_limits(evidence: Evidence, value: Callable[[Rates, Rates], Array], delta: float) -> Attack:
    """Choose an attack by its rates on the fit part and their limits, FPR from above and TPR from below."""

    def best(counts: ScoreCounts) -> tuple[float, float]:
        few = counts.thinned(301)
        fpr = clopper_pearson_upper(few.accused, few.non_members, delta / 2)
        tpr = clopper_pearson_lower(few.found, few.members, delta / 2)
        values = value((few.fpr, few.tpr), (fpr, tpr))
        at = int(np.argmax(values))
        return float(values[at]), float(few.thresholds[at])

    found = [best(candidate.judged) for candidate in evidence.rivals]
    place = max(range(len(found)), key=lambda i: found[i][0])
    return evidence.attack(evidence.rivals[place], found[place][1])


def _text(found: Comparison, attack: Attack) -> str:
    verdict, advantage, guarantee = found.verdict, found.advantage, found.guarantee
    promised = at_most(found.promised_advantage, 3)
    if found.tpr_lower > found.promised_tpr:
        point = (
            f"an attack on {attack.candidate} finds at least {at_least(100 * found.tpr_lower, 3)}% of the members "
            f"while accusing at most {at_most(100 * found.fpr_upper, 3)}% of the outsiders; {guarantee} allows "
            f"{at_most(100 * found.promised_tpr, 3)}% there"
        )
    else:
        point = f"the measured advantage is at least {at_least(advantage.lower, 3)}; {guarantee} allows {promised}"
    if verdict == "violated":
        return (
            f"{point}. Each score comes from a training of its own, so the promise does not hold as stated, provided "
            f"that members were chosen as it assumes ({guarantee.assumes[0]})."
        )
    if verdict == "exceeds the promise on this model":
        return (
            f"{point}. This is no refutation: the records of one model are one draw, and members may differ from "
            "non-members for reasons other than the training. Random inclusion and independent trainings would decide."
        )
    if verdict == "consistent":
        return (
            f"the measured advantage is at most {at_most(advantage.upper, 3)}, within the {promised} of "
            f"{guarantee}, and the upper limits of the TPR lie under the promised curve at every FPR. Covered: "
            f"{advantage.about.removeprefix('upper limit: ')}; no other attacker."
        )
    return (
        f"the measured advantage lies between {at_least(advantage.lower, 3)} and {at_most(advantage.upper, 3)} (for "
        f"{advantage.about.removeprefix('upper limit: ')}); {guarantee} promises at most {promised}, and "
        "less at low false positive rates, where so many records cannot show it. Nothing here contradicts the promise, "
        "and nothing here shows it."
    )
