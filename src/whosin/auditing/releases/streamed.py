"""Answers about records from a release that is read in blocks, the same as if it were in memory.

Rows of a release are taken in random classes (:func:`size_classes`): the first so many rows at random, the next so
many, and within a class in the order of the file. A class is read in one pass, or several small ones together, so a
release is read up to six times for its rows and two or three times for its columns, and never held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.releases.matching.match import Matcher, RowMatches
from whosin.auditing.releases.release_size import sizes_up_to
from whosin.tables import StreamEncoder, Table, TableStream

__all__ = ["match_stream", "rows_of", "size_classes"]

Array = NDArray[np.float64]
Progress = Callable[[float], None]


def size_classes(rows: int, rng: np.random.Generator) -> tuple[tuple[int, ...], NDArray[np.uint8]]:
    """Return the sizes of the release at which to look, and for each row the first of them that has it, at random."""
    sizes = sizes_up_to(rows)
    classes = np.empty(rows, dtype=np.uint8)
    classes[rng.permutation(rows)] = np.repeat(np.arange(len(sizes), dtype=np.uint8), np.diff(sizes, prepend=0))
    return sizes, classes


def match_stream(
    stream: TableStream,
    encoder: StreamEncoder,
    targets: NDArray[np.int32],
    weights: Sequence[Array],
    numbers: Sequence[Array | None],
    ranks: Sequence[Array | None],
    classes: NDArray[np.uint8],
    *,
    n_jobs: int | None,
    progress: Progress,
) -> RowMatches:
    """Compare every target with every row of a stream, class by class; the indices are rows of the stream.

    Memory: two blocks of rows, coded, and what :class:`Matcher` takes.
    """
    matcher = Matcher(targets, weights, numbers=numbers, ranks=ranks, n_jobs=n_jobs, rows=stream.rows)
    counts = np.bincount(classes)
    done = 0
    for group in _passes(counts, stream.block_rows):
        for number, cells, values, places, rows in _batches(stream, encoder, classes, group):
            before, share = done / stream.rows, len(rows) / stream.rows
            done += len(rows)
            matcher.add(
                cells,
                values,
                places,
                number * stream.rows + rows,
                ends=(len(rows),) if done == int(counts[: number + 1].sum()) else (),
                progress=lambda part, before=before, share=share: progress(before + share * part),  # type: ignore[misc]
            )
    found = matcher.result()
    for index in (found.weight_index, found.distance_index):
        index %= stream.rows
    return found


def rows_of(stream: TableStream, encoder: StreamEncoder, rows: NDArray[np.int64]) -> Table:
    """Return some rows of a stream, given by rising numbers; it is read once."""
    import polars as pl

    parts = []
    for start, frame in stream.blocks(encoder.encoder.names):
        first, last = np.searchsorted(rows, [start, start + frame.height])
        parts.append(frame[rows[first:last] - start])
    return encoder.table(pl.concat(parts), 0)


def _passes(counts: NDArray[np.int64], most: int) -> list[list[int]]:
    """Classes that are read together: neighbours that fit into one block."""
    groups: list[list[int]] = []
    held = most + 1
    for number, count in enumerate(counts.tolist()):
        if held + count > most:
            groups.append([])
            held = 0
        groups[-1].append(number)
        held += count
    return groups


def _batches(
    stream: TableStream, encoder: StreamEncoder, classes: NDArray[np.uint8], group: list[int]
) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]]:
    """Yield class by class the coded rows of some classes; rows of a single class as soon as a block is full."""
    waiting: list[tuple[Any, ...]] = []
    held = 0
    for start, frame in stream.blocks(encoder.encoder.names):
        own = classes[start : start + frame.height]
        chosen = np.flatnonzero((own >= group[0]) & (own <= group[-1]))
        if len(chosen) == 0:
            continue
        part = frame[chosen]
        waiting.append((*encoder.transform(part, start), start + chosen))
        held += len(chosen)
        if len(group) == 1 and held >= stream.block_rows:
            yield group[0], *_joined(waiting)
            waiting, held = [], 0
    if held:
        cells, numbers, ranks, rows = _joined(waiting)
        waiting = []
        for number in group:
            own_rows = classes[rows] == number
            if len(group) == 1:
                yield number, cells, numbers, ranks, rows
            elif own_rows.any():
                yield number, cells[own_rows], numbers[own_rows], ranks[own_rows], rows[own_rows]


def _joined(parts: list[tuple[Any, ...]]) -> Any:
    return tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))
