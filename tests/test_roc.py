"""Roc: built from points, laws or functions, and read in every direction, against definitions spelt out here."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from loops import each

import whosin as wi
from whosin import Roc

INF = math.inf
TRIANGLE = Roc([0.25], [0.75])
SMOOTH = [wi.GaussianDP(0.3).roc, wi.GaussianDP(2.0).roc, wi.DPSGD(1.0, 0.1, 1).roc, wi.DPSGD(0.7, 0.6, 1).roc]


def weights(size):
    """Non-negative numbers, some of them zero, that are made to sum to one."""
    return st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any)


laws = st.integers(1, 6).flatmap(lambda size: st.tuples(weights(size), weights(size)))
grid = st.integers(0, 1000).map(lambda i: i / 1000)
points = st.lists(st.tuples(grid, grid), min_size=1, max_size=8)
rates = st.floats(0.0, 1.0)


def normalised(pair):
    return tuple(np.array(law) / sum(law) for law in pair)


def rising(pairs):
    """Random points made into a curve that never falls."""
    x, y = np.sort([p[0] for p in pairs]), np.sort([p[1] for p in pairs])
    return Roc(x, y)


# --- building --------------------------------------------------------------------------------------------------------


def test_points_are_sorted_and_the_corners_added():
    roc = Roc([0.5, 0.1, 0.1, 0.3], [0.9, 0.2, 0.4, 0.6])
    assert np.array_equal(roc.vertices, [[0.0, 0.0], [0.1, 0.4], [0.3, 0.6], [0.5, 0.9], [1.0, 1.0]])


def test_a_point_at_no_false_alarm_replaces_the_corner():
    assert np.array_equal(Roc([0.0], [0.3]).vertices, [[0.0, 0.3], [1.0, 1.0]])
    assert np.array_equal(Roc([1.0], [0.5]).vertices, [[0.0, 0.0], [1.0, 1.0]])
    assert np.array_equal(Roc([0.0, 1.0], [0.0, 1.0]).vertices, [[0.0, 0.0], [1.0, 1.0]])


@given(points)
def test_any_rising_points_make_a_curve(pairs):
    roc = rising(pairs)
    x, y = roc.vertices.T
    assert np.all(np.diff(x) > 0)
    assert np.all(np.diff(y) >= 0)
    assert x[0] == 0.0
    assert (x[-1], y[-1]) == (1.0, 1.0)
    for fpr, tpr in zip(np.sort([p[0] for p in pairs]), np.sort([p[1] for p in pairs]), strict=True):
        assert roc.tpr(fpr) >= tpr - 1e-15


def test_vertices_are_a_copy():
    roc = Roc([0.25], [0.75])
    roc.vertices[:] = 0.0
    assert roc.tpr(0.25) == 0.75
    given_points = np.array([0.25])
    roc = Roc(given_points, [0.75])
    given_points[0] = 0.9
    assert roc.tpr(0.25) == 0.75


def test_a_smooth_curve_has_no_vertices():
    assert SMOOTH[0].vertices is None
    assert TRIANGLE.vertices is not None


# --- from two laws ---------------------------------------------------------------------------------------------------


@given(laws)
def test_from_likelihoods_is_the_best_over_all_events(pair):
    """Every event is an attack; the curve is the least concave one above them all."""
    inside, outside = normalised(pair)
    roc = Roc.from_likelihoods(inside, outside)
    attacks = []
    for chosen in itertools.product((0.0, 1.0), repeat=len(inside)):
        event = np.array(chosen)
        attacks.append((min(1.0, event @ outside), min(1.0, event @ inside)))
        assert roc.tpr(attacks[-1][0]) >= attacks[-1][1] - 1e-12
    for fpr, tpr in roc.vertices:
        assert any(abs(fpr - f) < 1e-12 and abs(tpr - t) < 1e-12 for f, t in attacks)
    assert roc.is_concave


@given(laws, st.floats(0.0, 50.0))
def test_divergence_is_the_positive_part_summed(pair, gamma):
    inside, outside = normalised(pair)
    expected = np.maximum(inside - gamma * outside, 0.0).sum()
    assert Roc.from_likelihoods(inside, outside).divergence(gamma) == pytest.approx(expected, abs=1e-12)


@given(laws)
def test_slopes_are_the_extreme_likelihood_ratios(pair):
    exact_in, exact_out = ([Fraction(w, sum(law)) for w in law] for law in pair)
    ratios = [p / q if q else INF for p, q in zip(exact_in, exact_out, strict=True) if p or q]
    low, high = Roc.from_likelihoods(*normalised(pair)).slopes
    assert high == pytest.approx(float(max(ratios)), rel=1e-9)
    assert low == pytest.approx(float(min(ratios)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ratio", [Fraction(1, 7), Fraction(9, 10)])
def test_the_smallest_slope_is_never_above_the_truth(ratio):
    """Near (1, 1) vertices are closer than their rounding; what is left of their slope is rounded down."""
    for start in np.geomspace(1e-16, 0.5, 200):
        x, y = 1.0 - start, float(1 - ratio * Fraction(start))
        low = Roc([0.0, x], [0.0, max(x, y)]).slopes[0]
        assert Fraction(low) * (1 - Fraction(x)) <= ratio * Fraction(start) or low == 0.0
        assert low <= float(ratio) * (1 + 1e-15)
        if start > 1e-6:
            assert low == pytest.approx(float(ratio), rel=1e-8)
    assert Roc([0.0], [0.0]).slopes == (1.0, 1.0)


@given(laws)
def test_the_order_of_the_outputs_does_not_matter(pair):
    inside, outside = normalised(pair)
    one, other = Roc.from_likelihoods(inside, outside), Roc.from_likelihoods(inside[::-1], outside[::-1])
    assert one.dominates(other, 1e-12)
    assert other.dominates(one, 1e-12)


@given(laws)
def test_exchanging_the_laws_mirrors_the_curve(pair):
    inside, outside = normalised(pair)
    mirrored, exchanged = Roc.from_likelihoods(inside, outside).reversed(), Roc.from_likelihoods(outside, inside)
    assert mirrored.dominates(exchanged, 1e-12)
    assert exchanged.dominates(mirrored, 1e-12)


def test_equal_laws_give_the_diagonal_and_disjoint_ones_the_corner():
    assert np.array_equal(Roc.from_likelihoods([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]).vertices, [[0, 0], [1, 1]])
    assert np.array_equal(Roc.from_likelihoods([1, 0, 0], [0, 0.5, 0.5]).vertices, [[0, 1], [1, 1]])


def test_outputs_that_never_come_are_ignored():
    assert np.array_equal(
        Roc.from_likelihoods([0.75, 0.0, 0.25], [0.25, 0.0, 0.75]).vertices, [[0, 0], [0.25, 0.75], [1, 1]]
    )


def test_likelihood_ratios_far_beyond_floats_are_ordered():
    roc = Roc.from_likelihoods([1e-300, 0.5, 0.5], [0.0, 1e-300, 1.0])
    assert roc.tpr(0.0) == 1e-300
    assert roc.tpr(1e-300) == pytest.approx(0.5, rel=1e-12)


# --- reading ---------------------------------------------------------------------------------------------------------


def test_tpr_interpolates():
    assert TRIANGLE.tpr(0.125) == 0.375
    assert TRIANGLE.tpr([0.0, 0.25, 0.625, 1.0]) == pytest.approx([0.0, 0.75, 0.875, 1.0], abs=1e-15)


def test_fpr_is_the_smallest_that_reaches():
    roc = Roc([0.0, 0.2, 0.4, 0.6], [0.1, 0.5, 0.5, 1.0])
    assert roc.fpr([0.0, 0.05, 0.1, 0.3, 0.5, 0.75, 1.0]) == pytest.approx([0, 0, 0, 0.1, 0.2, 0.5, 0.6], abs=1e-15)
    assert Roc([0.0], [1.0]).fpr([0.0, 0.5, 1.0]) == pytest.approx([0.0] * 3, abs=0.0)
    assert type(roc.fpr(0.5)) is float
    assert roc.fpr([[0.1, 0.5]]).shape == (1, 2)


@given(points, rates)
def test_fpr_undoes_tpr(pairs, rate):
    roc = rising(pairs)
    fpr = roc.fpr(rate)
    assert roc.tpr(fpr) >= rate - 1e-12
    assert roc.fpr(roc.tpr(rate)) <= rate + 1e-12
    if fpr > 1e-9:
        assert roc.tpr(fpr * (1 - 1e-9)) <= rate + 1e-12


@pytest.mark.parametrize("roc", SMOOTH, ids=["μ=0.3", "μ=2", "q=0.1", "q=0.6"])
def test_fpr_undoes_tpr_on_smooth_curves(roc):
    rate = np.geomspace(1e-10, 0.9, 60)
    assert roc.fpr(roc.tpr(rate)) == pytest.approx(rate, rel=1e-8)
    assert roc.tpr(roc.fpr(rate)) == pytest.approx(rate, rel=1e-8)
    assert roc.fpr(0.0) == 0.0
    assert roc.fpr(1.0) == pytest.approx(1.0, abs=1e-9)


@given(points, st.floats(0.0, 100.0))
def test_divergence_is_the_support_function(pairs, gamma):
    roc = rising(pairs)
    x = np.linspace(0.0, 1.0, 2001)
    on_grid = np.max(roc.tpr(x) - gamma * x)
    at_vertices = np.max(roc.vertices[:, 1] - gamma * roc.vertices[:, 0])
    assert roc.divergence(gamma) >= on_grid - 1e-12
    assert roc.divergence(gamma) == pytest.approx(max(at_vertices, 0.0, 1.0 - gamma), abs=1e-15)


@pytest.mark.parametrize("roc", [TRIANGLE, *SMOOTH], ids=["linear", "μ=0.3", "μ=2", "q=0.1", "q=0.6"])
def test_divergence_at_the_ends(roc):
    assert roc.divergence(0.0) == 1.0
    assert roc.divergence(INF) == roc.tpr(0.0)
    gammas = np.geomspace(1e-3, 1e3, 60)
    values = np.array([roc.divergence(g) for g in gammas])
    assert np.all(np.diff(values) <= 1e-15)
    assert np.all(values >= np.maximum(0.0, 1.0 - gammas))


@given(points, st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
def test_support_is_the_best_over_the_curve_and_its_mirror_image(pairs, tpr_weight, fpr_weight):
    roc = rising(pairs).hull()
    corners = np.vstack([roc.vertices, 1.0 - roc.vertices, [[0.0, 0.0], [1.0, 1.0]]])
    expected = np.max(corners @ [fpr_weight, tpr_weight])
    assert roc.support(tpr_weight, fpr_weight) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("roc", [TRIANGLE, Roc([0.0, 0.3], [0.2, 0.8]), Roc([0.0], [0.25]), Roc([0.5], [1.0]), *SMOOTH])
@each("delta", [0.0, 1e-12, 1e-6, 1e-3, 0.05, 0.2, 0.5, 0.9, 1.0])
def test_slope_for_is_the_smallest_that_keeps_delta(roc, delta):
    slope = roc.slope_for(delta)
    if math.isinf(slope):
        assert roc.divergence(1e300) > delta or delta == 0.0
        return
    assert roc.divergence(slope) <= delta + 1e-15
    if slope > 0.0:
        assert roc.divergence(slope * (1 - 1e-6)) > delta


@given(points, st.floats(0.0, 1.0))
def test_slope_for_is_safe_on_any_curve(pairs, delta):
    roc = rising(pairs)
    slope = roc.slope_for(delta)
    assume(math.isfinite(slope) and slope < 1e12)
    gaps = roc.vertices[:, 1] - slope * roc.vertices[:, 0]
    assert np.all(gaps <= delta + 1e-12)


# --- other curves from this one --------------------------------------------------------------------------------------


def test_hull_bridges_the_dents():
    dented = Roc([0.2, 0.4, 0.6], [0.5, 0.55, 0.9])
    assert not dented.is_concave
    hull = dented.hull()
    assert hull.is_concave
    assert np.array_equal(hull.vertices, [[0.0, 0.0], [0.2, 0.5], [0.6, 0.9], [1.0, 1.0]])
    assert hull.dominates(dented)
    assert not dented.dominates(hull)


@given(points)
def test_hull_is_the_least_concave_curve_above(pairs):
    roc = rising(pairs)
    hull = roc.hull()
    assert hull.is_concave
    assert hull.dominates(roc, 1e-15)
    assert {tuple(v) for v in hull.vertices} <= {tuple(v) for v in roc.vertices}
    assert np.array_equal(hull.hull().vertices, hull.vertices)
    for gamma in (0.1, 1.0, 3.0):
        assert hull.divergence(gamma) == roc.divergence(gamma)


@given(points)
def test_reversing_twice_changes_nothing(pairs):
    roc = rising(pairs).hull()
    again = roc.reversed().reversed()
    assert again.dominates(roc, 1e-12)
    assert roc.dominates(again, 1e-12)


@given(points, st.floats(0.05, 20.0))
def test_divergence_of_the_mirror_image(pairs, gamma):
    """E_γ(Q‖P) = 1 - γ + γ·E_{1/γ}(P‖Q)."""
    roc = rising(pairs).hull()
    expected = 1.0 - gamma + gamma * roc.divergence(1.0 / gamma)
    assert roc.reversed().divergence(gamma) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("roc", SMOOTH, ids=["μ=0.3", "μ=2", "q=0.1", "q=0.6"])
@pytest.mark.parametrize("gamma", [0.2, 0.95, 1.0, 1.05, 5.0])
def test_divergence_of_the_mirror_image_of_a_smooth_curve(roc, gamma):
    expected = 1.0 - gamma + gamma * roc.divergence(1.0 / gamma)
    mirror = roc.reversed()
    assert mirror.divergence(gamma) == pytest.approx(expected, abs=1e-12)
    x = np.linspace(0.0, 1.0, 4001)
    assert mirror.divergence(gamma) == pytest.approx(np.max(mirror.tpr(x) - gamma * x), abs=1e-5)
    assert mirror.reversed().tpr(0.1) == pytest.approx(roc.tpr(0.1), rel=1e-12)
    assert mirror.slopes == pytest.approx(tuple(0.0 if s == INF else (1 / s if s else INF) for s in roc.slopes[::-1]))


@given(points)
def test_symmetrised_lies_above_both_sides(pairs):
    roc = rising(pairs).hull()
    both = roc.symmetrised()
    assert both.is_concave
    assert both.dominates(roc, 1e-12)
    assert both.dominates(roc.reversed(), 1e-12)
    mirror = both.reversed()
    assert both.dominates(mirror, 1e-12)
    assert mirror.dominates(both, 1e-12)


@given(points, points, rates)
def test_compose_is_one_curve_after_the_other(first, second, fpr):
    outer, inner = rising(first).hull(), rising(second).hull()
    assert outer.compose(inner).tpr(fpr) == pytest.approx(outer.tpr(inner.tpr(fpr)), abs=1e-9)
    assert outer.compose(inner).is_concave


# --- comparing -------------------------------------------------------------------------------------------------------


@given(points, points)
def test_dominates_means_nowhere_below(first, second):
    one, other = rising(first), rising(second)
    x = np.union1d(one.vertices[:, 0], other.vertices[:, 0])
    assert one.dominates(other) == bool(np.all(one.tpr(x) >= other.tpr(x)))
    assert one.dominates(one)
    gap = float(np.max(other.tpr(x) - one.tpr(x)))
    if gap > 1e-9:
        assert not one.dominates(other, gap * (1 - 1e-6))
        assert one.dominates(other, gap * (1 + 1e-6))


def test_a_line_against_a_smooth_curve_is_judged_exactly():
    gaussian = wi.GaussianDP(1.0)
    touching = gaussian.implies(wi.ApproxDP, delta=1e-5)
    assert touching.roc.dominates(gaussian.roc, 1e-15)
    assert not wi.ApproxDP(touching.epsilon * (1 - 1e-9), 1e-5).roc.dominates(gaussian.roc)
    assert not wi.PureDP(20.0).roc.dominates(gaussian.roc)
    assert not gaussian.roc.dominates(touching.roc)


def test_a_smooth_curve_against_a_line():
    pure = wi.PureDP(1.0)
    above = pure.implies(wi.GaussianDP)
    assert above.roc.dominates(pure.roc, 1e-15)
    assert not wi.GaussianDP(above.mu * (1 - 1e-6)).roc.dominates(pure.roc)


def test_smooth_curves_against_each_other():
    assert wi.GaussianDP(1.0).roc.dominates(wi.GaussianDP(0.999).roc)
    assert not wi.GaussianDP(0.999).roc.dominates(wi.GaussianDP(1.0).roc)
    assert wi.GaussianDP(1.0).roc.dominates(wi.DPSGD(1.0, 0.5, 1).roc)


# --- printing --------------------------------------------------------------------------------------------------------


def test_to_dict_keeps_few_vertices_as_they_are():
    assert TRIANGLE.to_dict() == {"fpr": [0.0, 0.25, 1.0], "tpr": [0.0, 0.75, 1.0]}


@pytest.mark.parametrize("roc", [SMOOTH[1], wi.DPSGD(0.8, 0.05, 40).roc], ids=["smooth", "many vertices"])
@pytest.mark.parametrize("points", [3, 21, 201])
def test_to_dict_samples_the_rest(roc, points):
    shown = json.loads(json.dumps(roc.to_dict(points), allow_nan=False))
    assert len(shown["fpr"]) == len(shown["tpr"])
    assert points - 2 <= len(shown["fpr"]) <= points + 1
    assert (shown["fpr"][0], shown["fpr"][-1], shown["tpr"][-1]) == pytest.approx((0.0, 1.0, 1.0))
    assert shown["fpr"] == sorted(set(shown["fpr"]))
    assert shown["tpr"] == pytest.approx(roc.tpr(shown["fpr"]).tolist(), rel=1e-15)


def test_repr_says_what_it_is():
    assert repr(TRIANGLE) == "Roc(3 vertices, advantage 0.5)"
    assert repr(wi.GaussianDP(1.0).roc) == "Roc(smooth, advantage 0.382925)"
