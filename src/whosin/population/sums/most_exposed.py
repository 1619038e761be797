"""The largest ε̃ of a pool in one column, exactly, from a few of its records.

Let P_x and Q_x be the laws of the noisy sum given that x is in and given that it is out, k of N records drawn. For two
records x and y let B be the law of the noisy sum of k - 1 of the other N - 2. Splitting by the other record,

    P_x - P_y = (N-k)/(N-1)·(B moved by f_x - B moved by f_y),   Q_x - Q_y = k/(N-1)·(B moved by f_y - B moved by f_x),

and moving B, which contains the noise, by Δ = |f_x - f_y| changes no probability by more than moving the noise does. So

    E_γ(P_x‖Q_x) ≤ E_γ(P_y‖Q_y) + ((N-k) + γk)/(N-1)·TV(noise, noise moved by Δ),

and with k and N - k exchanged in the other direction. A record with room below δ at γ = e^ε therefore speaks for its
neighbours: they need no more than ε either. Where δ is so small that this reaches few neighbours, the normal bound of
:mod:`whosin.population.sums.normal` speaks, with Gaussian noise, for those that are far from the largest.
"""

from __future__ import annotations

import math

import numpy as np

from whosin.arrays import Array, Flags, Indices
from whosin.parallel.threads import Progress
from whosin.population.sums.normal import normal_epsilons
from whosin.population.sums.spectral import SubsetSumLaws

MOST_SOLVED = 1500
"""How many records are solved exactly at the most."""
FIRST_SOLVED = 250
"""After so many the normal bound is asked which of the others may need more than the largest."""
_BATCH = 24


def exact_largest(
    f: Array, k: int, scale: float, delta: float, *, noise: str = "gaussian", progress: Progress | None = None
) -> Array:
    """Return (lower, upper) limits on each record's ε̃ at δ, exact for some, such that the largest is exact.

    Records that were not solved get 0 and the largest value, or a smaller one, which was shown to be enough for them;
    infinity where MOST_SOLVED records did not suffice to show it (very little noise).

    Parameters
    ----------
    f : array, shape (N,)
        What each record adds to the sum.
    k : int
        How many are drawn.
    scale : float
        Standard deviation of the Gaussian noise, or scale of the Laplace noise.
    noise : {"gaussian", "laplace"}

    Notes
    -----
    The transform of the pool once, then some dozens to hundreds of exact solutions, at most 1,500, instead of N.

    Examples
    --------
    >>> import numpy as np
    >>> pool = np.random.default_rng(0).standard_normal(60)
    >>> limits = exact_largest(pool, 30, 4.0, 0.01)
    >>> limits.max(axis=0).round(3).tolist()
    [0.855, 0.855]
    """
    values, first, places = np.unique(f, return_index=True, return_inverse=True)
    sweep = _Sweep(values, first, f, k, scale, delta, noise)
    todo = np.unique([0, len(values) - 1])
    bounds: Array | None = None
    while len(todo) and sweep.count < MOST_SOLVED:
        sweep.solve(todo)
        if bounds is None and sweep.count > FIRST_SOLVED and noise == "gaussian":
            bounds = normal_epsilons(f, k, scale, delta)[first]
        if bounds is not None:
            sweep.covered |= bounds <= sweep.largest
        todo = sweep.middles()
        if progress is not None:
            progress(float(sweep.covered.mean()))
    limits = np.column_stack([np.zeros(len(values)), np.where(sweep.covered, sweep.largest, np.inf)])
    if bounds is not None:
        limits[:, 1] = np.minimum(limits[:, 1], bounds)
    limits[sweep.solved] = sweep.epsilons[sweep.solved]
    return np.asarray(limits[places])


class _Sweep:
    """Which of the distinct values, in rising order, are solved or covered by a solved neighbour."""

    def __init__(
        self, values: Array, first: Indices, f: Array, k: int, scale: float, delta: float, noise: str = "gaussian"
    ) -> None:
        self.values, self.first, self.f, self.k, self.scale, self.delta = values, first, f, k, scale, delta
        self.laws = SubsetSumLaws(f, k, scale, noise)
        self.epsilons = np.full((len(values), 2), np.nan)
        self.covered = np.zeros(len(values), dtype=bool)
        self.largest = 0.0

    @property
    def solved(self) -> Flags:
        return np.asarray(~np.isnan(self.epsilons[:, 1]))

    @property
    def count(self) -> int:
        return int(self.solved.sum())

    def solve(self, chosen: Indices) -> None:
        """Solve some values exactly, then mark what they cover at the largest ε so far, or at a smaller one.

        What was covered stays so when the largest ε grows, since divergences fall with ε. A record that needs much less
        than the largest speaks for more neighbours at an ε near its own, where γ is not huge.
        """
        self.epsilons[chosen] = self.laws.epsilon(self.delta, records=self.first[chosen])
        self.largest = max(self.largest, float(self.epsilons[chosen, 1].max()))
        self.covered[chosen] = True
        for place in chosen:
            reach = self._reach(int(self.first[place]), min(self.largest, float(self.epsilons[place, 1]) + 1.0, 700.0))
            low, high = np.searchsorted(self.values, [self.values[place] - reach, self.values[place] + reach])
            self.covered[low:high] = True

    def _reach(self, record: int, epsilon: float) -> float:
        """How far from the record others certainly need no more than ε."""
        from scipy.special import ndtri

        gamma, count = math.exp(epsilon), len(self.f)
        room = []
        for swapped, (lost, kept) in enumerate([(count - self.k, self.k), (self.k, count - self.k)]):
            upper = self.laws.divergence(record, epsilon, bool(swapped))[1]
            room.append((self.delta - upper) * (count - 1) / (lost + gamma * kept))
        least = min(room) * (1.0 - 1e-9)
        if not least > 0.0:
            return 0.0
        least = min(least, 1.0 - 1e-9)
        moved = -math.log1p(-least) if self.laws.noise == "laplace" else float(ndtri(0.5 + 0.5 * least))
        return 2.0 * self.scale * moved * (1.0 - 1e-9)

    def middles(self) -> Indices:
        """The middle of each run of values that nothing covers, the longest runs first."""
        edges = np.flatnonzero(np.diff(np.concatenate([[1], self.covered.astype(np.int8), [1]])))
        starts, stops = edges[::2], edges[1::2]
        order = np.argsort(-(stops - starts), kind="stable")[:_BATCH]
        return np.asarray(np.sort((starts[order] + stops[order]) // 2))
