"""Auditing: what attackers can learn about who is in the data, measured with honest limits."""

from whosin.auditing.band import Band
from whosin.auditing.compare import Comparison
from whosin.auditing.copies import Copies, count_copies
from whosin.auditing.estimate import Estimate, TprAtFpr
from whosin.auditing.experiment import Experiment
from whosin.auditing.groups import GroupRow, GroupTable
from whosin.auditing.heuristics import ThresholdAttack, monte_carlo_attack, threshold_attack
from whosin.auditing.individual import Individual
from whosin.auditing.one_run import OneRunAudit, OneRunComparison, audit_one_run
from whosin.auditing.release_size import ReleaseSize
from whosin.auditing.result import Audit
from whosin.auditing.run import audit, run_audit
from whosin.auditing.sides import Dependence, Drift
from whosin.auditing.synthetic import SyntheticAudit, audit_synthetic
from whosin.auditing.verdict import Verdict

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
    "SyntheticAudit",
    "ThresholdAttack",
    "TprAtFpr",
    "Verdict",
    "audit",
    "audit_one_run",
    "audit_synthetic",
    "count_copies",
    "monte_carlo_attack",
    "run_audit",
    "threshold_attack",
]
