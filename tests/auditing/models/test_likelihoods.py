"""Autoencoders and diffusion models: answers by hand, members found, others not, and scores of one's own."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from null_audits import judge_alarms

from whosin import audit_generator, audit_synthetic
from whosin.auditing.models.generators.likelihoods import AUTOENCODER, DIFFUSION
from whosin.errors import InputError, InputTypeError

torch = pytest.importorskip("torch")
nn = torch.nn

STEPS = 100
ALPHAS = torch.cumprod(1 - torch.linspace(1e-4, 0.1, STEPS), 0)


def rows(count, seed):
    """Points near a circle, in eight dimensions."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, size=(count, 1))
    turn = np.random.default_rng(99).normal(size=(2, 8))
    return np.hstack([np.cos(angle), np.sin(angle)]) @ turn + 0.3 * rng.normal(size=(count, 8))


class VAE(nn.Module):
    """A small variational autoencoder; its loss weighs squares by 200, half the inverse of the variance."""

    decoder_variance = 1 / 400

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))
        self.outer = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8))

    def encode(self, x):
        return self.inner(x).chunk(2, dim=1)

    def decode(self, z):
        return self.outer(z)


class Diffusion(nn.Module):
    """A small diffusion model."""

    alphas_bar = ALPHAS

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8))

    def denoiser(self, x, step):
        return self.net(torch.cat([x, step[:, None] / STEPS], dim=1))


def trained(model, loss, steps, rate=3e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
    return model


@pytest.fixture(scope="module")
def sides():
    return rows(100, 1), rows(100, 2)


@pytest.fixture(scope="module")
def vae(sides):
    torch.manual_seed(0)
    x = torch.as_tensor(sides[0], dtype=torch.float32)

    def loss(model):
        mean, log_variance = model.encode(x)
        z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        kl = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1)
        return (20 * ((model.decode(z) - x) ** 2).sum(1) + 0.1 * kl).mean()

    return trained(VAE(), loss, 600)


@pytest.fixture(scope="module")
def diffusion(sides):
    torch.manual_seed(0)
    x = torch.as_tensor(sides[0], dtype=torch.float32)

    def loss(model):
        step, noise = torch.randint(STEPS, (len(x),)), torch.randn_like(x)
        left = ALPHAS[step, None]
        return ((model.denoiser(left.sqrt() * x + (1 - left).sqrt() * noise, step) - noise) ** 2).mean()

    return trained(Diffusion(), loss, 1500)


@pytest.mark.parametrize("query", ["auto", *AUTOENCODER])
def test_an_overfitted_autoencoder_gives_its_records_away(vae, sides, query):
    found = audit_generator(vae, *sides, query=query)
    assert found.advantage.lower > 0.0
    assert audit_generator(vae, rows(100, 3), rows(100, 4), query=query).advantage.lower == 0.0
    assert any("has the model" in note for note in found.notes)


@pytest.mark.parametrize("query", ["auto", *DIFFUSION])
def test_an_overfitted_diffusion_model_gives_its_records_away(diffusion, sides, query):
    found = audit_generator(diffusion, *sides, query=query)
    assert found.advantage.lower > 0.0 or query == "denoising"
    assert audit_generator(diffusion, rows(100, 3), rows(100, 4), query=query).advantage.lower == 0.0


@pytest.mark.parametrize("query", [*AUTOENCODER, *DIFFUSION])
def test_alarms_about_records_that_were_not_trained_on(vae, diffusion, query):
    model = vae if query in AUTOENCODER else diffusion
    sides = [(rows(60, 100 + 2 * i), rows(60, 101 + 2 * i)) for i in range(24)]
    judge_alarms(audit_generator(model, *pair, query=query) for pair in sides)


def test_answers_by_hand():
    """A linear autoencoder with known variances, and a denoiser that says that half of what it sees is noise."""
    x = np.array([[1.0, 2.0], [0.0, -1.0]])
    zero = torch.zeros(2, 2, dtype=torch.float64)
    model = SimpleNamespace(encode=lambda x: (0.5 * x, zero - 40.0), decode=lambda z: z)
    np.testing.assert_allclose(AUTOENCODER["reconstruction"][1](model, x), [-1.25, -0.25])
    expected = -0.125 * (x**2).sum(1) + 0.5 * (1 - 40 - 0.25 * x**2 - np.exp(-40)).sum(1)
    np.testing.assert_allclose(AUTOENCODER["elbo"][1](model, x), expected, rtol=1e-6)
    left = ALPHAS.numpy().astype(float)
    model = SimpleNamespace(denoiser=lambda x, t: 0.5 * x, alphas_bar=ALPHAS)
    later = np.sqrt(left[20]) * x + np.sqrt(1 - left[20]) * 0.5 * x
    np.testing.assert_allclose(
        DIFFUSION["pia"][1](model, x), -(((0.5 * x - 0.5 * later) ** 4).sum(1) ** 0.25), rtol=1e-5
    )
    perfect = SimpleNamespace(denoiser=lambda x, t: 0.0 * x, alphas_bar=np.full(10, 1.0))
    np.testing.assert_allclose(DIFFUSION["secmi"][1](perfect, x), [0.0, 0.0])
    np.testing.assert_allclose(np.ptp(DIFFUSION["denoising"][1](perfect, x)), 0.0, atol=1e-6)


def test_an_answer_is_about_its_record_alone(vae, diffusion, sides):
    both = np.concatenate(sides)
    for model, queries in ((vae, AUTOENCODER), (diffusion, DIFFUSION)):
        for _, question in queries.values():
            np.testing.assert_allclose(question(model, both[:7]), question(model, both)[:7], rtol=2e-3)
    vae.train()
    AUTOENCODER["elbo"][1](vae, both)
    assert vae.training


def test_scores_of_ones_own(sides):
    train, holdout = sides
    scores = {"near": lambda model, x: -((x[:, None] - train[None]) ** 2).sum(2).min(1)}
    found = audit_generator(None, train, holdout, scores=scores)
    assert (found.query, found.advantage.lower > 0.8) == ("a score of the caller", True)
    given = {**scores, "noise": (np.arange(100.0) % 7, np.arange(100.0) % 5)}
    assert {"near", "noise"} <= set(audit_generator(None, train, holdout, scores=given).queries)
    weight = torch.ones(8, dtype=torch.float64, requires_grad=True)
    trainable = {"sum": lambda model, x: (torch.as_tensor(x) * weight).sum(1)}
    assert audit_generator(None, train, holdout, scores=trainable).query == "a score of the caller"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scores": 3}, InputTypeError, "scores must be a mapping"),
        ({"scores": {"nearest": (np.zeros(100), np.zeros(100))}}, InputError, "names of their own, got 'nearest'"),
        ({"scores": {"a": np.zeros(200)}}, InputTypeError, "pairs of arrays"),
        ({"scores": {"a": (np.zeros(99), np.zeros(101))}}, InputError, "scores must be 100 and 100 numbers for 'a'"),
        ({"scores": {"a": lambda model, x: ["x"] * len(x)}}, InputError, "scores must be numbers for 'a'"),
        ({"query": "elbo"}, InputError, "encode and decode"),
        ({"query": "pia"}, InputError, "denoiser and alphas_bar"),
        ({"model": SimpleNamespace(denoiser=lambda x, t: x, alphas_bar=[1.0, 0.5])}, InputError, "at least 5 numbers"),
        (
            {"model": SimpleNamespace(denoiser=lambda x, t: x[:, :1], alphas_bar=np.linspace(1, 0.1, 9))},
            InputError,
            "denoiser that gives",
        ),
        ({"model": SimpleNamespace(encode=lambda x: 3, decode=lambda z: z)}, InputError, "encode that gives means and"),
        ({"model": SimpleNamespace(encode=lambda x: x @ x, decode=lambda z: z)}, InputError, "must explain records"),
        (
            {"model": SimpleNamespace(encode=lambda x: (x, 0 * x), decode=lambda z: z[:, None])},
            InputError,
            r"decode that gives \(200, 8\) for such records, got \(200, 1, 8\)",
        ),
        ({"scores": {"a": (np.zeros(100), np.full(100, np.nan))}}, InputError, "'a', got NaN for row 0 of holdout"),
        ({}, InputTypeError, "or come with scores, got NoneType"),
    ],
)
def test_bad_input(sides, options, error, words):
    with pytest.raises(error, match=words):
        audit_generator(**{"model": None, "train": sides[0], "holdout": sides[1], **options})


def test_scores_of_ones_own_go_with_frames():
    """The release says nothing, and a score that knows the members is found."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=700), "b": rng.choice(["x", "y"], 700)})
    known = np.concatenate([rng.normal(3.0, 1.0, 150), rng.normal(0.0, 1.0, 550)])
    model = SimpleNamespace(sample=lambda n: frame.sample(n, seed=1), known=dict(zip(frame["a"], known, strict=True)))

    def asked(model, rows):
        return [model.known[value] for value in rows["a"]]

    for mine in (asked, (known[:150], known[150:])):
        found = audit_generator(model, frame[:150], frame[150:], scores={"mine": mine}, rng=0)
        assert found.set_aside > 0
        assert found.query.endswith("mine")
        assert found.advantage.lower > 0.5


def test_scores_of_rows_that_were_set_aside_are_not_counted():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"a": rng.normal(size=700), "b": rng.normal(size=700)})
    tables = frame[:150], frame[150:], frame[:150]
    counted = audit_synthetic(*tables).individual
    mine = np.full(550, np.inf)
    mine[counted.index[~counted.member]] = 0.0
    found = audit_synthetic(*tables, scores={"mine": (np.zeros(150), mine)})
    assert np.array_equal(found.individual.index, counted.index)
    assert np.ptp(found._splits.experiment.non_members[:, -1]) == 0.0
