"""What the sample could have shown: the smallest advantage that would have been found."""

from __future__ import annotations

import math

from whosin.compute.proportions import clopper_pearson_lower, clopper_pearson_upper
from whosin.errors import check_number, check_whole

__all__ = ["detectable_advantage"]

_QUANTILE = 0.8416212335729143
"""The 80 % quantile of the normal law."""


def detectable_advantage(members: int, non_members: int, delta: float) -> float:
    """Return the smallest TPR - FPR of an attack whose lower limit is above 0 in about 80 % of samples.

    The rule is the audit's own: the Clopper-Pearson limits of TPR and FPR at δ/4 each must not overlap, with
    ``members`` and ``non_members`` held-out records. Worst case of the two variances, TPR = (1+a)/2 and FPR =
    (1-a)/2; the chance of the two counts is taken as normal. 1.0 where even a perfect attack would not be found.
    Cost: some fifty evaluations.
    """
    members, non_members = check_whole("members", members, low=1), check_whole("non_members", non_members, low=1)
    delta = check_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    low, high = 0.0, 1.0
    if _margin(high, members, non_members, delta) <= 0:
        return 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _margin(middle, members, non_members, delta) > 0 else (middle, high)
    return high


def _margin(advantage: float, members: int, non_members: int, delta: float) -> float:
    """Gap between the two limits in the sample that is worse than 80 % of all."""
    variance = (1.0 - advantage**2) / 4.0
    spread = math.sqrt(variance / members + variance / non_members)
    # The unlucky difference is shared out to the two rates as their variances are.
    share = non_members / (members + non_members)
    shift = _QUANTILE * spread
    found = members * min(1.0, max(0.0, 0.5 * (1.0 + advantage) - share * shift))
    accused = non_members * min(1.0, max(0.0, 0.5 * (1.0 - advantage) + (1.0 - share) * shift))
    return float(clopper_pearson_lower(found, members, delta / 4)) - float(
        clopper_pearson_upper(accused, non_members, delta / 4)
    )
