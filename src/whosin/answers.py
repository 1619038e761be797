"""The shape of every answer: one curve, the risks read off it, what it assumes, a paragraph, a dictionary.

What takes no argument is an attribute (``x.roc``, ``x.advantage``, ``x.assumes``), what takes one is a method
(``x.accuracy(prior)``, ``x.posterior(prior)``, ``x.tpr_at(fpr)``, ``x.risk(metric, prior)``, ``x.explain(prior)``).
A number that is proved is a float, one that was measured is an estimate with limits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin import risks
from whosin.errors import check_prior
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Answer", "CurveAnswer", "card", "finite_or_text"]


class Answer(ABC):
    """What every answer has: assumptions, a paragraph, a dictionary for JSON, one line and a card for notebooks."""

    @property
    @abstractmethod
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""

    @abstractmethod
    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""

    def _lists(self) -> dict[str, tuple[str, ...]]:
        """The lists under the paragraph of the card, by their titles."""
        return {"Assumes": self.assumes}

    def _repr_html_(self) -> str:
        return card(str(self), self.explain(), self._lists())


class CurveAnswer(Answer):
    """An answer that is proved: an upper limit on any attacker's ROC, and every risk read off that curve."""

    @property
    @abstractmethod
    def roc(self) -> Roc:
        """The upper limit of any attacker's ROC."""

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR."""
        return risks.advantage(self.roc)

    def accuracy(self, prior: float = 0.5) -> float:
        """Return the best share of right guesses at that prior, never below max(prior, 1-prior)."""
        return risks.accuracy(self.roc, prior)

    def tpr_at(self, fpr: ArrayLike) -> float | NDArray[np.float64]:
        """Return the largest TPR at each FPR: a float for a number, an array for an array."""
        value: float | NDArray[np.float64] = self.roc.tpr(fpr)
        return value

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return the smallest and largest ln P(output | in) / P(output | out) that the curve allows."""
        low, high = self.roc.slopes
        return (math.log(low) if low > 0 else -math.inf), (math.log(high) if high > 0 else -math.inf)

    def posterior(self, prior: float) -> tuple[float, float]:
        """Return the range of P(record in D | any output): the prior odds times the extreme likelihood ratios.

        The upper end is 1.0 where nothing smaller is true, the lower end 0.0 where nothing larger is.
        """
        prior = check_prior(prior)
        low, high = self.log_likelihood_ratios()
        return risks.posterior_at(prior, low), risks.posterior_at(prior, high)

    def risk(self, metric: str | risks.Risk, prior: float = 0.5) -> float:
        """Return the largest value of any metric of :mod:`whosin.risks` at that prior.

        Where the answer has a closed form of its own, that is taken: differences of rates that are read off a curve
        lose the digits of small risks.
        """
        prior, named = check_prior(prior), risks.resolve(metric)
        if named is risks.accuracy:
            return self.accuracy(prior)
        if named is risks.advantage:
            return self.advantage
        if named is risks.am:
            return 0.5 + 0.5 * self.advantage
        if named is risks.ppv:
            return risks.posterior_at(prior, self.log_likelihood_ratios()[1])
        if named is risks.npv:
            return risks.absence_at(prior, self.log_likelihood_ratios()[0])
        return float(named(self.roc, prior))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve; return the axes."""
        return self.roc.plot(ax=ax)


def card(title: str, paragraph: str = "", lists: Mapping[str, Iterable[str]] | None = None) -> str:
    """Return the small HTML card that a notebook shows."""
    listed = "".join(
        f"<p>{escape(name)}:</p><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        for name, lines in (lists or {}).items()
    )
    return f"<p><b>{escape(title)}</b></p>" + (f"<p>{escape(paragraph)}</p>" if paragraph else "") + listed


def finite_or_text(value: float) -> float | str:
    """Return a number as JSON can hold it: infinity and NaN as text."""
    return value if math.isfinite(value) else str(value)
