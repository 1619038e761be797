"""Exact sums of a softmax over every k-subset of N records: the exponential mechanism, played through completely.

The mechanism publishes candidate w with probability p_w(D) proportional to exp(-Σ_{i∈D} G[i, w]); G holds the logits of
the records (N, m). Wanted are, for every record x and candidate w, the means of p_w(D) over the k-subsets D that hold x
and over those that do not: the two laws that an attacker who knows the pool has to tell apart (Lowy et al. 2024,
practical membership privacy; the uniform k-subset game of Izzo et al. 2022).

**Meet in the middle.** Split the pool into halves A and B. A subset is a pair (a, b) with a ⊂ A of size j and b ⊂ B of
size k-j, and its weight is a product, exp(-Σ_D G[·, w]) = E_A[a, w]·E_B[b, w]. So exponentials are needed for the
2^(N/2) subsets of a half only, and for each j

    Z = E_A E_Bᵀ,  R = 1/Z,  Σ_b p_w(a, b) = E_A[a, w]·(R E_B)[a, w],  Σ_a p_w(a, b) = E_B[b, w]·(Rᵀ E_A)[b, w]:

three matrix products and one reciprocal a subset, after which the rows are added up by membership. Everything added is
positive, and the sums with and without a record are added up separately (never one as the total less the other), so no
digit is lost to cancellation however far the two lie apart. Cost: C(N, k)·(6m + 1) operations.

**Scaling.** Adding a constant to a record's logits changes nothing, and adding c_w to a candidate's logits of every
record multiplies its weight by exp(-k·c_w). Both are taken out first (the logits are centred by record and by
candidate, and the weights V_w enter in Z only), rows of E_A and E_B have a maximum of 1, and the results are kept as
logarithms. As long as the k widest centred records span less than ``_WIDEST`` together, no intermediate value overflows
or loses digits by underflow. Wider logits go to a route that stays in the log domain and is slower, about 3m
exponentials a subset.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import io
import itertools
import math
import os
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.errors import InputError, InputTypeError, MissingExtraError, check_choice, check_whole

__all__ = ["SubsetLaws", "adjacent_epsilon", "estimate_seconds", "range_bound", "subset_count", "subset_laws"]

Array = NDArray[np.float64]

METHODS = ("auto", "fused", "blas", "direct")
"""Routes of :func:`subset_laws`: chosen for you; fused kernel (numba); matrix products (numpy); log domain."""

_MOST_SUBSETS = 2**53
_LARGEST = 1e100  # of a logit, so that no sum or difference overflows
_WIDEST = 600.0  # e^±600 is a normal number, with room for sums of 2^53 of them
_FUSED_FROM = 2**28  # subsets; below, matrix products end sooner than the kernel is compiled or loaded
_FUSED_CANDIDATES = 40  # beyond this many candidates, matrix products are as fast as the kernel
_LONG_BLOCK = 2**14
_TASK_SUBSETS = 2**25
_ONE_THREAD = 2**18  # multiplications up to which OpenBLAS stays in the calling thread
_FUSED_WIDTH = 192  # columns of a tile of the kernel; with 4 rows and m = 10 the tile stays in the first-level cache

# Nanoseconds a subset on one core of a server of 2021: constant, and slope in the number of candidates.
_NANOSECONDS = {"fused": (0.3, 0.2), "blas": (2.2, 0.18), "direct": (30.0, 55.0)}


@dataclass(frozen=True)
class SubsetLaws:
    """Means of p_w(D) over the k-subsets D: with record x, without it, and over all.

    Attributes
    ----------
    inside, outside : ndarray of shape (N, m)
        Mean of p_w(D) over the subsets that hold x, and over those that do not.
    total : ndarray of shape (m,)
        Mean over all k-subsets.
    log_inside, log_outside, log_total : ndarray
        Their natural logarithms, also where the numbers themselves are too small for floating point.
    method : str
        The route taken: ``"fused"``, ``"blas"`` or ``"direct"`` (``"closed"`` where all candidates are alike).
    """

    inside: Array
    outside: Array
    total: Array
    log_inside: Array = field(repr=False)
    log_outside: Array = field(repr=False)
    log_total: Array = field(repr=False)
    method: str

    @property
    def log_ratio(self) -> Array:
        """ln inside/outside (N, m); the largest absolute value is the exact ε of practical membership privacy."""
        return self.log_inside - self.log_outside


def subset_count(n_records: int, k: int) -> int:
    """Return C(N, k), the number of k-subsets of N records."""
    n_records = check_whole("n_records", n_records, low=0)
    return math.comb(n_records, check_whole("k", k, low=0))


def estimate_seconds(n_records: int, k: int, m: int, *, n_jobs: int = 1, method: str = "auto") -> float:
    """Return roughly how long :func:`subset_laws` takes, for m distinct candidates and ``n_jobs`` idle cores.

    The number of subsets times a constant that was measured once, on one machine; expect a factor of three either way.
    Compilation of the fused kernel on its first use (2 to 3 seconds) is not included. Grows like C(N, k)·m.
    """
    subsets = subset_count(n_records, k)
    m = check_whole("m", m, low=1)
    n_jobs = check_whole("n_jobs", n_jobs, low=1)
    check_choice("method", method, METHODS)
    constant, slope = _NANOSECONDS[_route(method, subsets, m, 0.0)]
    return 1e-3 + subsets * (constant + slope * m) * 1e-9 / n_jobs


def subset_laws(
    logits: ArrayLike,
    k: int,
    *,
    method: str = "auto",
    n_jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
    journal: str | os.PathLike[str] | None = None,
    memory: int = 2**30,
) -> SubsetLaws:
    """Return the exact laws of the exponential mechanism with and without each record, over all k-subsets.

    Claim: every entry is the mean of exp(-Σ_{i∈D} G[i, w]) / Σ_v exp(-Σ_{i∈D} G[i, v]) over the stated subsets, with a
    relative error of about 1e-15·(m + largest sum of centred logits), which stays below 1e-12 up to sums of 600.
    Nothing is sampled and no candidate is left out; candidates with equal columns are computed once and share their
    result. Source: the definition, summed by meeting in the middle (module docstring). Cost grows like C(N, k)·m: some
    2 ns (fused) or 4 ns (matrix products) a subset and core at m = 10.

    Parameters
    ----------
    logits : array of shape (N, m)
        G[i, w], record i's share in the negative logit of candidate w; for a mean loss and an inverse temperature λ,
        λ·loss(w, x_i)/k.
    k : int
        Size of the subsets, from 1 to N-1; with k = N there are no subsets without a record.
    method : {"auto", "fused", "blas", "direct"}
        ``"fused"`` needs numba (extra ``whosin[fast]``); ``"direct"`` works in the log domain and is always right, if
        slow: a hundred times and more. ``"auto"`` takes ``"direct"`` where the logits are too wide for the others,
        ``"fused"`` where numba is installed and the problem is large enough to repay its compilation, and else
        ``"blas"``. The routes agree to about 1e-14, not bit for bit.
    n_jobs : int, optional
        Threads, -1 for all cores; as in joblib, None means one unless ``joblib.parallel_config`` says otherwise. The
        result is the same for every number, bit for bit.
    progress : callable, optional
        Called with the fraction done, after every finished task (at most some 3·10^7 subsets), in the calling thread.
    journal : path, optional
        A file that keeps the sums of the finished tasks, replaced atomically after each. A run that was interrupted
        resumes from it and loses only the tasks that were running; a finished one is answered from it at once.
    memory : int
        Bytes that the tables of one run may take, roughly, with up to four threads.

    Raises
    ------
    InputError
        For logits that are not finite or not two-dimensional, a k out of range, more than 2^53 subsets, or a journal
        that is damaged or belongs to another run.
    MissingExtraError
        For ``method="fused"`` without numba.
    """
    table = _check_logits(logits)
    n_records, m = table.shape
    k = _check_size(k, n_records)
    check_choice("method", method, METHODS)
    memory = check_whole("memory", memory, low=2**16)
    if n_jobs is not None and check_whole("n_jobs", n_jobs, low=-(2**31)) == 0:
        raise InputError("n_jobs takes a whole number other than 0, or None, got 0")
    subsets = subset_count(n_records, k)
    if subsets > _MOST_SUBSETS:
        more = subsets.bit_length() - 1
        raise InputError(f"logits and k take at most 2^53 subsets, got C({n_records}, {k}), more than 2^{more}")

    distinct, counts, back = _merge_columns(table)
    if len(counts) == 1:
        if progress is not None:
            progress(1.0)
        shape = np.full(table.shape, 1.0 / m)
        return _laws(np.log(shape), np.log(shape), np.log(shape[0]), back=None, method="closed")

    centred, offsets = _centre(distinct)
    widest = float(np.sort(np.ptp(centred, axis=1))[-k:].sum())
    route = _route(method, subsets, len(counts), widest)
    if route == "fused":
        _fused_kernel()  # before the threads start, so that it is compiled once
    log_weights = -k * (offsets - offsets.min())
    problem = _Problem(centred, k, log_weights, counts, route, memory)
    sums = _run(problem, table, n_jobs, progress, journal)
    with np.errstate(divide="ignore"):
        logs = sums if route == "direct" else np.log(sums) + log_weights
    n = n_records
    return _laws(
        logs[:n] - math.log(math.comb(n - 1, k - 1)),
        logs[n : 2 * n] - math.log(math.comb(n - 1, k)),
        logs[2 * n] - math.log(subsets),
        back=back,
        method=route,
    )


def range_bound(logits: ArrayLike) -> tuple[float, Array]:
    """Return max_x A_x and the A_x = max_y range_w(G[x, w] - G[y, w]) (N,), in O(N·m²).

    Claim: swapping x for any y of the pool moves every ln p_w(D) by at most A_x, for every D and k; the first value
    therefore bounds the pool's ε(X) from above, up to rounding in the last digit. Source: ln p_w(D) - ln p_w(D-x+y) =
    ln Σ_v p_v(D)·e^{d_v} - d_w with d = G[x] - G[y], and a mean of e^{d} lies between its extremes. The maximum over
    y is taken for each pair of candidates: A_x = max_{v,w} (G[x, v] - G[x, w]) - min_y (G[y, v] - G[y, w]).
    """
    distinct, _, _ = _merge_columns(_check_logits(logits))
    per_record = np.zeros(len(distinct))
    for column in distinct.T:
        differences = column[:, None] - distinct
        np.maximum(per_record, (differences - differences.min(axis=0)).max(axis=1), out=per_record)
    return float(per_record.max()), per_record


def adjacent_epsilon(logits: ArrayLike, k: int, *, limit: int = 2**22) -> tuple[float, float]:
    """Return a lower and an upper limit on the pool's ε(X), equal to each other where it was computed exactly.

    ε(X) is the largest |ln p_w(D)/p_w(D')| over the candidates w and the k-subsets D and D' = D - x + y of the pool:
    the parameter of differential privacy, adjacency by replacement, restricted to the records at hand.

    - One distinct candidate: 0. Two: exact for every N, in O(N log N). With s = Σ_{i∈D} (G[i, 0] - G[i, 1]) and
      candidates 0 and 1 occurring c₀ and c₁ times, -ln p₀ = ln(c₀ + c₁e^s) is increasing and convex in s, so the
      largest step ends in the k records with the largest differences and trades their largest for the smallest of all;
      for p₁ the same with the signs changed.
    - More: exact by enumeration where min(C(N, k-1), C(N, k+1)) ≤ ``limit`` (N = 24 at the default for k = N/2, some
      seconds). Sets that differ in one record share the k-1 records C of their intersection, and also the k+1 of their
      union; so the largest difference is the range over y ∉ C of ln p_w(C + y), maximised over C and w, or the same
      with the union. Cost: the number of sets C times N·m, with N logarithms and no other transcendental function.
    - Else an interval: above, the first value of :func:`range_bound`, which holds for every k; below, the best of a
      cheap search: sets C that make one candidate as likely as possible, and a few random ones (the same every time).
      The lower limit is attained by a pair of subsets of the pool; how far it lies below ε(X) is not known.

    Values are right to about 1e-14 times the largest sum of logits.
    """
    table = _check_logits(logits)
    n_records = len(table)
    k = _check_size(k, n_records)
    limit = check_whole("limit", limit, low=0)
    distinct, counts, _ = _merge_columns(table)
    if len(counts) == 1:
        return 0.0, 0.0
    if len(counts) == 2:
        difference = distinct[:, 0] - distinct[:, 1]
        first = _two_candidate_step(difference, k, counts[0], counts[1])
        second = _two_candidate_step(-difference, k, counts[1], counts[0])
        return max(first, second), max(first, second)

    swaps = _Swaps(distinct, counts)
    if math.comb(n_records, k - 1) <= math.comb(n_records, k + 1):
        size, grow = k - 1, True
    else:
        size, grow = k + 1, False
    number = math.comb(n_records, size)
    if number <= limit:
        rows = swaps.block
        blocks = (_members(n_records, size, start, min(start + rows, number)) for start in range(0, number, rows))
        exact = max(swaps.largest(members, grow) for members in blocks)
        return exact, exact

    searched = _likely_sets(distinct, k - 1)
    rows = swaps.block
    lower = max(swaps.largest(searched[start : start + rows], True) for start in range(0, len(searched), rows))
    return lower, max(lower, range_bound(distinct)[0])


# ---------------------------------------------------------------------------------------------------------------------
# Preparation


def _check_logits(logits: ArrayLike) -> Array:
    try:
        table = np.array(logits, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"logits takes a table of numbers (records, candidates), got {logits!r}") from None
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(f"logits takes a table of shape (records, candidates), got shape {table.shape}")
    if not np.isfinite(table).all():
        record, candidate = np.argwhere(~np.isfinite(table))[0]
        raise InputError(
            f"logits takes finite numbers, got {table[record, candidate]} for record {record} and candidate {candidate}"
        )
    if np.abs(table).max() > _LARGEST:
        raise InputError(f"logits takes numbers up to {_LARGEST:g}, got {np.abs(table).max():g}")
    table += 0.0  # no negative zeros, which would tell equal columns apart
    return table


def _check_size(k: int, n_records: int) -> int:
    k = check_whole("k", k)
    if not 1 <= k <= n_records - 1:
        missing = "without" if k else "with"
        raise InputError(
            f"k takes a whole number from 1 to {n_records - 1} for {n_records} records, got {k}: "
            f"there would be no subset {missing} a given record"
        )
    return k


def _merge_columns(table: Array) -> tuple[Array, Array, NDArray[np.intp]]:
    """Distinct columns in order of appearance, how often each occurs, and which of them each original column is."""
    places: dict[bytes, int] = {}
    back = np.array([places.setdefault(column.tobytes(), len(places)) for column in table.T], dtype=np.intp)
    _, first = np.unique(back, return_index=True)
    return np.ascontiguousarray(table[:, first]), np.bincount(back).astype(np.float64), back


def _centre(table: Array) -> tuple[Array, Array]:
    """Table with records and candidates centred, and what was taken from each candidate."""
    centred = table - table.mean(axis=1, keepdims=True)
    offsets = centred.mean(axis=0)
    return centred - offsets, offsets


def _route(method: str, subsets: int, m: int, widest: float) -> str:
    if method == "fused" and not _has_numba():
        raise MissingExtraError('method="fused" needs numba: pip install "whosin[fast]"')
    if method == "direct" or (method == "auto" and widest > _WIDEST):
        return "direct"
    if widest > _WIDEST:
        raise InputError(
            f'method takes "auto" or "direct" for logits this wide: the sums of {_WIDEST:g} that {method!r} stands '
            f"are exceeded ({widest:.0f})"
        )
    if method == "auto":
        return "fused" if subsets >= _FUSED_FROM and m <= _FUSED_CANDIDATES and _has_numba() else "blas"
    return method


def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def _laws(
    log_inside: Array, log_outside: Array, log_total: Array, *, back: NDArray[np.intp] | None, method: str
) -> SubsetLaws:
    if back is not None:
        log_inside, log_outside, log_total = log_inside[:, back], log_outside[:, back], log_total[back]
    return SubsetLaws(
        inside=np.exp(log_inside),
        outside=np.exp(log_outside),
        total=np.exp(log_total),
        log_inside=log_inside,
        log_outside=log_outside,
        log_total=log_total,
        method=method,
    )


def _members(n: int, size: int, start: int, stop: int) -> Array:
    """Membership (stop - start, n) of the subsets with ranks start to stop, in colexicographic order.

    A rank is C(c_size, size) + ... + C(c_1, 1) with c_size > ... > c_1 (the combinatorial number system).
    """
    ranks = np.arange(start, stop, dtype=np.int64)
    members = np.zeros((stop - start, n))
    rows = np.arange(stop - start)
    for taken in range(size, 0, -1):
        binomials = _binomials(n, taken)
        chosen = np.searchsorted(binomials, ranks, side="right") - 1
        members[rows, chosen] = 1.0
        ranks -= binomials[chosen]
    return members


@functools.lru_cache(maxsize=4096)
def _binomials(n: int, taken: int) -> NDArray[np.int64]:
    """C(0, taken) to C(n-1, taken), cut off where no rank can reach them."""
    return np.array([min(math.comb(c, taken), 2**62) for c in range(n)], dtype=np.int64)


# ---------------------------------------------------------------------------------------------------------------------
# The sums, task by task


@dataclass(frozen=True)
class _Rows:
    """Some subsets of one half: who is in (rows, n), and the centred logits of the candidates, largest 0 (rows, m)."""

    members: Array
    logs: Array

    @functools.cached_property
    def weights(self) -> Array:
        return np.exp(self.logs)


@dataclass(frozen=True)
class _Task:
    """The pairs of subsets of size j of the first half with ranks ``first``, and of size k-j of the second."""

    j: int
    first: tuple[int, int]
    second: tuple[int, int]

    @property
    def subsets(self) -> int:
        return (self.first[1] - self.first[0]) * (self.second[1] - self.second[0])


class _Problem:
    """One run, cut into tasks that depend on the input alone, not on the number of workers."""

    def __init__(self, centred: Array, k: int, log_weights: Array, counts: Array, route: str, memory: int) -> None:
        self.n_records, self.m = centred.shape
        self.k = k
        self.halves = np.array_split(centred, [self.n_records // 2])
        self.log_weights = log_weights
        self.log_counts = np.log(counts)
        self.column_weights = counts * np.exp(log_weights)
        self.route = route
        self.memory = memory
        # Four threads with four tables each, and in every row of a table the members and six arrays of m numbers.
        row_bytes = 8 * (2 * (self.n_records - self.n_records // 2) + 6 * self.m)
        self.longest = min(max(memory // (16 * row_bytes), 64), _LONG_BLOCK)
        self.tasks = list(self._cut())
        self.rows = functools.lru_cache(maxsize=8)(self._rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a task's sums: inside (N), outside (N) and total (1), for every candidate."""
        return 2 * self.n_records + 1, self.m

    def _cut(self) -> Iterator[_Task]:
        n_first, n_second = len(self.halves[0]), len(self.halves[1])
        for j in range(max(0, self.k - n_second), min(self.k, n_first) + 1):
            n_a, n_b = math.comb(n_first, j), math.comb(n_second, self.k - j)
            block_b = min(n_b, self.longest)
            block_a = min(n_a, self.longest, max(_TASK_SUBSETS // block_b, 64))
            for b in range(0, n_b, block_b):  # outside, so that the longer table stays in the cache of tables
                for a in range(0, n_a, block_a):
                    yield _Task(j, (a, min(a + block_a, n_a)), (b, min(b + block_b, n_b)))

    def _rows(self, half: int, size: int, start: int, stop: int) -> _Rows:
        members = _members(len(self.halves[half]), size, start, stop)
        logs = np.empty((stop - start, self.m))
        for part in _parts(stop - start, members.shape[1] * self.m):
            logs[part] = -(members[part] @ self.halves[half])
        logs -= logs.max(axis=1, keepdims=True)
        return _Rows(members, logs)

    def solve(self, task: _Task) -> Array:
        """Sums of one task: of p_w/V_w as they are, or of p_w as logarithms on the direct route."""
        first = self.rows(0, task.j, *task.first)
        second = self.rows(1, self.k - task.j, *task.second)
        if self.route == "direct":
            log_first, log_second = _log_pair_sums(first.logs, second.logs, self.log_weights, self.log_counts)
            return _log_by_membership(first, log_first, second, log_second)
        by_pairs = _fused_pair_sums if self.route == "fused" else _blas_pair_sums
        if len(first.weights) <= len(second.weights):
            of_first, of_second = by_pairs(first.weights, second.weights, self.column_weights)
        else:
            of_second, of_first = by_pairs(second.weights, first.weights, self.column_weights)
        return _by_membership(first, of_first * first.weights, second, of_second * second.weights)


def _parts(rows: int, multiplications: int) -> Iterator[slice]:
    """Slices of rows, each for a matrix product that BLAS does in one thread: alike for any number of threads."""
    step = max(_ONE_THREAD // max(multiplications, 1), 16)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _by_membership(first: _Rows, of_first: Array, second: _Rows, of_second: Array) -> Array:
    inside, outside = [], []
    for rows, sums in ((first, of_first), (second, of_second)):
        with_record = np.zeros((rows.members.shape[1], sums.shape[1]))
        without = np.zeros_like(with_record)
        for part in _parts(len(sums), with_record.size):
            with_record += rows.members[part].T @ sums[part]
            without += (1.0 - rows.members[part]).T @ sums[part]
        inside.append(with_record)
        outside.append(without)
    return np.concatenate([*inside, *outside, of_first.sum(axis=0, keepdims=True)])


def _blas_pair_sums(short: Array, long: Array, column_weights: Array) -> tuple[Array, Array]:
    """Σ_b R[a, b]·long[b] and Σ_a R[a, b]·short[a], where 1/R = (short·V) longᵀ: matrix products over small tiles."""
    m = short.shape[1]
    entries = max(2**12, min(2**15, _ONE_THREAD // m))
    height = min(len(short), 256)
    width = max(entries // height, 1)
    weighted = short * column_weights
    of_short, of_long = np.zeros_like(short), np.zeros_like(long)
    for a in range(0, len(short), height):
        rows, row_weights = short[a : a + height], weighted[a : a + height]
        for b in range(0, len(long), width):
            columns = long[b : b + width]
            shares = row_weights @ columns.T
            np.reciprocal(shares, out=shares)
            of_short[a : a + height] += shares @ columns
            of_long[b : b + width] += shares.T @ rows
    return of_short, of_long


def _fused_pair_sums(short: Array, long: Array, column_weights: Array) -> tuple[Array, Array]:
    """The same with the compiled kernel, which takes rows in fours and candidates in pairs."""
    n_short, m = short.shape
    rows = np.zeros((-(-n_short // 4) * 4, m + m % 2))
    rows[:n_short, :m] = short
    weighted = np.ones_like(rows)  # the rows added have a normaliser other than 0 and a share of 0
    weighted[:n_short] = 0.0
    weighted[:n_short, :m] = short * column_weights
    columns = np.zeros((m + m % 2, len(long)))
    columns[:m] = long.T
    of_rows, of_columns = np.zeros_like(rows), np.zeros_like(columns)
    _fused_kernel()(weighted, rows, columns, of_rows, of_columns, _FUSED_WIDTH)
    return of_rows[:n_short, :m], np.ascontiguousarray(of_columns[:m].T)


def _fused(weighted: Array, rows: Array, columns: Array, of_rows: Array, of_columns: Array, width: int) -> None:
    """Normalisers, reciprocals and both sums for four rows and ``width`` columns at a time; compiled by numba.

    The innermost loops run over columns and are vectorised; with four rows and two candidates each of them keeps its
    coefficients or its eight sums in registers.
    """
    count, m = rows.shape
    tile = np.empty((4, width))
    r0, r1, r2, r3 = tile[0], tile[1], tile[2], tile[3]
    for start in range(0, columns.shape[1], width):
        stop = min(start + width, columns.shape[1])
        length = stop - start
        for a in range(0, count, 4):
            tile[:, :length] = 0.0
            for w in range(0, m, 2):
                a0, a1, a2, a3 = weighted[a, w], weighted[a + 1, w], weighted[a + 2, w], weighted[a + 3, w]
                v = w + 1
                b0, b1, b2, b3 = weighted[a, v], weighted[a + 1, v], weighted[a + 2, v], weighted[a + 3, v]
                x, y = columns[w, start:stop], columns[v, start:stop]
                for b in range(length):
                    r0[b] += a0 * x[b] + b0 * y[b]
                    r1[b] += a1 * x[b] + b1 * y[b]
                    r2[b] += a2 * x[b] + b2 * y[b]
                    r3[b] += a3 * x[b] + b3 * y[b]
            for b in range(length):
                r0[b] = 1.0 / r0[b]
                r1[b] = 1.0 / r1[b]
                r2[b] = 1.0 / r2[b]
                r3[b] = 1.0 / r3[b]
            for w in range(0, m, 2):
                v = w + 1
                a0, a1, a2, a3 = rows[a, w], rows[a + 1, w], rows[a + 2, w], rows[a + 3, w]
                b0, b1, b2, b3 = rows[a, v], rows[a + 1, v], rows[a + 2, v], rows[a + 3, v]
                s, t = of_columns[w, start:stop], of_columns[v, start:stop]
                for b in range(length):
                    s[b] += (a0 * r0[b] + a1 * r1[b]) + (a2 * r2[b] + a3 * r3[b])
                    t[b] += (b0 * r0[b] + b1 * r1[b]) + (b2 * r2[b] + b3 * r3[b])
                x, y = columns[w, start:stop], columns[v, start:stop]
                a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
                for b in range(length):
                    a0 += r0[b] * x[b]
                    a1 += r1[b] * x[b]
                    a2 += r2[b] * x[b]
                    a3 += r3[b] * x[b]
                    b0 += r0[b] * y[b]
                    b1 += r1[b] * y[b]
                    b2 += r2[b] * y[b]
                    b3 += r3[b] * y[b]
                of_rows[a, w] += a0
                of_rows[a + 1, w] += a1
                of_rows[a + 2, w] += a2
                of_rows[a + 3, w] += a3
                of_rows[a, v] += b0
                of_rows[a + 1, v] += b1
                of_rows[a + 2, v] += b2
                of_rows[a + 3, v] += b3


@functools.cache
def _fused_kernel() -> Callable[[Array, Array, Array, Array, Array, int], None]:
    """Compile the kernel, or load it from numba's cache (one version serves every number of candidates)."""
    numba = importlib.import_module("numba")
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": {"contract", "reassoc", "nsz"},  # sums of positive numbers, in any order; no approximate division
    }
    table = numba.types.Array(numba.float64, 2, "C")
    signature = numba.void(table, table, table, table, table, numba.int64)
    try:
        kernel = numba.njit(signature, cache=True, **options)(_fused)
    except RuntimeError:  # numba found no directory for its cache
        kernel = numba.njit(signature, **options)(_fused)
    compiled: Callable[[Array, Array, Array, Array, Array, int], None] = kernel
    return compiled


def _log_pair_sums(first: Array, second: Array, log_weights: Array, log_counts: Array) -> tuple[Array, Array]:
    """ln Σ_b p_w(a, b) (a, w) and ln Σ_a p_w(a, b) (b, w), by a softmax of every pair in the log domain."""
    m = first.shape[1]
    of_first, of_second = np.full(first.T.shape, -np.inf), np.full(second.T.shape, -np.inf)
    rows, columns = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T + log_weights[:, None])
    width = min(len(second), 512, max(2**15 // m, 1))
    height = max(2**15 // (m * width), 1)
    for a in range(0, len(first), height):
        for b in range(0, len(second), width):
            logs = rows[:, a : a + height, None] + columns[:, None, b : b + width]
            logs -= _log_sum_exp(logs + log_counts[:, None, None], axis=0)
            for sums, part, axis in ((of_first, slice(a, a + height), 2), (of_second, slice(b, b + width), 1)):
                sums[:, part] = np.logaddexp(sums[:, part], _log_sum_exp(logs, axis=axis))
    return of_first.T, of_second.T


def _log_by_membership(first: _Rows, log_first: Array, second: _Rows, log_second: Array) -> Array:
    inside, outside = [], []
    for rows, logs in ((first, log_first), (second, log_second)):
        for members in rows.members.T:
            inside.append(_log_sum_exp(logs[members == 1.0], axis=0))
            outside.append(_log_sum_exp(logs[members == 0.0], axis=0))
    return np.stack([*inside, *outside, _log_sum_exp(log_first, axis=0)])


def _log_sum_exp(logs: Array, *, axis: int) -> Array:
    """ln Σ e^logs along an axis; -inf for a sum of nothing."""
    if logs.shape[axis] == 0:
        return np.full(logs.shape[:axis] + logs.shape[axis + 1 :], -np.inf)
    largest = logs.max(axis=axis, keepdims=True)
    result: Array = np.log(np.exp(logs - largest).sum(axis=axis)) + np.squeeze(largest, axis)
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Running the tasks


def _run(
    problem: _Problem,
    table: Array,
    n_jobs: int | None,
    progress: Callable[[float], None] | None,
    journal: str | os.PathLike[str] | None,
) -> Array:
    """Sum over all tasks, in their order whatever the order in which they end."""
    add = np.logaddexp if problem.route == "direct" else np.add
    n_tasks = len(problem.tasks)
    summed, sums = 0, np.full(problem.shape, -np.inf if problem.route == "direct" else 0.0)
    waiting: dict[int, Array] = {}
    book = None
    if journal is not None:
        book = _Journal(Path(journal), _fingerprint(problem, table))
        if (kept := book.start(problem.shape, n_tasks)) is not None:
            summed, sums, waiting = kept
        else:
            book.write(summed, sums, waiting)

    todo = [index for index in range(summed, n_tasks) if index not in waiting]
    total = sum(task.subsets for task in problem.tasks)
    done = total - sum(problem.tasks[index].subsets for index in todo)
    with contextlib.closing(_results(problem, todo, n_jobs)) as batches:
        for batch in batches:
            waiting.update(batch)
            while summed in waiting:
                sums = add(sums, waiting.pop(summed))
                summed += 1
            if book is not None:
                book.write(summed, sums, waiting)
            done += sum(problem.tasks[index].subsets for index in batch)
            if progress is not None:
                progress(done / total)
    return sums


def _results(problem: _Problem, todo: list[int], n_jobs: int | None) -> Generator[dict[int, Array], None, None]:
    """Sums of the tasks by index, in batches as they end.

    Threads are enough, as the work is done outside the interpreter's lock. They come from the standard library rather
    than from joblib, whose generators throw away results that are ready when the caller is interrupted.
    """
    workers = 1 if len(todo) < 2 or n_jobs == 1 else _number_of_workers(n_jobs)
    if workers == 1:
        for index in todo:
            yield {index: problem.solve(problem.tasks[index])}
        return
    queue = iter(todo)
    running: dict[futures.Future[Array], int] = {}
    pool = futures.ThreadPoolExecutor(workers)
    try:
        while True:
            for index in itertools.islice(queue, workers + 1 - len(running)):
                running[pool.submit(problem.solve, problem.tasks[index])] = index
            if not running:
                return
            ended, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
            yield {running.pop(future): future.result() for future in ended}
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _number_of_workers(n_jobs: int | None) -> int:
    import joblib  # type: ignore[import-untyped]

    return int(joblib.effective_n_jobs(n_jobs))


def _fingerprint(problem: _Problem, table: Array) -> str:
    """What a journal belongs to: the input and the cut into tasks, not the machine or the number of workers."""
    kind = "direct" if problem.route == "direct" else "linear"
    text = f"subset_laws 1 {table.shape} {problem.k} {kind} {problem.longest} {len(problem.tasks)} "
    return hashlib.sha256(text.encode() + table.astype("<f8").tobytes()).hexdigest()


class _Journal:
    """A file with the sum of the first tasks and the sums of later ones that ended early, always complete on disk."""

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.key = key

    def start(self, shape: tuple[int, int], n_tasks: int) -> tuple[int, Array, dict[int, Array]] | None:
        """Read what an earlier run left, or None if there is no file yet."""
        if not self.path.parent.is_dir():
            raise InputError(f"journal takes a path in a directory that exists, got {str(self.path)!r}")
        if not self.path.exists():
            return None
        damaged = f"journal {str(self.path)!r} is damaged or no journal of subset_laws; remove it or name another file"
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as content:
                key = str(content["key"])
                summed, sums = int(content["summed"]), content["sums"]
                indices, waiting = content["indices"].tolist(), content["waiting"]
        except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
            raise InputError(damaged) from error
        if key != self.key:
            raise InputError(
                f"journal {str(self.path)!r} belongs to a run with other logits, k, method or memory; name another file"
            )
        expected = (len(indices), *shape)
        if sums.shape != shape or waiting.shape != expected or not 0 <= summed <= n_tasks:
            raise InputError(damaged)
        return summed, sums, dict(zip(indices, waiting, strict=True))

    def write(self, summed: int, sums: Array, waiting: dict[int, Array]) -> None:
        """Replace the file; a crash at any moment leaves the old one or the new one."""
        draft = self.path.with_name(self.path.name + ".part")
        try:
            with open(draft, "wb") as file:
                np.savez(
                    file,
                    key=np.array(self.key),
                    summed=np.array(summed),
                    sums=sums,
                    indices=np.array(list(waiting), dtype=np.int64),
                    waiting=np.array(list(waiting.values())).reshape(len(waiting), *sums.shape),
                )
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except OSError as error:
            raise InputError(f"journal takes a file that can be written, got {str(self.path)!r}: {error}") from error


# ---------------------------------------------------------------------------------------------------------------------
# The pool's own ε(X)


def _two_candidate_step(difference: Array, k: int, count_own: float, count_other: float) -> float:
    """Largest |ln p(D)/p(D')| of the candidate with -ln p = ln(c + c'e^s), s the sum of the differences in D."""
    ordered = np.sort(difference)
    high = math.fsum(ordered[-k:]) + math.log(count_other) - math.log(count_own)
    step = float(ordered[-1]) - float(ordered[0])
    # ln (1 + e^high)/(1 + e^(high - step)) = -ln(1/(1 + e^high) + e^-step/(1 + e^-high))
    if step < 1.0:
        return -math.log1p(math.exp(-float(np.logaddexp(0.0, -high))) * math.expm1(-step))
    return -float(np.logaddexp(-np.logaddexp(0.0, high), -np.logaddexp(0.0, -high) - step))


class _Swaps:
    """Largest change of any ln p_w when one record is exchanged, for given sets that two adjacent subsets share."""

    def __init__(self, table: Array, counts: Array) -> None:
        self.centred, offsets = _centre(table)
        self.offsets = offsets - offsets.min()
        self.log_counts = np.log(counts)
        self.block = max(2**15 // len(table), 1)

    def largest(self, members: Array, grow: bool) -> float:
        """Maximum over the rows: ``grow`` adds one of the records missing, else one of the members is taken out."""
        step = -self.centred if grow else self.centred
        size = int(members[0].sum()) + (1 if grow else -1)
        logs = -(members @ self.centred) - size * self.offsets + self.log_counts
        logs -= logs.max(axis=1, keepdims=True)
        # ln of the normaliser when this record is exchanged (records, rows)
        if np.ptp(step, axis=1).max() <= _WIDEST:
            top = step.max(axis=1, keepdims=True)
            normalisers = np.log(np.exp(step - top) @ np.exp(logs).T) + top
        else:
            normalisers = np.stack([_log_sum_exp(logs + row, axis=1) for row in step])
        barred = np.ascontiguousarray(members.T) == float(grow)
        for_largest = np.where(barred, np.inf, normalisers)
        for_smallest = np.where(barred, -np.inf, normalisers)
        changes = np.empty_like(normalisers)
        largest = 0.0
        for column in step.T[:, :, None]:
            high = np.subtract(column, for_largest, out=changes).max(axis=0)
            low = np.subtract(column, for_smallest, out=changes).min(axis=0)
            largest = max(largest, float((high - low).max()))
        return largest


def _likely_sets(table: Array, size: int) -> Array:
    """Sets of ``size`` records that favour one candidate over another, or over all, and a few random ones."""
    n_records, m = table.shape
    generator = np.random.default_rng(0)
    pairs = [(v, w) for v in range(m) for w in range(m) if v != w]
    if len(pairs) > 200:
        pairs = [pairs[index] for index in generator.choice(len(pairs), 200, replace=False)]
    scores: Iterable[Array] = [table[:, v] - table[:, w] for v, w in pairs]
    others = [table[:, v] - np.delete(table, v, axis=1).min(axis=1) for v in range(min(m, 100))]
    sets = []
    for score in [*scores, *others]:
        order = np.argsort(score, kind="stable")
        sets.append(order[1 : size + 1])  # the most favourable record is the one to be exchanged
    sets += [generator.choice(n_records, size, replace=False) for _ in range(64)]
    members = np.zeros((len(sets), n_records))
    for row, chosen in zip(members, sets, strict=True):
        row[chosen] = 1.0
    return members
