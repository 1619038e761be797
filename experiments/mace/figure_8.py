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
from experiments.mace._data import Images, random_split
from experiments.mace._measure import forest, measure
from experiments.mace._models import SKIN_CUTS
from experiments.mace._run import Run, make

DIFFERS = (
    SKIN_CUTS[0],
    "classes: melanoma, basal cell carcinoma and actinic keratosis against the rest (the paper says 'binary' only)",
    "a third query, the output for the true class, is not in the paper",
    "Adam with rate 1e-4 and batches of 64; optimiser and epochs are not in the paper",
)
EPOCHS = 150


def compute(run: Run) -> dict[str, Any]:
    """Train the classifier on a tenth of the images and measure both queries."""
    rng = np.random.default_rng([run.seed, 8])
    images = run.images("skin")
    if run.digits:
        images = Images(images.pixels, (images.labels >= 5).astype(np.int64))
    split = random_split(images, 200 if run.digits else 1001, len(images), rng)
    epochs = (10 if run.quick else 100) if run.digits else (1 if run.quick else EPOCHS)
    note = {"train": len(split.train), "holdout": len(split.holdout), "epochs": epochs}
    path = run.place("classifier", ".pt", note)
    model = run.trained("classifier", path, note, lambda: train(split.train, epochs, run.seed, path))
    inside, outside = model.answers(split.train), model.answers(split.holdout)
    asked = (inside[1], split.train), (outside[1], split.holdout)
    return {
        "accuracy": {"train": model.accuracy(split.train), "holdout": model.accuracy(split.holdout)},
        "black_box": measure(inside[1], outside[1], rng),
        "white_box": measure(inside[0], outside[0], rng, bins=(10, 100)),
        "true_class": measure(*(_of_true_class(one, side) for one, side in asked), rng),
    }


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


def main(run: Run) -> None:
    """Write results/figure_8.json and .png."""
    make("figure_8", run, compute, draw, DIFFERS)
