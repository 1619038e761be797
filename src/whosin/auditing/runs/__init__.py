"""Tests of a promise by training: one run in which coins decide who is in."""

from whosin.auditing.runs.canaries import audit_training, mislabelled
from whosin.auditing.runs.one_run import OneRunAudit, OneRunComparison, audit_one_run

__all__ = ["OneRunAudit", "OneRunComparison", "audit_one_run", "audit_training", "mislabelled"]
