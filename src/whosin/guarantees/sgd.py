"""DP-SGD: steps on random batches, clipped and noisy, composed into one curve.

What one step reveals depends on how the batch is drawn and what is compared (:mod:`whosin.guarantees.steps`); T steps
are no easier to attack than the T-fold product of the worst pair of one (Zhu, Dong and Wang 2022). The member curve
takes FPR under "out" and TPR under "in"; the swapped roles would understate it.

* One step, or no sampling: closed form.
* Partitions and shuffles: no amplification is proved, so the curve is that of a Gaussian with one shift an epoch.
* Otherwise laws of the privacy loss on a grid (:mod:`whosin.guarantees.losses`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, check_choice, check_number, check_whole
from whosin.guarantees.allocation import allocation_law
from whosin.guarantees.dp import Adjacency, DifferentialPrivacy, GaussianDP, shifted_normal_roc
from whosin.guarantees.losses import composed_law, law_of_divergence, roc_of_law
from whosin.guarantees.steps import highest_loss, outsider_divergence, sampled_divergence, step_of
from whosin.roc import Roc

MOST_STEPS = 10**9
SAMPLINGS = ("poisson", "fixed_size", "random_allocation", "partition", "shuffled")
_UP = 1.0 + 2.0**-49
_NO_NOISE = 1e-6  # less noise than this counts as none

_DRAWN = {
    "poisson": "batches are drawn by Poisson sampling (each record independently); shuffled and fixed-size ones differ",
    "fixed_size": "each batch is a random subset of one size, drawn anew for every step; shuffled batches differ",
    "random_allocation": "in every epoch each record goes into one batch, chosen at random independently of the others",
    "partition": "the records are split into batches once, and every batch is used once an epoch",
    "shuffled": "the records are shuffled and cut into batches, each used once an epoch; shuffling is not counted on",
}
_GAP = "removing a record leaves every other record in its batch, but one that may fill the gap"


@dataclass(frozen=True)
class DPSGD(DifferentialPrivacy):
    """A DP-SGD run: ``steps`` steps, each on a random batch, with clipped gradients and Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    sample_rate : float
        Batch size over the number of records; under Poisson sampling the chance of a record to be in a batch.
    steps : int
        Number of steps.
    sampling : {"poisson", "fixed_size", "random_allocation", "partition", "shuffled"}, default "poisson"
        How batches are drawn. Most training loops shuffle; accountants mostly assume "poisson", which hides far more.
    adjacency : {"add_remove", "replace", "zero_out"}, default "add_remove"
        What is compared. The run is the same, so ``implies(..., adjacency=)`` may ask for any of them.

    Notes
    -----
    Gradients are summed, and divided by a number that does not depend on the batch (the expected batch size).
    Cost of the first look at the curve: FFTs of at most a few million points, well under a second for thousands of
    steps and seconds for millions; kept for later looks. Runs that spread over a wide range of losses are rounded up
    more coarsely.

    Examples
    --------
    >>> import whosin as wi
    >>> run = wi.DPSGD(noise_multiplier=0.8, sample_rate=0.004, steps=2000)
    >>> round(run.implies(wi.ApproxDP, delta=1e-5, adjacency="replace").epsilon, 2)
    2.24
    >>> run = wi.DPSGD.of_batches(1.0, batch_size=100, dataset_size=10_000, epochs=10, sampling="shuffled")
    >>> run.steps, round(run.advantage, 3)
    (1000, 1.0)
    """

    noise_multiplier: float
    sample_rate: float
    steps: int
    sampling: Literal["poisson", "fixed_size", "random_allocation", "partition", "shuffled"] = "poisson"
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        self._set(
            noise_multiplier=check_number("noise_multiplier", self.noise_multiplier, low=0.0),
            sample_rate=check_number("sample_rate", self.sample_rate, low=0.0, high=1.0),
            steps=check_whole("steps", self.steps, high=MOST_STEPS),
            sampling=check_choice("sampling", self.sampling, SAMPLINGS),
        )
        if self.sampling == "random_allocation" and self.sample_rate > 0.0:
            batches = 1.0 / self.sample_rate
            if abs(batches - round(batches)) > 1e-6 * batches:
                raise InputError(
                    "sample_rate must be 1 over a whole number of batches for sampling='random_allocation', got "
                    f"{self.sample_rate!r}; drop some records or change the batch size"
                )

    @classmethod
    def of_batches(
        cls,
        noise_multiplier: float,
        *,
        batch_size: int,
        dataset_size: int,
        epochs: float,
        sampling: Literal["poisson", "fixed_size", "random_allocation", "partition", "shuffled"] = "poisson",
        adjacency: Adjacency = "add_remove",
    ) -> DPSGD:
        """Return the run from what training loops are called with; a started step counts."""
        rate, steps = rate_and_steps(batch_size, dataset_size, epochs)
        return cls(noise_multiplier, rate, steps, sampling, adjacency)

    def _build_roc(self) -> Roc:
        return run_roc(self)

    def under(self, adjacency: Adjacency) -> DPSGD:
        """Return the same run with something else compared."""
        return self if adjacency == self.adjacency else replace(self, adjacency=adjacency)

    @property
    def mu(self) -> float | None:
        """μ of the Gaussian curve where the run has one (full batches, partitions, shuffles), rounded up; else None."""
        if self.sample_rate == 0.0 or self.steps == 0 or math.isinf(self.noise_multiplier):
            return 0.0
        if self.sampling in ("partition", "shuffled"):
            square = {"zero_out": 1, "replace": 4, "add_remove": 5}[self.adjacency]
            return _root_over(square, self.epochs, self.noise_multiplier)
        if self.sample_rate < 1.0:
            return None
        alone = self.adjacency == "zero_out" or (self.adjacency == "add_remove" and self.sampling != "fixed_size")
        return _root_over(1 if alone else 4, self.steps, self.noise_multiplier)

    @property
    def epochs(self) -> int:
        """How often each record may be used where batches go round: a started epoch counts."""
        per_epoch = max(1, math.floor(1.0 / self.sample_rate * (1.0 + 1e-9))) if self.sample_rate > 0.0 else 1
        return -(-self.steps // per_epoch)

    @property
    def drawn(self) -> float:
        """The chance to be drawn at all, rounded up: no attacker's advantage is larger."""
        if self.sampling not in ("poisson", "fixed_size") or self.sample_rate == 1.0:
            return 1.0 if self.sample_rate * self.steps > 0.0 else 0.0
        return min(1.0, -math.expm1(self.steps * math.log1p(-self.sample_rate)) * (1.0 + 2.0**-50))

    @property
    def full_mu(self) -> float:
        """μ of the same run on full batches, which are no harder to attack, rounded up."""
        if self.mu is not None:
            return self.mu
        if self.sampling != "random_allocation":
            return cast(float, replace(self, sample_rate=1.0).mu)
        alone = self.adjacency == "add_remove"
        return cast(float, replace(self, sampling="partition", adjacency="zero_out" if alone else self.adjacency).mu)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR: that of the curve, but no more than who is drawn, or full batches, would give away."""
        return min(super().advantage, self.drawn, GaussianDP(self.full_mu).advantage)

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return (T·ln(1-q), inf) where the record may never be drawn: no output rules it out then."""
        if self.mu == 0.0:
            return 0.0, 0.0
        drawn_apart = self.sampling in ("poisson", "fixed_size") and self.sample_rate < 1.0
        if (
            not drawn_apart
            or self.adjacency == "replace"
            or (self.sampling, self.adjacency) == ("fixed_size", "zero_out")
        ):
            return -math.inf, math.inf
        return self.steps * math.log1p(-self.sample_rate), math.inf

    def outsider_roc(self) -> Roc:
        """Return the limit on finding those who are *not* in the data: the roles of "in" and "out" swapped.

        In exact arithmetic this is the mirror image of :attr:`roc`. A composed curve is computed from the privacy loss
        of "out" against "in" instead: its steep end is the flat end of the other one, where rounding hides it.
        """
        return run_roc(self, outsider=True)

    def replace_roc(self) -> Roc:
        """Return the limit between data sets that differ by one replacement, from the run itself."""
        return self.under("replace").roc

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        gap = (_GAP,) if self.sampling in ("partition", "shuffled") and self.adjacency == "add_remove" else ()
        return (
            *super().assumes,
            _DRAWN[self.sampling],
            *gap,
            "the attacker sees every intermediate model; gradients are clipped per record and summed, noise is exact "
            "Gaussian, and no step divides by the size of the drawn batch",
        )


def rate_and_steps(batch_size: int, dataset_size: int, epochs: float) -> tuple[float, int]:
    """Return the sample rate and the number of steps of a training loop, rounded up."""
    size = check_whole("dataset_size", dataset_size, low=1)
    batch = check_whole("batch_size", batch_size, low=1, high=size)
    rounds = check_number("epochs", epochs, low=0.0, open_high=True)
    return batch / size, math.ceil(rounds * size / batch * (1.0 - 1e-12))


def _root_over(square: int, count: int, noise: float) -> float:
    """√(square·count)/noise, rounded up."""
    if noise < _NO_NOISE:
        return math.inf if count else 0.0
    root = math.sqrt(square * count) / noise
    exact = Fraction(square * count) / Fraction(noise) ** 2
    while math.isfinite(root) and Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def grid_step(noise: float, rate: float, steps: int) -> float:
    """Return the spacing of privacy losses at which rounding them up costs little.

    Its effect on the composed law grows with steps·spacing², and must stay small against the spread of one step's loss,
    about q·√(e^{1/σ²} - 1). At most a million points, and not below 1e-12, where the rounding of a likelihood ratio
    counts.
    """
    if noise < _NO_NOISE or math.isinf(noise) or rate == 0.0:
        return 1e-3
    spread = rate * math.sqrt(math.expm1(min(1.0 / min(noise, 1e150) ** 2, 500.0)))
    wanted = min(1e-3, 5e-3 / math.sqrt(max(steps, 1)), 0.05 * spread)
    return max(wanted, (highest_loss(noise, rate) - math.log1p(-min(rate, 0.999999))) / 1e6, 1e-12)


def run_roc(run: DPSGD, *, outsider: bool = False, coarser: float = 1.0, closed_form: bool = True) -> Roc:
    """Return the curve of a run, exact or never below the truth, on a grid that is coarser by a factor."""
    if run.mu is not None:
        return shifted_normal_roc(run.mu)
    if run.noise_multiplier < _NO_NOISE:
        line = Roc(*_never_drawn_line(run, outsider))
        return line if run.sampling != "random_allocation" else Roc([0.0], [1.0])
    if run.sampling == "random_allocation":
        return _allocated_roc(run, outsider)
    if run.steps == 1 and closed_form and run.adjacency == "add_remove":
        one = _one_step_roc(_effective_noise(run), run.sample_rate)
        return one.reversed() if outsider else one
    return _composed_roc(run, outsider, coarser)


def _effective_noise(run: DPSGD) -> float:
    """Noise over the largest shift of one step."""
    return 0.5 * run.noise_multiplier if run.sampling == "fixed_size" else run.noise_multiplier


def _never_drawn_line(run: DPSGD, outsider: bool) -> tuple[list[float], list[float]]:
    """Corners of the curve of no noise at all: who was never drawn is not seen."""
    caught = run.drawn
    missed = math.nextafter(1.0 - caught, 0.0) if caught > 0.0 else 1.0
    if run.adjacency == "replace" or (run.sampling, run.adjacency) == ("fixed_size", "zero_out"):
        return [0.0, missed], [caught, 1.0]
    return ([missed], [1.0]) if outsider else ([0.0], [caught])


@lru_cache(maxsize=16)
def _composed_roc(run: DPSGD, outsider: bool, coarser: float) -> Roc:
    step = step_of(run.noise_multiplier, run.sample_rate, run.sampling, run.adjacency, outsider)
    spacing = coarser * grid_step(_effective_noise(run), run.sample_rate, run.steps)

    def one(spacing: float) -> Any:
        return law_of_divergence(step.divergence, step.low, step.high, spacing)

    curve = roc_of_law(composed_law(one, run.steps, spacing))
    return _capped(curve, *_never_drawn_line(run, outsider))


def _capped(roc: Roc, corners_x: list[float], corners_y: list[float]) -> Roc:
    """The lower of the curve and the line from its first corner on that no noise at all would give."""
    vertices = roc.vertices
    assert vertices is not None
    x, y = vertices[:, 0], vertices[:, 1]
    if corners_x[0] > 0.0:
        start, rise = 0.0, _UP / corners_x[0]
    else:
        start = corners_y[0]
        rise = 1.0 if len(corners_x) > 1 else 1.0 - start

    def line(fpr: Array) -> Array:
        return np.asarray(np.minimum(1.0, (start + rise * fpr) * _UP))

    over = y - line(x)
    i = np.flatnonzero(over[:-1] * over[1:] < 0.0)
    cross = x[i] + (x[i + 1] - x[i]) * over[i] / (over[i] - over[i + 1])
    points = np.concatenate([x, cross]), np.concatenate([np.minimum(y, line(x)), line(cross)])
    if corners_x[0] > 0.0:
        return Roc(*points, slopes=(0.0, rise))
    return Roc(*points, slopes=(0.0 if len(corners_x) > 1 else rise, math.inf))


@lru_cache(maxsize=16)
def _allocated_roc(run: DPSGD, outsider: bool) -> Roc:
    """One batch an epoch: the law of one epoch, composed; for a replacement the way over nobody in its place."""
    if run.adjacency == "replace":
        there, back = (_allocated_roc(run.under("zero_out"), side) for side in (outsider, not outsider))
        return there.compose(back)
    batches = round(1.0 / run.sample_rate)
    one, low, high = allocation_law(run.noise_multiplier, batches, outsider)
    spacing = max(1e-4, (high - low) / 2e5)
    return roc_of_law(composed_law(lambda step: law_of_divergence(one, low, high, step), run.epochs, spacing))


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
        return float(outsider_divergence(noise, rate, np.array([math.log(gamma)]))[0]) if gamma > 0.0 else 1.0

    return Roc.from_function(tpr, fpr=fpr, divergence=divergence, mirrored=mirrored, slopes=(1.0 - rate, math.inf))
