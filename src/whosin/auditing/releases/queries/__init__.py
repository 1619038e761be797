"""Queries: what an attacker asks of a release about one record."""

from whosin.auditing.measuring.asking import Answers, Query, ask
from whosin.auditing.releases.queries.arrays import ArrayRelease
from whosin.auditing.releases.queries.tables import TableRelease

__all__ = ["Answers", "ArrayRelease", "Query", "TableRelease", "ask"]
