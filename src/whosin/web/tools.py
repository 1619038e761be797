"""Commands as forms: the page runs the same command in a process of its own, and shows what it prints."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from whosin.errors import InputError
from whosin.web.processes import end

MOST_LETTERS = 20_000
"""Of what a command prints."""


@dataclass(frozen=True)
class Field:
    """One option of a command."""

    name: str
    """The option, without the dashes."""
    label: str
    hint: str = ""
    kind: str = "text"
    """"text", "number" or "file"."""
    default: str = ""
    required: bool = False
    positional: bool = False
    """Whether it is typed without the name of an option."""
    folded: str = ""
    """Heading of what it is folded under, if it is one that few people need."""

    @property
    def role(self) -> str:
        """What a file is uploaded as."""
        return self.name if self.name in ("candidates", "requested") else "records"


@dataclass(frozen=True)
class Command:
    """A command with the options that the form asks for."""

    words: tuple[str, ...]
    about: str
    fields: tuple[Field, ...]
    writes: str = ""
    """Option that names the file that the command writes, if it writes one."""

    @property
    def name(self) -> str:
        """The command as it is typed."""
        return " ".join(self.words)

    @property
    def folds(self) -> dict[str, tuple[Field, ...]]:
        """The fields by the heading that they are folded under; those that everybody sees under ""."""
        headings = dict.fromkeys(("", *(field.folded for field in self.fields)))
        return {heading: tuple(each for each in self.fields if each.folded == heading) for heading in headings}


@dataclass(frozen=True)
class Tool:
    """One tab: a title, a sentence and one or more commands."""

    title: str
    about: str
    commands: tuple[Command, ...]

    def command(self, name: str) -> Command:
        """Return the command of this name."""
        for found in self.commands:
            if found.name == name:
                return found
        raise InputError(f"command must be one of {', '.join(each.name for each in self.commands)}, got {name[:60]!r}")


def run_command(
    command: Command,
    values: Mapping[str, str],
    files: Mapping[str, tuple[Path, str]],
    folder: Path,
    seconds: float,
    gone: threading.Event,
) -> tuple[str, str]:
    """Run a command with the values of its form and return how it is typed, and what it printed.

    ``files`` has by role where a file lies, and what it was called. The command is ended once ``gone`` is set: then
    nobody waits for it.

    Values travel as ``--option=value``, so that none can pass for an option; options that the form does not have are
    refused, and files are ours.
    """
    unknown = set(values) - {field.name for field in command.fields}
    if unknown:
        raise InputError(f"the form of {command.name} has no field {sorted(unknown)[0][:60]!r}")
    real, typed, last = list(command.words), ["whosin", *command.words], list[str]()
    for field in command.fields:
        value = values.get(field.name, "").strip()
        if field.kind == "file":
            if field.role not in files:
                if field.required:
                    raise InputError(f"{field.label} must be a file, got none")
                continue
            before = "" if field.positional else f"--{field.name}="
            place, called = files[field.role]
            real, typed = [*real, f"{before}{place}"], [*typed, f"{before}{called}"]
        elif value and field.positional:
            typed, last = [*typed, value], ["--", value]
        elif value and value != field.default:
            real, typed = [*real, f"--{field.name}={value}"], [*typed, f"--{field.name}", value]
        elif not value and field.required:
            raise InputError(f"{field.label} must be given")
    out = folder / "out.json"
    if command.writes:
        real, typed = [*real, f"--{command.writes}={out}"], [*typed, f"--{command.writes}", "out.json"]
    code, printed, complaint = _run([sys.executable, "-P", "-m", "whosin", *real, *last], folder, seconds, gone)
    if code not in (0, 3):
        raise InputError(complaint.rpartition("Error: ")[2].strip()[-1_000:] or f"exit code {code}")
    written = f"\n\n{out.read_text(encoding='utf-8')}" if command.writes and out.is_file() else ""
    shown = printed.replace(f"Written to {out}.", "").strip() + written
    return shlex.join(typed), shown[:MOST_LETTERS]


def _run(line: list[str], folder: Path, seconds: float, gone: threading.Event) -> tuple[int, str, str]:
    """Run a command for people, as wide as the page shows it, and return its exit code and what it printed."""
    process = subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "COLUMNS": "96", "NO_COLOR": "1"}, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + seconds
    while True:
        try:
            printed, complaint = process.communicate(timeout=0.2)
            return process.returncode, printed, complaint
        except subprocess.TimeoutExpired:
            if gone.is_set() or time.monotonic() > until:
                end(process)
                raise InputError(
                    f"this took more than {seconds:g} seconds: use the command line for larger data"
                ) from None
