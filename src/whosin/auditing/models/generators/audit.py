"""Auditing a generative model: GANs by their discriminators and generators, others by what they generate."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.measuring.asking import Answers, ask, given_scores
from whosin.auditing.measuring.audit import Audit
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.run import run_audit
from whosin.auditing.models.generators.likelihoods import AUTOENCODER, DIFFUSION
from whosin.auditing.models.generators.queries import (
    NAMES,
    ModelRelease,
    called_scores,
    generate,
    known_queries,
    wanted_queries,
    with_names,
)
from whosin.auditing.releases.synthetic import audit_synthetic
from whosin.errors import InputError, InputTypeError, check_choice, check_whole, short_repr
from whosin.parallel.threads import number_of_threads, silent
from whosin.risks import Risk
from whosin.tables import as_table


def audit_generator(
    model: Any,
    train: Any,
    holdout: Any,
    *,
    query: str | Sequence[str] = "auto",
    synthetic: Any = None,
    n_samples: int | None = None,
    fit: bool | Mapping[str, Any] = False,
    labels: tuple[Any, Any] | None = None,
    scores: Mapping[str, Any] | None = None,
    restarts: int = 2,
    iterations: int = 100,
    prior: float = 0.5,
    metric: str | Risk = "advantage",
    groups: Any = None,
    confidence_level: float = 0.95,
    assignment: str = "unknown",
    person: Any = None,
    tolerate: float | None = None,
    n_jobs: int | None = None,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> Audit:
    """Measure what a generative model tells about who was in its training data.

    Parameters
    ----------
    model : object
        Anything with ``discriminators`` (functions from records to scores), ``generators`` with ``latent_size`` (torch
        modules), or ``sample(n)``: a model of :class:`whosin.training.GaussianCopula`, of SDV, or of your own.
    train, holdout : array of shape (n, ...) or data frame
        Records that the model was trained on, and others of the same population that it never saw.
    query : str or sequence of str, default "auto"
        What the attacker asks about a record: "discriminator" (its score, eq. 3), "max_discriminator" (the largest of
        several, eq. 5), "discriminators" (all of them, eq. 6), "nearest" (distance to the nearest generated record,
        eq. 2), "monte_carlo" (generated records nearby, eq. 1), "hybrid" (discriminator and nearest, eq. 4), "latent"
        (distance to the nearest record that the generator can make, found by a search; for a model that cannot be
        searched, that of many samples); of an autoencoder "elbo" and "reconstruction", of a diffusion model "pia",
        "secmi" and "denoising" (:mod:`whosin.auditing.models.generators.likelihoods`). "auto" asks all that the model
        can answer, but "latent" only if there is nothing else to ask. Several answers are combined by a score that is
        learned on records which are not reported. For data frames the queries are those of
        :func:`whosin.audit_synthetic`.
    synthetic : array or data frame, optional
        Records that the model generated; by default it generates ``n_samples``, as many as ``train`` has.
    n_samples : int, optional
        Records to generate.
    fit : bool or mapping, default False
        True trains a copy of the model on ``train`` first, a mapping does so with these arguments, such as
        ``{"epochs": 10}``. A synthesiser of SDV 2 gets the table under the name in its metadata.
    labels : pair of arrays, optional
        Labels of train and holdout, for conditional discriminators; a training started here gets the first as ``y`` if
        it takes that.
    scores : mapping, optional
        Anything else to ask, beside ``query``: a name, and a function (model, records) ↦ one number per record, called
        for train and for holdout, or the pair of its answers. With data frames larger ones must speak for membership.
    restarts, iterations : int, default 2 and 100
        Effort of the search of "latent".
    prior, metric, groups, confidence_level, tolerate, rng, progress
        As in :func:`whosin.audit`. ``rng`` also draws the samples and the starts of the search; by default they are the
        same every time.
    assignment : {"unknown", "random"}, default "unknown"
        Whether chance decided which records were trained on.
    person : pair of arrays, or str, optional
        Whose each record of train and of holdout is, as in :func:`whosin.audit`; for data frames the name of a column.
    n_jobs : int, optional
        Threads for distances.

    Returns
    -------
    Audit
        For data frames a :class:`whosin.auditing.SyntheticAudit`.

    Notes
    -----
    One pass of all records through the discriminators, two to twelve through an autoencoder or denoiser for each of
    their queries; O((train + holdout)·samples·columns) for distances; for "latent"
    ``restarts · iterations`` passes through the generator. The numbers speak of this model, trained once: another
    training may leak more or less. Xu et al. count the cells of a query of two dimensions in 10,000 bins, which
    exaggerates its advantage; here a score of both is learned on one half of the records and counted on the other.

    References
    ----------
    Xu, Mukherjee, Liu, Tople, Dodhia, Lavista Ferres (2022), MACE: a flexible framework for membership privacy
    estimation in generative models, equations 1-6. Hayes, Melis, Danezis, De Cristofaro (2019), LOGAN. Hilprecht,
    Härterich, Bernau (2019), Monte Carlo and reconstruction membership inference attacks. Chen, Yu, Zhang, Fritz
    (2020), GAN-Leaks. Duan, Kong, Wang, Shi, Xu (2023), Are diffusion models vulnerable to membership inference
    attacks? Kong et al. (2024), An efficient membership inference attack for the diffusion model by proximal
    initialization.

    Examples
    --------
    >>> import numpy as np
    >>> import whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = rng.normal(size=(100, 5)), rng.normal(size=(100, 5))
    >>> class Copier:
    ...     def sample(self, n, rng):
    ...         return train[rng.integers(len(train), size=n)] + 0.01
    >>> wi.audit_generator(Copier(), train, holdout).verdict.state
    'leak'
    """
    chance = np.random.default_rng(0 if rng is None else rng)
    check_choice("assignment", assignment, ("unknown", "random"))
    if synthetic is not None and n_samples is not None:
        raise InputTypeError("synthetic and n_samples exclude each other: give one of them")
    if synthetic is not None and fit is not False:
        raise InputTypeError("synthetic and fit exclude each other: what a new training generates is drawn from it")
    rows = _rows(train)
    count = rows if n_samples is None else check_whole("n_samples", n_samples, low=1)
    sides = None if _is_frame(train) else _arrays(train, holdout)
    classes = None if sides is None else _labels(labels, sides)
    common: dict[str, Any] = {
        "prior": prior,
        "metric": metric,
        "groups": groups,
        "confidence_level": confidence_level,
        "assignment": assignment,
        "person": person,
        "tolerate": tolerate,
        "rng": None if rng is None else chance,
    }
    trained, notes = train_copy(model, train, fit, None if classes is None else classes[:rows], chance)
    asked = called_scores(scores, trained, (train, holdout) if sides is None else sides)
    if sides is None:
        released = synthetic
        if synthetic is None:
            released = with_names(generate(trained, count, chance), as_table(train, "train").names)
        more: dict[str, Any] = {"scores": asked, "n_jobs": n_jobs, "progress": progress}
        found = audit_synthetic(train, holdout, released, query=query, **more, **common)
        return replace(found, notes=(*found.notes, *notes))
    report = progress if progress is not None else silent
    release = ModelRelease(
        trained,
        np.concatenate(sides),
        synthetic=synthetic,
        samples=count,
        labels=classes,
        scores_given=given_scores(asked, (rows, len(sides[1])), NAMES),
        restarts=restarts,
        iterations=iterations,
        n_jobs=number_of_threads(n_jobs),
        rng=chance,
        progress=lambda share: report(0.8 * share),
    )
    known = known_queries(release)
    answers = ask(release, known, wanted_queries(release, query))
    report(0.8)
    return run_audit(
        Experiment(answers.values[:rows], answers.values[rows:], prior, answers.names, "continuous", person),
        query=_asked(answers, known),
        notes=(
            *notes,
            *_access(release, answers),
            *answers.notes,
        ),
        progress=lambda share: report(0.8 + 0.2 * share),
        **{name: value for name, value in common.items() if name not in ("prior", "person")},
    )


def train_copy(
    model: Any, train: Any, fit: Any, labels: NDArray[Any] | None, rng: np.random.Generator
) -> tuple[Any, tuple[str, ...]]:
    """Return the model, or a copy of it trained here."""
    if fit is False:
        return model, ()
    if fit is not True and not isinstance(fit, Mapping):
        raise InputTypeError(f"fit must be True, False or a mapping of arguments, got {fit!r}")
    if inspect.isclass(model) or not callable(getattr(model, "fit", None)):
        raise InputTypeError(f"model must be an object with fit, got {short_repr(model)}")
    fresh = copy.deepcopy(model)
    arguments = {} if fit is True else dict(fit)
    signature = inspect.signature(fresh.fit)
    if "rng" in signature.parameters:
        arguments.setdefault("rng", int(rng.integers(2**62)))
    if "y" in signature.parameters and labels is not None:
        arguments.setdefault("y", labels)
    try:
        signature.bind(train, **arguments)
    except TypeError as error:
        raise InputTypeError(f"fit must be what {type(model).__name__}.fit needs: {error}") from None
    found = fresh.fit(_by_name(fresh, train), **arguments)
    trained = found if any(callable(getattr(found, name, None)) for name in ("sample", "generate")) else fresh
    return trained, ("the model was trained here, on the rows of train: it is not a model that someone has released",)


def _by_name(model: Any, train: Any) -> Any:
    """Return the training data; for a synthesiser of SDV 2, whose ``sample`` takes a table's name, as {name: table}."""
    tables = getattr(getattr(model, "metadata", None), "tables", None)
    method = getattr(model, "sample", None)
    named = callable(method) and "main_table_name" in inspect.signature(method).parameters
    if not named or not isinstance(tables, Mapping) or len(tables) != 1 or not _is_frame(train):
        return train
    import narwhals.stable.v2 as nw

    (name,) = tables
    return {name: nw.from_native(train, eager_only=True).to_pandas()}


def _rows(train: Any) -> int:
    try:
        return len(train)
    except TypeError:
        raise InputTypeError(f"train must be an array of numbers or a data frame, got {type(train).__name__}") from None


def _is_frame(train: Any) -> bool:
    return hasattr(train, "columns") or hasattr(train, "column_names")


def _arrays(train: Any, holdout: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    sides = []
    for name, given in (("train", train), ("holdout", holdout)):
        try:
            values = np.asarray(given)
        except ValueError:
            raise InputError(f"{name} must have records of one shape, got ragged ones") from None
        if values.dtype.kind not in "iuf":
            raise InputTypeError(f"{name} must be an array of numbers or a data frame, got {values.dtype}")
        if values.ndim < 2 or values.size == 0:
            raise InputError(f"{name} must have records of shape (n, ...), got {values.shape}")
        if not np.isfinite(values).all():
            raise InputError(f"{name} must hold finite numbers, got NaN or infinity")
        sides.append(values)
    if sides[0].shape[1:] != sides[1].shape[1:]:
        raise InputError(f"train and holdout must have records of one shape, got {sides[0].shape} and {sides[1].shape}")
    return sides[0], sides[1]


def _labels(labels: Any, sides: tuple[NDArray[Any], NDArray[Any]]) -> NDArray[Any] | None:
    if labels is None:
        return None
    if not isinstance(labels, tuple | list) or len(labels) != 2:
        raise InputTypeError("labels must be a pair: those of train and those of holdout")
    parts = [np.asarray(part) for part in labels]
    for part, side, name in zip(parts, sides, ("train", "holdout"), strict=True):
        if part.shape != (len(side),):
            raise InputError(f"labels must have one for each of the {len(side)} rows of {name}, got shape {part.shape}")
    return np.concatenate(parts)


def _asked(answers: Answers, known: Mapping[str, Any]) -> str:
    if len(answers.names) == 1:
        return str(known[answers.names[0]].says)
    return f"a learned combination of {', '.join(answers.names)}"


def _access(release: ModelRelease, answers: Answers) -> tuple[str, ...]:
    """Say what the attacker needs for the queries that were answered."""
    notes = ["the numbers speak of this model, trained once: another training may leak more or less"]
    if any("discriminator" in name for name in answers.names):
        notes.append("the attacker can ask the model's discriminator about a record")
    if {*AUTOENCODER, *DIFFUSION} & set(answers.names):
        notes.append("the attacker has the model and can ask it about a record")
    if "latent" in answers.names and release.can_search:
        notes.append("the attacker has the generator and searches its latents; a longer search may find more")
    if {"nearest", "monte_carlo"} & set(answers.names) or ("latent" in answers.names and not release.can_search):
        notes.append(f"the attacker sees {len(release.array.synthetic)} generated records; more may tell more")
    if "latent" in answers.names and not release.can_search:
        notes.append("the generator cannot be searched: the nearest of the generated records stands for it")
    return tuple(notes)
