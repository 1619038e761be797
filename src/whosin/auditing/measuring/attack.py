"""Attacks, chosen on one part of the data and counted on the other.

The best attacker on a query accuses where p·r > (1-p)·q (Xu et al. 2022, lemma 1): any set of answers, not only one
side of a threshold. So three scores compete for each query (the answer, its negative, and the log ratio of its
cells), and for several queries also a learned combination. What competes is judged on folds left out of the fit part,
by the lower limit of its value and not by the value itself: the largest value among many candidates is noise, and
would hide a small share of members who are exposed without doubt. What is reported is counted on the held-out part,
which chose nothing, so that its limits need no correction for the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from whosin.arrays import Array, Counts, Flags
from whosin.auditing.measuring.cells import Cells, log_ratios, log_ratios_without, quantile_cells, symbol_cells
from whosin.auditing.measuring.counts import ScoreCounts, count_by_cell, count_scores
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.learned import FEWEST, learn_score
from whosin.numerics.differences import newcombe
from whosin.risks import Linear

Judge = Callable[[ScoreCounts], Array]
"""What counts on the fit part say of each threshold; -inf where it is not allowed."""

FOLDS = 5
JUDGED = 1.96
"""Standard errors by which candidates are judged from below."""
RIVALS = 2
"""Queries of known direction that compete with their learned combination."""
FIXED = 0.5
"""Standard errors by which the learned score is judged at the threshold that it brings: no luck chose that one."""
OUTSIDERS = 3.5
"""Standard errors by which all other candidates are judged from below."""


class Gain(Linear):
    """A value that is linear in the two rates, as what attacks are judged by."""

    @property
    def weights(self) -> tuple[float, float] | None:
        """(u, v) where the value is constant + u·TPR - v·FPR with u, v > 0; None for other gains."""
        return (self.tpr, -self.fpr) if self.tpr > 0.0 and self.fpr < 0.0 else None

    @property
    def blind(self) -> float:
        """The value of the better constant guess: nobody, or everybody."""
        return self.constant + max(0.0, self.tpr + self.fpr)

    @property
    def ceiling(self) -> float:
        """The value of an attacker who makes no mistake."""
        return self.constant + max(0.0, self.tpr) + max(0.0, self.fpr)

    def judge(self, counts: ScoreCounts, errors: float = JUDGED) -> Array:
        """Return what counts show of the value at each threshold: its lower limit, or the value for other gains."""
        if self.weights is None:
            return np.asarray(self.at(counts.fpr, counts.tpr))
        sizes = max(counts.members, 1), max(counts.non_members, 1)
        return np.asarray(newcombe(counts.found, sizes[0], counts.accused, sizes[1], errors, self.weights))


@dataclass(frozen=True, eq=False)
class View:
    """One number for each record (a query, or a learned score), and the cells through which it is seen."""

    name: str
    cells: Cells
    ordered: bool
    """Whether the numbers can be compared; the symbols of a discrete query cannot."""
    extract: Callable[[Array], Array]
    fit_members: Array
    """The view of the fit part, by a rule that did not see these records."""
    fit_non_members: Array
    learned: bool = False
    """Whether several models took part: those that score the fit part and the one that scores all others."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A view of the held-out part."""

    view: View
    members: Array
    non_members: Array

    @cached_property
    def cell_members(self) -> Counts:
        """Members in each cell."""
        return self.view.cells.count(self.view.cells.locate(self.members))

    @cached_property
    def cell_non_members(self) -> Counts:
        """Non-members in each cell."""
        return self.view.cells.count(self.view.cells.locate(self.non_members))

    @cached_property
    def counts(self) -> ScoreCounts:
        """Counts at every threshold of the view itself."""
        return count_scores(self.members, self.non_members)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A score: the view ("high"), its negative ("low"), or the log ratio of its cell ("cells")."""

    view: View
    rule: str
    ratios: Array
    judged: ScoreCounts
    """Counts on the fit part of scores that did not see the record: they choose candidate and threshold.

    Of cells, the worse of these and of the counts of the score itself: a cell may lie on the other side of a threshold
    without the fold that is left out.
    """
    fitted: tuple[Counts, Counts]
    """Members and non-members of the fit part in each cell."""

    def score(self, values: Array) -> Array:
        """Return the score of each value of the view; high scores are accused."""
        if self.rule == "cells":
            return np.asarray(self.ratios[self.view.cells.locate(values)])
        return values if self.rule == "high" else -values

    def left_out_scores(self) -> tuple[Array, Array]:
        """Return the fit part's scores by cells, members and non-members, each by ratios that did not count it."""
        view = self.view
        sides = view.fit_members, view.fit_non_members
        ratios = log_ratios_without(*self.fitted)
        return ratios[0][view.cells.locate(sides[0])], ratios[1][view.cells.locate(sides[1])]

    def held_out_counts(self, held: HeldOut) -> ScoreCounts:
        """Count the held-out part at every threshold of the score."""
        if self.rule == "cells":
            return count_by_cell(self.ratios, held.cell_members, held.cell_non_members)
        return held.counts if self.rule == "high" else held.counts.reversed()

    def __str__(self) -> str:
        rules = {"high": "high values", "low": "low values", "cells": "likely cells"}
        return f"{rules[self.rule]} of {self.view.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """Accuse every record whose score reaches the threshold; with its counts on the held-out part."""

    candidate: Candidate
    threshold: float
    found: int
    members: int
    accused: int
    non_members: int

    @property
    def tpr(self) -> float:
        """Share of the held-out members found."""
        return self.found / self.members

    @property
    def fpr(self) -> float:
        """Share of the held-out non-members accused."""
        return self.accused / self.non_members

    def accuses(self, values: Array) -> Flags:
        """Tell which values of the candidate's view are accused."""
        return np.asarray(self.candidate.score(values) >= self.threshold)

    def __repr__(self) -> str:
        return (
            f"{self.candidate}: {self.found} of {self.members} members found, {self.accused} of {self.non_members} "
            "outsiders accused"
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """Both parts of the data: candidates from the fit part, counts from the held-out part."""

    experiment: Experiment
    fit_members: Flags
    """Which members chose the attacks; the others are held out."""
    fit_non_members: Flags
    views: tuple[View, ...]
    candidates: tuple[Candidate, ...]
    _held: dict[int, HeldOut] = field(default_factory=dict)

    @property
    def members(self) -> int:
        """Number of held-out members."""
        return int(np.sum(~self.fit_members))

    @property
    def non_members(self) -> int:
        """Number of held-out non-members."""
        return int(np.sum(~self.fit_non_members))

    @property
    def discrete(self) -> bool:
        """Whether the cells are the symbols of the query, fixed without looking at the data."""
        return self.experiment.kind == "discrete"

    @cached_property
    def rivals(self) -> tuple[Candidate, ...]:
        """The candidates that compete: all; where directions are known, high values of the learned score and of few.

        These few are the first queries. Each further candidate is one more chance to be the best of the fit part by
        luck, and the learned score speaks for all queries (docs/theory.md, section 19); :meth:`best` lets the others in
        where they lead clearly.
        """
        if not (self.experiment.directed and self.views[-1].learned):
            return self.candidates
        views = (*self.views[:RIVALS], self.views[-1])
        return tuple(c for c in self.candidates if c.rule == "high" and c.view in views)

    def held_out(self, view: View) -> HeldOut:
        """Return the view of the held-out part (computed once)."""
        key = self.views.index(view)
        if key not in self._held:
            inside, outside = self.experiment.columns
            self._held[key] = HeldOut(
                view, view.extract(inside[~self.fit_members]), view.extract(outside[~self.fit_non_members])
            )
        return self._held[key]

    def everyone(self, view: View) -> tuple[Array, Array]:
        """Return the view of all members and all non-members, in their order.

        A learned view of the fit part comes from other models, each on a scale of its own: its values are replaced by
        those of equal rank in the held-out part, whoever is a member.
        """
        held = self.held_out(view)
        fit = view.fit_members, view.fit_non_members
        if view.learned:
            fit = _with_ranks_of(fit, np.concatenate([held.members, held.non_members]))
        sides = []
        for fitted, seen, unseen in (
            (self.fit_members, fit[0], held.members),
            (self.fit_non_members, fit[1], held.non_members),
        ):
            values = np.empty(len(fitted))
            values[fitted], values[~fitted] = seen, unseen
            sides.append(values)
        return sides[0], sides[1]

    def choose(self, judge: Judge, view: View | None = None) -> Attack:
        """Return the attack that the fit part judges best, counted on the held-out part.

        Candidate and threshold are chosen by folds left out, the first of equals.
        """
        rivals = self.rivals if view is None else [c for c in self.candidates if c.view is view]
        return self._first([(candidate, candidate.judged, judge(candidate.judged)) for candidate in rivals])

    def best(self, gain: Gain) -> Attack:
        """Return the attack that the fit part judges best for a gain, counted on the held-out part.

        What competes is judged by its lower limit at 1.96 standard errors, at its best threshold. A learned score
        estimates ln(r/q), so it brings a threshold: accuse where u·r ≥ v·q. No luck chose that one, and there the score
        is judged at .5. Where few compete, all others are judged at 3.5: few win by luck, and members who gather at
        middle answers of one query, which no rival sees, are not passed over.
        """
        looks = [(candidate, candidate.judged, JUDGED) for candidate in self.rivals]
        if gain.weights is not None:
            u, v = gain.weights
            own = np.array([math.log(v) - math.log(u)])
            for candidate in self.candidates:
                if candidate not in self.rivals:
                    looks.append((candidate, candidate.judged, OUTSIDERS))
                if candidate.view.learned and candidate.rule == "high":
                    looks.append((candidate, candidate.judged.at(own), FIXED))
        return self._first([(candidate, counts, gain.judge(counts, errors)) for candidate, counts, errors in looks])

    def _first(self, judged: Sequence[tuple[Candidate, ScoreCounts, Array]]) -> Attack:
        """Count the attack of the candidate and threshold with the largest judgement, the first of equals."""
        candidate, counts, values = max(judged, key=lambda look: float(look[2].max()))
        return self.attack(candidate, counts.between(int(np.argmax(values))))

    def attack(self, candidate: Candidate, threshold: float) -> Attack:
        """Count one attack on the held-out part."""
        held = self.held_out(candidate.view)
        if candidate.rule == "cells":
            accused = candidate.ratios >= threshold
            found, wrong = held.cell_members[accused].sum(), held.cell_non_members[accused].sum()
        else:
            found, wrong = (np.sum(candidate.score(side) >= threshold) for side in (held.members, held.non_members))
        return Attack(candidate, threshold, int(found), self.members, int(wrong), self.non_members)


def collect_evidence(experiment: Experiment, rng: np.random.Generator, turn: int = 0) -> Evidence:
    """Split the data once and let the fit part propose its scores.

    Each side is cut at random into three parts for a single query and into two for several; the part whose ``turn`` it
    is chooses, the others are held out. One record of a side always is.
    """
    inside, outside = experiment.columns
    parts = parts_of(experiment)
    chosen = [_fit_part(len(side), parts, turn % parts, rng) for side in (inside, outside)]
    fit = inside[chosen[0]], outside[chosen[1]]
    views = _views(experiment, fit, rng)
    candidates = tuple(candidate for view in views for candidate in _candidates(view, rng))
    return Evidence(experiment, chosen[0], chosen[1], views, candidates)


def parts_of(experiment: Experiment) -> int:
    """Return into how many parts each side is cut."""
    return 3 if experiment.columns[0].shape[1] == 1 else 2


def _fit_part(size: int, parts: int, turn: int, rng: np.random.Generator) -> Flags:
    chosen = np.zeros(size, dtype=bool)
    own = np.array_split(rng.permutation(size), parts)[turn]
    chosen[own[: size - 1]] = True
    return chosen


def _views(experiment: Experiment, fit: tuple[Array, Array], rng: np.random.Generator) -> tuple[View, ...]:
    if experiment.kind == "discrete":
        count = int(max(side.max() for side in experiment.columns)) + 1
        name = " and ".join(experiment.names or ())
        ordered = count == 2 or (experiment.numeric and len(experiment.names or ()) == 1)
        return (View(name, symbol_cells(count), ordered, _Column(0), fit[0][:, 0], fit[1][:, 0]),)
    views = []
    for i, name in enumerate(experiment.names or ()):
        inside, outside = fit[0][:, i], fit[1][:, i]
        cells = quantile_cells(np.concatenate([inside, outside]))
        views.append(View(name, cells, True, _Column(i), inside, outside))
    if len(views) > 1 and min(len(side) for side in fit) >= FEWEST:
        score, seen = learn_score(*fit, rng)
        split = len(fit[0])
        views.append(View("all queries together", quantile_cells(seen), True, score, seen[:split], seen[split:], True))
    return tuple(views)


@dataclass(frozen=True)
class _Column:
    """One query of several."""

    place: int

    def __call__(self, table: Array) -> Array:
        return table[:, self.place]


def _candidates(view: View, rng: np.random.Generator) -> Sequence[Candidate]:
    none = np.zeros(0)
    candidates = []
    located = view.cells.locate(view.fit_members), view.cells.locate(view.fit_non_members)
    counts = [_by_fold(side, len(view.cells), rng) for side in located]
    fitted = counts[0].sum(axis=0), counts[1].sum(axis=0)
    if view.ordered:
        high = count_scores(view.fit_members, view.fit_non_members)
        candidates = [
            Candidate(view, "high", none, high, fitted),
            Candidate(view, "low", none, high.reversed(), fitted),
        ]
    ratios, left_out = log_ratios(*fitted), log_ratios(*(side.sum(axis=0) - side for side in counts))
    judged = count_by_cell(left_out.ravel(), counts[0].ravel(), counts[1].ravel())
    return [*candidates, Candidate(view, "cells", ratios, judged.worse(count_by_cell(ratios, *fitted)), fitted)]


def _with_ranks_of(sides: tuple[Array, Array], others: Array) -> tuple[Array, Array]:
    """Replace each value by the one of the same rank, ties at their middle, among ``others``."""
    pooled = np.sort(np.concatenate(sides))
    mapped = []
    for side in sides:
        ranks = (np.searchsorted(pooled, side, "left") + np.searchsorted(pooled, side, "right")) / (2 * len(pooled))
        mapped.append(np.quantile(others, ranks, method="inverted_cdf"))
    return mapped[0], mapped[1]


def _by_fold(located: Counts, cells: int, rng: np.random.Generator) -> Counts:
    """Count each cell in each of five random folds."""
    folds = rng.integers(FOLDS, size=len(located))
    return np.bincount(folds * cells + located, minlength=FOLDS * cells).reshape(FOLDS, cells)
