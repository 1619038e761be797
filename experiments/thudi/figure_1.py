"""Figure 1: sampling batches against sampling the data set.

The paper compares the factors e^{-t} (batches) and (1-t)/t (data set) of theorem 1's term e^{-qε₀}·P(0)/P(1). But
sampling a batch at rate q turns ε₀ into ln(1 + q(e^{ε₀} - 1)), not into qε₀: by Jensen's inequality the true ε is
never smaller than the printed one. The second panel puts both laws into theorem 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

import whosin as wi
from experiments._shared import BLUE, GREEN, ORANGE, new_figure, percent, styled
from experiments.thudi._common import posterior_bound, series

EPSILON_0 = 10.0
PRIOR = 0.5
EXAMPLES = ((1.0, 0.01), (2.0, 0.01), (10.0, 0.01), (10.0, 0.1))


def printed_law(epsilon_0: float, q: float) -> float:
    """Return ε of a batch step as printed: the exponent of e^{-qε₀}."""
    return q * epsilon_0


def true_law(epsilon_0: float, q: float) -> float:
    """Return ε of a batch step: ln(1 + q(e^{ε₀} - 1))."""
    return wi.PureDP(epsilon_0).implies(wi.PureDP, sample_rate=q).epsilon


def compute() -> dict[str, Any]:
    """Return the printed factors over t, and theorem 1's bound over the rate under both laws."""
    t = [i / 100 for i in range(2, 101)]
    rate = np.geomspace(1e-6, 1.0, 97).tolist()
    return {
        "figure": "1",
        "printed_factors": {
            "t": t,
            "batch_exp_minus_t": series(lambda x: math.exp(-x), t),
            "data_set_(1-t)/t": series(lambda x: (1.0 - x) / x, t),
            "equal_at_t": brentq(lambda x: math.exp(-x) - (1.0 - x) / x, 0.1, 0.9, xtol=1e-15, rtol=1e-15),
        },
        "theorem_1": {
            "epsilon_0": EPSILON_0,
            "prior": PRIOR,
            "rate": rate,
            "batch_as_printed": series(lambda q: posterior_bound(printed_law(EPSILON_0, q), PRIOR), rate),
            "batch_true_law": series(lambda q: posterior_bound(true_law(EPSILON_0, q), PRIOR), rate),
            "data_set": series(lambda q: posterior_bound(EPSILON_0, q * PRIOR), rate),
        },
        "examples": [
            {
                "epsilon_0": epsilon_0,
                "q": q,
                "epsilon_as_printed": printed_law(epsilon_0, q),
                "epsilon_true_law": true_law(epsilon_0, q),
                "bound_as_printed": posterior_bound(printed_law(epsilon_0, q), PRIOR),
                "bound_true_law": posterior_bound(true_law(epsilon_0, q), PRIOR),
                "bound_data_set": posterior_bound(epsilon_0, q * PRIOR),
            }
            for epsilon_0, q in EXAMPLES
        ],
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the printed factors on the left, theorem 1 under both laws on the right."""
    figure, (left, right) = new_figure(2)
    factors = data["printed_factors"]
    left.plot(factors["t"], factors["batch_exp_minus_t"], color=ORANGE, ls="--", label=r"batches, as printed: $e^{-t}$")
    left.plot(factors["t"], factors["data_set_(1-t)/t"], color=GREEN, ls="-.", label=r"data set: $(1-t)/t$")
    left.set(title="The factors as printed", xlabel="t", ylabel="factor in theorem 1 (larger is safer)")
    left.set(xlim=(0, 1), ylim=(0, 6))
    left.legend(loc="upper right")

    bound = data["theorem_1"]
    right.plot(bound["rate"], bound["batch_true_law"], color=BLUE, label=r"batches, true law: $\ln(1+q(e^{ε_0}-1))$")
    right.plot(bound["rate"], bound["data_set"], color=GREEN, ls="-.", label="data set: P(1) = q/2")
    right.plot(bound["rate"], bound["batch_as_printed"], color=ORANGE, ls="--", label=r"batches, as printed: $qε_0$")
    example = next(e for e in data["examples"] if e["epsilon_0"] == bound["epsilon_0"] and e["q"] == 0.01)
    for key, colour, shift in (("bound_true_law", BLUE, (62, -18)), ("bound_as_printed", ORANGE, (-4, 9))):
        right.plot(example["q"], example[key], "o", color=colour, ms=5)
        text, place = f"q = 1%: {example[key]:.1%}", (example["q"], example[key])
        right.annotate(text, place, xytext=shift, textcoords="offset points", color=colour, ha="right")
    right.set(title=f"Theorem 1 at $ε_0$ = {bound['epsilon_0']:g}, P(1) = ½", xscale="log")
    right.set(xlabel="sampling rate q", ylabel="bound on positive accuracy", xlim=(1e-6, 1), ylim=(0, 1.02))
    percent(right.yaxis)
    right.legend(loc="lower right", bbox_to_anchor=(1.0, 0.02))
    return figure
