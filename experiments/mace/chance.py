"""What W is if nothing leaks, at the paper's own sizes, for figures 2a, 2b and 8: no training is needed for that.

Members and non-members have one law here, so the advantage is 0, and W is what the cells alone make of it. It depends
on how the answers spread over the cells: evenly, as two independent normal numbers, or as two that nearly agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments._shared import BLUE, GREEN, ORANGE, new_figure, styled
from experiments.mace._measure import BINS, cells_of, plug_in
from experiments.mace._run import Run

DIFFERS = ("the laws of the paper's answers are not printed: three that span what they can be take their place",)
SIZES = {"2a: 7,000 + 7,000": (7000, 7000), "2a: 7,000 + 63,000": (7000, 63000)}
SIZES |= {"2b, 8: 1,000 + 1,000": (1000, 1000), "2b, 8: 1,000 + 9,000": (1000, 9000)}
DRAWS = 100


def _agreeing(count: int, dimensions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    shared = rng.standard_normal((count, 1))
    return np.asarray(shared + 0.1 * rng.standard_normal((count, dimensions)))


LAWS: dict[str, Callable[[int, int, np.random.Generator], NDArray[np.float64]]] = {
    "even": lambda count, dimensions, rng: rng.random((count, dimensions)),
    "normal": lambda count, dimensions, rng: rng.standard_normal((count, dimensions)),
    "agreeing": _agreeing,
}


def chance(
    law: str, members: int, others: int, dimensions: int, rng: np.random.Generator, draws: int = DRAWS
) -> dict[str, Any]:
    """Return mean and 95 % range of W when members and non-members have the same law."""
    member = np.arange(members + others) < members
    values = [plug_in(cells_of(LAWS[law](len(member), dimensions, rng), BINS), member) for _ in range(draws)]
    return {"mean": float(np.mean(values)), "range_95": np.quantile(values, [0.025, 0.975]).tolist()}


def compute(run: Run) -> dict[str, Any]:
    """Return W by chance for every size, law and number of answers."""
    rng, draws = np.random.default_rng([run.seed, 109]), 5 if run.quick else DRAWS
    return {
        "cells": {str(dimensions): BINS**dimensions for dimensions in (1, 2)},
        "sizes": {
            name: {
                law: {str(dimensions): chance(law, *sizes, dimensions, rng, draws) for dimensions in (1, 2)}
                for law in LAWS
            }
            for name, sizes in SIZES.items()
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw W by chance with 100 and with 10,000 cells."""
    figure, (ax,) = new_figure()
    figure.set_size_inches(7.2, 4.4)
    names = {"even": "evenly spread", "normal": "two independent normal numbers", "agreeing": "two that nearly agree"}
    for place, (law, colour) in enumerate(zip(names, (ORANGE, BLUE, GREEN), strict=True)):
        for row, found in enumerate(data["sizes"].values()):
            for dimensions, marker in (("1", "o"), ("2", "s")):
                one, height = found[law][dimensions], row + 0.22 * (place - 1)
                ax.plot(one["range_95"], [height] * 2, color=colour, lw=3)
                cells = f"{data['cells'][dimensions]:,} cells"
                label = f"{names[law]}, {cells}" if row == 0 else None
                ax.plot(one["mean"], height, marker, color=colour, ms=5, label=label)
    ax.set(yticks=range(len(data["sizes"])), yticklabels=list(data["sizes"]), xlim=(0, 1))
    ax.invert_yaxis()
    ax.set(title="W if nothing leaks", xlabel="W (the advantage is 0)", ylabel="figure: members + others")
    figure.legend(loc="outside upper center", ncols=2)
    return figure
