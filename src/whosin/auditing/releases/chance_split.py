"""A promise held against one release whose members chance decided on: every record is then a canary.

A random part of all records, whichever side they are on, is learned from: their coins are taken as known, and the law
of the release given them still keeps the promise. The others are guessed by what was learned. If each record was a
member by a fair coin of its own, they are single canaries under add/remove. If chance drew the members, however many,
each choice of so many being equally likely, members are matched with others at random: pairs, under replacement.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.guesses import (
    CURVE_SHARE,
    Guessed,
    OneRunComparison,
    Tested,
    comparison_of,
    guess_counts,
    guessed_pairs,
    guessed_units,
    pair_count,
    what_is_tested,
)
from whosin.auditing.measuring.learned import FEWEST, learn_score
from whosin.guarantees import Guarantee
from whosin.guarantees.dp import DifferentialPrivacy


def compare_by_chance(
    experiment: Experiment, guarantee: Guarantee, *, coins: bool, alpha: float, seed: int
) -> OneRunComparison | None:
    """Return what the release says about the promise; None where it is not DP, or where there are too few records.

    ``coins`` says that each record was a member by a fair coin of its own, not only that chance drew the members.
    """
    inside, outside = experiment.scores
    if not isinstance(guarantee, DifferentialPrivacy) or inside.shape[1] == 0:
        return None
    rng = np.random.default_rng([seed, 0x5B117])
    values = np.concatenate([inside, outside])
    order = rng.permutation(len(values))
    member, values = (np.arange(len(values)) < len(inside))[order], values[order]
    learned = rng.random(len(values)) < 0.5
    if min(int((learned & side).sum()) for side in (member, ~member)) < FEWEST:
        return None
    score, own = learn_score(values[learned & member], values[learned & ~member], rng)
    known = np.arange(len(own)) < int((learned & member).sum())
    tested = what_is_tested(guarantee, fixed_size=not coins)
    found = _guessed(tested, (own, known), (score(values[~learned]), member[~learned]), alpha, rng)
    units = "people" if experiment.people is not None else "records"
    what = f"{found.coins[0]} {'pairs of a member and an outsider' if tested.adjacency == 'replace' else units}"
    counted = f"{found.right[0]} of {found.guesses[0]} guesses about {what} are right"
    return comparison_of(
        guarantee,
        tested.p_value(found),
        found.epsilon_lower(tested.delta, alpha),
        tested.delta,
        1.0 - alpha,
        counted,
        experiment.people is not None,
    )


def _guessed(
    tested: Tested,
    known: tuple[np.ndarray, np.ndarray],
    asked: tuple[np.ndarray, np.ndarray],
    alpha: float,
    rng: np.random.Generator,
) -> Guessed:
    """Choose how many to guess on the records whose coins are known, and guess the others.

    What the release says of the former takes part in the choice. For a whole curve the number is fixed.
    """
    own, others = ((scores[None], coins[None]) for scores, coins in (known, asked))
    units = len(asked[0])
    most = max(1, units // CURVE_SHARE)
    if tested.adjacency == "replace":
        told = most // 2 if tested.plain is None else pair_count(*own, 1, alpha, rng)
        return replace(guessed_pairs(*others, max(1, told), rng), by_release=True)
    surest = most - most // 2, most // 2
    inside, outside = surest if tested.plain is None else guess_counts(*own, 1, alpha)
    return replace(guessed_units(*others, (min(inside, units // 2), min(outside, units // 2))), by_release=True)
