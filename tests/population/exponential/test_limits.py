"""Limits on means and log ratios: missed no more often than allowed."""

import math

import numpy as np
import pytest
from softmax_by_hand import chance_of_so_many

from whosin.population.exponential.limits import lambdas as grid_of_lambdas
from whosin.population.exponential.limits import log_ratio, mean_upper


@pytest.mark.parametrize("spread", [0.05, 0.5, 1.0])
def test_the_limit_on_a_mean_is_missed_no_more_often_than_allowed(spread):
    rng = np.random.default_rng(8)
    beta, count, runs = 0.1, 400, 4000
    samples = np.where(rng.random((count, runs)) < spread, -0.3, 0.0) + 0.1 * rng.integers(0, 2, (count, runs))
    mean, square = samples.mean(axis=0), np.square(samples).mean(axis=0)
    lambdas = grid_of_lambdas(count, math.log(1 / beta))
    term = math.log(len(lambdas) / beta)
    upper = mean_upper(mean, square, np.full(runs, float(count)), np.full(runs, 0.1), term, lambdas)
    truth = -0.3 * spread + 0.05
    misses = int((upper < truth).sum())
    assert chance_of_so_many(misses, runs, beta) > 1e-3
    assert np.mean(upper - truth) < 0.1
    assert (mean < truth).mean() > 0.3


def test_the_limit_on_a_mean_without_samples_or_reach():
    lambdas = np.array([0.5])
    limits = mean_upper(np.zeros(3), np.zeros(3), np.array([0.0, 5.0, 1e9]), np.array([0.2, 0.0, 0.2]), 3.0, lambdas)
    assert limits[0] == 0.2
    assert limits[1] == 0.0
    assert 0.0 < limits[2] < 1e-8


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_log_ratio_inverts_difference_and_mean(share):
    ins, outs = np.array([0.3, 0.1]), np.array([0.1, 0.099])
    mean = share * ins + (1 - share) * outs
    found = log_ratio((ins - outs)[:, None], mean, share)[:, 0]
    assert found == pytest.approx(np.log(ins / outs), rel=1e-10)
    assert np.all(found >= np.log(ins / outs))
    assert log_ratio(np.array([[0.2]]), np.array([0.0]), share)[0, 0] == math.inf
    assert log_ratio(np.array([[1.0]]), np.array([share / 2]), share)[0, 0] == math.inf
