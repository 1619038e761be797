"""DP-CGAN: a conditional GAN whose discriminator is trained by DP-SGD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import one_hot, softplus

from experiments.gans.architectures import Architecture
from experiments.gans.clipping import clipped_sum
from experiments.gans.training import Gan, Images, Score, as_tensor, in_blocks, set_trainable
from whosin.errors import InputError, InputTypeError, check_number, check_whole

__all__ = ["DPCGAN"]

Array = NDArray[np.float64]


class DPCGAN(Gan):
    """A conditional JS-GAN that meets its records through DP-SGD alone.

    Parameters
    ----------
    arch : Architecture
        See :func:`experiments.gans.architecture`.
    noise_multiplier : float
        Standard deviation of the noise over ``max_grad_norm``. At 0 there is no noise and no privacy.
    max_grad_norm : float
        Norm to which the gradient of each real record is cut; at least 1e-6, far above where single precision ends.
    sample_rate : float
        Probability that a record takes part in a step, independently of all others and of other steps.
    classes : int
        Labels are 0, …, classes - 1.
    batch_size, learning_rate, betas, discriminator_steps, device
        As in :class:`Gan`; a batch has so many generated records.

    Attributes
    ----------
    steps : int
        Updates of the discriminator so far: what an accountant needs next to ``noise_multiplier`` and ``sample_rate``,
        as in ``wi.DPSGD(model.noise_multiplier, model.sample_rate, model.steps)``.

    Notes
    -----
    Each step adds the cut gradients of the real records that a Poisson draw chose and Gaussian noise, and divides by
    the expected number of records (the number of all records counts as public). The generated part of the loss and the
    generator see no record except through the discriminator, so they cost no privacy. Labels of generated records are
    drawn uniformly, never from the data. An epoch has round(1/sample_rate) steps. The noise comes from NumPy, not from
    a source that is safe against an adversary, and whoever knows ``rng`` (or has the checkpoint, which holds its state)
    can take it away again: a model for study. A promise for a released model needs a seed that is kept secret, and used
    for one training only.

    References
    ----------
    Torkzadehmahani, Kairouz, Paten (2019), DP-CGAN: differentially private synthetic data and label generation.
    Abadi et al. (2016), Deep learning with differential privacy.
    """

    def __init__(
        self,
        arch: Architecture,
        noise_multiplier: float,
        max_grad_norm: float,
        sample_rate: float,
        classes: int,
        **settings: Any,
    ) -> None:
        super().__init__(arch, **settings)
        self.noise_multiplier = check_number("noise_multiplier", noise_multiplier, low=0.0, high=1e6)
        self.max_grad_norm = check_number("max_grad_norm", max_grad_norm, low=1e-6, high=1e6)
        self.sample_rate = check_number("sample_rate", sample_rate, low=0.0, high=1.0, open_low=True)
        self.classes = check_whole("classes", classes, low=1)

    @property
    def generators(self) -> tuple[nn.Sequential, ...]:
        """A generator for each class, as torch modules: (n, latent_size) ↦ (n, \\*shape)."""
        self._check_fitted()
        shared = self._networks["generator"]
        return tuple(nn.Sequential(_OfClass(label, self.classes), shared) for label in range(self.classes))

    @property
    def discriminators(self) -> tuple[Callable[..., Array], ...]:
        """The discriminator: from records and, optionally, labels to scores; without labels the largest of all."""
        self._check_fitted()
        return (_ConditionalScore(self._networks["discriminator"], self.arch.shape, True, self.classes),)

    def sample(self, n: int, rng: Any = None, y: Any = None) -> Images:
        """Return n generated records, of the classes ``y`` or, without, of classes drawn uniformly."""
        if y is None:
            return super().sample(n, rng)
        count = check_whole("n", n, low=1, high=2**40)
        labels = _labels(y, count, self.classes)
        latents = self._latents(count, np.random.default_rng(rng))
        self._check_fitted()
        hot = _hot(labels, self.classes).to(self._device)
        return in_blocks(self._networks["generator"], torch.cat([latents, hot], dim=1))

    def _build(self, rng: np.random.Generator) -> None:
        self._add("generator", self.arch.generator(rng, classes=self.classes))
        self._add("discriminator", self.arch.discriminator(rng, classes=self.classes))

    def _epoch(self, rng: np.random.Generator) -> None:
        for _ in range(max(1, round(1.0 / self.sample_rate))):
            self._discriminate(rng)
            self.steps += 1
            if self.steps % self.discriminator_steps == 0:
                discriminator = self._networks["discriminator"]
                set_trainable(discriminator, False)
                self._update("generator", softplus(-discriminator(self._made(rng))).mean())
                set_trainable(discriminator, True)

    def _discriminate(self, rng: np.random.Generator) -> None:
        discriminator, optimizer = self._networks["discriminator"], self._optimizers["discriminator"]
        assert self._labels is not None
        drawn = self._tensor(np.flatnonzero(rng.random(len(self._records)) < self.sample_rate))
        real = _joined(discriminator, self._records[drawn], _hot(self._labels[drawn], self.classes))
        sums = clipped_sum(discriminator, real, _loss_of_real, self.max_grad_norm)
        with torch.no_grad():
            fake = self._made(rng)
        optimizer.zero_grad(set_to_none=True)
        softplus(discriminator(fake)).mean().backward()
        scale = self.noise_multiplier * self.max_grad_norm
        expected = self.sample_rate * len(self._records)
        for parameter, total in zip(discriminator.parameters(), sums, strict=True):
            noise = self._tensor(rng.standard_normal(tuple(total.shape), dtype=np.float32))
            assert parameter.grad is not None
            parameter.grad += (total + scale * noise) / expected
        optimizer.step()

    def _made(self, rng: np.random.Generator) -> Tensor:
        """Return generated records joined with their labels, which are drawn uniformly."""
        hot = _hot(self._tensor(rng.integers(self.classes, size=self.batch_size)), self.classes)
        made = self._networks["generator"](torch.cat([self._latents(self.batch_size, rng), hot], dim=1))
        return _joined(self._networks["discriminator"], made, hot)

    def _check_size(self, records: int) -> None:
        if records < 2:
            raise InputError(f"X must have at least 2 records, got {records}")

    def _check_labels(self, y: Any, records: int) -> NDArray[np.int64]:
        if y is None:
            raise InputError("y is needed: DPCGAN is conditional and needs a label for each record")
        labels: NDArray[np.int64] = _labels(y, records, self.classes).numpy()
        return labels


class _OfClass(nn.Module):
    """Latents, joined with the label of one class."""

    def __init__(self, label: int, classes: int) -> None:
        super().__init__()
        self.label, self.classes = label, classes

    def forward(self, latents: Tensor) -> Tensor:
        labels = torch.full((len(latents),), self.label, device=latents.device)
        return torch.cat([latents, _hot(labels, self.classes).to(latents.dtype)], dim=1)


@dataclass(frozen=True, eq=False)
class _ConditionalScore(Score):
    """The sigmoid of a conditional discriminator."""

    classes: int

    def __call__(self, records: Any, y: Any = None) -> Array:
        """Return one score per record: for its label, or the largest over all labels."""
        values = as_tensor(records, self.shape)
        if y is not None:
            return self._for(values, _labels(y, len(values), self.classes))
        every = [self._for(values, torch.full((len(values),), label)) for label in range(self.classes)]
        return np.asarray(np.max(every, axis=0))

    def _for(self, values: Tensor, labels: Tensor) -> Array:
        return self._of(_joined(self.network, values, _hot(labels, self.classes)))


def _joined(network: nn.Sequential, records: Tensor, hot: Tensor) -> Tensor:
    """Return records with their labels as the discriminator takes them: more numbers, or more channels."""
    if isinstance(network[0], nn.Linear):
        return torch.cat([records.flatten(1), hot], dim=1)
    return torch.cat([records, hot[:, :, None, None].expand(-1, -1, *records.shape[2:])], dim=1)


def _loss_of_real(outputs: Tensor) -> Tensor:
    return softplus(-outputs[:, 0])


def _hot(labels: Tensor, classes: int) -> Tensor:
    return one_hot(labels, classes).to(torch.float32)


def _labels(y: Any, records: int, classes: int) -> Tensor:
    values = np.asarray(y)
    if values.dtype.kind not in "iu":
        raise InputTypeError(f"y must be whole numbers, got {values.dtype}")
    if values.shape != (records,):
        raise InputError(f"y must have one label for each of {records} records, got shape {values.shape}")
    if values.size and not 0 <= values.min() <= values.max() < classes:
        raise InputError(f"y must be labels from 0 to {classes - 1}, got {values.min()} to {values.max()}")
    return torch.from_numpy(values.astype(np.int64))
