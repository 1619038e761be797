"""Figure 8: a classifier of skin lesions, asked for its output (black box) or for its last hidden layer (white box).

The output is a function of the two hidden numbers, so the best attacker on the hidden layer is at least as good. The
paper finds that with 100 cells for the one and 10,000 for the other; the bias of the second alone would show it. The
third query is ours: an attacker who knows the label asks for the output of that class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments._shared import new_figure, styled
from experiments.mace._classifier import train
from experiments.mace._data import Images, Split, random_split
from experiments.mace._measure import forest, measure
from experiments.mace._recipes import SKIN_CUTS, table_of
from experiments.mace._run import Run, Unfinished

DIFFERS = (
    SKIN_CUTS[0],
    "classes: melanoma, basal cell carcinoma and actinic keratosis against the rest (the paper says 'binary' only)",
    "a third query, the output for the true class, is not in the paper",
    "Adam with rate 1e-4 and batches of 64; optimiser and epochs are not in the paper",
)


def compute(run: Run) -> dict[str, Any]:
    """Train the classifier on a tenth of the images and measure both queries."""
    rng = np.random.default_rng([run.seed, 8])
    images = run.images(table_of(run, "classifier")["images"])
    if run.digits:
        images = Images(images.pixels, (images.labels >= 5).astype(np.int64))
    table = table_of(run, "classifier")
    split = random_split(images, 200 if run.digits else table["members"], len(images), rng)
    epochs = (10 if run.quick else 100) if run.digits else (1 if run.quick else table["epochs"])
    note = {"train": len(split.train), "holdout": len(split.holdout), "epochs": epochs}
    path = run.place("classifier", ".npz", note)
    kept = run.trained("classifier", path, note, lambda: _ask(run, split, epochs))
    sides = {"inside": split.train, "outside": split.holdout}
    outputs = {side: kept[f"{side}_output"] for side in sides}
    right = {side: float(np.mean((outputs[side] > 0.5) == (images.labels == 1))) for side, images in sides.items()}
    return {
        "accuracy": {"train": right["inside"], "holdout": right["outside"]},
        "black_box": measure(*outputs.values(), rng),
        "white_box": measure(kept["inside_hidden"], kept["outside_hidden"], rng, bins=(10, 100)),
        "true_class": measure(*(_of_true_class(outputs[side], images) for side, images in sides.items()), rng),
    }


def _ask(run: Run, split: Split, epochs: int) -> dict[str, NDArray[np.float64]]:
    if run.time_is_up:
        raise Unfinished("classifier", 0, epochs)
    model = train(split.train, epochs, run.seed, run.device)
    found = {}
    for side, images in (("inside", split.train), ("outside", split.holdout)):
        found[f"{side}_hidden"], found[f"{side}_output"] = model.answers(images)
    return found


def _of_true_class(output: NDArray[np.float64], images: Images) -> NDArray[np.float64]:
    """Return the probability that the classifier gives to the label of each image."""
    return np.where(images.labels == 1, output, 1.0 - output)


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw both queries."""
    figure, (ax,) = new_figure()
    figure.set_size_inches(6.2, 4.8)
    names = {"black_box": "output\n(black box)", "white_box": "hidden layer,\n2-d (white box)"}
    names["true_class"] = "output for the\ntrue class"
    forest(ax, [(label, data[name]) for name, label in names.items()])
    right = data["accuracy"]
    ax.set(title=f"Classifier, right on {right['train']:.0%} of members, {right['holdout']:.0%} of others")
    ax.set(xlabel="membership advantage", ylabel="query")
    figure.legend(loc="outside upper center", ncols=2)
    return figure
