"""The experiments on Thudi et al. 2022: right by a second route, and no committed result older than the code."""

import json
import math
from importlib import import_module
from pathlib import Path

import mpmath
import pytest
from committed import check_drawing, check_picture, differences

from experiments._shared import to_text
from experiments.thudi import NAMES, _common

ROOT = Path(__file__).parents[2]

GOLDEN = json.loads((ROOT / "tests" / "data" / "golden.json").read_text(encoding="utf-8"))["thudi"]
FIGURES = [name for name in NAMES if name.startswith("figure")]
README = (ROOT / "experiments" / "thudi" / "README.md").read_text(encoding="utf-8")


def module(name):
    return import_module(f"experiments.thudi.{name}")


@pytest.fixture(scope="module")
def fresh():
    """What every compute() returns now."""
    return {name: module(name).compute() for name in NAMES}


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


# --- the committed files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_committed_numbers_are_those_of_the_code(name, fresh):
    now = json.loads(to_text(fresh[name]))
    assert differences(_common.read(name), now, 1e-11, 1e-15) == [], f"run: python -m experiments.thudi {name}"


@pytest.mark.parametrize("name", FIGURES)
def test_committed_picture_was_drawn_from_the_committed_numbers(name):
    check_picture(_common, name, module(name).draw)


def test_committed_table_is_that_of_the_numbers():
    text = (_common.RESULTS / "table_1.md").read_text(encoding="utf-8")
    assert text == module("table_1").markdown(_common.read("table_1"))


@pytest.mark.parametrize("name", FIGURES)
def test_figures_can_be_drawn(name):
    check_drawing(_common, name, module(name).draw)


def test_nothing_else_is_among_the_results():
    expected = {f"{name}.json" for name in NAMES} | {f"{name}.png" for name in FIGURES} | {"table_1.md"}
    assert {path.name for path in _common.RESULTS.iterdir()} == expected


# --- the numbers ------------------------------------------------------------------------------------------------------


def test_figure_1_true_amplification_is_never_below_the_printed_one(fresh):
    data = fresh["figure_1"]
    example = next(e for e in data["examples"] if (e["epsilon_0"], e["q"]) == (10.0, 0.01))
    assert example["epsilon_as_printed"] == close(0.1)
    assert example["epsilon_true_law"] == close(float(mpmath.log(1 + (mpmath.exp(10) - 1) / 100)))
    bound = data["theorem_1"]
    gaps = [t - p for t, p in zip(bound["batch_true_law"], bound["batch_as_printed"], strict=True)]
    assert min(gaps) >= -1e-15
    assert max(gaps) > 0.4
    t = data["printed_factors"]["equal_at_t"]
    assert math.exp(-t) == close((1 - t) / t)


def test_figure_2_accuracy_bounds(fresh):
    data = fresh["figure_2"]
    at_1, at_2 = data["at"]["1"], data["at"]["2"]
    assert at_1["Thudi et al. 2022"] == close(GOLDEN["acc_eps1"])
    assert at_2["Thudi et al. 2022"] == close(GOLDEN["acc_eps2"])
    assert at_1["Erlingsson et al. 2019"] == close(GOLDEN["erlingsson_eps1"])
    assert at_2["Erlingsson et al. 2019"] == close(GOLDEN["erlingsson_eps2"])
    assert at_1["Sablayrolles et al. 2019"] == close(GOLDEN["sablayrolles_eps1"])
    assert at_2["Sablayrolles et al. 2019"] == close(GOLDEN["sablayrolles_eps2"])
    assert data["as_printed"]["2"]["Erlingsson et al. 2019"] == GOLDEN["erlingsson_eps2_printed"]
    ours = data["accuracy"]["Thudi et al. 2022"]
    assert ours == pytest.approx(data["exact_ceiling"], rel=1e-12)
    for values in data["accuracy"].values():
        assert all(theirs >= own - 1e-15 for theirs, own in zip(values, ours, strict=True))


def test_figure_2_every_printed_number_but_the_misprint_is_right(fresh):
    wrong = [
        (epsilon, name)
        for epsilon, printed in fresh["figure_2"]["as_printed"].items()
        for name, value in printed.items()
        if abs(fresh["figure_2"]["at"][epsilon][name] - value) > 0.001
    ]
    assert wrong == [("2", "Erlingsson et al. 2019")]


def test_figure_3_positive_accuracy(fresh):
    data = fresh["figure_3"]
    assert data["example"]["bound"] == close(GOLDEN["pos_acc_eps2_p001"])
    place = data["prior"].index(0.01)
    assert data["positive_accuracy"]["2"][place] == close(GOLDEN["pos_acc_eps2_p001"])
    assert data["positive_accuracy"]["1"][data["prior"].index(0.5)] == close(GOLDEN["acc_eps1"])


def test_figure_4_noise_and_accuracy(fresh):
    data = fresh["figure_4"]
    printed, exact = data["noise_as_printed"], data["noise_exact"]
    assert printed["noise"] == GOLDEN["noise_printed"]
    assert exact["noise"] == close(GOLDEN["noise_balle_wang_sens1"])
    assert exact["epsilon_at_delta_1e-5"] <= 1.0
    assert printed["delta_at_epsilon_1"] == pytest.approx(GOLDEN["delta_at_eps1_sigma4.0412"], rel=1e-12, abs=0.0)
    assert printed["largest_accuracy"] == close(GOLDEN["acc_at_4.0412"])
    assert exact["largest_accuracy"] == close(GOLDEN["acc_at_balle_wang"])
    for one in (printed, exact):
        assert one["accuracy_at_minus_half"] == close(one["largest_accuracy"])
        assert max(one["accuracy"]) <= one["largest_accuracy"] + 1e-15
        assert one["largest_posterior"] == 1.0
        assert one["positive_accuracy"][0] > 0.99
        assert all(a >= b for a, b in zip(one["positive_accuracy"], one["positive_accuracy"][1:], strict=False))


@pytest.mark.parametrize("offset", [-100.0, -30.0, -0.5, 14.0])
@pytest.mark.parametrize("key", ["noise_as_printed", "noise_exact"])
def test_figure_4_curves_are_equations_3_and_4(fresh, key, offset):
    noise = fresh["figure_4"][key]["noise"]
    with mpmath.workdps(40):
        without = mpmath.ncdf(mpmath.mpf(offset) / noise)
        within = mpmath.ncdf((mpmath.mpf(offset) + 1) / noise)
        equation_3, equation_4 = float(within / (within + without)), float((1 - without + within) / 2)
    assert module("figure_4").positive_accuracy(noise, offset) == close(equation_3)
    assert module("figure_4").accuracy(noise, offset) == close(equation_4)


def test_figure_5_theorem_1_is_below_everywhere_and_closest_where_said(fresh):
    data = fresh["figure_5"]
    for epsilon, theirs in data["sablayrolles"].items():
        gaps = [s - t for s, t in zip(theirs, data["thudi"][epsilon], strict=True)]
        assert min(gaps) > 0
        smallest = data["closest"][epsilon]["gap"]
        assert smallest == close(float(epsilon) / 4 - math.tanh(float(epsilon) / 4))
        assert all(gap >= smallest - 1e-12 for gap, s in zip(gaps, theirs, strict=True) if s < 1.0)


def test_figure_6_peak(fresh):
    data = fresh["figure_6"]
    assert data["peak"]["2"]["prior"] == close(GOLDEN["fig6_argmax_p_eps2"])
    assert data["peak"]["2"]["advantage"] == close(GOLDEN["fig6_max_adv_eps2"])
    for epsilon, peak in data["peak"].items():
        assert peak["advantage"] == close(peak["2tanh(epsilon/4)"])
        assert max(data["advantage"][epsilon]) <= peak["advantage"] + 1e-12


@pytest.mark.parametrize("size", sorted(GOLDEN["deletion"], key=int))
def test_figure_7_capacity(fresh, size):
    row = next(row for row in fresh["figure_7"]["table"] if row["c"] == int(size))
    golden = GOLDEN["deletion"][size]
    assert row["L"] == close(golden["L_correct"])
    assert row["capacity"] == close(golden["m_correct"])
    # At c = 1 the golden value went through ln(0.99996...) in double precision and has eleven digits; mpmath has more.
    assert row["capacity_as_printed"] == pytest.approx(golden["m_printed"], rel=1e-12 if size != "1" else 1e-11)
    with mpmath.workdps(40):
        odds = mpmath.mpf(size) / (10_000 - mpmath.mpf(size))
        right, wrong = (-mpmath.log(mpmath.mpf("0.8")) / mpmath.log1p(mpmath.exp(sign) * odds) for sign in (1, -1))
        guarantee = (1 + mpmath.e * odds) ** -wrong
    assert row["capacity"] == close(float(right))
    assert row["capacity_as_printed"] == close(float(wrong))
    assert row["overstated_factor"] == close(float(wrong / right))
    assert row["true_guarantee_at_printed_capacity"] == close(float(guarantee))
    assert row["overstated_factor"] < fresh["figure_7"]["overstated_limit"] == close(math.exp(2))


def test_figure_7_range_and_end(fresh):
    data = fresh["figure_7"]
    assert data["true_guarantee_range"]["c"] == [1, 2000]
    low, high = data["true_guarantee_range"]["guarantee"]
    assert (round(low, 2), round(high, 2)) == (0.19, 0.27)
    end = data["no_deletion_beyond_c"]
    assert module("figure_7").row(end * (1 - 1e-9))["whole_capacity"] == 1
    assert module("figure_7").row(end * (1 + 1e-9))["whole_capacity"] == 0


def test_table_1(fresh):
    rows = {(row["bound"], row["quantity"], row["prior"]): row["values"] for row in fresh["table_1"]["rows"]}
    assert rows["Thudi et al. 2022", "accuracy", 0.5]["1"] == close(GOLDEN["acc_eps1"])
    assert rows["Thudi et al. 2022", "accuracy", 0.5]["2"] == close(GOLDEN["acc_eps2"])
    assert rows["Erlingsson et al. 2019", "accuracy", 0.5]["2"] == close(GOLDEN["erlingsson_eps2"])
    assert rows["Sablayrolles et al. 2019", "accuracy", 0.5]["1"] == close(GOLDEN["sablayrolles_eps1"])
    assert rows["Yeom et al. 2018", "accuracy", 0.5]["0.5"] == close(math.exp(0.5) / 2)
    assert rows["Thudi et al. 2022", "positive accuracy", 0.01]["2"] == close(GOLDEN["pos_acc_eps2_p001"])


# --- the page ---------------------------------------------------------------------------------------------------------


def quoted():
    """Return the numbers that the README takes from the results, as it writes them."""
    one, two, three, four, five, six, seven = (_common.read(name) for name in FIGURES)
    example = next(e for e in one["examples"] if (e["epsilon_0"], e["q"]) == (10.0, 0.01))
    printed, exact = four["noise_as_printed"], four["noise_exact"]
    first = seven["table"][0]
    return [
        f"t = {one['printed_factors']['equal_at_t']:.3f}",
        f"{example['epsilon_true_law']:.2f}",
        f"{example['bound_true_law']:.2%}",
        f"{example['bound_as_printed']:.1%}",
        f"{two['at']['2']['Erlingsson et al. 2019']:.3%}",
        f"{two['at']['1']['Thudi et al. 2022']:.2%}",
        f"{two['at']['2']['Thudi et al. 2022']:.2%}",
        f"{two['erlingsson_meets_sablayrolles_at_epsilon']:.3f}",
        f"{three['example']['bound']:.3%}",
        f"{exact['noise']:.4f}",
        f"{exact['largest_accuracy']:.2%}",
        f"{printed['largest_accuracy']:.2%}",
        f"{printed['epsilon_at_delta_1e-5']:.3f}",
        f"{exact['passes_pure_limit']['probability']:.3%}",
        f"{four['general_accuracy_limit']:.4%}",
        f"{five['closest']['1']['gap']:.4f}",
        f"{five['closest']['2']['gap']:.4f}",
        f"{six['peak']['2']['prior']:.3f}",
        f"{six['peak']['2']['advantage']:.3f}",
        f"{six['peak']['2']['at_prior_half']:.3f}",
        f"{six['equation_5_as_printed']['as_printed']:.3f}",
        f"{first['capacity']:.1f}",
        f"{first['capacity_as_printed']:.1f}",
        f"{first['overstated_factor']:.2f}",
        *(f"{value:.0%}" for value in seven["true_guarantee_range"]["guarantee"]),
        f"{seven['no_deletion_beyond_c']:.1f}",
        f"{seven['equals_linear_trend_at_c']:.1f}",
        f"{seven['as_printed_equals_linear_trend_at_c']:.1f}",
    ]


@pytest.mark.parametrize("number", quoted())
def test_readme_quotes_the_results(number):
    assert number in README
