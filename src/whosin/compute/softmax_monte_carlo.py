"""Certificates by simulation for the exponential mechanism on a random subset of a large pool.

A pool of N records with logits g (N × m) is given. D is a uniform k-subset, and outcome w has the probability
p_w(D) ∝ exp(-Σ_{i∈D} g_iw). Write P_in(w) and P_out(w) for the averages of p_w(D) over the subsets with and without
record x, P(w) for the average over all, q = k/N and θ_xw = ln P_in(w)/P_out(w). :func:`certify` bounds the ε̃ for which
E_{e^ε̃}(P_in ‖ P_out) ≤ δ and E_{e^ε̃}(P_out ‖ P_in) ≤ δ for every record (practical membership privacy, Lowy et al.
2024, in both directions). What it rests on:

1. **Valid pairs, every k.** Given D let x ∈ D and y ∉ D be uniform, and D' = D - x + y. Given x, all pairs
   (D ∋ x, y ∉ D) are equally likely: D is uniform among the sets with x, and D' among those without x, for each of them
   arises from k pairs, one for each member in the role of y. So (U, V) = (p_w(D), p_w(D')) has the means (P_in, P_out)
   of x. Seen from y the roles swap: (p_w(D'), p_w(D)) has the means of y, and the same law as a pair with y inside,
   because (D, x) → (D', x) maps the pairs (D ∌ y, x ∈ D) one to one onto the pairs (D' ∋ y, x ∉ D').
   One draw is a uniform order of the pool: the first k are D, and the i-th member is matched with the i-th outsider,
   i ≤ min(k, N - k). A record's position alone decides whether it is matched, and given that position the order of the
   others is uniform. So, given the positions of x in all draws, its samples are independent with the law above; the
   limits below hold given the realised number of samples, hence also without the condition. For k = N/2 every record
   is matched in every draw. Where fewer than half would be matched, and for representatives, each record draws a
   partner of its own from the other side instead, and has a sample in every draw.
2. **From a difference to a ratio.** With d = P_in - P_out and q·P_in + (1 - q)·P_out = P,
   θ = ln(1 + (1 - q)d/P) - ln(1 - qd/P): it rises with d, and for d ≥ 0 it falls with P. An upper limit on d and a
   lower one on P bound θ; -d with 1 - q in place of q bounds -θ. (For k = N/2, θ = 2·artanh(d/2P).)
3. **Ranges.** With Δ = g_x - g_y, p_w(D') = p_w(D)·e^{Δ_w}/Σ_v p_v(D)e^{Δ_v}. So ln(U/V), and the logarithm of the
   ratio of their odds too, is at most max_v(Δ_v - Δ_w) ≤ A⁺_xw and at least -A⁻_xw, the maxima over all y. Logistic
   values whose odds differ by e^A differ by at most tanh(A/4), so -tanh(A⁻/4) ≤ U - V ≤ tanh(A⁺/4). The largest A⁺_xw
   over w is the range bound A_x = max_y range_w(g_x - g_y).
4. **What holds for certain.** As 1/z is convex, 1/Σ_v p_v e^{Δ_v} ≤ Σ_v p_v e^{-Δ_v}. So the average of p_w(D') over
   y ∉ D is at most p_w(D) times the largest, over v, average of e^{Δ_w - Δ_v}. Averaged over D ∋ x: P_out/P_in is at
   most the largest such average over N - k records y, which is the one over those with the smallest g_yw - g_yv. In
   the same way k members y bound P_in/P_out. These averaged bounds C^±_xw never exceed A^±_xw and need no draw.
5. **Limits on means.** For ξ ≥ -1 and 0 ≤ λ < 1, exp(λξ - ψ(λ)ξ²) ≤ 1 + λξ with ψ(λ) = -ln(1 - λ) - λ, because
   (ln(1 + z) - z)/z² rises with z (Fan, Grama and Liu 2015). With ξ = (V - U)/h, h = tanh(A⁺/4), and Markov's
   inequality for the product over n samples, E(U - V) ≤ (h/λ)(1 - e^{-s}), s = λ·mean/h + ψ(λ)·(mean square)/h² + l/n,
   except with probability e^{-l}. The λ come from a grid that is fixed in advance, with a union bound over it. Beside
   the leading term √(2l·(mean square)/n) the range enters with 2hl/(3n) for the best λ; in the empirical Bernstein
   limit it does with 14hl/(3n).
6. **δ.** E_{e^ε}(P_in ‖ P_out) = Σ_w P(w)·φ(θ_xw), φ(t) = (e^t - e^ε)_+/(q·e^t + 1 - q), which rises with t; the
   reverse has -θ and 1 - q. So limits t_xw on θ_xw and limits on the P(w) bound it. Outcomes too rare for (2) have
   t_xw = C_xw, and their P(w) enter as nested sums T_i of the i rarest, in an order that separate draws decide: for
   weights c_1, …, c_j in that order and b_i = max_{i≤l≤j} c_l, Σ c_i P_i ≤ Σ b_i(T_i - T_{i-1}), which rises with each
   T_i because the b_i fall. One limit for each sum, not for each outcome, keeps many rare outcomes cheap. All limits
   hold at once, so ε and j may be chosen after seeing them; no floor below which an outcome is rare has to be set.

The error probability 1 - confidence_level goes 9 : 1 to the limits on U - V (records × outcomes × two signs × λ) and to
those on probabilities (empirical Bernstein). It covers the draws only; nothing is assumed about the pool. Cost:
O(draws·N·m) time, O(N·m) memory.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.compute.intervals import empirical_bernstein_lower, empirical_bernstein_upper
from whosin.compute.subset_softmax import range_bound
from whosin.errors import InputError, InputTypeError, check_number, check_whole

__all__ = ["SoftmaxCertificate", "certify"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Progress = Callable[[float], object]

AUTO_REPRESENTATIVES = 20_000
"""Pools above this size are thinned by representatives where that costs little."""
MOST_REPRESENTATIVES = 2000
SHARE_OF_DIFFERENCES = 0.9
LARGEST_LAMBDA = 0.9
BATCH = 2**18
BLOCK = 2**22
DEFAULT_WORK = 3 * 10**9
DEFAULT_SAMPLES = 20_000
GENTLE = 300.0


@dataclass(frozen=True, eq=False)
class SoftmaxCertificate:
    """Upper limits on what the exponential mechanism tells about each record of a pool.

    Parameters
    ----------
    epsilon : float
        ε̃ such that all records are (ε̃, δ)-protected, both directions, with probability ``confidence_level``.
    delta, confidence_level : float
        As asked for.
    per_record : array (N,)
        The same for each record; all hold at once.
    point : array (N,)
        Estimates without a margin. A thinned record shows the estimate of its representative.
    delta_rare : float
        How much of δ the outcomes that are no contenders use at ``epsilon``, for the worst record.
    deterministic : array (N,)
        Range bounds A_x = max_y range_w(g_x - g_y).
    certain : array (N,)
        Averaged range bounds: pure ε̃ that holds without any draw, at most A_x.
    contenders : array (m,) of bool
        Outcomes that came up often enough for the draws to say more than ``certain`` does about the worst record. The
        others are rare: they count with the averaged range bound.
    probabilities : array (m,)
        Estimated P(w).
    draws, probability_draws : int
        Subsets drawn for the records, and further ones for P(w).
    evaluated : int
        Records that were simulated: all, or the representatives.
    """

    epsilon: float
    delta: float
    confidence_level: float
    per_record: Array
    point: Array
    delta_rare: float
    deterministic: Array
    certain: Array
    contenders: NDArray[np.bool_]
    probabilities: Array
    draws: int
    probability_draws: int
    evaluated: int

    def __str__(self) -> str:
        return (
            f"({self.epsilon:.6g}, {self.delta:.6g})-PMP for {len(self.per_record)} records with confidence "
            f"{self.confidence_level:g} ({self.draws} draws; range bound {float(self.deterministic.max()):.6g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain numbers and lists."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def certify(
    logits: ArrayLike,
    k: int,
    *,
    delta: float = 0.0,
    confidence_level: float = 0.95,
    draws: int | None = None,
    probability_draws: int | None = None,
    representatives: bool | int | None = None,
    rng: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    time_budget: float | None = None,
) -> SoftmaxCertificate:
    """Return a certified (ε̃, δ) for the exponential mechanism on a uniform k-subset of a pool.

    Parameters
    ----------
    logits : array-like (N, m)
        g: outcome w has probability ∝ exp(-Σ_{i∈D} g_iw).
    k : int
        Size of the subset, 1 ≤ k ≤ N - 1.
    delta : float
        δ in [0, 1).
    confidence_level : float
        Probability, over the draws, that all limits hold.
    draws : int, optional
        Subsets with a matching, at least 2. By default about 20,000 samples for each record, fewer for large pools.
    probability_draws : int, optional
        Further subsets for P(w), at least 2; they are cheaper. By default 2.5 times ``draws``.
    representatives : bool or int, optional
        Simulate a few records only (at most so many, True: 2000) and bound the others by their likeness: see
        :func:`_choose_representatives`. By default tried above 20,000 records, and used if it costs little.
    rng : int, Generator or None
        Anything that ``numpy.random.default_rng`` takes.
    n_jobs : int, optional
        Threads, -1 for all cores; None means one. The result does not depend on it.
    progress : callable, optional
        Called with the finished share of the work.
    time_budget : float, optional
        Seconds after which no further block of draws is begun. The clock does not look at the values drawn, so the
        limits hold for the number of draws that were made; such a result cannot be repeated exactly.

    Returns
    -------
    SoftmaxCertificate

    Notes
    -----
    For δ = 0 an outcome counts however rare it is; where P(w) is too small to be estimated the averaged range bound
    takes over, so the result never exceeds ``deterministic``. Proofs are in the module's docstring. Cost O(draws·N·m).
    """
    table = _checked_logits(logits)
    k = check_whole("k", k, low=1, high=len(table) - 1)
    delta = check_number("delta", delta, low=0.0, high=1.0, open_high=True)
    confidence_level = check_number(
        "confidence_level", confidence_level, low=0.0, high=1.0, open_low=True, open_high=True
    )
    plan = _Plan.checked(draws, probability_draws, representatives, rng, n_jobs, progress, time_budget)
    game = _Game.prepared(table, k)
    caps = _Caps.of(game, table)
    if caps.largest == 0.0:
        return _nothing_to_learn(game, delta, confidence_level)
    return _simulated(game, caps, delta, confidence_level, plan)


# ----------------------------------------------------------------------------------------------------------------------
# Input


def _checked_logits(logits: ArrayLike) -> Array:
    try:
        table = np.asarray(logits, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"logits takes a matrix of numbers, got {type(logits).__name__}") from None
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 1:
        raise InputError(f"logits takes at least 2 records (rows) and 1 outcome (columns), got the shape {table.shape}")
    if not np.all(np.isfinite(table)):
        raise InputError(f"logits takes finite numbers, got {table[~np.isfinite(table)][0]!r}")
    if np.abs(table).max() * len(table) > 1e300:
        raise InputError(f"logits takes numbers whose sums stay finite, got {table.flat[np.abs(table).argmax()]!r}")
    return table


@dataclass(frozen=True)
class _Plan:
    """How to spend the effort."""

    draws: int | None
    probability_draws: int | None
    representatives: int | None
    seed: int
    threads: int
    progress: Progress | None
    start: float
    seconds: float

    @classmethod
    def checked(
        cls,
        draws: int | None,
        probability_draws: int | None,
        representatives: bool | int | None,
        rng: Any,
        n_jobs: int | None,
        progress: Progress | None,
        time_budget: float | None,
    ) -> _Plan:
        if isinstance(representatives, bool | np.bool_):
            representatives = MOST_REPRESENTATIVES if representatives else 0
        if progress is not None and not callable(progress):
            raise InputTypeError(f"progress takes a function of the finished share, got {progress!r}")
        return cls(
            None if draws is None else check_whole("draws", draws, low=2),
            None if probability_draws is None else check_whole("probability_draws", probability_draws, low=2),
            None if representatives is None else check_whole("representatives", representatives),
            _seed(rng),
            _threads(n_jobs),
            progress,
            time.monotonic(),
            math.inf if time_budget is None else check_number("time_budget", time_budget, low=0.0, open_low=True),
        )


def _seed(rng: Any) -> int:
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputTypeError(f"rng takes None, a seed or a numpy Generator, got {rng!r}") from None
    return int.from_bytes(generator.bytes(16), "little")


def _threads(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    cores = os.cpu_count() or 1
    number = check_whole("n_jobs", n_jobs, low=-cores)
    if number == 0:
        raise InputError(f"n_jobs takes a whole number other than 0, or None, got {n_jobs!r}")
    return number if number > 0 else cores + 1 + number


# ----------------------------------------------------------------------------------------------------------------------
# The game, and what can be said about it without drawing


@dataclass(frozen=True, eq=False)
class _Game:
    """The pool in a form that is kind to arithmetic: one row an outcome.

    p_w(D) does not change when a constant is added to all logits of a record, or when a column is shifted and
    ``offset`` takes the shift up. Rows are differences from record 0, centred per record, so that no entry exceeds
    A_x/2. Columns that differ by a constant have the same log ratios; they are merged: ``group`` says into which row,
    ``portion`` is their share of it. ``rounding`` bounds the error of a computed probability, relative or absolute.
    """

    table: Array
    offset: Array
    group: Index
    portion: Array
    k: int
    rounding: float
    raised: Array | None
    lowered: Array | None

    @classmethod
    def prepared(cls, logits: Array, k: int) -> _Game:
        shifted = np.ascontiguousarray((logits - logits[0]).T) + 0.0
        rows, group = np.unique(shifted, axis=0, return_inverse=True)
        group = group.reshape(-1)
        shift = -float(k) * logits[0]
        shift -= shift.max()
        offset = np.full(len(rows), -np.inf)
        np.logaddexp.at(offset, group, shift)
        rows -= 0.5 * (rows.max(axis=0) + rows.min(axis=0))
        largest = float(np.abs(rows).max())
        rounding = 2.0**-52 * k * (float(np.abs(logits[0]).max()) + (24.0 + math.log2(k)) * largest)
        gentle = 2.0 * largest <= GENTLE
        return cls(
            table=rows,
            offset=offset,
            group=group,
            portion=np.exp(shift - offset[group]),
            k=k,
            rounding=8.0 * rounding + 2.0**-46,
            raised=np.exp(rows) if gentle else None,
            lowered=np.exp(-rows) if gentle else None,
        )

    @property
    def outcomes(self) -> int:
        return len(self.table)

    @property
    def records(self) -> int:
        return len(self.table[0])

    @property
    def matched(self) -> int:
        return min(self.k, self.records - self.k)

    @property
    def share(self) -> float:
        return self.k / self.records

    def log_law(self, orders: Index, space: Array) -> Array:
        """ln p_w(D), (outcomes, draws), for the first k of each order; ``space`` has room for the smaller side."""
        if 2 * self.k <= self.records:
            weights = -_gathered_sum(self.table, orders[:, : self.k], space)
        else:
            weights = _gathered_sum(self.table, orders[:, self.k :], space) - self.table.sum(axis=1)[:, None]
        weights += self.offset[:, None]
        weights -= weights.max(axis=0)
        weights -= np.log(np.exp(weights).sum(axis=0))
        return weights


def _gathered_sum(table: Array, chosen: Index, space: Array) -> Array:
    np.take(table, chosen, axis=1, out=space, mode="clip")
    return np.asarray(space.sum(axis=2))


@dataclass(frozen=True, eq=False)
class _Caps:
    """Deterministic bounds for each outcome and record: ranges A⁺, A⁻ and averaged ranges C⁺, C⁻ (in/out, out/in)."""

    deterministic: Array
    range_in: Array
    range_out: Array
    mean_in: Array
    mean_out: Array

    @classmethod
    def of(cls, game: _Game, logits: Array) -> _Caps:
        """Points 3 and 4 of the module. O(N·m²)."""
        caps = cls(range_bound(logits)[1], *(np.zeros(game.table.shape) for _ in range(4)))
        for w in range(game.outcomes):
            for v in range(w):
                caps._compare(game, w, v)
        for part in (caps.deterministic, caps.range_in, caps.range_out, caps.mean_in, caps.mean_out):
            _round_up(part, float(np.abs(game.table).max()))
        np.minimum(caps.mean_in, caps.range_in, out=caps.mean_in)
        np.minimum(caps.mean_out, caps.range_out, out=caps.mean_out)
        return caps

    def _compare(self, game: _Game, w: int, v: int) -> None:
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
    """ln of the mean of exp(values), none above 0."""
    return math.log(float(np.exp(values).mean()))


def _round_up(values: Array, scale: float) -> None:
    values *= 1.0 + 2.0**-44
    values += 2.0**-46 * scale


def _nothing_to_learn(game: _Game, delta: float, confidence_level: float) -> SoftmaxCertificate:
    """The output does not depend on who is in: one outcome, or records that are all alike."""
    zeros = np.zeros(game.records)
    return SoftmaxCertificate(
        epsilon=0.0,
        delta=delta,
        confidence_level=confidence_level,
        per_record=zeros,
        point=zeros.copy(),
        delta_rare=0.0,
        deterministic=zeros.copy(),
        certain=zeros.copy(),
        contenders=np.ones(len(game.group), dtype=bool),
        probabilities=game.portion.copy(),
        draws=0,
        probability_draws=0,
        evaluated=0,
    )


# ----------------------------------------------------------------------------------------------------------------------
# Drawing


@dataclass(frozen=True, eq=False)
class _Sums:
    """Numbers, sums and sums of squares of samples."""

    count: NDArray[np.int64]
    total: Array
    squares: Array

    def add(self, other: _Sums) -> None:
        for mine, more in zip(self._parts, other._parts, strict=True):
            mine += more

    @property
    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self.count, self.total, self.squares

    @property
    def mean(self) -> Array:
        return self.total / np.maximum(self.count, 1)

    @property
    def mean_square(self) -> Array:
        return self.squares / np.maximum(self.count, 1)

    @property
    def variance(self) -> Array:
        """Sample variances with the divisor count - 1, not below 0."""
        spread = self.squares - self.total * self.mean
        return np.maximum(spread, 0.0) / np.maximum(self.count - 1, 1)


@dataclass(frozen=True, eq=False)
class _Block:
    """What a block of draws leaves behind: sums of the probabilities, and of U - V per outcome and record."""

    frequencies: _Sums
    differences: _Sums

    @classmethod
    def empty(cls, outcomes: int, records: int) -> _Block:
        shape = (outcomes, records)
        return cls(
            _Sums(np.array(0, dtype=np.int64), np.zeros(2 * outcomes), np.zeros(2 * outcomes)),
            _Sums(np.zeros(records, dtype=np.int64), np.zeros(shape), np.zeros(shape)),
        )

    def add(self, other: _Block) -> None:
        self.frequencies.add(other.frequencies)
        self.differences.add(other.differences)


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Draws blocks of subsets, each block from a seed of its own.

    ``ranking`` orders the outcomes for the nested sums; ``evaluated`` are the records that are simulated. They are
    matched with each other (all records then), or each draws a partner.
    """

    game: _Game
    ranking: Index
    evaluated: Index
    matching: bool

    @property
    def width(self) -> int:
        """Numbers per outcome and draw that are worked on at once."""
        return self.game.records if self.matching else max(self.game.matched, len(self.evaluated))

    def batch(self, width: int) -> int:
        """How many draws are worked on at once."""
        return max(1, BATCH // (self.game.outcomes * width), 4096 // self.game.records)

    def block(self, draws: int, seed: np.random.SeedSequence) -> _Block:
        """Draw subsets and pairs. O(draws·N·m)."""
        return self._matched(draws, seed) if self.matching else self._partnered(draws, seed)

    def probability_block(self, draws: int, seed: np.random.SeedSequence) -> _Block:
        """Draw subsets for P(w) only. O(draws·N·m), with a smaller constant."""
        block = _Block.empty(self.game.outcomes, 0)
        for orders, space in _orders(self.game, seed, draws, self.batch(self.game.matched)):
            self._count(np.exp(self.game.log_law(orders, space)), block)
        return block

    def _count(self, law: Array, block: _Block) -> None:
        """Add p_w(D), and then the nested sums over the rarest outcomes."""
        rows = np.concatenate([law, np.cumsum(law[self.ranking], axis=0)])
        count = np.array(law.shape[1], dtype=np.int64)
        block.frequencies.add(_Sums(count, rows.sum(axis=1), np.square(rows).sum(axis=1)))

    def _matched(self, draws: int, seed: np.random.SeedSequence) -> _Block:
        block = _Block.empty(self.game.outcomes, self.game.records)
        room = _Room.of(self.game, 0)
        for orders, space in _orders(self.game, seed, draws, self.batch(self.width)):
            if len(room.place) != len(orders):
                room = _Room.of(self.game, len(orders))
            log_law = self.game.log_law(orders, space)
            law = np.exp(log_law)
            self._count(law, block)
            swapped = _swapped(self.game, orders, log_law, law, space, room)
            _settle(self.game, orders, law, swapped, room, block.differences)
        return block

    def _partnered(self, draws: int, seed: np.random.SeedSequence) -> _Block:
        """Partners of different records may coincide: for one record the pair is as valid as in a matching."""
        block = _Block.empty(self.game.outcomes, len(self.evaluated))
        own = self.game.table[:, None, self.evaluated]
        choice = np.random.default_rng(seed.spawn(1)[0])
        for orders, space in _orders(self.game, seed, draws, self.batch(self.width)):
            log_law = self.game.log_law(orders, space)
            law = np.exp(log_law)
            self._count(law, block)
            sign, partners = _partners(self.game, orders, self.evaluated, choice)
            samples = _after_swap(log_law, (own - self.game.table[:, partners]) * sign)
            np.subtract(law[:, :, None], samples, out=samples)
            samples *= sign
            count = np.full(len(self.evaluated), len(orders), dtype=np.int64)
            total = samples.sum(axis=1)
            block.differences.add(_Sums(count, total, np.square(samples, out=samples).sum(axis=1)))
        return block


def _orders(game: _Game, seed: np.random.SeedSequence, draws: int, batch: int) -> Iterator[tuple[Index, Array]]:
    """Uniform orders of the pool, ``batch`` at a time, with room for the table at the smaller side of each."""
    rng = np.random.default_rng(seed)
    for size, times in ((batch, draws // batch), (draws % batch, 1)):
        start = np.broadcast_to(np.arange(game.records), (size, game.records))
        orders = np.empty((size, game.records), dtype=np.intp)
        space = np.empty((game.outcomes, size, game.matched))
        for _ in range(times if size else 0):
            rng.permuted(start, axis=1, out=orders)
            yield orders, space


@dataclass(frozen=True, eq=False)
class _Room:
    """Arrays that are used again for each batch."""

    partner: Array
    lead: Array
    signed: Array
    seen: Array
    place: Index
    cells: Index

    @classmethod
    def of(cls, game: _Game, draws: int) -> _Room:
        shape = (draws, game.records)
        return cls(
            partner=np.empty((game.outcomes, draws, game.matched)),
            lead=np.empty((draws, game.matched)),
            signed=np.zeros(shape),
            seen=np.empty(shape),
            place=np.empty(shape, dtype=np.intp),
            cells=np.arange(draws * game.records).reshape(shape),
        )


def _swapped(game: _Game, orders: Index, log_law: Array, law: Array, space: Array, room: _Room) -> Array:
    """p_w(D - x + y) for all matched pairs, (outcomes, draws, pairs), in ``space``."""
    members, others = orders[:, : game.matched], orders[:, game.k : game.k + game.matched]
    if game.raised is not None and game.lowered is not None:
        np.take(game.raised, members, axis=1, out=space, mode="clip")
        np.take(game.lowered, others, axis=1, out=room.partner, mode="clip")
        space *= room.partner
        space *= law[:, :, None]
    else:
        np.take(game.table, members, axis=1, out=space, mode="clip")
        np.take(game.table, others, axis=1, out=room.partner, mode="clip")
        space -= room.partner
        space += log_law[:, :, None]
        space -= np.maximum.reduce(space, axis=0, out=room.lead)
        np.exp(space, out=space)
    space /= np.add.reduce(space, axis=0, out=room.lead)
    return space


def _settle(game: _Game, orders: Index, law: Array, swapped: Array, room: _Room, sums: _Sums) -> None:
    """Add U - V of both records of each pair to their sums: by position first, then brought into the pool's order."""
    s, k = game.matched, game.k
    rows = room.cells[:, :1]
    room.place.reshape(-1)[(orders + rows).reshape(-1)] = room.cells.reshape(-1)
    for w in range(game.outcomes):
        np.subtract(law[w][:, None], swapped[w], out=room.signed[:, :s])
        np.negative(room.signed[:, :s], out=room.signed[:, k : k + s])
        np.take(room.signed.reshape(-1), room.place, out=room.seen, mode="clip")
        sums.total[w] += room.seen.sum(axis=0)
        np.square(room.seen, out=room.seen)
        sums.squares[w] += room.seen.sum(axis=0)
    for part in (orders[:, :s], orders[:, k : k + s]):
        sums.count[:] += np.bincount(part.reshape(-1), minlength=game.records)


def _partners(game: _Game, orders: Index, records: Index, rng: np.random.Generator) -> tuple[Array, Index]:
    """For each draw and record: +1 if it is in and -1 if not, and a uniform record from the other side."""
    inside = np.zeros(orders.shape, dtype=bool)
    np.put_along_axis(inside, orders[:, : game.k], True, axis=1)
    inside = inside[:, records]
    members = rng.integers(0, game.k, inside.shape)
    others = rng.integers(game.k, game.records, inside.shape)
    partners = np.take_along_axis(orders, np.where(inside, others, members), axis=1)
    return np.where(inside, 1.0, -1.0), partners


def _after_swap(log_law: Array, change: Array) -> Array:
    """p_w·e^{change_w} normalised, (outcomes, draws, records), in place."""
    change += log_law[:, :, None]
    change -= change.max(axis=0)
    np.exp(change, out=change)
    change /= change.sum(axis=0)
    return change


# ----------------------------------------------------------------------------------------------------------------------
# Blocks of draws, in order, on several threads


@dataclass(eq=False)
class _Clock:
    """Tells the finished share of the work, and when to stop."""

    work: float
    progress: Progress | None
    end: float
    done: float = 0.0

    def tick(self, work: float) -> None:
        self.done += work
        if self.progress is not None:
            self.progress(min(1.0, self.done / self.work))

    def late(self) -> bool:
        return time.monotonic() >= self.end


def _collect(
    worker: Callable[[int, np.random.SeedSequence], _Block],
    sizes: list[int],
    seed: np.random.SeedSequence,
    threads: int,
    clock: _Clock,
    cost: float,
) -> _Block:
    """Sum blocks of the given sizes, each with its own seed, until the list or the time is over; at least one block.

    The order of the additions is that of the list, so the result is the same for any number of threads.
    """
    results = _in_order(worker, sizes, seed, threads, clock)
    total = next(results)
    clock.tick(sizes[0] * cost)
    for block, size in zip(results, sizes[1:], strict=False):
        total.add(block)
        clock.tick(size * cost)
    return total


def _in_order(
    worker: Callable[[int, np.random.SeedSequence], _Block],
    sizes: list[int],
    seed: np.random.SeedSequence,
    threads: int,
    clock: _Clock,
) -> Iterator[_Block]:
    seeds = (seed.spawn(1)[0] for _ in sizes)
    if threads == 1:
        for number, job in enumerate(zip(sizes, seeds, strict=True)):
            if number and clock.late():
                return
            yield worker(*job)
        return
    waiting: deque[Future[_Block]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for number, job in enumerate(zip(sizes, seeds, strict=True)):
            if number and clock.late():
                break
            waiting.append(pool.submit(worker, *job))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _block_sizes(draws: int, batch: int, width: int) -> list[int]:
    """Split ``draws`` into blocks of whole batches that are worth a thread's while; the last block takes the rest."""
    size = batch * max(8, BLOCK // (batch * width))
    full, rest = divmod(draws, size)
    return [size] * full + ([rest] if rest else [])


# ----------------------------------------------------------------------------------------------------------------------
# Representatives


@dataclass(frozen=True, eq=False)
class _Thinning:
    """Records that stand for others.

    ``nearest`` points into ``records``, ``radius`` is range_w(g_x - g_r), rounded up, and ``loss`` is by how much the
    largest limit is expected to rise.
    """

    records: Index
    nearest: Index
    radius: Array
    loss: float


def _choose_representatives(game: _Game, most: int, guess: Array, certain: Array, enough: float = 0.0) -> _Thinning:
    """Pick up to ``most`` records so that the others can be bounded by their likeness to one of them.

    *Claim.* If range_w(g_x - g_r) ≤ ρ then |θ_xw - θ_rw| ≤ 2ρ for every w and every k. *Proof.* Let τ exchange x and r.
    D → τD maps the k-subsets with x onto those with r, and those without x onto those without r, one to one. If D has
    both or neither, τD = D; otherwise one of the two replaces the other, and ln p_w(D)/p_w(τD) is within ±ρ (point 3 of
    the module). Averaging, ln P_in and ln P_out differ between x and r by at most ρ each.

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
    return _Thinning(np.array(chosen, dtype=np.intp), nearest, radius, loss)


def _distance(game: _Game, record: int, scale: float) -> Array:
    """range_w(g_x - g_r) of all records x, rounded up; 0 for r itself and its twins."""
    gaps = game.table - game.table[:, record, None]
    reach = np.asarray(gaps.max(axis=0) - gaps.min(axis=0))
    apart = reach > 0.0
    reach[apart] = reach[apart] * (1.0 + 2.0**-44) + 2.0**-46 * scale
    return reach


def _rough_ratios(game: _Game, law: Array) -> Array:
    """Rough max_w |θ_xw| over outcomes that are not rare, to first order in the logits: a guide, not a bound.

    θ_xw ≈ Σ_v K_wv Δ_v - Δ_w with Δ = g_x - mean g and K_wv = E(p_w p_v)/P(w), from a sample ``law`` (outcomes, draws).
    """
    often = law.mean(axis=1)
    kept = often >= min(0.02, float(often.max()))
    mixing = (law[kept] @ law.T) / (law.shape[1] * often[kept, None])
    gaps = game.table - game.table.mean(axis=1, keepdims=True)
    return np.asarray(np.abs(mixing @ gaps - gaps[kept]).max(axis=0))


def _thinning(game: _Game, caps: _Caps, law: Array, most: int | None) -> _Thinning | None:
    """The thinning asked for; by default for large pools, if it costs no more than a tenth of the limit plus 0.01.

    A hundred representatives show whether two thousand could do: in two dimensions the radii shrink to 0.22.
    """
    if most == 0 or (most is None and game.records <= AUTO_REPRESENTATIVES):
        return None
    guess, certain = _rough_ratios(game, law), caps.certain
    if most is not None:
        return _choose_representatives(game, most, guess, certain)
    bearable = 0.01 + 0.1 * float(np.minimum(certain, guess).max())
    for number, allowance in ((100, 5.0 * bearable), (MOST_REPRESENTATIVES, bearable)):
        chosen = _choose_representatives(game, number, guess, certain, 0.25 * bearable)
        if chosen.loss > allowance:
            return None
    return chosen


# ----------------------------------------------------------------------------------------------------------------------
# From sums to limits


@dataclass(frozen=True, eq=False)
class _Probabilities:
    """What is known about the P(w).

    ``masses``, in order of ``ranking``: for the first ``loose`` outcomes the rises of the upper limits on the nested
    sums, for the others their own upper limits.
    """

    ranking: Index
    estimate: Array
    lower: Array
    masses: Array
    loose: int

    @classmethod
    def of(cls, sums: _Sums, ranking: Index, beta: float, slack: float) -> _Probabilities:
        """All limits hold at once except with probability ``beta``: empirical Bernstein, three limits an outcome.

        Outcomes up to the last one that is not known to within a factor of two are taken together.
        """
        m = len(ranking)
        log_term = math.log(2.0 * 3.0 * m / beta)
        mean, variance, count = sums.mean, sums.variance + slack, int(sums.count)
        lower = np.maximum(0.0, empirical_bernstein_lower(mean[:m], variance[:m], count, log_term) - slack)
        upper = np.minimum(1.0, empirical_bernstein_upper(mean, variance, count, log_term) + slack)
        known, own = lower[ranking], upper[:m][ranking]
        nested = np.minimum(upper[m:], 1.0 - (known.sum() - np.cumsum(known)) + 2.0**-46)
        nested = np.minimum.accumulate(nested[::-1])[::-1]
        loose = int(np.max(np.flatnonzero(own > 2.0 * known), initial=-1)) + 1
        masses = np.concatenate([np.diff(nested[:loose], prepend=0.0), own[loose:]])
        return cls(ranking, mean[:m], lower, masses, loose)


def _lambdas(samples: float, log_term: float) -> Array:
    """Halvings of the largest λ down to about the one that is best for samples as spread as their range allows."""
    least = math.sqrt(2.0 * log_term / max(samples, 1.0))
    steps = max(1, 1 + math.ceil(math.log2(LARGEST_LAMBDA / least))) if least < LARGEST_LAMBDA else 1
    return np.asarray(LARGEST_LAMBDA * 0.5 ** np.arange(steps))


def _mean_upper(mean: Array, mean_square: Array, count: Array, reach: Array, log_term: float, lambdas: Array) -> Array:
    """Upper limit on the mean of independent variables that never exceed ``reach`` (point 5 of the module).

    ``log_term`` holds the union over the λ already.
    """
    upper = reach.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for lam in lambdas:
            psi = -math.log1p(-lam) - lam
            exponent = lam * mean / reach + psi * mean_square / reach**2 + log_term / count
            np.fmin(upper, -np.expm1(-exponent) * reach / lam, out=upper)
    return upper


def _log_ratio(difference: Array, lower: Array, share: float) -> Array:
    """Largest ln(P_in/P_out) if P_in - P_out ≤ ``difference`` and P ≥ ``lower`` (point 2 of the module), at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(difference, 0.0) / lower[:, None]
        value = np.log1p((1.0 - share) * ratio) - np.log1p(-np.minimum(share * ratio, 1.0))
    return np.where(np.isnan(value), np.inf, value * (1.0 + 2.0**-44))


@dataclass(frozen=True, eq=False)
class _Ratios:
    """Values (limits or estimates) of θ and -θ for each outcome and record, not below 0."""

    into: Array
    out: Array

    @property
    def largest(self) -> Array:
        return np.asarray(np.maximum(self.into, self.out).max(axis=0))

    @property
    def worst(self) -> Array:
        return np.asarray(np.maximum(self.into, self.out).max(axis=1))

    def ranked(self, ranking: Index) -> _Ratios:
        return _Ratios(self.into[ranking], self.out[ranking])

    def capped(self, caps: _Caps) -> _Ratios:
        return _Ratios(np.minimum(self.into, caps.mean_in), np.minimum(self.out, caps.mean_out))

    def spread(self, thinning: _Thinning | None, margin: float) -> _Ratios:
        """From representatives to all records, ``margin`` times the radius apart."""
        if thinning is None:
            return self
        more = margin * thinning.radius
        return _Ratios(self.into[:, thinning.nearest] + more, self.out[:, thinning.nearest] + more)


def _limits(game: _Game, caps: _Caps, sums: _Sums, records: Index, lower: Array, beta: float, slack: float) -> _Ratios:
    """Upper limits on ±θ for the evaluated records, all at once except with probability ``beta``.

    The mean number of samples, which sets the λ, is known before the draws.
    """
    events = 2.0 * sums.total.size
    lambdas = _lambdas(float(sums.count.mean()), math.log(events / beta))
    log_term = math.log(events * len(lambdas) / beta)
    mean, square, count = sums.mean, sums.mean_square + slack, sums.count.astype(np.float64)
    upper = _mean_upper(mean, square, count, np.tanh(caps.range_in[:, records] / 4.0), log_term, lambdas)
    below = _mean_upper(-mean, square, count, np.tanh(caps.range_out[:, records] / 4.0), log_term, lambdas)
    return _Ratios(
        _log_ratio(upper + slack, lower, game.share),
        _log_ratio(below + slack, lower, 1.0 - game.share),
    )


# ----------------------------------------------------------------------------------------------------------------------
# δ


def _excess(ratios: Array, epsilon: Array, share: float, masses: Array, loose: int) -> Array:
    """Upper limit on E_{e^ε}(P_in ‖ P_out) per record (point 6 of the module); rows in order of the ranking."""
    fade = np.exp(-ratios)
    weights = np.maximum(0.0, 1.0 - np.exp(np.minimum(epsilon, 700.0)) * fade) / (share + (1.0 - share) * fade)
    weights[:loose] = np.maximum.accumulate(weights[:loose][::-1], axis=0)[::-1]
    return np.asarray(masses @ weights)


def _both_excesses(ratios: _Ratios, epsilon: Array, share: float, masses: Array, loose: int) -> Array:
    return np.maximum(
        _excess(ratios.into, epsilon, share, masses, loose),
        _excess(ratios.out, epsilon, 1.0 - share, masses, loose),
    )


def _smallest_epsilons(ratios: _Ratios, delta: float, share: float, masses: Array, loose: int) -> Array:
    """Per record the smallest ε, from above, at which neither direction exceeds by more than δ. 44 steps of O(N·m)."""
    high = ratios.largest
    if delta == 0.0:
        return high
    target = delta * (1.0 - 2.0**-40)
    for start in range(0, len(high), 2**15):
        part = slice(start, start + 2**15)
        piece = _Ratios(ratios.into[:, part], ratios.out[:, part])
        top, low = high[part], np.zeros(len(high[part]))
        top[_both_excesses(piece, low, share, masses, loose) <= target] = 0.0
        for _ in range(44):
            middle = 0.5 * (low + top)
            holds = _both_excesses(piece, middle, share, masses, loose) <= target
            top[holds] = middle[holds]
            low[~holds] = middle[~holds]
    return high


# ----------------------------------------------------------------------------------------------------------------------
# The whole


def _pilot(game: _Game, seed: np.random.SeedSequence) -> Array:
    """Laws p(D) of a few subsets, (outcomes, draws), which no limit uses."""
    draws = int(np.clip(2 * 10**8 // game.table.size, 64, 1000))
    batch = max(1, BATCH // game.table.size)
    laws = [np.exp(game.log_law(orders, space)) for orders, space in _orders(game, seed, draws, batch)]
    return np.concatenate(laws, axis=1)


def _draw_numbers(game: _Game, plan: _Plan, sampler: _Sampler) -> tuple[int, int]:
    """How many subsets to draw for the records and for the probabilities."""
    draws = plan.draws
    if draws is None:
        per_draw = 2.0 * game.matched / game.records if sampler.matching else 1.0
        affordable = max(1000.0, DEFAULT_WORK / (game.outcomes * sampler.width))
        draws = math.ceil(min(DEFAULT_SAMPLES / per_draw, affordable))
    return draws, plan.probability_draws if plan.probability_draws is not None else math.ceil(2.5 * draws)


def _draw(game: _Game, sampler: _Sampler, plan: _Plan, seeds: list[np.random.SeedSequence]) -> tuple[_Block, _Block]:
    """Draw for the probabilities, with at most 0.3 of the time, then for the records."""
    draws, further = _draw_numbers(game, plan, sampler)
    wide, narrow = game.outcomes * sampler.width, game.outcomes * game.matched
    clock = _Clock(2.0 * draws * wide + further * narrow, plan.progress, plan.start + 0.3 * plan.seconds)
    sizes = _block_sizes(further, sampler.batch(game.matched), narrow)
    first = _collect(sampler.probability_block, sizes, seeds[0], plan.threads, clock, narrow)
    clock.end = plan.start + plan.seconds
    sizes = _block_sizes(draws, sampler.batch(sampler.width), wide)
    second = _collect(sampler.block, sizes, seeds[1], plan.threads, clock, 2.0 * wide)
    return first, second


def _simulated(game: _Game, caps: _Caps, delta: float, confidence_level: float, plan: _Plan) -> SoftmaxCertificate:
    seeds = np.random.SeedSequence(plan.seed).spawn(3)
    pilot = _pilot(game, seeds[2])
    ranking = np.argsort(pilot.mean(axis=1), kind="stable")
    thinning = _thinning(game, caps, pilot, plan.representatives)
    evaluated = np.arange(game.records) if thinning is None else thinning.records
    sampler = _Sampler(game, ranking, evaluated, thinning is None and 4 * game.matched >= game.records)
    first, second = _draw(game, sampler, plan, seeds)
    return _concluded(game, caps, delta, confidence_level, sampler, thinning, first, second)


def _concluded(
    game: _Game,
    caps: _Caps,
    delta: float,
    confidence_level: float,
    sampler: _Sampler,
    thinning: _Thinning | None,
    first: _Block,
    second: _Block,
) -> SoftmaxCertificate:
    """Turn the sums into limits, and these into the certificate."""
    further, draws = int(first.frequencies.count), int(second.frequencies.count)
    first.frequencies.add(second.frequencies)
    beta, slack = 1.0 - confidence_level, game.rounding + (draws + further) * 2.0**-52
    chances = _Probabilities.of(first.frequencies, sampler.ranking, (1.0 - SHARE_OF_DIFFERENCES) * beta, slack)
    sums = second.differences
    limits = _limits(game, caps, sums, sampler.evaluated, chances.lower, SHARE_OF_DIFFERENCES * beta, slack)
    ratios = limits.spread(thinning, 2.0).capped(caps)
    per_record = _smallest_epsilons(ratios.ranked(sampler.ranking), delta, game.share, chances.masses, chances.loose)
    per_record = np.minimum(per_record, caps.certain)
    contenders = ratios.worst < _Ratios(caps.mean_in, caps.mean_out).worst
    epsilon = float(per_record.max())
    return SoftmaxCertificate(
        epsilon=epsilon,
        delta=delta,
        confidence_level=confidence_level,
        per_record=per_record,
        point=_point(game, caps, sums, chances, thinning, delta),
        delta_rare=min(delta, _rare_excess(ratios, contenders, epsilon, game.share, chances)),
        deterministic=caps.deterministic,
        certain=caps.certain,
        contenders=contenders[game.group],
        probabilities=chances.estimate[game.group] * game.portion,
        draws=draws,
        probability_draws=further,
        evaluated=len(sampler.evaluated),
    )


def _rare_excess(
    ratios: _Ratios, contenders: NDArray[np.bool_], epsilon: float, share: float, chances: _Probabilities
) -> float:
    """What the outcomes that are no contenders use of δ."""
    rare = _Ratios(*(np.where(contenders[:, None], 0.0, part) for part in (ratios.into, ratios.out)))
    ranked, level = rare.ranked(chances.ranking), np.full(ratios.into.shape[1], epsilon)
    return float(_both_excesses(ranked, level, share, chances.masses, chances.loose).max())


def _point(
    game: _Game, caps: _Caps, sums: _Sums, chances: _Probabilities, thinning: _Thinning | None, delta: float
) -> Array:
    """The same with estimates in place of limits."""
    mean, order = sums.mean, chances.ranking
    estimates = _Ratios(
        _log_ratio(mean, chances.estimate, game.share), _log_ratio(-mean, chances.estimate, 1.0 - game.share)
    )
    ranked = estimates.spread(thinning, 0.0).capped(caps).ranked(order)
    return _smallest_epsilons(ranked, delta, game.share, chances.estimate[order], 0)
