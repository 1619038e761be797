"""How near a generator can come to a record: the smallest distance over all latents (Chen et al. 2020, GAN-Leaks)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError, check_whole
from whosin.training.torch_model import evaluating, need_torch

if TYPE_CHECKING:
    from torch import Tensor


MEMORY = 10
"""Steps that the approximation of the curvature remembers."""
BLOCK = 256
"""Records that are searched for at once."""
POOL = 1024
"""Random latents among which a search looks for its starts."""
DESCENT = 1e-4
"""Share of the promised descent that a step must keep (Armijo)."""


def latent_distances(
    generators: Any,
    records: Any,
    *,
    latent_size: int,
    restarts: int = 2,
    iterations: int = 100,
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> Array:
    """Return min over z of ‖G(z) - x‖ for every record x, as found by a search; over several generators the smallest.

    Parameters
    ----------
    generators : sequence of torch modules, or a single one
        Each maps (n, latent_size) to records.
    records : array of shape (n, ...)
        Records as the generators make them.
    latent_size : int
        Numbers that a generator starts from.
    restarts : int, default 2
        Searches for each record, from those of 1,024 standard normal latents whose outputs are nearest to it.
    iterations : int, default 100
        Evaluations of the generator in each search.
    rng : optional
        Anything that ``numpy.random.default_rng`` takes.
    progress : callable, optional
        Called with the share of the work done.

    Notes
    -----
    L-BFGS (Liu, Nocedal 1989) with backtracking, for all records of a block side by side, each with a step and a memory
    of its own. What it finds is an upper limit of the smallest distance, which for an affine generator is the distance
    to its range. Costs ``restarts · iterations`` passes forward and back through each generator for each record.

    References
    ----------
    Chen, Yu, Zhang, Fritz (2020), GAN-Leaks: a taxonomy of membership inference attacks against generative models.

    Examples
    --------
    A generator that draws points of a line; the distance to the line is what is left:

    >>> import torch
    >>> from whosin.auditing.models.generators.latents import latent_distances
    >>> line = torch.nn.Linear(1, 2, bias=False)
    >>> with torch.no_grad():
    ...     _ = line.weight.copy_(torch.tensor([[1.0], [0.0]]))
    >>> latent_distances(line, [[0.5, 0.0], [2.0, 3.0]], latent_size=1, rng=0).round(3).tolist()
    [0.0, 3.0]
    """
    torch = need_torch()
    modules = torch_modules(generators)
    if not modules:
        raise InputTypeError("generators must be torch modules: others cannot be searched")
    size = check_whole("latent_size", latent_size, low=1)
    tries, steps = check_whole("restarts", restarts, low=1), check_whole("iterations", iterations, low=1)
    values = np.asarray(records)
    if values.dtype.kind not in "iuf" or values.ndim < 2 or not np.isfinite(values).all():
        raise InputError(f"records must hold finite numbers, one row per record, got {values.dtype} of {values.shape}")
    chance = np.random.default_rng(rng)
    best = np.full(len(values), np.inf)
    blocks = [slice(i, i + BLOCK) for i in range(0, len(values), BLOCK)]
    done = 0
    for module in modules:
        generator = _Generator(module, size, chance, torch)
        for block in blocks:
            targets = torch.from_numpy(values[block].reshape(len(values[block]), -1)).to(generator.dtype)
            best[block] = np.minimum(best[block], generator.nearest(targets, tries, steps))
            done += 1
            if progress is not None:
                progress(done / (len(modules) * len(blocks)))
    return best


def torch_modules(generators: Any) -> tuple[Any, ...]:
    """Return the generators that a search takes; none if one of them is no torch module."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ()
    several = isinstance(generators, Sequence | torch.nn.ModuleList)
    modules = tuple(generators) if several else (generators,)
    return modules if all(isinstance(module, torch.nn.Module) for module in modules) else ()


class _Generator:
    """A generator that is searched, with the pool of latents from which the searches start."""

    def __init__(self, module: Any, size: int, rng: np.random.Generator, torch: Any) -> None:
        first = next(iter(module.parameters()), None)
        self.module, self.torch = module, torch
        self.dtype = torch.float32 if first is None else first.dtype
        self.latents = torch.from_numpy(rng.standard_normal((POOL, size))).to(self.dtype)
        try:
            with evaluating(module), torch.no_grad():
                self.outputs = module(self.latents).flatten(1)
        except RuntimeError as error:
            raise InputError(
                f"generators must be modules of {size} numbers, latent_size, got an error: {error}"
            ) from error

    def nearest(self, targets: Tensor, restarts: int, iterations: int) -> Array:
        """Return the smallest distance that the searches find."""
        torch = self.torch
        if targets.shape[1] != self.outputs.shape[1]:
            raise InputError(
                f"records must have {self.outputs.shape[1]} numbers per record, as the generator makes, got "
                f"{targets.shape[1]}"
            )
        starts = torch.cdist(targets, self.outputs).topk(min(restarts, POOL), dim=1, largest=False).indices
        with evaluating(self.module):
            found = [
                _minimise(_squared_distance(self.module, targets, torch), self.latents[starts[:, i]], iterations, torch)
                for i in range(starts.shape[1])
            ]
        squares = torch.stack(found).min(dim=0).values.double().clamp_min(0.0)
        return np.asarray(squares.sqrt().numpy())


def _squared_distance(module: Any, targets: Tensor, torch: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return latents ↦ ‖G(z) - x‖² of each record, and its gradient."""

    def value(latents: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            z = latents.detach().requires_grad_(True)
            values = ((module(z).flatten(1) - targets) ** 2).sum(dim=1)
            (gradient,) = torch.autograd.grad(values.sum(), z)
        return values.detach(), gradient

    return value


def _minimise(
    objective: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor, evaluations: int, torch: Any
) -> Tensor:
    """Return the smallest value of each row's objective that L-BFGS finds, all rows side by side."""
    point = start
    value, slope = objective(point)
    pairs: list[tuple[Tensor, Tensor, Tensor]] = []
    direction = -slope
    step = 1.0 / slope.norm(dim=1).clamp_min(1.0)
    for _ in range(evaluations - 1):
        trial = point + step[:, None] * direction
        new_value, new_slope = objective(trial)
        promised = DESCENT * step * (slope * direction).sum(dim=1)
        better = (new_value <= value + promised) & (new_value < value)
        moved = torch.where(better[:, None], trial - point, 0.0)
        turned = torch.where(better[:, None], new_slope - slope, 0.0)
        curvature = (moved * turned).sum(dim=1)
        useful = curvature > 1e-10 * (turned**2).sum(dim=1).clamp_min(1e-30)
        pairs = [*pairs[-(MEMORY - 1) :], (moved, turned, torch.where(useful, 1.0 / curvature.clamp_min(1e-30), 0.0))]
        point = torch.where(better[:, None], trial, point)
        value = torch.where(better, new_value, value)
        slope = torch.where(better[:, None], new_slope, slope)
        direction = torch.where(better[:, None], _direction(slope, pairs, torch), direction)
        step = torch.where(better, 1.0, 0.5 * step)
        if float(step.max()) < 1e-8:
            break
    return value


def _direction(slope: Tensor, pairs: list[tuple[Tensor, Tensor, Tensor]], torch: Any) -> Tensor:
    """Return minus the approximate inverse Hessian times the gradient, by the two loops of L-BFGS."""
    rest, weights = slope, []
    scale = torch.ones_like(slope[:, 0])
    for moved, turned, inverse in reversed(pairs):
        weight = inverse * (moved * rest).sum(dim=1)
        weights.append(weight)
        rest = rest - weight[:, None] * turned
    for moved, turned, inverse in pairs:
        ratio = (moved * turned).sum(dim=1) / (turned**2).sum(dim=1).clamp_min(1e-30)
        scale = torch.where(inverse > 0.0, ratio, scale)
    rest = scale[:, None] * rest
    for (moved, turned, inverse), weight in zip(pairs, reversed(weights), strict=True):
        rest = rest + (weight - inverse * (turned * rest).sum(dim=1))[:, None] * moved
    downhill = (rest * slope).sum(dim=1) > 0.0
    chosen: Tensor = torch.where(downhill[:, None], -rest, -slope)
    return chosen
