"""Sources of randomness: the laws, the ends of their ranges, and that the secure one takes no seed."""

import inspect
import math
from collections import Counter
from itertools import combinations

import mpmath
import numpy as np
import pytest
from scipy import stats

from whosin.errors import InputError, InputTypeError
from whosin.mechanisms import SecureSource, SeededSource, Source, sources

LEAST = 1e-4
"""Smallest tolerated p-value of a seeded test."""


class Scripted(Source):
    """Hands out given words, one after the other."""

    name = "script"
    secure = False

    def __init__(self, *words):
        self.script = list(words)

    def words(self, count):
        taken, self.script = self.script[:count], self.script[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


@pytest.fixture
def seeded():
    return SeededSource(20240)


def test_the_secure_source_takes_no_seed():
    assert list(inspect.signature(SecureSource).parameters) == []
    with pytest.raises(TypeError):
        SecureSource(1)
    assert SecureSource().secure is True
    assert SecureSource().name == "operating system"
    assert not np.array_equal(SecureSource().words(8), SecureSource().words(8))


def test_the_seeded_source_repeats_and_says_so():
    assert SeededSource(1).secure is False
    assert "protects nobody" in SeededSource(1).name
    one, two = SeededSource(7), SeededSource(np.random.default_rng(7))
    assert np.array_equal(one.normal(50), two.normal(50))
    with pytest.raises(InputTypeError, match="use SecureSource"):
        SeededSource(None)


def test_secure_words_fill_all_64_bits_evenly():
    words = SecureSource().words(4000)
    ones = [(int(((words >> np.uint64(bit)) & np.uint64(1)).sum())) for bit in range(64)]
    assert all(abs(count - 2000) < 6 * math.sqrt(1000) for count in ones)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda source, n: source.uniform(n), stats.uniform()),
        (lambda source, n: source.exponential(n), stats.expon()),
        (lambda source, n: source.normal(n), stats.norm()),
        *[(lambda source, n, a=a: source.gamma(a, n), stats.gamma(a)) for a in (0.2, 1, 1.5, 2, 30, 1e6)],
    ],
    ids=["uniform", "exponential", "normal", *(f"gamma {a}" for a in (0.2, 1, 1.5, 2, 30, 1e6))],
)
@pytest.mark.parametrize("source", [SeededSource(20240), SecureSource()], ids=["seeded", "secure"])
def test_laws(source, draw, law):
    drawn = draw(source, 100_000 if source.secure is False else 5_000)
    least = LEAST if source.secure is False else 1e-9
    assert drawn.dtype == np.float64
    assert stats.kstest(drawn, law.cdf).pvalue > least


@pytest.mark.parametrize("beyond", [1.0, 2.0, 3.0])
def test_normal_tails(seeded, beyond):
    drawn = np.abs(seeded.normal(200_000))
    tail = drawn[drawn > beyond]
    share = 2 * stats.norm.sf(beyond)
    assert stats.binomtest(tail.size, drawn.size, share).pvalue > LEAST
    assert stats.kstest(tail, lambda x: 1 - 2 * stats.norm.sf(x) / share).pvalue > LEAST


def test_normal_signs_do_not_depend_on_the_size(seeded):
    drawn = seeded.normal(100_000)
    table = [[np.sum((drawn > 0) & (np.abs(drawn) > 1)), np.sum((drawn > 0) & (np.abs(drawn) <= 1))]]
    table.append([np.sum((drawn < 0) & (np.abs(drawn) > 1)), np.sum((drawn < 0) & (np.abs(drawn) <= 1))])
    assert stats.chi2_contingency(table).pvalue > LEAST


def test_whole_parts_of_normal_variates():
    """The thresholds of the whole part against 60 digits of mpmath."""
    with mpmath.workdps(60):
        weights = [mpmath.exp(-mpmath.mpf(k * k) / 2) for k in range(40)]
        sums = [sum(weights[: k + 1]) / sum(weights) * 2**64 for k in range(11)]
    for found, exact in zip(sources._whole_parts().tolist(), sums, strict=True):
        assert abs(found - exact) <= 1.0


# --- uniform ----------------------------------------------------------------------------------------------------------


def test_uniform_at_the_ends():
    top = Scripted(1, 2**64 - 1).uniform(1)[0]
    assert top == 1.0 - 2.0**-53
    low = Scripted(2, 0).uniform(1)[0]
    assert low == 0.25
    tiny = Scripted(0, 0, 8, 0).uniform(1)[0]
    assert tiny == 2.0 ** (-1 - 64 - 64 - 3)
    least = Scripted(*[0] * 16, 0).uniform(1)[0]
    assert least == 2.0 ** (-1 - 15 * 64)
    assert least > 0.0


def test_uniform_below_a_rate_has_exactly_that_probability(seeded):
    """Small rates too: a plain 53-bit grid cannot even hold 1e-18."""
    for rate in (2.0**-11, 2.0**-13):
        count = int((seeded.uniform(1_000_000) < rate).sum())
        assert stats.binomtest(count, 1_000_000, rate).pvalue > LEAST


def test_uniform_keeps_53_bits_near_zero(seeded):
    small = seeded.uniform(400_000)
    small = small[small < 2.0**-5]
    mantissa, _ = np.frexp(small)
    bits = (mantissa * 2.0**53).astype(np.int64) & 0xFF
    assert len(set(bits.tolist())) == 256


# --- whole numbers and subsets ----------------------------------------------------------------------------------------


def test_below_rejects_the_last_incomplete_round():
    """2^64 = 1 modulo 3: the word 2^64 - 1 would make 0 a little likelier and is drawn again."""
    assert Scripted(2**64 - 1, 5).below(np.array([3])).tolist() == [2]
    assert Scripted(2**64 - 2).below(np.array([3])).tolist() == [(2**64 - 2) % 3]
    assert Scripted(2**64 - 1).below(np.array([4])).tolist() == [3]


def test_below_is_uniform(seeded):
    drawn = seeded.below(np.full(70_000, 7))
    assert stats.chisquare(np.bincount(drawn, minlength=7)).pvalue > LEAST


@pytest.mark.parametrize("n", [1, 2, 5])
def test_subset_is_uniform(seeded, n):
    for k in range(n + 1):
        drawn = Counter(tuple(seeded.subset(n, k).tolist()) for _ in range(1500))
        every = list(combinations(range(n), k))
        assert set(drawn) == set(every)
        if len(every) > 1:
            assert stats.chisquare([drawn[chosen] for chosen in every]).pvalue > LEAST


def test_subset_draws_again_where_keys_tie():
    assert Scripted(5, 5, 9, 4, 6, 5).subset(3, 1).tolist() == [0]
    assert Scripted(5, 5, 9).subset(3, 2).tolist() == [0, 1]


def test_large_subset():
    chosen = SecureSource().subset(200_000, 100_000)
    assert chosen.size == 100_000
    assert np.all(np.diff(chosen) > 0)
    assert (chosen[0], chosen[-1]) >= (0, 0)
    assert chosen[-1] < 200_000


# --- shapes and refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 3, (2, 3), (0, 4), ()])
def test_shapes(seeded, size):
    shape = size if isinstance(size, tuple) else (size,)
    for drawn in (seeded.uniform(size), seeded.normal(size), seeded.exponential(size), seeded.gamma(2.0, size)):
        assert drawn.shape == shape


@pytest.mark.parametrize("wrong", [-1, 1.5, math.nan, math.inf, "3", None, True])
def test_bad_sizes(seeded, wrong):
    with pytest.raises((InputError, InputTypeError), match="size"):
        seeded.uniform(wrong)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_bad_shapes_of_gamma(seeded, wrong):
    with pytest.raises(InputError, match="shape"):
        seeded.gamma(wrong, 3)


@pytest.mark.parametrize(("n", "k"), [(3, 4), (-1, 0), (3, -1), (2.5, 1)])
def test_bad_subsets(seeded, n, k):
    with pytest.raises(InputError, match=r"[nk] must be"):
        seeded.subset(n, k)


# --- the parts of a normal variate ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("x", [0.2, 0.6, 0.98])
def test_the_events_that_keep_a_fraction(seeded, k, x):
    """One event has probability exp(-x(2k+x)/(2k+2)), and k + 1 of them in a row exp(-x(2k+x)/2)."""
    count = 40_000
    digits = np.full(count, int(x * 2**62), dtype=np.uint64)
    for draw, rate in (
        (sources._one_keep, x * (2 * k + x) / (2 * k + 2)),
        (sources._keep_fraction, x * (2 * k + x) / 2),
    ):
        kept = int(draw(seeded, np.full(count, k), digits).sum())
        assert stats.binomtest(kept, count, math.exp(-rate)).pvalue > LEAST
    even = int(sources._even_run(seeded, digits).sum())
    assert stats.binomtest(even, count, math.exp(-x)).pvalue > LEAST
