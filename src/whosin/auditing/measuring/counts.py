"""Members found and outsiders accused at every threshold of a score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whosin.arrays import Array, Counts
from whosin.roc import Roc

MOST_VERTICES = 2001


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """How many have a score of at least each threshold. Thresholds fall, from +inf (nobody) on; counts rise."""

    thresholds: Array
    found: Counts
    accused: Counts
    members: int
    non_members: int

    @cached_property
    def tpr(self) -> Array:
        """Share of the members found at each threshold (0 without members)."""
        return self.found / max(self.members, 1)

    @cached_property
    def fpr(self) -> Array:
        """Share of the non-members accused at each threshold (0 without non-members)."""
        return self.accused / max(self.non_members, 1)

    def reversed(self) -> ScoreCounts:
        """Return the counts of the negated score: who has at most a value is who has not more than it. O(N)."""
        thresholds = np.append(np.inf, -self.thresholds[:0:-1])
        found, accused = self.members - self.found[::-1], self.non_members - self.accused[::-1]
        return ScoreCounts(thresholds, found, accused, self.members, self.non_members)

    def at(self, thresholds: Array) -> ScoreCounts:
        """Return the counts at other thresholds of the same score."""
        place = np.searchsorted(-self.thresholds, -thresholds, side="right") - 1
        return ScoreCounts(thresholds, self.found[place], self.accused[place], self.members, self.non_members)

    def worse(self, other: ScoreCounts) -> ScoreCounts:
        """Return at each threshold the fewer members found and the more outsiders accused by two counts of a score."""
        there = other.at(self.thresholds)
        found, accused = np.minimum(self.found, there.found), np.maximum(self.accused, there.accused)
        return ScoreCounts(self.thresholds, found, accused, self.members, self.non_members)

    def between(self, at: int) -> float:
        """Return a threshold that accuses the same records as the ``at``-th, midway to the next score below."""
        threshold = float(self.thresholds[at])
        if at == 0 or at + 1 == len(self.thresholds):
            return threshold
        below = float(self.thresholds[at + 1])
        middle = 0.5 * threshold + 0.5 * below
        return middle if middle > below else threshold

    def thinned(self, most: int = MOST_VERTICES) -> ScoreCounts:
        """Return at most about ``most`` of the thresholds, first and last among them, dense at both ends."""
        if len(self.thresholds) <= most:
            return self
        ends = np.geomspace(1.0 / (self.members + self.non_members), 0.5, most // 3)
        levels = np.concatenate([ends, 1.0 - ends, np.linspace(0.0, 1.0, most // 3)])
        share = (self.tpr + self.fpr) / 2.0
        kept = np.unique(np.append(np.searchsorted(share, levels), [0, len(share) - 1]).clip(0, len(share) - 1))
        return ScoreCounts(self.thresholds[kept], self.found[kept], self.accused[kept], self.members, self.non_members)

    def roc(self) -> Roc:
        """Return the empirical curve; of very many thresholds some two thousand are kept, each with its exact rates."""
        few = self.thinned()
        return Roc(few.fpr, few.tpr)


def count_scores(members: Array, non_members: Array) -> ScoreCounts:
    """Count at every different score; O(N log N)."""
    inside, outside = np.sort(members), np.sort(non_members)
    both = np.sort(np.concatenate([inside, outside]))
    distinct = both[np.concatenate([[True], both[1:] != both[:-1]])] if both.size else both
    return _falling(
        distinct,
        len(inside) - np.searchsorted(inside, distinct, side="left"),
        len(outside) - np.searchsorted(outside, distinct, side="left"),
        len(inside),
        len(outside),
    )


def count_by_cell(scores: Array, members: Counts, non_members: Counts) -> ScoreCounts:
    """Count where all records of a cell share a score: ``scores``, ``members`` and ``non_members`` for each cell."""
    distinct, place = np.unique(scores, return_inverse=True)
    sums = [
        np.cumsum(np.bincount(place.reshape(-1), weights=side, minlength=len(distinct))[::-1])[::-1].astype(np.int64)
        for side in (members, non_members)
    ]
    return _falling(distinct, sums[0], sums[1], int(np.sum(members)), int(np.sum(non_members)))


def _falling(rising: Array, found: Counts, accused: Counts, members: int, non_members: int) -> ScoreCounts:
    return ScoreCounts(
        np.append(np.inf, rising[::-1]), np.append(0, found[::-1]), np.append(0, accused[::-1]), members, non_members
    )
