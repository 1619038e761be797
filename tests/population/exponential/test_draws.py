"""Paired draws of the exponential mechanism: the right means and numbers."""

import math

import numpy as np
import pytest
from softmax_by_hand import laws, random_logits

from whosin.population.exponential.draws import Sampler
from whosin.population.exponential.game import Game


@pytest.mark.parametrize(("n", "k"), [(8, 4), (9, 3), (9, 6), (10, 7)])
def test_matched_pairs_have_the_right_means_and_counts(n, k):
    logits = random_logits(k, n, 3, 1.0)
    ins, outs, total = laws(logits, k)
    game = Game.prepared(logits, k)
    draws = 20_000
    for matching in (True, False):
        sampler = Sampler(game, np.arange(game.outcomes), np.arange(n), matching)
        block = sampler.block(draws, np.random.SeedSequence(5))
        sums = block.differences
        error = np.sqrt(sums.variance / sums.count)[game.group]
        assert np.all(np.abs(sums.mean[game.group] - (ins - outs).T) < 4.5 * error)
        chances = block.frequencies.mean[: game.outcomes][game.group] * game.portion
        assert chances == pytest.approx(total, abs=0.01)
        expected = draws * 2 * min(k, n - k) / n if matching else draws
        assert sums.count.mean() == expected
        assert np.all(np.abs(sums.count - expected) < 5 * math.sqrt(draws))
