"""Tables of logits (records, candidates) of the exponential mechanism: checked, merged, centred.

Candidate w has probability proportional to exp(-Σ_{i∈D} G[i, w]). Adding a constant to a record's logits changes
nothing; adding c_w to a candidate's logits of every record multiplies its weight by exp(-k·c_w).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array, Index
from whosin.errors import InputError, InputTypeError, check_whole

WIDEST = 600.0
"""Sums of centred logits up to which weights need no logarithms: e^±600 is normal, with room for sums of 2^53."""

_LARGEST = 1e100  # of a logit, so that no sum or difference overflows


def check_logits(logits: ArrayLike, *, at_least: int = 2) -> Array:
    """Return a copy of the table as floating-point numbers, with at least so many records."""
    try:
        table = np.array(logits, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"logits must be a table of numbers (records, candidates), got {logits!r}") from None
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(f"logits must be a table of shape (records, candidates), got shape {table.shape}")
    if len(table) < at_least:
        raise InputError(f"logits must have at least {at_least} records, got {len(table)}")
    if not np.isfinite(table).all():
        record, candidate = np.argwhere(~np.isfinite(table))[0]
        raise InputError(
            f"logits must hold finite numbers, got {table[record, candidate]} for record {record} and candidate "
            f"{candidate}"
        )
    if np.abs(table).max() > _LARGEST:
        raise InputError(f"logits must hold numbers up to {_LARGEST:g}, got {np.abs(table).max():g}")
    table += 0.0  # no negative zeros, which would tell equal columns apart
    return table


def check_size(k: int, n_records: int) -> int:
    """Return k if there are k-subsets with and without a given record."""
    k = check_whole("k", k)
    if not 1 <= k <= n_records - 1:
        missing = "without" if k else "with"
        raise InputError(
            f"k must be a whole number from 1 to {n_records - 1} for {n_records} records, got {k}: "
            f"there would be no subset {missing} a given record"
        )
    return k


def merge_columns(table: Array) -> tuple[Array, Array, Index]:
    """Distinct columns in order of appearance, how often each occurs, and which of them each original column is."""
    places: dict[bytes, int] = {}
    back = np.array([places.setdefault(column.tobytes(), len(places)) for column in table.T], dtype=np.intp)
    _, first = np.unique(back, return_index=True)
    return np.ascontiguousarray(table[:, first]), np.bincount(back).astype(np.float64), back


def centre(table: Array) -> tuple[Array, Array]:
    """Table with records and candidates centred, and what was taken from each candidate."""
    centred = table - table.mean(axis=1, keepdims=True)
    offsets = centred.mean(axis=0)
    return centred - offsets, offsets


def log_sum_exp(logs: Array, *, axis: int) -> Array:
    """ln Σ e^logs along an axis; -inf for a sum of nothing."""
    if logs.shape[axis] == 0:
        return np.full(logs.shape[:axis] + logs.shape[axis + 1 :], -np.inf)
    largest = logs.max(axis=axis, keepdims=True)
    result: Array = np.log(np.exp(logs - largest).sum(axis=axis)) + np.squeeze(largest, axis)
    return result
