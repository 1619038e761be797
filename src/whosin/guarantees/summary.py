"""What a guarantee means at a prior, as plain numbers: what the command line and the page show."""

from __future__ import annotations

from typing import Any

from whosin.errors import ImplicationError
from whosin.guarantees.base import Guarantee

__all__ = ["facts", "in_words"]

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
        "posterior": list(_posterior(guarantee, prior)),
        "tpr_at": {f"{fpr:g}": float(guarantee.tpr_at(fpr)) for fpr in _FPRS},
        "assumes": assumes,
        "explanation": guarantee.explain(prior),
    }


_SIGNS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "eta": "η", "gamma": "γ", "rho": "ρ"}
_NEIGHBOURS = {
    "add_remove": "one person added or removed",
    "replace": "one person replaced",
    "zero_out": "one person replaced by an empty record",
}


def in_words(guarantee: Guarantee) -> str:
    """Return what a guarantee is called where people read it.

    Examples
    --------
    >>> import whosin as wi
    >>> in_words(wi.PureDP(1.0))
    'ε = 1 (one person added or removed)'
    >>> in_words(wi.DPSGD(noise_multiplier=0.8, sample_rate=0.004, steps=2000))
    'DPSGD (noise multiplier = 0.8, sample rate = 0.004, steps = 2000, sampling = poisson, one person added or removed)'
    """
    described = guarantee.to_dict()
    kind = described.pop("guarantee")
    said = {name: value for name, value in described.items() if isinstance(value, int | float | str)}
    neighbours = _NEIGHBOURS.get(str(said.pop("adjacency", "")))
    parts = [f"{_SIGNS.get(name, name.replace('_', ' '))} = {_short(value)}" for name, value in said.items()]
    more = [] if neighbours is None else [neighbours]
    if kind in ("PureDP", "ApproxDP", "GaussianDP"):
        return f"{', '.join(parts)} ({'; '.join(more)})" if more else ", ".join(parts)
    return f"{kind} ({', '.join(parts + more)})" if parts or more else kind


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _posterior(guarantee: Guarantee, prior: float) -> tuple[float, float]:
    try:
        return guarantee.posterior(prior)
    except ImplicationError:
        return guarantee.posterior(prior, world="fixed_size")  # type: ignore[call-arg]
