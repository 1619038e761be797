"""Keys and texts that the release repeats, of columns that are left out of the comparison of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.tables import Table, TableStream, as_table

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class RepeatedKeys:
    """What the release repeats of the records' keys and texts."""

    rarity: Array
    """For each record the sum of -ln(share of the released rows with its value) over the columns that repeat it."""
    repeated: tuple[str, ...]
    """The columns in which the release repeats a value of any record."""


def repeated_keys(records: Sequence[Table], release: Table | TableStream, names: Sequence[str]) -> RepeatedKeys | None:
    """Look up each record's keys and texts in the release; None without a column to look at.

    Given the release, the answer about a record is a function of that record alone. Cells are equal if they are written
    alike: ADA is Ada, STRASSE is Straße, and the number 12 is the text 012. Missing cells repeat nothing. Memory: the
    different values of the records. Time: one reading of the release a column.
    """
    import polars as pl

    if not names:
        return None
    total = np.zeros(sum(map(len, records)))
    repeated = []
    for name in names:
        ours = pl.concat([_written(_cells(table, name)) for table in records])
        wanted = ours.drop_nulls().unique()
        counts: Counter[str] = Counter()
        for piece in _pieces(release, name):
            counts.update(dict(piece.filter(piece.is_in(wanted.implode())).value_counts().iter_rows()))
        if counts:
            repeated.append(name)
            rarity = {value: -np.log(count / len(release)) for value, count in counts.items()}
            total += [rarity.get(cell, 0.0) for cell in ours]
    return RepeatedKeys(total, tuple(repeated))


def key_codes(tables: Sequence[Table], name: str) -> list[NDArray[np.int64]]:
    """Number the cells of a column of each table, alike where they are written alike; missing cells equal none."""
    import polars as pl

    written = [_written(_cells(table, name)) for table in tables]
    gone = [-1.0 - place for place, part in enumerate(written) for _ in range(len(part))]
    joined = pl.concat(written)
    codes = np.where(joined.is_null(), gone, joined.rank("dense").fill_null(0)).astype(np.int64)
    return np.split(codes, np.cumsum([len(part) for part in written])[:-1])


def _cells(table: Table, name: str) -> pl.Series:
    import polars as pl

    cells = table.column(name)
    return pl.Series(cells.tolist(), dtype=pl.String) if cells.dtype == object else pl.Series(cells, dtype=pl.Float64)


def _written(cells: pl.Series) -> pl.Series:
    """Return cells as text in small letters, one way to write accents and blanks; whole numbers as they are counted."""
    import polars as pl

    if cells.dtype.is_integer():
        return cells.cast(pl.String)
    if cells.dtype.is_numeric():
        numbers = cells.cast(pl.Float64).fill_nan(None)
        whole = numbers.cast(pl.Int64, strict=False)
        return whole.cast(pl.String).zip_with((whole == numbers).fill_null(value=False), numbers.cast(pl.String))
    text = cells.cast(pl.String).str.normalize("NFKC").str.strip_chars().str.to_lowercase().str.replace_all(r"\s+", " ")
    text = text.str.replace_all("ß", "ss", literal=True).str.replace_all("ς", "σ", literal=True)
    return text.str.replace(r"^(-?)0+(\d)", "${1}${2}").str.replace(r"^(-?\d+)\.0+$", "${1}")


def _pieces(release: Table | TableStream, name: str) -> Iterator[pl.Series]:
    """Yield the cells of a column of the release as they are written."""
    if isinstance(release, Table):
        yield _written(_cells(release, name))
    else:
        for _, frame in release.blocks([name]):
            cells = frame.get_column(name)
            if cells.dtype.is_temporal():
                cells = _cells(as_table({name: cells}), name)
            yield _written(cells)
