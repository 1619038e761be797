"""Training torch modules for audits: everything from the seed, keys of journals, resumed after a crash, caught."""

import functools
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_digits

from whosin.auditing import audit
from whosin.auditing.models import ReferenceModels, TorchAdapter, audit_classifier, audit_with_references
from whosin.errors import InputError, InputTypeError

torch = pytest.importorskip("torch")
nn = torch.nn

X, CLEAN = load_digits(return_X_y=True)
X = X / 16
RNG = np.random.default_rng(0)
Y = np.where(RNG.random(len(CLEAN)) < 0.3, RNG.integers(10, size=len(CLEAN)), CLEAN)


def net(hidden=32, drop=0.0):
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(drop), nn.Linear(hidden, 10))


def quick(module=None, **options):
    return TorchAdapter(net(8, 0.2) if module is None else module, **{"epochs": 2, "learning_rate": 0.01, **options})


def trained(adapter, seed=0, rows=120):
    return adapter.fit(X[:rows], Y[:rows], np.random.default_rng(seed))


def weights(model):
    return np.concatenate([part.detach().numpy().ravel() for part in model.module.parameters()])


def test_all_chance_comes_from_the_seed():
    adapter = quick()
    state = torch.random.get_rng_state()
    first = weights(trained(adapter))
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.rand(5)
    assert np.array_equal(weights(trained(adapter)), first)
    assert not np.array_equal(weights(trained(adapter, seed=1)), first)


def test_the_module_stays_untouched_and_its_weights_do_not_matter():
    module = net(8)
    before = [part.clone() for part in module.parameters()]
    one, other = trained(quick(module)), trained(quick(net(8)))
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert np.array_equal(weights(one), weights(other))
    assert not one.module.training


def test_fine_tuning_starts_from_the_weights():
    module = net(8)
    start = trained(quick(module, reset=False, epochs=0))
    assert np.array_equal(weights(start), np.concatenate([p.detach().numpy().ravel() for p in module.parameters()]))
    assert not np.array_equal(weights(trained(quick(module, reset=False))), weights(start))


def test_against_a_loop_by_hand():
    """One batch an epoch and plain gradient descent: the order does not matter."""
    adapter = TorchAdapter(net(8), epochs=3, batch_size=1000, learning_rate=0.1, optimizer="sgd")
    module = adapter.build(int(np.random.default_rng(0).integers(2**62)))
    inputs, targets = torch.tensor(X[:120], dtype=torch.float32), torch.tensor(Y[:120])
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(inputs), targets).backward()
        optimizer.step()
    expected = np.concatenate([part.detach().numpy().ravel() for part in module.parameters()])
    assert weights(trained(adapter)) == pytest.approx(expected, abs=1e-6)


def test_batches_are_of_nearly_equal_size():
    sizes = []

    def loss(outputs, targets):
        sizes.append(len(targets))
        return nn.functional.cross_entropy(outputs, targets, reduction="none")

    trained(quick(loss=loss, batch_size=17, epochs=1), rows=120)
    assert sizes == [15] * 8
    trained(quick(nn.Sequential(nn.BatchNorm1d(64), nn.Linear(64, 10)), batch_size=40, epochs=1), rows=121)


@pytest.mark.parametrize(
    "optimizer", ["sgd", "adam", "adamw", functools.partial(torch.optim.SGD, momentum=0.9)], ids=str
)
def test_optimizers_lower_the_loss(optimizer):
    adapter = TorchAdapter(net(), epochs=10, learning_rate=0.02, optimizer=optimizer)
    model = adapter.fit(X[:300], CLEAN[:300], np.random.default_rng(0))
    p = model.predict_proba(X[:300])[np.arange(300), CLEAN[:300]]
    assert -np.log(p).mean() < np.log(10) - 0.02


@pytest.mark.parametrize("width", [1, 2])
def test_two_classes_by_one_output_or_two(width):
    y = np.where(CLEAN > 4, "high", "low")
    adapter = TorchAdapter(nn.Linear(64, width), epochs=20, batch_size=100, learning_rate=0.02)
    model = adapter.fit(X[:600], y[:600], np.random.default_rng(0))
    assert model.classes_.tolist() == ["high", "low"]
    assert np.mean(model.predict(X[:600]) == y[:600]) > 0.8


def test_classes():
    some = np.arange(120) % 9
    model = quick().fit(X[:120], some, np.random.default_rng(0))
    assert model.classes_.tolist() == list(range(10))
    with pytest.raises(InputError, match="classes is needed: the module has 10 outputs"):
        quick().fit(X[:120], some + 5, np.random.default_rng(0))
    named = quick(classes=np.arange(10) + 5).fit(X[:120], some + 5, np.random.default_rng(0))
    assert named.classes_.tolist() == list(range(5, 15))
    with pytest.raises(InputError, match=r"y must be labels among classes.*got 99 in row 3"):
        quick(classes=np.arange(10)).fit(X[:4], [0, 1, 2, 99], np.random.default_rng(0))
    with pytest.raises(InputError, match="classes must have one label per output, got 3 for 10"):
        quick(classes=[0, 1, 2]).fit(X[:4], [0, 1, 2, 2], np.random.default_rng(0))


class Own(nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(64))
        self.last = nn.Linear(64, 10)
        self.factor = factor

    def forward(self, x):
        return self.last(x * self.scale * self.factor)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"module": "net"}, InputTypeError, "module must be a torch.nn.Module or a function"),
        ({"module": lambda: 3}, InputTypeError, "returns a module, got int"),
        ({"module": lambda: net(), "reset": False}, InputError, "reset=False"),
        ({"module": Own()}, InputError, "'Own' has weights of its own without: pass a function"),
        ({"learning_rate": 0.0}, InputError, "learning_rate"),
        ({"learning_rate": 1e30, "optimizer": "sgd"}, InputError, "keeps the training finite.*epoch"),
        ({"optimizer": "lbfgs"}, InputError, "optimizer must be"),
        ({"epochs": -1}, InputError, "epochs"),
        ({"batch_size": 0}, InputError, "batch_size"),
        ({"loss": 3}, InputTypeError, "loss"),
        ({"loss": nn.CrossEntropyLoss()}, InputError, "loss must be a function that gives each"),
        ({"device": "abacus"}, InputError, "device must be"),
        ({"device": "cuda:77"}, InputError, "device must be one that is here"),
        ({"output": "odds"}, InputError, "output"),
    ],
)
def test_bad_settings(options, error, words):
    with pytest.raises(error, match=words):
        trained(quick(**options))


def test_bad_records():
    with pytest.raises(InputError, match="one label per record"):
        quick().fit(X[:5], Y[:4], np.random.default_rng(0))
    hole = X[:5].copy()
    hole[3, 1] = np.nan
    with pytest.raises(InputError, match=r"finite numbers.*got another in row 3"):
        quick().fit(hole, Y[:5], np.random.default_rng(0))
    for wild, options in ((1e39, {}), (np.nan, {"input_dtype": "int64"}), (np.inf, {"input_dtype": "int64"})):
        hole[3, 1] = wild  # beyond the largest number of the weights' type; a whole number made of nothing
        with pytest.raises(InputError, match=r"finite numbers, as torch.*got another in row 3"):
            quick(**options).fit(hole, Y[:5], np.random.default_rng(0))
    with pytest.raises(InputError, match="at least one record"):
        quick().fit(X[:0], Y[:0], np.random.default_rng(0))


def test_a_function_makes_modules_that_cannot_be_reset():
    assert np.array_equal(weights(trained(quick(Own))), weights(trained(quick(Own))))
    lazy = quick(nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 10)))
    assert np.array_equal(weights(trained(lazy)), weights(trained(lazy)))


# Keys of journals


KEYS = [
    quick(net(8)),
    quick(net(9)),
    quick(nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Dropout(0.0), nn.Linear(8, 10))),
    quick(net(8, 0.1)),
    quick(net(8), epochs=3),
    quick(net(8), batch_size=5),
    quick(net(8), learning_rate=0.02),
    quick(net(8), optimizer="sgd"),
    quick(net(8), optimizer=functools.partial(torch.optim.SGD, momentum=0.9)),
    quick(net(8), optimizer=functools.partial(torch.optim.SGD, momentum=0.8)),
    quick(net(8), loss=nn.CrossEntropyLoss(reduction="none")),
    quick(net(8), loss=nn.CrossEntropyLoss(weight=torch.arange(10.0), reduction="none")),
    quick(net(8), loss=lambda a, b: nn.functional.cross_entropy(a, b, reduction="none")),
    quick(net(8), loss=lambda a, b: 2 * nn.functional.cross_entropy(a, b, reduction="none")),
    quick(net(8), classes=list("abcdefghij")),
    quick(net(8), reset=False),
    quick(Own),
    quick(lambda: Own(2.0)),
    quick(lambda: Own(3.0)),
]


def test_another_setting_another_key():
    keys = [adapter.journal_key() for adapter in KEYS]
    assert len(set(keys)) == len(keys)
    assert quick(net(8), journal="file").journal_key() == keys[0]


def test_weights_count_where_they_matter():
    one, other = net(8), net(8)
    assert quick(one).journal_key() == quick(other).journal_key()
    assert quick(one, reset=False).journal_key() != quick(other, reset=False).journal_key()
    other.load_state_dict(one.state_dict())
    assert quick(one, reset=False).journal_key() == quick(other, reset=False).journal_key()


def test_the_same_key_and_the_same_weights_in_another_process(tmp_path):
    """The module is made there with other weights, and the adapter is pickled: neither changes anything."""
    program = """
import pickle, sys
import numpy as np
import torch
from torch import nn
from whosin.auditing.models import TorchAdapter
torch.rand(3)
module = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 10))
print(TorchAdapter(module, epochs=2, learning_rate=0.01).journal_key())
adapter, X, y = pickle.loads(sys.stdin.buffer.read())
print(adapter.journal_key())
model = adapter.fit(X, y, np.random.default_rng(0))
print(np.concatenate([part.detach().numpy().ravel() for part in model.module.parameters()]).tobytes().hex())
"""
    adapter = KEYS[11]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps((adapter, X[:120], Y[:120])),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().split() == [
        KEYS[0].journal_key(),
        adapter.journal_key(),
        weights(trained(adapter)).tobytes().hex(),
    ]


# Resuming


class Crash(Exception):
    pass


STATE = {"left": 10**9, "calls": 0}


def crashing_loss(outputs, targets):
    """Cross-entropy that fails at a call to come; which one is no part of the function, so its key stays the same."""
    state = vars(sys.modules[__name__])["STATE"]  # by its name, a change of it would make another run
    state["left"] -= 1
    state["calls"] += 1
    if state["left"] == 0:
        raise Crash
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("call", [1, 3, 11, 12])
def test_an_interrupted_training_ends_bit_for_bit_where_it_would_have(tmp_path, monkeypatch, optimizer, call):
    """Three batches an epoch, six epochs, dropout and batch normalisation."""
    module = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 10))
    options = {"epochs": 6, "batch_size": 40, "optimizer": optimizer, "loss": crashing_loss}
    whole = trained(quick(module, **options))
    adapter = quick(module, journal=tmp_path / "deep" / "j", **options)
    monkeypatch.setitem(STATE, "left", call)
    with pytest.raises(Crash):
        trained(adapter)
    monkeypatch.setitem(STATE, "left", 10**9)
    monkeypatch.setitem(STATE, "calls", 0)
    resumed = trained(adapter)
    assert STATE["calls"] == 18 - 3 * ((call - 1) // 3)
    for (name, a), b in zip(resumed.module.state_dict().items(), whole.module.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert not list((tmp_path / "deep").iterdir())


def test_only_the_same_training_is_resumed(tmp_path, monkeypatch):
    adapter = quick(journal=tmp_path / "j", epochs=4, loss=crashing_loss)
    monkeypatch.setitem(STATE, "left", 5)
    with pytest.raises(Crash):
        trained(adapter)
    monkeypatch.setitem(STATE, "left", 10**9)
    (left,) = tmp_path.iterdir()
    content = left.read_bytes()
    plain = quick(epochs=4, loss=crashing_loss)
    assert np.array_equal(weights(trained(adapter, seed=5)), weights(trained(plain, seed=5)))
    assert np.array_equal(weights(trained(adapter, rows=100)), weights(trained(plain, rows=100)))
    assert left.read_bytes() == content
    left.write_bytes(content[:-100])
    assert np.array_equal(weights(trained(adapter)), weights(trained(plain)))


def interrupted(adapter, monkeypatch, call=8):
    monkeypatch.setitem(STATE, "left", call)
    with pytest.raises(Crash):
        trained(adapter)
    monkeypatch.setitem(STATE, "left", 10**9)
    monkeypatch.setitem(STATE, "calls", 0)


def test_a_single_wrong_byte_is_seen(tmp_path, monkeypatch):
    """Torch itself reads a third of such files without complaint, with other weights."""
    adapter = quick(journal=tmp_path / "j", epochs=4, loss=crashing_loss)
    interrupted(adapter, monkeypatch)
    (left,) = tmp_path.iterdir()
    content = left.read_bytes()
    saved = adapter.saved(X[:120], Y[:120], [int(np.random.default_rng(0).integers(2**62))])
    assert saved.path == left
    for place in np.linspace(0, len(content) - 1, 60).astype(int):
        left.write_bytes(content[:place] + bytes([content[place] ^ 64]) + content[place + 1 :])
        module = net(8, 0.2)
        before = [part.clone() for part in module.parameters()]
        assert saved.read(module, torch.optim.Adam(module.parameters())) == 0
        assert all(torch.equal(*pair) for pair in zip(before, module.parameters(), strict=True))
    left.write_bytes(content)
    trained(adapter)
    assert STATE["calls"] == 4 * 2 - 3 * 2


def test_the_state_of_another_training_in_the_right_place_is_seen(tmp_path, monkeypatch):
    """Its name has only a part of the key, and files can be copied."""
    plain = quick(epochs=4, loss=crashing_loss)
    one, two = (quick(journal=tmp_path / name / "j", epochs=4, loss=crashing_loss) for name in "ab")
    interrupted(one, monkeypatch)
    monkeypatch.setitem(STATE, "left", 8)
    with pytest.raises(Crash):
        trained(two, seed=1)
    monkeypatch.setitem(STATE, "left", 10**9)
    (mine,), (other,) = (list((tmp_path / name).iterdir()) for name in "ab")
    mine.write_bytes(other.read_bytes())
    assert np.array_equal(weights(trained(one)), weights(trained(plain)))


def test_threads_of_one_process_do_not_disturb_each_other():
    """Torch's generator and its number of threads belong to the process: one training at a time."""
    adapter = quick(net(8, 0.5), epochs=6, batch_size=10)
    threads = torch.get_num_threads()
    alone = [weights(trained(adapter, seed)) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: weights(trained(adapter, seed)), range(4)))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
    assert torch.get_num_threads() == threads


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="journal must be a path that can be written"):
        trained(quick(journal=tmp_path / "file" / "j"))


# Audits


@pytest.fixture(scope="module")
def overfitted():
    half = RNG.random(len(Y)) < 0.5
    adapter = TorchAdapter(net(64), epochs=40, batch_size=100, learning_rate=0.02)
    return adapter.fit(X[half], Y[half], np.random.default_rng(0)), half


@pytest.mark.parametrize("query", ["auto", "loss", "label_only"])
def test_an_overfitted_network_is_caught(overfitted, query):
    model, half = overfitted
    found = audit_classifier(model, (X[half], Y[half]), (X[~half], Y[~half]), query=query, rng=0)
    assert found.advantage.lower > 0.05


def test_a_network_trained_on_other_data_is_not(overfitted):
    """Records that it never saw, called members at random: at most 4 of 20 false alarms (chance 0.003)."""
    model, half = overfitted
    data, labels = X[~half], Y[~half]
    alarms = 0
    for seed in range(20):
        called = np.random.default_rng(seed).random(len(labels)) < 0.5
        found = audit_classifier(
            model, (data[called], labels[called]), (data[~called], labels[~called]), query="loss", rng=seed
        )
        alarms += found.advantage.lower > 0
    assert alarms <= 4


@pytest.fixture(scope="module")
def references():
    adapter = TorchAdapter(nn.Linear(64, 10), epochs=30, batch_size=400, learning_rate=0.1)
    return ReferenceModels.train(adapter, X[:400], Y[:400], models=16, rng=0)


@pytest.mark.parametrize("attack", ["auto", "lira", "lira_offline", "rmia", "rmia_offline"])
def test_attacks_with_reference_models_beat_the_loss(references, attack):
    """Labels are wrong at random, so that the loss mostly tells right from wrong labels; median over four targets."""
    gains = []
    for target in range(4):
        member, logit = references.included[target], references.logits[target]
        alone = audit(logit[member], logit[~member], rng=0).plug_in
        gains.append(audit_with_references(references, target, attack=attack, rng=0).plug_in - alone)
    assert np.median(gains) > 0.05


def test_interrupted_reference_models_resume(tmp_path):
    """Weights of the given module differ from run to run, which does not matter."""

    def quick():
        return TorchAdapter(net(8), epochs=2, learning_rate=0.01, loss=crashing_loss)

    options = {"models": 4, "rng": 1}
    whole = ReferenceModels.train(quick(), X[:80], Y[:80], **options)
    seen = []

    def stop(share):
        seen.append(share)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ReferenceModels.train(quick(), X[:80], Y[:80], journal=tmp_path / "j", progress=stop, **options)
    STATE["calls"] = 0
    resumed = ReferenceModels.train(quick(), X[:80], Y[:80], journal=tmp_path / "j", **options)
    assert np.array_equal(whole.logits, resumed.logits)
    assert STATE["calls"] == 2 * 2  # two of the models were left, of two epochs with one batch


def test_a_module_without_an_adapter_gets_advice():
    with pytest.raises(InputTypeError, match="TorchAdapter"):
        ReferenceModels.train(net(), X[:80], Y[:80])
