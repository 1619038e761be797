"""Rounds of replacements: every record is served once, by a pair with the right law."""

from collections import Counter
from math import comb

import numpy as np
import pytest
from scipy.stats import chisquare

from whosin.protection.one_replaced import exchanges, trainings
from whosin.protection.pool import Draw
from whosin.protection.training import subset_of


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (5, 3), (7, 1), (7, 6), (2, 1)])
def test_every_record_is_served_once(n, k):
    rng = np.random.default_rng(0)
    for _ in range(50):
        inside = subset_of(Draw(n, k), rng)
        pairs = exchanges(Draw(n, k), inside, rng)
        assert len(pairs) == max(k, n - k)
        assert sorted(record for *_, served in pairs for record in served) == list(range(n))
        for leaves, enters, served in pairs:
            assert leaves in inside
            assert enters not in inside
            assert set(served) <= {leaves, enters}


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (5, 3)])
@pytest.mark.parametrize("record", [0, 1])
def test_the_pair_of_a_record_is_uniform(n, k, record):
    """With x in D: D is uniform among the sets that hold x and x' uniform outside; seen from D or from D - x + x'."""
    rng = np.random.default_rng(1)
    counts = Counter()
    for _ in range(4000):
        inside = subset_of(Draw(n, k), rng)
        for leaves, enters, served in exchanges(Draw(n, k), inside, rng):
            if record not in served:
                continue
            other = (set(inside.tolist()) - {leaves}) | {enters}
            holds, partner = (set(inside.tolist()), enters) if record == leaves else (other, leaves)
            assert record in holds
            counts[tuple(sorted(holds)), partner] += 1
    cells = comb(n - 1, k - 1) * (n - k)
    assert len(counts) == cells
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_the_number_of_trainings():
    assert trainings(Draw(10, 5), 64) == (64 + 16) * 6
    assert trainings(Draw(10, 3), 100) == (100 + 25) * 8
