"""Pictures of curves: what is drawn, on which axes, and what happens without Matplotlib."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import whosin as wi
from whosin.errors import MissingExtraError
from whosin.plots import COLOURS, new_axes

CURVE = wi.PureDP(1.0).roc


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_plot_returns_axes_with_the_curve_on_them():
    ax = CURVE.plot(label="1-DP")
    assert isinstance(ax, Axes)
    x, y = ax.lines[-1].get_data()
    assert y == pytest.approx(CURVE.tpr(x), abs=1e-15)
    assert (x[0], x[-1], y[-1]) == (0.0, 1.0, 1.0)
    assert len(x) > 500
    assert "false positive" in ax.get_xlabel()
    assert "true positive" in ax.get_ylabel()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["blind guessing", "1-DP"]


def test_the_diagonal_is_drawn_once():
    ax = CURVE.plot()
    assert len(ax.lines) == 2
    x, y = ax.lines[0].get_data()
    assert np.array_equal(x, y)
    assert ax.lines[0].get_linestyle() == "--"
    again = wi.GaussianDP(1.0).roc.plot(ax=ax)
    assert again is ax
    assert len(ax.lines) == 3


def test_curves_on_one_axes_have_different_colours():
    ax = CURVE.plot()
    for mu in (0.5, 1.0, 2.0):
        wi.GaussianDP(mu).roc.plot(ax=ax)
    colours = [line.get_color() for line in ax.lines[1:]]
    assert colours == list(COLOURS[:4])


def test_new_axes_each_time_without_ax():
    assert CURVE.plot() is not CURVE.plot()


def test_no_legend_without_a_label():
    assert CURVE.plot().get_legend() is None


def test_linear_scale():
    ax = CURVE.plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    assert ax.get_xlim() == (0.0, 1.0)


def test_log_scale():
    ax = wi.GaussianDP(1.0).roc.plot(scale="log")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    x, y = ax.lines[-1].get_data()
    assert x.min() > 0.0
    assert x.min() <= ax.get_xlim()[0]
    assert np.all(y > 0.0)
    assert ax.get_xlim()[1] == 1.0


def test_the_line_is_as_asked_for():
    own = new_axes()
    assert CURVE.plot(own, label="1-DP", scale="log", linestyle=":", color="red") is own
    assert own.lines[-1].get_linestyle() == ":"
    assert own.lines[-1].get_color() == "red"


def test_a_picture_can_be_saved(tmp_path):
    ax = CURVE.plot(label="<1 & 2>")
    ax.figure.savefig(tmp_path / "roc.png")
    ax.figure.savefig(tmp_path / "roc.svg")
    assert (tmp_path / "roc.png").stat().st_size > 1000
    assert "&lt;1 &amp; 2&gt;" in (tmp_path / "roc.svg").read_text(encoding="utf-8")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in list(sys.modules):
        if name == "matplotlib" or name.startswith("matplotlib."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"plots need Matplotlib: pip install .*matplotlib") as caught:
        CURVE.plot()
    assert isinstance(caught.value, ImportError)
