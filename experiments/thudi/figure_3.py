"""Figure 3: theorem 1's bound on the positive accuracy over P(1), for several ε."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from experiments._shared import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, new_figure, percent, styled
from experiments.thudi._common import posterior_bound, series

EPSILONS = (0.5, 1.0, 2.0, 4.0)


def compute() -> dict[str, Any]:
    """Return the bound over P(1), and the example of section 4.1 (ε = 2, P(1) = 1 %: 6.9 %)."""
    prior = [0.001, 0.002, 0.005, *(i / 100 for i in range(1, 100)), 0.995, 0.998, 0.999]
    return {
        "figure": "3",
        "prior": prior,
        "positive_accuracy": {f"{e:g}": series(lambda p, e=e: posterior_bound(e, p), prior) for e in EPSILONS},
        "example": {"epsilon": 2.0, "prior": 0.01, "bound": posterior_bound(2.0, 0.01), "as_printed": 0.069},
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw one line an ε, the blind guess below them, and the example."""
    figure, (ax,) = new_figure()
    looks = ((GREEN, "-."), (BLUE, "-"), (ORANGE, "--"), (PINK, ":"))
    for (epsilon, values), (colour, dashes) in reversed(
        list(zip(data["positive_accuracy"].items(), looks, strict=True))
    ):
        ax.plot(data["prior"], values, color=colour, ls=dashes, label=f"ε = {epsilon}")
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, label="ε = 0: the prior")
    example = data["example"]
    ax.plot(example["prior"], example["bound"], "o", color=BLACK, ms=4)
    ax.annotate(
        f"ε = 2, P(1) = 1%: {example['bound']:.1%}",
        (example["prior"], example["bound"]),
        xytext=(0.22, 0.06),
        arrowprops={"arrowstyle": "-", "color": "0.5", "shrinkB": 4},
    )
    ax.set(title="Theorem 1: bound on the positive accuracy", xlim=(0, 1), ylim=(0, 1.02))
    ax.set(xlabel="P(1), the probability that the record is drawn", ylabel="bound on positive accuracy")
    percent(ax.yaxis)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.1))
    return figure
