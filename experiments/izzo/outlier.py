"""Algorithm 1 takes the scale of the noise from the drawn records, and the scale gives the outlier away.

The mean of half of n normal numbers, one of them replaced by T. The estimate of σ (of infinitely many splits) is wide
where the outlier was drawn and narrow where not, so one look at the size of the output tells, whatever η is. With σ
from the pool the noise has one scale, and the promise holds.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.integrate import trapezoid

import whosin as wi
from experiments._shared import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, new_figure, percent, styled
from experiments.izzo._common import ETAS, moment_scale
from experiments.izzo.noise import paper_scale

N = 12
OUTLIERS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4, 1e6)
SIZES = (4, 8, 12, 16)


def pool(n: int, outlier: float) -> NDArray[np.float64]:
    """Return n standard normal numbers, the first replaced."""
    values = np.random.default_rng(5).standard_normal(n)
    values[0] = outlier
    return values


def deviation(values: NDArray[np.float64], size: int) -> float:
    """Return the standard deviation of the mean of a uniform subset of that size."""
    n = len(values)
    return math.sqrt(float(np.var(values)) * (n - size) / (n - 1) / size)


def leaking_accuracy(values: NDArray[np.float64], c: float) -> float:
    """Return the best attacker's accuracy on record 0 when the scale is c·σ(D), quarters of the pool from D.

    Both densities are mixtures over all halves; nodes lie at equal steps of log|y|. Four digits.
    """
    n = len(values)
    halves = [list(who) for who in itertools.combinations(range(n), n // 2)]
    centres = np.array([values[who].mean() for who in halves])
    scales = c * np.array([deviation(values[who], n // 4) for who in halves])
    held = np.array([0 in who for who in halves])
    low, high = math.log(1e-5 * scales.min()), math.log(40.0 * scales.max())
    positive = np.exp(np.linspace(low, high, int(60 * (high - low))))
    y = np.concatenate([-positive[::-1], positive])
    difference = np.zeros(len(y))
    for centre, scale, inside in zip(centres, scales, held, strict=True):
        difference += (1.0 if inside else -1.0) * np.exp(-np.abs(y - centre) / scale) / (2.0 * scale)
    return min(1.0, float(0.5 + 0.25 * trapezoid(np.abs(difference), y) / held.sum()))


def pool_accuracy(values: NDArray[np.float64], scale: float) -> float:
    """Return the exact accuracy on record 0 when the scale is the same for every half."""
    world = wi.worlds.uniform_subsets(range(len(values)), len(values) // 2)
    game = world.play(wi.mechanisms.Laplace(lambda who: float(values[list(who)].mean()), scale))
    return game.accuracy(0)


def compute() -> dict[str, Any]:
    """Return the accuracy over the outlier and over n."""
    pools = [pool(N, outlier) for outlier in OUTLIERS]
    return {
        "algorithm": "1",
        "n": N,
        "outlier": list(OUTLIERS),
        "promised": {f"{eta:g}": 0.5 + eta for eta in ETAS},
        "as_printed": {
            f"{eta:g}": [leaking_accuracy(values, paper_scale(eta, 1.0)) for values in pools] for eta in ETAS
        },
        "scale_from_the_pool": {
            f"{eta:g}": [pool_accuracy(values, paper_scale(eta, deviation(values, N // 2))) for values in pools]
            for eta in ETAS
        },
        "sharp_scale_from_the_pool": {
            f"{eta:g}": [pool_accuracy(values, moment_scale(deviation(values, N // 2), eta)) for values in pools]
            for eta in ETAS
        },
        "sizes": list(SIZES),
        "over_n": {
            f"{outlier:g}": [leaking_accuracy(pool(n, outlier), paper_scale(0.1, 1.0)) for n in SIZES]
            for outlier in (3.0, 10.0, 100.0)
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the accuracy over the outlier on the left, over n on the right."""
    figure, (left, right) = new_figure(2)
    x = data["outlier"]
    left.plot(x, data["as_printed"]["0.1"], color=ORANGE, marker="o", ms=3, label="as printed, the same for every η")
    left.plot(
        x,
        data["sharp_scale_from_the_pool"]["0.1"],
        color=GREEN,
        marker="o",
        ms=3,
        ls="-.",
        label="pool, sharp scale, η = 0.1",
    )
    left.plot(
        x,
        data["scale_from_the_pool"]["0.1"],
        color=BLUE,
        marker="o",
        ms=3,
        ls=":",
        label="pool, printed scale, η = 0.1",
    )
    for eta, value in data["promised"].items():
        left.axhline(value, color=GREY, ls="--", lw=0.8)
        left.text(1.5e6, value, f"η = {eta}", color=GREY, va="center", fontsize=8)
    left.set(title=f"n = {data['n']}, dashed: promised", xlabel="size of the outlier", xscale="log", xlim=(0.8, 1.3e6))
    left.legend(loc="center right", bbox_to_anchor=(1.0, 0.355))
    for (outlier, line), colour in zip(data["over_n"].items(), (BLUE, PINK, ORANGE), strict=True):
        right.plot(data["sizes"], line, color=colour, marker="o", ms=3, label=f"outlier {outlier}")
    right.axhline(0.6, color=BLACK, ls="--", lw=0.8, label="promised, η = 0.1")
    right.set(title="Over the size of the pool, as printed", xlabel="n, records in the pool", xticks=data["sizes"])
    right.legend(loc="upper right", bbox_to_anchor=(1.0, 0.8))
    for ax in (left, right):
        ax.set(ylabel="accuracy on the outlier", ylim=(0.49, 1.02))
        percent(ax.yaxis)
    return figure
