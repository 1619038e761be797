"""Ending a process with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any


def end(process: subprocess.Popen[Any]) -> int:
    """End a process that leads a group of its own, with that group; wait until it is gone and return its exit code."""
    if hasattr(os, "killpg") and process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return process.wait()
