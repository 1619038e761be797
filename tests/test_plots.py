"""What the other pictures draw: the numbers they were given, all of them visible, names as plain text."""

import sys
import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

import whosin as wi
from whosin.errors import InputError, MissingExtraError
from whosin.plots import (
    COLOURS,
    GREY,
    draw_bounds,
    draw_bounds_by_epsilon,
    draw_curve,
    draw_forest,
    draw_individual,
    draw_measured,
    draw_population,
    draw_release_size,
    height_of,
    new_axes,
    two_lines,
)  # fmt: skip

LONG = "native country = Holand-Netherlands, occupation = protective services and others"
FPR = np.linspace(0.0, 1.0, 101)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(ax):
    return {label.get_text(): float(place) for place, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}


def segments(collection):
    return np.array([path.vertices for path in collection.get_paths()])


def drawn(ax):
    """Draw for good, with every warning an error: nothing collapses, nothing is parsed as a formula."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.canvas.draw()
    return ax


# --- curves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_audit_shows_curve_band_and_promise(scale):
    promised = wi.PureDP(1.0).roc.tpr(FPR)
    sides = FPR, np.minimum(1.0, 1.2 * np.sqrt(FPR))
    ax = drawn(draw_measured(None, FPR, np.sqrt(FPR), *sides, label="by $x_", scale=scale, promised=promised))
    assert legend(ax) == ["blind guessing", "by $x_", "limits", "promised: at most"]
    assert (ax.get_xscale(), ax.get_yscale()) == (scale, scale)
    first = 1 if scale == "log" else 0
    _, curve, promise = ax.lines
    assert np.array_equal(curve.get_ydata(), np.sqrt(FPR)[first:])
    assert np.array_equal(promise.get_ydata(), promised[first:])
    assert (curve.get_color(), promise.get_color()) == COLOURS[:2]
    assert curve.get_linestyle() != promise.get_linestyle()
    band = ax.collections[0].get_paths()[0].vertices
    for side in sides:
        assert {(x, y) for x, y in zip(FPR[first:], side[first:], strict=True)} <= set(map(tuple, band))


def test_a_band_without_a_promise():
    ax = draw_measured(None, FPR, FPR, FPR, np.ones(101))
    assert len(ax.lines) == 2
    assert legend(ax) == ["blind guessing", "measured", "limits"]


def test_the_first_curve_sets_the_limits_of_logarithmic_axes():
    fpr = np.geomspace(1e-4, 1.0, 50)
    ax = draw_measured(None, fpr, fpr, fpr, fpr, scale="log")
    assert ax.get_xlim() == pytest.approx((1e-4, 1.0))
    wi.PureDP(1.0).roc.plot(ax=ax, label="promised", scale="log")
    assert ax.get_xlim() == pytest.approx((1e-4, 1.0))


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("records", [1, 2, 1000])
def test_every_record_has_its_width(records):
    risk = np.linspace(0.2, 0.9, records)
    ax = drawn(draw_individual(None, risk, risk - 0.1, risk + 0.1, 0.5))
    x, y = ax.lines[0].get_data()
    assert ax.lines[0].get_drawstyle() == "steps-post"
    assert (x[0], x[-1]) == (0.0, 1.0)
    assert np.diff(x) == pytest.approx(1.0 / records)
    assert np.array_equal(y[:-1], risk)
    band = ax.collections[0].get_paths()[0].vertices
    assert (band[:, 0].min(), band[:, 0].max()) == (0.0, 1.0)
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((risk[0] - 0.1, risk[-1] + 0.1))


def test_the_line_of_the_prior_says_what_it_is():
    ax = draw_individual(None, np.array([0.4]), np.array([0.3]), np.array([0.6]), 0.015)
    assert legend(ax) == ["probability after the answer", "limits, all at once", "before the answer: 1.5%"]
    assert list(ax.lines[1].get_ydata()) == [0.015, 0.015]


# --- groups and queries -----------------------------------------------------------------------------------------------


def test_forests_have_the_first_on_top():
    estimate = np.array([0.3, -0.1])
    ax = drawn(draw_forest(None, ["first", "second"], estimate, estimate - 0.1, estimate + 0.1, label="advantage"))
    assert ticks(ax) == {"first": 1.0, "second": 0.0}
    assert np.array_equal(ax.lines[1].get_xdata(), estimate)
    assert np.array_equal(ax.lines[1].get_ydata(), [1, 0])
    assert segments(ax.collections[0])[:, :, 0] == pytest.approx(np.array([[0.2, 0.4], [-0.2, 0.0]]))
    assert "advantage" in ax.get_xlabel()


def test_forty_long_names_are_legible():
    names = [f"{LONG} {i}" for i in range(40)]
    values = np.linspace(0.5, 0.0, 40)
    ax = drawn(draw_forest(None, names, values, values - 0.1, values + 0.1, label="advantage"))
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) == 40
    assert all(lower.y1 <= upper.y0 + 1.0 for upper, lower in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0.0
    assert ax.get_window_extent().width > 0.4 * ax.figure.bbox.width


def test_a_group_without_an_estimate_keeps_its_limits():
    ax = drawn(draw_forest(None, ["a"], np.array([np.nan]), np.array([-1.0]), np.array([1.0]), label="advantage"))
    assert segments(ax.collections[0])[0, :, 0] == pytest.approx([-1.0, 1.0])


def test_no_groups_give_empty_axes():
    ax = drawn(draw_forest(None, [], np.zeros(0), np.zeros(0), np.zeros(0), label="advantage"))
    assert ticks(ax) == {}


def test_names_take_at_most_two_lines():
    assert two_lines("short", 28) == "short"
    assert two_lines("", 28) == ""
    assert two_lines("marital=Married-civ-spouse, country=Mexico", 28) == "marital=Married-civ-spouse,\ncountry=Mexico"
    folded = two_lines(LONG, 28).split("\n")
    assert len(folded) == 2
    assert folded[1].endswith("…")
    assert max(map(len, folded)) <= 28
    assert two_lines("x" * 100, 10) == "x" * 10 + "\n" + "x" * 9 + "…"
    assert height_of(["a", "b"]) < height_of([LONG, "b"])


# --- release size and populations -------------------------------------------------------------------------------------


def test_sizes_show_estimates_and_limits():
    sizes, estimate = np.array([10, 100, 1000]), np.array([0.0, 0.1, 0.3])
    ax = drawn(draw_release_size(None, sizes, estimate, estimate / 2, estimate + 0.1, label="distance"))
    assert np.array_equal(ax.lines[0].get_xdata(), sizes)
    assert np.array_equal(ax.lines[0].get_ydata(), estimate)
    assert ax.get_xscale() == "log"
    assert legend(ax) == ["distance", "limits"]
    assert ax.get_ylim() == pytest.approx((0.0, 0.44))
    assert "1,000" in [label.get_text() for label in ax.get_xticklabels()]


def test_one_size_shows_its_limits():
    ax = drawn(draw_release_size(None, np.array([2]), np.array([0.1]), np.array([0.0]), np.array([0.4])))
    assert segments(ax.collections[-1])[0, :, 1] == pytest.approx([0.0, 0.4])


def test_a_flat_curve_at_zero_has_room():
    ax = drawn(draw_release_size(None, np.array([2, 4]), *(np.zeros(2) for _ in range(3))))
    assert ax.get_ylim() == (0.0, 0.05)


@pytest.mark.parametrize("records", [1, 3, 100_000])
def test_a_population_shows_every_record_and_every_line(records):
    values = np.sort(np.random.default_rng(0).gamma(1.0, size=records))
    ax = drawn(draw_population(None, values, {"as labelled": 8.0, "here": 6.0}))
    x, y = ax.lines[0].get_data()
    assert (x[0], x[-1]) == (0.0, 1.0)
    assert np.array_equal(y[:-1], values)
    assert legend(ax) == ["knows the pool only (ε̃)", "as labelled: 8", "here: 6"]
    assert [line.get_ydata()[0] for line in ax.lines[1:]] == [8.0, 6.0]
    assert ax.get_ylim()[1] > max(8.0, values[-1])
    assert len({line.get_color() for line in ax.lines}) == 3


def test_lines_at_one_height_are_one():
    ax = draw_population(None, np.array([0.1]), {"as labelled": 8.0, "worst case": 8.0 + 1e-12, "none": np.inf})
    assert legend(ax)[1:] == ["as labelled and worst case: 8"]


def test_records_without_a_limit_are_counted_and_not_drawn():
    ax = drawn(draw_population(None, np.array([0.3, np.inf, np.inf]), {"as labelled": np.inf}))
    assert legend(ax) == ["knows the pool only (ε̃); without limit: 2 records"]
    assert np.isnan(ax.lines[0].get_ydata()).tolist() == [False, True, True, True]
    everyone = drawn(draw_population(None, np.array([np.inf]), {}))
    assert everyone.get_ylim() == (0.0, 1.0)


def test_a_population_of_zeros():
    assert drawn(draw_population(None, np.zeros(5), {"as labelled": 0.0})).get_ylim() == (0.0, 1.0)


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_all_bounds_at_one_epsilon():
    table = wi.bounds.table(1.0, 1e-5, prior=0.1)
    ax = drawn(table.plot())
    applicable = [row for row in table if row.value is not None]
    dots = ax.lines
    assert [dot.get_xdata()[0] for dot in dots] == [row.value for row in applicable]
    for dot, row in zip(dots, applicable, strict=True):
        filled = to_rgba(dot.get_markerfacecolor())[3] > 0.0
        assert filled == row.tightest, row.name
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [
        text
        for quantity in ("advantage", "accuracy", "ppv")
        for text in (f"{quantity}, at most", *(row.name for row in applicable if row.quantity == quantity))
    ]
    assert "ε = 1, δ = 1e-05, prior 0.1" in ax.get_title(loc="left")


@pytest.mark.parametrize("quantity", ["accuracy", "advantage", "ppv"])
def test_bounds_by_epsilon(quantity):
    ax = drawn(wi.bounds.table(1.0, prior=0.5).plot(quantity=quantity))
    curves = {line.get_label(): line for line in ax.lines[:-1]}
    names = "; ".join(label.replace("\n", " ") for label in curves)
    rows = [row for row in wi.bounds.table(1.0) if row.quantity == quantity and row.value is not None]
    assert all(row.name in names for row in rows)
    for label, line in curves.items():
        first = label.replace("\n", " ").split("; ")[0]
        x, y = line.get_data()
        assert (x[0], x[-1]) == (0.0, 2.0)
        for i in (0, 37, 100):
            row = next(r for r in wi.bounds.table(float(x[i])) if r.name == first and r.quantity == quantity)
            assert y[i] == row.value
    assert list(ax.lines[-1].get_xdata()) == [1.0, 1.0]
    styles = {(line.get_color(), line.get_linestyle()) for line in curves.values()}
    assert len(styles) == len(curves)


def test_coinciding_bounds_are_one_curve():
    ax = wi.bounds.table(1.0).plot(quantity="accuracy")
    joined = next(text.replace("\n", " ") for text in legend(ax) if "exact ceiling" in text)
    assert joined == "Thudi et al. 2022; Izzo et al. 2022; Xu et al. 2022 (MACE), corrected; exact ceiling"


def test_bounds_that_do_not_apply_are_left_out():
    assert "Yeom et al. 2018" not in legend(wi.bounds.table(1.0, 1e-5).plot(quantity="advantage"))


@pytest.mark.parametrize("epsilon", [0.0, np.inf])
def test_bounds_at_the_ends(epsilon):
    table = wi.bounds.table(epsilon, prior=0.2)
    assert drawn(table.plot(quantity="ppv")).get_xlim() == (0.0, 4.0)
    drawn(table.plot())


def test_bounds_take_a_quantity():
    with pytest.raises(InputError, match="quantity must be"):
        wi.bounds.table(1.0).plot(quantity="tpr")


def test_bounds_on_axes_of_ones_own():
    own = new_axes()
    assert wi.bounds.table(1.0).plot(own) is own
    assert wi.bounds.table(1.0).plot(own, quantity="ppv") is own


# --- all of them ------------------------------------------------------------------------------------------------------

ONE = np.array([0.5])
DRAWN = {
    "curve": lambda ax: draw_curve(ax, FPR, FPR),
    "measured": lambda ax: draw_measured(ax, FPR, FPR, FPR, FPR),
    "individual": lambda ax: draw_individual(ax, ONE, ONE, ONE, 0.5),
    "groups": lambda ax: draw_forest(ax, ["a"], ONE, ONE, ONE, label="advantage"),
    "size": lambda ax: draw_release_size(ax, np.array([5]), ONE, ONE, ONE),
    "population": lambda ax: draw_population(ax, ONE, {"as labelled": 1.0}),
    "bounds": lambda ax: draw_bounds(ax, ["a"], ["ppv"], ONE, [True]),
    "bounds by epsilon": lambda ax: draw_bounds_by_epsilon(ax, np.array([0.0, 1.0]), {"a": np.zeros(2)}, "ppv", 1.0),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_drawn_on_the_given_axes_or_on_new_ones(name):
    own = new_axes()
    assert DRAWN[name](own) is own
    assert own.has_data()
    fresh = DRAWN[name](None)
    assert fresh is not own
    assert fresh.get_xlabel()


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib_the_extra_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"plots need Matplotlib: pip install .*matplotlib"):
        DRAWN[name](None)


def luminance(colour):
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgba(colour)[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_the_grey_of_reference_lines_is_seen_on_white():
    assert 1.05 / (luminance(GREY) + 0.05) >= 4.5
