"""Subsets as bit masks, against itertools."""

import itertools
import math

import numpy as np
import pytest

from whosin.errors import InputError
from whosin.numerics.subsets import MAX_SUBSETS, all_masks, masks_of_size, members_by_rank, membership


@pytest.mark.parametrize("n", range(0, 9))
def test_all_masks(n):
    masks = all_masks(n)
    assert masks.tolist() == list(range(2**n))
    assert masks.dtype == np.int64


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(0, 8) for k in range(n + 1)] + [(20, 1), (20, 19), (12, 6)])
def test_masks_of_size(n, k):
    masks = masks_of_size(n, k)
    expected = sorted(sum(1 << i for i in chosen) for chosen in itertools.combinations(range(n), k))
    assert masks.tolist() == expected
    assert len(masks) == math.comb(n, k)


def test_membership_says_who_is_in():
    table = membership(np.array([0b000, 0b101, 0b111]), 3)
    assert table.dtype == bool
    assert table.tolist() == [[False, False, False], [True, False, True], [True, True, True]]


@pytest.mark.parametrize(("n", "k"), [(10, 4), (6, 3)])
def test_membership_rows_and_columns_count(n, k):
    table = membership(masks_of_size(n, k), n)
    assert np.all(table.sum(axis=1) == k)
    assert np.all(table.sum(axis=0) == math.comb(n - 1, k - 1))
    assert len({tuple(row) for row in table.tolist()}) == math.comb(n, k)


@pytest.mark.parametrize("n", [40, 62, 63])
def test_high_bits_are_kept(n):
    masks = masks_of_size(n, 1)
    assert np.array_equal(membership(masks, n), np.eye(n, dtype=bool))


def test_the_limit():
    assert len(all_masks(21)) == MAX_SUBSETS == 2**21
    assert math.comb(23, 11) < MAX_SUBSETS < math.comb(24, 12)
    for call in (lambda: all_masks(22), lambda: masks_of_size(24, 12), lambda: masks_of_size(1000, 500)):
        with pytest.raises(InputError, match=str(MAX_SUBSETS)):
            call()


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(1, 8) for k in range(1, n + 1)])
def test_ranks_are_places_in_colexicographic_order(n, k):
    whole = membership(masks_of_size(n, k), n).astype(float)  # by size of the mask, which is that order
    assert np.array_equal(members_by_rank(n, k, 0, len(whole)), whole)
    start, stop = len(whole) // 3, len(whole) // 3 + 1
    assert np.array_equal(members_by_rank(n, k, start, stop), whole[start:stop])
