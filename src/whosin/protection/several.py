"""Several estimates of one draw, released together: their numbers one after another, with one certificate.

Several noisy estimates of one draw are one noisy estimate of all their numbers, so what is known of one holds: the
noise of sums is computed exactly from their contributions side by side, and a list with a black box in it is a black
box. One η then limits what all of them tell together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError
from whosin.protection.estimators import BlackBox, Function, Sum, as_estimator, as_numbers
from whosin.protection.pool import Pool


def as_estimators(estimator: Any, records: Any) -> tuple[Sum | BlackBox, Pool]:
    """Return an estimator, or a list or dictionary of them, as a sum or a black box, and the pool on which it works."""
    if isinstance(estimator, Mapping):
        return _together(list(estimator.values()), [str(name) for name in estimator], records)
    if isinstance(estimator, list | tuple):
        return _together(estimator, None, records)
    return as_estimator(estimator, records)


@dataclass(frozen=True)
class _Layout:
    """How the numbers of several estimates follow each other, and what the user gets for each."""

    parts: tuple[Sum | BlackBox, ...]
    shapes: tuple[tuple[int, ...], ...]
    names: tuple[str, ...] | None

    @property
    def name(self) -> str:
        """What they are called in certificates."""
        return " and ".join(self.names or [part.name for part in self.parts])

    def rebuild(self, value: Array) -> Any:
        """Return what the user gets for each, in a list or by name."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        pieces = np.split(value.reshape(-1), ends)
        rebuilt = [
            part.rebuild(piece.reshape(shape))
            for part, piece, shape in zip(self.parts, pieces, self.shapes, strict=True)
        ]
        return rebuilt if self.names is None else dict(zip(self.names, rebuilt, strict=True))


@dataclass(frozen=True)
class _Sums(Sum):
    """Several sums: all contributions side by side."""

    layout: _Layout

    def rebuild(self, value: Array) -> Any:
        """Return what the user gets for each."""
        return self.layout.rebuild(value)


@dataclass(frozen=True)
class Boxes(BlackBox):
    """Several black boxes; each is trained on its own parts of the pool."""

    boxes: tuple[BlackBox, ...]
    sizes: tuple[int, ...]
    layout: _Layout
    has_sums: bool
    name: str

    def train(self, parts: tuple[Any, ...], rng: np.random.Generator) -> Array:
        """Return all estimates in one vector."""
        found, start = [], 0
        for box, size, shape in zip(self.boxes, self.sizes, self.layout.shapes, strict=True):
            numbers = _numbers(box, parts[start : start + size], rng)
            if numbers.shape != shape:
                raise InputError(f"{box.name} has an estimate of shape {numbers.shape}, on the whole pool {shape}")
            found.append(numbers.reshape(-1))
            start += size
        return np.concatenate(found)

    def rebuild(self, value: Array) -> Any:
        """Return what the user gets for each."""
        return self.layout.rebuild(value)


def _together(estimators: Sequence[Any], names: list[str] | None, records: Any) -> tuple[Sum | BlackBox, Pool]:
    if not estimators:
        raise InputError("estimator must be at least one estimator, got none")
    understood = [as_estimator(each, records) for each in estimators]
    named = None if names is None else tuple(names)
    parts, pools = tuple(part for part, _ in understood), [pool for _, pool in understood]
    sums = [part for part in parts if isinstance(part, Sum)]
    if len(sums) == len(parts):
        layout = _Layout(parts, tuple(each.contributions.shape[1:] for each in sums), named)
        rows = [each.contributions.reshape(len(pools[0]), -1) for each in sums]
        average = np.concatenate(
            [np.full(block.shape[1], each.average) for block, each in zip(rows, sums, strict=True)]
        )
        return _Sums(np.hstack(rows), average, layout.name, layout), pools[0]
    boxes = tuple(Function(part.of, part.name, False) if isinstance(part, Sum) else part for part in parts)
    pools = [Pool((part.contributions,)) if isinstance(part, Sum) else pool for part, pool in understood]
    shapes = tuple(_settled(box, pool) for box, pool in zip(boxes, pools, strict=True))
    everything = Pool(tuple(part for pool in pools for part in pool.parts))
    sizes = tuple(len(pool.parts) for pool in pools)
    layout = _Layout(boxes, shapes, named)
    return Boxes(boxes, sizes, layout, bool(sums), layout.name), everything


def _settled(box: BlackBox, pool: Pool) -> tuple[int, ...]:
    """The shape of an estimate, from one training on the whole pool: that tells nothing about who is drawn."""
    try:
        return _numbers(box, pool.parts, np.random.default_rng(0)).shape
    except Exception as error:
        raise InputError(f"estimator {box.name} failed on the whole pool: {type(error).__name__}: {error}") from error


def _numbers(box: BlackBox, parts: tuple[Any, ...], rng: np.random.Generator) -> Array:
    value = box.train(parts, rng)
    numbers = as_numbers(value)
    if numbers is None or numbers.size == 0:
        raise InputError(f"{box.name} must return an array of numbers, got {type(value).__name__}")
    return numbers
