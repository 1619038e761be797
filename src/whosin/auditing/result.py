"""The result of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.auditing.attack import Attack, Evidence
from whosin.auditing.band import Band, band_of
from whosin.auditing.compare import Comparison, compare
from whosin.auditing.estimate import Estimate, TprAtFpr
from whosin.auditing.groups import GroupTable, Labels, group_table
from whosin.auditing.individual import Individual, individual_risks
from whosin.auditing.limits import ADVANTAGE, best_value, upper_class
from whosin.auditing.metrics import measure, measure_tpr_at
from whosin.auditing.power import detectable_advantage
from whosin.compute.kde import total_variation
from whosin.compute.rounding import at_least, at_most
from whosin.errors import InputError
from whosin.guarantees import Guarantee
from whosin.risks import Risk
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Audit"]

_ASSIGNMENT = {
    "unknown": "nobody checked whether members and non-members differ for reasons other than the training: a "
    "difference that was there before counts as a leak",
    "random": "who became a member was decided at random, so members and non-members differ by the training alone",
    "independent trainings": "every score comes from a training of its own, of a record included at random",
}


@dataclass(frozen=True, eq=False)
class Audit:
    """What attackers can learn from a query about who is in the data, measured.

    Everything is counted on records that were held out when the attacks were chosen. Limits hold for any sample size.
    """

    advantage: Estimate
    """Largest TPR - FPR; it does not depend on the prior."""
    advantage_at_prior: Estimate
    """Xu et al.'s membership advantage, 2·accuracy - 1, at the prior; never below \\|2p - 1\\|, a constant guess."""
    plug_in: float
    """The largest advantage in the sample over the attackers that the upper limit covers; biased up."""
    members: int
    non_members: int
    prior: float
    kind: str
    query: str
    """What was asked."""
    metric: Any
    """The metric of :attr:`headline`."""
    assignment: str
    """How members were chosen: "unknown", "random" or "independent trainings"."""
    confidence_level: float
    attack: Attack = field(repr=False)
    """The attack of the largest advantage on the fit part."""
    evidence: Evidence = field(repr=False)
    labels: Labels = field(repr=False, default_factory=dict)
    notes: tuple[str, ...] = ()
    """Further assumptions and remarks, added to :attr:`assumes`."""

    @property
    def _delta(self) -> float:
        return 1.0 - self.confidence_level

    @property
    def excess(self) -> Estimate:
        """What the query adds to a constant guess: the advantage at the prior less \\|2p - 1\\|."""
        found = self.advantage_at_prior.scaled(1.0, -abs(2.0 * self.prior - 1.0))
        estimate, lower, upper = (max(0.0, value) for value in (found.estimate, found.lower, found.upper))
        return Estimate(estimate, lower, upper, self.confidence_level, found.about)

    @cached_property
    def headline(self) -> Estimate:
        """The metric that the audit was asked for."""
        return self.risk(self.metric)

    @cached_property
    def point_estimates(self) -> Mapping[str, float]:
        """The advantage without limits: plug_in (biased up), cross_fit (held out, biased down) and kde.

        The last is U_N of Xu et al. (theorem 6), from kernel densities of one or two continuous queries where they can
        be had; biased either way, and never a certificate.
        """
        points = {"plug_in": self.plug_in, "cross_fit": self.attack.tpr - self.attack.fpr}
        inside, outside = self.evidence.experiment.columns
        if self.kind == "continuous" and inside.shape[1] <= 2:
            try:
                points["kde"] = total_variation(inside, outside)
            except InputError:
                return points
        return points

    @cached_property
    def roc(self) -> Roc:
        """The measured curve of the attack's score, on held-out records."""
        held = self.evidence.held_out(self.attack.candidate.view)
        return self.attack.candidate.held_out_counts(held).roc()

    @cached_property
    def band(self) -> Band:
        """Limits on that curve at every false positive rate at once."""
        return band_of(self.evidence, self.attack.candidate, self._delta)

    @cached_property
    def individual(self) -> Individual:
        """The risk of every record."""
        return individual_risks(self.evidence, self.attack.candidate, self.roc, self._delta)

    @cached_property
    def groups(self) -> GroupTable:
        """The groups that were named, with limits that hold together; its ``scan`` looks for more."""
        risk = self.individual.risk
        split = risk[: self.members], risk[self.members :]
        return group_table(self.labels, self.evidence, self.attack, split, self._delta)

    @cached_property
    def queries(self) -> Mapping[str, Estimate]:
        """The advantage of each query alone, and of all together, with limits that hold together (Bonferroni)."""
        views = self.evidence.views
        found = {view.name: best_value(self.evidence, ADVANTAGE, self._delta / len(views), view)[0] for view in views}
        return {name: Estimate(e.estimate, e.lower, e.upper, self.confidence_level) for name, e in found.items()}

    @cached_property
    def detectable(self) -> float:
        """The smallest advantage of an attack that a sample like this one would have found with 80 % power."""
        return detectable_advantage(self.evidence.members, self.evidence.non_members, self._delta)

    @property
    def method(self) -> str:
        """How the limits were had, in words."""
        fit = int(np.sum(self.evidence.fit_members)), int(np.sum(self.evidence.fit_non_members))
        return (
            f"attack on {self.attack.candidate} chosen on {fit[0]} members and {fit[1]} non-members; lower limit by "
            f"Clopper-Pearson on the other {self.evidence.members} and {self.evidence.non_members}; upper limit by "
            f"McDiarmid for {upper_class(self.evidence, self.attack.candidate.view)}"
        )

    @property
    def _draws(self) -> tuple[str, ...]:
        """How the records came about, in words."""
        return ("members and non-members are independent draws from the two groups that are compared",)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        return (
            *self._draws,
            f"the upper limits cover {upper_class(self.evidence, self.attack.candidate.view)}, and no other query",
            _ASSIGNMENT[self.assignment],
            *self.notes,
        )

    def risk(self, metric: str | Risk, *, fpr: float | None = None, min_share: float | None = None) -> Estimate:
        """Return any metric of the best attacker at the prior, with limits.

        Parameters
        ----------
        metric : str or callable
            "advantage", "advantage_at_prior", "accuracy", "am", "ppv", "npv", a :class:`whosin.risks.RatioMetric`, or a
            callable (roc, prior) that never falls when the curve rises.
        fpr : float, optional
            For PPV and the like: of the attack that the fit part chose for this false positive rate.
        min_share : float, optional
            For PPV and NPV: of the best attack that accuses (acquits) at least this share of all records.

        Notes
        -----
        ``about`` of the answer says which attackers the upper limit covers. PPV and NPV need a constraint.
        """
        return measure(
            self.evidence,
            metric,
            self._delta,
            roc=lambda: self.roc,
            band=lambda: self.band,
            fpr=fpr,
            min_share=min_share,
        )

    def tpr_at(self, fpr: float) -> TprAtFpr:
        """Return the share of members found at a false positive rate, with exact limits.

        The attack (score and threshold) was chosen on the fit part to accuse at most ``fpr`` there; its TPR and the
        FPR that it really has are counted on held-out records, and lie in their limits together. It is one attack:
        for the upper limit of all thresholds see :attr:`band`.
        """
        return measure_tpr_at(self.evidence, fpr, self._delta)

    def compare(self, guarantee: Guarantee, *, assignment: str | None = None, trainings: int = 1) -> Comparison:
        """Hold the measurement against a promise.

        Parameters
        ----------
        guarantee : Guarantee
            The promise.
        assignment : str, optional
            As in :func:`whosin.audit`, from which it is taken by default.
        trainings : int
            Number of independent trainings that the scores come from.

        Returns
        -------
        Comparison
            "violated" only for scores with a training of their own each (``assignment="independent trainings"``, or
            "random" with as many trainings as records); otherwise at most "exceeds the promise on this model".
        """
        chosen = self.assignment if assignment is None else assignment
        return compare(self.evidence, guarantee, self.advantage, self._delta, chosen, trainings)

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        a, level = self.advantage, f"{100 * self.confidence_level:g}%"
        opening = (
            f"{self.members} members and {self.non_members} others were compared by {self.query}. The best "
            f"attack found accuses {100 * self.attack.tpr:.3g}% of the members and {100 * self.attack.fpr:.3g}% of the "
            f"others, on records that did not help to choose it."
        )
        if a.lower > 0:
            verdict = (
                f" Members can be told apart: the gap between the two rates that an attacker reaches is at least "
                f"{at_least(a.lower, 3)} ({level} confidence), about {a.estimate:.3g}, and at most "
                f"{at_most(a.upper, 3)} for {upper_class(self.evidence, self.attack.candidate.view)}."
            )
        else:
            verdict = (
                f" That is no more than chance explains. It does not show that nothing leaks: a gap below about "
                f"{at_most(self.detectable, 3)} would often be missed with so many records, and gaps up to "
                f"{at_most(a.upper, 3)} are compatible with the data ({level} confidence)."
            )
        right = self.advantage_at_prior.scaled(50.0, 50.0)
        closing = (
            f" Somebody who takes a record for a member with probability {self.prior:g} beforehand guesses right at "
            f"least {at_least(right.lower)}% and at most {at_most(right.upper)}% of the time; without looking, "
            f"{50 + 50 * abs(2 * self.prior - 1):.4g}%."
        )
        return opening + verdict + closing

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; curves with at most 201 points."""
        return {
            "advantage": self.advantage.to_dict(),
            "advantage_at_prior": self.advantage_at_prior.to_dict(),
            "excess": self.excess.to_dict(),
            "metric": self.metric if isinstance(self.metric, str) else getattr(self.metric, "name", "custom"),
            "headline": self.headline.to_dict(),
            "point_estimates": dict(self.point_estimates),
            "detectable": self.detectable,
            "prior": self.prior,
            "members": self.members,
            "non_members": self.non_members,
            "query": self.query,
            "kind": self.kind,
            "queries": {name: found.to_dict() for name, found in self.queries.items()},
            "roc": self.roc.to_dict(201),
            "band": self.band.to_dict(201),
            "tpr_at": {f"{fpr:g}": self.tpr_at(fpr).to_dict() for fpr in (0.001, 0.01, 0.1)},
            "individual": self.individual.to_dict(),
            "groups": self.groups.to_dict(),
            "method": self.method,
            "assignment": self.assignment,
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }

    def plot(self, ax: Axes | None = None, *, guarantee: Guarantee | None = None, scale: str = "linear") -> Axes:
        """Draw the measured curve with its band and, if a guarantee is given, its promise; return the axes."""
        from whosin.plots.audit import AuditDisplay

        ends = np.geomspace(1e-5, 0.5, 300)
        fpr = np.unique(np.concatenate([[0.0], ends, np.linspace(0.0, 1.0, 301), 1.0 - ends]))
        curves = (self.roc.tpr(fpr), self.band.lower.tpr(fpr), self.band.upper.tpr(fpr))
        promised = None if guarantee is None else np.asarray(guarantee.roc().tpr(fpr))
        axes: Axes = AuditDisplay(fpr, *curves, label=self.query, scale=scale, promised=promised).plot(ax=ax).ax_
        return axes

    def __str__(self) -> str:
        return f"advantage {self.advantage} by {self.query} ({self.members} members, {self.non_members} non-members)"

    def _repr_html_(self) -> str:
        from html import escape

        items = "".join(f"<li>{escape(line)}</li>" for line in self.assumes)
        return f"<p><b>{escape(str(self))}</b></p><p>{escape(self.explain())}</p><p>Assumes:</p><ul>{items}</ul>"
