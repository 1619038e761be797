"""Queries on a released table of mixed types, from one pass over all pairs of rows.

A cell that equals the target's says more the rarer its value is: two people share "Female" by chance, hardly ever a
capital gain of 34,095. The rarity of a row is the sum of -ln(frequency) over its cells, and a released row explains the
share of it that lies in equal cells. Softly, a number also counts if it is nearly equal: the fewer values lie between,
the more (generators that interpolate or round repeat no number). Frequencies, ranks and scales come from the release
and the reference, so that an answer about a record depends on no other record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.auditing.measuring.asking import Query
from whosin.auditing.releases.matching.match import RowMatches, match_rows
from whosin.auditing.releases.queries.contrast import Contrast
from whosin.errors import InputError
from whosin.parallel.tasks import by_rows
from whosin.tables.scaling import ValueCounts

Cells = NDArray[np.int32]

DEFAULT = (
    *("soft_rarity_share", "nearest", "repeated_values", "soft_rarity"),
    *("rarity_share", "rarity", "nearest_ratio", "copies", "rarity_run"),
)
"""What "auto" asks of a table, in the order of their shares of the error; a learned score combines the answers."""
REFERRING = ("density_ratio", "marginal_ratio", "joint_ratio", "classifier")
"""What "auto" asks as well where there is a reference."""
KEYED = ("repeated_keys",)
"""What "auto" asks as well, last, where the release has columns that were left out as keys or texts."""
FEW_VALUES = 10.0
"""Added to the number of values that so many rows have: a few more or less than of the next number say little."""
_NO_REFERENCE = "reference is needed: rows of the same population that were not trained on"


def rarity_weights(frequencies: Sequence[Array]) -> list[Array]:
    """Return -ln(frequency) of each code of each column."""
    return [-np.log(share) for share in frequencies]


@dataclass(frozen=True, eq=False)
class TableRelease:
    """Targets (train rows, then holdout rows) and released rows, their cells coded alike."""

    target_cells: Cells
    """One code a cell, equal codes for equal values."""
    synthetic_cells: Cells | None
    """The released rows; None where ``given`` says what they say, for a release that is not in memory."""
    frequencies: Sequence[Array]
    """For each column the relative frequency of each code, above 0, in rows that are no targets."""
    numbers: Sequence[Array | None]
    """For each column the scaled number of each code, None for categories."""
    ranks: Sequence[Array | None]
    reference_cells: Cells | None = None
    reference_tables: Callable[[], Contrast] | None = None
    """Gives the same records, released and reference rows as tables, for the queries that need them."""
    repeated_keys: Array | None = None
    """How rare those of each target's keys and texts are that the release repeats (:mod:`.keys`)."""
    prefixes: Sequence[int] | None = None
    """Sizes of the released table at which the answers are wanted as well."""
    given: RowMatches | None = None
    given_counts: Sequence[ValueCounts] | None = None
    """With ``given``: how many of its rows have each value of each column."""
    n_jobs: int | None = None
    progress: Callable[[float], None] | None = None

    @cached_property
    def weights(self) -> list[Array]:
        """-ln(frequency) of each code of each column."""
        return rarity_weights(self.frequencies)

    @property
    def targets(self) -> int:
        """Number of targets."""
        return len(self.target_cells)

    @cached_property
    def matches(self) -> RowMatches:
        """How well the released rows match each target. O(targets · rows · columns)."""
        if self.given is not None:
            return self.given
        assert self.synthetic_cells is not None
        return self._match(self.synthetic_cells, self.prefixes)

    @cached_property
    def reference_matches(self) -> RowMatches:
        """How well rows that were never trained on match each target. O(targets · reference rows · columns)."""
        if self.reference_cells is None:
            raise InputError(_NO_REFERENCE)
        return self._match(self.reference_cells, None)

    @cached_property
    def contrast(self) -> Contrast:
        """What sets released rows apart from reference rows."""
        if self.reference_tables is None:
            raise InputError(_NO_REFERENCE)
        return self.reference_tables()

    @property
    def keys(self) -> Array:
        """How rare those of a target's keys and texts are that the release repeats."""
        if self.repeated_keys is None:
            raise InputError("there must be a column that was left out as a key or text, and the release must have it")
        return self.repeated_keys

    @cached_property
    def rarity(self) -> Array:
        """-ln(frequency) summed over the cells of each target."""
        total = np.zeros(self.targets)
        for table, codes in zip(self.weights, self.target_cells.T, strict=True):
            total += table[codes]
        return total

    @cached_property
    def value_counts(self) -> Sequence[ValueCounts]:
        """How many released rows have each value of each column. O(rows·columns)."""
        if self.given_counts is not None:
            return self.given_counts
        assert self.synthetic_cells is not None
        columns = zip(self.synthetic_cells.T, self.frequencies, strict=True)
        counted = (np.bincount(codes, minlength=len(shares)) for codes, shares in columns)
        return [ValueCounts.of(counts, counts) for counts in counted]

    @property
    def closest(self) -> NDArray[np.int64]:
        """The released row that explains most of a target's rarity, or, if none explains half of it, the nearest."""
        explained = self.matches.weight > 0.5 * self.rarity
        return np.where(explained, self.matches.weight_index, self.matches.distance_index)

    def by_size(self) -> dict[str, Array]:
        """Answers about each target (rows) after each of ``prefixes`` (columns), by query.

        Weights and scales are those of the whole release. The share of the record's rarity is left out: it would tell
        after a few rows which values the others have.
        """
        found = self.matches.by_prefix
        assert found is not None
        return {"soft_rarity": found.soft, "rarity": found.weight, "nearest": -found.distance}

    def _match(self, cells: Cells, prefixes: Sequence[int] | None) -> RowMatches:
        found: RowMatches = by_rows(
            match_rows,
            self.target_cells,
            cells,
            self.weights,
            numbers=self.numbers,
            ranks=self.ranks,
            prefixes=prefixes,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        return found


def _repeated_values(release: TableRelease) -> Array:
    """How much likelier the counts of the record's values in the release are if it repeats values of training rows.

    Let M_c be the number of values of a column that c of n released rows have. Of the values of training rows, if the
    release repeats these, a share of c·M_c/n has the count c; of those of another draw about (c + 1)·M_{c+1}/n (Good
    1953, after Turing). Added up over columns is the log of the mean of 1 (nothing is repeated) and of the ratio of the
    two, M_c + 10 for each M_c: a value that no released row has gives ln ½, one that few of many rare ones share speaks
    for membership, and one that many rows have says nothing. O(rows) a column.
    """
    total = np.zeros(release.targets)
    for codes, known in zip(release.target_cells.T, release.value_counts, strict=True):
        rows = known.of_codes
        repeated, drawn = (at * (known.shared_by(at) + FEW_VALUES) for at in (rows, rows + 1))
        total += np.log(0.5 + 0.5 * repeated / drawn)[codes]
    return total


def _nearest_ratio(release: TableRelease) -> Array:
    """How much nearer the nearest row is than the second nearest: 1 if only one row is that near, 0 if two are."""
    first, second = release.matches.distance, release.matches.second_distance
    if np.isinf(second).any():
        raise InputError("the released table must have two rows for this query, got one")
    with np.errstate(invalid="ignore"):
        return np.where(second > 0.0, 1.0 - first / second, 0.0)


def _density_ratio(release: TableRelease) -> Array:
    """ln of the distance to the nearest reference row over that to the nearest released row."""
    floor = 1e-6
    released, reference = release.matches.distance, release.reference_matches.distance
    return np.asarray(np.log(reference + floor) - np.log(released + floor))


def _float(values: Any) -> Array:
    return np.asarray(values, dtype=np.float64)


QUERIES: dict[str, Query] = {
    "nearest": Query("minus the distance to the nearest released row (MACE, eq. 2)", lambda r: -r.matches.distance),
    "nearest_ratio": Query("how much nearer the nearest row is than the second nearest", _nearest_ratio),
    "equal_cells": Query("most cells that one released row has in common", lambda r: _float(r.matches.matches)),
    "soft_rarity": Query(
        "rarity of the cells that one released row has in common or nearly so", lambda r: r.matches.soft
    ),
    "soft_rarity_share": Query(
        "share of the record's rarity that one released row explains, nearly equal numbers included",
        lambda r: r.matches.soft / r.rarity,
    ),
    "rarity": Query("rarity of the cells that one released row has in common, at most", lambda r: r.matches.weight),
    "rarity_share": Query(
        "share of the record's rarity that one released row explains, at most", lambda r: r.matches.weight / r.rarity
    ),
    "rarity_run": Query(
        "rarity of neighbouring columns that one released row has all in common, at most", lambda r: r.matches.run
    ),
    "copies": Query("released rows equal in every cell", lambda r: _float(r.matches.copies)),
    "repeated_values": Query(
        "how many of the record's values, column by column, the release has, those that few rows have above all",
        _repeated_values,
    ),
    "density_ratio": Query(
        "nearness to released rows against nearness to a reference (DOMIAS by nearest neighbours)", _density_ratio
    ),
    "soft_rarity_gain": Query(
        "how much more of the record's rarity a released row explains than a reference row, nearly equal numbers "
        "included",
        lambda r: r.matches.soft - r.reference_matches.soft,
    ),
    "rarity_gain": Query(
        "how much more of the record's rarity a released row explains than a reference row",
        lambda r: r.matches.weight - r.reference_matches.weight,
    ),
    "marginal_ratio": Query(
        "how much fuller the record's cells of one and two columns are in the release than in a reference",
        lambda r: r.contrast.marginal_ratio((1, 2)),
    ),
    "joint_ratio": Query("the same of three and four columns together", lambda r: r.contrast.marginal_ratio((3, 4))),
    "classifier": Query(
        "log odds of a classifier that tells released rows from reference rows", lambda r: r.contrast.classifier
    ),
    "repeated_keys": Query(
        "rarity of the record's keys and texts that the release repeats, of columns that are not compared",
        lambda r: r.keys,
    ),
}
