"""Training: seeds, checkpoints, losses, samples, scores, and bad input."""

import os

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from experiments.gans import DPCGAN, JSGAN, WGANGP, PrivGAN, architecture
from experiments.gans.models import _gradient_penalty
from whosin.errors import InputError, InputTypeError

ARCH = architecture("small", (8, 8), width=16, latent_size=4)
DIGITS = (load_digits().images[:48] / 8.0 - 1.0).astype(np.float32)
LABELS = load_digits().target[:48]


def models():
    return {
        "js": JSGAN(ARCH, batch_size=16),
        "wgan": WGANGP(ARCH, batch_size=16),
        "priv": PrivGAN(ARCH, pairs=2, batch_size=16),
        "dp": DPCGAN(ARCH, 1.0, 1.0, 0.25, 10, batch_size=16),
    }


def fitted(name, **settings):
    labels = {"y": LABELS} if name == "dp" else {}
    return models()[name].fit(DIGITS, **labels, **settings)


def weights(model):
    return [value for network in model._networks.values() for value in network.state_dict().values()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


@pytest.mark.parametrize("name", list(models()))
def test_one_seed_gives_one_model_and_another_seed_another(name):
    torch.manual_seed(0)
    first = fitted(name, epochs=3, rng=7)
    torch.manual_seed(1)
    assert same(first, fitted(name, epochs=3, rng=7))
    assert not same(first, fitted(name, epochs=3, rng=8))


@pytest.mark.parametrize("name", list(models()))
def test_an_interrupted_training_ends_with_the_same_weights(name, tmp_path):
    straight = fitted(name, epochs=7, rng=3)
    path = tmp_path / "folder" / "model.pt"

    def stop(share):
        if share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(name, epochs=7, rng=3, checkpoint=path, checkpoint_every=2, progress=stop)
    resumed = fitted(name, epochs=7, rng=3, checkpoint=path, checkpoint_every=2)
    assert same(straight, resumed)
    assert resumed.steps == straight.steps
    assert np.array_equal(resumed.sample(9, 1), straight.sample(9, 1))
    assert [file.name for file in path.parent.iterdir()] == ["model.pt"]


def test_a_finished_checkpoint_loads_without_an_epoch_and_can_be_extended(tmp_path):
    path = tmp_path / "model.pt"
    done = fitted("js", epochs=3, rng=1, checkpoint=path)
    calls = []
    assert same(done, fitted("js", epochs=3, rng=1, checkpoint=path, progress=calls.append))
    assert calls == []
    assert same(fitted("js", epochs=5, rng=1, checkpoint=path), fitted("js", epochs=5, rng=1))
    with pytest.raises(InputError, match="epochs must be at least 5"):
        fitted("js", epochs=3, rng=1, checkpoint=path)


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    fitted("js", epochs=1, rng=1, checkpoint=path)
    for other in (
        lambda: fitted("js", epochs=1, rng=2, checkpoint=path),
        lambda: fitted("wgan", epochs=1, rng=1, checkpoint=path),
        lambda: JSGAN(ARCH, batch_size=16, learning_rate=1e-3).fit(DIGITS, epochs=1, rng=1, checkpoint=path),
        lambda: JSGAN(ARCH, batch_size=16).fit(DIGITS[::-1], epochs=1, rng=1, checkpoint=path),
    ):
        with pytest.raises(InputError, match="other data, settings or seed"):
            other()
    with pytest.raises(InputError, match="rng is needed with checkpoint"):
        fitted("js", epochs=1, checkpoint=path)
    path.write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match="a file of an earlier fit"):
        fitted("js", epochs=1, rng=1, checkpoint=path)


@pytest.mark.parametrize("name", list(models()))
def test_an_interrupted_training_lets_the_records_go(name):
    model = models()[name]

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(DIGITS, epochs=2, rng=0, progress=stop, **({"y": LABELS} if name == "dp" else {}))
    held = [value for value in vars(model).values() if isinstance(value, torch.Tensor | list | tuple)]
    assert not any(isinstance(part, torch.Tensor) for value in held for part in [value, *value])


def test_a_refused_checkpoint_leaves_the_model_as_it_was(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"no checkpoint")
    model = fitted("js", epochs=1, rng=0)
    made, steps = model.sample(3, 0), model.steps
    with pytest.raises(InputError, match="a file of an earlier fit"):
        model.fit(DIGITS, epochs=2, rng=1, checkpoint=path)
    assert np.array_equal(model.sample(3, 0), made)
    assert model.steps == steps
    untrained = models()["js"]
    with pytest.raises(InputError, match="a file of an earlier fit"):
        untrained.fit(DIGITS, epochs=2, rng=1, checkpoint=path)
    with pytest.raises(InputError, match="not trained yet"):
        untrained.sample(1)


def test_a_writing_that_fails_leaves_the_old_checkpoint_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    fitted("js", epochs=1, rng=1, checkpoint=path)
    before = path.read_bytes()

    def interrupted(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted("js", epochs=2, rng=1, checkpoint=path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]


def test_a_checkpoint_in_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="checkpoint must be a path that can be written"):
        fitted("js", epochs=1, rng=1, checkpoint=tmp_path / "file" / "model.pt")


@pytest.mark.parametrize("name", list(models()))
def test_samples_and_scores_have_the_shapes_promised(name):
    model = fitted(name, epochs=2, rng=0)
    made = model.sample(11, rng=4)
    assert made.shape == (11, 8, 8)
    assert np.abs(made).max() <= 1.0
    assert np.array_equal(made, model.sample(11, rng=4))
    assert not np.array_equal(made, model.sample(11, rng=5))
    assert len(model.discriminators) == (2 if name == "priv" else 1)
    for score in model.discriminators:
        found = score(DIGITS)
        assert found.shape == (48,)
        assert found.dtype == np.float64
        if name != "wgan":
            assert np.all((found > 0.0) & (found < 1.0))
    latents = torch.zeros(3, model.latent_size)
    assert all(generator(latents).shape == (3, 8, 8) for generator in model.generators)
    assert len(model.generators) == {"priv": 2, "dp": 10}.get(name, 1)
    assert not any("record" in attribute for attribute in vars(model))


def test_progress_counts_epochs():
    calls = []
    fitted("js", epochs=4, rng=0, progress=calls.append)
    assert calls == [0.25, 0.5, 0.75, 1.0]


def test_no_epoch_leaves_the_first_weights():
    model = fitted("js", epochs=0, rng=0)
    assert model.steps == 0
    assert model.sample(1, 0).shape == (1, 8, 8)


def test_the_critic_takes_five_steps_for_each_of_the_generator():
    model = WGANGP(ARCH, batch_size=16)
    start = [value.clone() for value in weights(model.fit(DIGITS, epochs=0, rng=0))]
    model.fit(DIGITS, epochs=1, rng=0)
    assert model.steps == 3
    generator = len(model._networks["generator"].state_dict())
    now = weights(model)
    assert all(torch.equal(a, b) for a, b in zip(start[:generator], now[:generator], strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(start[generator:-1], now[generator:-1], strict=True))
    model.fit(DIGITS, epochs=2, rng=0)
    assert model.steps == 6
    assert not torch.equal(start[0], weights(model)[0])


def test_only_the_critic_ends_without_a_sigmoid():
    """Far from the data a critic's output leaves [0, 1], the printed 'sigmoid' keeps the other discriminators there."""
    far = {
        model: model(ARCH, batch_size=16).fit(DIGITS, epochs=1, rng=0).discriminators[0](1e4 * DIGITS)
        for model in (WGANGP, JSGAN)
    }
    assert np.abs(far[WGANGP]).max() > 1.0
    assert 0.0 <= far[JSGAN].min() <= far[JSGAN].max() <= 1.0


def test_the_gradient_penalty_of_a_linear_critic_is_known():
    critic = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 1))
    with torch.no_grad():
        critic[1].weight.copy_(torch.tensor([[1.0, 2.0, 2.0, 4.0]]))
    real, fake = torch.ones(6, 2, 2), torch.zeros(6, 2, 2)
    penalty = _gradient_penalty(critic, real, fake, np.random.default_rng(0)).detach()
    assert float(penalty) == pytest.approx((5.0 - 1.0) ** 2)


def test_the_js_losses_at_a_discriminator_that_does_not_know():
    discriminator = ARCH.discriminator(np.random.default_rng(0))
    for parameter in discriminator.parameters():
        torch.nn.init.zeros_(parameter)
    model, real = JSGAN(ARCH), torch.from_numpy(DIGITS)
    loss = model._discriminator_loss(discriminator, real, -real, np.random.default_rng(0))
    assert float(loss.detach()) == pytest.approx(2.0 * np.log(2.0))
    assert float(model._generator_loss(discriminator(real)).detach()) == pytest.approx(np.log(2.0))


def test_a_gan_learns_where_its_data_lie():
    rng = np.random.default_rng(0)
    points = np.clip(rng.normal([0.5, -0.5], 0.1, size=(256, 2)), -1, 1)
    arch = architecture("small", (2,), width=32, latent_size=2)
    made = JSGAN(arch, batch_size=64, learning_rate=2e-3).fit(points, epochs=60, rng=0).sample(500, 1)
    assert np.abs(made.mean(axis=0) - [0.5, -0.5]).max() < 0.25


def test_the_privacy_weight_makes_a_generator_pass_for_the_other():
    def after(weight):
        """Loss of the privacy discriminator if records of generator 0 were made by generator 1, before and after."""
        model = PrivGAN(ARCH, privacy_weight=weight, batch_size=16, learning_rate=3e-3).fit(DIGITS, epochs=0, rng=0)
        judge, latents = model._networks["privacy"], torch.ones(200, 4).cumsum(0) / 100 - 1
        losses = []
        for steps in (0, 20):
            for _ in range(steps):
                model._generate(0, np.random.default_rng(1))
            outputs = judge(model.generators[0](latents)).detach()
            losses.append(float(torch.nn.functional.cross_entropy(outputs, torch.ones(200, dtype=torch.int64))))
        return losses

    before, cared = after(100.0)
    same_before, not_cared = after(0.0)
    assert before == same_before
    assert cared < 0.5 * before
    assert cared < 0.5 * not_cared


def test_each_pair_has_its_own_part_of_the_records():
    model = PrivGAN(ARCH, pairs=3, batch_size=16)
    model._prepare(torch.arange(50.0), None, 0)
    parts = [set(part.tolist()) for part in model._parts]
    assert sorted(len(part) for part in parts) == [16, 17, 17]
    assert set.union(*parts) == set(range(50))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (DIGITS * 2.0, r"scaled to \[-1, 1\], got -2 to 2"),
        (np.where(DIGITS < 0.0, np.nan, DIGITS), "NaN or infinity"),
        (DIGITS.reshape(48, 64), r"shape \(n, 8, 8\), got \(48, 64\)"),
        (DIGITS[:15], "at least 16 records for batches of 16, got 15"),
        (DIGITS[:1], "at least 16 records"),
        (DIGITS[:0], "at least 16 records"),
        (DIGITS[0], r"shape \(n, 8, 8\)"),
        ([[1.0], [1.0, 2.0]], "ragged"),
    ],
)
def test_bad_records_are_named(records, message):
    with pytest.raises(InputError, match=message):
        JSGAN(ARCH, batch_size=16).fit(records, epochs=1, rng=0)


def test_other_bad_arguments_are_named():
    with pytest.raises(InputTypeError, match="X must hold numbers"):
        JSGAN(ARCH, batch_size=16).fit(DIGITS.astype(str), epochs=1, rng=0)
    with pytest.raises(InputError, match="32 records for 2 pairs with batches of 16, got 31"):
        PrivGAN(ARCH, batch_size=16).fit(DIGITS[:31], epochs=1, rng=0)
    with pytest.raises(InputError, match="y must be None: JSGAN is not conditional"):
        JSGAN(ARCH, batch_size=16).fit(DIGITS, epochs=1, rng=0, y=LABELS)
    with pytest.raises(InputTypeError, match="arch must be what"):
        JSGAN("mnist")
    with pytest.raises(InputError, match="learning_rate must be"):
        JSGAN(ARCH, learning_rate=0.0)
    with pytest.raises(InputError, match="betas must be"):
        JSGAN(ARCH, betas=(1.0, 0.9))
    for device in ("nowhere", "cuda:99", 3.5):
        with pytest.raises(InputError, match="device must be one that torch can use here"):
            JSGAN(ARCH, device=device)
    with pytest.raises(InputError, match="pairs must be"):
        PrivGAN(ARCH, pairs=1)
    with pytest.raises(InputError, match="privacy_weight must be"):
        PrivGAN(ARCH, privacy_weight=-1.0)
    with pytest.raises(InputError, match="penalty must be"):
        WGANGP(ARCH, penalty=float("nan"))
    with pytest.raises(InputError, match="epochs must be"):
        fitted("js", epochs=-1)
    for untrained in models().values():
        with pytest.raises(InputError, match="not trained yet"):
            untrained.sample(3, 0)
        with pytest.raises(InputError, match="not trained yet"):
            _ = untrained.discriminators
    with pytest.raises(InputError, match="n must be"):
        fitted("js", epochs=0).sample(0, 0)
    with pytest.raises(InputError, match=r"records must have records of shape \(n, 8, 8\)"):
        fitted("js", epochs=0).discriminators[0](DIGITS[0])
