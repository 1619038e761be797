"""Everything that one server holds, and what may be done with an audit: shared by the page and the API."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fastapi import Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from whosin.errors import InputError, must_be
from whosin.numerics.rounding import clean
from whosin.parallel.bar import seconds_left
from whosin.web.access import Access, Password
from whosin.web.folders import Folders, is_key, write_json
from whosin.web.history import Entry, History
from whosin.web.jobs import Jobs, TooMany
from whosin.web.measure import look_at, names_of
from whosin.web.models import AuditAnswer, AuditOptions
from whosin.web.questions import Questions
from whosin.web.settings import Settings, private_folder
from whosin.web.tools import Command, Tool, run_command
from whosin.web.uploads import Received, receive
from whosin.web.worker import with_labels

Answer = TypeVar("Answer")

LONGEST_NAME = 80
MOST_COMPARED = 6


class Unknown(Exception):
    """There is no such audit, or it has no such part."""


@dataclass(frozen=True)
class Service:
    """The parts of one server."""

    settings: Settings
    access: Access
    history: History
    folders: Folders
    jobs: Jobs
    questions: Questions
    arriving: set[str] = field(default_factory=set)
    """Keys of the audits whose files are on their way."""

    @classmethod
    def open(cls, settings: Settings, password: Password | None = None) -> Service:
        """Open the private folder and its history."""
        base = private_folder(settings.data_dir)
        history, folders = History(base / "history.sqlite"), Folders(base)
        jobs = Jobs(settings, history, folders)
        limits = settings.limits
        questions = Questions(limits.computing, limits.answer_seconds, limits.memory_bytes)
        return cls(settings, Access(password), history, folders, jobs, questions)

    def close(self) -> None:
        """End the processes and let go of the history."""
        self.questions.close()
        self.jobs.stop()
        self.history.close()

    async def take(self, request: Request) -> AuditAnswer:
        """Receive the files and options of an audit, and queue it."""
        most = self.settings.limits.uploading
        self.jobs.check_room()
        if len(self.arriving) >= most:
            raise TooMany(f"files of {most} audits are on their way already: try again in a moment")
        key = self.folders.new()
        try:
            await run_in_threadpool(self._queue, key, await self._receive(request, key))
        except BaseException:
            self.folders.remove(key)
            raise
        return self.audit(key)

    async def _receive(self, request: Request, key: str) -> Received:
        """Receive a form; its files lie in the folder of the key."""
        limits = self.settings.limits
        self.arriving.add(key)
        try:
            async with asyncio.timeout(limits.upload_seconds):
                return await receive(request, self.folders.of(key), limits.upload_bytes)
        except TimeoutError:
            raise InputError(f"the files took more than {limits.upload_seconds:g} seconds to arrive") from None
        finally:
            self.arriving.discard(key)

    async def answer(self, request: Request, function: Callable[..., Answer], *given: Any, heavy: bool) -> Answer:
        """Return the answer to a question; its helper process is ended when whoever asked has gone."""
        return await waited_for(request, lambda gone: self.questions.answer(function, *given, apart=heavy, gone=gone))

    async def look(self, request: Request) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what the files of a form hold, and what they are called; they are removed at once."""
        key, files = self.folders.new(), {}
        try:
            received = await self._receive(request, key)
            files = received.files
            if not {"train", "records", "scores"} & set(received.files):
                raise InputError("a look needs the training rows, one table with both sides, or scores; got none")
            asked = self._request("", received)
            found = await self.answer(request, look_at, self.folders.of(key), asked, heavy=True)
        except InputError as error:
            raise InputError(with_labels(str(error), files)) from None
        finally:
            self.folders.remove(key)
        return found, names_of(files)

    def _queue(self, key: str, received: Received) -> None:
        kind = _kind(received)
        request = self._request(kind, received)
        write_json(self.folders.of(key) / "request.json", request)
        self.jobs.add(key, request["name"], kind, request["options"], request["files"])

    def _request(self, kind: str, received: Received) -> dict[str, Any]:
        """Return what is handed to a worker."""
        name = clean(received.fields.pop("name", "")).strip()[:LONGEST_NAME]
        try:
            options = AuditOptions.model_validate(received.fields)
        except ValidationError as error:
            raise InputError(in_words(error.errors())) from None
        _check_options(options, kind)
        limits = self.settings.limits
        return {
            "kind": kind,
            "name": name,
            "options": options.model_dump(),
            "files": received.files,
            "rows": limits.rows,
            "columns": limits.columns,
            "memory_bytes": limits.memory_bytes,
        }

    def audit(self, key: str) -> AuditAnswer:
        """Return one audit, or raise Unknown."""
        entry = self.history.get(key) if is_key(key) else None
        if entry is None:
            raise Unknown("there is no such audit")
        return self._answer(entry)

    def audits(self) -> list[AuditAnswer]:
        """Return all audits, the newest first."""
        return [self._answer(entry) for entry in self.history.all()]

    def done(self, keys: Sequence[str]) -> list[AuditAnswer]:
        """Return two to six finished audits, to be compared."""
        unique = list(dict.fromkeys(keys))
        if not 2 <= len(unique) <= MOST_COMPARED:
            raise InputError(f"a comparison needs two to {MOST_COMPARED} different audits, got {len(unique)}")
        found = [self.audit(key) for key in unique]
        for audit in found:
            if audit.summary is None:
                raise InputError(f"a comparison needs audits that are done, got one that is {audit.state}")
        return found

    def file(self, key: str, name: str) -> Path:
        """Return a file that an audit left, or raise Unknown."""
        self.audit(key)
        path = self.folders.of(key) / name
        if not path.is_file():
            raise Unknown("it is not there: the audit is not done, or its time to be kept is over")
        return path

    async def use(self, request: Request, tool: Tool) -> tuple[str, str]:
        """Run the command of a form; its file is removed as soon as it has ended."""
        key = self.folders.new()
        folder = self.folders.of(key)
        try:
            received = await self._receive(request, key)
            command = tool.command(received.fields.pop("command", ""))
            files = {
                role: (folder / f"{role}.{sent['type']}", str(sent["name"])) for role, sent in received.files.items()
            }
            return await waited_for(request, partial(self._run, command, received.fields, files, folder))
        finally:
            self.folders.remove(key)

    def _run(
        self,
        command: Command,
        values: dict[str, str],
        files: dict[str, tuple[Path, str]],
        folder: Path,
        gone: threading.Event,
    ) -> tuple[str, str]:
        with self.questions.place(apart=True, gone=gone):
            return run_command(command, values, files, folder, self.settings.limits.seconds, gone)

    def sample(self) -> AuditAnswer:
        """Queue an audit of sample data, as ``whosin demo`` does it: patients, and a release that repeats some."""
        self.jobs.check_room()
        key = self.folders.new()
        files: dict[str, dict[str, object]] = {}
        for role, table in sample_tables().items():
            path = self.folders.of(key) / f"{role}.csv"
            path.write_text(table, encoding="utf-8")
            files[role] = {"name": f"sample_{role}.csv", "bytes": len(table), "type": "csv"}
        self._queue(key, Received({"name": "sample data", "tolerate": "0.1", "groups": "diagnosis"}, files))
        return self.audit(key)

    def rename(self, key: str, name: str) -> None:
        """Give an audit another name."""
        self.audit(key)
        self.history.rename(key, clean(name).strip()[:LONGEST_NAME])

    def cancel(self, key: str) -> None:
        """End an audit that waits or is at work; what was asked stays in the history."""
        self.audit(key)
        self.jobs.cancel(key)

    def remove(self, key: str) -> None:
        """Remove an audit with its files."""
        self.audit(key)
        self.jobs.remove(key)

    def _answer(self, entry: Entry) -> AuditAnswer:
        share, stage = (
            self.jobs.progress(entry.id) if entry.state == "running" else (float(entry.summary is not None), "")
        )
        left = None if entry.started is None else seconds_left(time.time() - entry.started, share)
        return AuditAnswer.model_validate({**vars(entry), "progress": share, "stage": stage, "seconds_left": left})


async def waited_for(request: Request, work: Callable[[threading.Event], Answer]) -> Answer:
    """Return what the work gives; its helper process is ended when whoever asked has gone."""
    gone = threading.Event()
    task = asyncio.ensure_future(run_in_threadpool(work, gone))
    while not (await asyncio.wait({task}, timeout=0.3))[0]:
        if await request.is_disconnected():
            gone.set()
    return task.result()


def service_of(request: Request) -> Service:
    """Return the service of the server that got a request."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


_KINDS = {
    frozenset({"scores"}): "scores",
    frozenset({"train", "holdout", "synthetic"}): "tables",
    frozenset({"records", "synthetic"}): "tables",
}


def _kind(received: Received) -> str:
    given = frozenset(received.files)
    found = _KINDS.get(given) or _KINDS.get(given - {"reference"} if "synthetic" in given else given)
    if found is not None:
        return found
    if given - {"reference"} == {"train", "synthetic"}:
        from whosin.auditing.releases.copies import NO_HOLDOUT

        raise InputError(NO_HOLDOUT)
    got = ", ".join(received.files) or "none"
    raise InputError(
        "an audit needs the three files train, holdout and synthetic, or records and synthetic, or one file of scores; "
        f"got {got}"
    )


def _check_options(options: AuditOptions, kind: str) -> None:
    if options.promised_delta is not None and options.promised_epsilon is None:
        raise InputError("a promised δ goes with a promised ε")
    if kind == "tables" and options.assignment == "independent trainings":
        raise InputError("assignment must be unknown or random for tables: a release comes from one training")


def in_words(errors: Sequence[Any]) -> str:
    """Return the first thing that is wrong with what came in, in one line."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("query", "body", "path"))
    return clean(f"{place[:80] or 'the request'} {must_be(first)}")


COLUMNS = ("mean radius", "mean texture", "mean smoothness", "mean symmetry")
ROWS = 200


def sample_tables() -> dict[str, str]:
    """Return the three tables of an audit as CSV: Wisconsin diagnostic breast cancer data of scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    data, rng = load_breast_cancer(), np.random.default_rng(1)
    places = [list(data.feature_names).index(name) for name in COLUMNS]
    rows = rng.permutation(len(data.data))[: 2 * ROWS]
    values, labels = data.data[rows][:, places], data.target_names[data.target[rows]]
    copied = rng.integers(ROWS, size=ROWS)
    noise = 0.03 * values.std(axis=0) * rng.standard_normal((ROWS, len(places)))
    noise[: ROWS // 3] = 0.0
    return {
        "train": _csv(values[:ROWS], labels[:ROWS]),
        "holdout": _csv(values[ROWS:], labels[ROWS:]),
        "synthetic": _csv(values[copied] + noise, labels[copied]),
    }


def _csv(values: np.ndarray, labels: np.ndarray) -> str:
    lines = [",".join(("diagnosis", *COLUMNS))]
    lines += [",".join((label, *map(repr, row))) for label, row in zip(labels, values.tolist(), strict=True)]
    return "\n".join(lines) + "\n"
