"""Auditing: what attackers can learn about who is in the data, measured with honest limits."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from whosin.auditing.measuring.audit import Audit
from whosin.auditing.measuring.band import Band
from whosin.auditing.measuring.compare import Comparison
from whosin.auditing.measuring.estimate import Estimate, TprAtFpr
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.groups import GroupRow, GroupTable
from whosin.auditing.measuring.guesses import OneRunComparison
from whosin.auditing.measuring.individual import Individual
from whosin.auditing.measuring.run import audit, run_audit
from whosin.auditing.measuring.verdict import Verdict
from whosin.auditing.releases.columns import RevealingColumns
from whosin.auditing.releases.copies import Copies, count_copies
from whosin.auditing.releases.release_size import ReleaseSize
from whosin.auditing.releases.sides import Dependence, Drift
from whosin.auditing.releases.synthetic import SyntheticAudit, audit_synthetic

if TYPE_CHECKING:
    from whosin.auditing.models.sequences import token_scores
    from whosin.auditing.runs.one_run import OneRunAudit, audit_one_run

__all__ = [
    "Audit",
    "Band",
    "Comparison",
    "Copies",
    "Dependence",
    "Drift",
    "Estimate",
    "Experiment",
    "GroupRow",
    "GroupTable",
    "Individual",
    "OneRunAudit",
    "OneRunComparison",
    "ReleaseSize",
    "RevealingColumns",
    "SyntheticAudit",
    "TprAtFpr",
    "Verdict",
    "audit",
    "audit_one_run",
    "audit_synthetic",
    "count_copies",
    "run_audit",
    "token_scores",
]


_LATER = {
    "OneRunAudit": "whosin.auditing.runs.one_run",
    "audit_one_run": "whosin.auditing.runs.one_run",
    "token_scores": "whosin.auditing.models.sequences",
}


def __getattr__(name: str) -> Any:
    """Load what audits of models and of runs need only when it is asked for: an audit of a table does without."""
    if name not in _LATER:
        raise AttributeError(f"module 'whosin.auditing' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
