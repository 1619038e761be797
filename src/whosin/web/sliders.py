"""What can be slid: each parameter with its range, its scale and what it means in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from whosin.web.models import LEAST_NOISE, LEAST_RATE, MOST_NOISE, MOST_STEPS

__all__ = ["CALIBRATE", "EXPLAIN", "Slider", "filled"]


@dataclass(frozen=True)
class Slider:
    """A number that can be slid or typed; the slider may span less than what can be typed."""

    name: str
    label: str
    hint: str
    low: float
    high: float
    scale: str = "even"
    """"even" or "log", by which a step of the slider multiplies."""
    least: float | None = None
    most: float | None = None
    """What can be typed, where that is more."""
    whole: bool = False


_PRIOR = Slider(
    "prior",
    "Suspected beforehand",
    "chance that the record is in, before anything is seen",
    0.001,
    0.999,
    "even",
    1e-6,
    0.999999,
)
_DELTA = Slider("delta", "δ", "what may leak beside ε; 0 for nothing", 1e-10, 0.1, "log", 0.0, 0.5)
_RATE = Slider(
    "sample_rate", "Share in a batch", "probability that a record is in a batch", 1e-4, 1.0, "log", LEAST_RATE
)
_STEPS = Slider("steps", "Steps", "batches that were drawn", 1, 100_000, "log", 1, MOST_STEPS, whole=True)
_EPSILON = Slider("epsilon", "ε", "0 gives nothing away; 5 allows 99.4% right guesses", 0.01, 20.0, "log", 0.0, 100.0)

_BATCHES = (
    Slider("batch_size", "Batch", "records of a batch", 1, 10_000, "log", 1, 1e9, whole=True),
    Slider("dataset_size", "Records", "in all", 100, 1e6, "log", 1, 1e9, whole=True),
    Slider("epochs", "Epochs", "passes over the records", 1, 1000, "log", 0.001, 1e6),
)

EXPLAIN: dict[str, tuple[Slider, ...]] = {
    "dp": (_EPSILON, _DELTA),
    "dpsgd": (
        Slider("noise_multiplier", "Noise", "noise over clipping norm", 0.3, 10.0, "log", LEAST_NOISE, MOST_NOISE),
    ),
    "rate": (_RATE, _STEPS),
    "batches": _BATCHES,
    "zcdp": (Slider("rho", "ρ", "of zero-concentrated differential privacy", 0.001, 10.0, "log", 0.0, 100.0),),
    "gdp": (Slider("mu", "μ", "0 gives nothing away", 0.01, 8.0, "log", 0.0, 50.0),),
    "mip": (Slider("eta", "η", "right guesses beyond one half, at most", 0.0, 0.5),),
    "": (_PRIOR,),
}
"""By kind of guarantee; those under "" go with all."""

CALIBRATE: dict[str, tuple[Slider, ...]] = {
    "target": (Slider("value", "At most", "the risk that you tolerate", 0.0, 1.0),),
    "tpr": (Slider("fpr", "Outsiders accused", "by whoever looks for members", 1e-4, 1.0, "log", 0.0, 1.0),),
    "epsilon": (_DELTA,),
    "rdp": (Slider("order", "Order α", "of Rényi differential privacy", 1.1, 256.0, "log", 1.01, 1000.0),),
    "rate": (_RATE, _STEPS),
    "batches": _BATCHES,
    "mip": (),
    "sampling_rate": (_EPSILON,),
    "prior": (_PRIOR,),
}


def filled(sliders: dict[str, tuple[Slider, ...]], query: BaseModel) -> dict[str, list[dict[str, Any]]]:
    """Return the sliders with the values of a query, ready for the template."""
    return {
        group: [
            {
                **vars(slider),
                "least": f"{slider.low if slider.least is None else slider.least:g}",
                "most": f"{slider.high if slider.most is None else slider.most:.8g}",
                "value": str(getattr(query, slider.name)).removesuffix(".0"),
            }
            for slider in members
        ]
        for group, members in sliders.items()
    }
