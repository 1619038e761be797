"""Worker processes that end with the process that started them, also where that was killed and could tell nobody."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

PAUSE = 0.5
"""Seconds between two looks."""
_watched: set[int] = set()


def end_with(parent: int) -> None:
    """End this process as soon as ``parent``, which started it, is gone; nothing in any other process.

    A worker in the middle of a task would go on to its end otherwise, for nobody; and one whose first task arrives
    after the end of the parent would wait minutes for another, as one that never gets a task does. On Windows a process
    does not see that its parent is gone, and goes on.
    """
    if os.getppid() == parent:
        if parent not in _watched:
            _watched.add(parent)
            threading.Thread(target=_watch, args=(parent,), name="whosin-orphan", daemon=True).start()
    elif os.getpid() != parent and "loky" in type(multiprocessing.current_process()).__module__ and os.name != "nt":
        os._exit(1)  # loky's workers are children of the process that gives the tasks, so it ended before this one came


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os._exit(1)
