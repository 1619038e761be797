"""A trained torch module as a classifier: probabilities, labels, and what its layers give out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError, check_choice, check_whole, missing_extra

OUTPUTS = ("logits", "probabilities", "log_probabilities")


def need_torch() -> Any:
    """Return torch, or say which extra is missing."""
    try:
        import torch
    except ImportError:
        raise missing_extra("torch modules need PyTorch", "torch") from None
    return torch


class TorchModel:
    """A trained torch module, for :func:`whosin.audit_classifier` and for reference models.

    Parameters
    ----------
    module : torch.nn.Module
        Gives every record one number per class, shape (N, k), or a single number, shape (N,) or (N, 1), which then is
        about the second of two classes.
    classes : sequence, optional
        The label of each output; 0, 1, … by default.
    output : {"logits", "probabilities", "log_probabilities"}, default "logits"
        What the numbers are. A single number is a logit or a probability.
    batch_size : int, default 1024
        Most records that are predicted at once; it limits the memory.
    input_dtype : str, optional
        Name of the torch type that records are turned into; by default that of the weights, or "int64" where records
        are whole numbers and the first layer with weights is an embedding.

    Notes
    -----
    Records are predicted in evaluation mode (no dropout, stored statistics of batch normalisation), without gradients,
    on the device of the weights; afterwards every layer is in the mode in which it was. Probabilities come from the
    outputs in double precision, so that 1 - p is seen far below the rounding of the outputs.

    Examples
    --------
    >>> import torch, whosin as wi
    >>> module = torch.nn.Linear(1, 1)
    >>> with torch.no_grad():
    ...     _ = module.weight.fill_(2.0), module.bias.fill_(0.0)
    >>> model = wi.TorchModel(module, classes=["no", "yes"])
    >>> model.predict_proba([[0.0], [1.0]]).round(3).tolist()
    [[0.5, 0.5], [0.119, 0.881]]
    """

    def __init__(
        self,
        module: Any,
        *,
        classes: Sequence[Any] | NDArray[Any] | None = None,
        output: str = "logits",
        batch_size: int = 1024,
        input_dtype: str | None = None,
    ) -> None:
        torch = need_torch()
        if not isinstance(module, torch.nn.Module):
            raise InputTypeError(f"module must be a torch.nn.Module, got {type(module).__name__}")
        self.module = module
        self.output = check_choice("output", output, OUTPUTS)
        self.batch_size = check_whole("batch_size", batch_size, low=1)
        self.input_dtype = check_dtype(input_dtype)
        if classes is not None:
            self.classes_ = check_classes(classes)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, shape (N, k); a single output gives two columns."""
        torch = need_torch()
        parts = []
        for place, outputs in self._outputs(X):
            table = torch.exp(log_probabilities_of(outputs.double(), self.output)).cpu().numpy()
            bad = ~np.isfinite(table).all(axis=1)
            if bad.any():
                row = int(bad.argmax())
                raise InputError(
                    f"module must have finite outputs, got {outputs.reshape(len(bad), -1)[row].tolist()} "
                    f"for row {place + row}"
                )
            parts.append(table)
        table = np.concatenate(parts)
        known = getattr(self, "classes_", None)
        if known is not None and len(known) != table.shape[1]:
            raise InputError(f"classes must have one label per output, got {len(known)} for {table.shape[1]} outputs")
        return np.asarray(table, dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest label of each record."""
        table = self.predict_proba(X)
        labels: NDArray[Any] = np.asarray(getattr(self, "classes_", np.arange(table.shape[1])))
        return np.asarray(labels[table.argmax(axis=1)])

    def layer_output(self, X: Any, layer: str | None = None) -> Array:
        """Return what a layer gives out for each record, flattened to shape (N, q).

        Parameters
        ----------
        X : records
        layer : str, optional
            Name of a submodule, as in ``module.named_modules()``. By default the penultimate layer: what the last
            called layer with weights is given.
        """
        named = dict(self.module.named_modules())
        if layer is not None and layer not in named:
            listed = ", ".join(repr(name) for name in named if name)
            raise InputError(f"layer must be the name of a submodule ({listed}), got {layer!r}")
        leaves = [part for part in named.values() if not list(part.children()) and list(part.parameters(recurse=False))]
        seen: list[Any] = []

        def keep_output(_: Any, __: Any, outputs: Any) -> None:
            seen.append(outputs)

        def keep_input(_: Any, inputs: Any) -> None:
            seen.append(inputs[0] if inputs else None)

        if layer is None:
            handles = [leaf.register_forward_pre_hook(keep_input) for leaf in leaves]
        else:
            handles = [named[layer].register_forward_hook(keep_output)]
        parts = []
        try:
            for _, outputs in self._outputs(X):
                parts.append(_flat(seen, len(outputs), layer))
                seen.clear()
        finally:
            for handle in handles:
                handle.remove()
        return np.concatenate(parts)

    def _outputs(self, X: Any) -> Iterator[tuple[int, Any]]:
        """Yield the outputs batch by batch, each with the number of its first record.

        Batches are of nearly equal size: a short one at the end is rounded in another way, which would tell its records
        from equal ones.
        """
        torch = need_torch()
        values = as_inputs(X)
        device, dtype = place_of(self.module, self.input_dtype, values)
        with evaluating(self.module), torch.no_grad():
            batches = -(-len(values) // self.batch_size)
            edges = [len(values) * place // batches for place in range(batches + 1)]
            for start, end in itertools.pairwise(edges):
                batch = torch.as_tensor(values[start:end]).to(device=device, dtype=dtype)
                outputs = outputs_of(self.module, batch)
                yield start, outputs


def _flat(seen: list[Any], rows: int, layer: str | None) -> Array:
    torch = need_torch()
    if not seen:
        raise InputError(f"layer must be a layer that the module calls, got {layer!r}")
    last = seen[-1]
    if not torch.is_tensor(last) or last.ndim == 0 or len(last) != rows:
        raise InputError(f"layer must be a layer with one row per record, got {type(last).__name__} of {layer!r}")
    return np.asarray(last.reshape(rows, -1).double().cpu().numpy())


def log_probabilities_of(outputs: Any, output: str) -> Any:
    """Return log probabilities (N, k) of a module's outputs; a single output becomes two classes."""
    torch = need_torch()
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        if output == "logits":
            return torch.log_softmax(outputs, dim=1)
        return outputs if output == "log_probabilities" else torch.log(outputs)
    single = outputs.reshape(-1)
    if output == "logits":
        both = torch.nn.functional.logsigmoid(-single), torch.nn.functional.logsigmoid(single)
    elif output == "probabilities":
        both = torch.log1p(-single), torch.log(single)
    else:
        raise InputError(
            "output must be logits or probabilities for a module with a single output, got log_probabilities"
        )
    return torch.stack(both, dim=1)


def outputs_of(module: Any, inputs: Any) -> Any:
    """Return what a module gives out, a tensor of one row per record."""
    torch = need_torch()
    try:
        outputs = module(inputs)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"module must accept records like those of X, of shape {tuple(inputs.shape[1:])} and type {inputs.dtype} "
            f"(input_dtype names another), got from it {type(error).__name__}: {error}"
        ) from error
    if not torch.is_tensor(outputs):
        raise InputTypeError(f"module must be one that returns a tensor, got {type(outputs).__name__}")
    rows = len(inputs)
    if outputs.ndim not in (1, 2) or len(outputs) != rows or (outputs.ndim == 2 and outputs.shape[1] == 0):
        raise InputError(
            f"module must have outputs of shape ({rows}, classes) or ({rows},), got {tuple(outputs.shape)}"
        )
    return outputs


def as_inputs(X: Any) -> NDArray[Any]:
    """Return records as an array of numbers, the first axis the records."""
    if hasattr(X, "detach"):
        X = X.detach().cpu()
    values = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if values.dtype.kind not in "biuf":
        raise InputTypeError(f"X must hold numbers for a torch module, got values of type {values.dtype}")
    if values.ndim == 0 or len(values) == 0:
        raise InputError(f"X must have at least one record, got shape {values.shape}")
    return np.ascontiguousarray(values)


def place_of(module: Any, input_dtype: str | None, values: NDArray[Any]) -> tuple[Any, Any]:
    """Return the device of a module's weights and the type that these records take there."""
    torch = need_torch()
    tensors = [*module.parameters(), *module.buffers()]
    device = tensors[0].device if tensors else torch.device("cpu")
    if device.type == "meta":
        raise InputError("module must be one with weights, got one on the meta device")
    if input_dtype is not None:
        return device, getattr(torch, input_dtype)
    first = next((part for part in module.modules() if list(part.parameters(recurse=False))), None)
    if values.dtype.kind in "iu" and isinstance(first, torch.nn.Embedding | torch.nn.EmbeddingBag):
        return device, torch.int64
    floating = [tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point]
    return device, floating[0] if floating else torch.get_default_dtype()


def check_dtype(name: str | None) -> str | None:
    """Return the name of a torch type, without its prefix."""
    torch = need_torch()
    if name is None:
        return None
    plain = str(name).removeprefix("torch.")
    if not isinstance(getattr(torch, plain, None), torch.dtype):
        raise InputError(f"input_dtype must be the name of a torch type, such as 'float32' or 'int64', got {name!r}")
    return plain


def check_classes(classes: Any) -> NDArray[Any]:
    """Return different labels as an array."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(labels) < 2 or len(set(labels.tolist())) < len(labels):
        raise InputError(f"classes must have at least two different labels, got {classes!r}")
    return labels


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put a module into evaluation mode, and afterwards every part of it back into its own."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
