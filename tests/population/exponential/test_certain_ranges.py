"""Ranges and averaged ranges of the exponential mechanism, against the definitions and enumeration."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from softmax_by_hand import random_logits, ratios

from whosin.population.exponential.certain_ranges import Caps
from whosin.population.exponential.game import Game
from whosin.population.exponential.monte_carlo import certify

POOLS = ((8, 4), (9, 3), (9, 6), (10, 1), (10, 9), (8, 2), (9, 2))


@pytest.mark.parametrize(("n", "k"), [(7, 3), (7, 5), (6, 1), (6, 5)])
def test_the_averaged_range_is_the_largest_average_over_partners(n, k):
    logits = random_logits(n * k, n, 3, 0.7)
    game = Game.prepared(logits, k)
    caps = Caps.of(game, logits)
    for x, w in itertools.product(range(n), range(3)):
        change = logits[x] - logits
        for found, size, sign in ((caps.mean_out, n - k, 1.0), (caps.mean_in, k, -1.0)):
            averages = [
                np.exp(sign * (change[list(chosen), w] - change[list(chosen), v])).mean()
                for v in range(3)
                for chosen in itertools.combinations(range(n), size)
            ]
            assert found[game.group[w], x] == pytest.approx(math.log(max(averages)), abs=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_the_certain_bound_beats_the_range_in_larger_pools(seed):
    logits = random_logits(seed, 200, 5, 0.3)
    found = certify(logits, 100, draws=2, rng=seed)
    assert found.certain.max() < 0.9 * found.deterministic.max()


@pytest.mark.parametrize(("n", "k"), POOLS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_never_above_the_range_bound_and_the_certain_bound_is_certain(n, k, scale):
    logits = random_logits(n + k, n, 4, scale)
    found = certify(logits, k, draws=200, rng=1)
    by_definition = np.ptp(logits[:, None] - logits[None], axis=2).max(axis=1)
    assert found.deterministic == pytest.approx(by_definition, rel=1e-12)
    assert np.all(found.deterministic >= by_definition)
    assert np.all(found.certain <= found.deterministic)
    assert np.all(found.per_record <= found.certain)
    assert found.epsilon == found.per_record.max()
    assert np.all(np.abs(ratios(logits, k)).max(axis=1) <= found.certain)


@pytest.mark.parametrize("scale", [1e-12, 1e-7, 1e-3, 30.0])
def test_averaged_ranges_are_rounded_up_at_every_scale(scale):
    n, k = 9, 4
    logits = random_logits(3, n, 3, scale)
    game = Game.prepared(logits, k)
    caps = Caps.of(game, logits)
    with mpmath.workdps(60):
        table = [[mpmath.mpf(float(value)) for value in row] for row in logits]
        for x, w in itertools.product(range(n), range(3)):
            for found, size, sign in ((caps.mean_out, n - k, 1), (caps.mean_in, k, -1)):
                averages = []
                for v in range(3):
                    gaps = [sign * ((table[x][w] - table[x][v]) - (row[w] - row[v])) for row in table]
                    averages.append(mpmath.log(mpmath.fsum(map(mpmath.exp, sorted(gaps)[-size:])) / size))
                exact = max(averages)
                assert exact <= found[game.group[w], x] <= exact * (1 + 1e-9) + 1e-11 * scale
