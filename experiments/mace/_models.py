"""The trained models that the figures ask, and their answers, which are kept beside the checkpoints.

What the recipes leave out of the paper's is in ``differs_from_the_paper`` of each result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.mace._data import Images, Split, random_split, with_white_box
from experiments.mace._recipes import Recipe, recipe_of
from experiments.mace._run import Run, Unfinished
from whosin.auditing.releases.matching.neighbours import nearest

__all__ = ["RELEASED", "Answers", "answers_of", "fit", "split_of"]

Array = NDArray[np.float64]

RELEASED = 10_000
"""Synthetic images that are kept, and are made at once."""
CHECKPOINT_EVERY = 5
"""Epochs between two checkpoints."""


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

    @property
    def released(self) -> tuple[Array, Array]:
        """Distance to the nearest of the images that are kept."""
        place = self.sizes.index(len(self.synthetic))
        return self.distances[0][:, place], self.distances[1][:, place]


def split_of(run: Run, recipe: Recipe) -> tuple[Split, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Return members and non-members, and which of them have, or in the control get, a white box."""
    rng = np.random.default_rng([run.seed, recipe.seed])
    split = random_split(run.images(recipe.images), recipe.members, recipe.non_members, rng)
    inside, outside = (
        rng.permutation(len(side)) < round(recipe.corrupted * len(side)) for side in (split.train, split.holdout)
    )
    return Split(_marked(split.train, inside), split.holdout), (inside, outside)


def answers_of(run: Run, name: str, epochs: int | None = None) -> Answers:
    """Train a model to ``epochs``, or as far along its recipe as the time allows, or read what it answered before."""
    recipe = recipe_of(run, name)
    wanted = recipe.epochs[-1] if epochs is None else epochs
    kept: dict[str, NDArray[Any]] = {}
    split, marks = split_of(run, recipe)
    checkpoint = run.place(name, ".pt", replace(recipe, epochs=(), sizes=()))
    run.notes.pop(name, None)
    for stop in recipe.epochs[: recipe.epochs.index(wanted) + 1]:
        path = run.place(f"{name}-{stop}", ".npz", replace(recipe, epochs=(stop,)))
        settings = {
            "model": recipe.model,
            "layers": recipe.layers,
            "train": len(split.train),
            "holdout": len(split.holdout),
            "epochs": stop,
        }
        try:
            kept = run.trained(name, path, settings, lambda: _ask(run, name, checkpoint, stop, split, marks[1]))  # noqa: B023
        except Unfinished:
            if epochs is not None or not kept:
                raise
            break
    return Answers(
        (kept["inside"], kept["outside"]),
        (kept["near_inside"], kept["near_outside"]),
        recipe.sizes,
        kept["synthetic"],
        split,
        marks,
    )


def fit(run: Run, name: str, model: Any, checkpoint: Path, epochs: int, X: Any, seed: int, y: Any = None) -> Any:
    """Train on until ``epochs``, or until the time is up, and then raise :class:`Unfinished` at a checkpoint."""
    if run.time_is_up:
        from experiments.gans import checkpoints

        earlier = checkpoints.read(checkpoint)
        raise Unfinished(name, 0 if earlier is None else earlier["epoch"], epochs)

    def stop(share: float) -> None:
        done = round(share * epochs)
        if run.time_is_up and done < epochs and done % CHECKPOINT_EVERY == 0:
            raise Unfinished(name, done, epochs)

    return model.fit(
        X, y=y, epochs=epochs, rng=seed, checkpoint=checkpoint, checkpoint_every=CHECKPOINT_EVERY, progress=stop
    )


def _marked(images: Images, marks: NDArray[np.bool_]) -> Images:
    if not marks.any():
        return images
    pixels = images.pixels.copy()
    pixels[marks] = with_white_box(pixels[marks])
    return Images(pixels, images.labels)


def _ask(
    run: Run, name: str, checkpoint: Path, epochs: int, split: Split, marks: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Train and return the answers; with corrupted images also those of a holdout that is corrupted alike."""
    from experiments import gans

    recipe = recipe_of(run, name)
    layers = gans.architecture(recipe.layers, split.train.pixels.shape[1:])
    model = fit(
        run,
        name,
        getattr(gans, recipe.model)(layers, device=run.device),
        checkpoint,
        epochs,
        split.train.pixels,
        recipe.seed,
    )
    outside = split.holdout if recipe.corrupted == 0.0 else _both(split.holdout, marks)
    scores = [np.stack([ask(side.pixels) for ask in model.discriminators], axis=1) for side in (split.train, outside)]
    synthetic, near = _release(model.sample, split, recipe)
    return {
        "inside": scores[0],
        "outside": scores[1],
        "near_inside": near[: len(split.train)],
        "near_outside": near[len(split.train) :],
        "synthetic": synthetic,
    }


def _release(sample: Callable[..., Any], split: Split, recipe: Recipe) -> tuple[NDArray[np.float32], Array]:
    """Return the first synthetic images, and every record's distance to the nearest of the first m for all sizes m.

    Images are made in blocks, of which only the first is kept: 100,000 of them take gigabytes.
    """
    rng = np.random.default_rng(recipe.seed)
    targets = np.concatenate([split.train.flat, split.holdout.flat])
    first = sample(min(RELEASED, max(recipe.sizes, default=1)), rng=rng).reshape(-1, targets.shape[1])
    small = tuple(size for size in recipe.sizes if size <= len(first))
    if not small:
        return first, np.zeros((len(targets), 0))
    columns = list(nearest(targets, first, prefixes=small)[0][:, :, 0].T)
    made = len(first)
    for size in recipe.sizes[len(small) :]:
        best = columns[-1]
        while made < size:
            block = sample(min(RELEASED, size - made), rng=rng).reshape(-1, targets.shape[1])
            best = np.minimum(best, nearest(targets, block)[0][:, 0])
            made += len(block)
        columns.append(best)
    return first, np.stack(columns, axis=1)


def _both(images: Images, marks: NDArray[np.bool_]) -> Images:
    """Return the images as they are, and after them those that are marked, with a white box."""
    boxed = with_white_box(images.pixels[marks])
    return Images(np.concatenate([images.pixels, boxed]), np.concatenate([images.labels, images.labels[marks]]))
