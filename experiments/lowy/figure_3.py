"""Figure 3: exponential mechanism, ratios over the dimension d; n = 6, m = 10, σ = 1, ε(X) = 2.

The paper gives no numbers here, and no clip threshold; C = 10 as in figure 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import styled
from experiments.lowy._common import CURVES, READINGS, candidates, clip_rows, exponential, ratio_panels, summary

N, M, SIGMA, CLIP, TARGET, TRIALS = 6, 10, 1.0, 10.0, 2.0, 20
DIMENSIONS = (1, 2, 5, 10, 20, 50, 100)


def trial(number: int, d: int) -> dict[str, dict[str, float]]:
    """Return one trial."""
    rng = np.random.default_rng([3, d, number])
    w = candidates(rng, M, d)
    x = clip_rows(w[0] + SIGMA * rng.standard_normal((2 * N, d)), CLIP)
    return exponential(x, w, CLIP, TARGET)


def compute() -> dict[str, Any]:
    """Return mean and standard deviation of every parameter and ratio over d."""
    return {
        "figure": "3",
        **{"n": N, "m": M, "sigma": SIGMA, "clip": CLIP, "epsilon_X": TARGET, "trials": TRIALS},
        **{"x": list(DIMENSIONS), "x_label": "dimension d"},
        **{"y_scale": "linear", "y_limits": [0.0, 1.1]},
        **summary([trial(number, d) for number in range(TRIALS)] for d in DIMENSIONS),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the ratios under both readings of ε(X)."""
    figure = ratio_panels(data, {key: title.format(data["epsilon_X"]) for key, title in READINGS.items()}, CURVES)
    figure.axes[1].legend(loc="upper right")
    return figure
