"""What every training of a torch module needs: a fresh network, labels as numbers, a loss, an optimiser, one thread."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError, check_callable, check_choice, check_number
from whosin.parallel.fingerprint import fingerprint
from whosin.training.checkpoint import Checkpoint
from whosin.training.torch_model import (
    OUTPUTS,
    TorchModel,
    as_inputs,
    check_classes,
    check_dtype,
    evaluating,
    log_probabilities_of,
    need_torch,
    outputs_of,
    place_of,
)

_ALONE = threading.RLock()
"""Torch's generators and its number of threads belong to the whole process, so one training at a time uses them."""

OPTIMIZERS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
FASTEST = 3e38
"""Largest learning rate: torch holds it in single precision."""


@dataclass(kw_only=True, eq=False)
class Network:
    """A module that can be trained again and again; the part that is the same with and without privacy.

    What its settings mean is said by :class:`whosin.TorchAdapter`.
    """

    module: Any = field(kw_only=False)
    learning_rate: float = 1e-3
    optimizer: str | Callable[..., Any] = "adam"
    loss: Callable[[Any, Any], Any] | None = None
    classes: Sequence[Any] | NDArray[Any] | None = None
    output: str = "logits"
    reset: bool = True
    device: str = "cpu"
    input_dtype: str | None = None
    journal: str | Path | None = None

    def __post_init__(self) -> None:
        torch = need_torch()
        if not isinstance(self.module, torch.nn.Module) and not _is_factory(self.module):
            raise InputTypeError(
                f"module must be a torch.nn.Module or a function without arguments that returns one, got "
                f"{type(self.module).__name__}"
            )
        if _is_factory(self.module) and not self.reset:
            raise InputError("reset=False needs a module with weights to start from, got a function that makes one")
        self.learning_rate = check_number("learning_rate", self.learning_rate, low=0.0, high=FASTEST, open_low=True)
        if not callable(self.optimizer):
            check_choice("optimizer", self.optimizer, tuple(OPTIMIZERS))
        if self.loss is not None:
            check_callable("loss", self.loss)
        self.output = check_choice("output", self.output, OUTPUTS)
        self.input_dtype = check_dtype(self.input_dtype)
        if self.classes is not None:
            self.classes = check_classes(self.classes)
        try:
            torch.device(self.device)
        except (RuntimeError, TypeError):
            raise InputError(f"device must be a name such as 'cpu' or 'cuda:0', got {self.device!r}") from None

    def build(self, seed: int) -> Any:
        """Return the network as a training with this seed starts."""
        torch = need_torch()
        with seeded(seed, self.device):
            if _is_factory(self.module):
                module = self.module()
                if not isinstance(module, torch.nn.Module):
                    raise InputTypeError(
                        f"module must be a function that returns a module, got {type(module).__name__}"
                    )
            else:
                module = copy.deepcopy(self.module)
                if self.reset:
                    _reset(module)
            module.zero_grad(set_to_none=True)
            try:
                return module.to(self.device)
            except (RuntimeError, AssertionError) as error:
                raise InputError(f"device must be one that is here, got {self.device!r}: {error}") from None

    def journal_key(self) -> str:
        """Return a hash of the network as it starts, weights included, and of all settings; the same everywhere."""
        torch = need_torch()
        settings = {key: value for key, value in vars(self).items() if key not in ("module", "journal")}
        made_by = self.module if _is_factory(self.module) else None
        return fingerprint(type(self).__qualname__, torch.__version__, plain_parts([self.build(0), made_by, settings]))

    def saved(self, X: Any, y: Any, seeds: list[int]) -> Checkpoint | None:
        """Return where the state of the training on these records with these seeds is kept, None if it is not."""
        if self.journal is None:
            return None
        return Checkpoint(Path(self.journal), fingerprint(self, np.asarray(X), np.asarray(y), seeds))

    def task(self, module: Any, X: Any, y: Any) -> Task:
        """Return checked tensors of records and targets, and how to judge outputs about them."""
        torch = need_torch()
        values, labels = as_inputs(X), np.asarray(y)
        if labels.shape != (len(values),):
            raise InputError(f"X and y must have one label per record, got {len(values)} and shape {labels.shape}")
        device, dtype = place_of(module, self.input_dtype, values)
        inputs = torch.as_tensor(values).to(device=device, dtype=dtype)
        finite = np.isfinite(values) & torch.isfinite(inputs).cpu().numpy()
        bad = ~finite.reshape(len(values), -1).all(axis=1)
        if bad.any():
            raise InputError(f"X must hold finite numbers, as {dtype} too, got another in row {int(bad.argmax())}")
        with evaluating(module), torch.no_grad():
            outputs = outputs_of(module, inputs[:1])
        width = outputs.shape[1] if outputs.ndim == 2 and outputs.shape[1] > 1 else 2
        classes = _classes(self.classes, labels, width)
        places = {value: place for place, value in enumerate(classes.tolist())}
        targets = np.array([places.get(value, -1) for value in labels.tolist()], dtype=np.int64)
        if (targets < 0).any():
            row = int((targets < 0).argmax())
            got = labels[row : row + 1].tolist()[0]
            raise InputError(f"y must be labels among classes {classes.tolist()}, got {got!r} in row {row}")
        return Task(inputs, torch.as_tensor(targets).to(device), classes, self.loss, self.output)

    def make_optimizer(self, parameters: Any) -> Any:
        """Return the optimiser of these parameters."""
        torch = need_torch()
        chosen = self.optimizer
        make = chosen if callable(chosen) else getattr(torch.optim, OPTIMIZERS[chosen])
        weights = list(parameters)
        if not weights:
            raise InputError("module must be one with weights to train, got one without")
        return make(weights, lr=self.learning_rate)

    def as_model(self, module: Any, classes: NDArray[Any]) -> TorchModel:
        """Return the trained module as a model in evaluation mode."""
        return TorchModel(module.eval(), classes=classes, output=self.output, input_dtype=self.input_dtype)


@dataclass(frozen=True, eq=False)
class Task:
    """Records and targets as tensors on the device, and the losses of outputs about them."""

    inputs: Any
    targets: Any
    classes: NDArray[Any]
    loss: Callable[[Any, Any], Any] | None
    output: str

    def losses(self, outputs: Any, rows: Any) -> Any:
        """Return the loss of each of these records."""
        targets = self.targets[rows]
        if self.loss is None:
            return -log_probabilities_of(outputs, self.output).gather(1, targets[:, None])[:, 0]
        values = self.loss(outputs, targets)
        if getattr(values, "shape", None) != targets.shape:
            raise InputError(
                f"loss must be a function that gives each of {len(targets)} records a number (reduction='none'), got "
                f"{tuple(getattr(values, 'shape', ()))}"
            )
        return values


def _classes(given: Any, labels: NDArray[Any], width: int) -> NDArray[Any]:
    if given is not None:
        if len(given) != width:
            raise InputError(f"classes must have one label per output, got {len(given)} for {width} outputs")
        return np.asarray(given)
    if labels.dtype.kind in "biu" and int(labels.min()) >= 0 and int(labels.max()) < width:
        return np.arange(width)
    found = np.unique(labels)
    if len(found) != width:
        raise InputError(
            f"classes is needed: the module has {width} outputs, and the training data {len(found)} labels, which are "
            f"not all among 0, …, {width - 1}"
        )
    return found


def _is_factory(module: Any) -> bool:
    torch = need_torch()
    return callable(module) and (inspect.isclass(module) or not isinstance(module, torch.nn.Module))


def _reset(module: Any) -> None:
    """Draw all weights anew, each layer by its own rule."""
    for name, part in module.named_modules():
        again = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if callable(again):
            again()
        elif list(part.parameters(recurse=False)):
            raise InputError(
                f"module must have layers with reset_parameters, and {name or type(part).__name__!r} has weights of "
                "its own without: pass a function that makes the module, or reset=False to start from these weights"
            )


@contextmanager
def seeded(seed: int, device: str = "cpu") -> Iterator[None]:
    """Let torch's own generators start from a seed, and afterwards go on as if nothing had been drawn."""
    torch = need_torch()
    place = torch.device(device)
    devices = [place.index or 0] if place.type == "cuda" and torch.cuda.is_available() else []
    with _ALONE, torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work with one thread, so that sums do not depend on how many there are."""
    torch = need_torch()
    with _ALONE:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def plain_parts(value: Any) -> Any:
    """Return the same without torch objects, for keys that are the same in every process: pickles of modules differ.

    A module is its class, its attributes, its hooks and its submodules, and a tensor its numbers; functions, classes
    and everything else is left to :func:`whosin.parallel.fingerprint.fingerprint`.
    """
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
