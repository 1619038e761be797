"""What is said about a guarantee, a calibration, an audit or several: shared by the page and the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import whosin as wi
from whosin.errors import InputError
from whosin.guarantees import Guarantee
from whosin.guarantees.accountants import pairs_of
from whosin.guarantees.base import facts
from whosin.guarantees.dp import dp_of
from whosin.numerics.rounding import about, at_least, at_most, confidence, percent, percent_up
from whosin.web.models import AuditAnswer, CalibrateAnswer, CalibrateQuery, CompareAnswer, ExplainAnswer, ExplainQuery


def guarantee_of(query: ExplainQuery) -> Guarantee:
    """Return the guarantee that was asked about."""
    compared = query.adjacency
    if query.kind == "dp":
        return dp_of(query.epsilon, query.delta, compared)
    if query.kind == "gdp":
        return wi.GaussianDP(query.mu, compared)
    if query.kind == "mip":
        return wi.MIP(query.eta)
    if query.kind == "zcdp":
        return wi.ZeroConcentratedDP(query.rho, compared)
    if query.kind == "rdp":
        return wi.RenyiDP(*pairs_of(query.pairs, "order", "epsilon"), compared)
    if query.kind == "profile":
        return wi.PrivacyProfile(*pairs_of(query.pairs, "epsilon", "delta"), compared)
    return wi.DPSGD(query.noise_multiplier, *query.rate_and_steps(), query.sampling, compared)


def explain(guarantee: Guarantee, prior: float) -> ExplainAnswer:
    """Return what a guarantee means."""
    known = facts(guarantee, prior)
    blind = max(prior, 1.0 - prior)
    sentence = (
        "Somebody who sees everything that is released can tell whether your record is in the data "
        f"{percent_up(known['accuracy'])} of the time at most; without looking, {percent(blind)}."
    )
    return ExplainAnswer(sentence=sentence, **known)


def answer_explanation(query: ExplainQuery) -> ExplainAnswer:
    """Return what the guarantee that was asked about means."""
    return explain(guarantee_of(query), query.prior)


def answer_calibration(query: CalibrateQuery) -> CalibrateAnswer:
    """Return parameters that keep a risk."""
    return calibrate(query)[0]


def calibrate(query: CalibrateQuery) -> tuple[CalibrateAnswer, Guarantee | None]:
    """Return parameters that keep a risk, and the guarantee where there is one."""
    target: dict[str, Any] = {query.target: query.value}
    if query.target == "tpr":
        target = {"tpr_at": (query.value, query.fpr)}
    if query.find == "sampling_rate":
        _check_target(query, "posterior")
        rate = wi.calibrate.sampling_rate(query.epsilon, posterior=query.value)
        sentence = (
            f"Keep each record with a probability of {at_least(rate, 6)} before you train with ε = {query.epsilon:g}: "
            f"then nobody's belief that a given record was used exceeds {percent_up(query.value)}."
        )
        return CalibrateAnswer(sentence=sentence, sampling_rate=rate, meaning=None), None
    found: Guarantee
    if query.find != "epsilon":
        _check_target(query, "accuracy", "advantage", "tpr")
    if query.find == "dpsgd":
        target |= {"sampling": query.sampling, "adjacency": query.adjacency}
        found = wi.calibrate.dpsgd(*query.rate_and_steps(), prior=query.prior, **target)
        what = f"a noise multiplier of at least {at_most(found.noise_multiplier, 4)}"
    elif query.find == "zcdp":
        found = wi.calibrate.zcdp(prior=query.prior, **target)
        what = f"zero-concentrated differential privacy with ρ of at most {at_least(found.rho, 6)}"
    elif query.find == "rdp":
        found = wi.calibrate.rdp(query.order, prior=query.prior, **target)
        most = at_least(found.epsilons[0], 6)
        what = f"Rényi differential privacy of order {query.order:g} with ε of at most {most}"
    elif query.find == "mip":
        found = wi.calibrate.mip(**target)
        what = f"membership inference privacy with η of at most {at_least(found.eta, 6)}"
    else:
        found = wi.calibrate.epsilon(prior=query.prior, delta=query.delta, **target)
        more = f" (δ = {query.delta:g})" if query.delta else ""
        what = f"differential privacy with ε of at most {at_least(found.epsilon, 4)}{more}"
    meaning = explain(found, 0.5 if query.find == "mip" else query.prior)
    sentence = f"{what[:1].upper()}{what[1:]} keeps this: {_wish(query)}."
    return CalibrateAnswer(sentence=sentence, sampling_rate=None, meaning=meaning), found


def _check_target(query: CalibrateQuery, *fitting: str) -> None:
    if query.target not in fitting:
        raise InputError(f"target must be one of {', '.join(fitting)} for {query.find}, got {query.target!r}")


def _wish(query: CalibrateQuery) -> str:
    limit = percent_up(query.value)
    return {
        "accuracy": f"nobody guesses right more than {limit} of the time",
        "advantage": f"nobody's advantage, members found less outsiders accused, exceeds {query.value:g}",
        "posterior": f"nobody's belief that a record is in the data exceeds {limit}, whatever is released",
        "tpr": f"whoever accuses {percent(query.fpr)} of the outsiders finds at most {limit} of the members",
    }[query.target]


def compare(audits: Sequence[AuditAnswer]) -> CompareAnswer:
    """Set finished audits side by side.

    Each interval holds with its own confidence, so all of them hold together with at least one minus the sum of what
    is missing to certainty (Bonferroni). Two audits are said to differ only if their intervals do not meet; one
    whose set-up allows no verdict is left out.
    """
    judged = [
        audit for audit in audits if audit.summary is not None and audit.summary["verdict"]["state"] != "no verdict"
    ]
    ranked = sorted(judged, key=lambda audit: -_advantage(audit)["estimate"])
    missing = sum(1.0 - _advantage(audit)["confidence_level"] for audit in audits)
    level = max(0.0, round(1.0 - missing, 10))
    statements = [
        f"“{one.shown}” gives away more than “{other.shown}”: an advantage of at least "
        f"{at_least(_advantage(one)['lower'])}, against at most {at_most(_advantage(other)['upper'])} for the "
        "attackers that are covered there."
        for place, one in enumerate(ranked)
        for other in ranked[place + 1 :]
        if _advantage(one)["lower"] > _advantage(other)["upper"]
    ]
    if len(ranked) > 1 and not statements:
        first = ranked[0]
        statements.append(
            "No difference is shown: the intervals meet. The largest estimate is that of "
            f"“{first.shown}”, {about(_advantage(first)['estimate'])}, which could be chance."
        )
    statements += [f"“{audit.shown}” allows no verdict, and was left out." for audit in audits if audit not in judged]
    queries = {audit.summary["query"] for audit in audits if audit.summary is not None}
    if len(queries) > 1:
        statements.append("Not the same was asked in each, so the upper limits cover different attackers.")
    statements.append(f"All intervals hold together with {confidence(level)} confidence.")
    return CompareAnswer(audits=list(audits), statements=statements, confidence_level=level)


def _advantage(audit: AuditAnswer) -> Any:
    assert audit.summary is not None
    return audit.summary["advantage"]
