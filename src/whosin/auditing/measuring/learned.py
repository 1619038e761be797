"""One score out of several queries: a probabilistic classifier that tells members from non-members."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whosin.parallel.one_thread import one_thread

__all__ = ["FEWEST", "learn_score"]

Array = NDArray[np.float64]

FOLDS = 3
FEWEST = 30
"""Fewest records on either side to learn from."""
MOST = 40_000
"""Most records to learn from; the rest is only scored."""
WIDEST = 12
"""Most queries of which all products enter the quadratic score; of more, only squares do."""


def learn_score(
    members: Array, non_members: Array, rng: np.random.Generator, *, quadratic: bool = True
) -> tuple[Callable[[Array], Array], Array]:
    """Learn ln(r/q) of several queries; return the score and the scores of these records by models without them.

    Logistic regression, and the same with squares and products of the queries, are fitted in three folds, and the one
    with the smaller log loss on the folds left out is fitted again on all. Each query enters as its rank on a normal
    scale, so that neither units nor heavy tails matter. At most 40,000 records are learned from, of the smaller side as
    many as half of that holds. The scores of ``members`` come first. Fits run on one thread: on more, small ones
    mostly wait for each other. Without ``quadratic`` there are no squares and products. (Boosted trees found no more on
    ten releases of Adult, in ten times the time.)
    """
    with one_thread:
        return _learned(members, non_members, rng, (False, True) if quadratic else (False,))


def _learned(
    members: Array, non_members: Array, rng: np.random.Generator, kinds: tuple[bool, ...]
) -> tuple[Callable[[Array], Array], Array]:
    values = np.concatenate([members, non_members])
    labels = np.arange(len(values)) < len(members)
    chosen = _some(labels, rng)
    scale = _Ranks(values[chosen])
    x, y = scale(values[chosen]), labels[chosen]
    folds = np.empty(len(y), dtype=np.int64)
    for side in (y, ~y):
        folds[side] = rng.permutation(np.arange(side.sum()) % FOLDS)
    left_out = {quadratic: _left_out(quadratic, x, y, folds) for quadratic in kinds}
    best = min(left_out, key=lambda quadratic: _log_loss(left_out[quadratic], y))
    score = _Score(_Logistic.fit(best, x, y), scale, _log_odds(y))
    scores = np.empty(len(values))
    rest = np.ones(len(values), dtype=bool)
    rest[chosen] = False
    scores[chosen] = left_out[best]
    if rest.any():
        scores[rest] = score(values[rest])
    return score, scores


def _some(labels: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the numbers of at most ``MOST`` records, so that the smaller side keeps what it can."""
    order = rng.permutation(len(labels))
    sides = order[labels[order]], order[~labels[order]]
    few = min(len(side) for side in sides)
    room = max(MOST // 2, MOST - few)
    return np.sort(np.concatenate([side[:room] for side in sides]))


@dataclass(frozen=True, eq=False)
class _Score:
    """Log odds of a model less those of its training data: an estimate of ln(r/q)."""

    model: _Logistic
    scale: _Ranks
    odds: float

    def __call__(self, answers: Array) -> Array:
        with one_thread:
            return self.model.decision_function(self.scale(answers)) - self.odds


class _Ranks:
    """Each column as the normal quantile of its rank among at most 1,000 knots."""

    def __init__(self, values: Array) -> None:
        levels = np.linspace(0.0, 1.0, min(1000, len(values)))
        self.knots = [np.quantile(column, levels, method="inverted_cdf") for column in values.T]

    def __call__(self, values: Array) -> Array:
        from scipy.special import ndtri

        columns = []
        for column, knots in zip(values.T, self.knots, strict=True):
            below, upto = (np.searchsorted(knots, column, side=side) for side in ("left", "right"))
            columns.append(ndtri((0.5 * (below + upto) + 0.5) / (len(knots) + 1.0)))
        return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class _Logistic:
    """Logistic regression with a ridge penalty on queries, or on queries, their squares and their products."""

    quadratic: bool
    weights: Array

    @classmethod
    def fit(cls, quadratic: bool, x: Array, y: NDArray[np.bool_]) -> _Logistic:
        """Maximise the penalised likelihood by Newton's method, each step halved until it improves."""
        features = _features(x, quadratic)
        penalty = np.full(features.shape[1], 10.0 if quadratic else 1.0)
        penalty[0] = 1e-6
        weights = np.zeros(features.shape[1])
        loss = _penalised(features, y, weights, penalty)
        for _ in range(50):
            chance = 1.0 / (1.0 + np.exp(-np.clip(features @ weights, -700.0, 700.0)))
            slope = features.T @ (y - chance) - penalty * weights
            curve = (features * (chance * (1.0 - chance))[:, None]).T @ features
            step = np.linalg.solve(curve + np.diag(penalty), slope)
            new = _penalised(features, y, weights + step, penalty)
            while new > loss and np.abs(step).max() > 1e-12:
                step = 0.5 * step
                new = _penalised(features, y, weights + step, penalty)
            weights, gained, loss = weights + step, loss - new, new
            if gained <= 1e-6 * len(y):
                break
        return cls(quadratic, weights)

    def decision_function(self, x: Array) -> Array:
        """Return the log odds of each row."""
        return np.asarray(_features(x, self.quadratic) @ self.weights)


def _features(x: Array, quadratic: bool) -> Array:
    parts = [np.ones((len(x), 1)), x]
    if quadratic:
        parts.append((x**2 - 1.0) / math.sqrt(2.0))
        if x.shape[1] <= WIDEST:
            parts += [x[:, i : i + 1] * x[:, i + 1 :] for i in range(x.shape[1] - 1)]
    return np.concatenate(parts, axis=1)


def _penalised(features: Array, y: NDArray[np.bool_], weights: Array, penalty: Array) -> float:
    odds = features @ weights
    return float(np.sum(np.logaddexp(0.0, np.where(y, -odds, odds))) + 0.5 * np.sum(penalty * weights**2))


def _log_odds(y: NDArray[np.bool_]) -> float:
    inside = int(y.sum())
    return math.log(inside / (len(y) - inside))


def _left_out(quadratic: bool, x: Array, y: NDArray[np.bool_], folds: NDArray[np.int64]) -> Array:
    scores = np.empty(len(y))
    for fold in range(FOLDS):
        out = folds == fold
        scores[out] = _Logistic.fit(quadratic, x[~out], y[~out]).decision_function(x[out]) - _log_odds(y[~out])
    return scores


def _log_loss(scores: Array, y: NDArray[np.bool_]) -> float:
    odds = scores + _log_odds(y)
    return float(np.mean(np.logaddexp(0.0, np.where(y, -odds, odds))))
