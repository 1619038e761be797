"""Curves as accountants state them: a list of (ε, δ) points, or a whole trade-off curve.

Each (ε, δ) is one line above the attacker's ROC, TPR ≤ e^ε·FPR + δ, and one for the mirror image,
1 - FPR ≤ e^ε·(1 - TPR) + δ. Together they limit the curve to what lies below all of them (Kairouz, Oh and Viswanath
2015): the points of one mechanism say more together than the best of them alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from whosin.errors import InputError, InputTypeError, check_number, check_probability
from whosin.guarantees.dp import Adjacency, DifferentialPrivacy
from whosin.roc import Roc

_UP = 1.0 + 2.0**-50
"""Lines are raised by what their exponentials can have lost."""


@dataclass(frozen=True)
class PrivacyProfile(DifferentialPrivacy):
    """A list of (ε, δ) that all hold for one mechanism: what an accountant answers when asked for several δ.

    Parameters
    ----------
    epsilons, deltas : sequence of float
        The points, in any order.
    adjacency : {"add_remove", "replace", "zero_out"}, default "add_remove"
        What was compared.
    outsider_deltas : sequence of float, optional
        Where both directions are known apart: ``deltas`` are then those of "in" against "out", these the other ones.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.PrivacyProfile([0.5, 1.0, 4.0], [1e-2, 1e-4, 1e-9]).tpr_at(0.01), 4)
    0.0265
    """

    epsilons: Sequence[float]
    deltas: Sequence[float]
    adjacency: Adjacency = "add_remove"
    outsider_deltas: Sequence[float] | None = None

    def __post_init__(self) -> None:
        epsilons = check_numbers("epsilons", self.epsilons)
        self._set(
            epsilons=tuple(check_number("epsilons", value, low=0.0) for value in epsilons),
            deltas=_as_many("deltas", self.deltas, len(epsilons)),
            outsider_deltas=None
            if self.outsider_deltas is None
            else _as_many("outsider_deltas", self.outsider_deltas, len(epsilons)),
        )

    def _build_roc(self) -> Roc:
        return profile_roc(self.epsilons, self.deltas, self._others)

    def outsider_roc(self) -> Roc:
        """Return the limit on finding those who are not in the data."""
        return self.roc if self.outsider_deltas is None else profile_roc(self.epsilons, self._others, self.deltas)

    def replace_roc(self) -> Roc:
        """Return the limit between data sets that differ by one replacement, both ways round."""
        if self.adjacency != "replace" or self.outsider_deltas is None:
            return super().replace_roc()
        larger = np.maximum(self.deltas, self.outsider_deltas)
        return profile_roc(self.epsilons, larger, larger)

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return the smallest ε that comes with δ = 0, each way."""
        ways = (self._others, self.deltas)
        low, high = (
            min((e for e, d in zip(self.epsilons, way, strict=True) if d == 0.0), default=math.inf) for way in ways
        )
        return -low, high

    def listed_epsilon(self, delta: float) -> float:
        """Return the smallest listed ε that keeps δ in both directions."""
        pairs = zip(self.epsilons, self.deltas, self._others, strict=True)
        return min((e for e, *both in pairs if max(both) <= delta), default=math.inf)

    @property
    def _others(self) -> Sequence[float]:
        return self.deltas if self.outsider_deltas is None else self.outsider_deltas


@dataclass(frozen=True)
class TradeOff(DifferentialPrivacy):
    """Any limit on the attacker's curve: f-differential privacy (Dong, Roth and Su 2019) with TPR = 1 - f(FPR).

    Parameters
    ----------
    roc : Roc
        Upper limit of TPR at each FPR, "in" against "out", by its corners. Its concave hull counts.
    adjacency : {"add_remove", "replace", "zero_out"}, default "add_remove"
        What was compared.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.TradeOff(wi.Roc([0.0, 0.2], [0.1, 0.5])).advantage
    0.3
    """

    roc: Roc = field()
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        roc: Any = Roc(**self.roc) if isinstance(self.roc, Mapping) else self.roc
        if not isinstance(roc, Roc) or roc.vertices is None:
            raise InputTypeError(f"roc must be a Roc with corners, such as Roc([0, 0.2], [0.1, 0.5]), got {roc!r}")
        self._set(roc=roc.hull())

    def _build_roc(self) -> Roc:
        return self.roc

    def outsider_roc(self) -> Roc:
        """Return the limit on finding those who are not in the data: the mirror image."""
        return self.roc.reversed()

    def replace_roc(self) -> Roc:
        """Return the limit between data sets that differ by one replacement, both ways round."""
        return self.roc.symmetrised() if self.adjacency == "replace" else super().replace_roc()


def check_numbers(name: str, values: Any) -> list[Any]:
    """Return a list of at least one number, or say that it must be one."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise InputTypeError(f"{name} must be a list of numbers, got {values!r}")
    if not listed:
        raise InputError(f"{name} must be a list of at least one number, got none")
    return list(listed)


def _as_many(name: str, values: Any, count: int) -> tuple[float, ...]:
    found = check_numbers(name, values)
    if len(found) != count:
        raise InputError(f"{name} must be as many as epsilons ({count}), got {len(found)}")
    return tuple(check_probability(name, value) for value in found)


def profile_roc(epsilons: ArrayLike, deltas: ArrayLike, others: ArrayLike) -> Roc:
    """Return the curve below all lines of (ε, δ): ``deltas`` from "in" to "out", ``others`` from "out" to "in"."""
    found, inside, outside = (np.asarray(values, dtype=np.float64) for values in (epsilons, deltas, others))
    high, low = (float(np.min(found[known == 0.0], initial=math.inf)) for known in (inside, outside))
    with np.errstate(over="ignore"):
        up = np.where(found > 0.0, _UP, 1.0)
        steep, flat = np.exp(found) * up, np.exp(-found) * up
        slopes = float(np.exp(-low)), float(np.exp(high))
    offsets = np.concatenate([inside, (-np.expm1(-found) + flat * outside) * up])
    return Roc.from_lines(np.concatenate([steep, flat]), offsets, slopes=slopes)
