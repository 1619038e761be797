"""One score out of several queries: a probabilistic classifier that tells members from non-members."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags, Index
from whosin.parallel.one_thread import one_thread

FOLDS = 3
FEWEST = 30
"""Fewest records on either side to learn from."""
MOST = 40_000
"""Most records to learn from; the rest is only scored."""
KINDS = MEAN, LINEAR, QUADRATIC = 0, 1, 2
PENALTIES = (1.0, 3.0, 10.0)
"""Ridge penalties of the three kinds of scores."""
LEAST = 1e-3
"""Least share of a model in the average."""
WIDEST = 13
"""Most queries of which all products enter the quadratic score; of more, only squares do."""


def learn_score(
    members: Array, non_members: Array, rng: np.random.Generator, *, quadratic: bool = True
) -> tuple[Callable[[Array], Array], Array]:
    """Learn ln(r/q) of several queries; return the score and the scores of these records by models without them.

    Logistic regression on the mean of the queries, on the queries, and on these with squares and products are fitted in
    three folds and again on all, and their log odds are averaged, each with the likelihood of the folds left out as its
    weight: with few records the three share, with many the best is alone. The mean has one
    weight to learn, however many queries there are: with few records more queries cost less power. Each query enters as
    its rank on a normal scale, so that neither units nor heavy tails matter; one that says the same about all of these
    records does not enter. At most 40,000 records are learned from,
    of the smaller side as many as half of that holds. The scores of ``members`` come first. Fits run on one thread: on
    more, small ones mostly wait for each other. Without ``quadratic`` there are only the queries. (Boosted trees found
    no more on ten releases of Adult, in ten times the time.)
    """
    with one_thread:
        return _learned(members, non_members, rng, KINDS if quadratic else (LINEAR,))


def _learned(
    members: Array, non_members: Array, rng: np.random.Generator, kinds: tuple[int, ...]
) -> tuple[Callable[[Array], Array], Array]:
    values = np.concatenate([members, non_members])
    labels = np.arange(len(values)) < len(members)
    chosen = _some(labels, rng)
    scale = _Ranks(values[chosen])
    x, y = scale(values[chosen]), labels[chosen]
    folds = np.empty(len(y), dtype=np.int64)
    for side in (y, ~y):
        folds[side] = rng.permutation(np.arange(side.sum()) % FOLDS)
    model, left_out = _in_folds(x, y, folds, kinds)
    score = _Score(model, scale, _log_odds(y))
    scores = np.empty(len(values))
    rest = np.ones(len(values), dtype=bool)
    rest[chosen] = False
    scores[chosen] = left_out
    if rest.any():
        scores[rest] = score(values[rest])
    return score, scores


def _some(labels: Flags, rng: np.random.Generator) -> Index:
    """Return the numbers of at most ``MOST`` records, so that the smaller side keeps what it can."""
    order = rng.permutation(len(labels))
    sides = order[labels[order]], order[~labels[order]]
    few = min(len(side) for side in sides)
    room = max(MOST // 2, MOST - few)
    return np.sort(np.concatenate([side[:room] for side in sides]))


@dataclass(frozen=True, eq=False)
class _Score:
    """Log odds of a model less those of its training data: an estimate of ln(r/q)."""

    model: _Average
    scale: _Ranks
    odds: float

    def __call__(self, answers: Array) -> Array:
        with one_thread:
            return self.model.decision_function(self.scale(answers)) - self.odds


class _Ranks:
    """Each column that has two values as the normal quantile of its rank among at most 1,000 knots; else the first."""

    def __init__(self, values: Array) -> None:
        varied = np.flatnonzero(values.min(axis=0) < values.max(axis=0))
        self.columns = varied if len(varied) else np.zeros(1, dtype=np.intp)
        values = values[:, self.columns]
        self.count = min(1000, len(values))
        places = np.ceil(np.linspace(0.0, 1.0, self.count) * len(values)).astype(np.int64) - 1
        knots = (np.sort(column)[np.maximum(places, 0)] for column in values.T)
        self.knots = [np.unique(column, return_counts=True) for column in knots]

    def __call__(self, values: Array) -> Array:
        from scipy.special import ndtri

        columns = []
        for column, (knots, counts) in zip(values[:, self.columns].T, self.knots, strict=True):
            place = np.searchsorted(knots, column)
            equal = np.append(knots, np.inf)[place] == column
            below = np.concatenate([[0], np.cumsum(counts)])[place]
            middle = below + 0.5 * equal * np.append(counts, 0)[place]
            columns.append(ndtri((middle + 0.5) / (self.count + 1.0)))
        return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class _Logistic:
    """Logistic regression with a ridge penalty on queries, their mean, or queries with their squares and products."""

    kind: int
    weights: Array

    def decision_function(self, x: Array) -> Array:
        """Return the log odds of each row."""
        return np.asarray(_features(x, self.kind) @ self.weights)


@dataclass(frozen=True, eq=False)
class _Average:
    """The average of several models by their shares."""

    shares: Array
    models: tuple[_Logistic, ...]

    def decision_function(self, x: Array) -> Array:
        """Return the log odds of each row."""
        return np.asarray(self.shares @ [model.decision_function(x) for model in self.models])


def _fit(features: Array, y: Flags, penalty: float, start: Array) -> Array:
    """Maximise the penalised likelihood by Newton's method, each step halved until it improves."""
    ridge = np.full(features.shape[1], penalty)
    ridge[0] = 1e-6
    weights = np.concatenate([start, np.zeros(features.shape[1] - len(start))])
    odds = features @ weights
    loss = _penalised(odds, y, weights, ridge)
    for _ in range(50):
        chance = 1.0 / (1.0 + np.exp(-np.clip(odds, -700.0, 700.0)))
        slope = (y - chance) @ features - ridge * weights
        curve = (features * (chance * (1.0 - chance))[:, None]).T @ features
        curve.flat[:: len(ridge) + 1] += ridge
        step = np.linalg.solve(curve, slope)
        if slope @ step <= 1e-6 * len(y):
            return np.asarray(weights + step)
        new, odds = math.inf, features @ (weights + step)
        while (new := _penalised(odds, y, weights + step, ridge)) > loss and np.abs(step).max() > 1e-12:
            step = 0.5 * step
            odds = features @ (weights + step)
        weights, loss = weights + step, new
    return weights


def _features(x: Array, kind: int) -> Array:
    if kind == MEAN:
        return np.column_stack([np.ones(len(x)), x.mean(axis=1)])
    parts = [np.ones((len(x), 1)), x]
    if kind == QUADRATIC:
        parts.append((x**2 - 1.0) / math.sqrt(2.0))
        if x.shape[1] <= WIDEST:
            parts += [x[:, i : i + 1] * x[:, i + 1 :] for i in range(x.shape[1] - 1)]
    return np.concatenate(parts, axis=1)


def _penalised(odds: Array, y: Flags, weights: Array, ridge: Array) -> float:
    return float(np.sum(np.logaddexp(0.0, np.where(y, -odds, odds))) + 0.5 * np.sum(ridge * weights**2))


def _log_odds(y: Flags) -> float:
    inside = int(y.sum())
    return math.log(inside / (len(y) - inside))


def _in_folds(x: Array, y: Flags, folds: NDArray[np.int64], kinds: tuple[int, ...]) -> tuple[_Average, Array]:
    """Return the average of the models fitted on all, and the scores of these records by models without them.

    A model's share is in proportion to its likelihood on the folds left out; one with less than ``LEAST`` has none. A
    fit starts where the one before it ended, the first quadratic fit where the linear one on the same records did, and
    the fit on all from the mean of those in folds: the loss is convex, so that starts only save steps.
    """
    losses, means, left_out = [], [], []
    starts = [np.zeros(1)] * FOLDS
    for kind in kinds:
        features, scores = _features(x, kind), np.empty(len(y))
        for fold in range(FOLDS):
            out = folds == fold
            first = starts[0] if kind == QUADRATIC else np.zeros(1)
            start = starts[fold - 1] if fold else first
            starts[fold] = _fit(features[~out], y[~out], PENALTIES[kind], start)
            scores[out] = features[out] @ starts[fold] - _log_odds(y[~out])
        losses.append(_log_loss(scores, y))
        means.append(np.mean(starts, axis=0))
        left_out.append(scores)
    shares = np.exp(min(losses) - np.array(losses))
    kept = np.flatnonzero(shares >= LEAST * shares.sum())
    shares = shares[kept] / shares[kept].sum()
    models = tuple(_Logistic(kinds[i], _fit(_features(x, kinds[i]), y, PENALTIES[kinds[i]], means[i])) for i in kept)
    return _Average(shares, models), np.asarray(shares @ [left_out[i] for i in kept])


def _log_loss(scores: Array, y: Flags) -> float:
    odds = scores + _log_odds(y)
    return float(np.sum(np.logaddexp(0.0, np.where(y, -odds, odds))))
