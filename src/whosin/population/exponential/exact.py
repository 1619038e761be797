"""Exact laws of the exponential mechanism over every k-subset of N records, played through completely.

The mechanism publishes candidate w with probability p_w(D) proportional to exp(-Σ_{i∈D} G[i, w]); G holds the logits of
the records (N, m). Wanted are, for every record x and candidate w, the means of p_w(D) over the k-subsets D that hold x
and over those that do not: the two laws that an attacker who knows the pool has to tell apart (Lowy et al. 2024,
practical membership privacy; the uniform k-subset game of Izzo et al. 2022). The sums are taken by meeting in the
middle (``tasks``), at a cost of C(N, k)·(6m + 1) operations.

**Scaling.** Logits are centred by record and by candidate first (``logits``), and the weights V_w that make up for it
enter in the normalisers only; rows of half-subsets have a maximum of 1, and the results are kept as logarithms. As long
as the k widest centred records span less than ``WIDEST`` together, no intermediate value overflows or loses digits by
underflow. Wider logits go to a route that stays in the log domain and is slower, about 3m exponentials a subset.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass, field
from importlib import metadata

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array, Index
from whosin.errors import InputError, check_callable, check_choice, check_whole, missing_extra
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal
from whosin.parallel.tasks import stream
from whosin.parallel.threads import Progress, number_of_threads
from whosin.population.exponential.kernels import fused_kernel, has_numba
from whosin.population.exponential.logits import WIDEST, centre, check_logits, check_size, merge_columns
from whosin.population.exponential.tasks import Problem

METHODS = ("auto", "fused", "blas", "direct")
"""Routes of :func:`subset_laws`: chosen for you; fused kernel (numba); matrix products (numpy); log domain."""

_MOST_SUBSETS = 2**53
_ROUNDING = 2.0**-53
_FUSED_FROM = 2**28  # subsets; below, matrix products end sooner than the kernel is compiled or loaded
_FUSED_CANDIDATES = 40  # beyond this many candidates, matrix products are as fast as the kernel

# Nanoseconds a subset on one core of a server of 2021: constant, and slope in the number of candidates.
_NANOSECONDS = {"fused": (0.4, 0.26), "blas": (2.7, 0.22)}


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
    error : float
        No logarithm is off by more: every rounding on the way, as if all had the same sign.
    """

    inside: Array
    outside: Array
    total: Array
    log_inside: Array = field(repr=False)
    log_outside: Array = field(repr=False)
    log_total: Array = field(repr=False)
    method: str
    error: float

    @property
    def log_ratio(self) -> Array:
        """ln inside/outside (N, m); the largest absolute value is the exact ε of practical membership privacy."""
        return self.log_inside - self.log_outside


def subset_count(n_records: int, k: int) -> int:
    """Return C(N, k), the number of k-subsets of N records."""
    n_records = check_whole("n_records", n_records, low=0)
    return math.comb(n_records, check_whole("k", k, low=0))


def estimate_seconds(n_records: int, k: int, m: int) -> float:
    """Return roughly how long :func:`subset_laws` takes on an idle core, for m distinct candidates.

    The number of subsets times a constant that was measured once, on one machine; expect a factor of three either way.
    Compilation of the fused kernel on its first use (2 to 3 seconds) is not included. Grows like C(N, k)·m.
    """
    subsets = subset_count(n_records, k)
    constant, slope = _NANOSECONDS[_route("auto", subsets, m, 0.0)]
    return 1e-3 + subsets * (constant + slope * m) * 1e-9


def subset_laws(
    logits: ArrayLike,
    k: int,
    *,
    method: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    journal: str | os.PathLike[str] | None = None,
    memory: int = 2**30,
) -> SubsetLaws:
    """Return the exact laws of the exponential mechanism with and without each record, over all k-subsets.

    Claim: every entry is the mean of exp(-Σ_{i∈D} G[i, w]) / Σ_v exp(-Σ_{i∈D} G[i, v]) over the stated subsets, with a
    relative error of at most ``error``, usually below 1e-11; in practice it is about 1e-15·(m + largest sum of logits).
    Nothing is sampled and no candidate is left out; candidates with equal columns are computed once and share their
    result. Source: the definition, summed by meeting in the middle (module docstring). Cost grows like C(N, k)·m: some
    3 ns (fused) or 5 ns (matrix products) a subset and core at m = 10.

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
        Threads, -1 for all cores; as in joblib, None means one unless ``joblib.parallel_config`` says otherwise. With a
        backend of other machines (Dask, Ray) the tasks go there. The result is the same for every number, bit for bit.
    progress : callable, optional
        Called with the fraction done, rising to 1, after every finished task (at most some 3·10^7 subsets), in the
        calling thread.
    journal : path, optional
        A file that keeps the sums of the finished tasks. A run that was interrupted resumes from it and loses only the
        tasks that were running; a finished one is answered from it at once. Several runs may share it.
    memory : int
        Bytes that the tables of one run may take, roughly, with up to four threads.

    Raises
    ------
    InputError
        For logits that are not finite or not two-dimensional, a k out of range, more than 2^53 subsets, or a journal
        that is a file of another kind.
    MissingExtraError
        For ``method="fused"`` without numba.
    """
    table = check_logits(logits)
    n_records, m = table.shape
    k = check_size(k, n_records)
    check_choice("method", method, METHODS)
    memory = check_whole("memory", memory, low=2**16)
    if progress is not None:
        check_callable("progress", progress)
    number_of_threads(n_jobs)  # refused here if it makes no sense
    subsets = subset_count(n_records, k)
    if subsets > _MOST_SUBSETS:
        more = subsets.bit_length() - 1
        raise InputError(f"logits and k must give at most 2^53 subsets, got C({n_records}, {k}), more than 2^{more}")

    distinct, counts, back = merge_columns(table)
    if len(counts) == 1:
        if progress is not None:
            progress(1.0)
        shape = np.full(table.shape, 1.0 / m)
        logs, one = np.log(shape), np.arange(m)
        return _laws(logs, logs, logs[0], back=one, method="closed", error=4.0 * _ROUNDING * (1.0 + math.log(m)))

    centred, offsets = centre(distinct)
    widest = float(np.sort(np.ptp(centred, axis=1))[-k:].sum())
    route = _route(method, subsets, len(counts), widest)
    if route == "fused":
        fused_kernel()  # before the threads start, so that it is compiled once
    log_weights = -k * (offsets - offsets.min())
    problem = Problem(centred, k, log_weights, counts, route, memory)
    book = None if journal is None else Journal(journal, _fingerprint(problem, table))
    sums = _run(problem, n_jobs, progress, book)
    with np.errstate(divide="ignore"):
        logs = sums if route == "direct" else np.log(sums) + log_weights
    n = n_records
    return _laws(
        logs[:n] - math.log(math.comb(n - 1, k - 1)),
        logs[n : 2 * n] - math.log(math.comb(n - 1, k)),
        logs[2 * n] - math.log(subsets),
        back=back,
        method=route,
        error=_error(problem, float(np.ptp(distinct, axis=1).max())),
    )


def _error(problem: Problem, widest: float) -> float:
    """Bound on the error of any logarithm, for logits of a record that span up to ``widest``.

    A sum of k centred logits is off by up to (k + 2)·k·widest units of rounding, and a probability is a quotient of two
    exponentials of such sums; m numbers make up a normaliser. A sum of positive numbers is off by as many units,
    relatively, as there are additions in a row (``Problem.additions``). In the log domain each of these is off by a
    unit of the logarithm, up to 2k·widest in size.
    """
    spread = problem.k * widest
    unit = 1.0 + 2.0 * spread if problem.route == "direct" else 1.0
    units = 2.0 * (problem.k + 6) * spread + 2.0 * unit * problem.additions + 4.0 * problem.m + 100.0
    return float(_ROUNDING * units)


def _route(method: str, subsets: int, m: int, widest: float) -> str:
    if method == "fused" and not has_numba():
        raise missing_extra('method="fused" needs numba', "fast")
    if method == "direct" or (method == "auto" and widest > WIDEST):
        return "direct"
    if widest > WIDEST:
        raise InputError(
            f'method must be "auto" or "direct" for logits this wide: the sums of {WIDEST:g} that {method!r} stands '
            f"are exceeded ({widest:.0f})"
        )
    if method == "auto":
        return "fused" if subsets >= _FUSED_FROM and m <= _FUSED_CANDIDATES and has_numba() else "blas"
    return method


def _laws(
    log_inside: Array, log_outside: Array, log_total: Array, *, back: Index, method: str, error: float
) -> SubsetLaws:
    log_inside, log_outside, log_total = log_inside[:, back], log_outside[:, back], log_total[back]
    return SubsetLaws(
        inside=np.exp(log_inside),
        outside=np.exp(log_outside),
        total=np.exp(log_total),
        log_inside=log_inside,
        log_outside=log_outside,
        log_total=log_total,
        method=method,
        error=error,
    )


def _run(problem: Problem, n_jobs: int | None, progress: Progress | None, journal: Journal | None) -> Array:
    """Sum over all tasks, in their order whatever the order in which they end."""
    add = np.logaddexp if problem.route == "direct" else np.add
    tasks = problem.tasks
    summed, sums = 0, np.full(problem.shape, -np.inf if problem.route == "direct" else 0.0)
    waiting: dict[int, Array] = {}
    done, total = 0, sum(task.subsets for task in tasks)
    found = stream(problem.solve, range(len(tasks)), n_jobs=n_jobs, threads=True, journal=journal)
    with contextlib.closing(found):
        for number, value in found:
            waiting[number] = value
            while summed in waiting:
                sums = add(sums, waiting.pop(summed))
                summed += 1
            done += tasks[number].subsets
            if progress is not None and (journal is None or number not in journal.known or done == total):
                progress(done / total)
    return sums


def _fingerprint(problem: Problem, table: Array) -> str:
    """What a journal belongs to: the input, the route and the cut into tasks, not the machine or its workers."""
    compiler = metadata.version("numba") if problem.route == "fused" else ""
    return fingerprint("subset laws", table, problem.k, problem.route, compiler, problem.longest, len(problem.tasks))
