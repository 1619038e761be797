"""Limits on what the best attacker reaches, for any value that is linear in its two rates.

With N₁, N₂ the sample sizes and δ the chance of error, for value = c + u·TPR + v·FPR:

* lower: one attack chosen on the fit part, with Clopper-Pearson limits on its two rates from the held-out part at
  δ/4 each, or a constant guess, whose value is known;
* upper: the largest value that any attacker *of a class* reaches on the sample. Its mean is at least the truth
  (Jensen), and it changes by at most u/N₁ or v/N₂ with one record (McDiarmid): truth ≤ sample + √(ln(2/δ)/2·(u²/N₁
  + v²/N₂)).

The class: all attackers who see the symbols of a discrete query (all data count, nothing was fixed on them); for a
continuous query all who see it through cells that the fit part fixed, or who compare it with any threshold.
No upper limit holds for every attacker on a continuous query: two laws without a density in common can look alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whosin.auditing.attack import Attack, Evidence, Gain, View
from whosin.auditing.estimate import Estimate
from whosin.compute.proportions import bounded_differences_radius, clopper_pearson_lower, clopper_pearson_upper

__all__ = ["ADVANTAGE", "Rectangle", "best_value", "gain_at_prior", "plug_in", "rectangle", "upper_class"]

ADVANTAGE = Gain(0.0, 1.0, -1.0)


def gain_at_prior(prior: float) -> Gain:
    """Return 2·accuracy - 1 at that prior (Xu et al., definition 1) as a gain."""
    return Gain(1.0 - 2.0 * prior, 2.0 * prior, -2.0 * (1.0 - prior))


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


def best_value(
    evidence: Evidence, gain: Gain, delta: float, view: View | None = None
) -> tuple[Estimate, float, Attack]:
    """Return the value of the best attacker with limits at level 1 - ``delta``, the plug-in value, and the attack.

    The estimate is the held-out value of the chosen attack, moved into the limits; it is biased down, the plug-in up.
    """
    attack = evidence.choose(gain, view)
    limits = rectangle(attack, delta / 4)
    ceiling = gain.constant + max(0.0, gain.tpr) + max(0.0, gain.fpr)
    blind = gain.constant + max(0.0, gain.tpr + gain.fpr)
    seen, squares = plug_in(evidence, gain, attack.candidate.view)
    upper = min(ceiling, max(blind, seen + bounded_differences_radius(squares, delta / 2)))
    lower = min(upper, max(blind, min(gain(*corner) for corner in limits.corners)))
    found = float(np.clip(gain(attack.fpr, attack.tpr), lower, upper))
    return Estimate(found, lower, upper, 1.0 - delta), seen, attack


def plug_in(evidence: Evidence, gain: Gain, view: View) -> tuple[float, float]:
    """Return the largest value in the sample over the attackers of the class, and the squares for McDiarmid's bound."""
    held = evidence.held_out(view)
    inside, outside = held.cell_members, held.cell_non_members
    if evidence.discrete:
        inside, outside = (view.cells.count(view.cells.locate(side)) for side in evidence.everyone(view))
    n1, n2 = int(inside.sum()), int(outside.sum())
    best = float(np.sum(np.maximum(0.0, gain.tpr * inside / n1 + gain.fpr * outside / n2)))
    if view.ordered:
        line = gain.tpr * held.counts.tpr + gain.fpr * held.counts.fpr
        best = max(best, float(line.max()), gain.tpr + gain.fpr - float(line.min()))
    return gain.constant + best, gain.tpr**2 / n1 + gain.fpr**2 / n2


def upper_class(evidence: Evidence, view: View) -> str:
    """Say in words which attackers the upper limit covers."""
    if evidence.discrete:
        return f"every attacker who sees {view.name}"
    return (
        f"every attacker who sees {view.name} through {len(view.cells)} cells fixed on other data, "
        "or compares it with any threshold"
    )
