"""Shared plumbing of the benchmarks: environments, child processes, result files (standard library only)."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import _side

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
RESULTS = HERE / "results"
RISKCAL_VERSION = "1.5.1"
RISKCAL_ENV = TOP / ".venv-riskcal"
DATA_VARIABLE = "WHOSIN_DATA"

# One thread on every side, so that CPU seconds compare work and not the number of cores.
THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}


class SideFailed(RuntimeError):
    """A child process ended with an error; the message carries the end of its stderr."""


def executable(environment: Path, name: str = "python") -> Path:
    """Path of a program inside a virtual environment."""
    if os.name == "nt":
        return environment / "Scripts" / f"{name}.exe"
    return environment / "bin" / name


def child_environment() -> dict[str, str]:
    """Environment variables of the measured processes."""
    variables = {**os.environ, **THREADS}
    variables.pop("PYTHONPATH", None)
    return variables


def imports(python: Path | str, module: str) -> bool:
    """Whether this interpreter can import the module."""
    done = subprocess.run(
        [str(python), "-c", f"import {module}"], env=child_environment(), capture_output=True, cwd=HERE, check=False
    )
    return done.returncode == 0


def _make_environment(environment: Path, requirement: list[str]) -> None:
    print(f"creating {environment.name} ...", file=sys.stderr, flush=True)
    if not executable(environment).exists():
        venv.EnvBuilder(with_pip=True).create(environment)
        (environment / ".gitignore").write_text("*\n", encoding="utf-8")
    subprocess.run(
        [str(executable(environment)), "-m", "pip", "install", "--quiet", *requirement],
        cwd=TOP,
        stdout=sys.stderr,
        check=True,
    )


def peer_python(package: str, pinned: str, *, first: Sequence[str] = ()) -> Path:
    """Interpreter of ``.venv-<package>`` with that version; made when absent, ``first`` being installed before it."""
    environment = TOP / f".venv-{package}"
    python = executable(environment)
    probe = f"import importlib.metadata as m, {package}, sys; sys.exit(m.version('{package}') != '{pinned}')"
    if python.exists() and subprocess.run([str(python), "-c", probe], capture_output=True, check=False).returncode == 0:
        return python
    if first:
        _make_environment(environment, list(first))
    _make_environment(environment, [*first, f"{package}=={pinned}"])
    return python


def riskcal_python() -> Path:
    """Interpreter that has the pinned riskcal (pip builds its sdist: needs gcc)."""
    return peer_python("riskcal", RISKCAL_VERSION)


def whosin_python() -> Path:
    """Interpreter that has whosin: the one running this, else .venv, else a new .venv-whosin (editable install)."""
    for candidate in (Path(sys.executable), executable(TOP / ".venv")):
        if candidate.exists() and imports(candidate, "whosin"):
            return candidate
    environment = TOP / ".venv-whosin"
    if not imports_in(environment, "whosin"):
        _make_environment(environment, ["--editable", "."])
    return executable(environment)


def imports_in(environment: Path, module: str) -> bool:
    """Whether the environment exists and can import the module."""
    return executable(environment).exists() and imports(executable(environment), module)


def run_side(python: Path, script: str, *arguments: str) -> dict:
    """Run one task of one side in a fresh process and return the JSON object on its last output line."""
    done = subprocess.run(
        [str(python), str(HERE / script), *arguments],
        env=child_environment(),
        capture_output=True,
        text=True,
        cwd=HERE,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise SideFailed(f"{script} {' '.join(arguments)} ended with status {done.returncode}\n{tail}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def parser_for(description: str, data: str = "", repeats: int = 0) -> argparse.ArgumentParser:
    """Parser of the options that most benchmarks have: the folder that holds ``data``, and how often to measure."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    if data:
        parser.add_argument("--data", help=f"folder that holds {data} (default: the variable {DATA_VARIABLE})")
    if repeats:
        parser.add_argument("--repeats", type=int, default=repeats, help=f"repetitions (default {repeats})")
    return parser


def data_folder(given: str | None, dataset: str) -> Path:
    """Folder of a data set under ``given`` or the environment's WHOSIN_DATA; a plain message if it is not there."""
    top = given if given is not None else os.environ.get(DATA_VARIABLE)
    if not top:
        raise SystemExit(f"where is the data? Pass --data FOLDER or set {DATA_VARIABLE}: it must hold {dataset}/")
    folder = Path(top).expanduser().resolve() / dataset
    if not folder.is_dir():
        raise SystemExit(f"{top} has no folder {dataset}")
    return folder


def peak_mebibytes() -> float | None:
    """Largest resident memory of this process so far; unknown on Windows."""
    try:
        import resource
    except ImportError:
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)


def report_cost(work: Callable[[], dict], packages: Sequence[str], import_seconds: float) -> None:
    """Run the work once; print its answer, seconds, memory and the versions as one JSON line."""
    before = peak_mebibytes()
    cost = _side.timed(work)
    line = {
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "import_seconds": import_seconds,
        "peak_mebibytes": peak_mebibytes(),
        "before_mebibytes": before,
        "values": _side.plain(cost.value),
        "versions": {name: version(name) for name in packages},
    }
    print(json.dumps(line, allow_nan=False))


def measured(task: str, work: Callable[[], dict]) -> dict:
    """Run the work once in this process; return its answer with seconds and memory."""
    before = peak_mebibytes()
    cost = _side.timed(work)
    return {
        "task": task,
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "peak_mebibytes": peak_mebibytes(),
        "before_mebibytes": before,
        "values": cost.value,
    }


def run_tasks(
    script: str,
    description: str,
    tasks: Sequence[str],
    measure: Callable[[str], dict],
    show: Callable[[dict, dict], dict],
    packages: Sequence[str],
) -> int:
    """Measure every task several times, each in a fresh process of the same script; show, and write if all were run.

    ``measure`` runs one task in this process; ``show`` prints the runs and their median CPU seconds and returns
    what else is to be kept.
    """
    parser = parser_for(description, repeats=3)
    parser.add_argument("--tasks", nargs="+", choices=tuple(tasks), default=tuple(tasks), help="print, write nothing")
    parser.add_argument("--run", choices=tuple(tasks), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(measure(options.run)))
        return 0
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    runs: dict[str, list[dict]] = {task: [] for task in options.tasks}
    for _ in range(options.repeats):
        for task in options.tasks:
            runs[task].append(run_side(whosin_python(), f"{script}.py", "--run", task))
    medians = {task: median([one["cpu_seconds"] for one in records]) for task, records in runs.items()}
    further = show(runs, medians)
    if tuple(options.tasks) == tuple(tasks):
        content = {
            "repeats": options.repeats,
            "runs": runs,
            "median_cpu_seconds": medians,
            **further,
        }
        write_results(script, packages, content)
    return 0


def median(values: list[float]) -> float:
    """Median, as a plain float."""
    return float(statistics.median(values))


def machine() -> dict[str, object]:
    """What may be said of the machine: nothing that names it."""
    return {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}


def write_results(name: str, packages: Sequence[str], content: dict) -> None:
    """Write benchmarks/results/<name>.json: what was measured, on what machine, with what versions of the packages."""
    RESULTS.mkdir(exist_ok=True)
    head = {"benchmark": name, "machine": machine(), "versions": {package: version(package) for package in packages}}
    text = json.dumps({**head, **content}, indent=2, allow_nan=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"\nwritten: benchmarks/results/{name}.json")


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a left-aligned first column and right-aligned others."""
    widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]
    for line in [header, tuple("-" * width for width in widths), *rows]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells))
