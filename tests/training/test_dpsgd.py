"""DP-SGD does what its promise says: sampling, clipping, noise, accounting; and what would break it is refused."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest, kstest, norm
from sklearn.datasets import load_digits

import whosin as wi
from whosin.auditing.models import DPSGDAdapter, ReferenceModels, audit_classifier, train_dpsgd
from whosin.errors import AssumptionWarning, InputError, InputTypeError
from whosin.training.dpsgd_run import Run
from whosin.training.gradient_guess import batch_guess

torch = pytest.importorskip("torch")
DPLSTM = pytest.importorskip("opacus.layers").DPLSTM
nn = torch.nn

X, Y = load_digits(return_X_y=True)
X, Y = X[:200] / 16, Y[:200]


def net():
    return nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))


SETTINGS = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "sample_rate": 0.1, "steps": 5, "learning_rate": 0.5}


def adapter(**options):
    return DPSGDAdapter(**{"module": net(), **SETTINGS, **options})


class Centred(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, 10))

    def forward(self, x):
        return super().forward(x - x.mean(dim=0))


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(64, 10)
        self.scale = nn.InstanceNorm1d(1, track_running_stats=True)

    def forward(self, x):
        return self.last(self.scale(x[:, None])[:, 0])


class Sequence(nn.Module):
    def __init__(self, kind, batch_first=True):
        super().__init__()
        self.cell, self.last = kind(8, 6, batch_first=batch_first), nn.Linear(6, 10)

    def forward(self, x):
        return self.last(self.cell(x.reshape(len(x), 8, 8))[0][:, -1])


class Idle(nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.idle = nn.Linear(64, 10), nn.Linear(2, 2)

    def forward(self, x):
        return self.last(x)


class Tied(nn.Module):
    """A matrix that two layers share, one of which is called twice."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.last = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.last(torch.tanh(self.two(torch.tanh(self.one(torch.tanh(self.one(x)))))))


def weights(module):
    return np.concatenate([part.detach().numpy().ravel() for part in module.parameters()]).astype(np.float64)


def moved(options, data=X, labels=Y, seed=0):
    """Return how far one step with learning rate 1 moves the weights."""
    plan = adapter(**{"steps": 1, "learning_rate": 1.0, "sample_rate": 1.0, "expected_batch": 1.0, **options})
    start = weights(plan.build(int(np.random.default_rng(seed).integers(2**62, size=2)[0])))
    return start - weights(plan.fit(data, labels, np.random.default_rng(seed)).module)


def gradients_by_hand(data=X, labels=Y, seed=0, **options):
    """Return the gradient of each record at the start, one backward pass each."""
    module = adapter(**options).build(int(np.random.default_rng(seed).integers(2**62, size=2)[0]))
    rows = []
    for x, y in zip(data, labels, strict=True):
        module.zero_grad()
        nn.functional.cross_entropy(module(torch.tensor(x[None], dtype=torch.float32)), torch.tensor([y])).backward()
        rows.append(np.concatenate([part.grad.numpy().ravel() for part in module.parameters()]))
    return np.array(rows, dtype=np.float64)


def test_no_noise_and_no_clipping_is_gradient_descent():
    plan = adapter(noise_multiplier=0.0, max_grad_norm=1e9, sample_rate=1.0, steps=4)
    module = plan.build(int(np.random.default_rng(0).integers(2**62, size=2)[0]))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(torch.tensor(X, dtype=torch.float32)), torch.tensor(Y)).backward()
        optimizer.step()
    assert weights(plan.fit(X, Y, np.random.default_rng(0)).module) == pytest.approx(weights(module), abs=1e-5)


@pytest.mark.parametrize("norm", [0.01, 0.5, 2.0])
def test_each_gradient_is_clipped_on_its_own(norm):
    rows = gradients_by_hand(X[:40], Y[:40])
    clipped = rows * np.minimum(1.0, norm / np.linalg.norm(rows, axis=1, keepdims=True))
    step = moved({"noise_multiplier": 0.0, "max_grad_norm": norm}, X[:40], Y[:40])
    assert step == pytest.approx(clipped.sum(axis=0), abs=1e-4 * norm + 1e-6)


@pytest.mark.parametrize("module", [Tied, lambda: Sequence(DPLSTM)], ids=["tied", "recurrent"])
def test_shared_and_repeated_weights_are_clipped_as_one(module):
    rows = gradients_by_hand(X[:20], Y[:20], module=module)
    clipped = rows * np.minimum(1.0, 0.1 / np.linalg.norm(rows, axis=1, keepdims=True))
    step = moved({"noise_multiplier": 0.0, "max_grad_norm": 0.1, "module": module}, X[:20], Y[:20])
    assert step == pytest.approx(clipped.sum(axis=0), abs=1e-5)


def test_a_gradient_that_is_not_finite_counts_as_nothing():
    """To stop would tell that the record is there; and the other records move the weights as without it."""

    def loss(outputs, targets):
        values = nn.functional.cross_entropy(outputs, targets, reduction="none")
        return values * torch.where(targets == 9, np.nan, 1.0)

    wild = np.vstack([X[:50], X[50:51]]), np.append(np.minimum(Y[:50], 8), 9)
    options = {"noise_multiplier": 0.0, "loss": loss, "sample_rate": 1.0}
    with pytest.warns(AssumptionWarning, match="no part of what may be published"):
        found = moved(options, *wild)
    assert np.array_equal(found, moved(options, X[:50], np.minimum(Y[:50], 8)))
    assert found.any()


def test_the_noise_cannot_be_found_by_trying_all_seeds_of_torch():
    """Torch looks at 32 bits of a seed; here those above count, in every part of the secret."""
    plan = adapter()

    def noise(secret):
        module = plan.build(0)
        run = Run(plan, module, plan.task(module, X, Y), secret)
        found = run._noisy_sum(np.zeros(0, dtype=np.intp), run._generator(0, 2))
        run.close()
        return np.concatenate([part.numpy().ravel() for part in found.values()])

    base = [5, 6, 7, 8]
    assert torch.equal(*(torch.randn(3, generator=torch.Generator().manual_seed(5 + high)) for high in (0, 2**32)))
    for place in range(4):
        other = [part + 2**40 * (i == place) for i, part in enumerate(base)]
        assert not np.intersect1d(noise(base), noise(other)).size
    assert np.array_equal(noise(base), noise(base))


def test_no_step_repeats_the_noise_or_the_batch_of_another():
    plan = adapter(steps=3, learning_rate=1.0, expected_batch=1.0, noise_multiplier=1e3, max_grad_norm=1e-3)
    states = [
        weights(adapter(**{**vars(plan), "steps": n}).fit(X, Y, np.random.default_rng(0)).module) for n in (1, 2, 3)
    ]
    assert abs(np.corrcoef(states[1] - states[0], states[2] - states[1])[0, 1]) < 0.2
    assert len(set(plan.train(X, Y, np.random.default_rng(0)).batch_sizes)) > 1


def test_one_record_moves_the_sum_by_at_most_the_norm():
    """With a record, however wild, and without it: the sums of a step differ by at most C."""
    options = {"noise_multiplier": 0.0, "max_grad_norm": 0.3}
    wild = np.vstack([X[:50], 1000 * X[50:51]]), np.append(Y[:50], (Y[50] + 1) % 10)
    difference = moved(options, *wild) - moved(options, X[:50], Y[:50])
    assert 0.29 < np.linalg.norm(difference) <= 0.3 + 1e-5


def test_the_noise_has_the_promised_size():
    noisy, bare = ({"noise_multiplier": noise, "max_grad_norm": 0.5} for noise in (3.0, 0.0))
    rest = moved(noisy) - moved(bare)
    assert len(rest) == 610
    assert kstest(rest / 1.5, norm.cdf).pvalue > 1e-3
    assert np.std(rest) == pytest.approx(1.5, rel=0.12)
    assert not np.array_equal(moved(noisy, seed=1), moved(noisy))


def test_batches_are_poisson_samples():
    found = adapter(steps=300, sample_rate=0.02, noise_multiplier=0.0).train(X[:50], Y[:50], np.random.default_rng(0))
    sizes = np.array(found.batch_sizes)
    assert binomtest(int(sizes.sum()), 300 * 50, 0.02).pvalue > 1e-3
    assert binomtest(int((sizes == 0).sum()), 300, 0.98**50).pvalue > 1e-3  # 36%: empty batches happen


def test_an_empty_batch_is_a_step_of_noise():
    step = moved({"sample_rate": 1e-12, "noise_multiplier": 2.0})
    assert np.std(step) == pytest.approx(2.0, rel=0.15)
    assert not moved({"sample_rate": 1e-12, "noise_multiplier": 0.0}).any()


def test_the_memory_limit_does_not_change_the_result():
    plans = adapter(physical_batch=999, sample_rate=0.5), adapter(physical_batch=7, sample_rate=0.5)
    one, small = (plan.train(X, Y, np.random.default_rng(0)) for plan in plans)
    assert one.batch_sizes == small.batch_sizes
    assert weights(small.model.module) == pytest.approx(weights(one.model.module), abs=1e-5)


def test_the_sum_is_divided_by_a_number_that_does_not_depend_on_the_batch():
    once = moved({"noise_multiplier": 0.0, "expected_batch": 1.0})
    assert moved({"noise_multiplier": 0.0, "expected_batch": 8.0}) == pytest.approx(once / 8, abs=1e-5)
    assert moved({"noise_multiplier": 0.0, "expected_batch": None}) == pytest.approx(once / 200, abs=1e-6)


def test_the_promise_is_that_of_the_run():
    """Against Google's accountant, which is not asked by us in this way."""
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    found = train_dpsgd(net(), X, Y, noise_multiplier=1.5, max_grad_norm=1.0, sample_rate=0.1, steps=20, rng=0)
    assert found.guarantee == wi.DPSGD(1.5, 0.1, 20)
    accountant = pld_privacy_accountant.PLDAccountant()
    step = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.5))
    accountant.compose(dp_event.SelfComposedDpEvent(step, 20))
    expected = accountant.get_epsilon(1e-5)
    assert found.guarantee.implies(wi.ApproxDP, delta=1e-5).epsilon == pytest.approx(expected, rel=1e-3)
    assert any("no secure source" in line for line in found.assumes)
    assert any("number of records is public" in line for line in found.assumes)
    assert set(wi.DPSGD(1.5, 0.1, 20).assumes) <= set(found.assumes)
    json.dumps(found.to_dict(), allow_nan=False)
    assert "noise multiplier = 1.5" in str(found)
    assert "<li>" in found._repr_html_()


def test_seeds_and_other_generators():
    one, same, other = (adapter().train(X, Y, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(weights(one.model.module), weights(same.model.module))
    assert not np.array_equal(weights(one.model.module), weights(other.model.module))
    plan, state = adapter(), torch.random.get_rng_state()
    plan.fit(X, Y, np.random.default_rng(0))
    assert torch.equal(torch.random.get_rng_state(), state)
    unseeded = train_dpsgd(net(), X, Y, noise_multiplier=1.0, max_grad_norm=1.0, sample_rate=0.1, steps=1)
    assert len(unseeded.batch_sizes) == 1


def test_classes_that_were_read_off_the_records_are_called_public():
    names = np.array(list("abcdefghij"))
    told, named = (adapter(classes=given).train(X, names[Y], np.random.default_rng(0)) for given in (None, names))
    assert any("read off the records" in line for line in told.assumes)
    assert not any("read off the records" in line for line in named.assumes)
    assert not any("read off" in line for line in adapter().train(X, Y, np.random.default_rng(0)).assumes)


@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_watching_leaves_no_trace(drop):
    plan = adapter(module=nn.Sequential(nn.Linear(64, 8), nn.Dropout(drop), nn.Linear(8, 10)), expected_batch=20.0)
    everybody = np.ones(len(X), dtype=bool)
    watched, scores = plan.train_watching(None, (X, Y), everybody, np.random.default_rng(0))
    alone = plan.train(X, Y, np.random.default_rng(0))
    assert np.array_equal(weights(watched.model.module), weights(alone.model.module))
    assert scores.shape == (len(X),)


class Stop(Exception):
    pass


def stop_after(share):
    def progress(done):
        if done >= share:
            raise Stop

    return progress


@pytest.mark.parametrize("steps", [1, 4, 5])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_an_interrupted_training_takes_every_step_once(tmp_path, steps, optimizer, monkeypatch):
    module = nn.Sequential(nn.Linear(64, 8), nn.Dropout(0.5), nn.Linear(8, 10))
    options = {"module": module, "steps": 6, "optimizer": optimizer, "learning_rate": 0.1}
    whole = adapter(**options).train(X, Y, np.random.default_rng(3))
    plan = adapter(journal=tmp_path / "j", **options)
    with pytest.raises(Stop):
        plan.train(X, Y, np.random.default_rng(3), progress=stop_after(steps / 6))
    taken, step = [], Run.step
    monkeypatch.setattr(Run, "step", lambda run, number: (taken.append(number), step(run, number)))
    resumed = plan.train(X, Y, np.random.default_rng(3))
    assert taken == list(range(steps, 6))
    assert np.array_equal(weights(resumed.model.module), weights(whole.model.module))
    assert resumed.batch_sizes == whole.batch_sizes
    assert resumed.guarantee == whole.guarantee
    assert not list(tmp_path.iterdir())


def test_only_the_same_training_is_resumed(tmp_path):
    plan = adapter(journal=tmp_path / "j")
    with pytest.raises(Stop):
        plan.train(X, Y, np.random.default_rng(0), progress=stop_after(0.5))
    (left,) = tmp_path.iterdir()
    others = [({"noise_multiplier": 1.1}, 0), ({"steps": 6}, 0), ({"sample_rate": 0.2}, 0), ({}, 1)]
    for options, seed in others:
        fresh, kept = (
            adapter(journal=path, **options).train(X, Y, np.random.default_rng(seed)) for path in (None, tmp_path / "j")
        )
        assert np.array_equal(weights(fresh.model.module), weights(kept.model.module))
        assert left.exists()
    with pytest.raises(InputError, match="rng must be given with a journal"):
        train_dpsgd(net(), X, Y, journal=tmp_path / "j", **SETTINGS)


def test_what_is_left_behind_is_a_plain_module():
    module = adapter().fit(X, Y, np.random.default_rng(0)).module
    assert type(module) is nn.Sequential
    assert not any(hasattr(weight, "grad_sample") for weight in module.parameters())
    assert not any(part._forward_hooks or part._backward_hooks for part in module.modules())
    assert not module.training


def test_it_learns():
    plan = adapter(module=nn.Linear(64, 10), noise_multiplier=0.5, sample_rate=0.2, steps=60, learning_rate=2.0)
    found = plan.train(X, Y, np.random.default_rng(0))
    assert np.mean(found.model.predict(X) == Y) > 0.7
    assert audit_classifier(found.model, (X[:100], Y[:100]), (X[100:], Y[100:]), rng=0).members == 100


def test_reference_models_can_be_private():
    found = ReferenceModels.train(adapter(steps=2), X[:60], Y[:60], models=3, rng=0)
    assert np.isfinite(found.logits).all()
    assert adapter().journal_key() == adapter().journal_key()
    keys = {adapter(**{name: 0.25}).journal_key() for name in ("noise_multiplier", "max_grad_norm", "sample_rate")}
    assert len({adapter().journal_key(), adapter(steps=6).journal_key(), *keys}) == 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"module": nn.Sequential(nn.BatchNorm1d(64), nn.Linear(64, 10))}, InputTypeError, "'0' is BatchNorm1d"),
        ({"module": nn.Sequential(nn.BatchNorm1d(64, affine=False), nn.Linear(64, 10))}, InputTypeError, "mixes"),
        ({"module": nn.Linear(64, 10).requires_grad_(False)}, InputError, "at least one weight"),
        ({"noise_multiplier": -1.0}, InputError, "noise_multiplier"),
        ({"noise_multiplier": np.inf}, InputError, "noise_multiplier"),
        ({"max_grad_norm": 0.0}, InputError, "max_grad_norm"),
        ({"sample_rate": 0.0}, InputError, "sample_rate"),
        ({"sample_rate": 1.1}, InputError, "sample_rate"),
        ({"steps": -1}, InputError, "steps"),
        ({"expected_batch": 0.0}, InputError, "expected_batch"),
        ({"physical_batch": 0}, InputError, "physical_batch"),
        ({"learning_rate": 1e38, "noise_multiplier": 1e6}, InputError, "keeps the training finite.*step"),
        ({"module": lambda: Centred()}, InputError, "depends on others in its batch"),
        ({"loss": lambda o, t: nn.functional.cross_entropy(o, t, reduction="none") / len(t)}, InputError, "others"),
        ({"module": lambda: Remembering()}, InputTypeError, "running means"),
        ({"module": lambda: Sequence(nn.LSTM)}, InputTypeError, "'cell' is LSTM: use its twin.*DPLSTM"),
        ({"module": lambda: Sequence(DPLSTM, batch_first=False)}, InputError, "depends on others in its batch"),
        ({"module": lambda: Idle()}, InputTypeError, "'idle.weight' without a gradient"),
    ],
)
def test_bad_settings(options, error, words):
    with pytest.raises(error, match=words):
        adapter(**{"sample_rate": 0.5, **options}).fit(X, Y, np.random.default_rng(0))


def test_no_steps_and_one_record():
    still = adapter(steps=0).train(X, Y, np.random.default_rng(0))
    assert still.guarantee.advantage == 0.0
    assert len(adapter(sample_rate=1.0).train(X[:1], Y[:1], np.random.default_rng(0)).batch_sizes) == 5


# The best linear guess


def test_the_guess_is_the_linear_one_with_the_least_error():
    rng = np.random.default_rng(0)
    gradients, published = rng.normal(size=(6, 9)), rng.normal(size=9)
    mean, variance = rng.random(6), rng.random(6)
    V = np.diag(variance)
    direct = (
        V
        @ gradients
        @ np.linalg.solve(gradients.T @ V @ gradients + 0.7**2 * np.eye(9), published - gradients.T @ mean)
    )
    assert batch_guess(gradients, published, mean, variance, 0.7) == pytest.approx(direct)


def test_without_noise_the_guess_is_exact():
    rng = np.random.default_rng(0)
    gradients, inside = rng.normal(size=(20, 50)), rng.random(20) < 0.3
    guess = batch_guess(gradients, inside @ gradients, np.full(20, 0.3), np.full(20, 0.21), 0.0)
    assert 0.3 + guess == pytest.approx(inside.astype(float), abs=1e-3)
    still = batch_guess(np.zeros((3, 4)), np.zeros(4), np.full(3, 0.5), np.full(3, 0.25), 0.0)
    assert not still.any()
