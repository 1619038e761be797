"""What a guarantee means at a prior, as plain numbers: what the command line and the page show."""

from __future__ import annotations

from typing import Any

from whosin.guarantees.base import Guarantee, belief_after

_FPRS = (0.0001, 0.001, 0.01, 0.1)


def facts(guarantee: Guarantee, prior: float) -> dict[str, Any]:
    """Return what a guarantee means, for JSON."""
    described = guarantee.to_dict()
    assumes, _ = described.pop("assumes"), described.pop("guarantee")
    return {
        "guarantee": str(guarantee),
        "kind": type(guarantee).__name__,
        "parameters": described,
        "prior": prior,
        "accuracy": guarantee.accuracy(prior),
        "advantage": guarantee.advantage,
        "posterior": list(belief_after(guarantee, prior)),
        "tpr_at": {f"{fpr:g}": float(guarantee.tpr_at(fpr)) for fpr in _FPRS},
        "assumes": assumes,
        "explanation": guarantee.explain(prior),
    }
