"""Practical membership privacy (Lowy et al. 2024): the attacker knows the pool, not who was drawn from it.

Definition 2: X holds N records, D is a uniform half of them. A is (ε, δ)-PMP with respect to X if for every record the
laws of the output given x ∈ D and given x ∉ D are (ε, δ)-close in both directions. The paper's posterior form and its
sums over data sets carry the same δ (its lemma 3 and corollary 4 double count).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from whosin.errors import check_number, check_prior, check_probability
from whosin.guarantees.base import Guarantee
from whosin.guarantees.dp import close_pair_advantage, close_pair_roc
from whosin.roc import Roc


@dataclass(frozen=True)
class PMP(Guarantee):
    """(ε, δ)-practical membership privacy with respect to one pool of records.

    Parameters
    ----------
    epsilon, delta : float, default 0 for delta
        How close the laws of the output are given that the record is in, and that it is out.
    train_fraction : float, default 0.5
        Share of the pool that is drawn, 1/2 in the paper (its footnote 1 allows any).
    uniform : bool, default True
        Whether every record has the same chance to be drawn, as in the paper. If not, the laws given in and given out
        are as close, but how often a guess is right at best depends on each record's own chance.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.PMP(0.5).implies(wi.MIP).eta, 4)
    0.1225
    """

    epsilon: float
    delta: float = 0.0
    train_fraction: float = 0.5
    uniform: bool = True

    def __post_init__(self) -> None:
        self._set(
            epsilon=check_number("epsilon", self.epsilon, low=0.0),
            delta=check_probability("delta", self.delta),
            train_fraction=check_prior(self.train_fraction, "train_fraction"),
        )

    def _build_roc(self) -> Roc:
        return close_pair_roc(self.epsilon, self.delta)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR: (e^ε - 1 + 2δ)/(e^ε + 1), tight."""
        return close_pair_advantage(self.epsilon, self.delta)

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return (-ε, ε) for δ = 0; for δ > 0 no output's likelihood ratio is bounded."""
        return (-self.epsilon, self.epsilon) if self.delta == 0.0 else (-math.inf, math.inf)

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        drawn = (
            f"the data set is a uniform {self.train_fraction:g} of the pool, drawn once and kept secret"
            if self.uniform
            else f"the data set is {self.train_fraction:g} of the pool, drawn once with known chances that differ "
            "(not the paper's draw) and kept secret; a share of right guesses is for somebody to whom in and out are "
            "equally likely beforehand"
        )
        return (
            f"the attacker knows the whole pool and the mechanism; {drawn}",
            "it holds for this pool only, and for one release: practical guarantees do not compose",
            "membership in the pool itself is not protected",
        )

    @property
    def _attacker(self) -> str:
        return "An attacker who knows the pool but not who was drawn from it"
