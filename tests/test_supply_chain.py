"""What is installed is what was pinned, and nothing is fetched at run time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path: Path) -> dict[str, tuple[str, int]]:
    """Name → (version, number of hashes)."""
    found: dict[str, tuple[str, int]] = {}
    text = "\n".join(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    for entry in re.split(r"(?<!\\)\n", text):
        if entry.strip():
            head, *rest = entry.replace("\\\n", " ").split()
            name, version = head.split("==")
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", part) for part in rest), head
            found[normal(name)] = (version, len(rest))
    return found


CONSTRAINTS = pins(ROOT / "constraints.txt")


def test_there_is_a_lock_for_each_environment():
    assert [path.stem for path in LOCKS] == ["demo", "dev", "fuzz", "mutate", "serve", "tools"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_pin_has_hashes_and_is_the_version_of_the_constraints(lock):
    entries = pins(lock)
    assert entries
    for name, (version, count) in entries.items():
        assert count >= 1, f"{name} in {lock.name} has no hash: make lock"
        assert CONSTRAINTS[name][0] == version, f"{name} differs from constraints.txt: make lock"


def test_the_demo_needs_a_part_of_what_the_tests_need():
    demo, dev = pins(ROOT / "requirements/demo.txt"), pins(ROOT / "requirements/dev.txt")
    assert demo.items() <= dev.items()
    assert not {"torch", "fastapi", "sqlalchemy", "dask", "pytest"} & set(demo)


def test_torch_is_pinned_and_in_no_lock():
    assert CONSTRAINTS["torch"] == ("2.13.0", 0)
    assert all("torch" not in pins(lock) for lock in LOCKS)


NO_NETWORK = """
import os, socket, sys

def hook(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        address = arguments[1] if event != "socket.getaddrinfo" else arguments[0]
        if not isinstance(address, (str, bytes)) or event == "socket.getaddrinfo":
            os.write(2, f"network: {event} {address}".encode())
            os._exit(86)

sys.addaudithook(hook)
if len(sys.argv) > 1 and sys.argv[1] == "--try":
    socket.create_connection(("127.0.0.1", 9), timeout=1)
from whosin.cli import main
main()
"""


def run_without_network(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", NO_NETWORK, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_the_trap_catches_a_connection(tmp_path):
    assert run_without_network("--try", cwd=tmp_path).returncode == 86


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "--epsilon", "8", "--report", "out.html"),
        ("calibrate", "--accuracy", "0.6"),
        ("demo", "--report", "out.html"),
        ("deletions", "--epsilon", "1", "--inclusion", "0.01", "--threshold", "0.8"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_work_with_the_network_cut(tmp_path, arguments):
    done = run_without_network(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if "--report" in arguments:
        page = (tmp_path / "out.html").read_text(encoding="utf-8")
        assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//|@import|url\(\s*["']?(?:https?:)?//""", page)
