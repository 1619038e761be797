"""Representatives: records of a large pool that are simulated in the place of others like them.

**Claim.** Write θ_xw = ln P_in(w)/P_out(w) for record x. If range_w(g_x - g_r) ≤ ρ then |θ_xw - θ_rw| ≤ 2ρ for every w
and every k. **Proof.** Let τ exchange x and r. D → τD maps the k-subsets with x onto those with r, and those without x
onto those without r, one to one. If D has both or neither, τD = D; otherwise one of the two replaces the other, and
ln p_w(D)/p_w(τD) is within ±ρ (``caps``). Averaging, ln P_in and ln P_out differ between x and r by at most ρ
each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whosin.population.exponential.caps import Caps
from whosin.population.exponential.game import Game

__all__ = ["MOST_REPRESENTATIVES", "Thinning", "choose_representatives", "thinned"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

AUTO_REPRESENTATIVES = 20_000
"""Pools above this size are thinned by representatives where that costs little."""
MOST_REPRESENTATIVES = 2000
"""How many there are at the most, unless asked otherwise."""


@dataclass(frozen=True, eq=False)
class Thinning:
    """Records that stand for others.

    ``nearest`` points into ``records``, ``radius`` is range_w(g_x - g_r), rounded up, and ``loss`` is by how much the
    largest limit is expected to rise.
    """

    records: Index
    nearest: Index
    radius: Array
    loss: float


def choose_representatives(game: Game, most: int, guess: Array, certain: Array, enough: float = 0.0) -> Thinning:
    """Pick up to ``most`` records so that the others can be bounded by their likeness to one of them.

    The choice depends on the logits and on ``guess`` (rough θ from separate draws) only, never on the draws that
    certify. It is greedy: the record with the largest min(certain bound, guess of its representative + 2ρ) becomes one,
    until that is at most ``enough`` above what all records as their own representatives would give. Useful for records
    in few dimensions or with many ties; in more dimensions balls of a useful size hold few records. Cost O(N·m) for
    each representative.
    """
    scale = float(np.abs(game.table).max())
    goal = float(np.minimum(certain, guess).max()) + enough
    chosen = [int(np.argmin(guess))]
    nearest = np.zeros(game.records, dtype=np.intp)
    radius = _distance(game, chosen[0], scale)
    likeness = guess[chosen[0]] + 2.0 * radius
    while True:
        expected = np.minimum(certain, likeness)
        worst = int(np.argmax(expected))
        if expected[worst] <= goal or radius[worst] == 0.0 or len(chosen) >= most:
            break
        reach = _distance(game, worst, scale)
        better = guess[worst] + 2.0 * reach < likeness
        better[worst] = True
        nearest[better], radius[better] = len(chosen), reach[better]
        likeness[better] = guess[worst] + 2.0 * reach[better]
        chosen.append(worst)
    loss = float(expected[worst]) - goal + enough
    return Thinning(np.array(chosen, dtype=np.intp), nearest, radius, loss)


def _distance(game: Game, record: int, scale: float) -> Array:
    """range_w(g_x - g_r) of all records x, rounded up; 0 for r itself and its twins."""
    gaps = game.table - game.table[:, record, None]
    reach = np.asarray(gaps.max(axis=0) - gaps.min(axis=0))
    apart = reach > 0.0
    reach[apart] = reach[apart] * (1.0 + 2.0**-44) + 2.0**-46 * scale
    return reach


def _rough_ratios(game: Game, law: Array) -> Array:
    """Rough max_w |θ_xw| over outcomes that are not rare, to first order in the logits: a guide, not a bound.

    θ_xw ≈ Σ_v K_wv Δ_v - Δ_w with Δ = g_x - mean g and K_wv = E(p_w p_v)/P(w), from a sample ``law`` (outcomes, draws).
    """
    often = law.mean(axis=1)
    kept = often >= min(0.02, float(often.max()))
    mixing = (law[kept] @ law.T) / (law.shape[1] * often[kept, None])
    gaps = game.table - game.table.mean(axis=1, keepdims=True)
    return np.asarray(np.abs(mixing @ gaps - gaps[kept]).max(axis=0))


def thinned(game: Game, caps: Caps, law: Array, most: int | None) -> Thinning | None:
    """The thinning asked for; by default for large pools, if it costs no more than a tenth of the limit plus 0.01.

    A hundred representatives show whether two thousand could do: in two dimensions the radii shrink to 0.22.
    """
    if most == 0 or (most is None and game.records <= AUTO_REPRESENTATIVES):
        return None
    guess, certain = _rough_ratios(game, law), caps.certain
    if most is not None:
        return choose_representatives(game, most, guess, certain)
    bearable = 0.01 + 0.1 * float(np.minimum(certain, guess).max())
    for number, allowance in ((100, 5.0 * bearable), (MOST_REPRESENTATIVES, bearable)):
        chosen = choose_representatives(game, number, guess, certain, 0.25 * bearable)
        if chosen.loss > allowance:
            return None
    return chosen
