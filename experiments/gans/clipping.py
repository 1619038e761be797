"""Gradients of one record at a time, cut to a norm and added up, without ever holding all of them.

The gradient of a dense layer for one record is the outer product of its input a and of the loss's derivative δ at its
output, so its squared norm is (‖a‖² + 1)·‖δ‖², bias included (Goodfellow 2015). Once the norms are known, the cut
gradients add up in one ordinary product. Convolutions need the gradient of each record, a layer at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import unfold
from torch.nn.grad import conv2d_weight

from whosin.errors import InputTypeError

__all__ = ["clipped_sum"]

SLACK = 1e-5
"""Relative room for rounding in single precision: the norm of a cut gradient stays below the limit."""


def clipped_sum(
    network: nn.Sequential, records: Tensor, losses: Callable[[Tensor], Tensor], max_norm: float
) -> list[Tensor]:
    """Return the sum over records of their gradients, each cut to ``max_norm`` over all weights together.

    Parameters
    ----------
    network : Sequential
        Dense layers, convolutions, and layers without weights that treat records one by one.
    records : tensor
        Any number of records, none as well.
    losses : callable
        From outputs to one loss a record.
    max_norm : float
        Euclidean norm.

    Returns
    -------
    list of tensors
        One a parameter, in the order of ``network.parameters()``.

    Notes
    -----
    A record whose gradient is not finite counts for nothing, so that it cannot show by making the sum NaN.
    O(records·weights) time, as an ordinary gradient. Memory O(records·(inputs + outputs)) for dense layers and
    O(records·weights of one layer) for convolutions.
    """
    if len(records) == 0:
        return [torch.zeros_like(parameter) for parameter in network.parameters()]
    seen: list[tuple[nn.Linear | nn.Conv2d, Tensor]] = []
    outputs: list[Tensor] = []
    values = records.detach()
    for layer in network:
        if isinstance(layer, nn.Linear | nn.Conv2d):
            seen.append((layer, values.detach()))
            values = layer(values)
            outputs.append(values)
        elif next(layer.parameters(), None) is not None:
            raise InputTypeError(f"network must have dense layers and convolutions, got {type(layer).__name__}")
        else:
            values = layer(values)
    slopes = torch.autograd.grad(losses(values).sum(), outputs)
    with torch.no_grad():
        squares = torch.stack([_square_norm(*pair, slope) for pair, slope in zip(seen, slopes, strict=True)])
        norms = squares.sum(dim=0).sqrt()
        weights = (max_norm / (norms * (1.0 + SLACK)).clamp_min(1e-30)).clamp_max(1.0)
        finite = norms.isfinite()
        if not finite.all():
            seen = [(layer, inputs[finite]) for layer, inputs in seen]
            slopes, weights = tuple(slope[finite] for slope in slopes), weights[finite]
        sums: list[Tensor] = []
        for (layer, inputs), slope in zip(seen, slopes, strict=True):
            sums += _weighted(layer, inputs, slope * weights.view(-1, *(1 for _ in slope.shape[1:])))
    return sums


def _square_norm(layer: nn.Linear | nn.Conv2d, inputs: Tensor, slope: Tensor) -> Tensor:
    """Squared norm of each record's gradient of one layer, bias included."""
    if isinstance(layer, nn.Linear):
        return ((inputs**2).sum(dim=1) + 1.0) * (slope**2).sum(dim=1)
    kernel = (layer.kernel_size[0], layer.kernel_size[1])
    padding, stride = layer.padding, layer.stride
    assert not isinstance(padding, str)
    patches = unfold(inputs, kernel, padding=(padding[0], padding[1]), stride=(stride[0], stride[1]))
    flat = slope.flatten(2)
    gradient = torch.bmm(patches, flat.transpose(1, 2))
    return (gradient**2).sum(dim=(1, 2)) + (flat.sum(dim=2) ** 2).sum(dim=1)


def _weighted(layer: nn.Linear | nn.Conv2d, inputs: Tensor, slope: Tensor) -> list[Tensor]:
    """Gradient of weight and bias for derivatives that are already weighted."""
    if isinstance(layer, nn.Linear):
        return [slope.T @ inputs, slope.sum(dim=0)]
    weight = conv2d_weight(inputs, layer.weight.shape, slope, stride=layer.stride, padding=layer.padding)
    return [weight, slope.sum(dim=(0, 2, 3))]
