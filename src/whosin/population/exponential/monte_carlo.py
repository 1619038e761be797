"""Certificates by simulation for the exponential mechanism on a random subset of a large pool.

A pool of N records with logits g (N × m) is given. D is a uniform k-subset, and outcome w has the probability
p_w(D) ∝ exp(-Σ_{i∈D} g_iw). Write P_in(w) and P_out(w) for the averages of p_w(D) over the subsets with and without
record x, P(w) for the average over all, q = k/N and θ_xw = ln P_in(w)/P_out(w). :func:`certify` bounds the ε̃ for which
E_{e^ε̃}(P_in ‖ P_out) ≤ δ and E_{e^ε̃}(P_out ‖ P_in) ≤ δ for every record (practical membership privacy, Lowy et al.
2024, in both directions). What it rests on, each with its proof in the module named:

1. what holds for certain, ranges and averaged ranges (``caps``);
2. paired samples (U, V) with the means P_in and P_out of a record (``draws``);
3. limits on the mean of U - V, and from there on θ (``limits``);
4. limits on the P(w), rare outcomes included, and from all limits to (ε̃, δ) (``delta``);
5. for very large pools, records that stand for others (``thinning``).

The error probability 1 - confidence_level goes 9 : 1 to the limits on U - V (records × outcomes × two signs × λ) and to
those on probabilities (empirical Bernstein). It covers the draws only; nothing is assumed about the pool. Cost:
O(draws·N·m) time, O(N·m) memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.errors import check_number
from whosin.parallel.threads import Progress
from whosin.population.exponential.caps import Caps
from whosin.population.exponential.delta import Probabilities, both_excesses, smallest_epsilons
from whosin.population.exponential.draws import Block, Sampler, Sums, pilot_laws
from whosin.population.exponential.game import Game
from whosin.population.exponential.limits import Ratios, limits, log_ratio
from whosin.population.exponential.logits import check_logits, check_size
from whosin.population.exponential.plan import Plan, draw
from whosin.population.exponential.thinning import Thinning, thinned

__all__ = ["SoftmaxCertificate", "certify"]

Array = NDArray[np.float64]

SHARE_OF_DIFFERENCES = 0.9


@dataclass(frozen=True, eq=False)
class SoftmaxCertificate:
    """Upper limits on what the exponential mechanism tells about each record of a pool.

    Parameters
    ----------
    epsilon : float
        ε̃ such that all records are (ε̃, δ)-protected, both directions, with probability ``confidence_level``.
    delta, confidence_level : float
        As asked for.
    per_record : array (N,)
        The same for each record; all hold at once.
    point : array (N,)
        Estimates without a margin. A thinned record shows the estimate of its representative.
    delta_rare : float
        How much of δ the outcomes that are no contenders use at ``epsilon``, for the worst record.
    deterministic : array (N,)
        Range bounds A_x = max_y range_w(g_x - g_y).
    certain : array (N,)
        Averaged range bounds: pure ε̃ that holds without any draw, at most A_x.
    contenders : array (m,) of bool
        Outcomes that came up often enough for the draws to say more than ``certain`` does about the worst record. The
        others are rare: they count with the averaged range bound.
    probabilities : array (m,)
        Estimated P(w).
    draws, probability_draws : int
        Subsets drawn for the records, and further ones for P(w).
    evaluated : int
        Records that were simulated: all, or the representatives.
    """

    epsilon: float
    delta: float
    confidence_level: float
    per_record: Array
    point: Array
    delta_rare: float
    deterministic: Array
    certain: Array
    contenders: NDArray[np.bool_]
    probabilities: Array
    draws: int
    probability_draws: int
    evaluated: int

    def __str__(self) -> str:
        return (
            f"({self.epsilon:.6g}, {self.delta:.6g})-PMP for {len(self.per_record)} records with confidence "
            f"{self.confidence_level:g} ({self.draws} draws; range bound {float(self.deterministic.max()):.6g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain numbers and lists."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def certify(
    logits: ArrayLike,
    k: int,
    *,
    delta: float = 0.0,
    confidence_level: float = 0.95,
    draws: int | None = None,
    probability_draws: int | None = None,
    representatives: bool | int | None = None,
    rng: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    time_budget: float | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> SoftmaxCertificate:
    """Return a certified (ε̃, δ) for the exponential mechanism on a uniform k-subset of a pool.

    Parameters
    ----------
    logits : array-like (N, m)
        g: outcome w has probability ∝ exp(-Σ_{i∈D} g_iw).
    k : int
        Size of the subset, 1 ≤ k ≤ N - 1.
    delta : float
        δ in [0, 1).
    confidence_level : float
        Probability, over the draws, that all limits hold.
    draws : int, optional
        Subsets with a matching, at least 2. By default about 20,000 samples for each record, fewer for large pools.
    probability_draws : int, optional
        Further subsets for P(w), at least 2; they are cheaper. By default 2.5 times ``draws``.
    representatives : bool or int, optional
        Simulate a few records only (at most so many, True: 2000) and bound the others by their likeness: see
        ``thinning``. By default tried above 20,000 records, and used if it costs little.
    rng : int, Generator or None
        Anything that ``numpy.random.default_rng`` takes.
    n_jobs : int, optional
        Threads, -1 for all cores; None means one. The result does not depend on it.
    progress : callable, optional
        Called with the finished share of the work, rising to 1.
    time_budget : float, optional
        Seconds after which no further block of draws is begun. The clock does not look at the values drawn, so the
        limits hold for the number of draws that were made; such a result cannot be repeated exactly.
    journal : path, optional
        A file that keeps the finished blocks of draws, at most 100 of each kind and some 22·N·m bytes a block. A run
        that was interrupted resumes from it with the same ``rng``, which must be given.

    Returns
    -------
    SoftmaxCertificate

    Notes
    -----
    For δ = 0 an outcome counts however rare it is; where P(w) is too small to be estimated the averaged range bound
    takes over, so the result never exceeds ``deterministic``. Proofs are in the modules named above. Cost O(draws·N·m).
    """
    table = check_logits(logits)
    k = check_size(k, len(table))
    delta = check_number("delta", delta, low=0.0, high=1.0, open_high=True)
    confidence_level = check_number(
        "confidence_level", confidence_level, low=0.0, high=1.0, open_low=True, open_high=True
    )
    plan = Plan.checked(draws, probability_draws, representatives, rng, n_jobs, progress, time_budget, journal)
    game = Game.prepared(table, k)
    caps = Caps.of(game, table)
    if caps.largest == 0.0:
        if progress is not None:
            progress(1.0)
        return _nothing_to_learn(game, delta, confidence_level)
    return _simulated(game, caps, delta, confidence_level, plan)


def _nothing_to_learn(game: Game, delta: float, confidence_level: float) -> SoftmaxCertificate:
    """The output does not depend on who is in: one outcome, or records that are all alike."""
    zeros = np.zeros(game.records)
    return SoftmaxCertificate(
        epsilon=0.0,
        delta=delta,
        confidence_level=confidence_level,
        per_record=zeros,
        point=zeros.copy(),
        delta_rare=0.0,
        deterministic=zeros.copy(),
        certain=zeros.copy(),
        contenders=np.ones(len(game.group), dtype=bool),
        probabilities=game.portion.copy(),
        draws=0,
        probability_draws=0,
        evaluated=0,
    )


def _simulated(game: Game, caps: Caps, delta: float, confidence_level: float, plan: Plan) -> SoftmaxCertificate:
    seeds = np.random.SeedSequence(plan.seed).spawn(3)
    pilot = pilot_laws(game, seeds[2])
    ranking = np.argsort(pilot.mean(axis=1), kind="stable")
    thinning = thinned(game, caps, pilot, plan.representatives)
    evaluated = np.arange(game.records) if thinning is None else thinning.records
    sampler = Sampler(game, ranking, evaluated, thinning is None and 4 * game.matched >= game.records)
    first, second = draw(game, sampler, plan, seeds)
    return _concluded(game, caps, delta, confidence_level, sampler, thinning, first, second)


def _concluded(
    game: Game,
    caps: Caps,
    delta: float,
    confidence_level: float,
    sampler: Sampler,
    thinning: Thinning | None,
    first: Block,
    second: Block,
) -> SoftmaxCertificate:
    """Turn the sums into limits, and these into the certificate."""
    further, draws = int(first.frequencies.count), int(second.frequencies.count)
    first.frequencies.add(second.frequencies)
    beta, slack = 1.0 - confidence_level, game.rounding + (draws + further) * 2.0**-52
    chances = Probabilities.of(first.frequencies, sampler.ranking, (1.0 - SHARE_OF_DIFFERENCES) * beta, slack)
    sums = second.differences
    found = limits(game, caps, sums, sampler.evaluated, chances.lower, SHARE_OF_DIFFERENCES * beta, slack)
    ratios = found.spread(thinning, 2.0).capped(caps)
    per_record = smallest_epsilons(ratios.ranked(sampler.ranking), delta, game.share, chances.masses, chances.loose)
    per_record = np.minimum(per_record, caps.certain)
    contenders = ratios.worst < Ratios(caps.mean_in, caps.mean_out).worst
    epsilon = float(per_record.max())
    return SoftmaxCertificate(
        epsilon=epsilon,
        delta=delta,
        confidence_level=confidence_level,
        per_record=per_record,
        point=_point(game, caps, sums, chances, thinning, delta),
        delta_rare=min(delta, _rare_excess(ratios, contenders, epsilon, game.share, chances)),
        deterministic=caps.deterministic,
        certain=caps.certain,
        contenders=contenders[game.group],
        probabilities=chances.estimate[game.group] * game.portion,
        draws=draws,
        probability_draws=further,
        evaluated=len(sampler.evaluated),
    )


def _rare_excess(
    ratios: Ratios, contenders: NDArray[np.bool_], epsilon: float, share: float, chances: Probabilities
) -> float:
    """What the outcomes that are no contenders use of δ."""
    rare = Ratios(*(np.where(contenders[:, None], 0.0, part) for part in (ratios.into, ratios.out)))
    ranked, level = rare.ranked(chances.ranking), np.full(ratios.into.shape[1], epsilon)
    return float(both_excesses(ranked, level, share, chances.masses, chances.loose).max())


def _point(
    game: Game, caps: Caps, sums: Sums, chances: Probabilities, thinning: Thinning | None, delta: float
) -> Array:
    """The same with estimates in place of limits."""
    mean, order = sums.mean, chances.ranking
    estimates = Ratios(
        log_ratio(mean, chances.estimate, game.share), log_ratio(-mean, chances.estimate, 1.0 - game.share)
    )
    ranked = estimates.spread(thinning, 0.0).capped(caps).ranked(order)
    return smallest_epsilons(ranked, delta, game.share, chances.estimate[order], 0)
