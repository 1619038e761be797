"""A batch of synthetic rows in tiles, and the compiled scan that passes over the tiles that cannot hold a better row.

The rows of a batch are sorted, category by category and then by coarse numbers, and cut into tiles. What is known of a
tile limits what any of its rows can reach with a target:

* matches: the columns whose value at the target occurs in the tile;
* weight: the weights of these columns, in integers that are rounded up;
* distance: the categories whose value at the target does not occur, and the way to the range of each number.

A tile is scanned if a limit leaves room for a better row, and then every row of it is evaluated as in
:mod:`whosin.auditing.releases.matching.scan`, in the same order of columns: the answers are equal to the last digit. Of
equally good rows the one with the lowest row number counts, in whatever order tiles are visited.

Imports numba, so only :mod:`whosin.auditing.releases.matching.stream` imports this, and late.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.releases.matching.compiled import _compiled

__all__ = ["Tiles", "scan_tiles"]

TILE = 64
"""Rows of a tile."""
SPAN = 64
"""Tiles that are passed over together."""
_DENSE = 512
"""Columns with at most so many codes have a byte for each code and tile; so have codes that stand in many tiles."""
_MANY = 8
"""A code stands in many tiles if it is in one of so many."""
_TOP = 65_535
_COARSE = 4.0
"""Steps of a scaled number by which rows are sorted."""


@dataclass(frozen=True)
class Tiles:
    """Sorted rows, column by column (other columns first, then numeric ones), and what each tile holds.

    ``dense_row[first[c] + code]`` is the row of ``dense`` that says which tiles hold a code of column c, or -1; then
    the tiles are ``listed`` from ``starts[first[c] + code]`` to the next.
    """

    codes: NDArray[np.int32]
    numbers: NDArray[np.float32]
    rows: NDArray[np.int64]
    others: int
    first: NDArray[np.int64]
    dense: NDArray[np.uint8]
    dense_row: NDArray[np.int32]
    listed: NDArray[np.int32]
    starts: NDArray[np.int64]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    missing: NDArray[np.bool_]

    @classmethod
    def of(
        cls, codes: NDArray[np.int32], numbers: NDArray[np.float32], rows: NDArray[np.int64], sizes: list[int]
    ) -> Tiles:
        """Sort and cut a batch: codes (rows, columns), -1 for a value that no target has; numbers (rows, numeric)."""
        others = codes.shape[1] - numbers.shape[1]
        order = _sorted(codes[:, :others], numbers, sizes)
        sorted_codes = np.ascontiguousarray(codes[order].T)
        sorted_numbers = np.ascontiguousarray(numbers[order].T)
        places = [_places(own, size, len(order)) for own, size in zip(sorted_codes, sizes, strict=True)]
        edges = np.arange(0, len(order), TILE)
        gone = np.isnan(sorted_numbers)
        dense_row, dense_before, listed_before = [], 0, 0
        starts = []
        for table, row_of, listed, start in places:
            dense_row.append(np.where(row_of >= 0, row_of + dense_before, -1))
            starts.append(start + listed_before)
            dense_before, listed_before = dense_before + len(table), listed_before + len(listed)
        return cls(
            sorted_codes,
            sorted_numbers,
            rows[order],
            others,
            np.cumsum([0, *(size + 1 for size in sizes[:-1])]),
            np.concatenate([place[0] for place in places]),
            np.concatenate(dense_row).astype(np.int32),
            np.concatenate([place[2] for place in places]),
            np.concatenate(starts),
            np.minimum.reduceat(np.where(gone, np.float32(np.inf), sorted_numbers), edges, axis=1),
            np.maximum.reduceat(np.where(gone, np.float32(-np.inf), sorted_numbers), edges, axis=1),
            np.logical_or.reduceat(gone, edges, axis=1),
        )


def _places(codes: NDArray[np.int32], size: int, rows: int) -> tuple[NDArray[Any], ...]:
    """In which tiles each code of a column stands: bytes for some codes and the rows of these, lists for the others.

    The last entries, for the code ``size`` that does not occur, end the lists.
    """
    tiles = -(-rows // TILE)
    known = np.flatnonzero(codes >= 0)
    own, tile_of = codes[known].astype(np.int64), known // TILE
    row_of = np.full(size + 1, -1, dtype=np.int64)
    starts = np.zeros(size + 1, dtype=np.int64)
    if size <= _DENSE:
        table = np.zeros((size, tiles), dtype=np.uint8)
        table[own, tile_of] = 1
        row_of[:size] = np.arange(size)
        return table, row_of, np.zeros(0, dtype=np.int32), starts
    pairs = np.unique(own * tiles + tile_of)
    own, tile_of = pairs // tiles, pairs % tiles
    many = np.flatnonzero(np.bincount(own, minlength=size) > tiles // _MANY)
    row_of[many] = np.arange(len(many))
    table = np.zeros((len(many), tiles), dtype=np.uint8)
    often = row_of[own] >= 0
    table[row_of[own[often]], tile_of[often]] = 1
    own, tile_of = own[~often], tile_of[~often]
    starts[1:] = np.cumsum(np.bincount(own, minlength=size))
    return table, row_of, tile_of.astype(np.int32), starts


def _sorted(codes: NDArray[np.int32], numbers: NDArray[np.float32], sizes: list[int]) -> NDArray[np.intp]:
    """Order rows by the other columns, those of the fewest codes first, then by coarse numbers, up to 64 bits."""
    key, limit = np.zeros(len(codes), dtype=np.int64), 1
    for column in np.argsort(sizes[: codes.shape[1]], kind="stable"):
        if limit * (sizes[column] + 1) > 2**62:
            break
        key, limit = key * (sizes[column] + 1) + codes[:, column] + 1, limit * (sizes[column] + 1)
    for values in numbers.T:
        if limit * 64 > 2**62:
            break
        steps = np.clip(np.floor(np.nan_to_num(values, nan=8.0) * _COARSE), -31.0, 32.0).astype(np.int64) + 31
        key, limit = key * 64 + steps, limit * 64
    return np.argsort(key, kind="stable")


def scan_tiles(
    tiles: Tiles,
    codes: NDArray[np.int32],
    weights: NDArray[np.float64],
    numbers: NDArray[np.float64],
    first_row: int,
    state: Any,
) -> None:
    """Bring the state of some targets up to date with a batch whose row numbers are all at least ``first_row``."""
    _scan(
        tiles.codes,
        tiles.numbers,
        tiles.rows,
        tiles.others,
        tiles.first,
        tiles.dense,
        tiles.dense_row,
        tiles.listed,
        tiles.starts,
        tiles.low,
        tiles.high,
        tiles.missing,
        codes,
        weights,
        numbers,
        first_row,
        state.matches,
        state.weight,
        state.weight_index,
        state.distance,
        state.distance_index,
        state.second,
    )


@_compiled
def _far(numbers, low, high, missing, k, so_far, enough):
    """A lower limit of the distance to the rows of a tile, given that of the other columns; may stop at ``enough``."""
    total = so_far
    for c in range(len(numbers)):
        a = numbers[c]
        if np.isnan(a):
            if not missing[c, k]:
                total += 1.0
        elif a < low[c, k]:
            total += min(np.float64(low[c, k]) - a, 1.0)
        elif a > high[c, k]:
            total += min(a - np.float64(high[c, k]), 1.0)
        if total > enough:
            break
    return total


@_compiled
def _count_equal(codes, target, left, right, out):
    out[:] = 0
    length = right - left
    for c in range(len(target)):
        own, code = codes[c, left:right], target[c]
        for j in range(length):
            out[j] = out[j] + np.int32(own[j] == code)


@_compiled
def _sum_weights(codes, target, weights, left, right, out):
    out[:] = 0.0
    length = right - left
    for c in range(len(target)):
        own, code, weight = codes[c, left:right], target[c], weights[c]
        for j in range(length):
            out[j] = out[j] + (weight if own[j] == code else 0.0)


@_compiled
def _distances(codes, target, others, numbers, values, left, right, count, out):
    _count_equal(codes, target[:others], left, right, count)
    length = right - left
    for j in range(length):
        out[j] = np.float64(others - count[j])
    for c in range(len(values)):
        own, a = numbers[c, left:right], values[c]
        if np.isnan(a):
            for j in range(length):
                out[j] = out[j] + (0.0 if np.isnan(own[j]) else 1.0)
        else:
            for j in range(length):
                apart = abs(a - np.float64(own[j]))
                out[j] = out[j] + (apart if apart < 1.0 else 1.0)


@_compiled
def _span_maxima(values, out):
    for span in range(len(out)):
        left, right = span * SPAN, min((span + 1) * SPAN, len(values))
        most = np.uint16(0)
        for k in range(left, right):
            most = max(most, values[k])
        out[span] = most


@_compiled
def _first_place(values, maxima):
    """Where the largest value stands."""
    span = 0
    for i in range(len(maxima)):
        if maxima[i] > maxima[span]:
            span = i
    k = span * SPAN
    while values[k] != maxima[span]:
        k += 1
    return k


@_compiled
def _limits(first, dense, dense_row, listed, starts, target, steps, others, count, total, category):
    """What each tile can reach with a target: equal columns, integer weight, equal columns that are not numeric."""
    count[:] = 0
    total[:] = 0
    tiles = len(count)
    for c in range(len(target)):
        if c == others:
            category[:] = count
        place, step = first[c] + target[c], steps[c]
        row = dense_row[place]
        if row >= 0:
            present = dense[row]
            for k in range(tiles):
                here = np.uint16(present[k])
                count[k] = np.uint16(count[k] + here)
                total[k] = np.uint16(total[k] + here * step)
        else:
            for i in range(starts[place], starts[place + 1]):
                k = listed[i]
                count[k] = np.uint16(count[k] + 1)
                total[k] = np.uint16(total[k] + step)
    if others == len(target):
        category[:] = count


@_compiled
def _look_matches(codes, target, left, right, best, equal):
    _count_equal(codes, target, left, right, equal)
    for j in range(right - left):
        best = max(best, np.int64(equal[j]))
    return best


@_compiled
def _look_weight(codes, target, weights, rows, left, right, best, index, sums):
    _sum_weights(codes, target, weights, left, right, sums)
    for j in range(right - left):
        if sums[j] >= best and (sums[j] > best or rows[left + j] < index):
            best, index = sums[j], rows[left + j]
    return best, index


@_compiled
def _look_distance(codes, target, others, numbers, values, rows, left, right, nearest, index, second, equal, sums):
    _distances(codes, target, others, numbers, values, left, right, equal, sums)
    for j in range(right - left):
        found, row = sums[j], rows[left + j]
        if found < nearest:
            second, nearest, index = nearest, found, row
        else:
            if found == nearest and row < index:
                index = row
            second = min(second, found)
    return nearest, index, second


@_compiled
def _weight_above(weight, again, scale, largest):
    """Integer weights above this leave room for a larger weight, or for an equal one of this batch if ``again``."""
    if weight <= 0.0:
        return np.int64(-1) if again or weight < 0.0 else np.int64(0)
    if not again and weight >= largest:
        return np.int64(_TOP)
    return np.int64(np.floor(weight * scale - 1e-6))


@_compiled
def _category_from(nearest, again, second, others):
    """Tiles with so many equal columns, of those that are not numeric, leave room for a smaller distance."""
    if np.isinf(second):
        return np.int64(0)
    apart = np.int64(np.ceil(second)) - 1
    if again and nearest == second and nearest == np.floor(nearest):
        apart += 1
    return max(others - apart, 0)


@_compiled
def _scan(
    codes,
    numbers,
    rows,
    others,
    first,
    dense,
    dense_row,
    listed,
    starts,
    low,
    high,
    missing,
    t_codes,
    t_weights,
    t_numbers,
    first_row,
    matches,
    weight,
    weight_index,
    distance,
    distance_index,
    second,
):
    """Target by target: limits of all tiles, the most promising tiles first, then those that leave room."""
    columns, size = codes.shape
    tiles = (size + TILE - 1) // TILE
    spans = (tiles + SPAN - 1) // SPAN
    count, total, category = np.empty(tiles, np.uint16), np.empty(tiles, np.uint16), np.empty(tiles, np.uint16)
    most, heaviest, closest = np.empty(spans, np.uint16), np.empty(spans, np.uint16), np.empty(spans, np.uint16)
    equal, sums, steps = np.empty(TILE, np.int32), np.empty(TILE, np.float64), np.empty(columns, np.uint16)
    for t in range(len(t_codes)):
        target, weights, values = t_codes[t], t_weights[t], t_numbers[t]
        largest = 0.0
        for c in range(columns):
            largest += weights[c]
        scale = (_TOP - columns - 1) / largest if largest > 1e-290 else 0.0
        for c in range(columns):
            steps[c] = np.uint16(np.floor(weights[c] * scale) + 1.0) if weights[c] > 0.0 else np.uint16(0)
        _limits(first, dense, dense_row, listed, starts, target, steps, others, count, total, category)
        _span_maxima(count, most)
        _span_maxima(total, heaviest)
        _span_maxima(category, closest)

        k = _first_place(count, most)
        if count[k] > matches[t]:
            matches[t] = _look_matches(codes, target, k * TILE, min((k + 1) * TILE, size), matches[t], equal)
        k = _first_place(total, heaviest)
        if total[k] > _weight_above(weight[t], False, scale, largest):
            weight[t], weight_index[t] = _look_weight(
                codes, target, weights, rows, k * TILE, min((k + 1) * TILE, size), weight[t], weight_index[t], sums
            )
        seen, near = -1, np.inf
        k = _first_place(category, closest)
        if category[k] >= _category_from(distance[t], False, second[t], others):
            for span in range(spans):
                if closest[span] == category[k]:
                    for i in range(span * SPAN, min((span + 1) * SPAN, tiles)):
                        if category[i] == category[k]:
                            far = _far(values, low, high, missing, i, np.float64(others - category[k]), near)
                            if far < near:
                                seen, near = i, far
            if near < second[t]:
                distance[t], distance_index[t], second[t] = _look_distance(
                    codes, target, others, numbers, values, rows, seen * TILE, min((seen + 1) * TILE, size),
                    distance[t], distance_index[t], second[t], equal, sums,
                )  # fmt: skip
            else:
                seen = -1

        above = _weight_above(weight[t], weight_index[t] >= first_row, scale, largest)
        least = _category_from(distance[t], distance_index[t] >= first_row, second[t], others)
        for span in range(spans):
            if most[span] <= matches[t] and heaviest[span] <= above and closest[span] < least:
                continue
            for k in range(span * SPAN, min((span + 1) * SPAN, tiles)):
                left, right = k * TILE, min((k + 1) * TILE, size)
                if count[k] > matches[t]:
                    matches[t] = _look_matches(codes, target, left, right, matches[t], equal)
                if total[k] > above:
                    weight[t], weight_index[t] = _look_weight(
                        codes, target, weights, rows, left, right, weight[t], weight_index[t], sums
                    )
                    above = _weight_above(weight[t], weight_index[t] >= first_row, scale, largest)
                if category[k] >= least and k != seen:
                    again = distance_index[t] >= first_row
                    far = _far(values, low, high, missing, k, np.float64(others - category[k]), second[t])
                    if far < second[t] or (again and far <= distance[t]):
                        distance[t], distance_index[t], second[t] = _look_distance(
                            codes, target, others, numbers, values, rows, left, right,
                            distance[t], distance_index[t], second[t], equal, sums,
                        )  # fmt: skip
                        least = _category_from(distance[t], distance_index[t] >= first_row, second[t], others)
