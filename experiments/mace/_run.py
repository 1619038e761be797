"""One run of the experiments: which data, where trained models are kept, and what every result says of its making."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments._shared import Results
from experiments.mace._data import Images, load
from experiments.mace._measure import forest

__all__ = ["RESULTS", "Run", "Unfinished", "files", "make", "read", "stamp"]

RESULTS = Path(__file__).parent / "results"
FULL_CUTS = (
    "CIFAR-10: images re-encoded as JPEG",
    "skin lesions: one image for each of the 7,470 lesions, not all 10,015, so that the records are independent",
    "epochs, which the paper states for one model only, are those of recipes.toml, fixed before any training",
)


def files(folder: Path = RESULTS) -> Results:
    """Return the folder of results; ``forest`` decides how most of the pictures look."""
    return Results(folder, helpers=(forest,))


read, stamp = files().read, files().stamp


class Unfinished(Exception):
    """A training that the time did not allow; its checkpoint stays, and another run goes on from there."""

    def __init__(self, name: str, done: int, epochs: int) -> None:
        super().__init__(f"{name}: {done} of {epochs} epochs")


@dataclass(frozen=True)
class Run:
    """What a run was asked for."""

    dataset: str = "paper"
    """"paper" for the images that the paper takes, "digits" for scikit-learn's, which are always there."""
    data: Path | None = None
    """Folder of the image files."""
    cache: Path = Path("mace-cache")
    """Folder of trained models."""
    out: Path = RESULTS
    """Folder of the results."""
    quick: bool = False
    """A few epochs only: to see that everything runs."""
    seed: int = 2022
    full: bool = False
    """The paper's sizes and layers."""
    device: str = "cpu"
    """Where torch computes."""
    until: float = math.inf
    """When ``time.monotonic()`` is beyond this, trainings stop at their next checkpoint."""
    notes: dict[str, Any] = field(default_factory=dict, compare=False)
    """What was trained, with sizes and seconds; filled by the trainings."""

    @property
    def digits(self) -> bool:
        """Whether scikit-learn's digits stand in."""
        return self.dataset == "digits"

    @property
    def scale(self) -> str:
        """Tables of ``recipes.toml``."""
        return "full" if self.full else "short"

    @property
    def time_is_up(self) -> bool:
        """Whether trainings stop."""
        return time.monotonic() >= self.until

    def command(self, figure: str) -> str:
        """Return the command that repeats a figure."""
        words = ["python -m experiments.mace --figure", figure.removeprefix("figure_")]
        words += ["--full"] if self.full else []
        words += ["--dataset digits"] if self.digits else []
        words += ["--quick"] if self.quick else []
        return " ".join([*words, f"--seed {self.seed}"])

    def images(self, name: str) -> Images:
        """Return the images of a set, or digits in its place."""
        return _loaded("digits" if self.digits else name, self.data)

    def place(self, name: str, ending: str, *settings: Any) -> Path:
        """Return the file of a training in the cache: another one for any other setting."""
        digest = hashlib.sha256(repr((self.dataset, self.seed, settings)).encode()).hexdigest()
        return self.cache / f"{name}-{self.scale}-{self.dataset}-{digest[:12]}{ending}"

    def trained(
        self, name: str, path: Path, settings: dict[str, Any], action: Callable[[], dict[str, NDArray[Any]]]
    ) -> dict[str, NDArray[Any]]:
        """Train and keep the answers, or read them, and note the settings and the time that the training took.

        The time of a training in several runs, or of one that is asked several times, adds up.
        """
        clock = path.with_suffix(".seconds")
        self.cache.mkdir(parents=True, exist_ok=True)
        now = 0.0
        if not path.is_file():
            start, wall = time.process_time(), time.perf_counter()
            try:
                found = action()
                keep(path, lambda file: np.savez(file, **found))
            finally:
                now = time.process_time() - start
                before = json.loads(clock.read_text(encoding="utf-8")) if clock.is_file() else {}
                spent = {"cpu_seconds": now, "wall_seconds": time.perf_counter() - wall}
                total = {key: round(value + before.get(key, 0.0), 1) for key, value in spent.items()}
                clock.write_text(json.dumps(total), encoding="utf-8")
        leg = json.loads(clock.read_text(encoding="utf-8"))
        legs = {key: round(value + self.notes.get(name, {}).get(key, 0.0), 1) for key, value in leg.items()}
        self.notes[name] = {**settings, **legs, "cpu_seconds_now": now}
        with np.load(path) as file:
            return dict(file)


def keep(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file beside its place and move it there, so that half a file never counts as a finished training."""
    part = path.with_name(f".{path.name}.part")
    with open(part, "wb") as file:
        write(file)
    os.replace(part, path)


@cache
def _loaded(name: str, root: Path | None) -> Images:
    return load(name, root)


def make(name: str, run: Run) -> None:
    """Compute a figure, say how it was made, and write JSON and PNG."""
    module = import_module(f"experiments.mace.{name}")
    run.notes.clear()
    start = time.process_time()
    numbers = module.compute(run)
    seconds = time.process_time() - start - sum(note["cpu_seconds_now"] for note in run.notes.values())
    trained = {key: {k: v for k, v in note.items() if k != "cpu_seconds_now"} for key, note in run.notes.items()}
    differs = FULL_CUTS if run.full else module.DIFFERS
    made = {
        "command": run.command(name),
        "seed": run.seed,
        "images": "scikit-learn digits, 8x8" if run.digits else "as in the paper, see differs",
        "cpu_seconds_without_training": round(max(seconds, 0.0), 1),
        "training": trained,
        "differs_from_the_paper": [*(["digits stand in for the images"] if run.digits else []), *differs],
    }
    run.out.mkdir(parents=True, exist_ok=True)
    files(run.out).save(name, {"figure": name.removeprefix("figure_"), "made": made, **numbers}, module.draw)
