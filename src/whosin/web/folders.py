"""The folder of each audit: uploads, progress, outcome, report. Names are ours; nothing a visitor sends is a path."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whosin.parallel.storage import whole_file

_KEY = re.compile(r"[0-9a-f]{32}")


class Folders:
    """Folders with random names inside the private one."""

    def __init__(self, base: Path) -> None:
        self.base = base / "audits"
        self.base.mkdir(mode=0o700, exist_ok=True)

    def new(self) -> str:
        """Make a folder and return its key."""
        key = secrets.token_hex(16)
        self.of(key).mkdir(mode=0o700)
        return key

    def of(self, key: str) -> Path:
        """Return the folder of a key that we made."""
        if not is_key(key):
            raise ValueError(key)
        return self.base / key

    def keys(self) -> Iterator[str]:
        """Return the keys of the folders that are there."""
        return (path.name for path in self.base.iterdir() if is_key(path.name))

    def remove(self, key: str) -> None:
        """Remove a folder with everything in it."""
        shutil.rmtree(self.of(key), ignore_errors=True)

    def remove_uploads(self, key: str) -> None:
        """Remove what was uploaded and what the work left behind; outcome, report and details stay."""
        kept = {"outcome.json", "report.html", "details.json"}
        folder = self.of(key)
        if folder.is_dir():
            for path in folder.iterdir():
                if path.name not in kept:
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def is_key(text: str) -> bool:
    """Return whether the text could be a key of ours."""
    return _KEY.fullmatch(text) is not None


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of which no reader sees half."""
    with whole_file(path) as draft:
        draft.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what a file says, or None where there is none or it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
