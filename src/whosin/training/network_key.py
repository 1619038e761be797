"""What a torch network is, in plain parts: for keys that are the same in every process.

Pickles of torch modules differ from process to process. Here a module is its class, its attributes, its hooks and its
submodules, and a tensor its numbers; functions, classes and everything else is left to
:func:`whosin.parallel.fingerprint.fingerprint`.
"""

from __future__ import annotations

import functools
from typing import Any

from whosin.training.torch_model import need_torch


def plain_parts(value: Any) -> Any:
    """Return the same without torch objects, however deep they lie in containers and modules."""
    torch = need_torch()
    if isinstance(value, torch.nn.Module):
        state = {key: plain_parts(_unnumbered(key, item)) for key, item in sorted(vars(value).items())}
        return "module", type(value), state
    if isinstance(value, torch.nn.parameter.UninitializedTensorMixin):
        return "uninitialised", str(value.dtype)
    if torch.is_tensor(value):
        content = value.detach().cpu()
        numbers = content.double() if content.dtype == torch.bfloat16 else content
        return "tensor", str(value.dtype), value.requires_grad, numbers.contiguous().numpy()
    if isinstance(value, torch.dtype | torch.device):
        return type(value).__name__, str(value)
    if isinstance(value, dict):
        return type(value).__name__, [(plain_parts(key), plain_parts(item)) for key, item in value.items()]
    if isinstance(value, tuple | list):
        return type(value).__name__, [plain_parts(item) for item in value]
    if isinstance(value, functools.partial):
        return "partial", plain_parts([value.func, value.args, value.keywords])
    return value


def _unnumbered(key: str, item: Any) -> Any:
    """Return hooks without their numbers, which are counted through the process."""
    return list(item.values()) if "_hooks" in key and isinstance(item, dict) else item
