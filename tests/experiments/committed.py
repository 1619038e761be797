"""What the experiments on every paper promise of their committed files."""

import math

from PIL import Image


def differences(one, other, rel, close_to_zero, place=""):
    """Return the places at which two JSON values differ; numbers may differ by so much."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        pairs = [(key, one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(i, *pair) for i, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, float) and isinstance(other, float):
        return [] if math.isclose(one, other, rel_tol=rel, abs_tol=close_to_zero) else [place]
    else:
        return [] if one == other else [place]
    return [gap for key, *both in pairs for gap in differences(*both, rel, close_to_zero, f"{place}/{key}")]


def check_picture(files, name, draw):
    """The committed picture is small and was drawn from the committed numbers by this code."""
    path = files.RESULTS / f"{name}.png"
    assert path.stat().st_size <= 60_000
    with Image.open(path) as image:
        assert image.text["Description"] == files.stamp(name, draw), f"draw it again: {path}"


def check_drawing(files, name, draw):
    """The committed numbers can be drawn, and every axis has a name."""
    figure = draw(files.read(name))
    figure.canvas.draw()
    assert figure.axes
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)
