"""The attack of an audit by retraining: what it learned on some trainings, it guesses in another.

Answers have shape (trainings, units, queries), coins (trainings, units). For every unit and query the learning
trainings give two normal laws, with the unit in and out, shrunk towards those of all units: plain ratios of likelihoods
(LiRA, Carlini et al. 2022) need several times as many trainings. One score, learned on all units of all learning
trainings together, reads the ratios, z-scores and answers of a unit as log odds of membership. The training that a row
of features belongs to is left out of the laws that the row is judged by, as a new training will be.

Limits take scores of attacks that were learned on *earlier* trainings alone (:func:`scores_ahead`). Attacks that were
learned on all other trainings (:func:`scores_crossed`) serve for estimates: they see the coins of a training through
the attacks on others, and "limits" from them fail about twice as often as they may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array, Flags, Single
from whosin.parallel.one_thread import one_thread

ATTACKS = ("auto", "linear")
PRIOR_DF = 4.0
"""Weight, in trainings, of the mean variance of all units."""
MOST_ROWS = 40_000
"""Most rows of features that a score is learned from."""
TREES_FROM = 4000
"""Fewest rows for boosted trees: with fewer they find less than logistic regression."""
GROWTH = 1.25
"""The attack is learned again when the trainings to learn from have grown by this factor."""
FARTHEST = 30.0
"""Largest log likelihood ratio, z-score or gap of one query: answers without any noise must not outweigh the rest."""


@dataclass(frozen=True, eq=False)
class _Sums:
    """Counts, sums and squares of the answers of each unit and query, in and out."""

    counts: tuple[Array, Array]
    sums: tuple[Array, Array]
    squares: tuple[Array, Array]

    @classmethod
    def of(cls, answers: Array, coins: Flags) -> _Sums:
        inside = coins.astype(np.float64)
        count = inside.sum(axis=0)[:, None]
        total, square = answers.sum(axis=0), (answers**2).sum(axis=0)
        sums, squares = np.einsum("tnq,tn->nq", answers, inside), np.einsum("tnq,tn->nq", answers**2, inside)
        return cls((count, len(answers) - count), (sums, total - sums), (squares, square - squares))

    def without(self, answers: Array, coins: Flags) -> _Sums:
        """Leave one training out."""
        sides = coins[:, None].astype(np.float64), ~coins[:, None] * 1.0
        parts = (np.ones_like(answers[:, :1]), answers, answers**2)
        kept = [
            tuple(mine - side * part for mine, side in zip(pair, sides, strict=True))
            for pair, part in zip((self.counts, self.sums, self.squares), parts, strict=True)
        ]
        return _Sums(*kept)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Laws:
    """Means and variances of the answers about each unit, in and out, and how far apart they are in deviations."""

    means: tuple[Array, Array]
    variances: tuple[Array, Array]
    gap: Array

    @classmethod
    def of(cls, seen: _Sums) -> _Laws:
        (n1, n0), (s1, s0) = seen.counts, seen.sums
        m1, m0 = s1 / np.maximum(n1, 1), s0 / np.maximum(n0, 1)
        w1, w0 = (np.maximum(q - n * m**2, 0.0) for q, n, m in zip(seen.squares, (n1, n0), (m1, m0), strict=True))
        df = np.maximum(n1 + n0 - 2, 1)
        pooled = (w1 + w0) / df
        mean = pooled.mean(axis=0) + 1e-8
        pooled = (df * pooled + PRIOR_DF * mean) / (df + PRIOR_DF)
        variances = []
        for w, n in ((w1, n1), (w0, n0)):
            ratio = np.clip((w.sum(axis=0) / np.maximum(n - 1, 1).sum() + 1e-9) / mean, 0.2, 5.0)
            own = (w + PRIOR_DF * pooled * ratio) / (np.maximum(n - 1, 0) + PRIOR_DF)
            variances.append(own + 0.02 * mean)
        pooled = pooled + 0.02 * mean
        both = (n1 > 0) & (n0 > 0)
        gap = np.where(both, m1 - m0, 0.0)
        error = pooled * (1 / np.maximum(n1, 1) + 1 / np.maximum(n0, 1))
        centre = (gap / error).sum(axis=0) / (1 / error).sum(axis=0)
        spread = np.maximum(((gap - centre) ** 2 - error).mean(axis=0), 1e-4 * mean)
        gap = np.where(both, spread / (spread + error), 0.0) * (gap - centre) + centre
        middle, share = (s1 + s0) / (n1 + n0), n1 / (n1 + n0)
        means = middle + (1 - share) * gap, middle - share * gap
        return cls(means, (variances[0], variances[1]), gap / np.sqrt(pooled))

    def features(self, answers: Array, main: int) -> Single:
        """Ratio, z-score, gap and answer of each main query; mean and largest ratio of the others."""
        (m1, m0), (v1, v0) = self.means, self.variances
        ratio = (answers - m0) ** 2 / v0 / 2 - (answers - m1) ** 2 / v1 / 2 + 0.5 * np.log(v0 / v1)
        z = (answers - m0) / np.sqrt(v0)
        ratio, z, gap = (np.clip(part, -FARTHEST, FARTHEST) for part in (ratio, z, self.gap))
        columns = [ratio[:, :main], z[:, :main], gap[:, :main], answers[:, :main]]
        if answers.shape[1] > main:
            columns += [ratio[:, main:].mean(axis=1, keepdims=True), ratio[:, main:].max(axis=1, keepdims=True)]
        return np.concatenate(columns, axis=1).astype(np.float32)


class CoinAttack:
    """A score learned on some trainings: log odds of membership of every unit in another, at fair coins.

    Parameters
    ----------
    answers, coins : arrays
        Of the trainings to learn from, at least 2.
    main : int
        The first so many queries enter one by one, the others by the mean and the largest of their ratios.
    kind : {"auto", "linear"}
        Boosted trees on top of a logistic regression (from 4,000 rows of features on), or that alone, which is many
        times cheaper.

    Notes
    -----
    O(trainings·units·queries) for the features; the learner sees at most 40,000 rows.
    """

    def __init__(self, answers: Array, coins: Flags, main: int, kind: str = "auto") -> None:
        spread = answers[0].std(axis=0)
        self._centre, self._scale = answers[0].mean(axis=0), np.where(spread > 0.0, spread, 1.0)
        answers = (answers - self._centre) / self._scale
        seen = _Sums.of(answers, coins)
        self._laws, self._main = _Laws.of(seen), main
        rows = [_Laws.of(seen.without(one, side)).features(one, main) for one, side in zip(answers, coins, strict=True)]
        x, y = np.concatenate(rows), coins.reshape(-1)
        if len(x) > MOST_ROWS:
            chosen = np.random.default_rng(0).choice(len(x), MOST_ROWS, replace=False)
            x, y = x[chosen], y[chosen]
        with one_thread:
            self._learner = _learner(kind if len(x) >= TREES_FROM else "linear").fit(x, y)

    def scores(self, answers: Array) -> Array:
        """Return the log odds of every unit in one training."""
        rows = self._laws.features((answers - self._centre) / self._scale, self._main)
        with one_thread:
            found = self._learner.decision_function(rows)
        return np.asarray(found, dtype=np.float64)


def _learner(kind: str) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
    return linear if kind == "linear" else _Corrected(linear)


class _Corrected:
    """Boosted trees that see what a logistic regression says beside the features: they only have to correct it."""

    def __init__(self, linear: Any) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        self._linear = linear
        self._trees = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, min_samples_leaf=100, early_stopping=False, random_state=0
        )

    def fit(self, x: Single, y: Flags) -> _Corrected:
        self._linear.fit(x, y)
        self._trees.fit(self._with_linear(x), y)
        return self

    def decision_function(self, x: Single) -> Array:
        return np.asarray(self._trees.decision_function(self._with_linear(x)))

    def _with_linear(self, x: Single) -> Array:
        return np.column_stack([x, self._linear.decision_function(x)])


def scores_ahead(answers: Array, coins: Flags, first: int, main: int, kind: str) -> Array:
    """Return scores of the trainings from ``first`` on, each by an attack learned on earlier ones."""
    scores, known = np.empty((len(coins) - first, coins.shape[1])), first
    while known < len(coins):
        stop = min(len(coins), max(known + 1, int(known * GROWTH)))
        attack = CoinAttack(answers[:known], coins[:known], main, kind)
        for t in range(known, stop):
            scores[t - first] = attack.scores(answers[t])
        known = stop
    return scores


def scores_crossed(answers: Array, coins: Flags, folds: int, main: int, kind: str) -> Array:
    """Return scores of all trainings, each by an attack learned on the other folds."""
    fold = np.arange(len(coins)) % folds
    scores = np.empty(coins.shape)
    for k in range(folds):
        attack = CoinAttack(answers[fold != k], coins[fold != k], main, kind)
        for t in np.flatnonzero(fold == k):
            scores[t] = attack.scores(answers[t])
    return scores
