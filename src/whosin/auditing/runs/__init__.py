"""Tests of a promise by training: one run in which coins decide who is in, or many."""

from whosin.auditing.measuring.guesses import OneRunComparison
from whosin.auditing.runs.canaries import audit_training, mislabelled
from whosin.auditing.runs.one_run import OneRunAudit, audit_one_run
from whosin.auditing.runs.retrained import ReleaseExposure, RetrainedAudit, RetrainedGroup, RetrainedGroups
from whosin.auditing.runs.retrained_people import RetrainedIndividual
from whosin.auditing.runs.retraining import audit_retrained

__all__ = [
    "OneRunAudit",
    "OneRunComparison",
    "ReleaseExposure",
    "RetrainedAudit",
    "RetrainedGroup",
    "RetrainedGroups",
    "RetrainedIndividual",
    "audit_one_run",
    "audit_retrained",
    "audit_training",
    "mislabelled",
]
