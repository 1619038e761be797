"""The leak over the epochs of the training, at the paper's sizes and with the layers of its appendix E.

The paper does not say for how long most of its models were trained, and what leaks grows with it. So every model of the
scale "full" is asked several times on its way, after numbers of epochs that were fixed before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import BLUE, ORANGE, styled
from experiments.mace._measure import measure
from experiments.mace._models import Answers, answers_of
from experiments.mace._recipes import gans_of, recipe_of
from experiments.mace._run import Run, Unfinished

DIFFERS = ("the epochs, which the paper states for one model only",)
TITLES = {
    "mnist_wgan": "WGAN-GP, MNIST",
    "mnist_privgan": "privGAN, MNIST",
    "cifar10_wgan": "WGAN-GP, CIFAR-10",
    "skin28_jsgan": "JS-GAN, skin, 28x28",
    "skin_jsgan": "JS-GAN, skin, 64x64",
    "skin_wgan": "WGAN-GP, skin, 64x64",
    "skin_corrupted": "JS-GAN, skin with boxes",
}


def queries(found: Answers, rng: np.random.Generator) -> dict[str, Any]:
    """Return the estimates for every query that the paper makes of such a model."""
    inside, outside = found.scores
    rows = {"discriminator": measure(inside.max(axis=1), outside[: len(found.split.holdout)].max(axis=1), rng)}
    if inside.shape[1] > 1:
        rows["both discriminators"] = measure(inside, outside, rng, bins=(10, 100))
    if found.sizes:
        rows["nearest"] = measure(*found.released, rng)
    return rows


def compute(run: Run) -> dict[str, Any]:
    """Train every model to the first of its epochs, then each to the second, …, as long as the time allows."""
    names = gans_of(run)
    models: dict[str, Any] = {name: {} for name in names}
    unfinished: dict[str, str] = {}
    for place in range(max(len(recipe_of(run, name).epochs) for name in names)):
        for name in names:
            epochs = recipe_of(run, name).epochs
            if place < len(epochs) and name not in unfinished:
                try:
                    found = answers_of(run, name, epochs[place])
                except Unfinished as why:
                    unfinished[name] = str(why)
                else:
                    rng = np.random.default_rng([run.seed, 110, epochs[place]])
                    models[name][str(epochs[place])] = queries(found, rng)
    return {"models": {name: found for name, found in models.items() if found}, "unfinished": unfinished}


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the discriminator's leak over the epochs, a panel for each model."""
    models = data["models"]
    figure = Figure(figsize=(3.4 * max(len(models), 2), 3.6))
    axes = np.atleast_1d(figure.subplots(1, len(models), sharey=True))
    for ax, (name, found) in zip(axes, models.items(), strict=True):
        epochs = [int(stop) for stop in found]
        rows = [row["discriminator"] for row in found.values()]
        printed = [row["plug_in_by_cells"]["100"] for row in rows]
        ranges = np.array([one["null"]["range_95"] for one in printed])
        ax.vlines(epochs, *ranges.T, color="0.8", lw=12, label="W if nothing leaked, 95 %")
        ax.plot(epochs, [one["value"] for one in printed], "D-", color=ORANGE, ms=5, label="paper's W, 100 cells")
        audit = [row["audit"] for row in rows]
        limits = [[max(one["estimate"] - one["lower"], 0.0) for one in audit],
                  [max(one["upper"] - one["estimate"], 0.0) for one in audit]]  # fmt: skip
        ax.errorbar(
            epochs, [one["estimate"] for one in audit], limits, fmt="o-", color=BLUE, ms=5, label="audit, 95 % limits"
        )
        ax.set(title=TITLES[name], xlabel="epochs", xscale="log", ylabel="membership advantage")
        ax.set_xticks(epochs, [f"{stop:,}" for stop in epochs])
        ax.minorticks_off()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
