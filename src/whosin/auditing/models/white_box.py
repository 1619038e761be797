"""White-box queries: what an attacker sees who has the network itself, not only its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError
from whosin.training.torch_model import TorchModel


@dataclass(frozen=True)
class LayerOutput:
    """A query of q numbers per record: what one layer of a network gives out."""

    layer: str | int | None

    @property
    def __name__(self) -> str:
        return "penultimate layer" if self.layer is None else f"layer {self.layer}"

    def __call__(self, model: Any, X: Any, y: Any) -> Array:
        if isinstance(model, TorchModel):
            if isinstance(self.layer, int):
                raise InputTypeError(f"layer must be the name of a submodule of a torch module, got {self.layer!r}")
            return model.layer_output(X, self.layer)
        if isinstance(self.layer, str):
            raise InputTypeError(f"layer must be the number of a hidden layer of a perceptron, got {self.layer!r}")
        return _perceptron(model, X, self.layer)


def layer_output(layer: str | int | None = None) -> LayerOutput:
    """Return a query for :func:`whosin.audit_classifier`: the output of a layer, as q numbers per record.

    Parameters
    ----------
    layer : str or int, optional
        Of a :class:`TorchModel` the name of a submodule, of scikit-learn's MLPClassifier (also as the last step of a
        pipeline) the number of a hidden layer, from 0. By default the penultimate layer: what the last one is given.

    Notes
    -----
    The q numbers are combined by a score that is learned on records which are not reported. As the last layer computes
    the answer from the penultimate one, the best attacker on it is at least as strong as the best one on the answer;
    whether a learned score is, depends on the number of records. Together with the label:
    ``query=["loss", layer_output()]``.

    References
    ----------
    Xu et al. (2022), appendix I, who cut the numbers into cells; cells of many numbers hold one record each.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neural_network import MLPClassifier
    >>> from whosin.auditing.models import layer_output
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = MLPClassifier((8, 4), solver="lbfgs", max_iter=50, tol=1.0, random_state=0).fit(X, X[:, 0] > 0)
    >>> layer_output()(model, X, None).shape, layer_output(0)(model, X, None).shape
    ((40, 4), (40, 8))
    """
    return LayerOutput(layer)


def _perceptron(model: Any, X: Any, layer: int | None) -> Array:
    steps = getattr(model, "steps", None)
    net = steps[-1][1] if steps else model
    if not (hasattr(net, "coefs_") and hasattr(net, "intercepts_") and hasattr(net, "activation")):
        raise InputTypeError(
            f"layer_output must be a TorchModel or a trained MLPClassifier, got {type(net).__name__}; for other models "
            "write a function (model, X, y)"
        )
    from sklearn.neural_network._base import ACTIVATIONS

    hidden = len(net.coefs_) - 1
    place = hidden - 1 if layer is None else layer
    if not 0 <= place < hidden:
        raise InputError(f"layer must be 0 to {hidden - 1}, the number of a hidden layer, got {layer!r}")
    values = np.asarray(model[:-1].transform(X) if steps and len(steps) > 1 else X, dtype=np.float64)
    for weights, shift in list(zip(net.coefs_, net.intercepts_, strict=True))[: place + 1]:
        values = values @ weights + shift
        ACTIVATIONS[net.activation](values)
    return values
