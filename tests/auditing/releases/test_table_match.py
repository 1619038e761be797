"""Best matches over all pairs, against the definition one pair at a time, plain and compiled."""

import dataclasses
import importlib.util
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosin.auditing.releases.matching import match as table_match
from whosin.auditing.releases.matching.match import match_rows
from whosin.errors import InputError, MissingExtraError
from whosin.tables.levels import row_ids

HAS_NUMBA = importlib.util.find_spec("numba") is not None
METHODS = [
    "plain",
    pytest.param("compiled", marks=pytest.mark.skipif(not HAS_NUMBA, reason="needs the extra whosin[fast]")),
]
FIELDS = [field.name for field in dataclasses.fields(table_match.RowMatches) if field.name != "by_prefix"]


def one_pair(target, row, weights, numbers, ranks):
    """Matches, weight, soft weight and distance of a pair; the other columns come first, as documented."""
    order = sorted(range(len(target)), key=lambda c: numbers[c] is not None)
    matches, weight, soft, distance = 0, 0.0, 0.0, 0.0
    for c in order:
        if target[c] == row[c]:
            matches += 1
            weight += weights[c][target[c]]
        if numbers[c] is None:
            distance += target[c] != row[c]
            soft += weights[c][target[c]] if target[c] == row[c] else 0.0
        else:
            a, b = float(numbers[c][target[c]]), float(numbers[c][row[c]])
            share = math.exp(-weights[c][target[c]])
            if math.isnan(a) or math.isnan(b):
                distance += math.isnan(a) != math.isnan(b)
                soft -= math.log(share) if math.isnan(a) and math.isnan(b) else 0.0
            else:
                distance += min(abs(a - b), 1.0)
                soft -= math.log(min(1.0, share + abs(float(ranks[c][target[c]]) - float(ranks[c][row[c]]))))
    return matches, weight, soft, distance


def heaviest_run(target, row, weights):
    """Largest weight of neighbouring columns that are equal."""
    runs = [0.0]
    for one, other, table in zip(target, row, weights, strict=True):
        runs.append(runs[-1] + table[one] if one == other else 0.0)
    return max(runs)


def by_definition(targets, synthetic, weights, numbers, ranks):
    """Every field of the result, one target after the other."""
    found = {name: [] for name in FIELDS}
    for target in targets.tolist():
        pairs = [one_pair(target, row, weights, numbers, ranks) for row in synthetic.tolist()]
        matches, weight, soft, distance = (list(values) for values in zip(*pairs, strict=True))
        found["matches"].append(max(matches))
        found["soft"].append(max(soft))
        found["weight"].append(max(weight))
        found["weight_index"].append(weight.index(max(weight)))
        found["distance"].append(min(distance))
        found["distance_index"].append(distance.index(min(distance)))
        found["second_distance"].append(sorted([*distance, math.inf])[1])
        found["copies"].append(sum(row == target for row in synthetic.tolist()))
        found["run"].append(max(heaviest_run(target, row, weights) for row in synthetic.tolist()))
    return found


def check(targets, synthetic, weights, numbers, method, prefixes=None, **options):
    """Compare with the definition, digit by digit (soft weights but for the last), at every prefix."""
    numbers = [None if table is None else table.astype(np.float32) for table in numbers]
    ranks = [None if table is None else places_of(table) for table in numbers]
    tables = {"numbers": numbers, "ranks": ranks}
    found = match_rows(targets, synthetic, weights, **tables, prefixes=prefixes, method=method, **options)
    expected = by_definition(targets, synthetic, weights, numbers, ranks)
    for name in FIELDS:
        equal(getattr(found, name), expected[name], name)
    for place, size in enumerate(prefixes or ()):
        expected = by_definition(targets, synthetic[:size], weights, numbers, ranks)
        for name in ("matches", "weight", "soft", "distance", "second_distance", "copies"):
            equal(getattr(found.by_prefix, name)[:, place], expected[name], name)
    return found


def equal(found, expected, name):
    if name == "soft":
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


def places_of(numbers):
    """Ranks from -1 to 1 of the numbers of a column, one a code."""
    known = np.unique(numbers[~np.isnan(numbers)])
    return np.where(
        np.isnan(numbers), np.nan, (2.0 * np.searchsorted(known, numbers) + 1.0) / max(1, len(known)) - 1.0
    ).astype(np.float32)


def same(first, second):
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in FIELDS)


def table(rng, targets, rows, columns, *, codes=6, numeric=0.5, missing=0.1, spread=1.0):
    """Random tables with repeated values, weights with zeros, and numbers with missing ones."""
    sizes = rng.integers(1, codes + 1, columns)
    weights = [np.where(rng.random(size) < 0.2, 0.0, rng.exponential(size=size)) for size in sizes]
    numbers = [
        np.where(rng.random(size) < missing, np.nan, spread * rng.standard_normal(size))
        if rng.random() < numeric
        else None
        for size in sizes
    ]
    return (*(rng.integers(0, sizes, (count, columns)) for count in (targets, rows)), weights, numbers)


# --- the definition ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 9, 17])
@pytest.mark.parametrize("numeric", [0.0, 0.5, 1.0])
def test_definition(method, columns, numeric):
    rng = np.random.default_rng([columns, int(2 * numeric)])
    for spread in (0.2, 1.0, 1e6):
        tables = table(rng, 12, 40, columns, numeric=numeric, spread=spread)
        check(*tables, method, prefixes=[1, 2, 17, 40])


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 30), st.integers(1, 4))
def test_definition_anywhere(seed, columns, rows, codes):
    rng = np.random.default_rng(seed)
    tables = table(rng, 4, rows, columns, codes=codes)
    for method in ("plain", "compiled") if HAS_NUMBA else ("plain",):
        check(*tables, method, prefixes=sorted({1, rows}))


@pytest.mark.parametrize("method", METHODS)
def test_differences_below_the_integer_steps(method):
    """Numbers and weights that only the exact evaluation can tell apart, in every order."""
    rng = np.random.default_rng(3)
    numbers = [0.3 + 1e-9 * rng.permutation(400), None, 0.5 + 1e-12 * rng.permutation(400)]
    weights = [1.0 + 1e-12 * rng.permutation(400), 1.0 + 1e-9 * rng.permutation(400), np.ones(400)]
    targets, synthetic = rng.integers(0, 400, (30, 3)), rng.integers(0, 400, (300, 3))
    check(targets, synthetic, weights, numbers, method, prefixes=[50, 299])


@pytest.mark.parametrize("method", METHODS)
def test_sums_that_differ_by_rounding(method):
    """0.1 + 0.2 and 0.3, and whole distances beside ones an ulp above."""
    numbers = [np.array([0.0, 0.1, 0.3, 1.0]), np.array([0.0, 0.2, 1.0, 1e-17]), None]
    weights = [np.array([0.1, 0.2, 0.3, 0.7])] * 3
    cells = np.stack(np.meshgrid(*[np.arange(4)] * 3), axis=-1).reshape(-1, 3)
    shuffled = np.random.default_rng(1).permutation(cells)
    check(cells, shuffled, weights, numbers, method, prefixes=[1, 5, 33])


@pytest.mark.parametrize("method", METHODS)
def test_extreme_numbers(method):
    numbers = [np.array([-1e38, 1e38, 0.0, np.nan, 1e-38]), np.full(5, np.nan)]
    weights = [np.array([1e-300, 350.0, 0.0, 5e-324, 1.0]), np.full(5, 1e-320)]
    cells = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2)
    check(cells, cells[::-1].copy(), weights, numbers, method)


@pytest.mark.parametrize("method", METHODS)
def test_many_columns(method):
    rng = np.random.default_rng(8)
    check(*table(rng, 5, 30, 301, codes=3), method)


@pytest.mark.parametrize("method", METHODS)
def test_golden(method):
    """By hand: rows 0, 1 and 2 share one cell each, of weights 1, 0.5 and 2.5, and are 1.25, 2 and 1.25 away."""
    targets = np.array([[0, 0, 0]])
    synthetic = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [2, 1, 1]])
    weights = [np.array([0.5, 1, 1]), np.array([2.5, 9.0]), np.array([1.0, 9.0])]
    numbers = [np.array([0.5, 0.75, np.nan]), None, None]
    ranks = [np.array([0.0, 0.25, np.nan]), None, None]
    found = match_rows(targets, synthetic, weights, numbers=numbers, ranks=ranks, method=method, prefixes=[1, 2, 3])
    assert found.matches[0] == 1
    assert found.soft[0] == pytest.approx(2.5 - math.log(math.exp(-0.5) + 0.25))
    assert (found.weight[0], found.weight_index[0]) == (2.5, 2)
    assert (found.distance[0], found.distance_index[0], found.second_distance[0]) == (1.25, 0, 1.25)
    assert found.copies[0] == 0
    assert found.by_prefix.sizes == (1, 2, 3)
    assert found.by_prefix.weight.tolist() == [[1.0, 1.0, 2.5]]
    assert found.by_prefix.second_distance.tolist() == [[math.inf, 2.0, 1.25]]


# --- the two scans, blocks, threads -----------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_NUMBA, reason="needs the extra whosin[fast]")
@pytest.mark.parametrize("columns", [4, 15])
def test_compiled_and_plain_agree(columns):
    rng = np.random.default_rng(columns)
    tables = table(rng, 400, 2500, columns, codes=300, numeric=0.4)
    weights, numbers = tables[2:]
    ranks = [None if own is None else places_of(own) for own in numbers]
    options = {"numbers": numbers, "ranks": ranks, "prefixes": [3, 1500]}
    plain, fast = (match_rows(*tables[:2], weights, method=method, **options) for method in ("plain", "compiled"))
    assert same(plain, fast)
    for field in dataclasses.fields(plain.by_prefix):
        np.testing.assert_array_equal(getattr(plain.by_prefix, field.name), getattr(fast.by_prefix, field.name))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [7, 40])
def test_blocks_chunks_and_threads_do_not_show(monkeypatch, method, size):
    tables = table(np.random.default_rng(size), 25, 100, 6)
    whole = check(*tables, method, prefixes=[6, 7, 8, 40, 99])
    monkeypatch.setattr(table_match, "_BATCH", size)
    monkeypatch.setattr(table_match, "_CHUNK", 3)
    for jobs in (1, 2, -1):
        shares = []
        found = check(*tables, method, prefixes=[6, 7, 8, 40, 99], n_jobs=jobs, progress=shares.append)
        assert same(whole, found)
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)
        assert max(shares) <= 1.0


def test_very_many_values():
    """All values of 70,000 rows are distinct, and bytes name 256 of them."""
    synthetic = np.stack([np.arange(70_000), np.arange(70_000)[::-1]], axis=1)
    targets = np.array([[0, 69_999], [69_999, 0], [5, 5], [65_533, 4_466]])
    weights = [np.ones(70_000)] * 2
    found = match_rows(targets, synthetic, weights)
    assert found.copies.tolist() == [1, 1, 0, 1]
    assert found.matches.tolist() == [2, 2, 1, 2]
    assert found.weight_index.tolist() == [0, 69_999, 5, 65_533]


@pytest.mark.parametrize("method", METHODS)
def test_equal_targets_and_rows(method):
    rng = np.random.default_rng(2)
    targets, synthetic, weights, numbers = table(rng, 3, 5, 4)
    again = np.repeat(synthetic, 4, axis=0)
    found = check(np.tile(targets, (5, 1)), again, weights, numbers, method)
    np.testing.assert_array_equal(found.second_distance, found.distance)
    assert np.all(found.weight_index % 4 == 0)


@pytest.mark.parametrize("method", METHODS)
def test_one_row_and_one_column(method):
    found = match_rows([[0]], [[0]], [[2.0]], method=method)
    assert (found.matches[0], found.weight[0], found.distance[0], found.copies[0]) == (1, 2.0, 0.0, 1)
    assert found.second_distance[0] == math.inf
    assert found.by_prefix is None


def test_the_choice_of_scan(monkeypatch):
    monkeypatch.setattr(table_match, "_has_numba", lambda: False)
    assert not table_match._compiled_wanted("auto", 2**40)
    with pytest.raises(MissingExtraError, match="needs numba"):
        match_rows([[0]], [[0]], [[1.0]], method="compiled")
    monkeypatch.setattr(table_match, "_has_numba", lambda: True)
    assert not table_match._compiled_wanted("auto", 1)


@pytest.mark.skipif(not HAS_NUMBA, reason="needs the extra whosin[fast]")
def test_large_work_is_compiled():
    assert table_match._compiled_wanted("auto", 2**30)


@pytest.mark.parametrize("columns", [1, 3, 12])
@pytest.mark.parametrize("codes", [2, 2**20])
def test_row_ids(columns, codes):
    rng = np.random.default_rng(columns)
    cells = rng.integers(0, codes, (200, columns), dtype=np.int32)
    cells = np.concatenate([cells, cells[::3], cells[:, ::-1]])
    _, expected = np.unique(cells, axis=0, return_inverse=True)
    found = row_ids(cells)
    pairs = set(zip(found.tolist(), expected.ravel().tolist(), strict=True))
    assert len(pairs) == len(set(found.tolist())) == len(set(expected.ravel().tolist()))


def test_row_ids_do_not_overflow():
    """Rows that differ in the first column only, of twelve with 2^20 codes each."""
    cells = np.full((3, 12), 2**20 - 1)
    cells[1:, 0] = 5
    found = row_ids(cells)
    assert found[0] != found[1] == found[2]


# --- bad input --------------------------------------------------------------------------------------------------------


GOOD = {"target_cells": [[0, 1]], "synthetic_cells": [[0, 1], [1, 0]], "weights": [[1.0, 2.0], [1.0, 2.0]]}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"target_cells": np.zeros((2, 9000), int)}, InputError, "at most 8192 columns"),
        ({"prefixes": []}, InputError, "prefixes"),
        ({"prefixes": [0]}, InputError, "from 1 to 2"),
        ({"prefixes": [3]}, InputError, "from 1 to 2"),
        ({"prefixes": [1, 1]}, InputError, "growing"),
        ({"prefixes": [1.5]}, InputError, "whole numbers"),
        ({"method": "magic"}, InputError, "method"),
        ({"n_jobs": 0}, InputError, "n_jobs"),
    ],
)
def test_bad_input(changes, error, message):
    with pytest.raises(error, match=message):
        match_rows(**{**GOOD, **changes})
