"""A progress bar for whatever takes ``progress=``: a line on a terminal, an element of the page in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any

PAUSE = 0.1
"""Seconds between two pictures."""
WIDTH = 30
_TOO_EARLY = 0.05
"""Up to this share of the work, the time that it took says too little of the rest."""


def seconds_left(elapsed: float, share: float) -> float | None:
    """Return the time that is left, in proportion; None at the beginning, where nobody can know, and at the end."""
    return elapsed * (1.0 - share) / share if _TOO_EARLY < share < 1.0 else None


class ProgressBar:
    """A bar that every function with an argument ``progress`` moves.

    Nothing is drawn where standard error is neither a terminal nor a notebook, so that logs stay short.

    Parameters
    ----------
    label : str, default "Working"
        What is being done.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> train, holdout, release = (rng.normal(size=(100, 2)) for _ in range(3))
    >>> found = wi.audit_synthetic(train, holdout, release, progress=wi.ProgressBar("Comparing"), rng=0)
    >>> found.verdict.state
    'none found'
    """

    def __init__(self, label: str = "Working") -> None:
        self.label = label
        self._began = self._drawn = time.monotonic() - PAUSE
        self._place: Any = None

    def __call__(self, share: float) -> None:
        """Move the bar to a share of the work, from 0 to 1."""
        now, done = time.monotonic(), min(1.0, max(0.0, float(share)))
        if now - self._drawn < PAUSE and done < 1.0:
            return
        self._drawn = now
        left = seconds_left(now - self._began, done)
        words = f"{self.label}: {100.0 * done:.0f}%" + ("" if left is None else f", about {left:.0f} s left")
        if _in_notebook():
            self._show(words, done)
        elif sys.stderr.isatty():
            bar = "█" * round(WIDTH * done)
            sys.stderr.write(f"\r\x1b[K{bar:·<{WIDTH}} {words}" + ("\n" if done == 1.0 else ""))
            sys.stderr.flush()

    def _show(self, words: str, done: float) -> None:
        from html import escape

        from IPython.display import HTML, display  # type: ignore[import-not-found]

        shown = HTML(f'<progress max="100" value="{100.0 * done:.0f}"></progress> {escape(words)}')
        if self._place is None:
            self._place = display(shown, display_id=True)
        else:
            self._place.update(shown)


def _in_notebook() -> bool:
    """Return whether a notebook shows what is drawn; IPython is there before us if it does."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
