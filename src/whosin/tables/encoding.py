"""Encoding mixed columns for comparing records: codes of cells, scaled numbers, and how often each value occurs.

Values are numbered over the pooled rows of all tables. Scales and frequencies are learnt from the pooled rows too, so
an encoding cannot tell the tables apart: exchanging them, or permuting rows, changes nothing. Or they are learnt from
some of the tables (``learn_from=``; in audits the release and the reference): then scales and frequencies of a row of
another table do not depend on the rows that stand beside it.

A table that is read in blocks is learnt from like one in memory, to the same numbers; only values that no table in
memory has get no code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Counts, Single
from whosin.errors import InputError, InputTypeError
from whosin.parallel.threads import Progress
from whosin.tables.columns import Column
from whosin.tables.levels import Levels
from whosin.tables.scaling import Rules, ValueCounts, learn_rules, remarks, scaled_levels, smoothed_shares
from whosin.tables.schema import agreed_columns, check_same_names
from whosin.tables.stream import TableStream
from whosin.tables.stream_columns import ColumnSurvey, SurveyedStream
from whosin.tables.table import Table, new_digest

Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """What the rows that it learnt from say about each column; made by :meth:`fit`.

    Examples
    --------
    Numbers are compared in units of the distance of the quartiles, and the rarer value has the smaller share:

    >>> import whosin as wi
    >>> table = wi.tables.as_table({"age": [30, 40, 50], "city": ["Bern", "Ulm", "Ulm"]})
    >>> encoder = wi.tables.TableEncoder.fit(table)
    >>> encoder.scaled[0].tolist(), encoder.frequencies[1].round(3).tolist()
    ([-0.5, 0.0, 0.5], [0.333, 0.667])
    >>> encoder.transform(table).tolist()
    [[0, 0], [1, 1], [2, 1]]
    """

    tables: tuple[Table | SurveyedStream, ...] = field(repr=False)
    """The tables, with the columns in one order and of kinds that agree."""
    levels: tuple[Levels, ...] = field(repr=False)
    """The values of each column that tables in memory have, numbered."""
    rules: tuple[Rules | None, ...] = field(repr=False)
    """For each column of numbers how it is scaled and ranked; None for categories, and where only one was seen."""
    frequencies: tuple[Array, ...] = field(repr=False)
    """For each column the share of rows that has each code, smoothed where rows were left out of learning."""
    streamed: tuple[ValueCounts | None, ...] = field(repr=False)
    """For each column how many rows that are read in blocks have its values; None where all tables are in memory."""
    notes: tuple[str, ...]
    """What a reader should know about single columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.tables[0].names

    @property
    def rows(self) -> int:
        """Number of pooled rows."""
        return sum(table.rows for table in self.tables)

    @classmethod
    def fit(
        cls,
        *tables: Table | TableStream,
        learn_from: Sequence[Table | TableStream] | None = None,
        columns: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> TableEncoder:
        """Learn an encoding of tables with the same columns.

        Numbers lose their median and are divided by the distance of the quartiles; where that is zero, by the standard
        deviation. They are cut at ±10⁶. A column in which only one value was seen, or nothing but missing cells, is
        left out of the numbers, and a note says so.

        Parameters
        ----------
        *tables : Table or TableStream
            All tables that will be encoded, one at least in memory. The result is the same for any order of tables and
            rows, and whether a table is in memory or read in blocks.
        learn_from : sequence of Table or TableStream, optional
            Those of the tables that scales and frequencies are learnt from; by default all of them. With it,
            frequencies are smoothed (:func:`whosin.tables.scaling.smoothed_shares`), since the other tables may have
            further values.
        columns : sequence of str, optional
            As in :func:`match_tables`, whose errors are raised.
        progress : callable, optional
            Called with the share of the columns that were learnt.

        Notes
        -----
        O(n log n) for a column of numbers, O(n) for one of categories; memory for the distinct values of every column
        of the tables in memory. A column of a stream is read two or three times
        (:mod:`whosin.tables.stream_columns`), the last time for the fingerprint, in O(n log k) for k distinct values;
        they take some 50 bytes each, those of one column at a time.
        """
        strange = [table for table in tables if not isinstance(table, Table | TableStream)]
        if strange or not any(isinstance(table, Table) for table in tables):
            got = type(strange[0]).__name__ if strange else "none in memory"
            raise InputTypeError(f"tables must be of as_table or as_stream, at least one table in memory, got {got}")
        if columns is None:
            check_same_names([(table.origin, table.names) for table in tables])
            columns = tables[0].names
        chosen = [table.select(columns) for table in tables]
        some = tables if learn_from is None else learn_from
        learnt = [any(table is one for one in some) for table in tables]
        if not some or any(all(one is not table for table in tables) for one in some):
            raise InputError("learn_from must be some of the tables themselves, got none or another")
        digests = [new_digest(table.rows, columns) for table in chosen]
        found: list[_Learnt] = []
        for place, name in enumerate(columns):
            found.append(_learn(name, chosen, learnt, digests, smooth=learn_from is not None))
            if progress is not None:
                progress((place + 1) / len(columns))
        matched: list[Table | SurveyedStream] = []
        for table, digest, parts in zip(chosen, digests, zip(*(one.parts for one in found), strict=True), strict=True):
            if isinstance(table, Table):
                matched.append(Table(table.names, parts, table.origin))
            else:
                matched.append(SurveyedStream(table, parts, digest.hexdigest()))
        notes = [f"column {name!r} {said}" for name, one in zip(columns, found, strict=True) for said in one.remarks]
        return cls(
            tuple(matched),
            tuple(one.levels for one in found),
            tuple(one.rules for one in found),
            tuple(one.shares for one in found),
            tuple(one.streamed for one in found),
            tuple(notes),
        )

    @property
    def scaled(self) -> tuple[Single | None, ...]:
        """For each column of numbers the scaled values of its levels; None for categories, and where one was seen."""
        return self._of_levels(0)

    @property
    def ranks(self) -> tuple[Single | None, ...]:
        """For the same columns the ranks of the levels, from -1 to 1."""
        return self._of_levels(1)

    def _of_levels(self, which: int) -> tuple[Single | None, ...]:
        pairs = zip(self.levels, self.rules, strict=True)
        return tuple(None if rules is None else scaled_levels(levels, rules[which]) for levels, rules in pairs)

    def transform(self, table: Table) -> Codes:
        """Return the codes of all cells, (N, d), of a table with the same columns in any order; the last is missing.

        Codes are equal exactly where cells are. Every value must occur in the pooled rows in memory. O(n log k) for k
        distinct numbers in a column.
        """
        cells = np.empty((len(table), len(self.names)), dtype=np.int32)
        for i, (name, column) in enumerate(table.select(self.names)):
            cells[:, i] = self.levels[i].codes(column, f"{table.origin} column {name!r}")
        return cells

    def transform_streamed(self, table: Table) -> tuple[Codes, Single, Single]:
        """Return rows of a stream: codes, -1 where no table in memory has the value, scaled numbers and ranks.

        ``table`` has the columns of the encoder in their order. NaN stands for missing numbers and ranks.
        """
        cells = np.empty((len(table), len(self.names)), dtype=np.int32)
        scaled = np.full((2, len(table), sum(rules is not None for rules in self.rules)), np.nan, dtype=np.float32)
        place = 0
        for i, (name, column) in enumerate(table):
            cells[:, i] = self.levels[i].find(column, f"{table.origin} column {name!r}")
            if (rules := self.rules[i]) is not None:
                known = ~column.missing
                scaled[0, known, place] = rules[0](column.values[known])
                scaled[1, known, place] = rules[1](column.values[known])
                place += 1
        return cells, scaled[0], scaled[1]

    def __str__(self) -> str:
        return f"encoder of {len(self.names)} columns, fitted on {self.rows} pooled rows, {len(self.notes)} notes"


@dataclass(frozen=True, eq=False)
class _Learnt:
    """One column: what each table has of it, of a stream its survey, and what is learnt."""

    parts: list[Any]
    levels: Levels
    rules: Rules | None
    shares: Array
    streamed: ValueCounts | None
    remarks: list[str]


def _learn(
    name: str, tables: Sequence[Table | TableStream], learnt: Sequence[bool], digests: Sequence[Any], *, smooth: bool
) -> _Learnt:
    """Learn from a column of some of the tables; feed those of streams to their fingerprints."""
    looked = [table.stored(name) if isinstance(table, Table) else ColumnSurvey.of(table, name) for table in tables]
    given = [part if isinstance(part, Column) else part.example() for part in looked]
    agreed = agreed_columns(name, tables, given)
    held = [i for i, part in enumerate(looked) if isinstance(part, Column)]
    holds = next((column.holds for column in agreed if column.holds != "nothing"), "nothing")
    levels = replace(Levels.pool([agreed[i] for i in held]), holds=holds)
    counts = levels.counts
    if not all(learnt[i] for i in held):
        counts = np.zeros_like(counts)
        for i in held:
            if learnt[i]:
                counts += np.bincount(levels.codes(agreed[i], f"column {name!r}"), minlength=levels.size)
    surveys = [(part, learn) for part, learn in zip(looked, learnt, strict=True) if isinstance(part, ColumnSurvey)]
    full, seen, streamed, places = _pooled(levels, counts, surveys)
    rules = learn_rules(full, seen)
    return _Learnt(
        [
            column if isinstance(part, Column) else part.settled(column, digest)
            for part, column, digest in zip(looked, agreed, digests, strict=True)
        ],
        levels,
        rules,
        (smoothed_shares(seen) if smooth else seen / seen.sum())[places],
        ValueCounts.of(streamed, streamed[places]) if surveys else None,
        remarks(full, None if rules is None else rules[0]),
    )


def _pooled(
    levels: Levels, counts: Counts, surveys: Sequence[tuple[ColumnSurvey, bool]]
) -> tuple[Levels, Counts, Counts, Counts]:
    """Return the values of all rows, how often each was learnt from, and seen in streams, and the places of the levels.

    ``counts`` says how often levels were seen in memory, and with each survey stands whether it is learnt from.
    """
    if not surveys:
        return levels, counts, np.zeros_like(counts), np.arange(levels.size)
    sizes = [levels.known, *(len(survey.counts) for survey, _ in surveys)]
    if levels.kind == "category":
        import polars as pl

        labels = [pl.Series(list(levels.labels), dtype=pl.String), *(survey.labels for survey, _ in surveys)]
        numbers, ranks = np.empty(0), pl.concat(labels).rank("dense").to_numpy().astype(np.int64) - 1
    else:
        values = np.concatenate([levels.numbers, *(survey.numbers for survey, _ in surveys)])
        numbers, ranks = np.unique(values, return_inverse=True)
    last = int(ranks.max(initial=-1)) + 1
    own, *others = (np.append(part, last) for part in np.split(ranks, np.cumsum(sizes)[:-1]))
    own = own[: levels.size]
    totals = np.zeros((3, last + 1), dtype=np.int64)
    totals[:2, own] = levels.counts, counts
    for (survey, learn), places in zip(surveys, others, strict=True):
        totals[:, places] += np.outer((1, learn, 1), np.append(survey.counts, survey.missing))
    pooled, seen, streamed = totals if totals[0, -1] else totals[:, :-1]
    return Levels(levels.kind, levels.holds, numbers, (), pooled, bool(totals[0, -1])), seen, streamed, own
