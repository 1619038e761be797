"""One training by DP-SGD, step by step: sample, clip, add noise, move.

Opacus computes a gradient for each record. What the promise rests on is done here: every gradient is clipped and summed
in double precision, the noise is drawn once a step, whatever its batch, and torch's optimiser sees nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.errors import AssumptionWarning, InputError, InputTypeError, missing_extra
from whosin.training.gradient_guess import batch_guess
from whosin.training.torch_model import need_torch
from whosin.training.torch_network import Task, seeded

if TYPE_CHECKING:
    from whosin.training.dpsgd import DPSGDAdapter

Rows = NDArray[np.intp]


class Run:
    """The state of one training.

    Parameters
    ----------
    plan : DPSGDAdapter
    module, task
        The network and its records.
    secret : sequence of int
        With the number of a step, all that the chance of the step depends on: a step taken again is the same step. The
        generator is NumPy's, because torch's uses 32 bits of a seed, few enough to try them all.
    """

    def __init__(self, plan: DPSGDAdapter, module: Any, task: Task, secret: Sequence[int]) -> None:
        self.plan, self.module, self.task, self.secret = plan, module.train(), task, secret
        self.expected = float(plan.expected_batch or plan.sample_rate * len(task.inputs))
        self.net = need_opacus().grad_sample.GradSampleModule(module, loss_reduction="sum")
        self.weights = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
        self.optimizer = plan.make_optimizer(list(self.weights.values()))
        self.sizes: list[int] = []
        self.watched: Task | None = None
        self.scores = self.chance = np.zeros(0)
        self.planted: Rows = np.zeros(0, dtype=np.intp)
        self.included = np.zeros(0, dtype=np.bool_)

    def resume(self, done: int) -> None:
        """Go on after so many steps, which an earlier run took."""
        self.sizes = [len(self.batch(step)) for step in range(done)]

    def watch(self, task: Task, chance: Array) -> None:
        """Guess at every step which of these records, who are in it with these chances, are in the batch."""
        self.watched, self.chance, self.scores = task, chance, np.zeros(len(chance))

    def plant(self, included: Flags) -> None:
        """Let canaries take part that are no records but gradients of full norm, each along a weight of its own.

        They are orthogonal, so that none hides another; the promise covers every gradient of that norm.
        """
        weights = sum(weight.numel() for weight in self.weights.values())
        if len(included) > weights:
            raise InputError(f"canaries must be at most {weights}, the number of weights, got {len(included)}")
        self.planted = self._generator(0, 4).permutation(weights)[: len(included)].astype(np.intp)
        self.included, self.scores = included, np.zeros(len(included))

    def batch(self, step: int) -> Rows:
        """Return who is in the batch of this step; it may be nobody."""
        return np.flatnonzero(self._generator(step, 0).random(len(self.task.inputs)) < self.plan.sample_rate)

    def step(self, number: int) -> None:
        """Take the step with this number."""
        rows = self.batch(number)
        self.sizes.append(len(rows))
        torch_seed = int(self._generator(number, 1).integers(2**62))
        with _quiet():
            with seeded(torch_seed, self.plan.device):
                known = None if self.watched is None else self._clipped(self.watched)
            with seeded(torch_seed, self.plan.device):
                noisy = self._noisy_sum(rows, self._generator(number, 2))
                if len(self.planted):
                    self._add_planted(noisy, self._generator(number, 3))
                for name, weight in self.weights.items():
                    weight.grad = (noisy[name] / self.expected).to(weight.dtype)
                self.optimizer.step()
        if known is not None:
            published = np.concatenate([part.cpu().numpy().ravel() for part in noisy.values()])
            variance = self.chance * (1.0 - self.chance)
            self.scores += batch_guess(known, published, self.chance, variance, self._deviation)
        if not all(bool(weight.isfinite().all()) for weight in self.weights.values()):
            raise InputError(
                f"learning_rate must be one that keeps the training finite: with {self.plan.learning_rate:g} there are "
                f"infinite weights after step {number + 1}"
            )

    def _add_planted(self, noisy: dict[str, Any], rng: np.random.Generator) -> None:
        """Add the planted gradients that are in this batch, and guess from what is published who is in."""
        rate, noise, start = self.plan.sample_rate, self.plan.noise_multiplier, 0
        batch = self.included & (rng.random(len(self.planted)) < rate)
        for part in noisy.values():
            flat = part.reshape(-1)
            here = (self.planted >= start) & (self.planted < start + flat.numel())
            places = self.planted[here] - start
            flat[places[batch[here]]] += self.plan.max_grad_norm
            seen = flat[places].cpu().numpy() / self.plan.max_grad_norm
            if noise > 0.0:
                seen = np.logaddexp(np.log1p(-rate) if rate < 1.0 else -np.inf, np.log(rate) + (seen - 0.5) / noise**2)
            self.scores[here] += seen
            start += flat.numel()

    def close(self) -> None:
        """Leave a plain module behind."""
        self.net.remove_hooks()
        for weight in self.module.parameters():
            weight.grad = None
            for name in ("grad_sample", "_forward_counter"):
                weight.__dict__.pop(name, None)

    @property
    def _deviation(self) -> float:
        return self.plan.noise_multiplier * self.plan.max_grad_norm

    def _generator(self, step: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([*self.secret, step, purpose])

    def _noisy_sum(self, rows: Rows, rng: np.random.Generator) -> dict[str, Any]:
        """Return the sum of the clipped gradients of these records and of the noise, which is that of four draws."""
        torch = need_torch()
        total = {}
        for name, weight in self.weights.items():
            noise = self._deviation / 2.0 * sum(rng.standard_normal(tuple(weight.shape)) for _ in range(4))
            total[name] = torch.as_tensor(noise, dtype=torch.float64, device=weight.device)
        for chunk in self._chunks(rows):
            factors = self._clipping(self.task, chunk)
            for name, weight in self.weights.items():
                total[name] += torch.tensordot(factors, weight.grad_sample.double(), dims=1)
            self._forget()
        return total

    def _clipped(self, task: Task) -> Array:
        """Return the clipped gradient of every record, without leaving a trace in the training."""
        parts = []
        for chunk in self._chunks(np.arange(len(task.inputs))):
            factors = self._clipping(task, chunk)
            flat = [weight.grad_sample.double().reshape(len(chunk), -1) for weight in self.weights.values()]
            parts.append(np.concatenate([(factors[:, None] * part).cpu().numpy() for part in flat], axis=1))
            self._forget()
        return np.concatenate(parts)

    def _clipping(self, task: Task, rows: Rows) -> Any:
        """Leave the gradient of each record at the weights; return what to multiply it by.

        A gradient that is not finite counts as none. To stop would tell that such a record is there.
        """
        torch = need_torch()
        places = torch.as_tensor(rows, device=task.inputs.device)
        task.losses(self.net(task.inputs[places]), places).sum().backward()
        squares = torch.zeros(len(rows), dtype=torch.float64, device=places.device)
        for name, weight in self.weights.items():
            if getattr(weight, "grad_sample", None) is None:
                raise InputTypeError(
                    f"module must have layers that are called, got weights {name!r} without a gradient for each "
                    "record: freeze those that are not used by requires_grad_(False)"
                )
            squares += weight.grad_sample.double().reshape(len(rows), -1).square().sum(dim=1)
        lost = ~squares.isfinite()
        if lost.any():
            for weight in self.weights.values():
                weight.grad_sample[lost] = 0.0
            warnings.warn(
                "X, loss and learning_rate must keep gradients finite: some were not, and counted as nothing "
                "(that it happened tells of the records, and is no part of what may be published)",
                AssumptionWarning,
                stacklevel=2,
            )
        norms = squares.sqrt() * (1.0 + 1e-12)
        return torch.where(lost, 0.0, (self.plan.max_grad_norm / norms).clamp(max=1.0))

    def _chunks(self, rows: Rows) -> Iterator[Rows]:
        for start in range(0, len(rows), self.plan.physical_batch):
            yield rows[start : start + self.plan.physical_batch]

    def _forget(self) -> None:
        for weight in self.module.parameters():
            weight.grad = weight.grad_sample = None


def need_opacus() -> Any:
    """Return Opacus, or say which extra is missing."""
    need_torch()
    try:
        import opacus
        import opacus.grad_sample
    except ImportError:
        raise missing_extra("DP-SGD needs Opacus", "dpsgd") from None
    return opacus


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what torch says about hooks of a network whose inputs need no gradient: Opacus means it so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing", category=UserWarning)
        yield
