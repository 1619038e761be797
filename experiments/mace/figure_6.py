"""Figure 6: individual risks under the DP-cGAN with ε = 2 and ε = 10 (appendix G).

The paper finds every individual risk below tanh(ε/2). That is no theorem for a δ above 0: there no bound on the risk
given an answer is below 1. Its estimate takes cells with a handful of records at their word, so its null is drawn too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import whosin as wi
from experiments._shared import BLUE, GREY, ORANGE, new_figure, styled
from experiments.mace._measure import BINS, PERMUTATIONS, SPLIT, cells_of, printed_risks
from experiments.mace._private import DP_CUTS, private_scores
from experiments.mace._run import Run

EPSILONS = (2.0, 10.0)
SHARES = tuple(i / 50 for i in range(51))
DIFFERS = (*DP_CUTS, "risks in rising order with limits, not a histogram")


def study(run: Run, epsilon: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return the members' risks, in rising order, by the paper's estimate, by chance alone, and by the audit."""
    inside, outside = private_scores(run, epsilon)
    cells = cells_of(np.concatenate([inside, outside]), BINS)
    member = np.arange(len(cells)) < len(inside)
    chance = [np.quantile(printed_risks(cells, rng.permutation(member)), SHARES) for _ in range(PERMUTATIONS)]
    found = wi.audit(inside, outside, kind="continuous", assignment="random", rng=SPLIT).individual
    risks, lower, upper = (side[: len(inside)] for side in found.advantage(simultaneous=True))
    order = np.argsort(risks, kind="stable")[[round(share * (len(inside) - 1)) for share in SHARES]]
    return {
        "members": len(inside),
        "non_members": len(outside),
        "tanh_as_printed": math.tanh(epsilon / 2.0),
        "as_printed": np.quantile(printed_risks(cells, member), SHARES).tolist(),
        "as_printed_null_mean": np.mean(chance, axis=0).tolist(),
        "audit": {"estimate": risks[order].tolist(), "lower": lower[order].tolist(), "upper": upper[order].tolist()},
    }


def compute(run: Run) -> dict[str, Any]:
    """Return the risks for both ε."""
    rng = np.random.default_rng([run.seed, 106])
    return {"shares": list(SHARES), "epsilon": {f"{epsilon:g}": study(run, epsilon, rng) for epsilon in EPSILONS}}


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw a panel for each ε."""
    figure, axes = new_figure(2)
    shares = data["shares"]
    for ax, letter, (epsilon, found) in zip(axes, "ab", data["epsilon"].items(), strict=True):
        one = found["audit"]
        ax.fill_between(shares, one["lower"], one["upper"], color=BLUE, alpha=0.15, lw=0)
        ax.plot(shares, one["estimate"], color=BLUE, label="audit, 95 % limits for all at once")
        ax.plot(
            shares,
            found["as_printed_null_mean"],
            color=GREY,
            ls=":",
            lw=2.4,
            label="paper's estimate if nothing leaked",
        )
        ax.plot(shares, found["as_printed"], color=ORANGE, label="paper's estimate")
        ax.axhline(found["tanh_as_printed"], color=ORANGE, ls="--", lw=1, label="tanh(ε/2), as printed: δ = 0")
        ax.set(title=f"6{letter}  ε = {epsilon}", xlabel="members, in rising order of risk")
        ax.set(ylabel="individual risk, |f|", xlim=(0, 1), ylim=(-0.02, 1.05))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure
