"""Reference models: the same training on many random halves of the records, and audits that stand on them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.measuring.audit import Audit
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.people import People, people_in
from whosin.auditing.measuring.run import run_audit
from whosin.auditing.models import attacks
from whosin.auditing.models.predictions import predict, scaled_logit
from whosin.errors import InputError, InputTypeError, WhosinError, check_choice, check_number, check_whole
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal
from whosin.parallel.tasks import stream
from whosin.risks import Risk
from whosin.training.adapters import Adapter, as_adapter, row_count, take

__all__ = ["ATTACKS", "ReferenceModels", "audit_with_references"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_MODELS = 1_000_000

ATTACKS = ("lira", "lira_offline", "lira_rank", "lira_kde", "rmia", "rmia_online")


@dataclass(frozen=True, eq=False)
class ReferenceModels:
    """Scaled logits of many models on the same records, and which model was trained with which record."""

    logits: Array
    """Shape (models, records)."""
    included: Mask
    """Shape (models, records): whether the model was trained with the record."""
    X: Any = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    population: tuple[Any, NDArray[Any]] | None = field(default=None, repr=False)
    """Records that no model was trained with."""
    population_logits: Array | None = field(default=None, repr=False)
    seed: int = 0
    people: People | None = field(default=None, repr=False)
    """Whose each record is, where the records of a person were put in or left out together."""

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        models: int = 64,
        share: float = 0.5,
        person: Any = None,
        population: tuple[Any, Any] | None = None,
        n_jobs: int | None = None,
        rng: Any = None,
        cache: str | Path | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> ReferenceModels:
        """Train the estimator on many random parts of the records.

        Parameters
        ----------
        estimator : scikit-learn classifier, or Adapter
            What is trained; it stays untouched.
        X, y : records and labels
            The pool. Every record is in the training data of round(share·models) models, chosen at random.
        models : int
            Number of trainings.
        share : float
            Share of the models that are trained with a record.
        person : array-like, optional
            Whose each record is: all records of a person then go into the same models, and are audited as one.
        population : pair (X, y), optional
            Further records, in no training, for RMIA.
        n_jobs : int, optional
            Processes, as in joblib; inside ``joblib.parallel_config(backend="dask")`` or another backend of other
            machines the models are trained there. Each training has a seed of its own, and numerical libraries one
            thread, so the result does not depend on it.
        rng : optional
            Anything that ``numpy.random.default_rng`` takes; needed with ``cache``.
        cache : path, optional
            A folder where the scores of each model are kept as soon as it is trained, in a file for each set of models.
            A later call with the same data, estimator, settings and seed trains only what is missing.
        progress : callable, optional
            Called with the share of the models that are done.

        Notes
        -----
        One training and one prediction of all records a model; memory O(models·records).
        """
        labels = np.asarray(y)
        pool = X if hasattr(X, "shape") else np.asarray(X)
        size = row_count(pool)
        if labels.shape != (size,) or size < 2:
            raise InputError(
                f"X and y must have at least 2 records with one label each, got {size} and shape {labels.shape}"
            )
        if cache is not None and rng is None:
            raise InputError("rng is needed with cache=: a number, so that another run finds the same trainings")
        count = check_whole("models", models, low=2, high=MOST_MODELS)
        part = check_number("share", share, low=0.0, high=1.0, open_low=True, open_high=True)
        seed = int(np.random.default_rng(rng).integers(2**62))
        people = None if person is None else people_in(person, size)
        included = _assign(count, size, part, seed) if people is None else _by_person(count, people, part, seed)
        others = _population(population)
        adapter = as_adapter(estimator)
        training = _Training(adapter, pool, labels, others, included, seed)
        journal = None if cache is None else _journal(cache, training, part, people)
        table = np.empty((count, size + (0 if others is None else len(others[1]))))
        with closing(stream(training, range(count), n_jobs=n_jobs, journal=journal)) as found:
            for done, (number, scores) in enumerate(found, start=1):
                table[number] = scores
                if progress is not None:
                    progress(done / count)
        of_others = None if others is None else table[:, size:]
        return cls(table[:, :size], included, pool, labels, others, of_others, seed, people)

    def scores(
        self,
        target: Any,
        *,
        attack: str = "lira",
        variance: str = "auto",
        gamma: float = 2.0,
        a: float = 0.3,
    ) -> Array:
        """Return a membership score of every record for one target model.

        Parameters
        ----------
        target : model or int
            A trained model with predict_proba, or the number of a reference model, which is then set against the
            others (for each record with equally many models on either side, whatever the target's own side was).
        attack : {"lira", "lira_offline", "lira_rank", "lira_kde", "rmia", "rmia_online"}
            See :mod:`whosin.auditing.models.attacks`.
        variance : {"auto", "record", "global"}
            For LiRA.
        gamma, a : float
            For RMIA.
        """
        name = check_choice("attack", attack, ATTACKS)
        if isinstance(target, int | np.integer) and not isinstance(target, bool):
            place = check_whole("target", target, high=len(self.logits) - 1)
            own, inside, outside = self.logits[place], *self._without(place)
        else:
            place, own = None, self.logits_of(target)
            inside, outside = self.included, ~self.included
        given = own, self.logits, inside, outside
        if name == "lira_rank":
            return attacks.lira_rank(*given)
        if name.startswith("lira"):
            method = {"lira": attacks.lira, "lira_offline": attacks.lira_offline, "lira_kde": attacks.lira_kde}[name]
            return method(*given, variance=variance)
        population = self._population_logits(target, place)
        return attacks.rmia(*given, population=population, gamma=gamma, a=None if name == "rmia_online" else a)

    def logits_of(self, model: Any) -> Array:
        """Return the scaled logits of a model on the records."""
        return scaled_logit(predict(model, self.X, self.y, "X, y", missing=True))

    def _without(self, target: int) -> tuple[Mask, Mask]:
        """Return who was trained with and without each record, except the target and one more model.

        Every record is in a fixed number of models, so those left would tell on which side the target is. Leaving out
        one random model of the other side makes both counts, and their laws, the same. It is the same model for all
        records of a person: different ones would tell, together, which side was thinned.
        """
        inside, outside = self.included.copy(), ~self.included
        member = self.included[target]
        inside[target] = outside[target] = False
        owner = np.arange(inside.shape[1]) if self.people is None else self.people.number
        keys = np.random.default_rng([self.seed, target]).random((len(inside), int(owner.max()) + 1))[:, owner]
        for mask, rows in ((outside, member), (inside, ~member)):
            dropped = np.where(mask, keys, -1.0).argmax(axis=0)[rows]
            mask[dropped, np.flatnonzero(rows)] = False
        if inside.sum(axis=0).min() < 1 or outside.sum(axis=0).min() < 1:
            raise InputError(
                f"target must be a model of its own here: {len(self.logits)} reference models are too few to spare one"
            )
        return inside, outside

    def _population_logits(self, target: Any, place: int | None) -> tuple[Array, Array] | None:
        if self.population is None or self.population_logits is None:
            return None
        if place is not None:
            return self.population_logits[place], np.delete(self.population_logits, place, axis=0)
        return scaled_logit(predict(target, *self.population, "population", missing=True)), self.population_logits

    def __str__(self) -> str:
        return f"{len(self.logits)} reference models on {self.logits.shape[1]} records"


def audit_with_references(
    references: ReferenceModels,
    target: Any,
    included: Any = None,
    *,
    attack: str = "lira",
    variance: str = "auto",
    gamma: float = 2.0,
    a: float = 0.3,
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
    target : model or int
        A model with predict_proba, or the number of a reference model.
    included : array-like of bool, optional
        Which records of the pool the target was trained with; known for a reference model.
    attack, variance, gamma, a
        As in :meth:`ReferenceModels.scores`.
    prior, metric, confidence_level, groups, assignment, tolerate, rng, progress
        As in :func:`whosin.audit`. The assignment is "random" for a reference model.
    person : array-like, optional
        Whose each record of the pool is; by default as in :meth:`ReferenceModels.train`. The target must have been
        trained with all or with none of a person's records.

    Notes
    -----
    It is still one target: the audit says what leaks from this model. Scores of records of one training are not
    independent trainings; to test a DP claim, see :func:`whosin.auditing.runs.one_run.audit_one_run`.
    """
    if not isinstance(references, ReferenceModels):
        raise InputTypeError(f"references must be ReferenceModels, got {type(references).__name__}")
    own = isinstance(target, int | np.integer) and not isinstance(target, bool)
    scores = references.scores(target, attack=attack, variance=variance, gamma=gamma, a=a)
    members = _members(references, target if own else None, included)
    chosen = assignment if assignment is not None else ("random" if own else "unknown")
    owners = _owners(references, person, members)
    return run_audit(
        Experiment(scores[members], scores[~members], prior, (attack,), "continuous", owners),
        metric=metric,
        confidence_level=confidence_level,
        groups=groups,
        assignment=chosen,
        query=f"{attack} with {len(references.logits)} reference models",
        notes=("the attacker can train models like the target on records like these",),
        tolerate=tolerate,
        rng=rng,
        progress=progress,
    )


def _owners(references: ReferenceModels, person: Any, members: Mask) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the identifiers of members and of non-members, where people are told apart from records."""
    people = references.people if person is None else people_in(person, len(references.y))
    if people is None:
        return None
    people.sides(members, "train the references by ReferenceModels.train(…, person=…), and the target likewise")
    names = people.names[people.number]
    return names[members], names[~members]


def _members(references: ReferenceModels, target: int | None, included: Any) -> Mask:
    if target is not None:
        if included is not None:
            raise InputError("included is known for a reference model: leave it out, or pass the model itself")
        members = references.included[target]
    else:
        members = np.asarray(included)
        if members.shape != references.y.shape or members.dtype != np.bool_:
            raise InputError(
                f"included must be True or False for each of the {len(references.y)} records, got "
                f"{'nothing' if included is None else f'{members.dtype} of shape {members.shape}'}"
            )
    if members.all() or not members.any():
        raise InputError("included must hold records in and out of the training, got all on one side")
    return np.asarray(members)


@dataclass(frozen=True, eq=False)
class _Training:
    """The trainings of all reference models: called with the number of a model, it returns its scores."""

    adapter: Adapter
    X: Any
    y: NDArray[Any]
    population: tuple[Any, NDArray[Any]] | None
    included: Mask
    seed: int

    def __call__(self, number: int) -> Array:
        rows = self.included[number]
        try:
            rng = np.random.default_rng([self.seed, number])
            model = copy.deepcopy(self.adapter).fit(take(self.X, rows), self.y[rows], rng)
        except WhosinError:
            raise
        except Exception as error:
            raise InputError(
                f"estimator failed in training {number} on {int(rows.sum())} records: {type(error).__name__}: {error}"
            ) from error
        parts = [(self.X, self.y), *([self.population] if self.population is not None else [])]
        return np.concatenate([scaled_logit(predict(model, *part, "X, y", missing=True)) for part in parts])


def _journal(cache: str | Path, training: _Training, share: float, people: People | None) -> Journal:
    """Return the file of these trainings in the folder; only scores are kept there, no record and no model."""
    key = getattr(training.adapter, "cache_key", None)
    what = training.adapter if key is None else key()
    models = len(training.included)
    settings = (models, share, training.seed, *(() if people is None else (people.number,)))
    run = fingerprint(what, training.X, training.y, training.population, *settings)
    try:
        Path(cache).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cache must be a folder that can be written, got {str(cache)!r}: {error}") from error
    return Journal(Path(cache) / f"references-{run[:16]}.journal", run, name="cache")


def _assign(models: int, records: int, share: float, seed: int) -> Mask:
    """Return which model gets which record: for every record a random choice of round(share·models) models."""
    count = round(share * models)
    if not 1 <= count < models:
        raise InputError(f"share must be a share that leaves each record in and out of some model, got {share:g}")
    ranks = np.random.default_rng([seed, models]).random((models, records)).argsort(axis=0).argsort(axis=0)
    return np.asarray(ranks < count)


def _by_person(models: int, people: People, share: float, seed: int) -> Mask:
    """Return which model gets which record, all records of a person the same."""
    if len(people) < 2:
        raise InputError(f"person must have at least 2 people, got {len(people)}")
    return _assign(models, len(people), share, seed)[:, people.number]


def _population(given: Any) -> tuple[Any, NDArray[Any]] | None:
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputTypeError(f"population must be a pair (X, y), got {type(given).__name__}")
    X, y = (given[0] if hasattr(given[0], "shape") else np.asarray(given[0])), np.asarray(given[1])
    if y.shape != (row_count(X),) or y.size == 0:
        raise InputError(f"population must have records with one label each, got {row_count(X)} and shape {y.shape}")
    return X, y
