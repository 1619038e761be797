"""Training a torch module as often as an audit asks for, each time from the seed alone, and resumed after a crash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import InputError, check_whole
from whosin.training.torch_model import TorchModel, need_torch
from whosin.training.torch_network import Network, Task, one_thread, seeded


@dataclass(kw_only=True, eq=False)
class TorchAdapter(Network):
    """Train a torch module by mini-batches: an adapter for reference models and one-run audits (extra ``torch``).

    Parameters
    ----------
    module : torch.nn.Module, or callable without arguments that returns one
        The architecture; it stays untouched. Each training starts from fresh weights, drawn by the layers' own
        ``reset_parameters`` or by the callable.
    epochs : int, default 20
        Passes over the records.
    batch_size : int, default 64
        Most records in a batch. The batches of an epoch are of nearly equal size, in a new random order each.
    learning_rate, optimizer, loss, classes, output, reset, device, input_dtype
        ``optimizer`` is "sgd", "adam", "adamw", or a callable that gets the parameters and ``lr=``. ``loss`` maps
        (outputs, numbers of the classes) to one number per record; cross-entropy by default. ``classes``
        names the label of each output; by default 0, 1, … if all labels are such numbers, otherwise the sorted labels
        of the training data. ``output`` says whether the module gives "logits", "probabilities" or
        "log_probabilities". ``reset=False`` starts from the weights of ``module``. ``device`` and ``input_dtype`` are
        those of torch.
    journal : path, optional
        Beside it, under its name, the state is kept after each epoch. A training that was interrupted goes on from
        there, and ends bit for bit where it would have ended; then its file is removed. It holds weights, not records.

    Notes
    -----
    All chance (weights, order, dropout) comes from ``rng``, and torch works with one thread, so a CPU gives the same
    weights in every process. Torch's own generators are left as they were.

    Examples
    --------
    >>> import numpy as np, torch, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> adapter = wi.TorchAdapter(torch.nn.Linear(2, 2), epochs=10, learning_rate=0.1)
    >>> model = adapter.fit(X, y, rng)
    >>> bool(np.mean(model.predict_proba(X).argmax(axis=1) == y) > 0.95)
    True
    """

    epochs: int = 20
    batch_size: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        self.epochs = check_whole("epochs", self.epochs)
        self.batch_size = check_whole("batch_size", self.batch_size, low=1)

    def fit(self, X: Any, y: Any, rng: np.random.Generator) -> TorchModel:
        """Train on these records; return the model."""
        seed = int(rng.integers(2**62))
        with one_thread():
            module = self.build(seed)
            with seeded(seed, self.device):
                task = self.task(module, X, y)
            optimizer = self.make_optimizer(module.parameters())
            saved = self.saved(X, y, [seed])
            done = saved.read(module, optimizer) if saved is not None else 0
            for epoch in range(done, self.epochs):
                self._epoch(module, optimizer, task, seed, epoch)
                if saved is not None:
                    saved.write(module, optimizer, epoch + 1)
        if saved is not None:
            saved.remove()
        return self.as_model(module, task.classes)

    def _epoch(self, module: Any, optimizer: Any, task: Task, seed: int, epoch: int) -> None:
        """One pass; its chance depends on the seed and its number alone, so that nothing of it need be stored."""
        torch = need_torch()
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(task.inputs))
        module.train()
        with seeded(int(rng.integers(2**62)), self.device):
            for batch in np.array_split(order, -(-len(order) // self.batch_size)):
                rows = torch.as_tensor(batch, device=task.inputs.device)
                optimizer.zero_grad(set_to_none=True)
                value = task.losses(module(task.inputs[rows]), rows).mean()
                if not torch.isfinite(value):
                    raise InputError(
                        f"learning_rate must be one that keeps the training finite: with {self.learning_rate:g} the "
                        f"loss is {float(value.detach())} in epoch {epoch + 1}"
                    )
                value.backward()
                optimizer.step()
