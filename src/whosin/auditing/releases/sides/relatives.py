"""Rows that repeat each other within a side, or across the sides: then rows are not people."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from whosin.answers import Said
from whosin.arrays import Array, Flags, Indices
from whosin.auditing.measuring.learned import FEWEST
from whosin.auditing.releases.sides.labels import pairs_alike
from whosin.auditing.releases.sides.pool import Pool
from whosin.auditing.releases.sides.scores import chances_inside, column_scores

LEVEL = 0.001
"""Chance of a false alarm."""
EFFECT = 0.1
"""Least gap between the share of pairs on one side and the share that a difference of the populations explains."""
MOST_PAIRS = 2_000
"""Most pairs of one kind that are looked at."""
FEWEST_TARGETS = 200
"""Records whose nearest other record is looked for, however long that takes."""
WORK = 3_000_000_000
"""Pairs of records times columns that are compared for it otherwise, at most."""
KEY_COLUMNS = 200
"""Wider records are images or alike, and have no keys."""
FEWEST_PAIRS = 5
KEY_VALUES = 20
"""Fewest values of a column that may be a key."""
KEY_SHARE = 0.02
"""Largest share of the rows that one value of a key has."""


@dataclass(frozen=True)
class Dependence(Said):
    """Whether rows repeat each other within a side (``found``) or across the sides (``straddling``).

    Examples
    --------
    Every training row stands there twice, so that half of them tell about the other half:

    >>> import numpy as np, warnings, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> train, holdout, release = (rng.normal(size=(rows, 3)) for rows in (50, 100, 100))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = wi.audit_synthetic(np.repeat(train, 2, axis=0), holdout, release, query="nearest")
    >>> found.dependence.found, found.verdict.state
    (True, 'no verdict')
    """

    found: bool
    straddling: bool
    p_value: float
    """Chance of such repetitions, or more, if the sides were dealt at random."""
    columns: tuple[str, ...]
    """Columns that look like keys: numbers of people, households or rows."""
    sentence: str
    """For the reader; empty if nothing was found."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return self.sentence or "No row was found to repeat another beyond chance."


@dataclass(frozen=True)
class _Signal:
    """The chances of so many pairs on one side, and of so few, if nothing but chance and populations deal the sides."""

    alike: float
    apart: float
    column: str | None = None


_NOTHING = _Signal(1.0, 1.0)


def dependence(pool: Pool, rng: np.random.Generator) -> Dependence:
    """Look for rows that stand on the side of their nearest relatives more, or less, often than chance allows.

    Equal rows, nearest rows, and different rows with the same value in a column of many rare values (a key) are put
    into disjoint pairs without looking at the sides. If the sides were dealt at random, the number of pairs on one side
    has a known law (:func:`pairs_alike`), so that false alarms are at most 0.1 % (Bonferroni over all comparisons).

    Where the populations differ, neighbours stand together as well. How often that makes a pair stand on one side is
    estimated by rules that are learned from the columns, three folds left out in turn, and too smooth to know single
    families (logistic regression with squares, and boosted trees); only pairs beyond all of them, by a binomial test
    and by 0.1, are called dependence. This part is an estimate: it can miss dependence, and it can call a very rough
    difference of populations dependence.

    A column of whole steps, all different, whose order alone tells the sides apart, is named as well.

    With people in the pool, one random row of each is looked at. Cost: at most 2,000 searches among all rows, some
    3·10⁹ cells compared, and a sort a column.
    """
    rows = _one_each(np.arange(pool.size), pool.units, rng)
    numbers = pool.row_numbers()[rows]
    different = _one_each(rows, numbers, rng)
    columns = list(enumerate(pool.names)) if len(pool.names) <= KEY_COLUMNS else []
    repeats = [
        _judged(pool, _paired(rows, numbers, rng), rng),
        _judged(pool, _neighbours(pool, rows, rng), rng),
        *(_judged(pool, _same_key(pool, place, different, rng), rng, name) for place, name in columns),
    ]
    orders = [_Signal(_order(pool, place, rows), 1.0, name) for place, name in columns]
    tests = 2 * len(repeats) + len(orders)
    alike = [signal for signal in repeats if tests * signal.alike <= LEVEL]
    apart = [signal for signal in repeats if tests * signal.apart <= LEVEL]
    counters = [signal for signal in orders if tests * signal.alike <= LEVEL]
    return Dependence(
        found=bool(alike or counters),
        straddling=bool(apart),
        p_value=min(1.0, tests * min(min(signal.alike, signal.apart) for signal in (*repeats, *orders))),
        columns=tuple(dict.fromkeys(signal.column for signal in (*alike, *counters, *apart) if signal.column)),
        sentence=_sentence(alike, counters, apart),
    )


def _sentence(alike: list[_Signal], counters: list[_Signal], apart: list[_Signal]) -> str:
    def named(signals: list[_Signal]) -> str:
        return ", ".join(signal.column for signal in signals if signal.column)

    def where(signals: list[_Signal]) -> str:
        return f" (equal values of {named(signals)})" if named(signals) else ""

    parts = []
    if alike:
        parts.append(
            f"Rows on one side repeat each other{where(alike)}: several rows of one person or family, or sides that "
            "were not drawn alike. If several rows belong to one person, name the column that says whose they are; "
            "until then the limits are too narrow."
        )
    if counters:
        parts.append(
            f"The order of {named(counters)} alone tells training from held-out rows, as a running number does: leave "
            "that column out."
        )
    if apart:
        parts.append(
            f"Rows on one side are repeated on the other{where(apart)}: relatives of training rows among the held-out "
            "rows hide a leak. Keep all rows of a person or household on one side, and leave out row numbers."
        )
    return " ".join(parts)


def _one_each(rows: Indices, groups: Indices, rng: np.random.Generator) -> Indices:
    """A random row of each group."""
    order = rng.permutation(len(rows))
    return np.sort(rows[order[np.unique(groups[order], return_index=True)[1]]])


def _judged(pool: Pool, pairs: Indices, rng: np.random.Generator, column: str | None = None) -> _Signal:
    """How often pairs of relatives stand on one side, against chance and against what the populations explain."""
    from scipy.special import bdtr, bdtrc

    if len(pairs) < FEWEST_PAIRS:
        return _NOTHING
    inside = pairs < pool.split
    same = inside[:, 0] == inside[:, 1]
    alike, apart = pairs_alike(int(same.sum()), len(pairs), int(inside.sum()))
    if min(alike, apart) > LEVEL:
        return _NOTHING
    expected, number, share = _explained(pool, pairs, rng), int(same.sum()), float(same.mean())
    low, high = min(expected), max(expected)
    return _Signal(
        max(alike, float(bdtrc(number - 1, len(pairs), high))) if share >= high + EFFECT else 1.0,
        max(apart, float(bdtr(number, len(pairs), low))) if share <= low - EFFECT else 1.0,
        column,
    )


def _explained(pool: Pool, pairs: Indices, rng: np.random.Generator) -> list[float]:
    """The share of pairs on one side if sides depend on the columns, and on no relative: by three rules.

    The rules are: on no column, by a quadratic score, by trees.
    """
    rows = pairs.ravel()
    inside = rows < pool.split
    rules = [np.full(len(rows), inside.mean())]
    if min(inside.sum(), (~inside).sum()) >= FEWEST:
        rules += chances_inside(column_scores(pool, rows, rng).values, inside, rng)
    chances = [rule.reshape(pairs.shape) for rule in rules]
    return [float(np.mean(one.prod(axis=1) + (1.0 - one).prod(axis=1))) for one in chances]


def _paired(rows: Indices, groups: Indices, rng: np.random.Generator) -> Indices:
    """Disjoint random pairs of rows of one group, at most 2,000."""
    shuffled = rng.permutation(len(groups))
    order = shuffled[np.argsort(groups[shuffled], kind="stable")]
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    first = np.flatnonzero((place[:-1] % 2 == 0) & (ordered[1:] == ordered[:-1]))
    first = rng.permutation(first)[:MOST_PAIRS]
    return rows[np.column_stack([order[first], order[first + 1]])]


def _neighbours(pool: Pool, rows: Indices, rng: np.random.Generator) -> Indices:
    """Disjoint pairs of nearest rows; each search leaves out a quarter of the rows at most."""
    if len(rows) < 2 * FEWEST_PAIRS:
        return np.empty((0, 2), dtype=np.int64)
    order = rng.permutation(len(rows))
    targets = order[: min(MOST_PAIRS, max(FEWEST_TARGETS, WORK // (len(rows) * len(pool.names))))]
    pairs = []
    for fold in np.array_split(targets, -(-4 * len(targets) // len(rows))):
        others = rng.permutation(np.setdiff1d(order, fold))
        pairs.append(np.column_stack([rows[fold], pool.nearest(rows[fold], rows[others])]))
    return _disjoint(np.concatenate(pairs))


def _disjoint(pairs: Indices) -> Indices:
    """The pairs, from the first, in which no record has stood before."""
    seen: set[int] = set()
    kept = []
    for one, other in pairs.tolist():
        if one not in seen and other not in seen:
            seen |= {one, other}
            kept.append((one, other))
    return np.array(kept, dtype=np.int64).reshape(-1, 2)


def _same_key(pool: Pool, column: int, rows: Indices, rng: np.random.Generator) -> Indices:
    """Disjoint pairs of rows with the same value in a column of many rare values; none for other columns."""
    if not _rare(pool.code_counts(column, rows), len(rows)):
        return np.empty((0, 2), dtype=np.int64)
    values = pool.values(column, rows)
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    if not _rare(counts, len(rows)) or (pool.is_number(column) and _measures(values, rows < pool.split)):
        return np.empty((0, 2), dtype=np.int64)
    return _paired(rows, groups, rng)


def _rare(counts: Indices, rows: int) -> bool:
    """Whether a column has many values, each rare."""
    return len(counts) >= KEY_VALUES and int(counts.max()) <= max(2, KEY_SHARE * rows)


def _measures(values: Array, inside: Flags) -> bool:
    """Whether a column is a measurement that differs between the sides, and no key.

    Keys are dealt without regard to their size, or in order, so that one side has all the large ones. Different values
    count once, so that repeated ones do not pass for a difference.
    """
    one, other = np.setdiff1d(values[inside], values[~inside]), np.setdiff1d(values[~inside], values[inside])
    if min(len(one), len(other)) < 2:
        return False
    error = math.sqrt((len(one) + len(other) + 1) / (12.0 * len(one) * len(other)))
    middle = float(np.median(np.concatenate([one, other])))
    above, wider = _above(one, other), _above(np.abs(one - middle), np.abs(other - middle))
    return max(abs(above - 0.5), abs(wider - 0.5)) > 4.0 * error and 0.01 < above < 0.99


def _above(one: Array, other: Array) -> float:
    """Share of all pairs in which the first is larger."""
    return float(np.searchsorted(np.sort(other), one).mean()) / len(other)


def _order(pool: Pool, column: int, rows: Indices) -> float:
    """The chance that a column of whole steps, all different, tells the sides apart by its order; 1 if it does not."""
    if not pool.is_number(column):
        return 1.0
    values, inside = pool.values(column, rows), rows < pool.split
    one, other = values[inside], values[~inside]
    if len(one) == 0 or len(other) == 0 or not (one.max() < other.min() or other.max() < one.min()):
        return 1.0
    gaps = np.diff(np.sort(values))
    if not (gaps > 0.0).all():
        return 1.0
    steps = gaps / gaps.min()
    if np.median(steps) > 10.0 or np.any(np.abs(steps - np.rint(steps)) > 1e-4 * steps):
        return 1.0
    members, others = int(inside.sum()), int((~inside).sum())
    return 2.0 * math.exp(math.lgamma(members + 1) + math.lgamma(others + 1) - math.lgamma(len(rows) + 1))
