"""Auditing classifiers: what their predictions tell about who was in the training data."""

from whosin.auditing.models.adapters import Adapter, SklearnAdapter
from whosin.auditing.models.attacks import lira, lira_kde, lira_offline, lira_rank, rmia
from whosin.auditing.models.classifier import audit_classifier
from whosin.auditing.models.references import ReferenceModels, audit_with_references

__all__ = [
    "Adapter",
    "ReferenceModels",
    "SklearnAdapter",
    "audit_classifier",
    "audit_with_references",
    "lira",
    "lira_kde",
    "lira_offline",
    "lira_rank",
    "rmia",
]
