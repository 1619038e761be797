"""How many rows may be released? The advantage as a function of the number of released rows.

A record's answer after the first m rows is the best over these rows, so one pass over the whole release gives it for
every m (Xu et al. 2022, appendix H, retrain nothing either). Rows are taken in random order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.estimate import Estimate
from whosin.auditing.experiment import Experiment
from whosin.auditing.run import run_audit
from whosin.errors import check_number, check_probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReleaseSize", "release_size", "sizes_up_to"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReleaseSize:
    """The advantage of the best of some queries after so many released rows; all limits hold together (Bonferroni)."""

    query: str
    sizes: tuple[int, ...]
    advantages: tuple[Estimate, ...]
    confidence_level: float

    def largest(self, target: float) -> int | None:
        """Return the largest size at which, and below which, every upper limit is at most ``target``; None if none is.

        It covers attackers who use one of these queries. Nothing is said about others.
        """
        limit = check_probability("target", target)
        fits = None
        for size, found in zip(self.sizes, self.advantages, strict=True):
            if found.upper > limit:
                break
            fits = size
        return fits

    def to_dict(self) -> dict[str, Any]:
        """Return the curve for JSON."""
        return {
            "query": self.query,
            "sizes": list(self.sizes),
            "advantages": [found.to_dict() for found in self.advantages],
            "confidence_level": self.confidence_level,
        }

    def __str__(self) -> str:
        last = self.advantages[-1]
        return f"advantage by {self.query} from {self.sizes[0]} to {self.sizes[-1]} released rows: {last} at the end"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the advantage with its limits against the number of released rows; return the axes."""
        from whosin.plots.release_size import ReleaseSizeDisplay

        sides = [
            np.array([getattr(found, side) for found in self.advantages]) for side in ("estimate", "lower", "upper")
        ]
        display = ReleaseSizeDisplay(np.array(self.sizes), sides[0], sides[1], sides[2], self.query)
        axes: Axes = display.plot(ax=ax).ax_
        return axes


def sizes_up_to(rows: int, count: int = 10) -> tuple[int, ...]:
    """Return about ``count`` growing sizes, evenly in their logarithm, from a hundredth of the rows to all of them."""
    first = min(rows, max(2, rows // 100))
    return tuple(sorted({round(float(size)) for size in np.geomspace(first, rows, count)}))


def release_size(
    answers: Mapping[str, Array], members: int, sizes: tuple[int, ...], confidence_level: float, rng: Any
) -> ReleaseSize:
    """Audit the answers of each query after each size (one column a size) with limits that hold together.

    At each size the largest estimate and the largest limits of all queries count: an attacker may use any one of them.
    O(queries·sizes·N log N). The same split is used at every size, so that neighbours differ by the release alone.
    """
    level = check_number("confidence_level", confidence_level, low=0.0, high=1.0, open_low=True, open_high=True)
    each = 1.0 - (1.0 - level) / (len(sizes) * len(answers))
    seed = int(np.random.default_rng(rng).integers(2**63))
    found = []
    for i in range(len(sizes)):
        looks = []
        for name, table in answers.items():
            experiment = Experiment(table[:members, i], table[members:, i], kind="continuous", names=(name,))
            looks.append(run_audit(experiment, confidence_level=each, rng=seed).advantage)
        best = [max(getattr(look, side) for look in looks) for side in ("estimate", "lower", "upper")]
        found.append(
            Estimate(best[0], best[1], best[2], level, "upper limit: every attacker who uses one of the queries")
        )
    return ReleaseSize(" or ".join(answers), sizes, tuple(found), level)
