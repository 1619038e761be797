"""The paper's advice (section 1): leave out the records at the highest risk and train again. Does the risk go?

The discriminator of a JS-GAN on skin lesions speaks for membership by high scores. The tenth of the members with the
highest is left out, and the model is trained again on the others. Leaving records out by their scores changes which
kind of image the members are, and that can be told without any training; so the non-members with such scores are left
out as well. A control leaves out a random tenth and is asked about the same kind of records: what both trainings change
is the chance of the training. That chance is large, so both are trained three times, and all are shown.
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
from experiments.mace._run import Run

SHARE = 0.1
SEEDS = (21, 22, 23)
DIFFERS = (*SKIN_CUTS, "the paper proposes this and shows no experiment; a tenth is our choice")


def riskiest(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which members have the highest tenth of the members' scores, and which non-members are above it too."""
    limit = np.sort(inside)[-round(SHARE * len(inside))]
    return inside >= limit, outside >= limit


def again(
    run: Run, name: str, seed: int, left_out: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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

    kept = run.trained(f"without_{name}_{seed}", path, note, ask)
    return kept["inside"], kept["outside"]


def compute(run: Run) -> dict[str, Any]:
    """Return the leak before, among those that stay, and after trainings without the riskiest, or any tenth."""
    rng = np.random.default_rng([run.seed, 111])
    inside, outside = (side[:, 0] for side in answers_of(run, "skin_jsgan").scores)
    members, others = riskiest(inside, outside)
    tenths = np.random.default_rng([run.seed, 112])
    without_riskiest, control = [], []
    for seed in SEEDS:
        stayed, rest = again(run, "the_riskiest", seed, members)
        without_riskiest.append(measure(stayed, rest[~others], rng))
        chance = tenths.permutation(members)
        stayed, rest = again(run, "a_random_tenth", seed, chance)
        control.append(measure(stayed[~members[~chance]], rest[~others], rng))
    return {
        "left_out": int(members.sum()),
        "non_members_as_risky": int(others.sum()),
        "first model": measure(inside, outside, rng),
        "first model, those that stay": measure(inside[~members], outside[~others], rng),
        "trained again": without_riskiest,
        "control": control,
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the first model, and every training after it."""
    figure, (ax,) = new_figure()
    figure.set_size_inches(6.6, 5.6)
    rows = [("first model,\nall members", data["first model"])]
    rows += [("first model,\nthose that stay", data["first model, those that stay"])]
    for words, name in (("without\nthe riskiest", "trained again"), ("without\na random tenth", "control")):
        rows += [(f"{words}, {number}", found) for number, found in enumerate(data[name], 1)]
    forest(ax, rows)
    ax.set(title="The riskiest tenth of the members left out", xlabel="membership advantage", ylabel="discriminator of")
    figure.legend(loc="outside upper center", ncols=2)
    return figure
