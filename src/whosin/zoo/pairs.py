"""privGAN: several generator-discriminator pairs, each on its own part of the data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from whosin.errors import InputError, check_number, check_whole
from whosin.zoo.architectures import Architecture
from whosin.zoo.gans import Score
from whosin.zoo.training import Gan, check_betas, set_trainable

__all__ = ["PrivGAN"]


class PrivGAN(Gan):
    """Pairs of a JS-GAN, each on a part of the data, that a privacy discriminator must not tell apart.

    Parameters
    ----------
    arch : Architecture
        See :func:`whosin.zoo.architecture`. The privacy discriminator has the layers of the others, with an output a
        pair.
    pairs : int
        Number of pairs. The records are dealt to them at random, in parts of equal size (or one more).
    privacy_weight : float
        λ: how much a generator cares about the privacy discriminator. At 0 the pairs are plain GANs.
    batch_size, learning_rate, beta1, beta2, discriminator_steps
        As in :class:`JSGAN`.

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

    def __init__(
        self,
        arch: Architecture,
        *,
        pairs: int = 2,
        privacy_weight: float = 1.0,
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
        self.pairs = check_whole("pairs", pairs, low=2)
        self.privacy_weight = check_number("privacy_weight", privacy_weight, low=0.0, high=1e6)

    @property
    def discriminators(self) -> tuple[Callable[..., NDArray[np.float64]], ...]:
        """The discriminators of the pairs, as functions from records (n, \\*shape) to scores (n,)."""
        self._check_fitted()
        return tuple(Score(self._networks[f"discriminator {i}"], self.arch.shape, True) for i in range(self.pairs))

    def _build(self, rng: np.random.Generator) -> None:
        for i in range(self.pairs):
            self._add(f"generator {i}", self.arch.generator(rng))
            self._add(f"discriminator {i}", self.arch.discriminator(rng))
        self._add("privacy", self.arch.discriminator(rng, outputs=self.pairs))

    def _prepare(self, records: Tensor, labels: Tensor | None, seed: int) -> None:
        order = torch.from_numpy(np.random.default_rng([seed, self.pairs]).permutation(len(records)))
        super()._prepare(records, labels, seed)
        self._parts = [records[order[i :: self.pairs]] for i in range(self.pairs)]

    def _forget(self) -> None:
        super()._forget()
        del self._parts

    def _epoch(self, rng: np.random.Generator) -> None:
        batches = [self._batches(len(part), rng) for part in self._parts]
        for rows in zip(*batches, strict=False):
            made = [self._discriminate(i, self._parts[i][chosen], rng) for i, chosen in enumerate(rows)]
            labels = torch.arange(self.pairs).repeat_interleave(self.batch_size)
            self._update("privacy", cross_entropy(self._networks["privacy"](torch.cat(made)), labels))
            self.steps += 1
            if self.steps % self.discriminator_steps == 0:
                for i in range(self.pairs):
                    self._generate(i, rng)

    def _discriminate(self, pair: int, real: Tensor, rng: np.random.Generator) -> Tensor:
        with torch.no_grad():
            fake: Tensor = self._networks[f"generator {pair}"](self._latents(self.batch_size, rng))
        outputs = self._networks[f"discriminator {pair}"](torch.cat([real, fake]))
        loss = softplus(-outputs[: len(real)]).mean() + softplus(outputs[len(real) :]).mean()
        self._update(f"discriminator {pair}", loss)
        return fake

    def _generate(self, pair: int, rng: np.random.Generator) -> None:
        judges = [self._networks[f"discriminator {pair}"], self._networks["privacy"]]
        for judge in judges:
            set_trainable(judge, False)
        made = self._networks[f"generator {pair}"](self._latents(self.batch_size, rng))
        others = (pair + rng.integers(1, self.pairs, size=self.batch_size)) % self.pairs
        loss = softplus(-judges[0](made)).mean()
        loss = loss + self.privacy_weight * cross_entropy(judges[1](made), torch.from_numpy(others))
        self._update(f"generator {pair}", loss)
        for judge in judges:
            set_trainable(judge, True)

    def _check_size(self, records: int) -> None:
        if records < self.pairs * self.batch_size:
            raise InputError(
                f"X must have at least {self.pairs * self.batch_size} records for {self.pairs} pairs with batches of "
                f"{self.batch_size}, got {records}"
            )
