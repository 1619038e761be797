"""What whosin keeps on a disk, damaged: ledgers, journals and checkpoints.

A damaged file is passed over or refused. What is read from it is what was written, to the bit.
"""

import contextlib
import functools
import hashlib
import io
import json
import sqlite3

import numpy as np

import whosin as wi
from whosin.errors import WhosinError

from .support import Bytes, check_json, file, place

RUN = "c0ffee" * 10 + "c0de"
RESULTS = {0: np.array([1.5, -0.0, 5e-324]), 1: np.array([[1.0, 2.0], [3.0, 4.0]]), 2: np.array(7.0), 3: np.zeros(0)}


def _ledger_json(data):
    """A certificate, an audit or a stored promise as JSON."""
    from whosin.ledger import Ledger
    from whosin.ledger.entries import promise_from_dict

    try:
        known = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(known, dict):
        return
    book = place("json.db")
    book.unlink(missing_ok=True)
    for attempt in (
        lambda: promise_from_dict(known),
        lambda: Ledger(book).add("x", dataset="d", certificate=known),
        lambda: Ledger(book).add("x", dataset="d", audit=known),
        lambda: Ledger(book).totals(),
    ):
        with contextlib.suppress(WhosinError):
            attempt()


def _ledger_url(data):
    from whosin.ledger.place import Place

    text = data.decode("utf-8", "replace")
    prefix = ("", "sqlite:///", "postgresql://", "postgresql://u:p@")[len(data) % 4]
    found = Place(prefix + text)
    str(found)
    found.url()


@functools.cache
def _book():
    """The bytes of a ledger with some entries."""
    from whosin.ledger import Ledger

    path = place("whole.db")
    path.unlink(missing_ok=True)
    book = Ledger(path)
    book.add("counts", dataset="people", guarantee=wi.PureDP(1.0), note="first")
    book.add("means", data=np.eye(3), guarantee=wi.ApproxDP(0.5, 1e-6), by="ann")
    book.same_people(np.eye(3), "people")
    book.retract(1, "a mistake", voids_guarantee=True)
    return path.read_bytes()


def _ledger_file(data):
    """A ledger whose file was damaged, or whose tables hold anything."""
    bits = Bytes(data)
    if bits.whole(2):
        path = file("damaged.db", bits.edits(_book()))
    else:
        path = file("damaged.db", _book())
        _tamper(path, bits)
    _read(path, bits)


def _tamper(path, bits):
    """Put values of any type into the tables, with a hash that fits where the draw says so."""
    from whosin.ledger.entries import hash_of
    from whosin.ledger.store import ENTRIES, META

    values = (
        None,
        0,
        7,
        -1,
        2**63 - 1,
        1.5,
        float("inf"),
        "",
        "x",
        b"\xff",
        "1",
        "{}",
        "[]",
        "null",
        '"x"',
        "[" * 5000,
    )
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        for change in ("UPDATE", "DELETE"):
            base.execute(f"DROP TRIGGER {ENTRIES}_no_{change}")
        for _ in range(1 + bits.whole(2)):
            row, value = 1 + bits.whole(4), bits.choice(values)
            column = bits.choice(("number", "body", "previous", "hash", "action", "dataset", "fingerprint", "about"))
            if bits.whole(4) == 0:
                name = bits.choice(("schema", "ledger", "entries", "head"))
                with contextlib.suppress(sqlite3.Error):
                    base.execute(f"UPDATE {META} SET value = ? WHERE name = ?", (value, name))
                continue
            if column == "body" and bits.whole(2):
                value = _body(bits)
            with contextlib.suppress(sqlite3.Error, OverflowError):
                base.execute(f"UPDATE {ENTRIES} SET {column} = ? WHERE number = ?", (value, row))
            if bits.whole(2):
                for number, before, body in base.execute(f"SELECT number, previous, body FROM {ENTRIES}").fetchall():
                    with contextlib.suppress(sqlite3.Error):
                        fitting = hash_of(number, before, body)
                        base.execute(f"UPDATE {ENTRIES} SET hash = ? WHERE number = ?", (fitting, number))


def _body(bits):
    """An entry with one key that is not what it should be."""
    body = {"action": "release", "at": "2026-01-01T00:00:00+00:00", "name": "x", "kind": "release", "dataset": "people"}
    key = bits.choice([*body, "guarantee", "audit", "note", "about", "fingerprint", "by", "voids_guarantee"])
    odd = (None, 0, "", "x", [], {}, True, -1.5, {"guarantee": "PureDP"}, {"guarantee": "PureDP", "epsilon": "inf"})
    body[key] = bits.choice((*odd, "2026-01-01", "9999-12-31T23:59:59-23:59", {"advantage": 1}, 10**30, "same people"))
    return json.dumps(body)


def _read(path, bits):
    from whosin.ledger import Budget, Ledger

    book = Ledger(path)
    for attempt in (
        lambda: [check_json(entry.to_dict()) or str(entry) for entry in book.entries()],
        lambda: book.entries(after=1, limit=2),
        lambda: len(book),
        lambda: check_json(book.verify().to_dict()),
        lambda: [check_json(total.to_dict()) or total.explain() for total in book.totals(delta=1e-5)],
        lambda: book.check(dataset="people"),
        lambda: book.check(np.eye(3)),
        lambda: book.retract(bits.usual(1, 2, 4), "again"),
        lambda: book.add("more", dataset="people", guarantee=wi.PureDP(0.1), budget=Budget(epsilon=5.0)),
        lambda: book.verify(),
    ):
        with contextlib.suppress(WhosinError):
            attempt()


def _lines():
    """The bytes of a journal with some results."""
    from whosin.parallel.journal import Journal

    path = place("whole.journal")
    path.unlink(missing_ok=True)
    book = Journal(path, RUN)
    for number, value in RESULTS.items():
        book.write(number, value)
    return path.read_bytes()


def _journal(data):
    """A journal with anything in it: what it yields was written so, and what is written next is kept."""
    from whosin.parallel.journal import Journal

    path = file("damaged.journal", data)
    book = Journal(path, RUN)
    for number, value in book.read(len(RESULTS)):
        assert value.shape == RESULTS[number].shape
        assert value.tobytes() == RESULTS[number].tobytes()
    book.write(9, np.array([2.5]))
    assert dict(Journal(path, RUN).read(10))[9] == 2.5


class Rare:
    """A classifier that learns how common each label is."""

    def fit(self, X, y, rng):
        self.share = float(np.mean(y))
        return self

    def predict_proba(self, X):
        return np.tile([1.0 - self.share, self.share], (len(X), 1))


def _trained(journal=None):
    X, y = np.arange(6.0).reshape(6, 1), np.array([0, 1, 1, 0, 1, 0])
    from whosin.auditing.models import ReferenceModels

    return ReferenceModels.train(Rare(), X, y, models=4, n_jobs=1, rng=5, journal=journal)


@functools.cache
def _scores():
    """The logits of reference models, and the bytes of their journal."""
    found = _trained(place("whole-models"))
    return found.logits, place("whole-models").read_bytes()


def _models(data):
    """A journal of reference models, damaged: the models come out the same."""
    logits, content = _scores()
    kept = file("models", Bytes(data).edits(content))
    try:
        assert np.array_equal(_trained(kept).logits, logits)
    finally:
        kept.unlink()


def _network():
    import torch

    torch.manual_seed(0)
    module = torch.nn.Linear(2, 1)
    return module, torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


@functools.cache
def _training():
    """The bytes of a checkpoint, and the weights in it."""
    import torch

    from whosin.training.checkpoint import Checkpoint

    module, optimizer = _network()
    with torch.no_grad():
        module.weight += 1.0
    kept = Checkpoint(place("j"), RUN)
    kept.write(module, optimizer, 3)
    content = kept.path.read_bytes()
    kept.remove()
    return content, module.weight.detach().numpy().copy()


def _checkpoint(data):
    """A checkpoint of a training, damaged, also with a hash that fits: its weights are those written, or none."""
    from whosin.training.checkpoint import Checkpoint

    bits = Bytes(data)
    content, weights = _training()
    honest = bits.whole(2)
    if honest:
        content = bits.edits(content)
    else:
        forged = _forged(bits, content[32:])
        content = hashlib.sha256(forged).digest() + forged
    kept = Checkpoint(place("j"), RUN)
    kept.path.write_bytes(content)
    module, optimizer = _network()
    try:
        done = kept.read(module, optimizer)
    finally:
        kept.remove()
    if honest and done:
        assert np.array_equal(module.weight.detach().numpy(), weights)


def _forged(bits, content):
    """Return a changed file of torch, or one that holds something else."""
    import pickle

    import torch

    kind = bits.whole(4)
    if kind < 2:
        return bits.edits(content)
    state = {"key": RUN, "done": 3, "module": {}, "optimizer": {}}
    odd = (None, 3, "x", [], {}, {"weight": torch.zeros(5)}, -1, float("nan"), {"state": 1, "param_groups": 2})
    held = bits.choice([state | {key: bits.choice(odd)} for key in (*state, "more")] + [bits.choice(odd), {}])
    if kind == 2:
        stream = io.BytesIO()
        torch.save(held, stream)
        return stream.getvalue()
    return bits.choice((pickle.dumps(held if bits.whole(2) else _Bomb()), b"", b"PK\x05\x06" + bytes(18)))


class _Bomb:
    """Whoever unpickles this without care leaves a file behind."""

    def __reduce__(self):
        return open, (str(place("exploded")), "w")


def _gan(data):
    """A checkpoint of a generative model, damaged, or one of something else."""
    from experiments.gans import checkpoints

    bits = Bytes(data)
    path = place("gan.pt")
    checkpoints.write(path, {"key": RUN, "epoch": 1, "networks": {"g": _network()[0].state_dict()}})
    whole = path.read_bytes()
    honest = bits.whole(2)
    forged = _forged(bits, whole[32:])
    path.write_bytes(bits.edits(whole) if honest else hashlib.sha256(forged).digest() + forged)
    try:
        found = checkpoints.read(path, RUN)
    finally:
        path.unlink()
        assert not place("exploded").exists()
    if honest:
        assert np.array_equal(found["networks"]["g"]["weight"].numpy(), _network()[0].weight.detach().numpy())


TARGETS = {
    "ledger-json": _ledger_json,
    "ledger-url": _ledger_url,
    "ledger-file": _ledger_file,
    "journal": _journal,
    "models": _models,
    "checkpoint": _checkpoint,
    "gan-checkpoint": _gan,
}


def seeds(name):
    """Some inputs that are right, from which the search starts; None where any bytes are."""
    if name == "ledger-json":
        promise = {"guarantee": "PureDP", "epsilon": 1.0, "adjacency": "add_remove"}
        certificate = {"certificate": {"mip": {"guarantee": "MIP", "eta": 0.1}, "test_mode": False}}
        limits = {"advantage": {"estimate": 0.1, "lower": 0.0, "upper": 0.2, "confidence_level": 0.95}, "prior": 0.5}
        return [json.dumps(known).encode() for known in (promise, certificate, limits)] + [b'{"mip": {"eta": 0.1}}']
    if name == "ledger-url":
        return [b"a.db", b"user:password@host/base", b"h/b?x=1", b"%2F@h:99999/b"]
    if name == "journal":
        return [_lines(), b"", b"\n", b'\n{"whosin journal": 1, "run": "' + RUN.encode() + b'", "task": ' + b"[" * 3000]
    return None
