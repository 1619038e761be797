"""Whose risk is larger: each unit's own advantage over trainings, with limits.

The estimate is the mean over trainings of |2π - 1|, π the attack's posterior (for a calibrated one that is the
advantage of the score, without the noise of the coins), and the residual of the right guesses, which repairs a
posterior that is not calibrated. Both are shrunk by how much of their spread chance explains. Limits never come from
it: the lower ones count right guesses of attacks learned on earlier trainings, the upper ones take the most right
guesses of any threshold on any query, in either direction. The best of a class that is fixed beforehand is one fixed
attacker, whose count is no larger, so no correction for the choice is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.answers import Rows
from whosin.arrays import Array, Flags
from whosin.auditing.measuring.people import People
from whosin.errors import check_whole
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper

if TYPE_CHECKING:
    from whosin.auditing.runs.retrained import Scores


@dataclass(frozen=True, eq=False)
class RetrainedIndividual(Rows):
    """Risk over trainings, one row for each record or person, in the order in which they were given.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> people = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = wi.audit_retrained(lambda rows, rng: rows[rows[:, 0] > 0], people, trainings=10, rng=0)
    >>> risk = found.individual.risk
    >>> [round(float(risk[side].mean()), 1) for side in (people[:, 0] > 0, people[:, 0] <= 0)]
    [0.8, 0.1]
    """

    risk: Array
    """Estimated advantage (TPR - FPR over trainings) of the attack on each unit."""
    lower: Array
    """Lower limit, for a unit named beforehand; it and ``upper`` hold together."""
    upper: Array
    """Upper limit for attackers who compare one of the queries with a threshold."""
    simultaneous_lower: Array
    """Lower limits that hold for all units at once: those above 0 are shown to be at risk."""
    simultaneous_upper: Array
    spread: float
    """Standard deviation of the true risks, estimated."""
    error: float
    """By how much chance moves a unit's share of right guesses in so many trainings, on the scale of the risk."""
    person: NDArray[Any] | None = field(repr=False)

    def __len__(self) -> int:
        return len(self.risk)

    def __repr__(self) -> str:
        shown = int((self.simultaneous_lower > 0.0).sum())
        return f"{len(self)} risks from {self.risk.min():.3g} to {self.risk.max():.3g}; {shown} shown to be at risk"

    @property
    def alike(self) -> bool:
        """Whether the risks differ by no more than chance moves what was seen of each: then nobody is worth naming."""
        return self.spread <= self.error

    def highest(self, top: int = 10) -> list[dict[str, Any]]:
        """Return the units with the largest risk; none where all are alike."""
        top = check_whole("top", top)
        if self.alike:
            return []
        return [
            {
                "index": int(i),
                **({} if self.person is None else {"person": str(self.person[i])}),
                **{
                    name: float(getattr(self, name)[i])
                    for name in ("risk", "lower", "upper", "simultaneous_lower", "simultaneous_upper")
                },
            }
            for i in np.argsort(-self.risk, kind="stable")[:top]
        ]

    def sentence(self, unit: str) -> str:
        """Say how risks differ."""
        shown = int((self.simultaneous_lower > 0.0).sum())
        named = f"{shown} of {len(self)} {unit} are shown to be at risk, all limits holding together."
        if self.alike:
            return (
                f"The risk is about {self.risk.mean():.2g} for everybody: it differs by less ({self.spread:.2g}) than "
                f"so many trainings can tell ({self.error:.2g}), so no ranking is given. {named}"
            )
        return f"Risks differ: {self.risk.min():.2g} to {self.risk.max():.2g}, about {self.risk.mean():.2g}. {named}"

    def to_dict(self) -> dict[str, Any]:
        """Return the risks for JSON."""
        return {
            "risk": self.risk.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "simultaneous_lower": self.simultaneous_lower.tolist(),
            "spread": self.spread,
            "error": self.error,
            "alike": self.alike,
            "highest": self.highest(),
        }

    def _columns(self) -> dict[str, list[Any]]:
        names = ("risk", "lower", "upper", "simultaneous_lower", "simultaneous_upper")
        who = {} if self.person is None else {"person": self.person.tolist()}
        return {**who, **{name: getattr(self, name).tolist() for name in names}}


def individual_risks(
    scores: Scores, people: People | None, covariates: Array | None, delta: float
) -> RetrainedIndividual:
    """Return estimates and limits; half of ``delta`` on each side. O(trainings·log trainings·units·queries)."""
    units, tested = scores.coins.shape[1], len(scores.tested)
    right = ((scores.ahead > 0) == scores.tested).sum(axis=0)
    most = _most_right(scores.answers[:, :, : scores.main], scores.coins)
    trainings = len(scores.coins)
    lower, all_lower = (
        np.maximum(0.0, 2.0 * clopper_pearson_lower(right, tested, alpha) - 1.0)
        for alpha in (delta / 2, delta / (2 * units))
    )
    upper, all_upper = (
        np.clip(2.0 * clopper_pearson_upper(most, trainings, alpha) - 1.0, floor, 1.0)
        for alpha, floor in ((delta / 2, lower), (delta / (2 * units), all_lower))
    )
    risk, spread, error = _shrunk(scores.crossed, scores.coins, covariates)
    names = None if people is None else people.names
    return RetrainedIndividual(np.clip(risk, lower, upper), lower, upper, all_lower, all_upper, spread, error, names)


def _most_right(answers: Array, coins: Flags) -> NDArray[np.int64]:
    """Return for each unit the most right guesses of any threshold on any query, in either direction."""
    most = np.zeros(coins.shape[1], dtype=np.int64)
    trainings = len(coins)
    for query in np.moveaxis(answers, 2, 0):
        order = np.argsort(query, axis=0, kind="stable")
        sides = np.take_along_axis(coins, order, axis=0)
        values = np.take_along_axis(query, order, axis=0)
        below_out = np.vstack([np.zeros(len(most), dtype=np.int64), np.cumsum(~sides, axis=0)])
        above_in = sides.sum(axis=0) - np.vstack([np.zeros(len(most), dtype=np.int64), np.cumsum(sides, axis=0)])
        allowed = np.ones((trainings + 1, len(most)), dtype=bool)
        allowed[1:-1] = values[1:] > values[:-1]
        right = below_out + above_in
        best = np.maximum(right, trainings - right)
        most = np.maximum(most, np.where(allowed, best, 0).max(axis=0))
    return most


def _shrunk(scores: Array, coins: Flags, covariates: Array | None) -> tuple[Array, float, float]:
    """Return risks, their spread, and the standard error of right guesses at these risks.

    (The error that shrinking leaves is below the spread whatever the data are, so it cannot tell whether risks differ.)
    """
    trainings, units = coins.shape
    belief = np.abs(np.tanh(scores / 2.0))
    design = np.ones((units, 1))
    if covariates is not None:
        design = np.column_stack([design, (covariates - covariates.mean(axis=0)) / (covariates.std(axis=0) + 1e-12)])
    model = belief.mean(axis=0)
    right = 2.0 * ((scores > 0) == coins).mean(axis=0) - 1.0
    parts = (
        (model, belief.var(axis=0, ddof=1) / trainings, design),
        (right - model, (1.0 - belief**2).mean(axis=0) / trainings, np.ones((units, 1))),
    )
    risk, spread = np.zeros(units), 0.0
    for raw, variance, about in parts:
        centre = about @ np.linalg.lstsq(about, raw, rcond=None)[0]
        between = max(0.0, float(((raw - centre) ** 2 - variance).mean()))
        weight = between / (between + variance + 1e-12)
        risk += centre + weight * (raw - centre)
        spread += between + float(centre.var())
    risk = np.clip(risk, 0.0, 1.0)
    return risk, float(np.sqrt(spread)), float(np.sqrt((1.0 - risk**2).mean() / trainings))
