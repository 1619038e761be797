"""What could have been found: the power of the rule, by exact enumeration."""

import numpy as np
import pytest
from scipy.stats import binom

from whosin.auditing import audit
from whosin.auditing.power import detectable_advantage
from whosin.compute.proportions import clopper_pearson_lower, clopper_pearson_upper
from whosin.errors import InputError


def power(advantage, n, m, delta):
    """Exact probability that the lower limit of TPR exceeds the upper limit of FPR."""
    low = clopper_pearson_lower(np.arange(n + 1), n, delta / 4)
    high = clopper_pearson_upper(np.arange(m + 1), m, delta / 4)
    below = np.searchsorted(high, low, side="left")
    chance = binom.cdf(below - 1, m, (1 - advantage) / 2)
    return float(np.sum(binom.pmf(np.arange(n + 1), n, (1 + advantage) / 2) * chance))


@pytest.mark.parametrize(("n", "m"), [(30, 30), (200, 200), (1667, 1667), (50, 2000), (2000, 50)])
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_power_is_eighty_percent(n, m, delta):
    assert power(detectable_advantage(n, m, delta), n, m, delta) == pytest.approx(0.8, abs=0.04)


def test_more_records_find_less():
    sizes = [detectable_advantage(n, n, 0.05) for n in (10, 100, 1000, 10**6)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.004
    assert detectable_advantage(1, 1, 0.05) == 1.0


def test_audit_reports_it():
    a = audit(np.linspace(0, 1, 300), np.linspace(0, 1, 600), rng=0)
    assert a.detectable == detectable_advantage(200, 400, 1 - 0.95)
    assert a.advantage.lower == 0.0
    assert "does not show that nothing leaks" in a.explain()
    assert f"{np.ceil(a.detectable * 1000) / 1000:g}" in a.explain()


@pytest.mark.parametrize(("sizes", "word"), [((0, 5), "members"), ((5, 0), "non_members"), ((5, 1.5), "non_members")])
def test_bad_input(sizes, word):
    with pytest.raises(InputError, match=word):
        detectable_advantage(*sizes, 0.05)
    with pytest.raises(InputError, match="delta"):
        detectable_advantage(5, 5, 0.0)
