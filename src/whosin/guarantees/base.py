"""What every guarantee has in common: an upper limit on the attacker's ROC, and what can be read off it."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import ArrayLike

from whosin.answers import Answer, CurveAnswer
from whosin.arrays import Array
from whosin.errors import InputTypeError, check_prior, short_repr
from whosin.numerics.rounding import at_least, at_most, percent_down, percent_up
from whosin.risks import Risk
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Other = TypeVar("Other", bound="Guarantee")


@dataclasses.dataclass(frozen=True)
class Guarantee(CurveAnswer):
    """A promise about what any attacker can learn on membership: an upper limit on its ROC, with its assumptions.

    Examples
    --------
    Every promise answers the same questions, whichever family it is of:

    >>> import whosin as wi
    >>> for promise in (wi.PureDP(1.0), wi.GaussianDP(1.0), wi.MIP(0.1)):
    ...     print(promise, round(promise.advantage, 4), round(float(promise.tpr_at(0.01)), 4))
    ε = 1 (one person added or removed) 0.4621 0.0272
    μ = 1 (one person added or removed) 0.3829 0.0924
    MIP (η = 0.1, train fraction = 0.5) 0.2 0.21
    >>> round(wi.PureDP(1.0).implies(wi.MIP).eta, 4)
    0.3161
    """

    @abstractmethod
    def _build_roc(self) -> Roc:
        """Build the upper limit of any attacker's ROC."""

    @cached_property
    def roc(self) -> Roc:
        """The upper limit of any attacker's ROC."""
        return self._build_roc()

    @property
    @abstractmethod
    def _attacker(self) -> str:
        """Who the attacker is, as the subject of a sentence."""

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
        low, high = belief_after(self, prior)
        blind, best = max(prior, 1.0 - prior), self.accuracy(prior)
        found = float(self.tpr_at(0.001))
        gains = (
            f"at most {percent_up(best)} of the time" if best > blind + 1e-12 else "no more often than without looking"
        )
        sentences = [
            f"{self._attacker} guesses right {gains} whether a given record is in the data; always giving the likelier "
            f"answer is right {percent_up(blind)} of the time (the record is in with probability {_plain(prior)})."
        ]
        if high >= 1.0:
            sentences.append(
                f"Rare outputs may still give somebody away: no limit below 100% on the belief in membership after "
                f"the output follows from this guarantee, whatever it was before (here {_plain(prior)})."
            )
        else:
            sentences.append(
                f"Whatever comes out, somebody who gave membership a chance of {_plain(prior)} beforehand gives it "
                f"at least {percent_down(low)} and at most {percent_up(high)} afterwards."
            )
        sentences.append(
            f"An attacker that wrongly accuses one outsider in a thousand finds at most {percent_up(found)} of the "
            "members."
        )
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters and assumptions for JSON (infinity as the string "inf")."""
        return {"guarantee": type(self).__name__, **self.parameters(), "assumes": list(self.assumes)}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters for JSON, every bit of every float; infinity as the string "inf"."""
        return {field.name: _plain_value(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def __str__(self) -> str:
        return in_words(self)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the parameters only: the curve is built again where it is needed."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def check_guarantee(value: Any) -> Guarantee:
    """Return ``value`` if it is a guarantee."""
    if not isinstance(value, Guarantee):
        raise InputTypeError(f"guarantee must be one of whosin's guarantees, got {short_repr(value)}")
    return value


def belief_after(guarantee: Guarantee, prior: float) -> tuple[float, float]:
    """Return the range of the belief after any output, in the world that the guarantee's adjacency speaks of.

    Add/remove DP speaks of independent inclusion, replace-one DP of data sets of one known size.
    """
    if getattr(guarantee, "adjacency", "") == "replace":
        return guarantee.posterior(prior, world="fixed_size")  # type: ignore[call-arg]
    return guarantee.posterior(prior)


def facts(guarantee: Guarantee, prior: float) -> dict[str, Any]:
    """Return what a guarantee means at a prior, for JSON: what the command line and the page show."""
    return {
        "guarantee": str(guarantee),
        "kind": type(guarantee).__name__,
        "parameters": guarantee.parameters(),
        "prior": prior,
        "accuracy": guarantee.accuracy(prior),
        "advantage": guarantee.advantage,
        "posterior": list(belief_after(guarantee, prior)),
        "tpr_at": {f"{fpr:g}": float(guarantee.tpr_at(fpr)) for fpr in (0.0001, 0.001, 0.01, 0.1)},
        "assumes": list(guarantee.assumes),
        "explanation": guarantee.explain(prior),
    }


class Promised(Answer):
    """An answer that comes down to one guarantee, and answers by it."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee."""

    @property
    def roc(self) -> Roc:
        """The upper limit of any attacker's ROC."""
        return self.guarantee.roc

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR."""
        return self.guarantee.advantage

    def accuracy(self, prior: float = 0.5) -> float:
        """Return the best share of right guesses at that prior, never below max(prior, 1-prior)."""
        return self.guarantee.accuracy(prior)

    def posterior(self, prior: float) -> tuple[float, float]:
        """Return the range of P(record in D | any output)."""
        return self.guarantee.posterior(prior)

    def tpr_at(self, fpr: ArrayLike) -> float | Array:
        """Return the largest TPR at each FPR: a float for a number, an array for an array."""
        return self.guarantee.tpr_at(fpr)

    def risk(self, metric: str | Risk, prior: float = 0.5) -> float:
        """Return the largest value of any metric of :mod:`whosin.risks` at that prior."""
        return self.guarantee.risk(metric, prior)

    def implies(self, target: type[Other], **params: Any) -> Other:
        """Return the tightest guarantee of class ``target`` that follows."""
        return self.guarantee.implies(target, **params)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve; return the axes."""
        return self.guarantee.plot(ax)


_CALLED = {
    "PureDP": "",
    "ApproxDP": "",
    "GaussianDP": "",
    "DPSGD": "DP-SGD",
    "RenyiDP": "Rényi DP",
    "ZeroConcentratedDP": "zero-concentrated DP",
    "PrivacyProfile": "privacy profile",
    "TradeOff": "trade-off curve",
    "MembershipPrivacy": "membership privacy",
    "DifferentialIdentifiability": "differential identifiability",
}
_SIGNS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "eta": "η", "gamma": "γ", "rho": "ρ"}
_SIGNS |= {"epsilons": "ε", "deltas": "δ", "outsider_deltas": "δ for outsiders", "orders": "order"}
NEIGHBOURS = {
    "add_remove": "one person added or removed",
    "replace": "one person replaced",
    "zero_out": "one person replaced by an empty record",
}


def in_words(guarantee: Guarantee, *, keeps: bool = False) -> str:
    """Return what a guarantee is called where people read it, with numbers in six digits.

    With ``keeps`` in three: what is read off promises no less than the guarantee, more noise or a smaller parameter.

    Examples
    --------
    >>> import whosin as wi
    >>> in_words(wi.PureDP(1.0))
    'ε = 1 (one person added or removed)'
    >>> in_words(wi.DPSGD(noise_multiplier=0.8, sample_rate=0.01, steps=9))
    'DP-SGD (noise multiplier = 0.8, sample rate = 0.01, steps = 9, sampling = poisson, one person added or removed)'
    >>> in_words(wi.PureDP(0.40547), keeps=True)
    'ε = 0.405 (one person added or removed)'
    """
    safe = {"noise_multiplier": at_most, **dict.fromkeys(("epsilon", "epsilons", "rho", "eta"), at_least)}

    def number(name: str, value: float | str) -> str:
        return value if isinstance(value, str) else safe[name](value) if keeps and name in safe else f"{value:g}"

    found = {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in guarantee.parameters().items()
    }
    said = {name: value for name, value in found.items() if isinstance(value, int | float | str)}
    neighbours = NEIGHBOURS.get(str(said.pop("adjacency", "")))
    parts = [f"{_SIGNS.get(name, name.replace('_', ' '))} = {number(name, value)}" for name, value in said.items()]
    more = [] if neighbours is None else [neighbours]
    kind = type(guarantee).__name__
    called = _CALLED.get(kind, kind)
    if not called:
        return f"{', '.join(parts)} ({'; '.join(more)})"
    return f"{called} ({', '.join(parts + more)})" if parts or more else called


def _plain_value(value: Any) -> Any:
    if isinstance(value, Roc):
        return value.parameters()
    if isinstance(value, tuple):
        return [_plain_value(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _plain(share: float) -> str:
    return f"{100 * share:.6g}%"
