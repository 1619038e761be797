"""whosin: can anyone tell who is in your data?

Bounds (what a guarantee promises against any attacker), population analysis (what a large ε means on these records),
protection (noise that guarantees membership privacy), audits (what attackers can learn, measured), and exact small
worlds. Everything is the attacker's ROC: see :class:`whosin.Roc`.

Names are loaded on first use, so that ``import whosin`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whosin import (
        auditing,
        bounds,
        calibrate,
        errors,
        ledger,
        mechanisms,
        population,
        protection,
        risks,
        tables,
        unlearning,
        worlds,
    )
    from whosin.auditing import Audit, Estimate, audit, audit_one_run, audit_synthetic
    from whosin.auditing.models import (
        DPSGDAdapter,
        ReferenceModels,
        TorchAdapter,
        TorchModel,
        audit_classifier,
        audit_with_references,
        train_dpsgd,
    )
    from whosin.auditing.models.generators import audit_generator
    from whosin.auditing.runs import audit_retrained, audit_training
    from whosin.guarantees import (
        DPSGD,
        MIP,
        PMP,
        ApproxDP,
        DifferentialIdentifiability,
        GaussianDP,
        Guarantee,
        MembershipPrivacy,
        PrivacyProfile,
        PureDP,
        RenyiDP,
        TradeOff,
        ZeroConcentratedDP,
    )
    from whosin.guarantees.accountants import from_event, from_opacus, from_pld
    from whosin.ledger import Ledger
    from whosin.parallel.bar import ProgressBar
    from whosin.protection import protect
    from whosin.reporting import report
    from whosin.roc import Roc

_HOMES = {
    "auditing": ("Audit", "Estimate", "audit", "audit_one_run", "audit_synthetic"),
    "auditing.models": (
        "DPSGDAdapter", "ReferenceModels", "TorchAdapter", "TorchModel", "audit_classifier", "audit_with_references",
        "train_dpsgd",
    ),
    "auditing.models.generators": ("audit_generator",),
    "auditing.runs": ("audit_retrained", "audit_training"),
    "guarantees": (
        "ApproxDP", "DPSGD", "DifferentialIdentifiability", "GaussianDP", "Guarantee", "MIP", "MembershipPrivacy",
        "PMP", "PrivacyProfile", "PureDP", "RenyiDP", "TradeOff", "ZeroConcentratedDP",
    ),
    "guarantees.accountants": ("from_event", "from_opacus", "from_pld"),
    "ledger": ("Ledger",),
    "parallel.bar": ("ProgressBar",),
    "protection": ("protect",),
    "reporting": ("report",),
    "roc": ("Roc",),
}  # fmt: skip
"""Where the names are that are no modules themselves."""

__all__ = [
    "DPSGD",
    "MIP",
    "PMP",
    "ApproxDP",
    "Audit",
    "DPSGDAdapter",
    "DifferentialIdentifiability",
    "Estimate",
    "GaussianDP",
    "Guarantee",
    "Ledger",
    "MembershipPrivacy",
    "PrivacyProfile",
    "ProgressBar",
    "PureDP",
    "ReferenceModels",
    "RenyiDP",
    "Roc",
    "TorchAdapter",
    "TorchModel",
    "TradeOff",
    "ZeroConcentratedDP",
    "audit",
    "audit_classifier",
    "audit_generator",
    "audit_one_run",
    "audit_retrained",
    "audit_synthetic",
    "audit_training",
    "audit_with_references",
    "auditing",
    "bounds",
    "calibrate",
    "errors",
    "from_event",
    "from_opacus",
    "from_pld",
    "ledger",
    "mechanisms",
    "population",
    "protect",
    "protection",
    "report",
    "risks",
    "tables",
    "train_dpsgd",
    "unlearning",
    "worlds",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("whosin")
    elif name in __all__:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        value = import_module(f"whosin.{name}") if home is None else getattr(import_module(f"whosin.{home}"), name)
    else:
        raise AttributeError(f"module 'whosin' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
