"""Who is more exposed: the same attack, counted inside groups of records.

A group's advantage is TPR - FPR of the audit's attack among its own members and non-members, and may be negative.
The attack was chosen on the fit part; the counts are held out. All limits of one table hold together (Bonferroni
over its groups).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.answers import Rows, Said, limits_by_column
from whosin.arrays import Array, Flags
from whosin.auditing.measuring.attack import Attack, Evidence
from whosin.auditing.measuring.estimate import Estimate
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.people import SEVERAL, People
from whosin.errors import InputError, InputTypeError, check_whole
from whosin.numerics.differences import gain_lower, gain_upper_of_one
from whosin.tables.objects import is_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Labels = Mapping[str, "Coded"]

MOST_VALUES = 1000

Four = tuple[int, int, int, int]
"""Members found, members, non-members accused, non-members."""


@dataclass(frozen=True)
class GroupRow(Said):
    """One group.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> rare = np.arange(600) % 3 == 0
    >>> inside, outside = rng.normal(2 * rare, 1), rng.normal(0, 1, 600)
    >>> groups = np.where(rare, "rare", "common")
    >>> row = wi.audit(inside, outside, groups=(groups, groups)).groups["rare"]
    >>> row.members, row.stands_out
    (200, True)
    """

    name: str
    members: int
    non_members: int
    risk: float
    """Mean individual risk (posterior of membership) of the group's members; NaN without members."""
    advantage: Estimate
    """TPR - FPR of the audit's attack in the group."""
    difference: Estimate
    """The group's advantage less that of everybody else."""

    @property
    def stands_out(self) -> bool:
        """Whether the group is more exposed than the rest, beyond chance."""
        return self.difference.lower > 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {
            "name": self.name,
            "members": self.members,
            "non_members": self.non_members,
            "risk": self.risk if np.isfinite(self.risk) else None,
            "advantage": self.advantage.to_dict(),
            "difference": self.difference.to_dict(),
            "stands_out": self.stands_out,
        }

    def __str__(self) -> str:
        more = "; more exposed than the rest" if self.stands_out else ""
        return f"{self.name}: advantage {self.advantage}{more}"


class Groups(Rows):
    """Groups with limits that hold together, one row each."""

    rows: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows for JSON."""
        return [row.to_dict() for row in self.rows]


@dataclass(frozen=True, eq=False, repr=False)
class GroupTable(Groups):
    """Groups with limits that hold together; iterable, by number or by name, and able to :meth:`scan` for more.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> rare = np.arange(600) % 3 == 0
    >>> inside, outside = rng.normal(2 * rare, 1), rng.normal(0, 1, 600)
    >>> groups = np.where(rare, "rare", "common")
    >>> for row in wi.audit(inside, outside, groups=(groups, groups)).groups:
    ...     print(row.name, row.stands_out)
    common False
    rare True
    """

    rows: tuple[GroupRow, ...]
    confidence_level: float
    _evidence: Evidence = field(repr=False)
    _attack: Attack = field(repr=False)
    _risk: tuple[Array, Array] = field(repr=False)

    def __getitem__(self, which: int | str) -> GroupRow:
        if isinstance(which, str):
            for row in self.rows:
                if row.name == which:
                    return row
            raise KeyError(which)
        return self.rows[which]

    def scan(
        self, columns: Mapping[str, Any], *, most_columns: int = 2, min_size: int = 50, top: int = 5
    ) -> GroupTable:
        """Look for exposed groups among the values of categorical columns, alone and two together.

        Parameters
        ----------
        columns : mapping of str to (member values, non-member values)
            Categorical columns, in the order of the records.
        most_columns : {1, 2}
            Columns combined at most.
        min_size : int
            Fewest members and fewest non-members of a group.
        top : int
            Groups kept.

        Returns
        -------
        GroupTable
            The ``top`` groups whose advantage on the *fit* part exceeds the rest's by most standard errors, with
            limits from the held-out part, corrected for ``top`` groups. What was searched for was not searched in
            the data reported. Groups that this table has already are left out; the limits of the two tables hold
            together within each, not across both. O(N) for each column and each pair.
        """
        coded = check_groups(columns, self._evidence.experiment).values()
        most_columns = check_whole("most_columns", most_columns, low=1, high=2)
        min_size, top = check_whole("min_size", min_size, low=1), check_whole("top", top, low=1)
        view = self._attack.candidate.view
        accused = [self._attack.accuses(side).astype(np.float64) for side in (view.fit_members, view.fit_non_members)]
        pairs = combinations(coded, 2) if most_columns == 2 else ()
        known = {row.name for row in self.rows}
        found: list[tuple[float, Coded, int]] = []
        for column in chain(coded, (one.joined(other) for one, other in pairs)):
            excess = _excess(self._evidence, accused, column, min_size)
            best = np.argsort(-excess, kind="stable")[: top + len(known)]
            found += [(float(excess[i]), column, int(i)) for i in best if np.isfinite(excess[i])]
        found.sort(key=lambda entry: -entry[0])
        new = [(column, i) for _, column, i in found if column.name(i) not in known][:top]
        groups = {column.name(i): (column.inside == i, column.outside == i) for column, i in new}
        return _table(groups, self._evidence, self._attack, self._risk, 1.0 - self.confidence_level)

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "group": [row.name for row in self.rows],
            "members": [row.members for row in self.rows],
            "non_members": [row.non_members for row in self.rows],
            **limits_by_column(row.advantage for row in self.rows),
            "stands_out": [row.stands_out for row in self.rows],
        }

    def __str__(self) -> str:
        return "\n".join(f"{row.name}: {row.advantage}" for row in self.rows) or "no groups"

    __repr__ = __str__

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the groups' advantages with their limits; return the axes."""
        from whosin.plots import draw_forest

        sides = [
            np.array([getattr(row.advantage, side) for row in self.rows]) for side in ("estimate", "lower", "upper")
        ]
        return draw_forest(ax, [row.name for row in self.rows], *sides, label="advantage (TPR - FPR) in the group")


def check_groups(groups: Any, experiment: Experiment) -> Labels:
    """Return labels by column name from a pair of arrays or a mapping of names to pairs, one label per person."""
    if groups is None:
        return {}
    named = groups if isinstance(groups, Mapping) else {"": groups}
    people = experiment.people
    sizes = len(experiment.members), len(experiment.non_members)
    if people is not None:
        sizes = len(people[0].number), len(people[1].number)
    labels = {}
    for name, given in named.items():
        coded = given if isinstance(given, Coded) else Coded.of(str(name), *_pair(given))
        if (len(coded.inside), len(coded.outside)) != sizes:
            raise InputError(
                f"groups must have one label per record, {sizes[0]} and {sizes[1]}, got {len(coded.inside)} and "
                f"{len(coded.outside)}"
            )
        if coded.size > MOST_VALUES:
            raise InputError(f"groups must have at most {MOST_VALUES} different labels, got {coded.size}")
        labels[str(name)] = coded if people is None else coded.of_people(people)
    return labels


def _pair(given: Any) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    try:
        inside, outside = given
    except (TypeError, ValueError):
        raise InputTypeError(
            f"groups must be a pair (of members, of non-members) or a mapping of names to pairs, got {given!r}"
        ) from None
    return _texts(inside), _texts(outside)


def _texts(side: Any) -> NDArray[np.str_]:
    values = np.asarray(side).ravel()
    if values.dtype.kind == "U":
        return values
    return np.array(["missing" if is_missing(value) else str(value) for value in values], dtype=str)


def group_table(
    labels: Labels, evidence: Evidence, attack: Attack, risk: tuple[Array, Array], delta: float
) -> GroupTable:
    """Return a row for every label of every column; O(N) a row."""
    groups = {}
    for name, coded in labels.items():
        for code, value in enumerate(coded.columns[0][1]):
            here = coded.inside == code, coded.outside == code
            if here[0].any() or here[1].any():
                groups[f"{name}={value}" if name else str(value)] = here
    return _table(groups, evidence, attack, risk, delta)


def _table(
    groups: Mapping[str, tuple[Flags, Flags]],
    evidence: Evidence,
    attack: Attack,
    risk: tuple[Array, Array],
    delta: float,
) -> GroupTable:
    held = evidence.held_out(attack.candidate.view)
    accused = attack.accuses(held.members), attack.accuses(held.non_members)
    rows = []
    for name, (inside, outside) in groups.items():
        here = inside[~evidence.fit_members], outside[~evidence.fit_non_members]
        counts, rest = _counts(accused, here), _counts(accused, (~here[0], ~here[1]))
        advantage, difference = _limits(counts, rest, delta / len(groups), 1.0 - delta)
        mean = float(np.mean(risk[0][inside])) if inside.any() else float("nan")
        rows.append(GroupRow(name, int(inside.sum()), int(outside.sum()), mean, advantage, difference))
    return GroupTable(tuple(rows), 1.0 - delta, evidence, attack, risk)


def _counts(accused: tuple[Flags, Flags], group: tuple[Flags, Flags]) -> Four:
    found, wrong = (int(np.sum(flag & who)) for flag, who in zip(accused, group, strict=True))
    return found, int(group[0].sum()), wrong, int(group[1].sum())


def _limits(counts: Four, rest: Four, delta: float, level: float) -> tuple[Estimate, Estimate]:
    """Advantage of a group and its difference from the rest; half of δ for each of the two statements."""
    low, high = _exact(counts, delta / 4)
    value, other = _advantage(counts), _advantage(rest)
    ends = [_exact(side, delta / 8) for side in (counts, rest)]
    gap = (ends[0][0] - ends[1][1], ends[0][1] - ends[1][0])
    return (
        Estimate(value, low, high, level),
        Estimate(value - other, max(gap[0], -2.0), min(gap[1], 2.0), level),
    )


def _exact(counts: Four, alpha: float) -> tuple[float, float]:
    """Exact limits of a difference of two rates, each missed with chance ``alpha``."""
    return gain_lower(*counts, alpha), gain_upper_of_one(*counts, alpha)


def _advantage(counts: Four) -> float:
    found, members, accused, non_members = counts
    return found / members - accused / non_members if members and non_members else float("nan")


@dataclass(frozen=True, eq=False)
class Coded:
    """A categorical column, or two joined, with a number for each value."""

    columns: tuple[tuple[str, NDArray[np.str_]], ...]
    """Name and values of each column."""
    inside: NDArray[np.int64]
    """Number of each member's value."""
    outside: NDArray[np.int64]

    @classmethod
    def of(cls, name: str, inside: NDArray[np.str_], outside: NDArray[np.str_]) -> Coded:
        """Number the labels of members and of non-members, in their order."""
        values, codes = np.unique(np.concatenate([inside, outside]), return_inverse=True)
        return cls(((name, values),), *np.split(codes.reshape(-1), [len(inside)]))

    def of_people(self, people: tuple[People, People]) -> Coded:
        """Return the label that all of a person's records have, or "several", of a single column."""
        ((name, known),) = self.columns
        values = np.unique([*known, SEVERAL])
        places, several = np.searchsorted(values, known), int(np.searchsorted(values, SEVERAL))
        sides = []
        for who, codes in zip(people, (self.inside, self.outside), strict=True):
            same = who.pooled(codes, "largest") == who.pooled(codes, "smallest")
            sides.append(np.where(same, places[who.first(codes)], several))
        return Coded(((name, values),), sides[0], sides[1])

    @property
    def size(self) -> int:
        """How many values there may be."""
        return math.prod(len(values) for _, values in self.columns)

    @property
    def texts(self) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
        """The labels of a single column."""
        ((_, values),) = self.columns
        return values[self.inside], values[self.outside]

    def joined(self, other: Coded) -> Coded:
        """Return both columns as one."""
        inside, outside = self.inside * other.size + other.inside, self.outside * other.size + other.outside
        return Coded(self.columns + other.columns, inside, outside)

    def name(self, code: int) -> str:
        """Return the group of that number in words."""
        places = np.unravel_index(code, [len(values) for _, values in self.columns])
        return ", ".join(f"{name}={values[i]}" for (name, values), i in zip(self.columns, places, strict=True))


def _excess(evidence: Evidence, accused: Sequence[Array], column: Coded, min_size: int) -> Array:
    """By how many standard errors each group's advantage on the fit part exceeds the rest's; -inf for small groups.

    ``accused`` has 1 for the members, and non-members, of the fit part that are accused, 0 for the others.
    """
    size = column.size
    rates, spread = [], np.zeros(size)
    large = np.ones(size, dtype=bool)
    for code, fit, seen in (
        (column.inside, evidence.fit_members, accused[0]),
        (column.outside, evidence.fit_non_members, accused[1]),
    ):
        fitted = code[fit]
        here = np.bincount(fitted, minlength=size)
        hits = np.bincount(fitted, weights=seen, minlength=size)
        rest = np.maximum(len(seen) - here, 1)
        large &= (np.bincount(code, minlength=size) >= min_size) & (here > 0) & (here < len(seen))
        rates.append(hits / np.maximum(here, 1) - (hits.sum() - hits) / rest)
        spread += 0.25 / np.maximum(here, 1) + 0.25 / rest
    return np.where(large, (rates[0] - rates[1]) / np.sqrt(spread), -np.inf)
