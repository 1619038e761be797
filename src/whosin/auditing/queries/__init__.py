"""Queries: what an attacker asks of a release about one record."""

from whosin.auditing.queries.arrays import ArrayRelease
from whosin.auditing.queries.asking import Answers, Query, ask
from whosin.auditing.queries.tables import TableRelease

__all__ = ["Answers", "ArrayRelease", "Query", "TableRelease", "ask"]
