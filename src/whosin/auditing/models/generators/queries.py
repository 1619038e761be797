"""Queries on a generative model: its discriminators, its generator, and what it generates (Xu et al. 2022, eq. 1-6).

A model is any object with ``discriminators`` (functions from records to scores), with ``generators`` and
``latent_size`` (torch modules), with ``sample``, or one of :mod:`whosin.auditing.models.generators.likelihoods`; each
query takes one of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.auditing.measuring.asking import Query
from whosin.auditing.models.generators.latents import latent_distances, torch_modules
from whosin.auditing.models.generators.likelihoods import AUTOENCODER, DIFFUSION, is_autoencoder, is_diffusion
from whosin.auditing.releases.queries import arrays
from whosin.auditing.releases.queries.arrays import ArrayRelease
from whosin.errors import InputError, InputTypeError, WhosinError, short_repr

NAMES = (
    *("discriminator", "latent", "nearest", "monte_carlo", "hybrid", "max_discriminator", "discriminators"),
    *AUTOENCODER,
    *DIFFUSION,
)


def discriminator_scores(model: Any, records: Any, labels: Any = None) -> Array:
    """Return the scores of all discriminators, one row per record and one column a discriminator (eq. 6).

    Equation 3 is its only column if there is one, equation 5 the maximum of each row.

    Parameters
    ----------
    model : object with ``discriminators``
        A sequence of functions from records to one score each; or a single one.
    records : array of shape (n, ...)
        As the discriminators take them.
    labels : array, optional
        Passed to the discriminators as their second argument, for conditional models.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from whosin.auditing.models.generators.queries import discriminator_scores
    >>> gan = SimpleNamespace(discriminators=[lambda x: x.sum(axis=1), lambda x: -x[:, 0]])
    >>> discriminator_scores(gan, np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[3.0, -1.0], [7.0, -3.0]]
    """
    given = getattr(model, "discriminators", None)
    functions = (given,) if callable(given) else tuple(given or ())
    if not functions or not all(callable(function) for function in functions):
        raise InputTypeError(f"model must be an object with discriminators for this query, got {type(model).__name__}")
    rest = () if labels is None else (labels,)
    columns = []
    for number, function in enumerate(functions):
        if rest and not _takes(function, records, *rest):
            raise InputError("labels must be None for discriminators without a second argument")
        column = np.asarray(function(records, *rest))
        if column.size != len(records) or column.dtype.kind not in "biuf":
            raise InputError(
                f"model must have discriminators that score each of {len(records)} records by a number, got "
                f"{column.dtype} of shape {column.shape} from discriminator {number}"
            )
        columns.append(column.reshape(-1).astype(np.float64))
    return np.column_stack(columns)


def generate(model: Any, n: int, rng: np.random.Generator) -> Any:
    """Return n generated records of a model with ``sample`` (or ``generate``), seeded where it takes a seed.

    ``sample`` may take the seed as ``rng``, ``random_state`` or ``seed``. Of a pair (records, labels) the records are
    returned, of an object with ``dataframe()`` that frame, of a mapping of one name to a frame, as in SDV 2, the frame.
    """
    method = getattr(model, "sample", None) or getattr(model, "generate", None)
    if inspect.isclass(model) or not callable(method):
        raise InputTypeError(f"model must be an object with sample(n) for this query, got {short_repr(model)}")
    known = _parameters(method)
    seed = next((name for name in ("random_state", "seed") if name in known), None)
    chance: dict[str, Any] = {}
    if "rng" in known:
        chance["rng"] = rng
    elif seed is not None:
        chance[seed] = int(rng.integers(2**31))
    try:
        made = method(n, **chance)
    except (WhosinError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"model must be an object that can generate {n} records, got from it {type(error).__name__}: {error}"
        ) from error
    made = made[0] if isinstance(made, tuple) else made
    if isinstance(made, Mapping) and len(made) == 1:
        (only,) = made.values()
        made = only if hasattr(only, "columns") else made
    return made.dataframe() if callable(getattr(made, "dataframe", None)) else made


def with_names(made: Any, names: Sequence[str]) -> Any:
    """Return what a model made of a frame with the names of its columns, if it made an array as wide."""
    if not isinstance(made, np.ndarray) or made.ndim != 2 or made.shape[1] != len(names):
        return made
    return dict(zip(names, made.T, strict=True))


def _takes(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _parameters(method: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return ()


@dataclass(frozen=True, eq=False)
class ModelRelease:
    """A model, and the records that it is asked about (training rows, then held-out rows)."""

    model: Any
    records: NDArray[Any]
    synthetic: Any = None
    """Generated records; by default ``samples`` of them are drawn when they are needed."""
    samples: int = 1
    labels: Any = None
    """Labels of the records, for conditional discriminators."""
    scores_given: Mapping[str, Array] = field(default_factory=dict)
    """Further scores of the records."""
    restarts: int = 2
    iterations: int = 100
    n_jobs: int | None = None
    rng: np.random.Generator = field(kw_only=True)
    progress: Callable[[float], None] | None = None

    @cached_property
    def _chances(self) -> list[np.random.Generator]:
        """Those of the samples and of the search."""
        return self.rng.spawn(2)

    @property
    def can_generate(self) -> bool:
        """Whether there are generated records, or a way to make them."""
        methods = (getattr(self.model, name, None) for name in ("sample", "generate"))
        return self.synthetic is not None or any(callable(method) for method in methods)

    @property
    def can_search(self) -> bool:
        """Whether there are torch modules to search for the nearest latent."""
        return bool(torch_modules(getattr(self.model, "generators", ()))) and hasattr(self.model, "latent_size")

    @property
    def discriminator_count(self) -> int:
        """Number of discriminators."""
        given = getattr(self.model, "discriminators", None)
        return 1 if callable(given) else len(given or ())

    @cached_property
    def scores(self) -> Array:
        """The discriminators' scores, one column each."""
        return discriminator_scores(self.model, self.records, self.labels)

    @cached_property
    def array(self) -> ArrayRelease:
        """The generated records next to the targets, as rows."""
        made = self.synthetic if self.synthetic is not None else generate(self.model, self.samples, self._chances[0])
        try:
            rows = np.asarray(made)
        except ValueError:
            raise InputError("synthetic must have records of one shape, got ragged ones") from None
        if rows.dtype.kind not in "iuf" or rows.ndim < 2 or len(rows) == 0 or not np.isfinite(rows).all():
            raise InputError(
                f"synthetic must hold finite numbers, one row per record, got {rows.dtype} of {rows.shape}"
            )
        if rows[0].size != self.records[0].size:
            raise InputError(f"synthetic must be records like train, of {self.records.shape[1:]}, got {rows.shape[1:]}")
        flat = [part.reshape(len(part), -1).astype(np.float64) for part in (self.records, rows)]
        return ArrayRelease(flat[0], flat[1], n_jobs=self.n_jobs, progress=self.progress)

    @cached_property
    def latent_distance(self) -> Array:
        """Distance to the nearest record that the generators can make; of many samples, if they cannot be searched."""
        if not self.can_search:
            return self.array.distance
        return latent_distances(
            self.model.generators,
            self.records,
            latent_size=self.model.latent_size,
            restarts=self.restarts,
            iterations=self.iterations,
            rng=self._chances[1],
            progress=self.progress,
        )


def called_scores(scores: Any, model: Any, sides: tuple[Any, Any]) -> Any:
    """Return the caller's scores with the functions among them called about each side."""
    if not isinstance(scores, Mapping):
        return scores
    found = dict(scores)
    for name, score in scores.items():
        if callable(score):
            try:
                found[name] = tuple(_detached(score(model, side)) for side in sides)
            except Exception as error:
                raise InputError(
                    f"scores must be functions (model, records), or pairs, got from {name!r} {type(error).__name__}: "
                    f"{error}"
                ) from error
    return found


def _detached(values: Any) -> Any:
    """Return a torch tensor without its gradients, in the memory of this machine; others as they are."""
    return values.detach().cpu() if hasattr(values, "detach") else values


def known_queries(release: ModelRelease) -> dict[str, Query]:
    """Return the queries of one number each; those of several numbers are lists of these."""
    count = release.discriminator_count
    single = {
        "discriminator": Query("the discriminator's score (MACE, eq. 3; Hayes et al.)", lambda r: r.scores[:, 0]),
        "max_discriminator": Query(
            "the largest score of all discriminators (MACE, eq. 5)", lambda r: np.asarray(r.scores.max(axis=1))
        ),
        "latent": Query(
            "minus the distance to the nearest record that the generator can make (Chen et al.)",
            lambda r: -r.latent_distance,
        ),
        "nearest": Query(
            "minus the distance to the nearest generated record (MACE, eq. 2)", lambda r: -r.array.distance
        ),
        "monte_carlo": Query(
            "generated records near the record, weighted by nearness (MACE, eq. 1, in units of the radius)",
            lambda r: arrays.QUERIES["ball_by_distance"].answer(r.array),
        ),
    }
    vector = {
        f"discriminator {i + 1}": Query("one discriminator's score (MACE, eq. 6)", partial(_score, i))
        for i in range(count)
    }
    explained = {**AUTOENCODER, **DIFFUSION}
    likely = {name: Query(says, partial(_explained, name, question)) for name, (says, question) in explained.items()}
    own = {name: Query("a score of the caller", partial(_given, name)) for name in release.scores_given}
    return {**single, **vector, **likely, **own}


def _score(column: int, release: ModelRelease) -> Array:
    return release.scores[:, column]


def _given(name: str, release: ModelRelease) -> Array:
    return release.scores_given[name]


def _explained(name: str, question: Callable[[Any, Any], Array], release: ModelRelease) -> Array:
    fits = is_autoencoder if name in AUTOENCODER else is_diffusion
    if not fits(release.model):
        needs = "encode and decode" if name in AUTOENCODER else "denoiser and alphas_bar"
        raise InputTypeError(f"model must have {needs} for {name}, got {type(release.model).__name__}")
    try:
        return question(release.model, release.records)
    except (RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, WhosinError):
            raise
        raise InputError(
            f"model must explain records of shape {release.records.shape[1:]}, got from it {type(error).__name__}: "
            f"{error}"
        ) from error


def wanted_queries(release: ModelRelease, query: Any) -> list[str]:
    """Return the names of queries of one number each that make up ``query``."""
    if query == "auto":
        names = ["discriminators"] * (release.discriminator_count > 0)
        names += ["nearest", "monte_carlo"] if release.can_generate else []
        names += [*AUTOENCODER] * is_autoencoder(release.model) + [*DIFFUSION] * is_diffusion(release.model)
        return _expanded(release, names or ["latent"] * release.can_search)
    names = [query] if isinstance(query, str) else list(query) if isinstance(query, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"query must be a name, or a list of names, got {query!r}")
    for name in names:
        if name not in NAMES:
            raise InputError(f"query must be auto, {', '.join(NAMES)}, or a list of these, got {name!r}")
    return _expanded(release, names)


def _expanded(release: ModelRelease, names: Sequence[str]) -> list[str]:
    several = release.discriminator_count > 1
    found: list[str] = []
    for name in names:
        if name == "discriminator" and several:
            raise InputError(
                f"query 'discriminator' needs one discriminator, the model has {release.discriminator_count}: use "
                "'max_discriminator' or 'discriminators'"
            )
        if name == "hybrid":
            found += ["max_discriminator" if several else "discriminator", "nearest"]
        elif name == "discriminators":
            found += (
                [f"discriminator {i + 1}" for i in range(release.discriminator_count)] if several else ["discriminator"]
            )
        else:
            found.append(name)
    found += release.scores_given
    if not found:
        raise InputTypeError(
            "model must be an object with sample, discriminators or generators, encode and decode, or denoiser and "
            f"alphas_bar, or come with scores, got {type(release.model).__name__}"
        )
    return list(dict.fromkeys(found))
