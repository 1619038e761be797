"""To and from limits on beliefs: Li's membership privacy, and differential identifiability."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from whosin.errors import ImplicationError, InputError, check_choice, check_prior, check_whole
from whosin.guarantees.base import Guarantee
from whosin.guarantees.close_pairs import log_above
from whosin.guarantees.dp import ADJACENCIES, ApproxDP, DifferentialPrivacy, GaussianDP, PureDP, check_delta
from whosin.guarantees.identifiability import MOST_CANDIDATES, DifferentialIdentifiability
from whosin.guarantees.implications.differential import exp, to_approx
from whosin.guarantees.implications.graph import KMAX, Edge, edge, no
from whosin.guarantees.implications.practical import HALF, mip_of, pmp_to_mip
from whosin.guarantees.membership import FAMILIES, MembershipPrivacy
from whosin.guarantees.mip import MIP
from whosin.guarantees.practical import PMP
from whosin.guarantees.profile import PrivacyProfile, TradeOff
from whosin.guarantees.renyi import RenyiDP, ZeroConcentratedDP
from whosin.guarantees.sgd import DPSGD


def _dp_to_membership(g: DifferentialPrivacy, family: str | None = None, negative: bool = False) -> MembershipPrivacy:
    chosen = check_choice("family", family or ("independent" if g._adjacency == "add_remove" else "bounded"), FAMILIES)
    if chosen == "prior":
        raise InputError("family must be 'independent', 'bounded' or 'uniform' here, got 'prior'")
    if g._adjacency != "add_remove" and chosen != "bounded":
        raise ImplicationError(
            f"replace-one and zero-out DP imply no membership privacy for the {chosen} family, in which the size of "
            "the data set varies. Counterexample: A(D) = |D| is 0-DP under replace and reveals the one uncertain record"
        )
    low, high = g._replace_log_ratios() if chosen == "bounded" else g.log_likelihood_ratios()
    log_ratio = -low if negative else high
    if math.isinf(log_ratio) and not _is_pure(g):
        raise no(type(g).__name__, "MembershipPrivacy")
    ratio = exp(log_ratio)
    return MembershipPrivacy(0.5 * (ratio + 1.0) if chosen == "uniform" else ratio, chosen, negative)  # type: ignore[arg-type]


def _dp_to_identifiability(g: DifferentialPrivacy, candidates: int) -> DifferentialIdentifiability:
    m = check_whole("candidates", candidates, low=2, high=MOST_CANDIDATES)
    _, high = g._replace_log_ratios()
    if math.isinf(high) and not _is_pure(g):
        raise no(type(g).__name__, "DifferentialIdentifiability")
    return DifferentialIdentifiability(1.0 / (1.0 + (m - 1) * math.exp(-high)), m)


def _check_replace(adjacency: str) -> None:
    if check_choice("adjacency", adjacency, ADJACENCIES) != "replace":
        raise ImplicationError(
            "bounded membership privacy and differential identifiability compare data sets of one size: DP with "
            "adjacency='replace' follows, no other. Counterexample: A(D) = |D|"
        )


def _identifiability_to_pure(g: DifferentialIdentifiability, adjacency: str = "replace") -> PureDP:
    _check_replace(adjacency)
    if g.least == 0:
        raise ImplicationError(
            f"ρ = {g.rho:g} with {g.candidates} candidates limits no ratio between two of them: ε = ln(ρ/(1-(m-1)ρ)) "
            f"needs ρ < 1/(m-1) = {1 / (g.candidates - 1):g}. Counterexample: an output that rules out one candidate"
        )
    return PureDP(log_above(max(Fraction(1), g._rho / g.least)), "replace")


def _membership_to_membership(
    g: MembershipPrivacy, family: str | None = None, negative: bool | None = None
) -> MembershipPrivacy:
    to = check_choice("family", family or g.family, FAMILIES)
    if negative is not None and negative != g.negative and not (g.family == to == "bounded"):
        raise no("MembershipPrivacy", "PureDP")
    side = g.negative if negative is None else negative
    if to == g.family:
        return MembershipPrivacy(g.gamma, g.family, side)
    if g.family == "independent" and to == "uniform":
        return MembershipPrivacy(0.5 * (g.gamma + 1.0), "uniform", side)
    raise ImplicationError(
        f"membership privacy for the {g.family} family does not carry over to the {to} family. Counterexamples: "
        "A(D) = |D| (bounded, not independent or uniform); k-Max (uniform, not independent)"
    )


def _membership_to_pure(g: MembershipPrivacy, adjacency: str = "replace") -> PureDP:
    if g.family != "bounded":
        raise no("MembershipPrivacy", "PureDP")
    _check_replace(adjacency)
    return PureDP(g.log_ratio, "replace")


def _through_pure(target: type[Guarantee]) -> Callable[..., Guarantee]:
    def derive(g: MembershipPrivacy | DifferentialIdentifiability, **params: Any) -> Guarantee:
        if isinstance(g, MembershipPrivacy) and g.family != "bounded":
            raise no("MembershipPrivacy", target.__name__)
        return g.implies(PureDP).implies(target, **params)

    return derive


def _membership_to_pmp(g: MembershipPrivacy, delta: float | None = None, train_fraction: float = 0.5) -> PMP:
    """Independent family: with x and x' both in (negative: out), P is at most γ times either alone: TV ≤ 1 - 1/γ."""
    if g.family == "bounded":
        return _membership_to_pure(g).implies(PMP, delta=delta, train_fraction=train_fraction)
    if g.family != "independent":
        raise no("MembershipPrivacy", "PMP")
    apart = g.apart
    if delta is not None and check_delta(delta, g) < apart:
        raise ImplicationError(
            f"one-sided membership privacy gives no PMP with δ below 1 - 1/γ = {apart:.6g}, got delta={delta!r}. "
            f"Counterexample: {KMAX}"
        )
    return PMP(0.0, apart if delta is None else float(delta), train_fraction)


def _membership_to_mip(g: MembershipPrivacy, train_fraction: float = 0.5) -> MIP:
    if g.family == "bounded":
        return _membership_to_pure(g).implies(MIP, train_fraction=train_fraction)
    if g.family != "independent":
        raise no("MembershipPrivacy", "MIP")
    return pmp_to_mip(_membership_to_pmp(g, train_fraction=train_fraction))


def _identifiability_to_approx(
    g: DifferentialIdentifiability, delta: float | None = None, adjacency: str = "replace"
) -> ApproxDP:
    """Between two candidates: for an event and its complement a_i ≤ ρΣa and 1 - a_j ≤ ρΣ(1 - a), which adds up to
    E_γ ≤ ρ - γ(1-(m-1)ρ) for γ ≥ 1, and to mρ - 1 where ρ ≥ 1/(m-1).
    """
    _check_replace(adjacency)
    smallest = 0.0 if g.least > 0 else g.apart
    delta = smallest if delta is None else _check_delta(g, delta, smallest)
    if delta >= g.apart:
        return ApproxDP(0.0, delta, "replace")
    return ApproxDP(log_above(max(Fraction(1), (g._rho - Fraction(delta)) / g.least)), delta, "replace")


def _identifiability_to_pmp(
    g: DifferentialIdentifiability, delta: float | None = None, train_fraction: float = 0.5
) -> PMP:
    """Who is in against who is out, averaged over what is known and over sets of candidates: one against the others."""
    smallest = 0.0 if g.least > 0 else g.advantage
    delta = smallest if delta is None else _check_delta(g, delta, smallest)
    fpr, tpr = g.corner
    rates = [(y - Fraction(delta), x) for x, y in ((fpr, tpr), (1 - tpr, 1 - fpr)) if y > Fraction(delta)]
    steep = [math.inf if x == 0 else log_above(max(Fraction(1), rise / x)) for rise, x in rates]
    return PMP(max(steep, default=0.0), delta, train_fraction)


def _check_delta(g: DifferentialIdentifiability, delta: float, smallest: float) -> float:
    if check_delta(delta, g) < smallest:
        raise ImplicationError(
            f"ρ = {g.rho:g} with {g.candidates} candidates gives no (ε, δ) with δ below {smallest:.6g}, got "
            f"delta={delta!r}. Counterexample: an output that rules out one candidate"
        )
    return float(delta)


def _identifiability_to_mip(g: DifferentialIdentifiability, train_fraction: float = 0.5) -> MIP:
    q = check_prior(train_fraction, "train_fraction")
    return MIP(min(0.5, 0.5 * g.advantage)) if q == 0.5 else mip_of(g.roc if q < 0.5 else g.roc.reversed(), q)


def _fewer_or_more_candidates(
    g: DifferentialIdentifiability, candidates: int | None = None
) -> DifferentialIdentifiability:
    m = g.candidates if candidates is None else check_whole("candidates", candidates, low=2, high=MOST_CANDIDATES)
    return _more_candidates(g, m) if m >= g.candidates else _identifiability_to_pure(g).implies(type(g), candidates=m)


def _more_candidates(g: DifferentialIdentifiability, m: int) -> DifferentialIdentifiability:
    """Average P_i ≤ ρ/(1-ρ)·Σ P_j over the smaller sets that hold i: the others count (old-1)/(new-1) each."""
    if m == g.candidates or g.rho == 1.0:
        return DifferentialIdentifiability(g.rho, m)
    return DifferentialIdentifiability(1.0 / (1.0 + (m - 1) * (1.0 - g.rho) / ((g.candidates - 1) * g.rho)), m)


def _membership_to_approx(g: MembershipPrivacy, delta: float | None = None, adjacency: str | None = None) -> ApproxDP:
    """Independent family: TV ≤ 1 - 1/γ for one step, and for a replacement too (see :func:`_membership_to_pmp`)."""
    if g.family == "independent":
        apart = g.apart
        if delta is not None and check_delta(delta, g) < apart:
            raise no("MembershipPrivacy", "ApproxDP")
        to = check_choice("adjacency", adjacency or "add_remove", ("add_remove", "replace"))
        return ApproxDP(0.0, apart if delta is None else float(delta), to)  # type: ignore[arg-type]
    if g.family != "bounded":
        raise no("MembershipPrivacy", "ApproxDP")
    return to_approx(_membership_to_pure(g), delta, adjacency or "replace")


_PURE = (PureDP, ApproxDP, RenyiDP, ZeroConcentratedDP, PrivacyProfile, TradeOff)


def _is_pure(g: Guarantee) -> bool:
    return isinstance(g, PureDP) or (isinstance(g, ApproxDP) and g.delta == 0.0)


_BOUNDED_RATIO = "only where the likelihood ratio is bounded: δ = 0, or an order infinite"
_ALL = "the guarantee holds for every data set and every set of candidates"

EDGES: tuple[Edge, ...] = (
    *(
        edge(
            source,
            MembershipPrivacy,
            "Li et al. 2013, theorems 4.5 (add/remove ⇔ D_I, γ = e^ε), 4.8 (replace ⇔ D_B), and D_N: γ = (e^ε+1)/2",
            _dp_to_membership,
            "the prior is of the named family: independent records, or one known size",
            _BOUNDED_RATIO,
        )
        for source in _PURE
    ),
    edge(
        DPSGD,
        MembershipPrivacy,
        "negative only: a record is never sampled with probability (1-q)^T, so γ = (1-q)^{-T}",
        _dp_to_membership,
        "records are independent",
    ),
    *(
        edge(
            source,
            DifferentialIdentifiability,
            "Li et al. 2013, section 5.2: ρ = 1/(1+(m-1)e^{-ε}), replace-one",
            _dp_to_identifiability,
            "m equally likely candidates for the one unknown record",
            _BOUNDED_RATIO,
        )
        for source in _PURE
    ),
    edge(
        DifferentialIdentifiability,
        PureDP,
        "Li et al. 2013, section 5.2: ε = ln(ρ/(1-(m-1)ρ)) where ρ < 1/(m-1)",
        _identifiability_to_pure,
        _ALL,
    ),
    edge(
        MembershipPrivacy,
        MembershipPrivacy,
        "the uniform prior is an independent one: γ = (γ+1)/2; the bounded family is two-sided",
        _membership_to_membership,
    ),
    edge(MembershipPrivacy, PureDP, "Li et al. 2013, theorem 4.8 (⇐): (D_B, e^ε) ⇒ ε-DP, replace", _membership_to_pure),
    *(
        edge(
            MembershipPrivacy,
            target,
            "Li et al. 2013, theorem 4.8 (⇐), then on from replace-one DP; bounded family only",
            _through_pure(target),
        )
        for target in (GaussianDP, DifferentialIdentifiability)
    ),
    edge(
        MembershipPrivacy,
        ApproxDP,
        "bounded family: theorem 4.8 (⇐); independent family, either side: P(with) ≤ γ·P(without), so TV ≤ 1 - 1/γ",
        _membership_to_approx,
    ),
    *(
        edge(
            MembershipPrivacy,
            target,
            "bounded family: Li et al. 2013, theorem 4.8 (⇐), then from replace-one DP; independent family, either "
            "side: both x and x' in (or out) compare with one of them, so TV ≤ 1 - 1/γ",
            derive,
            HALF,
        )
        for target, derive in ((PMP, _membership_to_pmp), (MIP, _membership_to_mip))
    ),
    edge(
        DifferentialIdentifiability,
        ApproxDP,
        "two candidates: E_γ ≤ ρ - γ(1-(m-1)ρ), and mρ - 1 where ρ ≥ 1/(m-1)",
        _identifiability_to_approx,
        _ALL,
    ),
    *(
        edge(
            DifferentialIdentifiability,
            target,
            "one candidate against the mixture of the others: likelihood ratio between (1-(m-1)ρ)/ρ and (m-1)ρ/(1-ρ)",
            derive,
            _ALL,
            HALF,
        )
        for target, derive in ((PMP, _identifiability_to_pmp), (MIP, _identifiability_to_mip))
    ),
    *(
        edge(
            DifferentialIdentifiability,
            target,
            "Li et al. 2013, section 5.2 (⇐), then on from replace-one DP; only where ρ < 1/(m-1)",
            _through_pure(target),
            _ALL,
            tight=False,
        )
        for target in (GaussianDP, MembershipPrivacy)
    ),
    edge(
        DifferentialIdentifiability,
        DifferentialIdentifiability,
        "more candidates: the average over the smaller sets; fewer: through replace-one DP, where ρ < 1/(m-1)",
        _fewer_or_more_candidates,
        _ALL,
        tight=False,
    ),
)
