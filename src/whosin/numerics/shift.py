"""How much noise hides a shift: divergences, the smallest scale for one distance, and for averages over a pool.

Noise X of scale s, moved by v, is told from X with hockey-stick divergence E_γ(X + v ‖ X) that depends on u = ‖v‖/s:

* "gaussian", N(0, s²I), Euclidean norm: Φ(u/2 - ε/u) - γ·Φ(-u/2 - ε/u) with ε = ln γ; for γ = 1 it is 2Φ(u/2) - 1.
* "norm_exponential", density ∝ exp(-‖x‖/s), any norm and dimension: at most max(0, 1 - √γ·e^{-u/2}), with equality in
  one dimension.

(Proofs in :mod:`whosin.numerics.gaussian_noise`.) Both rise with u, and at γ = 1 both are concave with value 0 at 0.
Noise is symmetric, so the direction does not matter. Divergences here are rounded up, scales too.

A pool of contributions f_1 … f_N summed over a random subset moves, when record x is replaced by x', by f_x - f_x'. By
the adjacent coupling the divergence between "x is in" and "x is out" is at most the mean over x' ≠ x of
E_γ(‖f_x - f_x'‖/s). :class:`AveragedShift` takes the largest of these means over the records without looking at all
N² pairs each time: by concavity a record's mean is at most E_1(its mean distance/s), so records are looked at in the
order of their mean distances until the rest cannot matter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array
from whosin.errors import check_choice
from whosin.numerics.gaussian_noise import laplace_noise_for, laplace_shift_divergence, noise_for, shift_divergence
from whosin.numerics.roots import smallest_below

NOISES = ("gaussian", "norm_exponential")

_SLACK = 1.0 + 1e-12
"""Room for the rounding of divergences and means."""
_ROUNDING = 2.0**-53
_BLOCK = 2**21
_TOLERANCE = 1e-9


def divergence(noise: str, u: ArrayLike, log_gamma: float = 0.0) -> Array:
    """Return E_γ of noise moved by u scales, u in [0, ∞], rounded up. Broadcasts; below 0.1 µs for each number."""
    check_choice("noise", noise, NOISES)
    if noise == "norm_exponential":
        value = laplace_shift_divergence(u, log_gamma)
    elif log_gamma == 0.0:
        from scipy.special import erf

        value = np.asarray(erf(np.asarray(u, dtype=np.float64) / (2.0 * math.sqrt(2.0))))
    else:
        value = shift_divergence(u, log_gamma)
    return np.asarray(np.minimum(1.0, value * _SLACK))


def scale_for(noise: str, target: float, distance: float, log_gamma: float = 0.0) -> float:
    """Return the smallest scale with ``divergence(noise, distance / scale, log_gamma) <= target``, rounded up.

    ``target`` is in (0, 1]; at 1 (and for a distance of 0) no noise is needed.
    """
    check_choice("noise", noise, NOISES)
    solve = noise_for if noise == "gaussian" else laplace_noise_for
    aim = 1.0 if target >= 1.0 else target * (1.0 - 2e-12)
    return solve(log_gamma, aim, distance) * (1.0 + 1e-11)


def lengths(vectors: Array, norm: float) -> Array:
    """Return the p-norm of each row, rounded up; 0 only for rows of zeros. O(size)."""
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    safe = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
    scaled = np.abs(vectors) / safe[:, None]
    if math.isinf(norm):
        size = np.ones(len(vectors))
    elif norm == 2.0:
        size = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    else:
        size = (scaled**norm).sum(axis=1) ** (1.0 / norm)
    with np.errstate(over="ignore"):
        return np.asarray(largest * size * (1.0 + (2 * vectors.shape[1] + 16) * _ROUNDING))


def equal_rows(rows: Array) -> NDArray[np.int64]:
    """Return a label for each row, the same for equal ones. O(size · log rows)."""
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)


class AveragedShift:
    """The largest mean divergence over the records of a pool, as a function of the scale.

    ``contributions`` (N, d) are what each record adds. ``rounding`` is added to the distance of unequal ones: how much
    further apart two sums may be in floats than on paper. ``labels`` are equal for records that add the same, to be
    given where contributions were rounded, so that some look equal that are not. ``mean_distances`` has for each record
    the mean distance to the others, rounded up.

    O(N²·d) once for the mean distances and O(N·d) for each record looked at, O(N + 2^21) memory.
    """

    def __init__(
        self,
        contributions: Array,
        *,
        noise: str,
        norm: float = 2.0,
        log_gamma: float = 0.0,
        rounding: float = 0.0,
        labels: NDArray[np.int64] | None = None,
    ) -> None:
        self.contributions = contributions
        self.noise, self.norm, self.log_gamma, self.rounding = noise, norm, log_gamma, rounding
        self._others = len(contributions) - 1
        self._rows = max(1, _BLOCK // len(contributions))
        self._labels = equal_rows(contributions) if labels is None else labels
        everybody = np.arange(len(contributions))
        self.mean_distances = np.concatenate([self._mean(self._distances(rows)) for rows in self._blocks(everybody)])
        self._order = np.argsort(-self.mean_distances, kind="stable")

    def worst(self, scale: float) -> float:
        """Return the largest mean divergence over the records at this scale, rounded up; at scale 0 every move shows.

        A few blocks of records where few stand out, at worst O(N²).
        """
        limits = divergence(self.noise, _in_scales(self.mean_distances, scale))
        largest = 0.0
        for rows in self._blocks(self._order):
            if limits[rows[0]] <= largest:
                break
            found = divergence(self.noise, _in_scales(self._distances(rows), scale), self.log_gamma)
            largest = max(largest, float(self._mean(found).max()))
        return min(1.0, largest)

    def smallest_scale(self, target: float) -> float:
        """Return the smallest scale with ``worst(scale) <= target``, at most 1e-9 (relative) above it."""
        if self.worst(0.0) <= target:
            return 0.0
        enough = scale_for(self.noise, target, float(self.mean_distances.max()))
        return smallest_below(self.worst, target, enough, tolerance=_TOLERANCE, evaluations=200)

    def _blocks(self, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return [order[start : start + self._rows] for start in range(0, len(order), self._rows)]

    def _mean(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=1) / self._others * _SLACK)

    def _distances(self, rows: NDArray[np.int64]) -> Array:
        """Distances (rows, N), rounded up; 0 between records with one label."""
        from scipy.spatial.distance import cdist

        if self.norm == 1.0 or self.contributions.shape[1] == 1:
            found = cdist(self.contributions[rows], self.contributions, "cityblock")
        elif math.isinf(self.norm):
            found = cdist(self.contributions[rows], self.contributions, "chebyshev")
        elif self.norm == 2.0:
            found = cdist(self.contributions[rows], self.contributions)
        else:
            found = cdist(self.contributions[rows], self.contributions, "minkowski", p=self.norm)
        grown = found * (1.0 + (2 * self.contributions.shape[1] + 16) * _ROUNDING) + self.rounding
        return np.where(self._labels[rows, None] != self._labels, grown, 0.0)


def _in_scales(distances: Array, scale: float) -> Array:
    """Distances in scales, rounded up; infinite at scale 0 unless they are 0."""
    if scale == 0.0:
        return np.where(distances > 0.0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(distances / scale * (1.0 + 2.0 * _ROUNDING))
