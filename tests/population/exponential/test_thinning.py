"""Representatives: the claim about similar records, and honest radii."""

import itertools

import numpy as np
import pytest
from softmax_by_hand import broken, laws, random_logits, ratios

from whosin.population.exponential import thinning
from whosin.population.exponential.game import Game
from whosin.population.exponential.monte_carlo import certify
from whosin.population.exponential.thinning import choose_representatives


@pytest.mark.parametrize(("n", "k"), [(8, 4), (8, 1), (9, 7), (10, 3)])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_ratios_of_similar_records_differ_by_at_most_twice_the_range(n, k, scale):
    logits = random_logits(n * k, n, 4, scale)
    theta = ratios(logits, k)
    for x, r in itertools.combinations(range(n), 2):
        assert np.abs(theta[x] - theta[r]).max() <= 2.0 * np.ptp(logits[x] - logits[r]) + 1e-12


@pytest.mark.parametrize("k", [2, 5, 8])
def test_a_thinned_pool_is_certified_and_its_radii_are_honest(k):
    rng = np.random.default_rng(k)
    centres = 0.5 * rng.standard_normal((3, 4))
    logits = centres[rng.integers(0, 3, 10)] + 0.01 * rng.standard_normal((10, 4))
    ins, outs, _ = laws(logits, k)
    found = certify(logits, k, draws=4000, representatives=3, rng=4)
    assert found.evaluated == 3
    assert not broken(ins, outs, found.per_record, 0.0)
    assert found.epsilon < 0.9 * found.certain.max()
    game = Game.prepared(logits, k)
    chosen = choose_representatives(game, 3, np.zeros(10), np.full(10, np.inf))
    for x in range(10):
        r = chosen.records[chosen.nearest[x]]
        assert np.ptp(logits[x] - logits[r]) <= chosen.radius[x] <= np.ptp(logits[x] - logits[r]) + 1e-12


def test_twins_share_a_representative():
    kinds = random_logits(6, 4, 3, 0.05)
    logits = np.repeat(kinds, 50, axis=0)
    found = certify(logits, 80, draws=2000, representatives=True, rng=1)
    assert found.evaluated <= 4
    assert np.ptp(found.per_record.reshape(4, 50), axis=1).max() == 0.0
    everyone = certify(logits, 80, draws=2000, representatives=False, rng=1)
    assert everyone.evaluated == 200
    assert found.point.reshape(4, 50)[:, 0] == pytest.approx(everyone.point.reshape(4, 50).mean(axis=1), abs=0.02)


def test_large_pools_are_thinned_by_themselves_where_it_is_cheap(monkeypatch):
    monkeypatch.setattr(thinning, "AUTO_REPRESENTATIVES", 999)
    rng = np.random.default_rng(0)
    line = 0.1 * rng.random((1000, 1)) * np.array([[0.0, 1.0, 2.0]])
    assert certify(line, 500, draws=40, probability_draws=40, rng=1).evaluated < 200
    assert certify(line[:-1], 500, draws=40, probability_draws=40, rng=1).evaluated == 999
    cloud = 0.2 * rng.standard_normal((1000, 6))
    assert certify(cloud, 500, draws=40, probability_draws=40, rng=1).evaluated == 1000


@pytest.mark.parametrize(
    ("logits", "k"),
    [
        ([[0.1, -1.2], [-0.2, 0.3], [0.0, -2.5], [0.3, 0.1]], 3),
        ([[-5.5, -1.7], [0.0, -0.2], [0.5, 4.9]], 2),
        ([[-2.2, -4.2], [-0.1, -0.2], [0.1, 0.4], [0.1, -0.2], [3.9, -0.2]], 4),
    ],
)
def test_pools_that_need_the_slack_of_twice_the_range(logits, k):
    """Records unlike their representatives: with the range once, the certificate would be wrong by 0.4 and more."""
    logits = np.array(logits)
    ins, outs, _ = laws(logits, k)
    found = certify(logits, k, draws=20_000, representatives=2, rng=0)
    assert not broken(ins, outs, found.per_record, 0.0)
    chosen = choose_representatives(Game.prepared(logits, k), 2, np.zeros(len(logits)), np.full(len(logits), np.inf))
    assert chosen.radius.max() > 0.3
