"""Certificates by simulation, against enumeration of every subset by itertools and against the definitions."""

import itertools
import math

import numpy as np
import pytest
from softmax_by_hand import broken, chance_of_so_many, excess, laws, random_logits, ratios

from whosin.errors import InputError, InputTypeError
from whosin.population.exponential import draws as softmax_draws
from whosin.population.exponential import game as softmax_game
from whosin.population.exponential import plan as softmax_plan
from whosin.population.exponential.game import Game
from whosin.population.exponential.monte_carlo import certify

POOLS = ((8, 4), (9, 3), (9, 6), (10, 1), (10, 9), (8, 2), (9, 2))
"""Sizes of pool and subset, on either side of one half."""


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_limits_of_all_records_hold_at_once_as_often_as_promised(delta):
    confidence_level, runs = 0.6, 35
    misses = without_margin = 0
    for seed in range(runs):
        n, k = POOLS[seed % len(POOLS)]
        logits = random_logits(seed, n, 4, (0.2, 0.6, 1.5)[seed % 3])
        ins, outs, _ = laws(logits, k)
        found = certify(logits, k, delta=delta, confidence_level=confidence_level, draws=1500, rng=seed)
        misses += broken(ins, outs, found.per_record, delta) or broken(ins, outs, found.epsilon, delta)
        without_margin += broken(ins, outs, found.point, delta)
    assert chance_of_so_many(misses, runs, 1 - confidence_level) > 1e-3
    # Estimates without a margin miss far more often, so the comparison is able to fail.
    assert chance_of_so_many(without_margin, runs, 1 - confidence_level) < 1e-3


def test_many_draws_come_close_to_the_truth():
    logits = random_logits(3, 10, 3, 0.3)
    for k in (1, 5, 7):
        exact = np.abs(ratios(logits, k)).max()
        found = certify(logits, k, draws=40_000, rng=k)
        assert exact <= found.epsilon <= 1.05 * exact + 0.01
        assert found.point.max() == pytest.approx(exact, rel=0.05)


def rare_pool():
    """Two outcomes that are often chosen, and one that is nearly never, but then tells a lot."""
    rng = np.random.default_rng(2)
    logits = 0.05 * rng.standard_normal((10, 3))
    logits[:, 2] += 2.2 + 0.8 * rng.standard_normal(10)
    return logits


def test_rare_outcomes_go_to_delta():
    logits = rare_pool()
    ins, outs, total = laws(logits, 5)
    assert total.min() < 0.01
    pure, relaxed = (certify(logits, 5, delta=delta, draws=4000, rng=3) for delta in (0.0, 0.02))
    assert relaxed.epsilon < 0.3 * pure.epsilon
    assert np.all(relaxed.per_record <= pure.per_record)
    for found, delta in ((pure, 0.0), (relaxed, 0.02)):
        assert not broken(ins, outs, found.per_record, delta)


def test_epsilon_falls_as_delta_grows_down_to_the_total_variation():
    logits = random_logits(7, 10, 4, 0.3)
    ins, outs, _ = laws(logits, 4)
    found = [certify(logits, 4, delta=delta, draws=3000, rng=1).epsilon for delta in (0.0, 0.001, 0.01, 0.1, 0.5)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert found[0] > 0.0
    assert found[-1] == 0.0
    assert excess(ins, outs, 0.0).max() < 0.5


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(softmax_draws, "BATCH", 2**12)
    monkeypatch.setattr(softmax_plan, "BLOCK", 2**15)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("k", [100, 20, 180])
def test_the_number_of_threads_does_not_matter(k):
    logits = random_logits(11, 200, 3, 0.3)
    first, *others = (certify(logits, k, delta=0.01, draws=999, rng=5, n_jobs=jobs) for jobs in (None, 2, 3, -1))
    for other in others:
        assert np.array_equal(other.per_record, first.per_record)
        assert np.array_equal(other.point, first.point)
        assert np.array_equal(other.probabilities, first.probabilities)
        assert (other.epsilon, other.draws) == (first.epsilon, 999)


def test_a_seed_repeats_and_another_one_differs():
    logits = random_logits(1, 10, 3, 0.5)
    first, second = (certify(logits, 5, draws=500, rng=np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.per_record, second.per_record)
    assert not np.array_equal(first.per_record, certify(logits, 5, draws=500, rng=4).per_record)


def test_small_logits_and_the_log_domain_agree(monkeypatch):
    logits = random_logits(9, 12, 4, 1.0)
    quick = certify(logits, 5, draws=500, rng=3)
    monkeypatch.setattr(softmax_game, "GENTLE", 0.0)
    assert certify(logits, 5, draws=500, rng=3).per_record == pytest.approx(quick.per_record, rel=1e-9)


@pytest.mark.parametrize("k", [1, 4, 6])
def test_huge_logits_stay_finite_and_certified(k):
    logits = random_logits(2, 8, 3, 900.0)
    found = certify(logits, k, draws=500, rng=3)
    assert found.deterministic.max() > 1000
    assert np.all(np.abs(ratios(logits, k)).max(axis=1) <= found.per_record)
    assert np.all(certify(logits, k, delta=0.05, draws=500, rng=3).per_record <= found.per_record)


def test_shifts_do_not_matter():
    logits = random_logits(4, 10, 3, 0.5)
    plain = certify(logits, 5, draws=500, rng=1)
    by_record = certify(logits + np.arange(10.0)[:, None], 5, draws=500, rng=1)
    assert by_record.per_record == pytest.approx(plain.per_record, rel=1e-9)


def test_equal_outcomes_are_merged_and_shown_apart():
    distinct = np.round(8 * random_logits(5, 9, 2, 0.8)) / 8
    logits = np.column_stack([distinct[:, 0], distinct[:, 1], distinct[:, 0], distinct[:, 1] + 0.25])
    ins, outs, total = laws(logits, 4)
    assert Game.prepared(logits, 4).outcomes == 2
    found = certify(logits, 4, draws=5000, rng=6)
    assert found.probabilities == pytest.approx(total, abs=0.02)
    assert found.probabilities.sum() == pytest.approx(1.0)
    assert found.probabilities[0] == pytest.approx(found.probabilities[2], rel=1e-12)
    assert not broken(ins, outs, found.per_record, 0.0)


@pytest.mark.parametrize(
    "logits", [np.ones((6, 1)), np.tile([0.1, 0.7, 3.0], (6, 1)), np.repeat(random_logits(0, 6, 1, 1.0), 3, axis=1)]
)
def test_nothing_to_learn(logits):
    shares = []
    found = certify(logits, 3, progress=shares.append)
    assert shares == [1.0]
    assert found.epsilon == 0.0
    assert not found.per_record.any()
    assert not found.deterministic.any()
    assert found.probabilities.sum() == pytest.approx(1.0)
    weights = np.exp(-3 * logits[0])
    assert found.probabilities == pytest.approx(weights / weights.sum())


def test_two_records():
    logits = np.array([[0.0, 0.3], [0.4, 0.1]])
    exact = np.abs(ratios(logits, 1)).max()
    found = certify(logits, 1, draws=3000, rng=1)
    assert exact <= found.epsilon <= exact + 0.02


def test_fewest_draws_fall_back_on_what_is_certain():
    found = certify(random_logits(1, 10, 3, 0.5), 1, draws=2, rng=1)
    assert np.array_equal(found.per_record, found.certain)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": 6}, "k"),
        ({"k": 2.5}, "k"),
        ({"logits": np.array([[0.0, np.nan], [0.0, 1.0]]), "k": 1}, "logits"),
        ({"logits": np.array([[0.0, np.inf], [0.0, 1.0]]), "k": 1}, "logits"),
        ({"logits": np.array([[0.0, 1e306], [0.0, -1e306]]), "k": 1}, "logits"),
        ({"logits": np.zeros((1, 2)), "k": 1}, "logits"),
        ({"logits": np.zeros((4, 0)), "k": 1}, "logits"),
        ({"logits": np.zeros(4), "k": 1}, "logits"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"confidence_level": 0.0}, "confidence_level"),
        ({"draws": 1}, "draws"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_values_that_make_no_sense_are_named(change, name):
    arguments = {"logits": random_logits(0, 6, 2, 1.0), "k": 3, **change}
    with pytest.raises(InputError, match=rf"^{name} must"):
        certify(**arguments)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"logits": [["a", "b"], ["c", "d"]]}, "logits"), ({"rng": "seed"}, "rng"), ({"progress": 3}, "progress")],
)
def test_arguments_of_the_wrong_kind_are_named(change, name):
    with pytest.raises(InputTypeError, match=rf"^{name} must"):
        certify(**{"logits": random_logits(0, 6, 2, 1.0), "k": 3, **change})


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_rises_to_one(jobs):
    logits = random_logits(1, 100, 4, 0.2)
    shares: list[float] = []
    certify(logits, 50, draws=2000, rng=1, n_jobs=jobs, progress=shares.append)
    assert shares == sorted(set(shares))
    assert shares[-1] == 1.0
    assert len(shares) > 3


def far_pool(records):
    """Normal points and ten candidates on the sphere, with an inverse temperature at which some of them are rare."""
    rng = np.random.default_rng(0)
    points, options = rng.standard_normal((records, 5)), rng.standard_normal((10, 5))
    options /= np.linalg.norm(options, axis=1, keepdims=True)
    points *= np.minimum(1.0, 3.0 / np.linalg.norm(points, axis=1))[:, None]
    return 40.0 / (records // 2) * np.linalg.norm(points[:, None] - options, axis=2)


def test_hundreds_of_records_come_close_to_the_truth_by_default():
    """Within a fifth of the estimate."""
    found = certify(far_pool(400), 200, delta=1e-3, rng=0)
    assert found.point.max() <= found.epsilon <= 1.2 * found.point.max()
    assert found.epsilon < 0.5 * found.certain.max()


def test_draws_by_default(monkeypatch):
    logits = random_logits(1, 8, 2, 0.3)
    found = certify(logits, 4, rng=1)
    assert found.epsilon <= 1.15 * found.point.max()
    monkeypatch.setattr(softmax_plan, "MOST_WORK", 16 * 1500)
    assert certify(logits, 4, rng=1).draws == 1500
