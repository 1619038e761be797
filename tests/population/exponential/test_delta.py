"""Hockey-stick divergences from limits on ratios and probabilities, against the definition."""

import math

import numpy as np
import pytest
from softmax_by_hand import chance_of_so_many, excess, laws, random_logits

from whosin.population.exponential.delta import Probabilities, both_excesses
from whosin.population.exponential.delta import excess as excess_limit
from whosin.population.exponential.draws import Sums
from whosin.population.exponential.limits import Ratios


def nested_only(masses, loose):
    """Nothing is known of single outcomes but by the nested sums."""
    return Probabilities(np.arange(len(masses)), masses, masses, np.full(len(masses), 1e6), masses, loose)


@pytest.mark.parametrize("k", [2, 4, 7])
def test_the_excess_of_exact_ratios_is_the_divergence(k):
    logits = random_logits(k, 9, 4, 0.8)
    ins, outs, total = laws(logits, k)
    theta = np.log(ins / outs).T
    exact = Ratios(np.maximum(theta, 0.0), np.maximum(-theta, 0.0))
    for epsilon in (0.0, 0.1, 0.5):
        found = both_excesses(exact, np.full(9, epsilon), k / 9, Probabilities.known(total, np.arange(len(total))))
        assert found == pytest.approx(excess(ins, outs, epsilon), abs=1e-12)
        order = np.argsort(total)
        cautious = both_excesses(exact.ranked(order), np.full(9, epsilon), k / 9, nested_only(total[order], 3))
        assert np.all(cautious >= found - 1e-15)


def test_the_excess_of_ratios_beyond_the_largest_float():
    """Two outcomes a record: at ε above every ratio nothing is in excess, just below the largest one almost nothing."""
    theta = np.array([[800.0, 2000.0], [1.0, 1200.0]])
    masses = np.array([0.25, 0.75])
    for epsilon in (790.0, 799.0, 801.0, 1500.0, 2001.0):
        expected = [
            sum(
                m * max(0.0, 1.0 - math.exp(min(epsilon - t, 700.0))) / 0.5 for m, t in zip(masses, column, strict=True)
            )
            for column in theta.T
        ]
        assert excess_limit(
            theta, np.full(2, epsilon), 0.5, Probabilities.known(masses, np.arange(2))
        ) == pytest.approx(expected, abs=1e-12)


def test_limits_on_probabilities_are_missed_no_more_often_than_allowed():
    rng = np.random.default_rng(4)
    truth, runs, count, beta = np.array([0.004, 0.096, 0.3, 0.6]), 400, 500, 0.2
    ranking = np.array([1, 0, 2, 3])
    misses = 0
    for _ in range(runs):
        law = rng.multinomial(1, truth, size=count).T.astype(float)
        rows = np.concatenate([law, np.cumsum(law[ranking], axis=0)])
        sums = Sums(np.array(count), rows.sum(axis=1), np.square(rows).sum(axis=1))
        found = Probabilities.of(sums, ranking, beta, 0.0)
        own, nested = found.masses[found.loose :], np.cumsum(found.masses[: found.loose])
        above = own < truth[ranking][found.loose :]
        within = nested < np.cumsum(truth[ranking])[: found.loose]
        misses += bool((found.lower > truth).any() or above.any() or within.any())
        assert 0 < found.loose < 4
        assert np.all(found.masses >= 0.0)
        assert np.abs(found.masses.sum() - 1.0) < 0.4
    assert chance_of_so_many(misses, runs, beta) > 1e-3


def test_limits_on_nested_sums_bound_every_weighting():
    rng = np.random.default_rng(9)
    for _ in range(200):
        truth = rng.dirichlet(np.ones(5))
        nested = np.cumsum(truth) + 0.3 * rng.random(5)
        nested = np.minimum.accumulate(nested[::-1])[::-1]
        theta, epsilon = 3.0 * rng.random((5, 20)), rng.random(20)
        plain = excess_limit(theta, epsilon, 0.3, Probabilities.known(truth, np.arange(len(truth))))
        for loose in range(6):
            masses = np.concatenate([np.diff(nested[:loose], prepend=0.0), truth[loose:]])
            assert np.all(excess_limit(theta, epsilon, 0.3, nested_only(masses, loose)) >= plain - 1e-15)
