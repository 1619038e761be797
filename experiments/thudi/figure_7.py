"""Figure 7: how many deletion requests may be skipped, over the expected size c of the training set (section 6).

Each of N records is drawn with probability c/N, and a set of m records is forgotten if P(none of them was in) ≥ B.
Corollary 1 says P(x not in D | S) ≥ L = 1/(1 + e^{+ε}p/(1-p)); section 6 prints e^{-ε}, which is the corollary's
*upper* bound, and so overstates the capacity ln B / ln L. (The section's product of posteriors is not an identity,
but P(none | S) ≥ L^m holds all the same: condition on one record after the other.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

import whosin as wi
from experiments._shared import BLUE, GREEN, GREY, ORANGE, new_figure, percent, styled
from experiments.thudi._common import posterior_bound
from whosin.unlearning import Unlearning, deletion_capacity

B, N, EPSILON = 0.8, 10_000, 1.0
SIZES = (1, 10, 50, 100, 200, 500, 1000, 2000, 5000)


def log_keep(c: float) -> float:
    """Return ln L, L the lower bound of corollary 1: one minus theorem 1's bound."""
    return math.log1p(-posterior_bound(EPSILON, c / N))


def log_keep_as_printed(c: float) -> float:
    """Return ln L as printed in section 6, with e^{-ε}."""
    p = c / N
    return -math.log1p(math.exp(-EPSILON) * p / (1.0 - p))


def row(c: float) -> dict[str, float]:
    """Return the capacities at one size, and what the printed one really guarantees."""
    capacity, printed = math.log(B) / log_keep(c), math.log(B) / log_keep_as_printed(c)
    return {
        "c": c,
        "L": math.exp(log_keep(c)),
        "L_as_printed": math.exp(log_keep_as_printed(c)),
        "capacity": capacity,
        "capacity_as_printed": printed,
        "whole_capacity": deletion_capacity(EPSILON, c / N, B),
        "whole_capacity_as_printed": math.floor(printed),
        "overstated_factor": printed / capacity,
        "true_guarantee_at_printed_capacity": math.exp(printed * log_keep(c)),
        "true_guarantee_at_whole_printed_capacity": Unlearning(EPSILON, c / N, B, math.floor(printed)).none_used,
    }


def compute() -> dict[str, Any]:
    """Return the capacities over c, the table, and where they meet the linear trend and end."""
    rows = [row(float(c)) for c in np.geomspace(1.0, 9000.0, 81)]
    shown = ("c", "capacity", "capacity_as_printed", "true_guarantee_at_printed_capacity")
    table = [row(c) for c in SIZES]
    useful = [r for r in table if r["capacity_as_printed"] >= 1.0]
    return {
        "figure": "7",
        "B": B,
        "N": N,
        "epsilon": EPSILON,
        "curves": {key: [r[key] for r in rows] for key in shown},
        "table": table,
        "overstated_limit": math.exp(2.0 * EPSILON),
        "true_guarantee_range": {
            "c": [useful[0]["c"], useful[-1]["c"]],
            "guarantee": [r["true_guarantee_at_printed_capacity"] for r in (useful[0], useful[-1])],
        },
        "no_deletion_beyond_c": N * wi.calibrate.sampling_rate(EPSILON, posterior=1.0 - B),
        "equals_linear_trend_at_c": brentq(lambda c: math.log(B) / log_keep(c) - c, 1.0, 5000.0, xtol=1e-12),
        "as_printed_equals_linear_trend_at_c": brentq(
            lambda c: math.log(B) / log_keep_as_printed(c) - c, 1.0, 5000.0, xtol=1e-12
        ),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the capacities on the left, the true guarantee at the printed capacity on the right."""
    figure, (left, right) = new_figure(2)
    curves = data["curves"]
    size = curves["c"]
    left.loglog(size, size, color=GREEN, ls="-.", label="linear trend (Sekhari et al.), slope 1")
    left.loglog(size, curves["capacity_as_printed"], color=ORANGE, ls="--", label=r"as printed: $e^{-ε}$ in L")
    left.loglog(size, curves["capacity"], color=BLUE, label=r"corrected: $e^{+ε}$ in L")
    left.axhline(1.0, color=GREY, lw=1)
    left.annotate("below: not one deletion", (1.15, 0.93), color=GREY, va="top")
    left.set(title=f"Deletion capacity, B = {data['B']:g}, N = {data['N']:,}, ε = {data['epsilon']:g}")
    left.set(xlabel="expected training set size c", ylabel="deletions that may be skipped")
    left.set(xlim=(1, 9000), ylim=(0.02, 3e5))
    left.legend(loc="upper center")
    used = [i for i, m in enumerate(curves["capacity_as_printed"]) if m >= 1.0]
    kept = [curves["true_guarantee_at_printed_capacity"][i] for i in used]
    right.semilogx([size[i] for i in used], kept, color=BLUE, label="really guaranteed: $L^m$ (drawn while m ≥ 1)")
    right.axhline(data["B"], color=ORANGE, ls="--", label=f"promised: B = {data['B']:g}")
    right.set(title="P(none of m was in) at the printed capacity m", xlabel="expected training set size c")
    right.set(ylabel="lower bound on P(none was in)", xlim=(1, 9000), ylim=(0, 1))
    percent(right.yaxis)
    right.legend(loc="center left", bbox_to_anchor=(0.0, 0.6))
    return figure
