"""``protect``: an estimate on a random part of the pool, plus noise that hides who was drawn."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import (
    CalibrationError,
    InputError,
    InputTypeError,
    check_callable,
    check_choice,
    check_confidence,
    check_number,
    check_whole,
    spawned,
)
from whosin.guarantees import MIP
from whosin.mechanisms.secure import SecureSource, SeededSource, Source, gaussian, gaussian_sampler, norm_exponential
from whosin.numerics.shift import NOISES
from whosin.parallel.journal import check_seeded
from whosin.parallel.threads import Progress, check_jobs
from whosin.population.pool import totals
from whosin.protection.certificate import Certificate, Release
from whosin.protection.estimators import BlackBox, Sum
from whosin.protection.one_replaced import from_replacements
from whosin.protection.plan import Ball, Noise, Plan
from whosin.protection.pool import LARGEST, Draw, draw_of
from whosin.protection.proved import from_adjacent_bound, from_ball, from_moment_bound
from whosin.protection.sampled import Budget, check_draws, from_subsets, pilot_ball, pilot_size, run_pilot
from whosin.protection.several import Boxes, as_estimators
from whosin.protection.sums import from_pairs
from whosin.protection.training import Failure, Trainer

SENSITIVITIES = ("auto", "average", "moment")
SPLITS = ("total", "relative")

_KEPT = ("bound", "route", "kind", "sensitivity", "confidence_level", "draws", "reason")
"""What a certificate says of its plan as it is."""
_SMALLEST_ETA = 1e-12
"""Smaller promises mean nothing: the noise follows its law no closer."""


def protect(
    estimator: Any,
    records: Any,
    *,
    eta: float,
    noise: str = "gaussian",
    sensitivity: str = "auto",
    moment_bound: float | None = None,
    adjacent_bound: float | None = None,
    person: Any = None,
    train_fraction: float = 0.5,
    norm: float = 2,
    split: str = "total",
    ball: Any = None,
    subsets: int = 256,
    confidence_level: float = 0.95,
    n_jobs: int | None = None,
    rng: Any = None,
    progress: Progress | None = None,
    journal: str | os.PathLike[str] | None = None,
    keep_training: bool = False,
    testing_source: SeededSource | None = None,
) -> Release:
    """Release an estimate on a random half of the records so that nobody can tell well who was drawn.

    Somebody who knows all the records and sees the release guesses right whether a given one was drawn at most η more
    often than without looking: η-membership inference privacy (Izzo et al. 2022), by additive noise.

    Parameters
    ----------
    estimator : str, SumQuery, callable or scikit-learn estimator, or a list or dictionary of them
        "mean", "sum", "median" or "cov" of the rows; a :class:`SumQuery`; a function of the drawn records that returns
        an array of numbers, with a parameter ``rng`` if it is random; or a linear scikit-learn model. It must give an
        estimate, of one shape, for every draw: an error on the drawn records may tell who they are. Several are
        estimated on the same drawn records, and η limits what all of them tell together; where one of them is a black
        box all are treated so, which costs sums their exact noise.
    records : array, list, data frame, or tuple of them
        The pool. A tuple holds aligned parts such as ``(X, y)``, and a function is called with the parts one by one.
    eta : float
        In [1e-12, 1/2), and below the share of the rarer answer: beyond that every release keeps it.
    noise : {"gaussian", "norm_exponential"}, default "gaussian"
        Gaussian noise with a scale for each coordinate, or noise of density ∝ exp(-‖x‖/s).
    sensitivity : {"auto", "average", "moment"}, default "auto"
        How the noise is found where nothing was proved. "average" looks at replacing one record: exact arithmetic for
        sums, ``subsets`` rounds of about n/2 retrainings each for others. "moment" looks at the spread of the estimate
        over random subsets, one training a subset. "auto" takes "average" for sums and otherwise "moment", with a pilot
        ball where that is forecast to save noise.
    moment_bound : float, optional
        A proven limit on E‖θ - c‖ over the draw, for some constant c.
    adjacent_bound : float, optional
        A proven limit on ‖A(D) - A(D')‖ for any D, D' that differ in one record, or one person.
    person : array-like, optional
        Whose record each row is, a person's or a household's name: whole persons are drawn, η is about them, and
        ``training`` has the positions of their rows. "sum" adds the rows of a person up, and "mean" divides that by the
        number of persons; other estimators get all the rows of the drawn persons.
    train_fraction : float, default 0.5
        Share of the records that is drawn.
    norm : float, default 2
        p of the norm in which the bounds, the ball and norm-exponential noise are measured; 2 for Gaussian noise.
    split : {"total", "relative"}, default "total"
        How Gaussian noise is split among coordinates: in proportion to the square roots of their spreads, which gives
        the least variance in total, or to the spreads themselves, so that units do not matter: take "relative" where
        coordinates are in different units.
    ball : "pilot", radius or (centre, radius), optional
        Pull the estimate into this ball before the noise. "pilot" takes twice the longest distance seen in the pilot.
    subsets : int, default 256
        Certification subsets; a quarter as many are trained before them as a pilot. 0 with a ball draws none.
    confidence_level : float, default 0.95
        Probability that a sampled certificate holds.
    n_jobs : int, optional
        Processes for the trainings (joblib); inside ``joblib.parallel_config(backend="dask")`` or another backend of
        other machines the estimator is trained there. The result does not depend on it.
    rng : optional
        Seeds the pilot and certification subsets only. The draw and the noise come from a secure source without a seed.
    progress : callable, optional
        Called with the share of the trainings done.
    journal : path, optional
        A file that keeps what each training gave, so that a later call with the same estimator, records, settings and
        ``rng``, which must be given, trains only what is missing. It holds estimates without noise, and is as
        confidential as the records. The draw and the noise of the release are never in it.
    keep_training : bool, default False
        Keep the positions of the drawn records in ``training``. They must not be published.
    testing_source : SeededSource, optional
        For tests only: a seed for the draw and the noise. The certificate says that nobody is protected.

    Returns
    -------
    Release
        ``value`` and ``certificate``; for a list or dictionary of estimators the value is one too.

    Raises
    ------
    CalibrationError
        Where these draws cannot certify η; it says what would do.

    Notes
    -----
    Theorem 9 of Izzo et al. asks for hundreds of times more noise, its sampler is wrong in more than one dimension, and
    their algorithm 1 takes the scale from the drawn records, which gives outliers away. Here the scales are functions
    of the pool and of subsets drawn independently of the release.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> incomes = np.linspace(20_000, 60_000, 1000)
    >>> release = wi.protect("mean", incomes, eta=0.05)
    >>> abs(release.value - 40_000) < 10_000, round(release.certificate.noise_scale)
    (True, 159)
    >>> print(release.certificate.mip)
    MIP (η = 0.05, train fraction = 0.5)
    """
    source = _source(testing_source)
    understood, pool = as_estimators(estimator, records)
    if person is not None:
        understood, pool = _by_person(understood, person), pool.by_person(person)
    draw = draw_of(len(pool), train_fraction)
    eta = _eta(eta, draw)
    kind = _noise(noise, norm, split)
    budget = _budget(subsets, confidence_level, n_jobs, journal, rng)
    request = _Request(
        eta,
        kind,
        check_choice("sensitivity", sensitivity, SENSITIVITIES),
        _bound("moment_bound", moment_bound),
        _bound("adjacent_bound", adjacent_bound),
        ball,
    )
    request.check()
    if progress is not None:
        check_callable("progress", progress)
    if isinstance(understood, Sum):
        plan = _checked(_plan_for_sum(understood, request, draw), eta)
        indices = _draw(draw, source)
        value = understood.of(understood.contributions[indices])
    else:
        trainer, plan = _plan_for_black_box(Trainer(understood, pool, draw), request, budget, rng, progress)
        plan = _checked(plan, eta)
        indices = _draw(draw, source)
        value = _train(trainer, indices, source)
    certificate = _certificate(understood, plan, request, draw, value.shape, source)
    noisy = _add_noise(value.reshape(-1), plan, kind, source).reshape(value.shape)
    if progress is not None:
        progress(1.0)
    return Release(understood.rebuild(noisy), certificate, pool.rows(indices) if keep_training else None)


def _by_person(estimator: Sum | BlackBox, person: Any) -> Sum | BlackBox:
    """Sums take what a person adds; of a list with sums and others, sums would not know their persons."""
    if isinstance(estimator, Sum):
        return replace(estimator, contributions=totals(estimator.contributions, person))
    if isinstance(estimator, Boxes) and estimator.has_sums:
        raise InputError("person goes with sums or with other estimators, got a list of both")
    return estimator


@dataclass(frozen=True)
class _Request:
    """What the user wants, checked."""

    eta: float
    noise: Noise
    sensitivity: str
    moment_bound: float | None
    adjacent_bound: float | None
    ball: Any

    def check(self) -> None:
        """Refuse arguments that contradict each other."""
        names = ("moment_bound", "adjacent_bound", "ball")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"give at most one of {', '.join(names)}, got {' and '.join(given)}")
        if given and self.sensitivity == "average":
            raise InputError(f"sensitivity='average' goes without {given[0]}: use 'auto'")
        if self.sensitivity == "moment" and self.adjacent_bound is not None:
            raise InputError("sensitivity='moment' goes with moment_bound, not with adjacent_bound")

    def proved(self, draw: Draw) -> Plan | None:
        """The plan from a bound that the user gives, if there is one."""
        if self.adjacent_bound is not None:
            return from_adjacent_bound(self.adjacent_bound, self.eta, draw, self.noise)
        if self.moment_bound is not None:
            return from_moment_bound(self.moment_bound, self.eta, draw, self.noise)
        return None


def _plan_for_sum(query: Sum, request: _Request, draw: Draw) -> Plan:
    if request.ball is not None or (request.sensitivity == "moment" and request.moment_bound is None):
        raise InputError(
            "a sum needs sensitivity='auto' or 'average' and no ball, for its noise is computed exactly; "
            "pass a function to treat it as a black box"
        )
    return request.proved(draw) or from_pairs(query, request.eta, draw, request.noise)


def _plan_for_black_box(
    trainer: Trainer, request: _Request, budget: Budget, rng: Any, progress: Progress | None
) -> tuple[Trainer, Plan]:
    draw, noise, eta = trainer.draw, request.noise, request.eta
    proved = request.proved(draw)
    if proved is not None:
        return trainer, proved
    average = request.sensitivity == "average"
    centre, radius = _ball(request.ball)
    if centre is not None and radius is not None and budget.subsets == 0:
        return trainer, from_ball(Ball(centre, radius, 1.0, noise.norm), eta, draw, noise)
    if request.ball is None and (average or request.sensitivity == "moment" or budget.subsets == 0):
        check_draws(eta, draw.per_divergence(eta) if average else eta, budget)
    total = pilot_size(budget.subsets) * (2 if average else 1) + budget.subsets
    budget = replace(budget, tick=_ticks(progress, total))
    pilot_rng, rng = spawned(rng)
    shaped = noise.kind == "gaussian" and radius is None
    trainer, pilot = run_pilot(trainer, noise, budget, pilot_rng, shaped=shaped, centre=centre)
    if average:
        return trainer, from_replacements(trainer, pilot, eta, noise, budget, rng)
    pull = None
    if radius is not None:
        pull = Ball(pilot.centre, radius, pilot.shape, noise.norm)
    elif request.ball is not None and pilot.distances.any():
        pull = pilot_ball(pilot)
    if pull is not None and budget.subsets == 0:
        return trainer, replace(from_ball(pull, eta, draw, noise), draws=len(pilot.distances))
    chosen = request.sensitivity == "auto" and request.ball is None
    return trainer, from_subsets(trainer, pilot, eta, noise, budget, rng, ball=pull, choose_ball=chosen)


def _checked(plan: Plan, eta: float) -> Plan:
    """Refuse noise that is no float, before anything is drawn."""
    if not np.all(np.isfinite(plan.scale * np.asarray(plan.shape))):
        raise CalibrationError(f"eta={eta:g} asks for noise beyond the largest float: rescale the records")
    return plan


def _ball(ball: Any) -> tuple[Array | None, float | None]:
    """The centre and the radius that the user gives, each None where the pilot settles it."""
    if ball is None or (isinstance(ball, str) and ball == "pilot"):
        return None, None
    if isinstance(ball, str):
        raise InputError(f"ball must be 'pilot', a radius or (centre, radius), got {ball!r}")
    if not isinstance(ball, tuple | list):
        return None, check_number("ball", ball, low=0.0, high=LARGEST, open_low=True)
    if len(ball) != 2:
        raise InputError(f"ball must be 'pilot', a radius or (centre, radius), got {ball!r}")
    try:
        centre = np.asarray(ball[0], dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise InputTypeError(f"ball must have a centre of numbers, got {ball[0]!r}") from None
    if centre.size == 0 or not np.all(np.isfinite(centre)):
        raise InputError(f"ball must have a centre of finite numbers, got {ball[0]!r}")
    return centre, check_number("the radius of ball", ball[1], low=0.0, high=LARGEST, open_low=True)


def _train(trainer: Trainer, indices: NDArray[np.int64], source: Source) -> Array:
    rng = np.random.default_rng(source.words(4).tolist())
    value = trainer.train(indices, rng)
    if isinstance(value, Failure):
        raise InputError(
            f"estimator failed on the drawn records: {value.reason}. That it did, and this message, may tell who was "
            "drawn: show them to nobody"
        )
    return value


def _draw(draw: Draw, source: Source) -> NDArray[np.int64]:
    return np.sort(source.subset(draw.records, draw.size))


def _add_noise(value: Array, plan: Plan, noise: Noise, source: Source) -> Array:
    pulled = value if plan.ball is None else plan.ball.pull(value)
    scales = np.broadcast_to(plan.scale * np.asarray(plan.shape), pulled.shape)
    if noise.kind == "gaussian":
        return gaussian(pulled, scales, source)
    moving = np.broadcast_to(np.asarray(plan.shape), pulled.shape) > 0.0
    released = pulled.copy()
    released[moving] = norm_exponential(pulled[moving], plan.scale, noise.norm, source)
    return released


def _certificate(
    estimator: Sum | BlackBox, plan: Plan, request: _Request, draw: Draw, shape: tuple[int, ...], source: Source
) -> Certificate:
    scales = np.broadcast_to(plan.scale * np.asarray(plan.shape, dtype=np.float64), (int(np.prod(shape)),))
    one = np.ndim(plan.shape) == 0 or len(scales) == 1 or scales.min() == scales.max()
    noise = request.noise
    sampler = gaussian_sampler(source) if noise.kind == "gaussian" else f"gamma radius, cone measure, {source.name}"
    return Certificate(
        mip=MIP(request.eta, draw.fraction),
        eta=request.eta,
        estimator=estimator.name,
        noise=noise.kind,
        noise_scale=float(scales[0]) if one else estimator.arrange(scales.reshape(shape)),
        norm=noise.norm,
        records=draw.records,
        train_size=draw.size,
        ball=None if plan.ball is None else plan.ball.radius,
        sampler=sampler,
        test_mode=not source.secure,
        **{name: getattr(plan, name) for name in _KEPT},
    )


def _source(testing_source: SeededSource | None) -> Source:
    if testing_source is None:
        return SecureSource()
    if not isinstance(testing_source, SeededSource):
        raise InputTypeError(f"testing_source must be a SeededSource, in tests only, got {testing_source!r}")
    return testing_source


def _eta(eta: Any, draw: Draw) -> float:
    number = check_number("eta", eta, low=0.0, high=0.5, open_low=True, open_high=True)
    if number < _SMALLEST_ETA:
        raise InputError(
            f"eta must be a number of at least {_SMALLEST_ETA:g}, got {eta!r}: the noise follows its law no closer"
        )
    if number >= draw.rarer:
        raise InputError(
            f"eta must be a number below {draw.rarer:.6g}, got {eta!r}: with {draw.size} of {draw.records} records "
            "drawn a blind guess already errs no more often than that, so every release would keep it"
        )
    return number


def _noise(noise: Any, norm: Any, split: Any) -> Noise:
    kind = check_choice("noise", noise, NOISES)
    p = check_number("norm", norm, low=1.0)
    if kind == "gaussian" and p != 2.0:
        raise InputError(f"norm must be 2 for Gaussian noise, got {norm!r}; use noise='norm_exponential'")
    return Noise(kind, p, check_choice("split", split, SPLITS))


def _budget(subsets: Any, confidence_level: Any, n_jobs: Any, journal: Any, rng: Any) -> Budget:
    count = check_whole("subsets", subsets, low=0)
    level = check_confidence(confidence_level)
    check_jobs(n_jobs)
    check_seeded(journal, rng)
    return Budget(count, level, n_jobs, None, journal)


def _bound(name: str, value: Any) -> float | None:
    return None if value is None else check_number(name, value, low=0.0, high=LARGEST)


def _ticks(progress: Progress | None, total: int) -> Callable[[], None] | None:
    if progress is None:
        return None
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        progress(min(1.0, done / total))

    return tick
