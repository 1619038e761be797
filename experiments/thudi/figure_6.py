"""Figure 6: the positive advantage 2(A - P(1)), A theorem 1's bound, over P(1).

Its peak is at P(1) = 1/(1 + e^{ε/2}) and is 2 tanh(ε/4) high. Equation 5 as printed has P(0) inside the exponent,
e^{-ε·P(0)}/P(1) for e^{-ε}·P(0)/P(1); the figure is of theorem 1.
"""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure

from experiments._shared import BLACK, BLUE, GREEN, ORANGE, PINK, new_figure, styled
from experiments.thudi._common import posterior_bound, series

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


def advantage(epsilon: float, prior: float) -> float:
    """Return the bound on the positive advantage that theorem 1 gives."""
    return 2.0 * (posterior_bound(epsilon, prior) - prior)


def printed_advantage(epsilon: float, prior: float) -> float:
    """Return equation 5 as printed, with P(0) inside the exponent."""
    return 2.0 * (1.0 / (1.0 + math.exp(-epsilon * (1.0 - prior)) / prior) - prior)


def compute() -> dict[str, Any]:
    """Return the advantage over P(1), its peaks, and equation 5 as printed at one point."""
    prior = [0.0005, 0.001, 0.002, 0.005, *(i / 100 for i in range(1, 100)), 0.995, 0.999]
    peaks = {f"{e:g}": 1.0 / (1.0 + math.exp(e / 2.0)) for e in EPSILONS}
    return {
        "figure": "6",
        "prior": prior,
        "advantage": {f"{e:g}": series(lambda p, e=e: advantage(e, p), prior) for e in EPSILONS},
        "peak": {
            key: {
                "prior": p,
                "advantage": advantage(float(key), p),
                "2tanh(epsilon/4)": 2.0 * math.tanh(float(key) / 4.0),
                "at_prior_half": advantage(float(key), 0.5),
            }
            for key, p in peaks.items()
        },
        "equation_5_as_printed": {
            "epsilon": 2.0,
            "prior": 0.5,
            "as_printed": printed_advantage(2.0, 0.5),
            "theorem_1": advantage(2.0, 0.5),
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw one line an ε with its peak."""
    figure, (ax,) = new_figure()
    looks = ((GREEN, "-."), (BLUE, "-"), (ORANGE, "--"), (PINK, ":"), (BLACK, (0, (6, 1.5, 1, 1.5, 1, 1.5))))
    for (epsilon, values), (colour, dashes) in reversed(list(zip(data["advantage"].items(), looks, strict=True))):
        peak = data["peak"][epsilon]
        ax.plot(data["prior"], values, color=colour, ls=dashes, label=f"ε = {epsilon}: {peak['advantage']:.3f}")
        ax.plot(peak["prior"], peak["advantage"], "o", color=colour, ms=5)
    ax.axvline(0.5, color="0.7", lw=1)
    ax.annotate("P(1) = ½: Yeom et al.", (0.51, 0.03), color="0.4")
    ax.set(title="Positive advantage, and its peak: $2\\,\\tanh(ε/4)$ at P(1) = $1/(1+e^{ε/2})$")
    ax.set(xlabel="P(1), the probability that the record is drawn", ylabel="bound on positive advantage")
    ax.set(xlim=(0, 1), ylim=(0, 2.02))
    ax.legend(loc="upper right", title="height of the peak")
    return figure
