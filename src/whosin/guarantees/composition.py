"""What several releases promise together.

Differential privacy composes: whoever sees A₁(D), …, A_k(D), each with randomness of its own and each free to look at
the outputs before it, is no better off than somebody who sees independent draws from the k worst pairs. Three ways to
say so, of which the best is taken:

* the sum: (Σε, Σδ) (Dwork et al. 2006);
* Gaussian: μ = √Σμ² (Dong, Roth and Su 2019, corollary 3.3), exact for Gaussian releases;
* the product of the worst pairs (Kairouz, Oh and Viswanath 2015; Zhu, Dong and Wang 2022): each
  guarantee's curve becomes a law of the privacy loss, rounded up onto a common grid (connect the dots: Doroshenko et
  al. 2022), and the laws are convolved by FFT. The answer is never below the truth.

PMP and MIP do not compose: two releases that tell nothing each can tell all together (see :data:`NO_COMPOSITION`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from whosin.answers import card, parts
from whosin.arrays import Array
from whosin.errors import ImplicationError, InputTypeError, check_number
from whosin.guarantees import (
    DPSGD,
    MIP,
    PMP,
    ApproxDP,
    DifferentialIdentifiability,
    GaussianDP,
    Guarantee,
    MembershipPrivacy,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from whosin.guarantees.dp import DifferentialPrivacy, dp_of
from whosin.guarantees.implications.differential import epsilon_at
from whosin.guarantees.losses import deltas_of_law, joined, law_of_divergence, many_of, roc_of_law
from whosin.guarantees.renyi import renyi_at
from whosin.guarantees.steps import sampled_divergence, step_of
from whosin.numerics.rounding import at_most, float_above
from whosin.roc import Roc

Pair = tuple[Callable[[float], Any], float, float]
"""Law of the privacy loss of a worst pair, rounded up onto a grid of the given spacing; the range of finite losses."""

LEAST_DELTA = 1e-6
MOST_DIFFERENT = 64
_MOST_POINTS = 2**19
_LOST = 1e-15  # mass that counts as none
_NOTHING = 1e-9  # with less finite loss than this, the product limits nothing
_NOT_ONE = 1e-6  # a law whose masses miss 1 by more has lost them to rounding, and is not composed
_LARGEST_LOSS = 690.0  # e^690 is a float with room for a factor; larger losses count as infinite

NO_COMPOSITION = (
    "practical guarantees do not compose: of six people three are drawn; one release names the drawn three or the "
    "other three without saying which, another says whether they form a block of a balanced design. Each alone is "
    "0-PMP and 0-MIP, and together they name the three"
)


@dataclass(frozen=True)
class Composition:
    """A limit on what any attacker learns from several releases with differential privacy together.

    Examples
    --------
    >>> import whosin as wi
    >>> both = wi.ledger.compose([wi.GaussianDP(1.0), wi.GaussianDP(1.0)], delta=1e-5)
    >>> both.way, round(both.gaussian.mu, 4), round(both.epsilon, 3), round(both.advantage, 4)
    ('gaussian', 1.4142, 6.573, 0.5205)
    """

    guarantee: DifferentialPrivacy
    """The (ε, δ) of all together, pure where δ is zero."""
    advantage: float
    """Largest TPR - FPR of all together; may be lower than that of ``guarantee``."""
    sum: DifferentialPrivacy | None
    """By adding up; None where a release has a curve instead of an (ε, δ)."""
    gaussian: GaussianDP | None
    """√Σμ² where every release is Gaussian."""
    way: str
    """Which way gave ``guarantee``: "sum", "gaussian", "product of the worst pairs", "alone" or "no bound"."""
    releases: int

    @property
    def epsilon(self) -> float:
        """ε of the total, at :attr:`delta`."""
        return float(self.guarantee.epsilon)  # type: ignore[attr-defined]

    @property
    def delta(self) -> float:
        """δ of the total."""
        return float(self.guarantee.delta)  # type: ignore[attr-defined]

    @property
    def adjacency(self) -> str:
        """What is compared: "add_remove" or "replace"."""
        return str(self.guarantee.adjacency)  # type: ignore[attr-defined]

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        lines = (
            *self.guarantee.assumes,
            "every release used randomness of its own; a later one may have looked at the outputs of earlier ones",
            "every recorded guarantee is true, and every release from these people is recorded",
        )
        added = self.sum is not None and self.way == "sum" and self.advantage == self.sum.advantage
        if added or self.way in ("alone", "no bound"):
            return lines
        what = "for the advantage: " if self.way == "sum" else ""
        fixed = f"{what}the strength of each release was not chosen after looking at the outputs of earlier ones"
        return (*lines, fixed)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON (infinity as the string "inf")."""
        return parts(self, "guarantee", "advantage", "sum", "gaussian", "way", "releases")

    def __str__(self) -> str:
        count = "1 release" if self.releases == 1 else f"{self.releases} releases together"
        return (
            f"{count}: ε at most {at_most(self.epsilon, 6)} at δ = {self.delta:g} "
            f"({self.adjacency}, by {self.way}), advantage at most {at_most(self.advantage, 6)}"
        )

    def _repr_html_(self) -> str:
        return card(str(self), lists={"Assumes": self.assumes})


def why_not(guarantee: Guarantee | None) -> str | None:
    """Return why a release cannot be part of a total, or None where it can."""
    if guarantee is None:
        return "it has no guarantee: nothing limits what it reveals"
    if isinstance(guarantee, PMP | MIP):
        return NO_COMPOSITION
    try:
        _as_dp(guarantee)
    except ImplicationError as error:
        return f"no theorem for its composition is known to the library: {error}"
    return None


def _as_dp(guarantee: Guarantee) -> DifferentialPrivacy:
    if isinstance(guarantee, DifferentialPrivacy):
        return guarantee
    if isinstance(guarantee, MembershipPrivacy | DifferentialIdentifiability):
        return guarantee.implies(PureDP)
    raise ImplicationError(f"{type(guarantee).__name__} does not compose")


def compose(guarantees: Iterable[Guarantee], *, delta: float | None = None) -> Composition:
    """Return the best limit on several releases from the same people together.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        One a release. Differential privacy, or what implies it (identifiability, membership privacy of bounded worlds).
    delta : float, optional
        The δ at which ε is wanted. By default the sum of the δs, and at least 1e-6 where a release has a curve instead
        (Gaussian, DP-SGD).

    Notes
    -----
    Adjacencies are not added up as they are: where one release was compared by replacing, all are, those of add/remove
    after two steps (2ε, or their curve after its mirror image). Nothing follows for add/remove then.

    Cost: an FFT of at most half a million points for each different guarantee. Beyond 64 different ones those with an
    (ε, δ) are added up first, and beyond 64 different DP-SGD runs no limit is given.

    Raises
    ------
    ImplicationError
        Where a guarantee does not compose, with the reason.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.ledger.compose([wi.PureDP(0.5), wi.PureDP(1.0)]).guarantee
    PureDP(epsilon=1.5, adjacency='add_remove')
    """
    given = list(guarantees)
    for guarantee in given:
        if not isinstance(guarantee, Guarantee):
            raise InputTypeError(f"guarantees must be guarantees, got {guarantee!r}")
        reason = why_not(guarantee)
        if reason is not None:
            raise ImplicationError(f"{guarantee} cannot be part of a total: {reason}")
    limit = None if delta is None else check_number("delta", delta, low=0.0, high=1.0)
    return _composed(tuple(_as_dp(guarantee) for guarantee in given), limit)


@lru_cache(maxsize=64)
def _composed(given: tuple[DifferentialPrivacy, ...], delta: float | None) -> Composition:
    compared = {part._adjacency for part in given}
    adjacency = compared.pop() if len(compared) == 1 else "replace" if compared else "add_remove"
    parts = _merged(list(given), adjacency)
    added, normal = _by_sum(parts, adjacency), _by_normals(parts, adjacency)
    target = _default_delta(parts, added, adjacency) if delta is None else delta
    found: list[tuple[float, float, str]] = []
    if added is not None:
        found.append((_at(added, target), added.advantage, "sum"))
    if normal is not None:
        found.append((_at(normal, target), normal.advantage, "gaussian"))
    if normal is None and len(parts) == 1:
        way = "alone" if len(given) == 1 else "Rényi orders added up"
        found.append((_at(parts[0], target), parts[0].advantage, way))
    elif normal is None and parts:
        found += _by_product(parts, adjacency, target)
    found.append((math.inf, 1.0, "no bound"))
    epsilon, _, way = min(found, key=lambda way: way[0])
    advantage = min(1.0, *(advantage for _, advantage, _ in found))
    total = dp_of(epsilon, target, adjacency)  # type: ignore[arg-type]
    return Composition(total, advantage, added, normal, way, len(given))


def _default_delta(parts: list[DifferentialPrivacy], added: PureDP | ApproxDP | None, adjacency: str) -> float:
    if added is not None:
        return added.delta
    plain = _by_sum([part for part in parts if isinstance(part, PureDP | ApproxDP)], adjacency)
    return max(LEAST_DELTA, plain.delta if plain is not None else 0.0)


def sum_up(values: Iterable[float]) -> float:
    """Return the sum, rounded up."""
    listed = list(values)
    return (
        math.inf if any(math.isinf(value) for value in listed) else float_above(sum(map(Fraction, listed), Fraction()))
    )


def _by_sum(parts: list[DifferentialPrivacy], adjacency: str) -> PureDP | ApproxDP | None:
    plain = [part for part in parts if isinstance(part, PureDP | ApproxDP)]
    if len(plain) < len(parts):
        return None
    moved = [part.implies(ApproxDP, adjacency=adjacency) for part in plain]
    epsilon, delta = sum_up(part.epsilon for part in moved), min(1.0, sum_up(part.delta for part in moved))
    return dp_of(epsilon, delta, adjacency)  # type: ignore[arg-type]


def _mu(part: DifferentialPrivacy, adjacency: str) -> float | None:
    """μ of a Gaussian release, DP-SGD on full batches included; None for others."""
    if isinstance(part, GaussianDP):
        return part.implies(GaussianDP, adjacency=adjacency).mu
    if isinstance(part, DPSGD) and part.noise_multiplier > 0.0:
        return part.under(adjacency).mu  # type: ignore[arg-type]
    return None


def _by_normals(parts: list[DifferentialPrivacy], adjacency: str) -> GaussianDP | None:
    mus = [_mu(part, adjacency) for part in parts]
    known = [mu for mu in mus if mu is not None]
    return GaussianDP(_root_of_squares(known), adjacency) if mus and len(known) == len(mus) else None  # type: ignore[arg-type]


def _root_of_squares(mus: list[float]) -> float:
    """√Σμ², rounded up; one number stays as it is."""
    seen = [mu for mu in mus if mu > 0.0]
    if len(seen) < 2:
        return seen[0] if seen else 0.0
    return math.hypot(*seen) * (1.0 + 4e-16)


def _at(guarantee: DifferentialPrivacy, delta: float) -> float:
    """ε at δ; infinite where δ is below what the guarantee has."""
    if isinstance(guarantee, PureDP | ApproxDP):
        if delta <= guarantee.delta or math.isinf(guarantee.epsilon):
            return guarantee.epsilon if delta == guarantee.delta else math.inf
        return min(guarantee.epsilon, guarantee.implies(ApproxDP, delta=delta).epsilon)
    if guarantee.advantage == 0.0:
        return 0.0
    return math.inf if delta == 0.0 else guarantee.implies(ApproxDP, delta=delta).epsilon


# --- the product of the worst pairs -----------------------------------------------------------------------------------


def _by_product(parts: list[DifferentialPrivacy], adjacency: str, delta: float) -> list[tuple[float, float, str]]:
    """The total by the product, both ways round where some curve is not its own mirror image."""
    found = [roc_of_law(law) for law in _product_laws(parts, adjacency)]
    if not found:
        return []
    epsilon = max(epsilon_at(roc, delta) for roc in found)
    return [(epsilon, min(roc.divergence(1.0) for roc in found), "product of the worst pairs")]


def _product_laws(parts: list[DifferentialPrivacy], adjacency: str) -> list[Any]:
    """Laws of the privacy loss of all parts together: "in" against "out", then swapped; one where they are the same."""
    counts = Counter(_few([part for part in parts if _mu(part, adjacency) is None], adjacency))
    mu = _root_of_squares([mu for part in parts if (mu := _mu(part, adjacency)) is not None])
    found = []
    for mirrored in (False,) if all(_symmetric(part, adjacency) for part in counts) else (False, True):
        pairs = [(_worst_pair(part, adjacency, mirrored), count) for part, count in counts.items()]
        pairs += [(_normal_pair(mu), 1)] if mu > 0.0 else []
        ranges = [(high - low, count) for (_, low, high), count in pairs]
        if len(pairs) > MOST_DIFFERENT or not ranges or any(not math.isfinite(width) for width, _ in ranges):
            return []
        law = _convolved(pairs, _spacing(ranges))
        if law is None:
            return []
        found.append(law)
    return found


def together(parts: Iterable[DifferentialPrivacy], adjacency: str) -> DifferentialPrivacy:
    """Return the whole curve of several releases together, as one guarantee, never below the truth."""
    listed = _merged([part for part in parts if part.advantage > 0.0], adjacency)
    if len(listed) == 1:
        return listed[0]
    if not listed:
        return PureDP(0.0, adjacency)  # type: ignore[arg-type]
    normal = _by_normals(listed, adjacency)
    laws = [] if normal is not None else _product_laws(listed, adjacency)
    if normal is not None or not laws:
        return normal or PureDP(math.inf, adjacency)  # type: ignore[arg-type]
    return profile_of_laws(laws[0], laws[-1], adjacency)


def profile_of_laws(inside: Any, outside: Any, adjacency: str) -> PrivacyProfile:
    """Return the (ε, δ) of two laws of the privacy loss at a thousand ε, from 0 to where hardly any loss is larger."""
    highest = max(float(law._lower_loss + len(law._probs)) * law._discretization for law in (inside, outside))
    wide = np.linspace(0.0, max(highest, 1e-9), 4001)
    both = [deltas_of_law(law, wide) for law in (inside, outside)]
    over = np.maximum(*both) > np.maximum(both[0][-1], both[1][-1]) + 1e-16
    last = float(wide[min(int(np.flatnonzero(over)[-1]) + 1 if over.any() else 1, len(wide) - 1)])
    ends = [
        (law._lower_loss + int(np.max(np.flatnonzero(law._probs > 0.0), initial=0))) * law._discretization
        for law in (inside, outside)
    ]
    epsilons = np.unique(
        np.concatenate([np.linspace(0.0, last, 800), last * np.geomspace(1e-4, 1.0, 200), np.maximum(ends, 0.0)])
    )
    deltas = [deltas_of_law(law, epsilons).tolist() for law in (inside, outside)]
    return PrivacyProfile(epsilons.tolist(), deltas[0], adjacency, None if inside is outside else deltas[1])  # type: ignore[arg-type]


def _merged(parts: list[DifferentialPrivacy], adjacency: str) -> list[DifferentialPrivacy]:
    """The parts, with all Rényi and zero-concentrated ones added up order by order: sharper than curve by curve."""
    orders = [part for part in parts if isinstance(part, RenyiDP) and part.adjacency == adjacency]
    smooth = [part.implies(type(part), adjacency=adjacency) for part in parts if isinstance(part, ZeroConcentratedDP)]
    rest = [part for part in parts if part not in orders and not isinstance(part, ZeroConcentratedDP)]
    if not orders:
        total = ZeroConcentratedDP(sum_up(part.rho for part in smooth), adjacency)  # type: ignore[arg-type]
        return [*rest, *([total] if smooth else [])]
    known = sorted({order for part in orders for order in part.orders})
    added = [*orders, *(part.at(known) for part in smooth)]
    sums = [sum_up(renyi_at(part, order) for part in added) for order in known]
    return [*rest, RenyiDP(known, sums, adjacency)]  # type: ignore[arg-type]


def _symmetric(part: DifferentialPrivacy, adjacency: str) -> bool:
    """Whether the curve is its own mirror image."""
    if isinstance(part, DPSGD):
        return adjacency == "replace" and part.sampling != "random_allocation"
    return part._adjacency == adjacency and part.outsider_roc() is part.roc


def _few(parts: list[DifferentialPrivacy], adjacency: str) -> list[DifferentialPrivacy]:
    """The parts, with all that have an (ε, δ) added up to one where too many are different."""
    if len(set(parts)) < MOST_DIFFERENT:
        return parts
    curves = [part for part in parts if not isinstance(part, PureDP | ApproxDP)]
    added = _by_sum([part for part in parts if isinstance(part, PureDP | ApproxDP)], adjacency)
    return [*curves, *([added] if added is not None else [])]


def _spacing(ranges: list[tuple[float, int]]) -> float:
    """Grid of the losses: fine against every range and the number of releases, coarse enough for the FFT."""
    releases, widest = sum(count for _, count in ranges), max(width for width, _ in ranges)
    spread = 0.5 * math.sqrt(sum(count * width**2 for width, count in ranges))
    wanted = min(1e-3, 3e-3 / math.sqrt(releases), 1e-3 * widest)
    return max(wanted, widest / 1e5, 24.0 * spread / _MOST_POINTS, 1e-12)


def _convolved(pairs: list[tuple[Pair, int]], spacing: float) -> Any:
    """Law of the product, None where nearly all of it has infinite loss, or where a law does not sum to one.

    The rounding of the laws and of the FFTs is covered by mass at infinite loss.
    """
    total, kept = None, 1.0
    for (law, _, _), count in pairs:
        one = law(spacing)
        kept *= (1.0 - one._infinity_mass) ** count
        if kept < _NOTHING or abs(one._infinity_mass + float(one._probs.sum()) - 1.0) > _NOT_ONE:
            return None
        many = many_of(one, count)
        total = many if total is None else joined(total, many)
    assert total is not None
    certain = min(1.0, total._infinity_mass + 4e-15 * sum(count for _, count in pairs))
    return type(total)(spacing, total._lower_loss, total._probs, certain, True)


def _normal_pair(mu: float) -> Pair:
    low, high = mu * mu / 2.0 - 10.0 * mu, mu * mu / 2.0 + 10.0 * mu
    if low >= _LARGEST_LOSS:
        return _nothing_hidden()
    return _pair_of_divergence(lambda losses: sampled_divergence(1.0 / mu, 1.0, losses), low, min(high, _LARGEST_LOSS))


def _worst_pair(part: DifferentialPrivacy, adjacency: str, mirrored: bool) -> Pair:
    """The pair that no pair under this guarantee exceeds."""
    if isinstance(part, DPSGD):
        part = part.under(adjacency)  # type: ignore[arg-type]
        if part.roc.vertices is None:
            step = step_of(part.noise_multiplier, part.sample_rate, part.sampling, adjacency, mirrored)
            return _pair_of_divergence(step.divergence, step.low, min(step.high, _LARGEST_LOSS))
    if part._adjacency != adjacency:
        return _pair_of_curve(part.replace_roc())
    return _pair_of_curve(part.outsider_roc() if mirrored else part.roc)


def _pair_of_divergence(divergence: Callable[[Array], Array], low: float, high: float) -> Pair:
    return (lambda spacing: law_of_divergence(divergence, low, high, spacing)), low, high


def _pair_of_curve(roc: Roc) -> Pair:
    """The law of a piecewise-linear curve: an edge of its hull with rise p and run q is mass p at loss ln p/q.

    Each mass goes to the two points of the grid around its loss so that the run stays the same too: what connecting
    the dots gives, without differences of divergences, which would be rounding noise on a fine grid.
    """
    corners = roc.hull().vertices
    assert corners is not None
    run, rise = np.diff(corners, axis=0)[np.diff(corners[:, 1]) > 0.0].T
    with np.errstate(over="ignore"):
        losses = np.log(rise / run)
    # Upwards by more than the quotient and the logarithm can have lost: a loss that is too small is a false promise.
    losses = np.maximum(losses + 2.0**-50 * (1.0 + np.abs(losses)), -_LARGEST_LOSS)
    finite = losses <= _LARGEST_LOSS
    certain = float(corners[0, 1] + rise[~finite].sum())
    losses, rise = losses[finite], rise[finite]
    if certain >= 1.0 - _LOST or not losses.size:
        return _nothing_hidden()

    def law(spacing: float) -> Any:
        from dp_accounting.pld import pld_pmf

        below = np.floor(losses / spacing)
        share = np.clip(np.expm1(below * spacing - losses) / math.expm1(-spacing), 0.0, 1.0)
        cells = (below - below.min()).astype(np.intp)
        masses = np.bincount(cells, rise * (1.0 - share), cells.max() + 2)
        masses[1:] += np.bincount(cells, rise * share)
        return pld_pmf.DensePLDPmf(spacing, int(below.min()), masses, certain, True)

    return law, float(losses.min()), float(losses.max())


def _nothing_hidden() -> Pair:
    """A pair whose range has no end: no product is formed."""
    return (lambda spacing: None), 0.0, math.inf
