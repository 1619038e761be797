"""A table: named columns of one length."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.errors import InputError, InputTypeError, listed
from whosin.tables.columns import Column, Kind


class Places(NamedTuple):
    """Where the rows of a table stand."""

    word: str
    """What is counted: "line", "sheet row" or "row"."""
    numbers: NDArray[np.int64]


def place_of(places: Places | None, row: int) -> str:
    """Say where a row stands; without places by its number, counted from 0."""
    return f"row {row}" if places is None else f"{places.word} {places.numbers[row]}"


@dataclass(frozen=True, eq=False)
class Table:
    """Records in rows, one row per record, at least one row and one column.

    Made by :func:`as_table` and :func:`read_table`; nothing in it can be changed.

    Examples
    --------
    >>> import whosin as wi
    >>> table = wi.tables.as_table({"age": [31, 45, None], "city": ["Bern", "Ulm", "Ulm"]})
    >>> print(table)
    data: 3 rows, columns: 1 of numbers, 1 of categories
    >>> table.kind("city"), table.column("age").tolist()
    ('category', [31.0, 45.0, nan])
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...] = field(repr=False)
    origin: str = "data"
    """What errors call the table: a file name, or the name of an argument."""
    notes: tuple[str, ...] = field(default=(), repr=False)
    """What was recognised when the file was read."""
    places: Places | None = field(default=None, repr=False)
    """Where the rows stand in their file, or in the table that they were taken from."""

    def __post_init__(self) -> None:
        check_names(self.names, self.origin)
        if len(self.names) != len(self.columns):
            raise InputError(
                f"{self.origin} must have a column per name, got {len(self.columns)} for {len(self.names)} names"
            )
        lengths = {name: len(column) for name, column in zip(self.names, self.columns, strict=True)}
        if len(set(lengths.values())) > 1:
            raise InputError(f"{self.origin} must have columns of one length, got {lengths}")
        if self.rows == 0:
            raise InputError(f"{self.origin} must have at least one row, got none")

    @property
    def rows(self) -> int:
        """Number of records."""
        return len(self.columns[0])

    def __len__(self) -> int:
        return self.rows

    def __str__(self) -> str:
        kinds = [column.kind for column in self.columns]
        counts = ", ".join(f"{kinds.count(kind)} of {kind}s" for kind in ("number", "date") if kind in kinds)
        rest = f"{kinds.count('category')} of categories" if "category" in kinds else ""
        return f"{self.origin}: {self.rows} rows, columns: {', '.join(part for part in (counts, rest) if part)}"

    def __iter__(self) -> Iterator[tuple[str, Column]]:
        return iter(zip(self.names, self.columns, strict=True))

    def kind(self, name: str) -> Kind:
        """Return "number", "date" or "category"."""
        return self.stored(name).kind

    def place(self, row: int) -> str:
        """Say where a row stands: its line in a text file, its row in a sheet, or its number, counted from 0."""
        return place_of(self.places, row)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column: numbers and dates (seconds from 1970) as floats with NaN, categories as text with None."""
        column = self.stored(name)
        if column.kind != "category":
            return column.values
        cells: NDArray[Any] = np.array([*column.labels, None], dtype=object)[column.values]
        return cells

    def select(self, names: Sequence[str]) -> Table:
        """Return the named columns, in this order."""
        if isinstance(names, str):
            raise InputTypeError(f"names must be a list of column names, got the text {names!r}")
        places = [self._place(name) for name in names]
        columns = tuple(self.columns[place] for place in places)
        return Table(tuple(names), columns, self.origin, self.notes, self.places)

    def without(self, name: str) -> Table:
        """Return the other columns."""
        return self.select([other for other in self.names if other != name])

    def take(self, indices: ArrayLike) -> Table:
        """Return the rows with these numbers (or where a truth value says so), in this order."""
        chosen = np.asarray(indices)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iub"):
            raise InputTypeError(f"indices must be a list of row numbers or one truth value per row, got {indices!r}")
        if chosen.dtype.kind == "b":
            if len(chosen) != self.rows:
                raise InputError(f"indices must have one truth value per row, {self.rows}, got {len(chosen)}")
            chosen = np.flatnonzero(chosen)
        if chosen.size and not (-self.rows <= chosen.min() and chosen.max() < self.rows):
            raise InputError(f"indices must be row numbers below {self.rows}, got {chosen.min()} to {chosen.max()}")
        rows = chosen.astype(np.intp)
        word, numbers = ("row", np.arange(self.rows)) if self.places is None else self.places
        columns = tuple(column.take(rows) for column in self.columns)
        return Table(self.names, columns, self.origin, self.notes, Places(word, numbers[rows]))

    def fingerprint(self) -> str:
        """Return the SHA-256 of names, kinds and cells in their order.

        Tables with equal content have equal fingerprints, whether they came from a file or from a frame of any library:
        1 and 1.0 are equal, a date and its midnight are, and the origin does not count.
        """
        digest = new_digest(self.rows, self.names)
        for name, column in self:
            add_texts(digest, (name, column.kind, column.holds))
            if column.kind == "category":
                add_texts(digest, column.labels)
                digest.update(column.values.astype("<i4").tobytes())
            else:
                digest.update(np.where(column.missing, np.nan, column.values).astype("<f8").tobytes())
        return str(digest.hexdigest())

    def stored(self, name: str) -> Column:
        """Return a column as it is held: numbers, or codes and labels."""
        return self.columns[self._place(name)]

    def _place(self, name: str) -> int:
        if name not in self._numbered:
            raise InputError(f"{self.origin} has no column {name!r}; it has {listed(self.names)}")
        return self._numbered[name]

    @cached_property
    def _numbered(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def check_names(names: Sequence[str], origin: str) -> None:
    """Refuse names that occur twice, and no names."""
    if not names:
        raise InputError(f"{origin} must have at least one column, got none")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{origin} must have one column per name, got {name!r} {list(names).count(name)} times")
        seen.add(name)


def new_digest(rows: int, names: Sequence[str]) -> Any:
    """Start the fingerprint of a table."""
    return hashlib.sha256(f"whosin table 1, {rows} rows, {len(names)} columns".encode())


def add_texts(digest: Any, texts: Sequence[str]) -> None:
    """Feed texts so that no two lists of texts look alike: the lengths first."""
    coded = [text.encode("utf-8", "surrogatepass") for text in texts]
    digest.update(np.array([len(coded), *map(len, coded)], dtype="<i8").tobytes())
    digest.update(b"".join(coded))
