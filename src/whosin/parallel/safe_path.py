"""Worker processes that do not take a module of the folder that somebody happens to be in for NumPy.

joblib starts its workers as ``python -m …`` and their helper as ``python -c …``, and both look into the current folder
first: a ``numpy.py`` there would run in each of them. The variable ``PYTHONSAFEPATH`` (Python 3.11) stops that. Modules
of the caller are found as before: joblib then gives the workers the caller's own ``sys.path``, which has the script's
folder, and the current one only where Python put it there, as in a notebook.
"""

from __future__ import annotations

import os
import threading

_NAME = "PYTHONSAFEPATH"


class _SafePath:
    """Sets the variable while tasks are out, for workers that start then; the last one out restores it.

    Processes that a task, or another thread, starts meanwhile inherit it.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.before: str | None = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before = os.environ.get(_NAME)
                os.environ[_NAME] = "1"
            self.inside += 1

    def __exit__(self, *reason: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                os.environ.pop(_NAME, None)
                os.environ.update({} if self.before is None else {_NAME: self.before})


safe_path = _SafePath()
