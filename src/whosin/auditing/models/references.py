"""Reference models: the same training on many random halves of the records, and audits that stand on them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.auditing.measuring.audit import Audit
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.learned import learn_score
from whosin.auditing.measuring.people import People, people_in
from whosin.auditing.measuring.run import run_audit
from whosin.auditing.models.attacks import lira, lira_offline, rmia
from whosin.auditing.models.augmentations import Augment
from whosin.auditing.models.predictions import reference_score, regresses
from whosin.errors import (
    InputError,
    InputTypeError,
    WhosinError,
    check_callable,
    check_choice,
    check_truth,
    check_whole,
    short_repr,
)
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal, check_seeded
from whosin.parallel.storage import whole_file
from whosin.parallel.tasks import stream
from whosin.risks import Risk
from whosin.training.adapters import Adapter, as_adapter, row_count, take

Query = Callable[[Any, Any, Any], Any]

MOST_MODELS = 1_000_000
ATTACKS = ("auto", "lira", "lira_offline", "rmia", "rmia_offline")
SATURATED = 36.0
"""Log odds beyond this are those of probabilities 0 and 1."""
PSEUDO_TARGETS = 8
"""Reference models that the combination of attacks is learned on."""
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Constants of offline RMIA among which it chooses."""


@dataclass(frozen=True, eq=False, repr=False)
class ReferenceModels:
    """Scores of many models on the same records, and which model was trained with which record.

    Made by :meth:`train`, :meth:`from_scores` or :meth:`load`.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    >>> references = wi.ReferenceModels.train(DecisionTreeClassifier(), X, y, models=10, rng=0)
    >>> references.scores.shape, references.included.sum(axis=0)[:5].tolist()  # each record is in half of the models
    ((10, 1, 200), [5, 5, 5, 5, 5])
    """

    scores: Array
    """Shape (models, queries, records): one query, or one per augmented copy of the records as well."""
    included: Flags
    """Shape (models, records): whether the model was trained with the record."""
    X: Any = None
    y: Any = None
    log_odds: bool = True
    """Whether the scores are log odds of the records' labels, which RMIA takes."""
    seed: int = 0
    people: People | None = None
    """Whose each record is, where the records of a person were put in or left out together."""
    query: Query = reference_score
    augment: Augment | None = None
    sample_weight: Array | None = None

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        models: int = 64,
        query: Query | None = None,
        augment: Augment | None = None,
        augmentations: int = 2,
        sample_weight: Any = None,
        person: Any = None,
        n_jobs: int | None = None,
        rng: Any = None,
        journal: str | Path | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> ReferenceModels:
        """Train the estimator on many random halves of the records.

        Parameters
        ----------
        estimator : estimator like scikit-learn's, or Adapter
            What is trained, a classifier or a regressor; with a ``query``, anything. It stays untouched.
        X, y : records and labels
            The pool. A coin is tossed for each record: it is in the training data of one or the other of two models
            that follow each other.
        models : int
            Number of trainings.
        query : callable, optional
            (model, X, y) ↦ one number per record, larger for members: minus a loss, a likelihood. By default the log
            odds of the label, or minus the log residual of a regressor.
        augment : callable, optional
            (X, rng) ↦ slightly changed records, such as :func:`image_shifts`: the models are also asked about
            ``augmentations`` changed copies of the records, the same for all. It helps where models are trained with
            such copies.
        sample_weight : array-like, optional
            A weight for each record, given to ``fit``.
        person : array-like, optional
            Whose each record is: all records of a person then go into the same models, and are audited as one.
        n_jobs : int, optional
            Processes, as in joblib; inside ``joblib.parallel_config(backend="dask")`` or another backend of other
            machines the models are trained there. Each training has a seed of its own, and numerical libraries one
            thread, so the result does not depend on it.
        rng : optional
            Anything that ``numpy.random.default_rng`` takes; needed with ``journal``.
        journal : path, optional
            A file where the scores of each model are kept as soon as it is trained, no record and no model. A later
            call with the same data, estimator, settings and seed, for as many models or more, trains only what is
            missing.
        progress : callable, optional
            Called with the share of the models that are done.

        Notes
        -----
        One training and one prediction of all records (and of all copies) per model; memory O(models·queries·records).

        Examples
        --------
        >>> import numpy as np
        >>> import whosin as wi
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
        >>> references = wi.ReferenceModels.train(DecisionTreeClassifier(), X, y, models=10, rng=0)
        >>> print(references)
        10 reference models on 200 records
        >>> print(references.grow(DecisionTreeClassifier(), 20))  # trains ten more
        20 reference models on 200 records
        """
        pool = X if hasattr(X, "shape") else np.asarray(X)
        size = row_count(pool)
        labels = None if y is None else np.asarray(y)
        if size < 2 or (labels is not None and labels.shape != (size,)) or (labels is None and query is None):
            got = "no labels and no query" if labels is None else f"shape {labels.shape}"
            raise InputError(f"X and y must be at least 2 records with one label each, got {size} and {got}")
        check_seeded(journal, rng)
        people = None if person is None else people_in(person, size)
        if people is not None and len(people) < 2:
            raise InputError(f"person must name at least 2 people, got {len(people)}")
        copies = 0 if augment is None else check_whole("augmentations", augmentations, low=1)
        empty = cls(
            np.empty((0, 1 + copies, size)),
            np.empty((0, size), dtype=bool),
            pool,
            labels,
            log_odds=query is None and not regresses(getattr(estimator, "estimator", estimator), labels),
            seed=int(np.random.default_rng(rng).integers(2**62)),
            people=people,
            query=reference_score if query is None else check_callable("query", query),
            augment=None if augment is None else check_callable("augment", augment),
            sample_weight=None if sample_weight is None else _weights(sample_weight, size),
        )
        check_whole("models", models, low=2, high=MOST_MODELS)
        return empty.grow(estimator, models, n_jobs=n_jobs, journal=journal, progress=progress)

    def grow(
        self,
        estimator: Any,
        models: int,
        *,
        n_jobs: int | None = None,
        journal: str | Path | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> ReferenceModels:
        """Return these models and as many more as make ``models``, the same as if all had been trained at once.

        ``estimator`` is that of the first training; the rest is as in :meth:`train`. Models that were trained elsewhere
        (:meth:`from_scores`) stay as they are, and the others get halves of their own.
        """
        known = len(self.included)
        count = check_whole("models", models, low=known, high=MOST_MODELS)
        if self.X is None:
            raise InputError("X and y must be known to train more models: give them to ReferenceModels.load")
        if count == known:
            return self
        included = _halves(count, row_count(self.X), self.seed, self.people)
        elsewhere = not np.array_equal(included[:known], self.included)
        included[:known] = self.included
        training = _Training(as_adapter(estimator), self, included, elsewhere)
        book = None if journal is None else Journal(journal, training.run())
        table = np.empty((count, *self.scores.shape[1:]))
        with closing(stream(training, range(count), n_jobs=n_jobs, journal=book)) as found:
            for done, (number, scores) in enumerate(found, start=1):
                table[number] = scores
                if progress is not None:
                    progress(done / count)
        return dataclasses.replace(self, scores=table, included=included)

    @classmethod
    def from_scores(cls, scores: Any, included: Any, *, log_odds: bool = False, person: Any = None) -> ReferenceModels:
        """Return reference models that were trained elsewhere, from any score that they give to records.

        Parameters
        ----------
        scores : array of shape (models, records) or (models, queries, records)
            Larger for members: minus a loss, a likelihood, a reconstruction error with its sign turned.
        included : array of the same models and records
            Whether (1 or 0) the model was trained with the record, decided by coins: independent ones, or such that
            every second model has the records which the one before lacks.
        log_odds : bool
            Whether the scores are log odds, ln p/(1-p), of the records' labels, which RMIA takes.
        person : array-like, optional
            As in :meth:`train`.

        Examples
        --------
        >>> import numpy as np
        >>> import whosin as wi
        >>> rng = np.random.default_rng(0)
        >>> included = rng.random((20, 300)) < 0.5
        >>> scores = rng.normal(size=(20, 300)) + 3 * included
        >>> references = wi.ReferenceModels.from_scores(scores, included)
        >>> wi.audit_with_references(references, 0).advantage.lower > 0.5
        True
        """
        try:
            table = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputTypeError(f"scores must be an array of numbers, got {short_repr(scores)}") from None
        table = table[:, None, :] if table.ndim == 2 else table
        if table.ndim != 3 or table.size == 0 or not np.isfinite(table).all():
            raise InputError(
                f"scores must be finite numbers of shape (models, records) or (models, queries, records), got shape "
                f"{np.shape(scores)}, or NaN or infinity"
            )
        inside = check_truth("included", included, (len(table), table.shape[2]))
        people = None if person is None else people_in(person, table.shape[2])
        return cls(table, inside, log_odds=log_odds, people=people)

    def save(self, path: str | Path) -> None:
        """Write scores and inclusion to a file (.npz); neither records nor labels, names of people nor weights."""
        people = np.zeros(0) if self.people is None else self.people.number
        settings = np.array(self.seed), np.array(self.log_odds)
        try:
            with whole_file(Path(path)) as draft, open(draft, "wb") as file:
                np.savez_compressed(
                    file,
                    scores=self.scores,
                    included=self.included,
                    people=people,
                    seed=settings[0],
                    log_odds=settings[1],
                )
        except OSError as error:
            raise InputError(f"path must be a file that can be written, got {str(path)!r}: {error}") from error

    @classmethod
    def load(cls, path: str | Path, X: Any = None, y: Any = None, **settings: Any) -> ReferenceModels:
        """Read what :meth:`save` wrote.

        ``X`` and ``y``, the records as they were, are needed to ask a new target and to :meth:`grow`; so are ``query``,
        ``augment`` and ``sample_weight`` where they were used. People are known by number.
        """
        try:
            with np.load(path, allow_pickle=False) as kept:
                parts = {name: kept[name] for name in ("scores", "included", "people", "seed", "log_odds")}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"path must be a file that save wrote, got {str(path)!r}: {error}") from error
        person = parts["people"] if parts["people"].size else None
        found = cls.from_scores(parts["scores"], parts["included"], log_odds=bool(parts["log_odds"]), person=person)
        pool = X if X is None or hasattr(X, "shape") else np.asarray(X)
        if pool is not None and row_count(pool) != found.included.shape[1]:
            raise InputError(f"X must be the {found.included.shape[1]} records as they were, got {row_count(pool)}")
        labels = None if y is None else np.asarray(y)
        return dataclasses.replace(found, X=pool, y=labels, seed=int(parts["seed"]), **settings)

    @property
    def logits(self) -> Array:
        """The scores of the records as they are, shape (models, records)."""
        return self.scores[:, 0]

    def scores_of(self, target: Any) -> Array:
        """Return the scores (queries, records) of a model; those of a reference model by number; or given ones."""
        if _is_number(target):
            return np.asarray(self.scores[check_whole("target", target, high=len(self.scores) - 1)])
        if isinstance(target, np.ndarray | list | tuple):
            given = np.asarray(target)
            given = given[None] if given.ndim == 1 else given
            if given.shape != self.scores.shape[1:] or given.dtype.kind not in "iuf" or not np.isfinite(given).all():
                raise InputError(
                    f"target must be finite scores of shape {self.scores.shape[1:]}, got {given.dtype} of shape "
                    f"{np.shape(target)}, or NaN or infinity"
                )
            return np.asarray(given, dtype=np.float64)
        if self.X is None:
            raise InputError("target must be scores, or the number of a model: these references know no records")
        return _answers(target, self)

    def attack(self, target: Any, attack: str = "auto") -> Array:
        """Return a membership score of every record for one target model.

        Parameters
        ----------
        target : model, array of scores, or int
            A trained model, its scores of all records, or the number of a reference model, which is then set against
            the others. The model with the opposite half is left out too: it would tell on which side the target is.
        attack : {"auto", "lira", "lira_offline", "rmia", "rmia_offline"}
            See :mod:`whosin.auditing.models.attacks`. "auto" learns a combination of all of them and of the score
            itself on eight of the reference models, each attacked by the others, and takes a single attack instead
            where that finds more there; with fewer than six models to learn from it is "rmia", or "lira" where the
            scores are no log odds. "rmia_offline" chooses its constant likewise.
            Over several queries attacks are averaged; "auto" weighs each.

        Notes
        -----
        O(models·queries·records), for "auto" and "rmia_offline" for each of eight pseudo-targets. Where log odds are
        those of probabilities 0 and 1, they count as if twice (or half) the largest odds of all others.
        """
        name = check_choice("attack", attack, ATTACKS)
        if name.startswith("rmia") and not self.log_odds:
            raise InputError(f"attack must be auto, lira or lira_offline for scores that are no log odds, got {name!r}")
        own, scores, included = self.scores_of(target), self.scores, self.included
        if _is_number(target):
            others = self._others(int(target))
            scores, included = scores[others], included[others]
            if not others.any() or len(np.unique(included.sum(axis=0) + self.included[target])) == 1:
                raise InputError(
                    f"target must be a model of its own here: of {len(self.scores)} reference models none is left, or "
                    "those left tell its side, as they have every record a fixed number of times with it"
                )
        if self.log_odds:
            limit = _largest_odds(scores)
            own, scores = np.clip(own, -limit, limit), np.clip(scores, -limit, limit)
        known = dataclasses.replace(self, scores=scores, included=included)
        if name == "auto" and not known._can_learn():
            name = "rmia" if self.log_odds else "lira"
        if name == "auto":
            return known._stacked(own)
        a = known._tuned_level() if name == "rmia_offline" else None
        return np.asarray(np.mean([_single(name, *one, included, a) for one in _by_query(own, scores)], axis=0))

    def _others(self, target: int) -> Flags:
        """Return the models that are left when a target is not used, and none with its half or the opposite one."""
        same = self.included == self.included[target]
        return np.asarray(same.any(axis=1) & ~same.all(axis=1))

    def _pseudo_targets(self) -> Iterator[tuple[Array, Array, Flags, Flags]]:
        """Yield own scores, others' scores, others' inclusion and own inclusion of some models taken for targets."""
        for place in np.unique(np.linspace(0, len(self.scores) - 1, PSEUDO_TARGETS).astype(int)):
            others = self._others(int(place))
            yield self.scores[place], self.scores[others], self.included[others], self.included[place]

    def _can_learn(self) -> bool:
        """Whether each pseudo-target leaves two models on either side of every record."""
        sums = (np.stack([inside.sum(axis=0), (~inside).sum(axis=0)]) for _, _, inside, _ in self._pseudo_targets())
        return len(self.scores) >= 6 and min(int(counts.min()) for counts in sums) >= 2

    def _stacked(self, own: Array) -> Array:
        """Return the learned combination, or the attack that beats it in area on the pseudo-targets."""
        seen = [(self._features(*one[:3]), one[3]) for one in self._pseudo_targets()]
        table, member = np.concatenate([part for part, _ in seen]), np.concatenate([side for _, side in seen])
        score, _ = learn_score(table[member], table[~member], np.random.default_rng(0), quadratic=False)

        def ways(answers: Array) -> list[Array]:
            by_query = answers.reshape(len(answers), len(own), -1)
            return [score(answers), *by_query.mean(axis=1).T]

        both = [(part, side) for part, side in seen if side.any() and not side.all()]
        areas = np.array([[_auc(way, side) for way in ways(part)] for part, side in both])
        return ways(self._features(own, self.scores, self.included))[int(np.argmax(areas.sum(axis=0)))]

    def _features(self, own: Array, scores: Array, included: Flags) -> Array:
        columns = []
        for target, others in _by_query(own, scores):
            columns += [target, lira(target, others, included), lira_offline(target, others, included)]
            if self.log_odds:
                columns += [rmia(target, others, included), rmia(target, others, included, a=1.0)]
        return np.column_stack(columns)

    def _tuned_level(self) -> float:
        """Return the constant of offline RMIA that finds most on pseudo-targets."""
        gains = np.zeros(len(LEVELS))
        for own, scores, included, member in self._pseudo_targets():
            if member.any() and not member.all() and not included.all(axis=0).any():
                ways = [np.mean([rmia(*one, included, a=a) for one in _by_query(own, scores)], axis=0) for a in LEVELS]
                gains += [_auc(way, member) for way in ways]
        return LEVELS[int(np.argmax(gains))]

    def __repr__(self) -> str:
        return f"{len(self.scores)} reference models on {self.scores.shape[2]} records"


def audit_with_references(
    references: ReferenceModels,
    target: Any,
    included: Any = None,
    *,
    attack: str = "auto",
    prior: float = 0.5,
    metric: str | Risk = "advantage",
    confidence_level: float = 0.95,
    groups: Any = None,
    assignment: str | None = None,
    person: Any = None,
    tolerate: float | None = None,
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> Audit:
    """Audit a model by an attack that knows how other models, with and without each record, treat it.

    Parameters
    ----------
    references : ReferenceModels
        Models on the same pool of records.
    target : model, array of scores, int, or sequence of int
        A model, its scores of all records, or the number of a reference model. With the numbers of several, each
        record is asked about one of them, drawn by lot: the audit then speaks of these trainings on average.
    included : array-like of 0 and 1, optional
        Which records of the pool the target was trained with; known for a reference model.
    attack : {"auto", "lira", "lira_offline", "rmia", "rmia_offline"}
        As in :meth:`ReferenceModels.attack`. "auto" learns on other reference models: the combination of
        all, or the one that finds more.
    prior, metric, confidence_level, groups, assignment, tolerate, rng, progress
        As in :func:`whosin.audit`. The assignment is "random" for a reference model.
    person : array-like, optional
        Whose each record of the pool is; by default as in :meth:`ReferenceModels.train`. The target must have been
        trained with all or with none of a person's records.

    Notes
    -----
    The audit says what leaks from this model, or from these. Scores of records of one training are not
    independent trainings; to test a DP claim, see :func:`whosin.audit_one_run`. Cost: that of
    :meth:`ReferenceModels.attack` and of :func:`whosin.audit`.

    The combination is learned on models other than the target and its opposite half, so that the scores of a record
    depend on the target's training through the target's own answers only: where these tell nothing, limits hold at
    their level.

    Examples
    --------
    >>> import numpy as np
    >>> import whosin as wi
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    >>> half = rng.random(200) < 0.5
    >>> model = DecisionTreeClassifier(random_state=0).fit(X[half], y[half])
    >>> references = wi.ReferenceModels.train(DecisionTreeClassifier(), X, y, models=10, rng=0)
    >>> wi.audit_with_references(references, model, half).verdict.state
    'leak'
    """
    if not isinstance(references, ReferenceModels):
        raise InputTypeError(f"references must be ReferenceModels, got {type(references).__name__}")
    several = isinstance(target, Sequence) and len(target) > 0 and all(_is_number(one) for one in target)
    own = several or _is_number(target)
    known: Flags | None = None
    if several:
        scores, known = _pooled(references, target, attack, rng, _people(references, person))
    else:
        scores = references.attack(target, attack)
        known = references.included[target] if own else None
    members = _members(references, known, included)
    return run_audit(
        Experiment(
            scores[members], scores[~members], prior, (attack,), "continuous", _owners(references, person, members)
        ),
        metric=metric,
        confidence_level=confidence_level,
        groups=groups,
        assignment=assignment if assignment is not None else ("random" if own else "unknown"),
        query=f"{attack} with {len(references.scores)} reference models",
        notes=(
            "the attacker can train models like the target on records like these",
            *((f"each record was asked about one of {len(set(target))} models, drawn by lot",) if several else ()),
        ),
        tolerate=tolerate,
        rng=rng,
        progress=progress,
    )


def _pooled(
    references: ReferenceModels, targets: Sequence[Any], attack: str, rng: Any, people: People | None
) -> tuple[Array, Flags]:
    """Return for each record the score by one of the targets, drawn by lot, and whether that one was trained with it.

    Scores of different targets have different scales, so each is replaced by its share of smaller ones.
    """
    numbers = list(dict.fromkeys(check_whole("target", one, high=len(references.scores) - 1) for one in targets))
    found = np.array([references.attack(number, attack) for number in numbers])
    ranks = np.array([(np.searchsorted(np.sort(row), row, "left") + 0.5) / len(row) for row in found])
    size = found.shape[1] if people is None else len(people)
    lot = np.random.default_rng(0 if rng is None else rng).integers(len(numbers), size=size)
    chosen = lot if people is None else lot[people.number]
    places = np.arange(found.shape[1])
    return ranks[chosen, places], references.included[np.array(numbers)[chosen], places]


def _people(references: ReferenceModels, person: Any) -> People | None:
    return references.people if person is None else people_in(person, references.included.shape[1])


def _owners(references: ReferenceModels, person: Any, members: Flags) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the identifiers of members and of non-members, where people are told apart from records."""
    people = _people(references, person)
    if people is None:
        return None
    people.sides(members, "train the references by ReferenceModels.train(…, person=…), and the target likewise")
    names = people.names[people.number]
    return names[members], names[~members]


def _members(references: ReferenceModels, known: Flags | None, included: Any) -> Flags:
    if known is not None and included is not None:
        raise InputError("included must be left out for a reference model, for which it is known")
    members = known if known is not None else check_truth("included", included, references.included.shape[1:])
    if members.all() or not members.any():
        raise InputError("included must have records in and out of the training, got all on one side")
    return members


def _is_number(target: Any) -> bool:
    return isinstance(target, int | np.integer) and not isinstance(target, bool)


def _by_query(own: Array, scores: Array) -> Iterator[tuple[Array, Array]]:
    return ((own[query], scores[:, query]) for query in range(len(own)))


def _single(name: str, own: Array, scores: Array, included: Flags, a: float | None) -> Array:
    if name.startswith("rmia"):
        return rmia(own, scores, included, a=a)
    return (lira if name == "lira" else lira_offline)(own, scores, included)


def _largest_odds(scores: Array) -> float:
    """Return where log odds are cut: ln 2 beyond the largest of probabilities other than 0 and 1."""
    usual = np.abs(scores)[np.abs(scores) <= SATURATED]
    return float(usual.max() + np.log(2.0)) if usual.size else SATURATED


def _auc(scores: Array, member: Flags) -> float:
    from scipy.stats import rankdata

    inside = int(member.sum())
    return float((rankdata(scores)[member].mean() - (inside + 1) / 2) / (len(scores) - inside))


@dataclass(frozen=True, eq=False)
class _Training:
    """The trainings of all reference models: called with the number of a model, it returns its scores."""

    adapter: Adapter
    references: ReferenceModels
    included: Flags
    elsewhere: bool
    """Whether the models that are known have other halves than the seed gives."""

    def __call__(self, number: int) -> Array:
        known, rows = self.references, np.flatnonzero(self.included[number])
        if number < len(known.scores):
            return np.asarray(known.scores[number])
        rng = np.random.default_rng([known.seed, number])
        more = {} if known.sample_weight is None else {"sample_weight": known.sample_weight[rows]}
        labels = None if known.y is None else known.y[rows]
        try:
            adapter = copy.deepcopy(self.adapter)
        except Exception as error:
            raise InputError(
                "estimator must be one that can be copied, so that each training starts afresh (keep open files, locks "
                f"and connections out of it, or make them in fit), got {type(error).__name__}: {error}"
            ) from error
        try:
            model = adapter.fit(take(known.X, rows), labels, rng, **more)
        except WhosinError:
            raise
        except Exception as error:
            raise InputError(
                f"estimator failed in training {number} on {len(rows)} records: {type(error).__name__}: {error}"
            ) from error
        return _answers(model, known)

    def run(self) -> str:
        """What the scores depend on; not how many models there are."""
        known = self.references
        owner = None if known.people is None else known.people.number
        settings = (known.query, known.augment, known.scores.shape[1], known.sample_weight)
        others = (known.scores, known.included) if self.elsewhere else ()
        return fingerprint("reference models", self.adapter, known.X, known.y, known.seed, owner, settings, *others)


def _answers(model: Any, references: ReferenceModels) -> Array:
    """Return a model's scores of the records and of their changed copies, which are the same for every model."""
    known, rows = references, []
    if known.query is reference_score and not known.log_odds and not regresses(model, known.y):
        raise InputError("query must be given, the function that gave the other scores: they are no log odds of labels")
    if known.augment is None and known.scores.shape[1] > 1:
        raise InputError("augment must be given, the function that changed the records for the other scores")
    for copy_number in range(known.scores.shape[1]):
        X = known.X
        if copy_number and known.augment is not None:
            X = known.augment(X, np.random.default_rng([known.seed, MOST_MODELS, copy_number]))
        row = np.asarray(known.query(model, X, known.y))
        size = row_count(known.X)
        if row.shape != (size,) or row.dtype.kind not in "biuf" or not np.isfinite(row).all():
            raise InputError(
                f"query must give each of {size} records a finite number, got {row.dtype} of shape {row.shape}, or NaN "
                "or infinity"
            )
        rows.append(row.astype(np.float64))
    return np.array(rows)


def _halves(models: int, records: int, seed: int, people: People | None) -> Flags:
    """Return which model gets which record: a coin for each record (or person) and each pair of models."""
    units = records if people is None else len(people)
    rows = []
    for pair in range((models + 1) // 2):
        rng = np.random.default_rng([seed, MOST_MODELS, 0, pair])
        coins = rng.random(units) < 0.5
        while coins.all() or not coins.any():
            coins = rng.random(units) < 0.5
        rows += [coins, ~coins]
    table = np.array(rows[:models])
    return table if people is None else table[:, people.number]


def _weights(given: Any, size: int) -> Array:
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"sample_weight must be numbers, got {short_repr(given)}") from None
    if weights.shape != (size,):
        raise InputError(f"sample_weight must be {size} numbers, got shape {weights.shape}")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InputError(
            f"sample_weight must be finite numbers of at least 0, got {weights[bad][0]} in row {bad.argmax()}"
        )
    return weights
