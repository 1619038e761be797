"""How often the limits of audits by retraining, and of one run against a curve, miss what they should cover."""

import numpy as np
import pytest
from scipy.stats import binomtest

import whosin as wi
from tests.auditing.runs.test_retraining import misses_of

AUDITS = 100


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_limits_over_trainings_hold(epsilon):
    """Randomised response with a hidden sign for each record, 100 audits at 80 %."""
    for name, count in misses_of(epsilon, AUDITS, seed=1000).items():
        assert binomtest(count, AUDITS, 0.2, alternative="greater").pvalue > 1e-3, (name, count)


@pytest.mark.long
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_one_run_holds_curves(mu):
    """The Gaussian mechanism at its promise is refuted in at most 5 % of the runs, at twice the promise in most."""
    refuted = dict.fromkeys((1.0, 2.0), 0)
    for factor in refuted:
        rng = np.random.default_rng(int(10 * mu * factor))
        for number in range(40):
            included = rng.random(1000) < 0.5
            scores = factor * mu * included + rng.normal(size=1000)
            found = wi.audit_one_run(scores, included, rng=number).compare(wi.GaussianDP(mu))
            refuted[factor] += found.verdict == "violated"
    assert binomtest(refuted[1.0], 40, 0.05, alternative="greater").pvalue > 1e-3
    assert refuted[2.0] >= 24
