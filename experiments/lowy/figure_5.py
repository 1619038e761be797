"""Figure 5: Gaussian mechanism, ratios over the clip threshold C; n = 100, d = 10, 2 outliers, σ = 5, δ = 0.01.

Two records are multiplied by 10. The text: at C = 100, ε = 5 "would translate into" ε̃ = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import BLACK, styled
from experiments.lowy._common import LABELS, NOISY_CURVES, gaussian, outliers, ratio_panels, summary

N, D, SIGMA, FACTOR, DELTA, TARGET, TRIALS = 100, 10, 5.0, 10.0, 0.01, 5.0, 20
CLIPS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0)
PRINTED = {"clip": 100.0, "label": 5.0, "pmp": 1.0}


def trial(number: int, clip: float) -> dict[str, dict[str, float]]:
    """Return one trial; the same records for every C."""
    rng = np.random.default_rng([5, number])
    x = outliers(rng, SIGMA * rng.standard_normal((2 * N, D)), FACTOR)
    return gaussian(x, clip, TARGET, DELTA)


def compute() -> dict[str, Any]:
    """Return mean and standard deviation of every parameter and ratio over C."""
    return {
        "figure": "5",
        **{"n": N, "d": D, "sigma": SIGMA, "outlier_factor": FACTOR, "delta": DELTA},
        **{"target": TARGET, "trials": TRIALS},
        "printed": PRINTED,
        **{"x": list(CLIPS), "x_label": "clip threshold C"},
        **{"y_scale": "linear", "y_limits": [0.0, 1.4]},
        **summary([trial(number, clip) for number in range(TRIALS)] for clip in CLIPS),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the ratios, noise set by ε(X) on the left and by the worst case on the right."""
    figure = ratio_panels(data, {key: f"{title} = {data['target']:g}" for key, title in LABELS.items()}, NOISY_CURVES)
    printed = data["printed"]
    place = printed["clip"], printed["pmp"] / printed["label"]
    figure.axes[1].plot(*place, "x", color=BLACK, ms=7, mew=2, ls="none", label="text of the paper, C = 100")
    figure.axes[1].legend(loc="upper right")
    return figure
