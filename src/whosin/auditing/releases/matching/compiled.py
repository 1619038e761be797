"""The compiled scan of :mod:`whosin.auditing.releases.matching.scan`: many pairs at a time in two-byte integers.

Imports numba, so only :mod:`whosin.auditing.releases.matching.match` imports this, and late.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from whosin.auditing.releases.matching.scan import LANES, Block, Columns, State, Targets

__all__ = ["scan_compiled"]

numba = importlib.import_module("numba")

_WIDTH = 1024
"""Synthetic rows of a tile, a multiple of ``LANES``; its columns stay in the second-level cache as targets pass."""


def _compiled(function: Callable[..., Any]) -> Any:
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no directory for its cache
        return numba.njit(**options)(function)


def scan_compiled(columns: Columns, block: Block, targets: Targets, state: State, start: int, stop: int) -> None:
    """Bring the state up to date with the rows from ``start`` to ``stop`` of the block."""
    _scan(
        block.codes,
        block.rounded,
        block.numbers,
        targets.codes,
        targets.rounded_weights,
        targets.weights,
        targets.weight_scale,
        targets.largest_weight,
        targets.rounded,
        targets.numbers,
        np.array([columns.others, columns.numeric_from, columns.unit]),
        np.array([block.first_row, start, stop, _WIDTH]),
        state.matches,
        state.matches_index,
        state.weight,
        state.weight_index,
        state.distance,
        state.distance_index,
        state.second,
    )


@_compiled
def _compare(count, total, x0, x1, x2, x3, target, steps, length):
    """Add four columns to the matches and to the integer weights of a tile."""
    t0, t1, t2, t3 = target[0], target[1], target[2], target[3]
    w0, w1, w2, w3 = steps[0], steps[1], steps[2], steps[3]
    for j in range(length):
        m0, m1, m2, m3 = x0[j] == t0, x1[j] == t1, x2[j] == t2, x3[j] == t3
        count[j] = np.uint16(count[j] + np.uint16(m0) + np.uint16(m1) + np.uint16(m2) + np.uint16(m3))
        total[j] = np.uint16(
            total[j]
            + (w0 if m0 else np.uint16(0))
            + (w1 if m1 else np.uint16(0))
            + (w2 if m2 else np.uint16(0))
            + (w3 if m3 else np.uint16(0))
        )


@_compiled
def _measure(count, total, apart, x0, x1, target, steps, y0, y1, numbers, unit, length):
    """Add two numeric columns to the matches, to the integer weights and to the integer distances of a tile."""
    t0, t1, w0, w1, a0, a1 = target[0], target[1], steps[0], steps[1], numbers[0], numbers[1]
    two = np.uint16(2)
    for j in range(length):
        m0, m1 = x0[j] == t0, x1[j] == t1
        count[j] = np.uint16(count[j] + np.uint16(m0) + np.uint16(m1))
        total[j] = np.uint16(total[j] + (w0 if m0 else np.uint16(0)) + (w1 if m1 else np.uint16(0)))
        d0 = np.uint16(max(y0[j], a0) - min(y0[j], a0))
        d1 = np.uint16(max(y1[j], a1) - min(y1[j], a1))
        d0, d1 = np.uint16(max(d0, two) - two), np.uint16(max(d1, two) - two)
        apart[j] = np.uint16(apart[j] + min(d0, unit) + min(d1, unit))


@_compiled
def _extremes(count, total, apart, length):
    """Most matches, largest integer weight and smallest integer distance of a tile."""
    most, largest, smallest = np.uint16(0), np.uint16(0), np.uint16(65535)
    for j in range(length):
        most, largest, smallest = max(most, count[j]), max(largest, total[j]), min(smallest, apart[j])
    return np.int64(most), np.int64(largest), np.int64(smallest)


@_compiled
def _exact_weight(codes, target, weights, row):
    total = 0.0
    for c in range(len(target)):
        if codes[c, row] == target[c]:
            total += weights[c]
    return total


@_compiled
def _exact_distance(codes, target, numbers, values, row, others):
    total = 0.0
    for c in range(others):
        if codes[c, row] != target[c]:
            total += 1.0
    for c in range(len(values)):
        a, b = values[c], numbers[c, row]
        if np.isnan(a) or np.isnan(b):
            total += 0.0 if np.isnan(a) and np.isnan(b) else 1.0
        else:
            total += min(abs(a - b), 1.0)
    return total


@_compiled
def _weight_limit(weight, scale):
    """Integer weights above this may be larger weights; a weight of 0 is known from its integer."""
    return np.int64(-1) if weight < 0.0 else np.int64(max(np.floor(weight * scale - 1e-6), 0.0))


@_compiled
def _distance_limit(distance, unit):
    """Integer distances below this may be smaller distances.

    For whole distances the limit is exact, so that ties are not looked at: a computed sum is never below the whole
    number of its terms that are 1, and a term whose integer is neither 0 nor ``unit`` is an almost whole step larger.
    """
    if np.isinf(distance):
        return np.int64(65536)
    if distance == np.floor(distance):
        return np.int64(distance) * unit
    return np.int64(distance * unit * (1.0 + 1e-12)) + 1


@_compiled
def _scan(
    codes,
    rounded,
    numbers,
    t_codes,
    t_rounded_weights,
    t_weights,
    t_scale,
    t_largest,
    t_rounded,
    t_numbers,
    layout,
    extent,
    matches,
    matches_index,
    weight,
    weight_index,
    distance,
    distance_index,
    second,
):
    """Tile by tile, and in each target by target: integers of all pairs, then those that can beat the best."""
    others, numeric_from, unit = layout[0], layout[1], layout[2]
    first_row, start, stop, width = extent[0], extent[1], extent[2], extent[3]
    step = np.uint16(unit)
    count, total, apart = np.empty(width, np.uint16), np.empty(width, np.uint16), np.empty(width, np.uint16)
    for left in range(start, stop, width):
        right = min(left + width, stop)
        length, row = right - left, first_row + left
        wide = (length + LANES - 1) // LANES * LANES
        over = left + wide
        for t in range(len(t_codes)):
            target, steps = t_codes[t], t_rounded_weights[t]
            count[:] = 0
            total[:] = 0
            for c in range(0, numeric_from, 4):
                _compare(
                    count,
                    total,
                    codes[c, left:over],
                    codes[c + 1, left:over],
                    codes[c + 2, left:over],
                    codes[c + 3, left:over],
                    target[c : c + 4],
                    steps[c : c + 4],
                    wide,
                )
            for j in range(wide):
                apart[j] = np.uint16((others - count[j]) * step)
            for c in range(numeric_from, len(codes), 2):
                place = c - numeric_from
                _measure(
                    count,
                    total,
                    apart,
                    codes[c, left:over],
                    codes[c + 1, left:over],
                    target[c : c + 2],
                    steps[c : c + 2],
                    rounded[place, left:over],
                    rounded[place + 1, left:over],
                    t_rounded[t, place : place + 2],
                    step,
                    wide,
                )
            most, largest, smallest = _extremes(count, total, apart, length)

            if most > matches[t]:
                matches[t] = most
                j = 0
                while count[j] != most:
                    j += 1
                matches_index[t] = row + j

            limit = _weight_limit(weight[t], t_scale[t])
            if largest > limit and weight[t] < t_largest[t]:
                for j in range(length):
                    if total[j] > limit:
                        found = _exact_weight(codes, target, t_weights[t], left + j)
                        if found > weight[t]:
                            weight[t], weight_index[t] = found, row + j
                            if found == t_largest[t]:
                                break
                            limit = _weight_limit(found, t_scale[t])

            limit = _distance_limit(second[t], unit)
            if smallest < limit:
                for j in range(length):
                    if apart[j] < limit:
                        found = _exact_distance(codes, target, numbers, t_numbers[t], left + j, others)
                        if found < second[t]:
                            if found < distance[t]:
                                second[t], distance[t], distance_index[t] = distance[t], found, row + j
                            else:
                                second[t] = found
                            limit = _distance_limit(second[t], unit)
