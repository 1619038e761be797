"""The layers of generators and discriminators, as plain data, and the networks built from them.

Xu et al. (2022), appendix E, prints the layers for three data sets; :func:`architecture` gives exactly those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from whosin.errors import InputError, InputTypeError, check_whole

__all__ = ["Activation", "Architecture", "Conv", "ConvTransposed", "Dense", "Flatten", "Reshape", "architecture"]

NAMES = ("mnist", "cifar10", "skin", "vector", "tabular", "small")
SLOPE = 0.2
"""Slope of LeakyReLU below zero."""


@dataclass(frozen=True)
class Dense:
    """A fully connected layer."""

    inputs: int
    units: int

    def build(self) -> nn.Module:
        """Return the layer, its weights not yet set."""
        return _without_weights(nn.Linear, self.inputs, self.units)


@dataclass(frozen=True)
class Conv:
    """A convolution with a square kernel."""

    inputs: int
    filters: int
    kernel: int
    stride: int
    padding: int

    def build(self) -> nn.Module:
        """Return the layer, its weights not yet set."""
        return _without_weights(
            nn.Conv2d, self.inputs, self.filters, self.kernel, stride=self.stride, padding=self.padding
        )


@dataclass(frozen=True)
class ConvTransposed:
    """A transposed convolution with a square kernel."""

    inputs: int
    filters: int
    kernel: int
    stride: int
    padding: int
    output_padding: int = 0

    def build(self) -> nn.Module:
        """Return the layer, its weights not yet set."""
        return _without_weights(
            nn.ConvTranspose2d,
            self.inputs,
            self.filters,
            self.kernel,
            stride=self.stride,
            padding=self.padding,
            output_padding=self.output_padding,
        )


@dataclass(frozen=True)
class Activation:
    """A function of each number: "leaky_relu" (slope 0.2), "relu" or "tanh"."""

    name: str

    def build(self) -> nn.Module:
        """Return the layer."""
        return {"leaky_relu": nn.LeakyReLU(SLOPE), "relu": nn.ReLU(), "tanh": nn.Tanh()}[self.name]


@dataclass(frozen=True)
class Reshape:
    """From a vector to a shape."""

    shape: tuple[int, ...]

    def build(self) -> nn.Module:
        """Return the layer."""
        return nn.Unflatten(1, self.shape)


@dataclass(frozen=True)
class Flatten:
    """From any shape to a vector."""

    def build(self) -> nn.Module:
        """Return the layer."""
        return nn.Flatten()


def _without_weights(kind: type[nn.Module], *sizes: int, **settings: int) -> nn.Module:
    layer: nn.Module = nn.utils.skip_init(kind, *sizes, **settings)
    return layer


Layer = Dense | Conv | ConvTransposed | Activation | Reshape | Flatten


@dataclass(frozen=True)
class Architecture:
    """Layers of a generator and of a discriminator.

    The discriminator's last layer is linear: a JS-GAN puts the sigmoid on top of it, a WGAN does not. ``classes`` > 0
    makes both conditional: the generator takes so many further inputs (one for each class), the discriminator so many
    further inputs or, if it starts with a convolution, channels.
    """

    name: str
    shape: tuple[int, ...]
    latent_size: int
    generator_layers: tuple[Layer, ...]
    discriminator_layers: tuple[Layer, ...]

    def generator(self, rng: np.random.Generator, *, classes: int = 0) -> nn.Sequential:
        """Return a generator with random weights: (n, latent_size + classes) ↦ (n, \\*shape)."""
        return _network(_widened(self.generator_layers, classes), rng)

    def discriminator(self, rng: np.random.Generator, *, classes: int = 0, outputs: int = 1) -> nn.Sequential:
        """Return a discriminator with random weights: (n, \\*shape) ↦ (n, outputs)."""
        *layers, last = self.discriminator_layers
        assert isinstance(last, Dense)
        return _network(_widened((*layers, replace(last, units=outputs)), classes), rng)


def architecture(
    name: str,
    shape: Sequence[int] | None = None,
    *,
    latent_size: int | None = None,
    width: int | None = None,
) -> Architecture:
    """Return the layers of appendix E of Xu et al. (2022), or those of a small network of dense layers.

    Parameters
    ----------
    name : {"mnist", "cifar10", "skin", "vector", "tabular", "small"}
        "mnist": dense, for 784 numbers. "cifar10" and "skin": convolutions, for square images. "vector" (or
        "tabular"): dense, two hidden layers of 256 for any shape. "small": the same with 128, for tests.
    shape : sequence of int, optional
        Shape of a record, channels first for images. By default (28, 28), (3, 32, 32) and (3, 64, 64); the others
        have none.
    latent_size : int, optional
        Numbers that the generator starts from: 100 for the three (printed for "mnist" alone), 32 for "vector", 16 for
        "small".
    width : int, optional
        Units of the hidden layers of "vector" and "small".

    Notes
    -----
    The layers are those printed, which put no activation between the first two convolutions of a discriminator, nor
    after the first dense layer of a convolutional generator. The printed paddings do not give the stated sizes of
    images, so these were chosen:

    * discriminators: four convolutions with kernel 5 and stride 2 do not fit on 32x32 without padding. Padding 2 halves
      the sides (upwards) each time.
    * generator of "cifar10": the printed layers lead 2 → 5 → 10 → 20 → 40. The second gets padding 2 instead of 1:
      2 → 5 → 8 → 16 → 32.
    * generator of "skin": padding 2 with output padding 1 doubles the sides, 4 → 8 → 16 → 32 → 64. For other shapes the
      last layers double (or double less one) and the first makes up for it: 28 is 4 → 4 → 7 → 14 → 28.

    Weights start as in Glorot and Bengio (2010), biases at 0, the defaults of Keras, in whose words the layers are
    printed.

    References
    ----------
    Xu, Mukherjee, Liu, Tople, Dodhia, Lavista Ferres (2022), MACE: a flexible framework for membership privacy
    estimation in generative models, appendix E.
    """
    if not isinstance(name, str) or name not in NAMES:
        raise InputError(f"name must be one of {', '.join(map(repr, NAMES))}, got {name!r}")
    if width is not None and name not in ("vector", "tabular", "small"):
        raise InputError(f"width must be None except for 'vector' and 'small': the layers of {name!r} are printed")
    if name == "mnist":
        return _mnist(_shape(shape, (28, 28)), _latent(latent_size, 100))
    if name == "cifar10":
        return _cifar10(_image(shape, (3, 32, 32)), _latent(latent_size, 100))
    if name == "skin":
        return _skin(_image(shape, (3, 64, 64)), _latent(latent_size, 100))
    units, latent = (128, 16) if name == "small" else (256, 32)
    hidden = units if width is None else check_whole("width", width, low=1)
    return _dense(name, _shape(shape, None), _latent(latent_size, latent), (hidden, hidden), (hidden, hidden))


def _mnist(shape: tuple[int, ...], latent: int) -> Architecture:
    if math.prod(shape) != 784:
        raise InputError(f"shape must be 784 numbers in all for 'mnist', got {shape}: use 'vector'")
    return _dense("mnist", shape, latent, (512, 512, 1024), (2048, 512, 256))


def _cifar10(shape: tuple[int, int, int], latent: int) -> Architecture:
    channels, size = shape[0], shape[1]
    layers = (
        Dense(latent, 2 * 2 * 512),
        Reshape((512, 2, 2)),
        ConvTransposed(512, 128, 4, 1, 0),
        Activation("relu"),
        *_upsampling((128, 64, 32, channels), 4, 5, size),
    )
    return Architecture("cifar10", shape, latent, layers, _convolutional(channels, size))


def _skin(shape: tuple[int, int, int], latent: int) -> Architecture:
    channels, size = shape[0], shape[1]
    layers = (
        Dense(latent, 4 * 4 * 512),
        Reshape((512, 4, 4)),
        *_upsampling((512, 256, 128, 64, channels), 5, 4, size),
    )
    return Architecture("skin", shape, latent, layers, _convolutional(channels, size))


def _dense(
    name: str, shape: tuple[int, ...], latent: int, generator: tuple[int, ...], discriminator: tuple[int, ...]
) -> Architecture:
    size = math.prod(shape)
    return Architecture(
        name,
        shape,
        latent,
        (*_stack(latent, generator), Dense(generator[-1], size), Activation("tanh"), Reshape(shape)),
        (Flatten(), *_stack(size, discriminator), Dense(discriminator[-1], 1)),
    )


def _stack(inputs: int, widths: tuple[int, ...]) -> list[Layer]:
    layers: list[Layer] = []
    for units in widths:
        layers += [Dense(inputs, units), Activation("leaky_relu")]
        inputs = units
    return layers


def _upsampling(channels: tuple[int, ...], kernel: int, start: int, size: int) -> list[Layer]:
    """Transposed convolutions with stride 2 from ``start`` to ``size``, each but the first to about twice its input."""
    sizes = [size]
    while len(sizes) < len(channels) - 1:
        sizes.insert(0, -(-sizes[0] // 2))
    layers: list[Layer] = []
    side = start
    for inputs, filters, wanted in zip(channels[:-1], channels[1:], sizes, strict=True):
        excess = 2 * (side - 1) + kernel - wanted
        padding = -(-excess // 2)
        if not 0 <= padding < kernel:
            raise InputError(f"shape must be one that these layers can reach, got sides of {size}")
        layers += [
            ConvTransposed(inputs, filters, kernel, 2, padding, 2 * padding - excess),
            Activation("relu"),
        ]
        side = wanted
    return [*layers[:-1], Activation("tanh")]


def _convolutional(channels: int, size: int) -> tuple[Layer, ...]:
    layers: list[Layer] = [Conv(channels, 64, 5, 2, 2)]
    for inputs, filters in ((64, 128), (128, 128), (128, 256)):
        layers += [Conv(inputs, filters, 5, 2, 2), Activation("leaky_relu")]
    side = size
    for _ in range(4):
        side = -(-side // 2)
    return (*layers, Flatten(), Dense(256 * side * side, 1))


def _widened(layers: tuple[Layer, ...], classes: int) -> tuple[Layer, ...]:
    """Let the first layer that has weights take so many further inputs; a vector is made first where it is dense."""
    if classes == 0:
        return layers
    place = next(i for i, layer in enumerate(layers) if isinstance(layer, Dense | Conv))
    first = layers[place]
    assert isinstance(first, Dense | Conv)
    return (replace(first, inputs=first.inputs + classes), *layers[place + 1 :])


def _network(layers: Sequence[Layer], rng: np.random.Generator) -> nn.Sequential:
    network = nn.Sequential(*(layer.build() for layer in layers))
    chance = torch.Generator().manual_seed(int(rng.integers(2**63)))
    for module in network:
        if isinstance(module, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            nn.init.xavier_uniform_(module.weight, generator=chance)
            assert module.bias is not None
            nn.init.zeros_(module.bias)
    return network


def _latent(given: int | None, usual: int) -> int:
    return usual if given is None else check_whole("latent_size", given, low=1)


def _shape(given: Any, usual: tuple[int, ...] | None) -> tuple[int, ...]:
    if given is None:
        if usual is None:
            raise InputError("shape is needed: that of one record, such as (8, 8)")
        return usual
    try:
        sides = tuple(given)
    except TypeError:
        raise InputTypeError(f"shape must be a sequence of whole numbers such as (8, 8), got {given!r}") from None
    if not sides:
        raise InputError("shape must have at least one whole number, got none")
    return tuple(check_whole("shape", side, low=1) for side in sides)


def _image(given: Any, usual: tuple[int, int, int]) -> tuple[int, int, int]:
    sides = _shape(given, usual)
    if len(sides) != 3 or sides[1] != sides[2]:
        raise InputError(f"shape must be (channels, side, side) here, got {sides}")
    return sides[0], sides[1], sides[2]
