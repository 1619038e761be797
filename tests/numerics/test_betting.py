"""The betting test: how often it passes falsely, how many draws it takes, and that it is monotone."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from whosin.errors import InputError
from whosin.numerics.betting import HIGHEST_STAKE, best_stake, draws_needed, log_wealth


def test_wealth_by_hand():
    samples = np.array([0.0, 1.0, 0.5])
    factors = [1 + 0.5 * 0.2, 1 - 0.5 * 0.8, 1 - 0.5 * 0.3]
    assert float(log_wealth(samples, 0.5, 0.2)) == pytest.approx(math.log(factors[0]))
    late = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert float(log_wealth(late, 0.5, 0.2)) == pytest.approx(math.log(0.6) + 6 * math.log(1.1))


def test_each_column_has_its_own_wealth():
    samples = np.random.default_rng(0).random((30, 4))
    together = log_wealth(samples, 0.3, 0.7)
    assert together == pytest.approx([float(log_wealth(samples[:, i], 0.3, 0.7)) for i in range(4)])


@pytest.mark.parametrize("target", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("level", [0.05, 1e-6])
def test_draws_needed_are_needed_and_enough(target, level):
    count = draws_needed(target, level)
    assert float(log_wealth(np.zeros(count), HIGHEST_STAKE, target)) >= -math.log(level) * (1 - 1e-12)
    assert float(log_wealth(np.zeros(count - 1), HIGHEST_STAKE, target)) < -math.log(level)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0, HIGHEST_STAKE), st.floats(0.01, 2), st.floats(0, 1)
)
def test_wealth_falls_with_the_draws_and_rises_with_the_target(samples, stake, target, shrink):
    draws = np.array(samples)
    here = float(log_wealth(draws, stake, target))
    assert float(log_wealth(draws * shrink, stake, target)) >= here - 1e-12
    assert float(log_wealth(draws, stake, target * (1 + shrink))) >= here - 1e-12


@pytest.mark.parametrize("law", ["two-point", "uniform", "rare"])
@pytest.mark.parametrize("stake", [0.05, 0.3, HIGHEST_STAKE])
def test_false_passes_are_rare(law, stake):
    """With the mean at the target, wealth reaches 1/β in at most a share β of the runs."""
    rng = np.random.default_rng(1)
    runs, level = 4000, 0.2
    shape = (300, runs)
    target = {"two-point": 0.5, "uniform": 0.5, "rare": 0.02}[law]
    samples = rng.random(shape) if law == "uniform" else (rng.random(shape) < target).astype(float)
    passes = int(np.sum(log_wealth(samples, stake, target) >= -math.log(level)))
    assert binom.sf(passes - 1, runs, level) > 1e-4


def test_best_stake_beats_the_others():
    rng = np.random.default_rng(2)
    samples = rng.random(200) * 0.2
    stake, wins = best_stake(samples, 0.15, 400)
    for other in (0.01, 0.1, 0.3, 0.75):
        assert wins >= 400 * np.log1p(-other * (samples - 0.15)).mean() - 0.1
    assert wins == pytest.approx(400 * np.log1p(-stake * (samples - 0.15)).mean())
    assert 0 < stake <= HIGHEST_STAKE


def test_best_stake_looks_at_the_worst_column():
    samples = np.column_stack([np.zeros(50), np.full(50, 0.09)])
    _, wins = best_stake(samples, 0.1, 100)
    assert wins == pytest.approx(best_stake(samples[:, 1], 0.1, 100)[1])


@pytest.mark.parametrize(("target", "level"), [(0.0, 0.05), (-1.0, 0.05), (0.1, 0.0), (0.1, 1.0), (math.nan, 0.5)])
def test_bad_input(target, level):
    with pytest.raises(InputError, match="must be a number"):
        draws_needed(target, level)


def test_the_stake_for_many_samples_is_that_of_the_same_few():
    """Above a size the stakes are tried one after the other; the same numbers repeated win the same on average."""
    few = np.random.default_rng(5).random((50, 2))
    many = np.tile(few, (20_000, 1))
    stake, won = best_stake(few, 0.6, 100)
    assert best_stake(many, 0.6, 100) == (stake, pytest.approx(won, rel=1e-9))
