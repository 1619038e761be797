"""Proposition 11 by enumeration: the appendix's data set has σ² < 1 and a Δ that explodes, the main text's has not.

The two differ in one sign. With the special record √p - Σ2^i, p = 1/C(n, n/2) (appendix), one half has the sum √p and
the estimate 1/√p; with 1/√p - Σ2^i (main text) that half has the estimate √p, and nothing is large.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import BLUE, GREEN, GREY, ORANGE, new_figure, styled
from experiments.izzo._common import Halves, special_data_set

SIZES = (4, 6, 8, 10, 12, 14, 16, 18, 20)
TEXTS = ("appendix", "main")


def row(n: int, text: str) -> dict[str, float]:
    """Return variance, mean deviation and sensitivity of 1/sum over all halves."""
    halves = Halves(special_data_set(n, text))
    return {
        "variance": float(np.var(halves.theta)),
        "mean_deviation": float(np.mean(np.abs(halves.theta - halves.theta.mean()))),
        "sensitivity": halves.sensitivity(),
    }


def compute() -> dict[str, Any]:
    """Return both data sets over n."""
    rows = {text: [row(n, text) for n in SIZES] for text in TEXTS}
    return {
        "proposition": "11",
        "n": list(SIZES),
        "2^(n/3)": [2.0 ** (n / 3.0) for n in SIZES],
        "proof_bound": [math.sqrt(math.comb(n, n // 2)) - 1.0 for n in SIZES],
        **{text: {key: [one[key] for one in found] for key in found[0]} for text, found in rows.items()},
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the spread on the left and the sensitivity on the right."""
    figure, (left, right) = new_figure(2)
    names = {"appendix": ("data set of the appendix", BLUE, "-"), "main": ("data set of the main text", ORANGE, "--")}
    for text, (label, colour, style) in names.items():
        left.plot(
            data["n"], data[text]["variance"], color=colour, ls=style, marker="o", ms=3, label=f"variance, {label}"
        )
        right.plot(data["n"], data[text]["sensitivity"], color=colour, ls=style, marker="o", ms=3, label=f"Δ, {label}")
    deviation = data["appendix"]["mean_deviation"]
    left.plot(data["n"], deviation, color=GREEN, ls="-.", marker="o", ms=3, label="mean deviation, appendix")
    left.set(title="Spread over all halves", ylabel="spread of 1/sum", ylim=(1e-11, 1e2))
    right.plot(data["n"], data["2^(n/3)"], color=GREY, ls=":", label="claimed growth, 2^(n/3)")
    right.set(title="Sensitivity", ylabel="largest step between neighbours", ylim=(1e-3, 1e5))
    for ax in (left, right):
        ax.set(xlabel="n, records in the pool", yscale="log", xticks=data["n"])
    left.legend(loc="lower left")
    right.legend(loc="upper left")
    return figure
