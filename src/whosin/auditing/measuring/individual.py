"""Individual risk: how much the answer about one record gives away.

Xu et al. (2022), theorems 2 to 4, corrected. All records of a cell share the posterior of membership

    ρ = p·r/(p·r + (1-p)·q),    f_p = 2ρ - 1,    AdvI = |f_p|,

with r and q the cell's probabilities. Clopper-Pearson limits on r and q at δ/4 each give limits on ρ at δ (union
bound; the printed δ/2 has no proof). They hold for one record that was named beforehand, whose cell is as random as
its answer: given that cell, the *other* records still follow their laws, so the record itself is not counted. (It is in
its cell for sure: with few members and rare answers, limits that count it miss several times as often as they may.) For
the riskiest record, or for all at once, take the simultaneous ones, at δ/k for each of k cells. A general metric is
V-shaped in ρ, so its limits are its extremes over the whole interval of ρ, with the kink at the attacker's threshold,
and not only its values at the two ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.answers import Rows
from whosin.arrays import Array, Flags
from whosin.auditing.measuring.attack import Candidate, Evidence
from whosin.auditing.measuring.cells import coarser
from whosin.errors import InputError, InputTypeError, check_choice, check_whole
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper
from whosin.risks import RatioMetric
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FEWEST = 10
"""Fewest records of the fit part in a cell of a continuous query."""


@dataclass(frozen=True, eq=False)
class _CellRisks:
    risk: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False, repr=False)
class Individual(Rows):
    """One row for each record (or person): members first, then non-members, in the order in which they were given.

    Columns are arrays: ``index`` (row on its side), ``member``, ``score`` (of the attack; a record of the fit part
    by a rule that did not see it), ``cell``, ``counted`` (whether it is one of the records that the limits count),
    ``risk`` (posterior of membership), ``lower``, ``upper``, ``simultaneous_lower`` and ``simultaneous_upper``.

    Examples
    --------
    The members whom the scores give away most:

    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> found = wi.audit(rng.normal(2, 1, 300), rng.normal(0, 1, 300)).individual
    >>> worst = int(np.argmax(found.risk))
    >>> bool(found.member[worst]), round(float(found.risk[worst]), 2), round(float(found.lower[worst]), 2)
    (True, 1.0, 0.9)
    """

    index: NDArray[np.int64]
    member: Flags
    score: Array
    cell: NDArray[np.int64]
    counted: Flags
    prior: float
    confidence_level: float
    roc: Roc
    person: NDArray[Any] | None
    """The identifier of each person, where people were told apart from records."""
    _alone: _CellRisks
    """Three times the cells: as they are, without one of their members, and without one of their non-members."""
    _together: _CellRisks

    @property
    def risk(self) -> Array:
        """Estimated posterior of membership of each record; the prior where its cell is empty."""
        return self._together.risk[self.cell]

    def _limits(self, simultaneous: bool) -> tuple[_CellRisks, NDArray[np.int64]]:
        """The limits, and which of them are those of each record."""
        if simultaneous:
            return self._together, self.cell
        without = np.where(self.counted, np.where(self.member, 1, 2), 0)
        return self._alone, self.cell + without * len(self._together.risk)

    @property
    def lower(self) -> Array:
        """Lower limit of the risk, for a record that was named beforehand."""
        cells, place = self._limits(simultaneous=False)
        return cells.lower[place]

    @property
    def upper(self) -> Array:
        """Upper limit of the risk, for a record that was named beforehand."""
        cells, place = self._limits(simultaneous=False)
        return cells.upper[place]

    @property
    def simultaneous_lower(self) -> Array:
        """Lower limits that hold for all records at once."""
        return self._together.lower[self.cell]

    @property
    def simultaneous_upper(self) -> Array:
        """Upper limits that hold for all records at once."""
        return self._together.upper[self.cell]

    def __len__(self) -> int:
        return len(self.index)

    def signed_advantage(self, *, simultaneous: bool = False) -> tuple[Array, Array, Array]:
        """Return f_p = 2·risk - 1 of each record with its limits (Xu et al., equation 14)."""
        cells, place = self._limits(simultaneous)
        return tuple(2.0 * side[place] - 1.0 for side in (cells.risk, cells.lower, cells.upper))  # type: ignore[return-value]

    def advantage(self, *, simultaneous: bool = False) -> tuple[Array, Array, Array]:
        """Return AdvI, the absolute value of f_p, of each record with its limits (definition 3).

        The lower limit is 0 where f_p may be 0.
        """
        f, low, high = self.signed_advantage(simultaneous=simultaneous)
        straddles = (low <= 0.0) & (high >= 0.0)
        ends = np.abs(low), np.abs(high)
        return np.abs(f), np.where(straddles, 0.0, np.minimum(*ends)), np.maximum(*ends)

    def value(
        self, metric: RatioMetric, *, threshold: float | None = None, simultaneous: bool = False
    ) -> tuple[Array, Array, Array]:
        """Return a generalised metric of each record given its answer, with limits (definition 6, theorem 4).

        Parameters
        ----------
        metric : RatioMetric
            Its denominator must not vanish for either guess.
        threshold : float, optional
            Posterior above which the attacker says "member": by default that of lemma 2 or, from the measured
            curve, 3.
        simultaneous : bool
            Limits for all records at once.
        """
        if not isinstance(metric, RatioMetric):
            raise InputTypeError(f"metric must be a RatioMetric, got {metric!r}")
        t = metric.threshold(self.roc.hull(), self.prior) if threshold is None else threshold
        if t is None:
            raise InputError(f"metric={metric.name!r} has no threshold rule: give threshold=…")
        cells, place = self._limits(simultaneous)
        low, high = cells.lower, cells.upper
        middle = np.clip(t, low, high)
        at_kink = np.stack([_given(metric, middle, guess) for guess in (False, True)])
        inside = (low <= t) & (t <= high)
        ends = np.stack([_given(metric, rho, rho > t) for rho in (low, high)])
        everything = np.concatenate([ends, np.where(inside, at_kink, ends)])
        sides = _given(metric, cells.risk, cells.risk > t), everything.min(axis=0), everything.max(axis=0)
        return sides[0][place], sides[1][place], sides[2][place]

    def highest(self, n: int = 10, side: str = "both") -> list[dict[str, Any]]:
        """Return the ``n`` records of the highest scores as dictionaries; ties stand in no regard of sides.

        ``side`` is "member", "non-member" or "both". These records were picked for being extreme, so read their
        simultaneous limits.
        """
        n = check_whole("n", n, low=0)
        side = check_choice("side", side, ("both", "member", "non-member"))
        rows = np.arange(len(self)) if side == "both" else np.flatnonzero(self.member == (side == "member"))
        shuffled = rows[np.random.default_rng(len(self)).permutation(len(rows))]
        top = shuffled[np.argsort(-self.score[shuffled], kind="stable")[:n]]
        cells, place = self._limits(simultaneous=False)
        return [self._row(int(i), cells, int(place[i])) for i in top]

    def _row(self, i: int, alone: _CellRisks, place: int) -> dict[str, Any]:
        cell = self.cell[i]
        return {
            "index": int(self.index[i]),
            "side": "member" if self.member[i] else "non-member",
            **({} if self.person is None else {"person": str(self.person[i])}),
            "score": float(self.score[i]),
            "risk": float(alone.risk[place]),
            "lower": float(alone.lower[place]),
            "upper": float(alone.upper[place]),
            "simultaneous_lower": float(self._together.lower[cell]),
            "simultaneous_upper": float(self._together.upper[cell]),
        }

    def _columns(self) -> dict[str, Any]:
        who = {} if self.person is None else {"person": self.person.tolist()}
        names = ("index", "member", "risk", "lower", "upper", "simultaneous_lower", "simultaneous_upper")
        return {**who, **{name: getattr(self, name).tolist() for name in names}}

    def __repr__(self) -> str:
        surely = self.histogram()["surely_above_prior"]
        return f"risk of {len(self)} records: {surely} members surely above the prior {self.prior:g}"

    def histogram(self) -> dict[str, Any]:
        """Return how many members have a risk in each tenth from 0 to 1, and how many surely a risk above the prior."""
        counts, _ = np.histogram(self.risk[self.member], bins=np.linspace(0.0, 1.0, 11))
        surely = int(np.sum(self.simultaneous_lower[self.member] > self.prior))
        return {"members": counts.tolist(), "surely_above_prior": surely}

    def to_dict(self, n: int = 20) -> dict[str, Any]:
        """Return the ``n`` members of the highest scores, and how many have which risk, for JSON."""
        return {
            "highest": self.highest(n, "member"),
            "histogram": self.histogram(),
            "cells": len(self._together.risk),
            "confidence_level": self.confidence_level,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the members' risks in rising order with their simultaneous limits; return the axes."""
        from whosin.plots import draw_individual

        rows = np.flatnonzero(self.member)
        rows = rows[np.argsort(self.risk[rows], kind="stable")]
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, 2000).astype(np.int64))]
        limits = self.simultaneous_lower[rows], self.simultaneous_upper[rows]
        return draw_individual(ax, self.risk[rows], *limits, self.prior)


def individual_risks(evidence: Evidence, candidate: Candidate, roc: Roc, delta: float) -> Individual:
    """Return the risk of every record in the cells of the candidate's view; O(N log k) for k cells.

    The cells of a continuous query were fixed on the fit part, so only held-out records are counted in them; the
    symbols of a discrete query were not, so all are. Cells of a continuous query are joined until each holds a
    hundredth of the fit part, and ten records: the limits of a cell with a few records would say nothing.
    """
    view = candidate.view
    everyone = evidence.everyone(view)
    cells, counted = view.cells, everyone
    if not evidence.discrete:
        fit = np.concatenate([view.fit_members, view.fit_non_members])
        cells = coarser(cells, fit, max(FEWEST, len(fit) // 100))
        held = evidence.held_out(view)
        counted = held.members, held.non_members
    located = [cells.locate(side) for side in everyone]
    counts = [cells.count(cells.locate(side)) for side in counted]
    prior = evidence.experiment.prior
    sizes = [len(side) for side in everyone]
    fitted = np.concatenate([evidence.fit_members, evidence.fit_non_members])
    score = np.concatenate([candidate.score(side) for side in everyone])
    if candidate.rule == "cells":
        score[fitted] = np.concatenate(candidate.left_out_scores())
    people = evidence.experiment.people
    return Individual(
        index=np.concatenate([np.arange(size) for size in sizes]),
        member=np.arange(sum(sizes)) < sizes[0],
        score=score,
        cell=np.concatenate(located),
        counted=np.ones(sum(sizes), dtype=bool) if evidence.discrete else ~fitted,
        prior=prior,
        confidence_level=1.0 - delta,
        roc=roc,
        person=None if people is None else np.concatenate([side.names for side in people]),
        _alone=_posteriors(counts[0], counts[1], prior, delta / 4, [(0, 0), (1, 0), (0, 1)]),
        _together=_posteriors(counts[0], counts[1], prior, delta / (4 * len(cells)), [(0, 0)]),
    )


def _posteriors(
    inside: NDArray[np.int64],
    outside: NDArray[np.int64],
    prior: float,
    alpha: float,
    without: Sequence[tuple[int, int]],
) -> _CellRisks:
    """Posteriors of all cells with limits, once for each number of members and non-members that are not counted."""
    n1, n2 = int(inside.sum()), int(outside.sum())
    risk = _posterior(inside / n1, outside / n2, prior, prior)
    lower, upper = [], []
    for members, non_members in without:
        r, q = np.maximum(inside - members, 0), np.maximum(outside - non_members, 0)
        of_r, of_q = (r, n1 - members, alpha), (q, n2 - non_members, alpha)
        lower.append(_posterior(clopper_pearson_lower(*of_r), clopper_pearson_upper(*of_q), prior, 0.0))
        upper.append(_posterior(clopper_pearson_upper(*of_r), clopper_pearson_lower(*of_q), prior, 1.0))
    return _CellRisks(np.tile(risk, len(without)), np.concatenate(lower), np.concatenate(upper))


def _posterior(r: Array, q: Array, prior: float, otherwise: float) -> Array:
    weight = prior * r
    total = weight + (1.0 - prior) * q
    return np.asarray(np.divide(weight, total, out=np.full(total.shape, otherwise), where=total > 0))


def _given(metric: RatioMetric, rho: Array, accuse: Any) -> Array:
    """The metric of one guess about a record of posterior ``rho``."""
    a0, a11, a10, a01, a00 = metric.a
    b0, b11, b10, b01, b00 = metric.b
    top = a0 + np.where(accuse, a11 * rho + a10 * (1.0 - rho), a01 * rho + a00 * (1.0 - rho))
    bottom = b0 + np.where(accuse, b11 * rho + b10 * (1.0 - rho), b01 * rho + b00 * (1.0 - rho))
    if np.any(bottom <= 0.0):
        raise InputError(f"metric={metric.name!r} is 0/0 for some guess about a single record, and has no value there")
    return np.asarray(top / bottom)
