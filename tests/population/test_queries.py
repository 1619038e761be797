"""Histograms, moments, quantiles and randomised response on a pool, against worlds and against the definition."""

import itertools
import math

import numpy as np
import pytest

import whosin as wi
from whosin.errors import InputError, InputTypeError

RNG = np.random.default_rng(3)


def test_cells_hold_their_lower_edge_and_nothing_outside():
    query = wi.population.Histogram([[0, 1, 2], [10, 20, 30, 40]])
    assert query.shape == (2, 3)
    rows = query(np.array([[0.0, 10.0], [1.0, 39.9], [2.0, 10.0], [0.5, 9.0], [1.9, 20.0]]))
    assert rows.argmax(axis=1).tolist() == [0, 5, 0, 0, 4]
    assert rows.sum(axis=1).tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([], "two or more rising numbers"),
        ([1.0], "two or more rising numbers"),
        ([1.0, 1.0], "two or more rising numbers"),
        ([[0, 1], [2, 1]], "two or more rising numbers"),
        ([0, math.nan, 1], "two or more rising numbers"),
        (["a", "b"], "rising numbers"),
        ([range(500), range(500)], "at most 100000 cells"),
    ],
)
def test_edges_that_make_no_sense_are_named(edges, words):
    with pytest.raises(InputError, match=rf"^edges must .*{words}"):
        wi.population.Histogram(edges)


def test_reach_and_width_are_attained_and_never_exceeded():
    histogram, moments = wi.population.Histogram([-1, 0, 1]), wi.population.RegressionMoments(2.0)
    for query, rows in ((histogram, RNG.uniform(-1, 1, (50, 1))), (moments, RNG.normal(size=(300, 3)) * 3)):
        found = query(rows)
        apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(found, 2))
        assert np.linalg.norm(found, axis=1).max() <= query.reach
        assert apart <= query.width
    far = moments(np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [1e9, 0.0, 0.0]]))
    assert np.linalg.norm(far, axis=1) == pytest.approx([5.0] * 4)
    assert np.linalg.norm(far[0] - far[1]) == pytest.approx(math.sqrt(2 * 25 - 2), rel=1e-12)  # z·z' = 1


def test_the_moments_give_the_regression_back():
    rows = RNG.normal(size=(40, 3)) * 0.2
    sums = wi.population.RegressionMoments(5.0)(rows).sum(axis=0)
    full = np.zeros((4, 4))
    first, second = np.triu_indices(4)
    full[first, second] = full[second, first] = sums / np.where(first == second, 1.0, math.sqrt(2.0))
    design = np.column_stack([np.ones(40), rows[:, :2]])
    wanted = np.linalg.lstsq(design, rows[:, 2], rcond=None)[0]
    assert np.linalg.solve(full[:3, :3], full[:3, 3]) == pytest.approx(wanted, rel=1e-9)


def test_two_cells_are_one_question():
    """Cells that hold everybody differ in one direction, and the noise there is that of one number."""
    ages = np.linspace(18, 90, 16)
    cells = wi.population.gaussian(
        ages, epsilon=1.0, delta=0.01, query=wi.population.Histogram([0, 45, 120]), method="pairwise"
    )
    number = np.where(ages < 45, 1.0, -1.0) / math.sqrt(2.0)
    exact, pairs = (
        wi.population.gaussian(number, epsilon=1.0, delta=0.01, clip=1 / math.sqrt(2.0), method=method)
        for method in ("exact", "pairwise")
    )
    assert cells.sensitivity == pytest.approx(exact.sensitivity, rel=1e-12)
    assert cells.per_record == pytest.approx(pairs.per_record, rel=1e-9)
    assert np.all(exact.per_record <= cells.per_record)


@pytest.mark.parametrize("train_fraction", [0.5, 0.3])
def test_cells_that_hold_everybody_are_solved_in_one_direction_less(train_fraction):
    """Two cells are one number, exactly; a third column that repeats the others adds nothing."""
    ages = np.linspace(18, 90, 16)
    setting = {"epsilon": 2.0, "delta": 0.01, "train_fraction": train_fraction}
    cells = wi.population.gaussian(ages, query=wi.population.Histogram([0, 45, 120]), **setting)
    number = np.where(ages < 45, 1.0, -1.0) / math.sqrt(2.0)
    exact = wi.population.gaussian(number, clip=1 / math.sqrt(2.0), **setting)
    assert (cells.method, cells.confidence_level) == ("exact", None)
    assert cells.per_record == pytest.approx(exact.per_record, rel=1e-4)
    assert np.all(cells.per_record >= exact.per_record_lower)
    assert np.all(cells.per_record_lower <= exact.per_record)
    assert np.all(cells.per_record - cells.per_record_lower <= 1e-3 * cells.per_record + 1e-6)
    game = wi.worlds.uniform_subsets(range(16), cells.train_size).play(
        wi.mechanisms.Gaussian(lambda drawn: sum(number[i] for i in drawn) / len(drawn), cells.noise_scale)
    )
    assert game.pmp(delta=0.01).epsilon <= cells.pmp.epsilon <= game.pmp(delta=0.01).epsilon * (1 + 1e-3)


@pytest.mark.parametrize("train_fraction", [0.5, 0.4])
@pytest.mark.parametrize("name", ["contingency table", "regression moments"])
def test_tables_and_moments_against_all_draws(name, train_fraction):
    """Both laws are mixtures of normal laws around the sums of all draws; E is estimated by 30,000 outputs of each."""
    rng = np.random.default_rng(8)
    rows = rng.uniform(-1, 1, (14, 2))
    query = {
        "contingency table": wi.population.Histogram([[-1, 0, 1], [-1, 0.2, 1]]),
        "regression moments": wi.population.RegressionMoments(1.0),
    }[name]
    found = wi.population.gaussian(rows, epsilon=3.0, delta=0.05, query=query, train_fraction=train_fraction, rng=0)
    own, k, scale = found.most_exposed, found.train_size, found.noise_scale
    f = query(rows) / k
    others = [i for i in range(14) if i != own]
    centres = [
        f[np.array(list(itertools.combinations(others, m)))].sum(axis=1) + (f[own] if m < k else 0.0)
        for m in (k - 1, k)
    ]

    def density(y, side):
        apart = -2.0 * y @ centres[side].T + (centres[side] ** 2).sum(axis=1)
        return np.exp(-0.5 * apart / scale**2).mean(axis=1)

    def limits(epsilon):
        """Mean and standard error of the larger of the two divergences."""
        both = []
        for side in (0, 1):
            parts = [np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0) for ratio in ratios[side]]
            values = np.concatenate(parts)
            both.append((values.mean(), values.std() / math.sqrt(len(values))))
        return max(both)

    ratios = {0: [], 1: []}
    for side in (0, 1):
        for _ in range(3):
            y = centres[side][rng.integers(len(centres[side]), size=10_000)]
            y = y + scale * rng.standard_normal(y.shape)
            ratios[side].append(density(y, 1 - side) / density(y, side))
    mean, error = limits(found.pmp.epsilon)
    assert mean <= 0.05 + 4 * error
    mean, error = limits(found.at_least - 1e-6)
    assert mean >= 0.05 - 4 * error
    assert 0.3 * found.pmp.epsilon < found.at_least


def test_a_clip_is_needed_where_the_query_does_not_know_it():
    with pytest.raises(InputTypeError, match="clip is needed"):
        wi.population.gaussian([1.0, 2.0, 3.0], epsilon=1.0, delta=0.1)
    cells = wi.population.Histogram([0, 2, 4])
    with pytest.raises(InputTypeError, match="clip is needed"):  # a person's rows may be in many cells
        wi.population.gaussian([1.0, 2.0, 3.0, 1.0], epsilon=1.0, delta=0.1, query=cells, person=[1, 1, 2, 3])
    with pytest.raises(InputError, match="for each of 2 columns"):
        wi.population.gaussian(np.ones((3, 2)), epsilon=1.0, delta=0.1, query=cells)


def pinball(level, place, value):
    return level * max(value - place, 0.0) + (1.0 - level) * max(place - value, 0.0)


@pytest.mark.parametrize("level", [0.0, 0.5, 0.9])
def test_quantiles_are_those_of_the_exact_world(level):
    values, grid = RNG.uniform(-1, 1, 8), np.linspace(-1.5, 1.5, 5)
    found = wi.population.exponential(values, grid, epsilon=3.0, clip=1.0, loss="quantile", quantile=level)
    mechanism = wi.mechanisms.Exponential(
        tuple(grid.tolist()), lambda w, i: pinball(level, w, values[i]), found.noise_scale
    )
    game = wi.worlds.uniform_subsets(range(8), 4).play(mechanism)
    assert found.pmp.epsilon == pytest.approx(game.pmp().epsilon, abs=1e-9)
    assert found.pmp.epsilon >= game.pmp().epsilon - 1e-12
    assert game.dp().epsilon <= found.dp_at_most.epsilon + 1e-12 <= 3.0 + 1e-9
    fine = np.linspace(-1, 1, 401)
    table = np.array([[pinball(level, w, x) for w in grid] for x in fine])
    assert np.ptp(table, axis=0).max() / 4 == pytest.approx(found.sensitivity, rel=1e-9)
    gaps = table[:, :, None] - table[:, None, :]
    assert np.ptp(gaps, axis=0).max() * found.noise_scale / 4 <= found.dp_at_most.epsilon + 1e-12


def test_quantile_and_its_loss_go_together():
    for options in ({"quantile": 0.5}, {"loss": "quantile"}, {"loss": "squared", "quantile": 0.5}):
        with pytest.raises(InputTypeError, match="quantile goes with loss='quantile'"):
            wi.population.exponential([1.0, 2.0, 3.0], [[1.0], [2.0]], epsilon=1.0, clip=3.0, **options)
    with pytest.raises(InputError, match=r"^quantile must"):
        wi.population.exponential([1.0, 2.0], [[1.0]], epsilon=1.0, clip=3.0, loss="quantile", quantile=1.5)
    with pytest.raises(InputError, match="needs one column"):
        wi.population.exponential(
            np.ones((3, 2)), np.ones((2, 2)), epsilon=1.0, clip=3.0, loss="quantile", quantile=0.5
        )


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_randomised_response_is_that_of_the_exact_world(epsilon, delta):
    values, answers = ["a", "b", "b", "c", "b", "a"], ["a", "b", "c", "d"]
    found = wi.population.randomized_response(values, epsilon=epsilon, delta=delta, categories=answers)
    chance = math.exp(epsilon) + 3.0
    game = wi.worlds.uniform_subsets(range(6), 1).play(
        lambda drawn: {w: (math.exp(epsilon) if w == values[drawn[0]] else 1.0) / chance for w in answers}
    )
    assert found.pmp.epsilon == pytest.approx(game.pmp(delta=delta).epsilon, abs=1e-9)
    assert found.pmp.epsilon >= min(game.pmp(delta=delta).epsilon, epsilon) - 1e-13
    assert found.pmp.epsilon <= found.dp.epsilon
    assert found.train_size == 1


def test_randomised_response_at_its_ends():
    assert wi.population.randomized_response(["x", "y"], epsilon=5000.0).pmp.epsilon == 5000.0
    alike = wi.population.randomized_response(["x"] * 5, epsilon=3.0, categories=["x", "y"])
    assert alike.pmp.epsilon == pytest.approx(0.0, abs=1e-12)
    assert alike.dp_on_records.epsilon == 0.0
    for values, options, words in (
        (["x"], {}, "values must be those of two people"),
        (["x", "x"], {}, "categories must be two"),
        (["x", "z"], {"categories": ["x", "y"]}, "values must all be among the categories, got 'z'"),
        (["x", "y"], {"epsilon": -1.0}, "epsilon must"),
    ):
        with pytest.raises(InputError, match=words):
            wi.population.randomized_response(values, **{"epsilon": 1.0, **options})


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
def test_randomised_response_says_that_it_is_exact(delta):
    found = wi.population.randomized_response(["no"] * 9 + ["yes"], epsilon=2.0, delta=delta)
    assert found.exact
    assert np.all(found.per_record_lower <= found.per_record)
    assert str(found).startswith("ε̃ =")
