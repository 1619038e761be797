"""Noise that protects people: its law, its grid, and that no bit of the value is left in the last digits."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gamma as gamma_function

from whosin.errors import InputError, InputTypeError
from whosin.mechanisms import SecureSource, SeededSource, secure

LEAST = 1e-4
INF = math.inf
MOST = sys.float_info.max
NORMS = (1.0, 1.5, 2.0, 4.0, INF)


def gaussian_grid(scale):
    """2^j with 2^j ≤ scale·2^-30 < 2^(j+1)."""
    return 2.0 ** max(math.frexp(scale)[1] - 31, -1074)


# --- Gaussian ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 3.7, 1e-8, 1e12])
def test_gaussian_law(scale):
    drawn = secure.gaussian(np.full(60_000, 2.5), scale, SeededSource(1))
    assert stats.kstest((drawn - 2.5) / scale, "norm").pvalue > LEAST


def test_gaussian_with_a_scale_for_each_coordinate():
    scales = np.geomspace(1e-3, 1e3, 40_000)
    drawn = secure.gaussian(np.ones(40_000), scales, SeededSource(2))
    assert stats.kstest((drawn - 1.0) / scales, "norm").pvalue > LEAST


def test_gaussian_by_the_secure_source():
    assert secure.gaussian_sampler(SecureSource()) == "Karney's algorithm N, operating system"
    scales = np.geomspace(0.5, 8.0, 8_000)
    drawn = secure.gaussian(np.full(8_000, -1.0), scales, SecureSource())
    assert stats.kstest((drawn + 1.0) / scales, "norm").pvalue > 1e-9


def test_a_seeded_source_repeats_itself():
    one, two = (secure.gaussian([1.0, 2.0], 1.0, SeededSource(3)) for _ in range(2))
    assert np.array_equal(one, two)


@given(st.integers(0, 10), st.integers(0, 2**62 - 1), st.integers(0, 2**31 - 1), st.booleans(), st.integers(1, 2**31))
def test_scaling_is_exact(whole, fraction, low, negative, steps):
    """floor(steps · N), to 31 digits, against rational arithmetic."""

    class Given(SeededSource):
        def normal_digits(self, count):
            return np.array([negative]), np.array([whole]), np.array([fraction], dtype=np.uint64)

        def words(self, count):
            return np.array([low << 33], dtype=np.uint64)

    parts, digits = secure._scaled_normal(Given(1), np.array([steps]))
    found = Fraction(int(parts[0])) + Fraction(int(digits[0]), 2**31)
    exact = steps * (whole + Fraction(fraction * 2**31 + low, 2**93))
    exact = -exact if negative else exact
    assert 0 <= (exact - found) * 2**31 <= 1
    assert 0 <= digits[0] < 2**31


# --- the last digits --------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**37), 2**37),
    st.integers(0, 2**31 - 1),
    st.integers(-1074, 990),
)
def test_adding_is_rounding_of_the_exact_sum(value, whole, digits, exponent):
    """Steps of 2^exponent: the value cut to 2^-31 steps, plus the noise, rounded; then the nearest finite float."""
    found = secure._add(
        np.array([value]), (np.array([whole]), np.array([digits])), np.array([exponent], dtype=np.int32)
    )[0]
    step = Fraction(2) ** exponent
    cut = Fraction(math.floor(Fraction(value) / step * 2**31), 2**31)
    sums = {
        math.floor(cut + shift + whole + Fraction(digits, 2**31) + Fraction(1, 2)) * step
        for shift in (0, Fraction(1, 2**31))
    }
    limit = Fraction(MOST)
    assert found in {float(max(-limit, min(limit, total))) for total in sums}
    assert math.isfinite(found)


@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e-300, 1e5, math.pi, 0.0, -0.0])
@pytest.mark.parametrize("scale", [1.0, 0.7, 1e-3, 2.0**-20])
def test_gaussian_stays_on_its_grid(value, scale):
    """Whatever the value, all outputs are whole steps: Mironov's attack reads the value off those that are not."""
    drawn = secure.gaussian(np.full(500, value), scale, SeededSource(4))
    steps = drawn / gaussian_grid(scale)
    assert np.array_equal(steps, np.round(steps))
    if abs(value) <= 4.0 * scale:
        assert set(np.unique(steps % 4.0)) == {0.0, 1.0, 2.0, 3.0}


def test_a_float_sum_would_fail_that_test():
    drawn = 0.1 + np.random.default_rng(4).normal(size=500)
    steps = drawn / gaussian_grid(1.0)
    assert not np.array_equal(steps, np.round(steps))


def test_the_grid_does_not_depend_on_the_value():
    """The same noise moves 0 and a far larger value by the same steps, up to the float nearest to the sum."""
    near = secure.gaussian(np.zeros(200), 1.0, SeededSource(5))
    for value in (2.0**40, 2.0**300, 1e300):
        far = secure.gaussian(np.full(200, value), 1.0, SeededSource(5))
        assert np.array_equal(far, [float(Fraction(value) + Fraction(x)) for x in near])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 7])
def test_norm_exponential_stays_on_its_grid(norm, d):
    scale = 0.3
    size = scale * d ** (1 - 1 / norm)
    grid = 2.0 ** (math.frexp(size)[1] - 9)
    assert grid <= size / 256 < 2 * grid
    drawn = np.array([secure.norm_exponential(np.full(d, 0.1), scale, norm, SeededSource(i)) for i in range(60)])
    assert np.array_equal(drawn / grid, np.round(drawn / grid))
    assert not np.array_equal(drawn / (2 * grid), np.round(drawn / (2 * grid)))


# --- exponential in a norm --------------------------------------------------------------------------------------------


def draws(norm, d, count, seed=6):
    return secure._norm_noise(count, d, norm, SeededSource(seed))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 20])
def test_the_radius_is_gamma(norm, d):
    """Not Laplace, as printed in Izzo et al. 2022: that is Gamma(1) whatever d is."""
    radius = np.linalg.norm(draws(norm, d, 10_000), ord=norm, axis=1)
    assert stats.kstest(radius, stats.gamma(d).cdf).pvalue > LEAST
    if d > 1:
        assert stats.kstest(radius, stats.expon().cdf).pvalue < 1e-30


@pytest.mark.parametrize("norm", NORMS)
def test_the_release_scales_and_moves_that_noise(norm):
    source = SeededSource(12)
    released = np.array([secure.norm_exponential([[1.0], [-2.0]], 0.5, norm, source) for _ in range(200)])
    assert released.shape == (200, 2, 1)
    radius = np.linalg.norm(released[:, :, 0] - [1.0, -2.0], ord=norm, axis=1)
    assert stats.kstest(radius, stats.gamma(2, scale=0.5).cdf).pvalue > LEAST


def cell_masses(norm, edges):
    """Mass of exp(-‖x‖_p)/(2! vol B_p) in the cells of a square grid, by 24-point Gauss-Legendre in each."""
    volume = (2 * gamma_function(1 + 1 / norm)) ** 2 / gamma_function(1 + 2 / norm)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    half = np.diff(edges) / 2
    points = (edges[:-1] + half)[:, None] + half[:, None] * nodes
    x, y = points[:, None, :, None], points[None, :, None, :]
    radius = np.maximum(np.abs(x), np.abs(y)) if norm == INF else (np.abs(x) ** norm + np.abs(y) ** norm) ** (1 / norm)
    weight = (half[:, None] * weights)[:, None, :, None] * (half[:, None] * weights)[None, :, None, :]
    return (np.exp(-radius) * weight).sum(axis=(2, 3)) / (2 * volume)


@pytest.mark.parametrize("norm", NORMS)
def test_the_density_in_the_plane(norm):
    edges = np.array([-3.0, -2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0, 3.0])
    count = 100_000
    drawn = draws(norm, 2, count, seed=7)
    seen, _, _ = np.histogram2d(drawn[:, 0], drawn[:, 1], bins=[edges, edges])
    expected = cell_masses(norm, edges)
    seen_all = np.append(seen.ravel(), count - seen.sum())
    expected_all = np.append(expected.ravel(), 1 - expected.sum()) * count
    assert stats.chisquare(seen_all, expected_all).pvalue > LEAST


def test_that_test_tells_norms_apart():
    edges = np.array([-3.0, -2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0, 3.0])
    seen, _, _ = np.histogram2d(*draws(2.0, 2, 100_000, seed=8).T, bins=[edges, edges])
    for norm in (1.5, 4.0):
        expected = cell_masses(norm, edges)
        expected *= seen.sum() / expected.sum()
        assert stats.chisquare(seen.ravel(), expected.ravel()).pvalue < 1e-6


@pytest.mark.parametrize("norm", NORMS)
def test_direction_and_radius_are_independent(norm):
    drawn = draws(norm, 3, 40_000, seed=9)
    radius = np.linalg.norm(drawn, ord=norm, axis=1)
    largest = np.argmax(np.abs(drawn), axis=1) * 2 + (drawn[:, 0] > 0)
    table = [np.bincount(largest[rows], minlength=6) for rows in np.array_split(np.argsort(radius), 4)]
    assert stats.chi2_contingency(table).pvalue > LEAST


def test_norm_one_has_independent_laplace_coordinates():
    drawn = draws(1.0, 2, 40_000, seed=10)
    for column in drawn.T:
        assert stats.kstest(column, stats.laplace.cdf).pvalue > LEAST
    assert abs(stats.spearmanr(np.abs(drawn[:, 0]), np.abs(drawn[:, 1])).statistic) < 0.02


def test_many_coordinates():
    drawn = secure.norm_exponential(np.zeros(10**5), 1.0, 2.0, SeededSource(11))
    assert np.linalg.norm(drawn) == pytest.approx(1e5, rel=0.02)
    assert stats.kstest(drawn / math.sqrt(1e5), "norm").pvalue > LEAST


# --- shapes, ends and refusals ----------------------------------------------------------------------------------------

RELEASES = {
    "gaussian": lambda value, scale, source: secure.gaussian(value, scale, source),
    "norm_exponential": lambda value, scale, source: secure.norm_exponential(value, scale, 2.0, source),
}
each_release = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
each_source = pytest.mark.parametrize("source", [SecureSource(), SeededSource(1)], ids=["secure", "seeded"])


@each_release
@each_source
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2, 3), (0, 2)])
def test_shapes_are_kept(release, source, shape):
    assert release(np.zeros(shape), 1.0, source).shape == shape


@each_release
@each_source
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-30, 1.0, 1e30, 1e300, MOST])
def test_every_finite_scale_and_value(release, source, scale):
    values = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1.0, -1e17, 1e300, MOST, -MOST]
    drawn = release(values, scale, source)
    assert np.all(np.isfinite(drawn))
    if scale <= 1e-30:
        assert drawn[5:].tolist() == values[5:]
    if 1e-300 < scale < 1e300:
        assert abs(drawn[0]) < 1e3 * scale
        assert drawn[0] != 0.0


@each_release
@each_source
def test_no_noise_means_no_change(release, source):
    value = np.array([0.1, -3.0, 1e-320])
    assert np.array_equal(release(value, 0.0, source), value)


def test_a_coordinate_without_noise_among_others():
    drawn = secure.gaussian([0.1, 0.1], [0.0, 1.0], SeededSource(1))
    assert drawn[0] == 0.1
    assert drawn[1] != 0.1


@each_release
def test_the_value_given_is_not_changed(release):
    value = np.ones(4)
    release(value, 1.0, SeededSource(1))
    assert np.array_equal(value, np.ones(4))


@each_release
def test_whole_numbers_are_numbers(release):
    assert release([1, 2], 1, SeededSource(1)).dtype == np.float64


@each_release
@pytest.mark.parametrize("scale", [-1.0, math.nan, INF, -INF])
def test_bad_scales(release, scale):
    with pytest.raises(InputError, match="scale"):
        release([0.0], scale, SeededSource(1))


@each_release
@pytest.mark.parametrize("value", [math.nan, [1.0, INF], [[-INF]]])
def test_bad_values(release, value):
    with pytest.raises(InputError, match="value must hold finite numbers"):
        release(value, 1.0, SeededSource(1))


@each_release
@pytest.mark.parametrize("value", ["a", None, [None], [[1.0], [1.0, 2.0]], [True], 1j])
def test_wrong_kinds_of_values(release, value):
    with pytest.raises(InputTypeError, match="value must be"):
        release(value, 1.0, SeededSource(1))


@each_release
@pytest.mark.parametrize("source", [None, 1, np.random.default_rng(1)])
def test_wrong_sources(release, source):
    with pytest.raises(InputTypeError, match="source must be a SecureSource"):
        release([0.0], 1.0, source)


def test_scales_of_another_shape():
    with pytest.raises(InputError, match=r"shape \(2,\), got shape \(3,\)"):
        secure.gaussian([0.0, 0.0], [1.0, 1.0, 1.0], SeededSource(1))
    with pytest.raises(InputError, match="scale"):
        secure.gaussian([0.0, 0.0], [1.0, -1.0], SeededSource(1))


@pytest.mark.parametrize("norm", [0.5, 0.0, -1.0, math.nan])
def test_bad_norms(norm):
    with pytest.raises(InputError, match="norm"):
        secure.norm_exponential([0.0], 1.0, norm, SeededSource(1))
