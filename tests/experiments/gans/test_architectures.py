"""The layers of appendix E of Xu et al. (2022), one by one, and the images that they make."""

import numpy as np
import pytest
import torch

from experiments.gans import architecture
from experiments.gans.architectures import Activation, Conv, ConvTransposed, Dense, Flatten, Reshape
from whosin.errors import InputError, InputTypeError

LEAKY, RELU, TANH = Activation("leaky_relu"), Activation("relu"), Activation("tanh")


def test_mnist_layers_are_those_printed():
    arch = architecture("mnist")
    assert arch.generator_layers == (
        Dense(100, 512),
        LEAKY,
        Dense(512, 512),
        LEAKY,
        Dense(512, 1024),
        LEAKY,
        Dense(1024, 784),
        TANH,
        Reshape((28, 28)),
    )
    assert arch.discriminator_layers == (
        Flatten(),
        Dense(784, 2048),
        LEAKY,
        Dense(2048, 512),
        LEAKY,
        Dense(512, 256),
        LEAKY,
        Dense(256, 1),
    )


def convolutions(dense):
    return (
        Conv(3, 64, 5, 2, 2),
        Conv(64, 128, 5, 2, 2),
        LEAKY,
        Conv(128, 128, 5, 2, 2),
        LEAKY,
        Conv(128, 256, 5, 2, 2),
        LEAKY,
        Flatten(),
        Dense(dense, 1),
    )


def sides(side, layers):
    """Sides of an image after each layer."""
    image, found = torch.zeros(1, 1, side, side), []
    for layer in layers:
        image = layer.build().to_empty(device="cpu")(image)
        found.append(image.shape[-1])
    return found


def test_cifar10_layers_as_printed_do_not_fit():
    """The generator ends at 40 and not at 32; the discriminator's fourth convolution finds one pixel."""
    first, others = ConvTransposed(1, 1, 4, 1, 0), [ConvTransposed(1, 1, 4, 2, 1)] * 3
    assert sides(2, [first, *others]) == [5, 10, 20, 40]
    printed = Conv(1, 1, 5, 2, 0)
    assert sides(32, [printed] * 3) == [14, 5, 1]
    with pytest.raises(RuntimeError, match="Kernel size"):
        sides(32, [printed] * 4)


def test_skin_layers_as_printed_do_not_fit():
    """The generator, without any padding, ends at 109 and not at 64; the discriminator fits."""
    assert sides(4, [ConvTransposed(1, 1, 5, 2, 0)] * 4) == [11, 25, 53, 109]
    assert sides(64, [Conv(1, 1, 5, 2, 0)] * 4) == [30, 13, 5, 1]


def test_cifar10_layers_are_those_printed_but_for_one_padding():
    arch = architecture("cifar10")
    assert arch.generator_layers == (
        Dense(100, 2048),
        Reshape((512, 2, 2)),
        ConvTransposed(512, 128, 4, 1, 0),
        RELU,
        ConvTransposed(128, 64, 4, 2, 2),
        RELU,
        ConvTransposed(64, 32, 4, 2, 1),
        RELU,
        ConvTransposed(32, 3, 4, 2, 1),
        TANH,
    )
    assert arch.discriminator_layers == convolutions(256 * 2 * 2)


@pytest.mark.parametrize(
    ("side", "paddings", "dense"),
    [(64, [(2, 1), (2, 1), (2, 1), (2, 1)], 256 * 4 * 4), (28, [(4, 1), (2, 0), (2, 1), (2, 1)], 256 * 2 * 2)],
)
def test_skin_layers_are_those_printed(side, paddings, dense):
    arch = architecture("skin", (3, side, side))
    kept = [layer for layer in arch.generator_layers if isinstance(layer, ConvTransposed)]
    assert arch.generator_layers[:2] == (Dense(100, 4 * 4 * 512), Reshape((512, 4, 4)))
    assert [layer for layer in arch.generator_layers[2:] if isinstance(layer, Activation)] == [RELU, RELU, RELU, TANH]
    assert [(layer.inputs, layer.filters) for layer in kept] == [(512, 256), (256, 128), (128, 64), (64, 3)]
    assert {(layer.kernel, layer.stride) for layer in kept} == {(5, 2)}
    assert [(layer.padding, layer.output_padding) for layer in kept] == paddings
    assert arch.discriminator_layers == convolutions(dense)


@pytest.mark.parametrize(
    ("name", "shape", "generator", "discriminator"),
    [
        # Dense(a, b): (a + 1)·b; convolutions with kernel k: (a·k² + 1)·b, transposed ones a·b·k² + b.
        ("mnist", (28, 28), 51_712 + 262_656 + 525_312 + 803_600, 1_607_680 + 1_049_088 + 131_328 + 257),
        (
            "cifar10",
            (3, 32, 32),
            206_848 + 1_048_704 + 131_136 + 32_800 + 1_539,
            4_864 + 204_928 + 409_728 + 819_456 + 1_025,
        ),
        (
            "skin",
            (3, 64, 64),
            827_392 + 3_277_056 + 819_328 + 204_864 + 4_803,
            4_864 + 204_928 + 409_728 + 819_456 + 4_097,
        ),
        ("small", (8, 8), 17 * 128 + 129 * 128 + 129 * 64, 65 * 128 + 129 * 128 + 129),
        ("vector", (5,), 33 * 256 + 257 * 256 + 257 * 5, 6 * 256 + 257 * 256 + 257),
    ],
)
def test_networks_have_the_shapes_and_the_number_of_weights_counted_by_hand(name, shape, generator, discriminator):
    arch = architecture(name, shape)
    rng = np.random.default_rng(0)
    makes, judges = arch.generator(rng), arch.discriminator(rng)
    assert sum(weight.numel() for weight in makes.parameters()) == generator
    assert sum(weight.numel() for weight in judges.parameters()) == discriminator
    made = makes(torch.randn(2, arch.latent_size))
    assert made.shape == (2, *shape)
    assert made.abs().max() <= 1.0
    assert judges(made).shape == (2, 1)


@pytest.mark.parametrize("side", [24, 28, 32, 40, 64])
def test_convolutional_generators_reach_other_sides(side):
    for name in ("cifar10", "skin"):
        if name == "cifar10" and side == 64:
            continue
        arch = architecture(name, (1, side, side), latent_size=3)
        assert arch.generator(np.random.default_rng(0))(torch.zeros(1, 3)).shape == (1, 1, side, side)


@pytest.mark.parametrize(
    ("name", "inputs"), [("small", 64 + 3), ("cifar10", 3 + 3), ("mnist", 784 + 3), ("skin", 3 + 3)]
)
def test_conditional_networks_take_the_classes_as_further_inputs(name, inputs):
    arch = architecture(name, (8, 8) if name == "small" else None)
    rng = np.random.default_rng(0)
    first = arch.discriminator(rng, classes=3)[0]
    assert first.weight.shape[1] == inputs
    assert arch.generator(rng, classes=3)[0].weight.shape[1] == arch.latent_size + 3


def test_weights_start_as_glorot_and_bengio_say_and_from_the_seed_alone():
    arch = architecture("small", (8, 8))
    torch.manual_seed(1)
    first = arch.generator(np.random.default_rng(5))
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = arch.generator(np.random.default_rng(5))
    assert torch.equal(state, torch.get_rng_state())
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    limit = (6 / (16 + 128)) ** 0.5
    assert 0.95 * limit < float(first[0].weight.detach().abs().max()) <= limit
    assert float(first[0].bias.detach().abs().max()) == 0.0


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (("imagenet",), {}, "name must be one of"),
        ((7,), {}, "name must be one of"),
        (("mnist", (27, 28)), {}, "784 numbers in all"),
        (("cifar10", (32, 32)), {}, r"\(channels, side, side\)"),
        (("cifar10", (3, 32, 31)), {}, r"\(channels, side, side\)"),
        (("skin", (3, 256, 256)), {}, "one that these layers can reach"),
        (("small",), {}, "shape is needed"),
        (("small", ()), {}, "at least one whole number"),
        (("small", (0,)), {}, "shape must be a whole number of at least 1"),
        (("small", (8,)), {"latent_size": 0}, "latent_size must be"),
        (("small", (8,)), {"width": 0}, "width must be"),
        (("mnist",), {"width": 8}, "the layers of 'mnist' are printed"),
    ],
)
def test_bad_arguments_are_named(arguments, settings, message):
    with pytest.raises(InputError, match=message):
        architecture(*arguments, **settings)


def test_a_shape_that_is_no_sequence_is_an_error():
    with pytest.raises(InputTypeError, match="shape must be a sequence"):
        architecture("small", 8)
