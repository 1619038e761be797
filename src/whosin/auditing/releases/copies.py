"""Training rows that a release repeats: all that can be said without held-out rows, and no verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from whosin.answers import Said
from whosin.auditing.releases.queries.tables import TableRelease
from whosin.errors import InputError
from whosin.parallel.threads import number_of_threads
from whosin.tables import Table, TableEncoder, as_stream, as_table, is_streamable, read_table
from whosin.tables.roles import ColumnChoice, said

NO_HOLDOUT = (
    "No verdict without held-out rows. Whether a release says more about the people in the training data than about "
    "other people can only be seen by comparing the two. There are three ways out. (1) Keep some rows back, drawn at "
    "random, train again on the others, and audit with both. (2) With the generator in hand, train it again on random "
    "halves of the rows, and audit each half against the other. (3) Count the training rows that appear in the "
    "release: that shows plain copying where there is much of it, but it is no verdict, since chance repeats common "
    "rows, and a release without a single copy can leak."
)
"""Why there is no verdict without held-out rows, and what to do."""


@dataclass(frozen=True)
class Copies(Said):
    """How many training rows appear in a release. It is no verdict: chance repeats rows, and a leak needs no copy.

    Examples
    --------
    >>> import whosin as wi
    >>> print(wi.auditing.Copies(copies=3, near_copies=5, rows=200, synthetic=1000))
    Of 200 training rows, 3 appear in the release of 1000 rows word for word, and 5 in all cells but at most one. How
    many of them chance alone repeats is not known without held-out rows.
    """

    copies: int
    """Training rows that appear in the release word for word: equal in every cell."""
    near_copies: int | None
    """Training rows that appear in all cells but at most one; None for fewer than three columns."""
    rows: int
    """Training rows."""
    synthetic: int
    """Released rows."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that are no attributes, with the reason; they were not compared."""

    @property
    def sentence(self) -> str:
        """What was counted, in words."""
        near = "" if self.near_copies is None else f", and {self.near_copies} in all cells but at most one"
        return (
            f"Of {self.rows} training rows, {self.copies} appear in the release of {self.synthetic} rows word for "
            f"word{near}. How many of them chance alone repeats is not known without held-out rows."
            + "".join(f" {note[0].upper()}{note[1:]}." for note in said(self.left_out))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the sentence for JSON."""
        return {
            "copies": self.copies,
            "near_copies": self.near_copies,
            "rows": self.rows,
            "synthetic": self.synthetic,
            "left_out": dict(self.left_out),
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        return self.sentence


def count_copies(
    train: Any,
    synthetic: Any,
    *,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    person: str | None = None,
    n_jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Copies:
    """Count the training rows that a release repeats, word for word and in all cells but at most one.

    Parameters
    ----------
    train, synthetic : array, data frame, Table or path
        Rows that the generator was trained on, and the rows released.
    columns : sequence of str, optional
        The columns to compare, exactly these; by default all that are attributes, which must then agree.
    ignore, keep : sequence of str, optional
        As in :func:`whosin.audit_synthetic`.
    person : str, optional
        A column of ``train`` that says whose row it is; it is not compared.
    n_jobs : int, optional
        Threads, as in joblib.
    progress : callable, optional
        Called with the share of the work done.

    Returns
    -------
    Copies

    Notes
    -----
    Every training row is compared with every released row, exactly, both held in memory: O(train·synthetic·columns).

    Examples
    --------
    >>> import whosin as wi
    >>> train = {"age": [31, 45, 60], "city": ["Bern", "Ulm", "Graz"], "job": ["nurse", "cook", "nurse"]}
    >>> released = {"age": [31, 45, 22], "city": ["Bern", "Ulm", "Ulm"], "job": ["nurse", "smith", "cook"]}
    >>> found = wi.auditing.count_copies(train, released)
    >>> found.copies, found.near_copies  # the first row, and the second but for the job
    (1, 2)
    """
    tables = _table(train, "train"), _table(synthetic, "synthetic")
    if person is not None:
        if person not in tables[0].names:
            raise InputError(f"person must be a column of train, got {person!r}; it has {', '.join(tables[0].names)}")
        tables = tables[0].without(person), tables[1].without(person)
    compared, left = ColumnChoice(columns, ignore, keep).among(tables[:1], tables[1:])
    encoder = TableEncoder.fit(*tables, learn_from=tables[1:], columns=compared)
    inside, released = (encoder.transform(table) for table in tables)
    width = inside.shape[1]
    release = TableRelease(
        inside,
        released,
        encoder.frequencies,
        [None] * width,
        [None] * width,
        n_jobs=number_of_threads(n_jobs),
        progress=progress,
    )
    near = int(np.sum(release.matches.matches >= width - 1)) if width >= 3 else None
    return Copies(int(np.sum(release.matches.copies > 0)), near, len(inside), len(released), left)


def _table(data: Any, name: str) -> Table:
    if isinstance(data, str | Path):
        return read_table(data)
    return as_stream(data, name).table() if is_streamable(data) else as_table(data, name)
