"""Figure 1: exponential mechanism, ratios over the standard deviation σ of 1-d data; n = 6, m = 10, C = 10, ε(X) = 5.

In one dimension the candidates are ±1, ten of them. The text gives, at σ = 1, ε̃ ≈ 2.14, ε̃/ε ≈ 0.075 and ε ≈ 28.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import BLACK, styled
from experiments.lowy._common import CURVES, READINGS, candidates, clip_rows, exponential, ratio_panels, summary

N, M, CLIP, TARGET, TRIALS = 6, 10, 10.0, 5.0, 40
SIGMAS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0)
PRINTED = {"sigma": 1.0, "pmp": 2.14, "label": 28.5, "ratio": 0.075, "ratio_on_records": 0.428}


def trial(number: int, sigma: float) -> dict[str, dict[str, float]]:
    """Return one trial; the same normal numbers for every σ."""
    rng = np.random.default_rng([1, number])
    w = candidates(rng, M, 1)
    x = clip_rows(w[0] + sigma * rng.standard_normal((2 * N, 1)), CLIP)
    return exponential(x, w, CLIP, TARGET)


def compute() -> dict[str, Any]:
    """Return mean and standard deviation of every parameter and ratio over σ."""
    return {
        "figure": "1",
        **{"n": N, "m": M, "clip": CLIP, "epsilon_X": TARGET, "trials": TRIALS},
        "printed": PRINTED,
        **{"x": list(SIGMAS), "x_label": "standard deviation σ of the data"},
        **{"y_scale": "linear", "y_limits": [0.0, 1.3]},
        **summary([trial(number, sigma) for number in range(TRIALS)] for sigma in SIGMAS),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the ratios under both readings of ε(X), and the two numbers of the text."""
    figure = ratio_panels(data, {key: title.format(data["epsilon_X"]) for key, title in READINGS.items()}, CURVES)
    printed = data["printed"]
    for ax in figure.axes:
        for key in ("ratio", "ratio_on_records"):
            name = "text of the paper, σ = 1" if key == "ratio" else None
            ax.plot(printed["sigma"], printed[key], "x", color=BLACK, ms=7, mew=2, label=name)
    figure.axes[0].legend(loc="upper left", ncols=1)
    return figure
