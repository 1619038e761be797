"""Encoding records for a comparison with a streamed table, with the same numbers as if it were in memory.

As in :class:`TableEncoder` everything is learnt from the pooled rows of all tables. What stays in memory is what the
records have: a code for each of their values. Values of the stream that no record has get none; their numbers count.
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
from whosin.tables.encoding import Encoded, Scale, TableEncoder, level_remarks, scaled_levels
from whosin.tables.levels import Levels
from whosin.tables.schema import check_same_names, match_tables
from whosin.tables.stream import TableStream
from whosin.tables.survey import ColumnSurvey
from whosin.tables.table import Table

__all__ = ["StreamEncoder"]


@dataclass(frozen=True, eq=False)
class StreamEncoder:
    """What pooled rows say about each column, those of a stream among them; made by :meth:`fit`."""

    encoder: TableEncoder
    """Codes of the records, scaled numbers of them, and frequencies over the pooled rows."""
    records: tuple[Table, ...] = field(repr=False)
    """The tables of records, with the columns in their order and of kinds that agree."""
    surveys: tuple[ColumnSurvey, ...] = field(repr=False)
    scales: tuple[Scale | None, ...] = field(repr=False)
    """For each column of numbers how it is scaled; None for categories, constants, and columns without two values."""
    ranks: tuple[NDArray[np.int64], ...] = field(repr=False)
    """For each column the place of each code of the records among the values of all pooled rows."""
    fingerprint: str
    """That of the stream, as :meth:`Table.fingerprint` would give it."""

    @classmethod
    def fit(
        cls,
        records: Sequence[Table],
        stream: TableStream,
        *,
        columns: Sequence[str] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> StreamEncoder:
        """Read the columns of a stream one by one and learn an encoding from the rows of all tables.

        Parameters
        ----------
        records : sequence of Table
            The tables that stay in memory.
        stream : TableStream
        columns : sequence of str, optional
            As in :func:`match_tables`, whose errors are raised.
        progress : callable, optional
            Called with the share of the columns that were read.

        Notes
        -----
        Each column is read two or three times (:mod:`whosin.tables.survey`), the last time for the fingerprint. Time
        O(n log k) for k distinct values; memory: the distinct values of one column at a time, some 50 bytes each, and
        what the records take.
        """
        if columns is None:
            check_same_names(
                [(table.origin, table.names) for table in records[:2]]
                + [(stream.origin, stream.names)]
                + [(table.origin, table.names) for table in records[2:]]
            )
            columns = records[0].names
        absent = next((name for name in columns if name not in stream.names), None)
        if absent is not None:
            raise InputError(f"{stream.origin} has no column {absent!r}; it has {', '.join(stream.names)}")
        base = match_tables(*records, columns=columns, at_least=1)
        digest = hashlib.sha256(f"whosin table 1, {stream.rows} rows, {len(columns)} columns".encode())
        found: list[_Learnt] = []
        for place, name in enumerate(columns):
            found.append(_learn(ColumnSurvey.of(stream, name), [table.select([name]) for table in base], digest))
            if progress is not None:
                progress((place + 1) / len(columns))
        names = tuple(columns)
        encoder = TableEncoder(
            names,
            tuple(one.levels for one in found),
            tuple(one.scaled for one in found),
            tuple(one.shares for one in found),
            "robust",
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
            tuple(one.scale for one in found),
            tuple(one.ranks for one in found),
            digest.hexdigest(),
        )

    def transform(self, frame: Any, first: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return some rows of the stream as codes, -1 where no record has the value, and scaled numbers (NaN missing).

        ``frame`` has the columns of the encoder, ``first`` is the number of its first row, for errors.
        """
        names = self.encoder.names
        cells = np.empty((frame.height, len(names)), dtype=np.int32)
        numbers = []
        for i, (name, survey, levels) in enumerate(zip(names, self.surveys, self.encoder.levels, strict=True)):
            column = survey.cells(frame.get_column(name), first)
            if survey.holds == "nothing" and levels.kind != "category":
                column = Column(levels.kind, levels.holds, np.full(len(column), np.nan))
            cells[:, i] = levels.find(column, f"{survey.stream.origin} column {name!r}")
            if self.encoder.scaled[i] is not None:
                numbers.append(self._scaled(i, column))
        return cells, np.stack(numbers, axis=1) if numbers else np.empty((frame.height, 0), dtype=np.float32)

    def features(self, part: Encoded) -> NDArray[np.float64]:
        """Return records as numbers: scaled numbers, and for categories the place among those of all pooled rows."""
        labelled = [i for i, levels in enumerate(self.encoder.levels) if levels.kind == "category"]
        codes = [self.ranks[i][part.cells[:, i]][:, None] for i in labelled]
        return np.concatenate([part.numbers, *codes], axis=1, dtype=np.float64)

    def _scaled(self, place: int, column: Column) -> NDArray[np.float32]:
        values, scale = np.full(len(column), np.nan, dtype=np.float32), self.scales[place]
        known = ~column.missing
        values[known] = 0.0 if scale is None else scale(column.values[known])
        return values


@dataclass(frozen=True, eq=False)
class _Learnt:
    """One column: what the records have of it, and what all rows say."""

    survey: ColumnSurvey
    columns: list[Column]
    levels: Levels
    scaled: NDArray[np.float32] | None
    scale: Scale | None
    shares: NDArray[np.float64]
    ranks: NDArray[np.int64]
    remarks: list[str]


def _learn(survey: ColumnSurvey, base: list[Table], digest: Any) -> _Learnt:
    example = Table((survey.name,), (survey.example(),), survey.stream.origin)
    agreed = match_tables(*base[:2], example, *base[2:], at_least=1)
    columns = [table.columns[0] for i, table in enumerate(agreed) if i != min(2, len(base))]
    model = agreed[min(2, len(base))].columns[0]
    levels = Levels.pool(columns)
    if levels.holds == "nothing":
        levels = replace(levels, holds=model.holds)
    survey.add_to(digest, model.kind, model.holds)
    full, ranks = _pooled(levels, survey)
    scaled, said = scaled_levels(full, "robust")
    own = None if scaled is None else scaled[ranks]
    scale = None
    if own is not None and full.known > 1:
        scale = Scale.of(full.numbers, full.counts[: full.known])
    shares = full.counts / full.counts.sum()
    return _Learnt(survey, columns, levels, own, scale, shares[ranks], ranks, [*said, *level_remarks(full)])


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
