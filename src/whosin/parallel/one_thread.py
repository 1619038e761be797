"""Numerical libraries on one thread: on more, they add up in another order."""

from __future__ import annotations

import sys
import threading
from typing import Any


class _OneThread:
    """Holds numerical libraries to one thread while tasks run in this process, in whichever threads.

    BLAS has one setting for all threads: the first task in sets it, the last one out restores it. OpenMP has one for
    each thread.
    """

    def __init__(self) -> None:
        self.lock, self.tasks, self.modules = threading.Lock(), 0, 0
        self.controller: Any = None
        self.limits: list[Any] = []
        self.own = threading.local()

    def __enter__(self) -> None:
        import scipy.linalg  # noqa: F401 (its BLAS is another one than NumPy's: a task that loads it comes too late)
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

        with self.lock:
            new = self.modules != len(sys.modules)  # looking for libraries takes 10 ms: only where some may be new
            if new:
                self.controller, self.modules = ThreadpoolController(), len(sys.modules)
            if new or self.tasks == 0:
                _release_openblas()
                self.limits.append(self.controller.select(user_api="blas").limit(limits=1))
            openmp = self.controller.select(user_api="openmp").limit(limits=1)
            self.own.stack = [*getattr(self.own, "stack", []), openmp]
            self.tasks += 1  # last: an interrupt before this leaves nothing but a limit, which the next task takes over

    def __exit__(self, *reason: object) -> None:
        self.own.stack.pop().restore_original_limits()
        with self.lock:
            self.tasks -= 1
            if self.tasks == 0:
                _release_openblas()
                while self.limits:
                    self.limits.pop().restore_original_limits()
                _release_openblas()


def _release_openblas() -> None:
    """Let any thread set OpenBLAS: recent versions of threadpoolctl ignore all but the first that did."""
    import threadpoolctl

    release = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


one_thread = _OneThread()
