"""What can be slid: each parameter with its range, its scale and what it means in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True)
class Slider:
    """A number that can be slid or typed; what can be typed is what the query takes, and may be more."""

    name: str
    label: str
    hint: str
    low: float
    high: float
    scale: str = "even"
    """"even" or "log", by which a step of the slider multiplies."""
    whole: bool = False


_PRIOR = Slider("prior", "Suspected beforehand", "chance that the record is in, before anything is seen", 0.001, 0.999)
_DELTA = Slider("delta", "δ", "what may leak beside ε; 0 for nothing", 1e-10, 0.1, "log")
_RATE = Slider("sample_rate", "Share in a batch", "probability that a record is in a batch", 1e-4, 1.0, "log")
_STEPS = Slider("steps", "Steps", "batches that were drawn", 1, 100_000, "log", whole=True)
_EPSILON = Slider("epsilon", "ε", "0 gives nothing away; 5 allows 99.4% right guesses", 0.01, 20.0, "log")

_BATCHES = (
    Slider("batch_size", "Batch", "records of a batch", 1, 10_000, "log", whole=True),
    Slider("dataset_size", "Records", "in all", 100, 1e6, "log", whole=True),
    Slider("epochs", "Epochs", "passes over the records", 1, 1000, "log"),
)
_LEAST_EPOCHS = 0.001
"""The query takes any number above 0, and a field of a form needs a first one."""

EXPLAIN: dict[str, tuple[Slider, ...]] = {
    "dp": (_EPSILON, _DELTA),
    "dpsgd": (Slider("noise_multiplier", "Noise", "noise over clipping norm", 0.3, 10.0, "log"),),
    "rate": (_RATE, _STEPS),
    "batches": _BATCHES,
    "zcdp": (Slider("rho", "ρ", "of zero-concentrated differential privacy", 0.001, 10.0, "log"),),
    "gdp": (Slider("mu", "μ", "0 gives nothing away", 0.01, 8.0, "log"),),
    "mip": (Slider("eta", "η", "right guesses beyond one half, at most", 0.0, 0.5),),
    "": (_PRIOR,),
}
"""By kind of guarantee; those under "" go with all."""

CALIBRATE: dict[str, tuple[Slider, ...]] = {
    "target": (Slider("value", "At most", "the risk that you tolerate", 0.0, 1.0),),
    "tpr": (Slider("fpr", "Outsiders accused", "by whoever looks for members", 1e-4, 1.0, "log"),),
    "epsilon": (_DELTA,),
    "rdp": (Slider("order", "Order α", "of Rényi differential privacy", 1.1, 256.0, "log"),),
    "rate": (_RATE, _STEPS),
    "batches": _BATCHES,
    "mip": (),
    "sampling_rate": (_EPSILON,),
    "prior": (_PRIOR,),
}


def filled(sliders: dict[str, tuple[Slider, ...]], query: BaseModel) -> dict[str, list[dict[str, Any]]]:
    """Return the sliders with the values of a query, ready for the template."""
    return {group: [_filled(slider, query) for slider in members] for group, members in sliders.items()}


def _filled(slider: Slider, query: BaseModel) -> dict[str, Any]:
    rules = type(query).model_fields[slider.name].metadata
    least = next((rule.ge for rule in rules if hasattr(rule, "ge")), _LEAST_EPOCHS)
    most = next(rule.le for rule in rules if hasattr(rule, "le"))
    value = str(getattr(query, slider.name)).removesuffix(".0")
    return {**vars(slider), "least": f"{least:g}", "most": f"{most:.8g}", "value": value}
