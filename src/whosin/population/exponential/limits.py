"""From sums of U - V to limits on θ = ln P_in/P_out, for every outcome and record.

**From a difference to a ratio.** With d = P_in - P_out and q·P_in + (1 - q)·P_out = P,
θ = ln(1 + (1 - q)d/P) - ln(1 - qd/P): it rises with d, and for d ≥ 0 it falls with P. An upper limit on d and a lower
one on P bound θ; -d with 1 - q in place of q bounds -θ. (For k = N/2, θ = 2·artanh(d/2P).)

**Limits on means.** For ξ ≥ -1 and 0 ≤ λ < 1, exp(λξ - ψ(λ)ξ²) ≤ 1 + λξ with ψ(λ) = -ln(1 - λ) - λ, because
(ln(1 + z) - z)/z² rises with z (Fan, Grama and Liu 2015). With ξ = (V - U)/h, h = tanh(A⁺/4) (``caps``), and
Markov's inequality for the product over n samples, E(U - V) ≤ (h/λ)(1 - e^{-s}),
s = λ·mean/h + ψ(λ)·(mean square)/h² + l/n, except with probability e^{-l}. The λ come from a grid that is fixed in
advance, with a union bound over it. Beside the leading term √(2l·(mean square)/n) the range enters with 2hl/(3n) for
the best λ; in the empirical Bernstein limit it does with 14hl/(3n). The samples may be centred first: what a pilot of
separate draws saw is subtracted from them, and from h, and added to the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array, Index
from whosin.population.exponential.certain_ranges import Caps
from whosin.population.exponential.draws import Sums
from whosin.population.exponential.game import Game

LARGEST_LAMBDA = 0.9


@dataclass(frozen=True, eq=False)
class Ratios:
    """Values (limits or estimates) of θ and -θ for each outcome and record, not below 0."""

    into: Array
    out: Array

    @property
    def largest(self) -> Array:
        return np.asarray(np.maximum(self.into, self.out).max(axis=0))

    def ranked(self, ranking: Index) -> Ratios:
        return Ratios(self.into[ranking], self.out[ranking])

    def capped(self, caps: Caps) -> Ratios:
        return Ratios(np.minimum(self.into, caps.mean_in), np.minimum(self.out, caps.mean_out))


def limits(game: Game, caps: Caps, sums: Sums, centre: Array, lower: Array, beta: float, rounding: float) -> Ratios:
    """Upper limits on ±θ for all records, all at once except with probability ``beta``.

    The mean number of samples, which sets the λ, is known before the draws. ``rounding`` is that of the sums alone.
    """
    events = 2.0 * sums.total.size
    grid = lambdas(float(sums.count.mean()), math.log(events / beta))
    log_term = math.log(events * len(grid) / beta)
    mean, slack = sums.mean, game.rounding + rounding
    found = []
    for sign, reach, share in ((1.0, caps.range_in, game.share), (-1.0, caps.range_out, 1.0 - game.share)):
        most, middle = np.tanh(reach / 4.0), sign * centre
        square = sums.mean_square(centre) + rounding + 2.0 * slack * (most + np.abs(centre)) + slack**2
        upper = mean_upper(sign * mean - middle, square, sums.count, most - middle, log_term, grid)
        found.append(log_ratio(upper + middle + slack, lower, share))
    return Ratios(*found)


def lambdas(samples: float, log_term: float) -> Array:
    """Halvings of the largest λ down to about the one that is best for samples as spread as their range allows."""
    least = math.sqrt(2.0 * log_term / max(samples, 1.0))
    steps = max(1, 1 + math.ceil(math.log2(LARGEST_LAMBDA / least))) if least < LARGEST_LAMBDA else 1
    return np.asarray(LARGEST_LAMBDA * 0.5 ** np.arange(steps))


def mean_upper(mean: Array, mean_square: Array, count: Array, reach: Array, log_term: float, lambdas: Array) -> Array:
    """Upper limit on the mean of independent variables that never exceed ``reach``.

    ``log_term`` holds the union over the λ already.
    """
    upper = reach.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for lam in lambdas:
            psi = -math.log1p(-lam) - lam
            exponent = lam * mean / reach + psi * mean_square / reach**2 + log_term / count
            np.fmin(upper, -np.expm1(-exponent) * reach / lam, out=upper)
    return upper


def log_ratio(difference: Array, lower: Array, share: float) -> Array:
    """Largest ln(P_in/P_out) if P_in - P_out ≤ ``difference`` and P ≥ ``lower``, at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(difference, 0.0) / lower[:, None]
        value = np.log1p((1.0 - share) * ratio) - np.log1p(-np.minimum(share * ratio, 1.0))
    return np.where(np.isnan(value), np.inf, value * (1.0 + 2.0**-44))
