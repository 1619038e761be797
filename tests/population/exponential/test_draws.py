"""Draws of the exponential mechanism: the right means and numbers, and no record favoured."""

import math

import numpy as np
import pytest
from softmax_by_hand import laws, random_logits

from whosin.population.exponential import draws as softmax_draws
from whosin.population.exponential.certain_ranges import Caps
from whosin.population.exponential.draws import Sampler
from whosin.population.exponential.game import Game

SIZES = [(8, 4), (9, 3), (9, 6), (10, 7), (10, 1), (10, 9), (2, 1)]


def drawn(logits, k, draws, seed=5):
    game = Game.prepared(logits, k)
    return game, Sampler(game, np.arange(game.outcomes)).block(draws, np.random.SeedSequence(seed))


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_samples_have_the_right_means_and_counts(n, k):
    logits = random_logits(k, n, 3, 1.0)
    ins, outs, total = laws(logits, k)
    draws = 20_000
    game, block = drawn(logits, k, draws)
    sums = block.differences
    error = np.sqrt(sums.variance / sums.count)[game.group]
    assert np.all(np.abs(sums.mean[game.group] - (ins - outs).T) < 4.5 * error + 1e-12)
    chances = block.frequencies.mean[: game.outcomes][game.group] * game.portion
    assert chances == pytest.approx(total, abs=0.01)
    expected = draws * (n - k + 1 if 2 * k <= n else k + 1) / n
    assert sums.count.mean() == pytest.approx(expected)
    assert np.all(np.abs(sums.count - expected) < 5 * math.sqrt(draws))


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_sums_are_those_of_samples_written_out(n, k, monkeypatch):
    """Each draw alone, by the definition: what x changes, less what the others at the same places change."""
    logits = random_logits(k, n, 4, 2.0)
    game = Game.prepared(logits, k)
    sampler = Sampler(game, np.arange(game.outcomes))
    monkeypatch.setattr(softmax_draws, "BATCH", 3 * n)
    seed = np.random.SeedSequence(4)
    block = sampler.block(50, seed)
    total, squares = np.zeros((4, n)), np.zeros((4, n))
    rng = np.random.default_rng(seed)
    caps = Caps.of(game, logits)
    for rows in softmax_draws._subsets(n, sampler.size, 50, 3, rng):
        for row in rows == 1.0:
            places = np.flatnonzero(~row if sampler.adds else row)
            laws_of = {}
            for z in places:
                chosen = row.copy()
                chosen[z] = sampler.adds
                weights = np.exp(-logits[chosen].sum(axis=0))
                laws_of[z] = weights / weights.sum()
            for x in places:
                others = np.mean([laws_of[z] for z in places if z != x], axis=0)
                sample = laws_of[x] - others if sampler.adds else others - laws_of[x]
                total[:, x] += sample
                squares[:, x] += sample**2
                inside = sample[np.argsort(game.group)]
                assert np.all(inside <= np.tanh(caps.range_in[:, x] / 4) + 1e-12)
                assert np.all(-inside <= np.tanh(caps.range_out[:, x] / 4) + 1e-12)
    assert block.differences.total[game.group] == pytest.approx(total, abs=1e-12)
    assert block.differences.squares[game.group] == pytest.approx(squares, abs=1e-12)


def test_every_subset_is_as_likely():
    rows = np.concatenate(list(softmax_draws._subsets(6, 3, 40_000, 64, np.random.default_rng(1))))
    numbers, counts = np.unique(rows @ 2.0 ** np.arange(6), return_counts=True)
    assert len(numbers) == 20
    assert ((counts - 2000) ** 2 / 2000).sum() < 43.8  # chi square with 19 degrees of freedom, 0.999


def test_equal_keys_are_drawn_again():
    class Keys:
        """Two rows of equal keys first."""

        def __init__(self):
            self.calls = 0

        def random(self, shape):
            self.calls += 1
            return np.full(shape, 0.5) if self.calls == 1 else np.random.default_rng(self.calls).random(shape)

    keys = Keys()
    (rows,) = softmax_draws._subsets(7, 3, 2, 8, keys)
    assert keys.calls == 2
    assert rows.sum(axis=1).tolist() == [3.0, 3.0]
