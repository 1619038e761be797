"""Noise for a black box from retrainings with one record replaced: tighter than from its spread, and n times the work.

For every record x, η_x ≤ m·E E_γ(‖A(D) - A(D - x + x')‖/s) with D uniform among the subsets that hold x and x' uniform
outside. One round draws D and pairs every record inside with one outside: a uniform matching of the smaller side into
the larger, and a uniform partner from the smaller side for whoever is left. Each retraining with a pair exchanged
serves both of its records, since (D - x + x', x', x) is drawn like (D, x, x'). So a round costs 1 + max(k, n - k)
trainings and gives every record one distance, independent from round to round.

The claim is about all records, and each of them has to pass at the full level
(:mod:`whosin.protection.smallest_noise`). Random estimators get the same seed throughout a round: any coupling will do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array, Indices
from whosin.protection.plan import Noise, Plan
from whosin.protection.pool import Draw
from whosin.protection.sampled import CONFIDENT, Budget, Pilot, check_draws, pilot_size
from whosin.protection.smallest_noise import ScaleTest
from whosin.protection.training import Failure, Seed, Trainer, collect, run, seeds_of, subset_of


def trainings(draw: Draw, subsets: int) -> int:
    """Return how many trainings the rounds take."""
    return (subsets + pilot_size(subsets)) * (1 + max(draw.size, draw.records - draw.size))


def from_replacements(
    trainer: Trainer, pilot: Pilot, eta: float, noise: Noise, budget: Budget, rng: np.random.Generator
) -> Plan:
    """Return the plan that ``budget.subsets`` rounds allow; a quarter as many before them set the stakes."""
    draw = trainer.draw
    target = draw.per_divergence(eta)
    check_draws(eta, target, budget)
    rounds = pilot_size(budget.subsets) + budget.subsets
    results = run(_Round(trainer, pilot), seeds_of(rng, rounds), budget.n_jobs, budget.tick, budget.journal)
    distances = np.array(collect(results, "rounds of retraining"))
    known = len(distances) - budget.subsets
    test = ScaleTest(noise.kind, target, budget.level, log_gamma=draw.log_gamma)
    scale = test.smallest_scale(distances[known:], distances[:known])
    check_draws(eta, target, budget, scale)
    return Plan(
        scale * (1.0 + 1e-12),
        pilot.shape,
        eta,
        "average",
        CONFIDENT,
        float(distances[known:].mean(axis=0).max()),
        f"the estimate was retrained with one record replaced, {budget.subsets} times for every record",
        confidence_level=budget.confidence_level,
        draws=trainings(draw, budget.subsets) + len(pilot.distances),
    )


def exchanges(draw: Draw, inside: Indices, rng: np.random.Generator) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return (record inside, record outside, records that this exchange stands for), every record once."""
    outside = np.setdiff1d(np.arange(draw.records), inside)
    small, large = (inside, outside) if len(inside) <= len(outside) else (outside, inside)
    large = rng.permutation(large)
    partners = np.concatenate([small, rng.choice(small, len(large) - len(small))])
    pairs: list[tuple[int, int, tuple[int, ...]]] = []
    for i, (one, other) in enumerate(zip(partners.tolist(), large.tolist(), strict=True)):
        served = (one, other) if i < len(small) else (other,)
        pairs.append((one, other, served) if small is inside else (other, one, served))
    return pairs


@dataclass(frozen=True)
class _Round:
    """The task of a round: a distance for every record."""

    trainer: Trainer
    pilot: Pilot

    def __call__(self, seed: Seed) -> Array | Failure:
        rng = np.random.default_rng(seed)
        inside = subset_of(self.trainer.draw, rng)
        own = tuple(rng.integers(2**63, size=2).tolist())
        base = self.trainer.train(inside, np.random.default_rng(own))
        if isinstance(base, Failure):
            return base
        distances = np.zeros(self.trainer.draw.records)
        for leaves, enters, served in exchanges(self.trainer.draw, inside, rng):
            changed = np.sort(np.append(inside[inside != leaves], enters))
            value = self.trainer.train(changed, np.random.default_rng(own))
            if isinstance(value, Failure):
                return value
            distances[list(served)] = self.pilot.length(value - base)
        return distances
