"""Numbers about each record that do not know the sides, and rules learned from them that do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array, Flags, Indices
from whosin.auditing.measuring.learned import learn_score
from whosin.auditing.releases.sides.pool import Pool
from whosin.parallel.one_thread import one_thread

MOST_CELLS = 4_000_000
"""Most cells that are looked at; of wider arrays random columns are."""
MOST_CODES = 20
"""Most categories of a column that are compared one by one."""
FEWEST_CODES = 20
"""Fewest records with a category that is compared on its own."""
LEARNED_SCORES = 30
"""Most scores that a learned one combines: those with the largest gaps in the part that it learns from."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores, one row per record; each belongs to a column, or to none, and speaks of its spread, or does not."""

    values: Array
    owners: tuple[str | None, ...]
    spreads: Flags

    def with_more(self, values: Array) -> Scores:
        """Add scores that belong to no column."""
        more = values.shape[1]
        return Scores(
            np.column_stack([self.values, values]),
            (*self.owners, *([None] * more)),
            np.concatenate([self.spreads, np.zeros(more, dtype=bool)]),
        )


def column_scores(pool: Pool, rows: Indices, rng: np.random.Generator) -> Scores:
    """Ranks, distances of ranks from the middle, and categories of each column; the mean distance over all columns."""
    values: list[Array] = []
    owners: list[str | None] = []
    spreads: list[bool] = []

    def add(score: Array, owner: str | None, spread: bool = False) -> None:
        values.append(score)
        owners.append(owner)
        spreads.append(spread)

    distances = np.zeros(len(rows))
    for column in np.sort(rng.permutation(len(pool.names))[: max(1, MOST_CELLS // len(rows))]):
        of_column, name = pool.values(column, rows), pool.names[column]
        if not pool.is_number(column):
            for score in _categories(of_column):
                add(score, name)
            continue
        ranked = ranks(of_column)
        distances += np.abs(ranked)
        add(ranked, name)
        add(np.abs(ranked), name, True)
        if np.isnan(of_column).any():
            add(np.isnan(of_column).astype(np.float64), name)
    add(distances, None, True)
    return Scores(np.column_stack(values), tuple(owners), np.array(spreads))


def ranks(values: Array) -> Array:
    """Mid-ranks between -1 and 1; a missing number is in the middle."""
    known = ~np.isnan(values)
    _, places, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    found = np.zeros(len(values))
    found[known] = (2.0 * np.cumsum(counts) - counts)[places] / max(1, known.sum()) - 1.0
    return found


def _categories(codes: Array) -> list[Array]:
    """The common categories one by one, and how common a row's category is."""
    _, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:MOST_CODES]
    flags = [(places == code).astype(np.float64) for code in common if counts[code] >= FEWEST_CODES]
    return [*flags, ranks(counts[places].astype(np.float64))]


def learn_sides(scores: Array, inside: Flags, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Learn ln(r/q) from the scores with the largest gaps."""
    kept = _most_telling(scores, inside)
    rule, _ = learn_score(scores[inside][:, kept], scores[~inside][:, kept], rng)
    return lambda others: rule(others[:, kept])


def chances_inside(scores: Array, inside: Flags, rng: np.random.Generator) -> tuple[Array, Array]:
    """The chance of each record to stand inside, by two rules that did not see it: a quadratic one, and trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    kept, seed = _most_telling(scores, inside), int(rng.integers(2**31))
    _, left_out = learn_score(scores[inside][:, kept], scores[~inside][:, kept], rng)
    odds = np.empty(len(inside))
    odds[inside], odds[~inside] = np.split(left_out + np.log(inside.sum() / (~inside).sum()), [int(inside.sum())])
    trees = HistGradientBoostingClassifier(
        max_leaf_nodes=8, min_samples_leaf=20, early_stopping=True, random_state=seed
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    with one_thread:
        found = cross_val_predict(trees, scores[:, kept], inside, cv=folds, method="predict_proba")[:, 1]
    return 1.0 / (1.0 + np.exp(-odds)), np.asarray(found, dtype=np.float64)


def _most_telling(scores: Array, inside: Flags) -> Indices:
    spread = scores.std(axis=0)
    gaps = np.abs(scores[inside].mean(axis=0) - scores[~inside].mean(axis=0))
    return np.argsort(-gaps / np.maximum(spread, 1e-9), kind="stable")[:LEARNED_SCORES]
