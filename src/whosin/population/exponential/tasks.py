"""The exact exponential mechanism cut into tasks: meeting in the middle.

Split the pool into halves A and B. A k-subset is a pair (a, b) with a ⊂ A of size j and b ⊂ B of size k-j, and its
weight is a product, exp(-Σ_D G[·, w]) = E_A[a, w]·E_B[b, w]. So exponentials are needed for the 2^(N/2) subsets of a
half only, and for each j

    Z = E_A E_Bᵀ,  R = 1/Z,  Σ_b p_w(a, b) = E_A[a, w]·(R E_B)[a, w],  Σ_a p_w(a, b) = E_B[b, w]·(Rᵀ E_A)[b, w]:

three matrix products and one reciprocal a subset, after which the rows are added up by membership. Everything added is
positive, and the sums with and without a record are added up separately (never one as the total less the other), so no
digit is lost to cancellation however far the two lie apart. A task is a rectangle of such pairs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.numerics.subsets import members_by_rank
from whosin.population.exponential.kernels import blas_pair_sums, fused_pair_sums, log_pair_sums, row_parts
from whosin.population.exponential.logits import log_sum_exp

_LONG_BLOCK = 2**14
_TASK_SUBSETS = 2**25


@dataclass(frozen=True)
class Rows:
    """Some subsets of one half: who is in (rows, n), and the centred logits of the candidates, largest 0 (rows, m)."""

    members: Array
    logs: Array

    @functools.cached_property
    def weights(self) -> Array:
        return np.exp(self.logs)


@dataclass(frozen=True)
class Task:
    """The pairs of subsets of size j of the first half with ranks ``first``, and of size k-j of the second."""

    j: int
    first: tuple[int, int]
    second: tuple[int, int]

    @property
    def subsets(self) -> int:
        return (self.first[1] - self.first[0]) * (self.second[1] - self.second[0])


class Problem:
    """One run, cut into tasks that depend on the input alone, not on the number of workers."""

    def __init__(self, centred: Array, k: int, log_weights: Array, counts: Array, route: str, memory: int) -> None:
        self.n_records, self.m = centred.shape
        self.k = k
        self.halves = np.array_split(centred, [self.n_records // 2])
        self.log_weights = log_weights
        self.log_counts = np.log(counts)
        self.column_weights = counts * np.exp(log_weights)
        self.route = route
        # Four threads with four tables each, and in every row of a table the members and six arrays of m numbers.
        row_bytes = 8 * (2 * (self.n_records - self.n_records // 2) + 6 * self.m)
        self.longest = min(max(memory // (16 * row_bytes), 64), _LONG_BLOCK)
        self.tasks = list(self._cut())
        self.rows = functools.lru_cache(maxsize=8)(self._rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "rows"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.rows = functools.lru_cache(maxsize=8)(self._rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a task's sums: inside (N), outside (N) and total (1), for every candidate."""
        return 2 * self.n_records + 1, self.m

    @property
    def additions(self) -> int:
        """The longest row of additions that ends in one number of the result."""
        tables = max(task.first[1] - task.first[0] + task.second[1] - task.second[0] for task in self.tasks)
        return 2 * tables + len(self.tasks)

    def _cut(self) -> Iterator[Task]:
        n_first, n_second = len(self.halves[0]), len(self.halves[1])
        for j in range(max(0, self.k - n_second), min(self.k, n_first) + 1):
            n_a, n_b = math.comb(n_first, j), math.comb(n_second, self.k - j)
            block_b = min(n_b, self.longest)
            block_a = min(n_a, self.longest, max(_TASK_SUBSETS // block_b, 64))
            for b in range(0, n_b, block_b):  # outside, so that the longer table stays in the cache of tables
                for a in range(0, n_a, block_a):
                    yield Task(j, (a, min(a + block_a, n_a)), (b, min(b + block_b, n_b)))

    def _rows(self, half: int, size: int, start: int, stop: int) -> Rows:
        members = members_by_rank(len(self.halves[half]), size, start, stop)
        logs = np.empty((stop - start, self.m))
        for part in row_parts(stop - start, members.shape[1] * self.m):
            logs[part] = -(members[part] @ self.halves[half])
        logs -= logs.max(axis=1, keepdims=True)
        return Rows(members, logs)

    def solve(self, number: int) -> Array:
        """Sums of one task: of p_w/V_w as they are, or of p_w as logarithms on the direct route."""
        task = self.tasks[number]
        first = self.rows(0, task.j, *task.first)
        second = self.rows(1, self.k - task.j, *task.second)
        if self.route == "direct":
            log_first, log_second = log_pair_sums(first.logs, second.logs, self.log_weights, self.log_counts)
            return _log_by_membership(first, log_first, second, log_second)
        by_pairs = fused_pair_sums if self.route == "fused" else blas_pair_sums
        if len(first.weights) <= len(second.weights):
            of_first, of_second = by_pairs(first.weights, second.weights, self.column_weights)
        else:
            of_second, of_first = by_pairs(second.weights, first.weights, self.column_weights)
        return _by_membership(first, of_first * first.weights, second, of_second * second.weights)


def _by_membership(first: Rows, of_first: Array, second: Rows, of_second: Array) -> Array:
    inside, outside = [], []
    for rows, sums in ((first, of_first), (second, of_second)):
        with_record = np.zeros((rows.members.shape[1], sums.shape[1]))
        without = np.zeros_like(with_record)
        for part in row_parts(len(sums), with_record.size):
            with_record += rows.members[part].T @ sums[part]
            without += (1.0 - rows.members[part]).T @ sums[part]
        inside.append(with_record)
        outside.append(without)
    return np.concatenate([*inside, *outside, of_first.sum(axis=0, keepdims=True)])


def _log_by_membership(first: Rows, log_first: Array, second: Rows, log_second: Array) -> Array:
    inside, outside = [], []
    for rows, logs in ((first, log_first), (second, log_second)):
        for members in rows.members.T:
            inside.append(log_sum_exp(logs[members == 1.0], axis=0))
            outside.append(log_sum_exp(logs[members == 0.0], axis=0))
    return np.stack([*inside, *outside, log_sum_exp(log_first, axis=0)])
