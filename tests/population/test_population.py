"""What a large ε means on these records: the front ends against exact worlds and fixtures."""

import itertools
import json
import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import whosin as wi
from whosin.errors import CalibrationError, InputError, InputTypeError
from whosin.population.pool import clipped, flattened, widest_distance
from whosin.population.sums import analysis as additive
from whosin.population.sums import most_exposed

FIXTURES = json.loads((Path(__file__).parents[1] / "data" / "fixtures.json").read_text(encoding="utf-8"))
LINE = np.arange(12) / 4
CANDIDATES = [0.5, 1.5, 2.5]


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(additive, "group_epsilons", partial(additive.group_epsilons, draws=500))


def small_pool(seed=0, n=8, d=2):
    return np.random.default_rng(seed).standard_normal((n, d))


# --- exponential -----------------------------------------------------------------------------------------------


def test_fixture_with_a_matrix_of_losses():
    """X = i/4, W = {.5, 1.5, 2.5}, λ = 6: ε̃, ε(X) and the label 2λΔ(X) = 5 of the theory's fixture."""
    fixture = FIXTURES["expmech"]
    losses = np.abs(LINE[:, None] - np.array(CANDIDATES))
    result = wi.population.exponential(LINE, CANDIDATES, epsilon=5.0, clip=10.0, loss=losses, sensitivity=5 / 12)
    assert result.noise_scale == pytest.approx(6.0, rel=1e-15)
    assert result.pmp.epsilon == pytest.approx(fixture["eps_pmp"], rel=1e-13)
    assert result.dp_on_records.epsilon == pytest.approx(fixture["eps_X_exact"], rel=1e-13)
    assert result.most_exposed == fixture["argmax"][0]
    assert result.method == "exact"
    assert result.ratio == pytest.approx(fixture["eps_pmp"] / 5.0, rel=1e-13)


@pytest.mark.parametrize("train_fraction", [0.5, 0.25, 0.75])
@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize("loss", ["distance", "squared"])
def test_exact_agrees_with_the_enumerated_world(train_fraction, delta, loss):
    pool, options = small_pool(), np.random.default_rng(1).standard_normal((3, 2))
    result = wi.population.exponential(
        pool, options, epsilon=6.0, clip=1.5, delta=delta, loss=loss, train_fraction=train_fraction
    )
    norms = np.linalg.norm(pool, axis=1, keepdims=True)
    rows = pool * np.minimum(1.0, 1.5 / norms)
    power = 1 if loss == "distance" else 2
    mechanism = wi.mechanisms.Exponential(
        range(3), lambda w, x: float(np.linalg.norm(options[w] - rows[x]) ** power), result.noise_scale
    )
    game = wi.worlds.uniform_subsets(range(8), round(8 * train_fraction)).play(mechanism)
    assert result.pmp.epsilon == pytest.approx(game.pmp(delta).epsilon, rel=1e-10, abs=1e-12)
    assert result.dp_on_records.epsilon == pytest.approx(game.dp().epsilon, rel=1e-10)
    assert result.pmp.train_fraction == game.pmp().train_fraction
    assert result.dp_on_records.epsilon <= result.dp_at_most.epsilon * (1 + 1e-12) <= result.dp.epsilon * (1 + 1e-12)
    for record in range(8):
        assert result.pmp.roc.dominates(game.roc(record), 1e-10)


def test_the_label_overstates_the_worst_case():
    """Lowy's figure 2: clipping enters the label, the range bound does not depend on it (THEORY r.1)."""
    pool, options = small_pool(3, 12, 5), np.eye(5)
    near, far = (wi.population.exponential(pool, options, epsilon=10.0, clip=c) for c in (5.0, 50.0))
    assert far.dp_at_most.epsilon < 0.5 < near.dp_at_most.epsilon < 10.0
    assert far.dp.epsilon == near.dp.epsilon == 10.0


def test_monte_carlo_covers_the_exact_answer():
    """Twenty seeded certificates at confidence 0.9: above more than 6 of them with probability < 1e-2 at most."""
    pool, options = small_pool(5, 10, 2), np.random.default_rng(2).standard_normal((3, 2))
    exact = wi.population.exponential(pool, options, epsilon=8.0, clip=2.0, method="exact").pmp.epsilon
    misses = 0
    for seed in range(20):
        sampled = wi.population.exponential(
            pool, options, epsilon=8.0, clip=2.0, method="monte_carlo", confidence_level=0.9, draws=400, rng=seed
        )
        misses += sampled.pmp.epsilon < exact
        assert sampled.confidence_level == 0.9
        assert sampled.pmp.epsilon <= sampled.dp_at_most.epsilon * (1 + 1e-12)
    assert misses <= 6


def test_two_outcomes_at_any_size():
    pool = np.random.default_rng(0).standard_normal((16, 1))
    common = {"epsilon": 10.0, "clip": 3.0}
    exact = wi.population.exponential(pool, [[1.0], [-1.0]], method="exact", **common)
    quick = wi.population.exponential(pool, [[1.0], [-1.0]], method="two_outcomes", **common)
    assert quick.pmp.epsilon == pytest.approx(exact.pmp.epsilon, rel=1e-9)
    assert np.all(quick.per_record_lower <= exact.per_record + 1e-12)
    assert np.all(exact.per_record <= quick.per_record + 1e-12)
    large = wi.population.exponential(np.random.default_rng(1).standard_normal((300, 1)), [[1.0], [-1.0]], **common)
    assert large.method == "two_outcomes"
    with pytest.raises(InputError, match="at most two distinct"):
        wi.population.exponential(pool, [[1.0], [-1.0], [2.0]], method="two_outcomes", **common)


def test_equal_candidates_and_equal_records_give_nothing_away():
    pool = small_pool()
    assert wi.population.exponential(pool, [[1.0, 0.0]] * 3, epsilon=5.0, clip=1.0).pmp.epsilon == pytest.approx(
        0.0, abs=1e-12
    )
    same = np.ones((6, 2))
    assert wi.population.exponential(same, np.eye(2), epsilon=5.0, clip=2.0).pmp.epsilon == pytest.approx(
        0.0, abs=1e-12
    )
    assert wi.population.exponential(pool, np.eye(2), epsilon=0.0, clip=2.0).pmp.epsilon == 0.0


def test_one_of_two_records_is_plain_differential_privacy():
    result = wi.population.exponential([0.0, 1.0], [0.0, 1.0], epsilon=3.0, clip=2.0)
    assert result.pmp.epsilon == pytest.approx(result.dp_on_records.epsilon, rel=1e-12)


def test_too_many_data_sets_are_refused_with_the_count():
    with pytest.raises(InputError, match=r"at most 2e\+11 data sets, got .* hours.*monte_carlo"):
        wi.population.exponential(small_pool(0, 60, 2), np.eye(2), epsilon=1.0, clip=1.0, method="exact")


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"clip": 0.0}, InputError, "clip"),
        ({"clip": -1.0}, InputError, "clip"),
        ({"epsilon": -1.0}, InputError, "epsilon"),
        ({"epsilon": math.inf}, InputError, "epsilon"),
        ({"delta": 1.5}, InputError, "delta"),
        ({"method": "magic"}, InputError, "method"),
        ({"loss": "angle"}, InputError, "loss"),
        ({"loss": np.ones((8, 2))}, InputError, "8 records × 3 candidates"),
        ({"loss": np.ones((8, 3))}, InputTypeError, "sensitivity is needed"),
        ({"loss": np.full((8, 3), np.nan), "sensitivity": 1.0}, InputError, "loss"),
        ({"train_fraction": 0.01}, InputError, "train_fraction"),
        ({"candidates": np.eye(3)}, InputError, "2 columns"),
        ({"candidates": []}, InputError, "candidates"),
    ],
)
def test_bad_input_of_the_exponential_mechanism(change, error, says):
    good = {"candidates": np.ones((3, 2)) * [[1], [2], [3]], "epsilon": 1.0, "clip": 1.0}
    with pytest.raises(error, match=says):
        wi.population.exponential(small_pool(), **{**good, **change})


# --- Gaussian and Laplace ----------------------------------------------------------------------------------------


def test_gaussian_fixture():
    """The pool of the fixture: exact and pairwise ε̃ at the δ that the theory gives for ε = 0.5."""
    fixture = FIXTURES["gauss"]
    pool = np.array(fixture["X"])
    label = wi.GaussianDP(2 * 3.0 / 4 / 0.5, "replace")
    for method, key in (("exact", "in_out_mp"), ("pairwise", "prop12")):
        delta = float(fixture["delta"]["0.5"][key])
        epsilon = label.implies(wi.ApproxDP, delta=delta).epsilon
        result = wi.population.gaussian(pool, epsilon=epsilon, delta=delta, clip=3.0, method=method)
        assert result.noise_scale == pytest.approx(0.5, rel=1e-9)
        assert result.per_record[fixture["record"]] == pytest.approx(0.5, abs=1e-6)
        assert result.per_record[fixture["record"]] >= 0.5 - 1e-9


@pytest.mark.parametrize("train_fraction", [0.5, 0.25])
def test_methods_are_ordered_and_cover_the_world(train_fraction):
    pool = np.random.default_rng(4).standard_normal(8)
    common = {"epsilon": 4.0, "delta": 0.01, "clip": 2.5, "train_fraction": train_fraction}
    exact = wi.population.gaussian(pool, method="exact", **common)
    pairwise = wi.population.gaussian(pool, method="pairwise", **common)
    groups = wi.population.gaussian(pool, method="groups", rng=0, **common) if train_fraction == 0.5 else pairwise
    k = round(8 * train_fraction)
    game = wi.worlds.uniform_subsets(range(8), k).play(
        wi.mechanisms.Gaussian(lambda d: float(np.clip(pool, -2.5, 2.5)[list(d)].sum() / k), exact.noise_scale)
    )
    truth = game.pmp(0.01).epsilon
    assert exact.per_record_lower.max() - 1e-9 <= truth <= exact.pmp.epsilon + 1e-9
    assert exact.pmp.epsilon == pytest.approx(truth, rel=1e-4)
    assert truth <= groups.pmp.epsilon <= pairwise.pmp.epsilon + 1e-9
    assert groups.confidence_level == (0.95 if groups.method == "groups" else None)
    assert pairwise.confidence_level is None
    assert pairwise.dp_on_records.epsilon == pytest.approx(game.dp(0.01).epsilon, rel=1e-6)


def test_auto_says_which_method_it_took():
    rng = np.random.default_rng(0)
    common = {"epsilon": 2.0, "delta": 1e-3, "clip": 3.0}
    assert wi.population.gaussian(rng.standard_normal(40), **common).method == "exact"
    assert wi.population.gaussian(rng.standard_normal((60, 3)), **common).method == "normal"
    with pytest.raises(InputError, match="along one line"):
        wi.population.gaussian(rng.standard_normal((8, 2)), method="exact", **common)


def test_sum_and_own_query():
    pool = small_pool(0, 10, 2)
    common = {"epsilon": 3.0, "delta": 0.01, "clip": 1.0, "method": "pairwise"}
    mean, total = (wi.population.gaussian(pool, query=q, **common) for q in ("mean", "sum"))
    assert total.pmp.epsilon == pytest.approx(mean.pmp.epsilon, rel=1e-9)
    assert total.noise_scale == pytest.approx(5 * mean.noise_scale, rel=1e-9)
    own = wi.population.gaussian(pool, query=lambda matrix: matrix[:, :1] ** 2, **common)
    assert own.records == 10


def both_columns():
    return [lambda rows: rows[:, :1], lambda rows: rows[:, 1:]]


@pytest.mark.parametrize("seed", range(3))
def test_two_queries_of_one_draw_against_the_enumerated_world(seed):
    """δ at the stated ε̃, by midpoints on a grid of both outputs over all halves of six records."""
    pool = np.random.default_rng(seed).uniform(-1.0, 1.0, (6, 2)) * [1.0, 5.0]
    found = wi.population.gaussian(pool, epsilon=6.0, delta=0.01, clip=[1.0, 5.0], query=both_columns())
    halves = list(itertools.combinations(range(6), 3))
    means = np.array([pool[list(half)].mean(axis=0) for half in halves])
    axes = [np.linspace(m.min() - 8 * s, m.max() + 8 * s, 400) for m, s in zip(means.T, found.noise_scale, strict=True)]
    first, second = (
        norm.pdf(axis, m[:, None], s) * (axis[1] - axis[0])
        for axis, m, s in zip(axes, means.T, found.noise_scale, strict=True)
    )
    for x in range(6):
        inside = np.array([x in half for half in halves])
        one, two = (np.einsum("hi,hj->ij", first[side], second[side]) / 10 for side in (inside, ~inside))
        for p, q in ((one, two), (two, one)):
            assert np.maximum(0.0, p - math.exp(found.per_record[x]) * q).sum() <= 0.01 + 1e-9
            assert np.maximum(0.0, p - q).sum() > 0.01


def test_two_queries_of_one_draw_are_one_sum_of_contributions_side_by_side():
    pool = small_pool(2, 12, 2)
    common = {"delta": 0.01, "clip": [1.0, 3.0], "query": both_columns(), "method": "pairwise"}
    shared = wi.population.gaussian(pool, epsilon=3.0, **common)
    assert shared.dp.epsilon == 3.0
    assert shared.sensitivity == (2.0 / 6, 6.0 / 6)
    assert shared.noise_scale[1] == pytest.approx(3.0 * shared.noise_scale[0], rel=1e-12)
    alone = wi.population.gaussian(pool, epsilon=3.0, **{**common, "clip": 1.0, "query": both_columns()[0]})
    assert shared.noise_scale[0] == pytest.approx(math.sqrt(2) * alone.noise_scale, rel=1e-12)
    f = np.column_stack([np.clip(pool[:, 0], -1, 1), np.clip(pool[:, 1], -3, 3)]) / 6 / shared.noise_scale
    distances = np.linalg.norm(f[:, None] - f, axis=2)
    for x in range(12):
        chances = [shift_delta(u, shared.per_record[x]) for u in distances[x] if u > 0]
        assert np.sum(chances) / 11 == pytest.approx(0.01, rel=1e-6)
    each = wi.population.gaussian(pool, epsilon=[3.0, 1.0], **common)
    mu = [2.0 / 6 / each.noise_scale[0], 1.0 / each.noise_scale[1]]
    assert each.noise_scale[0] == pytest.approx(alone.noise_scale, rel=1e-12)
    assert shift_delta(math.hypot(*mu), each.dp.epsilon) == pytest.approx(0.01, rel=1e-9)
    assert 3.0 < each.dp.epsilon < 4.0


def shift_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_laplace_world():
    pool = np.random.default_rng(6).standard_normal(8)
    k = 4
    for delta in (0.0, 0.05):
        result = wi.population.laplace(pool, epsilon=3.0, clip=2.0, delta=delta, method="pairwise")
        values = np.clip(pool, -2.0, 2.0)
        game = wi.worlds.uniform_subsets(range(8), k).play(
            wi.mechanisms.Laplace(lambda d, values=values: float(values[list(d)].sum() / k), result.noise_scale)
        )
        assert result.pmp.epsilon >= game.pmp(delta).epsilon - 1e-9
        assert result.dp_on_records.epsilon == pytest.approx(game.dp().epsilon, rel=1e-9)
        assert result.dp == wi.PureDP(3.0, "replace")
    with pytest.raises(InputError, match="one column"):
        wi.population.laplace(small_pool(), epsilon=1.0, clip=1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clip": 0.0}, "clip"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"query": "median"}, "query"),
        ({"query": []}, "query"),
        ({"query": ["mean", "median"]}, "query"),
        ({"query": ["mean", "sum"], "clip": [1.0]}, "clip must be one number, or one for each of 2 queries, got 1"),
        ({"query": ["mean", "sum"], "epsilon": [1.0, 2.0, 3.0]}, "epsilon must be one number, or one for each"),
        ({"epsilon": [math.inf]}, "epsilon"),
        ({"method": "magic"}, "method"),
        ({"records": [[1.0, math.nan], [0.0, 0.0]]}, "row 0"),
        ({"records": [1.0]}, "at least 2 rows"),
    ],
)
def test_bad_input_of_the_gaussian(change, says):
    good = {"records": small_pool(), "epsilon": 1.0, "delta": 0.01, "clip": 1.0}
    with pytest.raises(InputError, match=says):
        wi.population.gaussian(**{**good, **change})


@pytest.mark.parametrize("unit", [1e-170, 1e-12, 1.0, 1e12, 1e170])
@pytest.mark.parametrize("columns", [1, 2])
def test_units_change_nothing(unit, columns):
    pool = small_pool(7, 8, columns)
    common = {"epsilon": 3.0, "delta": 0.01, "method": "pairwise"}
    here = wi.population.gaussian(pool, clip=1.5, **common)
    there = wi.population.gaussian(unit * pool, clip=unit * 1.5, **common)
    np.testing.assert_allclose(there.per_record, here.per_record, rtol=1e-9)
    assert there.dp_on_records.epsilon == pytest.approx(here.dp_on_records.epsilon, rel=1e-9)
    assert here.pmp.epsilon > 0.5


def test_clipping_keeps_the_direction_and_the_norm():
    rows = np.array([[3e200, 4e200], [3e-200, -4e-200], [0.3, 0.4], [0.0, 0.0]])
    found = clipped(rows, 0.5)
    np.testing.assert_allclose(found, [[0.3, 0.4], [3e-200, -4e-200], [0.3, 0.4], [0.0, 0.0]], rtol=1e-14)
    np.testing.assert_allclose(clipped(rows, 1e-250)[:2], [[6e-251, 8e-251], [6e-251, -8e-251]], rtol=1e-14)
    np.testing.assert_array_equal(clipped([1e300, -7.0, 0.1], 0.3)[:, 0], [0.3, -0.3, 0.1])
    wide = clipped(np.random.default_rng(8).standard_normal((2000, 5)), 0.7)
    assert all(sum(Fraction(x) ** 2 for x in row) <= Fraction(0.7) ** 2 for row in wide.tolist())


@pytest.mark.parametrize("dimensions", [0, 1, 2, 4])
def test_flattened_keeps_every_distance(dimensions):
    rng = np.random.default_rng(dimensions)
    basis = np.linalg.qr(rng.standard_normal((7, 7)))[0][:dimensions]
    points = rng.standard_normal((30, dimensions)) @ basis + rng.standard_normal(7)
    points[3] = points[20]
    flat, off = flattened(points, 15, 1e-9)
    assert flat.shape == (30, max(dimensions, 1))
    assert 0.0 < off <= 1e-9 or dimensions == 0
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    assert np.abs(np.linalg.norm(flat[:, None] - flat, axis=2) - apart).max() <= off
    assert np.array_equal(flat[3], flat[20])


def test_what_is_dropped_is_counted():
    """A column of size 1e-6 may go where that much is allowed, k of them in sum, and not where it is not."""
    points = np.column_stack([np.arange(20.0), 1e-6 * (-1.0) ** np.arange(20)])
    flat, off = flattened(points, 5, 1e-5)
    assert flat.shape == (20, 1)
    assert 5e-6 <= off <= 5.6e-6  # the flat is tilted a little towards them
    assert flattened(points, 5, 4e-6)[0] is points


@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
@pytest.mark.parametrize("power", [-1000, -600, 450])
def test_what_a_flat_costs_does_not_depend_on_units(epsilon, power):
    points = np.outer(np.linspace(-1.0, 1.0, 16), [0.6, 0.8]) + 1e-9 * np.sin(np.arange(32)).reshape(16, 2)
    plain, same = (
        wi.population.gaussian(points * unit, epsilon=epsilon, delta=1e-3, clip=unit, query="sum", method="normal")
        for unit in (1.0, 2.0**power)
    )
    assert np.array_equal(same.per_record, plain.per_record)
    assert same.noise_scale == plain.noise_scale * 2.0**power


def test_nothing_is_flattened_that_is_not_flat():
    points = np.random.default_rng(0).standard_normal((10, 3))
    assert flattened(points, 5, 1e-9)[0] is points
    assert flattened(points[:, :1], 5, 1e-9)[0].shape == (10, 1)


def test_widest_distance_is_an_upper_limit():
    rng = np.random.default_rng(9)
    for columns in (1, 2, 5):
        for _ in range(20):
            points = rng.standard_normal((6, columns)) * 10.0 ** rng.integers(-200, 200)
            exact = [[Fraction(x) for x in row] for row in points.tolist()]
            truth = max(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x in exact for y in exact)
            found = widest_distance(points)
            assert Fraction(found) ** 2 >= truth
            assert Fraction(found) ** 2 <= truth * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("method", ["exact", "pairwise", "groups"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_progress_rises_to_one(method, mechanism, few_draws):
    seen = []
    getattr(wi.population, mechanism)(
        np.arange(9.0), epsilon=8.0, delta=0.01, clip=9.0, method=method, progress=seen.append, rng=0
    )
    assert np.all(np.diff([0.0, *seen]) > 0.0)
    assert seen[-1] == 1.0


def test_laplace_takes_the_exact_way_where_it_is_quick():
    pool = np.random.default_rng(6).standard_normal(10)
    for delta in (0.0, 0.05):
        result = wi.population.laplace(pool, epsilon=6.0, clip=2.0, delta=delta, train_fraction=0.4)
        pairs = wi.population.laplace(pool, epsilon=6.0, clip=2.0, delta=delta, train_fraction=0.4, method="pairwise")
        values = np.clip(pool, -2.0, 2.0)
        game = wi.worlds.uniform_subsets(range(10), 4).play(
            wi.mechanisms.Laplace(lambda d, values=values: float(values[list(d)].sum() / 4), result.noise_scale)
        )
        assert result.method == "exact"
        assert result.pmp.epsilon == pytest.approx(game.pmp(delta).epsilon, rel=1e-9)
        assert result.per_record_lower == pytest.approx(result.per_record, abs=1e-8)
        assert np.all(result.per_record_lower <= result.per_record)
        assert result.pmp.epsilon < 0.95 * pairs.pmp.epsilon
    many = wi.population.laplace(np.arange(60.0), epsilon=6.0, clip=20.0, delta=0.0)
    assert many.method == "pairwise"


def test_a_spectral_answer_whose_ends_lie_apart_is_not_called_exact(monkeypatch):
    monkeypatch.setattr(additive, "EXACT_RECORDS", 17)
    methods = []
    for least in (0.5, 0.25):
        ends = np.tile([least, 0.5], (18, 1))
        monkeypatch.setattr(additive, "exact_largest", lambda *_, ends=ends, **__: ends)
        found = wi.population.laplace(np.arange(18.0), epsilon=6.0, clip=18.0, delta=0.01)
        methods.append((found.method, found.exact, found.at_least))
    assert methods == [("exact", True, 0.5), ("spectral", False, 0.25)]


def test_laplace_noise_has_no_cliff_where_not_all_records_are_solved(monkeypatch):
    pool = np.random.default_rng(6).standard_normal(18)
    common = {"epsilon": 4.0, "clip": 2.0, "delta": 0.02}
    every = wi.population.laplace(pool, **common)
    monkeypatch.setattr(additive, "EXACT_RECORDS", 17)
    some = wi.population.laplace(pool, **common)
    assert every.method == some.method == "exact"
    assert some.pmp.epsilon == pytest.approx(every.pmp.epsilon, rel=1e-9)
    assert (some.per_record >= every.per_record_lower).all()
    monkeypatch.setattr(most_exposed, "MOST_SOLVED", 3)
    few = wi.population.laplace(pool, **common)
    pairs = wi.population.laplace(pool, **common, method="pairwise")
    assert few.method == "pairwise"
    assert some.pmp.epsilon <= few.pmp.epsilon <= pairs.pmp.epsilon
    assert some.at_least >= few.at_least > 0.0


def test_a_query_gives_one_row_for_each_record():
    common = {"epsilon": 1.0, "delta": 0.01, "clip": 1.0}
    with pytest.raises(InputError, match=r"query must be a function .* 8 rows, got 3"):
        wi.population.gaussian(small_pool(), query=lambda rows: rows[:3], **common)
    with pytest.raises(InputError, match="row 0"):
        wi.population.gaussian([[math.nan], [1.0], [2.0]], query=np.nan_to_num, **common)


# --- the result, and the choice of ε --------------------------------------------------------------------------------


@pytest.mark.parametrize("train_fraction", [0.5, 0.3])
def test_the_truth_is_enclosed_in_several_columns(train_fraction):
    """The lower limit of the most exposed record, against all draws of twelve; and how it is told."""
    rows = np.random.default_rng(2).standard_normal((16, 2))
    found = wi.population.gaussian(rows, epsilon=2.0, delta=0.02, clip=3.0, train_fraction=train_fraction, rng=0)
    own, k = found.most_exposed, found.train_size
    others = [i for i in range(16) if i != own]
    clip = clipped(rows, 3.0) / k
    sums = [
        clip[np.array(list(itertools.combinations(others, m)))].sum(axis=1) + (clip[own] if m < k else 0.0)
        for m in (k - 1, k)
    ]
    grid = [np.linspace(-8, 8, 181) * found.noise_scale + clip.sum(axis=0)[c] * train_fraction for c in (0, 1)]
    kernels = [
        [np.exp(-0.5 * ((g[:, None] - s[:, c]) / found.noise_scale) ** 2) for c, g in enumerate(grid)] for s in sums
    ]
    inside, outside = (a @ b.T / len(s) for (a, b), s in zip(kernels, sums, strict=True))
    whole = inside.sum()

    def divergence(epsilon):
        gamma = math.exp(epsilon)
        return max(np.maximum(p - gamma * q, 0.0).sum() for p, q in ((inside, outside), (outside, inside))) / whole

    assert 0.0 < found.at_least <= found.pmp.epsilon
    assert divergence(found.at_least - 1e-3) > 0.02 - 1e-4
    assert divergence(found.pmp.epsilon) <= 0.02
    assert found.at_least == found.per_record_lower[own]
    told = "this is exact" if found.exact else "the truth is at least"
    assert told in found.explain()


def test_what_is_known_of_the_truth_is_told():
    numbers = np.linspace(-1, 1, 12)
    exact = wi.population.gaussian(numbers, epsilon=2.0, delta=0.01, clip=1.0)
    assert exact.exact
    assert str(exact).startswith("ε̃ = ")
    bound = wi.population.gaussian(numbers, epsilon=2.0, delta=0.01, clip=1.0, method="pairwise")
    assert (bound.exact, bound.at_least) == (False, None)
    assert str(bound).startswith("ε̃ ≤ ")
    assert "the truth" not in bound.explain()


def test_result_prints_plots_and_becomes_json():
    result = wi.population.gaussian(small_pool(0, 12, 1), epsilon=8.0, delta=0.01, clip=2.0)
    assert "12 records, of which 6 were drawn" in result.explain()
    assert f"{result.pmp.epsilon:.6g}" in str(result)
    payload = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert payload["pmp"]["epsilon"] == result.pmp.epsilon
    assert len(payload["per_record"]) == len(payload["per_record_lower"]) == 12
    assert any("pool" in line for line in result.assumes)
    axes = result.plot()
    assert axes.get_ylabel().startswith("privacy parameter")
    assert "<p>" in result._repr_html_()


def test_largest_epsilon_for_the_gaussian_is_on_the_safe_side():
    pool = np.random.default_rng(1).standard_normal(60)
    common = {"delta": 0.01, "clip": 3.0, "method": "pairwise"}
    found = wi.population.largest_epsilon(pool, mechanism="gaussian", target=0.1, **common)
    assert found.pmp.epsilon <= 0.1
    beyond = wi.population.gaussian(pool, epsilon=found.dp.epsilon * 1.01, **common)
    assert beyond.pmp.epsilon > 0.1


@pytest.mark.parametrize(
    ("mechanism", "records", "options"),
    [
        ("gaussian", np.linspace(18, 90, 16), {"delta": 0.05, "query": wi.population.Histogram([0, 45, 120])}),
        ("gaussian", np.linspace(-1, 1, 16), {"delta": 0.05, "clip": 1.0, "chances": np.linspace(0.2, 0.8, 16)}),
        ("laplace", np.linspace(-1, 1, 16), {"delta": 0.05, "clip": 1.0, "person": [0, 0, *range(1, 15)]}),
        ("exponential", np.linspace(-1, 1, 10), {"candidates": [[-0.5], [0.5]], "clip": 1.0, "person": [0, *range(9)]}),
        ("randomized_response", ["no"] * 5 + ["yes"] * 3, {"categories": ["no", "yes"]}),
    ],
)
def test_largest_epsilon_of_every_mechanism(mechanism, records, options):
    """What is returned keeps the target, and a tenth more does not."""
    found = wi.population.largest_epsilon(
        records, mechanism=mechanism, target=0.4, smallest=0.05, largest=5.0, points=6, **options
    )
    assert 0.3 <= found.pmp.epsilon <= 0.4
    more = getattr(wi.population, mechanism)(records, epsilon=1.1 * found.dp.epsilon, **options)
    assert more.pmp.epsilon > 0.4


def test_largest_epsilon_scans_where_the_practical_parameter_is_not_monotone():
    pool, options = small_pool(2, 10, 2), np.random.default_rng(3).standard_normal((4, 2))
    found = wi.population.largest_epsilon(
        pool, mechanism="exponential", target=0.4, candidates=options, clip=2.0, points=12, largest=60.0
    )
    assert found.pmp.epsilon <= 0.4
    scanned = [
        (e, wi.population.exponential(pool, options, epsilon=e, clip=2.0).pmp.epsilon)
        for e in np.geomspace(0.01, 60.0, 12)
    ]
    assert found.dp.epsilon >= max(e for e, practical in scanned if practical <= 0.4) - 1e-9


def test_largest_epsilon_says_when_nothing_is_small_enough():
    with pytest.raises(CalibrationError, match="cannot be reached"):
        wi.population.largest_epsilon(
            [0.0, 1.0], mechanism="gaussian", target=0.0, delta=1e-6, clip=1.0, method="pairwise", smallest=1.0
        )
    with pytest.raises(InputError, match="mechanism"):
        wi.population.largest_epsilon([0.0, 1.0], mechanism="magic", target=0.1)


def test_largest_epsilon_states_the_confidence_that_its_choice_leaves(few_draws):
    """Six looks, of which the best is kept: each holds with 1 - 0.1/6, the one that was picked with 0.9."""
    seen = []
    found = wi.population.largest_epsilon(
        small_pool(4, 12, 2), mechanism="gaussian", target=1.0, delta=0.05, clip=2.0, method="groups", points=3,
        confidence_level=0.9, rng=0, progress=seen.append,
    )  # fmt: skip
    assert found.method == "groups"
    assert found.confidence_level == 0.9
    assert "probability 0.9" in " ".join(found.assumes)
    assert np.all(np.diff([0.0, *seen]) >= 0.0)
    assert seen[-1] == 1.0
    with pytest.raises(InputError, match="confidence_level"):
        wi.population.largest_epsilon(small_pool(), mechanism="gaussian", target=1.0, confidence_level=1.0)


# --- households -----------------------------------------------------------------------------------------------------


def test_households_are_drawn_whole():
    """The same as a pool with one row per household, which the tests above check against exact worlds."""
    rows = np.array([0.2, -0.1, 0.5, 0.3, -0.4, 0.1, 0.25, -0.6])[:, None]
    home = ["b", "b", "a", "a", "a", "c", "d", "e"]
    common = {"epsilon": 3.0, "delta": 0.02, "clip": 1.0, "query": "sum", "train_fraction": 0.4}
    found = wi.population.gaussian(rows, person=home, **common)
    by_hand = np.array([0.1, 0.4, 0.1, 0.25, -0.6])[:, None]
    plain = wi.population.gaussian(by_hand, **common)
    assert (found.records, found.train_size) == (5, 2)
    np.testing.assert_allclose(found.per_record, plain.per_record, rtol=1e-9)


def test_the_clip_of_a_household_is_of_its_sum():
    rows = np.full((6, 1), 0.9)
    found = wi.population.gaussian(rows, person=[0, 0, 0, 1, 1, 2], epsilon=1.0, delta=0.1, clip=1.0, query="sum")
    assert found.per_record[0] == found.per_record[1]


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_households_choose_together_as_in_the_enumerated_world(delta):
    """A household's loss is the mean of its rows' losses, so its sensitivity is that of one row."""
    places = np.array([0.2, -0.1, 0.5, 0.3, -0.4, 0.1, 0.25, -0.6, 0.7])
    home = ["b", "b", "a", "a", "a", "c", "d", "e", "c"]
    grid = np.array([-0.5, 0.0, 0.5])
    common = {"epsilon": 6.0, "clip": 1.0, "train_fraction": 0.4}
    found = wi.population.exponential(places, grid[:, None], person=home, delta=delta, **common)
    assert (found.records, found.train_size) == (5, 2)
    single = wi.population.exponential(places[:5], grid[:, None], delta=delta, **common)
    assert (found.sensitivity, found.dp_at_most) == (single.sensitivity, single.dp_at_most)
    groups = [[0, 1], [2, 3, 4], [5, 8], [6], [7]]
    losses = np.array([np.abs(places[rows][:, None] - grid).mean(axis=0) for rows in groups])
    mechanism = wi.mechanisms.Exponential((0, 1, 2), lambda w, i: losses[i, w], found.noise_scale)
    game = wi.worlds.uniform_subsets(range(5), 2).play(mechanism)
    assert found.pmp.epsilon == pytest.approx(game.pmp(delta=delta).epsilon, abs=1e-9)


@pytest.mark.parametrize("person", [["a"], [["a"] * 4], [1, "a", 2, {}]])
def test_bad_persons(person):
    with pytest.raises(InputError, match="person must"):
        wi.population.gaussian(np.ones((4, 1)), person=person, epsilon=1.0, delta=0.1, clip=1.0)
    with pytest.raises(InputError, match="person must"):
        wi.population.exponential(np.ones((4, 1)), [[1.0], [2.0]], person=person, epsilon=1.0, clip=1.0)
