"""Figure 5: the advantage against a DP-cGAN, and what differential privacy promises, over ε (appendix G).

The paper draws tanh(ε/2), which is the bound of pure ε-DP, for models that are (ε, 1e-5)-DP. Here are also the bound of
(ε, δ), and what the DP-SGD run itself promises, which is far less than what remains of it in the two numbers ε and δ.
Members and non-members of a training set of a given size differ by a replacement, so the last line is the one that
applies. One trained model can refute none of them: the promises are about the training's coins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import whosin as wi
from experiments._shared import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, new_figure, styled
from experiments.mace._measure import measure
from experiments.mace._private import DP_CUTS, PRIVATE_DELTA, noise_for, private_scores, setting_of
from experiments.mace._run import Run

EPSILONS = (1.0, 2.0, 5.0, 10.0)
GRID = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0)
DIFFERS = (*DP_CUTS, "the values of ε in the paper's figure are not given in its text; a model without noise is added")


def promises(epsilon: float, rate: float, steps: int) -> dict[str, float]:
    """Return every upper bound on the advantage at one ε."""
    noise = noise_for(epsilon, rate, steps)
    training = wi.DPSGD(noise, rate, steps)
    return {
        "noise_multiplier": noise,
        "as_printed": math.tanh(epsilon / 2.0),
        "epsilon_delta": wi.ApproxDP(epsilon, PRIVATE_DELTA).advantage,
        "dpsgd": training.advantage,
        "dpsgd_replace": wi.risks.advantage(training.replace_roc()),
    }


def compute(run: Run) -> dict[str, Any]:
    """Return the measured advantages and the promises."""
    rng = np.random.default_rng([run.seed, 105])
    setting = setting_of(run)
    grid = (1.0, 2.0, 10.0) if run.quick else GRID
    rows = [promises(epsilon, setting.rate, setting.steps) for epsilon in grid]
    models = {f"{epsilon:g}": epsilon for epsilon in ((2.0, 10.0) if run.quick else (*EPSILONS, math.inf))}
    return {
        "delta": PRIVATE_DELTA,
        "promised": {"epsilon": list(grid), **{key: [row[key] for row in rows] for key in rows[0]}},
        "measured": {name: measure(*private_scores(run, epsilon), rng) for name, epsilon in models.items()},
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw promises as lines, measurements as points."""
    figure, (ax,) = new_figure()
    figure.set_size_inches(6.6, 4.6)
    promised = data["promised"]
    grid = promised["epsilon"]
    ax.plot(grid, promised["epsilon_delta"], color=SKY, lw=4, alpha=0.6, label="any (ε, δ)-DP training")
    ax.plot(grid, promised["as_printed"], color=ORANGE, ls="--", label="tanh(ε/2), as printed: δ = 0")
    ax.plot(grid, promised["dpsgd_replace"], color=BLACK, label="this DP-SGD run, one record replaced")
    ax.plot(grid, promised["dpsgd"], color=GREEN, ls="-.", label="this DP-SGD run, one record added")
    last = 2.4 * max(grid)
    for number, (name, found) in enumerate(data["measured"].items()):
        place = last if name == "inf" else float(name)
        printed, one = found["plug_in_by_cells"]["100"], found["audit"]
        label = number == 0
        ax.plot([place * 0.94] * 2, printed["null"]["range_95"], color="0.7", lw=7, solid_capstyle="butt",
                label="W if nothing leaked, 95 %" if label else None)  # fmt: skip
        ax.plot(
            place * 0.94, printed["value"], "D", color=ORANGE, ms=5, label="paper's W, 100 cells" if label else None
        )
        ax.plot([place * 1.06] * 2, [one["lower"], one["upper"]], color=BLUE, lw=2)
        ax.plot(place * 1.06, one["estimate"], "o", color=BLUE, ms=5, label="audit, 95 % limits" if label else None)
    if "inf" in data["measured"]:
        ax.axvline(last / 1.55, color=GREY, lw=0.6)
    ticks = [epsilon for epsilon in (0.5, 1, 2, 5, 10, 20, 50) if epsilon <= max(grid)]
    names = [f"{tick:g}" for tick in ticks]
    ax.set(title="DP-cGAN on zeros and sixes, discriminator", xscale="log", xlabel="ε at δ = 1e-5")
    ax.set_xticks([*ticks, last], [*names, "no noise"])
    ax.minorticks_off()
    ax.set(ylabel="membership advantage", ylim=(-0.01, 1.02))
    figure.legend(loc="outside upper center", ncols=2)
    return figure
