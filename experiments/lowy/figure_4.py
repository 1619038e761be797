"""Figure 4: Gaussian mechanism, ratios over ε(X); n = 100, d = 20, C = 50, σ = 1, δ = 0.01.

ε̃ is proposition 12's bound. The text: ε̃ < 0.9 even at ε(X) = 10.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import BLACK, styled
from experiments.lowy._common import LABELS, NOISY_CURVES, gaussian, ratio_panels, summary

N, D, SIGMA, CLIP, DELTA, TRIALS = 100, 20, 1.0, 50.0, 0.01, 20
TARGETS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
PRINTED = {"epsilon_X": 10.0, "pmp_below": 0.9}


def trial(number: int, target: float) -> dict[str, dict[str, float]]:
    """Return one trial; the same records for every ε(X)."""
    rng = np.random.default_rng([4, number])
    return gaussian(SIGMA * rng.standard_normal((2 * N, D)), CLIP, target, DELTA)


def compute() -> dict[str, Any]:
    """Return mean and standard deviation of every parameter and ratio over ε(X), or over ε."""
    return {
        "figure": "4",
        **{"n": N, "d": D, "sigma": SIGMA, "clip": CLIP, "delta": DELTA, "trials": TRIALS},
        "printed": PRINTED,
        **{"x": list(TARGETS), "x_label": "ε(X) (left), ε (right)"},
        **{"y_scale": "log", "y_limits": [0.001, 1.5]},
        **summary([trial(number, target) for number in range(TRIALS)] for target in TARGETS),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the ratios, noise set by ε(X) on the left and by the worst case on the right."""
    figure = ratio_panels(data, LABELS, NOISY_CURVES)
    printed = data["printed"]
    place = printed["epsilon_X"], printed["pmp_below"] / printed["epsilon_X"]
    for ax in figure.axes:
        ax.plot(*place, "v", color=BLACK, ms=6, ls="none", label="text of the paper: ε̃ < 0.9, over 10")
    figure.axes[1].legend(loc="lower right")
    return figure
