"""How the effort of a simulated certificate is spent: numbers of draws, blocks, threads, time, journal and progress."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputTypeError, check_callable, check_number, check_rng, check_whole
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal, check_seeded
from whosin.parallel.tasks import in_order
from whosin.parallel.threads import Progress, number_of_threads
from whosin.population.exponential.draws import BATCH, Block, Sampler
from whosin.population.exponential.game import Game
from whosin.population.exponential.thinning import MOST_REPRESENTATIVES

__all__ = ["Plan", "draw"]


BLOCK = 2**22
"""Numbers in a block of draws, roughly: enough to be worth a thread's while."""
MOST_BLOCKS = 100
"""Blocks of a kind, so that a journal of them stays small. A time budget looks at the clock more often."""
DEFAULT_WORK = 3 * 10**9
DEFAULT_SAMPLES = 20_000
"""Samples of each record, unless asked otherwise or too much work."""


@dataclass(frozen=True)
class Plan:
    """How to spend the effort."""

    draws: int | None
    probability_draws: int | None
    representatives: int | None
    seed: int
    n_jobs: int | None
    progress: Progress | None
    start: float
    seconds: float
    journal: str | os.PathLike[str] | None

    @classmethod
    def checked(
        cls,
        draws: int | None,
        probability_draws: int | None,
        representatives: bool | int | None,
        rng: Any,
        n_jobs: int | None,
        progress: Progress | None,
        time_budget: float | None,
        journal: str | os.PathLike[str] | None,
    ) -> Plan:
        check_seeded(journal, rng)
        if journal is not None and time_budget is not None:
            raise InputTypeError("journal and time_budget exclude each other: one repeats a run, the other cannot")
        if isinstance(representatives, bool | np.bool_):
            representatives = MOST_REPRESENTATIVES if representatives else 0
        if progress is not None:
            check_callable("progress", progress)
        number_of_threads(n_jobs)  # refused here if it makes no sense
        return cls(
            None if draws is None else check_whole("draws", draws, low=2),
            None if probability_draws is None else check_whole("probability_draws", probability_draws, low=2),
            None if representatives is None else check_whole("representatives", representatives),
            int.from_bytes(check_rng(rng).bytes(16), "little"),
            n_jobs,
            progress,
            time.monotonic(),
            math.inf if time_budget is None else check_number("time_budget", time_budget, low=0.0, open_low=True),
            journal,
        )


def draw(game: Game, sampler: Sampler, plan: Plan, seeds: list[np.random.SeedSequence]) -> tuple[Block, Block]:
    """Draw for the probabilities, with at most 0.3 of the time, then for the records."""
    draws, further = _draw_numbers(game, plan, sampler)
    wide, narrow = game.outcomes * sampler.width, game.outcomes * game.matched
    clock = _Clock(2.0 * draws * wide + further * narrow, plan.progress, plan.start + 0.3 * plan.seconds)
    most = MOST_BLOCKS if math.isinf(plan.seconds) else math.inf
    sizes = _block_sizes(further, sampler.batch(game.matched), narrow, most)
    drawing = _Drawing(sampler.probability_block, game.outcomes, 0)
    first = _sum_of_blocks(drawing, sizes, seeds[0], plan, clock, narrow)
    clock.end = plan.start + plan.seconds
    sizes = _block_sizes(draws, sampler.batch(sampler.width), wide, most)
    drawing = _Drawing(sampler.block, game.outcomes, len(sampler.evaluated))
    second = _sum_of_blocks(drawing, sizes, seeds[1], plan, clock, 2.0 * wide)
    clock.finish()
    return first, second


def _draw_numbers(game: Game, plan: Plan, sampler: Sampler) -> tuple[int, int]:
    """How many subsets to draw for the records and for the probabilities."""
    draws = plan.draws
    if draws is None:
        per_draw = 2.0 * game.matched / game.records if sampler.matching else 1.0
        affordable = max(1000.0, DEFAULT_WORK / (game.outcomes * sampler.width))
        draws = math.ceil(min(DEFAULT_SAMPLES / per_draw, affordable))
    return draws, plan.probability_draws if plan.probability_draws is not None else math.ceil(2.5 * draws)


@dataclass(eq=False)
class _Clock:
    """Tells the finished share of the work, and when to stop."""

    work: float
    progress: Progress | None
    end: float
    done: float = 0.0

    def tick(self, work: float) -> None:
        self.done += work
        if self.progress is not None and self.done < self.work * (1.0 - 1e-9):
            self.progress(self.done / self.work)

    def finish(self) -> None:
        if self.progress is not None:
            self.progress(1.0)

    def late(self) -> bool:
        return time.monotonic() >= self.end


@dataclass(frozen=True)
class _Drawing:
    """The task of a block; its result is in a row of numbers, which a journal takes."""

    worker: Callable[[int, np.random.SeedSequence], Block]
    outcomes: int
    records: int

    def __call__(self, job: tuple[int, np.random.SeedSequence]) -> NDArray[np.float64]:
        return self.worker(*job).packed()

    def block(self, numbers: NDArray[np.float64]) -> Block:
        return Block.unpacked(numbers, self.outcomes, self.records)


def _sum_of_blocks(
    drawing: _Drawing, sizes: list[int], seed: np.random.SeedSequence, plan: Plan, clock: _Clock, cost: float
) -> Block:
    """Sum blocks of the given sizes, each with its own seed, until the list or the time is over; at least one block.

    The order of the additions is that of the list, so the result is the same for any number of threads.
    """

    def jobs() -> Iterator[tuple[int, np.random.SeedSequence]]:
        for number, size in enumerate(sizes):
            if number and clock.late():
                return
            yield size, seed.spawn(1)[0]

    journal = None
    if plan.journal is not None:
        journal = Journal(
            plan.journal, fingerprint("softmax draws", drawing, BATCH, sizes, seed.entropy, seed.spawn_key)
        )
    total = Block.empty(drawing.outcomes, drawing.records)
    results = in_order(drawing, jobs(), n_jobs=plan.n_jobs, threads=True, journal=journal)
    with contextlib.closing(results):
        for numbers, size in zip(results, sizes, strict=False):
            total.add(drawing.block(numbers))
            clock.tick(size * cost)
    return total


def _block_sizes(draws: int, batch: int, width: int, most: float) -> list[int]:
    """Split ``draws`` into blocks of whole batches that are worth a thread's while; the last block takes the rest."""
    size = batch * max(8, BLOCK // (batch * width), math.ceil(draws / (batch * most)))
    full, rest = divmod(draws, size)
    return [size] * full + ([rest] if rest else [])
