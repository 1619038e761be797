"""Draws of subsets and pairs for the exponential mechanism on a pool of N records.

**Valid pairs, every k.** Given a uniform k-subset D let x ∈ D and y ∉ D be uniform, and D' = D - x + y. Given x, all
pairs (D ∋ x, y ∉ D) are equally likely: D is uniform among the sets with x, and D' among those without x, for each of
them arises from k pairs, one for each member in the role of y. So (U, V) = (p_w(D), p_w(D')) has the means
(P_in, P_out) of x. Seen from y the roles swap: (p_w(D'), p_w(D)) has the means of y, and the same law as a pair with y
inside, because (D, x) → (D', x) maps the pairs (D ∌ y, x ∈ D) one to one onto the pairs (D' ∋ y, x ∉ D').

One draw is a uniform order of the pool: the first k are D, and the i-th member is matched with the i-th outsider,
i ≤ min(k, N - k). A record's position alone decides whether it is matched, and given that position the order of the
others is uniform. So, given the positions of x in all draws, its samples are independent with the law above; limits
hold given the realised number of samples, hence also without the condition. For k = N/2 every record is matched in
every draw. Where fewer than half would be matched, and for representatives, each record draws a partner of its own from
the other side instead, and has a sample in every draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.population.exponential.game import Game

__all__ = ["Block", "Sampler", "Sums", "pilot_laws"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

BATCH = 2**18
"""Numbers that are worked on at once, roughly."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Numbers, sums and sums of squares of samples."""

    count: NDArray[np.int64]
    total: Array
    squares: Array

    def add(self, other: Sums) -> None:
        for mine, more in zip(self.parts, other.parts, strict=True):
            mine += more

    @property
    def parts(self) -> tuple[NDArray[Any], ...]:
        return self.count, self.total, self.squares

    @property
    def mean(self) -> Array:
        return self.total / np.maximum(self.count, 1)

    @property
    def mean_square(self) -> Array:
        return self.squares / np.maximum(self.count, 1)

    @property
    def variance(self) -> Array:
        """Sample variances with the divisor count - 1, not below 0."""
        spread = self.squares - self.total * self.mean
        return np.maximum(spread, 0.0) / np.maximum(self.count - 1, 1)


@dataclass(frozen=True, eq=False)
class Block:
    """What a block of draws leaves behind: sums of the probabilities, and of U - V per outcome and record."""

    frequencies: Sums
    differences: Sums

    @classmethod
    def empty(cls, outcomes: int, records: int) -> Block:
        shape = (outcomes, records)
        return cls(
            Sums(np.array(0, dtype=np.int64), np.zeros(2 * outcomes), np.zeros(2 * outcomes)),
            Sums(np.zeros(records, dtype=np.int64), np.zeros(shape), np.zeros(shape)),
        )

    def add(self, other: Block) -> None:
        self.frequencies.add(other.frequencies)
        self.differences.add(other.differences)

    def packed(self) -> Array:
        """Return all numbers in a row, for a journal or another machine; counts are below 2⁵³ and stay exact."""
        return np.concatenate([np.ravel(part).astype(np.float64) for part in self._parts])

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
    """Draws blocks of subsets, each block from a seed of its own.

    ``ranking`` orders the outcomes for the nested sums; ``evaluated`` are the records that are simulated. They are
    matched with each other (all records then), or each draws a partner.
    """

    game: Game
    ranking: Index
    evaluated: Index
    matching: bool

    @property
    def width(self) -> int:
        """Numbers per outcome and draw that are worked on at once."""
        return self.game.records if self.matching else max(self.game.matched, len(self.evaluated))

    def batch(self, width: int) -> int:
        """How many draws are worked on at once."""
        return max(1, BATCH // (self.game.outcomes * width), 4096 // self.game.records)

    def block(self, draws: int, seed: np.random.SeedSequence) -> Block:
        """Draw subsets and pairs. O(draws·N·m)."""
        return self._matched(draws, seed) if self.matching else self._partnered(draws, seed)

    def probability_block(self, draws: int, seed: np.random.SeedSequence) -> Block:
        """Draw subsets for P(w) only. O(draws·N·m), with a smaller constant."""
        block = Block.empty(self.game.outcomes, 0)
        for orders, space in _orders(self.game, seed, draws, self.batch(self.game.matched)):
            self._count(np.exp(self.game.log_law(orders, space)), block)
        return block

    def _count(self, law: Array, block: Block) -> None:
        """Add p_w(D), and then the nested sums over the rarest outcomes."""
        rows = np.concatenate([law, np.cumsum(law[self.ranking], axis=0)])
        count = np.array(law.shape[1], dtype=np.int64)
        block.frequencies.add(Sums(count, rows.sum(axis=1), np.square(rows).sum(axis=1)))

    def _matched(self, draws: int, seed: np.random.SeedSequence) -> Block:
        block = Block.empty(self.game.outcomes, self.game.records)
        room = _Room.of(self.game, 0)
        for orders, space in _orders(self.game, seed, draws, self.batch(self.width)):
            if len(room.place) != len(orders):
                room = _Room.of(self.game, len(orders))
            log_law = self.game.log_law(orders, space)
            law = np.exp(log_law)
            self._count(law, block)
            swapped = _swapped(self.game, orders, log_law, law, space, room)
            _settle(self.game, orders, law, swapped, room, block.differences)
        return block

    def _partnered(self, draws: int, seed: np.random.SeedSequence) -> Block:
        """Partners of different records may coincide: for one record the pair is as valid as in a matching."""
        block = Block.empty(self.game.outcomes, len(self.evaluated))
        own = self.game.table[:, None, self.evaluated]
        choice = np.random.default_rng(seed.spawn(1)[0])
        for orders, space in _orders(self.game, seed, draws, self.batch(self.width)):
            log_law = self.game.log_law(orders, space)
            law = np.exp(log_law)
            self._count(law, block)
            sign, partners = _partners(self.game, orders, self.evaluated, choice)
            samples = _after_swap(log_law, (own - self.game.table[:, partners]) * sign)
            np.subtract(law[:, :, None], samples, out=samples)
            samples *= sign
            count = np.full(len(self.evaluated), len(orders), dtype=np.int64)
            total = samples.sum(axis=1)
            block.differences.add(Sums(count, total, np.square(samples, out=samples).sum(axis=1)))
        return block


def pilot_laws(game: Game, seed: np.random.SeedSequence) -> Array:
    """Return the laws p(D) of a few subsets, (outcomes, draws), which no limit uses."""
    draws = int(np.clip(2 * 10**8 // game.table.size, 64, 1000))
    batch = max(1, BATCH // game.table.size)
    laws = [np.exp(game.log_law(orders, space)) for orders, space in _orders(game, seed, draws, batch)]
    return np.concatenate(laws, axis=1)


def _orders(game: Game, seed: np.random.SeedSequence, draws: int, batch: int) -> Iterator[tuple[Index, Array]]:
    """Uniform orders of the pool, ``batch`` at a time, with room for the table at the smaller side of each."""
    rng = np.random.default_rng(seed)
    for size, times in ((batch, draws // batch), (draws % batch, 1)):
        start = np.broadcast_to(np.arange(game.records), (size, game.records))
        orders = np.empty((size, game.records), dtype=np.intp)
        space = np.empty((game.outcomes, size, game.matched))
        for _ in range(times if size else 0):
            rng.permuted(start, axis=1, out=orders)
            yield orders, space


@dataclass(frozen=True, eq=False)
class _Room:
    """Arrays that are used again for each batch."""

    partner: Array
    lead: Array
    signed: Array
    seen: Array
    place: Index
    cells: Index

    @classmethod
    def of(cls, game: Game, draws: int) -> _Room:
        shape = (draws, game.records)
        return cls(
            partner=np.empty((game.outcomes, draws, game.matched)),
            lead=np.empty((draws, game.matched)),
            signed=np.zeros(shape),
            seen=np.empty(shape),
            place=np.empty(shape, dtype=np.intp),
            cells=np.arange(draws * game.records).reshape(shape),
        )


def _swapped(game: Game, orders: Index, log_law: Array, law: Array, space: Array, room: _Room) -> Array:
    """p_w(D - x + y) for all matched pairs, (outcomes, draws, pairs), in ``space``."""
    members, others = orders[:, : game.matched], orders[:, game.k : game.k + game.matched]
    if game.raised is not None and game.lowered is not None:
        np.take(game.raised, members, axis=1, out=space, mode="clip")
        np.take(game.lowered, others, axis=1, out=room.partner, mode="clip")
        space *= room.partner
        space *= law[:, :, None]
    else:
        np.take(game.table, members, axis=1, out=space, mode="clip")
        np.take(game.table, others, axis=1, out=room.partner, mode="clip")
        space -= room.partner
        space += log_law[:, :, None]
        space -= np.maximum.reduce(space, axis=0, out=room.lead)
        np.exp(space, out=space)
    space /= np.add.reduce(space, axis=0, out=room.lead)
    return space


def _settle(game: Game, orders: Index, law: Array, swapped: Array, room: _Room, sums: Sums) -> None:
    """Add U - V of both records of each pair to their sums: by position first, then brought into the pool's order."""
    s, k = game.matched, game.k
    rows = room.cells[:, :1]
    room.place.reshape(-1)[(orders + rows).reshape(-1)] = room.cells.reshape(-1)
    for w in range(game.outcomes):
        np.subtract(law[w][:, None], swapped[w], out=room.signed[:, :s])
        np.negative(room.signed[:, :s], out=room.signed[:, k : k + s])
        np.take(room.signed.reshape(-1), room.place, out=room.seen, mode="clip")
        sums.total[w] += room.seen.sum(axis=0)
        np.square(room.seen, out=room.seen)
        sums.squares[w] += room.seen.sum(axis=0)
    for part in (orders[:, :s], orders[:, k : k + s]):
        sums.count[:] += np.bincount(part.reshape(-1), minlength=game.records)


def _partners(game: Game, orders: Index, records: Index, rng: np.random.Generator) -> tuple[Array, Index]:
    """For each draw and record: +1 if it is in and -1 if not, and a uniform record from the other side."""
    inside = np.zeros(orders.shape, dtype=bool)
    np.put_along_axis(inside, orders[:, : game.k], True, axis=1)
    inside = inside[:, records]
    members = rng.integers(0, game.k, inside.shape)
    others = rng.integers(game.k, game.records, inside.shape)
    partners = np.take_along_axis(orders, np.where(inside, others, members), axis=1)
    return np.where(inside, 1.0, -1.0), partners


def _after_swap(log_law: Array, change: Array) -> Array:
    """p_w·e^{change_w} normalised, (outcomes, draws, records), in place."""
    change += log_law[:, :, None]
    change -= change.max(axis=0)
    np.exp(change, out=change)
    change /= change.sum(axis=0)
    return change
