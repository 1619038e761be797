"""How many rows may be released? The advantage as a function of the number of released rows.

A record's answer after the first m rows is the best over these rows, so one pass over the whole release gives it for
every m (Xu et al. 2022, appendix H, retrain nothing either). Rows are taken in random order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.answers import Rows, limits_by_column
from whosin.arrays import Array
from whosin.auditing.measuring.attack import Attack, collect_evidence
from whosin.auditing.measuring.estimate import Estimate
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.limits import ADVANTAGE, plug_in
from whosin.auditing.measuring.thresholds import scan_z
from whosin.errors import check_probability
from whosin.numerics.differences import gain_lower, gain_upper, newcombe

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class ReleaseSize(Rows):
    """The advantage of the best of some queries after so many released rows.

    The last point is the advantage of the audit, with its own confidence level; the limits of all others hold together
    (Bonferroni).

    Examples
    --------
    Every row that goes out tells more:

    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
    >>> release = train + rng.normal(0, 0.1, (100, 3))
    >>> curve = wi.audit_synthetic(train, holdout, release, query="nearest").release_size
    >>> for size, found in zip(curve.sizes[-3:], curve.advantages[-3:]):
    ...     print(size, round(found.estimate, 1))
    21 0.2
    46 0.3
    100 0.9
    >>> curve.largest(0.5)
    21
    """

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

    def _columns(self) -> dict[str, list[Any]]:
        return {"rows": list(self.sizes), **limits_by_column(self.advantages)}

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        last = self.advantages[-1]
        return f"advantage by {self.query} from {self.sizes[0]} to {self.sizes[-1]} released rows: {last} at the end"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the advantage with its limits against the number of released rows; return the axes."""
        from whosin.plots import draw_release_size

        sides = [
            np.array([getattr(found, side) for found in self.advantages]) for side in ("estimate", "lower", "upper")
        ]
        return draw_release_size(ax, np.array(self.sizes), *sides, label=self.query)


def sizes_up_to(rows: int, count: int = 6) -> tuple[int, ...]:
    """Return about ``count`` growing sizes, evenly in their logarithm, from a hundredth of the rows to all of them."""
    first = min(rows, max(2, rows // 100))
    return tuple(sorted({round(float(size)) for size in np.geomspace(first, rows, count)}))


def release_size(
    answers: Mapping[str, Array], members: int, sizes: tuple[int, ...], whole: Estimate, seed: int
) -> ReleaseSize:
    """Look at the answers of each query after each size (one column a size).

    ``whole`` is what the audit found with all rows: it is the last point, and no lower limit is above its, as whoever
    has all rows has the first of them. At each other size the best attack of any query, chosen on the fit part, is
    counted on the rest, and the upper limit covers the thresholds and cells of all of them. The same split is used at
    every size, so that neighbours differ by the release alone. O(queries·sizes·N log N).
    """
    delta = (1.0 - whole.confidence_level) / max(1, len(sizes) - 1)
    found = []
    for i in range(len(sizes) - 1):
        looks = []
        for name, table in answers.items():
            experiment = Experiment(table[:members, i], table[members:, i], kind="continuous", names=(name,))
            evidence = collect_evidence(experiment, np.random.default_rng(seed))
            attack = evidence.choose(ADVANTAGE.judge)
            looks.append((attack, plug_in(evidence, ADVANTAGE, attack.candidate.view)[0]))
        found.append(_at_size(looks, delta, whole))
    return ReleaseSize(" or ".join(answers), sizes, (*found, whole), whole.confidence_level)


def _at_size(looks: list[tuple[Attack, float]], delta: float, whole: Estimate) -> Estimate:
    """Limits on the best of several queries; the largest sample value of their classes together gives the upper one.

    The lower limits of all queries hold together, so that of any of them does: the one that the ordering of the exact
    limits puts first is computed.
    """
    each = delta / (2 * len(looks))
    z = scan_z(each)
    judged = [newcombe(a.found, a.members, a.accused, a.non_members, z, (1.0, 1.0)) for a, _ in looks]
    best = looks[int(np.argmax(judged))][0]
    lower = min(whole.lower, max(0.0, gain_lower(best.found, best.members, best.accused, best.non_members, each)))
    first = looks[0][0]
    upper = gain_upper(max(seen for _, seen in looks), first.members, first.non_members, delta / 2)
    value = max(attack.tpr - attack.fpr for attack, _ in looks)
    about = "upper limit: every attacker who uses one of the queries by thresholds or fixed cells"
    return Estimate(float(np.clip(value, lower, upper)), lower, upper, whole.confidence_level, about)
