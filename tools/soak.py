"""Wear the house down for an hour, with new seeds each time, and keep what was seen in benchmarks/results/soak.json.

    python tools/soak.py --minutes 60            # make soak

Five parts share the time: the page under load with kills and a full disk (a small tmpfs where this user may mount one;
without it the disk does not fill), many writers of a ledger on SQLite and, where its server is installed, PostgreSQL,
writers that are killed, the fuzzers, and property tests with new examples. Any failure ends with exit code 1; its
output is printed, with the seed that brings it back.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "soak.json"
PROPERTIES = ("numerics", "guarantees", "tables", "mechanisms", "worlds", "test_roc.py", "test_risks.py")
SHARES = {"page": 0.3, "ledger": 0.15, "killed writers": 0.15, "fuzzers": 0.25, "properties": 0.15}
Outcome = tuple[str, subprocess.CompletedProcess[str]]


def run(*command: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module or script with one thread, and return what it said."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **variables}
    return subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)


def page(seed: int, seconds: float) -> Outcome:
    """Besiege the page on a small disk."""
    with tempfile.TemporaryDirectory(prefix="whosin-soak-") as folder:
        mounted = (
            shutil.which("mount") is not None
            and not subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", folder], capture_output=True
            ).returncode
        )
        try:
            done = run("besieged_page.py", folder, str(min(seconds, 120.0)), str(seed), cwd=ROOT / "tests" / "web")
        finally:
            if mounted:
                subprocess.run(["umount", folder], check=True)
    return ("on a small disk" if mounted else "on a disk that does not fill"), done


def ledger(seed: int, seconds: float) -> Outcome:
    """Many writers at once, on every database that there is."""
    return "", run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ledger/test_writers.py")


def killed_writers(seed: int, seconds: float) -> Outcome:
    """Kill the writers of one kind of file at moments of this seed."""
    sys.path.insert(0, str(ROOT / "tests"))
    from killed_writers import SCENARIOS

    name = random.Random(seed).choice(sorted(SCENARIOS))
    with tempfile.TemporaryDirectory(prefix="whosin-soak-") as folder:
        return name, run("tests/killed_writers.py", name, folder, str(seed))


def fuzzers(seed: int, seconds: float) -> Outcome:
    """Look for a new input of one target."""
    names = run("-m", "tests.fuzz", "--list").stdout.split()
    name = random.Random(seed).choice(names)
    return name, run("-m", "tests.fuzz", name, "--seconds", "20", "--seed", str(seed))


def properties(seed: int, seconds: float) -> Outcome:
    """Draw new examples for one room."""
    room = random.Random(seed).choice(PROPERTIES)
    options = ("-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}")
    return room, run("-m", "pytest", *options, f"tests/{room}", HYPOTHESIS_PROFILE="quick")


PARTS: dict[str, Callable[[int, float], Outcome]] = {
    "page": page,
    "ledger": ledger,
    "killed writers": killed_writers,
    "fuzzers": fuzzers,
    "properties": properties,
}


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last thing that a part said."""
    return (done.stdout.strip().splitlines() or [""])[-1].replace(f"{ROOT}/", "")


def main() -> None:
    """Give every part its share of the time, in turns of chance, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="of everything; a new one by default")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    chance, began, failed = random.Random(seed), time.monotonic(), 0
    parts: dict[str, dict[str, object]] = {}
    for name, share in SHARES.items():
        until = time.monotonic() + 60.0 * options.minutes * share
        rounds: list[dict[str, object]] = []
        while (left := until - time.monotonic()) > 0:
            one = chance.randrange(2**31)
            what, done = PARTS[name](one, left)
            rounds.append({"seed": one, "what": what, "said": last_line(done), "ok": done.returncode == 0})
            if done.returncode:
                failed += 1
                print(
                    f"{name} {what}, seed {one}: exit code {done.returncode}", done.stdout[-3000:], done.stderr[-3000:]
                )
        wrong = [one for one in rounds[:-10] if not one["ok"]]
        parts[name] = {
            "rounds": len(rounds),
            "failed": sum(not one["ok"] for one in rounds),
            "failed or last": [*wrong, *rounds[-10:]],
        }
        print(f"{name}: {len(rounds)} rounds, {parts[name]['failed']} failed", flush=True)
    result = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "seed": seed,
        "failed": failed,
        "parts": parts,
    }
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
