"""Figure 2: one number or two. Is the second query riskier, or does it only have more cells?

2a: privGAN on MNIST, the larger of its two discriminators' outputs (equation 5) or both (equation 6). 2b: a GAN on skin
lesions, discriminator, distance to the nearest synthetic image, or both (equation 4). The paper's caption says WGAN-GP,
its text JS-GAN; here are both. The paper takes 100 cells for one number and 10,000 for two. W grows with the number of
cells even if nothing leaks, so each comes with its null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import new_figure, styled
from experiments.mace._measure import forest, measure
from experiments.mace._models import Answers, answers_of
from experiments.mace._recipes import MNIST_CUTS, SKIN_CUTS
from experiments.mace._run import Run, Unfinished

DIFFERS = (
    *MNIST_CUTS,
    *SKIN_CUTS,
    "WGAN-GP on skin lesions: dense layers (2 hidden of 256), 500 epochs of the critic",
    "2-d queries are also binned into 10 x 10 = 100 cells, as many as the 1-d ones have",
)


def hybrid(found: Answers, rng: np.random.Generator) -> dict[str, Any]:
    """Return the estimates for discriminator, distance, and both."""
    scores = tuple(side[: len(near), 0] for side, near in zip(found.scores, found.released, strict=True))
    both = tuple(np.stack(pair, axis=1) for pair in zip(scores, found.released, strict=True))
    return {
        "discriminator": measure(*scores, rng),
        "nearest": measure(*found.released, rng),
        "hybrid": measure(*both, rng, bins=(10, 100)),
    }


def compute(run: Run) -> dict[str, Any]:
    """Return the estimates of all queries."""
    rng = np.random.default_rng([run.seed, 102])
    pair = answers_of(run, "mnist_privgan").scores
    data: dict[str, Any] = {
        "2a": {
            "max": measure(pair[0].max(axis=1), pair[1].max(axis=1), rng),
            "both": measure(pair[0], pair[1], rng, bins=(10, 100)),
        }
    }
    for key, name in (("2b", "skin_jsgan"), ("2b_wgan", "skin_wgan")):
        try:
            data[key] = hybrid(answers_of(run, name), rng)
        except Unfinished as unfinished:
            data.setdefault("unfinished", {})[name] = str(unfinished)
    return data


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw 2a on the left, 2b beside it for the models whose training is finished."""
    titles = {"2b": "2b  JS-GAN, as in the text", "2b_wgan": "2b  WGAN-GP, as in the caption"}
    shown = [key for key in titles if key in data]
    figure, axes = new_figure(1 + len(shown))
    figure.set_size_inches(4.8 * len(axes), 4.4)
    forest(axes[0], [("max(D₁, D₂)", data["2a"]["max"]), ("(D₁, D₂)", data["2a"]["both"])])
    axes[0].set(title="2a  privGAN", xlabel="membership advantage", ylabel="query")
    names = {"discriminator": "discriminator", "nearest": "nearest of\nsynthetic", "hybrid": "both"}
    for ax, key in zip(axes[1:], shown, strict=True):
        forest(ax, [(label, data[key][name]) for name, label in names.items()])
        ax.set(title=titles[key], xlabel="membership advantage", ylabel="query")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure
