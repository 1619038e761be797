"""A file that keeps the results of finished tasks, so that a run that was interrupted loses none of them.

One line per task: the run it belongs to, its number, its result and a hash of them. A line goes to the disk as a whole,
in one write at the end of the file, before its result is used. What a crash left half written has no valid hash and is
passed over, as is damage of any other kind: those tasks are done again. Several runs, also at the same time, may share
a file on a local disk; each reads its own lines.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError

_START = b'\n{"whosin journal": 1, '
"""Every line begins so; the line feed in front ends what a crash left half written."""


def check_seeded(journal: Any, rng: Any) -> None:
    """Refuse a journal of random draws without a seed: no other run would find them."""
    if journal is not None and rng is None:
        raise InputError("rng must be given with a journal, so that another run finds the same draws")


class Journal:
    """The results of one run in a file, created if there is none: arrays of floats, by the number of the task.

    ``run`` is what the results depend on (:func:`whosin.parallel.fingerprint.fingerprint`); lines of other runs are not
    read.
    """

    def __init__(self, path: str | os.PathLike[str], run: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputTypeError(f"journal must be the path of a file, got {type(path).__name__}")
        self.path, self.run = Path(path), run
        self.known: set[int] = set()
        if not self.path.parent.is_dir():
            raise InputError(f"journal must be a file in a directory that exists, got {str(self.path)!r}")
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"journal must be a file, got {str(self.path)!r}, which is a folder, a device or a pipe")
        self._append(b"")
        _keep_name(self.path.parent)
        try:
            with open(self.path, "rb") as file:
                start = file.read(2**12)
        except OSError as error:
            raise self._refused(error) from error
        if not _begins_well(start):
            raise InputError(f"journal {str(self.path)!r} is no journal of whosin; name another file")

    def read(self, tasks: float = math.inf) -> Iterator[tuple[int, Array]]:
        """Yield number and result of the tasks below ``tasks`` that are kept, each once; ``known`` lists them."""
        self.known.clear()
        wanted = self.run.encode()
        with open(self.path, "rb") as file:
            for line in file:
                if wanted not in line[:200]:
                    continue
                number, value = _unpacked(line, self.run)
                if value is not None and 0 <= number < tasks and number not in self.known:
                    self.known.add(number)
                    yield number, value

    def write(self, number: int, value: Array | float) -> None:
        """Keep a result: when this returns it is on the disk."""
        array = np.ascontiguousarray(value, dtype="<f8").reshape(np.shape(value))
        content = {"shape": array.shape, "data": base64.b64encode(array.tobytes()).decode()}
        line = {"run": self.run, "task": number, "hash": _hash(self.run, number, content), **content}
        self._append(_START + json.dumps(line)[1:].encode() + b"\n")

    def _append(self, line: bytes) -> None:
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            try:
                written = os.write(handle, line)
                os.fsync(handle)
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:
            raise self._refused(error) from error
        if written != len(line):
            raise self._refused("it did not take a whole line")

    def _refused(self, reason: Any) -> InputError:
        return InputError(f"journal must be a file that can be written, got {str(self.path)!r}: {reason}")


def _keep_name(folder: Path) -> None:
    """Let the name of a new file survive a power cut, where the system can write a folder to the disk."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _begins_well(content: bytes) -> bool:
    """Whether a file begins with a line of a journal, whole or cut short, and then maybe another."""
    while content:
        alike = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(content, _START, strict=False)))
        if alike in (0, len(_START)):
            return alike > 0
        content = content[alike:]
    return True


def _unpacked(line: bytes, run: str) -> tuple[int, Array | None]:
    try:
        found = json.loads(line)
        number, content = found["task"], {"shape": tuple(found["shape"]), "data": found["data"]}
        if found["run"] != run or found["hash"] != _hash(run, number, content):
            return -1, None
        values = np.frombuffer(base64.b64decode(content["data"]), dtype="<f8").astype(np.float64)
        return int(number), values.reshape(content["shape"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1, None


def _hash(run: str, number: int, content: dict[str, Any]) -> str:
    text = f"{run} {number} {list(content['shape'])} {content['data']}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
