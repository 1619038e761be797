"""Limits on what the best attacker reaches, for any value that is linear in its two rates.

For value = c + u·TPR - v·FPR, with α half of the chance of error (docs/theory.md has the proofs):

* lower: the larger of two limits, each at α/2. One looks at every threshold of every query on *all* records at once,
  without a split (:mod:`whosin.auditing.measuring.thresholds`); queries and directions share its error, the first
  ones the most where their order was fixed beforehand. The other is a vote over many splits: each chooses an attack
  (a query, cells, a learned score) on one part and counts it on the other, with an exact limit at a quarter of α/2,
  and the limit that a quarter of the splits reach holds at α/2 (Markov).
* upper: the largest value W that any attacker *of a class* reaches on the sample. The class is fixed before the counted
  records are seen, so its best attacker at the truth is one attacker, whose sample value is at most W: an exact
  limit for one attacker at W holds for the class.

The class: all attackers who see the symbols of a discrete query (all records count, nothing was fixed on them); for
continuous queries all who compare a query, or the learned score, with a threshold, or see the chosen one through
cells that the fit part fixed. No upper limit holds for every attacker on a continuous query: two laws without a
density in common can look alike.

A gain that does not rise in the TPR and fall in the FPR has limits from the rectangle of two Clopper-Pearson intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whosin.auditing.measuring.attack import Attack, Evidence, Gain, View
from whosin.auditing.measuring.counts import count_scores
from whosin.auditing.measuring.estimate import Estimate
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.splits import Splits
from whosin.auditing.measuring.thresholds import scan_lower, scan_statistic, scan_z
from whosin.numerics.differences import gain_lower, gain_upper, newcombe
from whosin.numerics.proportions import bounded_differences_radius, clopper_pearson_lower, clopper_pearson_upper

ADVANTAGE = Gain(0.0, 1.0, -1.0)
VOTE = 0.25
"""Share of the splits that must reach a limit."""
FAR_APART = 6.0
"""Largest ratio of the two weights of a gain that is limited as such."""
HOPELESS = 1e9
"""Ratio of the two weights from which no number of records shows more than a constant guess."""


def gain_at_prior(prior: float) -> Gain:
    """Return 2·accuracy - 1 at that prior (Xu et al., definition 1) as a gain."""
    return Gain(1.0 - 2.0 * prior, 2.0 * prior, -2.0 * (1.0 - prior))


@dataclass(frozen=True)
class Finding:
    """What an audit says of one gain."""

    value: Estimate
    """The value of the best attacker, with limits; the estimate is that of the two rates."""
    tpr: float
    """Share of the members found: by the attack that gave the lower limit, or, if there is none, by all on average."""
    fpr: float
    """Share of the non-members accused by the same."""
    plug_in: float
    """The largest value in the sample over the attackers that the upper limit covers."""


def best_value(splits: Splits, gain: Gain, delta: float) -> Finding:
    """Return the value of the best attacker with limits at level 1 - ``delta``, deterministic in data and seed."""
    attacks = splits.attacks(gain)
    view = attacks[0].candidate.view
    seen, upper = class_upper(splits.first, gain, delta / 2, view)
    limit, rates = _lower(splits, gain, attacks, delta / 2)
    lower = max(gain.blind, limit)
    upper = max(upper, lower)
    if limit <= gain.blind:
        rates = _rates(attacks)
    value = Estimate(
        float(np.clip(gain.at(rates[1], rates[0]), lower, upper)),
        lower,
        upper,
        1.0 - delta,
        f"upper limit: {upper_class(splits.first, view)}",
    )
    return Finding(value, rates[0], rates[1], seen)


def _rates(attacks: Sequence[Attack]) -> tuple[float, float]:
    """Mean TPR and mean FPR."""
    return float(np.mean([attack.tpr for attack in attacks])), float(np.mean([attack.fpr for attack in attacks]))


def _lower(splits: Splits, gain: Gain, attacks: tuple[Attack, ...], alpha: float) -> tuple[float, tuple[float, float]]:
    """Return the lower limit, and TPR and FPR of the attack that gave it: of a vote, those of the middle split."""
    if gain.weights is None:
        corners = rectangle(attacks[0], alpha / 2).corners
        return min(float(gain.at(*corner)) for corner in corners), _rates(attacks)
    if max(gain.weights) > HOPELESS * min(gain.weights):
        return gain.blind, _rates(attacks)
    ordered = splits.experiment.scores[0].shape[1] > 0
    share = alpha / 2 if ordered else alpha
    scanned, rates = _scanned(splits, gain, share) if ordered else (-math.inf, (0.0, 0.0))
    voted = _voted(attacks, gain.weights, share, max(scanned, gain.blind - gain.constant))
    if voted > scanned:
        middle = sorted(attacks, key=lambda attack: float(gain.at(attack.fpr, attack.tpr)))[len(attacks) // 2]
        return gain.constant + voted, (middle.tpr, middle.fpr)
    return gain.constant + scanned, rates


def _voted(attacks: tuple[Attack, ...], weights: tuple[float, float], alpha: float, enough: float) -> float:
    """Return a limit that a quarter of the splits reach, each at a quarter of the level.

    Which quarter is judged by the ordering of the exact limits, so that only theirs are computed: the smallest of any
    quarter is at most the one asked for. One that is not above ``enough`` ends it.
    """
    z = scan_z(VOTE * alpha)
    judged = [newcombe(a.found, a.members, a.accused, a.non_members, z, weights) for a in attacks]
    best = np.argsort(-np.array(judged), kind="stable")[: math.ceil(VOTE * len(attacks))]
    limit = math.inf
    for place in best[::-1]:
        limit = min(limit, _counted_lower(attacks[place], weights, VOTE * alpha))
        if limit <= enough:
            break
    return limit


def _scanned(splits: Splits, gain: Gain, alpha: float) -> tuple[float, tuple[float, float]]:
    """Return the limit from all thresholds of every query, and TPR and FPR of the best threshold of the best query.

    The limits of all queries hold together, each at its share of the error, and that of one of them is computed.
    """
    assert gain.weights is not None
    inside, outside = splits.experiment.scores
    levels = [alpha * share for share in _error_shares(splits.experiment)]
    signs = (1.0,) if splits.experiment.directed else (1.0, -1.0)
    looks = [(sign * x, sign * y) for x, y in zip(inside.T, outside.T, strict=True) for sign in signs]
    zs = [scan_z(level) for level in levels]
    statistics = [scan_statistic(x, y, z, gain.weights) for (x, y), z in zip(looks, zs, strict=True)]
    best = int(np.argmax(statistics))
    counts = count_scores(*looks[best])
    at = int(np.argmax(gain.judge(counts)))
    limit = scan_lower(statistics[best], len(inside), len(outside), levels[best], zs[best], gain.weights)
    return limit, (float(counts.tpr[at]), float(counts.fpr[at]))


def _error_shares(experiment: Experiment) -> list[float]:
    """Return the share of the error that each query has, or each direction of each query; they sum to 1 at most.

    Queries whose direction is known come in an order that was fixed beforehand, those that mostly find more first: the
    shares fall like 1, 1/2, 1/3, …, so that further queries cost the first ones little. Else all have the same.
    """
    queries = experiment.scores[0].shape[1]
    if not experiment.directed:
        return [0.5 / queries] * (2 * queries)
    parts = [1.0 / (place + 1) for place in range(queries)]
    return [part / sum(parts) for part in parts]


def could_show(splits: Splits, delta: float) -> bool:
    """Whether so many records would show a leak at all: whether the lower limit of a perfect attack is above 0."""
    first = splits.first
    ordered = splits.experiment.scores[0].shape[1]
    share = delta / 4 if ordered else delta / 2
    if gain_lower(first.members, first.members, 0, first.non_members, VOTE * share) > 0.0:
        return True
    if not ordered:
        return False
    each = share * max(_error_shares(splits.experiment))
    z, sizes = scan_z(each), (len(splits.experiment.members), len(splits.experiment.non_members))
    perfect = scan_statistic(np.ones(sizes[0]), np.zeros(sizes[1]), z)
    return scan_lower(perfect, *sizes, each, z) > 0.0


def _counted_lower(attack: Attack, weights: tuple[float, float], alpha: float) -> float:
    return gain_lower(attack.found, attack.members, attack.accused, attack.non_members, alpha, weights=weights)


@dataclass(frozen=True)
class Rectangle:
    """Limits on the two rates of one attack; each of the four fails with probability at most the stated level."""

    tpr_lower: float
    tpr_upper: float
    fpr_lower: float
    fpr_upper: float

    @cached_property
    def corners(self) -> tuple[tuple[float, float], ...]:
        """The four (FPR, TPR)."""
        return tuple((fpr, tpr) for fpr in (self.fpr_lower, self.fpr_upper) for tpr in (self.tpr_lower, self.tpr_upper))


def rectangle(attack: Attack, alpha: float) -> Rectangle:
    """Return Clopper-Pearson limits on TPR and FPR at ``alpha`` for each of the four."""
    rates = (attack.found, attack.members), (attack.accused, attack.non_members)
    sides = [float(limit(*rate, alpha)) for rate in rates for limit in (clopper_pearson_lower, clopper_pearson_upper)]
    return Rectangle(*sides)


def class_upper(
    evidence: Evidence, gain: Gain, alpha: float, view: View, *, alone: bool = False
) -> tuple[float, float]:
    """Return the largest sample value of the class, and the upper limit for it at ``alpha``.

    ``alone`` leaves the thresholds of all other queries out of the class. Where u and v are far apart (an extreme
    prior) the limit is that of the advantage A of the class, by u·TPR - v·FPR ≤ max(0, u - v) + min(u, v)·A: few
    records limit a difference of rates better than one rate times a large weight.
    """
    seen, n1, n2 = plug_in(evidence, gain, view, alone=alone)
    if gain.weights is None:
        limit = seen + bounded_differences_radius(gain.tpr**2 / n1 + gain.fpr**2 / n2, alpha)
    elif max(gain.weights) > FAR_APART * min(gain.weights):
        _, advantage = class_upper(evidence, ADVANTAGE, alpha, view, alone=alone)
        limit = gain.blind + min(gain.weights) * advantage
    else:
        limit = gain.constant + gain_upper(seen - gain.constant, n1, n2, alpha, weights=gain.weights)
    return seen, min(gain.ceiling, max(gain.blind, limit))


def plug_in(evidence: Evidence, gain: Gain, view: View, *, alone: bool = False) -> tuple[float, int, int]:
    """Return the largest sample value over the attackers of the class, and the numbers of records it was counted on."""
    held = evidence.held_out(view)
    inside, outside = held.cell_members, held.cell_non_members
    if evidence.discrete:
        inside, outside = (view.cells.count(view.cells.locate(side)) for side in evidence.everyone(view))
    n1, n2 = int(inside.sum()), int(outside.sum())
    best = float(np.sum(np.maximum(0.0, gain.tpr * inside / n1 + gain.fpr * outside / n2)))
    if not evidence.discrete:
        views = [view] if alone else evidence.views
        best = max(best, *(_by_threshold(evidence, gain, other) for other in views))
    return gain.constant + best, n1, n2


def _by_threshold(evidence: Evidence, gain: Gain, view: View) -> float:
    """Return the largest value, without the constant, of a threshold on a view, in either direction."""
    counts = evidence.held_out(view).counts
    line = gain.tpr * counts.tpr + gain.fpr * counts.fpr
    return max(float(line.max()), gain.tpr + gain.fpr - float(line.min()))


def upper_class(evidence: Evidence, view: View) -> str:
    """Say in words which attackers the upper limit covers."""
    if evidence.discrete:
        return f"every attacker who sees {view.name}"
    cells = f"sees {view.name} through {len(view.cells)} cells fixed on other data"
    if len(evidence.views) == 1:
        return f"every attacker who compares {view.name} with a threshold, or {cells}"
    score = " or the learned score" if evidence.views[-1].learned else ""
    return f"every attacker who compares one query{score} with a threshold, or {cells}"
