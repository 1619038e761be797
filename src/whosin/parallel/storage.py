"""What is kept on a disk beside journals: files that are there whole or not at all, and the user's own folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Give an empty file beside the path, and move it there in the end; it goes where the block raises.

    The content is on the disk before the name is: a crash or a power cut leaves the old file or the new one.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield draft
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def user_folder() -> Path:
    """Return the folder of the user for whosin's data, by the habits of the system."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "whosin"
