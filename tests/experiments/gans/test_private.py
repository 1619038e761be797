"""DP-CGAN: what one record can change, noise of the stated size, exact counts of steps."""

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import softplus

import whosin as wi
from experiments.gans import DPCGAN, architecture
from experiments.gans.clipping import clipped_sum
from whosin.errors import InputError, InputTypeError

DENSE = architecture("small", (8, 8), width=16, latent_size=4)
CONVOLUTIONAL = architecture("cifar10", (1, 24, 24), latent_size=4)


def records(arch, count, seed=0, scale=1.0):
    values = np.random.default_rng(seed).uniform(-1, 1, (count, *arch.shape)) * scale
    return torch.from_numpy(values.astype(np.float32))


def losses(outputs):
    return softplus(-outputs[:, 0])


def one_by_one(network, inputs):
    """Gradients of each record by torch.func, flattened: another way to the same numbers."""
    parameters = dict(network.named_parameters())

    def loss(values, record):
        return losses(functional_call(network, values, (record[None],))).sum()

    found = vmap(grad(loss), in_dims=(None, 0))(parameters, inputs)
    return torch.cat([found[name].flatten(1) for name in parameters], dim=1).detach()


@pytest.mark.parametrize("arch", [DENSE, CONVOLUTIONAL])
@pytest.mark.parametrize("max_norm", [1e-3, 0.5, 1e6])
def test_the_clipped_sum_is_that_of_gradients_cut_one_by_one(arch, max_norm):
    network = arch.discriminator(np.random.default_rng(1))
    inputs = records(arch, 5)
    each = one_by_one(network, inputs)
    norms = each.norm(dim=1, keepdim=True)
    wanted = (each * (max_norm / norms).clamp_max(1.0)).sum(dim=0)
    found = torch.cat([part.flatten() for part in clipped_sum(network, inputs, losses, max_norm)])
    assert torch.allclose(found, wanted, rtol=1e-3, atol=1e-4 * float(wanted.abs().max()))


@pytest.mark.parametrize("arch", [DENSE, CONVOLUTIONAL])
@pytest.mark.parametrize("seed", range(3))
def test_one_record_moves_the_sum_by_at_most_the_norm(arch, seed):
    network = arch.discriminator(np.random.default_rng(seed)).double()
    inputs = records(arch, 4, seed, scale=1.0 if seed else 1e-3).double()
    limit = 1e-3 if seed == 2 else 0.05
    everybody = clipped_sum(network, inputs, losses, limit)
    for left_out in range(4):
        rest = inputs[[i for i in range(4) if i != left_out]]
        others = clipped_sum(network, rest, losses, limit)
        moved = torch.cat([(a - b).flatten() for a, b in zip(everybody, others, strict=True)])
        assert 0.9 * limit < float(moved.norm()) <= limit


def test_a_gradient_of_zero_and_no_records_are_zero():
    network = DENSE.discriminator(np.random.default_rng(0))
    for inputs, loss in ((records(DENSE, 0), losses), (records(DENSE, 3), lambda outputs: 0.0 * outputs[:, 0])):
        assert all(float(part.abs().max()) == 0.0 for part in clipped_sum(network, inputs, loss, 1.0))


def huge_network():
    """A discriminator whose gradient is infinite for some records, and finite for a record of zeros."""
    network = DENSE.discriminator(np.random.default_rng(0))
    for parameter in network.parameters():
        parameter.detach().mul_(1e13)
    return network


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_record_without_a_finite_gradient_counts_for_nothing(sign):
    inputs = torch.cat([records(DENSE, 0), torch.zeros(2, 8, 8), sign * records(DENSE, 3)])
    network = huge_network()
    rest, everybody = (clipped_sum(network, part, losses, 1.0) for part in (inputs[:2], inputs))
    moved = torch.cat([(a - b).flatten() for a, b in zip(everybody, rest, strict=True)])
    assert float(moved.norm()) <= 3.0


def test_a_layer_with_weights_that_cannot_be_cut_is_an_error():
    network = torch.nn.Sequential(torch.nn.ConvTranspose2d(1, 1, 3), torch.nn.Flatten(), torch.nn.Linear(100, 1))
    with pytest.raises(InputTypeError, match="network must have dense layers and convolutions, got ConvTranspose2d"):
        clipped_sum(network, torch.zeros(2, 1, 8, 8), losses, 1.0)


def gradient(noise, rate=0.5, count=40):
    """The gradient of the discriminator after one step of a model with this noise."""
    model = DPCGAN(DENSE, noise, 0.1, rate, 2, batch_size=8)
    data = records(DENSE, count).numpy()
    model.fit(data, y=np.arange(count) % 2, epochs=0, rng=0)
    model._records, model._labels = torch.from_numpy(data), torch.arange(count) % 2
    model._discriminate(np.random.default_rng(3))
    return torch.cat([weight.grad.flatten() for weight in model._networks["discriminator"].parameters()])


def test_the_noise_has_the_stated_size():
    scale = 4.0 * 0.1 / (0.5 * 40)
    noise = (gradient(4.0) - gradient(0.0)) / scale
    assert len(noise) > 1000
    assert float(noise.std()) == pytest.approx(1.0, abs=5.0 / np.sqrt(2 * len(noise)))
    assert abs(float(noise.mean())) < 5.0 / np.sqrt(len(noise))


@pytest.mark.parametrize(("rate", "steps"), [(1.0, 3), (0.3, 9), (0.25, 12), (0.024, 126)])
def test_steps_are_counted_exactly(rate, steps, monkeypatch):
    calls = []
    known = DPCGAN._discriminate
    monkeypatch.setattr(DPCGAN, "_discriminate", lambda self, rng: (calls.append(1), known(self, rng))[1])
    model = DPCGAN(DENSE, 1.1, 1.0, rate, 2, batch_size=4)
    model.fit(records(DENSE, 10).numpy(), y=np.arange(10) % 2, epochs=3, rng=0)
    assert model.steps == len(calls) == steps
    promise = wi.DPSGD(model.noise_multiplier, model.sample_rate, model.steps)
    assert 0.0 < promise.advantage < 1.0


def test_records_enter_by_independent_tosses(monkeypatch):
    sizes = []

    def counted(network, inputs, *rest):
        sizes.append(len(inputs))
        return clipped_sum(network, inputs, *rest)

    monkeypatch.setattr("experiments.gans.private.clipped_sum", counted)
    DPCGAN(DENSE, 1.0, 1.0, 0.02, 2, batch_size=4).fit(
        records(DENSE, 100).numpy(), y=np.arange(100) % 2, epochs=4, rng=0
    )
    assert len(sizes) == 200
    assert 0 in sizes
    assert np.mean(sizes) == pytest.approx(2.0, abs=5 * np.sqrt(2 * 0.98 / 200))
    assert np.var(sizes) == pytest.approx(1.96, rel=0.5)


def test_labels_decide_what_is_made_and_scored():
    model = DPCGAN(CONVOLUTIONAL, 0.0, 1.0, 0.5, 3, batch_size=4)
    data = records(CONVOLUTIONAL, 6).numpy()
    model.fit(data, y=np.arange(6) % 3, epochs=1, rng=0)
    assert not np.array_equal(model.sample(2, 0, y=[0, 0]), model.sample(2, 0, y=[1, 1]))
    latents = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 4), dtype=np.float32))
    assert np.array_equal(model.generators[1](latents).detach().numpy(), model.sample(2, 0, y=[1, 1]))
    (score,) = model.discriminators
    every = [score(data, np.full(6, label)) for label in range(3)]
    assert np.array_equal(score(data), np.max(every, axis=0))
    assert not np.array_equal(every[0], every[1])


def test_bad_arguments_are_named():
    model = DPCGAN(DENSE, 1.0, 1.0, 0.5, 2)
    data = records(DENSE, 4).numpy()
    with pytest.raises(InputError, match="y is needed"):
        model.fit(data, epochs=1, rng=0)
    with pytest.raises(InputError, match="one label for each of 4 records"):
        model.fit(data, y=[0, 1], epochs=1, rng=0)
    with pytest.raises(InputError, match="labels from 0 to 1, got 0 to 2"):
        model.fit(data, y=[0, 1, 2, 0], epochs=1, rng=0)
    with pytest.raises(InputTypeError, match="y must be whole numbers"):
        model.fit(data, y=["a", "b", "a", "b"], epochs=1, rng=0)
    with pytest.raises(InputError, match="at least 2 records, got 1"):
        model.fit(data[:1], y=[0], epochs=1, rng=0)
    for place, value in (("noise_multiplier", -1.0), ("max_grad_norm", 1e-7), ("sample_rate", 0.0), ("classes", 0)):
        settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "sample_rate": 0.5, "classes": 2, place: value}
        with pytest.raises(InputError, match=f"{place} must be"):
            DPCGAN(DENSE, **settings)
    model.fit(data, y=[0, 1, 0, 1], epochs=1, rng=0)
    with pytest.raises(InputError, match="one label for each of 3 records"):
        model.sample(3, 0, y=[0, 1])
