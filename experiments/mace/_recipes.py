"""How each model is trained, from ``recipes.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from experiments.mace._run import Run

__all__ = ["CIFAR10_CUTS", "MNIST_CUTS", "SKIN_CUTS", "Recipe", "gans_of", "recipe_of", "table_of"]

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


@dataclass(frozen=True)
class Recipe:
    """How one model is trained and what is asked of it; the fields are explained in ``recipes.toml``."""

    model: str
    """Class of :mod:`experiments.gans`."""
    images: str
    layers: str
    members: int
    non_members: int
    epochs: tuple[int, ...]
    """Epochs after which the model is asked, in rising order; the figures take the last that is trained."""
    seed: int
    corrupted: float = 0.0
    sizes: tuple[int, ...] = ()


def table_of(run: Run, name: str) -> dict[str, Any]:
    """Return one table of the file as it stands."""
    found: dict[str, Any] = _file()[run.scale][name]
    return found


def gans_of(run: Run) -> list[str]:
    """Return the GANs that are trained on images, in the order in which that happens."""
    return [name for name, table in _file()[run.scale].items() if "model" in table]


def recipe_of(run: Run, name: str) -> Recipe:
    """Return a recipe, cut down for digits and for a quick run."""
    table = table_of(run, name) | (_file()["digits"] if run.digits else {})
    recipe = Recipe(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
    if run.digits:
        recipe = replace(recipe, sizes=tuple(size for size in recipe.sizes if size <= 1_000))
    return replace(recipe, epochs=(10 if run.digits else 1,)) if run.quick else recipe


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("recipes.toml").read_text(encoding="utf-8"))
