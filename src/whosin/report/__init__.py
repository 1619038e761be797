"""The report: one self-contained HTML file that a privacy officer can read, sign and send."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from whosin.report.page import report

__all__ = ["report"]


class _Room(ModuleType):
    """Room and function share the name ``whosin.report``: importing the room must not make ``wi.report(…)`` fail."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return report(*args, **kwargs)


sys.modules[__name__].__class__ = _Room
