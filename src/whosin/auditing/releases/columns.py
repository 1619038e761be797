"""Which columns give people away: the advantage that is lost when one column is hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.answers import Rows
from whosin.arrays import Array, Single

WORK = 150_000_000
"""Most comparisons of two cells."""
FEWEST = 200
"""Records of each side that are looked at, however large the release is."""
MOST_COLUMNS = 100
BLOCK = 2_000_000
"""Pairs of a record and a released row in memory at a time, over all columns."""


@dataclass(frozen=True)
class RevealingColumns(Rows):
    """What the nearest released row gives away, with all columns and without each of them in turn.

    These are estimates from a sample, without limits: the largest TPR - FPR over all thresholds, which is a little too
    large for each. Differences of a few hundredths may be chance.

    Examples
    --------
    A release that keeps ages almost as they are, and blurs the rest:

    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
    >>> release = train + rng.normal(0, [0.001, 0.3, 0.3], (100, 3))
    >>> tables = [dict(zip(("age", "height", "weight"), rows.T)) for rows in (train, holdout, release)]
    >>> columns = wi.audit_synthetic(*tables, query="nearest").revealing_columns
    >>> columns.to_dict()["columns"][0]["name"]
    'age'
    """

    names: tuple[str, ...]
    lost: tuple[float, ...]
    """By column: the advantage with all columns less that without it."""
    advantage: float
    """With all columns."""
    members: int
    non_members: int
    released: int
    """Rows that were looked at."""

    def to_dict(self) -> dict[str, Any]:
        """Return the columns for JSON, that with the largest loss first."""
        order = sorted(range(len(self.names)), key=lambda place: (-self.lost[place], place))
        return {
            "advantage": self.advantage,
            "columns": [{"name": self.names[place], "lost": self.lost[place]} for place in order],
            "members": self.members,
            "non_members": self.non_members,
            "released": self.released,
        }

    def _columns(self) -> dict[str, list[Any]]:
        ranked = self.to_dict()["columns"]
        return {name: [row[name] for row in ranked] for name in ("name", "lost")}

    def __str__(self) -> str:
        first = self.to_dict()["columns"][0]
        return f"hiding {first['name']} costs the attacker most: {first['lost']:.2g} of {self.advantage:.2g}"


@dataclass(frozen=True, eq=False)
class ComparedColumns:
    """The columns that were compared: numbers as numbers (NaN where missing), categories as codes."""

    names: tuple[str, ...]
    records: Sequence[Array] = field(repr=False)
    """One array a column; training records first."""
    released: Sequence[Array] = field(repr=False)
    numeric: Sequence[bool]
    split: int
    """Number of training records."""
    keys: int = 0
    """How many of the columns, the last ones, hold keys and texts."""

    def with_keys(self, keys: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]) -> ComparedColumns:
        """Return these columns and those of keys and texts, by name the codes of records and of released rows."""
        records, released = ([side[place] for side in keys.values()] for place in (0, 1))
        return ComparedColumns(
            (*self.names, *keys),
            [*self.records, *records],
            [*self.released, *released],
            [*self.numeric, *(False for _ in keys)],
            self.split,
            len(keys),
        )

    def revealing(self, rng: np.random.Generator) -> RevealingColumns | None:
        """Compare records with released rows, with all columns and without each; None for one column, or very many.

        Two cells differ by 0 or 1 if they are categories, otherwise by their distance in standard deviations of the
        release, at most 1; a key that differs counts as much as all columns together, since one equal key names a
        person. A record's score is the smallest sum over all released rows. The columns are matched once: a sample of
        records times released rows times columns, at most 150 million cells.
        """
        width = len(self.names)
        if not 2 <= width <= MOST_COLUMNS:
            return None
        sides = self.split, len(self.records[0]) - self.split
        rows = np.arange(len(self.released[0]))
        most_rows = max(1, WORK // (2 * FEWEST * width))
        if len(rows) > most_rows:
            rows = np.sort(rng.choice(rows, most_rows, replace=False))
        each = max(FEWEST, WORK // (2 * width * len(rows)))
        chosen = [
            np.sort(rng.permutation(size)[:each]) + start for size, start in zip(sides, (0, sides[0]), strict=True)
        ]
        best = self._smallest(np.concatenate(chosen), rows)
        found = [_advantage(column[: len(chosen[0])], column[len(chosen[0]) :]) for column in best.T]
        lost = tuple(found[-1] - without for without in found[:-1])
        return RevealingColumns(self.names, lost, found[-1], len(chosen[0]), len(chosen[1]), len(rows))

    def _smallest(self, targets: NDArray[np.int64], rows: NDArray[np.int64]) -> Array:
        """Smallest sum of differences of each target to any row: one column for each column hidden, one for none."""
        width = len(self.names)
        best = np.empty((len(targets), width + 1))
        released = [np.asarray(column)[rows].astype(np.float32) for column in self.released]
        scales = [_scale(column) if number else 0.0 for column, number in zip(released, self.numeric, strict=True)]
        step = max(1, BLOCK // (len(rows) * width))
        for start in range(0, len(targets), step):
            block = targets[start : start + step]
            apart = [
                _apart(np.asarray(column)[block].astype(np.float32), other, scale)
                for column, other, scale in zip(self.records, released, scales, strict=True)
            ]
            for part in apart[width - self.keys :]:
                part *= np.float32(width)
            total = apart[0].copy()
            for part in apart[1:]:
                total += part
            without = np.empty_like(total)
            for place, part in enumerate(apart):
                np.subtract(total, part, out=without)
                best[start : start + step, place] = without.min(axis=1)
            best[start : start + step, width] = total.min(axis=1)
        return best.round(5)


def _scale(column: Single) -> float:
    known = column[np.isfinite(column)].astype(np.float64)
    spread = float(known.std()) if len(known) else 0.0
    return spread if spread > 0.0 else 1.0


def _apart(records: Single, released: Single, scale: float) -> Single:
    """How much each record differs from each released row in one column, from 0 to 1; ``scale`` 0 for categories."""
    one, other = records[:, None], released[None, :]
    if scale == 0.0:
        differ: Single = (one != other).astype(np.float32)
        return differ
    with np.errstate(invalid="ignore"):
        apart: Single = one - other
        np.abs(apart, out=apart)
        apart /= np.float32(scale)
        np.minimum(apart, np.float32(1.0), out=apart)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        apart[np.isnan(apart)] = 1.0
        apart[np.isnan(one) & np.isnan(other)] = 0.0
    return apart


def _advantage(inside: Array, outside: Array) -> float:
    """Largest TPR - FPR of "a smaller distance is a member", over all thresholds."""
    cuts = np.unique(np.concatenate([inside, outside]))
    tpr = np.searchsorted(np.sort(inside), cuts, side="right") / len(inside)
    fpr = np.searchsorted(np.sort(outside), cuts, side="right") / len(outside)
    return float(max(0.0, (tpr - fpr).max()))
