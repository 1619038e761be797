"""The toy classifier of appendix E.3.3, in torch: one convolution, two hidden numbers, one output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.mace._data import Images

__all__ = ["Classifier", "train"]

Array = NDArray[np.float64]

STEEPNESS = 0.2
"""Slope of the leaky unit (α in appendix E)."""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained classifier: ``body`` gives the two numbers before the last layer, ``head`` the logit."""

    body: Any
    head: Any
    device: str = "cpu"

    def answers(self, images: Images) -> tuple[Array, Array]:
        """Return the white-box answers (n, 2) and the black-box answers (n,), probabilities of class 1."""
        import torch

        parts = []
        with torch.no_grad():
            for start in range(0, len(images), 256):
                hidden = self.body(torch.from_numpy(images.pixels[start : start + 256]).to(self.device))
                parts.append(torch.cat([hidden, torch.sigmoid(self.head(hidden))], dim=1).cpu().numpy())
        found = np.concatenate(parts).astype(np.float64)
        return found[:, :2], found[:, 2]


def train(images: Images, epochs: int, seed: int, device: str = "cpu") -> Classifier:
    """Train with Adam and cross-entropy."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    channels, height, width = images.pixels.shape[1:]
    inside = 512 * ((height + 1) // 2) * ((width + 1) // 2)
    body = nn.Sequential(
        nn.Conv2d(channels, 512, 5, stride=2, padding=2),
        nn.LeakyReLU(STEEPNESS),
        nn.Flatten(),
        nn.Linear(inside, 2),
        nn.ReLU(),
    )
    model = Classifier(body.to(device), nn.Linear(2, 1).to(device), device)
    both = nn.Sequential(model.body, model.head)
    optimiser = torch.optim.Adam(both.parameters(), lr=1e-4)
    x, y = torch.from_numpy(images.pixels).to(device), torch.from_numpy(images.labels).float()[:, None].to(device)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(both(x[rows]), y[rows]).backward()
            optimiser.step()
    return model
