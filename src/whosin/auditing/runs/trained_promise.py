"""A promise held against trainings whose coins are known (:mod:`whosin.auditing.measuring.guesses`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from whosin.auditing.measuring.guesses import (
    CURVE_SHARE,
    Guessed,
    OneRunComparison,
    comparison_of,
    guess_counts,
    guessed_pairs,
    guessed_units,
    pair_count,
    what_is_tested,
)
from whosin.auditing.runs.trainings import Trainings
from whosin.errors import ImplicationError, InputError, check_choice
from whosin.guarantees import MIP, PMP, Guarantee
from whosin.guarantees.dp import ADJACENCIES, DifferentialPrivacy
from whosin.numerics.rounding import at_least, at_most

if TYPE_CHECKING:
    from whosin.auditing.runs.retrained import RetrainedAudit, Scores


def epsilon_lower(scores: Scores, trainings: Trainings, delta: float, adjacency: str, alpha: float) -> float:
    """Return the largest ε that is refuted at level ``alpha``."""
    return _guessed(scores, trainings, adjacency, alpha, curve=False).epsilon_lower(delta, alpha)


def _guessed(scores: Scores, trainings: Trainings, adjacency: str, alpha: float, *, curve: bool) -> Guessed:
    """Choose how many to guess on the trainings that are only learned from, and guess in the others."""
    check_choice("adjacency", adjacency, ADJACENCIES)
    if trainings.balanced and adjacency == "add_remove":
        raise InputError("adjacency must be 'replace' with coins='balanced': the size never changes then")
    units, pilot, rng = (
        scores.coins.shape[1],
        (scores.pilot, scores.coins[: scores.first]),
        matching_rng(trainings.seed),
    )
    most = max(1, units // CURVE_SHARE)
    if adjacency == "add_remove":
        surest = most - most // 2, most // 2
        counts = surest if curve else guess_counts(*pilot, len(scores.tested), alpha)
        return guessed_units(scores.ahead, scores.tested, counts)
    told = most // 2 if curve else pair_count(*pilot, len(scores.tested), alpha, rng)
    return guessed_pairs(scores.ahead, scores.tested, max(1, told), rng)


def matching_rng(seed: int) -> np.random.Generator:
    """The chance by which members are matched with outsiders, apart from that of coins and trainings."""
    return np.random.default_rng([seed, 0x9A125])


def compare_over_trainings(audit: RetrainedAudit, guarantee: Guarantee) -> OneRunComparison:
    """Hold trainings against a promise; see :meth:`whosin.auditing.RetrainedAudit.compare`."""
    alpha, trainings = 1.0 - audit.confidence_level, audit.trainings
    if isinstance(guarantee, MIP | PMP):
        return _of_halves(audit, guarantee)
    if not isinstance(guarantee, DifferentialPrivacy):
        raise ImplicationError(
            f"{type(guarantee).__name__} does not say what one coin may change: compare with a DP "
            "guarantee, or with MIP or PMP and coins='balanced'"
        )
    tested = what_is_tested(guarantee, fixed_size=trainings.balanced)
    found = _guessed(audit.scores, trainings, tested.adjacency, alpha, curve=tested.plain is None)
    what = "pairs of a member and an outsider" if tested.adjacency == "replace" else audit.unit
    counted = (
        f"in {len(found.right)} trainings {sum(found.right)} of {sum(found.guesses)} guesses about {what} are right"
    )
    value, limit = tested.p_value(found), found.epsilon_lower(tested.delta, alpha)
    return comparison_of(guarantee, value, limit, tested.delta, audit.confidence_level, counted, audit.person_level)


def _of_halves(audit: RetrainedAudit, guarantee: MIP | PMP) -> OneRunComparison:
    if not audit.trainings.balanced or getattr(guarantee, "train_fraction", 0.5) != 0.5:
        raise ImplicationError(
            f"{guarantee} speaks of halves of one size: audit with coins='balanced', and a train_fraction of 0.5"
        )
    shown, allowed = audit.worst.lower, guarantee.advantage
    violated = shown > allowed
    text = (
        f"{audit.worst.about} have a mean advantage of at least {at_least(shown)}; {guarantee} allows "
        f"{at_most(allowed)} to anybody. "
    ) + (
        "The training is not what was promised."
        if violated
        else "This does not refute the promise, and does not confirm it."
    )
    return OneRunComparison(
        "violated" if violated else "inconclusive",
        text,
        math.nan,
        0.0,
        math.inf,
        0.0,
        audit.confidence_level,
        guarantee,
    )
