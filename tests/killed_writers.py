"""Writers that are killed at random moments: ``python killed_writers.py SCENARIO FOLDER [SEED]``.

A scenario has a worker, which goes on for ever and tells the number of each thing that is done, and a judge, which sees
what is left after the worker was killed and everything that was ever told. Each worker takes up what the one before it
left. Workers are forks of this process, which has no other threads and has imported everything: the moments are chance
from a seed.
"""

import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments of the project, not the tests of that name

REPETITIONS = 10
LONGEST = 0.08
"""Seconds until a worker is killed, at most, after it has told its first number."""


def journal(folder):
    """Lines that go to the disk in two halves with a pause between them, so that many are cut."""
    from whosin.parallel.journal import Journal

    whole = os.write

    def in_halves(handle, line):
        half = whole(handle, line[: len(line) // 2])
        time.sleep(0.005)
        return half + whole(handle, line[len(line) // 2 :])

    def work(tell):
        book = Journal(folder / "j", "run")
        start = 1 + max((number for number, _ in book.read(10**9)), default=-1)
        for number in itertools.count(start):
            os.write = in_halves
            book.write(number, np.full(100, float(number)))
            os.write = whole
            tell(number)

    def judge(told):
        found = dict(Journal(folder / "j", "run").read(10**9))
        assert told <= set(found)
        assert all(np.all(value == number) for number, value in found.items())

    return work, judge


def references(folder):
    """The journal of reference models; in the end it is what one run gives."""
    from whosin.auditing.models import ReferenceModels

    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    models = 100

    def train(journal, progress=None):
        return ReferenceModels.train(_Mean(), X, y, models=models, rng=5, journal=journal, progress=progress, n_jobs=1)

    expected = train(None).logits

    def work(tell):
        train(folder / "kept", lambda share: tell(round(share * models)))
        signal.pause()

    def judge(told):
        kept = (folder / "kept").read_bytes().count(b"}\n")
        assert kept >= max(told)
        if max(told) == models:
            assert np.array_equal(train(folder / "kept").logits, expected)

    return work, judge


class _Mean:
    """A classifier by the nearer mean, slow enough to be killed at work."""

    def fit(self, X, y, rng):
        time.sleep(0.003)
        self.means = np.array([X[y == label].mean(axis=0) if np.any(y == label) else 0 * X[0] for label in (0, 1)])
        return self

    def predict_proba(self, X):
        near = np.exp(-((X[:, None] - self.means) ** 2).sum(axis=2))
        return near / near.sum(axis=1, keepdims=True)


def checkpoints(folder):
    """The state of a classifier's training and that of a generative model's: all weights are the number of the step."""
    import torch

    from experiments.gans.checkpoints import read, write
    from whosin.training.checkpoint import Checkpoint

    torch.set_num_threads(1)
    kept, other = Checkpoint(folder / "j", "key"), folder / "gan.pt"
    module, optimizer = torch.nn.Linear(400, 400), Stateless()

    def step(number):
        with torch.no_grad():
            for weight in module.parameters():
                weight.fill_(float(number))
        kept.write(module, optimizer, number)
        write(other, {"key": "key", "step": number, "weights": module.weight.detach()})

    step(0)

    def work(tell):
        for number in itertools.count(kept.read(module, optimizer) + 1):
            step(number)
            tell(number)

    def judge(told):
        done = kept.read(module, optimizer)
        assert done >= max(told)
        assert all(bool((weight == done).all()) for weight in module.parameters())
        found = read(other, "key")
        assert found["step"] >= max(told)
        assert bool((found["weights"] == found["step"]).all())

    return work, judge


class Stateless:
    """An optimiser that keeps nothing."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        assert state == {}


def ledger(folder):
    """Entries of a ledger."""
    from whosin.ledger import Ledger

    book = Ledger(folder / "l.db")
    book.add("first", dataset="people")

    def work(tell):
        while True:
            tell(book.add("x" * 1000, dataset="people").number)

    def judge(told):
        numbers = [entry.number for entry in book.entries()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert told <= set(numbers)
        assert book.verify().intact

    return work, judge


def report(folder):
    """A report that is replaced again and again by one of another version."""
    from whosin.parallel.storage import whole_file

    path = folder / "report.html"
    pages = [b"a" * 3_000_000, b"b" * 2_000_000]
    path.write_bytes(pages[0])

    def work(tell):
        for number in itertools.count():
            with whole_file(path) as draft:
                draft.write_bytes(pages[number % 2])
            tell(number)

    def judge(told):
        assert path.read_bytes() in pages

    return work, judge


def protect(folder):
    """What ``whosin protect --out`` releases, as an array of a hundred thousand numbers."""
    from whosin.cli.protect import _fill, _place

    path = folder / "out.npy"
    path.write_bytes(b"old")

    class Release:
        value = np.ones(100_000)

    def work(tell):
        tell(0)
        for number in itertools.count(1):
            with _place(path, True) as part:
                Release.value[:] = number
                _fill(Release, ["a"], part, ".npy")
            tell(number)

    def judge(told):
        if path.read_bytes() == b"old":
            assert max(told) == 0
            return
        value = np.load(path)
        assert value.shape == (100_000,)
        assert np.all(value == value[0])

    return work, judge


def page(folder):
    """What the worker of the page tells the server."""
    from whosin.web.folders import read_json, write_json

    path = folder / "outcome.json"

    def work(tell):
        for number in itertools.count():
            write_json(path, {"text": str(number % 10) * 3_000_000})
            tell(number)

    def judge(told):
        text = read_json(path)["text"]
        assert text == text[0] * 3_000_000

    return work, judge


SCENARIOS = {
    "journal": journal,
    "references": references,
    "checkpoints": checkpoints,
    "ledger": ledger,
    "report": report,
    "protect": protect,
    "page": page,
}


def killed(work, seconds):
    """Return what a worker told until it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            work(lambda number: os.write(writing, b"%d\n" % number))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        first = pipe.readline()
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the worker ended by itself"
        return {int(number) for number in (first + pipe.read()).split()}


def main(name, folder, seed=8):
    """Kill the worker of a scenario again and again, and judge what it leaves."""
    chance = random.Random(int(seed))
    work, judge = SCENARIOS[name](Path(folder))
    told = set()
    for _ in range(REPETITIONS):
        told |= killed(work, LONGEST * chance.random())
        judge(told)
    print(json.dumps(len(told)))


if __name__ == "__main__":
    main(*sys.argv[1:])
