"""Training rows that a release repeats: all that can be said without held-out rows, and no verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whosin.auditing.releases.queries.tables import TableRelease
from whosin.errors import InputError
from whosin.parallel.threads import number_of_threads
from whosin.tables import Table, TableEncoder, as_stream, as_table, is_streamable, match_tables, read_table

__all__ = ["NO_HOLDOUT", "Copies", "count_copies"]

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
class Copies:
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

    @property
    def sentence(self) -> str:
        """What was counted, in words."""
        near = "" if self.near_copies is None else f", and {self.near_copies} in all cells but at most one"
        return (
            f"Of {self.rows} training rows, {self.copies} appear in the release of {self.synthetic} rows word for "
            f"word{near}. How many of them chance alone repeats is not known without held-out rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the sentence for JSON."""
        return {
            "copies": self.copies,
            "near_copies": self.near_copies,
            "rows": self.rows,
            "synthetic": self.synthetic,
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        return self.sentence


def count_copies(
    train: Any,
    synthetic: Any,
    *,
    columns: Sequence[str] | None = None,
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
        The columns to compare; by default all, which must then agree.
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
    matched = match_tables(*tables, columns=_compared(tables[0], columns, person), at_least=1)
    encoder = TableEncoder.fit(*matched, learn_from=matched[1:])
    inside, released = (encoder.transform(table).cells for table in matched)
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
    return Copies(int(np.sum(release.matches.copies > 0)), near, len(inside), len(released))


def _table(data: Any, name: str) -> Table:
    if isinstance(data, str | Path):
        return read_table(data)
    return as_stream(data, name).table() if is_streamable(data) else as_table(data, name)


def _compared(train: Table, columns: Sequence[str] | None, person: str | None) -> list[str] | None:
    """The columns to compare; None for all."""
    if person is None:
        return None if columns is None else list(columns)
    if person not in train.names:
        raise InputError(f"person must be a column of train, got {person!r}; it has {', '.join(train.names)}")
    return [name for name in (train.names if columns is None else columns) if name != person]
