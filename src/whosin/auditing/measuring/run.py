"""The audit: from answers about members and non-members to limits on what an attacker learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from whosin.auditing.measuring.audit import Audit
from whosin.auditing.measuring.compare import ASSIGNMENTS
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.groups import check_groups
from whosin.auditing.measuring.limits import ADVANTAGE, could_show, gain_at_prior
from whosin.auditing.measuring.metrics import check_metric
from whosin.auditing.measuring.splits import Splits, split
from whosin.errors import InputError, check_choice, check_confidence, check_probability, short_repr
from whosin.numerics.rounding import counted
from whosin.risks import Risk

MANY = 20
"""Different answers from which two samples are hardly ever equal by chance."""


def audit(
    members: Any,
    non_members: Any,
    *,
    prior: float = 0.5,
    metric: str | Risk = "advantage",
    kind: str = "auto",
    confidence_level: float = 0.95,
    groups: Any = None,
    names: Sequence[str] | None = None,
    assignment: str = "unknown",
    person: Any = None,
    tolerate: float | None = None,
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> Audit:
    """Measure what attackers learn from a query's answers about who is in the data.

    Parameters
    ----------
    members, non_members : array-like of shape (N,) or (N, q), or mappings of names to scores
        Answers of one or of q queries about records in the data and about records outside: numbers, booleans or
        strings. The scores of any attack will do; neither their direction nor their scale matters.
    prior : float, default 0.5
        Probability that a record which the attacker meets is a member.
    metric : str or callable, default "advantage"
        The metric of ``headline``; see :meth:`Audit.risk`.
    kind : {"auto", "discrete", "continuous"}, default "auto"
        Whether different answers are symbols, or numbers that can be compared.
    confidence_level : float, default 0.95
        Probability that the two limits of an estimate hold, whatever the laws and the sample sizes.
    groups : pair of arrays, or mapping of names to pairs, optional
        A label for every member and every non-member.
    names : sequence of str, optional
        Names of the queries.
    assignment : {"unknown", "random", "independent trainings"}, default "unknown"
        Whether chance decided who became a member, and whether every score comes from a training of its own.
    person : pair of arrays, optional
        Whose each member's and each non-member's record is. Several records of one person count once: split, counted,
        ranked and grouped by person. Without it one record is taken for one person.
    tolerate : float, optional
        The largest advantage that is tolerated; ``verdict`` then says whether it is exceeded.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes. It splits the records, many times, into a part that chooses
        attacks (a third, or half for several queries) and a part that is counted. By default it is taken from the data,
        so that the same data give the same answer.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Audit

    Notes
    -----
    Cost O(K·q·N log N) for K splits, 48 of few records and 8 of many; several queries also fit small classifiers in
    each. Parts of the result that are not read are not computed.

    The limits are exact for answers that were fixed before these records were seen: an answer about one record may not
    depend on the other records.

    References
    ----------
    Xu, Mukherjee, Liu, Tople, Dodhia, Lavista Ferres (2022), MACE: a flexible framework for membership privacy
    estimation in generative models. Its interval for the advantage is replaced by one that holds.

    Examples
    --------
    >>> import numpy as np
    >>> import whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> found = wi.audit(rng.normal(2, 1, 300), rng.normal(0, 1, 300))
    >>> found.verdict.state, found.advantage.lower > 0.4
    ('leak', True)
    """
    if isinstance(members, Mapping) and isinstance(non_members, Mapping):
        members, non_members, names = _named(members, non_members, names)
    experiment = Experiment(members, non_members, prior, None if names is None else tuple(names), kind, person=person)
    return run_audit(
        experiment,
        metric=metric,
        confidence_level=confidence_level,
        groups=groups,
        assignment=assignment,
        tolerate=tolerate,
        rng=rng,
        progress=progress,
    )


def _named(
    members: Mapping[str, Any], non_members: Mapping[str, Any], names: Sequence[str] | None
) -> tuple[Any, Any, Sequence[str]]:
    """Return the scores of both sides as matrices with the names that they have in common."""
    if set(members) != set(non_members) or not members:
        raise InputError(
            f"members and non_members must be mappings with the same names, got {short_repr(list(members))} and "
            f"{short_repr(list(non_members))}"
        )
    chosen = list(members) if names is None else list(names)
    unknown = [name for name in chosen if name not in members]
    if unknown:
        raise InputError(f"names must be names of scores, {short_repr(list(members))}, got {short_repr(unknown[0])}")
    inside, outside = (np.column_stack([side[name] for name in chosen]) for side in (members, non_members))
    return inside, outside, chosen


def run_audit(
    experiment: Experiment,
    *,
    metric: str | Risk = "advantage",
    confidence_level: float = 0.95,
    groups: Any = None,
    assignment: str = "unknown",
    query: str | None = None,
    notes: tuple[str, ...] = (),
    tolerate: float | None = None,
    problem: str | None = None,
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> Audit:
    """Audit an experiment, as :func:`audit` does.

    ``query`` names what was asked, ``notes`` join the assumptions, and a ``problem`` of the set-up forbids a verdict.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> experiment = wi.auditing.Experiment(rng.normal(2, 1, 300), rng.normal(0, 1, 300))
    >>> found = wi.auditing.run_audit(experiment, query="loss of the model", tolerate=0.1)
    >>> found.query, found.verdict.title
    ('loss of the model', 'Leak found, above the tolerated 0.1')
    """
    level = check_confidence(confidence_level)
    assignment = check_choice("assignment", assignment, ASSIGNMENTS)
    metric = check_metric(metric)
    tolerate = None if tolerate is None else check_probability("tolerate", tolerate)
    labels = check_groups(groups, experiment)
    if progress is not None:
        progress(0.0)
    splits = split(experiment, rng)
    problem = problem or _problem(splits, 1.0 - level)
    if progress is not None:
        splits.prepare((ADVANTAGE, gain_at_prior(experiment.prior)), progress)
    return Audit(
        members=len(experiment.members),
        non_members=len(experiment.non_members),
        prior=experiment.prior,
        kind=experiment.kind,
        query=query if query is not None else ", ".join(experiment.names or ()),
        metric=metric,
        assignment=assignment,
        confidence_level=level,
        _splits=splits,
        labels=labels,
        notes=notes,
        tolerate=tolerate,
        problem=problem,
    )


def _problem(splits: Splits, delta: float) -> str | None:
    """Why these answers allow no verdict, whatever they are."""
    inside, outside = (np.sort(side, axis=0) for side in splits.experiment.columns)
    if len(np.unique(inside)) >= MANY and np.array_equal(inside, outside):
        return "Members and non-members have the very same answers: give those of people outside the data."
    if could_show(splits, delta):
        return None
    return (
        f"{counted(len(inside), 'member')} and {counted(len(outside), 'non-member')} are too few: even an "
        "attacker who makes no mistake would not be shown to be one."
    )
