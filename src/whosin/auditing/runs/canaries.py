"""Testing the DP claim of a training by one run: canaries are included by coin toss, and guessed from the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.auditing.models.predictions import loss, predict
from whosin.auditing.runs.one_run import Guesses, OneRunAudit, audit_one_run
from whosin.errors import InputError, InputTypeError, WhosinError, check_probability, check_whole, spawned
from whosin.training.adapters import as_adapter, row_count
from whosin.training.dpsgd import DPSGDAdapter

Side = tuple[Any, Any]

SCORES = ("loss", "gradients")


def audit_training(
    estimator: Any,
    data: Side | None,
    canaries: Side | int,
    *,
    score: str | Callable[[Any, Any, Any], Any] = "loss",
    guesses: Guesses | list[Guesses] | None = None,
    delta: float = 0.0,
    confidence_level: float = 0.95,
    rng: Any = None,
) -> OneRunAudit:
    """Train once, with each canary included by a fair coin of its own, and guess which canaries were in.

    Parameters
    ----------
    estimator : scikit-learn classifier, or Adapter
        The training whose claim is tested: :class:`DPSGDAdapter`, :class:`TorchAdapter`, or any other.
    data : pair (X, y), or None
        Records that are in the training whatever the coins say.
    canaries : pair (X, y), or int
        The records that are guessed; see :func:`mislabelled`. Unusual ones are easier to guess. A number takes so many
        gradients of full norm instead, orthogonal to each other, at most one for each weight of a
        :class:`DPSGDAdapter`: records stand in each other's way, these do not, and show a larger ε.
    score : {"loss", "gradients"} or callable, default "loss"
        "loss" looks at the trained model only: a small loss speaks for inclusion. "gradients" looks at every step of
        a :class:`DPSGDAdapter`, as its promise allows, and is far stronger. A callable gets (model, X, y) of all
        canaries and returns one number each, a larger one for inclusion.
    guesses, delta, confidence_level
        As in :func:`whosin.audit_one_run`; fix ``guesses`` before looking at any result.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes: coins, training, ties. The coins are those of a generator
        spawned from it, which are independent of records that were drawn with the same seed.

    Returns
    -------
    OneRunAudit
        Compare it with the promise by ``.compare(adapter.guarantee)``, on one picture by ``.plot(guarantee=…)``.

    Notes
    -----
    One training. A DPSGDAdapter without ``expected_batch`` divides by ``sample_rate`` times the expected number of
    records here, so that the number of canaries included does not show in the step length.

    References
    ----------
    Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run.

    Examples
    --------
    One nearest neighbour knows its records by heart, and so gives nearly every canary with a random label away:

    >>> import numpy as np, whosin as wi
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rng = np.random.default_rng(0)
    >>> canaries = rng.normal(size=(200, 2)), rng.integers(10, size=200)
    >>> run = wi.audit_training(KNeighborsClassifier(1), None, canaries, guesses=50, rng=0)
    >>> run.right, run.guesses, round(run.epsilon_lower, 1)
    (48, 50, 2.0)
    >>> run.compare(wi.PureDP(1.0)).verdict
    'violated'
    """
    check_probability("delta", delta)
    if isinstance(canaries, int | np.integer):
        return _planted(as_adapter(estimator), data, canaries, score, (guesses, delta, confidence_level), rng)
    Xc, yc = _side("canaries", canaries)
    base = None if data is None else _side("data", data)
    coins, generator = spawned(rng)
    included = coins.random(len(yc)) < 0.5
    if base is not None and base[0].shape[1:] != Xc.shape[1:]:
        raise InputError(f"canaries must be records like data, got shapes {Xc.shape[1:]} and {base[0].shape[1:]}")
    if base is None and not included.any():
        raise InputError("canaries must be more than these: no record is left to train on, as no canary was included")
    adapter = _with_expected_batch(as_adapter(estimator), len(yc) / 2 + (0 if base is None else len(base[1])))
    scores = _scores(adapter, base, (Xc, yc), included, score, generator)
    return audit_one_run(
        scores, included, guesses=guesses, delta=delta, confidence_level=confidence_level, rng=generator
    )


def mislabelled(X: Any, y: Any, count: int, *, classes: Any = None, rng: Any = None) -> Side:
    """Return so many of the records, each with a wrong label at random: canaries that a model must learn by heart.

    Parameters
    ----------
    X, y : records and labels
        Take records that are not in ``data``.
    count : int
        How many, at most as many as there are records.
    classes : sequence, optional
        The labels to choose from; those in ``y`` by default.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes.

    Examples
    --------
    >>> import numpy as np
    >>> from whosin.auditing.runs import mislabelled
    >>> X, y = np.arange(10.0)[:, None], np.arange(10) % 3
    >>> canaries, labels = mislabelled(X, y, 4, rng=0)
    >>> places = canaries[:, 0].astype(int)
    >>> bool((labels != y[places]).all())
    True
    """
    X, y = _side("X, y", (X, y))
    generator = np.random.default_rng(rng)
    labels = np.unique(y) if classes is None else np.asarray(classes)
    if labels.ndim != 1 or len(set(labels.tolist())) < 2:
        raise InputError(f"classes must have at least two labels, got {labels.tolist()}")
    size = check_whole("count", count)
    if not 1 <= size <= len(y):
        raise InputError(f"count must be 1 to {len(y)}, the number of records, got {count}")
    rows = generator.permutation(len(y))[:size]
    wrong = [generator.choice(labels[labels != label]) for label in y[rows]]
    return X[rows], np.array(wrong, dtype=labels.dtype)


def _planted(
    adapter: Any, data: Any, canaries: int, score: Any, options: tuple[Any, float, float], rng: Any
) -> OneRunAudit:
    """Train with gradients as canaries."""
    count = check_whole("canaries", canaries, low=1)
    if not isinstance(adapter, DPSGDAdapter) or score not in ("loss", "gradients"):
        raise InputTypeError(f"canaries as a number go with a DPSGDAdapter, got {type(adapter).__name__}")
    if data is None:
        raise InputTypeError("data must be a pair (X, y) where canaries is a number: there is nothing else to train on")
    coins, generator = spawned(rng)
    included, base = coins.random(count) < 0.5, _side("data", data)
    scores = _with_expected_batch(adapter, len(base[1]) + count / 2).train_planted(base, included, generator)[1]
    guesses, delta, level = options
    return audit_one_run(scores, included, guesses=guesses, delta=delta, confidence_level=level, rng=generator)


def _with_expected_batch(adapter: Any, records: float) -> Any:
    """Fix what the sum of gradients is divided by, where it would tell how many canaries are in."""
    if not isinstance(adapter, DPSGDAdapter) or adapter.expected_batch is not None:
        return adapter
    return dataclasses.replace(adapter, expected_batch=adapter.sample_rate * records)


def _scores(
    adapter: Any, base: Side | None, canaries: Side, included: Flags, score: Any, rng: np.random.Generator
) -> Array:
    if score == "gradients":
        if not isinstance(adapter, DPSGDAdapter):
            raise InputTypeError(f"score='gradients' needs a DPSGDAdapter, got {type(adapter).__name__}")
        return adapter.train_watching(base, canaries, included, rng)[1]
    if not callable(score) and score != "loss":
        raise InputError(f"score must be {', '.join(SCORES)}, or a function (model, X, y), got {score!r}")
    parts = [part[included] for part in canaries]
    if base is not None:
        parts = [np.concatenate(pair) for pair in zip(base, parts, strict=True)]
    try:
        model = adapter.fit(*parts, rng)
    except (WhosinError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"estimator failed in training on {len(parts[1])} records: {type(error).__name__}: {error}"
        ) from error
    if callable(score):
        given = score(model, *canaries)
        try:
            return np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputTypeError(
                f"score must be a function that returns one number per canary, got {given!r}"
            ) from None
    return -loss(predict(model, *canaries, "canaries", missing=True))


def _side(name: str, given: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputTypeError(f"{name} must be a pair (X, y), got {type(given).__name__}")
    X, y = np.asarray(given[0].toarray() if hasattr(given[0], "toarray") else given[0]), np.asarray(given[1])
    if y.ndim != 1 or row_count(X) != len(y) or len(y) == 0:
        raise InputError(f"{name} must have records with one label each, got {row_count(X)} and shape {y.shape}")
    return X, y
