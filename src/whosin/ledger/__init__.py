"""The ledger of releases: what went out, from which data, under which promise, and what all of it promises together."""

from whosin.errors import BudgetError, LedgerError
from whosin.guarantees.composition import Composition, compose
from whosin.ledger.book import Ledger, Verification
from whosin.ledger.entries import Entry
from whosin.ledger.totals import Budget, Total

__all__ = [
    "Budget",
    "BudgetError",
    "Composition",
    "Entry",
    "Ledger",
    "LedgerError",
    "Total",
    "Verification",
    "compose",
]
