"""DP-SGD: training a torch module with a promise (extra ``dpsgd``, on Opacus).

Each of T steps includes every record with probability q of its own (Poisson sampling), clips each record's gradient to
norm C, adds normal noise of standard deviation σ·C to the sum, and divides by a fixed number (Abadi et al. 2016). The
promise is :class:`whosin.DPSGD` with (σ, q, T). Opacus computes the gradients a record, clips, and adds the noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.models.torch_model import TorchModel, need_torch
from whosin.auditing.models.torch_network import Network, Task, one_thread, seeded
from whosin.auditing.models.watching import batch_guess
from whosin.errors import InputError, InputTypeError, MissingExtraError, check_number, check_whole
from whosin.guarantees import DPSGD

__all__ = ["DPSGDAdapter", "PrivateTraining", "train_dpsgd"]

Array = NDArray[np.float64]
Side = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class PrivateTraining:
    """A model trained by DP-SGD, and what was promised."""

    model: TorchModel
    guarantee: DPSGD
    max_grad_norm: float
    expected_batch: float
    """What the noisy sum of gradients was divided by."""
    expected_batch_given: bool
    batch_sizes: tuple[int, ...] = field(repr=False)
    """Size of every batch. It is not part of what may be published."""

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the promise rests on, in words."""
        return (
            *self.guarantee.assumes,
            "batches and noise come from NumPy's and torch's pseudorandom generators, which are no secure source: who "
            "knows or guesses the seed sees the model without noise",
            "noise is added in floating point, as the sum of four draws, which makes attacks on its last digits hard "
            "but is no proof against them",
            "the module treats the records of a batch one by one",
            "the gradients were divided by a number that does not depend on the records"
            if self.expected_batch_given
            else "the number of records is public: the gradients were divided by it",
            "architecture and settings were not chosen by looking at the records",
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
        from html import escape

        items = "".join(f"<li>{escape(line)}</li>" for line in self.assumes)
        return f"<p><b>{escape(str(self))}</b></p><p>Assumes:</p><ul>{items}</ul>"


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
    physical_batch : int
        Most gradients that are held at once; it limits the memory and does not change the result.
    learning_rate, optimizer, loss, classes, output, reset, device, input_dtype
        As in :class:`TorchAdapter`; the default optimiser is "sgd".
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
        self.noise_multiplier = check_number("noise_multiplier", promise.noise_multiplier, high=1e9)
        self.steps = promise.steps
        self.sample_rate = check_number("sample_rate", promise.sample_rate, low=0.0, open_low=True)
        self.max_grad_norm = check_number("max_grad_norm", self.max_grad_norm, low=0.0, open_low=True)
        self.physical_batch = check_whole("physical_batch", self.physical_batch, low=1)
        if self.expected_batch is not None:
            self.expected_batch = check_number("expected_batch", self.expected_batch, low=0.0, open_low=True)
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
        self, data: Side | None, canaries: Side, included: NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[PrivateTraining, Array]:
        """Train on ``data`` and on the included canaries; return also a score of every canary.

        It is the sum over all steps of the best linear guess whether the canary was in the batch
        (:mod:`whosin.auditing.models.watching`), made from the noisy gradients, which the promise lets everybody see,
        by somebody who knows all records and tossed a coin for each canary. It uses ``included`` for the training only.
        Cost of a step with n records and canaries and p weights: O(n²·p + n³).
        """
        X, y = canaries if data is None else (np.concatenate(pair) for pair in zip(data, canaries, strict=True))
        rest = len(y) - len(included)
        inside = np.concatenate([np.ones(rest, dtype=bool), included])
        chance = self.sample_rate * np.concatenate([np.ones(rest), np.full(len(included), 0.5)])
        training, scores = self._train(X[inside], y[inside], rng, ((X, y), chance), None)
        return training, scores[rest:]

    def _train(
        self,
        X: Any,
        y: Any,
        rng: np.random.Generator,
        watched: tuple[Side, Array] | None,
        progress: Callable[[float], object] | None,
    ) -> tuple[PrivateTraining, Array]:
        seed, noise_seed = (int(seed) for seed in rng.integers(2**62, size=2))
        with one_thread(), _quiet(), seeded(seed, self.device):
            module = self.build(seed)
            _check_module(module)
            task = self.task(module, X, y)
            run = _Run(self, module, task, noise_seed)
            if watched is not None:
                run.watch(self.task(module, *watched[0]), watched[1])
            for step in range(self.steps):
                run.step(np.flatnonzero(rng.random(len(task.inputs)) < self.sample_rate))
                if progress is not None:
                    progress((step + 1) / self.steps)
            run.close()
        training = PrivateTraining(
            self.as_model(module, task.classes),
            self.guarantee,
            self.max_grad_norm,
            run.expected,
            self.expected_batch is not None,
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
        Anything that ``numpy.random.default_rng`` takes; None draws a seed from the operating system, and anything
        else is for tests: who knows the seed knows the noise.
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
    """
    adapter = DPSGDAdapter(
        module,
        noise_multiplier=noise_multiplier,
        max_grad_norm=max_grad_norm,
        sample_rate=sample_rate,
        steps=steps,
        **settings,
    )
    return adapter.train(X, y, np.random.default_rng(rng), progress=progress)


class _Run:
    """The state of one training."""

    def __init__(self, plan: DPSGDAdapter, module: Any, task: Task, noise_seed: int) -> None:
        torch = need_torch()
        opacus = need_opacus()
        self.plan, self.task = plan, task
        self.expected = float(plan.expected_batch or plan.sample_rate * len(task.inputs))
        self.net = opacus.grad_sample.GradSampleModule(module.train(), loss_reduction="sum")
        self.weights = [weight for weight in module.parameters() if weight.requires_grad]
        self.optimizer = opacus.optimizers.DPOptimizer(
            plan.make_optimizer(self.weights),
            noise_multiplier=plan.noise_multiplier,
            max_grad_norm=plan.max_grad_norm,
            expected_batch_size=self.expected,
            loss_reduction="mean",
            generator=torch.Generator(task.inputs.device).manual_seed(noise_seed),
            secure_mode=True,
        )
        self.sizes: list[int] = []
        self.watched: Task | None = None
        self.scores = self.chance = np.zeros(0)

    def watch(self, task: Task, chance: Array) -> None:
        """Guess at every step which of these records, who are in it with these chances, are in the batch."""
        self.watched, self.chance, self.scores = task, chance, np.zeros(len(chance))

    def step(self, rows: NDArray[np.intp]) -> None:
        """Take one step with these records, which may be none."""
        self.sizes.append(len(rows))
        gradients = None if self.watched is None else self._gradients(self.watched)
        chunks = [
            rows[start : start + self.plan.physical_batch] for start in range(0, len(rows), self.plan.physical_batch)
        ]
        for chunk in chunks[:-1]:
            self.optimizer.signal_skip_step(True)
            self._backward(self.task, chunk)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        if chunks:
            self.optimizer.signal_skip_step(False)
            self._backward(self.task, chunks[-1])
        else:
            for weight in self.weights:
                weight.grad_sample = weight.new_zeros((0, *weight.shape))
        self.optimizer.step()
        if gradients is not None:
            published = np.concatenate([weight.grad.double().cpu().numpy().ravel() for weight in self.weights])
            self.scores += batch_guess(
                gradients,
                self.expected * published,
                self.chance,
                self.chance * (1.0 - self.chance),
                self.plan.noise_multiplier * self.plan.max_grad_norm,
            )
        self.optimizer.zero_grad(set_to_none=True)

    def _backward(self, task: Task, rows: NDArray[np.intp]) -> None:
        torch = need_torch()
        places = torch.as_tensor(rows, device=task.inputs.device)
        total = task.losses(self.net(task.inputs[places]), places).sum()
        if not torch.isfinite(total):
            raise InputError(
                f"learning_rate takes one that keeps the training finite: with {self.plan.learning_rate:g} the loss is "
                f"{float(total.detach())} in step {len(self.sizes)}"
            )
        total.backward()

    def _gradients(self, task: Task) -> Array:
        """Return the clipped gradient of each watched record, without leaving a trace in the training."""
        parts = []
        for start in range(0, len(task.inputs), self.plan.physical_batch):
            rows = np.arange(start, min(start + self.plan.physical_batch, len(task.inputs)))
            self._backward(task, rows)
            flat = np.concatenate(
                [weight.grad_sample.double().reshape(len(rows), -1).cpu().numpy() for weight in self.weights], axis=1
            )
            norms = np.linalg.norm(flat, axis=1, keepdims=True)
            parts.append(flat * np.minimum(1.0, self.plan.max_grad_norm / np.maximum(norms, 1e-12)))
            self.optimizer.zero_grad(set_to_none=True)
        return np.concatenate(parts)

    def close(self) -> None:
        """Leave a plain module behind."""
        self.net.remove_hooks()
        for weight in self.net._module.parameters():
            for name in ("grad_sample", "summed_grad", "_forward_counter"):
                weight.__dict__.pop(name, None)


def need_opacus() -> Any:
    """Return Opacus, or say which extra is missing."""
    need_torch()
    try:
        import opacus
        import opacus.grad_sample
        import opacus.optimizers
    except ImportError:
        raise MissingExtraError("DP-SGD takes Opacus: pip install 'whosin[dpsgd]'") from None
    return opacus


def _check_module(module: Any) -> None:
    torch = need_torch()
    opacus = need_opacus()
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            raise InputTypeError(
                f"module takes layers that treat records one by one; {name!r} is {type(part).__name__}, which mixes "
                "the records of a batch: use GroupNorm or LayerNorm"
            )
    errors = opacus.grad_sample.GradSampleModule.validate(module, strict=False)
    if errors:
        raise InputTypeError(f"module takes layers without buffers for DP-SGD: {errors[0]}")
    if not any(weight.requires_grad for weight in module.parameters()):
        raise InputError("module takes at least one weight that is trained, got none")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what torch says about hooks of a network whose inputs need no gradient: Opacus means it so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing", category=UserWarning)
        yield
