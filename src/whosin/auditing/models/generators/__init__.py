"""Audits of generative models, by what they give out and by what they generate."""

from whosin.auditing.models.generators.audit import audit_generator

__all__ = ["audit_generator"]
