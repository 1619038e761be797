"""Encoding records for a comparison with a streamed table, with the same numbers as if it were in memory.

As with ``learn_from=`` of :class:`TableEncoder`, scales and frequencies are learnt from the stream and the reference.
What stays in memory is a code for each value of the records and the reference. Values of the stream that they do not
have get none; their numbers count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError
from whosin.tables.columns import Column
from whosin.tables.encoding import (
    Ranks,
    Scaling,
    TableEncoder,
    learn_ranks,
    learn_scaling,
    remarks,
    scaled_levels,
    smoothed_shares,
)
from whosin.tables.levels import Levels
from whosin.tables.schema import check_same_names, match_tables
from whosin.tables.stream import TableStream
from whosin.tables.stream_columns import ColumnSurvey
from whosin.tables.table import Table

__all__ = ["StreamEncoder"]

Single = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class StreamEncoder:
    """What a stream and a reference say about each column of the records; made by :meth:`fit`.

    Examples
    --------
    >>> import polars as pl, whosin as wi
    >>> people = wi.tables.as_table({"age": [30, 40], "city": ["Bern", "Ulm"]})
    >>> stream = wi.tables.as_stream(pl.LazyFrame({"age": [30, 35, 50], "city": ["Bern", "Graz", "Bern"]}))
    >>> learnt = wi.tables.StreamEncoder.fit([people], stream)
    >>> print(learnt.encoder.transform(people))
    2 rows: 1 columns of numbers, 1 of categories
    """

    encoder: TableEncoder
    """Codes of records and reference, and their scaled numbers and frequencies."""
    records: tuple[Table, ...] = field(repr=False)
    """The tables of records, and the reference, with the columns in their order and of kinds that agree."""
    surveys: tuple[ColumnSurvey, ...] = field(repr=False)
    scalings: tuple[tuple[Scaling, Ranks] | None, ...] = field(repr=False)
    """For each column of numbers how it is scaled and ranked; None for categories, and where one value was seen."""
    fingerprint: str
    """That of the stream, as :meth:`Table.fingerprint` would give it."""

    @classmethod
    def fit(
        cls,
        records: Sequence[Table],
        stream: TableStream,
        *,
        reference: Table | None = None,
        columns: Sequence[str] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> StreamEncoder:
        """Read the columns of a stream one by one and learn an encoding from its rows and those of the reference.

        Parameters
        ----------
        records : sequence of Table
            Tables to be encoded from which nothing is learnt but the values to number.
        stream : TableStream
        reference : Table, optional
            A further table in memory, to be encoded and learnt from.
        columns : sequence of str, optional
            As in :func:`match_tables`, whose errors are raised.
        progress : callable, optional
            Called with the share of the columns that were read.

        Notes
        -----
        Each column is read two or three times (:mod:`whosin.tables.stream_columns`), the last time for the fingerprint.
        Time O(n log k) for k distinct values; memory: the distinct values of one column at a time, some 50 bytes each,
        and what the records take.
        """
        others = [] if reference is None else [reference]
        if columns is None:
            every: list[Table | TableStream] = [*records, stream, *others]
            check_same_names([(table.origin, table.names) for table in every])
            columns = records[0].names
        absent = next((name for name in columns if name not in stream.names), None)
        if absent is not None:
            raise InputError(f"{stream.origin} has no column {absent!r}; it has {', '.join(stream.names)}")
        base = match_tables(*records, *others, columns=columns, at_least=1)
        digest = hashlib.sha256(f"whosin table 1, {stream.rows} rows, {len(columns)} columns".encode())
        found: list[_Learnt] = []
        for place, name in enumerate(columns):
            parts = [table.select([name]) for table in base]
            found.append(_learn(ColumnSurvey.of(stream, name), parts[: len(records)], parts[len(records) :], digest))
            if progress is not None:
                progress((place + 1) / len(columns))
        names = tuple(columns)
        encoder = TableEncoder(
            names,
            tuple(one.levels for one in found),
            tuple(one.scaled for one in found),
            tuple(one.ranks for one in found),
            tuple(one.shares for one in found),
            sum(map(len, base)) + stream.rows,
            tuple(
                f"column {name!r} {remark}" for name, one in zip(names, found, strict=True) for remark in one.remarks
            ),
        )
        matched = tuple(
            Table(names, tuple(one.columns[i] for one in found), table.origin) for i, table in enumerate(base)
        )
        return cls(
            encoder,
            matched,
            tuple(one.survey for one in found),
            tuple(one.rules for one in found),
            digest.hexdigest(),
        )

    def table(self, frame: Any, first: int) -> Table:
        """Return rows of the stream as a table with columns of the kinds that records and reference have.

        ``frame`` has the columns of the encoder, ``first`` is the number of its first row, for errors.
        """
        columns = []
        for name, survey, levels in zip(self.encoder.names, self.surveys, self.encoder.levels, strict=True):
            column = survey.cells(frame.get_column(name), first)
            if survey.holds == "nothing" and levels.kind != "category":
                column = Column(levels.kind, levels.holds, np.full(len(column), np.nan))
            columns.append(column)
        return Table(self.encoder.names, tuple(columns), self.surveys[0].stream.origin)

    def transform(self, frame: Any, first: int) -> tuple[NDArray[np.int32], Single, Single]:
        """Return rows of the stream: codes, -1 where no record has the value, scaled numbers and ranks (NaN: missing).

        ``frame`` has the columns of the encoder, ``first`` is the number of its first row, for errors.
        """
        names = self.encoder.names
        cells = np.empty((frame.height, len(names)), dtype=np.int32)
        numbers, ranks = [], []
        for i, (name, column) in enumerate(self.table(frame, first)):
            cells[:, i] = self.encoder.levels[i].find(column, f"{self.surveys[i].stream.origin} column {name!r}")
            rules = self.scalings[i]
            if rules is not None:
                numbers.append(_scaled(rules[0], column))
                ranks.append(_scaled(rules[1], column))
        none = np.empty((frame.height, 0), dtype=np.float32)
        return cells, *(np.stack(part, axis=1) if part else none for part in (numbers, ranks))  # type: ignore[return-value]


def _scaled(rule: Scaling | Ranks, column: Column) -> Single:
    """Return scaled numbers, NaN where a cell is missing."""
    values = np.full(len(column), np.nan, dtype=np.float32)
    known = ~column.missing
    values[known] = rule(column.values[known])
    return values


@dataclass(frozen=True, eq=False)
class _Learnt:
    """One column: what the tables in memory have of it, and what stream and reference say."""

    survey: ColumnSurvey
    columns: list[Column]
    levels: Levels
    scaled: Single | None
    ranks: Single | None
    rules: tuple[Scaling, Ranks] | None
    shares: NDArray[np.float64]
    remarks: list[str]


def _learn(survey: ColumnSurvey, records: list[Table], reference: list[Table], digest: Any) -> _Learnt:
    example = Table((survey.name,), (survey.example(),), survey.stream.origin)
    agreed = [table.columns[0] for table in match_tables(*records, example, *reference, at_least=1)]
    model = agreed.pop(len(records))
    levels = Levels.pool(agreed)
    if levels.holds == "nothing":
        levels = replace(levels, holds=model.holds)
    survey.add_to(digest, model.kind, model.holds)
    full, places = _pooled(levels, survey)
    counts = full.counts.copy()
    for column in agreed[: len(records)]:
        codes = levels.codes(column, f"column {survey.name!r}")
        counts[places] -= np.bincount(codes, minlength=levels.size)
    rule, ranking = learn_scaling(full, counts), learn_ranks(full, counts)
    shares = smoothed_shares(counts)[places]
    return _Learnt(
        survey,
        agreed,
        levels,
        scaled_levels(levels, rule),
        scaled_levels(levels, ranking),
        None if rule is None or ranking is None else (rule, ranking),
        shares,
        remarks(full, rule),
    )


def _pooled(levels: Levels, survey: ColumnSurvey) -> tuple[Levels, NDArray[np.int64]]:
    """Return the levels of all rows, and where among them each level of the records stands."""
    gone = survey.missing + (int(levels.counts[-1]) if levels.any_missing else 0)
    own = levels.counts[: levels.known]
    if levels.kind == "category":
        import polars as pl

        ours = pl.DataFrame({"label": pl.Series(list(levels.labels), dtype=pl.String), "rows": own})
        theirs = pl.DataFrame({"label": survey.labels, "rows": survey.counts})
        every = pl.concat([ours, theirs]).group_by("label").agg(pl.col("rows").sum()).sort("label").with_row_index("at")
        ranks = ours.join(every, on="label", how="left", maintain_order="left")["at"].to_numpy().astype(np.int64)
        numbers, counts = np.empty(0), every["rows"].to_numpy()
    else:
        values = np.concatenate([levels.numbers, survey.numbers])
        numbers, place = np.unique(values, return_inverse=True)
        counts = np.bincount(place, weights=np.concatenate([own, survey.counts])).astype(np.int64)
        ranks = place[: levels.known].astype(np.int64)
    if gone:
        counts = np.append(counts, gone)
    if levels.any_missing:
        ranks = np.append(ranks, len(counts) - 1)
    return Levels(levels.kind, levels.holds, numbers, (), counts, gone > 0), ranks
