"""Planning: what a sample could have shown, and how large it would have to be."""

from __future__ import annotations

import math

from whosin.errors import check_number, check_whole
from whosin.numerics.differences import gain_lower

_QUANTILE = 0.8416212335729143
"""The 80 % quantile of the normal law."""
_GRID = 2**14


def smallest_visible(members: int, non_members: int, delta: float) -> float:
    """Return the smallest TPR - FPR that would show in about 80 % of samples if its attack were known beforehand.

    An audit has to find the attack as well, so it needs more; below this no audit of so many records is likely to see
    anything. "To show" is an exact lower limit above 0 at δ/2. Worst case of the two variances, TPR = (1+a)/2 and
    FPR = (1-a)/2; the chance of the two counts is taken as normal. 1.0 where even a perfect attack would not show.
    Cost: some ten exact limits.
    """
    members, non_members = check_whole("members", members, low=1), check_whole("non_members", non_members, low=1)
    delta = check_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    from scipy.special import ndtri

    if not _shows(1.0, members, non_members, delta):
        return 1.0
    # bisection on a grid of 2⁻¹⁴, begun where the normal law expects the answer
    low, high = 0, _GRID
    normal = (_QUANTILE - ndtri(delta / 2)) * math.sqrt(1.0 / members + 1.0 / non_members) / 2.0
    tried = [int(_GRID * normal * factor) for factor in (1.1, 0.95)]
    while high - low > 1:
        middle = next((place for place in tried if low < place < high), (low + high) // 2)
        low, high = (low, middle) if _shows(middle / _GRID, members, non_members, delta) else (middle, high)
    return high / _GRID


def _shows(advantage: float, members: int, non_members: int, delta: float) -> bool:
    """Whether the lower limit is above 0 in the sample that is worse than 80 % of all."""
    variance = (1.0 - advantage**2) / 4.0
    shift = _QUANTILE * math.sqrt(variance / members + variance / non_members)
    # The unlucky difference is shared out to the two rates as their variances are.
    share = non_members / (members + non_members)
    found = math.floor(members * min(1.0, max(0.0, 0.5 * (1.0 + advantage) - share * shift)))
    accused = math.ceil(non_members * min(1.0, max(0.0, 0.5 * (1.0 - advantage) + (1.0 - share) * shift)))
    return gain_lower(found, members, accused, non_members, delta / 2) > 0.0


def rows_for_upper(tolerate: float, delta: float, *, held_share: float, queries: int) -> int:
    """Return how many records a side the upper limit needs to be at most ``tolerate`` if nothing leaks.

    The class of an upper limit has thresholds and about N^⅓ cells. Under equal laws its largest sample value is near
    √(k/2π)·s for k cells, and near (0.87 + √(ln(queries)/2))·s for thresholds, s = √(2/n) for n held-out records a
    side; the limit adds z·s/2 to it, and a fifth of all samples another 0.3·s. A plan, not a bound.
    """
    tolerate = check_number("tolerate", tolerate, low=0.0, high=1.0, open_low=True)
    from scipy.special import ndtri

    z = -float(ndtri(delta / 2))

    def reached(records: int) -> float:
        held = max(1.0, held_share * records)
        cells = (2.0 * (1.0 - held_share) * records) ** (1 / 3) + 2.0 * max(0.0, math.log2(records / 40.0))
        largest = max(math.sqrt(cells / (2.0 * math.pi)), 0.87 + math.sqrt(math.log(queries) / 2.0))
        return math.sqrt(2.0 / held) * (largest + 0.3 + 0.5 * z)

    high = 2
    while reached(high) > tolerate:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) <= tolerate else (middle, high)
    return high
