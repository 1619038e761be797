"""Cells and counts: quantiles, atoms, smoothing, and counting at thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosin.auditing.measuring.cells import Cells, coarser, log_ratios, quantile_cells, symbol_cells
from whosin.auditing.measuring.counts import count_by_cell, count_scores

values = st.lists(st.sampled_from([-np.finfo(float).max, -1.0, 0.0, 0.25, 1.0, 3.0, np.finfo(float).max]), max_size=40)


@given(values)
def test_every_value_has_a_cell(given_values):
    sample = np.array(given_values, dtype=float)
    cells = quantile_cells(sample)
    located = cells.locate(sample)
    assert cells.count(located).sum() == len(sample)
    assert len(cells.count(located)) == len(cells)


def test_number_of_cells_grows_slowly():
    rng = np.random.default_rng(0)
    sizes = {n: len(quantile_cells(rng.normal(size=n))) for n in (10, 1000, 100_000)}
    assert sizes[10] <= 4
    assert 10 <= sizes[1000] <= 16
    assert 47 <= sizes[100_000] <= 70


def test_atoms_get_cells_of_their_own():
    rng = np.random.default_rng(0)
    sample = np.concatenate([rng.normal(size=500), np.zeros(500), np.full(300, 2.0)])
    cells = quantile_cells(sample)
    for atom, count in ((0.0, 500), (2.0, 300)):
        located = cells.locate(np.array([np.nextafter(atom, -9), atom, np.nextafter(atom, 9)]))
        assert len(set(located.tolist())) == 3
        assert cells.count(cells.locate(sample))[located[1]] == count


def test_tails_have_finer_cells():
    sample = np.random.default_rng(1).normal(size=60_000)
    counts = quantile_cells(sample).count(quantile_cells(sample).locate(sample))
    assert counts[0] < 100
    assert counts[-1] < 100
    assert np.min(counts) >= 15


def test_symbols():
    cells = symbol_cells(3)
    assert cells.locate(np.array([0.0, 1.0, 2.0])).tolist() == [0, 1, 2]
    assert len(symbol_cells(1)) == 1


def test_log_ratios():
    x, y = np.array([90, 10, 0]), np.array([10, 90, 0])
    ratios = log_ratios(x, y)
    assert ratios[0] == pytest.approx(-ratios[1])
    assert 2.0 < ratios[0] < np.log(9)
    assert ratios[2] == 0.0
    assert log_ratios(np.array([50, 50]), np.array([5, 5])) == pytest.approx(0.0), "unequal samples do not tilt"
    assert np.all(np.isfinite(log_ratios(np.array([0, 0]), np.array([3, 1]))))


@given(
    st.lists(st.integers(-3, 3), max_size=12),
    st.lists(st.integers(-3, 3), max_size=12),
)
def test_counts_against_the_definition(inside, outside):
    x, y = np.array(inside, dtype=float), np.array(outside, dtype=float)
    counts = count_scores(x, y)
    assert counts.thresholds[0] == np.inf
    assert np.all(np.diff(counts.thresholds) < 0)
    for t, found, accused in zip(counts.thresholds, counts.found, counts.accused, strict=True):
        assert found == np.sum(x >= t)
        assert accused == np.sum(y >= t)


@given(values, values)
def test_counts_of_a_negated_score_are_the_counts_turned_round(inside, outside):
    x, y = np.array(inside, dtype=float), np.array(outside, dtype=float)
    turned, counted = count_scores(x, y).reversed(), count_scores(-x, -y)
    for name in ("thresholds", "found", "accused", "members", "non_members"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(counted, name))


def test_counts_by_cell():
    counts = count_by_cell(np.array([0.5, -1.0, 0.5]), np.array([1, 2, 3]), np.array([4, 0, 0]))
    assert counts.thresholds.tolist() == [np.inf, 0.5, -1.0]
    assert counts.found.tolist() == [0, 4, 6]
    assert counts.accused.tolist() == [0, 4, 4]


def test_thinned_keeps_exact_points_and_both_ends():
    rng = np.random.default_rng(0)
    full = count_scores(rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000))
    few = full.thinned()
    assert len(few.thresholds) <= 2010
    assert few.thresholds[0] == np.inf
    assert few.thresholds[-1] == full.thresholds[-1]
    place = np.searchsorted(-full.thresholds, -few.thresholds)
    assert np.array_equal(full.found[place], few.found)
    assert np.array_equal(full.accused[place], few.accused)
    assert len(full.thresholds) > 10 * len(few.thresholds)
    assert full.roc().divergence(1.0) == pytest.approx(np.max(full.tpr - full.fpr), abs=2e-3)


@given(
    values=st.lists(st.floats(-5, 5), min_size=1, max_size=200),
    edges=st.lists(st.floats(-5, 5), min_size=0, max_size=30, unique=True),
    fewest=st.integers(1, 60),
)
def test_coarser_cells_hold_enough_and_are_unions(values, edges, fewest):
    numbers, fine = np.array(values), Cells(np.sort(np.array(edges, dtype=float)))
    coarse = coarser(fine, numbers, fewest)
    counts = coarse.count(coarse.locate(numbers))
    assert counts.sum() == len(numbers)
    assert set(coarse.edges) <= set(fine.edges)
    assert len(coarse) == 1 or counts.min() >= fewest
