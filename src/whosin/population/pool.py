"""The pool: records clipped to a norm, and the size of the data set that is drawn from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import InputError, check_number, short_repr
from whosin.tables import numeric_records

__all__ = ["clipped", "flattened", "totals", "train_size", "whose", "widest_distance"]


_ROUNDING = 2.0**-53

MOST_DIRECTIONS = 600
"""Above as many columns, and different rows, nobody looks for a flat that holds them."""


def clipped(records: Any, clip: float) -> Array:
    """Return the records with every row scaled down to an ℓ2 norm of at most ``clip``, rounding included."""
    limit = check_number("clip", clip, low=0.0, open_low=True, open_high=True)
    matrix = numeric_records(records)
    if matrix.shape[1] == 1:
        return np.clip(matrix, -limit, limit)
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    directions = matrix / np.where(largest > 0.0, largest, 1.0)
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    down = 1.0 - (matrix.shape[1] + 8) * _ROUNDING
    longer = largest > limit / norms.clip(1.0) * down
    return np.where(longer, directions * (limit / norms.clip(1.0) * down), matrix)


def whose(person: Any, rows: int) -> NDArray[np.int64]:
    """Return the number of the person of each row, persons numbered in the order of their first rows."""
    names = np.asarray(person)
    if names.shape != (rows,):
        raise InputError(f"person must have one name per record, {rows}, got an array of shape {names.shape}")
    try:
        _, first, codes = np.unique(names, return_index=True, return_inverse=True)
    except TypeError as error:
        raise InputError(f"person must be names of one kind, got {short_repr(person)}") from error
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    return np.asarray(place[codes])


def totals(rows: Array, person: Any) -> Array:
    """Return the sum of the rows of each person, in the order of their first rows."""
    codes = whose(person, len(rows))
    sums = np.zeros((codes.max(initial=-1) + 1, *rows.shape[1:]))
    np.add.at(sums, codes, rows)
    if not np.isfinite(sums).all():
        raise InputError("records must have finite sums per person, got numbers too large to add")
    return sums


def train_size(records: int, train_fraction: float) -> int:
    """Return how many of the records are drawn: the whole number nearest to the share, a half rounded down."""
    share = check_number("train_fraction", train_fraction, low=0.0, high=1.0, open_low=True, open_high=True)
    size = int(np.ceil(share * records - 0.5))
    if not 1 <= size < records:
        raise InputError(
            f"train_fraction={train_fraction!r} of {records} records draws {size}: must be 1 to {records - 1}"
        )
    return size


def widest_distance(points: Array, block: int = 2048) -> float:
    """Return an upper limit, tight to rounding, on the largest Euclidean distance between rows. O(rows²·columns)."""
    if points.shape[1] == 1:
        apart = float(points.max() - points.min())
        return math.nextafter(apart, math.inf) if apart > 0.0 else 0.0
    unit = 2.0 ** math.frexp(float(np.abs(points).max()))[1]
    centred = points / unit - points[0] / unit
    squares = (centred**2).sum(axis=1)
    largest = 0.0
    for start in range(0, len(centred), block):
        rows = slice(start, start + block)
        products = centred[rows] @ centred.T
        largest = max(largest, float(np.max(squares[rows, None] + squares - 2.0 * products)))
    rounding = 16.0 * _ROUNDING * (points.shape[1] + 4) * float(squares.max())
    return unit * math.sqrt(max(0.0, largest) + rounding) * (1.0 + 1e-15)


def flattened(points: Array, k: int, allowed: float) -> tuple[Array, float]:
    """Return the points in orthonormal coordinates of a flat that holds them, and how far k of them may be off in sum.

    The flat has the fewest dimensions with which that is at most ``allowed``, rounding included; the points themselves
    and 0 where no dimension can be saved. Spherical noise across the flat knows nothing of the points, so what a noisy
    sum tells about them is in these coordinates. Equal points stay equal. O(rows·columns²).
    """
    columns = points.shape[1]
    rows, back = np.unique(points, axis=0, return_inverse=True)
    back = back.reshape(-1)
    if columns == 1 or min(rows.shape) > MOST_DIRECTIONS:
        return points, 0.0
    centred = rows - rows.mean(axis=0)
    directions = np.linalg.svd(np.linalg.qr(centred, mode="r"), full_matrices=False)[2]
    coordinates = centred @ directions.T
    lengths = np.linalg.norm(centred, axis=1)
    crooked = float(np.linalg.norm(directions @ directions.T - np.eye(len(directions))))
    missed = np.linalg.norm(centred - coordinates @ directions, axis=1)
    missed += (crooked + 16.0 * (columns + len(directions) + 4) * _ROUNDING) * lengths
    found = points, 0.0
    for kept in range(len(directions) - 1, -1, -1):
        missed = np.hypot(missed, coordinates[:, kept])
        off = float(np.sort(missed[back])[-k:].sum()) * (1.0 + 1e-12)
        if off > allowed:
            break
        found = coordinates[back, : max(kept, 1)], off
    return found
