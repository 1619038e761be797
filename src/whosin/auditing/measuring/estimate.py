"""An estimate with its confidence limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from whosin.numerics.rounding import about, at_least, at_most, confidence


@dataclass(frozen=True)
class Estimate:
    """A measured number with limits that hold together with probability ``confidence_level``, for any sample size.

    Examples
    --------
    >>> import whosin as wi
    >>> found = wi.Estimate(0.1234, 0.0611, 0.1899, 0.95)
    >>> print(found)  # limits are rounded outwards
    0.123 [0.0611, 0.19] at 95%
    """

    estimate: float
    """The measured value (NaN where nothing was measured)."""
    lower: float
    upper: float
    confidence_level: float
    about: str = ""
    """What the limits cover, in words, where that needs saying."""

    def __str__(self) -> str:
        low, high = at_least(self.lower), at_most(self.upper)
        return f"{about(self.estimate)} [{low}, {high}] at {confidence(self.confidence_level)}"

    def scaled(self, factor: float, shift: float = 0.0) -> Estimate:
        """Return the estimate of ``factor`` · value + ``shift``, for a factor of at least 0."""
        estimate, lower, upper = (factor * value + shift for value in (self.estimate, self.lower, self.upper))
        return Estimate(estimate, lower, upper, self.confidence_level, self.about)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON, None for what was not measured."""
        values = {name: _json(getattr(self, name)) for name in ("estimate", "lower", "upper", "confidence_level")}
        return {**values, **({"about": self.about} if self.about else {})}

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"


@dataclass(frozen=True)
class TprAtFpr(Estimate):
    """The share of members that one attack finds, with the share of outsiders that the same attack accuses.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> found = wi.audit(rng.normal(3, 1, 500), rng.normal(0, 1, 500)).tpr_at(0.05)
    >>> print(found)
    TPR 0.91... [0.87..., 0.94...] at 95% at FPR 0.036 [0.01..., 0.06...] at 95% (asked for 0.05)
    """

    target: float = 0.0
    """The false positive rate asked for."""
    fpr: Estimate | None = None
    """The false positive rate that the attack really has. It and the TPR lie in their limits together."""

    measurable: bool = True
    """Whether there are outsiders enough to tell such a rate from 0."""

    def __str__(self) -> str:
        if not self.measurable:
            return f"TPR at FPR {self.target:g}: {self.about}"
        return f"TPR {super().__str__()} at FPR {self.fpr} (asked for {self.target:g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        assert self.fpr is not None
        return {
            **super().to_dict(),
            "target": self.target,
            "fpr": self.fpr.to_dict(),
            "measurable": self.measurable,
        }


def _json(value: float) -> float | None:
    return value if math.isfinite(value) else None
