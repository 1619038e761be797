"""The trained models that the figures ask, and their answers, which are kept beside the checkpoints.

One recipe a model: images, layers, how many members, how many epochs. What the recipes leave out of the paper's is in
``differs_from_the_paper`` of each result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.mace._data import Images, Split, random_split, with_white_box
from experiments.mace._run import Run, keep
from whosin.auditing.releases.matching.neighbours import nearest

__all__ = ["CIFAR10_CUTS", "MNIST_CUTS", "RECIPES", "SKIN_CUTS", "Answers", "Recipe", "answers_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How one model is trained and what is asked of it."""

    model: str
    """Class of :mod:`whosin.zoo`."""
    images: str
    layers: str
    members: int
    non_members: int
    epochs: int
    seed: int
    corrupted: float = 0.0
    """Share of the members, and of as many of the others in a control, that get a white box."""
    sizes: tuple[int, ...] = ()
    """Numbers of synthetic images to which distances are measured."""


SKIN_CUTS = (
    "skin lesions: images of 28x28, not 64x64; one image for each of the 7,470 lesions, not all 10,015, so that the "
    "records are independent; 1,001 members as in the paper",
    "JS-GAN on skin lesions: dense layers (2 hidden of 256), not the convolutions of appendix E, which take forty "
    "times as long for an epoch on one core; 500 epochs (300 with white boxes), not 2,000 (appendix H)",
)
CIFAR10_CUTS = (
    "CIFAR-10: images re-encoded as JPEG; 500 members, not 6,000; dense layers (2 hidden of 256), not the convolutions "
    "of appendix E; 400 epochs of the critic (paper: not stated)",
)
MNIST_CUTS = (
    "MNIST: privGAN with the layers of appendix E, 1,000 members and 200 epochs, WGAN-GP with dense layers (2 hidden "
    "of 256), 500 members and 600 epochs of the critic; the paper has 7,000 members and does not state the epochs",
)
SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)

RECIPES = {
    "skin_jsgan": Recipe("JSGAN", "skin", "vector", 1001, 6469, 500, 1, sizes=SIZES),
    "skin_corrupted": Recipe("JSGAN", "skin", "vector", 1001, 6469, 300, 2, corrupted=0.1),
    "cifar10_wgan": Recipe("WGANGP", "cifar10", "vector", 500, 9500, 400, 3),
    "mnist_wgan": Recipe("WGANGP", "mnist", "vector", 500, 9500, 600, 4),
    "mnist_privgan": Recipe("PrivGAN", "mnist", "mnist", 1000, 9000, 200, 5),
}


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model answers about members and non-members."""

    scores: tuple[Array, Array]
    """Outputs of the discriminators, (n, discriminators)."""
    distances: tuple[Array, Array]
    """Distance to the nearest of the first m synthetic images, (n, sizes)."""
    sizes: tuple[int, ...]
    synthetic: NDArray[np.float32]
    split: Split
    corrupted: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    """Which images have a white box: members as trained, non-members as in the control."""


def recipe_of(run: Run, name: str) -> Recipe:
    """Return a recipe, cut down for digits and for a quick run."""
    recipe = RECIPES[name]
    if run.digits:
        recipe = replace(recipe, images="digits", layers="small", members=400, non_members=1397, epochs=200)
        recipe = replace(recipe, sizes=tuple(size for size in recipe.sizes if size <= 1_000))
    return replace(recipe, epochs=10 if run.digits else 1) if run.quick else recipe


def answers_of(run: Run, name: str) -> Answers:
    """Train a model, or read what it answered before."""
    recipe = recipe_of(run, name)
    rng = np.random.default_rng([run.seed, recipe.seed])
    split = random_split(run.images(recipe.images), recipe.members, recipe.non_members, rng)
    marks = tuple(
        rng.permutation(len(side)) < round(recipe.corrupted * len(side)) for side in (split.train, split.holdout)
    )
    split = Split(_marked(split.train, marks[0]), split.holdout)
    path = run.place(name, ".npz", recipe)
    settings = {
        "model": recipe.model,
        "layers": recipe.layers,
        "train": len(split.train),
        "holdout": len(split.holdout),
        "epochs": recipe.epochs,
    }
    kept = run.trained(name, path, settings, lambda: _kept(path, recipe, split, marks[1]))
    return Answers(
        (kept["inside"], kept["outside"]),
        (kept["near_inside"], kept["near_outside"]),
        recipe.sizes,
        kept["synthetic"],
        split,
        (marks[0], marks[1]),
    )


def _marked(images: Images, marks: NDArray[np.bool_]) -> Images:
    if not marks.any():
        return images
    pixels = images.pixels.copy()
    pixels[marks] = with_white_box(pixels[marks])
    return Images(pixels, images.labels)


def _kept(path: Path, recipe: Recipe, split: Split, marks: NDArray[np.bool_]) -> dict[str, Any]:
    if not path.is_file():
        found = _ask(path.with_suffix(".pt"), recipe, split, marks)
        keep(path, lambda file: np.savez(file, **found))
    with np.load(path) as file:
        return dict(file)


def _ask(checkpoint: Path, recipe: Recipe, split: Split, marks: NDArray[np.bool_]) -> dict[str, Any]:
    """Train and return the answers; with corrupted images also those of a holdout that is corrupted alike."""
    import whosin.zoo as zoo

    shape = split.train.pixels.shape[1:]
    model = getattr(zoo, recipe.model)(zoo.architecture(recipe.layers, shape))
    model.fit(
        split.train.pixels, epochs=recipe.epochs, rng=recipe.seed, checkpoint=checkpoint, progress=_tell(checkpoint)
    )
    outside = split.holdout if recipe.corrupted == 0.0 else _both(split.holdout, marks)
    scores = [np.stack([ask(side.pixels) for ask in model.discriminators], axis=1) for side in (split.train, outside)]
    largest = max(recipe.sizes, default=1)
    synthetic = model.sample(largest, rng=recipe.seed).reshape(largest, -1)
    near = [np.zeros((len(side), 0)) for side in (split.train, split.holdout)]
    if recipe.sizes:
        near = [
            nearest(side.flat, synthetic, prefixes=recipe.sizes)[0][:, :, 0] for side in (split.train, split.holdout)
        ]
    return {
        "inside": scores[0],
        "outside": scores[1],
        "near_inside": near[0],
        "near_outside": near[1],
        "synthetic": synthetic[:10_000],
    }


def _both(images: Images, marks: NDArray[np.bool_]) -> Images:
    """Return the images as they are, and after them those that are marked, with a white box."""
    boxed = with_white_box(images.pixels[marks])
    return Images(np.concatenate([images.pixels, boxed]), np.concatenate([images.labels, images.labels[marks]]))


def _tell(checkpoint: Path) -> Any:
    """Return a progress callable that writes the share done beside the checkpoint."""

    def tell(share: float) -> None:
        checkpoint.with_suffix(".progress").write_text(f"{share:.4f}", encoding="utf-8")

    return tell
