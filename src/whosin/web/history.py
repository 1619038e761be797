"""The audits of this server, in one SQLite file: what was asked, how far it is, what came out.

The file is locked for as long as the server lives, so that two servers never share a folder.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from whosin.errors import InputError

ENDED = ("done", "no verdict", "failed", "interrupted")

_TABLE = """
CREATE TABLE IF NOT EXISTS audits (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, options TEXT NOT NULL, files TEXT NOT NULL,
    created REAL NOT NULL, started REAL, finished REAL, state TEXT NOT NULL, error TEXT, summary TEXT,
    has_report INTEGER NOT NULL DEFAULT 0
)
"""


@dataclass(frozen=True)
class Entry:
    """One audit."""

    id: str
    name: str
    kind: str
    """"tables" or "scores"."""
    options: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    """By role: the name that the file had (for display only), its bytes and its type."""
    created: float
    started: float | None
    finished: float | None
    state: str
    """"queued", "running", "done", "no verdict", "failed" or "interrupted"."""
    error: str | None
    summary: Mapping[str, Any] | None
    """The numbers that stay when report and details are removed: no record is named in them."""
    has_report: bool


_COLUMNS = [column.name for column in fields(Entry)]
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM audits"


class History:
    """The table of audits; every method may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._base = sqlite3.connect(path, timeout=1.0, check_same_thread=False, isolation_level=None)
        try:
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("PRAGMA secure_delete = ON")
            self._base.execute("BEGIN EXCLUSIVE")
            self._base.execute(_TABLE)
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            self._base.close()
            if "locked" in str(error):
                raise InputError(
                    f"another server uses {str(path.parent)!r}: stop it, or give another --data-dir"
                ) from None
            raise InputError(f"{str(path)!r} is no history of whosin: {error}") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._base.close()

    def add(
        self, key: str, name: str, kind: str, options: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Add an audit that waits for its turn."""
        self._do(
            "INSERT INTO audits (id, name, kind, options, files, created, state) VALUES (?, ?, ?, ?, ?, ?, 'queued')",
            (key, name, kind, json.dumps(options), json.dumps(files), time.time()),
        )

    def start(self, key: str) -> None:
        """Note that work has begun."""
        self._do("UPDATE audits SET state = 'running', started = ? WHERE id = ?", (time.time(), key))

    def end(
        self,
        key: str,
        state: str,
        *,
        error: str | None = None,
        summary: Mapping[str, Any] | None = None,
        has_report: bool = False,
    ) -> None:
        """Note how it ended."""
        kept = None if summary is None else json.dumps(summary)
        self._do(
            "UPDATE audits SET state = ?, finished = ?, error = ?, summary = ?, has_report = ? WHERE id = ?",
            (state, time.time(), error, kept, int(has_report), key),
        )

    def forget_report(self, key: str) -> None:
        """Note that the report is gone."""
        self._do("UPDATE audits SET has_report = 0 WHERE id = ?", (key,))

    def rename(self, key: str, name: str) -> None:
        """Give an audit another name."""
        self._do("UPDATE audits SET name = ? WHERE id = ?", (name, key))

    def remove(self, key: str) -> None:
        """Remove an audit."""
        self._do("DELETE FROM audits WHERE id = ?", (key,))

    def get(self, key: str) -> Entry | None:
        """Return one audit, or None."""
        found = self._do(f"{_SELECT} WHERE id = ?", (key,))
        return _entry(found[0]) if found else None

    def all(self) -> list[Entry]:
        """Return every audit, the newest first."""
        return [_entry(row) for row in self._do(f"{_SELECT} ORDER BY created DESC, rowid DESC")]

    def count(self, *states: str) -> int:
        """Return the number of audits in these states, or of all."""
        marks = ", ".join("?" for _ in states)
        where = f" WHERE state IN ({marks})" if states else ""
        return int(self._do(f"SELECT COUNT(*) FROM audits{where}", states)[0][0])

    def _do(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._base.execute(statement, values).fetchall()


def _entry(row: tuple[Any, ...]) -> Entry:
    known = dict(zip(_COLUMNS, row, strict=True))
    for name in ("options", "files", "summary"):
        known[name] = None if known[name] is None else json.loads(known[name])
    return Entry(**{**known, "has_report": bool(known["has_report"])})
