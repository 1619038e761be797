"""Exact neighbours and counts, against every pair evaluated directly, SciPy and scikit-learn."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from whosin.auditing.releases.matching import distance_blocks
from whosin.auditing.releases.matching.neighbours import ball_log_sums, counts_within, nearest
from whosin.errors import InputError


def all_distances(x, y):
    """√Σ(x - y)² of every pair in the order of summation that is documented: whatever numpy's sum does on a row."""
    x, y = (np.asarray(table, dtype=np.float64).reshape(len(table), -1) for table in (x, y))
    return np.stack([np.sqrt(((row - y) ** 2).sum(axis=1)) for row in x])


def check(x, y, *, k=1, prefixes=None, **options):
    distances, indices = nearest(x, y, k=k, prefixes=prefixes, **options)
    table = all_distances(x, y)
    sizes = prefixes or [len(y)]
    shape = (len(x), len(sizes), k)
    for place, size in enumerate(sizes):
        order = np.argsort(table[:, :size], axis=1, kind="stable")[:, :k]
        expected = np.take_along_axis(table, order, axis=1)
        np.testing.assert_array_equal(indices.reshape(shape)[:, place], order)
        np.testing.assert_allclose(distances.reshape(shape)[:, place], expected, rtol=1e-15, atol=0.0)
    assert distances.shape == (shape if prefixes else (len(x), k))
    assert indices.dtype == np.int64


def clouds(kind, dimension, seed, n=70, m=260):
    """Points and references that make single precision, ties or offsets matter."""
    rng = np.random.default_rng([seed, dimension])
    x, y = rng.standard_normal((n, dimension)), rng.standard_normal((m, dimension))
    if kind == "far":
        x, y = x + 1e6, y + 1e6
    elif kind == "clusters":
        x, y = (table + 1e6 * rng.integers(0, 2, (len(table), 1)) for table in (x, y))
    elif kind == "whole":
        x, y = rng.integers(0, 3, x.shape).astype(float), rng.integers(0, 3, y.shape).astype(float)
    elif kind == "copies":
        y[::2] = y[0]
        x[::3] = y[0]
        x[1::3] = y[1]
    elif kind == "close":
        y = y[:1] + 1e-9 * y
    elif kind == "small":
        x, y = x * 1e-140, y * 1e-140
    elif kind == "large":
        x, y = x * 1e140, y * 1e140
    elif kind == "outlier":
        y[0] = 1e7
    elif kind == "constant":
        x, y = np.full_like(x, 3.0), np.full_like(y, 3.0)
    return x, y


KINDS = ["plain", "far", "clusters", "whole", "copies", "close", "small", "large", "outlier", "constant"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 7, 40])
def test_every_pair(kind, dimension):
    x, y = clouds(kind, dimension, 1)
    check(x, y)
    check(x, y, k=5)
    check(x, y, k=2, prefixes=[2, 3, 100, 260])


def test_many_coordinates():
    x, y = clouds("plain", 3072, 2, n=20, m=150)
    check(x, y, k=2)
    check((200 + 20 * x).astype(np.uint8), (200 + 20 * y).astype(np.uint8), k=3)


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("jobs", [1, 2])
def test_blocks_and_threads_do_not_show(monkeypatch, dimension, jobs):
    monkeypatch.setattr(distance_blocks, "_ROWS", 7)
    monkeypatch.setattr(distance_blocks, "_WIDTH", 13)
    monkeypatch.setattr(distance_blocks, "_DOUBTFUL", 2)
    for kind in ("plain", "whole", "clusters"):
        x, y = clouds(kind, dimension, 3)
        shares = []
        check(x, y, k=3, prefixes=[5, 13, 14, 200], n_jobs=jobs, progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        radii = np.quantile(all_distances(x, y), [0.02, 0.5])
        one, two = (counts_within(x, y, radii, n_jobs=n) for n in (1, jobs))
        np.testing.assert_array_equal(one, two)


def test_against_scikit_learn():
    from sklearn.neighbors import NearestNeighbors

    x, y = clouds("plain", 12, 5, n=300, m=2000)
    distances, indices = NearestNeighbors(n_neighbors=4, algorithm="kd_tree").fit(y).kneighbors(x)
    found, places = nearest(x, y, k=4)
    np.testing.assert_array_equal(places, indices)
    np.testing.assert_allclose(found, distances, rtol=1e-14)


def test_single_precision_alone_would_fail():
    """Two references whose distances differ by less than single precision can tell; the nearer one comes second."""
    x = np.zeros((1, 2))
    y = np.array([[1.0, 1.0], [1.0, 1.0 - 2e-9], [5.0, 5.0]])
    gaps = np.float32(all_distances(x, y) ** 2)
    assert gaps[0, 0] == gaps[0, 1]
    assert nearest(x, y)[1].tolist() == [[1]]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
)
def test_on_a_line(points, references):
    """The rounded distances and the lowest index among equally near ones, also where rounding makes them equal."""
    distances, indices = nearest(points, references)
    for x, distance, index in zip(points, distances[:, 0], indices[:, 0], strict=True):
        gaps = [abs(x - y) for y in references]
        assert distance == min(gaps)
        assert index == gaps.index(min(gaps))
        exact = min(abs(Fraction(x) - Fraction(y)) for y in references)
        assert distance == pytest.approx(float(exact), rel=1e-15)


def test_on_a_line_rounding_makes_ties():
    references = [3e-17, 1e-17, 2e-17, -1e-17, 0.5]
    assert nearest([1.5, -1.0, 2e-17, 1.0], references[:4])[1].ravel().tolist() == [0, 0, 2, 0]
    assert nearest([0.25], [0.5, 0.0])[1].tolist() == [[0]]
    assert nearest([0.25], [0.0, 0.5])[1].tolist() == [[0]]


# --- balls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 7, 40])
def test_balls(kind, dimension):
    x, y = clouds(kind, dimension, 4)
    table = all_distances(x, y)
    radii = np.quantile(table, [0.0, 0.01, 0.3, 1.0])
    counts = counts_within(x, y, radii)
    floor = float(np.quantile(table, 0.4)) or 1.0
    sums = ball_log_sums(x, y, radii, floor=floor)
    inside = table[:, :, None] <= radii
    np.testing.assert_array_equal(counts, inside.sum(axis=1))
    logs = -np.log(np.maximum(table, floor))
    np.testing.assert_allclose(sums, (logs[:, :, None] * inside).sum(axis=1), rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(counts_within(x, y, radii[2])[:, 0], counts[:, 2])


def test_counts_against_scipy():
    x, y = clouds("plain", 5, 6, n=200, m=1500)
    np.testing.assert_array_equal(counts_within(x, y, [1.7, 0.0])[:, 0], (cdist(x, y) <= 1.7).sum(axis=1))


def test_a_copy_weighs_infinitely_without_a_floor():
    y = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert ball_log_sums(y[:1], y, 10.0)[0, 0] == math.inf
    assert ball_log_sums(y[:1], y, 10.0, floor=0.1)[0, 0] == pytest.approx(-math.log(0.1) - math.log(5.0))
    assert ball_log_sums([[3.0, 0.0]], y, 3.5)[0, 0] == pytest.approx(-math.log(3.0))
    assert ball_log_sums([[9.0, 9.0]], y, 1.0)[0, 0] == 0.0


@pytest.mark.parametrize("kind", ["plain", "small", "large"])
def test_a_radius_beyond_everything(kind):
    x, y = clouds(kind, 3, 7)
    assert np.all(counts_within(x, y, [1e300, 1e200]) == len(y))
    np.testing.assert_allclose(
        ball_log_sums(x, y, 1e300)[:, 0], -np.log(all_distances(x, y)).sum(axis=1), rtol=1e-12, atol=1e-9
    )


def test_the_edge_belongs_to_the_ball():
    assert counts_within([[0.0, 0.0]], [[3.0, 4.0], [3.0, 4.0 + 1e-15], [3.0, 4.0 - 1e-15]], [5.0, 0.0]).tolist() == [
        [2, 0]
    ]
    assert counts_within([[1.0]], [[1.0], [2.0]], 0.0).tolist() == [[1]]


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        ([1e300], [1.0], {}, InputError, "1e\\+290"),
        ([1.0], [1.0, math.inf], {}, InputError, "row 1"),
        ([1.0], [1.0, 2.0], {"prefixes": [3]}, InputError, "prefixes"),
        ([[1.0, 2.0]], [[1.0, 2.0]], {"n_jobs": 0}, InputError, "n_jobs"),
    ],
)
def test_bad_input(x, y, options, error, message):
    with pytest.raises(error, match=message):
        nearest(x, y, **options)
