"""Calibration: from a tolerable risk to the parameters that keep it.

Every function takes exactly one target and returns a guarantee whose own risk, evaluated, is at or below that target:
the search ends on the safe side. The parameter is the largest (or for noise the smallest) that does, up to the stated
tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any, TypeVar

from whosin import risks
from whosin.errors import (
    CalibrationError,
    InputTypeError,
    check_number,
    check_prior,
    check_probability,
    check_whole,
)
from whosin.guarantees import DPSGD, MIP, ApproxDP, GaussianDP, Guarantee, PureDP, RenyiDP, ZeroConcentratedDP
from whosin.guarantees.dp import dp_of
from whosin.guarantees.implications.differential import epsilon_at
from whosin.guarantees.sgd import MOST_STEPS, rate_and_steps, run_roc
from whosin.numerics.gaussian_noise import noise_for
from whosin.numerics.roots import largest_holding, smallest_below

if TYPE_CHECKING:
    from whosin.roc import Roc

__all__ = ["dpsgd", "epsilon", "gaussian_noise", "mip", "rdp", "sampling_rate", "zcdp"]

_NOISE_TOLERANCE = 1e-4
_CURVE_TOLERANCE = 1e-6
_COARSER = 8.0

_ROUNDING = 4.0 * math.ulp(1.0)
"""Risks are computed to within this relative error; a search leaves it as room."""


def epsilon(
    *,
    accuracy: float | None = None,
    advantage: float | None = None,
    posterior: float | None = None,
    tpr_at: tuple[float, float] | None = None,
    prior: float = 0.5,
    delta: float = 0.0,
) -> PureDP | ApproxDP:
    """Return the weakest DP guarantee, the largest ε, that keeps the target risk.

    Parameters
    ----------
    accuracy, advantage, posterior : float, optional
        The largest tolerable accuracy at ``prior``, TPR - FPR, or belief in membership after any output.
    tpr_at : (tpr, fpr), optional
        The largest tolerable TPR and the FPR at which it counts.
    prior : float, default 0.5
        Probability that the record is in.
    delta : float, default 0
        δ of the guarantee; PureDP is returned for 0, ApproxDP otherwise.

    Raises
    ------
    TypeError
        Unless exactly one target is given.
    CalibrationError
        Where even ε = 0 exceeds the target, or δ > 0 leaves the posterior without a limit.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.calibrate.epsilon(accuracy=0.6)
    PureDP(epsilon=0.405465108108..., adjacency='add_remove')
    """
    target = _one_target(accuracy=accuracy, advantage=advantage, posterior=posterior, tpr_at=tpr_at)
    prior, delta = check_prior(prior), check_probability("delta", delta)
    if target.name == "posterior" and delta > 0.0:
        raise CalibrationError(
            f"posterior={target.limit:g} cannot be reached with delta={delta:g}: with δ > 0 no limit below 1 on the "
            "belief after the output follows; use delta=0, or another target"
        )

    def make(value: float) -> PureDP | ApproxDP:
        return dp_of(value, delta)

    def holds(value: float) -> bool:
        return target.kept(target.of(make(value), prior), least)

    least = target.of(make(0.0), prior)
    _check_reachable(target, least, f"ε = 0 with delta={delta:g} at prior {prior:g}")
    if holds(math.inf):
        return make(math.inf)
    return make(largest_holding(holds, 0.0, 800.0, tolerance=0.0))


def mip(
    *,
    accuracy: float | None = None,
    advantage: float | None = None,
    tpr_at: tuple[float, float] | None = None,
    train_fraction: float = 0.5,
) -> MIP:
    """Return the weakest η-MIP guarantee, the largest η, that keeps the target risk.

    The accuracy is the one at the prior of the definition, ``train_fraction``.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.calibrate.mip(accuracy=0.6).eta, 6)
    0.1
    """
    target = _one_target(accuracy=accuracy, advantage=advantage, tpr_at=tpr_at)
    q = check_prior(train_fraction, "train_fraction")

    def holds(eta: float) -> bool:
        return target.kept(target.of(MIP(eta, q), q), least)

    least = target.of(MIP(0.0, q), q)
    _check_reachable(target, least, f"η = 0 at train fraction {q:g}")
    return MIP(largest_holding(holds, 0.0, min(q, 1.0 - q), tolerance=0.0), q)


def zcdp(
    *,
    accuracy: float | None = None,
    advantage: float | None = None,
    tpr_at: tuple[float, float] | None = None,
    prior: float = 0.5,
) -> ZeroConcentratedDP:
    """Return the weakest zero-concentrated DP, the largest ρ, that keeps the target risk.

    Parameters
    ----------
    accuracy, advantage, tpr_at : optional
        The target, as for :func:`epsilon`. A posterior is none: no limit below 1 on it follows from any ρ > 0.
    prior : float, default 0.5
        Probability that the record is in, for ``accuracy``.

    Notes
    -----
    At most a millionth below the largest ρ. Cost: about ten curves, a few seconds.

    Examples
    --------
    >>> import whosin as wi
    >>> promise = wi.calibrate.zcdp(advantage=0.1)
    >>> round(promise.rho, 4), promise.advantage <= 0.1
    (0.0201, True)
    """
    target = _one_target(accuracy=accuracy, advantage=advantage, tpr_at=tpr_at)
    return _weakest(ZeroConcentratedDP, target, check_prior(prior), lambda rho: rho)


def rdp(
    order: float,
    *,
    accuracy: float | None = None,
    advantage: float | None = None,
    posterior: float | None = None,
    tpr_at: tuple[float, float] | None = None,
    prior: float = 0.5,
) -> RenyiDP:
    """Return the weakest Rényi DP at one order, the largest ε(α), that keeps the target risk.

    Parameters
    ----------
    order : float
        α above 1; infinity is pure differential privacy.
    accuracy, advantage, posterior, tpr_at : optional
        The target, as for :func:`epsilon`. A posterior takes an infinite order: no other limits it.
    prior : float, default 0.5
        Probability that the record is in.

    Notes
    -----
    At most a millionth below the largest ε. One order says less than a whole curve: what keeps the target at this
    order may keep it with a larger ε if other orders are known too.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.calibrate.rdp(8.0, advantage=0.1).advantage <= 0.1
    True
    """
    order = check_number("order", order, low=1.0, open_low=True)
    target = _one_target(accuracy=accuracy, advantage=advantage, posterior=posterior, tpr_at=tpr_at)
    if math.isinf(order):
        pure = epsilon(accuracy=accuracy, advantage=advantage, posterior=posterior, tpr_at=tpr_at, prior=prior)
        return RenyiDP([order], [pure.epsilon])
    if target.name == "posterior":
        raise CalibrationError(
            f"posterior={target.limit:g} cannot be reached with order={order:g}: no limit below 1 on the belief after "
            "the output follows from it; use order=inf, or another target"
        )
    return _weakest(lambda size: RenyiDP([order], [size]), target, check_prior(prior), lambda rho: rho * order)


def _weakest(
    make: Callable[[float], _Curve], target: _Target, prior: float, size_of: Callable[[float], float]
) -> _Curve:
    """The guarantee of the largest size that keeps the target, from the Gaussian of ρ on; sizes grow with risks."""
    if target.of(make(math.inf), prior) <= target.limit:
        return make(math.inf)
    blind = target.blind(prior)
    _check_reachable(target, blind, f"no release at all, at prior {prior:g}")
    if target.limit == blind:
        return make(0.0)
    guess = 1.0 / size_of(0.5 * _gaussian_mu(target, prior) ** 2)
    small = smallest_below(
        lambda inverse: target.of(make(1.0 / inverse), prior) - blind,
        target.limit - blind,
        guess,
        tolerance=_CURVE_TOLERANCE,
        slope=-0.5,
    )
    while target.of(make(1.0 / small), prior) > target.limit:
        small *= 1.0 + 0.1 * _CURVE_TOLERANCE
    return make(1.0 / small)


def gaussian_noise(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least standard deviation with which Gaussian noise on a query is (ε, δ)-DP, rounded up.

    Balle and Wang 2018, theorem 8, the analytic Gaussian mechanism: exact, where the classical formula is loose and
    holds for ε < 1 only. ``sensitivity`` is the largest ℓ2 change of the query between adjacent data sets.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.calibrate.gaussian_noise(1.0, 1e-5, sensitivity=1.0), 3)
    3.731
    """
    epsilon = check_number("epsilon", epsilon, low=0.0, open_high=True)
    delta = check_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    return noise_for(epsilon, delta, check_number("sensitivity", sensitivity, low=0.0, open_high=True))


def sampling_rate(epsilon: float, *, posterior: float) -> float:
    """Return the largest share of records to keep so that ε-DP training bounds the belief in membership.

    Thudi et al. 2022, section 4.2: keep each record with probability T, then train with ε-DP (add/remove); the belief
    that a record was used stays below 1/(1 + e^{-ε}(1-T)/T), whatever the law of the data before. Rounded down.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.calibrate.sampling_rate(1.0, posterior=0.1), 4)
    0.0393
    """
    epsilon = check_number("epsilon", epsilon, low=0.0)
    limit = check_number("posterior", posterior, low=0.0, high=1.0, open_low=True)
    if limit == 1.0 or epsilon == 0.0:
        return limit
    with localcontext(Context(prec=60)):
        odds = Decimal(limit) / (1 - Decimal(limit)) * Decimal(-epsilon).exp() * (1 - Decimal("1e-40"))
        share = odds / (1 + odds)
        rate = float(share)
        rate = rate if Decimal(rate) <= share else math.nextafter(rate, 0.0)
    rate = _reported_below(rate, epsilon, limit)
    if rate <= 0.0:
        raise CalibrationError(f"posterior={limit:g} cannot be reached with epsilon={epsilon:g} by keeping any record")
    return rate


def _reported_below(rate: float, epsilon: float, limit: float) -> float:
    """Lower a rate that holds in exact arithmetic until the posterior in floats does not exceed the limit either.

    At most some thousand steps of the last digit: where the posterior is almost 1, no float beside it is much nearer.
    """
    lower = rate
    for _ in range(4096):
        if lower <= 0.0 or PureDP(epsilon).posterior(lower)[1] <= limit:
            return lower
        lower = math.nextafter(lower, 0.0)
    return rate


def dpsgd(
    sample_rate: float | None = None,
    steps: int | None = None,
    *,
    accuracy: float | None = None,
    advantage: float | None = None,
    tpr_at: tuple[float, float] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    prior: float = 0.5,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    epochs: float | None = None,
    sampling: str = "poisson",
    adjacency: str = "add_remove",
) -> DPSGD:
    """Return the DP-SGD run with the smallest noise multiplier that keeps the target risk.

    Parameters
    ----------
    sample_rate, steps : float and int, optional
        The run, unless ``batch_size``, ``dataset_size`` and ``epochs`` are given.
    accuracy, advantage, tpr_at : optional
        The target, one of these as for :func:`epsilon`; or ``epsilon`` together with ``delta``.
    epsilon, delta : float, optional
        The target as (ε, δ).
    prior : float, default 0.5
        Probability that the record is in, for ``accuracy``.
    batch_size, dataset_size, epochs : optional
        The run: expected records of a batch, records, and passes over them, instead of ``sample_rate`` and ``steps``.
    sampling, adjacency : str, default "poisson" and "add_remove"
        As for :class:`whosin.DPSGD`.

    Notes
    -----
    The noise multiplier is at most 0.01 % above the smallest one that the pessimistic curve allows, and the returned
    run was evaluated at its full resolution. Most curves of the search are coarse; what a coarse grid adds hardly
    depends on the noise, so two or three full curves are enough.

    Examples
    --------
    >>> import whosin as wi
    >>> run = wi.calibrate.dpsgd(batch_size=50, dataset_size=1000, epochs=2, epsilon=2.0, delta=1e-3)
    >>> round(run.noise_multiplier, 2), run.steps
    (0.86, 40)
    """
    if (epsilon is None) != (delta is None):
        raise InputTypeError("epsilon and delta go together: the run is to be (ε, δ)-differentially private")
    pair = None if epsilon is None or delta is None else (epsilon, delta)
    target = _one_target(accuracy=accuracy, advantage=advantage, tpr_at=tpr_at, epsilon=pair)
    rate, count = _run_of(sample_rate, steps, batch_size, dataset_size, epochs)
    prior = check_prior(prior)

    def make(noise: float) -> DPSGD:
        return DPSGD(noise, rate, count, sampling, adjacency)  # type: ignore[arg-type]

    blind = target.blind(prior)
    if target.of(make(0.0), prior) <= target.limit:
        return make(0.0)
    if target.limit <= blind:
        raise CalibrationError(
            f"{target} cannot be reached by any finite noise: guessing blindly already reaches "
            f"{blind:.6g} at prior {prior:g}"
        )

    def excess(noise: float, coarser: float = 1.0) -> float:
        run = make(noise)
        if target.name == "epsilon":
            sides = (False,) if coarser > 1.0 else (False, True)
            return max(epsilon_at(run_roc(run, outsider=side, coarser=coarser), target.fpr) for side in sides)
        return max(0.0, target.on(run_roc(run, coarser=coarser), prior) - blind)

    try:
        noise = _smallest_noise(excess, target.limit - blind, _gaussian_guess(target, rate, count, prior))
    except (ArithmeticError, ValueError):
        raise CalibrationError(f"{target} was not reached by any noise multiplier that can be computed with") from None
    while target.of(make(noise), prior) > target.limit:
        noise *= 1.0 + 0.1 * _NOISE_TOLERANCE
    return make(noise)


def _run_of(
    rate: float | None, steps: int | None, batch_size: int | None, dataset_size: int | None, epochs: float | None
) -> tuple[float, int]:
    """Sample rate and steps, as they are or from the batches."""
    batches = (batch_size, dataset_size, epochs)
    if rate is not None and steps is not None and batches == (None, None, None):
        return check_number("sample_rate", rate, low=0.0, high=1.0), check_whole("steps", steps, high=MOST_STEPS)
    if rate is None and steps is None and batch_size is not None and dataset_size is not None and epochs is not None:
        return rate_and_steps(batch_size, dataset_size, epochs)
    raise InputTypeError(
        "a run needs sample_rate and steps, or batch_size, dataset_size and epochs; got "
        f"sample_rate={rate!r}, steps={steps!r}, batch_size={batch_size!r}, dataset_size={dataset_size!r}, "
        f"epochs={epochs!r}"
    )


def _smallest_noise(excess: Callable[..., float], wanted: float, start: float) -> float:
    """Search on coarse curves, corrected by what full ones say, until a full one is at or just below the target."""
    aim, noise, most = wanted, start, 4
    for _ in range(most):
        noise = smallest_below(lambda x: excess(x, _COARSER), aim, noise, tolerance=0.1 * _NOISE_TOLERANCE, slope=-2.0)
        found, here, beyond = excess(noise), excess(noise, _COARSER), excess(1.001 * noise, _COARSER)
        if not found > 0.0 < beyond < here:
            break
        steeper = math.log(beyond / here) / math.log(1.001)
        if found <= wanted and math.log(wanted / found) <= -0.5 * _NOISE_TOLERANCE * steeper:
            return noise
        aim *= wanted / found * (1.0 + 0.2 * _NOISE_TOLERANCE * steeper)
    return smallest_below(excess, wanted, noise, tolerance=_NOISE_TOLERANCE, slope=-2.0)


_Curve = TypeVar("_Curve", ZeroConcentratedDP, RenyiDP)


@dataclass(frozen=True)
class _Target:
    """A risk and the largest tolerable value of it."""

    name: str
    limit: float
    risk: risks.Risk
    fpr: float = 0.0
    """Of a TPR the FPR at which it counts; of an ε its δ."""

    def of(self, guarantee: Guarantee, prior: float) -> float:
        if self.name == "posterior":
            return guarantee.posterior(prior)[1]
        if self.name == "accuracy":
            return guarantee.accuracy(prior)
        if self.name == "advantage":
            return guarantee.advantage
        if self.name == "epsilon":
            return guarantee.implies(ApproxDP, delta=self.fpr).epsilon
        return float(guarantee.tpr_at(self.fpr))

    def kept(self, risk: float, least: float) -> bool:
        """Whether a computed risk is at or below the limit whatever its rounding; exact ones need no room."""
        return risk <= self.limit and (risk in (least, 1.0) or risk * (1.0 + _ROUNDING) <= self.limit)

    def on(self, roc: Roc, prior: float) -> float:
        return epsilon_at(roc, self.fpr) if self.name == "epsilon" else float(self.risk(roc, prior))

    def blind(self, prior: float) -> float:
        return self.on(PureDP(0.0).roc, prior)

    def __str__(self) -> str:
        if self.name == "epsilon":
            return f"epsilon={self.limit:g} at delta={self.fpr:g}"
        return f"tpr_at=({self.limit:g}, {self.fpr:g})" if self.name == "tpr_at" else f"{self.name}={self.limit:g}"


_RISKS: dict[str, risks.Risk] = {"accuracy": risks.accuracy, "advantage": risks.advantage, "posterior": risks.ppv}


def _one_target(**targets: Any) -> _Target:
    given = {name: value for name, value in targets.items() if value is not None}
    if len(given) != 1:
        got = ", ".join(given) or "none"
        raise InputTypeError(f"exactly one target is needed of {', '.join(targets)}; got {got}")
    name, value = given.popitem()
    if name == "epsilon":
        limit, delta = check_number("epsilon", value[0], low=0.0), check_number("delta", value[1], low=0.0, high=1.0)
        return _Target(name, limit, risks.advantage, delta)
    if name != "tpr_at":
        return _Target(name, check_probability(name, value), _RISKS[name])
    try:
        tpr, fpr = value
    except (TypeError, ValueError):
        raise InputTypeError(f"tpr_at must be a pair (tpr, fpr), got {value!r}") from None
    tpr, fpr = check_probability("tpr_at[0]", tpr), check_probability("tpr_at[1]", fpr)
    return _Target(name, tpr, risks.tpr_at_fpr(fpr), fpr)


def _check_reachable(target: _Target, least: float, at: str) -> None:
    if least > target.limit:
        raise CalibrationError(f"{target} cannot be reached: the risk is {least:.6g} even at {at}")


def _gaussian_guess(target: _Target, rate: float, steps: int, prior: float) -> float:
    """Noise by the central limit theorem of DP-SGD (Dong et al. 2019): μ ≈ q·√(T(e^{1/σ²} - 1))."""
    return 1.0 / math.sqrt(math.log1p((_gaussian_mu(target, prior) / rate) ** 2 / steps))


def _gaussian_mu(target: _Target, prior: float) -> float:
    holds: Callable[[float], bool] = lambda mu: target.on(GaussianDP(mu).roc, prior) <= target.limit  # noqa: E731
    return max(1e-9, largest_holding(holds, 0.0, 100.0, tolerance=1e-6))
