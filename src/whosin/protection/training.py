"""Training a black box on many subsets, in parallel, with every failure counted.

Each task has a seed of its own, so the result does not depend on how the tasks are spread over processes and machines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whosin.arrays import Array, Indices
from whosin.errors import InputError
from whosin.parallel import tasks as parallel
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal
from whosin.protection.estimators import BlackBox, as_numbers
from whosin.protection.pool import LARGEST, Draw, Pool

Seed = tuple[int, ...]


@dataclass(frozen=True)
class Failure:
    """Why a training gave no estimate."""

    reason: str


@dataclass(frozen=True)
class Trainer:
    """A black box on a pool; ``shape`` is that of the estimate, once it is known, and every training must agree."""

    estimator: BlackBox
    pool: Pool
    draw: Draw
    shape: tuple[int, ...] | None = None

    def train(self, indices: Indices, rng: np.random.Generator) -> Array | Failure:
        """Return the estimate on these records, or why there is none."""
        try:
            value = self.estimator.train(self.pool.take(indices), rng)
        except Exception as error:
            return Failure(f"{type(error).__name__}: {error}")
        return self._checked(value)

    def train_on_draw(self, seed: Seed) -> Array | Failure:
        """Return the estimate on a random subset of the pool."""
        rng = np.random.default_rng(seed)
        return self.train(subset_of(self.draw, rng), rng)

    def settled(self, seed: Seed) -> Trainer:
        """Return a trainer that takes estimates of one shape only, that of the estimate for this seed."""
        first = self.train_on_draw(seed)
        return self if isinstance(first, Failure) else replace(self, shape=first.shape)

    def _checked(self, value: Any) -> Array | Failure:
        numbers = as_numbers(value)
        if numbers is None:
            return Failure(f"it returned {type(value).__name__}, not an array of numbers")
        if numbers.size == 0:
            return Failure("it returned an empty array")
        if not np.all(np.isfinite(numbers)):
            return Failure(f"it returned {int(np.sum(~np.isfinite(numbers)))} numbers that are not finite")
        if np.abs(numbers).max() > LARGEST:
            return Failure(f"it returned a number beyond {LARGEST:g}")
        if self.shape is not None and numbers.shape != self.shape:
            return Failure(f"it returned an array of shape {numbers.shape}, on other subsets {self.shape}")
        return numbers


def subset_of(draw: Draw, rng: np.random.Generator) -> Indices:
    """Return a uniform subset of the pool of the size of the draw, sorted."""
    return np.sort(rng.choice(draw.records, draw.size, replace=False))


def seeds_of(rng: np.random.Generator, count: int) -> list[Seed]:
    """Return seeds for that many tasks."""
    return [tuple(row) for row in rng.integers(2**63, size=(count, 2)).tolist()]


def run(
    task: Callable[[Seed], Any],
    seeds: Sequence[Seed],
    n_jobs: int | None,
    tick: Callable[[], None] | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> list[Any]:
    """Return task(seed) for every seed, in order; ``tick`` is called once for each. Failures are not kept."""
    book = None if journal is None else Journal(journal, fingerprint(task, list(seeds)))
    return parallel.run(task, seeds, n_jobs=n_jobs, journal=book, done=tick)


def collect(results: Sequence[Any], what: str) -> list[Any]:
    """Return the results if none is a failure; otherwise raise an error that counts them and gives the first reason."""
    failures = [result for result in results if isinstance(result, Failure)]
    if failures:
        raise InputError(
            f"estimator failed on {len(failures)} of {len(results)} {what}; the first time: {failures[0].reason}. "
            "A release needs an estimate on every subset of the pool: return a default where there is none"
        )
    return list(results)
