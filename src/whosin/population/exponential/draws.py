"""Draws of subsets for the exponential mechanism on a pool of N records: a sample for every record from each.

**Samples, every k.** Let C be a uniform subset of k - 1 records and F(z) = p_w(C + z) for z ∉ C. Given x ∉ C, C is
uniform among the subsets without x, so F(x) has the mean P_in of x; and C + y, for y uniform among the others outside,
is a uniform k-subset without x, so the mean of F(y) over these y has the mean P_out. Their difference is a sample of
P_in - P_out. It is an average of differences U - V between neighbouring data sets, which all lie within the same
limits (``caps``), so it does too; and the luck of a single partner, most of the variance in a large pool, is averaged
out. From the other side: E is a uniform subset of k + 1 records and F(z) = p_w(E - z) for z ∈ E. Given x ∈ E, F(x) has
the mean P_out, and the mean over the others in E, which all keep x, has the mean P_in. The side that gives more records
a sample is taken: the first for k ≤ N/2. With the mean over *all* c places, x included, the difference is c/(c - 1)
times F(x) less that mean; and the mean over all places has itself the mean P(w).

Whether x has a sample in a draw depends on x's own place alone: given in which draws it has one, its samples are
independent with the mean P_in - P_out. Limits hold given the realised number, hence also without the condition.

**Sums by matrix products.** F_w(z) = p_w·t_zw/Z_z, where p is the law of C itself, t_zw = e^∓g_zw and Z_z = Σ_v
p_v·t_zv. So sums of F and F² over draws are products of matrices (draws × outcomes) and (draws × records), and no array
has an entry for each draw, outcome and record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from whosin.arrays import Array, Index
from whosin.population.exponential.game import Game

BATCH = 2**16
"""Draws times records that are worked on at once, roughly: what fits into the second-level cache."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Numbers, sums and sums of squares of samples."""

    count: Array
    total: Array
    squares: Array

    def add(self, other: Sums) -> None:
        for mine, more in zip(self.parts, other.parts, strict=True):
            mine += more

    def times(self, factor: float) -> Sums:
        """What so many times the draws would give, if they had the same means."""
        return Sums(*(factor * part for part in self.parts))

    @property
    def parts(self) -> tuple[Array, ...]:
        return self.count, self.total, self.squares

    @property
    def mean(self) -> Array:
        return self.total / np.maximum(self.count, 1.0)

    @property
    def variance(self) -> Array:
        """Sample variances with the divisor count - 1, not below 0."""
        spread = self.squares - self.total * self.mean
        return np.maximum(spread, 0.0) / np.maximum(self.count - 1.0, 1.0)

    def mean_square(self, centre: Array) -> Array:
        """Mean square of the distance from ``centre``, not below 0."""
        mean = self.mean
        return np.maximum(self.squares / np.maximum(self.count, 1.0) - centre * (2.0 * mean - centre), 0.0)


@dataclass(frozen=True, eq=False)
class Block:
    """What a block of draws leaves behind: sums of the probabilities, and of the samples per outcome and record."""

    frequencies: Sums
    differences: Sums

    @classmethod
    def empty(cls, outcomes: int, records: int) -> Block:
        shape = (outcomes, records)
        return cls(
            Sums(np.array(0.0), np.zeros(2 * outcomes), np.zeros(2 * outcomes)),
            Sums(np.zeros(records), np.zeros(shape), np.zeros(shape)),
        )

    def add(self, other: Block) -> None:
        self.frequencies.add(other.frequencies)
        self.differences.add(other.differences)

    def packed(self) -> Array:
        """Return all numbers in a row, for a journal or another machine."""
        return np.concatenate([np.ravel(part) for part in self._parts])

    @classmethod
    def unpacked(cls, numbers: Array, outcomes: int, records: int) -> Block:
        """Return the block that :meth:`packed` gave these numbers."""
        block, start = cls.empty(outcomes, records), 0
        for part in block._parts:
            part[...] = numbers[start : start + part.size].reshape(part.shape)
            start += part.size
        return block

    @property
    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self.frequencies.parts + self.differences.parts


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws blocks of subsets, each block from a seed of its own. ``ranking`` orders the outcomes for nested sums."""

    game: Game
    ranking: Index

    @property
    def adds(self) -> bool:
        """Whether records are added to a smaller subset, or taken out of a larger one."""
        return 2 * self.game.k <= self.game.records

    @property
    def size(self) -> int:
        """Records of the subset that is drawn."""
        return self.game.k - 1 if self.adds else self.game.k + 1

    @property
    def places(self) -> int:
        """Records that have a sample in a draw."""
        return self.game.records - self.size if self.adds else self.size

    @property
    def batch(self) -> int:
        """How many draws are worked on at once."""
        return max(8, min(BATCH // self.game.records, 4096))  # fewer make vectors of matrices

    def block(self, draws: int, seed: np.random.SeedSequence) -> Block:
        """Draw subsets. O(draws·N·m) time, O(N·m) memory."""
        block = Block.empty(self.game.outcomes, self.game.records)
        for drawn in _subsets(self.game.records, self.size, draws, self.batch, np.random.default_rng(seed)):
            log_law = self.game.log_law(drawn)
            places = 1.0 - drawn if self.adds else drawn
            means, total, squares = self._moments(log_law, places)
            block.differences.add(Sums(places.sum(axis=0), total, squares))
            rows = np.concatenate([means, np.cumsum(means[:, self.ranking], axis=1)], axis=1)
            block.frequencies.add(Sums(np.array(float(len(rows))), rows.sum(axis=0), np.square(rows).sum(axis=0)))
        return block

    def _moments(self, log_law: Array, places: Array) -> tuple[Array, Array, Array]:
        """Mean of F over the places (draws, outcomes), and the sums of samples and their squares over the draws."""
        tilt = self.game.lowered if self.adds else self.game.raised
        if tilt is None:
            means, total, squares = self._log_domain(log_law, places)
        else:
            law = np.exp(log_law)
            shares = law @ tilt
            np.divide(places, shares, out=shares)
            means = law * (shares @ tilt.T) / self.places
            plain, crossed = np.split(np.concatenate([law, law * means], axis=1).T @ shares, 2)
            lost, lost_squares = np.split(np.concatenate([means, means**2], axis=1).T @ places, 2)
            np.square(shares, out=shares)
            total = tilt * plain - lost
            squares = tilt * (tilt * ((law**2).T @ shares) - 2.0 * crossed) + lost_squares
        factor = self.places / (self.places - 1.0)
        return means, (factor if self.adds else -factor) * total, factor**2 * squares

    def _log_domain(self, log_law: Array, places: Array) -> tuple[Array, Array, Array]:
        """The same for logits too wide for exponentials, one draw at a time."""
        step = -self.game.table if self.adds else self.game.table
        means = np.empty_like(log_law)
        total, squares = np.zeros(step.shape), np.zeros(step.shape)
        for row, mask, mean in zip(log_law, places, means, strict=True):
            swapped = np.exp(log_softmax(row[:, None] + step, axis=0))
            mean[:] = swapped @ mask / self.places
            swapped -= mean[:, None]
            swapped *= mask
            total += swapped
            squares += swapped**2
        return means, total, squares


def _subsets(records: int, size: int, draws: int, batch: int, rng: np.random.Generator) -> Iterator[Array]:
    """Uniform subsets of one size as rows of 0 and 1, ``batch`` at a time: the smallest of independent random keys.

    Keys that are equal where the subset ends would leave a choice. They are drawn again, which favours nobody.
    """
    for start in range(0, draws, batch):
        shape = (min(batch, draws - start), records)
        drawn = np.zeros(shape) if size < records else np.ones(shape)
        while 0 < size < records:
            keys = rng.random(shape)
            drawn = (keys < np.partition(keys, size, axis=1)[:, size, None]).astype(np.float64)
            if np.all(drawn.sum(axis=1) == size):
                break
        yield drawn
