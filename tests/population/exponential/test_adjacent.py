"""ε(X) and the range bound of the exponential mechanism, against brute force and the recorded example."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from softmax_by_hand import EXAMPLE, example_logits, log_probabilities, random_logits

from whosin.population.exponential.adjacent import adjacent_epsilon, range_bound
from whosin.population.exponential.exact import subset_laws


def adjacent_brute_force(logits, k):
    n_records = len(logits)
    chances = {chosen: log_probabilities(logits, chosen) for chosen in itertools.combinations(range(n_records), k)}
    worst = 0.0
    for chosen, logs in chances.items():
        for gone, new in itertools.product(chosen, sorted(set(range(n_records)) - set(chosen))):
            other = tuple(sorted(set(chosen) - {gone} | {new}))
            worst = max(worst, float(np.abs(logs - chances[other]).max()))
    return worst


def range_brute_force(logits):
    differences = logits[:, None] - logits[None]
    return np.ptp(differences, axis=2).max(axis=1)


def test_recorded_epsilon():
    lower, upper = adjacent_epsilon(example_logits(), 6)
    assert lower == upper == pytest.approx(EXAMPLE["eps_X_exact"], rel=1e-14)


@pytest.mark.parametrize(("n_records", "k"), [(2, 1), (5, 1), (6, 2), (7, 3), (8, 4), (8, 5), (7, 6)])
@pytest.mark.parametrize("scale", [0.5, 5.0, 300.0])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_adjacent_epsilon(n_records, k, scale, m):
    logits = random_logits(n_records * 10 + k, n_records, m, scale)
    expected = adjacent_brute_force(logits, k)
    lower, upper = adjacent_epsilon(logits, k)
    assert lower == upper == pytest.approx(expected, rel=1e-12)
    if m > 2:
        lower, upper = adjacent_epsilon(logits, k, limit=0)
        assert lower <= expected * (1.0 + 1e-12) <= upper * (1.0 + 2e-12)
        assert lower > 0.0


@given(
    n_records=st.integers(2, 7), seed=st.integers(0, 2**32 - 1), copies=st.tuples(st.integers(1, 3), st.integers(1, 3))
)
def test_two_distinct_candidates_in_closed_form(n_records, seed, copies):
    logits = np.repeat(random_logits(seed, n_records, 2, 3.0), copies, axis=1)
    for k in range(1, n_records):
        lower, upper = adjacent_epsilon(logits, k)
        assert lower == upper == pytest.approx(adjacent_brute_force(logits, k), rel=1e-11, abs=1e-13)


def test_two_distinct_candidates_of_a_large_pool():
    logits = random_logits(23, 100_000, 2)
    lower, upper = adjacent_epsilon(logits, 50_000)
    assert lower == upper
    assert lower == pytest.approx(range_bound(logits)[0], rel=1e-14)  # the extreme subsets are all but certain


def test_one_distinct_candidate():
    assert adjacent_epsilon(np.ones((5, 3)), 2) == (0.0, 0.0)


def test_interval_of_a_large_pool():
    logits = random_logits(24, 500, 6)
    lower, upper = adjacent_epsilon(logits, 250)
    assert 0.5 * upper < lower <= upper == pytest.approx(range_bound(logits)[0], rel=1e-14)
    assert adjacent_epsilon(logits, 250) == (lower, upper)


@given(n_records=st.integers(1, 8), m=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_range_bound(n_records, m, seed):
    logits = random_logits(seed, n_records, m)
    overall, per_record = range_bound(logits)
    np.testing.assert_allclose(per_record, range_brute_force(logits), rtol=1e-13, atol=1e-15)
    assert overall == per_record.max()


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 5))
def test_the_ladder_of_parameters(seed, m):
    """ε̃ ≤ ε(X) ≤ range bound: the adjacent coupling, and the range of the logits."""
    logits = random_logits(seed, 8, m, 2.0)
    exact = float(np.abs(subset_laws(logits, 4).log_ratio).max())
    adjacent, _ = adjacent_epsilon(logits, 4)
    overall, per_record = range_bound(logits)
    assert exact <= adjacent + 1e-12
    assert adjacent <= overall + 1e-12
    assert (np.abs(subset_laws(logits, 4).log_ratio).max(axis=1) <= per_record + 1e-12).all()
