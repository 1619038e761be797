"""What a DP mechanism with a large ε really means on these records."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.answers import finite_or_text
from whosin.arrays import Array
from whosin.guarantees import PMP, ApproxDP, PureDP
from whosin.guarantees.base import Promised
from whosin.numerics.rounding import at_least, at_most, percent_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PopulationPrivacy"]


@dataclass(frozen=True, eq=False)
class PopulationPrivacy(Promised):
    """The promise against somebody who knows everybody else, beside the one against somebody who knows the pool.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> found = wi.population.laplace(np.linspace(-1, 1, 12), epsilon=2.0, clip=1.0, delta=0.01)
    >>> found.method, round(found.pmp.epsilon, 3), round(found.ratio, 3)
    ('exact', 0.989, 0.494)
    >>> found.most_exposed, round(found.advantage, 3)
    (11, 0.463)
    """

    mechanism: str
    """"exponential", "gaussian", "laplace" or "randomised response"."""
    pmp: PMP
    """The practical guarantee on these records: an upper limit."""
    dp: PureDP | ApproxDP
    """The guarantee as labelled: 2λΔ for the exponential mechanism."""
    dp_at_most: PureDP | ApproxDP
    """A valid worst-case limit over all records that the clipping allows, at most the label and at least the truth."""
    dp_on_records: PureDP | ApproxDP
    """The paper's ε(X): the same over adjacent data sets of this pool, an upper limit where it is not exact."""
    per_record: Array = field(repr=False)
    """One ε̃ per record, in the order of the records."""
    per_record_lower: Array | None = field(repr=False)
    """Lower limits on each record's ε̃ where they are known (equal to per_record where it is exact)."""
    sensitivity: float | tuple[float, ...]
    """Largest change of the query (or of a candidate's loss) by replacing one record; one each for several queries."""
    noise_scale: float | tuple[float, ...]
    """Scale of the noise, or λ = ε/(2Δ) of the exponential mechanism; one each for several queries."""
    method: str
    """How the practical guarantee was obtained."""
    confidence_level: float | None
    """Probability that a Monte Carlo limit holds; None where nothing was sampled."""
    records: int
    train_size: int
    notes: tuple[str, ...] = ()

    @property
    def guarantee(self) -> PMP:
        """What the curve and every risk are read off: the practical guarantee."""
        return self.pmp

    @property
    def at_least(self) -> float | None:
        """A lower limit on the largest ε̃ of the pool, where one is known: the truth lies between it and ``pmp``."""
        return None if self.per_record_lower is None else float(self.per_record_lower.max())

    @property
    def exact(self) -> bool:
        """Whether the largest ε̃ is known to three digits."""
        least = self.at_least
        return least is not None and self.pmp.epsilon - least <= 1e-3 * self.pmp.epsilon + 1e-9

    @property
    def ratio(self) -> float:
        """ε̃/ε, the practical over the labelled parameter."""
        return _ratio(self.pmp.epsilon, self.dp.epsilon)

    @property
    def ratio_on_records(self) -> float:
        """ε̃/ε(X), the practical parameter over the one of an attacker who knows everybody else in this pool."""
        return _ratio(self.pmp.epsilon, self.dp_on_records.epsilon)

    @property
    def most_exposed(self) -> int:
        """Row number of the record with the largest ε̃."""
        return int(np.argmax(self.per_record))

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the practical guarantee rests on, in words."""
        chance = (
            ()
            if self.confidence_level is None
            else (f"the limit was sampled and holds with probability {self.confidence_level:g}",)
        )
        return (*self.pmp.assumes, *chance, *self.notes)

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        right, worst = (percent_up(promise.accuracy()) for promise in (self.pmp, self.dp_at_most))
        sentences = [
            f"Labelled {_label(self.dp)}, this {self.mechanism} mechanism lets somebody who knows everybody else guess "
            f"a person's membership right at most {worst} of the time; somebody who knows only these {self.records} "
            f"records, of which {self.train_size} {'was' if self.train_size == 1 else 'were'} drawn at random, at most "
            f"{right}; both where in and out are equally likely.",
            f" The practical parameter is ε̃ = {at_most(self.pmp.epsilon)} (δ = {self.pmp.delta:g}), "
            f"{100 * self.ratio:.3g}% of the label{self._truth()}.",
            f" The most exposed record is row {self.most_exposed}; half of the records have ε̃ of at most "
            f"{at_most(float(np.median(self.per_record)))}.",
        ]
        return "".join(sentences)

    def _truth(self) -> str:
        """What is known of the truth, for the end of a sentence on the limit."""
        if self.exact:
            return "; this is exact"
        return f"; the truth is at least {at_least(self.at_least)}" if self.at_least else ""

    def __str__(self) -> str:
        return (
            f"ε̃ {'=' if self.exact else '≤'} {at_most(self.pmp.epsilon, 6)} on these records "
            f"(δ = {self.pmp.delta:g}) for ε = {self.dp.epsilon:.6g} as labelled, "
            f"at most {at_most(self.dp_at_most.epsilon, 6)} in the worst case, "
            f"{at_most(self.dp_on_records.epsilon, 6)} among these records; {self.method}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; the per-record values as a list."""
        parts = {name: getattr(self, name).to_dict() for name in ("pmp", "dp", "dp_at_most", "dp_on_records")}
        plain = ("mechanism", "sensitivity", "noise_scale", "method", "confidence_level", "records", "train_size")
        lower = self.per_record_lower
        return {
            **{name: getattr(self, name) for name in plain},
            **parts,
            "at_least": self.at_least,
            "exact": self.exact,
            "ratio": finite_or_text(self.ratio),
            "ratio_on_records": finite_or_text(self.ratio_on_records),
            "per_record": [finite_or_text(value) for value in self.per_record.tolist()],
            "per_record_lower": None if lower is None else [finite_or_text(value) for value in lower.tolist()],
            "most_exposed": self.most_exposed,
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each record's ε̃ in rising order against the worst-case lines; return the axes."""
        from whosin.plots import draw_population

        lines = {
            "as labelled": self.dp.epsilon,
            "worst case": self.dp_at_most.epsilon,
            "knows everybody else here": self.dp_on_records.epsilon,
        }
        if self.at_least and not self.exact:
            lines["the largest ε̃ is at least"] = self.at_least
        return draw_population(ax, np.sort(self.per_record), lines)


def _label(promise: PureDP | ApproxDP) -> str:
    delta = f" with δ = {promise.delta:g}" if isinstance(promise, ApproxDP) else ""
    return f"{promise.epsilon:.4g}-DP{delta}"


def _ratio(part: float, whole: float) -> float:
    if whole == 0.0:
        return 1.0 if part == 0.0 else math.inf
    return part / whole if math.isfinite(whole) else (math.nan if math.isinf(part) else 0.0)
