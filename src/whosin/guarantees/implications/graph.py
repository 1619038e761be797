"""What a theorem is in the graph, and where none leads: the counterexamples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from whosin.errors import ImplicationError
from whosin.guarantees.base import Guarantee

FORMS = ("RenyiDP", "ZeroConcentratedDP", "PrivacyProfile", "TradeOff")
"""How accountants state differential privacy: whole curves."""


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


def edge(
    source: type[Guarantee],
    target: type[Guarantee],
    theorem: str,
    derive: Callable[..., Guarantee],
    *assumes: str,
    tight: bool = True,
    corrected: bool = False,
) -> Edge:
    """Return an edge that is named after its ends."""
    name = f"{source.__name__} → {target.__name__}"
    return Edge(name, source.__name__, target.__name__, theorem, assumes, tight, corrected, derive)


MOD_SUM = "A(D) = sum of D mod 6 on {0..5}, |D| = 3: ln 2-PMP, accuracy 3/5, and deterministic (Lowy et al., prop. 5)"
NULL_REVEAL = "an output of probability C(n, n/2)⁻¹ that names the whole data set (Izzo et al. 2022, theorem 5)"
SIZE = "A(D) = |D| is 0-PMP (and 0-MIP) in fixed-size worlds and reveals the only uncertain record elsewhere"
UNBOUNDED = "Gaussian noise: the posterior goes to 1 in the tail (Thudi et al. 2022, section 5.2)"
REVEAL = "reveal the record with probability δ, otherwise nothing: (0, δ)-DP, and posterior 1 when it happens"
RESPONSE = "randomised response keeps ε-DP and is no training run"
COIN = "a coin that is right about the record with the rates of one corner of the limit, and keeps the limit"
KMAX = "k-Max with the empty set sent to rank 1: γ = (2^k-1)/(2^k-2) under D_N, yet some outputs have ratio 0"

NO_EDGES: tuple[NoEdge, ...] = (
    *(
        NoEdge("PMP", t, "an attacker who knows the others may still win", MOD_SUM)
        for t in ("PureDP", "ApproxDP", "GaussianDP", "DPSGD")
    ),
    *(
        NoEdge("MIP", t, "a limit on the average leaves rare outputs free", NULL_REVEAL)
        for t in ("PureDP", "ApproxDP", "GaussianDP", "DPSGD")
    ),
    *(
        NoEdge(source, "MembershipPrivacy", "it is about a uniform subset of one size, not about other priors", SIZE)
        for source in ("PMP", "MIP")
    ),
    *(
        NoEdge(source, "DifferentialIdentifiability", "the attacker there knows all other records", MOD_SUM)
        for source in ("PMP", "MIP")
    ),
    *(
        NoEdge(source, target, "its likelihood ratio has no bound, so no posterior below 1 follows", example)
        for source, example in (("ApproxDP", REVEAL), *((name, UNBOUNDED) for name in ("GaussianDP", "DPSGD", *FORMS)))
        for target in ("MembershipPrivacy", "DifferentialIdentifiability", "PureDP")
    ),
    *(
        NoEdge(source, "GaussianDP", "a limit of this form may lie above every Gaussian curve", COIN)
        for source in FORMS
    ),
    *(
        NoEdge(source, "DPSGD", "DPSGD names one mechanism, and a guarantee does not tell which one was run", RESPONSE)
        for source in ("PureDP", "ApproxDP", "GaussianDP", "DifferentialIdentifiability", *FORMS)
    ),
    NoEdge("ApproxDP", "GaussianDP", "a Gaussian curve starts at TPR 0, an (ε, δ) curve at δ", REVEAL),
    *(
        NoEdge("MembershipPrivacy", target, "either side alone leaves the other ratio unbounded", KMAX)
        for target in ("PureDP", "ApproxDP", "GaussianDP", "DPSGD", "PMP", "MIP", "DifferentialIdentifiability")
    ),
)


def no(source: str, target: str) -> ImplicationError:
    """Return the error that names the counterexample."""
    gap = next(gap for gap in NO_EDGES if (gap.source, gap.target) == (source, target))
    return ImplicationError(f"{source} does not imply {target}: {gap.reason}. Counterexample: {gap.counterexample}")
