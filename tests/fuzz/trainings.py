"""Trainings: reference models, canaries, changes of records, torch modules and generative networks, all tiny."""

import contextlib

import numpy as np

import whosin as wi
from whosin.errors import WhosinError

from .measurements import ask, options
from .promises import MAKERS
from .stored import Rare
from .support import Bytes, check_json


def _records(bits, columns=2):
    """Records with labels, which rarely do not fit together."""
    rows = bits.odd((6, 4, 8), (0, 1, 2))
    X = bits.numbers(rows, columns)
    y = np.array([bits.odd((0, 1), (2, -1)) for _ in range(rows + bits.rare(24))], dtype=int)
    return bits.odd(((X, y), (X, y.tolist())), ((X.tolist(), y), (X, y.astype(str)), (y, X), (X[0:0], y), (None, y)))


def _canaries(data):
    """One run with canaries, wrong labels, and small changes of records."""
    from whosin.auditing import models as m
    from whosin.auditing import runs

    bits = Bytes(data)
    kind = bits.whole(3)
    if kind == 0:
        given = bits.odd((None, _records(bits)), ((), 3))
        score = bits.odd(("loss", lambda model, X, y: bits.numbers(len(X))), ("gradients", "", None, lambda *_: None))
        found = runs.audit_training(
            Rare(), given, _records(bits), score=score, guesses=bits.usual(None, 2), delta=bits.share(), rng=0
        )
        check_json(found.to_dict())
        with contextlib.suppress(WhosinError):
            check_json(found.compare(bits.choice(MAKERS)(bits)).to_dict())
    elif kind == 1:
        X, y = _records(bits)
        wrong = bits.odd((None, [0, 1], ["a", "b"]), ([0], [], 3, [0, 0], [[0, 1]], [None, 1]))
        shown, labels = runs.mislabelled(X, y, bits.usual(1, 3), classes=wrong, rng=0)
        assert len(shown) == len(labels)
    else:
        images = bits.odd((bits.numbers(3, 2, 3), bits.numbers(2, 1, 2, 2)), (bits.numbers(3, 4), [], None, "x"))
        shape = bits.odd((None,), ((2, 3), (1, 2, 2), (5,), 3, (-1, 2), ()))
        change = bits.choice(
            (
                lambda: m.image_shifts(bits.usual(1, 0, 5), flip=bool(bits.whole(2)), shape=shape),
                lambda: m.feature_noise([images], bits.amount()),
            )
        )()
        assert np.shape(change(images, np.random.default_rng(0))) == np.shape(images)


def _ensembles(data):
    """Reference models of a training, and the audit of one of them."""
    from whosin.auditing import models as m

    bits = Bytes(data)
    X, y = _records(bits)
    known = m.ReferenceModels.train(
        bits.odd((Rare(),), (None, Rare, 3, lambda X: X)),
        X,
        y,
        models=bits.usual(4, 8),
        sample_weight=bits.odd((None,), (3, [1.0] * len(y), [-1.0] * len(y))),
        n_jobs=1,
        rng=0,
    )
    target = bits.odd((0, 1), (-1, 99, None, Rare(), True))
    found = m.audit_with_references(
        known,
        target,
        bits.odd((None,), ([True, False] * 3, 3)),
        attack=bits.odd(m.references.ATTACKS, ("", None)),
        **options(bits),
    )
    ask(found, bits)


def _modules(data):
    """A tiny torch module: predictions, layers, training with and without privacy."""
    import torch

    bits = Bytes(data)
    torch.manual_seed(0)
    X, y = _records(bits)
    outputs = bits.choice((2, 1, 3))
    modules = (torch.nn.Linear(2, outputs), torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, outputs)))
    module = bits.odd(modules, (torch.nn.Linear(5, 2), torch.nn.Identity(), torch.nn.Flatten(0), None, 3))
    about = {
        "classes": bits.odd((None, [0, 1]), (["a", "b"], [0], [0, 0], 3)),
        "output": bits.odd(("logits",), ("probabilities", "log_probabilities", "")),
        "input_dtype": bits.odd((None, "float32"), ("int64", "float64", "x", "bool", 3)),
    }
    kind = bits.whole(3)
    if kind == 0:
        model = wi.TorchModel(module, batch_size=bits.usual(1, 3, 100), **about)
        assert np.isfinite(model.predict_proba(X)).all()
        model.predict(X)
        model.layer_output(X, bits.odd((None, ""), ("0", "x", 3)))
        return
    about |= {
        "learning_rate": bits.usual(0.1, 1e-30, 1e30),
        "optimizer": bits.odd(("sgd", "adam"), ("", None)),
        "reset": bool(bits.whole(2)),
        "device": bits.odd(("cpu",), ("", "nowhere", 3)),
    }
    if kind == 1:
        epochs = bits.odd((1, 2), (0, -1, 2.5, "1", None))  # not any number: a million of them take their time
        adapter = wi.TorchAdapter(module, epochs=epochs, batch_size=bits.usual(2, 100), **about)
        adapter.fit(X, y, np.random.default_rng(0)).predict_proba(X)
        return
    done = wi.train_dpsgd(
        module,
        X,
        y,
        noise_multiplier=bits.amount(),
        max_grad_norm=bits.amount(),
        sample_rate=bits.share(),
        steps=bits.odd((1, 2), (0, -1, 1.5)),
        rng=0,
        **about,
    )
    check_json(done.to_dict())


def _networks(data):
    """Architectures of any shape, and a generative model of a few records trained for a step."""
    from experiments import gans

    bits = Bytes(data)
    name = bits.odd(("small", "vector", "tabular"), ("mnist", "", None))
    shape = bits.odd(((4,), (4, 4), None), ((0,), (-1,), (2.5,), (), 3, (1, 1, 1, 1), "x", (10**30,)))
    arch = gans.architecture(name, shape, latent_size=bits.usual(2, None), width=bits.odd((4, 8), (0, -1, 2.5, None)))
    if name == "mnist" or np.prod(arch.shape) > 100:
        return
    more = {"batch_size": bits.odd((2,), (0, 1, 99)), "learning_rate": bits.usual(1e-3)}
    more["betas"] = bits.share(), bits.share()
    model = bits.choice(
        (
            lambda: gans.JSGAN(arch, discriminator_steps=bits.usual(1), **more),
            lambda: gans.WGANGP(arch, discriminator_steps=1, penalty=bits.amount(), **more),
            lambda: gans.PrivGAN(arch, pairs=bits.odd((2,), (0, 1, 2.5)), privacy_weight=bits.amount(), **more),
            lambda: gans.DPCGAN(
                arch, bits.amount(), bits.amount(), bits.odd((0.5, 1.0), (0.0, 2.0)), bits.odd((2,), (0, 1)), **more
            ),
        )
    )()
    rows = np.tanh(bits.numbers(6, *arch.shape))
    labels = {"y": np.arange(6) % 2} if isinstance(model, gans.DPCGAN) else {}
    model.fit(rows, epochs=bits.odd((1,), (0, -1, 1.5)), rng=0, **labels)
    made = model.sample(bits.usual(2), rng=0)
    assert made.shape[1:] == arch.shape


TARGETS = {
    "canaries": _canaries,
    "ensembles": _ensembles,
    "modules": _modules,
    "networks": _networks,
}


def seeds(name):
    """Any bytes are right."""
    return None
