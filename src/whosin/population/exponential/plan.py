"""How the effort of a simulated certificate is spent: a pilot, the number of draws, blocks, journal and progress."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import check_callable, check_rng, check_whole
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal, check_seeded
from whosin.parallel.one_thread import one_thread
from whosin.parallel.tasks import in_order
from whosin.parallel.threads import Progress, number_of_threads
from whosin.population.exponential.draws import BATCH, Block, Sampler
from whosin.population.exponential.game import Game

BLOCK = 2**21
"""Draws times records of a block, roughly: enough to be worth a thread's while."""
MOST_BLOCKS = 100
"""Blocks, so that a journal of them stays small."""
MOST_WORK = 10**10
"""Draws times records times outcomes, unless more are asked for: about a minute of one core."""
FEWEST_DRAWS = 2000


@dataclass(frozen=True)
class Plan:
    """How to spend the effort."""

    draws: int | None
    seed: int
    n_jobs: int | None
    progress: Progress | None
    journal: str | os.PathLike[str] | None

    @classmethod
    def checked(
        cls,
        draws: int | None,
        rng: Any,
        n_jobs: int | None,
        progress: Progress | None,
        journal: str | os.PathLike[str] | None,
    ) -> Plan:
        check_seeded(journal, rng)
        if progress is not None:
            check_callable("progress", progress)
        number_of_threads(n_jobs)  # refused here if it makes no sense
        draws = None if draws is None else check_whole("draws", draws, low=2)
        return cls(draws, int.from_bytes(check_rng(rng).bytes(16), "little"), n_jobs, progress, journal)


def pilot_block(game: Game, seed: np.random.SeedSequence) -> Block:
    """Sums of a few draws, which no limit uses."""
    draws = int(np.clip(MOST_WORK // (50 * game.table.size), 64, FEWEST_DRAWS))
    with one_thread:
        return Sampler(game, np.arange(game.outcomes)).block(draws, seed)


def worth_drawing(game: Game, pilot: Block, limit: Callable[[Block], float]) -> int:
    """How many draws bring the limit within a tenth of what infinitely many would give, if all go on like the pilot.

    The number depends on the pilot alone, so the limits hold for it; at most ``MOST_WORK``.
    """
    seen = float(pilot.frequencies.count)

    def expected(draws: float) -> float:
        return limit(Block(pilot.frequencies.times(draws / seen), pilot.differences.times(draws / seen)))

    most = max(1000, MOST_WORK // game.table.size)
    draws, goal = min(FEWEST_DRAWS, most), 1.1 * expected(2.0**60)
    while draws < most and expected(draws) > goal:
        draws = min(2 * draws, most)
    return draws


def draw(sampler: Sampler, draws: int, plan: Plan, seed: np.random.SeedSequence) -> tuple[Block, float]:
    """Sum blocks of draws, each with its own seed, in their order: the result is the same for any number of threads.

    The second number bounds the rounding of the sums, divided by the number of draws. A sample is at most 2 in size and
    made of three terms; so many units as there are additions in a row go into a sum.
    """
    outcomes, records = sampler.game.table.shape
    sizes = _block_sizes(draws, sampler.batch, records)
    journal = None
    if plan.journal is not None:
        key = fingerprint("softmax draws", sampler, BATCH, sizes, seed.entropy, seed.spawn_key)
        journal = Journal(plan.journal, key)
    total, done = Block.empty(outcomes, records), 0
    jobs = zip(sizes, seed.spawn(len(sizes)), strict=True)
    results = in_order(_Drawing(sampler), jobs, n_jobs=plan.n_jobs, threads=True, journal=journal)
    with contextlib.closing(results):
        for numbers, size in zip(results, sizes, strict=True):
            total.add(Block.unpacked(numbers, outcomes, records))
            done += size
            if plan.progress is not None:
                plan.progress(done / draws)
    additions = outcomes + sampler.batch + math.ceil(sizes[0] / sampler.batch) + len(sizes) + 16
    return total, additions * 2.0**-49


@dataclass(frozen=True)
class _Drawing:
    """The task of a block; its result is in a row of numbers, which a journal takes."""

    sampler: Sampler

    def __call__(self, job: tuple[int, np.random.SeedSequence]) -> Array:
        return self.sampler.block(*job).packed()


def _block_sizes(draws: int, batch: int, records: int) -> list[int]:
    """Split ``draws`` into blocks of whole batches that are worth a thread's while; the last block takes the rest."""
    size = batch * max(8, BLOCK // (batch * records), math.ceil(draws / (batch * MOST_BLOCKS)))
    full, rest = divmod(draws, size)
    return [size] * full + ([rest] if rest else [])
