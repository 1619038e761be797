"""To and between the practical notions: PMP and MIP, where the data set is a uniform subset of a pool."""

from __future__ import annotations

from fractions import Fraction

from whosin.errors import ImplicationError, check_prior
from whosin.guarantees.close_pairs import close_epsilon, close_excess
from whosin.guarantees.dp import ApproxDP, DifferentialPrivacy, GaussianDP, PureDP, check_delta
from whosin.guarantees.implications.differential import curve_epsilon, step_epsilon
from whosin.guarantees.implications.graph import edge
from whosin.guarantees.mip import MIP
from whosin.guarantees.practical import PMP
from whosin.guarantees.profile import PrivacyProfile, TradeOff
from whosin.guarantees.renyi import RenyiDP, ZeroConcentratedDP
from whosin.guarantees.sgd import DPSGD
from whosin.numerics.rounding import float_above
from whosin.roc import Roc


def _dp_to_pmp(g: DifferentialPrivacy, delta: float | None = None, train_fraction: float = 0.5) -> PMP:
    if isinstance(g, PureDP | ApproxDP) and (delta is None or (delta == g.delta and g.adjacency == "replace")):
        epsilon, delta = step_epsilon(g, g.epsilon, g.delta, "replace", None)
    else:
        delta = check_delta(delta, g)
        if isinstance(g, PureDP | ApproxDP):
            epsilon = close_epsilon(g.epsilon, g.delta, delta, g.adjacency != "replace")
        else:
            epsilon = curve_epsilon(g, delta, "replace")
    return PMP(epsilon, delta, train_fraction)


def _dp_to_mip(g: DifferentialPrivacy, train_fraction: float = 0.5) -> MIP:
    q = check_prior(train_fraction, "train_fraction")
    if isinstance(g, PureDP | ApproxDP):
        return MIP(close_excess(g.epsilon, g.delta, g.adjacency != "replace", q), q)
    found = mip_of(g.replace_roc(), q)  # its own mirror image, so it serves both sides of q = 1/2
    if not isinstance(g, DPSGD):
        return found
    drawn = float_above(min(Fraction(q), 1 - Fraction(q)) * Fraction(g.drawn))
    return MIP(min(found.eta, drawn, mip_of(g.implies(GaussianDP, adjacency="replace").roc, q).eta), q)


def mip_of(roc: Roc, q: float) -> MIP:
    """Return η-MIP from the limit on telling the rarer of "in" and "out" from the other, rounded up.

    η is the largest r·TPR - (1-r)·FPR, r the rarer share: by corners exactly, of a smooth curve at a γ rounded down.
    """
    rarer = min(Fraction(q), 1 - Fraction(q))
    if roc.vertices is not None:
        excess = roc.gain(rarer, 1 - rarer)
    else:
        excess = float(rarer) * roc.divergence(-float_above(-(1 - rarer) / rarer)) * (1.0 + 2.0**-51)
    return MIP(min(excess, float_above(rarer)), q)


def _mip_to_mip(g: MIP, train_fraction: float | None = None) -> MIP:
    if train_fraction is not None and train_fraction != g.train_fraction:
        raise ImplicationError(
            f"a MIP guarantee at train fraction {g.train_fraction:g} says nothing about {train_fraction!r}. "
            "Counterexample: release D, unless it is that share of the pool, then nothing"
        )
    return g


def _pmp_to_pmp(g: PMP, delta: float | None = None) -> PMP:
    if delta is None or delta == g.delta:
        return g
    delta = check_delta(delta, g)
    return PMP(close_epsilon(g.epsilon, g.delta, delta, False), delta, g.train_fraction, g.uniform)


def pmp_to_mip(g: PMP, train_fraction: float | None = None) -> MIP:
    """Read η off the curve at the one train fraction that the guarantee is about."""
    if not g.uniform:
        raise ImplicationError(
            "a PMP guarantee for a draw with unequal chances gives no MIP, which is about a uniform draw. "
            "Counterexample: nothing is released, and a record that comes nine times in ten is guessed right as often"
        )
    if train_fraction is not None and train_fraction != g.train_fraction:
        raise ImplicationError(
            f"a PMP guarantee at train fraction {g.train_fraction:g} says nothing about train fraction "
            f"{train_fraction!r}: it is about one way of drawing the data set. Counterexample: release D, unless it is "
            "that share of the pool, then nothing"
        )
    return MIP(close_excess(g.epsilon, g.delta, False, g.train_fraction), g.train_fraction)


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


HALF = "the data set is a uniform subset of the pool, of the stated share"
_COUPLING = "Lowy et al. 2024, proposition 5; Izzo et al. 2022, lemma 12 (adjacent coupling)"
_TWO_STEPS = "from add/remove and zero-out two steps are paid: the member curve after the outsider's"
_CURVES = (PureDP, ApproxDP, GaussianDP, DPSGD, RenyiDP, ZeroConcentratedDP, PrivacyProfile, TradeOff)
_LOOSE = (DPSGD, ZeroConcentratedDP)

EDGES = (
    *(
        edge(
            source,
            PMP,
            _COUPLING,
            _dp_to_pmp,
            HALF,
            _TWO_STEPS,
            tight=source not in _LOOSE,
            corrected=source is ApproxDP,
        )
        for source in _CURVES
    ),
    *(
        edge(
            source,
            MIP,
            "Izzo et al. 2022, theorem 4, for every train fraction: "
            "η = max(mδ, δ+(1-δ)/(1+e^{-ε}) - max(q,1-q)), m = min(q,1-q); add/remove: η = (1-e^{-ε})/2 at 1/2",
            _dp_to_mip,
            HALF,
            _TWO_STEPS,
            tight=source not in _LOOSE,
            corrected=True,
        )
        for source in _CURVES
    ),
    edge(MIP, MIP, "the same statement at the same train fraction", _mip_to_mip, HALF),
    edge(PMP, PMP, "the (ε, δ) line that touches the curve at another δ", _pmp_to_pmp, HALF),
    edge(PMP, MIP, "Lowy et al. 2024, lemma 13, tightened: η = δ+(1-δ)/(1+e^{-ε})-½", pmp_to_mip, HALF, corrected=True),
    edge(MIP, PMP, "η-MIP ⇔ (0, 2η)-PMP at train fraction 1/2: accuracy = ½ + TV/2", _mip_to_pmp, HALF),
)
