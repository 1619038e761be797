"""What is certain about the exponential mechanism on a pool, without drawing: ranges and averaged ranges.

D is a uniform k-subset of N records with logits g, p_w(D) ∝ exp(-Σ_{i∈D} g_iw), and P_in(w), P_out(w) are the averages
of p_w(D) over the subsets with and without record x. D' = D - x + y for x ∈ D and y ∉ D.

**Ranges.** With Δ = g_x - g_y, p_w(D') = p_w(D)·e^{Δ_w}/Σ_v p_v(D)e^{Δ_v}. So the logarithm of U/V, U = p_w(D) and
V = p_w(D'), and that of the ratio of their odds too, is at most max_v(Δ_v - Δ_w) ≤ A⁺_xw and at least -A⁻_xw, maxima
over all y. Logistic values whose odds differ by e^A differ by at most tanh(A/4), so -tanh(A⁻/4) ≤ U - V ≤ tanh(A⁺/4).
The largest A⁺_xw over w is the range bound A_x = max_y range_w(g_x - g_y).

**Averaged ranges.** As 1/z is convex, 1/Σ_v p_v e^{Δ_v} ≤ Σ_v p_v e^{-Δ_v}. So the average of p_w(D') over y ∉ D is at
most p_w(D) times the largest, over v, average of e^{Δ_w - Δ_v}. Averaged over D ∋ x: P_out/P_in is at most the largest
such average over N - k records y, which is the one over those with the smallest g_yw - g_yv. In the same way k members
y bound P_in/P_out. These averaged bounds C^±_xw never exceed A^±_xw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array
from whosin.population.exponential.adjacent import range_bound
from whosin.population.exponential.game import Game


@dataclass(frozen=True, eq=False)
class Caps:
    """Deterministic bounds for each outcome and record: ranges A⁺, A⁻ and averaged ranges C⁺, C⁻ (in/out, out/in)."""

    deterministic: Array
    range_in: Array
    range_out: Array
    mean_in: Array
    mean_out: Array

    @classmethod
    def of(cls, game: Game, logits: Array) -> Caps:
        """Ranges and averaged ranges of every outcome and record. O(N·m²)."""
        caps = cls(range_bound(logits)[1], *(np.zeros(game.table.shape) for _ in range(4)))
        for w in range(game.outcomes):
            for v in range(w):
                caps._compare(game, w, v)
        for part in (caps.deterministic, caps.range_in, caps.range_out, caps.mean_in, caps.mean_out):
            _round_up(part, float(np.abs(game.table).max()))
        np.minimum(caps.mean_in, caps.range_in, out=caps.mean_in)
        np.minimum(caps.mean_out, caps.range_out, out=caps.mean_out)
        return caps

    def _compare(self, game: Game, w: int, v: int) -> None:
        """Raise the bounds by what outcomes w and v have to say."""
        gap = game.table[w] - game.table[v]
        k, outside = game.k, game.records - game.k
        ordered = np.partition(gap, (0, k - 1, outside - 1, game.records - 1))
        low, high = ordered[0], ordered[-1]
        for part, bound in (
            (self.range_out[w], gap - low),
            (self.range_in[v], gap - low),
            (self.range_in[w], high - gap),
            (self.range_out[v], high - gap),
            (self.mean_out[w], gap - low + _log_mean_exp(low - ordered[:outside])),
            (self.mean_in[v], gap - low + _log_mean_exp(low - ordered[:k])),
            (self.mean_in[w], high - gap + _log_mean_exp(ordered[outside:] - high)),
            (self.mean_out[v], high - gap + _log_mean_exp(ordered[k:] - high)),
        ):
            np.maximum(part, bound, out=part)

    @property
    def largest(self) -> float:
        return float(self.range_in.max())

    @property
    def certain(self) -> Array:
        return np.asarray(np.minimum(np.maximum(self.mean_in, self.mean_out).max(axis=0), self.deterministic))


def _log_mean_exp(values: Array) -> float:
    """ln of the mean of exp(values), none above 0; right to a few digits of rounding also where it is close to 0."""
    below_one = float(np.expm1(values).mean())
    return math.log1p(below_one) if below_one > -0.5 else math.log(float(np.exp(values).mean()))


def _round_up(values: Array, scale: float) -> None:
    """Raise by more than the rounding of logits up to ``scale`` in size and of what is computed from them."""
    values *= 1.0 + 2.0**-44
    values += 2.0**-46 * scale
