"""Kernel densities on a grid, against direct sums, closed forms and the integral worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from experiments.mace.densities import GridDensity, bandwidths, density, total_variation
from whosin.errors import InputError, InputTypeError


def bell(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def direct(points, sample, widths):
    """The mean of the kernels at each point."""
    points, sample = (np.asarray(table).reshape(len(table), -1) for table in (points, sample))
    kernels = np.ones((len(points), len(sample)))
    for column, width in enumerate(widths):
        kernels *= bell((points[:, column, None] - sample[:, column]) / width) / width
    return kernels.mean(axis=1)


def stated_error(found: GridDensity):
    """(step/bandwidth)²/4 of the kernel's peak for each coordinate, and a little for the next order."""
    peak = math.prod(1.0 / (width * math.sqrt(2.0 * math.pi)) for width in found.bandwidth)
    steps = [(axis[1] - axis[0]) / width for axis, width in zip(found.axes, found.bandwidth, strict=True)]
    return 1.01 * peak * sum(step**2 for step in steps) / 4.0


# --- densities --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("law", ["normal", "heavy", "two humps", "few"])
def test_against_direct_sums(dimension, law):
    rng = np.random.default_rng(dimension)
    sample = {
        "normal": lambda: rng.standard_normal((800, dimension)),
        "heavy": lambda: rng.standard_t(2, (400, dimension)),
        "two humps": lambda: rng.standard_normal((600, dimension)) + 6 * rng.integers(0, 2, (600, 1)),
        "few": lambda: rng.standard_normal((3, dimension)),
    }[law]()
    found = density(sample)
    assert found.bandwidth == pytest.approx(bandwidths(sample), rel=1e-14)
    points = np.concatenate([sample[:100], rng.uniform(-5, 12, (200, dimension))])
    exact = direct(points, sample, found.bandwidth)
    error = np.abs(found(points) - exact).max()
    assert error <= stated_error(found) + 1e-14
    assert error <= 0.01 * exact.max()


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_stated_error_is_reached_at_worst(dimension):
    """All mass between two grid points, seen from there."""
    found = density(np.zeros((2, dimension)), bandwidth=1.0, grid_size=512 if dimension == 1 else 128)
    middle = [[0.5 * (axis[len(axis) // 2 - 1] + axis[len(axis) // 2]) for axis in found.axes]]
    assert middle[0] == pytest.approx([0.0] * dimension, abs=1e-12)
    error = abs(found(middle)[0] - direct(middle, np.zeros((2, dimension)), found.bandwidth)[0])
    assert 0.9 * stated_error(found) <= error <= stated_error(found)


def test_a_finer_grid_is_closer():
    sample = np.random.default_rng(5).standard_normal(50)
    points = np.linspace(-3, 3, 500)
    errors = [
        np.abs(density(sample, grid_size=size)(points) - direct(points, sample, bandwidths(sample))).max()
        for size in (256, 1024, 4096)
    ]
    assert errors[0] > 8 * errors[1] > 64 * errors[2]


@pytest.mark.parametrize("dimension", [1, 2])
def test_masses_add_up(dimension):
    found = density(np.random.default_rng(0).exponential(size=(500, dimension)))
    assert found.values.min() >= 0.0
    assert found.values.sum() * found.cell == pytest.approx(1.0, rel=1e-12)
    assert found.values.shape == tuple(len(axis) for axis in found.axes)


def test_outside_the_grid_there_is_nothing():
    assert density([0.0, 1.0, 2.0])([-1e6, 1e6]).tolist() == [0.0, 0.0]
    found = density(np.random.default_rng(1).standard_normal((9, 2)))
    assert found([[0.0, 1e9]]).tolist() == [0.0]
    assert found([[found.axes[0][-1], found.axes[1][-1]]])[0] == pytest.approx(0.0, abs=1e-12)


def test_bandwidth_rules():
    """By hand: 16 numbers 0..15 have quartiles 3.75 and 11.25 and a variance of 68/3."""
    x = np.arange(16.0)
    spread = min(math.sqrt(68 / 3), 7.5 / 1.34)
    assert spread == math.sqrt(68 / 3)
    assert bandwidths(x) == pytest.approx((0.9 * spread * 16**-0.2,))
    assert bandwidths(x, "scott") == pytest.approx((1.06 * spread * 16**-0.2,))
    assert bandwidths(np.stack([x, 2 * x], axis=1)) == pytest.approx(
        (spread * 16 ** (-1 / 6), 2 * spread * 16 ** (-1 / 6))
    )
    outlier = np.append(x[:-1], 1e6)
    assert bandwidths(outlier) == pytest.approx((0.9 * 7.5 / 1.34 * 16**-0.2,))
    mostly_tied = np.append(np.zeros(15), 4.0)
    assert bandwidths(mostly_tied) == pytest.approx((0.9 * 16**-0.2,))


# --- the integral of the difference -----------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.5, 0.3, 0.9])
def test_two_atoms_by_closed_form(prior):
    """One kernel each, a apart: the densities p·φ(x) and (1 - p)·φ(x - a) cross once, at a/2 + ln(p/(1-p))/a."""
    a, p = 1.3, prior
    crossing = a / 2 + math.log(p / (1 - p)) / a
    exact = p * (2 * ndtr(crossing) - 1) + (1 - p) * (1 - 2 * ndtr(crossing - a))
    found = total_variation([0.0, 0.0], [a, a], prior, bandwidth=1.0, grid_size=4096)
    assert found == pytest.approx(float(exact), abs=1e-5)


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_normal_laws(shift):
    """2Φ(shift/2) - 1, up to the noise and the blur of 20,000 samples."""
    rng = np.random.default_rng(9)
    found = total_variation(rng.standard_normal(20_000), rng.standard_normal(20_000) + shift)
    assert found == pytest.approx(2 * ndtr(shift / 2) - 1, abs=0.03)


def test_two_dimensions_separate_what_one_does_not():
    rng = np.random.default_rng(11)
    first = rng.standard_normal((4000, 1)) * [1.0, 1.0] + 0.1 * rng.standard_normal((4000, 2))
    second = rng.standard_normal((4000, 1)) * [1.0, -1.0] + 0.1 * rng.standard_normal((4000, 2))
    assert total_variation(first[:, 0], second[:, 0]) < 0.08
    assert total_variation(first, second, bandwidth=0.1) > 0.7


def test_bias_where_the_bandwidth_is_too_small():
    """Equal laws, 300 samples each: 1 as the bandwidth vanishes."""
    rng = np.random.default_rng(12)
    first, second = rng.random(300), rng.random(300)
    values = [total_variation(first, second, bandwidth=width) for width in (0.3, 0.03, 0.003, 3e-5)]
    assert values == sorted(values)
    assert values[0] < 0.05
    assert values[-1] > 0.95


@given(st.integers(0, 2**32), st.floats(0.01, 0.99), st.integers(1, 2), st.floats(0, 5))
def test_range_and_symmetry(seed, prior, dimension, shift):
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((30, dimension)), rng.standard_normal((20, dimension)) + shift
    found = total_variation(first, second, prior)
    assert abs(2 * prior - 1) <= found <= 1.0
    assert found == pytest.approx(total_variation(second, first, 1 - prior), abs=1e-9)
    assert total_variation(first, first, prior) == pytest.approx(abs(2 * prior - 1), abs=1e-9)


def test_the_mean_lies_within_mcdiarmids_distance():
    """The spread of U_N around its mean, at a fixed bandwidth; 200 runs, at most 5 % may exceed it."""
    rng = np.random.default_rng(13)
    prior, n1, n2 = 0.3, 60, 200
    values = np.array(
        [
            total_variation(rng.standard_normal(n1), rng.standard_normal(n2) + 0.5, prior, bandwidth=0.3)
            for _ in range(200)
        ]
    )
    radius = math.sqrt(2 * math.log(2 / 0.05) * (prior**2 / n1 + (1 - prior) ** 2 / n2))
    assert np.mean(np.abs(values - values.mean()) > radius) <= 0.05


def test_one_bandwidth_for_both():
    """The geometric mean of the two rules."""
    rng = np.random.default_rng(14)
    first, second = rng.standard_normal(50), 3 * rng.standard_normal(80)
    width = math.sqrt(bandwidths(first)[0] * bandwidths(second)[0])
    assert total_variation(first, second) == pytest.approx(total_variation(first, second, bandwidth=width), rel=1e-12)


def test_far_from_zero():
    """A billion away the grid loses no digits: the same estimate as around 0, for numbers that floats hold exactly."""
    rng = np.random.default_rng(0)
    first, second = (np.round(rng.normal(shift, 1, 400) * 2**12) / 2**12 for shift in (0.0, 1.0))
    near, far = total_variation(first, second), total_variation(first + 2**30, second + 2**30)
    assert far == pytest.approx(near, abs=1e-6)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "options", "error", "message"),
    [
        ([1.0, 1.0, 1.0], {}, InputError, "constant"),
        ([[1.0, 2.0], [2.0, 2.0]], {}, InputError, "constant coordinate 1"),
        ([1.0], {}, InputError, "at least 2 points"),
        ([], {}, InputError, "at least 2 points"),
        ([1.0, math.nan], {}, InputError, "finite"),
        ([1.0, math.inf], {}, InputError, "finite"),
        (["a", "b"], {}, InputTypeError, "sample"),
        (np.zeros((3, 3)), {}, InputError, "shape"),
        ([1.0, 2.0], {"bandwidth": 0.0}, InputError, "bandwidth"),
        ([1.0, 2.0], {"bandwidth": math.nan}, InputError, "bandwidth"),
        ([1.0, 2.0], {"bandwidth": [1.0, 2.0]}, InputError, "bandwidth"),
        ([1.0, 2.0], {"bandwidth": "best"}, InputError, "bandwidth"),
        ([1.0, 2.0], {"bandwidth": None}, InputTypeError, "bandwidth"),
        ([1.0, 2.0], {"grid_size": 1}, InputError, "grid_size"),
        ([0.0, 1.0], {"bandwidth": 1e-9}, InputError, "take logarithms"),
        ([1e16, 1e16 + 2], {"bandwidth": 0.5}, InputError, "rescale"),
        ([1.0, 1.0 + 2**-52, 1.0 + 2**-51], {}, InputError, "rescale"),
        ([1.0, 1.0 + 1e-12], {"bandwidth": 1e-15}, InputError, "rescale"),
        ([0.0, 5e-324, 1e-323], {}, InputError, "sample|bandwidth"),
        ([0.0, 1e-151], {"bandwidth": 1e-151}, InputError, "rescale"),
    ],
)
def test_bad_input(sample, options, error, message):
    with pytest.raises(error, match=message):
        density(sample, **options)


def test_bad_pairs():
    with pytest.raises(InputError, match="non_members must have 1 coordinates"):
        total_variation([1.0, 2.0], [[1.0, 2.0], [2.0, 3.0]])
    with pytest.raises(InputError, match="members must be a sample with spread"):
        total_variation([1.0, 1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="prior"):
        total_variation([1.0, 2.0], [1.0, 2.0], 1.0)
    with pytest.raises(InputError, match="points must have 1 coordinates"):
        density([1.0, 2.0])([[1.0, 2.0]])
    assert 0.0 < total_variation([1.0, 1.0], [1.5, 1.5], bandwidth=1.0) < 1.0
