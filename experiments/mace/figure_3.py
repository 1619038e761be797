"""Figure 3: accuracy and AM, (TPR + TNR)/2, where one record in ten is a member.

At p = 0.1 whoever accuses nobody is right nine times in ten, so accuracy hardly moves; AM of any constant guess is ½.
The paper's algorithm 2 fits the posterior on one half of the answers, in 100 bins, and counts on the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import whosin as wi
from experiments._shared import BLUE, GREY, ORANGE, PINK, new_figure, styled
from experiments.mace._measure import BINS, SPLIT, cells_of, interval
from experiments.mace._models import answers_of
from experiments.mace._recipes import CIFAR10_CUTS, MNIST_CUTS
from experiments.mace._run import Run
from experiments.mace.heuristics import threshold_attack

PRIOR = 0.1
DIFFERS = (*MNIST_CUTS, *CIFAR10_CUTS, "nine non-members for each member, so that the samples have the prior's shares")
METRICS = ("accuracy", "am")


def algorithm_2(
    inside: NDArray[np.float64], outside: NDArray[np.float64], threshold: float, rng: Any
) -> tuple[float, float]:
    """Return TPR and FPR, on half of the answers, of accusing where the posterior fitted on the other half is above.

    Cells in which the first half has no record accuse nobody.
    """
    cells = cells_of(np.concatenate([inside, outside]), BINS)
    parts = [rng.permutation(side) for side in (cells[: len(inside)], cells[len(inside) :])]
    fit = [np.bincount(side[: len(side) // 2], minlength=BINS) / (len(side) // 2) for side in parts]
    posterior = np.divide(
        PRIOR * fit[0], PRIOR * fit[0] + (1.0 - PRIOR) * fit[1], out=np.zeros(BINS), where=fit[0] + fit[1] > 0
    )
    accused = posterior > threshold
    tpr, fpr = (float(accused[side[len(side) // 2 :]].mean()) for side in parts)
    return tpr, fpr


def value(metric: str, tpr: float, fpr: float) -> float:
    """Return accuracy at the prior, or AM."""
    if metric == "am":
        return (tpr + 1.0 - fpr) / 2.0
    return PRIOR * tpr + (1.0 - PRIOR) * (1.0 - fpr)


def study(scores: tuple[NDArray[np.float64], NDArray[np.float64]], rng: np.random.Generator) -> dict[str, Any]:
    """Return both metrics of algorithm 2, of the audit and of the attack of Hayes et al."""
    inside = scores[0][:, 0]
    outside = scores[1][: round(len(inside) * (1.0 - PRIOR) / PRIOR), 0]
    found = wi.audit(inside, outside, prior=PRIOR, kind="continuous", assignment="random", rng=SPLIT)
    heuristic = threshold_attack(inside, outside)
    limits = heuristic.advantage, heuristic.advantage_at_prior(PRIOR)
    return {
        "members": len(inside),
        "non_members": len(outside),
        "accuracy": {
            "constant_guess": 1.0 - PRIOR,
            "algorithm_2": value("accuracy", *algorithm_2(inside, outside, 0.5, rng)),
            "audit": interval(found.risk("accuracy")),
            "heuristic": interval(limits[1].scaled(0.5, 0.5)),
        },
        "am": {
            "constant_guess": 0.5,
            "algorithm_2": value("am", *algorithm_2(inside, outside, PRIOR, rng)),
            "audit": interval(found.risk("am")),
            "heuristic": interval(limits[0].scaled(0.5, 0.5)),
        },
    }


def compute(run: Run) -> dict[str, Any]:
    """Return both metrics of both models."""
    rng = np.random.default_rng([run.seed, 103])
    return {
        "prior": PRIOR,
        **{name: study(answers_of(run, name).scores, rng) for name in ("mnist_wgan", "cifar10_wgan")},
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw accuracy on the left, AM on the right."""
    figure, axes = new_figure(2)
    looks = (
        ("algorithm_2", "paper's algorithm 2", ORANGE, "D"),
        ("audit", "audit, 95 % limits", BLUE, "o"),
        ("heuristic", "attack of Hayes et al.", PINK, "v"),
    )
    names = {"mnist_wgan": "MNIST", "cifar10_wgan": "CIFAR-10"}
    for ax, metric in zip(axes, METRICS, strict=True):
        for row, model in enumerate(names):
            for line, (key, label, colour, marker) in enumerate(looks):
                found, place = data[model][metric][key], 4 * row + line
                if isinstance(found, dict):
                    ax.plot([found["lower"], found["upper"]], [place, place], "-", color=colour, lw=2)
                    found = found["estimate"]
                ax.plot(found, place, marker, color=colour, ms=6, label=label if row == 0 else None)
        ax.axvline(data["mnist_wgan"][metric]["constant_guess"], color=GREY, ls="--", lw=1, label="best constant guess")
        ax.set(yticks=[1, 5], yticklabels=list(names.values()), ylim=(6.8, -0.8), ylabel="WGAN-GP on")
        ax.grid(visible=False, axis="y")
    axes[0].set(title=f"Accuracy at p = {data['prior']:g}", xlabel="accuracy")
    axes[1].set(title=f"AM at p = {data['prior']:g}", xlabel="(TPR + TNR)/2")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure
