"""What can go wrong with a ledger.

::

    WhosinError
    └── LedgerError       the ledger cannot be read or written, or is not what it was
        └── BudgetError   the release would take the total beyond the budget; nothing was recorded
"""

from __future__ import annotations

from whosin.errors import WhosinError


class LedgerError(WhosinError):
    """The ledger cannot be read or written, or is not what it was. Never shows a password."""


class BudgetError(LedgerError):
    """The release would take the total beyond the budget; nothing was recorded."""
