"""What all GANs share: checked data, seeds, epochs, checkpoints, samples and scores."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from experiments.gans import checkpoints
from experiments.gans.architectures import Architecture
from whosin.errors import InputError, InputTypeError, check_number, check_whole

__all__ = ["Gan", "Score", "as_records", "as_tensor", "cross_entropies", "in_blocks", "set_trainable"]

Array = NDArray[np.float64]
Images = NDArray[np.float32]
Scorer = Callable[..., Array]

BLOCK = 4096
"""Records that pass a network at once when nothing is trained."""


class Gan(ABC):
    """A generative adversarial network; see its subclasses.

    Parameters
    ----------
    arch : Architecture
        See :func:`experiments.gans.architecture`.
    batch_size : int
        Records in each step.
    learning_rate, betas : float, (float, float)
        Of Adam.
    discriminator_steps : int
        Updates of the discriminator for each of the generator.
    device : str
        Where torch computes, such as "cpu" or "cuda". Random numbers always come from NumPy, and a checkpoint of one
        device goes on at another, with other rounding.

    After ``fit``: ``generators`` (torch modules), ``discriminators`` (functions of records), ``steps`` (updates of the
    discriminator so far).
    """

    def __init__(
        self,
        arch: Architecture,
        *,
        batch_size: int = 64,
        learning_rate: float = 2e-4,
        betas: tuple[float, float] = (0.5, 0.999),
        discriminator_steps: int = 1,
        device: str = "cpu",
    ) -> None:
        if not isinstance(arch, Architecture):
            raise InputTypeError(f"arch must be what experiments.gans.architecture returns, got {arch!r}")
        self.arch = arch
        self.batch_size = check_whole("batch_size", batch_size, low=1)
        self.learning_rate = check_number("learning_rate", learning_rate, low=0.0, open_low=True, open_high=True)
        self.betas = tuple(check_number("betas", beta, low=0.0, high=1.0, open_high=True) for beta in betas)
        self.discriminator_steps = check_whole("discriminator_steps", discriminator_steps, low=1)
        self.steps = 0
        self._device = _usable(device)
        self._networks: dict[str, nn.Sequential] = {}
        self._optimizers: dict[str, torch.optim.Optimizer] = {}

    sigmoid = True
    """Whether scores are probabilities."""

    @property
    def latent_size(self) -> int:
        """Numbers that a generator starts from."""
        return self.arch.latent_size

    @property
    def generators(self) -> tuple[nn.Sequential, ...]:
        """The generators, as torch modules: (n, latent_size) ↦ (n, \\*shape)."""
        self._check_fitted()
        return tuple(network for name, network in self._networks.items() if name.startswith("generator"))

    @property
    def discriminators(self) -> tuple[Scorer, ...]:
        """Functions from records (n, \\*shape) to scores (n,); a large one speaks for membership."""
        self._check_fitted()
        return tuple(
            Score(network, self.arch.shape, self.sigmoid)
            for name, network in self._networks.items()
            if name.startswith("discriminator")
        )

    def fit(
        self,
        X: Any,
        *,
        epochs: int,
        rng: Any = None,
        y: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        progress: Callable[[float], object] | None = None,
    ) -> Self:
        """Train from the start, or from a checkpoint, and return the model itself.

        Parameters
        ----------
        X : array of shape (n, \\*shape)
            Records, scaled to [-1, 1].
        epochs : int
            Passes through the records.
        rng : optional
            Anything that ``numpy.random.default_rng`` takes. Weights, batches and latents come from it alone: on one
            thread a rerun is the same to the last bit. A checkpoint takes a number.
        y : array of int, optional
            Labels, for a conditional model.
        checkpoint : path, optional
            A file that keeps the training every ``checkpoint_every`` epochs and at the end. A later call with the same
            data, settings and seed goes on from there, to the same weights as without a break; also to more epochs.
            Keep it as secret as the records: it holds their SHA-256 and the state of the random numbers.
        checkpoint_every : int
            Epochs between two writings.
        progress : callable, optional
            Called with the share of the epochs done.
        """
        total = check_whole("epochs", epochs, low=0)
        every = check_whole("checkpoint_every", checkpoint_every, low=1)
        records = self._check_records(X)
        labels = self._check_labels(y, len(records))
        if checkpoint is not None and rng is None:
            raise InputError("rng is needed with checkpoint=: a number, so that another run finds the same training")
        seed = int(np.random.default_rng(rng).integers(2**63))
        chance = np.random.default_rng(seed)
        path = None if checkpoint is None else Path(checkpoint)
        key = "" if path is None else checkpoints.digest(self._settings(), seed, records, labels)
        earlier = None if path is None else _earlier(path, key, total)
        self.steps = 0
        self._networks, self._optimizers = {}, {}
        self._build(chance)
        done = 0 if earlier is None else self._resume(earlier, chance)
        self._prepare(self._tensor(records), None if labels is None else self._tensor(labels), seed)
        try:
            for epoch in range(done, total):
                self._epoch(chance)
                if path is not None and ((epoch + 1) % every == 0 or epoch + 1 == total):
                    checkpoints.write(path, self._state(key, epoch + 1, chance))
                if progress is not None:
                    progress((epoch + 1) / total)
        finally:
            self._forget()
        return self

    def sample(self, n: int, rng: Any = None) -> Images:
        """Return n generated records of shape (n, \\*shape), in [-1, 1].

        Parameters
        ----------
        n : int
            Number of records.
        rng : optional
            Anything that ``numpy.random.default_rng`` takes.
        """
        count = check_whole("n", n, low=1, high=2**40)
        chance = np.random.default_rng(rng)
        which = chance.integers(len(self.generators), size=count)
        latents = self._latents(count, chance)
        made = np.empty((count, *self.arch.shape), dtype=np.float32)
        for number, generator in enumerate(self.generators):
            chosen = which == number
            if chosen.any():
                made[chosen] = in_blocks(generator, latents[self._tensor(chosen)])
        return made

    @abstractmethod
    def _build(self, rng: np.random.Generator) -> None:
        """Make networks and optimisers, each by :meth:`_add`."""

    @abstractmethod
    def _epoch(self, rng: np.random.Generator) -> None:
        """Pass through the records once."""

    def _prepare(self, records: Tensor, labels: Tensor | None, seed: int) -> None:
        """Keep the records for the epochs."""
        self._records, self._labels = records, labels

    def _forget(self) -> None:
        """Let the records go: a model that is kept or shared should not carry them."""
        del self._records, self._labels

    def _add(self, name: str, network: nn.Sequential) -> None:
        self._networks[name] = network.to(self._device)
        self._optimizers[name] = torch.optim.Adam(
            network.parameters(), lr=self.learning_rate, betas=self.betas, fused=True
        )

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self._device)

    def _latents(self, count: int, rng: np.random.Generator) -> Tensor:
        return self._tensor(rng.standard_normal((count, self.latent_size), dtype=np.float32))

    def _batches(self, size: int, rng: np.random.Generator) -> list[Tensor]:
        """Return the row numbers of whole batches in a new order; what is left over waits for another epoch."""
        order = self._tensor(rng.permutation(size))
        return [order[i : i + self.batch_size] for i in range(0, size - self.batch_size + 1, self.batch_size)]

    def _update(self, name: str, loss: Tensor) -> None:
        optimizer = self._optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def _settings(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "steps"}
        return {"model": type(self).__name__, "torch": torch.__version__, **kept}

    def _state(self, key: str, epoch: int, rng: np.random.Generator) -> dict[str, Any]:
        return {
            "key": key,
            "epoch": epoch,
            "steps": self.steps,
            "rng": json.dumps(rng.bit_generator.state),
            "networks": {name: network.state_dict() for name, network in self._networks.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self._optimizers.items()},
        }

    def _resume(self, state: dict[str, Any], rng: np.random.Generator) -> int:
        """Take over the state of a checkpoint; return the number of epochs done."""
        for name, network in self._networks.items():
            network.load_state_dict(state["networks"][name])
            self._optimizers[name].load_state_dict(state["optimizers"][name])
        rng.bit_generator.state = json.loads(state["rng"])
        self.steps = int(state["steps"])
        return int(state["epoch"])

    def _check_records(self, X: Any) -> Images:
        values = as_records(X, self.arch.shape)
        if values.size and not np.abs(values).max() <= 1.0 + 1e-6:
            raise InputError(
                f"X must hold numbers scaled to [-1, 1], got {float(values.min()):g} to {float(values.max()):g}"
            )
        self._check_size(len(values))
        return np.array(np.clip(values, -1.0, 1.0), dtype=np.float32, order="C")

    def _check_size(self, records: int) -> None:
        if records < max(self.batch_size, 2):
            raise InputError(
                f"X must have at least {max(self.batch_size, 2)} records for batches of {self.batch_size}, got "
                f"{records}"
            )

    def _check_labels(self, y: Any, records: int) -> NDArray[np.int64] | None:
        if y is not None:
            raise InputError(f"y must be None: {type(self).__name__} is not conditional")
        return None

    def _check_fitted(self) -> None:
        if not self._networks:
            raise InputError(f"{type(self).__name__} is not trained yet: call fit first")


def _earlier(path: Path, key: str, epochs: int) -> dict[str, Any] | None:
    """Return the state of a checkpoint that has done at most so many epochs, or None."""
    state = checkpoints.read(path, key)
    if state is not None and state["epoch"] > epochs:
        raise InputError(f"epochs must be at least {state['epoch']}, which {str(path)!r} has done, got {epochs}")
    return state


@dataclass(frozen=True, eq=False)
class Score:
    """The output of a discriminator for records (n, \\*shape); between 0 and 1 if ``sigmoid``."""

    network: nn.Sequential
    shape: tuple[int, ...]
    sigmoid: bool

    def __call__(self, records: Any) -> Array:
        """Return one score per record."""
        return self._of(as_tensor(records, self.shape))

    def _of(self, inputs: Tensor) -> Array:
        outputs = in_blocks(self.network, inputs)[:, 0].astype(np.float64)
        return 1.0 / (1.0 + np.exp(-np.clip(outputs, -700.0, 700.0))) if self.sigmoid else outputs


def cross_entropies(outputs: Tensor, real: int) -> Tensor:
    """Return the loss of a discriminator whose first ``real`` outputs are for records, the rest for generated ones."""
    return softplus(-outputs[:real]).mean() + softplus(outputs[real:]).mean()


def as_tensor(records: Any, shape: tuple[int, ...]) -> Tensor:
    """Return checked records in single precision."""
    return torch.from_numpy(np.array(as_records(records, shape, "records"), dtype=np.float32, order="C"))


def as_records(X: Any, shape: tuple[int, ...], name: str = "X") -> NDArray[Any]:
    """Return finite numbers of shape (n, \\*shape)."""
    try:
        values = np.asarray(X)
    except ValueError:
        raise InputError(f"{name} must have records of one shape, got ragged ones") from None
    if values.dtype.kind not in "iufb":
        raise InputTypeError(f"{name} must hold numbers, got {values.dtype}")
    if values.shape[1:] != shape or values.ndim != len(shape) + 1:
        raise InputError(f"{name} must have records of shape (n, {', '.join(map(str, shape))}), got {values.shape}")
    if not np.isfinite(values).all():
        raise InputError(f"{name} must hold finite numbers, got NaN or infinity")
    return values


def in_blocks(network: nn.Module, inputs: Tensor) -> Images:
    """Return a network's outputs without gradients, a block at a time, computed where its weights are."""
    place = next((weight.device for weight in network.parameters()), inputs.device)
    with torch.inference_mode():
        parts = [network(inputs[i : i + BLOCK].to(place)).cpu().numpy() for i in range(0, len(inputs), BLOCK)]
    return np.concatenate(parts)


def set_trainable(network: nn.Module, trainable: bool) -> None:
    """Switch the gradients of a network's weights on or off: those that are off cost nothing."""
    for parameter in network.parameters():
        parameter.requires_grad_(trainable)


def _usable(device: Any) -> torch.device:
    """Return a device that this machine has."""
    try:
        place = torch.device(device)
        torch.zeros(1, device=place)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(f"device must be one that torch can use here, got {device!r}: {error}") from None
    return place
