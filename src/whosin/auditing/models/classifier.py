"""Auditing a trained classifier or regressor by what it predicts about members and non-members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.auditing.measuring.asking import Answers, Query, ask
from whosin.auditing.measuring.audit import Audit
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.run import run_audit
from whosin.auditing.models.augmentations import Augment, feature_noise, image_shifts
from whosin.auditing.models.predictions import (
    RESIDUALS,
    SIGNALS,
    Predictions,
    gives_labels_only,
    log_probabilities,
    predict,
    regresses,
    residuals,
)
from whosin.errors import InputError, InputTypeError, check_whole
from whosin.parallel.threads import silent
from whosin.risks import Risk
from whosin.training.adapters import row_count

Side = tuple[Any, Any]
Question = Callable[[Any, Any, Any], Any]

CALIBRATED = {"calibrated_loss": "loss", "calibrated_logit": "scaled_logit"}
MOST_NAMES = 16
"""Most names of one query that the summary of an audit spells out."""


def audit_classifier(
    model: Any,
    members: Side,
    non_members: Side,
    *,
    query: str | Question | Sequence[str | Question] = "auto",
    reference: Any = None,
    augment: Augment | None = None,
    augmentations: int = 20,
    prior: float = 0.5,
    metric: str | Risk = "advantage",
    kind: str = "auto",
    confidence_level: float = 0.95,
    groups: Any = None,
    assignment: str = "unknown",
    person: Any = None,
    tolerate: float | None = None,
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> Audit:
    """Measure what the predictions of a classifier or regressor tell about who was in its training data.

    Parameters
    ----------
    model : object with predict_proba, decision_function or predict
        The trained model: of scikit-learn or like it, a native Booster of XGBoost or LightGBM, a torch module in a
        :class:`whosin.TorchModel`. Columns of probabilities are ``classes_``, or the labels 0, 1, … if it has none.
        Margins count by their softmax. A model with ``predict`` alone gives labels, or, if it is a regressor, numbers.
    members, non_members : pair (X, y)
        Records with labels (values) that it was trained on, and others of the same population.
    query : str, callable, or sequence of these, default "auto"
        "loss", "confidence", "scaled_logit", "entropy", "modified_entropy", "correctness", "label_only" (share of
        augmented copies that get the label right), "log_probabilities" (of the label, and of all others sorted), and
        with a ``reference`` "calibrated_loss" and "calibrated_logit". Of a regressor "loss" (squared), "residual" and
        "calibrated_loss". Several are combined by a score that is learned on records which are not reported. "auto"
        asks for the loss, with more than two classes also for the entropy, of models that give labels only for
        correctness and label_only, and for the calibrated loss where there is one. A callable gets (model, X, y) and
        returns one or several numbers per record, such as :func:`whosin.auditing.models.layer_output`.
    reference : model or sequence of models, optional
        Models of the same task that saw none of these records: their answers tell how hard a record is.
    augment : callable, optional
        (X, rng) ↦ slightly changed records, for "label_only". By default tables get normal noise of a tenth of each
        feature's standard deviation, and images (three or more axes, height and width last) are moved by a pixel.
    augmentations : int, default 20
        Copies of each record for "label_only".
    prior, metric, kind, confidence_level, groups, assignment, person, tolerate, rng, progress
        As in :func:`whosin.audit`. ``rng`` also draws the augmentations; by default they are the same every time.

    Returns
    -------
    Audit

    Notes
    -----
    One prediction per record (and one per copy for "label_only", one per reference model), then the cost of
    :func:`whosin.audit`, which for several queries fits small classifiers.

    References
    ----------
    Yeom, Giacomelli, Fredrikson, Jha (2018), loss; Song, Mittal (2021), modified entropy; Watson, Guo, Cormode,
    Sablayrolles (2022), calibration by reference models; Choquette-Choo, Tramèr, Carlini, Papernot (2021), label only.

    Examples
    --------
    >>> import numpy as np
    >>> import whosin as wi
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    >>> model = DecisionTreeRegressor(random_state=0).fit(X[:100], y[:100])
    >>> wi.audit_classifier(model, (X[:100], y[:100]), (X[100:], y[100:])).verdict.state
    'leak'
    """
    generator = np.random.default_rng(0 if rng is None else rng)
    report = progress if progress is not None else silent
    report(0.0)
    sides = _side("members", members), _side("non_members", non_members)
    names, questions = _sorted(query)
    parts = [_ask_callable(question, model, sides) for question in questions]
    if names:
        target = _Target(model, sides, _models(reference), augment, check_whole("augmentations", augmentations, low=1))
        parts.insert(0, target.answer(names, generator))
    answers = _joined(parts)
    report(0.5)
    split = row_count(sides[0][0])
    experiment = Experiment(answers.values[:split], answers.values[split:], prior, answers.names, kind, person)
    return run_audit(
        experiment,
        metric=metric,
        confidence_level=confidence_level,
        groups=groups,
        assignment=assignment,
        query=_summary(parts),
        notes=answers.notes,
        tolerate=tolerate,
        rng=None if rng is None else generator,
        progress=lambda share: report(0.5 + 0.5 * share),
    )


@dataclass(frozen=True, eq=False)
class _Target:
    """A model with the records that it is asked about, members first."""

    model: Any
    sides: tuple[Side, Side]
    references: tuple[Any, ...]
    augment: Augment | None
    augmentations: int

    def answer(self, names: Sequence[str], rng: np.random.Generator) -> Answers:
        """Return the answers to the named queries."""
        predictions = self._predictions(self.model)
        signals: Mapping[str, tuple[str, Any]] = RESIDUALS if self.regression else SIGNALS
        known = {name: Query(says, signal) for name, (says, signal) in signals.items()}
        for name, plain in CALIBRATED.items():
            if plain in signals and self.references:
                known[name] = Query(f"{plain} less that of the references", self._calibrated(signals[plain][1]))
        groups = {"auto": ["loss", *(name for name in known if name == "calibrated_loss")]}
        if not self.regression:
            known["label_only"] = Query("share of copies that keep the label", lambda _: self._label_only(rng))
            groups["log_probabilities"] = [f"log p {i}" for i in range(len(predictions.classes))]
            for column, name in enumerate(groups["log_probabilities"]):
                known[name] = Query("log probability of a class", partial(_log_probability, column))
            if gives_labels_only(self.model):
                groups["auto"][0:1] = ["correctness", "label_only"]
            elif len(predictions.classes) > 2:
                groups["auto"].append("entropy")
        return ask(predictions, known, self._wanted(names, known, groups))

    def _wanted(self, names: Sequence[str], known: Mapping[str, Query], groups: Mapping[str, list[str]]) -> list[str]:
        wanted: list[str] = []
        for name in names:
            if name in CALIBRATED and not self.references:
                raise InputError(f"query {name!r} must come with reference=, models that saw none of the records")
            if name not in known and name not in groups:
                listed = ", ".join(dict.fromkeys(["auto", *(query for query in known if " " not in query), *groups]))
                kind = "regressor" if self.regression else "classifier"
                raise InputError(f"query must be {listed}, or a function, for a {kind}, got {name!r}")
            wanted += groups.get(name, [name])
        return list(dict.fromkeys(wanted))

    @cached_property
    def regression(self) -> bool:
        """Whether the model predicts numbers."""
        return regresses(self.model, np.concatenate([y for _, y in self.sides]))

    def _predictions(self, model: Any, *, missing: bool = False) -> Any:
        """Return predictions about all records, or residuals of a regressor."""
        sides = list(zip(self.sides, ("members", "non_members"), strict=True))
        if self.regression:
            return np.concatenate([residuals(model, *side, name) for side, name in sides])
        parts = [predict(model, *side, name, missing=missing) for side, name in sides]
        return Predictions(
            np.concatenate([part.probabilities for part in parts]),
            np.concatenate([part.label for part in parts]),
            parts[0].classes,
        )

    def _calibrated(self, signal: Callable[[Any], Array]) -> Callable[[Any], Array]:
        def answer(predictions: Any) -> Array:
            others = [signal(self._predictions(model, missing=True)) for model in self.references]
            return np.asarray(signal(predictions) - np.mean(others, axis=0))

        return answer

    def _label_only(self, rng: np.random.Generator) -> Array:
        change = self.augment if self.augment is not None else _default_change([side[0] for side in self.sides])
        right = [np.zeros(row_count(X)) for X, _ in self.sides]
        for _ in range(self.augmentations):
            for total, (X, y), name in zip(right, self.sides, ("members", "non_members"), strict=True):
                changed = change(X, rng)
                if row_count(changed) != row_count(X):
                    raise InputError(
                        f"augment must be a function that keeps the number of records, got {row_count(changed)} "
                        f"for {row_count(X)}"
                    )
                total += SIGNALS["correctness"][1](predict(self.model, changed, y, name))
        return np.asarray(np.concatenate(right) / self.augmentations)


def _log_probability(column: int, predictions: Predictions) -> Array:
    return log_probabilities(predictions)[:, column]


def _default_change(tables: list[Any]) -> Augment:
    return image_shifts() if all(np.ndim(X) >= 3 for X in tables) else feature_noise(tables)


def _sorted(query: Any) -> tuple[list[str], list[Question]]:
    """Return the names and the functions of a query."""
    single = isinstance(query, str) or callable(query) or not isinstance(query, Iterable)
    asked = [query] if single else list(query)
    names = [item for item in asked if isinstance(item, str)]
    questions = [item for item in asked if callable(item)]
    if not asked or len(names) + len(questions) < len(asked):
        raise InputTypeError(f"query must be names or functions (model, X, y), got {query!r}")
    if len(set(names)) < len(names):
        raise InputError(f"query must have different names, got {query!r}")
    return names, questions


def _joined(parts: list[Answers]) -> Answers:
    names = tuple(name for part in parts for name in part.names)
    if len(set(names)) < len(names):
        raise InputError(f"query must have functions of different names, got {', '.join(names)}")
    failed, remarks = (tuple(line for part in parts for line in getattr(part, kind)) for kind in ("failed", "remarks"))
    return Answers(names, np.column_stack([part.values for part in parts]), failed, remarks)


def _ask_callable(query: Question, model: Any, sides: tuple[Side, Side]) -> Answers:
    name = getattr(query, "__name__", "query").strip("<>")
    parts = [np.asarray(query(model, X, y), dtype=np.float64) for X, y in sides]
    for part, (X, _) in zip(parts, sides, strict=True):
        if part.ndim not in (1, 2) or len(part) != row_count(X):
            raise InputError(
                f"query must be a function that gives each of {row_count(X)} records a row, got {part.shape}"
            )
    if parts[0].shape[1:] != parts[1].shape[1:]:
        raise InputError(f"query must be a function of one width, got shapes {parts[0].shape} and {parts[1].shape}")
    table = np.concatenate([part.reshape(len(part), -1) for part in parts])
    width = table.shape[1]
    return Answers((name,) if width == 1 else tuple(f"{name} {i + 1}" for i in range(width)), table)


def _side(name: str, given: Any) -> Side:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputTypeError(f"{name} must be a pair (X, y), got {type(given).__name__}")
    X, y = given
    return (X if hasattr(X, "shape") else np.asarray(X)), np.asarray(y)


def _summary(parts: list[Answers]) -> str:
    """Return the names in one line; of many numbers of one function only the first and the last."""
    shown: list[str] = []
    for part in parts:
        few = part.names if len(part.names) <= MOST_NAMES else (part.names[0], "…", part.names[-1])
        shown += few
    return ", ".join(shown)


def _models(reference: Any) -> tuple[Any, ...]:
    if reference is None:
        return ()
    return tuple(reference) if isinstance(reference, list | tuple) else (reference,)
