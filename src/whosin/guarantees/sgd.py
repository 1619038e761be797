"""DP-SGD: Poisson-sampled Gaussian steps, composed into one member curve.

Each step includes the record with probability ``sample_rate`` and adds normal noise of ``noise_multiplier`` times the
clipping norm. Against the worst pair of data sets one step is no easier to attack than telling the mixture
(1-q)·N(0, σ²) + q·N(1, σ²) (record in) from N(0, σ²) (record out), and T steps no easier than the T-fold product
of that pair (Zhu, Dong and Wang 2022). The member curve takes FPR under "out" and TPR under "in"; the swapped roles
would understate it.

* One step, or no sampling: closed form.
* Otherwise a privacy loss distribution: the one-step divergence, vectorised here, is rounded up onto a grid
  (connect the dots: Doroshenko et al. 2022) and composed by FFT, both from Google's dp-accounting. The composed law is
  finite, so its curve is piecewise linear: TPR(FPR) = min over ε of δ(ε) + e^ε·FPR, exact for the rounded-up law
  and therefore never below the truth. Rounding noise of the FFT is covered by extra mass at infinite loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whosin.errors import check_number, check_whole
from whosin.guarantees.dp import DifferentialPrivacy, shifted_normal_excess, shifted_normal_roc
from whosin.roc import Roc

__all__ = ["DPSGD", "grid_step", "roc_of_losses", "sampled_divergence", "sampled_gaussian_roc"]

Array = NDArray[np.float64]

MOST_STEPS = 10**9
MOST_POINTS = 2**21
_LOST = 1e-15  # mass beyond the grid, which counts as infinite loss
_NO_NOISE = 1e-6  # less noise than this counts as none
LEAST_MU, LEAST_RATE = 1e-100, 1e-290  # what is hidden better, or drawn more rarely, counts as this
_TAIL = 10.0  # standard deviations; mass beyond is below 1e-23 and goes to infinite loss


@dataclass(frozen=True)
class DPSGD(DifferentialPrivacy):
    """A DP-SGD run: ``steps`` Poisson-sampled Gaussian steps, add/remove adjacency.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    sample_rate : float
        Probability that a record is in a batch.
    steps : int
        Number of steps.

    Notes
    -----
    Cost of the first look at the curve: FFTs of at most a few million points, well under a second for thousands of
    steps and seconds for millions; kept for later looks. Runs that spread over a wide range of losses are rounded up
    more coarsely.
    """

    noise_multiplier: float
    sample_rate: float
    steps: int
    adjacency: ClassVar[str] = "add_remove"

    def __post_init__(self) -> None:
        self._set(
            noise_multiplier=check_number("noise_multiplier", self.noise_multiplier, low=0.0),
            sample_rate=check_number("sample_rate", self.sample_rate, low=0.0, high=1.0),
            steps=check_whole("steps", self.steps, high=MOST_STEPS),
        )

    def _build_roc(self) -> Roc:
        run = self.noise_multiplier, self.sample_rate, self.steps
        return sampled_gaussian_roc(*run, spacing=grid_step(*run))

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return (T·ln(1-q), inf): with probability (1-q)^T the record was never sampled, so no output rules it out."""
        if self.sample_rate == 0.0 or self.steps == 0 or math.isinf(self.noise_multiplier):
            return 0.0, 0.0
        lowest = -math.inf if self.sample_rate == 1.0 else self.steps * math.log1p(-self.sample_rate)
        return lowest, math.inf

    def outsider_roc(self) -> Roc:
        """Return the limit on finding those who are *not* in the data: the roles of "in" and "out" swapped.

        In exact arithmetic this is the mirror image of :meth:`roc`. A composed curve is computed from the privacy loss
        of "out" against "in" instead: its steep end is the flat end of the other one, where rounding hides it.
        """
        roc = self.roc
        if roc.vertices is None or self.steps <= 1 or not _NO_NOISE <= self.noise_multiplier < math.inf:
            return roc.reversed()
        run = self.noise_multiplier, self.sample_rate, self.steps
        return roc.reversed() if self.sample_rate == 0.0 else _composed_roc(*run, grid_step(*run), outsider=True)

    def replace_roc(self) -> Roc:
        """Return the limit between data sets that differ by one replacement: the member curve after its mirror."""
        if self.sample_rate == 1.0:
            return shifted_normal_roc(2.0 * _full_batch_mu(self.noise_multiplier, self.steps))
        roc = self.roc
        if roc.vertices is None:
            run = self.noise_multiplier, self.sample_rate, self.steps
            roc = sampled_gaussian_roc(*run, spacing=grid_step(*run, finer=0.1), closed_form=False)
            return roc.compose(roc.reversed())
        return roc.compose(self.outsider_roc())

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        return (
            *super().assumes,
            "batches are drawn by Poisson sampling (each record independently); shuffled or fixed-size batches differ",
            "the attacker sees every intermediate model; gradients are clipped per record, noise is exact Gaussian",
        )


def grid_step(noise: float, rate: float, steps: int, finer: float = 1.0) -> float:
    """Return the spacing of privacy losses at which rounding them up costs little.

    Its effect on the composed law grows with steps·spacing², and must stay small against the spread of one step's loss,
    about q·√(e^{1/σ²} - 1). ``finer`` makes it smaller by that factor. At most a million points, and not below 1e-12,
    where the rounding of a likelihood ratio counts.
    """
    if noise < _NO_NOISE or math.isinf(noise) or rate == 0.0:
        return 1e-3
    spread = rate * math.sqrt(math.expm1(min(1.0 / min(noise, 1e150) ** 2, 500.0)))
    wanted = min(1e-3, 5e-3 / math.sqrt(max(steps, 1)), 0.05 * spread)
    return max(finer * wanted, (_highest_loss(noise, rate) - math.log1p(-min(rate, 0.999999))) / 1e6, 1e-12)


def _highest_loss(noise: float, rate: float) -> float:
    """Privacy loss of one step exceeded with probability below 1e-23, or 690: more counts as infinite."""
    mu = 1.0 / noise
    highest = np.logaddexp(math.log1p(-min(rate, 0.999999)), math.log(rate) + mu * (_TAIL + mu) - mu * mu / 2.0)
    return min(690.0, float(highest))


@lru_cache(maxsize=16)
def sampled_gaussian_roc(noise: float, rate: float, steps: int, spacing: float, closed_form: bool = True) -> Roc:
    """Return the member curve of the composed sampled Gaussian, exact or never below the truth."""
    if rate == 0.0 or steps == 0 or math.isinf(noise):
        return Roc([0.0], [0.0])
    if noise < _NO_NOISE:
        caught = -math.expm1(steps * math.log1p(-rate)) if rate < 1.0 else 1.0
        return Roc([0.0], [caught])
    if rate == 1.0:
        return shifted_normal_roc(_full_batch_mu(noise, steps))
    if steps == 1 and closed_form:
        return _one_step_roc(noise, rate)
    return _capped(_composed_roc(noise, rate, steps, spacing), -math.expm1(steps * math.log1p(-rate)))


def _capped(roc: Roc, caught: float) -> Roc:
    """The lower of the curve and that of no noise at all: who was never sampled is not seen."""
    vertices = roc.vertices
    assert vertices is not None
    x, y = vertices[:, 0], vertices[:, 1]
    line = caught + (1.0 - caught) * x
    over = y - line
    i = np.flatnonzero(over[:-1] * over[1:] < 0.0)
    cross = x[i] + (x[i + 1] - x[i]) * over[i] / (over[i] - over[i + 1])
    points = np.concatenate([x, cross]), np.concatenate([np.minimum(y, line), caught + (1.0 - caught) * cross])
    return Roc(*points, slopes=(1.0 - caught, math.inf))


def _full_batch_mu(noise: float, steps: int) -> float:
    if steps == 0:
        return 0.0
    return math.sqrt(steps) / noise if noise > 0 else math.inf


def _one_step_roc(noise: float, rate: float) -> Roc:
    """Curve of (1-q)·N(0,σ²) + q·N(1,σ²) against N(0,σ²): the likelihood ratio rises, so thresholds are optimal."""
    full = shifted_normal_roc(1.0 / noise)

    def tpr(fpr: Array) -> Array:
        return np.asarray((1.0 - rate) * fpr + rate * full.tpr(fpr))

    def fpr(tpr_wanted: Array) -> Array:
        low, high = np.zeros_like(tpr_wanted), np.asarray(tpr_wanted, dtype=np.float64).copy()
        for _ in range(200):
            middle = 0.5 * (low + high)
            short = tpr(middle) < tpr_wanted
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.asarray(low)

    def divergence(gamma: float) -> float:
        return float(sampled_divergence(noise, rate, np.array([math.log(gamma)]))[0]) if gamma > 0.0 else 1.0

    def mirrored(gamma: float) -> float:
        """E_γ(out‖in): out - γ·in = (1 - γ(1-q))·N(0) - γq·N(1)."""
        rest = 1.0 - gamma * (1.0 - rate)
        return rest * full.divergence(gamma * rate / rest) if rest > 0.0 else 0.0

    return Roc.from_function(tpr, fpr=fpr, divergence=divergence, mirrored=mirrored, slopes=(1.0 - rate, math.inf))


def sampled_divergence(noise: float, rate: float, losses: Array) -> Array:
    """Return E_γ(in‖out) of one step at γ = e^t for an array of t, rounded up.

    It is q·E_{γ'} of the full Gaussian with γ' = (γ - (1-q))/q = 1 + (γ-1)/q, and 1-γ below γ = 1-q.
    """
    mu, rate = max(1.0 / noise, LEAST_MU), max(rate, LEAST_RATE)
    with np.errstate(over="ignore"):
        more = np.minimum(np.expm1(losses) / rate, 1e308)
    value = -np.expm1(losses)
    inside = more > -1.0
    value[inside] = rate * shifted_normal_excess(mu, np.log1p(more[inside]))
    return _limited(value, losses)


def outsider_divergence(noise: float, rate: float, losses: Array) -> Array:
    """Return E_γ(out‖in) of one step at γ = e^t for an array of t, rounded up.

    out - γ·in = (1 - γ(1-q))·N(0) - γq·N(1), so nothing is left from γ = 1/(1-q) on.
    """
    mu, rate = max(1.0 / noise, LEAST_MU), max(rate, LEAST_RATE)
    with np.errstate(over="ignore"):
        rest = rate - (1.0 - rate) * np.expm1(losses)
    value = np.zeros_like(losses)
    inside = rest > 0.0
    log_inner = losses[inside] + math.log(rate) - np.log(rest[inside])
    value[inside] = rest[inside] * shifted_normal_excess(mu, log_inner)
    return _limited(value, losses)


def _limited(value: Array, losses: Array) -> Array:
    """The value, no less than guessing blindly reaches: 1 - γ."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(value, np.maximum(0.0, -np.expm1(losses)), 1.0))


@lru_cache(maxsize=16)
def _composed_roc(noise: float, rate: float, steps: int, spacing: float, outsider: bool = False) -> Roc:
    """Curve of the composed privacy loss distribution of "in" against "out", or with the roles swapped."""
    from dp_accounting.pld import common

    one_step = _one_step_losses(noise, rate, spacing, outsider)
    spread = _spread(one_step._lower_loss, one_step._probs, spacing) * math.sqrt(steps)
    wider = 24.0 * spread / MOST_POINTS
    if wider > spacing:
        spacing = wider
        one_step = _one_step_losses(noise, rate, spacing, outsider)
    with np.errstate(over="ignore"):  # a moment that overflows gives a limit that is not used
        low, high = common.compute_self_convolve_bounds(one_step._probs, steps, _LOST)
        direct = high - low <= 4 * MOST_POINTS
        composed = one_step.self_compose(steps, _LOST) if direct else _by_squaring(one_step, steps)
    dense = composed.to_dense_pmf()
    return roc_of_losses(dense._lower_loss, dense._probs, dense._infinity_mass, spacing)


def _one_step_losses(noise: float, rate: float, spacing: float, outsider: bool = False) -> Any:
    """Privacy loss law of one step, rounded up onto the grid (connect the dots)."""
    from dp_accounting.pld import pld_pmf

    first, last = math.floor(math.log1p(-rate) / spacing), math.ceil(_highest_loss(noise, rate) / spacing)
    if outsider:
        first, last = -last, -first
    divergence = outsider_divergence if outsider else sampled_divergence
    deltas = divergence(noise, rate, spacing * np.arange(first, last + 1, dtype=np.float64))
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(spacing, first, last, deltas).to_dense_pmf()


def _spread(lowest: int, masses: Array, spacing: float) -> float:
    """Standard deviation of the finite losses."""
    losses = (lowest + np.arange(len(masses))) * spacing
    total = float(masses.sum())
    mean = float(masses @ losses) / total
    return math.sqrt(max(0.0, float(masses @ (losses - mean) ** 2) / total))


def _by_squaring(losses: Any, steps: int) -> Any:
    """Compose ``steps`` copies by doubling, cutting the tails each time: for when the direct limits are too wide."""
    result = None
    while steps:
        if steps & 1:
            result = losses if result is None else result.compose(losses, _LOST)
        steps >>= 1
        if steps:
            losses = losses.compose(losses, _LOST)
    return result


def roc_of_losses(lowest: int, masses: Array, infinite: float, spacing: float) -> Roc:
    """Return the member curve of a law of the privacy loss under "in", on a grid from ``lowest`` times ``spacing`` on.

    Mass p at loss l stands for p·e^{-l} under "out". Taken in falling order of loss these are the edges of the curve;
    extra mass only raises it. Negative masses are FFT noise: they are set to zero, and as much mass as that noise
    could have hidden in all cells together is moved to infinite loss. So is what the masses fall short of one. The
    likelihood ratios are rounded up by what the rounding of a loss, which grows with it, can take away.
    """
    noise_floor = max(0.0, -float(masses.min(initial=0.0)))
    losses = (lowest + np.arange(len(masses))) * spacing
    kept = masses > 0.0
    p, losses = masses[kept][::-1], losses[kept][::-1]
    missing = max(0.0, 1.0 - infinite - float(p.sum()))
    certain = min(1.0, infinite + missing + len(masses) * noise_floor)
    tpr = np.concatenate([[certain], certain + np.cumsum(p)])
    with np.errstate(over="ignore"):
        fpr = np.concatenate([[0.0], np.cumsum(p * np.exp(-losses) * (1.0 - 2.0**-51 * (2.0 + np.abs(losses))))])
    inside = (fpr < 1.0) & (tpr < 1.0)
    count = int(np.argmin(inside)) if not inside.all() else len(inside)
    x, y = fpr[:count], tpr[:count]
    if count and count < len(fpr) and fpr[count] < 1.0:
        share = (1.0 - y[-1]) / (tpr[count] - y[-1])
        x, y = np.append(x, x[-1] + share * (fpr[count] - x[-1])), np.append(y, 1.0)
    return Roc(x, y) if count else Roc([0.0], [1.0])
