"""Answers about records from a release that is read in blocks, the same as if it were in memory.

Rows of a release are taken in random classes (:func:`size_classes`): the first so many rows at random, the next so
many, and within a class in the order of the file. The small classes are read together and the large ones each on its
own, so a release is read three to six times for its rows and two or three times for its columns, and never held.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.auditing.releases.matching.match import Matcher, RowMatches
from whosin.auditing.releases.release_size import sizes_up_to
from whosin.parallel import tasks
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal
from whosin.parallel.threads import Progress
from whosin.tables import TableEncoder
from whosin.tables.stream_columns import SurveyedStream

MOST_ROWS = 2**19
"""Most rows of a block that are compared at a time."""
SMALL_BLOCK, FEW_BLOCKS = 2**14, 8
"""A reading has so many blocks at least, unless they would be as small as that."""
SHARED = 6
"""Classes share a reading while they are no more than this part of the stream, and than those few blocks, together."""


def size_classes(rows: int, rng: np.random.Generator) -> tuple[tuple[int, ...], NDArray[np.uint8]]:
    """Return the sizes of the release at which to look, and for each row the first of them that has it, at random."""
    sizes = sizes_up_to(rows)
    classes = np.empty(rows, dtype=np.uint8)
    classes[rng.permutation(rows)] = np.repeat(np.arange(len(sizes), dtype=np.uint8), np.diff(sizes, prepend=0))
    return sizes, classes


def match_stream(
    release: SurveyedStream,
    encoder: TableEncoder,
    targets: NDArray[np.int32],
    weights: Sequence[Array],
    numbers: Sequence[Array | None],
    ranks: Sequence[Array | None],
    classes: NDArray[np.uint8],
    *,
    n_jobs: int | None,
    progress: Progress,
    journal: str | os.PathLike[str] | None = None,
) -> RowMatches:
    """Compare every target with every row of a stream, class by class; the indices are rows of the stream.

    Each reading is cut into blocks by the size of the stream and of its blocks. A block is a task in a thread of this
    machine or on a cluster (:mod:`whosin.parallel.tasks`): it reads its own rows, starts from the best that earlier
    readings found for each target, and returns the targets for which it knows better, which a journal keeps. These are
    maxima and minima, of which copies alone are summed: no bit depends on blocks, workers and the order in which they
    end.

    Memory: for each task a block of rows, coded, and what :class:`Matcher` takes.
    """
    stream = release.stream
    matcher = Matcher(targets, weights, numbers=numbers, ranks=ranks, n_jobs=1, rows=stream.rows)
    counts, most, done = np.bincount(classes), min(stream.block_rows, MOST_ROWS), 0
    plan = readings(counts, most)
    slim = replace(encoder, tables=(release,))
    for group, cuts in plan:
        items = [(start, stop, classes[start:stop]) for start, stop in cuts]
        book = None
        if journal is not None:
            run = fingerprint("blocks", release.fingerprint(), targets, weights, numbers, ranks, classes, group, cuts)
            book = Journal(journal, run)
        after, task = [matcher.begun() for _ in group], _Block(release, slim, matcher, group)
        with contextlib.closing(tasks.stream(task, items, n_jobs=n_jobs, threads=True, journal=book, ahead=2)) as ended:
            for number, rows in ended:
                for known, one in zip(after, group, strict=True):
                    known.take(rows[rows[:, 0] == one, 1:])
                start, stop = cuts[number]
                done += int(np.isin(classes[start:stop], group).sum())
                progress(done / stream.rows)
        for one, known in zip(group, after, strict=True):
            matcher.follow(known, int(counts[one]))
    found = matcher.result()
    for index in (found.weight_index, found.distance_index):
        index %= stream.rows
    return found


@dataclass(frozen=True)
class _Block:
    """The task of a block: compare its rows of some classes with the targets."""

    release: SurveyedStream
    encoder: TableEncoder
    matcher: Matcher
    """What earlier readings found."""
    group: list[int]

    def __call__(self, item: tuple[int, int, NDArray[np.uint8]]) -> Array:
        """Return what is new after each class (:meth:`Matcher.since`): rows of class, target and answers."""
        start, stop, classes = item
        parts = []
        for first, frame in self.release.stream.blocks(self.release.names, start, stop):
            own = classes[first - start : first - start + frame.height]
            chosen = np.flatnonzero((own >= self.group[0]) & (own <= self.group[-1]))
            if len(chosen):
                table = self.release.table(frame[chosen], first)
                parts.append((*self.encoder.transform_streamed(table), first + chosen))
        if not parts:
            return np.empty((0, 1 + Matcher.NEW))
        cells, numbers, ranks, rows = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        found, before = [], self.matcher
        for number in self.group:
            part = np.flatnonzero(classes[rows - start] == number)
            after = before.begun()
            after.add(cells[part], numbers[part], ranks[part], number * self.release.rows + rows[part])
            new = after.since(before)
            found.append(np.column_stack([np.full(len(new), float(number)), new]))
            before = after
        return np.concatenate(found)


def readings(counts: NDArray[np.int64], most: int) -> list[tuple[list[int], list[tuple[int, int]]]]:
    """For classes of so many rows: those that share a reading, and its blocks of at most ``most`` rows of theirs."""
    rows = int(counts.sum())
    groups = _passes(counts, max(most, min(rows // SHARED, FEW_BLOCKS * most)))
    return [(group, _cuts(rows, int(counts[group].sum()), most)) for group in groups]


def _passes(counts: NDArray[np.int64], most: int) -> list[list[int]]:
    """Classes that are read together: neighbours that are few enough together."""
    groups: list[list[int]] = []
    held = most + 1
    for number, count in enumerate(counts.tolist()):
        if held + count > most:
            groups.append([])
            held = 0
        groups[-1].append(number)
        held += count
    return groups


def _cuts(rows: int, chosen: int, most: int) -> list[tuple[int, int]]:
    """Cut rows, of which so many are compared, into blocks with about ``most`` of them, and into several blocks."""
    count = min(rows, max(-(-chosen // most), min(FEW_BLOCKS, -(-chosen // SMALL_BLOCK))))
    ends = [rows * number // count for number in range(count + 1)]
    return list(pairwise(ends))
