"""What several certificates promise together, for releases from one drawn half of one pool.

In general practical guarantees do not compose. Those of :func:`whosin.protect` carry their route, and every route
limits the same thing: let D be uniform among the halves that hold x, x' uniform outside D and D' = D - x + x'. Then
½·E TV(A(D), A(D')) ≤ η for each of them. (Average route: that is its definition. Adjacent bounds and balls: for every
pair of halves. Moment routes: E g(‖θ - θ'‖/s) ≤ g(E(‖θ - c‖ + ‖θ' - c‖)/s) for any coupling, as g is concave, and
TV(A(D), A(D')) ≤ TV(A(D), N) + TV(N, A(D')) where a reference N is used.) For a fixed pair (D, D') total variation of
independent releases adds up at most, so the etas add up: η ≤ Σ η_j.

An estimator that is chosen after looking at earlier outputs keeps this only if its limit holds for every pair of halves
(adjacent bound, ball): given an output, the half is no longer uniform.

Gaussian noise under adjacent bounds alone is sharper: the shifts in standard deviations add up in squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whosin.errors import ImplicationError, InputTypeError
from whosin.guarantees import MIP
from whosin.guarantees.base import Promised
from whosin.guarantees.composition import sum_up
from whosin.numerics.rounding import at_most

if TYPE_CHECKING:
    from whosin.protection.certificate import Certificate

EVERY_PAIR = ("adjacent bound", "ball")


@dataclass(frozen=True, eq=False)
class JointCertificate(Promised):
    """A limit on what any attacker learns about who was drawn from several releases of one drawn half together.

    Examples
    --------
    Two means with η = 0.05 each, had they been taken of the same drawn half:

    >>> import numpy as np, whosin as wi
    >>> records = np.arange(8.0)[:, None]
    >>> first, second = (wi.protect("mean", records, eta=0.05).certificate for _ in range(2))
    >>> round(first.compose(second, same_draw=True).mip.eta, 3)
    0.1
    """

    parts: tuple[Certificate, ...]
    mip: MIP
    way: str
    """"sum", or "squares" for Gaussian noise under adjacent bounds."""

    @property
    def guarantee(self) -> MIP:
        """What the curve and every risk are read off."""
        return self.mip

    @property
    def confidence_level(self) -> float | None:
        """Probability that all sampled limits hold, by the union bound; None where nothing was sampled."""
        missed = [1.0 - part.confidence_level for part in self.parts if part.confidence_level is not None]
        return max(0.0, 1.0 - math.fsum(missed)) if missed else None

    @property
    def test_mode(self) -> bool:
        """True where a seed stood in for the secure source in any of them."""
        return any(part.test_mode for part in self.parts)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the guarantee rests on, in words."""
        own = dict.fromkeys(line for part in self.parts for line in part.assumes if "do not compose" not in line)
        return (
            *own,
            "all releases used the same drawn half of the same pool, each with noise of its own",
            "no estimator was chosen after looking at an earlier output, unless its limit is for every pair of halves",
        )

    def compose(self, other: Certificate, *, same_draw: bool, adaptive: bool = False) -> JointCertificate:
        """Return the certificate of these releases and one more."""
        return joined((*self.parts, other), same_draw, adaptive)

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        return (
            f"{len(self.parts)} releases were made from one half of the same {self.parts[0].records} records. Somebody "
            f"who knows all of them and sees every release guesses right whether a given one was drawn at most "
            f"{at_most(100.0 * (0.5 + self.mip.eta), 4)}% of the time; without looking it is 50%."
        )

    def __str__(self) -> str:
        sure = "" if self.confidence_level is None else f" with confidence {self.confidence_level:g}"
        return f"{at_most(self.mip.eta, 4)}-MIP{sure} for {len(self.parts)} releases together ({self.way})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "mip": self.mip.to_dict(),
            "way": self.way,
            "confidence_level": self.confidence_level,
            "test_mode": self.test_mode,
            "parts": [part.to_dict() for part in self.parts],
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }


def joined(parts: tuple[Certificate, ...], same_draw: bool, adaptive: bool) -> JointCertificate:
    """Return the certificate of all parts together, or say why there is none."""
    from whosin.protection.certificate import Certificate

    for name, value in (("same_draw", same_draw), ("adaptive", adaptive)):
        if not isinstance(value, bool):
            raise InputTypeError(f"{name} must be True or False, got {value!r}")
    if not all(isinstance(part, Certificate) for part in parts):
        raise InputTypeError(f"other must be a certificate of wi.protect, got {type(parts[-1]).__name__}")
    first = parts[0]
    if not same_draw:
        raise ImplicationError(
            "releases from halves that were drawn anew are not added up here: each certificate is about its own draw, "
            "and stands. Draw once (one call of protect with a list of estimators) to have a total"
        )
    if any((part.records, part.train_size) != (first.records, first.train_size) for part in parts):
        raise ImplicationError("certificates of one draw must have the same pool and the same number of drawn records")
    if 2 * first.train_size != first.records:
        raise ImplicationError(
            f"certificates add up for half of the pool, got {first.train_size} of {first.records}: at other shares "
            "the limit is on an accuracy that is no total variation. Counterexample: A(D) that tells who is out with "
            "the chance that the prior allows, twice"
        )
    if adaptive and parts[-1].route not in EVERY_PAIR:
        raise ImplicationError(
            f"an estimator that was chosen after looking at outputs needs a limit for every pair of halves "
            f"({' or '.join(EVERY_PAIR)}), got the route {parts[-1].route!r}. Counterexample: given an output the half "
            "is no longer uniform, and the next estimator may show just what is left to know"
        )
    total, way = min(0.5, sum_up(part.mip.eta for part in parts)), "sum"
    if all(part.route == "adjacent bound" and part.noise == "gaussian" for part in parts):
        squares = _by_squares([part.mip.eta for part in parts])
        total, way = (squares, "squares") if squares < total else (total, way)
    return JointCertificate(parts, MIP(total), way)


def _by_squares(etas: list[float]) -> float:
    """Φ(√Σu²/2) - ½ with η_j = Φ(u_j/2) - ½, rounded up."""
    from scipy.special import erf, erfinv

    shift = math.hypot(*(float(erfinv(min(1.0, 2.0 * eta))) * (1.0 + 1e-13) for eta in etas))
    return min(0.5, 0.5 * float(erf(shift)) * (1.0 + 1e-14))
