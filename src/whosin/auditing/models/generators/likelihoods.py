"""Queries on models that explain a record: how well a variational autoencoder, or a diffusion model, does it.

A variational autoencoder is an object with ``encode`` (records ↦ means and log variances of the latents), ``decode``
(latents ↦ records) and maybe ``decoder_variance``, the variance of a normal law around what it decodes, else 1. A
diffusion model is one with ``denoiser`` (noisy records and the numbers of their steps ↦ the noise in them) and
``alphas_bar``, the share ᾱ_t of the record's variance that is left at each step. All take and give torch tensors. Every
answer is about its record alone: noise is drawn once and is the same for all records.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, check_number
from whosin.training.torch_model import evaluating, need_torch

if TYPE_CHECKING:
    from torch import Tensor


BLOCK = 256
"""Records that are asked about at once."""
DRAWS = 8
"""Latents, and steps of noise, that an answer is averaged over."""


def is_autoencoder(model: Any) -> bool:
    """Whether a model encodes and decodes."""
    return callable(getattr(model, "encode", None)) and callable(getattr(model, "decode", None))


def is_diffusion(model: Any) -> bool:
    """Whether a model takes noise away, by a known schedule."""
    return callable(getattr(model, "denoiser", None)) and hasattr(model, "alphas_bar")


def reconstruction(model: Any, records: Any) -> Array:
    """Return -‖x - decode(mean of encode(x))‖² for every record; one pass."""

    def answer(x: Tensor) -> Tensor:
        return -_squares(_decoded(model, _encoded(model, x)[0], x) - x)

    return _by_block(model, records, answer)


def elbo(model: Any, records: Any) -> Array:
    """Return the evidence lower bound, -E ‖x - decode(z)‖²/2σ² - KL(z, standard normal), up to a constant.

    σ² is the decoder's variance, and the mean is over eight latents z. Nine passes.
    """
    torch = need_torch()
    variance = check_number("decoder_variance", float(getattr(model, "decoder_variance", 1.0)), low=0.0, open_low=True)

    def answer(x: Tensor) -> Tensor:
        mean, log_variance = _encoded(model, x)
        chance = torch.Generator().manual_seed(0)
        total = 0.5 * (1.0 + log_variance - mean**2 - log_variance.exp()).flatten(1).sum(dim=1)
        for _ in range(DRAWS):
            noise = torch.randn((1, *mean.shape[1:]), generator=chance, dtype=mean.dtype).to(mean.device)
            error = _squares(_decoded(model, mean + (0.5 * log_variance).exp() * noise, x) - x)
            total = total - error / (2.0 * variance * DRAWS)
        return total

    return _by_block(model, records, answer)


def denoising(model: Any, records: Any) -> Array:
    """Return minus the mean squared error of the noise that the model finds, over eight steps up to half of them.

    Eight passes.
    """
    torch, left = need_torch(), _schedule(model)
    steps = np.unique(np.linspace(0, len(left) // 2, DRAWS + 1).astype(int)[1:])

    def answer(x: Tensor) -> Tensor:
        chance = torch.Generator().manual_seed(0)
        total = torch.zeros(len(x), dtype=x.dtype, device=x.device)
        for step in steps:
            noise = torch.randn((1, *x.shape[1:]), generator=chance, dtype=x.dtype).to(x.device)
            found = _found(model, _noisy(x, noise, left[step]), int(step))
            total = total - _squares(found - noise) / len(steps)
        return total

    return _by_block(model, records, answer)


def pia(model: Any, records: Any) -> Array:
    """Return -‖ε₀ - ε_θ(√ᾱ_t·x + √(1-ᾱ_t)·ε₀, t)‖₄ with ε₀ = ε_θ(x, 0), at a fifth of all steps; two passes.

    Kong et al. (2024), An efficient membership inference attack for the diffusion model by proximal initialization.
    """
    left = _schedule(model)
    step = len(left) // 5

    def answer(x: Tensor) -> Tensor:
        first = _found(model, x, 0)
        gap = first - _found(model, _noisy(x, first, left[step]), step)
        return -((gap.flatten(1) ** 4).sum(dim=1) ** 0.25)

    return _by_block(model, records, answer)


def secmi(model: Any, records: Any) -> Array:
    """Return minus the squared error of going one step on and back again, after a tenth of all steps without noise.

    Twelve passes. Duan et al. (2023), Are diffusion models vulnerable to membership inference attacks?
    """
    left = _schedule(model)
    steps = np.unique(np.linspace(0, max(2, len(left) // 10), 11).astype(int))

    def answer(x: Tensor) -> Tensor:
        here = x
        for start, end in itertools.pairwise(steps[:-1]):
            here = _moved(model, here, left, int(start), int(end))
        there = _moved(model, here, left, int(steps[-2]), int(steps[-1]))
        return -_squares(_moved(model, there, left, int(steps[-1]), int(steps[-2])) - here)

    return _by_block(model, records, answer)


AUTOENCODER: Mapping[str, tuple[str, Callable[[Any, Any], Array]]] = {
    "elbo": ("the evidence lower bound of the record", elbo),
    "reconstruction": ("minus the squared error of the decoded record", reconstruction),
}
DIFFUSION: Mapping[str, tuple[str, Callable[[Any, Any], Array]]] = {
    "pia": ("minus the error of the noise found after a proximal start (Kong et al.)", pia),
    "secmi": ("minus the error of one step on and back (Duan et al.)", secmi),
    "denoising": ("minus the mean squared error of the noise found", denoising),
}


def _moved(model: Any, x: Tensor, left: Array, start: int, end: int) -> Tensor:
    """Return a noisy record at another step, by the noise that the model finds in it (DDIM)."""
    noise = _found(model, x, start)
    clean = (x - float(np.sqrt(1.0 - left[start])) * noise) / float(np.sqrt(left[start]))
    return _noisy(clean, noise, left[end])


def _noisy(x: Tensor, noise: Tensor, left: float) -> Tensor:
    return float(np.sqrt(left)) * x + float(np.sqrt(1.0 - left)) * noise


def _encoded(model: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    found = model.encode(x)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InputError(f"model must have encode that gives means and log variances, got {type(found).__name__}")
    return found[0], found[1]


def _decoded(model: Any, latents: Tensor, x: Tensor) -> Tensor:
    return _like(x, model.decode(latents), "decode")


def _found(model: Any, x: Tensor, step: int) -> Tensor:
    torch = need_torch()
    return _like(x, model.denoiser(x, torch.full((len(x),), step, dtype=torch.int64, device=x.device)), "a denoiser")


def _like(x: Tensor, found: Tensor, by: str) -> Tensor:
    """Return what was found if it has the shape of the records: others might be stretched to it, across records."""
    if found.shape != x.shape:
        raise InputError(f"model must have {by} that gives {tuple(x.shape)} for such records, got {tuple(found.shape)}")
    return found


def _schedule(model: Any) -> Array:
    given = model.alphas_bar
    left = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given, dtype=np.float64)
    if left.ndim != 1 or len(left) < 5 or not ((left > 0.0) & (left <= 1.0)).all() or (np.diff(left) > 0.0).any():
        raise InputError(
            "model must have alphas_bar, at least 5 numbers in (0, 1] that do not rise, got "
            f"{left.tolist() if left.size < 6 else f'{left.size} others'}"
        )
    return left


def _squares(gap: Tensor) -> Tensor:
    return (gap.flatten(1) ** 2).sum(dim=1)


def _by_block(model: Any, records: Any, answer: Callable[[Tensor], Tensor]) -> Array:
    """Return the answers about all records, in evaluation mode, on the device and in the type of the weights."""
    torch = need_torch()
    parts = [model, *(getattr(model, name, None) for name in ("encode", "decode", "denoiser"))]
    modules = [part for part in parts if isinstance(part, torch.nn.Module)]
    weight = next((weight for module in modules for weight in module.parameters()), torch.zeros(0))
    with _at_rest(modules), torch.no_grad():
        found = [
            answer(torch.as_tensor(records[start : start + BLOCK]).to(device=weight.device, dtype=weight.dtype))
            for start in range(0, len(records), BLOCK)
        ]
    return np.asarray(torch.cat(found).cpu().numpy(), dtype=np.float64)


@contextlib.contextmanager
def _at_rest(modules: list[Any]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for module in modules:
            stack.enter_context(evaluating(module))
        yield
