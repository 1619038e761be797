"""Membership privacy γ (Li et al. 2013): how far an output may move the belief that somebody is in.

Positive: Pr[t | S] ≤ γ·Pr[t] and Pr[¬t | S] ≥ Pr[¬t]/γ for every prior of a family; negative: the same with t and ¬t
exchanged. With R = sup P(S | t)/P(S | ¬t) a prior p needs γ = max(pR + 1 - p, R/(pR + 1 - p)). Over all
independent priors (D_I), or all independent priors of one size (D_B), γ = R; under the one prior in which every
subset is equally likely (D_N) p = 1/2 and γ = (R + 1)/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from whosin.errors import InputTypeError, check_choice, check_number
from whosin.guarantees.base import Guarantee
from whosin.guarantees.close_pairs import log_above
from whosin.guarantees.dp import close_pair_roc
from whosin.numerics.rounding import float_above
from whosin.roc import Roc

FAMILIES = ("independent", "bounded", "uniform", "prior")

_FAMILY_WORDS = {
    "independent": "records are in or out independently of one another, each with any probability (family D_I)",
    "bounded": "the data set has one known size and records are otherwise independent (family D_B)",
    "uniform": "every subset of the universe is equally likely (D_N); other priors on the one record, the rest uniform",
    "prior": "the other records follow the one prior that was enumerated",
}


@dataclass(frozen=True)
class MembershipPrivacy(Guarantee):
    """γ-membership privacy for a family of priors, positive or negative.

    Parameters
    ----------
    gamma : float
        At least 1; how much an output may multiply the belief in membership (positive) or in absence (negative).
    family : {"independent", "bounded", "uniform", "prior"}, default "independent"
        The priors that are covered: Li's D_I, D_B, D_N, or the single prior of an enumerated world.
    negative : bool, default False
        Whether the belief in absence is limited instead. Either one alone is one-sided.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.MembershipPrivacy(2.0).posterior(0.5)[1], 4)
    0.6667
    """

    gamma: float
    family: Literal["independent", "bounded", "uniform", "prior"] = "independent"
    negative: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.negative, bool):
            raise InputTypeError(f"negative must be True or False, got {self.negative!r}")
        self._set(
            gamma=check_number("gamma", self.gamma, low=1.0),
            family=check_choice("family", self.family, FAMILIES),
        )

    @property
    def ratio(self) -> float:
        """R, the largest likelihood ratio that the guarantee allows: γ, or 2γ - 1 under the uniform family."""
        return math.inf if math.isinf(self.gamma) else float_above(self._ratio)

    @property
    def _ratio(self) -> Fraction:
        gamma = Fraction(self.gamma)
        return 2 * gamma - 1 if self.family == "uniform" else gamma

    @property
    def apart(self) -> float:
        """1 - 1/R, rounded up: the largest total variation that one side alone leaves."""
        return 1.0 if math.isinf(self.gamma) else float_above(1 - 1 / self._ratio)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR, rounded up: 1 - 1/R, or (R - 1)/(R + 1) for the bounded family."""
        if self.family != "bounded" or math.isinf(self.gamma):
            return self.apart
        return float_above((self._ratio - 1) / (self._ratio + 1))

    def _build_roc(self) -> Roc:
        if math.isinf(self.gamma):
            return Roc([0.0], [1.0])
        if self.family == "bounded":
            return close_pair_roc(self.log_ratio, 0.0)
        if self.negative:
            return Roc([0.0], [self.apart])
        return Roc([-float_above(-1 / self._ratio)], [1.0])

    @property
    def log_ratio(self) -> float:
        """Logarithm of R, rounded up."""
        return math.inf if math.isinf(self.gamma) else log_above(self._ratio)

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return (-inf, ln R) for the positive form, (-ln R, inf) for the negative one; both for the bounded family."""
        log_ratio = self.log_ratio
        if log_ratio == 0.0:
            return 0.0, 0.0
        if self.family == "bounded":
            return -log_ratio, log_ratio
        return (-log_ratio, math.inf) if self.negative else (-math.inf, log_ratio)

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        side = "absence" if self.negative else "membership"
        one_sided = f"one-sided: it limits the belief in {side}, not in the opposite"
        return (
            _FAMILY_WORDS[self.family],
            "two-sided: replacing a record by another works both ways" if self.family == "bounded" else one_sided,
            "the attacker knows the prior and the mechanism",
        )

    @property
    def _attacker(self) -> str:
        return "An attacker who knows the chances but not the data"
