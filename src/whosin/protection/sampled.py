"""Noise for a black box, certified from retrainings on random subsets of the pool.

For any constant c and every draw size, η ≤ E g(‖A(D) - c‖/s) over the draw, g = E_1 of the noise: compare the laws
given in and given out with the noise around c, each at the price of its own E g, and add up with the weights q and
1 - q, both at least m. The statement holds for all records at once. Pilot subsets fix c (the coordinate-wise median),
with Gaussian noise the shape of the scales by the mean deviations, and the stake of the test; certification subsets,
independent of them, decide the scale (:mod:`whosin.protection.smallest_noise`). All subsets come from the pool, none
from the records that are drawn for the release: a scale that depends on the draw gives members away.

No assumption is made about the estimator. It may be random, heavy-tailed or unstable; then it costs noise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from whosin.arrays import Array
from whosin.errors import CalibrationError
from whosin.numerics.betting import draws_needed
from whosin.numerics.shift import lengths
from whosin.protection.plan import Ball, Noise, Plan, check_centre
from whosin.protection.proved import from_ball
from whosin.protection.smallest_noise import ScaleTest
from whosin.protection.training import Failure, Seed, Trainer, collect, run, seeds_of

CONFIDENT = "with confidence"
_PILOT_BALL = 2.0
"""Radius of the pilot ball over the longest distance in the pilot."""
_WORTH_A_BALL = 0.95
"""The pilot ball is used where it is forecast to save at least 5 % of the noise."""


@dataclass(frozen=True)
class Budget:
    """How many subsets, with which confidence, and how the work is spread."""

    subsets: int
    confidence_level: float
    n_jobs: int | None
    tick: Callable[[], None] | None
    journal: str | os.PathLike[str] | None = None

    @property
    def level(self) -> float:
        """β, the chance that the certificate is wrong."""
        return (1.0 - self.confidence_level) * (1.0 - 1e-12)


@dataclass(frozen=True)
class Pilot:
    """What the pilot subsets settle: where the estimate lies, in which shape it spreads, and how far."""

    centre: Array
    shape: Array | float
    distances: Array
    norm: float

    def distance(self, value: Array) -> float:
        """Return how far an estimate is from the centre, in units of the shape, rounded up."""
        return self.length(value.reshape(-1) - self.centre)

    def length(self, shift: Array) -> float:
        """Return the length of a difference of estimates in units of the shape, rounded up; infinite beyond floats."""
        with np.errstate(over="ignore"):
            return float(lengths((shift.reshape(-1) / self.shape)[None, :], self.norm)[0])


def pilot_size(subsets: int) -> int:
    """Return how many pilot subsets go with that many certification subsets: a quarter, at least 16."""
    return max(16, subsets // 4)


def run_pilot(
    trainer: Trainer,
    noise: Noise,
    budget: Budget,
    rng: np.random.Generator,
    *,
    shaped: bool,
    centre: Array | None = None,
) -> tuple[Trainer, Pilot]:
    """Return the trainer with the shape of its estimates, and the pilot.

    Where it is ``shaped`` each coordinate has a scale of its own; one that never moved counts as spread like the one
    that moved least. ``centre`` is that of a given ball, by default the coordinate-wise median of the pilot.
    """
    seeds = seeds_of(rng, pilot_size(budget.subsets))
    trainer = trainer.settled(seeds[0])
    results = run(trainer.train_on_draw, seeds, budget.n_jobs, budget.tick, budget.journal)
    values = np.array([value.reshape(-1) for value in collect(results, "pilot subsets")])
    middle = np.median(values, axis=0) if centre is None else check_centre(centre, values.shape[1])
    spread = np.abs(values - middle).mean(axis=0)
    shape: Array | float = 1.0
    if shaped and spread.any():
        shape = noise.shape(np.where(spread > 0.0, spread, spread[spread > 0.0].min()))
    distances = lengths((values - middle) / shape, noise.norm)
    return trainer, Pilot(middle, shape, distances, noise.norm)


def from_subsets(
    trainer: Trainer,
    pilot: Pilot,
    eta: float,
    noise: Noise,
    budget: Budget,
    rng: np.random.Generator,
    *,
    ball: Ball | None,
    choose_ball: bool,
) -> Plan:
    """Return the plan that the certification subsets allow, or the ball's own where that needs less noise.

    With ``choose_ball``, and without a ball, the pilot's is taken where it is forecast to save noise. The pilot
    decides, so that nothing is chosen on the certification subsets but the scale.
    """
    test = ScaleTest(noise.kind, eta, budget.level, radius=math.inf if ball is None else ball.radius)
    if choose_ball and ball is None and pilot.distances.any():
        offered = pilot_ball(pilot)
        inside = replace(test, radius=offered.radius)
        forecasts = [each.forecast(pilot.distances, budget.subsets) for each in (inside, test)]
        if forecasts[0] < _WORTH_A_BALL * forecasts[1]:
            ball, test = offered, inside
    if ball is None:
        check_draws(eta, eta, budget)
    seeds = seeds_of(rng, budget.subsets)
    results = run(_Distance(trainer, pilot), seeds, budget.n_jobs, budget.tick, budget.journal)
    distances = np.array(collect(results, "certification subsets"))
    scale = test.smallest_scale(distances, pilot.distances)
    sure = None if ball is None else from_ball(ball, eta, trainer.draw, noise)
    if sure is not None and sure.scale <= scale:
        return replace(sure, draws=len(distances) + len(pilot.distances))
    if ball is None:
        check_draws(eta, eta, budget, scale)
    mean = float(np.minimum(distances, math.inf if ball is None else ball.radius).mean())
    reason = f"the estimate was trained on {len(distances)} random subsets of the pool"
    if ball is not None:
        reason += f", and is pulled into a ball of radius {ball.radius:.6g} before the noise"
    return Plan(
        scale * (1.0 + 1e-12),
        pilot.shape,
        eta,
        "moment",
        CONFIDENT,
        mean,
        reason,
        confidence_level=budget.confidence_level,
        draws=len(distances) + len(pilot.distances),
        ball=ball,
    )


def pilot_ball(pilot: Pilot) -> Ball:
    """Return the ball around the pilot's centre with twice its longest distance."""
    return Ball(pilot.centre, _PILOT_BALL * float(pilot.distances.max()), pilot.shape, pilot.norm)


def check_draws(eta: float, target: float, budget: Budget, scale: float = 0.0) -> None:
    """Raise a CalibrationError if so few draws can certify nothing, or if they did not, at any scale."""
    needed = draws_needed(target, budget.level)
    if budget.subsets < needed or math.isinf(scale):
        raise CalibrationError(
            f"eta={eta:g} cannot be certified with subsets={budget.subsets} at confidence_level="
            f"{budget.confidence_level:g}: it takes at least {needed}, in practice about twice as many; or a larger "
            "eta, ball='pilot', or a bound that you can prove"
        )


@dataclass(frozen=True)
class _Distance:
    """The task of a certification subset: train, and keep the distance only."""

    trainer: Trainer
    pilot: Pilot

    def __call__(self, seed: Seed) -> float | Failure:
        value = self.trainer.train_on_draw(seed)
        return value if isinstance(value, Failure) else self.pilot.distance(value)
