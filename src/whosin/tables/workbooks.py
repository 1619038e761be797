"""Sheets of workbooks: the row of names is found, and cells of text are read as those of a text file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, missing_extra
from whosin.tables.cells import read_texts
from whosin.tables.dialect import MOST_TITLES, Dialect, column_names, has_names, is_number

if TYPE_CHECKING:
    import polars as pl

_HEAD_ROWS = 200


def series_from_sheet(
    path: Path, sheet: str | None, dialect: Dialect, raw: Sequence[str] = ()
) -> tuple[dict[str, pl.Series], list[str], NDArray[np.int64]]:
    """Return the columns of a sheet, remarks on how they were read, and the row of the sheet in which each row stands.

    Rows without a cell do not count, nor do columns with neither a name nor a cell. O(cells).
    """
    import polars as pl

    try:
        import fastexcel
    except ImportError as error:
        raise missing_extra(f"{path.name} is a workbook, which needs fastexcel (or save it as CSV)", "excel") from error
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())  # it would print that a column is empty
    try:
        book = fastexcel.read_excel(path.read_bytes())
        sheets = book.sheet_names
        if sheet is not None and sheet not in sheets:
            raise InputError(f"{path.name} has no sheet {sheet!r}; it has {', '.join(sheets)}")
        chosen = sheets[0] if sheet is None else sheet
        head = book.load_sheet(chosen, header_row=None, skip_rows=0, dtypes="string", n_rows=_HEAD_ROWS)
        top = _Top.of(head.to_polars(), dialect)
        if top is None:
            raise InputError(f"{path.name} sheet {chosen!r} is empty; sheet= names another of {', '.join(sheets)}")
        if head.total_height <= top.above:
            raise InputError(f"{path.name} sheet {chosen!r} has names but no rows")
        read = book.load_sheet(chosen, header_row=None, skip_rows=top.above, schema_sample_rows=None).to_polars()
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path.name} must be a workbook, got something else or part of it: {reason}") from None
    frame = read.with_columns(pl.col(pl.String).replace("", None))
    filled = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    numbers = np.arange(top.above, head.total_height)[filled.to_numpy()] + 1
    frame = frame.filter(filled)
    rows = _rows_of_table(frame, numbers)
    below = [f"rows below sheet row {numbers[rows - 1]} were left out: they are no part of the table"]
    below, frame, numbers = below if rows < len(numbers) else [], frame.head(rows), numbers[:rows]
    kept = [i for i, cells in enumerate(frame) if top.cells[i] or cells.null_count() < len(cells)]
    given = {top.names[i]: frame.to_series(i) for i in kept}
    series, said = read_texts(
        given, dialect, raw, lambda name, row: f"{path.name} sheet row {numbers[row]} column {name!r}"
    )
    first = [f"sheet {chosen!r} was read, the first of {len(sheets)}"] if sheet is None and len(sheets) > 1 else []
    return series, [*first, *top.remarks, *below, *said], numbers


def _rows_of_table(frame: pl.DataFrame, numbers: NDArray[np.int64]) -> int:
    """Return how many rows are left without notes: rows of text in the first cell alone, below the last blank row."""
    import polars as pl

    blank = np.flatnonzero(np.diff(numbers) > 1)
    rows = int(blank[-1]) + 1 if len(blank) else len(numbers)
    notes, alone = frame[rows:], pl.all_horizontal(pl.all().exclude(frame.columns[0]).is_null())
    texts = [cell is not None and not is_number(str(cell)) for cell in notes.to_series()]
    return rows if frame.width > 1 and notes.select(alone).to_series().all() and all(texts) else len(numbers)


@dataclass(frozen=True)
class _Top:
    """What stands above the rows of a sheet."""

    above: int
    """Rows of the sheet above those of the table."""
    cells: Sequence[str]
    """The cells with names, nothing where there are none."""
    names: Sequence[str]
    remarks: Sequence[str]

    @classmethod
    def of(cls, head: pl.DataFrame, dialect: Dialect) -> _Top | None:
        """Find the row of names among the first rows; None if all are empty."""
        rows = [[(cell or "").strip() for cell in row] for row in head.iter_rows()]
        numbers = [i for i, row in enumerate(rows) if any(row) and i >= dialect.skip_lines]
        if not numbers:
            return None
        rows = [rows[i] for i in numbers]
        above = 0 if dialect.skip_lines else _rows_above(rows)
        rows, first = rows[above:], numbers[above]
        remarks = [f"rows above sheet row {first + 1} were left out: they are no part of the table"] if above else []
        if has_names(rows) if dialect.header is None else dialect.header:
            names, repeated = column_names(rows[0])
            return cls(first + 1, rows[0], names, [*remarks, *repeated])
        if dialect.header is None:
            remarks.append("its first row was taken as a row, not as names")
        nameless = [""] * head.width
        return cls(first, nameless, column_names(nameless)[0], remarks)


def _rows_above(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows at the top are titles, or names of groups of columns.

    A title is one cell above rows most of which have several. Names of groups, in merged cells as a rule, have empty
    cells behind them, and the row below has a name for every column: no number, and none that occurs again.
    """
    for count in range(min(MOST_TITLES, len(rows) - 1)):
        row, below = rows[count], rows[count + 1 :]
        wide = sum(sum(map(bool, other)) > 1 for other in below)
        pair = len(row) == 2 and any(map(is_number, below[0]))  # it names one of two columns
        title = bool(row[0]) and not any(row[1:]) and not pair and 2 * wide > len(below)
        gaps = any(before and not cell for before, cell in pairwise(row))
        if not title and not (gaps and len(below) > 1 and _are_names(*below)):
            return count
    return 0


def _are_names(first: Sequence[str], *rest: Sequence[str]) -> bool:
    if not all(first) or len(set(first)) < len(first) or any(map(is_number, first)):
        return False
    again = any(name == cell for row in rest for name, cell in zip(first, row, strict=True))
    return not again and any(map(is_number, rest[0]))
