"""Two GANs with one generator and one discriminator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from whosin.errors import check_number
from whosin.zoo.architectures import Architecture
from whosin.zoo.training import Gan, as_records, check_betas, in_blocks, set_trainable

__all__ = ["JSGAN", "WGANGP", "Score"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Score:
    """The output of a discriminator for records (n, \\*shape); between 0 and 1 if ``sigmoid``."""

    network: nn.Sequential
    shape: tuple[int, ...]
    sigmoid: bool

    def __call__(self, records: Any) -> Array:
        """Return one score per record."""
        values = torch.from_numpy(np.array(as_records(records, self.shape, "records"), dtype=np.float32, order="C"))
        outputs = in_blocks(self.network, values)[:, 0].astype(np.float64)
        return 1.0 / (1.0 + np.exp(-np.clip(outputs, -700.0, 700.0))) if self.sigmoid else outputs


class _Single(Gan):
    """One generator against one discriminator."""

    sigmoid: bool

    @property
    def discriminators(self) -> tuple[Callable[..., Array], ...]:
        """The discriminator, as a function from records (n, \\*shape) to scores (n,)."""
        self._check_fitted()
        return (Score(self._networks["discriminator"], self.arch.shape, self.sigmoid),)

    def _build(self, rng: np.random.Generator) -> None:
        self._add("generator", self.arch.generator(rng))
        self._add("discriminator", self.arch.discriminator(rng))

    def _epoch(self, rng: np.random.Generator) -> None:
        generator, discriminator = self._networks["generator"], self._networks["discriminator"]
        for rows in self._batches(len(self._records), rng):
            with torch.no_grad():
                fake = generator(self._latents(self.batch_size, rng))
            self._update("discriminator", self._discriminator_loss(discriminator, self._records[rows], fake, rng))
            self.steps += 1
            if self.steps % self.discriminator_steps == 0:
                set_trainable(discriminator, False)
                made = generator(self._latents(self.batch_size, rng))
                self._update("generator", self._generator_loss(discriminator(made)))
                set_trainable(discriminator, True)

    def _discriminator_loss(
        self, discriminator: nn.Sequential, real: Tensor, fake: Tensor, rng: np.random.Generator
    ) -> Tensor:
        raise NotImplementedError

    def _generator_loss(self, outputs: Tensor) -> Tensor:
        raise NotImplementedError


class JSGAN(_Single):
    """The first GAN, whose loss is the Jensen-Shannon divergence (Goodfellow et al. 2014).

    Parameters
    ----------
    arch : Architecture
        See :func:`whosin.zoo.architecture`.
    batch_size : int
        Records in each step.
    learning_rate, beta1, beta2 : float
        Of Adam. The paper prints none; these are those of Radford, Metz and Chintala (2016).
    discriminator_steps : int
        Updates of the discriminator for each of the generator: 1 in the paper.

    Notes
    -----
    The generator maximises ln D(G(z)), as the paper advises, instead of minimising ln(1 - D(G(z))). One step costs a
    pass forward and back through the generator and two through the discriminator.
    """

    sigmoid = True

    def __init__(
        self,
        arch: Architecture,
        *,
        batch_size: int = 64,
        learning_rate: float = 2e-4,
        beta1: float = 0.5,
        beta2: float = 0.999,
        discriminator_steps: int = 1,
    ) -> None:
        super().__init__(
            arch,
            batch_size=batch_size,
            learning_rate=learning_rate,
            betas=check_betas(beta1, beta2),
            discriminator_steps=discriminator_steps,
        )

    def _discriminator_loss(
        self, discriminator: nn.Sequential, real: Tensor, fake: Tensor, rng: np.random.Generator
    ) -> Tensor:
        outputs = discriminator(torch.cat([real, fake]))
        return softplus(-outputs[: len(real)]).mean() + softplus(outputs[len(real) :]).mean()

    def _generator_loss(self, outputs: Tensor) -> Tensor:
        return softplus(-outputs).mean()


class WGANGP(_Single):
    """The Wasserstein GAN with a gradient penalty (Gulrajani et al. 2017).

    Parameters
    ----------
    arch : Architecture
        See :func:`whosin.zoo.architecture`.
    batch_size : int
        Records in each step.
    learning_rate, beta1, beta2 : float
        Of Adam: 1e-4, 0 and 0.9 in the paper.
    discriminator_steps : int
        Updates of the critic for each of the generator: 5 in the paper.
    penalty : float
        Weight of the squared distance of the critic's gradient norm from 1: 10 in the paper.

    Notes
    -----
    An epoch is one pass of the critic through the records, so the generator is updated a fifth as often.
    """

    sigmoid = False

    def __init__(
        self,
        arch: Architecture,
        *,
        batch_size: int = 64,
        learning_rate: float = 1e-4,
        beta1: float = 0.0,
        beta2: float = 0.9,
        discriminator_steps: int = 5,
        penalty: float = 10.0,
    ) -> None:
        super().__init__(
            arch,
            batch_size=batch_size,
            learning_rate=learning_rate,
            betas=check_betas(beta1, beta2),
            discriminator_steps=discriminator_steps,
        )
        self.penalty = check_number("penalty", penalty, low=0.0)

    def _discriminator_loss(
        self, discriminator: nn.Sequential, real: Tensor, fake: Tensor, rng: np.random.Generator
    ) -> Tensor:
        outputs = discriminator(torch.cat([real, fake]))
        loss: Tensor = outputs[len(real) :].mean() - outputs[: len(real)].mean()
        return loss + self.penalty * _gradient_penalty(discriminator, real, fake, rng)

    def _generator_loss(self, outputs: Tensor) -> Tensor:
        return -outputs.mean()


def _gradient_penalty(critic: nn.Sequential, real: Tensor, fake: Tensor, rng: np.random.Generator) -> Tensor:
    """Mean of (‖∇D‖ - 1)² at random points between real and generated records."""
    weights = torch.from_numpy(rng.random((len(real), *(1 for _ in real.shape[1:])), dtype=np.float32))
    between = torch.lerp(fake, real, weights).requires_grad_(True)
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    norms = torch.linalg.vector_norm(gradient.flatten(1), dim=1)
    penalty: Tensor = ((norms - 1.0) ** 2).mean()
    return penalty
