"""Figure 1: which query, and which estimate, against heuristic attacks that ask the same.

1a: the critic of a WGAN-GP on CIFAR-10, discrete and continuous. 1b and 1c: a JS-GAN on skin lesions, its discriminator
or synthetic images alone (distance to the nearest, or the discriminator of a shadow model that learned those images),
and the attacks of Hayes et al. and Hilprecht et al.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._shared import new_figure, styled
from experiments.mace._measure import attack_row, forest, measure
from experiments.mace._models import Answers, answers_of
from experiments.mace._recipes import CIFAR10_CUTS, SKIN_CUTS, recipe_of, table_of
from experiments.mace._run import Run, Unfinished
from experiments.mace.heuristics import monte_carlo_attack, shadow_scores, threshold_attack

DIFFERS = (
    *CIFAR10_CUTS,
    *SKIN_CUTS,
    "all held-out images are asked about; heuristic attacks get as many of them as there are members, as at p = 0.5",
    "distances to 10,000 synthetic images (1,000 for digits); the paper does not say how many",
    "shadow model: a JS-GAN with the same layers, 50 epochs on those 10,000 images; the paper does not say how",
)


def discriminator(found: Answers, rng: np.random.Generator) -> dict[str, Any]:
    """Return the estimates for the discriminator's output, with the attack of Hayes et al. on it."""
    inside, outside = (side[:, 0] for side in found.scores)
    heuristic = threshold_attack(inside, outside[: len(inside)])
    return {**measure(inside, outside, rng), "heuristic": attack_row(heuristic)}


def synthetic(found: Answers, rng: np.random.Generator) -> dict[str, Any]:
    """Return the estimates for the distance to the nearest synthetic image, with the attack of Hilprecht et al."""
    released = found.synthetic
    inside, outside = found.released
    heuristic = monte_carlo_attack(found.split.train.flat, found.split.holdout.flat[: len(inside)], released)
    return {**measure(inside, outside, rng), "synthetic": len(released), "heuristic": attack_row(heuristic)}


def shadow(run: Run, found: Answers, rng: np.random.Generator) -> dict[str, Any]:
    """Return the estimates for the discriminator of a shadow model that learned the released images."""
    table = table_of(run, "shadow") | ({"layers": "small"} if run.digits else {}) | ({"epochs": 2} if run.quick else {})
    shape = found.split.train.pixels.shape[1:]
    released = found.synthetic.reshape(-1, *shape)
    note = {"model": "JSGAN", **table, "train": len(released), "holdout": len(found.split.holdout)}
    path = run.place("shadow", ".npz", note, recipe_of(run, "skin_jsgan"))
    kept = run.trained("shadow", path, note, lambda: _ask_shadow(run, path.with_suffix(".pt"), table, found, released))
    inside, outside = kept["inside"], kept["outside"]
    return {**measure(inside, outside, rng), "heuristic": attack_row(threshold_attack(inside, outside[: len(inside)]))}


def _ask_shadow(run: Run, checkpoint: Path, table: dict[str, Any], found: Answers, released: Any) -> dict[str, Any]:
    from experiments import gans

    if run.time_is_up:
        raise Unfinished("shadow", 0, table["epochs"])
    model = gans.JSGAN(gans.architecture(table["layers"], released.shape[1:]), device=run.device)
    sides = found.split.train.pixels, found.split.holdout.pixels
    training = {"epochs": table["epochs"], "rng": table["seed"], "checkpoint": checkpoint, "checkpoint_every": 5}
    return dict(zip(("inside", "outside"), shadow_scores(model, released, *sides, **training), strict=True))


def compute(run: Run) -> dict[str, Any]:
    """Return the estimates of all three panels."""
    rng = np.random.default_rng([run.seed, 101])
    wgan, jsgan = answers_of(run, "cifar10_wgan"), answers_of(run, "skin_jsgan")
    rows = {"discriminator": discriminator(jsgan, rng), "synthetic": synthetic(jsgan, rng)}
    return {
        "1a": {"discriminator": discriminator(wgan, rng)},
        "1b_1c": {**rows, "shadow": shadow(run, jsgan, rng)},
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw 1a on the left, 1b and 1c on the right."""
    figure, (left, right) = new_figure(2)
    forest(left, [("discriminator", data["1a"]["discriminator"])], "heuristic attack")
    rows = data["1b_1c"]
    names = {"discriminator": "discriminator", "synthetic": "nearest of\nsynthetic", "shadow": "shadow of\nsynthetic"}
    forest(right, [(label, rows[name]) for name, label in names.items()], "heuristic attack")
    left.set(title="1a  WGAN-GP", xlabel="membership advantage", ylabel="query")
    right.set(title="1b, 1c  JS-GAN", xlabel="membership advantage", ylabel="query")
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    return figure
