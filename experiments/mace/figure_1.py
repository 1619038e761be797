"""Figure 1: which query, and which estimate, against heuristic attacks that ask the same.

1a: the critic of a WGAN-GP on CIFAR-10, discrete and continuous. 1b and 1c: a JS-GAN on skin lesions, its discriminator
or synthetic images alone (distance to the nearest), and the attacks of Hayes et al. and Hilprecht et al.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import new_figure, styled
from experiments.mace._measure import attack_row, forest, measure
from experiments.mace._models import Answers, answers_of
from experiments.mace._recipes import CIFAR10_CUTS, SKIN_CUTS
from experiments.mace._run import Run, make
from experiments.mace.heuristics import monte_carlo_attack, threshold_attack

DIFFERS = (
    *CIFAR10_CUTS,
    *SKIN_CUTS,
    "all held-out images are asked about; heuristic attacks get as many of them as there are members, as at p = 0.5",
    "distances to 10,000 synthetic images (1,000 for digits); the paper does not say how many",
)


def discriminator(found: Answers, rng: np.random.Generator) -> dict[str, Any]:
    """Return the estimates for the discriminator's output, with the attack of Hayes et al. on it."""
    inside, outside = (side[:, 0] for side in found.scores)
    heuristic = threshold_attack(inside, outside[: len(inside)])
    return {**measure(inside, outside, rng), "heuristic": attack_row(heuristic)}


def synthetic(found: Answers, rng: np.random.Generator) -> dict[str, Any]:
    """Return the estimates for the distance to the nearest synthetic image, with the attack of Hilprecht et al."""
    released = found.synthetic
    place = found.sizes.index(len(released))
    inside, outside = (side[:, place] for side in found.distances)
    heuristic = monte_carlo_attack(found.split.train.flat, found.split.holdout.flat[: len(inside)], released)
    return {**measure(inside, outside, rng), "synthetic": len(released), "heuristic": attack_row(heuristic)}


def compute(run: Run) -> dict[str, Any]:
    """Return the estimates of all three panels."""
    rng = np.random.default_rng([run.seed, 101])
    wgan, jsgan = answers_of(run, "cifar10_wgan"), answers_of(run, "skin_jsgan")
    return {
        "1a": {"discriminator": discriminator(wgan, rng)},
        "1b_1c": {"discriminator": discriminator(jsgan, rng), "synthetic": synthetic(jsgan, rng)},
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw 1a on the left, 1b and 1c on the right."""
    figure, (left, right) = new_figure(2)
    forest(left, [("discriminator", data["1a"]["discriminator"])], "heuristic attack")
    rows = data["1b_1c"]
    forest(
        right,
        [("discriminator", rows["discriminator"]), ("nearest of\nsynthetic", rows["synthetic"])],
        "heuristic attack",
    )
    left.set(title="1a  WGAN-GP", xlabel="membership advantage", ylabel="query")
    right.set(title="1b, 1c  JS-GAN", xlabel="membership advantage", ylabel="query")
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    return figure


def main(run: Run) -> None:
    """Write results/figure_1.json and .png."""
    make("figure_1", run, compute, draw, DIFFERS)
