"""Which guarantee follows from which: a graph of theorems.

An :class:`Edge` is one theorem: its source and target, who proved it, under which assumptions, whether it is tight
(some mechanism attains it), and whether it was corrected from the paper. :func:`implied` walks to the tightest
target, or raises an ImplicationError that names the counterexample (:class:`NoEdge`).

Two tools do most of the work. A fixed-size world (PMP, MIP, D_B, identifiability) compares data sets that differ by a
replacement, so the edges start from ``replace_roc()``. And by the adjacent coupling - D uniform among the sets that
hold x, x' uniform outside D, D' = D - x + x' - the laws given in and given out are mixtures of such pairs, so any
jointly convex divergence of theirs is at most that of the worst pair. This is why the curve carries over as it is.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from whosin.errors import (
    ImplicationError,
    InputError,
    InputTypeError,
    check_choice,
    check_number,
    check_prior,
    check_whole,
)
from whosin.guarantees.base import Guarantee
from whosin.guarantees.dp import (
    ADJACENCIES,
    Adjacency,
    ApproxDP,
    DifferentialPrivacy,
    GaussianDP,
    PureDP,
    check_delta,
    shifted_normal_epsilon,
)
from whosin.guarantees.identifiability import MOST_CANDIDATES, DifferentialIdentifiability
from whosin.guarantees.membership import FAMILIES, MembershipPrivacy
from whosin.guarantees.mip import MIP
from whosin.guarantees.practical import PMP
from whosin.guarantees.sgd import DPSGD
from whosin.roc import Roc

__all__ = ["EDGES", "NO_EDGES", "Edge", "NoEdge", "epsilon_at", "implied"]

Target = TypeVar("Target", bound=Guarantee)


@dataclass(frozen=True)
class Edge:
    """One theorem: from a guarantee of class ``source`` follows one of class ``target``."""

    name: str
    source: str
    target: str
    theorem: str
    assumes: tuple[str, ...]
    tight: bool
    corrected: bool
    derive: Callable[..., Guarantee]
    """Takes the source guarantee and the target's parameters; raises ImplicationError outside its reach."""


@dataclass(frozen=True)
class NoEdge:
    """Why nothing of class ``target`` follows from a guarantee of class ``source``."""

    source: str
    target: str
    reason: str
    counterexample: str


def implied(guarantee: Guarantee, target: type[Target], params: dict[str, Any]) -> Target:
    """Return the tightest guarantee of class ``target`` that follows from ``guarantee``."""
    if not (isinstance(target, type) and issubclass(target, Guarantee)):
        raise InputTypeError(f"target must be a class of guarantees such as MIP, got {target!r}")
    source, wanted = type(guarantee).__name__, target.__name__
    for edge in EDGES:
        if edge.source == source and edge.target == wanted:
            _check_params(edge, params)
            return cast(Target, edge.derive(guarantee, **params))
    if source == wanted:
        if params:
            raise InputTypeError(f"implies({wanted}) from {source} must have no parameters; got {next(iter(params))!r}")
        return cast(Target, guarantee)
    for gap in NO_EDGES:
        if gap.source == source and gap.target == wanted:
            raise ImplicationError(
                f"{source} does not imply {wanted}: {gap.reason}. Counterexample: {gap.counterexample}"
            )
    raise ImplicationError(f"{source} does not imply {wanted}: no theorem that leads there is known to the library")


def _check_params(edge: Edge, params: dict[str, Any]) -> None:
    signature = list(inspect.signature(edge.derive).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature):
        return
    known = [parameter.name for parameter in signature]
    unknown = [name for name in params if name not in known]
    if unknown:
        accepted = ", ".join(known) or "no parameters"
        raise InputTypeError(f"implies({edge.target}) from {edge.source} accepts {accepted}; got {unknown[0]!r}")
    needed = [each.name for each in signature if each.default is each.empty and each.name not in params]
    if needed:
        raise InputTypeError(f"implies({edge.target}) from {edge.source} needs {needed[0]}=, got none")


# --- differential privacy to itself --------------------------------------------------------------------------


def _to_pure(g: PureDP | ApproxDP, adjacency: str | None = None, sample_rate: float | None = None) -> PureDP:
    if g.delta > 0.0:
        raise _no("ApproxDP", "PureDP")
    return PureDP(_step_epsilon(g, g.epsilon, 0.0, adjacency, sample_rate)[0], _adjacency(g, adjacency))


def _to_approx(
    g: PureDP | ApproxDP, delta: float | None = None, adjacency: str | None = None, sample_rate: float | None = None
) -> ApproxDP:
    if delta is not None and sample_rate is not None:
        raise InputError("delta and sample_rate cannot both be given: under sampling the new δ is sample_rate·δ")
    to = _adjacency(g, adjacency)
    if delta is None or sample_rate is not None:
        return ApproxDP(*_step_epsilon(g, g.epsilon, g.delta, adjacency, sample_rate), adjacency=to)
    if delta == g.delta and to == g.adjacency:
        return ApproxDP(g.epsilon, g.delta, to)
    delta = check_delta(delta, g)
    return ApproxDP(_close_epsilon(g, delta, to != g.adjacency), delta, to)


def _close_epsilon(g: PureDP | ApproxDP, delta: float, two_steps: bool) -> float:
    """Smallest ε at δ: in closed form for one step and for two pure ones, so that a large ε does not overflow.

    The tangent from (0, δ) meets the corner of the curve, or one of the two corners of R∘R: with s = e^{-ε₀} they lie
    at (s²/(1+s), 1/(1+s)) and (s/(1+s), 1 - s²/(1+s)).
    """
    if two_steps and g.delta > 0.0:
        return epsilon_at(g.replace_roc(), delta)
    if math.isinf(g.epsilon) or g.delta >= 1.0 or delta < g.delta:
        return 0.0 if delta >= 1.0 else math.inf
    shrink = math.exp(-g.epsilon)
    spent = (delta - g.delta) * (1.0 + shrink) / (1.0 - g.delta)
    if not two_steps:
        return min(g.epsilon, _plus_log(g.epsilon, -spent))
    corners = _plus_log(2.0 * g.epsilon, -spent), _plus_log(g.epsilon, shrink * (1.0 - delta - shrink) - delta)
    return min(2.0 * g.epsilon, max(corners))


def _plus_log(epsilon: float, excess: float) -> float:
    """ε + ln(1 + excess), at least 0, rounded up by what the rounding of either part can take away."""
    if excess <= -1.0:
        return 0.0
    room = 0.0 if excess == 0.0 else 2.0 * math.ulp(epsilon) + 4.0 * math.ulp(1.0) / (1.0 + excess)
    return max(0.0, epsilon + math.log1p(excess) + room)


def _step_epsilon(
    g: PureDP | ApproxDP, epsilon: float, delta: float, adjacency: str | None, sample_rate: float | None
) -> tuple[float, float]:
    """(ε, δ) after sampling records first, and after passing from add/remove to replace."""
    if sample_rate is not None:
        rate = check_number("sample_rate", sample_rate, low=0.0, high=1.0)
        if g.adjacency == "replace":
            raise ImplicationError(
                "DP under Poisson sampling needs add/remove DP: sampling changes the size of the data set, about which "
                "replace-one DP promises nothing. Counterexample: A(D) = |D|"
            )
        epsilon, delta = _sampled_epsilon(epsilon, rate), rate * delta
    if _adjacency(g, adjacency) == "replace" and g.adjacency == "add_remove":
        if delta > 0.0:
            exact = ApproxDP(epsilon, delta).replace_roc().divergence(_exp(2.0 * epsilon))
            delta = min(1.0, (1.0 + _exp(epsilon)) * delta, exact)
        epsilon = 2.0 * epsilon
    return epsilon, delta


def _sampled_epsilon(epsilon: float, rate: float) -> float:
    """ln(1 + β(e^ε - 1)), without overflow."""
    if rate == 0.0 or epsilon == 0.0:
        return 0.0
    if epsilon > 709.0:
        rounded_up = epsilon + math.log(rate + (1.0 - rate) * math.exp(-epsilon)) + 2.0 * math.ulp(epsilon)
        return min(epsilon, rounded_up)
    return math.log1p(rate * math.expm1(epsilon))


def _gaussian_to_gaussian(g: GaussianDP, adjacency: str | None = None) -> GaussianDP:
    to = _adjacency(g, adjacency)
    return GaussianDP(2.0 * g.mu if to == "replace" and g.adjacency == "add_remove" else g.mu, to)


def _pure_to_gaussian(g: PureDP, adjacency: str | None = None) -> GaussianDP:
    """The Gaussian curve through the corner of the pure one; after two steps through the outer corner of R∘R."""
    from scipy.special import erfinv, ndtri

    to, epsilon = _adjacency(g, adjacency), g.epsilon
    tail = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    if to == "replace" and g.adjacency == "add_remove":
        mu = -float(ndtri(tail)) - float(ndtri(tail * math.exp(-epsilon)))
    elif epsilon < 1.0:
        mu = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    else:
        mu = -2.0 * float(ndtri(tail))
    return GaussianDP(max(mu, 0.0) * (1.0 + 1e-14), to)


def _curve_to_approx(g: GaussianDP | DPSGD, delta: float | None = None, adjacency: str | None = None) -> ApproxDP:
    to, delta = _adjacency(g, adjacency), check_delta(delta, g)
    return ApproxDP(_curve_epsilon(g, delta, to), delta, to)


def _curve_epsilon(g: GaussianDP | DPSGD, delta: float, to: Adjacency) -> float:
    """Smallest ε at δ in both directions; for normal laws in closed form, where a small ε keeps its digits."""
    if isinstance(g, GaussianDP):
        return shifted_normal_epsilon(_gaussian_to_gaussian(g, to).mu, delta)
    if g.sample_rate == 1.0:
        return _curve_epsilon(_sgd_to_gaussian(g, to), delta, to)
    if to == "replace":
        return epsilon_at(g.replace_roc(), delta)
    return max(epsilon_at(g.roc, delta), epsilon_at(g.outsider_roc(), delta))


# --- to practical membership privacy and membership inference privacy -----------------------------------------


def _dp_to_pmp(g: DifferentialPrivacy, delta: float | None = None, train_fraction: float = 0.5) -> PMP:
    if isinstance(g, PureDP | ApproxDP) and (delta is None or (delta == g.delta and g.adjacency == "replace")):
        epsilon, delta = _step_epsilon(g, g.epsilon, g.delta, "replace", None)
    else:
        delta = check_delta(delta, g)
        if isinstance(g, PureDP | ApproxDP):
            epsilon = _close_epsilon(g, delta, g.adjacency == "add_remove")
        else:
            epsilon = _curve_epsilon(cast(GaussianDP | DPSGD, g), delta, "replace")
    return PMP(epsilon, delta, train_fraction)


def _dp_to_mip(g: DifferentialPrivacy, train_fraction: float = 0.5) -> MIP:
    q = check_prior(train_fraction, "train_fraction")
    if q == 0.5 and isinstance(g, PureDP | ApproxDP):
        if g._adjacency == "replace":
            return MIP(_half(g.advantage))
        if g.delta == 0.0:
            return MIP(_half(-math.expm1(-g.epsilon)))
    return _roc_to_mip(g.replace_roc(), q)


def _roc_to_mip(roc: Roc, q: float) -> MIP:
    rarer = min(q, 1.0 - q)
    likelier = 1.0 - rarer
    if q <= 0.5:
        excess = rarer * roc.divergence(likelier / rarer)
    else:
        excess = rarer * roc.reversed().divergence(likelier / rarer)
    return MIP(min(max(excess, 0.0), rarer), q)


def _pmp_to_pmp(g: PMP, delta: float | None = None) -> PMP:
    if delta is None or delta == g.delta:
        return g
    delta = check_delta(delta, g)
    return PMP(_close_epsilon(ApproxDP(g.epsilon, g.delta), delta, False), delta, g.train_fraction)


def _pmp_to_mip(g: PMP, train_fraction: float | None = None) -> MIP:
    if train_fraction is not None and train_fraction != g.train_fraction:
        raise ImplicationError(
            f"a PMP guarantee at train fraction {g.train_fraction:g} says nothing about train "
            f"fraction {train_fraction!r}: "
            "it is about one way of drawing the data set. Counterexample: release D, unless it is that share of the "
            "pool, then nothing"
        )
    return MIP(_half(g.advantage)) if g.train_fraction == 0.5 else _roc_to_mip(g.roc, g.train_fraction)


def _mip_to_pmp(g: MIP, delta: float | None = None) -> PMP:
    if g.train_fraction != 0.5:
        raise ImplicationError(
            "η-MIP and (0, 2η)-PMP are the same only at train fraction 1/2; at "
            f"{g.train_fraction:g} the accuracy limit leaves TPR - FPR up to {g.advantage:.6g}. Counterexample at "
            "q < 1/2: say 'maybe' of every member and of a share q/(1-q) of the others: 0-MIP, TPR - FPR = (1-2q)/(1-q)"
        )
    floor = g.advantage
    if delta is not None and check_delta(delta, g) < floor:
        raise ImplicationError(
            f"η-MIP gives no (ε, δ)-PMP with δ below 2η = {floor:.6g}, got delta={delta!r}. Counterexample: reveal the "
            "membership with probability 2η, otherwise nothing: η-MIP, and δ = 2η for every ε"
        )
    return PMP(0.0, floor if delta is None else float(delta))


# --- to and from Li's membership privacy, and differential identifiability ---------------------------------------


def _dp_to_membership(g: DifferentialPrivacy, family: str | None = None, negative: bool = False) -> MembershipPrivacy:
    chosen = check_choice("family", family or ("bounded" if g._adjacency == "replace" else "independent"), FAMILIES)
    if chosen == "prior":
        raise InputError("family must be 'independent', 'bounded' or 'uniform' here, got 'prior'")
    if g._adjacency == "replace" and chosen != "bounded":
        raise ImplicationError(
            f"replace-one DP does not imply membership privacy for the {chosen} family, in which "
            f"the size of the data set "
            "varies. Counterexample: A(D) = |D| is 0-DP under replace and reveals the only uncertain record"
        )
    low, high = g._replace_log_ratios() if chosen == "bounded" else g.log_likelihood_ratios()
    log_ratio = -low if negative else high
    if math.isinf(log_ratio) and not _is_pure(g):
        raise _no(type(g).__name__, "MembershipPrivacy")
    ratio = _exp(log_ratio)
    return MembershipPrivacy(0.5 * (ratio + 1.0) if chosen == "uniform" else ratio, chosen, negative)  # type: ignore[arg-type]


def _dp_to_identifiability(g: DifferentialPrivacy, candidates: int) -> DifferentialIdentifiability:
    m = check_whole("candidates", candidates, low=2, high=MOST_CANDIDATES)
    _, high = g._replace_log_ratios()
    if math.isinf(high) and not _is_pure(g):
        raise _no(type(g).__name__, "DifferentialIdentifiability")
    return DifferentialIdentifiability(1.0 / (1.0 + (m - 1) * math.exp(-high)), m)


def _identifiability_to_pure(g: DifferentialIdentifiability, adjacency: str = "replace") -> PureDP:
    if check_choice("adjacency", adjacency, ADJACENCIES) == "add_remove":
        raise ImplicationError(
            "differential identifiability compares data sets of one size: no add/remove DP follows. "
            "Counterexample: A(D) = |D|"
        )
    least = 1.0 - (g.candidates - 1) * g.rho
    if least <= 0.0:
        raise ImplicationError(
            f"ρ = {g.rho:g} with {g.candidates} candidates limits no ratio between two of them: ε = "
            f"ln(ρ/(1-(m-1)ρ)) needs "
            f"ρ < 1/(m-1) = {1 / (g.candidates - 1):g}. Counterexample: an output that rules out one candidate"
        )
    return PureDP(max(0.0, math.log(g.rho / least)), "replace")


def _membership_to_membership(
    g: MembershipPrivacy, family: str | None = None, negative: bool | None = None
) -> MembershipPrivacy:
    to = check_choice("family", family or g.family, FAMILIES)
    if negative is not None and negative != g.negative and not (g.family == to == "bounded"):
        raise _no("MembershipPrivacy", "PureDP")
    side = g.negative if negative is None else negative
    if to == g.family:
        return MembershipPrivacy(g.gamma, g.family, side)
    if g.family == "independent" and to == "uniform":
        return MembershipPrivacy(0.5 * (g.gamma + 1.0), "uniform", side)
    raise ImplicationError(
        f"membership privacy for the {g.family} family does not carry over to the {to} family. "
        f"Counterexamples: A(D) = |D| "
        "(bounded, not independent or uniform); k-Max (uniform, not independent)"
    )


def _membership_to_pure(g: MembershipPrivacy, adjacency: str = "replace") -> PureDP:
    if g.family != "bounded":
        raise _no("MembershipPrivacy", "PureDP")
    if check_choice("adjacency", adjacency, ADJACENCIES) == "add_remove":
        raise ImplicationError(
            "the bounded family compares data sets of one size: no add/remove DP follows (A(D) = |D|)"
        )
    return PureDP(math.log(g.gamma), "replace")


def _membership_through_pure(target: type[Guarantee]) -> Callable[..., Guarantee]:
    def derive(g: MembershipPrivacy, **params: Any) -> Guarantee:
        if g.family != "bounded":
            raise _no("MembershipPrivacy", target.__name__)
        return implied(_membership_to_pure(g), target, params)

    return derive


def _membership_to_pmp(g: MembershipPrivacy, delta: float | None = None, train_fraction: float = 0.5) -> PMP:
    """Independent family: with x and x' both in (negative: out), P is at most γ times either alone: TV ≤ 1 - 1/γ."""
    if g.family == "bounded":
        return implied(_membership_to_pure(g), PMP, {"delta": delta, "train_fraction": train_fraction})
    if g.family != "independent":
        raise _no("MembershipPrivacy", "PMP")
    apart = 1.0 - 1.0 / g.gamma
    if delta is not None and check_delta(delta, g) < apart:
        raise ImplicationError(
            f"one-sided membership privacy gives no PMP with δ below 1 - 1/γ = {apart:.6g}, got delta={delta!r}. "
            f"Counterexample: {_KMAX}"
        )
    return PMP(0.0, apart if delta is None else float(delta), train_fraction)


def _membership_to_mip(g: MembershipPrivacy, train_fraction: float = 0.5) -> MIP:
    if g.family == "bounded":
        return implied(_membership_to_pure(g), MIP, {"train_fraction": train_fraction})
    if g.family != "independent":
        raise _no("MembershipPrivacy", "MIP")
    return _pmp_to_mip(_membership_to_pmp(g, train_fraction=train_fraction))


def _identifiability_through_pure(target: type[Guarantee]) -> Callable[..., Guarantee]:
    def derive(g: DifferentialIdentifiability, **params: Any) -> Guarantee:
        wanted = params.get("candidates", g.candidates) if target is DifferentialIdentifiability else 0
        if wanted and check_whole("candidates", wanted, low=2, high=MOST_CANDIDATES) >= g.candidates:
            return _more_candidates(g, wanted)
        return implied(_identifiability_to_pure(g), target, params)

    return derive


def _more_candidates(g: DifferentialIdentifiability, m: int) -> DifferentialIdentifiability:
    """Average P_i ≤ ρ/(1-ρ)·Σ P_j over the smaller sets that hold i: the others count (old-1)/(new-1) each."""
    if m == g.candidates or g.rho == 1.0:
        return DifferentialIdentifiability(g.rho, m)
    return DifferentialIdentifiability(1.0 / (1.0 + (m - 1) * (1.0 - g.rho) / ((g.candidates - 1) * g.rho)), m)


def _membership_to_approx(g: MembershipPrivacy, delta: float | None = None, adjacency: str | None = None) -> ApproxDP:
    if g.family == "independent":
        apart = 1.0 - 1.0 / g.gamma
        if delta is not None and check_delta(delta, g) < apart:
            raise _no("MembershipPrivacy", "ApproxDP")
        limits = ApproxDP(0.0, apart if delta is None else float(delta))
        return _to_approx(limits, adjacency=adjacency)
    if g.family != "bounded":
        raise _no("MembershipPrivacy", "ApproxDP")
    return _to_approx(_membership_to_pure(g), delta, adjacency or "replace")


def _mip_to_mip(g: MIP, train_fraction: float | None = None) -> MIP:
    if train_fraction is not None and train_fraction != g.train_fraction:
        raise ImplicationError(
            f"a MIP guarantee at train fraction {g.train_fraction:g} says nothing about {train_fraction!r}. "
            "Counterexample: release D, unless it is that share of the pool, then nothing"
        )
    return g


def _sgd_to_gaussian(g: DPSGD, adjacency: str | None = None) -> GaussianDP:
    """Sampling only helps, so the run is no easier to attack than full batches; far out in the tail it is no harder."""
    to = _adjacency(g, adjacency)
    if g.sample_rate == 0.0 or g.steps == 0:
        return GaussianDP(0.0, to)
    mu = math.sqrt(g.steps) / g.noise_multiplier if g.noise_multiplier > 0.0 else math.inf
    return GaussianDP(2.0 * mu if to == "replace" else mu, to)


# --- small helpers ---------------------------------------------------------------------------------------------


def epsilon_at(roc: Roc, delta: float) -> float:
    """Return the smallest ε ≥ 0 with E_{e^ε} ≤ δ in the direction of the curve."""
    slope = roc.slope_for(delta)
    if slope <= 1.0:
        return 0.0
    return math.inf if math.isinf(slope) else math.nextafter(math.log(slope), math.inf)


def _adjacency(g: DifferentialPrivacy, wanted: str | None) -> Adjacency:
    to = check_choice("adjacency", wanted or g._adjacency, ADJACENCIES)
    if g._adjacency == "replace" and to == "add_remove":
        raise ImplicationError(
            "replace-one DP implies no add/remove DP. Counterexample: A(D) = |D| is 0-DP under "
            "replace, and not ε-DP under "
            "add/remove for any ε < ∞"
        )
    return cast(Adjacency, to)


def _is_pure(g: Guarantee) -> bool:
    return isinstance(g, PureDP) or (isinstance(g, ApproxDP) and g.delta == 0.0)


def _half(value: float) -> float:
    return min(0.5, 0.5 * value)


def _exp(value: float) -> float:
    return math.exp(value) if value < 709.0 else math.inf


def _no(source: str, target: str) -> ImplicationError:
    gap = next(gap for gap in NO_EDGES if (gap.source, gap.target) == (source, target))
    return ImplicationError(f"{source} does not imply {target}: {gap.reason}. Counterexample: {gap.counterexample}")


# --- the graph ---------------------------------------------------------------------------------------------------

_HALF = "the data set is a uniform subset of the pool, of the stated share"
_COUPLING = "Lowy et al. 2024, proposition 5; Izzo et al. 2022, lemma 12 (adjacent coupling)"
_TWO_STEPS = "from add/remove two steps are paid: the member curve after its mirror image"


def _edge(
    source: type[Guarantee],
    target: type[Guarantee],
    theorem: str,
    derive: Callable[..., Guarantee],
    *assumes: str,
    tight: bool = True,
    corrected: bool = False,
) -> Edge:
    name = f"{source.__name__} → {target.__name__}"
    return Edge(name, source.__name__, target.__name__, theorem, assumes, tight, corrected, derive)


_SAMPLING = "with sample_rate=β (each record kept with probability β first): Li et al. 2013, theorem 5.10"

EDGES: tuple[Edge, ...] = (
    _edge(PureDP, PureDP, f"group privacy: add/remove ε ⇒ replace 2ε; {_SAMPLING}, ε = ln(1+β(e^ε-1))", _to_pure),
    _edge(PureDP, ApproxDP, "the (ε, δ) line that touches the curve (Kairouz et al. 2015)", _to_approx),
    _edge(ApproxDP, PureDP, "only for δ = 0", _to_pure),
    _edge(
        ApproxDP,
        ApproxDP,
        (
            f"add/remove (ε, δ) ⇒ replace (2ε, (1+e^ε)δ); {_SAMPLING}, δ = βδ; or the line that touches "
            f"the curve at another δ"
        ),
        _to_approx,
    ),
    _edge(PureDP, GaussianDP, "Dong et al. 2019: μ = 2Φ⁻¹(e^ε/(1+e^ε))", _pure_to_gaussian),
    _edge(GaussianDP, GaussianDP, "Dong et al. 2019: add/remove μ ⇒ replace 2μ", _gaussian_to_gaussian),
    _edge(GaussianDP, ApproxDP, "Balle and Wang 2018, both directions", _curve_to_approx),
    _edge(DPSGD, GaussianDP, "full batches are no harder to attack: μ = √T/σ, approached as FPR → 0", _sgd_to_gaussian),
    _edge(DPSGD, ApproxDP, "hockey-stick dual of the composed curve, the larger of both directions", _curve_to_approx),
    *(
        _edge(
            source,
            PMP,
            _COUPLING,
            _dp_to_pmp,
            _HALF,
            _TWO_STEPS,
            tight=source is not DPSGD,
            corrected=source is ApproxDP,
        )
        for source in (PureDP, ApproxDP, GaussianDP, DPSGD)
    ),
    *(
        _edge(
            source,
            MIP,
            "Izzo et al. 2022, theorem 4, for every train fraction: "
            "η = max(mδ, δ+(1-δ)/(1+e^{-ε}) - max(q,1-q)), m = min(q,1-q); add/remove: η = (1-e^{-ε})/2 at 1/2",
            _dp_to_mip,
            _HALF,
            _TWO_STEPS,
            tight=source is not DPSGD,
            corrected=True,
        )
        for source in (PureDP, ApproxDP, GaussianDP, DPSGD)
    ),
    _edge(MIP, MIP, "the same statement at the same train fraction", _mip_to_mip, _HALF),
    _edge(PMP, PMP, "the (ε, δ) line that touches the curve at another δ", _pmp_to_pmp, _HALF),
    _edge(
        PMP, MIP, "Lowy et al. 2024, lemma 13, tightened: η = δ+(1-δ)/(1+e^{-ε})-½", _pmp_to_mip, _HALF, corrected=True
    ),
    _edge(MIP, PMP, "η-MIP ⇔ (0, 2η)-PMP at train fraction 1/2: accuracy = ½ + TV/2", _mip_to_pmp, _HALF),
    *(
        _edge(
            source,
            MembershipPrivacy,
            "Li et al. 2013, theorems 4.5 (add/remove ⇔ D_I, γ = e^ε), 4.8 (replace ⇔ D_B), and D_N: γ = (e^ε+1)/2",
            _dp_to_membership,
            "the prior is of the named family: independent records, or one known size",
            "for ApproxDP only δ = 0",
        )
        for source in (PureDP, ApproxDP)
    ),
    _edge(
        DPSGD,
        MembershipPrivacy,
        "negative only: a record is never sampled with probability (1-q)^T, so γ = (1-q)^{-T}",
        _dp_to_membership,
        "records are independent",
    ),
    *(
        _edge(
            source,
            DifferentialIdentifiability,
            "Li et al. 2013, section 5.2: ρ = 1/(1+(m-1)e^{-ε}), replace-one",
            _dp_to_identifiability,
            "m equally likely candidates for the one unknown record",
            "for ApproxDP only δ = 0",
        )
        for source in (PureDP, ApproxDP)
    ),
    _edge(
        DifferentialIdentifiability,
        PureDP,
        "Li et al. 2013, section 5.2: ε = ln(ρ/(1-(m-1)ρ)) where ρ < 1/(m-1)",
        _identifiability_to_pure,
        "the guarantee holds for every data set and every set of candidates",
    ),
    _edge(
        MembershipPrivacy,
        MembershipPrivacy,
        "the uniform prior is an independent one: γ = (γ+1)/2; the bounded family is two-sided",
        _membership_to_membership,
    ),
    _edge(
        MembershipPrivacy, PureDP, "Li et al. 2013, theorem 4.8 (⇐): (D_B, e^ε) ⇒ ε-DP, replace", _membership_to_pure
    ),
)

_MOD_SUM = "A(D) = sum of D mod 6 on {0..5}, |D| = 3: ln 2-PMP, accuracy 3/5, and deterministic (Lowy et al., prop. 5)"
_NULL_REVEAL = "an output of probability C(n, n/2)⁻¹ that names the whole data set (Izzo et al. 2022, theorem 5)"
_SIZE = "A(D) = |D| is 0-PMP (and 0-MIP) in fixed-size worlds and reveals the only uncertain record elsewhere"
_UNBOUNDED = "Gaussian noise: the posterior goes to 1 in the tail (Thudi et al. 2022, section 5.2)"
_REVEAL = "reveal the record with probability δ, otherwise nothing: (0, δ)-DP, and posterior 1 when it happens"
_RESPONSE = "randomised response keeps ε-DP and is no training run"
_KMAX = "k-Max with the empty set sent to rank 1: γ = (2^k-1)/(2^k-2) under D_N, yet some outputs have ratio 0"

NO_EDGES: tuple[NoEdge, ...] = (
    *(
        NoEdge("PMP", t, "an attacker who knows the others may still win", _MOD_SUM)
        for t in ("PureDP", "ApproxDP", "GaussianDP", "DPSGD")
    ),
    *(
        NoEdge("MIP", t, "a limit on the average leaves rare outputs free", _NULL_REVEAL)
        for t in ("PureDP", "ApproxDP", "GaussianDP", "DPSGD")
    ),
    *(
        NoEdge(source, "MembershipPrivacy", "it is about a uniform subset of one size, not about other priors", _SIZE)
        for source in ("PMP", "MIP")
    ),
    *(
        NoEdge(source, "DifferentialIdentifiability", "the attacker there knows all other records", _MOD_SUM)
        for source in ("PMP", "MIP")
    ),
    *(
        NoEdge(source, target, "its likelihood ratio has no bound, so no posterior below 1 follows", example)
        for source, example in (("ApproxDP", _REVEAL), ("GaussianDP", _UNBOUNDED), ("DPSGD", _UNBOUNDED))
        for target in ("MembershipPrivacy", "DifferentialIdentifiability", "PureDP")
    ),
    *(
        NoEdge(source, "DPSGD", "DPSGD names one mechanism, and a guarantee does not tell which one was run", _RESPONSE)
        for source in ("PureDP", "ApproxDP", "GaussianDP", "DifferentialIdentifiability")
    ),
    NoEdge("ApproxDP", "GaussianDP", "a Gaussian curve starts at TPR 0, an (ε, δ) curve at δ", _REVEAL),
    *(
        NoEdge("MembershipPrivacy", target, "either side alone leaves the other ratio unbounded", _KMAX)
        for target in ("PureDP", "ApproxDP", "GaussianDP", "DPSGD", "PMP", "MIP", "DifferentialIdentifiability")
    ),
)

EDGES += tuple(
    _edge(
        MembershipPrivacy,
        target,
        "Li et al. 2013, theorem 4.8 (⇐), then on from replace-one DP; bounded family only",
        _membership_through_pure(target),
    )
    for target in (GaussianDP, DifferentialIdentifiability)
)
EDGES += (
    _edge(
        MembershipPrivacy,
        ApproxDP,
        "bounded family: theorem 4.8 (⇐); independent family, either side: P(with) ≤ γ·P(without), so TV ≤ 1 - 1/γ",
        _membership_to_approx,
    ),
)
EDGES += tuple(
    _edge(
        MembershipPrivacy,
        target,
        "bounded family: Li et al. 2013, theorem 4.8 (⇐), then from replace-one DP; independent family, either side: "
        "both x and x' in (or out) compare with one of them, so TV ≤ 1 - 1/γ",
        derive,
        _HALF,
    )
    for target, derive in ((PMP, _membership_to_pmp), (MIP, _membership_to_mip))
)
EDGES += tuple(
    _edge(
        DifferentialIdentifiability,
        target,
        "Li et al. 2013, section 5.2 (⇐), then on from replace-one DP; only where ρ < 1/(m-1)",
        _identifiability_through_pure(target),
        "the guarantee holds for every data set and every set of candidates",
    )
    for target in (ApproxDP, GaussianDP, PMP, MIP, MembershipPrivacy, DifferentialIdentifiability)
)
