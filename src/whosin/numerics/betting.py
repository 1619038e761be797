"""A test that a bounded mean is below a target, by betting.

Let w_1, w_2, … in [0, 1] be independent with one mean, and τ a target. A gambler who thinks that the mean is below τ
starts with 1 and stakes λ in [0, 3/4], decided beforehand, on every draw:

    K_t = Π_{i ≤ t} (1 - λ·(w_i - τ)).

If the mean is τ or more, K is a non-negative supermartingale, so it ever reaches 1/β with probability at most β (Ville;
Waudby-Smith and Ramdas 2024, section 4). Reaching 1/β is therefore proof, at confidence 1 - β, that the mean is below
τ. The number of draws that this takes is at least ln(1/β)/ln(1 + 3τ/4), which is enough when all draws are zero.

The wealth falls as any w_i - τ rises, so with one stake the test is monotone: what passes also passes with smaller
draws or a larger target. Stakes that adapt to the draws were tried and needed more noise in the end: a pilot sample
settles the stake well enough, and an adaptive one loses its wealth on the way.
"""

from __future__ import annotations

import math

import numpy as np

from whosin.arrays import Array
from whosin.errors import check_number

HIGHEST_STAKE = 0.75
_STAKES = HIGHEST_STAKE * np.geomspace(1e-3, 1.0, 25)
_SMALL = 2**16


def draws_needed(target: float, level: float) -> int:
    """Return the smallest number of draws with which the test can pass at all: ln(1/β)/ln(1 + 3τ/4), rounded up.

    τ > 0 is the target, β the level, the chance of a false pass.
    """
    target = check_number("target", target, low=0.0, open_low=True)
    level = check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    return math.ceil(-math.log(level) / math.log1p(HIGHEST_STAKE * target))


def log_wealth(samples: Array, stake: float, target: float) -> Array:
    """Return ln of the largest wealth on the way, max_t ln K_t, for each column; O(size of the samples)."""
    return np.asarray(np.cumsum(np.log1p(-stake * (samples - target)), axis=0).max(axis=0))


def best_stake(samples: Array, target: float, draws: int) -> tuple[float, float]:
    """Return the stake, of 25 tried, that wins most on so many draws like the samples, and ln of what it wins.

    With several columns, the winnings are those of the column that wins least. This is a forecast, not a test: it
    serves to choose a stake before other draws are made.
    """
    gaps = samples - target
    if gaps.size <= _SMALL:
        means = np.log1p(-_STAKES.reshape(-1, *[1] * gaps.ndim) * gaps).mean(axis=1)
    else:
        means = np.array([np.log1p(-stake * gaps).mean(axis=0) for stake in _STAKES])
    wins = draws * means.reshape(len(_STAKES), -1).min(axis=1)
    best = int(np.argmax(wins))
    return float(_STAKES[best]), float(wins[best])
