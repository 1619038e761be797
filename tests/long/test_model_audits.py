"""Audits of models: reference models, one classifier, and trainings with canaries, where the truth is known."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit
from sklearn.tree import DecisionTreeClassifier

import whosin as wi
from whosin.auditing.models import DPSGDAdapter, ReferenceModels, audit_with_references
from whosin.auditing.models.references import ATTACKS

pytestmark = pytest.mark.long

LEVEL = 0.8
RUNS = 300


@dataclass
class Memory:
    """A training that learns every record by heart: its logit is normal, and higher by ``leak`` for whoever was in.

    The logits of different records and of different trainings are independent, so the limits speak of independent
    scores, and the law of a score can be had by drawing many.
    """

    leak: float
    records: int

    def fit(self, X, y, rng):
        """Return the model."""
        shift = np.zeros(self.records)
        shift[X[:, 0].astype(int)] = self.leak
        return Remembered(shift + rng.normal(size=self.records))


@dataclass
class Remembered:
    """The logits of the label 1 of all records."""

    logits: np.ndarray

    def predict_proba(self, X):
        """Return both probabilities of each record."""
        p = expit(self.logits[X[:, 0].astype(int)])
        return np.column_stack([1 - p, p])


def references(leak, records, rng, models=16):
    """Reference models on so many records."""
    ids = np.arange(records)[:, None]
    memory = Memory(leak, records)
    return memory, ReferenceModels.train(memory, ids, np.ones(records, dtype=int), models=models, rng=rng)


@pytest.mark.parametrize("own", [False, True], ids=["a model of the set", "a model of its own"])
def test_reference_attacks_do_not_cry_wolf(own, seed, judge):
    """Models that learn nothing, labels of membership at random."""
    rng = np.random.default_rng([61, seed, own])
    alarms = dict.fromkeys(ATTACKS, 0)
    for run in range(RUNS):
        memory, known = references(0.0, 200, rng)
        target, included = 0, None
        if own:
            included = rng.random(200) < 0.5
            target = memory.fit(known.X[included], known.y[included], rng)
        for attack in ATTACKS:
            found = audit_with_references(known, target, included, attack=attack, confidence_level=LEVEL, rng=run)
            alarms[attack] += found.advantage.lower > 0
    for count in alarms.values():
        judge(count, RUNS, (1 - LEVEL) / 2)


def _truth(known, attack):
    """Largest TPR - FPR of a threshold on the score, and of any set of 64 cells, from many records and four targets."""
    scores = np.array([known.attack(i, attack) for i in range(0, 16, 4)])
    member = known.included[::4]
    inside, outside = np.sort(scores[member]), np.sort(scores[~member])
    cells = np.unique(np.quantile(scores, np.arange(1, 64) / 64))
    places = [np.searchsorted(side, cells) / len(side) for side in (inside, outside)]
    masses = [np.diff(place, prepend=0.0, append=1.0) for place in places]
    return np.abs(places[0] - places[1]).max(), np.maximum(masses[0] - masses[1], 0.0).sum()


def test_reference_attacks_on_models_that_leak(seed, judge):
    """The upper limit covers every threshold; no attacker beats the best set of cells, but for 0.005 (64 cells)."""
    rng = np.random.default_rng([67, seed])
    large = references(2.0, 100_000, rng)[1]
    truth = {attack: _truth(large, attack) for attack in ATTACKS if attack != "auto"}  # which differs from set to set
    misses, leaks = {attack: np.zeros(2, dtype=int) for attack in truth}, dict.fromkeys(truth, 0)
    for run in range(RUNS):
        known = references(2.0, 300, rng)[1]
        for attack, (by_threshold, by_cells) in truth.items():
            found = audit_with_references(known, 0, attack=attack, confidence_level=LEVEL, rng=run).advantage
            misses[attack] += [found.lower > by_cells + 0.005, found.upper < by_threshold]
            leaks[attack] += found.lower > 0
    for count in np.concatenate(list(misses.values())):
        judge(count, RUNS, (1 - LEVEL) / 2)
    assert min(leaks.values()) > RUNS / 2


SIDE = 24
GRID = np.array([(i, j) for i in range(SIDE) for j in range(SIDE)], dtype=float)
CHANCE = np.where(GRID[:, 0] < SIDE / 2, 0.3, 0.7)
"""P(label 1) at each of 576 equally likely points: a population that can be listed."""
ALL = np.repeat(GRID, 2, axis=0), np.tile([0, 1], len(GRID))
WEIGHTS = np.column_stack([1 - CHANCE, CHANCE]).ravel() / len(GRID)


def people(rng, count):
    at = rng.integers(len(GRID), size=count)
    return GRID[at], (rng.random(count) < CHANCE[at]).astype(int)


def tree(rng, rows):
    return DecisionTreeClassifier(random_state=int(rng.integers(2**31))).fit(*rows)


@pytest.mark.parametrize("query", ["loss", "entropy", "scaled_logit"])
@pytest.mark.parametrize("sizes", [(150, 150), (60, 1000), (1000, 60)])
def test_limits_of_an_overfitted_tree(query, sizes, seed, judge):
    """Given the tree and its training rows, the one chance left is that of the others, whose law can be listed.

    So the lower limit is held against the share of the reported training rows that the attack accuses, less its chance
    to accuse another of the population; the upper one against the best attack by the cells, or by any threshold.
    """
    rng = np.random.default_rng([71, seed, *sizes])
    misses, leaks = np.zeros(2, dtype=int), 0
    for run in range(RUNS):
        members, others = people(rng, sizes[0]), people(rng, sizes[1])
        model = tree(rng, members)
        found = wi.audit_classifier(
            model, members, others, query=query, kind="continuous", confidence_level=LEVEL, rng=run
        )
        low, high = _true_advantages(found, _asked(model, query, ALL))
        misses += [found.advantage.lower > low + 1e-12, found.advantage.upper < high - 1e-12]
        leaks += found.advantage.lower > 0
    for count in misses:
        judge(count, RUNS, (1 - LEVEL) / 2)
    assert sizes[0] > 500 or query == "entropy" or leaks > RUNS / 2


def _asked(model, query, rows):
    """The answer to a query about each row, as the audit asks it."""
    from whosin.auditing.models.predictions import SIGNALS, predict

    return SIGNALS[query][1](predict(model, *rows))


def _true_advantages(found, answers):
    """Of the audit's attack, never below a constant guess, and the best of the class of its upper limit."""
    attack, evidence = found.attack, found._evidence
    view = attack.candidate.view
    held = evidence.held_out(view).members
    own = attack.accuses(held).mean() - WEIGHTS[attack.accuses(answers)].sum()
    cells = [
        np.bincount(view.cells.locate(values), weights=weights, minlength=len(view.cells))
        for values, weights in ((held, np.full(len(held), 1 / len(held))), (answers, WEIGHTS))
    ]
    steps = np.unique(np.concatenate([held, answers]))
    above = np.array([(held >= t).mean() - WEIGHTS[answers >= t].sum() for t in steps])
    return max(own, 0.0), max(np.maximum(cells[0] - cells[1], 0.0).sum(), np.abs(above).max())


def test_a_tree_of_other_rows_does_not_cry_wolf(seed, judge):
    """Members that the model never saw, all queries at once, calibrated by references too."""
    rng = np.random.default_rng([73, seed])
    runs, alarms = 150, 0
    for run in range(runs):
        model, *others = (tree(rng, people(rng, 40)) for _ in range(3))
        found = wi.audit_classifier(
            model, people(rng, 150), people(rng, 150), reference=others, confidence_level=LEVEL, rng=run
        )
        alarms += found.advantage.lower > 0
    judge(alarms, runs, (1 - LEVEL) / 2)


@dataclass
class Responses:
    """A training that publishes one bit a canary, true with probability e^ε/(1 + e^ε): exactly ε-DP (add/remove)."""

    epsilon: float
    canaries: int

    def fit(self, X, y, rng):
        """Return the model."""
        inside = np.zeros(self.canaries, dtype=bool)
        inside[X[:, 0].astype(int)] = True
        said = inside ^ (rng.random(self.canaries) > expit(self.epsilon))
        return Remembered(np.where(said, 2.0, -2.0))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_trainings_with_canaries(epsilon, seed, judge):
    """From coins to guesses by the loss of the model; the promise is attained, so that its own verdict is at stake."""
    canaries = np.arange(200)[:, None], np.ones(200, dtype=int)
    runs, misses, violated = 2000, 0, 0
    for run in range(runs):
        found = wi.audit_training(
            Responses(epsilon, 200), None, canaries, guesses=200, confidence_level=LEVEL, rng=[79, seed, run]
        )
        misses += found.epsilon_lower > epsilon + 1e-12
        violated += found.compare(wi.PureDP(epsilon)).verdict == "violated"
    judge(misses, runs, 1 - LEVEL)
    judge(violated, runs, 1 - LEVEL)


def test_dp_sgd_keeps_its_promise(seed, judge):
    """One step on every record, gradients that do not overlap, seen with the noise: as strong as canaries get."""
    import torch

    canaries = np.eye(200, dtype=np.float32), np.arange(200) % 2
    runs, misses = 100, 0
    for run in range(runs):
        adapter = DPSGDAdapter(
            torch.nn.Linear(200, 2, bias=False), noise_multiplier=3.0, max_grad_norm=0.5, sample_rate=1.0, steps=1
        )
        found = wi.audit_training(
            adapter, None, canaries, score="gradients", guesses=100, delta=1e-5, confidence_level=LEVEL,
            rng=[83, seed, run],
        )  # fmt: skip
        promise = adapter.guarantee.implies(wi.ApproxDP, delta=1e-5).epsilon
        misses += found.epsilon_lower > promise
    judge(misses, runs, 1 - LEVEL)
    assert math.isfinite(promise)
