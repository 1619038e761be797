"""Matching batch by batch gives what matching the whole table gives, to the last digit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whosin.auditing.releases.matching.compiled import Tiles
from whosin.auditing.releases.matching.match import Matcher, match_rows
from whosin.auditing.releases.matching.measures import Batch, Columns
from whosin.auditing.releases.matching.ordering import as_bytes, sorted_rows, steps_of
from whosin.errors import InputError

PARTS = ("matches", "weight", "soft", "distance", "second_distance", "copies")


def problem(seed, columns, targets, rows, largest):
    """Codes, weights with ties, and numbers with missing ones, coarse enough to tie."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, columns)
    draw = [np.minimum(rng.geometric(min(1.0, 3 / size), targets + rows) - 1, size - 1) for size in sizes]
    cells = np.stack(draw, axis=1)
    weights = [rng.choice([0.0, 0.3, 1.0, 2.5], size) for size in sizes]
    numbers = []
    for size in sizes:
        table = np.sort(rng.normal(0, 1, size).round(1)).astype(np.float32).astype(float)
        table[rng.random(size) < 0.1] = np.nan
        numbers.append(table if rng.random() < 0.5 else None)
    return cells[:targets], cells[targets:], weights, numbers


def ranked(numbers):
    """Ranks that rise with the numbers, some of them equal."""
    return [None if table is None else np.tanh(table).round(2) for table in numbers]


def streamed(targets, synthetic, weights, numbers, width, prefixes=(), **options):
    """Feed batches of some width; values that no target has lose their code."""
    ranks = ranked(numbers)
    matcher = Matcher(targets, weights, numbers=numbers, ranks=ranks, **options)
    cuts = sorted({*range(0, len(synthetic), width), len(synthetic)})
    for left, right in pairwise(cuts):
        cells = synthetic[left:right].copy()
        own = [
            np.stack([np.empty(right - left), *(table[column][cells[:, column]] for column in matcher.numeric)])[1:].T
            for table in (numbers, ranks)
        ]
        for column in range(cells.shape[1]):
            cells[~np.isin(cells[:, column], targets[:, column]), column] = -1
        ends = [size - left for size in prefixes if left < size <= right]
        matcher.add(cells, *own, 3 * np.arange(left, right) + 7, ends=ends)
    return matcher.result()


def agree(whole, found):
    assert np.array_equal(whole.run, found.run)
    for name in PARTS:
        assert np.array_equal(getattr(whole, name), getattr(found, name)), name
        if whole.by_prefix is not None:
            assert np.array_equal(getattr(whole.by_prefix, name), getattr(found.by_prefix, name)), name
    for name in ("weight_index", "distance_index"):
        assert np.array_equal(3 * getattr(whole, name) + 7, getattr(found, name)), name


@pytest.mark.parametrize("method", ["plain", "compiled"])
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    columns=st.integers(1, 6),
    targets=st.integers(1, 30),
    rows=st.integers(1, 300),
    largest=st.sampled_from([2, 9, 900]),
    width=st.sampled_from([1, 13, 64, 1000]),
    data=st.data(),
)
def test_batches_give_what_the_whole_gives(method, seed, columns, targets, rows, largest, width, data):
    tables = problem(seed, columns, targets, rows, largest)
    sizes = data.draw(st.lists(st.integers(1, rows), min_size=1, max_size=3, unique=True).map(sorted))
    whole = match_rows(*tables[:3], numbers=tables[3], ranks=ranked(tables[3]), prefixes=sizes, method="plain")
    agree(whole, streamed(*tables, width, sizes, method=method))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), columns=st.integers(1, 7), width=st.sampled_from([64, 130, 1000]))
def test_weights_and_numbers_that_almost_tie(seed, columns, width):
    """Weights one rounding apart, tiny and huge ones together, distances one rounding apart, many equal rows."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, columns)
    cells = np.stack([rng.integers(0, size, 320) for size in sizes], axis=1)
    choices = [0.0, 5e-324, 1e-300, 1e-16, 1.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53, 3.0, 300.0, 350.0]
    weights = [rng.choice(choices, size) for size in sizes]
    steps = np.array([0.0, 1e-38, 1.0, 1.0 + 2.0**-23, 1.0 - 2.0**-24, 0.5, 2.0, -1e6, np.nan], dtype=np.float32)
    numbers = [rng.choice(steps, size).astype(float) if rng.random() < 0.6 else None for size in sizes]
    tables = cells[:20], cells[20:], weights, numbers
    whole = match_rows(*tables[:3], numbers=numbers, ranks=ranked(numbers), prefixes=[37, 200], method="plain")
    agree(whole, streamed(*tables, width, (37, 200), method="compiled"))


@pytest.mark.parametrize("threads", [1, 2])
def test_many_tiles_and_spans(threads):
    """Very many tiles, most of which are passed over, and more values than bytes."""
    rng = np.random.default_rng(5)
    targets, synthetic, weights, numbers = problem(2, 8, 60, 20_000, 40)
    spread = rng.integers(0, 3000, 20_060)
    targets, synthetic = (
        np.column_stack([part, own]) for part, own in ((targets, spread[:60]), (synthetic, spread[60:]))
    )
    weights, numbers = (
        [*weights, np.full(3000, 6.0)],
        [*numbers, np.linspace(-2, 2, 3000, dtype=np.float32).astype(float)],
    )
    whole = match_rows(targets, synthetic, weights, numbers=numbers, ranks=ranked(numbers), method="plain")
    agree(whole, streamed(targets, synthetic, weights, numbers, 15_000, method="compiled", n_jobs=threads))


def test_what_tiles_hold():
    """Four categories, sorted, a tile each; of a number the levels between the nearest of a tile and any other."""
    codes = np.repeat(np.arange(4, dtype=np.int32), 64)[::-1]
    ranks = np.linspace(-1.0, 0.99, 4, dtype=np.float32)
    columns = Columns.of([np.ones(4), np.ones(4)], [None, ranks], [None, ranks])
    both = np.stack([codes, codes], axis=1)
    tiles = Tiles.of(columns, Batch(both, ranks[codes][:, None], ranks[codes][:, None], np.arange(256)), [(1, 0, 8)])
    assert tiles.batch.rows.tolist() == [*range(192, 256), *range(128, 192), *range(64, 128), *range(64)]
    assert (tiles.near[0, 1:5] == 0).tolist() == np.eye(4, dtype=bool).tolist()
    levels = tiles.bytes[0, 1, ::64].astype(int)
    assert levels.tolist() == [0, 63, 126, 189]
    assert tiles.near[1, 100].tolist() == np.abs(levels - 100).tolist()


def test_rows_are_sorted_by_what_tells_most():
    """Rare values say more than common ones, and a constant nothing; each column brings all its bits, in turn."""
    rng = np.random.default_rng(0)
    numbers = [None, None, None, np.linspace(0.0, 1.0, 1000)]
    sizes = 1, 2, 60, 1000
    columns = Columns.of([np.full(size, np.log(size)) for size in sizes], numbers, ranked(numbers))
    codes = np.stack([rng.integers(0, size, 500, dtype=np.int32) for size in sizes], axis=1)
    steps = steps_of(columns, codes)
    places = [min(place for place, step in enumerate(steps) if step[0] == column) for column in range(3)]
    assert places == sorted(places, reverse=True)
    for column in range(4):
        own = [step[1:] for step in steps if step[0] == column]
        assert [0, *(bits for _, bits in own)] == [*(before for before, _ in own), 8]
    table = as_bytes(columns, codes, columns.ranks[0][codes[:, 3]][:, None])
    order = sorted_rows(columns, table, [(3, 0, 3), (1, 0, 8), (3, 3, 8)])
    # the low bits of categories come first: the bytes 1 and 2
    known = sorted(range(500), key=lambda row: (table[row, 3] >> 5, table[row, 1] % 2, table[row, 3], row))
    assert order.tolist() == known


def test_copies_of_very_wide_rows_do_not_overflow():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 1000, (50, 20))
    synthetic = np.concatenate([targets[:10], targets[:5], rng.integers(0, 1000, (50, 20))])
    weights = [np.ones(1000)] * 20
    found = streamed(targets, synthetic, weights, [None] * 20, 7)
    assert found.copies.tolist() == [2] * 5 + [1] * 5 + [0] * 40


def test_refuses_rows_that_do_not_grow_and_no_rows():
    matcher = Matcher([[0]], [[1.0]])
    none = np.empty((1, 0))
    with pytest.raises(InputError, match="at least one row"):
        matcher.result()
    matcher.add(np.array([[0]]), none, none, np.array([4]))
    matcher.add(np.empty((0, 1), dtype=np.int32), none[:0], none[:0], np.array([], dtype=np.int64))
    with pytest.raises(InputError, match="growing row numbers"):
        matcher.add(np.array([[0]]), none, none, np.array([4]))


@pytest.mark.parametrize("method", ["plain", "compiled"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), columns=st.integers(1, 4), rows=st.integers(2, 200), parts=st.integers(1, 5))
def test_parts_in_any_order_give_what_the_whole_gives(method, seed, columns, rows, parts):
    """Rows are dealt to matchers that start from the best over the first of them, and are merged in another order."""
    targets, synthetic, weights, numbers = problem(seed, columns, 20, rows, 4)
    ranks, rng = ranked(numbers), np.random.default_rng(seed)
    first = int(rng.integers(1, rows))
    tables = {"numbers": numbers, "ranks": ranks}
    whole = match_rows(targets, synthetic, weights, **tables, prefixes=[first, rows], method="plain")
    matcher = Matcher(targets, weights, **tables, method=method)

    def over(start, own):
        found = start.begun()
        found.add(synthetic[own], *matcher.looked_up(synthetic[own]), 3 * own + 7)
        return found

    begin = over(matcher, np.arange(first))
    matcher.follow(begin, first)
    dealt = rng.integers(parts, size=rows)
    news = [over(matcher, np.flatnonzero((dealt == part) & (np.arange(rows) >= first))) for part in range(parts)]
    after = matcher.begun()
    for part in rng.permutation(parts):
        after.take(news[part].since(matcher))
        again = news[rng.integers(parts)].since(matcher)
        again[:, 1] = 0.0  # copies of rows that are not new: nothing changes
        after.take(again)
    matcher.follow(after, rows - first)
    agree(whole, matcher.result())
