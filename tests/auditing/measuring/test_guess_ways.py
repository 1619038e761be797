"""Several ways to guess the same coins: against the listing of all coins, and against draws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from whosin.auditing.measuring import guess_ways
from whosin.auditing.measuring.guess_ways import Count, SeveralWays, chance_of_any, upper_group

COINS = 9
EVERY = np.array(list(itertools.product([0, 1], repeat=COINS)), dtype=bool)
"""All ways in which guesses about nine canaries, from the lowest score to the highest, can be right."""


def rights(ways, right=EVERY):
    """Right guesses of each way, one row for each listing."""
    width = right.shape[1]
    return np.stack([right[:, width - a :].sum(axis=1) + right[:, :b].sum(axis=1) for a, b in ways])


def weights(q):
    return np.prod(np.where(EVERY, q, 1 - q), axis=1)


some_ways = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 4)).filter(lambda way: sum(way) > 0), min_size=1, max_size=5
)


@given(some_ways, st.data(), st.floats(0.5, 0.999), st.booleans())
def test_the_chance_of_any_against_all_listings(ways, data, q, joint):
    """An upper limit always; exact where each way holds those before it, or leaves one end out."""
    needed = [data.draw(st.integers(1, sum(way) + 1)) for way in ways]
    exact = weights(q)[(rights(ways) >= np.array(needed)[:, None]).any(axis=0)].sum()
    before = guess_ways.MOST_JOINT
    guess_ways.MOST_JOINT = before if joint else 0
    try:
        found = chance_of_any(ways, needed, q, COINS)
    finally:
        guess_ways.MOST_JOINT = before
    assert found >= exact - 1e-12
    both = [b for a, b in sorted(ways) if b > 0]
    if joint and both == sorted(both):
        assert found <= exact * (1 + 2e-6) + 1e-12


@pytest.mark.parametrize("ways", [[(3, 6), (5, 0)], [(3, 6), (5, 0), (2, 2)], [(6, 3), (4, 5)], [(0, 9), (9, 0)]])
@pytest.mark.parametrize("q", [0.5, 0.6, 0.9])
@pytest.mark.parametrize("joint", [2000, 0])
def test_ways_that_contradict_each_other(ways, q, joint, monkeypatch):
    """Canaries that one way guesses in and another out: each coin falls one way only, with a chance of q at most."""
    monkeypatch.setattr(guess_ways, "MOST_JOINT", joint)
    right = np.stack([EVERY[:, COINS - a :].sum(axis=1) + (~EVERY[:, :b]).sum(axis=1) for a, b in ways])
    likely = [np.arange(COINS) >= turn for turn in range(COINS + 1)]
    chances = np.stack([np.prod(np.where(side == EVERY, q, 1 - q), axis=1) for side in likely])
    for needed in itertools.product(*(range(1, sum(way) + 1) for way in ways)):
        truth = chances[:, (right >= np.array(needed)[:, None]).any(axis=0)].sum(axis=1).max()
        assert chance_of_any(ways, needed, q, COINS) >= truth - 1e-12


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("ways", [[(5, 4), (2, 2), (2, 0), (4, 0)], [(5, 0), (1, 1), (0, 4)], [(4, 4)]])
def test_the_limit_is_above_epsilon_no_more_often_than_allowed(ways, first):
    """Independent responses, which are the worst case: every outcome, with its chance."""
    alpha = 0.2
    counts = rights(ways)
    limits = {}
    for seen in {tuple(column) for column in counts.T.tolist()}:
        rows = tuple(Count(*way, right) for way, right in zip(ways, seen, strict=True))
        found = SeveralWays(COINS, rows, first, alpha)
        limits[seen] = found.epsilon_lower()
        assert found.p_value(limits[seen] + 1e-4) > alpha
        if limits[seen] > 0:
            assert found.p_value(limits[seen]) <= alpha * (1 + 1e-8)
    assert any(limits.values())
    found = np.array([limits[tuple(column)] for column in counts.T.tolist()])
    for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0):
        assert weights(1 / (1 + math.exp(-epsilon)))[found > epsilon].sum() <= alpha, epsilon


LADDER = [(500, 500), (250, 250), (125, 125), (31, 31), (8, 7), (500, 0), (250, 0), (62, 0), (15, 0)]


@pytest.mark.parametrize("q", [0.55, 0.73, 0.95])
@pytest.mark.parametrize("joint", [2000, 0])
def test_against_draws(q, joint, monkeypatch):
    monkeypatch.setattr(guess_ways, "MOST_JOINT", joint)
    needed = [int(binom.isf(0.01, sum(way), q)) + 1 for way in LADDER]
    drawn = np.random.default_rng(0).random((20_000, 1000)) < q
    share = (rights(LADDER, drawn) >= np.array(needed)[:, None]).any(axis=0).mean()
    found = chance_of_any(LADDER, needed, q, 1000)
    union = sum(binom.sf(np.array(needed) - 1, [sum(w) for w in LADDER], q))
    error = 4 * math.sqrt(found / 20_000)
    assert share <= found + error
    assert found < 0.9 * union
    if joint:
        assert found == pytest.approx(share, abs=error)


def test_many_guesses_take_no_time_and_are_sharper_than_a_union_bound():
    ways = [(n - n // 2, n // 2) for n in (100_000, 50_000, 25_000, 12_500)] + [(50_000, 0), (25_000, 0)]
    needed = [int(binom.isf(0.01, sum(way), 0.7)) + 1 for way in ways]
    assert 0.012 < chance_of_any(ways, needed, 0.7, 100_000) < 0.05


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=4), st.data())
def test_p_values_rise_in_epsilon(ways, data):
    ways = [(a + 1, b) for a, b in ways]
    counts = tuple(Count(a, b, data.draw(st.integers(0, a + b))) for a, b in ways)
    found = SeveralWays(62, counts, data.draw(st.booleans()), 0.05)
    values = [found.p_value(epsilon) for epsilon in (0.0, 0.5, 1.0, 2.0, 5.0, 50.0)]
    assert all(after >= before * (1 - 3e-6) for before, after in itertools.pairwise(values))
    assert 0.0 <= found.epsilon_lower() < 60.0
    assert found.best in counts


def test_one_way_is_a_binomial_tail():
    found = SeveralWays(100, (Count(60, 40, 80),), False, 0.05)
    assert found.p_value(1.0) == pytest.approx(binom.sf(79, 100, 1 / (1 + math.exp(-1))), rel=1e-7)
    assert found.p_value(found.epsilon_lower()) == pytest.approx(0.05, rel=1e-7)


def test_two_groups_are_split_where_they_part():
    rng = np.random.default_rng(0)
    for size in (20, 100, 500):
        scores = np.append(rng.normal(0, 1, 1000 - size), rng.normal(8, 1, size))
        assert upper_group(rng.permutation(scores)) == size
        assert upper_group(3.0 - 7.0 * scores) == 1000 - size
    assert upper_group(np.arange(100) < 30) == 30


@pytest.mark.parametrize(
    "scores",
    [
        np.random.default_rng(1).normal(size=1000),
        np.random.default_rng(1).random(1000),
        np.append(np.random.default_rng(1).normal(size=1000), 30.0),
        np.zeros(100),
        np.append(np.zeros(99), np.inf),
        np.append(np.zeros(99), 1e308),
        np.arange(15.0) > 7,
        np.zeros(1),
    ],
    ids=["normal", "even", "one far away", "all the same", "infinite", "overflow", "few", "one"],
)
def test_no_two_groups(scores):
    assert upper_group(scores) == 0
