"""Proposition 12 for sums, against its definition, exact worlds, and itself with and without bins and blocks."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import whosin
from whosin.errors import InputError, InputTypeError
from whosin.numerics.gaussian_noise import (
    epsilon_for,
    laplace_epsilon_for,
    laplace_shift_divergence,
    noise_for,
    shift_divergence,
)
from whosin.population.sums import pairwise
from whosin.population.sums.pairwise import pairwise_divergences, pairwise_epsilons

FIXTURE = json.loads((Path(__file__).parents[2] / "data" / "fixtures.json").read_text(encoding="utf-8"))["gauss"]
DIVERGENCES = {"gaussian": shift_divergence, "laplace": laplace_shift_divergence}


def by_definition(f, scale, epsilon, record, noise):
    """The mean over the others of the divergence at their distance, one by one."""
    others = [row for i, row in enumerate(f) if i != record]
    return sum(float(DIVERGENCES[noise](math.dist(f[record], row) / scale, epsilon)) for row in others) / len(others)


@pytest.fixture
def binned(monkeypatch):
    """Bins even for small pools."""
    monkeypatch.setattr(pairwise, "EXACT_UP_TO", 0)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", FIXTURE["delta"])
def test_fixture(epsilon):
    found = pairwise_divergences(np.array(FIXTURE["X"]) / FIXTURE["n"], FIXTURE["noise"], float(epsilon), records=[7])
    assert found[0] == pytest.approx(FIXTURE["delta"][epsilon]["prop12"], rel=1e-11)


@pytest.mark.parametrize(("half", "label", "printed"), [(100, 1.0, 0.522), (100, 5.0, 2.848), (1000, 5.0, 2.371)])
def test_normal_pool(half, label, printed):
    """The record with the largest value of a normal pool; an independent script's numbers, to their three digits."""
    x = np.random.default_rng(5).standard_normal(2 * half) / half
    scale = (x.max() - x.min()) * noise_for(label, 0.01, 1.0)
    found = pairwise_epsilons(x, scale, 0.01, records=[int(x.argmax())])
    assert found[0] == pytest.approx(printed, abs=5.1e-4)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("dimension", [1, 3])
def test_smallest_epsilon_by_definition(noise, dimension):
    f = np.random.default_rng(dimension).standard_normal((9, dimension))
    for scale, delta in ((0.7, 0.05), (2.0, 1e-3)):
        for record, epsilon in enumerate(pairwise_epsilons(f, scale, delta, noise=noise)):
            assert by_definition(f, scale, epsilon, record, noise) <= delta
            assert by_definition(f, scale, epsilon * (1 - 1e-11) - 1e-13, record, noise) > delta
            above = pairwise_divergences(f, scale, epsilon, noise=noise, records=[record])[0]
            truth = by_definition(f, scale, epsilon, record, noise)
            assert truth <= above <= truth * (1 + 1e-11) + 1e-16


def test_two_records_are_one_pair():
    for delta in (1e-9, 0.01, 0.5):
        assert pairwise_epsilons([0.0, 3.0], 2.0, delta) == pytest.approx([epsilon_for(2.0, delta, 3.0)] * 2, rel=1e-10)
        laplace = pairwise_epsilons([0.0, 3.0], 2.0, delta, noise="laplace")
        assert laplace == pytest.approx([laplace_epsilon_for(2.0, delta, 3.0)] * 2, rel=1e-10)


def test_zero_where_little_is_seen():
    f = np.array([0.0, 0.1, 0.2, 9.0])
    assert pairwise_divergences(f, 10.0, 0.0)[1] < 0.3 < pairwise_divergences(f, 10.0, 0.0)[3]
    found = pairwise_epsilons(f, 10.0, 0.3)
    assert found[1] == 0.0 < found[3]


# --- it is a bound ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "noise"), [("Gaussian", "gaussian"), ("Laplace", "laplace")])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_above_the_exact_world(mechanism, noise, k):
    f = np.random.default_rng(8).standard_normal(6) * 2.0
    game = whosin.worlds.uniform_subsets(f.tolist(), k).play(getattr(whosin.mechanisms, mechanism)(sum, 1.5))
    assert pairwise_epsilons(f, 1.5, 0.05, noise=noise).max() >= game.pmp(0.05).epsilon - 1e-12
    for epsilon in (0.0, 0.4):
        bounds = pairwise_divergences(f, 1.5, epsilon, noise=noise)
        for i in range(6):
            for swapped in (False, True):
                assert game._divergence(i, math.exp(epsilon), swapped) <= bounds[i] + 1e-12


def test_attained_where_one_is_drawn_from_two():
    """N = 2, k = 1: in and out are two normals, and the bound is exact."""
    game = whosin.worlds.uniform_subsets([0.0, 1.0], 1).play(whosin.mechanisms.Gaussian(sum, 0.8))
    assert game.pmp(0.1).epsilon == pytest.approx(pairwise_epsilons([0.0, 1.0], 0.8, 0.1)[0], abs=1e-9)


# --- bins and blocks --------------------------------------------------------------------------------------------------


POOLS = {
    "normal": lambda rng: rng.standard_normal((100, 2)),
    "far from zero": lambda rng: 1e7 + rng.standard_normal((100, 2)),
    "heavy tails": lambda rng: rng.standard_cauchy((100, 1)),
    "clusters and duplicates": lambda rng: np.repeat(rng.standard_normal((10, 3)), 10, axis=0),
    "one far away": lambda rng: np.vstack([rng.standard_normal((99, 1)), [[1e9]]]),
}


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("name", POOLS)
def test_bins_never_lower_the_bound(name, noise, monkeypatch):
    f = POOLS[name](np.random.default_rng(11))
    for scale, delta in ((3.0, 1e-3), (0.2, 0.3)):
        exact = pairwise_epsilons(f, scale, delta, noise=noise)
        with monkeypatch.context() as patch:
            patch.setattr(pairwise, "EXACT_UP_TO", 0)
            binned = pairwise_epsilons(f, scale, delta, noise=noise)
        ordinary = exact < 200.0  # beyond 256 scales the bins do not tell distances apart
        assert np.all(binned >= exact * (1 - 1e-11))
        assert np.all(binned[ordinary] <= exact[ordinary] * (1 + 1e-3) + 1e-4)


def test_products_do_not_shorten_distances(binned):
    """All but one record equal, far from zero: rounding in |x|² + |y|² - 2xy must not hide the tiny distance."""
    f = np.full((50, 4), 1.0 / 3.0) + 1e3
    f[0] += 1e-4
    distance = math.dist(f[0], f[1])
    found = pairwise_epsilons(f, 1e-4, 0.01)
    assert found[0] >= epsilon_for(1e-4, 0.01, distance)
    assert np.all(found[1:] >= pairwise_epsilons(f[:2], 1e-4, 0.49)[0])


def test_chord_bound_of_bins():
    """E lies below the chord plus bend·w²/8 on random bins."""
    rng = np.random.default_rng(12)
    for noise, kind in pairwise._KINDS.items():
        for _ in range(300):
            low = 10 ** rng.uniform(-3, 1.5)
            high, epsilon = low * (1 + rng.uniform(0.001, 0.2)), 10 ** rng.uniform(-3, 2)
            share = np.linspace(0.0, 1.0, 23)
            values = DIVERGENCES[noise](low + share * (high - low), epsilon)
            chord = values[0] + share * (values[-1] - values[0])
            bend = kind.bend(np.array([low]), np.array([high]), np.array([epsilon]))
            assert np.all(values <= chord + bend * (high - low) ** 2 / 8 + 1e-15)


@pytest.mark.parametrize("memory", [1, 2**18, 2**21])
@pytest.mark.parametrize("exact", [True, False])
def test_memory_changes_nothing(memory, exact, monkeypatch):
    monkeypatch.setattr(pairwise, "EXACT_UP_TO", 3000 if exact else 0)
    f = np.random.default_rng(13).standard_normal((40, 3))
    whole = pairwise_epsilons(f, 2.0, 0.01)
    np.testing.assert_allclose(pairwise_epsilons(f, 2.0, 0.01, memory=memory), whole, rtol=1e-11)


def test_large_pool_in_blocks():
    """More records than are compared one by one: a few of them against the definition."""
    f = np.random.default_rng(14).standard_normal((3500, 2))
    chosen = [0, 1000, 3499]
    found = pairwise_epsilons(f, 4.0, 1e-3, records=chosen, memory=2**22)
    for epsilon, record in zip(found, chosen, strict=True):
        assert pairwise_divergences(f, 4.0, epsilon, records=[record])[0] <= 1e-3
        assert pairwise_divergences(f, 4.0, epsilon * 0.9998, records=[record])[0] > 1e-3


def test_polish_from_bins_and_from_zero(monkeypatch):
    f = np.random.default_rng(16).standard_normal((60, 2))
    for noise in ("gaussian", "laplace"):
        from_zero = pairwise_epsilons(f, 0.5, 0.01, noise=noise)
        with monkeypatch.context() as patch:
            patch.setattr(pairwise._Solver, "_BINS_FROM", 0)
            np.testing.assert_allclose(pairwise_epsilons(f, 0.5, 0.01, noise=noise), from_zero, rtol=1e-11)


def test_progress_and_choice_of_records():
    f, seen = np.random.default_rng(15).standard_normal(20), []
    every = pairwise_epsilons(f, 1.0, 0.05, progress=seen.append, memory=1)
    assert seen == pytest.approx([i / 20 for i in range(1, 21)])
    np.testing.assert_allclose(pairwise_epsilons(f, 1.0, 0.05, records=[7, 3, 7]), every[[7, 3, 7]], rtol=1e-11)


# --- ends and bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_equal_records_give_nothing_away(noise):
    for delta in (0.0, 1e-12, 0.1):
        np.testing.assert_array_equal(pairwise_epsilons(np.full((5, 2), 1 / 3), 0.1, delta, noise=noise), np.zeros(5))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("size", [1e-170, 1e-12, 1e12, 1e170])
def test_units_change_nothing(size, exact, monkeypatch):
    """Squares of the distances neither vanish nor overflow."""
    monkeypatch.setattr(pairwise, "EXACT_UP_TO", 3000 if exact else 0)
    for f in (np.array([0.0, 1.0, 3.0]), np.array([[0.0, 1.0], [2.0, 0.5], [-1.0, 0.0]])):
        for noise in ("gaussian", "laplace"):
            here, there = (pairwise_epsilons(unit * f, unit, 0.01, noise=noise) for unit in (1.0, size))
            np.testing.assert_allclose(there, here, rtol=1e-11 if exact else 1e-4)
            assert np.all(here > 0.5)
            values = [pairwise_divergences(unit * f, unit, 0.1, noise=noise) for unit in (1.0, size)]
            np.testing.assert_allclose(*values, rtol=1e-11)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("binned", [True, False])
def test_distances_whose_squares_vanish(dimension, binned, monkeypatch):
    monkeypatch.setattr(pairwise, "EXACT_UP_TO", 0 if binned else 3000)
    f = np.outer([0.0, 1e-200, 3e-200], np.ones(dimension))
    assert np.all(pairwise_divergences(f, 1.0, 0.0) >= 2e-201)
    for noise in ("gaussian", "laplace"):
        assert np.all(pairwise_epsilons(f, 1.0, 1e-300, noise=noise) > 0.0)


def test_reach_of_many_equal_distances():
    """The sum of a bin's distances is taken from above, however many: here rounding alone would lose 6e-12 of it."""
    bins, square = pairwise._Bins(1.0), 0.5768959017160944
    counts, reach = bins.histogram(np.full((1, 300_000), square))
    where = int(np.flatnonzero(counts[0])[0])
    inside = (math.sqrt(square) - bins.edges[where]) / bins.widths[where]
    assert reach[0, where] >= 300_000 * inside


def test_ends_of_delta():
    f = [0.0, 1.0, 5.0]
    np.testing.assert_array_equal(pairwise_epsilons(f, 1.0, 1.0), np.zeros(3))
    np.testing.assert_array_equal(pairwise_epsilons(f, 1.0, 0.0), np.full(3, np.inf))
    np.testing.assert_allclose(pairwise_epsilons(f, 1.0, 0.0, noise="laplace"), [5.0, 4.0, 5.0], rtol=1e-14)
    assert np.all(pairwise_epsilons(f, 1.0, 0.0, noise="laplace") >= [5.0, 4.0, 5.0])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"f": [1.0]}, "f must have at least two"),
        ({"f": []}, "f must have at least two"),
        ({"f": [1.0, math.nan]}, "f must hold finite"),
        ({"f": [[1.0, 2.0], [math.inf, 0.0]]}, "f must hold finite"),
        ({"f": np.zeros((2, 2, 2))}, "f must be an array of shape"),
        ({"f": np.zeros((3, 0))}, "f must be an array of shape"),
        ({"f": [0.0, 1e200]}, "1e150"),
        ({"f": [0.0, 1e300], "scale": 1e-100}, "1e150"),
        ({"scale": 0.0}, "scale"),
        ({"scale": -1.0}, "scale"),
        ({"scale": math.inf}, "scale"),
        ({"delta": 1.1}, "delta"),
        ({"noise": "cauchy"}, "noise"),
        ({"records": [2]}, "records"),
        ({"records": [-1]}, "records"),
        ({"records": [0.5]}, "records"),
        ({"records": []}, "records"),
        ({"memory": 0}, "memory"),
    ],
)
def test_bad_input(change, name):
    arguments = {"f": [0.0, 1.0], "scale": 1.0, "delta": 0.1} | change
    with pytest.raises(InputError, match=name):
        pairwise_epsilons(**arguments)


def test_words_are_no_numbers():
    with pytest.raises(InputTypeError, match="f must be an array of numbers"):
        pairwise_epsilons(["a", "b"], 1.0, 0.1)
    with pytest.raises(InputError, match="epsilon"):
        pairwise_divergences([0.0, 1.0], 1.0, -1.0)
