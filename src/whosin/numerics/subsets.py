"""Subsets of a universe: as bit masks or by their rank, and their membership matrix."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.errors import InputError

MAX_SUBSETS = 2**21
"""How many subsets are enumerated at the most: all subsets of 21 records, or the halves of 23."""

MAX_RECORDS = 63
"""How many records fit into one mask."""

Masks = NDArray[np.int64]


def all_masks(n: int) -> Masks:
    """Return every subset of n records; bit i is record i. O(2^n)."""
    _check_count(2**n, n)
    return np.arange(2**n, dtype=np.int64)


def masks_of_size(n: int, k: int) -> Masks:
    """Return every subset of k of n records. O(C(n, k)·k)."""
    _check_count(math.comb(n, k), n)
    masks = np.zeros(1, dtype=np.int64)
    highest = np.full(1, -1)
    for _ in range(k):
        grown = [(masks[highest < bit] | (1 << bit), bit) for bit in range(n)]
        masks = np.concatenate([part for part, _ in grown])
        highest = np.concatenate([np.full(len(part), bit) for part, bit in grown])
    return np.sort(masks)


def membership(masks: Masks, n: int) -> Flags:
    """Return the matrix (subsets, records) that says who is in."""
    return ((masks[:, None] >> np.arange(n)) & 1).astype(bool)


def members_by_rank(n: int, size: int, start: int, stop: int) -> Array:
    """Return the membership (stop - start, n), 0 or 1, of subsets by their ranks, in colexicographic order.

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


def _check_count(count: int, n: int) -> None:
    if count > MAX_SUBSETS:
        raise InputError(f"universe must have at most {MAX_SUBSETS} subsets to enumerate, got {count} with {n} records")
    if n > MAX_RECORDS:
        raise InputError(f"universe must have at most {MAX_RECORDS} records, got {n}")
