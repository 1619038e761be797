"""A bar that ``progress=`` moves: a line on a terminal, an element in a notebook, nothing in a log."""

import io
import sys
import types

import pytest

import whosin as wi


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def later(monkeypatch):
    """A clock that goes on by a second with every look."""
    moments = iter(range(1000))
    monkeypatch.setattr("whosin.parallel.bar.time.monotonic", lambda: float(next(moments)))


def test_a_line_on_a_terminal(monkeypatch, later):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = wi.ProgressBar("Comparing")
    for share in (0.0, 0.5, 1.0, 7.0):
        bar(share)
    shown = sys.stderr.getvalue().split("\r\x1b[K")[1:]
    assert shown[0] == "·" * 30 + " Comparing: 0%"
    assert shown[1] == "█" * 15 + "·" * 15 + " Comparing: 50%, about 2 s left"
    assert shown[2] == shown[3] == "█" * 30 + " Comparing: 100%\n"


def test_nothing_in_a_log(capsys):
    wi.ProgressBar()(0.5)
    assert capsys.readouterr() == ("", "")


def test_pictures_are_few(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = wi.ProgressBar()
    for step in range(1000):
        bar(step / 1000)
    assert sys.stderr.getvalue().count("\r") < 50


def test_one_element_in_a_notebook(monkeypatch, later):
    class ZMQInteractiveShell:
        pass

    updates = []
    place = types.SimpleNamespace(update=updates.append)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=ZMQInteractiveShell))
    drawn = types.SimpleNamespace(HTML=str, display=lambda shown, display_id: updates.append(shown) or place)
    monkeypatch.setitem(sys.modules, "IPython.display", drawn)
    bar = wi.ProgressBar("a <b>")
    for share in (0.25, 1.0):
        bar(share)
    assert updates == [
        '<progress max="100" value="25"></progress> a &lt;b&gt;: 25%, about 3 s left',
        '<progress max="100" value="100"></progress> a &lt;b&gt;: 100%',
    ]
