"""Membership inference privacy (Izzo et al. 2022): a limit on the attacker's average accuracy.

Definition 1: D is a uniform k-subset of n records, q = k/n. A is η-MIP if no attacker guesses the membership of any
record right more often than max(q, 1-q) + η. So q·TPR + (1-q)(1-FPR) ≤ max(q, 1-q) + η; at q = 1/2 this is
TPR ≤ FPR + 2η (the paper's theorem 8 prints η: it divides twice by the prior).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin.errors import check_number, check_prior
from whosin.guarantees.base import Guarantee
from whosin.numerics.rounding import float_above
from whosin.roc import Roc


@dataclass(frozen=True)
class MIP(Guarantee):
    """η-membership inference privacy with respect to one pool of records.

    Parameters
    ----------
    eta : float
        How much better than the best blind guess any attacker can be, on average over outputs.
    train_fraction : float, default 0.5
        Share q of the pool that is drawn. Above 1/2 the guarantee says nothing about low false positive rates.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.MIP(0.1).accuracy()
    0.6
    """

    eta: float
    train_fraction: float = 0.5

    def __post_init__(self) -> None:
        self._set(
            eta=check_number("eta", self.eta, low=0.0, high=0.5),
            train_fraction=check_prior(self.train_fraction, "train_fraction"),
        )

    def _build_roc(self) -> Roc:
        q, eta = Fraction(self.train_fraction), Fraction(self.eta)
        at_zero = (max(q, 1 - q) + eta - (1 - q)) / q
        missed_at_one = (max(q, 1 - q) + eta - q) / (1 - q)
        if at_zero >= 1 or missed_at_one >= 1:
            return Roc([0.0], [1.0])
        return Roc([0.0, 1.0 - float_above(missed_at_one)], [float_above(at_zero), 1.0])

    def accuracy(self, prior: float = 0.5) -> float:
        """Return the best share of right guesses at that prior; max(q, 1-q) + η at the prior q of the definition."""
        if check_prior(prior) == self.train_fraction:
            return min(1.0, max(prior, 1.0 - prior) + self.eta)
        return super().accuracy(prior)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR: 2η at train fraction 1/2 (Izzo et al., theorem 8, corrected), tight."""
        return min(1.0, 2.0 * self.eta) if self.train_fraction == 0.5 else super().advantage

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        return (
            f"the attacker knows the whole pool and the mechanism; the data set is a uniform {self.train_fraction:g} "
            "of the pool, drawn once and kept secret",
            "the limit is on the average over outputs: a rare output may give a record away",
            "it holds for this pool only, and for one release: practical guarantees do not compose",
            "membership in the pool itself is not protected",
        )

    @property
    def _attacker(self) -> str:
        return "An attacker who knows the pool but not who was drawn from it"
