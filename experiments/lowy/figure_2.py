"""Figure 2: exponential mechanism, ratios over the clip threshold C; d = 5, n = 6, 2 outliers, m = 32, ε(X) = 10.

Two records are multiplied by 100. The text: at C = 50 both ratios are below 0.0123, so "a 10-DP algorithm" is
0.123-PMP. But replacing a record moves the logits of all candidates by almost the same, and the normaliser takes that
out: the worst case over all records is at most 2λ·diam(W)/n, far below the label 2λΔ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import BLACK, styled
from experiments.lowy._common import (
    CURVES,
    READINGS,
    candidates,
    clip_rows,
    exponential,
    outliers,
    ratio_panels,
    summary,
)

N, D, M, SIGMA, FACTOR, TARGET, TRIALS = 6, 5, 32, 1.0, 100.0, 10.0, 20
CLIPS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
PRINTED = {"clip": 50.0, "both_ratios_below": 0.0123, "pmp_of_a_10_DP_algorithm": 0.123}


def trial(number: int, clip: float) -> dict[str, dict[str, float]]:
    """Return one trial; the same records for every C."""
    rng = np.random.default_rng([2, number])
    w = candidates(rng, M, D)
    x = outliers(rng, w[0] + SIGMA * rng.standard_normal((2 * N, D)), FACTOR)
    return exponential(clip_rows(x, clip), w, clip, TARGET)


def compute() -> dict[str, Any]:
    """Return mean and standard deviation of every parameter and ratio over C."""
    return {
        "figure": "2",
        **{"n": N, "d": D, "m": M, "sigma": SIGMA, "outlier_factor": FACTOR, "epsilon_X": TARGET, "trials": TRIALS},
        "printed": PRINTED,
        **{"x": list(CLIPS), "x_label": "clip threshold C"},
        **{"y_scale": "log", "y_limits": [0.003, 2.0]},
        **summary([trial(number, clip) for number in range(TRIALS)] for clip in CLIPS),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the ratios under both readings of ε(X), and the number of the text."""
    figure = ratio_panels(data, {key: title.format(data["epsilon_X"]) for key, title in READINGS.items()}, CURVES)
    printed = data["printed"]
    for ax in figure.axes:
        place = printed["clip"], printed["both_ratios_below"]
        ax.plot(*place, "v", color=BLACK, ms=6, label="text of the paper: both ratios below", ls="none")
    figure.axes[0].legend(loc="lower left")
    return figure
