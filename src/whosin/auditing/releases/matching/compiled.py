"""The compiled scan: a batch of released rows, sorted and cut into tiles, of which most are passed over unseen.

Bytes of cells (:mod:`.ordering`) that differ, or that are so many levels apart, say at least how much of a target's
weight, soft weight and equal cells a row misses, and how far away it is. The bytes of all rows of a tile together say
it of the tile. So

* tiles that cannot hold a better row are passed over, many at a time;
* in the others all rows are looked at by their bytes, and those that cannot be better are passed over;
* the rest is evaluated, in the same order as by :func:`.measures.scan_plain`: the answers are equal to the last digit.

Sums of misses are bytes, too, with room for what rounding adds, over the columns in which the target has its rarest
values: what is not looked at counts as not missed. Of equally good rows the one with the lowest row number counts, in
whatever order tiles are visited.

Imports numba, so only :mod:`.match` imports this, and late.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Single
from whosin.auditing.releases.matching.measures import SMALL, Batch, Columns, State, Targets
from whosin.auditing.releases.matching.ordering import LEVELS, MISSING, Step, as_bytes, sorted_rows

numba = importlib.import_module("numba")

TILE = 64
"""Rows that are passed over together."""
RUN = 4
"""Tiles whose rows are looked at together."""
LOOKED_AT = 24
"""Most columns that are looked at by bytes."""
APART = np.array([2, 5, 17, 65])
"""Levels apart at which more counts as missed."""
_UNIT = 240 // LOOKED_AT
"""A distance of 1 in bytes."""
_SLACK = 1e-6
"""Room for rounding, in steps of bytes."""


def _inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into those that call it: calls with many arrays are slow."""
    return numba.njit(inline="always", error_model="numpy")(function)


def _compiled(function: Callable[..., Any]) -> Any:
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no directory for its cache
        return numba.njit(**options)(function)


@dataclass(frozen=True)
class Tiles:
    """A batch, sorted; the bytes of its cells; and for each tile how far the nearest byte is from any byte.

    ``bytes`` has the shape (runs, columns, rows of a run), ``near`` (columns, 256, tiles): levels apart for numbers, 0
    or 255 for categories; a last column of zeros pads. ``low`` and ``high``, (numeric columns, LEVELS + 1), are the
    smallest number at a level or above, and the largest below it.
    """

    batch: Batch
    bytes: NDArray[np.uint8]
    near: NDArray[np.uint8]
    low: Single
    high: Single

    @classmethod
    def of(cls, columns: Columns, batch: Batch, steps: Sequence[Step]) -> Tiles:
        """Sort and cut a batch."""
        table = as_bytes(columns, batch.codes, batch.ranks)
        order = sorted_rows(columns, table, steps)
        table = table[order]
        batch = Batch(batch.codes[order], batch.numbers[order], batch.ranks[order], batch.rows[order])
        count, width = batch.codes.shape
        runs = -(-count // (RUN * TILE))
        filled = np.zeros((runs * RUN * TILE, width + 1), dtype=np.uint8)
        filled[:count, :width], filled[count:, :width] = table, table[-1]
        laid = np.ascontiguousarray(filled.reshape(runs, RUN * TILE, width + 1).transpose(0, 2, 1))
        low, high = _ends(batch.numbers, table[:, columns.others :])
        return cls(batch, laid, _near(laid, columns.others), low, high)


def _ends(numbers: Single, levels: NDArray[np.uint8]) -> tuple[Single, ...]:
    low = np.full((numbers.shape[1], LEVELS + 1), np.inf, dtype=np.float32)
    high = np.full((numbers.shape[1], LEVELS + 1), -np.inf, dtype=np.float32)
    for column, (values, level) in enumerate(zip(numbers.T, levels.T, strict=True)):
        known = level != MISSING
        np.minimum.at(low[column], level[known], values[known])
        np.maximum.at(high[column], level[known] + 1, values[known])
    return np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1].copy(), np.maximum.accumulate(high, axis=1)


def scan_compiled(columns: Columns, batches: Sequence[Tiles], targets: Targets, state: State) -> Iterator[None]:
    """Bring the state of some targets up to date with one batch after another; stop after each."""
    own = (
        columns.others,
        targets.codes,
        targets.weights,
        targets.shares,
        targets.numbers,
        targets.ranks,
        as_bytes(columns, targets.codes, targets.ranks),
        np.argsort(-targets.weights, axis=1, kind="stable")[:, :LOOKED_AT],
        _soft_misses(columns, targets),
    )
    best = (
        state.matches,
        state.weight,
        state.weight_index,
        state.power,
        state.rest,
        state.distance,
        state.distance_index,
        state.second,
    )
    for tiles in batches:
        batch = tiles.batch
        _scan(
            batch.codes, batch.numbers, batch.ranks, batch.rows, tiles.bytes, tiles.near, tiles.low, tiles.high,
            *own, *best
        )  # fmt: skip
        yield


def _soft_misses(columns: Columns, targets: Targets) -> Single:
    """What a row at least misses of the soft weight if it is so many levels apart: (targets, numeric columns, APART).

    Rounded down. Bytes that are L levels apart are ranks more than (L - 1)·2/LEVELS apart.
    """
    shares, weights = targets.shares[:, columns.others :, None], targets.weights[:, columns.others :, None]
    apart = (APART - 1) * (2.0 / LEVELS)
    misses = np.minimum(np.log1p(apart / shares), weights)
    return np.asarray(np.where(np.isnan(targets.ranks)[:, :, None], weights, misses) * (1.0 - 1e-6), dtype=np.float32)


@_compiled
def _near(laid, others):
    """Return for each column, byte and tile how far the nearest byte of the tile is."""
    runs, width, _ = laid.shape
    near = np.full((width, 256, runs * RUN), 255, np.uint8)
    for run in range(runs):
        for c in range(width):
            for j in range(RUN * TILE):
                near[c, laid[run, c, j], run * RUN + j // TILE] = 0
    one = np.uint8(1)
    for c in range(others, width - 1):
        for level in range(1, 256):
            for tile in range(runs * RUN):
                before = near[c, level - 1, tile]
                near[c, level, tile] = min(near[c, level, tile], np.uint8(max(before, np.uint8(before + one))))
        for level in range(254, -1, -1):
            for tile in range(runs * RUN):
                before = near[c, level + 1, tile]
                near[c, level, tile] = min(near[c, level, tile], np.uint8(max(before, np.uint8(before + one))))
    return near


@_inlined
def _unequal(table, x, y, place, own, weights, start, stop, hard, unequal, length):
    """Count what differs from the target's bytes, four columns at a time: weight, and cells."""
    none = np.uint8(0)
    for k in range(start, stop, 4):
        x0, x1, x2, x3, y0, y1, y2, y3 = x[k], x[k + 1], x[k + 2], x[k + 3], y[k], y[k + 1], y[k + 2], y[k + 3]
        b0, b1, b2, b3, w0, w1, w2, w3 = (
            own[k],
            own[k + 1],
            own[k + 2],
            own[k + 3],
            weights[k],
            weights[k + 1],
            weights[k + 2],
            weights[k + 3],
        )
        for j in range(length):
            i = place + j
            d0, d1 = table[x0, y0, i] != b0, table[x1, y1, i] != b1
            d2, d3 = table[x2, y2, i] != b2, table[x3, y3, i] != b3
            hard[j] = np.uint8(
                hard[j] + (w0 if d0 else none) + (w1 if d1 else none) + (w2 if d2 else none) + (w3 if d3 else none)
            )
            unequal[j] = np.uint8(unequal[j] + np.uint8(d0) + np.uint8(d1) + np.uint8(d2) + np.uint8(d3))


@_inlined
def _apart(table, x, y, place, byte, gap, length):
    for j in range(length):
        there = table[x, y, place + j]
        gap[j] = np.uint8(max(there, byte) - min(there, byte))


@_inlined
def _by_levels(gap, steps, k, sums, length):
    """Add what is missed at so many levels apart."""
    s0, s1, s2, s3 = steps[k, 0], steps[k, 1], steps[k, 2], steps[k, 3]
    none = np.uint8(0)
    for j in range(length):
        apart = gap[j]
        sums[j] = np.uint8(
            sums[j]
            + (s0 if apart >= np.uint8(2) else none)
            + (s1 if apart >= np.uint8(5) else none)
            + (s2 if apart >= np.uint8(17) else none)
            + (s3 if apart >= np.uint8(65) else none)
        )


@_inlined
def _misses(
    table, x, y, place, own, weights, softly, distant, numeric, hard, soft, far, unequal, gap, measured, length
):
    """Sum up what tiles, or rows, miss at least: weight, soft weight, equal cells, and if it is measured distance."""
    for j in range(length):
        hard[j] = np.uint8(0)
        unequal[j] = np.uint8(0)
    _unequal(table, x, y, place, own, weights, 0, numeric, hard, unequal, length)
    for j in range(length):
        soft[j] = hard[j]
        far[j] = np.uint8(unequal[j] * np.uint8(_UNIT))
    _unequal(table, x, y, place, own, weights, numeric, len(x), hard, unequal, length)
    for k in range(numeric, len(x)):
        if weights[k] > 0 or distant[k, 3] > 0:
            _apart(table, x[k], y[k], place, own[k], gap, length)
            _by_levels(gap, softly, k, soft, length)
            if measured:
                _by_levels(gap, distant, k, far, length)


@_inlined
def _hopeful(hard, soft, far, unequal, limits, flags, length):
    """Flag what may be better or as good."""
    l0, l1, l2, l3 = limits[0], limits[1], limits[2], limits[3]
    for j in range(length):
        flags[j] = np.uint8(hard[j] <= l0) | np.uint8(soft[j] <= l1)
    for j in range(length):
        flags[j] |= np.uint8(far[j] <= l2) | np.uint8(unequal[j] < l3)


@_inlined
def _flagged(eights, flags, places, length):
    """Return the places of the flags, found eight at a time."""
    count = 0
    for eight in range((length + 7) // 8):
        if eights[eight] != 0:
            for j in range(8 * eight, min(8 * eight + 8, length)):
                places[count] = j
                count += flags[j]
    return places[:count]


@_inlined
def _set_limits(limits, over, total, scale, width, matches, weight, power, rest, second):
    """The most that may be missed by what is better, or as good with a lower row number, in bytes."""
    soft = -power * math.log(SMALL) - math.log(rest)
    limits[0] = np.uint8(min(max(total - weight, 0.0) * scale + over[0] + _SLACK, 255.0))
    limits[1] = np.uint8(min(max(total - soft, 0.0) * scale + over[0] + over[1] + _SLACK, 255.0))
    limits[2] = np.uint8(min(second * _UNIT + over[2] + _SLACK, 255.0))
    limits[3] = np.uint8(min(max(width - matches, 0), 255))


@_compiled
def _scan(
    codes,
    numbers,
    ranks,
    rows,
    laid,
    near,
    low,
    high,
    others,
    t_codes,
    t_weights,
    t_shares,
    t_numbers,
    t_ranks,
    t_bytes,
    t_order,
    t_soft,
    matches,
    weight,
    weight_index,
    power,
    rest,
    distance,
    distance_index,
    second,
):
    """Target by target: what each tile misses at least, then the rows of the tiles that may hold a better one."""
    runs, width, tiles = len(laid), t_codes.shape[1], near.shape[2]
    looked, rows_of_run = t_order.shape[1], RUN * TILE
    room = (looked + 3) // 4 * 4 + 4
    chosen, own, zero = np.empty(room, np.int64), np.empty(room, np.uint8), np.zeros(room, np.uint8)
    bytes_of, here, weights = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
    softly, distant = np.empty((room, 4), np.uint8), np.empty((room, 4), np.uint8)
    size = max(tiles, rows_of_run)
    over = np.empty(3)
    gap, flags, limits = np.empty(size, np.uint8), np.empty(rows_of_run, np.uint8), np.empty(4, np.uint8)
    eights, places = flags.view(np.uint64), np.empty(rows_of_run, np.int64)
    t_hard, t_soft_missed = np.empty(tiles, np.uint8), np.empty(tiles, np.uint8)
    t_far, t_unequal = np.empty(tiles, np.uint8), np.empty(tiles, np.uint8)
    hard, soft = np.empty(rows_of_run, np.uint8), np.empty(rows_of_run, np.uint8)
    far, unequal = np.empty(rows_of_run, np.uint8), np.empty(rows_of_run, np.uint8)
    for t in range(len(t_codes)):
        total, seen, categories = 0.0, 0.0, 0
        for c in range(width):
            total += t_weights[t, c]
        for k in range(looked):
            seen += t_weights[t, t_order[t, k]]
            categories += t_order[t, k] < others
        scale = 240.0 / seen if seen > 1e-290 else 0.0
        # what each column may miss, in bytes: categories, then numbers, each padded to a multiple of four
        numeric = (categories + 3) // 4 * 4
        used = numeric + (looked - categories + 3) // 4 * 4
        chosen[:used], own[:used], weights[:used], bytes_of[:used] = width, 0, 0, 0
        softly[:used], distant[:used] = 0, 0
        category, number = 0, numeric
        over[:] = 0.0
        for k in range(looked):
            c = t_order[t, k]
            place = category if c < others else number
            chosen[place], own[place], bytes_of[place] = c, t_bytes[t, c], t_bytes[t, c]
            weights[place] = np.uint8(t_weights[t, c] * scale + 0.5)
            over[0] += max(0.0, weights[place] - t_weights[t, c] * scale)
            if c < others:
                category += 1
                continue
            number += 1
            column = c - others
            _steps(
                softly, distant, place, t_soft, t, column, scale, t_bytes[t, c], t_numbers[t, column], low, high, over
            )
        _misses(
            near,
            chosen[:used],
            bytes_of,
            0,
            zero,
            weights,
            softly,
            distant,
            numeric,
            t_hard,
            t_soft_missed,
            t_far,
            t_unequal,
            gap,
            True,
            tiles,
        )
        first, least, nearest, closest = 0, 255, 0, 255
        for tile in range(tiles):
            if t_hard[tile] < least:
                first, least = tile // RUN, t_hard[tile]
            if t_far[tile] < closest:
                nearest, closest = tile // RUN, t_far[tile]
        _set_limits(limits, over, total, scale, width, matches[t], weight[t], power[t], rest[t], second[t])
        for turn in range(-2, runs):
            # the most promising runs come first
            run = first if turn == -2 else nearest if turn == -1 else turn
            if (turn >= 0 and run in (first, nearest)) or (turn == -1 and nearest == first):
                continue
            # from the first tile that may hold a better row to the last one
            start, stop, measured = (run + 1) * RUN, run * RUN, False
            for tile in range(run * RUN, (run + 1) * RUN):
                distant_too = t_far[tile] <= limits[2]
                measured |= distant_too
                if (
                    distant_too
                    or t_hard[tile] <= limits[0]
                    or t_soft_missed[tile] <= limits[1]
                    or t_unequal[tile] < limits[3]
                ):
                    start, stop = min(start, tile), tile + 1
            if start >= stop:
                continue
            place, length = start % RUN * TILE, (stop - start) * TILE
            here[:used] = run
            _misses(
                laid,
                here[:used],
                chosen,
                place,
                own,
                weights,
                softly,
                distant,
                numeric,
                hard,
                soft,
                far,
                unequal,
                gap,
                measured,
                length,
            )
            if not measured:
                far[:length] = 255
            _hopeful(hard, soft, far, unequal, limits, flags, length)
            for j in _flagged(eights, flags, places, min(length, len(rows) - start * TILE)):
                if hard[j] > limits[0] and soft[j] > limits[1] and far[j] > limits[2] and unequal[j] >= limits[3]:
                    continue
                i = start * TILE + j
                count, found, exponent, product, apart = _evaluate(
                    codes, numbers, ranks, i, t_codes, t_weights, t_shares, t_numbers, t_ranks, t, others
                )
                better = False
                if count > matches[t]:
                    matches[t], better = count, True
                if found > weight[t] or (found == weight[t] and rows[i] < weight_index[t]):
                    weight[t], weight_index[t], better = found, rows[i], True
                if exponent > power[t] or (exponent == power[t] and product < rest[t]):
                    power[t], rest[t], better = exponent, product, True
                if apart < distance[t]:
                    second[t], distance[t], distance_index[t], better = distance[t], apart, rows[i], True
                else:
                    if apart == distance[t] and rows[i] < distance_index[t]:
                        distance_index[t] = rows[i]
                    if apart < second[t]:
                        second[t], better = apart, True
                if better:
                    _set_limits(limits, over, total, scale, width, matches[t], weight[t], power[t], rest[t], second[t])


@_inlined
def _steps(softly, distant, place, t_soft, t, column, scale, level, number, low, high, over):
    """What is missed of a number at so many levels apart, in bytes: soft weight, and distance."""
    soft_before, far_before, soft_over, far_over = np.uint8(0), np.uint8(0), 0.0, 0.0
    for step in range(4):
        reached = 1.0
        if level != MISSING:
            up, down = np.int64(level) + APART[step], np.int64(level) - APART[step]
            if up < LEVELS:
                reached = min(reached, np.float64(low[column, up]) - np.float64(number))
            if down >= 0:
                reached = min(reached, np.float64(number) - np.float64(high[column, down + 1]))
        missed, distance = t_soft[t, column, step] * scale, max(reached, 0.0) * _UNIT
        soft, far = max(soft_before, np.uint8(missed + 0.5)), max(far_before, np.uint8(distance + 0.5))
        soft_over, far_over = max(soft_over, soft - missed), max(far_over, far - distance)
        softly[place, step], distant[place, step] = soft - soft_before, far - far_before
        soft_before, far_before = soft, far
    over[1] += soft_over
    over[2] += far_over


@_inlined
def _evaluate(codes, numbers, ranks, i, t_codes, t_weights, t_shares, t_numbers, t_ranks, t, others):
    """Return matches, weight, the product of shares as a power and a rest, and the distance of one pair."""
    matches, weight, power, rest, distance = 0, 0.0, 0, 1.0, 0.0
    for c in range(others):
        equal = codes[i, c] == t_codes[t, c]
        matches += equal
        weight += t_weights[t, c] if equal else 0.0
        rest *= t_shares[t, c] if equal else 1.0
        if rest < SMALL:
            power += 1
            rest /= SMALL
    distance = np.float64(others - matches)
    for c in range(others, t_codes.shape[1]):
        equal = codes[i, c] == t_codes[t, c]
        matches += equal
        weight += t_weights[t, c] if equal else 0.0
        a, b = np.float64(t_ranks[t, c - others]), np.float64(ranks[i, c - others])
        if np.isnan(a) or np.isnan(b):
            both = np.isnan(a) and np.isnan(b)
            rest *= t_shares[t, c] if both else 1.0
            distance += 0.0 if both else 1.0
        else:
            rest *= min(t_shares[t, c] + abs(a - b), 1.0)
            distance += min(abs(np.float64(t_numbers[t, c - others]) - np.float64(numbers[i, c - others])), 1.0)
        if rest < SMALL:
            power += 1
            rest /= SMALL
    return matches, weight, power, rest, distance
