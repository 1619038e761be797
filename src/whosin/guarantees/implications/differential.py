"""From differential privacy to itself: another δ, another adjacency, sampled records, another form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from whosin.errors import ImplicationError, InputError, check_choice, check_number
from whosin.guarantees.close_pairs import close_divergence, close_epsilon, sampled_epsilon
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
from whosin.guarantees.implications.graph import edge, no
from whosin.guarantees.profile import PrivacyProfile, TradeOff
from whosin.guarantees.renyi import RenyiDP, ZeroConcentratedDP, epsilon_of_orders
from whosin.guarantees.sgd import DPSGD
from whosin.numerics.rounding import float_above
from whosin.roc import Roc


def _to_pure(g: DifferentialPrivacy, adjacency: str | None = None, sample_rate: float | None = None) -> PureDP:
    low, high = g.log_likelihood_ratios()
    epsilon = max(high, -low)
    if not isinstance(g, PureDP) and math.isinf(epsilon):
        raise no(type(g).__name__, "PureDP")
    return PureDP(step_epsilon(g, epsilon, 0.0, adjacency, sample_rate)[0], target_adjacency(g, adjacency))


def to_approx(
    g: PureDP | ApproxDP, delta: float | None = None, adjacency: str | None = None, sample_rate: float | None = None
) -> ApproxDP:
    if delta is not None and sample_rate is not None:
        raise InputError("delta and sample_rate cannot both be given: under sampling the new δ is sample_rate·δ")
    to = target_adjacency(g, adjacency)
    if delta is None or sample_rate is not None:
        return ApproxDP(*step_epsilon(g, g.epsilon, g.delta, adjacency, sample_rate), adjacency=to)
    if delta == g.delta and to == g.adjacency:
        return ApproxDP(g.epsilon, g.delta, to)
    delta = check_delta(delta, g)
    return ApproxDP(close_epsilon(g.epsilon, g.delta, delta, to != g.adjacency), delta, to)


def step_epsilon(
    g: DifferentialPrivacy, epsilon: float, delta: float, adjacency: str | None, sample_rate: float | None
) -> tuple[float, float]:
    """(ε, δ) after sampling records first, and after passing from add/remove to replace."""
    if sample_rate is not None:
        rate = check_number("sample_rate", sample_rate, low=0.0, high=1.0)
        if g._adjacency != "add_remove":
            raise ImplicationError(
                "DP under Poisson sampling needs add/remove DP: sampling changes the size of the data set, about which "
                "replace-one and zero-out DP promise nothing. Counterexample: A(D) = |D|"
            )
        epsilon, delta = _sampled_epsilon(epsilon, rate), float_above(Fraction(rate) * Fraction(delta))
    if target_adjacency(g, adjacency) != g._adjacency:
        delta = close_divergence(epsilon, delta, True, 2.0 * epsilon) if delta > 0.0 else 0.0
        epsilon = 2.0 * epsilon
    return epsilon, delta


def _sampled_epsilon(epsilon: float, rate: float) -> float:
    """ln(1 + β(e^ε - 1)), without overflow, rounded up."""
    if rate in (0.0, 1.0) or epsilon == 0.0:
        return epsilon if rate == 1.0 else 0.0
    if epsilon > 709.0:
        rounded_up = epsilon + math.log(rate + (1.0 - rate) * math.exp(-epsilon)) + 2.0 * math.ulp(epsilon)
        return min(epsilon, rounded_up)
    return min(epsilon, sampled_epsilon(epsilon, rate))


def _gaussian_to_gaussian(g: GaussianDP, adjacency: str | None = None) -> GaussianDP:
    to = target_adjacency(g, adjacency)
    return GaussianDP(2.0 * g.mu if to != g.adjacency else g.mu, to)


def _pure_to_gaussian(g: PureDP, adjacency: str | None = None) -> GaussianDP:
    """The Gaussian curve through the corner of the pure one; after two steps through the outer corner of R∘R."""
    from scipy.special import erfinv, ndtri

    to, epsilon = target_adjacency(g, adjacency), g.epsilon
    tail = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    if to != g.adjacency:
        mu = -float(ndtri(tail)) - float(ndtri(tail * math.exp(-epsilon)))
    elif epsilon < 1.0:
        mu = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    else:
        mu = -2.0 * float(ndtri(tail))
    return GaussianDP(max(mu, 0.0) * (1.0 + 1e-14), to)


def _curve_to_approx(g: DifferentialPrivacy, delta: float | None = None, adjacency: str | None = None) -> ApproxDP:
    to, delta = target_adjacency(g, adjacency), check_delta(delta, g)
    return ApproxDP(curve_epsilon(g, delta, to), delta, to)


def curve_epsilon(g: DifferentialPrivacy, delta: float, to: Adjacency) -> float:
    """Smallest ε at δ in both directions; for normal laws in closed form, where a small ε keeps its digits."""
    if isinstance(g, GaussianDP):
        return shifted_normal_epsilon(_gaussian_to_gaussian(g, to).mu, delta)
    if isinstance(g, DPSGD):
        run = g.under(to)
        if run.mu is not None:
            return shifted_normal_epsilon(run.mu, delta)
        found = max(epsilon_at(run.roc, delta), epsilon_at(run.outsider_roc(), delta))
        return min(found, shifted_normal_epsilon(run.full_mu, delta))
    if isinstance(g, ZeroConcentratedDP):
        g = _concentrated_to_itself(g, to)
    if to != g._adjacency:
        return epsilon_at(g.replace_roc(), delta)
    found = max(epsilon_at(g.roc, delta), epsilon_at(g.outsider_roc(), delta))
    if isinstance(g, PrivacyProfile):
        return min(found, g.listed_epsilon(delta))
    return min(found, epsilon_of_orders(g, delta)) if isinstance(g, RenyiDP | ZeroConcentratedDP) else found


def _sgd_to_gaussian(g: DPSGD, adjacency: str | None = None) -> GaussianDP:
    """Sampling only helps, so the run is no easier to attack than full batches; far out in the tail it is no harder."""
    to = target_adjacency(g, adjacency)
    return GaussianDP(g.under(to).full_mu, to)


def _to_concentrated(g: GaussianDP | PureDP, adjacency: str | None = None) -> ZeroConcentratedDP:
    """ρ = μ²/2 or ε²/2, after two steps four times that."""
    to = target_adjacency(g, adjacency)
    size = g.mu if isinstance(g, GaussianDP) else g.epsilon
    moved = size if to == g.adjacency else 2.0 * size
    return ZeroConcentratedDP(math.nextafter(0.5 * moved * moved, math.inf) if moved > 0.0 else 0.0, to)


def _concentrated_to_itself(g: ZeroConcentratedDP, adjacency: str | None = None) -> ZeroConcentratedDP:
    to = target_adjacency(g, adjacency)
    return g if to == g.adjacency else ZeroConcentratedDP(4.0 * g.rho, to)


def _concentrated_to_renyi(g: ZeroConcentratedDP, orders: Sequence[float], adjacency: str | None = None) -> RenyiDP:
    return _concentrated_to_itself(g, adjacency).at(orders)


def epsilon_at(roc: Roc, delta: float) -> float:
    """Return the smallest ε ≥ 0 with E_{e^ε} ≤ δ in the direction of the curve."""
    slope = roc.slope_for(delta)
    if slope <= 1.0:
        return 0.0
    return math.inf if math.isinf(slope) else math.nextafter(math.log(slope), math.inf)


def target_adjacency(g: DifferentialPrivacy, wanted: str | None) -> Adjacency:
    """Return the adjacency that is asked for, where it follows: the same one, or replace after two steps.

    Of a DP-SGD run the mechanism is known, so any.
    """
    to = check_choice("adjacency", wanted or g._adjacency, ADJACENCIES)
    if isinstance(g, DPSGD) or to in (g._adjacency, "replace"):
        return cast(Adjacency, to)
    if to == "zero_out":
        raise ImplicationError(
            f"{_WORDS[g._adjacency]} DP is not turned into zero-out DP: ask for adjacency='replace'. Counterexample: a "
            "mechanism that takes the empty record for one of somebody"
        )
    raise ImplicationError(
        f"{_WORDS[g._adjacency]} DP implies no add/remove DP. Counterexample: A(D) = |D| is 0-DP where the size stays "
        "the same, and not ε-DP under add/remove for any ε < ∞"
    )


def exp(value: float) -> float:
    """e^value, infinite where that is no float."""
    return math.exp(value) if value < 709.0 else math.inf


_WORDS = {"add_remove": "add/remove", "replace": "replace-one", "zero_out": "zero-out"}
_SAMPLING = "with sample_rate=β (each record kept with probability β first): Li et al. 2013, theorem 5.10"

EDGES = (
    edge(PureDP, PureDP, f"group privacy: add/remove ε ⇒ replace 2ε; {_SAMPLING}, ε = ln(1+β(e^ε-1))", _to_pure),
    edge(PureDP, ApproxDP, "the (ε, δ) line that touches the curve (Kairouz et al. 2015)", to_approx),
    edge(ApproxDP, PureDP, "only for δ = 0", _to_pure),
    edge(
        ApproxDP,
        ApproxDP,
        f"add/remove (ε, δ) ⇒ replace (2ε, (1+e^ε)δ); {_SAMPLING}, δ = βδ; or the line that touches the curve at "
        "another δ",
        to_approx,
    ),
    edge(PureDP, GaussianDP, "Dong et al. 2019: μ = 2Φ⁻¹(e^ε/(1+e^ε))", _pure_to_gaussian),
    edge(GaussianDP, GaussianDP, "Dong et al. 2019: add/remove μ ⇒ replace 2μ", _gaussian_to_gaussian),
    edge(GaussianDP, ApproxDP, "Balle and Wang 2018, both directions", _curve_to_approx),
    edge(DPSGD, GaussianDP, "full batches are no harder to attack: μ = √T/σ, approached as FPR → 0", _sgd_to_gaussian),
    edge(DPSGD, ApproxDP, "hockey-stick dual of the composed curve, the larger of both directions", _curve_to_approx),
    edge(RenyiDP, ApproxDP, "the rates of a test are two coins: d_α ≤ ε(α) for each order", _curve_to_approx),
    edge(ZeroConcentratedDP, ApproxDP, "the rates of a test are two coins: d_α ≤ ρα for all α", _curve_to_approx),
    edge(PrivacyProfile, ApproxDP, "the line that touches the curve below all listed ones", _curve_to_approx),
    edge(TradeOff, ApproxDP, "the line that touches the curve (Dong et al. 2019)", _curve_to_approx),
    *(
        edge(source, PureDP, "only where some δ is 0, or an order infinite", _to_pure)
        for source in (RenyiDP, ZeroConcentratedDP, PrivacyProfile, TradeOff)
    ),
    edge(GaussianDP, ZeroConcentratedDP, "Bun and Steinke 2016: ρ = μ²/2", _to_concentrated),
    edge(PureDP, ZeroConcentratedDP, "Bun and Steinke 2016: ρ = ε²/2", _to_concentrated, tight=False),
    edge(
        ZeroConcentratedDP,
        ZeroConcentratedDP,
        "add/remove ρ ⇒ replace 4ρ (Bun and Steinke 2016)",
        _concentrated_to_itself,
    ),
    edge(ZeroConcentratedDP, RenyiDP, "the definition: ε(α) = ρα", _concentrated_to_renyi),
)
