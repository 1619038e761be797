"""A file that keeps a training of a generative model, whole or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from whosin.errors import InputError
from whosin.training.checkpoint import read_state, write_state

__all__ = ["digest", "read", "write"]


def digest(*parts: Any) -> str:
    """Return the SHA-256 of settings and of the bytes of arrays."""
    total = hashlib.sha256()
    for part in parts:
        total.update(memoryview(part).cast("B") if hasattr(part, "dtype") else repr(part).encode())
        total.update(b"\0")
    return total.hexdigest()


def read(path: Path, key: str | None = None) -> dict[str, Any] | None:
    """Return what an earlier run left, or None if there is no file.

    Raises
    ------
    InputError
        If the file is no checkpoint, or damaged, or (with a key) one of another training.
    """
    try:
        state = read_state(path)
        found = None if state is None else state["key"]
    except Exception as error:
        raise InputError(f"checkpoint must be a file of an earlier fit, got {str(path)!r}: {error}") from error
    if state is not None and key is not None and found != key:
        raise InputError(
            f"checkpoint must be the file of the same training, but {str(path)!r} has other data, settings or seed"
        )
    return state


def write(path: Path, state: dict[str, Any]) -> None:
    """Keep a state; a crash at any moment leaves the old file or the new one."""
    write_state(path, state, name="checkpoint")
