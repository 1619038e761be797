"""Sums over all pairs of half-subsets: the innermost work of the exact exponential mechanism.

Given the weights E_A (a, m) and E_B (b, m) of some subsets of two halves of the pool, and column weights V, every pair
has the normaliser Z = (E_A·V) E_Bᵀ. Wanted are (1/Z) E_B and (1/Z)ᵀ E_A. Three routes: matrix products over small tiles
(numpy), one fused kernel (numba), and a softmax of every pair in the log domain for logits too wide for the others.
Cost: a·b·(6m + 1) operations on the first two, some 3m exponentials a pair on the last.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.population.exponential.logits import log_sum_exp

_ONE_THREAD = 2**18  # multiplications up to which OpenBLAS stays in the calling thread
_TILE_WIDTH = 192  # columns of a tile of the kernel; with 4 rows and m = 10 the tile stays in the first-level cache


def row_parts(rows: int, multiplications: int) -> Iterator[slice]:
    """Slices of rows, each for a matrix product that BLAS does in one thread: alike for any number of threads."""
    step = max(_ONE_THREAD // max(multiplications, 1), 16)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def product_tile(rows: int, m: int) -> tuple[int, int]:
    """Return the height and width of a tile whose matrix products BLAS does in one thread, from the fast cache."""
    entries = max(2**12, min(2**15, _ONE_THREAD // m))
    height = min(rows, 256)
    return height, max(entries // height, 1)


def blas_pair_sums(short: Array, long: Array, column_weights: Array) -> tuple[Array, Array]:
    """Σ_b R[a, b]·long[b] and Σ_a R[a, b]·short[a], where 1/R = (short·V) longᵀ: matrix products over small tiles."""
    height, width = product_tile(*short.shape)
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


def fused_pair_sums(short: Array, long: Array, column_weights: Array) -> tuple[Array, Array]:
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
    fused_kernel()(weighted, rows, columns, of_rows, of_columns, _TILE_WIDTH)
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
def fused_kernel() -> Callable[[Array, Array, Array, Array, Array, int], None]:
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


def has_numba() -> bool:
    """Return whether numba is installed, without importing it."""
    return importlib.util.find_spec("numba") is not None


def log_pair_sums(first: Array, second: Array, log_weights: Array, log_counts: Array) -> tuple[Array, Array]:
    """ln Σ_b p_w(a, b) (a, w) and ln Σ_a p_w(a, b) (b, w), by a softmax of every pair in the log domain."""
    m = first.shape[1]
    of_first, of_second = np.full(first.T.shape, -np.inf), np.full(second.T.shape, -np.inf)
    rows, columns = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T + log_weights[:, None])
    width = min(len(second), 512, max(2**15 // m, 1))
    height = max(2**15 // (m * width), 1)
    for a in range(0, len(first), height):
        for b in range(0, len(second), width):
            logs = rows[:, a : a + height, None] + columns[:, None, b : b + width]
            logs -= log_sum_exp(logs + log_counts[:, None, None], axis=0)
            for sums, part, axis in ((of_first, slice(a, a + height), 2), (of_second, slice(b, b + width), 1)):
                sums[:, part] = np.logaddexp(sums[:, part], log_sum_exp(logs, axis=axis))
    return of_first.T, of_second.T
