"""What could have been found: the power of the rule, by exact enumeration."""

import numpy as np
import pytest
from scipy.stats import binom

from whosin.auditing import audit
from whosin.auditing.measuring.power import rows_for_upper, smallest_visible
from whosin.errors import InputError
from whosin.numerics.differences import gain_lower


def power(advantage, n, m, delta):
    """Probability, by enumeration, that the exact lower limit at δ/2 of a known attack is above 0.

    The more outsiders are accused, the more members must be found.
    """
    chance, least = 0.0, 0
    for accused in range(m + 1):
        while least <= n and gain_lower(least, n, accused, m, delta / 2) <= 0.0:
            least += 1
        chance += binom.pmf(accused, m, (1 - advantage) / 2) * binom.sf(least - 1, n, (1 + advantage) / 2)
    return chance


@pytest.mark.parametrize(("n", "m"), [(30, 30), (40, 15), (60, 60)])
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_power_is_about_eighty_percent(n, m, delta):
    """Whole counts make it more than that in small samples, hardly ever less."""
    assert 0.78 < power(smallest_visible(n, m, delta), n, m, delta) < 0.95


def test_more_records_find_less():
    sizes = [smallest_visible(n, n, 0.05) for n in (10, 100, 1000, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.05
    assert smallest_visible(1, 1, 0.05) == 1.0


def test_audit_reports_it():
    a = audit(np.linspace(0, 1, 300), np.linspace(0, 1, 600), rng=0)
    assert a.smallest_visible == smallest_visible(300, 600, 1 - 0.95)
    assert a.to_dict()["smallest_visible"] == a.smallest_visible
    assert a.advantage.lower == 0.0
    assert "does not show that there is none" in a.explain()


def test_plans_grow_with_what_is_asked():
    rows = [rows_for_upper(tolerate, 0.05, held_share=2 / 3, queries=1) for tolerate in (1.0, 0.3, 0.1, 0.03)]
    assert rows == sorted(rows)
    assert rows[2] > 9 * rows[1] * 0.8
    assert rows_for_upper(0.1, 0.01, held_share=2 / 3, queries=1) > rows[2]
    assert rows_for_upper(0.1, 0.05, held_share=1 / 2, queries=11) > rows[2]
    with pytest.raises(InputError, match="tolerate"):
        rows_for_upper(0.0, 0.05, held_share=2 / 3, queries=1)


@pytest.mark.parametrize(("sizes", "word"), [((0, 5), "members"), ((5, 0), "non_members"), ((5, 1.5), "non_members")])
def test_bad_input(sizes, word):
    with pytest.raises(InputError, match=word):
        smallest_visible(*sizes, 0.05)
    with pytest.raises(InputError, match="delta"):
        smallest_visible(5, 5, 0.0)
