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
    "ApproxDP": "whosin.guarantees",
    "DPSGD": "whosin.guarantees",
    "DifferentialIdentifiability": "whosin.guarantees",
    "GaussianDP": "whosin.guarantees",
    "Guarantee": "whosin.guarantees",
    "MIP": "whosin.guarantees",
    "MembershipPrivacy": "whosin.guarantees",
    "PMP": "whosin.guarantees",
    "PrivacyProfile": "whosin.guarantees",
    "PureDP": "whosin.guarantees",
    "RenyiDP": "whosin.guarantees",
    "TradeOff": "whosin.guarantees",
    "ZeroConcentratedDP": "whosin.guarantees",
    "Roc": "whosin.roc",
    "Audit": "whosin.auditing",
    "Estimate": "whosin.auditing",
    "Ledger": "whosin.ledger",
    "audit": "whosin.auditing",
    "audit_classifier": "whosin.auditing.models",
    "audit_generator": "whosin.auditing.models.generators",
    "audit_one_run": "whosin.auditing",
    "audit_retrained": "whosin.auditing.runs",
    "audit_synthetic": "whosin.auditing",
    "audit_training": "whosin.auditing.runs",
    "audit_with_references": "whosin.auditing.models",
    "DPSGDAdapter": "whosin.auditing.models",
    "ReferenceModels": "whosin.auditing.models",
    "TorchAdapter": "whosin.auditing.models",
    "TorchModel": "whosin.auditing.models",
    "train_dpsgd": "whosin.auditing.models",
    "from_event": "whosin.guarantees.accountants",
    "from_opacus": "whosin.guarantees.accountants",
    "from_pld": "whosin.guarantees.accountants",
    "ProgressBar": "whosin.parallel.bar",
    "protect": "whosin.protection",
    "report": "whosin.reporting",
}
_MODULES = (
    "auditing",
    "bounds",
    "calibrate",
    "errors",
    "ledger",
    "mechanisms",
    "population",
    "protection",
    "risks",
    "tables",
    "unlearning",
    "worlds",
)

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
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"whosin.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("whosin")
    else:
        raise AttributeError(f"module 'whosin' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
