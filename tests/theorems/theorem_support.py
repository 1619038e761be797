"""What the tests of several papers share: data sets, random mechanisms, answers with given counts, a judge."""

import itertools
import math

import numpy as np
from scipy.stats import binomtest


def subsets(universe):
    """Every data set of the universe, as the tuples that a mechanism is given."""
    return [chosen for size in range(len(universe) + 1) for chosen in itertools.combinations(universe, size)]


def random_laws(rng, data_sets, outputs=3, spread=0.7):
    """A mechanism as a table: a random law, all outputs possible, for each data set."""
    weights = np.exp(spread * rng.normal(size=(len(data_sets), outputs)))
    weights /= weights.sum(axis=1, keepdims=True)
    return {data_set: dict(enumerate(row)) for data_set, row in zip(data_sets, weights.tolist(), strict=True)}


def random_mechanism(rng, outputs=4, floor=0.05, alpha=0.7):
    """Return a mechanism with a random law for each data set, every output having at least floor/outputs."""
    laws = {}

    def law(records):
        if records not in laws:
            row = (1.0 - floor) * rng.dirichlet(np.full(outputs, alpha)) + floor / outputs
            laws[records] = dict(enumerate(row.tolist()))
        return laws[records]

    return law


def reveal_or_respond(record, epsilon, delta=0.0):
    """Say 1{record ∈ D} for sure with probability δ, otherwise by randomised response."""
    right, wrong = (1.0 - delta) / (1.0 + math.exp(-epsilon)), (1.0 - delta) / (1.0 + math.exp(epsilon))

    def law(records):
        inside = record in records
        return {("surely", inside): delta, inside: right, not inside: wrong}

    return law


def every_attack(outputs):
    """Every deterministic attack, as a row that is True where it says "member"."""
    return np.array(list(itertools.product((False, True), repeat=outputs)))


def hockey_stick(p, q, gamma):
    """Σ(p - γq)_+."""
    return float(np.maximum(np.asarray(p) - gamma * np.asarray(q), 0.0).sum())


def answers(counts):
    """Return the answers of a discrete query with these counts."""
    return np.repeat(np.arange(len(counts)), counts)


def holds(misses, runs, level):
    """At most ``level`` of all runs miss, as far as so many can tell (one false alarm in a million)."""
    assert binomtest(int(misses), runs, level, alternative="greater").pvalue > 1e-6, f"{misses} misses of {runs}"
