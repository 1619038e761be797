"""Coverage of the other limits: one-run audits, and populations by Monte Carlo."""

import math

import numpy as np
import pytest

import whosin as wi

pytestmark = pytest.mark.long

RUNS = 300


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_one_run_limits_hold(epsilon, delta, seed, judge):
    """Randomised response of each canary's coin is exactly ε-DP, and the best score there is."""
    rng = np.random.default_rng([31, seed])
    truth_told = 1.0 / (1.0 + math.exp(-epsilon))
    misses = 0
    for _ in range(RUNS):
        coins = rng.random(400) < 0.5
        said = np.where(rng.random(400) < truth_told, coins, ~coins)
        found = wi.audit_one_run(said.astype(float), coins, delta=delta, confidence_level=0.9, rng=rng)
        misses += found.epsilon_lower > epsilon + 1e-12
    judge(misses, RUNS, 0.1)


def test_population_monte_carlo_holds(seed, judge):
    """Twelve records can be enumerated: the upper limit from draws falls below the exact ε̃ at most as often as said."""
    rng = np.random.default_rng([37, seed])
    records, candidates = rng.normal(size=(12, 1)), rng.normal(size=(3, 1))
    options = {"epsilon": 2.0, "clip": 2.0}
    exact = wi.population.exponential(records, candidates, **options, method="exact").pmp.epsilon
    runs = 40
    below = sum(
        wi.population.exponential(
            records, candidates, **options, method="monte_carlo", confidence_level=0.9, draws=2000, rng=run
        ).pmp.epsilon
        < exact - 1e-9
        for run in range(runs)
    )
    judge(below, runs, 0.1)
