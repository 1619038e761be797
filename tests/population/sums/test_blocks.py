"""Little noise: limits against somebody who is told about everybody outside a block are never below the truth."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import hypergeom

from tests.population.sums.test_normal import enumerated_divergences, pool_of, projected
from whosin.numerics.gaussian_noise import noise_for
from whosin.population.sums import blocks
from whosin.population.sums.blocks import block_epsilons, counts_of
from whosin.population.sums.normal import normal_epsilons
from whosin.population.sums.pairwise import pairwise_epsilons
from whosin.population.sums.spectral import SubsetSumLaws


@pytest.mark.parametrize("kind", ["normal", "skewed", "binary"])
@pytest.mark.parametrize("k", [8, 6])
def test_never_below_the_enumerated_divergence(kind, k):
    """At the limit of every judged record all draws of 16, both directions, have divergences of at most δ."""
    f, delta = pool_of(kind, 16, 2, seed=2), 0.1
    scale = 5.0 * float(np.linalg.norm(f - f.mean(axis=0), axis=1).max())
    limits = blocks._limits(f / scale, k, 15, delta)
    assert np.isfinite(limits).all()
    for x in (0, 7, int(np.argmax(limits))):
        assert enumerated_divergences(f, x, k, scale, [math.exp(limits[x])])[0] <= delta


@pytest.mark.parametrize(("count", "k"), [(40, 20), (40, 13)])
def test_above_the_exact_answer_of_somebody_who_is_told(count, k):
    """In one column every block's law is known exactly, so the sum over counts is; it needs what the count tells."""
    f, size, delta = pool_of("normal", count, 1), 20, 0.05
    scale = 6.0 * float(np.abs(f - f.mean()).max())
    limits = blocks._limits(f / scale, k, size, delta)
    assert np.isfinite(limits).all()
    x = int(np.argmax(np.abs(f - f.mean())))
    block = next(block for block in blocks._blocks(f / scale, size) if x in block)
    place = int(np.flatnonzero(block == x)[0])
    told, untold = 0.0, 0.0
    for j in range(1, size):
        p, q = hypergeom.pmf(j - 1, count - 1, k - 1, size - 1), hypergeom.pmf(j, count - 1, k, size - 1)
        if min(p, q) > 1e-9:
            laws = SubsetSumLaws(f[block], j, scale, records=[place])
            at = limits[x] + math.log(q / p)
            away = laws.divergence(place, abs(at), at < 0.0)[1]
            told += p * (away if at >= 0.0 else 1.0 - math.exp(at) * (1.0 - away))
            untold += p * laws.divergence(place, limits[x])[1]
    assert untold < told <= delta
    assert limits[x] >= SubsetSumLaws(f, k, scale, records=[x]).epsilon(delta)[0, 0]


def test_counts_are_hypergeometric_and_what_is_left_out_is_counted():
    counts, inside, outside, left = counts_of(300, 100, 60, 1e-3)
    assert inside == pytest.approx(hypergeom.pmf(counts - 1, 299, 99, 59), rel=1e-7)
    assert outside == pytest.approx(hypergeom.pmf(counts, 299, 100, 59), rel=1e-7)
    assert (inside >= hypergeom.pmf(counts - 1, 299, 99, 59)).all()
    for chances in (inside, outside):
        assert 1.0 - chances.sum() <= left <= 1e-3
    assert outside / inside == pytest.approx((60 - counts) / counts * 100 / 200, rel=1e-7)


@pytest.mark.parametrize(("count", "k"), [(10**7, 5 * 10**6), (10**8, 3 * 10**7)])
def test_counts_of_huge_pools_are_raised_by_more_than_factorials_are_rounded(count, k):
    counts, inside, outside, left = counts_of(count, k, 500, 1e-4)
    assert 1.0 - min(inside.sum(), outside.sum()) <= left <= 1e-4
    for j, p, q in list(zip(counts.tolist(), inside, outside, strict=True))[::8]:
        ways = math.comb(499, j - 1) * math.prod(Fraction(k - 1 - i, count - 1 - i) for i in range(j - 1))
        ways *= math.prod(Fraction(count - k - i, count - j - i) for i in range(500 - j))
        assert ways <= Fraction(float(p)) <= ways * Fraction(1.00002)
        assert ways * Fraction(500 - j, j) * Fraction(k, count - k) <= Fraction(float(q))


def test_every_record_is_in_a_block_of_the_size():
    pool = pool_of("normal", 47, 2)
    parts = blocks._blocks(pool, 20)
    assert {len(np.unique(part)) for part in parts} == {20}
    assert np.array_equal(np.unique(np.concatenate(parts)), np.arange(47))


@pytest.mark.long
def test_blocks_show_something_where_the_whole_pool_does_not():
    f = pool_of("normal", 2000, 3, seed=7)
    far = np.linalg.norm(f - f.mean(axis=0), axis=1)
    scale, x = noise_for(7.0, 0.01, 2.0 * float(far.max())), int(np.argmax(far))
    assert np.isinf(normal_epsilons(f, 1000, scale, 0.01)[x])
    limit = block_epsilons(f, 1000, scale, 0.01)[x]
    assert projected(f, x, 1000, scale, 0.01) <= limit
    assert limit <= 0.5 * pairwise_epsilons(f, scale, 0.01, records=[x])[0]


@pytest.mark.parametrize(("count", "k", "delta"), [(40, 20, 0.0), (40, 20, 1.0), (20, 10, 0.01), (40, 1, 0.01)])
def test_what_is_not_covered_shows_nothing(count, k, delta):
    assert np.isinf(block_epsilons(pool_of("normal", count, 2), k, 0.01, delta)).all()
