"""A file that keeps an unfinished training, whole or not at all.

It holds the state after a hash of it: torch reads weights with wrong bits without complaint.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any

import torch

from whosin.errors import InputError

__all__ = ["digest", "read", "write"]

_DIGEST = hashlib.sha256().digest_size


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
    if not path.exists():
        return None
    try:
        content = path.read_bytes()
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST] or content[_DIGEST:][:2] != b"PK":
            raise ValueError("it is damaged, or something else")
        state: dict[str, Any] = torch.load(io.BytesIO(content[_DIGEST:]), weights_only=True, map_location="cpu")
        found = state["key"]
    except Exception as error:
        raise InputError(f"checkpoint must be a file of an earlier fit, got {str(path)!r}: {error}") from error
    if key is not None and found != key:
        raise InputError(
            f"checkpoint must be the file of the same training, but {str(path)!r} has other data, settings or seed"
        )
    return state


def write(path: Path, state: dict[str, Any]) -> None:
    """Keep a state; a crash at any moment leaves the old file or the new one."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(draft, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"checkpoint must be a path that can be written, got {str(path)!r}: {error}") from error
