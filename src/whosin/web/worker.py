"""One audit in a process of its own: ``python -m whosin.web.worker FOLDER``.

Reads ``request.json``, writes ``progress.json`` on the way and ``outcome.json`` at the end, with ``report.html`` and
``details.json`` beside it. Whoever started it holds the other end of its standard input: when that closes, the server
is gone, and the process ends at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from whosin.errors import WhosinError
from whosin.numerics.rounding import clean
from whosin.web.folders import read_json, write_json
from whosin.web.measure import READ, measure

PAUSE = 0.2
"""Seconds between two notes of progress."""
STAGES = (
    (READ, "Reading the files"),
    (0.01, "Preparing to compare (some seconds for the first audit on a machine)"),
    (0.55, "Comparing every record with the release"),
    (0.64, "Comparing the two sides without the release"),
    (0.8, "Looking for the strongest attack"),
    (0.95, "Looking at people, groups and sizes"),
    (2.0, "Writing the report"),
)
"""Up to which share of the work each stage lasts."""


def main(folder: Path) -> int:
    """Run the audit of a folder and return the exit code."""
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    request = read_json(folder / "request.json")
    if request is None:
        return 2
    limit_memory(int(request["memory_bytes"]))
    try:
        _run(folder, request)
    except MemoryError:
        _fail(folder, f"it needed more than {request['memory_bytes'] / 1e9:.3g} GB of memory")
    except (WhosinError, TypeError) as error:
        _fail(folder, with_labels(str(error), request["files"]))
    return 0


def limit_memory(count: int) -> None:
    """Limit the address space of this process, where the system can (not on Windows, in part on macOS)."""
    try:
        import resource
    except ImportError:
        return
    for kind, limit in ((resource.RLIMIT_AS, count), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))


def _run(folder: Path, request: dict[str, Any]) -> None:
    summary, details, report = measure(folder, request, _progress_to(folder / "progress.json"))
    (folder / "report.html").write_text(report, encoding="utf-8")
    write_json(folder / "details.json", details)
    write_json(folder / "outcome.json", {"error": None, "summary": summary})


LABELS = {
    "columns": "“Columns to use”", "ignore": "“Columns to leave out”", "keep": "“Columns to compare all the same”",
    "categories": "“Columns of labels”", "groups": "“Groups”", "person": "“Person column”",
    "prior": "“Suspected beforehand”", "tolerate": "“Tolerated advantage”", "confidence_level": "“Confidence”",
    "member_column": "“Column of the truth”", "member_value": "“Word for members”", "separator": "“Separator”",
    "encoding": "“Encoding”", "decimal": "“Decimal sign”", "missing": "“Missing cells”",
    "header": "“Names above the rows”", "skip_lines": "“Lines to leave out”",
    "train": "the training rows", "holdout": "the held-out rows", "synthetic": "the rows to be released",
    "reference": "the reference rows", "records": "the table with both sides",
}  # fmt: skip
"""What the form calls the arguments of the library."""


def with_labels(message: str, files: Mapping[str, Any] | None = None) -> str:
    """Return an error in the words of the form, with the names that the files had."""
    for role, file in (files or {}).items():
        message = message.replace(f"{role}.{file['type']}", clean(str(file["name"])))
    message = message.replace("header=False", "header=set to none")
    known = "|".join(LABELS)
    named = rf"(?:--({known.replace('_', '-')})\b|\b({known})=(?:\[\.\.\.\])?) ?"
    shown = re.sub(named, lambda found: f"{LABELS[(found[1] or found[2]).replace('-', '_')]} ", message).strip()
    word, space, rest = shown.partition(" ")
    return f"{LABELS.get(word, word)}{space}{rest}" if rest.startswith(("must ", "is needed", "has ")) else shown


def _fail(folder: Path, reason: str) -> None:
    write_json(folder / "outcome.json", {"error": reason})


def stage_of(share: float) -> str:
    """Return what is done at this share of the work."""
    return next(name for end, name in STAGES if share < end)


def _progress_to(path: Path) -> Callable[[float], None]:
    last = -PAUSE

    def note(share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PAUSE or share >= 1.0:
            last = now
            write_json(path, {"share": float(share), "stage": stage_of(share)})

    return note


def _end_with_the_server() -> None:
    # not through sys.stdin: the interpreter aborts if it ends while a thread holds that
    while os.read(0, 4096):
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
