"""Differential identifiability (Lee and Clifton 2012, as in Li et al. 2013, section 5.2).

The attacker knows the whole data set but one record, and m equally likely candidates for it. ρ limits the belief in any
one candidate after the output. At prior 1/m a posterior in [1-(m-1)ρ, ρ] means a likelihood ratio, of the candidate
against the mixture of the others, between (1-(m-1)ρ)/ρ and (m-1)ρ/(1-ρ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from whosin.errors import InputError, check_number, check_whole
from whosin.guarantees.base import Guarantee
from whosin.guarantees.close_pairs import log_above
from whosin.numerics.rounding import float_above
from whosin.roc import Roc

MOST_CANDIDATES = 10**300
"""More than this are no float."""


@dataclass(frozen=True)
class DifferentialIdentifiability(Guarantee):
    """ρ-differential identifiability among ``candidates`` equally likely people.

    Parameters
    ----------
    rho : float
        Largest belief in any one candidate, in [1/candidates, 1].
    candidates : int
        How many people the unknown record may belong to, at least 2.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.DifferentialIdentifiability(0.11, 10).implies(wi.PureDP).epsilon, 3)
    2.398
    """

    rho: float
    candidates: int

    def __post_init__(self) -> None:
        candidates = check_whole("candidates", self.candidates, low=2, high=MOST_CANDIDATES)
        rho = check_number("rho", self.rho, low=0.0, high=1.0)
        if rho < 1.0 / candidates:
            raise InputError(f"rho must be a number in [1/candidates, 1] = [{1 / candidates:g}, 1], got {self.rho!r}")
        self._set(rho=rho, candidates=candidates)

    @property
    def _rho(self) -> Fraction:
        """ρ; where it is the float of 1/m or 1/(m-1), that is meant."""
        for people in (self.candidates, self.candidates - 1):
            if self.rho == 1.0 / people:
                return Fraction(1, people)
        return Fraction(self.rho)

    @property
    def least(self) -> Fraction:
        """1 - (m-1)ρ: the least belief in a candidate that ρ leaves; 0 where there is none."""
        return max(Fraction(0), 1 - (self.candidates - 1) * self._rho)

    @property
    def corner(self) -> tuple[Fraction, Fraction]:
        """(FPR, TPR) of the one corner of the curve against the others."""
        m, rho = self.candidates, self._rho
        if m * rho <= 1:
            return Fraction(0), Fraction(0)
        return (1 - rho, 1 - self.least) if self.least > 0 else ((1 - rho) / ((m - 1) * rho), Fraction(1))

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR against the others: mρ - 1, or 1 - (1-ρ)/((m-1)ρ) where ρ ≥ 1/(m-1); rounded up."""
        fpr, tpr = self.corner
        return float_above(tpr - fpr)

    @property
    def apart(self) -> float:
        """Total variation between two candidates, mρ - 1 at most, rounded up (the exact limit, attained)."""
        return min(1.0, float_above(max(Fraction(0), self.candidates * self._rho - 1)))

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return the extreme log likelihood ratios of a candidate against the mixture of the others."""
        m, rho, least = self.candidates, self._rho, self.least
        if m * rho <= 1:
            return 0.0, 0.0
        high = log_above((m - 1) * rho / (1 - rho)) if rho < 1 else math.inf
        return -log_above(rho / least) if least > 0 else -math.inf, high

    def _build_roc(self) -> Roc:
        fpr, tpr = self.corner
        return Roc([-float_above(-fpr)], [float_above(tpr)])

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        return (
            f"the attacker knows every record but one and {self.candidates} equally likely candidates for it",
            "in means the unknown record is the candidate's, out that it is another candidate's",
            "one record is one person",
        )

    @property
    def _attacker(self) -> str:
        return f"An attacker with {self.candidates} candidates for the one record it does not know"
