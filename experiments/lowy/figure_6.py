"""Figure 6: Gaussian mechanism, ratios over the dimension d; n = 100, C = 50, σ = 1, δ = 0.01.

The paper does not state ε or ε(X) of this figure; 5 as in the example on figure 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import styled
from experiments.lowy._common import LABELS, NOISY_CURVES, gaussian, ratio_panels, summary

N, SIGMA, CLIP, DELTA, TARGET, TRIALS = 100, 1.0, 50.0, 0.01, 5.0, 20
DIMENSIONS = (1, 2, 5, 10, 20, 50, 100)


def trial(number: int, d: int) -> dict[str, dict[str, float]]:
    """Return one trial."""
    rng = np.random.default_rng([6, d, number])
    return gaussian(SIGMA * rng.standard_normal((2 * N, d)), CLIP, TARGET, DELTA)


def compute() -> dict[str, Any]:
    """Return mean and standard deviation of every parameter and ratio over d."""
    return {
        "figure": "6",
        **{"n": N, "sigma": SIGMA, "clip": CLIP, "delta": DELTA, "target": TARGET, "trials": TRIALS},
        **{"x": list(DIMENSIONS), "x_label": "dimension d"},
        **{"y_scale": "log", "y_limits": [0.0001, 1.5]},
        **summary([trial(number, d) for number in range(TRIALS)] for d in DIMENSIONS),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the ratios, noise set by ε(X) on the left and by the worst case on the right."""
    figure = ratio_panels(data, {key: f"{title} = {data['target']:g}" for key, title in LABELS.items()}, NOISY_CURVES)
    figure.axes[0].legend(loc="lower right")
    return figure
