"""Receiving files: counted while they stream to the private folder, and cut off at the limit.

The form parser of the framework spools whole files to the system's folder for temporary ones before anybody can object,
so the parts are taken from the parser below it as they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from whosin.errors import InputError
from whosin.numerics.rounding import clean
from whosin.web.file_types import HEAD, kind_of

ROLES = ("train", "holdout", "synthetic", "reference", "scores", "records", "candidates", "requested")
MOST_FILES = 4
MOST_FIELDS = 40
MOST_PARTS = 50
FIELD_BYTES = 4_096
HEADER_BYTES = 4_096
SHOWN_NAME = 100
DRAIN_SECONDS = 5.0


class TooLarge(Exception):
    """A file, or the request, exceeds its limit."""


@dataclass
class Received:
    """What a form brought."""

    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, dict[str, object]] = field(default_factory=dict)
    """By role: shown name, bytes, type."""


@dataclass
class _Part:
    name: str = ""
    shown: str | None = None
    """Name of the file as sent, cleaned for display; None for a plain field."""
    data: bytearray = field(default_factory=bytearray)
    """Value of a field, or the first bytes of a file."""
    size: int = 0


class _Receiver:
    """The parser's callbacks; file bytes go to ``<role>.part`` at once."""

    def __init__(self, folder: Path, upload_bytes: int) -> None:
        self.folder, self.upload_bytes = folder, upload_bytes
        self.received = Received()
        self.finished = False
        self._part = _Part()
        self._parts = 0
        self._headers: dict[bytes, bytes] = {}
        self._name, self._value, self._header_bytes = b"", b"", 0
        self._file: IO[bytes] | None = None

    def on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise InputError(f"the form must have at most {MOST_PARTS} parts")
        self._part, self._headers, self._header_bytes = _Part(), {}, 0
        self._name, self._value = b"", b""

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += self._header(data[start:end])

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += self._header(data[start:end])

    def _header(self, data: bytes) -> bytes:
        self._header_bytes += len(data)
        if self._header_bytes > HEADER_BYTES:
            raise InputError(f"the form must have headers of at most {HEADER_BYTES} bytes")
        return data

    def on_header_end(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name, self._value = b"", b""

    def on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        given = options.get(b"filename")
        self._part = _Part(name, None if given is None else _shown(given))
        if given is None:
            if name in self.received.fields or len(self.received.fields) >= MOST_FIELDS:
                raise InputError(
                    f"the form must have each field once and at most {MOST_FIELDS}, got {clean(name)[:80]!r}"
                )
            return
        if name not in ROLES:
            raise InputError(f"the form must have files named {', '.join(ROLES)}, got {clean(name)[:80]!r}")
        if name in self.received.files or len(self.received.files) >= MOST_FILES:
            raise InputError(f"the form must have each file once and at most {MOST_FILES}, got one more: {name}")
        path = self.folder / f"{name}.part"
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        part, piece = self._part, data[start:end]
        part.size += len(piece)
        if part.shown is None:
            part.data += piece
            if part.size > FIELD_BYTES:
                raise TooLarge(
                    f"the form must have fields of at most {FIELD_BYTES} bytes, got more in {clean(part.name)[:80]!r}"
                )
            return
        if part.size > self.upload_bytes:
            raise TooLarge(f"{part.name} must be a file of at most {self.upload_bytes / 1e6:g} MB, got a larger one")
        if len(part.data) < HEAD:
            part.data += piece[: HEAD - len(part.data)]
        assert self._file is not None
        self._file.write(piece)

    def on_part_end(self) -> None:
        part = self._part
        if part.shown is None:
            self.received.fields[part.name] = part.data.decode("utf-8", "replace")
            return
        assert self._file is not None
        self._file.close()
        self._file = None
        path = self.folder / f"{part.name}.part"
        if not part.size and not part.shown:
            # A file field that the visitor left empty.
            path.unlink()
            return
        kind = kind_of(bytes(part.data), part.name)
        path.rename(self.folder / f"{part.name}.{kind}")
        self.received.files[part.name] = {"name": part.shown or part.name, "bytes": part.size, "type": kind}

    def on_end(self) -> None:
        self.finished = True

    def close(self) -> None:
        """Close a file that was cut off."""
        if self._file is not None:
            self._file.close()


async def receive(request: Request, folder: Path, upload_bytes: int) -> Received:
    """Return the fields of a multipart form; its files lie in the folder, under the names of their roles.

    Raises
    ------
    TooLarge
        As soon as a file or the whole request exceeds its limit; what follows is read and thrown away for a while,
        so that a browser hears the answer.
    InputError
        For what is no such form, unknown or repeated files, and files of other types.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 1 <= len(boundary) <= 200:
        raise InputError("an audit needs a form with files (multipart/form-data)")
    receiver = _Receiver(folder, upload_bytes)
    most = MOST_FILES * upload_bytes + (MOST_FIELDS + MOST_FILES) * (FIELD_BYTES + HEADER_BYTES)
    stream = request.stream()
    try:
        await _feed(stream, receiver, boundary, most)
    except FormParserError:
        raise InputError("the form is damaged") from None
    except (InputError, TooLarge):
        await _drain(stream)
        raise
    finally:
        receiver.close()
    if not receiver.finished:
        raise InputError("the form ends too early")
    return receiver.received


async def _feed(stream: AsyncIterator[bytes], receiver: _Receiver, boundary: bytes, most: int) -> None:
    heard = {name: getattr(receiver, name) for name in dir(receiver) if name.startswith("on_")}
    parser = MultipartParser(boundary, heard)  # type: ignore[arg-type]
    total = 0
    async for chunk in stream:
        total += len(chunk)
        if total > most:
            raise TooLarge(f"an audit must be at most {most / 1e6:g} MB in all, got more")
        await run_in_threadpool(parser.write, chunk)


async def _drain(stream: AsyncIterator[bytes]) -> None:
    """Read on for a while without keeping anything: a browser that is still sending would not hear the answer."""
    with contextlib.suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in stream:
                pass


def _shown(given: bytes) -> str:
    """Return the last part of a file's name as sent: it is shown, escaped, and never used as a path."""
    name = given.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
    return clean(name)[:SHOWN_NAME]
