"""DP-SGD: training a torch module with a promise (extra ``dpsgd``, on Opacus).

Each of T steps includes every record with probability q of its own (Poisson sampling), clips each record's gradient to
norm C, adds normal noise of standard deviation σ·C to the sum, and divides by a fixed number (Abadi et al. 2016). The
promise is :class:`whosin.DPSGD` with (σ, q, T). The steps are in :mod:`whosin.training.dpsgd_run`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whosin.answers import card
from whosin.arrays import Array, Flags
from whosin.errors import check_number, check_whole
from whosin.guarantees import DPSGD
from whosin.parallel.journal import check_seeded
from whosin.training.dpsgd_run import Run, need_opacus
from whosin.training.per_record_loss import check_layers, check_one_by_one
from whosin.training.torch_model import TorchModel
from whosin.training.torch_network import Network, one_thread, seeded

Side = tuple[Any, Any]

CHECKPOINTS = 100
"""How often the state of a training is kept, about."""


@dataclass(frozen=True, eq=False)
class PrivateTraining:
    """A model trained by DP-SGD, and what was promised.

    Examples
    --------
    >>> import numpy as np, torch, whosin as wi
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> trained = wi.train_dpsgd(
    ...     torch.nn.Linear(2, 2), X, X[:, 0] > 0, noise_multiplier=1.0, max_grad_norm=1.0, sample_rate=0.2, steps=3
    ... )
    >>> trained.expected_batch, trained.expected_batch_given
    (10.0, False)
    >>> print(trained)
    a model trained with DP-SGD (noise multiplier = 1, sample rate = 0.2, steps = 3, sampling = poisson, ...)
    """

    model: TorchModel
    guarantee: DPSGD
    max_grad_norm: float
    expected_batch: float
    """What the noisy sum of gradients was divided by."""
    expected_batch_given: bool
    classes_given: bool
    """Whether the labels are 0, 1, … or were named, rather than read off the records."""
    batch_sizes: tuple[int, ...] = field(repr=False)
    """Size of every batch. It is not part of what may be published."""

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the promise rests on, in words."""
        return (
            *self.guarantee.assumes,
            "batches and noise come from NumPy's pseudorandom generator, and dropout from torch's, which are no secure "
            "source: who knows or guesses the seed sees the model without noise",
            "noise is added in floating point, as the sum of four draws, which makes attacks on its last digits hard "
            "but is no proof against them",
            "module and loss treat the records of a batch one by one (tried with one pair of records)",
            "the gradients were divided by a number that does not depend on the records"
            if self.expected_batch_given
            else "the number of records is public: the gradients were divided by it",
            "the labels of the classes are public"
            if self.classes_given
            else "the labels that occur are public: the classes were read off the records",
            "architecture, settings and the weights to start from were not chosen by looking at the records",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "max_grad_norm": self.max_grad_norm,
            "expected_batch": self.expected_batch,
            "assumes": list(self.assumes),
        }

    def __str__(self) -> str:
        return f"a model trained with {self.guarantee}"

    def _repr_html_(self) -> str:
        return card(str(self), lists={"Assumes": self.assumes})


@dataclass(kw_only=True, eq=False)
class DPSGDAdapter(Network):
    """Train a torch module by DP-SGD: an adapter for reference models and one-run audits (extra ``dpsgd``).

    Parameters
    ----------
    module : torch.nn.Module, or callable without arguments that returns one
        The architecture, without batch normalisation or other layers that mix records.
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm; 0 trains without noise, and without a promise.
    max_grad_norm : float
        The clipping norm: no record adds a longer gradient to the sum.
    sample_rate : float
        Probability that a record is in a batch.
    steps : int
        Number of steps.
    expected_batch : float, optional
        What the noisy sum is divided by, ``sample_rate`` times the number of records by default, which is then public.
        Adding or removing one record must not change it, strictly speaking: give a number to be exact.
    physical_batch : int, default 256
        Most gradients that are held at once; it limits the memory and does not change the result.
    journal : path, optional
        Beside it the state is kept about a hundred times, as in :class:`TorchAdapter`. The chance of a step depends on
        ``rng`` and the number of the step, so a training that goes on takes the same steps with the same noise, each
        once. The files are no part of what may be published.
    learning_rate, optimizer, loss, classes, output, reset, device, input_dtype
        As in :class:`TorchAdapter`; the default optimiser is "sgd".

    Examples
    --------
    >>> import torch, whosin as wi
    >>> adapter = wi.DPSGDAdapter(
    ...     torch.nn.Linear(2, 2), noise_multiplier=2.0, max_grad_norm=1.0, sample_rate=0.1, steps=50
    ... )
    >>> print(adapter.guarantee)
    DP-SGD (noise multiplier = 2, sample rate = 0.1, steps = 50, sampling = poisson, one person added or removed)
    >>> round(adapter.guarantee.advantage, 3)
    0.146
    """

    noise_multiplier: float
    max_grad_norm: float
    sample_rate: float
    steps: int
    expected_batch: float | None = None
    physical_batch: int = 256
    learning_rate: float = 0.1
    optimizer: str | Callable[..., Any] = "sgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        promise = DPSGD(self.noise_multiplier, self.sample_rate, self.steps)
        self.noise_multiplier = check_number("noise_multiplier", promise.noise_multiplier, low=0.0, high=1e9)
        self.steps = promise.steps
        self.sample_rate = check_number("sample_rate", promise.sample_rate, low=0.0, high=1.0, open_low=True)
        self.max_grad_norm = check_number("max_grad_norm", self.max_grad_norm, low=0.0, open_low=True, open_high=True)
        self.physical_batch = check_whole("physical_batch", self.physical_batch, low=1)
        if self.expected_batch is not None:
            self.expected_batch = check_number(
                "expected_batch", self.expected_batch, low=0.0, open_low=True, open_high=True
            )
        need_opacus()

    @property
    def guarantee(self) -> DPSGD:
        """What the training promises."""
        return DPSGD(self.noise_multiplier, self.sample_rate, self.steps)

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> TorchModel:
        """Train on these records; return the model."""
        return self.train(X, y, rng).model

    def train(
        self, X: Any, y: Any, rng: np.random.Generator, *, progress: Callable[[float], object] | None = None
    ) -> PrivateTraining:
        """Train on these records; return the model with its promise."""
        return self._train(X, y, rng, None, progress)[0]

    def train_watching(
        self, data: Side | None, canaries: Side, included: Flags, rng: np.random.Generator
    ) -> tuple[PrivateTraining, Array]:
        """Train on ``data`` and on the included canaries; return also a score of every canary.

        It is the sum over all steps of the best linear guess whether the canary was in the batch
        (:mod:`whosin.training.gradient_guess`), made from the noisy gradients, which the promise lets everybody see,
        by somebody who knows all records and tossed a coin for each canary. It uses ``included`` for the training only.
        Cost of a step with n records and canaries and p weights: O(n²·p + n³).
        """
        X, y = canaries if data is None else (np.concatenate(pair) for pair in zip(data, canaries, strict=True))
        rest = len(y) - len(included)
        inside = np.concatenate([np.ones(rest, dtype=bool), included])
        chance = self.sample_rate * np.concatenate([np.ones(rest), np.full(len(included), 0.5)])
        training, scores = self._train(
            X[inside], y[inside], rng, lambda run: run.watch(self.task(run.module, X, y), chance), None
        )
        return training, scores[rest:]

    def train_planted(self, data: Side, included: Flags, rng: np.random.Generator) -> tuple[PrivateTraining, Array]:
        """Train on ``data`` with canaries that are gradients; return also a score of every canary.

        A canary is a gradient of the clipping norm along one weight, chosen at random; it is in a batch as a record is.
        Its score is the log likelihood ratio of what is published along that weight, as if the records added nothing
        there. O(canaries) a step.
        """
        return self._train(*data, rng, lambda run: run.plant(included), None)

    def _train(
        self,
        X: Any,
        y: Any,
        rng: np.random.Generator,
        watching: Callable[[Run], None] | None,
        progress: Callable[[float], object] | None,
    ) -> tuple[PrivateTraining, Array]:
        seed, *secret = (int(part) for part in rng.integers(2**62, size=5))
        with one_thread():
            module = self.build(seed)
            check_layers(module)
            with seeded(seed, self.device):
                task = self.task(module, X, y)
            check_one_by_one(module, task, self.device)
            run = Run(self, module, task, secret)
            if watching is not None:
                watching(run)
            saved = self.saved(X, y, [seed, *secret]) if watching is None else None
            done = saved.read(module, run.optimizer) if saved is not None else 0
            run.resume(done)
            for step in range(done, self.steps):
                run.step(step)
                if saved is not None and (step + 1) % max(1, self.steps // CHECKPOINTS) == 0:
                    saved.write(module, run.optimizer, step + 1)
                if progress is not None:
                    progress((step + 1) / self.steps)
            run.close()
        if saved is not None:
            saved.remove()
        training = PrivateTraining(
            self.as_model(module, task.classes),
            self.guarantee,
            self.max_grad_norm,
            run.expected,
            self.expected_batch is not None,
            self.classes is not None or np.array_equal(task.classes, np.arange(len(task.classes))),
            tuple(run.sizes),
        )
        return training, run.scores


def train_dpsgd(
    module: Any,
    X: Any,
    y: Any,
    *,
    noise_multiplier: float,
    max_grad_norm: float,
    sample_rate: float,
    steps: int,
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
    **settings: Any,
) -> PrivateTraining:
    """Train a torch module by DP-SGD and return it with its promise.

    Parameters
    ----------
    module, noise_multiplier, max_grad_norm, sample_rate, steps, **settings
        As in :class:`DPSGDAdapter`.
    X, y : records and labels
    rng : optional
        Anything that ``numpy.random.default_rng`` takes; None draws a seed from the operating system. Who knows the
        seed knows the noise: a number is for tests, or a secret of 128 bits (``secrets.randbits(128)``), which a
        training with ``journal`` needs to go on.
    progress : callable, optional
        Called with the share of the steps that are done.

    Returns
    -------
    PrivateTraining
        With ``model``, ``guarantee`` and ``assumes``.

    Notes
    -----
    Cost O(T·q·N) gradients; memory of ``physical_batch`` gradients.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang (2016), Deep learning with differential privacy.

    Examples
    --------
    >>> import numpy as np, torch, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> trained = wi.train_dpsgd(
    ...     torch.nn.Linear(2, 2), X, y, noise_multiplier=1.0, max_grad_norm=1.0, sample_rate=0.2, steps=30,
    ...     learning_rate=1.0, rng=0,
    ... )
    >>> round(trained.guarantee.advantage, 3)
    0.449
    >>> bool(np.mean(trained.model.predict_proba(X).argmax(axis=1) == y) > 0.9)
    True
    """
    adapter = DPSGDAdapter(
        module,
        noise_multiplier=noise_multiplier,
        max_grad_norm=max_grad_norm,
        sample_rate=sample_rate,
        steps=steps,
        **settings,
    )
    check_seeded(adapter.journal, rng)
    return adapter.train(X, y, np.random.default_rng(rng), progress=progress)
