"""Keys and texts that the release repeats, of columns that are left out of the comparison of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.tables import Table, TableStream

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RepeatedKeys", "repeated_keys"]


@dataclass(frozen=True, eq=False)
class RepeatedKeys:
    """What the release repeats of the records' keys and texts."""

    rarity: NDArray[np.float64]
    """For each record the sum of -ln(share of the released rows with its value) over the columns that repeat it."""
    repeated: tuple[str, ...]
    """The columns in which the release repeats a value of any record."""


def repeated_keys(records: Sequence[Table], release: Table | TableStream, names: Sequence[str]) -> RepeatedKeys | None:
    """Look up each record's keys and texts in the release; None without a column to look at.

    Given the release, the answer about a record is a function of that record alone. Missing cells repeat nothing, nor
    do numbers in a column of text. Memory: the different values of the records. Time: one reading of the release a
    column.
    """
    if not names:
        return None
    total = np.zeros(sum(map(len, records)))
    repeated = []
    for name in names:
        cells = np.concatenate([table.column(name) for table in records])
        text = cells.dtype == object
        ours = {cell for cell in cells.tolist() if cell is not None and cell == cell}
        counts: Counter[Any] = Counter()
        for piece in _pieces(release, name, text):
            counts.update(dict(piece.filter(piece.is_in(list(ours))).value_counts().iter_rows()))
        if counts:
            repeated.append(name)
            rarity = {value: -np.log(count / len(release)) for value, count in counts.items()}
            total += [rarity.get(cell, 0.0) for cell in cells.tolist()]
    return RepeatedKeys(total, tuple(repeated))


def _pieces(release: Table | TableStream, name: str, text: bool) -> Iterator[pl.Series]:
    """Yield the cells of a column of the release; nothing if they are of another kind."""
    import polars as pl

    wanted = pl.String if text else pl.Float64
    if isinstance(release, Table):
        cells = release.column(name)
        if (cells.dtype == object) == text:
            yield pl.Series(cells, dtype=wanted)
    elif release.dtypes[name].is_numeric() != text:
        for _, frame in release.blocks([name]):
            yield frame.get_column(name).cast(wanted)
