"""GANs of pairs of a generator and a discriminator: JS-GAN, WGAN-GP and privGAN."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from experiments.gans.architectures import Architecture
from experiments.gans.training import Gan, cross_entropies, set_trainable
from whosin.errors import InputError, check_number, check_whole

__all__ = ["JSGAN", "WGANGP", "PrivGAN"]


class JSGAN(Gan):
    """The first GAN, whose loss is the Jensen-Shannon divergence (Goodfellow et al. 2014); parameters: :class:`Gan`.

    Notes
    -----
    The paper prints no rates; these are those of Radford, Metz and Chintala (2016). The generator maximises ln D(G(z)),
    as the paper advises, instead of minimising ln(1 - D(G(z))). One step costs a pass forward and back through the
    generator and two through the discriminator.
    """

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
        return cross_entropies(discriminator(torch.cat([real, fake])), len(real))

    def _generator_loss(self, outputs: Tensor) -> Tensor:
        return softplus(-outputs).mean()


class WGANGP(JSGAN):
    """The Wasserstein GAN with a gradient penalty (Gulrajani et al. 2017), with that paper's values.

    Parameters
    ----------
    arch, batch_size, learning_rate, betas, discriminator_steps, device
        As in :class:`Gan`.
    penalty : float
        Weight of the squared distance of the critic's gradient norm from 1.

    Notes
    -----
    An epoch is one pass of the critic through the records, so the generator is updated a fifth as often.
    """

    sigmoid = False

    def __init__(
        self,
        arch: Architecture,
        *,
        learning_rate: float = 1e-4,
        betas: tuple[float, float] = (0.0, 0.9),
        discriminator_steps: int = 5,
        penalty: float = 10.0,
        **settings: Any,
    ) -> None:
        super().__init__(
            arch, learning_rate=learning_rate, betas=betas, discriminator_steps=discriminator_steps, **settings
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


class PrivGAN(Gan):
    """Pairs of a JS-GAN, each on a part of the data, that a privacy discriminator must not tell apart.

    Parameters
    ----------
    arch, batch_size, learning_rate, betas, discriminator_steps, device
        As in :class:`Gan`. The privacy discriminator has the layers of the others, with an output per pair.
    pairs : int
        Number of pairs. The records are dealt to them at random, in parts of equal size (or one more).
    privacy_weight : float
        λ: how much a generator cares about the privacy discriminator. At 0 the pairs are plain GANs.

    Notes
    -----
    The privacy discriminator learns which generator made a record; every generator adds to its loss λ times the cross
    entropy of the privacy discriminator with the number of another generator, drawn at random (for two pairs, of the
    other). This is the form of the minimax game that does not saturate. The privacy discriminator sees generated
    records alone and is not trained in advance. This gives no guarantee of privacy.

    References
    ----------
    Mukherjee, Xu, Trivedi, Patowary, Lavista Ferres (2021), privGAN: protecting GANs from membership inference attacks
    at low cost to utility.
    """

    def __init__(self, arch: Architecture, *, pairs: int = 2, privacy_weight: float = 1.0, **settings: Any) -> None:
        super().__init__(arch, **settings)
        self.pairs = check_whole("pairs", pairs, low=2)
        self.privacy_weight = check_number("privacy_weight", privacy_weight, low=0.0, high=1e6)

    def _build(self, rng: np.random.Generator) -> None:
        for i in range(self.pairs):
            self._add(f"generator {i}", self.arch.generator(rng))
            self._add(f"discriminator {i}", self.arch.discriminator(rng))
        self._add("privacy", self.arch.discriminator(rng, outputs=self.pairs))

    def _prepare(self, records: Tensor, labels: Tensor | None, seed: int) -> None:
        order = self._tensor(np.random.default_rng([seed, self.pairs]).permutation(len(records)))
        super()._prepare(records, labels, seed)
        self._parts = [records[order[i :: self.pairs]] for i in range(self.pairs)]

    def _forget(self) -> None:
        super()._forget()
        del self._parts

    def _epoch(self, rng: np.random.Generator) -> None:
        batches = [self._batches(len(part), rng) for part in self._parts]
        for rows in zip(*batches, strict=False):
            made = [self._discriminate(i, self._parts[i][chosen], rng) for i, chosen in enumerate(rows)]
            labels = self._tensor(np.repeat(np.arange(self.pairs), self.batch_size))
            self._update("privacy", cross_entropy(self._networks["privacy"](torch.cat(made)), labels))
            self.steps += 1
            if self.steps % self.discriminator_steps == 0:
                for i in range(self.pairs):
                    self._generate(i, rng)

    def _discriminate(self, pair: int, real: Tensor, rng: np.random.Generator) -> Tensor:
        with torch.no_grad():
            fake: Tensor = self._networks[f"generator {pair}"](self._latents(self.batch_size, rng))
        outputs = self._networks[f"discriminator {pair}"](torch.cat([real, fake]))
        self._update(f"discriminator {pair}", cross_entropies(outputs, len(real)))
        return fake

    def _generate(self, pair: int, rng: np.random.Generator) -> None:
        judges = [self._networks[f"discriminator {pair}"], self._networks["privacy"]]
        for judge in judges:
            set_trainable(judge, False)
        made = self._networks[f"generator {pair}"](self._latents(self.batch_size, rng))
        others = (pair + rng.integers(1, self.pairs, size=self.batch_size)) % self.pairs
        loss = softplus(-judges[0](made)).mean()
        loss = loss + self.privacy_weight * cross_entropy(judges[1](made), self._tensor(others))
        self._update(f"generator {pair}", loss)
        for judge in judges:
            set_trainable(judge, True)

    def _check_size(self, records: int) -> None:
        if records < self.pairs * self.batch_size:
            raise InputError(
                f"X must have at least {self.pairs * self.batch_size} records for {self.pairs} pairs with batches of "
                f"{self.batch_size}, got {records}"
            )


def _gradient_penalty(critic: nn.Sequential, real: Tensor, fake: Tensor, rng: np.random.Generator) -> Tensor:
    """Mean of (‖∇D‖ - 1)² at random points between real and generated records."""
    weights = torch.from_numpy(rng.random((len(real), *(1 for _ in real.shape[1:])), dtype=np.float32)).to(real.device)
    between = torch.lerp(fake, real, weights).requires_grad_(True)
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    norms = torch.linalg.vector_norm(gradient.flatten(1), dim=1)
    penalty: Tensor = ((norms - 1.0) ** 2).mean()
    return penalty
