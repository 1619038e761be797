"""Laws of two outcomes over all k-subsets, against enumeration, exact counting and mpmath."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosin.errors import InputError, InputTypeError
from whosin.population.exponential.exact import subset_laws
from whosin.population.exponential.two_outcomes import two_outcome_log_laws


def by_enumeration(h, offset, k):
    """The same four logarithms from all subsets, in the log domain; right to about 1e-15 times the sums."""
    logits = np.stack([np.asarray(h) + offset / k, np.zeros(len(h))], axis=1)
    laws = subset_laws(logits, k, method="direct")
    return np.stack(
        [laws.log_inside[:, 0], laws.log_outside[:, 0], laws.log_inside[:, 1], laws.log_outside[:, 1]], axis=1
    )


def by_mpmath(h, offset, k):
    """The same from the definition, in 60 digits."""
    with mpmath.workdps(60):
        steps = [mpmath.mpf(float(step)) for step in h]
        sums = [[mpmath.mpf(0)] * 4 for _ in steps]
        for chosen in itertools.combinations(range(len(steps)), k):
            total = mpmath.mpf(offset) + mpmath.fsum(steps[i] for i in chosen)
            first, second = 1 / (1 + mpmath.exp(total)), 1 / (1 + mpmath.exp(-total))
            for record, row in enumerate(sums):
                side = 0 if record in chosen else 1
                row[side] += first
                row[side + 2] += second
        n_others = len(steps) - 1
        counts = [math.comb(n_others, k - 1), math.comb(n_others, k)] * 2
        return np.array([[float(mpmath.log(v / c)) for v, c in zip(row, counts, strict=True)] for row in sums])


def assert_within(logs, errors, expected, reference_error):
    """The stated errors hold, and are small."""
    assert (np.abs(logs - expected) <= errors + reference_error).all()


def size_of_sums(h, offset):
    return 10.0 + float(np.abs(h).sum()) + abs(offset)


# --- small pools ---


@pytest.mark.parametrize("n", [6, 7, 8, 9, 10])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_agrees_with_enumeration(n, scale):
    rng = np.random.default_rng(n)
    h = scale * rng.normal(size=2 * n)
    offset = float(scale * rng.normal())
    logs, errors = two_outcome_log_laws(h, offset, n)
    np.testing.assert_allclose(logs, by_enumeration(h, offset, n), rtol=0.0, atol=1e-12)
    assert errors.max() < 1e-11
    assert_within(logs, errors, by_enumeration(h, offset, n), 1e-15 * size_of_sums(h, offset))


@pytest.mark.parametrize(("n_records", "k"), [(2, 1), (3, 1), (3, 2), (7, 1), (7, 3), (7, 6), (9, 2)])
@pytest.mark.parametrize("offset", [0.0, -3.0, 40.0])
def test_agrees_with_mpmath(n_records, k, offset):
    h = 2.0 * np.random.default_rng(n_records + k).normal(size=n_records)
    logs, errors = two_outcome_log_laws(h, offset, k)
    expected = by_mpmath(h, offset, k)
    np.testing.assert_allclose(logs, expected, rtol=1e-13, atol=1e-12)
    assert_within(logs, errors, expected, 4e-16 * np.abs(expected))


@pytest.mark.parametrize("offset", [-130.0, 130.0])
def test_far_tails(offset):
    # ln P near -100 for one of the outcomes, with logits so large that single subsets carry the mass.
    h = 12.0 * np.random.default_rng(5).normal(size=16)
    logs, errors = two_outcome_log_laws(h, offset, 8)
    expected = by_enumeration(h, offset, 8)
    assert expected.min() < -50.0
    np.testing.assert_allclose(logs, expected, rtol=0.0, atol=1e-10)
    assert_within(logs, errors, expected, 1e-15 * size_of_sums(h, offset))


def test_far_tails_in_sixty_digits():
    h = 15.0 * np.random.default_rng(6).normal(size=9)
    logs, errors = two_outcome_log_laws(h, 110.0, 4)
    expected = by_mpmath(h, 110.0, 4)
    assert expected.min() < -100.0
    np.testing.assert_allclose(logs, expected, rtol=1e-14, atol=1e-11)
    assert_within(logs, errors, expected, 4e-16 * np.abs(expected))


@given(
    n_records=st.integers(2, 12),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-3, 0.3, 3.0, 30.0]),
    kind=st.sampled_from(["normal", "heavy", "lattice", "outlier"]),
    shift=st.sampled_from([0.0, 1.0, 10.0]),
    data=st.data(),
)
def test_the_stated_errors_hold(n_records, seed, scale, kind, shift, data):
    k = data.draw(st.integers(1, n_records - 1))
    rng = np.random.default_rng(seed)
    if kind == "heavy":
        h = np.clip(scale * rng.standard_cauchy(n_records), -500.0, 500.0)
    elif kind == "lattice":
        h = scale * rng.integers(-2, 3, n_records)
    else:
        h = scale * rng.normal(size=n_records)
    if kind == "outlier":
        h[0] = 300.0
    offset = float(shift * scale * rng.normal())
    logs, errors = two_outcome_log_laws(h, offset, k)
    expected = by_enumeration(h, offset, k)
    known = np.isfinite(errors)
    assert (np.abs(logs - expected)[known] <= errors[known] + 2e-15 * size_of_sums(h, offset)).all()
    assert known.all()
    assert errors.max() < 1e-9


# --- large pools ---


def counts_by_sum(levels, k):
    """For a pool of whole numbers: how many j-subsets have which sum, as exact integers, for j up to k."""
    low = sum(level for level in levels if level < 0)
    high = sum(level for level in levels if level > 0)
    table = np.zeros((k + 1, high - low + 1), dtype=object)
    table[0, -low] = 1
    for level in levels:
        moved = np.roll(table[:-1], level, axis=1)
        table[1:] = table[1:] + moved
    return table, low


def by_counting(levels, spacing, offset, k, record):
    """Four logarithms of one record of a pool on a lattice, by exact counting."""
    others = levels[:record] + levels[record + 1 :]
    table, low = counts_by_sum(others, k)
    result = []
    with mpmath.workdps(60):
        for sign in (1, -1):
            for start, size in ((levels[record], k - 1), (0, k)):
                sums = [
                    count / (1 + mpmath.exp(sign * (mpmath.mpf(offset) + mpmath.mpf(spacing) * (low + place + start))))
                    for place, count in enumerate(table[size])
                    if count
                ]
                result.append(float(mpmath.log(mpmath.fsum(sums) / math.comb(len(others), size))))
    return result


@pytest.mark.parametrize(("offset", "deepest"), [(0.0, -1.0), (25.0, -10.0), (-100.0, -60.0)])
def test_a_lattice_of_eighty_records(offset, deepest):
    levels = np.random.default_rng(7).integers(-3, 4, 80).tolist()
    logs, errors = two_outcome_log_laws(0.5 * np.array(levels), offset, 40)
    for record in (levels.index(-3), levels.index(0), levels.index(3)):
        expected = by_counting(levels, 0.5, offset, 40, record)
        assert min(expected) < deepest
        np.testing.assert_allclose(logs[record], expected, rtol=0.0, atol=1e-11)
        assert (np.abs(logs[record] - expected) <= errors[record]).all()
    assert errors.max() < 1e-11


@pytest.mark.parametrize(
    ("n_records", "k", "scale", "offset"), [(400, 200, 0.2, 0.0), (400, 100, 2.0, 30.0), (1500, 750, 0.3, -20.0)]
)
def test_the_law_of_total_probability_in_large_pools(n_records, k, scale, offset):
    h = scale * np.random.default_rng(n_records).normal(size=n_records)
    logs, errors = two_outcome_log_laws(h, offset, k)
    assert errors.max() < 1e-10
    share = math.log(k / n_records), math.log1p(-k / n_records)
    for column in (0, 2):
        mixed = np.logaddexp(share[0] + logs[:, column], share[1] + logs[:, column + 1])
        assert np.ptp(mixed) <= 2.0 * errors.max()
    np.testing.assert_allclose(np.logaddexp(logs[:, 0], logs[:, 2]), 0.0, atol=1e-11)


def test_rare_outcomes_of_a_large_pool():
    # Lowy et al., figure 1, with λ proportional to n: ε̃ stays near .74 (n = 100 and 400 gave .74 in an
    # independent, slower program), below the range bound .909.
    for n in (100, 400):
        points = np.clip(1.0 + np.random.default_rng(9).standard_normal(2 * n), -10.0, 10.0)
        h = 5.0 / 22.0 * (np.abs(points - 1.0) - np.abs(points + 1.0))
        logs, _ = two_outcome_log_laws(h, 0.0, n)
        epsilon = max(np.abs(logs[:, 0] - logs[:, 1]).max(), np.abs(logs[:, 2] - logs[:, 3]).max())
        assert epsilon == pytest.approx(0.74, abs=0.01)
        assert epsilon < np.ptp(h)
        assert logs.min() < -20.0


# --- shape and symmetry ---


def test_outcomes_change_places_with_the_signs():
    h = np.random.default_rng(10).normal(size=30)
    logs, _ = two_outcome_log_laws(h, 4.0, 11)
    mirrored, _ = two_outcome_log_laws(-h, -4.0, 11)
    np.testing.assert_allclose(mirrored, logs[:, [2, 3, 0, 1]], atol=1e-12)


def test_a_constant_moves_into_the_offset():
    h = np.random.default_rng(11).normal(size=30)
    logs, _ = two_outcome_log_laws(h, 4.0, 11)
    moved, _ = two_outcome_log_laws(h + 2.0, 4.0 - 22.0, 11)
    np.testing.assert_allclose(moved, logs, atol=1e-12)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_a_large_constant_costs_digits_and_says_so(k):
    h = 1e6 + np.random.default_rng(13).normal(size=7)
    logs, errors = two_outcome_log_laws(h, -1e6 * k, k)
    assert (np.abs(logs - by_mpmath(h, -1e6 * k, k)) <= errors).all()
    assert errors.max() < 1e-7


def test_records_in_any_order():
    h = np.random.default_rng(12).normal(size=12)
    h[7] = h[2]
    logs, errors = two_outcome_log_laws(h, 0.5, 6)
    assert logs.shape == errors.shape == (12, 4)
    np.testing.assert_array_equal(logs[7], logs[2])
    some, _ = two_outcome_log_laws(h, 0.5, 6, records=[7, 0, 2])
    np.testing.assert_allclose(some, logs[[7, 0, 2]], atol=1e-12)
    none, _ = two_outcome_log_laws(h, 0.5, 6, records=[])
    assert none.shape == (0, 4)


def test_all_records_alike():
    for step in (0.0, 0.25):
        logs, _ = two_outcome_log_laws(np.full(50, step), 0.3, 20)
        total = 0.3 + 20 * step
        np.testing.assert_allclose(logs[:, :2], -np.logaddexp(0.0, total), atol=1e-12)
        np.testing.assert_allclose(logs[:, 2:], -np.logaddexp(0.0, -total), atol=1e-12)


# --- bad input ---


def test_bad_input():
    h = np.zeros(5)
    with pytest.raises(InputError, match="record 3"):
        two_outcome_log_laws([0.0, 1.0, 2.0, math.nan], 0.0, 2)
    with pytest.raises(InputError, match="finite"):
        two_outcome_log_laws([0.0, math.inf], 0.0, 1)
    with pytest.raises(InputError, match="offset"):
        two_outcome_log_laws(h, math.inf, 2)
    with pytest.raises(InputError, match="no subset without a given record"):
        two_outcome_log_laws(h, 0.0, 5)
    with pytest.raises(InputError, match="no subset with a given record"):
        two_outcome_log_laws(h, 0.0, 0)
    with pytest.raises(InputError, match="shape"):
        two_outcome_log_laws([[1.0, 2.0]], 0.0, 1)
    with pytest.raises(InputError, match="records"):
        two_outcome_log_laws(h, 0.0, 2, records=[5])
    with pytest.raises(InputTypeError, match="h must be"):
        two_outcome_log_laws(["a", "b"], 0.0, 1)
    with pytest.raises(InputError, match="spread over less"):
        two_outcome_log_laws(np.linspace(-1e9, 1e9, 50), 0.0, 25)
