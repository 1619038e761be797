"""The experiments on Izzo et al. 2022: right by a second route, and no committed result older than the code.

Cheap parts are computed again; of costly ones single numbers are.
"""

import itertools
import json
import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from committed import check_drawing, check_picture
from scipy.stats import binom

from experiments.izzo import NAMES, _common, dimension, figure_1, outlier, proposition_11, real_data
from experiments.izzo.noise import paper_scale
from whosin.protection import protect

ROOT = Path(__file__).parents[2]

GOLDEN = json.loads((ROOT / "tests" / "data" / "golden.json").read_text(encoding="utf-8"))["izzo"]
README = (ROOT / "experiments" / "izzo" / "README.md").read_text(encoding="utf-8")
ETAS = ("0.05", "0.1", "0.25")


def module(name):
    return import_module(f"experiments.izzo.{name}")


def close(value, rel=1e-9):
    return pytest.approx(value, rel=rel, abs=1e-12)


# --- the committed files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_committed_picture_was_drawn_from_the_committed_numbers(name):
    check_picture(_common, name, module(name).draw)


@pytest.mark.parametrize("name", NAMES)
def test_figures_can_be_drawn(name):
    check_drawing(_common, name, module(name).draw)


def test_committed_table_is_that_of_the_numbers():
    text = (_common.RESULTS / "real_data.md").read_text(encoding="utf-8")
    assert text == real_data.markdown(_common.read("real_data"))


def test_nothing_else_is_among_the_results():
    expected = {f"{name}.{kind}" for name in NAMES for kind in ("json", "png")} | {"real_data.md"}
    assert {path.name for path in _common.RESULTS.iterdir()} == expected


# --- figure 1 ---------------------------------------------------------------------------------------------------------


def test_figure_1_lines():
    data = _common.read("figure_1")
    for place, eta in enumerate(data["eta"]):
        dp = math.log((1 + 2 * eta) / (1 - 2 * eta))
        assert data["mip_as_printed"][place] == close((6.16 / eta) ** 2 * math.sqrt(5))
        assert data["mip_sharp"][place] == close(math.sqrt(5) / -math.log(1 - 2 * eta))
        for n, line in data["dp"].items():
            assert line[place] == close(math.sqrt(math.comb(int(n), int(n) // 2)) / dp)
    for eta, value in GOLDEN["fig1_MIP_sigma_sqrt5"].items():
        assert data["mip_as_printed"][data["eta"].index(float(eta))] == close(value)


def test_figure_1_crossings():
    found = _common.read("figure_1")["mip_as_printed_below_dp_from"]
    assert found["24"] == pytest.approx([0.222, 0.491], abs=5e-4)
    assert found["30"] == pytest.approx([0.0273], abs=5e-5)
    assert found["36"] == pytest.approx([0.00356], abs=5e-6)
    assert figure_1.crossing(36, 0.0005, 0.2) == close(found["36"][0])


def test_figure_1_noise_of_dp_grows_exponentially_and_that_of_mip_does_not():
    """Twelve records more multiply DP's noise by nearly 2^6; σ of proposition 11 stays below 1 at every n."""
    dp = _common.read("figure_1")["dp"]
    for few, many in (("24", "36"), ("36", "48")):
        assert dp[many][0] / dp[few][0] == close(dp[many][-1] / dp[few][-1])
        assert 50 < dp[many][0] / dp[few][0] < 64
    found = _common.read("proposition_11")
    assert found["n"][-1] == 20
    assert max(found["appendix"]["variance"]) < 1.0
    assert found["appendix"]["sensitivity"][-1] > 100 * found["appendix"]["sensitivity"][0]


def test_figure_1_enumerated():
    found = _common.read("figure_1")["enumerated"]
    halves = _common.Halves(_common.special_data_set(found["n"], "appendix"))
    assert halves.deviation() == close(found["mean_deviation"])
    assert float(np.std(halves.theta)) == close(found["standard_deviation"])
    steps = [halves.adjacent(record) for record in range(found["n"])]
    assert max(step.max() for step in steps) == close(found["sensitivity"])
    place = found["eta"].index(0.1)
    assert figure_1.average_scale(steps, 0.1) == close(found["average"][place], rel=1e-6)
    assert found["sharp_mean_deviation"][place] == close(halves.deviation() / -math.log(0.8))
    for lower, upper in itertools.pairwise(
        ("average", "sharp_mean_deviation", "sharp_standard_deviation", "dp", "as_printed")
    ):
        assert all(a < b for a, b in zip(found[lower], found[upper], strict=True))


@pytest.mark.parametrize(("eta", "scale"), [(0.05, 0.0436), (0.1, 0.0175), (0.25, 0.00412)])
def test_figure_1_average_is_that_of_an_independent_study(eta, scale):
    halves = _common.Halves(_common.special_data_set(10, "appendix"))
    steps = [halves.adjacent(record) for record in range(10)]
    assert figure_1.average_scale(steps, eta) == pytest.approx(scale, rel=5e-3)


# --- proposition 11 ---------------------------------------------------------------------------------------------------


def test_proposition_11_is_computed_again():
    data = _common.read("proposition_11")
    for text, n in itertools.product(proposition_11.TEXTS, (4, 8, 12, 14)):
        place = data["n"].index(n)
        for key, value in proposition_11.row(n, text).items():
            assert data[text][key][place] == close(value)
    last = data["n"].index(20)
    assert data["appendix"]["variance"][last] == pytest.approx(GOLDEN["prop11_appendix_n20"]["var"], abs=6e-9)
    assert data["appendix"]["sensitivity"][last] == pytest.approx(GOLDEN["prop11_appendix_n20"]["Delta"], abs=6e-7)


@pytest.mark.parametrize("text", proposition_11.TEXTS)
def test_proposition_11_by_hand(text):
    """All pairs of halves of six numbers, straight from the definition."""
    values = _common.special_data_set(6, text).tolist()
    halves = {who: 1 / math.fsum(values[i] for i in who) for who in itertools.combinations(range(6), 3)}
    delta = max(abs(halves[a] - halves[b]) for a in halves for b in halves if len({*a} - {*b}) == 1)
    row = proposition_11.row(6, text)
    assert row["sensitivity"] == close(delta)
    assert row["variance"] == close(float(np.var(list(halves.values()))))


# --- dimension --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", ETAS)
def test_dimension_breaks_where_said(eta):
    data = _common.read("dimension")
    assert data["breaks_at"][eta] == GOLDEN["break_dim_M2_616"][eta]
    c = GOLDEN["c_616_M2"][eta]
    for d in (1, 1000, 10**6):
        assert data["as_printed"][eta][data["d"].index(d)] == close(dimension.gain(d, c))
    assert data["as_printed"][eta][0] == close(GOLDEN["excess_d1_616"][eta])
    assert data["gamma_radius"][eta][2] == close(dimension.gain(10, c, True))
    assert all(a > b for a, b in itertools.pairwise(data["gamma_radius"][eta]))
    first = data["breaks_at_with_7.5"][eta]
    assert (
        dimension.gain(first - 1, (7.5 / float(eta)) ** 2)
        <= float(eta)
        < dimension.gain(first, (7.5 / float(eta)) ** 2)
    )


def test_dimension_search_finds_the_first():
    assert dimension.first_break(0.25) == 52844


@pytest.mark.parametrize("d", [20, 300])
def test_dimension_directions_agree_with_the_integral(d):
    value, error = dimension.drawn_gain(d, 2, 30.0, np.random.default_rng(d))
    assert value == pytest.approx(dimension.gain(d, 30.0), abs=4.5 * error)


def test_dimension_directions_agree_with_the_sampler():
    """M = 8: right guesses of a whole simulation against the gain over directions, judged with both errors."""
    d, order, c, rows = 30, 8, 20.0, 20_000
    rng = np.random.default_rng(3)
    y = rng.gamma(1 / order, size=(rows, d)) ** (1 / order) * rng.choice([-1.0, 1.0], (rows, d))
    x = rng.laplace(0.0, c, (rows, 1)) * y / np.mean(y**order, axis=1, keepdims=True) ** (1 / order)
    right = int(np.sum(np.mean(x**order, axis=1) < np.mean((x - 2.0) ** order, axis=1)))
    value, error = dimension.drawn_gain(d, order, c, rng)
    assert binom.sf(right - 1, rows, 0.5 + value + 3 * error) > 1e-4
    assert binom.cdf(right, rows, 0.5 + value - 3 * error) > 1e-4
    assert value > 0.1


def test_dimension_larger_moments():
    """The first committed numbers again, and where the promise breaks at η = 0.1 (independent study: 800, 47, 13)."""
    data, rng = _common.read("dimension")["larger_moments"], np.random.default_rng(10)
    for place in range(2):
        value, error = dimension.drawn_gain(data["4"]["d"][place], 4, paper_scale(0.05, 1.0, 4), rng)
        assert data["4"]["0.05"]["gain"][place] == close(value)
        assert data["4"]["0.05"]["standard_error"][place] == close(error)
    for order, first in (("4", 800), ("8", 47), ("16", 13)):
        crossing = np.interp(0.1, data[order]["0.1"]["gain"], np.log(data[order]["d"]))
        assert math.exp(crossing) == pytest.approx(first, rel=0.25)


# --- outlier ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "accuracy"), [(3.0, 0.5853), (10.0, 0.7514), (100.0, 0.9459), (1e6, 1.0)])
def test_outlier_accuracy(size, accuracy):
    data = _common.read("outlier")
    place = data["outlier"].index(size)
    for eta in ETAS:
        assert data["as_printed"][eta][place] == pytest.approx(accuracy, abs=1.5e-4)
        assert data["scale_from_the_pool"][eta][place] <= 0.5 + 8.3e-4
        assert data["sharp_scale_from_the_pool"][eta][place] <= 0.5 + float(eta)
    values = outlier.pool(12, size)
    assert outlier.pool_accuracy(values, _common.moment_scale(outlier.deviation(values, 6), 0.1)) == close(
        data["sharp_scale_from_the_pool"]["0.1"][place]
    )


def test_outlier_is_computed_again():
    data = _common.read("outlier")
    found = outlier.leaking_accuracy(outlier.pool(12, 10.0), paper_scale(0.1, 1.0))
    assert data["as_printed"]["0.1"][data["outlier"].index(10.0)] == close(found)
    found = outlier.leaking_accuracy(outlier.pool(8, 100.0), paper_scale(0.1, 1.0))
    assert data["over_n"]["100"][data["sizes"].index(8)] == close(found)


def test_outlier_deviation_is_that_of_all_subsets():
    values = outlier.pool(12, 10.0)[:6]
    assert outlier.deviation(values, 3) == close(float(np.std([np.mean(s) for s in itertools.combinations(values, 3)])))


# --- real data --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks():
    return {task.name: task for task in real_data.tasks()}


@pytest.fixture(scope="module")
def committed():
    return {found["estimate"]: found for found in _common.read("real_data")["estimates"]}


def test_real_data_mean_is_computed_again(tasks, committed):
    now = real_data.measure(tasks["mean"], (0.25,))
    for key, value in now.items():
        old = committed["mean"][key]
        if key == "0.25":
            for route, one in value.items():
                assert old[route]["noise"] == close(one["noise"], rel=1e-3), route
        else:
            assert old == (close(value) if isinstance(value, float) else value)


def test_real_data_median_is_certified_again(tasks, committed):
    task = tasks["median"]
    found = protect(
        task.function, task.pool, eta=0.25, subsets=real_data.SUBSETS, sensitivity="moment", split="total", rng=2
    )
    size = math.sqrt(np.mean(np.asarray(found.certificate.noise_scale) ** 2))
    assert committed["median"]["0.25"]["moment"]["noise"] == close(size, rel=1e-3)


def test_real_data_sensitivity_of_a_median():
    """Against all neighbouring fives of ten numbers, each column by itself."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10, 1))
    task = real_data.Task("median", real_data.medians, (x, x[:, 0]), (x, x[:, 0]))
    fives = {who: float(np.median(x[list(who)])) for who in itertools.combinations(range(10), 5)}
    widest = max(abs(fives[a] - fives[b]) for a in fives for b in fives if len({*a} - {*b}) == 1)
    assert real_data.sensitivity(task, rng) == (close(widest), "at most")


def test_real_data_models_are_those_of_scikit_learn(tasks):
    from sklearn.linear_model import LogisticRegression, Ridge

    x, y = tasks["ridge regression"].pool
    theirs = Ridge(alpha=1.0).fit(x, y)
    assert real_data.ridge(x, y) == pytest.approx([theirs.intercept_, *theirs.coef_], abs=1e-9)
    x, y = tasks["logistic regression"].pool
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=2000).fit(x, y)
    assert real_data.logistic(x, y) == pytest.approx([*theirs.intercept_, *theirs.coef_[0]], abs=1e-4)
    ours, test = real_data.logistic(x, y), tasks["logistic regression"].test
    assert real_data.right(ours[None, :], *test)[0] == pytest.approx(theirs.score(*test), abs=0.011)


@pytest.mark.parametrize("law", ["gaussian", "norm exponential", "laplace radius"])
def test_real_data_noise_has_the_stated_size(law):
    scale = np.array([0.5, 1.0, 4.0])
    drawn = real_data.draw_noise(law, scale, 200_000, np.random.default_rng(1))
    assert drawn.std(axis=0) == pytest.approx(real_data.deviations(law, scale), rel=0.02)


def test_real_data_order_of_the_routes(committed):
    """The paper's scale is far above all others, and above DP; the average is the least of what promises something."""
    for found in committed.values():
        for eta in ETAS:
            noise = {route: one["noise"] for route, one in found[eta].items()}
            assert noise["paper"] > 5 * noise["paper_as_printed"] > 100 * noise["average"]
            assert noise["paper"] > 30 * noise["restricted_dp"]
            assert noise["average"] < min(noise["moment"], noise["restricted_dp"])
        for route in real_data.ROUTES:
            assert found["0.05"][route]["noise"] > found["0.1"][route]["noise"] > found["0.25"][route]["noise"]


def test_real_data_reads_another_file(tmp_path):
    rng = np.random.default_rng(2)
    lines = [f"{a:.3f}, word, {b:.3f}, {'yes' if a + b > 0 else 'no'}" for a, b in rng.standard_normal((90, 2))]
    path = tmp_path / "records.csv"
    path.write_text("\n".join(lines))
    found = real_data.tasks_of_file(str(path))
    assert [task.name for task in found] == ["mean", "median", "covariance", "logistic regression"]
    assert found[0].pool[0].shape == (58, 2)
    assert found[0].test[0].shape == (30, 2)
    assert set(found[0].pool[1]) == {0.0, 1.0}
    assert found[2].function(*found[2].pool).shape == (3,)
    row = real_data.measure(found[0], (0.1,))
    assert row["0.1"]["average"]["noise"] > 0.0


# --- the page ---------------------------------------------------------------------------------------------------------


def quoted():
    """Return the numbers that the README takes from the results, as it writes them."""
    one, eleven, dims, out, real = (_common.read(name) for name in NAMES)
    tenth = one["enumerated"]["eta"].index(0.1)
    at = {key: one["enumerated"][key][tenth] for key in ("as_printed", "dp")}
    sharp, mean, average = (
        one["enumerated"][key][tenth] for key in ("sharp_standard_deviation", "sharp_mean_deviation", "average")
    )
    place, right = one["eta"].index(0.1), eleven["appendix"]
    crossings = one["mip_as_printed_below_dp_from"]
    cells = [
        f"{'≥ ' if found['sensitivity_is'] == 'at least' and route in ('restricted_dp', 'worst_neighbour') else ''}"
        f"{found['0.1'][route]['noise'] / found['sampling_error']:.3g}"
        for found in real["estimates"]
        for route in real_data.ROUTES
    ]
    rows = [" | ".join(cells[i : i + 6]) for i in range(0, 30, 6)]
    ridge, logistic = real["estimates"][3], real["estimates"][4]
    accuracies = [logistic[eta]["average"]["quality"] for eta in ETAS]
    leak = dict(zip(out["outlier"], out["as_printed"]["0.1"], strict=True))
    return [
        f"{one['mip_as_printed'][place] / one['mip_sharp'][place]:.0f} times less",
        f"{one['mip_sharp'][place]:.1f} at η = 0.1, printed {one['mip_as_printed'][place]:.0f}",
        f"η = {crossings['36'][0]:.4f} on",
        f"{crossings['30'][0]:.4f} on for n = 30",
        f"between {crossings['24'][0]:.3f} and {crossings['24'][1]:.3f}",
        f"({at['as_printed']:.0f} at η = 0.1) is above DP ({at['dp']:.0f})",
        f"{sharp:.2f}, with the mean deviation",
        f"{mean:.4f}",
        f"{average:.5f}",
        f"variance {right['variance'][-1]:.5f} and Δ = {right['sensitivity'][-1]:.1f} at n = 20",
        f"mean deviation {right['mean_deviation'][-1]:.5f}",
        f"Δ = {eleven['main']['sensitivity'][-1]:.4f}",
        "{}, {} and {}".format(*dims["breaks_at"].values()),
        f"{leak[3.0]:.1%}, {leak[10.0]:.1%} and {leak[100.0]:.1%}",
        f"{leak[1e4]:.1%} at 10,000",
        f"leaves {max(out['scale_from_the_pool']['0.1']):.2%} at η = 0.1",
        f"up to {max(out['sharp_scale_from_the_pool']['0.1']):.2%}",
        *rows,
        f"({logistic['0.1']['paper_as_printed']['quality']:.1%} at η = 0.1",
        f"{logistic['quality_without_noise']:.1%} without noise",
        "{:.1%}, {:.1%} and {:.1%}".format(*accuracies),
        f"({ridge['quality_without_noise']:.3f} without noise)",
        f"{ridge['0.25']['average']['quality']:.3f}",
        f"from {real['subsets']} subsets, or {real['rounds']} rounds",
        f"{real['estimates'][0]['pool']} records in the pool",
    ]


@pytest.mark.parametrize("number", quoted())
def test_readme_quotes_the_results(number):
    assert number in " ".join(README.split())
