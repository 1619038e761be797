"""Figure 5: the bounds of Sablayrolles et al. and of theorem 1 on the positive accuracy, over P(1).

Their distance is at least ε/4 - tanh(ε/4), met at P(1) = 1/(1 + e^{ε/2}) (where figure 6 has its peak).
"""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure

import whosin as wi
from experiments._shared import BLACK, BLUE, GREEN, ORANGE, new_figure, percent, styled
from experiments.thudi._common import series

EPSILONS = (0.5, 1.0, 2.0)


def compute() -> dict[str, Any]:
    """Return both bounds over P(1), and where they are closest while p + ε/4 is below 1."""
    prior = [0.001, 0.002, 0.005, *(i / 100 for i in range(1, 100)), 0.995, 0.998, 0.999]
    closest = {f"{e:g}": 1.0 / (1.0 + math.exp(e / 2.0)) for e in EPSILONS}
    return {
        "figure": "5",
        "prior": prior,
        "sablayrolles": {f"{e:g}": series(lambda p, e=e: wi.bounds.sablayrolles(e, p), prior) for e in EPSILONS},
        "thudi": {f"{e:g}": series(lambda p, e=e: wi.bounds.thudi(e, p), prior) for e in EPSILONS},
        "closest": {
            key: {
                "prior": p,
                "sablayrolles": wi.bounds.sablayrolles(float(key), p),
                "thudi": wi.bounds.thudi(float(key), p),
                "gap": wi.bounds.sablayrolles(float(key), p) - wi.bounds.thudi(float(key), p),
            }
            for key, p in closest.items()
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw a pair of lines an ε: theirs dashed, theorem 1 solid."""
    figure, (ax,) = new_figure()
    for epsilon, colour in zip(data["thudi"], (GREEN, BLUE, ORANGE), strict=True):
        ax.plot(data["prior"], data["sablayrolles"][epsilon], color=colour, ls="--")
        ax.plot(data["prior"], data["thudi"][epsilon], color=colour, label=f"ε = {epsilon}")
        point = data["closest"][epsilon]
        ax.plot([point["prior"]] * 2, [point["thudi"], point["sablayrolles"]], color=BLACK, lw=1, marker=".", ms=5)
    ax.plot([], [], color="0.4", label="Thudi et al.: theorem 1")
    ax.plot([], [], color="0.4", ls="--", label="Sablayrolles et al.: P(1) + ε/4")
    ax.plot([], [], color=BLACK, lw=1, marker=".", ms=5, label=r"closest: ε/4 − tanh(ε/4) apart")
    ax.set(title="Two bounds on the positive accuracy", xlim=(0, 1), ylim=(0, 1.02))
    ax.set(xlabel="P(1), the probability that the record is drawn", ylabel="bound on positive accuracy")
    percent(ax.yaxis)
    ax.legend(loc="lower right")
    return figure
