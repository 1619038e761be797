"""One run of the experiments: which data, where trained models are kept, and what every result says of its making."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from experiments._shared import Results
from experiments.mace._data import Images, load
from experiments.mace._measure import forest

__all__ = ["RESULTS", "Run", "files", "make", "read", "stamp"]

Model = TypeVar("Model")
RESULTS = Path(__file__).parent / "results"


def files(folder: Path = RESULTS) -> Results:
    """Return the folder of results; ``forest`` decides how most of the pictures look."""
    return Results(folder, helpers=(forest,))


read, stamp = files().read, files().stamp


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
    notes: dict[str, Any] = field(default_factory=dict, compare=False)
    """What was trained, with sizes and seconds; filled by the trainings."""

    @property
    def digits(self) -> bool:
        """Whether scikit-learn's digits stand in."""
        return self.dataset == "digits"

    def command(self, figure: str) -> str:
        """Return the command that repeats a figure."""
        words = ["python -m experiments.mace --figure", figure.removeprefix("figure_")]
        words += ["--dataset digits"] if self.digits else []
        words += ["--quick"] if self.quick else []
        return " ".join([*words, f"--seed {self.seed}"])

    def images(self, name: str) -> Images:
        """Return the images of a set, or digits in its place."""
        return _loaded("digits" if self.digits else name, self.data)

    def place(self, name: str, ending: str, *settings: Any) -> Path:
        """Return the file of a training in the cache: another one for any other setting."""
        digest = hashlib.sha256(repr((self.dataset, self.seed, self.quick, settings)).encode()).hexdigest()
        return self.cache / f"{name}-{self.dataset}-{digest[:12]}{ending}"

    def trained(self, name: str, checkpoint: Path, settings: dict[str, Any], action: Callable[[], Model]) -> Model:
        """Train, or read the checkpoint, and note the settings and the time that the training took."""
        clock, start, wall = checkpoint.with_suffix(".seconds"), time.process_time(), time.perf_counter()
        self.cache.mkdir(parents=True, exist_ok=True)
        model = action()
        now = time.process_time() - start
        if not clock.is_file():
            spent = {"cpu_seconds": round(now, 1), "wall_seconds": round(time.perf_counter() - wall, 1)}
            clock.write_text(json.dumps(spent), encoding="utf-8")
        self.notes[name] = {**settings, **json.loads(clock.read_text(encoding="utf-8")), "cpu_seconds_now": now}
        return model


def keep(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file beside its place and move it there, so that half a file never counts as a finished training."""
    part = path.with_name(f".{path.name}.part")
    with open(part, "wb") as file:
        write(file)
    os.replace(part, path)


@cache
def _loaded(name: str, root: Path | None) -> Images:
    return load(name, root)


def make(
    name: str,
    run: Run,
    compute: Callable[[Run], dict[str, Any]],
    draw: Callable[[dict[str, Any]], Figure],
    differs: tuple[str, ...],
) -> None:
    """Compute a figure, say how it was made, and write JSON and PNG."""
    run.notes.clear()
    start = time.process_time()
    numbers = compute(run)
    seconds = time.process_time() - start - sum(note["cpu_seconds_now"] for note in run.notes.values())
    trained = {key: {k: v for k, v in note.items() if k != "cpu_seconds_now"} for key, note in run.notes.items()}
    made = {
        "command": run.command(name),
        "seed": run.seed,
        "images": "scikit-learn digits, 8x8" if run.digits else "as in the paper, see differs",
        "cpu_seconds_without_training": round(max(seconds, 0.0), 1),
        "training": trained,
        "differs_from_the_paper": list(differs) if not run.digits else ["digits stand in for the images", *differs],
    }
    run.out.mkdir(parents=True, exist_ok=True)
    files(run.out).save(name, {"figure": name.removeprefix("figure_"), "made": made, **numbers}, draw)
