"""Work that ends the process it runs in, once: for tests of what a cluster survives."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Calls:
    """Counts calls in a file that all processes share, and ends the process in the middle of some of them."""

    path: Path
    deadly: tuple[int, ...] = ()

    def __call__(self):
        with open(self.path, "ab", buffering=0) as file:
            file.write(b".")
            number = file.tell()
        if number in self.deadly and os.getpid() != int(os.environ.get("TEST_PROCESS", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    def count(self):
        return self.path.stat().st_size if self.path.exists() else 0


@dataclass(frozen=True)
class Square:
    calls: Calls
    wrong: int = -1
    always: int = -1

    def __call__(self, item):
        self.calls()
        if item == self.wrong:
            raise ZeroDivisionError(f"item {item}, on purpose")
        if item == self.always:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.array([item**2, np.random.default_rng([7, item]).normal()])


@dataclass
class Means:
    """An adapter: which of two means, blurred by chance, is nearer. (No library that takes seconds to import.)"""

    calls: Calls

    def fit(self, X, y, rng):
        self.calls()
        self.means = np.array([X[y == label].mean(axis=0) for label in (0, 1)]) + 0.1 * rng.normal(size=(2, X.shape[1]))
        return self

    def predict_proba(self, X):
        weights = np.exp(-((X[:, None] - self.means) ** 2).sum(axis=2))
        return weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Middle:
    """A random estimator for protect."""

    calls: Calls

    def __call__(self, rows, rng):
        self.calls()
        return np.median(rows, axis=0) + 1e-3 * rng.normal(size=rows.shape[1])


@dataclass
class Redraws:
    """A generator that draws its records again, blurred."""

    calls: Calls

    def fit(self, records):
        self.calls()
        self.records = records
        return self

    def sample(self, n, rng):
        chosen = self.records[rng.integers(len(self.records), size=n)]
        return chosen + 0.05 * rng.normal(size=chosen.shape)

    def journal_key(self):
        return "redraws"
