"""Figure 1: the noise that proposition 11's estimate needs, for MIP and for DP, against η.

The paper draws c·σ with σ² ≤ 5 against Δ/ε. Theorem 9's constant is far from needed: σ/ln(1/(1-2η)) does. On the right
all routes at n = 16, where every half can be enumerated: the same with the exact mean deviation, and the average over
neighbours, which needs no moment.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

from experiments._shared import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, new_figure, styled
from experiments.izzo._common import Halves, dp_scale, moment_scale, special_data_set
from experiments.izzo.noise import paper_scale
from whosin.numerics.shift import divergence

N = (24, 30, 36, 42, 48)
ENUMERATED = 16
CRUDE = math.sqrt(5.0)
"""The proof's bound on the standard deviation."""


def average_scale(steps: list[Any], eta: float) -> float:
    """Return the smallest s with ½·mean g(|A(D) - A(D - x + x')|/s) ≤ η for every record x."""

    def excess(log_s: float) -> float:
        worst = max(float(divergence("norm_exponential", step / math.exp(log_s)).mean()) for step in steps)
        return 0.5 * worst - eta

    return math.exp(brentq(excess, math.log(1e-6), math.log(1e3), xtol=1e-9, rtol=1e-12))


def crossing(n: int, low: float, high: float) -> float:
    """Return the η in between at which the printed MIP line meets the DP line."""
    widest = math.sqrt(math.comb(n, n // 2))
    return float(brentq(lambda eta: paper_scale(eta, CRUDE) - dp_scale(widest, eta), low, high, xtol=1e-13))


def compute() -> dict[str, Any]:
    """Return the scales over η, and where the printed lines meet."""
    eta = [0.002, 0.005, *(i / 100 for i in range(1, 50)), 0.495]
    few = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.49]
    halves = Halves(special_data_set(ENUMERATED, "appendix"))
    steps = [halves.adjacent(record) for record in range(ENUMERATED)]
    sensitivity = max(float(step.max()) for step in steps)
    return {
        "figure": "1",
        "sigma": CRUDE,
        "eta": eta,
        "mip_as_printed": [paper_scale(e, CRUDE) for e in eta],
        "mip_sharp": [moment_scale(CRUDE, e) for e in eta],
        "dp": {str(n): [dp_scale(math.sqrt(math.comb(n, n // 2)), e) for e in eta] for n in N},
        "mip_as_printed_below_dp_from": {
            "24": [crossing(24, 0.1, 0.4), crossing(24, 0.4, 0.4999)],
            "30": [crossing(30, 0.001, 0.2)],
            "36": [crossing(36, 0.0005, 0.2)],
        },
        "enumerated": {
            "n": ENUMERATED,
            "standard_deviation": float(np.std(halves.theta)),
            "mean_deviation": halves.deviation(),
            "sensitivity": sensitivity,
            "eta": few,
            "as_printed": [paper_scale(e, float(np.std(halves.theta))) for e in few],
            "dp": [dp_scale(sensitivity, e) for e in few],
            "sharp_standard_deviation": [moment_scale(float(np.std(halves.theta)), e) for e in few],
            "sharp_mean_deviation": [moment_scale(halves.deviation(), e) for e in few],
            "average": [average_scale(steps, e) for e in few],
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the paper's figure with the sharp line on the left, all routes at n = 16 on the right."""
    figure, (left, right) = new_figure(2)
    for n, line in data["dp"].items():
        left.plot(data["eta"], line, color=GREY, ls=":", lw=1.4, label="DP" if n == "48" else None)
        left.text(0.42, line[data["eta"].index(0.42)] * 1.6, f"n = {n}", color=GREY, fontsize=8)
    left.plot(data["eta"], data["mip_as_printed"], color=ORANGE, label="MIP as printed, every n")
    left.plot(data["eta"], data["mip_sharp"], color=BLUE, label="MIP, sharp constant, every n")
    left.set(title="σ² ≤ 5 and Δ ≈ √C(n, n/2), as in the paper")

    found = data["enumerated"]
    lines = (
        ("as_printed", "MIP as printed", ORANGE, "-"),
        ("dp", "DP", GREY, "--"),
        ("sharp_standard_deviation", "MIP, standard deviation", BLUE, "-"),
        ("sharp_mean_deviation", "MIP, mean deviation", GREEN, "-."),
        ("average", "MIP, average over neighbours", PINK, ":"),
    )
    for key, label, colour, style in lines:
        right.plot(found["eta"], found[key], color=colour, ls=style, label=label, marker="o", ms=2.5)
    right.set(title=f"n = {found['n']}, every half enumerated")
    for ax, limits in ((left, (0.5, 5e11)), (right, (1e-6, 3e10))):
        ax.set(xlabel="η, gain in accuracy over a coin", ylabel="scale of the noise", yscale="log")
        ax.set(xlim=(0, 0.5), ylim=limits)
        ax.legend(loc="upper right")
        ax.axhline(1.0, color=BLACK, lw=0.6)
    return figure
