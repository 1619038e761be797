"""What every guarantee has in common: an upper limit on the attacker's ROC, and what can be read off it."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin import risks
from whosin.errors import check_prior
from whosin.roc import Roc

__all__ = ["Guarantee"]

Other = TypeVar("Other", bound="Guarantee")


@dataclasses.dataclass(frozen=True)
class Guarantee(ABC):
    """A promise about what any attacker can learn on membership: an upper limit on its ROC, with its assumptions."""

    @abstractmethod
    def _build_roc(self) -> Roc:
        """Build the upper limit of any attacker's ROC."""

    @cached_property
    def _roc(self) -> Roc:
        return self._build_roc()

    @property
    @abstractmethod
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""

    @property
    @abstractmethod
    def _attacker(self) -> str:
        """Who the attacker is, as the subject of a sentence."""

    def roc(self) -> Roc:
        """Return the upper limit of any attacker's ROC."""
        return self._roc

    def accuracy(self, prior: float = 0.5) -> float:
        """Return the best share of right guesses at that prior, never below max(prior, 1-prior)."""
        return risks.accuracy(self.roc(), prior)

    def advantage(self) -> float:
        """Return the largest TPR - FPR."""
        return risks.advantage(self.roc())

    def tpr_at(self, fpr: ArrayLike) -> float | NDArray[np.float64]:
        """Return the largest TPR at each FPR: a float for a number, an array for an array."""
        value: float | NDArray[np.float64] = self.roc().tpr(fpr)
        return value

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return the smallest and largest ln P(output | in) / P(output | out) that the guarantee allows."""
        low, high = self.roc().slopes
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

        Where the guarantee has a closed form of its own, that is taken: differences of rates that are read off a curve
        lose the digits of small risks.
        """
        prior, named = check_prior(prior), risks.resolve(metric)
        if named is risks.accuracy:
            return self.accuracy(prior)
        if named is risks.advantage:
            return self.advantage()
        if named is risks.am:
            return 0.5 + 0.5 * self.advantage()
        if named is risks.ppv:
            return risks.posterior_at(prior, self.log_likelihood_ratios()[1])
        if named is risks.npv:
            return risks.absence_at(prior, self.log_likelihood_ratios()[0])
        return float(named(self.roc(), prior))

    def implies(self, target: type[Other], **params: Any) -> Other:
        """Return the tightest guarantee of class ``target`` that follows from this one.

        Raises
        ------
        ImplicationError
            Where nothing follows; it says why, and names a counterexample.
        """
        from whosin.guarantees.implications import implied

        return implied(self, target, params)

    def explain(self, prior: float = 0.5) -> str:
        """Return a paragraph for a reader who is no expert. Upper limits are rounded up, lower limits down."""
        prior = check_prior(prior)
        low, high = self._posterior_to_explain(prior)
        blind, best = max(prior, 1.0 - prior), self.accuracy(prior)
        found = float(self.tpr_at(0.001))
        gains = f"at most {_up(best)} of the time" if best > blind + 1e-12 else "no more often than without looking"
        sentences = [
            f"{self._attacker} guesses right {gains} whether a given record is in the data; always giving the likelier "
            f"answer is right {_up(blind)} of the time (the record is in with probability {_plain(prior)})."
        ]
        if high >= 1.0:
            sentences.append(
                f"Rare outputs may still give somebody away: no limit below 100% on the belief in membership after "
                f"the output follows from this guarantee, whatever it was before (here {_plain(prior)})."
            )
        else:
            sentences.append(
                f"Whatever comes out, somebody who gave membership a chance of {_plain(prior)} beforehand gives it "
                f"at least {_down(low)} and at most {_up(high)} afterwards."
            )
        sentences.append(
            f"An attacker that wrongly accuses one outsider in a thousand finds at most {_up(found)} of the members."
        )
        return " ".join(sentences)

    def _posterior_to_explain(self, prior: float) -> tuple[float, float]:
        return self.posterior(prior)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters and assumptions for JSON (infinity as the string "inf")."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {k: ("inf" if isinstance(v, float) and math.isinf(v) else v) for k, v in fields.items()}
        return {"guarantee": type(self).__name__, **plain, "assumes": list(self.assumes)}

    def _repr_html_(self) -> str:
        from html import escape

        items = "".join(f"<li>{escape(line)}</li>" for line in self.assumes)
        return f"<p><b>{escape(str(self))}</b></p><p>{escape(self.explain())}</p><p>Assumes:</p><ul>{items}</ul>"

    def __str__(self) -> str:
        fields = ", ".join(f"{f.name}={_short(getattr(self, f.name))}" for f in dataclasses.fields(self))
        return f"{type(self).__name__}({fields})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the parameters only: the curve is built again where it is needed."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _plain(share: float) -> str:
    return f"{100 * share:.6g}%"


def _digits(share: float) -> int:
    """Decimals of a percentage that show two significant digits of the rarer side."""
    rarer = min(share, 1.0 - share)
    return 1 if rarer >= 0.02 or rarer <= 0.0 else min(12, -1 - math.floor(math.log10(rarer)))


def _up(share: float) -> str:
    """Percentage rounded up, so that an upper limit stays one."""
    scale = 10.0 ** _digits(share)
    return _percent(min(100.0, math.ceil(100 * share * scale * (1 - 1e-12)) / scale))


def _down(share: float) -> str:
    """Percentage rounded down, so that a lower limit stays one."""
    scale = 10.0 ** _digits(share)
    return _percent(max(0.0, math.floor(100 * share * scale * (1 + 1e-12)) / scale))


def _percent(value: float) -> str:
    text = f"{value:.12f}".rstrip("0").rstrip(".")
    return f"{text}%"
