"""The DP-cGAN of appendix G on zeros and sixes, with noise for a given ε."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import whosin as wi
from experiments.mace._data import Images, Split, random_split, zeros_and_sixes
from experiments.mace._models import fit
from experiments.mace._recipes import table_of
from experiments.mace._run import Run
from whosin.numerics.roots import smallest_holding

__all__ = ["DP_CUTS", "PRIVATE_DELTA", "Setting", "noise_for", "private_scores", "setting_of"]

PRIVATE_DELTA = 1e-5
CUT = 20.0
"""Norm to which gradients are cut; at 1 the generated images, whose gradient is not cut, drown the real ones."""
LEARNING_RATE = 1e-3
DP_CUTS = (
    "DP-cGAN: dense layers (2 hidden of 256); 760 members, a tenth of the 7,600 images; Poisson sampling at rate 0.1, "
    "200 epochs (2,000 steps), rate of Adam 1e-3, gradients cut to norm 20; the paper states none of these",
    "noise from the exact accounting of wi.DPSGD, the smallest with that ε at δ = 1e-5 (adding or removing one record)",
)


@dataclass(frozen=True)
class Setting:
    """How the DP-cGAN is trained."""

    layers: str
    zeros: int
    sixes: int
    rate: float
    epochs: int
    seed: int = 6

    @property
    def steps(self) -> int:
        """Noisy steps in all."""
        return self.epochs * round(1.0 / self.rate)


def setting_of(run: Run) -> Setting:
    """Return the setting, cut down for digits and for a quick run."""
    if run.digits:
        return Setting("small", 178, 18, 0.2, 4 if run.quick else 20)
    table = table_of(run, "dpcgan")
    return Setting(**(table | {"epochs": 1} if run.quick else table))


@cache
def noise_for(epsilon: float, rate: float, steps: int) -> float:
    """Return the smallest noise multiplier, to a thousandth, that is (ε, 1e-5)-DP; 0 for an infinite ε."""
    if np.isinf(epsilon):
        return 0.0
    return smallest_holding(
        lambda noise: wi.DPSGD(noise, rate, steps).implies(wi.ApproxDP, delta=PRIVATE_DELTA).epsilon <= epsilon,
        0.2,
        200.0,
        tolerance=1e-3,
    )


def private_scores(run: Run, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the discriminator's output for the image and its label, of members and of non-members."""
    setting = setting_of(run)
    rng = np.random.default_rng([run.seed, setting.seed])
    images = zeros_and_sixes(run.images("mnist"), setting.zeros, setting.sixes, rng)
    split = random_split(images, len(images) // (2 if run.digits else 10), len(images), rng)
    noise = noise_for(epsilon, setting.rate, setting.steps)
    name = f"dpcgan_{epsilon:g}"
    path = run.place(name, ".npz", setting, noise, CUT, LEARNING_RATE, len(split.train), len(split.holdout))
    settings = {
        "model": "DPCGAN",
        "layers": setting.layers,
        "train": len(split.train),
        "holdout": len(split.holdout),
        "epochs": setting.epochs,
        "steps": setting.steps,
        "noise_multiplier": noise,
        "sample_rate": setting.rate,
    }
    kept = run.trained(name, path, settings, lambda: _ask(run, name, path.with_suffix(".pt"), setting, noise, split))
    return kept["inside"], kept["outside"]


def _ask(
    run: Run, name: str, checkpoint: Path, setting: Setting, noise: float, split: Split
) -> dict[str, NDArray[np.float64]]:
    from experiments import gans

    layers = gans.architecture(setting.layers, split.train.pixels.shape[1:])
    model = gans.DPCGAN(layers, noise, CUT, setting.rate, 2, learning_rate=LEARNING_RATE, device=run.device)
    fit(run, name, model, checkpoint, setting.epochs, split.train.pixels, setting.seed, y=split.train.labels)
    if model.steps != setting.steps:
        raise RuntimeError(f"the training took {model.steps} steps, the accounting is for {setting.steps}")
    (ask,) = model.discriminators
    return {side: _scores(ask, images) for side, images in (("inside", split.train), ("outside", split.holdout))}


def _scores(ask: Any, images: Images) -> NDArray[np.float64]:
    return np.asarray(ask(images.pixels, images.labels))
