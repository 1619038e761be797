"""Randomised response: everybody's own answer, on a pool of people (local differential privacy)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from whosin.errors import InputError, check_number, check_probability, short_repr
from whosin.guarantees import PMP, PureDP
from whosin.numerics.finite_laws import closeness_epsilons
from whosin.population.result import PopulationPrivacy

__all__ = ["randomized_response"]


def randomized_response(
    values: Sequence[Hashable], *, epsilon: float, delta: float = 0.0, categories: Sequence[Hashable] | None = None
) -> PopulationPrivacy:
    """Return what one randomised answer tells somebody who knows the pool about whose answer it is.

    One person of the pool is drawn and answers: its own value with odds e^ε to 1 against each other category. Without
    knowing the pool the answer says at most e^ε about the value (local DP, replace-one). Who knows the pool compares
    the answer's law given the person, P, with the mean of the others' laws, Q; both are known, so ε̃ is exact. Lowy
    et al. 2024 remark that at n = 1 the two notions are close: ε̃ is at most ε, and near it for a value that few have.

    Parameters
    ----------
    values : sequence
        The value of each person.
    epsilon : float
        ε of the local guarantee.
    delta : float, default 0
        δ of the practical guarantee.
    categories : sequence, optional
        The public list of possible answers, at least two; by default the values that occur.

    Returns
    -------
    PopulationPrivacy
        With one ε̃ per person. O(people × categories).

    Examples
    --------
    One smoker among five people: the answer tells more about that one than about the others, and less than ε = 2 says.

    >>> import whosin as wi
    >>> found = wi.population.randomized_response(["no", "no", "no", "no", "yes"], epsilon=2.0)
    >>> found.per_record.round(2).tolist()
    [0.95, 0.95, 0.95, 0.95, 2.0]
    """
    label = check_number("epsilon", epsilon, low=0.0, open_high=True)
    delta = check_probability("delta", delta)
    names = list(dict.fromkeys(values if categories is None else categories))
    places: dict[Any, int] = {name: number for number, name in enumerate(names)}
    if len(values) < 2:
        raise InputError(f"values must be those of two people or more, got {len(values)}")
    if len(names) < 2:
        raise InputError(f"categories must be two different answers or more, got {short_repr(names)}")
    unknown = [value for value in values if value not in places]
    if unknown:
        raise InputError(f"values must all be among the categories, got {short_repr(unknown[0])}")
    whose = np.array([places[value] for value in values])
    counts = np.bincount(whose, minlength=len(names)).astype(np.float64)
    own = np.full((len(names), len(names)), -label)
    np.fill_diagonal(own, 0.0)
    others = np.maximum(counts - np.eye(len(names)), 0.0)  # those who are left, by the value of the one who answers
    rest = logsumexp(own[None], axis=1, b=others[:, :, None])
    logs = log_softmax(own, axis=1), log_softmax(rest, axis=1)
    margin = 2.0**-44 * (1.0 + label)
    if delta == 0.0:
        by_value = np.abs(logs[0] - logs[1]).max(axis=1)
        least, most = by_value - margin, by_value + margin
    else:
        least, most = (
            np.maximum(*(closeness_epsilons(a + room, b - room, delta) for a, b in (logs, logs[::-1])))
            for room in (-margin, margin)
        )
        least, most = least * (1.0 - 2.0**-44), np.maximum(most, 0.0) * (1.0 + 2.0**-44)
    per_record = np.minimum(most[whose], label)
    return PopulationPrivacy(
        mechanism="randomised response",
        pmp=PMP(float(per_record.max()), delta, 1.0 / len(values)),
        dp=PureDP(label, "replace"),
        dp_at_most=PureDP(label, "replace"),
        dp_on_records=PureDP(label if (counts > 0).sum() > 1 else 0.0, "replace"),
        per_record=per_record,
        per_record_lower=np.clip(least[whose], 0.0, per_record),
        sensitivity=1.0,
        noise_scale=1.0 / label if label > 0.0 else math.inf,
        method="exact",
        confidence_level=None,
        records=len(values),
        train_size=1,
    )
