"""Audits run in processes of their own: bounded in number, time and memory, and none can take the server down.

A thread looks after them. What a worker process has to say it writes to files of the audit's folder: ``progress.json``
on its way, ``outcome.json`` at the end. A process that ends without an outcome has failed, whatever ended it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from whosin.web.folders import Folders, read_json
from whosin.web.history import ENDED, Entry, History
from whosin.web.processes import end
from whosin.web.settings import Settings

_log = logging.getLogger("whosin.web")

TICK = 0.1
AFTER_TROUBLE = 5.0
SWEEP_EVERY = 60.0


class TooMany(Exception):
    """The queue, or the history, is full."""


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    until: float
    said: str | None = None
    """Why it ended, once it has."""


class Jobs:
    """The queue, the processes at work, and the sweeper."""

    def __init__(self, settings: Settings, history: History, folders: Folders) -> None:
        self.settings, self.history, self.folders = settings, history, folders
        self._running: dict[str, _Running] = {}
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._swept = -SWEEP_EVERY

    def start(self) -> None:
        """Say truthfully how the audits of an earlier run ended, and begin."""
        for entry in self.history.all():
            if entry.state not in ENDED:
                self._settle(entry, "interrupted", "the server stopped before this audit was done")
        self.sweep()
        self._thread = threading.Thread(target=self._look_after, name="whosin-jobs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End every process and wait for the thread; what was at work is noted as interrupted."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10.0)
        with self._lock:
            for key, job in self._running.items():
                end(job.process)
                entry = self.history.get(key)
                if entry is not None:
                    self._settle(entry, "interrupted", "the server stopped before this audit was done")
            self._running.clear()

    def check_room(self) -> None:
        """Raise TooMany if no further audit can be taken."""
        if self.history.count("queued") >= self.settings.limits.queued:
            raise TooMany(f"{self.settings.limits.queued} audits wait already: try again when one is done")
        if self.history.count() >= self.settings.limits.audits:
            raise TooMany(f"the history holds {self.settings.limits.audits} audits: remove some first")

    def add(
        self, key: str, name: str, kind: str, options: dict[str, object], files: dict[str, dict[str, object]]
    ) -> None:
        """Queue an audit whose folder has its uploads and its request."""
        with self._lock:
            self.check_room()
            self.history.add(key, name, kind, options, files)

    def cancel(self, key: str) -> None:
        """End an audit that waits or is at work, and keep what was asked."""
        with self._lock:
            entry, job = self.history.get(key), self._running.pop(key, None)
            if job is not None:
                end(job.process)
            if entry is not None and entry.state not in ENDED:
                self._settle(entry, "interrupted", "you cancelled it")

    def remove(self, key: str) -> None:
        """Remove an audit with all its files, and end its process if it is at work."""
        with self._lock:
            job = self._running.get(key)
            if job is not None:
                end(job.process)
                job.said = "it was being removed"
            self.history.remove(key)
            self._running.pop(key, None)
            self.folders.remove(key)

    def progress(self, key: str) -> tuple[float, str]:
        """Return the share of the work that is done, and the name of the stage, by the worker's own account."""
        told = read_json(self.folders.of(key) / "progress.json") or {}
        share = told.get("share")
        done = min(1.0, max(0.0, float(share))) if isinstance(share, int | float) else 0.0
        return done, str(told.get("stage", ""))[:80]

    def sweep(self) -> None:
        """Remove reports and details that have had their time, and folders that belong to no audit."""
        with self._lock:
            self._swept = time.monotonic()
            entries = {entry.id: entry for entry in self.history.all()}
            limits = self.settings.limits
            before = time.time() - 3600.0 * limits.keep_hours
            arriving_since = min(before, time.time() - limits.upload_seconds - SWEEP_EVERY)
            for key in list(self.folders.keys()):
                entry = entries.get(key)
                if entry is None:
                    self._remove_stray(key, arriving_since)
                elif entry.state in ENDED and (entry.finished or entry.created) < before:
                    self.folders.remove(key)
                    self.history.forget_report(key)

    def _remove_stray(self, key: str, before: float) -> None:
        """Remove the folder of an upload that never became an audit; one that may still be arriving is left."""
        with contextlib.suppress(OSError):
            age_limit = before if self._thread is not None else time.time()
            if self.folders.of(key).stat().st_mtime < age_limit:
                self.folders.remove(key)

    def _look_after(self) -> None:
        pause = TICK
        while not self._stop.wait(pause):
            pause = TICK
            with self._lock:
                try:
                    self._collect()
                    self._begin()
                    if time.monotonic() - self._swept > SWEEP_EVERY:
                        self.sweep()
                except Exception:  # a full disk, say: the thread must live to see the next moment
                    _log.exception("could not look after the audits")
                    pause = AFTER_TROUBLE

    def _begin(self) -> None:
        room = self.settings.limits.running - len(self._running)
        waiting = [
            entry
            for entry in (reversed(self.history.all()) if room > 0 else ())
            if entry.state == "queued" and entry.id not in self._running
        ]
        for entry in waiting[:room]:
            try:
                process = self._spawn(self.folders.of(entry.id))
            except OSError as error:
                self._settle(entry, "failed", f"its process could not be started: {error.strerror}")
                continue
            self._running[entry.id] = _Running(process, time.monotonic() + self.settings.limits.seconds)
            self.history.start(entry.id)

    def _spawn(self, folder: Path) -> subprocess.Popen[bytes]:
        with open(folder / "errors.txt", "wb") as errors:
            return subprocess.Popen(
                [*self.settings.worker, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def _collect(self) -> None:
        for key, job in list(self._running.items()):
            ended = _has_ended(job.process)
            late = not ended and time.monotonic() > job.until
            if not ended and not late:
                continue
            code = end(job.process)
            if job.said is None:
                last = _last_line(self.folders.of(key) / "errors.txt")
                job.said = f"it took more than {self.settings.limits.seconds:g} seconds" if late else _why(code, last)
            entry = self.history.get(key)
            assert entry is not None
            self._settle(entry, "failed", job.said)
            # last, so that it is tried again where the outcome could not be noted (a full disk)
            del self._running[key]

    def _settle(self, entry: Entry, state: str, reason: str) -> None:
        """Note the outcome that the worker left, or the given one; the uploads go either way."""
        folder = self.folders.of(entry.id)
        outcome = read_json(folder / "outcome.json")
        self.folders.remove_uploads(entry.id)
        if outcome is None:
            _log.warning("audit %s ended: %s", entry.id, reason)
            self.history.end(entry.id, state, error=reason)
        elif outcome.get("error") is not None:
            self.history.end(entry.id, "failed", error=str(outcome["error"]))
        else:
            has_report = (folder / "report.html").is_file()
            judged = outcome["summary"]["verdict"]["state"] != "no verdict"
            state = "done" if judged else "no verdict"
            self.history.end(entry.id, state, summary=outcome["summary"], has_report=has_report)


def _last_line(path: Path) -> str:
    """Return the last line that a process wrote on its standard error, at most 200 letters of it."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip()[:200] if lines else ""


def _why(code: int, last: str) -> str:
    said = f"; the last it said: {last}" if last else ""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        more = "; the system may have been short of memory" if name == "SIGKILL" else ""
        more = "; it may have needed more memory than it may take" if name == "SIGABRT" else more
        return f"the process of this audit was ended by {name}{more}{said}"
    return f"the process of this audit ended without a result (exit code {code}){said}"


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended; it is not reaped yet, so that its number is still its own."""
    if process.returncode is not None or not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
