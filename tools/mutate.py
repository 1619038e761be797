"""Change one thing at a time in the code that carries proofs, and see whether a test notices (mutmut).

    python tools/mutate.py                       # 60 changes a room by chance, kept in benchmarks/results/mutation.json
    python tools/mutate.py --room numerics --count 200 --seed 7
    python tools/mutate.py --again               # the survivors of the last run, after tests were added

mutmut makes every change it knows (comparisons, signs, numbers, arguments, words) in a copy of the tree under
.mutants/; a seeded sample of them is tried, each with the tests that pass through the changed function. A change of a
decorated function (properties, compiled kernels) is none that mutmut makes. Tests named in SLOW are left out, so the
share that is killed is at most too low. Words of errors are changed too: a survivor may be one.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "mutation.json"
MEASURING = ("limits", "band", "cells", "compare", "people", "guess_bound", "counts")
PROTECTION = ("certificate", "certify", "coupled", "sampled", "together", "several", "proved", "sums", "plan")
GUARANTEES = ("composition", "losses", "steps", "renyi", "sgd", "allocation", "dp", "profile")
ROOMS = {
    "numerics": (["numerics/*"], ["numerics", "population/test_exponential.py"]),
    "limits": (
        [f"auditing/measuring/{name}.py" for name in MEASURING],
        ["auditing/measuring", "auditing/runs/test_one_run.py"],
    ),
    "certificates": ([f"protection/{name}.py" for name in PROTECTION], ["protection"]),
    "composition": (
        [f"guarantees/{name}.py" for name in GUARANTEES],
        ["guarantees", "oracles", "ledger/test_composition.py"],
    ),
}
"""Room → the files that are changed (of src/whosin), and the tests that must notice (of tests)."""
SLOW = (
    "test_one_run_counts_people or test_false_alarms or test_chance_is_not_found or test_power or "
    "test_both_advantages_are_covered or test_true_promises or test_a_million_scores"
)
"""Simulations of several seconds: `-k` leaves them out."""
KILLED, TIMED_OUT, SURVIVED, UNTESTED = {1, 3}, {24, -24, 36, 152, 255}, {0}, {5, 33}


def mutmut(folder: Path, seconds: float, *arguments: str) -> None:
    """Run mutmut in a copy of the tree, for at most this time: it keeps what it has tried."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HYPOTHESIS_PROFILE": "steady"}
    command = [sys.executable, "-m", "mutmut", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return
    if done.returncode:
        raise SystemExit(f"mutmut {arguments[0]} failed in {folder}:\n{(done.stdout + done.stderr)[-2000:]}")


def prepared(room: str) -> Path:
    """Return a copy of the tree in which mutmut knows what to change and which tests to run."""
    folder = ROOT / ".mutants" / room
    for part in ("src", "tests", "experiments"):
        shutil.copytree(ROOT / part, folder / part, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    changed, tests = ROOMS[room]
    settings = {
        "source_paths": ["src"],
        "also_copy": ["experiments"],  # which some tests import
        "only_mutate": [f"src/whosin/{name}" for name in changed],
        "pytest_add_cli_args_test_selection": [f"tests/{name}" for name in tests],
        "process_isolation": "forkserver",  # a fork of mutmut itself would inherit results that functions remember
        "pytest_add_cli_args": ["-k", f"not ({SLOW})", "-p", "no:cacheprovider"],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text("\n".join([text, "[tool.mutmut]", *lines, ""]), encoding="utf-8")
    return folder


def codes(folder: Path) -> dict[str, int | None]:
    """Return the exit code of every change so far; None for those that were not tried."""
    found: dict[str, int | None] = {}
    for path in sorted((folder / "mutants" / "src").rglob("*.meta")):
        found |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def tried(room: str, count: int, seed: int, names: list[str] | None, *, seconds: float) -> dict[str, object]:
    """Return what became of a sample of a room's changes, or of those named; the next call goes on where time ended."""
    folder = prepared(room)
    until = time.monotonic() + seconds
    if not codes(folder) and seconds:  # one change, so that all are made
        first = ROOMS[room][0][0].removesuffix(".py").replace("/", ".").replace("*", "betting")
        mutmut(folder, seconds, "run", "--max-children", "1", f"whosin.{first}.*_1")
    before = codes(folder)
    chosen = names or sorted(random.Random(seed).sample(sorted(before), min(count, len(before))))
    waiting = names or [name for name in chosen if before[name] is None]
    if waiting and time.monotonic() < until:
        mutmut(folder, until - time.monotonic(), "run", "--max-children", "1", *waiting)
    found = codes(folder)
    sample = [name for name in chosen if found[name] is not None]
    left = [name for name in sample if found[name] in SURVIVED | UNTESTED]
    return {
        "changes": len(found),
        "tried": len(sample),
        "killed": sum(found[name] in KILLED | TIMED_OUT for name in sample),
        "timed_out": sum(found[name] in TIMED_OUT for name in sample),
        "survivors": {name: difference(folder, name) for name in left},
    }


def difference(folder: Path, name: str) -> list[str]:
    """Return the lines that a change takes away (-) and adds (+)."""
    module, _, function = name.rpartition(".")
    text = (folder / "mutants" / "src" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    parts = {
        node.name: ast.unparse(ast.Module(node.body, []))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }
    before, after = (parts[one].splitlines() for one in (re.sub(r"\d+$", "orig", function), function))
    return [line for line in difflib.ndiff(before, after) if line[0] in "+-"]


def main() -> None:
    """Try, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", choices=sorted(ROOMS), action="append", help="all of them by default")
    parser.add_argument("--count", type=int, default=60, help="changes tried in each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=9.0, help="most time for each room; 0 reads what was tried")
    parser.add_argument("--again", action="store_true", help="only the survivors of the last run")
    options = parser.parse_args()
    seconds = 60.0 * options.minutes
    result = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    for room in options.room or ROOMS:
        if options.again and not result.get(room, {}).get("survivors"):
            continue
        if options.again:
            last = result[room]
            names = sorted(last["survivors"])
            new = tried(room, 0, 0, names, seconds=seconds)
            if new["tried"] < len(names):
                raise SystemExit(f"only {new['tried']} of {len(names)} survivors were tried: give more --minutes")
            last["killed_by_tests_added"] = last.get("killed_by_tests_added", 0) + new["killed"]
            last["survivors"] = new["survivors"]
        else:
            last = result[room] = tried(room, options.count, options.seed, None, seconds=seconds) | {
                "seed": options.seed
            }
            ends = (clopper_pearson_lower, clopper_pearson_upper)
            last["killed_share_95"] = [float(end(last["killed"], last["tried"], 0.025)) for end in ends]
        last["date"] = datetime.date.today().isoformat()
        RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        low, high = last["killed_share_95"]
        print(f"{room}: {last['killed']} of {last['tried']} killed (95 %: {low:.2f} to {high:.2f}), left:")
        for name, lines in last["survivors"].items():
            print(f"  {name}", *lines, sep="\n    ")


if __name__ == "__main__":
    main()
