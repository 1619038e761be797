"""The audit: from answers about members and non-members to limits on what an attacker learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from whosin.auditing.attack import gather
from whosin.auditing.compare import ASSIGNMENTS
from whosin.auditing.estimate import Estimate
from whosin.auditing.experiment import Experiment
from whosin.auditing.groups import check_groups
from whosin.auditing.limits import ADVANTAGE, best_value, gain_at_prior, upper_class
from whosin.auditing.metrics import check_metric
from whosin.auditing.result import Audit
from whosin.errors import check_choice, check_number
from whosin.risks import Risk

__all__ = ["audit", "run_audit"]


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
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> Audit:
    """Measure what attackers learn from a query's answers about who is in the data.

    Parameters
    ----------
    members, non_members : array-like of shape (N,) or (N, q)
        Answers of one or of q queries about records in the data and about records outside: numbers, booleans or
        strings. The scores of any attack will do; neither their direction nor their scale matters.
    prior : float
        Probability that a record which the attacker meets is a member.
    metric : str or callable
        The metric of ``headline``; see :meth:`Audit.risk`.
    kind : {"auto", "discrete", "continuous"}
        Whether different answers are symbols, or numbers that can be compared.
    confidence_level : float
        Probability that the two limits of an estimate hold, whatever the laws and the sample sizes.
    groups : pair of arrays, or mapping of names to pairs, optional
        A label for every member and every non-member.
    names : sequence of str, optional
        Names of the queries.
    assignment : {"unknown", "random", "independent trainings"}
        Whether chance decided who became a member, and whether every score comes from a training of its own.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes. It splits the data once into a part that chooses attacks
        (a third, or half for several queries) and a part that is reported.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Audit

    Notes
    -----
    Cost O(q·N log N); several queries also fit a classifier to at most 40,000 records. Parts of the result that are
    not read are not computed.

    References
    ----------
    Xu, Mukherjee, Liu, Tople, Dodhia, Lavista Ferres (2022), MACE: a flexible framework for membership privacy
    estimation in generative models. Its interval for the advantage is replaced by one that holds.
    """
    experiment = Experiment(members, non_members, prior, None if names is None else tuple(names), kind)
    return run_audit(
        experiment,
        metric=metric,
        confidence_level=confidence_level,
        groups=groups,
        assignment=assignment,
        rng=rng,
        progress=progress,
    )


def run_audit(
    experiment: Experiment,
    *,
    metric: str | Risk = "advantage",
    confidence_level: float = 0.95,
    groups: Any = None,
    assignment: str = "unknown",
    query: str | None = None,
    notes: tuple[str, ...] = (),
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> Audit:
    """Audit an experiment; ``query`` names what was asked, ``notes`` join the assumptions. See :func:`audit`."""
    level = check_number("confidence_level", confidence_level, low=0.0, high=1.0, open_low=True, open_high=True)
    assignment = check_choice("assignment", assignment, ASSIGNMENTS)
    metric = check_metric(metric)
    report = progress if progress is not None else _silent
    report(0.0)
    evidence = gather(experiment, np.random.default_rng(rng))
    labels = check_groups(groups, evidence)
    report(0.6)
    delta, prior = 1.0 - level, experiment.prior
    advantage, seen, attack = best_value(evidence, ADVANTAGE, delta)
    at_prior, _, other = best_value(evidence, gain_at_prior(prior), delta)
    report(1.0)
    return Audit(
        advantage=_about(advantage, upper_class(evidence, attack.candidate.view)),
        advantage_at_prior=_about(at_prior, upper_class(evidence, other.candidate.view)),
        plug_in=seen,
        members=len(experiment.members),
        non_members=len(experiment.non_members),
        prior=prior,
        kind=experiment.kind,
        query=query if query is not None else ", ".join(experiment.names or ()),
        metric=metric,
        assignment=assignment,
        confidence_level=level,
        attack=attack,
        evidence=evidence,
        labels=labels,
        notes=notes,
    )


def _about(found: Estimate, attackers: str) -> Estimate:
    return Estimate(found.estimate, found.lower, found.upper, found.confidence_level, f"upper limit: {attackers}")


def _silent(_: float) -> None:
    return None
