"""The result of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.answers import Answer, Rows, limits_by_column
from whosin.auditing.measuring.attack import Attack, Evidence, View
from whosin.auditing.measuring.band import Band, band_of
from whosin.auditing.measuring.compare import Comparison, compare
from whosin.auditing.measuring.estimate import Estimate, TprAtFpr
from whosin.auditing.measuring.groups import GroupTable, Labels, group_table
from whosin.auditing.measuring.individual import Individual, individual_risks
from whosin.auditing.measuring.limits import (
    ADVANTAGE,
    Finding,
    best_value,
    class_upper,
    gain_at_prior,
    upper_class,
)
from whosin.auditing.measuring.metrics import measure, measure_tpr_at
from whosin.auditing.measuring.power import rows_for_upper, smallest_visible
from whosin.auditing.measuring.splits import Splits
from whosin.auditing.measuring.verdict import Verdict, judge
from whosin.errors import check_prior
from whosin.guarantees import Guarantee
from whosin.numerics.differences import gain_lower
from whosin.numerics.rounding import percent_up
from whosin.risks import Risk
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOLERABLE = 0.1
"""What ``rows_needed`` plans for where no tolerance was given."""

_ASSIGNMENT = {
    "unknown": "nobody checked whether members and non-members differ for reasons other than the training: a "
    "difference that was there before counts as a leak",
    "random": "who became a member was decided at random, so members and non-members differ by the training alone",
    "coins": "a fair coin for each decided who became a member: members and non-members differ by the training alone",
    "independent trainings": "every score comes from a training of its own, of a record included at random",
}


class QueryTable(dict[str, Estimate], Rows):
    """The advantage by query; the last row is that of the verdict."""

    def _columns(self) -> dict[str, list[Any]]:
        return {"query": list(self), **limits_by_column(self.values())}


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Answer):
    """What attackers can learn from a query about who is in the data, measured.

    Every attack is counted on records that were held out when it was chosen. Limits hold for any sample size. What
    needs one split of the records (curve, band, groups, individual risks) uses the first of many; the advantage uses
    all.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> found = wi.audit(rng.normal(2, 1, 300), rng.normal(0, 1, 300))
    >>> print(found.verdict.headline)
    78 of 100 people in the data can be picked out while 11 of 100 outsiders are wrongly accused.
    >>> print(found.advantage)
    0.67... [0.5..., 0.7...] at 95%
    >>> found.compare(wi.PureDP(0.5)).verdict
    'exceeds the promise on this model'
    """

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
    _splits: Splits = field(repr=False)
    labels: Labels = field(repr=False, default_factory=dict)
    notes: tuple[str, ...] = ()
    """Further assumptions and remarks, added to :attr:`assumes`."""
    tolerate: float | None = None
    """The largest advantage that is tolerated."""
    problem: str | None = None
    """Why the set-up allows no verdict, if it allows none."""

    @property
    def _delta(self) -> float:
        return 1.0 - self.confidence_level

    @property
    def _evidence(self) -> Evidence:
        """The first split of the records."""
        return self._splits.first

    @cached_property
    def attack(self) -> Attack:
        """The attack that the first split chose for its advantage."""
        return self._evidence.best(ADVANTAGE)

    @cached_property
    def _found(self) -> Finding:
        """What all splits say of the advantage; those at the prior are counted in the same pass."""
        self._splits.prepare((ADVANTAGE, gain_at_prior(self.prior)))
        return best_value(self._splits, ADVANTAGE, self._delta)

    @property
    def advantage(self) -> Estimate:
        """Largest TPR - FPR; it does not depend on the prior."""
        return self._found.value

    @cached_property
    def advantage_at_prior(self) -> Estimate:
        """Xu et al.'s membership advantage, 2·accuracy - 1, at the prior; at least \\|2p - 1\\|, a constant guess."""
        gain = gain_at_prior(self.prior)
        return self.advantage if gain == ADVANTAGE else best_value(self._splits, gain, self._delta).value

    @property
    def tpr(self) -> float:
        """Members found: by the attack that gave the lower limit, or, if there is none, by all on average; a share."""
        return self._found.tpr

    @property
    def fpr(self) -> float:
        """Share of the non-members accused by the same."""
        return self._found.fpr

    @property
    def plug_in(self) -> float:
        """The largest advantage in the sample over the attackers that the upper limit covers; biased up."""
        return self._found.plug_in

    @property
    def person_level(self) -> bool:
        """Whether people were counted, each once, and not records."""
        return self._splits.experiment.people is not None

    @property
    def unit(self) -> str:
        """What was counted: "people" or "records"."""
        return "people" if self.person_level else "records"

    @cached_property
    def verdict(self) -> Verdict:
        """The one sentence to act on, and its state against what is tolerated."""
        tolerate = self.tolerate
        return judge(
            self.advantage,
            (self.tpr, self.fpr),
            self.covered,
            tolerate=tolerate,
            problem=self.problem,
            unit=self.unit,
            needed=self.rows_needed(tolerate) if tolerate else None,
            caveat=self._caveat,
        )

    @property
    def _caveat(self) -> str:
        """What else than the training may have caused the gap, in words."""
        return ""

    @property
    def covered(self) -> str:
        """Whom the upper limit of the advantage covers, in words."""
        return upper_class(self._evidence, self.attack.candidate.view)

    def rows_needed(self, tolerate: float = TOLERABLE) -> int:
        """Return about how many records (or people) of each side would show "within" this tolerance, if nothing leaks.

        So many members and so many non-members: with the same queries and confidence level, the upper limit is then at
        most ``tolerate`` in about four of five audits. It plans a study; it promises nothing about this one.
        """
        held = 1.0 - float(np.mean(self._evidence.fit_non_members)) if self.kind == "continuous" else 1.0
        return rows_for_upper(tolerate, self._delta, held_share=held, queries=len(self._evidence.views))

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

    @property
    def point_estimates(self) -> Mapping[str, float]:
        """The advantage without limits: plug_in (biased up) and cross_fit (held out, biased down)."""
        return {"plug_in": self.plug_in, "cross_fit": self.attack.tpr - self.attack.fpr}

    @cached_property
    def roc(self) -> Roc:
        """The measured curve of the attack's score, on held-out records."""
        held = self._evidence.held_out(self.attack.candidate.view)
        return self.attack.candidate.held_out_counts(held).roc()

    @cached_property
    def band(self) -> Band:
        """Limits on that curve at every false positive rate at once; its lower limit never exceeds the advantage's."""
        return band_of(self._evidence, self.attack.candidate, self._delta, self.advantage.lower)

    @cached_property
    def individual(self) -> Individual:
        """The risk of every record."""
        return individual_risks(self._evidence, self.attack.candidate, self.roc, self._delta)

    @cached_property
    def groups(self) -> GroupTable:
        """The groups that were named, with limits that hold together; its ``scan`` looks for more."""
        risk = self.individual.risk
        split = risk[: self.members], risk[self.members :]
        return group_table(self.labels, self._evidence, self.attack, split, self._delta)

    @cached_property
    def queries(self) -> QueryTable:
        """The advantage of each query alone, and of all together.

        The last row is :attr:`advantage` itself, with its own confidence level; no lower limit is above its. The limits
        of the others come from the first split and hold together (Bonferroni); their upper limits cover thresholds and
        cells of the query.
        """
        views = self._evidence.views
        together = views[-1].name if views[-1].learned or len(views) == 1 else "the best of all queries"
        single = {view.name: self._alone(view, self._delta / len(views)) for view in views if view.name != together}
        a = self.advantage
        return QueryTable({**single, together: Estimate(a.estimate, a.lower, a.upper, a.confidence_level)})

    def _alone(self, view: View, delta: float) -> Estimate:
        """Limits on the advantage of one query; half of ``delta`` for each."""
        attack = self._evidence.choose(ADVANTAGE.judge, view)
        counts = attack.found, attack.members, attack.accused, attack.non_members
        _, upper = class_upper(self._evidence, ADVANTAGE, delta / 2, view, alone=True)
        lower = min(self.advantage.lower, max(0.0, gain_lower(*counts, delta / 2)))
        return Estimate(float(np.clip(attack.tpr - attack.fpr, lower, upper)), lower, upper, self.confidence_level)

    @cached_property
    def smallest_visible(self) -> float:
        """The smallest advantage that so many records would show in four of five audits, were its attack known."""
        return smallest_visible(self.members, self.non_members, self._delta)

    @property
    def method(self) -> str:
        """How the limits were obtained, in words."""
        fit = int(np.sum(self._evidence.fit_members)), int(np.sum(self._evidence.fit_non_members))
        scan = "all thresholds of every query on all records, and by " if self._splits.experiment.scores[0].size else ""
        return (
            f"lower limit by {scan}a vote over {self._splits.count} splits, each of which chooses an attack on "
            f"{fit[0]} members and {fit[1]} non-members and counts it on the other {self._evidence.members} and "
            f"{self._evidence.non_members} (exact differences of two proportions); upper limit by an exact difference "
            f"at the largest sample value, for {self.covered}; splits drawn with seed {self._splits.seed}"
        )

    @property
    def _draws(self) -> tuple[str, ...]:
        """How the records came about, in words."""
        return (
            f"members and non-members are independent draws from the two groups of {self.unit} that are compared",
            *self._units,
        )

    @property
    def _units(self) -> tuple[str, ...]:
        if self.person_level:
            return ()
        return ("one record is one person: where several belong to one, name the column that says whose they are",)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        return (
            *self._draws,
            f"the upper limits cover {self.covered}, and no other attacker",
            self._assigned,
            *self.notes,
        )

    @property
    def _assigned(self) -> str:
        """How members came to be members, in words."""
        return _ASSIGNMENT[self.assignment]

    def accuracy(self, prior: float | None = None) -> Estimate:
        """Return the best share of right guesses at the prior of the audit or another, with limits."""
        return self.risk("accuracy", prior)

    def risk(
        self,
        metric: str | Risk,
        prior: float | None = None,
        *,
        fpr: float | None = None,
        min_share: float | None = None,
    ) -> Estimate:
        """Return any metric of the best attacker, with limits.

        Parameters
        ----------
        metric : str or callable
            "advantage", "advantage_at_prior", "accuracy", "am", "ppv", "npv", a :class:`whosin.risks.RatioMetric`, or a
            callable (roc, prior) that never falls when the curve rises.
        prior : float, optional
            Probability that a record is a member; by default that of the audit.
        fpr : float, optional
            For PPV and the like: of the attack that the fit part chose for this false positive rate.
        min_share : float, optional
            For PPV and NPV: of the best attack that accuses (acquits) at least this share of all records.

        Notes
        -----
        ``about`` of the answer says which attackers the upper limit covers. PPV and NPV need a constraint.
        """
        return measure(
            self._splits,
            metric,
            self._delta,
            roc=lambda: self.roc,
            band=lambda: self.band,
            prior=self.prior if prior is None else check_prior(prior),
            fpr=fpr,
            min_share=min_share,
        )

    def tpr_at(self, fpr: float) -> TprAtFpr:
        """Return the share of members found at a false positive rate, with exact limits.

        The attack (score and threshold) was chosen on the fit part to accuse at most ``fpr`` of the records left out
        there; its TPR and its own FPR are counted on held-out records, and lie in their limits together. It is one
        attack: for the upper limit of all thresholds see :attr:`band`. With fewer than 1/``fpr`` outsiders no such
        rate can be told from 0: the answer then says so (``measurable`` is False) and has no estimate.
        """
        return measure_tpr_at(self._evidence, fpr, self._delta)

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
        return compare(self._evidence, guarantee, self.advantage, self.band, self._delta, chosen, trainings)

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert, the verdict first."""
        opening = (
            f" {self.members} members and {self.non_members} outsiders were compared by {self.query}; {self.unit} that "
            "an attack is counted on did not help to choose it."
        )
        return self.verdict.sentence + opening + (self._at_prior if self.problem is None else "")

    @property
    def _at_prior(self) -> str:
        """What the finding means for somebody with a prior, in words."""
        level = f"{100 * self.confidence_level:g}% confidence"
        if self.advantage.lower > 0.0:
            return (
                f" If {self.prior:g} of all {self.unit} are members beforehand, one that this attack accuses is a "
                f"member with a probability of about {_precision(self.tpr, self.fpr, self.prior):.2g}."
            )
        blind = 50.0 + 50.0 * abs(2.0 * self.prior - 1.0)
        return (
            f" If {self.prior:g} of all {self.unit} are members beforehand, the attackers that the upper limit covers "
            f"guess right at most {percent_up(min(1.0, 0.5 + 0.5 * self.advantage_at_prior.upper))} of the time "
            f"({level}); without looking, {blind:.4g}%."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; curves with at most 201 points."""
        return {
            "verdict": self.verdict.to_dict(),
            "advantage": self.advantage.to_dict(),
            "tpr": self.tpr,
            "fpr": self.fpr,
            "advantage_at_prior": self.advantage_at_prior.to_dict(),
            "excess": self.excess.to_dict(),
            "metric": self.metric if isinstance(self.metric, str) else getattr(self.metric, "name", "custom"),
            "headline": self.headline.to_dict(),
            "point_estimates": dict(self.point_estimates),
            "smallest_visible": self.smallest_visible,
            "prior": self.prior,
            "members": self.members,
            "non_members": self.non_members,
            "person_level": self.person_level,
            "unit": self.unit,
            "covered": self.covered,
            "rows_needed": self.rows_needed(self.tolerate or TOLERABLE),
            "query": self.query,
            "kind": self.kind,
            "queries": {name: found.to_dict() for name, found in self.queries.items()},
            "roc": self.roc.to_dict(201),
            "band": self.band.to_dict(201),
            "tpr_at": {f"{fpr:g}": self.tpr_at(fpr).to_dict() for fpr in (0.001, 0.01, 0.1)},
            "individual": self.individual.to_dict(),
            "groups": self.groups.to_dict(),
            "method": self.method,
            "seed": self._splits.seed,
            "splits": self._splits.count,
            "assignment": self.assignment,
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }

    def plot(self, ax: Axes | None = None, *, guarantee: Guarantee | None = None, scale: str = "linear") -> Axes:
        """Draw the measured curve with its band and, if a guarantee is given, its promise; return the axes."""
        from whosin.plots import draw_measured

        ends = np.geomspace(1e-5, 0.5, 300)
        fpr = np.unique(np.concatenate([[0.0], ends, np.linspace(0.0, 1.0, 301), 1.0 - ends]))
        curves = (self.roc.tpr(fpr), self.band.lower.tpr(fpr), self.band.upper.tpr(fpr))
        promised = None if guarantee is None else np.asarray(guarantee.roc.tpr(fpr))
        return draw_measured(ax, fpr, *curves, label=self.query, scale=scale, promised=promised)

    def __str__(self) -> str:
        return (
            f"{self.verdict.title}: advantage {self.advantage} by {self.query} "
            f"({self.members} members, {self.non_members} non-members)"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.verdict._card({"Assumes": self.assumes})


def _precision(tpr: float, fpr: float, prior: float) -> float:
    """Share of members among the accused, at a prior; the prior itself where nobody is accused."""
    accused = prior * tpr + (1.0 - prior) * fpr
    return prior * tpr / accused if accused > 0.0 else prior
