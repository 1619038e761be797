"""Training again and again on random parts of the same records, and what each training answers about every record."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.auditing.measuring.asking import Query
from whosin.auditing.measuring.people import People
from whosin.auditing.models.generators.audit import train_copy
from whosin.auditing.models.generators.queries import generate, with_names
from whosin.auditing.models.predictions import predict, scaled_logit
from whosin.auditing.releases.queries import arrays as array_queries
from whosin.auditing.releases.queries import tables as table_queries
from whosin.auditing.releases.tables_to_answers import column_numbers
from whosin.errors import InputError, InputTypeError
from whosin.tables import Table, TableEncoder, as_table, match_tables, numeric_records
from whosin.training.adapters import Adapter, take

ATTEMPTS = 3
"""How often a training that fails is tried, with the same coins and other seeds."""
FAR = 1e9
BEST, MOST_ROWS, ROWS = 5, 4000, 256
"""Of how many best released rows the mean is taken, of how many rows at most, and for how many records at a time."""


class TableAnswers:
    """What a released table answers about every record.

    Frequencies and scales are those of the records, so that an answer means the same in every training. Beside the
    queries of :func:`whosin.audit_synthetic` it asks for the share of a record's rarity that the five best released
    rows explain on average, and counts, for each column, the released rows with the record's value, in place of
    "repeated_values", which adds such counts up.
    O(records · released rows · columns).
    """

    queries = tuple(name for name in table_queries.DEFAULT if name != "repeated_values")
    main = len(queries) + 1

    def __init__(self, records: Table) -> None:
        self.records = records

    def __call__(self, release: Any) -> Array:
        """Return the answers, one row for each record."""
        named = with_names(release, self.records.names)
        rows, released = match_tables(self.records, as_table(named, "release"), at_least=1)
        encoder = TableEncoder.fit(rows, released, learn_from=[rows])
        cells, others = encoder.transform(rows), encoder.transform(released)
        found = table_queries.TableRelease(cells, others, encoder.frequencies, *column_numbers(encoder), n_jobs=1)
        with np.errstate(invalid="ignore"):
            several = _several_best(found) / found.rarity
        counts = [
            np.bincount(theirs, minlength=int(own.max()) + 1)[own]
            for own, theirs in zip(cells.T, others.T, strict=True)
        ]
        return np.column_stack([*_asked(found, table_queries.QUERIES, self.queries), several, *counts])

    @property
    def rarity(self) -> Array:
        """How rare each record is among all, as the sum of -ln(frequency) of its cells."""
        encoder = TableEncoder.fit(self.records)
        cells = encoder.transform(self.records)
        return np.asarray(sum(-np.log(share)[codes] for share, codes in zip(encoder.frequencies, cells.T, strict=True)))


def _several_best(release: table_queries.TableRelease) -> Array:
    """Mean soft weight (:mod:`whosin.auditing.releases.matching.match`) of the five best released rows.

    Of a large release 4,000 rows at even distances are looked at: O(records · 4,000 · columns).
    """
    cells = release.synthetic_cells
    assert cells is not None
    cells = cells[np.unique(np.linspace(0, len(cells) - 1, MOST_ROWS).astype(np.intp))]
    kept, found = min(BEST, len(cells)), np.empty(release.targets)
    for first in range(0, release.targets, ROWS):
        targets = release.target_cells[first : first + ROWS]
        total = np.zeros((len(targets), len(cells)), dtype=np.float32)
        for place, (weights, ranks) in enumerate(zip(release.weights, release.ranks, strict=True)):
            own, theirs = targets[:, place], cells[:, place]
            weight, equal = weights[own].astype(np.float32)[:, None], own[:, None] == theirs
            if ranks is None:
                total += equal * weight
            else:
                rank = ranks.astype(np.float32)
                apart = np.fmin(np.exp(-weight) + np.abs(rank[own][:, None] - rank[theirs]), np.float32(1.0))
                total += np.where(equal, weight, -np.log(apart))
        found[first : first + ROWS] = np.partition(total, -kept, axis=1)[:, -kept:].mean(axis=1)
    return found


class ArrayAnswers:
    """What released rows of numbers answer about every record; distances as the rows are."""

    queries = array_queries.DEFAULT
    main = len(queries)

    def __init__(self, records: Array) -> None:
        self.records = numeric_records(records.reshape(len(records), -1), "records", at_least=1)

    def __call__(self, release: Any) -> Array:
        """Return the answers, one row for each record."""
        rows = np.asarray(release)
        released = numeric_records(rows.reshape(len(rows), -1), "release", at_least=1)
        if released.shape[1] != self.records.shape[1]:
            raise InputError(
                f"model must release rows of {self.records.shape[1]} columns, like the records, got {released.shape[1]}"
            )
        found = array_queries.ArrayRelease(self.records, released, n_jobs=1)
        return np.column_stack(_asked(found, array_queries.QUERIES, self.queries))


def _asked(release: Any, known: dict[str, Query], names: tuple[str, ...]) -> list[Array]:
    """Ask every query; one that cannot be answered about this release says 0 of everybody."""
    found = []
    for name in names:
        try:
            answer = np.asarray(known[name].answer(release), dtype=np.float64)
        except InputError:
            answer = np.zeros(release.targets)
        found.append(answer)
    return found


@dataclass(frozen=True, eq=False)
class _Released:
    """Something that is trained on records and releases rows, which are asked about every record."""

    model: Any
    records: Any
    about: TableAnswers | ArrayAnswers

    @property
    def main(self) -> int:
        """Number of main queries: the first so many answers are worth reading one by one."""
        return self.about.main

    def answers(self, release: Any) -> Array:
        """Return one row of answers for every record."""
        return self.about(release)


@dataclass(frozen=True, eq=False)
class Generator(_Released):
    """A model with fit and sample, trained by copies."""

    release_rows: int | None

    def rows(self, trained_on: int) -> int:
        """Return how many rows a training on so many records releases: the ratio to all records is kept."""
        total = len(self.about.records)
        return trained_on if self.release_rows is None else max(1, round(self.release_rows * trained_on / total))

    def train(self, rows: NDArray[np.int64], rng: np.random.Generator) -> Any:
        """Train a copy and return what it generates."""
        trained, _ = train_copy(self.model, take(self.records, rows), True, None, rng)
        return generate(trained, self.rows(len(rows)), rng)


@dataclass(frozen=True, eq=False)
class Function(_Released):
    """A function of (records, rng) that returns released rows, or one score for each of all records."""

    def train(self, rows: NDArray[np.int64], rng: np.random.Generator) -> Any:
        """Call the function with these records."""
        return self.model(take(self.records, rows), rng)

    def answers(self, release: Any) -> Array:
        """Return the scores as they are, or the answers of released rows."""
        size = len(self.about.records)
        given = np.asarray(release) if isinstance(release, np.ndarray | list | tuple) else None
        if given is not None and given.ndim == 1 and given.dtype.kind in "biuf":
            if given.shape != (size,):
                raise InputError(f"model must return one score for each of the {size} records, got {len(given)}")
            return given.astype(np.float64)[:, None]
        return super().answers(release)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier: the log odds of each record's own label."""

    adapter: Adapter
    X: Any
    y: NDArray[Any]
    main: int = 1

    def train(self, rows: NDArray[np.int64], rng: np.random.Generator) -> Any:
        """Return a trained copy."""
        return copy.deepcopy(self.adapter).fit(take(self.X, rows), self.y[rows], rng)

    def answers(self, release: Any) -> Array:
        """Return the log odds; those of sure answers are cut just above the largest of the others."""
        odds = scaled_logit(predict(release, self.X, self.y, "records", missing=True))
        size = np.abs(odds)
        if (size > SURE).any():
            most = size[size <= SURE].max(initial=0.0) + np.log(2.0)
            odds = np.clip(odds, -most, most)
        return odds[:, None]


SURE = 36.0
"""Log odds beyond this are those of a probability of 0 or 1."""


@dataclass(frozen=True, eq=False)
class Trainings:
    """All trainings: called with the number of one, it returns the answers about every unit."""

    subject: Any
    people: People | None
    units: int
    seed: int
    balanced: bool

    def coins(self, number: int) -> Flags:
        """Return which units are in the training of that number."""
        return coins_of(self.seed, number, self.units, self.balanced)

    def __call__(self, number: int) -> Array:
        """Train and ask; what fails is tried again with the same coins."""
        coins = self.coins(number)
        rows = np.flatnonzero(coins if self.people is None else coins[self.people.number])
        for attempt in range(ATTEMPTS):
            rng = np.random.default_rng([self.seed, number, 2 + attempt])
            try:
                with _seeded(int(rng.integers(2**32))):
                    return self.pooled(self.subject.answers(self.subject.train(rows, rng)))
            except (InputTypeError, MemoryError):
                raise
            except Exception as error:
                failed = error
        raise InputError(
            f"model failed {ATTEMPTS} times in training {number}, on {len(rows)} of the records: "
            f"{type(failed).__name__}: {failed}. Leaving a training out would bias the audit: mend the model and "
            "call again (with a journal, what is done is not done again)"
        ) from failed

    def pooled(self, answers: Array) -> Array:
        """Return the answers about each unit: of a person, the largest and the mean of its records'."""
        given = np.clip(np.nan_to_num(answers, nan=0.0, posinf=FAR, neginf=-FAR), -FAR, FAR)
        if self.people is None:
            return given
        main = self.subject.main
        return np.column_stack([self.people.pooled(given[:, :main], "largest"), self.people.pooled(given, "mean")])

    @property
    def main(self) -> int:
        """Number of main queries after pooling."""
        return int(self.subject.main) * (1 if self.people is None else 2)


def coins_of(seed: int, number: int, units: int, balanced: bool) -> Flags:
    """Return the coins of one training: fair and independent, or exactly half of the units."""
    draws = np.random.default_rng([seed, number, 1]).random(units)
    return draws < 0.5 if not balanced else np.argsort(np.argsort(draws)) < units // 2


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the generators that models reach for by themselves, and leave those of NumPy and Python as they were."""
    before = np.random.get_state(), random.getstate()  # noqa: NPY002 (models use them)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        random.setstate(before[1])
