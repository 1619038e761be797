"""Sampled limits beside audits: populations, the search for an ε, and deletions from a random sample."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest

import whosin as wi
from whosin.population.sums.groups import group_epsilons
from whosin.population.sums.pairwise import pairwise_epsilons

pytestmark = pytest.mark.long


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_population_groups_hold(noise, level, seed, judge):
    """One column can be solved exactly: all upper limits from groups of draws hold at once."""
    rng = np.random.default_rng([151, seed])
    f, scale, delta = np.append(rng.normal(size=11), 3.0), 1.5, 0.05
    exact = _exact_epsilons(f, 6, scale, delta, noise)
    runs, below, tighter = 60, 0, 0
    for run in range(runs):
        upper, _ = group_epsilons(
            f, 6, scale, delta, groups=32, draws=1000, confidence_level=level, noise=noise, rng=[seed, run]
        )
        below += np.any(upper < exact - 1e-6)
        tighter += upper.max() < pairwise_epsilons(f[:, None], scale, delta, noise=noise).max() - 1e-9
    judge(below, runs, 1 - level)
    assert tighter > runs / 2


def _exact_epsilons(f, k, scale, delta, noise):
    """Smallest ε of each record at δ, both directions: all draws listed, the noisy sum integrated on a fine grid."""
    sets = list(combinations(range(len(f)), k))
    sums = np.array([f[list(rows)].sum() for rows in sets])
    inside = np.array([[x in rows for x in range(len(f))] for rows in sets])
    x = np.linspace(sums.min() - 30 * scale, sums.max() + 30 * scale, 6001)
    gaps = np.abs(x[:, None] - sums) / scale
    laws = np.exp(-0.5 * gaps**2) if noise == "gaussian" else np.exp(-gaps)
    found = []
    for record in inside.T:
        sides = [laws[:, rows].mean(axis=1) for rows in (record, ~record)]
        p, q = (side / side.sum() for side in sides)
        found.append(max(_smallest_epsilon(*pair, delta) for pair in ((p, q), (q, p))))
    return np.array(found)


def _smallest_epsilon(p, q, delta):
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if np.maximum(p - math.exp(middle) * q, 0.0).sum() <= delta else (middle, high)
    return low if low == 0.0 else high


def test_the_chosen_epsilon_keeps_its_target(seed, judge):
    """Many values are tried by draws; what is chosen is held against enumeration."""
    rng = np.random.default_rng([157, seed])
    records, candidates = rng.normal(size=(10, 1)), rng.normal(size=(3, 1))
    options = {"candidates": candidates, "clip": 2.0, "target": 0.5, "smallest": 0.2, "largest": 50.0, "points": 6}
    runs, above = 20, 0
    for run in range(runs):
        found = wi.population.largest_epsilon(
            records, mechanism="exponential", method="monte_carlo", draws=1000, confidence_level=0.5, rng=[seed, run],
            **options,
        )  # fmt: skip
        exact = wi.population.exponential(
            records, candidates, epsilon=found.dp.epsilon, clip=2.0, method="exact"
        ).pmp.epsilon
        above += exact > found.pmp.epsilon + 1e-9
    judge(above, runs, 0.5)


@pytest.mark.parametrize(("epsilon", "inclusion", "threshold"), [(1.0, 0.05, 0.6), (0.2, 0.3, 0.3), (2.0, 0.01, 0.8)])
def test_deletions_from_a_random_sample(epsilon, inclusion, threshold, seed):
    """A training that attains the limit: it says "yes" with a chance that grows by e^ε with each deleted record used.

    "no" is ε-DP too, as 2 - e^{-ε} ≤ e^ε. Given "yes", none of the m records was used as often as stated, no less.
    """
    m = wi.unlearning.deletion_capacity(epsilon, inclusion, threshold)
    assert m >= 1
    rng = np.random.default_rng([163, seed])
    samples = 300_000
    kept = wi.unlearning.subsample(np.arange(samples * m), inclusion, rng=rng)
    used = np.bincount(kept // m, minlength=samples)
    yes = rng.random(samples) < 0.5 * np.exp(epsilon * (used - m))
    none = int(np.sum(used[yes] == 0))
    stated = wi.unlearning.Unlearning(epsilon, inclusion, threshold, requests=m).none_used
    assert stated >= threshold
    assert none > 100
    assert binomtest(none, int(yes.sum()), stated).pvalue > 1e-6
    assert math.isclose(stated, (1 + math.exp(epsilon) * inclusion / (1 - inclusion)) ** -m, rel_tol=1e-12)
