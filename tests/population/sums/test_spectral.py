"""Exact laws of noisy subset sums, against enumerated worlds, the hypergeometric law, and independent numbers."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

import whosin
from whosin.errors import InputError
from whosin.numerics.gaussian_noise import noise_for
from whosin.population.sums import spectral
from whosin.population.sums.pairwise import pairwise_divergences, pairwise_epsilons
from whosin.population.sums.spectral import SubsetSumLaws
from whosin.worlds.continuous import _GaussianMixtures, _LaplaceMixtures

FIXTURE = json.loads((Path(__file__).parents[2] / "data" / "fixtures.json").read_text(encoding="utf-8"))["gauss"]
MECHANISMS = {"gaussian": whosin.mechanisms.Gaussian, "laplace": whosin.mechanisms.Laplace}
SPREAD = [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0]


@pytest.fixture
def quick(monkeypatch):
    """Fewer frequencies for Laplace noise: a quarter of the time, and wider enclosures; nothing is enumerated."""
    monkeypatch.setattr(spectral, "ENUMERATED", 0)
    monkeypatch.setattr(spectral, "_MOST_FREQUENCIES", 2**15)


def play(f, k, scale, noise):
    """The game in which every k-subset is enumerated; records are positions, so that values may repeat."""
    query = MECHANISMS[noise](lambda rows: sum(f[i] for i in rows), scale)
    return whosin.worlds.uniform_subsets(list(range(len(f))), k).play(query)


# --- independent numbers ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fixture_laws():
    return SubsetSumLaws(np.array(FIXTURE["X"]) / FIXTURE["n"], FIXTURE["n"], FIXTURE["noise"])


@pytest.mark.parametrize("epsilon", FIXTURE["delta"])
def test_fixture(fixture_laws, epsilon):
    """Fifteen digits by mpmath."""
    truth = float(FIXTURE["delta"][epsilon]["in_out_mp"])
    lower, upper = fixture_laws.divergence(FIXTURE["record"], float(epsilon))
    assert lower <= truth <= upper
    assert upper - lower <= 1e-11


@pytest.mark.parametrize(
    ("half", "label", "printed"), [(100, 1.0, 0.336), (100, 5.0, 0.643), (1000, 1.0, 0.130), (1000, 5.0, 0.155)]
)
def test_normal_pool(half, label, printed):
    """Largest value and median of a normal pool; an independent script's numbers, to their three digits."""
    x = np.random.default_rng(5).standard_normal(2 * half) / half
    scale = (x.max() - x.min()) * noise_for(label, 0.01, 1.0)
    limits = SubsetSumLaws(x, half, scale, records=[int(x.argmax()), int(np.argsort(x)[half])]).epsilon(0.01)
    assert limits[0, 0] <= limits[0, 1] <= limits[0, 0] + 1e-7
    assert limits[0] == pytest.approx(printed, abs=5.1e-4)
    np.testing.assert_array_equal(limits[1], [0.0, 0.0])


@pytest.mark.parametrize(("noise", "width"), [("gaussian", 1e-9), ("laplace", 1e-3)])
@pytest.mark.parametrize(("ones", "k"), [(150, 200), (3, 40)])
def test_zeros_and_ones(noise, width, ones, k):
    """400 numbers that are 0 or 1: the sum is hypergeometric, and the characteristic function revives at 2π.

    The divergence of the two mixtures comes from the exact game's arithmetic, between zeros in closed form.
    """
    f = np.zeros(400)
    f[:ones] = 1.0
    scale, counts = 0.7, np.arange(k + 1)
    laws = SubsetSumLaws(f, k, scale, noise, records=[0])  # record 0 is a 1
    weights = hypergeom(399, ones - 1, k - 1).pmf(counts - 1), hypergeom(399, ones - 1, k).pmf(counts)
    mixtures = (_GaussianMixtures if noise == "gaussian" else _LaplaceMixtures)(counts / scale)
    for epsilon, swapped in ((0.0, False), (0.1, False), (0.1, True)):
        p, q = weights[::-1] if swapped else weights
        one, other, error = mixtures.masses(p, q, math.exp(epsilon))
        truth = one - math.exp(epsilon) * other
        lower, upper = laws.divergence(0, epsilon, swapped)
        assert lower - 1e-12 <= truth + error
        assert truth - error <= upper + 1e-12
        assert upper - lower <= width


# --- enumerated worlds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [SPREAD, [0.0, 0.0, 1.0, 1.0, 1.0, 2.0], [0.1, 7.0, -3.0], [1e6, 1e6 + 1, 1e6 + 3.5]])
def test_world_gaussian(f):
    for k in {1, len(f) // 2, len(f) - 1}:
        for scale in (0.4, 2.0):
            game, laws = play(f, k, scale, "gaussian"), SubsetSumLaws(f, k, scale)
            for record, epsilon, swapped in itertools.product((0, len(f) - 1), (0.0, 0.7), (False, True)):
                truth = game._divergence(record, math.exp(epsilon), swapped)
                lower, upper = laws.divergence(record, epsilon, swapped)
                assert lower - 1e-13 <= truth
                assert truth - 2.0 * game.error <= upper + 1e-13
                assert upper - lower <= 1e-9


@pytest.mark.parametrize("k", [2, 5])
def test_world_laplace(k, monkeypatch):
    monkeypatch.setattr(spectral, "ENUMERATED", 0)
    game, laws = play(SPREAD, k, 1.3, "laplace"), SubsetSumLaws(SPREAD, k, 1.3, "laplace", records=[2, 7])
    for record, epsilon, swapped in itertools.product((2, 7), (0.0, 0.4), (False, True)):
        truth = game._divergence(record, math.exp(epsilon), swapped)
        lower, upper = laws.divergence(record, epsilon, swapped)
        assert lower - 1e-13 <= truth <= upper + 1e-13
        assert upper - lower <= 1e-4


@pytest.mark.parametrize(("noise", "width"), [("gaussian", 1e-8), ("laplace", 5e-3)])
def test_epsilon_of_the_world(noise, width, quick):
    game, laws = play(SPREAD[1:], 3, 1.5, noise), SubsetSumLaws(SPREAD[1:], 3, 1.5, noise, records=[0, 6])
    limits = laws.epsilon(0.05)
    truth = game.pmp(0.05).epsilon  # of the most exposed record, the last one
    assert limits[:, 0].max() - 1e-9 <= truth <= limits[:, 1].max() + 1e-9
    assert np.all(limits[:, 1] - limits[:, 0] <= width)
    for row, record in enumerate((0, 6)):
        low, high = limits[row]
        assert max(game._divergence(record, math.exp(high), side) for side in (False, True)) <= 0.05 + 1e-9
        assert max(game._divergence(record, math.exp(low * 0.999 - 1e-9), side) for side in (False, True)) > 0.05


def test_densities():
    laws = SubsetSumLaws(SPREAD, 3, 0.5)
    points, inside, outside = laws.densities(7)
    for density, member in ((inside, True), (outside, False)):
        sums = [sum(SPREAD[i] for i in s) for s in itertools.combinations(range(8), 3) if (7 in s) == member]
        direct = np.mean([np.exp(-(((points - c) / 0.5) ** 2) / 2) for c in sums], axis=0) / (
            0.5 * math.sqrt(2 * math.pi)
        )
        np.testing.assert_allclose(density, direct, atol=1e-13)


def test_two_records():
    laws = SubsetSumLaws([0.0, 1.0], 1, 0.8)
    bound = pairwise_divergences([0.0, 1.0], 0.8, 0.3)[0]
    for swapped in (False, True):
        lower, upper = laws.divergence(1, 0.3, swapped)
        assert lower <= bound <= upper * (1 + 1e-11)
        assert upper - lower <= 1e-11


# --- what must hold ---------------------------------------------------------------------------------------------------


def test_complement_is_the_same_attack():
    """Publishing the sum of k is publishing that of the N - k others: in and out change roles."""
    f = np.random.default_rng(0).standard_normal(50)
    one, two = SubsetSumLaws(f, 15, 1.2, records=[3]), SubsetSumLaws(-f, 35, 1.2, records=[3])
    for swapped in (False, True):
        assert one.divergence(3, 0.2, swapped) == pytest.approx(two.divergence(3, 0.2, not swapped), abs=1e-11)


def test_never_above_the_pairwise_bound(quick):
    f = np.random.default_rng(1).standard_normal(60) ** 3
    for noise in ("gaussian", "laplace"):
        laws = SubsetSumLaws(f, 20, 0.1, noise, records=[0, 1])
        limits = laws.epsilon(1e-4)
        assert np.all(limits[:, 0] <= limits[:, 1])
        assert np.all(limits[:, 1] <= pairwise_epsilons(f, 0.1, 1e-4, noise=noise, records=[0, 1]))


def test_wide_enclosures_stay_enclosures(monkeypatch):
    """With hardly any frequencies left nothing is known, and that is what is said."""
    full = SubsetSumLaws(SPREAD, 4, 0.5, records=[7])
    monkeypatch.setattr(spectral, "_MOST_FREQUENCIES", 12)
    cut = SubsetSumLaws(SPREAD, 4, 0.5, records=[7])
    lower, upper = cut.divergence(7, 0.3)
    assert lower <= full.divergence(7, 0.3)[0]
    assert full.divergence(7, 0.3)[1] <= upper
    assert upper - lower > 1e-3
    assert upper <= pairwise_divergences(SPREAD, 0.5, 0.3, records=[7])[0]


@pytest.mark.parametrize("bend", [0.1, 3.0, 100.0])
def test_positive_part_of_cubics(bend):
    """Random values and second derivatives; large ones make cubics with up to three zeros in a cell."""
    rng = np.random.default_rng(2)
    t = (np.arange(4000) + 0.5)[:, None] / 4000
    for count in [2] * 60 + [12] * 20:  # two points: all cells without, or all with, a change of sign
        height, second, step = rng.standard_normal(count), bend * rng.standard_normal(count), rng.uniform(0.2, 1.5)
        after, second_after = np.roll(height, -1), np.roll(second, -1)
        cubic = height * (1 - t) + after * t
        cubic += step**2 / 6 * (second * ((1 - t) ** 3 - (1 - t)) + second_after * (t**3 - t))
        truth = float(np.maximum(cubic, 0.0).mean(axis=0).sum() * step)
        around = np.append(height, height[0]), np.append(second, second[0]), step
        low, high = spectral._positive_part(*around, 0.0)
        assert low <= truth + 1e-5 * (1 + bend)
        assert truth <= high + 1e-5 * (1 + bend)
        if bend < 1.0 and step < 0.5:
            assert high - low <= 0.01 * count
        assert spectral._positive_part(*around, 1e9)[1] >= truth - 1e-5 * (1 + bend)


@pytest.mark.parametrize("points", [32, 64, 256])
def test_few_points_widen_gaussian(monkeypatch, points):
    truth = float(FIXTURE["delta"]["0.5"]["in_out_mp"])
    monkeypatch.setattr(spectral, "_MOST_POINTS", points)
    laws = SubsetSumLaws(np.array(FIXTURE["X"]) / FIXTURE["n"], FIXTURE["n"], FIXTURE["noise"], records=[7])
    lower, upper = laws.divergence(7, 0.5)
    assert lower <= truth <= upper
    assert len(laws.densities(7)[0]) == points


@pytest.mark.parametrize("limit", ["_MOST_FREQUENCIES", "_MOST_PAIRS", "_MOST_KEPT", "_MOST_POINTS"])
def test_budgets_widen_laplace(monkeypatch, limit):
    monkeypatch.setattr(spectral, "ENUMERATED", 0)
    monkeypatch.setattr(spectral, "_MOST_FREQUENCIES", 2**14)
    truth = play(SPREAD, 4, 1.0, "laplace")._divergence(7, 1.2, False)
    for number in (64, 4096):
        monkeypatch.setattr(spectral, limit, number)
        lower, upper = SubsetSumLaws(SPREAD, 4, 1.0, "laplace", records=[7]).divergence(7, math.log(1.2))
        assert lower <= truth <= upper


def test_large_epsilon_falls_back():
    """In and out hardly overlap: the enclosures are too wide to follow e^ε, and the pairwise bound takes over."""
    limits = SubsetSumLaws(SPREAD, 4, 0.1, records=[7]).epsilon(1e-3)
    assert 10.0 < limits[0, 0] < limits[0, 1] < math.inf
    assert limits[0, 1] == pairwise_epsilons(SPREAD, 0.1, 1e-3, records=[7])[0]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_equal_records(noise, quick):
    laws = SubsetSumLaws(np.full(30, 1 / 3), 10, 0.5, noise, records=[0, 5])
    assert laws.divergence(0, 0.0) == (0.0, 0.0)
    np.testing.assert_array_equal(laws.epsilon(0.0), np.zeros((2, 2)))


def test_ends_of_delta():
    laws = SubsetSumLaws(SPREAD, 4, 1.0, records=[7])
    np.testing.assert_array_equal(laws.epsilon(1.0), [[0.0, 0.0]])
    low, high = laws.epsilon(0.0)[0]
    assert low > 1.0
    assert math.isinf(high)
    assert laws.divergence(7, math.inf) == (0.0, 0.0)


def test_epsilon_beyond_the_exponential(monkeypatch):
    """e^ε need not be a number; the divergence only falls."""
    laws = SubsetSumLaws(SPREAD, 4, 0.01, records=[7])
    for epsilon in (300.0, 709.0, 710.0, 1e6):
        lower, upper = laws.divergence(7, epsilon)
        assert lower == 0.0
        assert upper == pairwise_divergences(SPREAD, 0.01, epsilon, records=[7])[0]


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-300])
def test_tiny_delta(delta):
    low, high = SubsetSumLaws(SPREAD, 4, 1.0, records=[7]).epsilon(delta)[0]
    assert high == pairwise_epsilons(SPREAD, 1.0, delta, records=[7])[0]
    assert 10.0 < low < high


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_one_very_far_away(noise, monkeypatch):
    monkeypatch.setattr(spectral, "ENUMERATED", 0)
    monkeypatch.setattr(spectral, "_MOST_FREQUENCIES", 2**10)
    f = [0.0, 1.0, 1e120]
    limits = SubsetSumLaws(f, 1, 1.0, noise).epsilon(0.1)
    np.testing.assert_array_equal(limits[:, 1], pairwise_epsilons(f, 1.0, 0.1, noise=noise))
    assert np.all(limits[:, 0] <= limits[:, 1])


def test_progress():
    seen = []
    SubsetSumLaws(SPREAD, 4, 1.0, records=[0, 3, 7]).epsilon(0.01, progress=seen.append)
    assert seen == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_binomial_tail_lets_roots_be_few():
    for count, k, most in ((1000, 500, 250), (1000, 1, 60), (20, 10, 20)):
        p = spectral._tilt(count, k)
        whole = float(np.min(binom(count - 1, p).logpmf([k - 1, k])))
        roots, aliased = spectral._roots(count, k, p, whole)
        assert roots <= most
        others = [m for m in range(count) if m != k and (m - k) % roots == 0]
        assert sum(binom(count - 1, p).pmf(others)) / math.exp(whole) <= aliased


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"f": [1.0]}, "f must have at least two"),
        ({"f": [1.0, math.nan]}, "f must hold finite"),
        ({"f": [1.0, 0.0, 1e300], "scale": 1e-100}, "1e150"),
        ({"f": np.zeros((4, 2))}, "one number per record"),
        ({"k": 0}, "k must be"),
        ({"k": 3}, "k must be"),
        ({"k": 1.5}, "k must be"),
        ({"scale": 0.0}, "scale"),
        ({"scale": -1.0}, "scale"),
        ({"noise": "uniform"}, "noise"),
        ({"records": [3]}, "records"),
    ],
)
def test_bad_input(change, name):
    with pytest.raises(InputError, match=name):
        SubsetSumLaws(**({"f": [0.0, 1.0, 2.0], "k": 1, "scale": 1.0} | change))


def test_bad_questions():
    laws = SubsetSumLaws([0.0, 1.0, 2.0], 1, 1.0, records=[1])
    with pytest.raises(InputError, match="record must be one of"):
        laws.divergence(0, 0.1)
    with pytest.raises(InputError, match="record"):
        laws.divergence(3, 0.1)
    with pytest.raises(InputError, match="epsilon"):
        laws.divergence(1, -0.1)
    with pytest.raises(InputError, match="delta"):
        laws.epsilon(2.0)
