"""What polars prints when it stumbles over a damaged file: a command shows one line of its own instead.

The lines come from polars' own threads, straight to the process's standard error. Only a process that is ours alone,
the command line's, turns that away for the moment of reading; a library must not.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

_hidden = False


def hide_panics() -> None:
    """From now on this process shows none of them."""
    global _hidden
    _hidden = True


@contextlib.contextmanager
def without_panics(ending: str) -> Iterator[None]:
    """Turn standard error away while a file with this ending is read, where that was asked for.

    Not for Parquet: where its values take more memory than there is, polars ends the process at once, and then its
    words are the only ones.
    """
    if not _hidden or ending == ".parquet" or sys.stderr is None:
        yield
        return
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # there is no standard error
        yield
        return
    try:
        sys.stderr.flush()
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
