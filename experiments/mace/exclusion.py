"""The paper's advice (section 1): leave out the records at the highest risk and train again. Does the risk go?

The discriminator of a JS-GAN on skin lesions speaks for membership by high scores. The tenth of the members with the
highest is left out, and the model is trained again on the others, beside a training without a random tenth.
Leaving records out by their scores changes which kind of image the members are, and that can be told without any
training; so the non-members with such scores are left out as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments._shared import new_figure, styled
from experiments.mace._measure import forest, measure
from experiments.mace._models import answers_of, fit
from experiments.mace._recipes import SKIN_CUTS, recipe_of
from experiments.mace._run import Run, make

SHARE = 0.1
SEEDS = (21,)
DIFFERS = (*SKIN_CUTS, "the paper proposes this and shows no experiment; a tenth is our choice")


def riskiest(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which members have the highest tenth of the members' scores, and which non-members are above it too."""
    limit = np.sort(inside)[-round(SHARE * len(inside))]
    return inside >= limit, outside >= limit


def again(run: Run, name: str, left_out: NDArray[np.bool_], seed: int) -> tuple[NDArray[np.float64], ...]:
    """Train without some members; return the scores of those that stayed, and of all non-members."""
    from experiments import gans

    recipe = replace(recipe_of(run, "skin_jsgan"), sizes=())
    split = answers_of(run, "skin_jsgan").split
    stayed = split.train.pixels[~left_out]
    note = {"model": recipe.model, "layers": recipe.layers, "train": len(stayed), "holdout": len(split.holdout)}
    note |= {"epochs": recipe.epochs[-1], "seed": seed}
    path = run.place(f"{name}-{seed}", ".npz", recipe, seed, np.flatnonzero(left_out).tolist())

    def ask() -> dict[str, NDArray[np.float64]]:
        model = gans.JSGAN(gans.architecture(recipe.layers, stayed.shape[1:]), device=run.device)
        fit(run, name, model, path.with_suffix(".pt"), recipe.epochs[-1], stayed, seed)
        (score,) = model.discriminators
        return {"inside": score(stayed), "outside": score(split.holdout.pixels)}

    kept = run.trained(f"{name}_{seed}", path, note, ask)
    return kept["inside"], kept["outside"]


def compute(run: Run) -> dict[str, Any]:
    """Return the leak before, among those that stay, and after each of the trainings."""
    rng = np.random.default_rng([run.seed, 111])
    inside, outside = (side[:, 0] for side in answers_of(run, "skin_jsgan").scores)
    members, others = riskiest(inside, outside)
    random = rng.permutation(members)
    return {
        "left_out": int(members.sum()),
        "non_members_as_risky": int(others.sum()),
        "first model": measure(inside, outside, rng),
        "first model, those that stay": measure(inside[~members], outside[~others], rng),
        "without the riskiest": [
            measure(kept, rest[~others], rng)
            for kept, rest in (again(run, "riskiest", members, seed) for seed in SEEDS)
        ],
        "without a random tenth": [measure(*again(run, "random", random, seed), rng) for seed in SEEDS],
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the four situations."""
    figure, (ax,) = new_figure()
    figure.set_size_inches(7.0, 5.4)
    rows = [("first model,\nall members", data["first model"])]
    rows += [("first model,\nthose that stay", data["first model, those that stay"])]
    rows += [("trained again\nwithout the riskiest", found) for found in data["without the riskiest"]]
    rows += [("trained again without\na random tenth", found) for found in data["without a random tenth"]]
    forest(ax, rows)
    ax.set(title="A tenth of the members left out", xlabel="membership advantage", ylabel="discriminator of")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def main(run: Run) -> None:
    """Write results/exclusion.json and .png."""
    make("exclusion", run, compute, draw, DIFFERS)
