"""Draw the house: lines of each room, which room imports which, and the way of one audit through them.

``python tools/rooms.py`` prints the section of CONTRIBUTING.md; with ``--write`` it is put there.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "whosin"
BEGIN, END = "<!-- made by tools/rooms.py: begin -->", "<!-- end -->"


def room_of(path: Path) -> str:
    """The first folder, or the file that stands alone."""
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def files() -> list[Path]:
    """All modules of the package but its front."""
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def lines_by_room() -> dict[str, tuple[int, int]]:
    """Files and lines of each room."""
    found: dict[str, list[int]] = {}
    for path in files():
        found.setdefault(room_of(path), []).append(len(path.read_text(encoding="utf-8").splitlines()))
    return {room: (len(counts), sum(counts)) for room, counts in found.items()}


def imports() -> dict[str, set[str]]:
    """For each room those that it imports from, inside functions too."""
    found: dict[str, set[str]] = {room: set() for room in lines_by_room()}
    for path in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            rooms = {name.split(".")[1] for name in names if name.startswith("whosin.")}
            found[room_of(path)] |= rooms & set(found) - {room_of(path)}
    return found


def trace() -> tuple[Counter[tuple[str, str]], set[str], set[tuple[str, str]]]:
    """Audit a small release; return the calls from room to room, the files and the functions on the way."""
    import whosin as wi

    rng = np.random.default_rng(0)
    train, holdout = ({"age": rng.integers(18, 90, 200), "town": rng.choice(list("abc"), 200)} for _ in range(2))
    release = {name: np.concatenate([column[:100], column[50:150]]) for name, column in train.items()}
    crossings: Counter[tuple[str, str]] = Counter()
    passed: set[str] = set()
    called: set[tuple[str, str]] = set()

    def place(frame: FrameType | None) -> Path | None:
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                return path
            frame = frame.f_back
        return None

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event != "call" or not path.is_relative_to(SOURCE):
            return
        passed.add(path.relative_to(SOURCE).as_posix())
        called.add((str(path), frame.f_code.co_qualname))
        if (before := place(frame.f_back)) is not None and room_of(before) != room_of(path):
            crossings[room_of(before), room_of(path)] += 1

    str(wi.audit_synthetic(train, holdout, release, tolerate=0.2, n_jobs=1))  # what is imported on the way is in memory
    sys.setprofile(note)
    try:
        str(wi.audit_synthetic(train, holdout, release, tolerate=0.2, n_jobs=1))
    finally:
        sys.setprofile(None)
    return crossings, passed, called


def section() -> str:
    """The whole section, as Markdown."""
    rooms, arrows = lines_by_room(), imports()
    order = sorted(rooms, key=lambda room: (len(arrows[room]), room))
    table = ["| room | files | lines | imports from |", "|---|---:|---:|---|"]
    for room in order:
        count, lines = rooms[room]
        table.append(f"| `{room}` | {count} | {lines:,} | {', '.join(sorted(arrows[room])) or '-'} |")
    total = sum(lines for _, lines in rooms.values())
    table.append(f"| all | {sum(count for count, _ in rooms.values())} | {total:,} | |")
    crossings, passed, called = trace()
    way = [f"{one} → {other}" for one, other in sorted(crossings)]
    told = (
        f"One audit of a small release (`wi.audit_synthetic` on 200 rows a side) passes {len(passed)} files and "
        f"{len(called)} functions. Calls cross from room to room in {len(way)} ways: {', '.join(way)}."
    )
    return "\n".join([BEGIN, "", *table, "", told, "", END])


def main() -> None:
    """Print the section, or put it into CONTRIBUTING.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put it into CONTRIBUTING.md")
    made = section() if parser.parse_args().write else None
    if made is None:
        print(section())
        return
    page = ROOT / "CONTRIBUTING.md"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    page.write_text(before + made + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
