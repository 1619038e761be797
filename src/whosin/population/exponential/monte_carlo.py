"""Certificates by simulation for the exponential mechanism on a random subset of a large pool.

A pool of N records with logits g (N × m) is given. D is a uniform k-subset, and outcome w has the probability
p_w(D) ∝ exp(-Σ_{i∈D} g_iw). Write P_in(w) and P_out(w) for the averages of p_w(D) over the subsets with and without
record x, P(w) for the average over all, q = k/N and θ_xw = ln P_in(w)/P_out(w). :func:`certify` bounds the ε̃ for which
E_{e^ε̃}(P_in ‖ P_out) ≤ δ and E_{e^ε̃}(P_out ‖ P_in) ≤ δ for every record (practical membership privacy, Lowy et al.
2024, in both directions). What it rests on, each with its proof in the module named:

1. what holds for certain, ranges and averaged ranges (``certain_ranges``);
2. samples with the mean P_in - P_out of every record from each draw (``draws``);
3. limits on that mean, and from there on θ (``limits``);
4. limits on the P(w), rare outcomes included, and from all limits to (ε̃, δ) (``delta``).

A pilot of separate draws ranks the outcomes, centres the samples and says how many draws are worth their while
(``plan``). The error probability 1 - confidence_level goes 9 : 1 to the limits on differences (records × outcomes × two
signs × λ) and to those on probabilities (empirical Bernstein). It covers the draws only; nothing is assumed about the
pool. Cost: O(draws·N·m) time, O(N·m) memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array, Index
from whosin.errors import check_confidence, check_number
from whosin.parallel.threads import Progress
from whosin.population.exponential.certain_ranges import Caps
from whosin.population.exponential.delta import Probabilities, smallest_epsilons
from whosin.population.exponential.draws import Block, Sampler
from whosin.population.exponential.game import Game
from whosin.population.exponential.limits import Ratios, limits, log_ratio
from whosin.population.exponential.logits import check_logits, check_size
from whosin.population.exponential.plan import Plan, draw, pilot_block, worth_drawing

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
        Estimates without a margin.
    deterministic : array (N,)
        Range bounds A_x = max_y range_w(g_x - g_y).
    certain : array (N,)
        Averaged range bounds: pure ε̃ that holds without any draw, at most A_x.
    probabilities : array (m,)
        Estimated P(w).
    draws : int
        Subsets drawn, without those of the pilot.
    """

    epsilon: float
    delta: float
    confidence_level: float
    per_record: Array
    point: Array
    deterministic: Array
    certain: Array
    probabilities: Array
    draws: int


def certify(
    logits: ArrayLike,
    k: int,
    *,
    delta: float = 0.0,
    confidence_level: float = 0.95,
    draws: int | None = None,
    rng: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
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
        Subsets to draw, at least 2. By default as many as a pilot says would bring the limit within a tenth of what
        infinitely many would, and no more than about a minute of one core allows.
    rng : int, Generator or None
        Anything that ``numpy.random.default_rng`` takes.
    n_jobs : int, optional
        Threads, -1 for all cores; None means one. The result does not depend on it.
    progress : callable, optional
        Called with the finished share of the work, rising to 1.
    journal : path, optional
        A file that keeps the finished blocks of draws, at most 100 and some 22·N·m bytes a block. A run
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
    confidence_level = check_confidence(confidence_level)
    plan = Plan.checked(draws, rng, n_jobs, progress, journal)
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
        deterministic=zeros.copy(),
        certain=zeros.copy(),
        probabilities=game.portion.copy(),
        draws=0,
    )


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of the draws, and what a pilot knows: the order of the outcomes and the middle of the samples."""

    game: Game
    caps: Caps
    delta: float
    beta: float
    ranking: Index
    centre: Array

    def answer(self, block: Block, rounding: float) -> tuple[Array, Probabilities]:
        """Limits on the ε̃ of every record, and on the P(w), from the sums of all draws."""
        game, slack = self.game, self.game.rounding + rounding
        chances = Probabilities.of(block.frequencies, self.ranking, (1.0 - SHARE_OF_DIFFERENCES) * self.beta, slack)
        found = limits(
            game, self.caps, block.differences, self.centre, chances.lower, SHARE_OF_DIFFERENCES * self.beta, rounding
        )
        ranked = found.capped(self.caps).ranked(self.ranking)
        per_record = smallest_epsilons(ranked, self.delta, game.share, chances)
        return np.minimum(per_record, self.caps.certain), chances

    def point(self, block: Block) -> Array:
        """The same with estimates in place of limits."""
        game, mean = self.game, block.differences.mean
        often = block.frequencies.mean[: game.outcomes]
        estimates = Ratios(log_ratio(mean, often, game.share), log_ratio(-mean, often, 1.0 - game.share))
        ranked = estimates.capped(self.caps).ranked(self.ranking)
        return smallest_epsilons(ranked, self.delta, game.share, Probabilities.known(often, self.ranking))


def _simulated(game: Game, caps: Caps, delta: float, confidence_level: float, plan: Plan) -> SoftmaxCertificate:
    seeds = np.random.SeedSequence(plan.seed).spawn(2)
    pilot = pilot_block(game, seeds[0])
    ranking = np.argsort(pilot.frequencies.mean[: game.outcomes], kind="stable")
    question = _Question(game, caps, delta, 1.0 - confidence_level, ranking, pilot.differences.mean)
    draws = plan.draws or worth_drawing(game, pilot, lambda block: float(question.answer(block, 0.0)[0].max()))
    block, rounding = draw(Sampler(game, ranking), draws, plan, seeds[1])
    per_record, chances = question.answer(block, rounding)
    return SoftmaxCertificate(
        epsilon=float(per_record.max()),
        delta=delta,
        confidence_level=confidence_level,
        per_record=per_record,
        point=question.point(block),
        deterministic=caps.deterministic,
        certain=caps.certain,
        probabilities=chances.estimate[game.group] * game.portion,
        draws=draws,
    )
