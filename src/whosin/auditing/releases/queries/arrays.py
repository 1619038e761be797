"""Queries on released arrays of numbers (images, embeddings): Euclidean distances between the rows as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.auditing.measuring.asking import Query
from whosin.auditing.releases.matching.neighbours import ball_log_sums, counts_within, nearest
from whosin.errors import InputError
from whosin.parallel.tasks import by_rows

DEFAULT = ("nearest", "nearest_ratio", "ball")
"""What "auto" asks of arrays; a learned score combines the answers."""
REFERRING = ("density_ratio",)
"""What "auto" asks as well where there is a reference."""
RADIUS_ROWS = 1000
"""Most rows whose nearest distances set the radius of "ball"."""


@dataclass(frozen=True, eq=False)
class ArrayRelease:
    """Targets (train rows, then holdout rows), released rows and, optionally, reference rows as matrices."""

    target_rows: Array
    synthetic: Array
    reference: Array | None = None
    prefixes: Sequence[int] | None = None
    """Sizes of the release at which the nearest distance is wanted as well."""
    n_jobs: int | None = None
    progress: Callable[[float], None] | None = None

    @property
    def targets(self) -> int:
        """Number of targets."""
        return len(self.target_rows)

    @cached_property
    def _neighbours(self) -> tuple[Array, NDArray[np.int64], Array | None]:
        """The two smallest distances, the nearest row, and the nearest distance by size. O(targets·rows·columns)."""
        k = min(2, len(self.synthetic))
        sizes = sorted({*(self.prefixes or ()), len(self.synthetic)})
        distances, rows = by_rows(
            nearest, self.target_rows, self.synthetic, k=k, prefixes=sizes, n_jobs=self.n_jobs, progress=self.progress
        )
        by_size = None if self.prefixes is None else distances[:, : len(self.prefixes), 0]
        return distances[:, -1], rows[:, -1, 0], by_size

    @property
    def distance(self) -> Array:
        """Distance to the nearest released row."""
        return self._neighbours[0][:, 0]

    @property
    def nearest_row(self) -> NDArray[np.int64]:
        """The nearest released row."""
        return self._neighbours[1]

    @property
    def second_distance(self) -> Array:
        """Distance to the second nearest released row."""
        if self._neighbours[0].shape[1] < 2:
            raise InputError("synthetic must have two rows for this query, got one")
        return self._neighbours[0][:, 1]

    def by_size(self) -> dict[str, Array]:
        """Answers about each target (rows) after each of ``prefixes`` (columns), by query."""
        found = self._neighbours[2]
        assert found is not None
        return {"nearest": -found}

    @cached_property
    def radius(self) -> float:
        """The median distance from a reference row, or from a released row if there is none, to the nearest other one.

        The median heuristic of Hilprecht et al. (2019), who look from the targets, made independent of them. Of equal
        rows one counts, and the nearest released row is one that differs. 0 if all released rows are equal and there is
        no reference. Looks from at most 1,000 rows, evenly spaced among all in the order of their bytes.
        """
        released = _distinct(self.synthetic)
        rows = released if self.reference is None else _distinct(self.reference)
        some = rows[np.linspace(0, len(rows) - 1, min(len(rows), RADIUS_ROWS)).astype(np.int64)]
        found = by_rows(nearest, some, released, k=min(2, len(released)), n_jobs=self.n_jobs)[0]
        return float(np.median(np.where(found[:, 0] > 0.0, found[:, 0], found[:, -1])))

    @cached_property
    def reference_distance(self) -> Array:
        """Distance to the nearest row that was never trained on."""
        if self.reference is None:
            raise InputError("reference is needed: rows of the same population that were not trained on")
        return np.asarray(by_rows(nearest, self.target_rows, self.reference, n_jobs=self.n_jobs)[0][:, 0])


def _distinct(rows: Array) -> Array:
    """Return the different rows, in the order of their bytes."""
    plain = np.ascontiguousarray(rows, dtype=np.float64) + 0.0
    _, first = np.unique(plain.view(np.dtype((np.void, plain.strides[0]))).ravel(), return_index=True)
    return plain[first]


def _nearest_ratio(release: ArrayRelease) -> Array:
    """How much nearer the nearest row is than the second nearest: 1 for a lone copy, 0 if two are equally near."""
    first, second = release.distance, release.second_distance
    return np.where(second > 0.0, 1.0 - first / np.where(second > 0.0, second, 1.0), 0.0)


def _ball(release: ArrayRelease) -> Array:
    found = by_rows(counts_within, release.target_rows, release.synthetic, release.radius, n_jobs=release.n_jobs)
    return np.asarray(found[:, 0] / len(release.synthetic))


def _ball_by_distance(release: ArrayRelease) -> Array:
    """Equation 1 with ln(radius/distance) for -ln distance, whose sign would depend on the unit."""
    radius = max(release.radius, 1e-300)
    sums = by_rows(
        ball_log_sums, release.target_rows, release.synthetic, radius, floor=1e-9 * radius, n_jobs=release.n_jobs
    )
    inside = _ball(release) * len(release.synthetic)
    return np.asarray((sums[:, 0] + inside * np.log(radius)) / len(release.synthetic))


def _density_ratio(release: ArrayRelease) -> Array:
    floor = max(1e-9 * release.radius, 1e-300)
    return np.asarray(np.log(release.reference_distance + floor) - np.log(release.distance + floor))


QUERIES: dict[str, Query] = {
    "nearest": Query("minus the distance to the nearest released row (MACE, eq. 2)", lambda r: -r.distance),
    "nearest_ratio": Query("how much nearer the nearest row is than the second nearest", _nearest_ratio),
    "ball": Query("share of released rows within the median distance of neighbours (Hilprecht et al.)", _ball),
    "ball_by_distance": Query(
        "the same, weighted by ln(radius/distance) (MACE, eq. 1, in units of the radius)", _ball_by_distance
    ),
    "density_ratio": Query(
        "nearness to released rows against nearness to a reference (DOMIAS by nearest neighbours)", _density_ratio
    ),
}
