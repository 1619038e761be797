"""Differential privacy against membership inference: pure, approximate and Gaussian.

The attacker here is the strongest one: it knows every record but one. Its ROC is limited by
the trade-off region of Kairouz, Oh and Viswanath (2015), TPR ≤ min(e^ε·FPR + δ, 1 - e^{-ε}(1 - δ - FPR)), or for
μ-GDP by that of two unit normals μ apart (Dong, Roth and Su 2019), TPR ≤ Φ(Φ⁻¹(FPR) + μ).

``adjacency`` says what was compared: "add_remove" sets D∪{x} against D, "replace" sets D∪{x} against D∪{x'}, and
"zero_out" sets D∪{x} against D with an empty record in the place of x (a record that adds nothing). The curve is the
same; what follows from it is not (see :mod:`whosin.guarantees.implications`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from whosin import risks
from whosin.arrays import Array
from whosin.errors import ImplicationError, InputError, check_choice, check_number, check_prior, check_probability
from whosin.guarantees.base import Guarantee
from whosin.numerics.rounding import percent_up
from whosin.roc import Roc

Adjacency = Literal["add_remove", "replace", "zero_out"]
ADJACENCIES = ("add_remove", "replace", "zero_out")
WORLDS = ("independent", "fixed_size")

_LEAST = math.ulp(0.0)
"""The corner of the curve stays right of FPR = 0, where TPR is δ: no other float lies between."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)

_COMPARES = {
    "add_remove": "adjacent data sets: with the record against without it (add/remove one)",
    "replace": "adjacent data sets: the record against another one in its place (replace one, same size)",
    "zero_out": "adjacent data sets: the record against an empty one in its place, which adds nothing (same size)",
}


@dataclass(frozen=True)
class DifferentialPrivacy(Guarantee):
    """What the DP guarantees share: an adjacency, and a posterior that depends on the world."""

    @property
    def _adjacency(self) -> str:
        return str(getattr(self, "adjacency", "add_remove"))

    def _set(self, **values: Any) -> None:
        super()._set(**values, adjacency=check_choice("adjacency", getattr(self, "adjacency", ""), ADJACENCIES))

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        return (
            _COMPARES[self._adjacency],
            "the attacker knows every other record and the mechanism; the mechanism's randomness is not known",
            "one record is one person, and the guarantee covers everything that was released",
        )

    @property
    def _attacker(self) -> str:
        return "Even an attacker who knows everybody else in the data"

    def posterior(self, prior: float, world: str = "independent") -> tuple[float, float]:
        """Return the range of P(record in D | any output).

        Parameters
        ----------
        prior : float
            Probability that the record is in, before the output is seen.
        world : {"independent", "fixed_size"}
            "independent": records are in or out independently of one another (Thudi et al. 2022, theorem 1). It
            takes add/remove DP, or zero-out DP where an absent record leaves an empty one; from replace-one DP nothing
            follows, for the mere size is 0-DP and tells all.
            "fixed_size": data sets of one known size (Izzo et al. 2022, proposition 6; Li et al. 2013, theorem
            4.8). It takes replace-one DP; from add/remove and zero-out two steps are paid.
        """
        prior = check_prior(prior)
        if check_choice("world", world, WORLDS) == "independent":
            if self._adjacency == "replace":
                raise ImplicationError(
                    "replace-one DP bounds no posterior under independent inclusion: A(D) = |D| is 0-DP under replace "
                    "and reveals the membership of the only uncertain record. Use adjacency='add_remove', or ask for "
                    "posterior(prior, world='fixed_size')"
                )
            low, high = self.log_likelihood_ratios()
        else:
            low, high = self._replace_log_ratios()
        return risks.posterior_at(prior, low), risks.posterior_at(prior, high)

    def _replace_log_ratios(self) -> tuple[float, float]:
        """Extreme log likelihood ratios between data sets that differ by one replacement, which goes both ways."""
        low, high = self.log_likelihood_ratios()
        widest = max(high, -low) if self._adjacency == "replace" else high - low
        return -widest, widest

    def outsider_roc(self) -> Roc:
        """Return the limit on finding those who are *not* in the data: the roles of "in" and "out" swapped.

        The mirror image of :attr:`roc`; most guarantees hold in both directions, and their curve is its own mirror
        image.
        """
        return self.roc

    def replace_roc(self) -> Roc:
        """Return the limit on the ROC between data sets that differ by one replacement.

        From zero-out it takes two steps, x to nobody to x': the member curve after the outsider's (for a symmetric
        curve R this is R∘R). From add/remove the way over both, D∪{x} to D∪{x, x'} to D∪{x'}, is open as well: the
        lower of the two.
        """
        if self._adjacency == "replace":
            return self.roc
        member, outsider = self.roc, self.outsider_roc()
        through_neither = member.compose(outsider)
        if member is outsider or self._adjacency == "zero_out":
            return through_neither
        return through_neither.lower_of(outsider.compose(member))


@dataclass(frozen=True)
class ApproxDP(DifferentialPrivacy):
    """(ε, δ)-differential privacy: P(A(D) ∈ S) ≤ e^ε P(A(D') ∈ S) + δ for adjacent D, D' and every S.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.ApproxDP(1.0, 1e-5).tpr_at(0.01), 4)
    0.0272
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        self._set(
            epsilon=check_number("epsilon", self.epsilon, low=0.0),
            delta=check_probability("delta", self.delta),
        )

    def _build_roc(self) -> Roc:
        return close_pair_roc(self.epsilon, self.delta)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR: (e^ε - 1 + 2δ)/(e^ε + 1) (Humphries et al. 2020), tight."""
        return close_pair_advantage(self.epsilon, self.delta)

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return (-ε, ε) for δ = 0; for δ > 0 no output's likelihood ratio is bounded."""
        return (-self.epsilon, self.epsilon) if self.delta == 0.0 else (-math.inf, math.inf)

    def explain(self, prior: float = 0.5) -> str:
        """Return a paragraph for a reader who is no expert, and what a run's own parameters would say instead."""
        mu = gaussian_mu(self.epsilon, self.delta)
        if mu is None:
            return super().explain(prior)
        return (
            f"{super().explain(prior)} This is the worst that one (ε, δ) allows. Gaussian noise with exactly this "
            f"(ε, δ) allows {percent_up(GaussianDP(mu).accuracy(prior))} instead, and a training run with DP-SGD often "
            "less: give the run's own numbers (noise multiplier, sample rate, steps) instead of its (ε, δ)."
        )


@dataclass(frozen=True)
class PureDP(DifferentialPrivacy):
    """ε-differential privacy: P(A(D) ∈ S) ≤ e^ε P(A(D') ∈ S) for adjacent D, D' and every S.

    Examples
    --------
    >>> import whosin as wi
    >>> promise = wi.PureDP(1.0)
    >>> round(promise.advantage, 4), round(promise.accuracy(0.5), 4)
    (0.4621, 0.7311)
    """

    epsilon: float
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        self._set(epsilon=check_number("epsilon", self.epsilon, low=0.0))

    @property
    def delta(self) -> float:
        """Zero: pure DP is (ε, 0)-DP."""
        return 0.0

    def _build_roc(self) -> Roc:
        return close_pair_roc(self.epsilon, 0.0)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR: tanh(ε/2), tight."""
        return close_pair_advantage(self.epsilon, 0.0)

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return (-ε, ε)."""
        return -self.epsilon, self.epsilon


@dataclass(frozen=True)
class GaussianDP(DifferentialPrivacy):
    """μ-Gaussian differential privacy: no easier to attack than telling N(μ, 1) from N(0, 1).

    Examples
    --------
    >>> import whosin as wi
    >>> promise = wi.GaussianDP(1.0)
    >>> round(promise.advantage, 4)
    0.3829
    >>> round(promise.implies(wi.ApproxDP, delta=1e-5).epsilon, 4)
    4.3772
    """

    mu: float
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        self._set(mu=check_number("mu", self.mu, low=0.0))

    def _build_roc(self) -> Roc:
        return shifted_normal_roc(self.mu)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR: 2Φ(μ/2) - 1 (Mahloujifar et al. 2022), tight."""
        return math.erf(self.mu / math.sqrt(8.0))

    def replace_roc(self) -> Roc:
        """Return the limit between data sets that differ by one replacement: from add/remove, 2μ."""
        return self.roc if self.adjacency == "replace" else shifted_normal_roc(2.0 * self.mu)


def dp_of(epsilon: float, delta: float | None, adjacency: Adjacency = "add_remove") -> PureDP | ApproxDP:
    """Return (ε, δ)-DP, as pure DP where δ is 0 or not given."""
    return ApproxDP(epsilon, delta, adjacency) if delta else PureDP(epsilon, adjacency)


def close_pair_roc(epsilon: float, delta: float) -> Roc:
    """Return the curve of all pairs that are (ε, δ)-close in both directions (Kairouz et al. 2015)."""
    if math.isinf(epsilon) or delta >= 1.0:
        return Roc([0.0], [1.0])
    shrink = math.exp(-epsilon)
    corner_fpr = max((1.0 - delta) * shrink / (1.0 + shrink), _LEAST)
    corner_tpr = delta + (1.0 - delta) / (1.0 + shrink)
    slopes = (0.0, math.inf) if delta > 0.0 else None
    return Roc([0.0, corner_fpr, 1.0 - delta], [delta, corner_tpr, 1.0], slopes=slopes)


def close_pair_advantage(epsilon: float, delta: float) -> float:
    """Return (e^ε - 1 + 2δ)/(e^ε + 1) without cancellation or overflow."""
    shrink = math.exp(-epsilon)
    return min(1.0, math.tanh(epsilon / 2.0) + 2.0 * delta * shrink / (1.0 + shrink))


def shifted_normal_roc(mu: float) -> Roc:
    """Return the curve of N(μ, 1) against N(0, 1): TPR = Φ(Φ⁻¹(FPR) + μ)."""
    if mu == 0.0:
        return Roc([0.0], [0.0])
    if math.isinf(mu):
        return Roc([0.0], [1.0])
    from scipy.special import ndtr, ndtri

    def moved(rates: Array, by: float, outwards: float) -> Array:
        places = np.asarray(ndtri(rates))
        with np.errstate(invalid="ignore"):
            room = np.nan_to_num(2.0**-50 * (1.0 + np.minimum(places, 0.0) ** 2), posinf=0.0)
        return np.asarray(np.minimum(ndtr(places + by) * (1.0 + outwards * room), 1.0))

    def tpr(fpr: Array) -> Array:
        return moved(fpr, mu, 1.0)

    def fpr(tpr: Array) -> Array:
        return moved(tpr, -mu, -1.0)

    def divergence(gamma: float) -> float:
        return shifted_normal_divergence(mu, gamma)

    return Roc.from_function(tpr, fpr=fpr, divergence=divergence, mirrored=divergence, slopes=(0.0, math.inf))


def shifted_normal_divergence(mu: float, gamma: float) -> float:
    """Return E_γ(N(μ,1)‖N(0,1)) = Φ(μ/2 - ln γ/μ) - γ·Φ(-μ/2 - ln γ/μ), never below it."""
    if gamma <= 0.0:
        return 1.0
    return float(shifted_normal_excess(mu, np.array([math.log(gamma)]))[0])


def shifted_normal_excess(mu: float, losses: Array) -> Array:
    """Return E_{e^t}(N(μ,1)‖N(0,1)) for an array of t, rounded up by what the arithmetic can take away.

    With a = t/μ - μ/2, b = a + μ and Mills' ratio R = (1-Φ)/φ it is φ(a)·(R(a) - R(b)) for t ≥ 0, because
    e^t·φ(b) = φ(a). For small μ the difference would cancel; as R' = zR - 1 it is the integral of 1 - zR from a to b,
    taken at five Gauss-Legendre points up to μ = 0.1 (relative error below 1e-17: the integrand is
    ∫ s·e^{-zs-s²/2} ds over s > 0, whose tenth derivative is at most 4600 there).
    For t < 0 the curve is its own mirror image: E_γ = 1 - γ + γ·E_{1/γ}.
    """
    from scipy.special import erfcx, ndtr

    def mills(z: Array) -> Array:
        return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(z / math.sqrt(2.0)))

    with np.errstate(over="ignore"):
        a = np.minimum(np.abs(losses) / mu - mu / 2.0, 100.0)
        density = np.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    if mu <= 0.1:
        points = ((a + 0.5 * mu * (1.0 + node), weight) for node, weight in zip(_NODES, _WEIGHTS, strict=True))
        excess = 0.5 * mu * density * sum(weight * (1.0 - z * mills(z)) for z, weight in points)
    else:
        first = np.where(a > 0.0, density * mills(np.maximum(a, 0.0)), ndtr(-a))
        excess = first - density * mills(a + mu)
    tail, eps = np.maximum(a, 0.0), np.finfo(np.float64).eps
    rounding = eps * (8.0 + 4.0 * (1.0 + tail) * (1.0 + tail + mu + 2.0 / max(mu, 0.1)))
    excess = np.clip(excess * (1.0 + rounding) + _LEAST, 0.0, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        mirrored = np.exp(np.minimum(losses, 0.0)) * excess - np.expm1(np.minimum(losses, 0.0))
    return np.asarray(np.minimum(np.where(losses < 0.0, mirrored * (1.0 + 4.0 * eps), excess), 1.0))


def shifted_normal_epsilon(mu: float, delta: float) -> float:
    """Return the smallest ε ≥ 0 with E_{e^ε}(N(μ,1)‖N(0,1)) ≤ δ, never below it; infinite for δ = 0 < μ.

    Searched in ε itself: for μ down to the smallest floats e^ε is 1 and has no digits left. Cost: some 20 evaluations.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    if mu == 0.0 or delta >= 1.0:
        return 0.0
    if math.isinf(mu) or delta == 0.0:
        return math.inf

    def over(steps: float) -> float:
        return math.log(float(shifted_normal_excess(mu, np.array([steps * mu]))[0])) - math.log(delta)

    if over(0.0) <= 0.0:
        return 0.0
    lowest, highest = max(0.0, mu / 2.0 - 40.0), mu / 2.0 - float(ndtri(delta)) + 1.0  # Φ(40) is 1, and E ≤ Φ(-a)
    between = over(lowest) > 0.0 > over(highest)  # not where μ has no digits left for either
    steps = float(brentq(over, lowest, highest, xtol=1e-12, rtol=1e-14)) if between else highest
    epsilon, step = mu * steps, 1e-15
    while float(shifted_normal_excess(mu, np.array([epsilon]))[0]) > delta:
        epsilon = math.nextafter(epsilon * (1.0 + step), math.inf)
        step *= 2.0
    return epsilon


def gaussian_mu(epsilon: float, delta: float) -> float | None:
    """Return μ of the Gaussian mechanism that is exactly (ε, δ)-DP (Balle and Wang 2018), or None where there is none.

    Where it is below e^-709, that.
    """
    if not 0.0 < delta < 1.0 or math.isinf(epsilon):
        return None
    from scipy.optimize import brentq

    def excess(log_mu: float) -> float:
        return shifted_normal_divergence(math.exp(log_mu), math.exp(min(epsilon, 700.0))) - delta

    if excess(-709.0) >= 0.0:
        return math.exp(-709.0)
    return math.exp(float(brentq(excess, -709.0, 8.0, xtol=1e-14, maxiter=1000)))


def check_delta(delta: float | None, guarantee: Guarantee) -> float:
    """Return δ, or say that this guarantee has a whole curve of (ε, δ) and takes one to be chosen."""
    if delta is None:
        raise InputError(f"delta is needed: {type(guarantee).__name__} gives a curve of (ε, δ), so pass delta=")
    return check_probability("delta", delta)
