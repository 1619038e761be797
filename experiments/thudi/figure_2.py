"""Figure 2: the bounds on the accuracy at P(1) = ½, for ε-DP.

The paper draws Erlingsson et al., Sablayrolles et al. and its own bound; Yeom et al. is added. The text (section 5.1)
gives 95 % for Erlingsson et al. at ε = 2; their formula gives 93.2 %.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from scipy.optimize import brentq

import whosin as wi
from experiments._shared import BLUE, GREEN, ORANGE, PINK, new_figure, percent, styled

AUTHORS = ("Yeom et al. 2018", "Erlingsson et al. 2019", "Sablayrolles et al. 2019", "Thudi et al. 2022")
PRINTED = {
    "1": {"Erlingsson et al. 2019": 0.816, "Sablayrolles et al. 2019": 0.75, "Thudi et al. 2022": 0.731},
    "2": {"Erlingsson et al. 2019": 0.95, "Sablayrolles et al. 2019": 1.0, "Thudi et al. 2022": 0.88},
}


def accuracy_bounds(epsilon: float) -> dict[str, float]:
    """Return each paper's bound on the accuracy at prior ½, capped at 1."""
    rows = {row.name: row.value for row in wi.bounds.table(epsilon) if row.quantity == "accuracy"}
    return {name: float(rows[name]) for name in AUTHORS}


def compute() -> dict[str, Any]:
    """Return the bounds over ε, and at ε = 1 and 2 beside the numbers in the text."""
    epsilon = [i / 25 for i in range(101)]
    bounds = [accuracy_bounds(e) for e in epsilon]
    crossing = brentq(
        lambda e: wi.bounds.sablayrolles(e) - (0.5 + wi.bounds.erlingsson(e) / 2), 0.5, 1.9, xtol=1e-15, rtol=1e-15
    )
    return {
        "figure": "2",
        "prior": 0.5,
        "epsilon": epsilon,
        "accuracy": {name: [bound[name] for bound in bounds] for name in AUTHORS},
        "exact_ceiling": [wi.PureDP(e).accuracy(0.5) for e in epsilon],
        "at": {key: accuracy_bounds(float(key)) for key in PRINTED},
        "as_printed": PRINTED,
        "misprint": "Erlingsson et al. at ε = 2: 95 % in the text, 93.233 % by the formula 1 - e^{-ε}/2",
        "erlingsson_meets_sablayrolles_at_epsilon": crossing,
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the four bounds and the misprinted point."""
    figure, (ax,) = new_figure()
    looks = dict(zip(AUTHORS, ((PINK, ":"), (ORANGE, "--"), (GREEN, "-."), (BLUE, "-")), strict=True))
    formulas = dict(zip(AUTHORS, ("$e^ε/2$", "$1-e^{-ε}/2$", "$1/2+ε/4$", "$1/(1+e^{-ε})$, tight"), strict=True))
    for name, (colour, dashes) in looks.items():
        ax.plot(data["epsilon"], data["accuracy"][name], color=colour, ls=dashes, label=f"{name}: {formulas[name]}")
    wrong = data["as_printed"]["2"]["Erlingsson et al. 2019"]
    right = data["at"]["2"]["Erlingsson et al. 2019"]
    ax.plot(2, wrong, "x", color=ORANGE, ms=8, mew=2)
    ax.plot(2, right, "o", color=ORANGE, ms=5)
    ax.annotate(
        f"Erlingsson at ε = 2: {right:.1%}\n(× {wrong:.0%} in the text)",
        (2, right),
        xytext=(2.25, 0.78),
        arrowprops={"arrowstyle": "-", "color": "0.5", "shrinkB": 4},
    )
    ax.set(title="Bounds on the accuracy of any attack, P(1) = ½", xlabel="ε", ylabel="bound on accuracy")
    ax.set(xlim=(0, 4), ylim=(0.5, 1.02))
    percent(ax.yaxis)
    ax.legend(loc="lower right")
    return figure
