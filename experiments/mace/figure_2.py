"""Figure 2: one number or two. Is the second query riskier, or does it only have more cells?

2a: privGAN on MNIST, the larger of its two discriminators' outputs (equation 5) or both (equation 6). 2b: a JS-GAN on
skin lesions, discriminator, distance to the nearest synthetic image, or both (equation 4). The paper takes 100 cells
for one number and 10,000 for two. W grows with the number of cells even if nothing leaks, so each comes with its null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import new_figure, styled
from experiments.mace._measure import forest, measure
from experiments.mace._models import answers_of
from experiments.mace._recipes import MNIST_CUTS, SKIN_CUTS
from experiments.mace._run import Run, make

DIFFERS = (
    *MNIST_CUTS,
    *SKIN_CUTS,
    "2b: the caption says WGAN-GP, the text JS-GAN; this is the JS-GAN",
    "2-d queries are also binned into 10 x 10 = 100 cells, as many as the 1-d ones have",
)


def compute(run: Run) -> dict[str, Any]:
    """Return the estimates of all five queries."""
    rng = np.random.default_rng([run.seed, 102])
    pair, jsgan = answers_of(run, "mnist_privgan").scores, answers_of(run, "skin_jsgan")
    scores = tuple(side[:, 0] for side in jsgan.scores)
    place = jsgan.sizes.index(len(jsgan.synthetic))
    near = tuple(side[:, place] for side in jsgan.distances)
    hybrid = tuple(np.stack(both, axis=1) for both in zip(scores, near, strict=True))
    return {
        "2a": {
            "max": measure(pair[0].max(axis=1), pair[1].max(axis=1), rng),
            "both": measure(pair[0], pair[1], rng, bins=(10, 100)),
        },
        "2b": {
            "discriminator": measure(*scores, rng),
            "nearest": measure(*near, rng),
            "hybrid": measure(*hybrid, rng, bins=(10, 100)),
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw 2a on the left, 2b on the right."""
    figure, (left, right) = new_figure(2)
    forest(left, [("max(D₁, D₂)", data["2a"]["max"]), ("(D₁, D₂)", data["2a"]["both"])])
    names = {"discriminator": "discriminator", "nearest": "nearest of\nsynthetic", "hybrid": "both"}
    forest(right, [(label, data["2b"][name]) for name, label in names.items()])
    left.set(title="2a  privGAN", xlabel="membership advantage", ylabel="query")
    right.set(title="2b  JS-GAN", xlabel="membership advantage", ylabel="query")
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def main(run: Run) -> None:
    """Write results/figure_2.json and .png."""
    make("figure_2", run, compute, draw, DIFFERS)
