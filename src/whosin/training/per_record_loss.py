"""What DP-SGD asks of a network: that the loss of a record is its own, whoever else is in the batch.

Clipping limits what one record adds to the sum of gradients. Nothing limits what it does to the gradients of *others*,
or to numbers that the network keeps beside its weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whosin.errors import InputError, InputTypeError
from whosin.training.torch_model import evaluating, need_torch
from whosin.training.torch_network import Task, seeded


def check_layers(module: Any) -> None:
    """Refuse layers that are known to mix records, and those whose gradients Opacus does not give record by record."""
    torch = need_torch()
    from opacus.grad_sample import GradSampleModule

    nn = torch.nn
    for name, part in module.named_modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            raise InputTypeError(
                f"module must have layers that treat records one by one; {name!r} is {type(part).__name__}, which "
                "mixes the records of a batch: use GroupNorm or LayerNorm"
            )
        if isinstance(part, nn.RNNBase | nn.MultiheadAttention):
            raise InputTypeError(
                f"module must have layers with a gradient for each record; {name!r} is {type(part).__name__}: use "
                f"its twin in opacus.layers, DP{type(part).__name__}"
            )
    errors = GradSampleModule.validate(module, strict=False)
    if errors:
        raise InputTypeError(f"module must have layers without buffers for DP-SGD: {errors[0]}")
    if not any(weight.requires_grad for weight in module.parameters()):
        raise InputError("module must have at least one weight that is trained, got none")


def check_one_by_one(module: Any, task: Task, device: str) -> None:
    """Refuse a network or a loss that gives a record another loss in other company, or that remembers records.

    A trial with one pair of records that differ: it finds means over the batch, attention along the wrong axis, losses
    that are divided by the size of the batch, running statistics. It is no proof.
    """
    torch = need_torch()
    flat = task.inputs.reshape(len(task.inputs), -1)
    other = int((flat != flat[0]).any(dim=1).int().argmax())
    kept = [buffer.clone() for buffer in module.buffers()]

    def losses(*rows: int) -> Any:
        places = torch.tensor(rows, device=task.inputs.device)
        with seeded(0, device), torch.no_grad():
            return task.losses(module(task.inputs[places]), places)

    module.train()
    alike, first, second = losses(0, 0), losses(0, other), losses(other, 0)
    with evaluating(module):
        alone, together = losses(0), losses(0, other)
    pairs = (alike[0], first[0]), (alike[1], second[1]), (alone[0], together[0])
    if not all(torch.allclose(*pair, rtol=1e-3, atol=1e-5, equal_nan=True) for pair in pairs):
        raise InputError(
            "module and loss must take records one by one, got ones in which the loss of a record depends on "
            "others in its batch: clipping would not limit what a record does"
        )
    if not all(_same(before, after) for before, after in zip(kept, module.buffers(), strict=True)):
        raise InputTypeError(
            "module must have layers without buffers that change in training, such as running means: they would tell "
            "of the records without noise"
        )


def _same(*tensors: Any) -> bool:
    one, other = (tensor.detach().double().cpu().numpy() for tensor in tensors)
    return np.array_equal(one, other, equal_nan=True)
