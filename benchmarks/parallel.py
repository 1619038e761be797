"""What spreading tasks costs and gains: python benchmarks/parallel.py.

Two questions, each with its sides in turns in one run. How much does whosin's way in (parallel/tasks.py) add to plain
joblib on 200 tasks that do nothing: in this process, in two processes, and on two Dask workers, beside joblib's own
Dask backend. And how long do reference models take in one process, in two, and on two Dask workers. Processes and
workers are started before the clock. Other load on the machine stretches wall seconds, so compare the ratios, and take
a gain of two workers below 2 for what it is on a busy machine. Writes benchmarks/results/parallel.json.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import _common
import numpy as np

TASKS = 200
MODELS = 6


def nothing(item: int) -> float:
    """The smallest task."""
    return float(item)


def seconds_of(work: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def tiny_sides() -> dict[str, Callable[[], object]]:
    """Ways to run 200 tasks that do nothing."""
    import joblib

    from whosin.parallel.tasks import run

    def plain(backend: str, n_jobs: int) -> object:
        with joblib.parallel_config(backend=backend):
            return joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(nothing)(item) for item in range(TASKS))

    def ours(backend: str, n_jobs: int) -> object:
        with joblib.parallel_config(backend=backend):
            return run(nothing, range(TASKS), n_jobs=n_jobs)

    return {
        "joblib, 1 process": lambda: plain("loky", 1),
        "whosin, 1 process": lambda: ours("loky", 1),
        "joblib, 2 processes": lambda: plain("loky", 2),
        "whosin, 2 processes": lambda: ours("loky", 2),
        "joblib, 2 Dask workers": lambda: plain("dask", 2),
        "whosin, 2 Dask workers": lambda: ours("dask", 2),
    }


def training_sides() -> dict[str, Callable[[], object]]:
    """Ways to train the same reference models."""
    import joblib
    from sklearn.ensemble import RandomForestClassifier

    from whosin.auditing.models import ReferenceModels

    rng = np.random.default_rng(0)
    records = rng.normal(size=(1000, 10))
    labels = (records[:, 0] + rng.normal(size=1000) > 0).astype(int)
    forest = RandomForestClassifier(10, max_depth=8)

    def train(backend: str, n_jobs: int) -> np.ndarray:
        with joblib.parallel_config(backend=backend):
            return ReferenceModels.train(forest, records, labels, models=MODELS, n_jobs=n_jobs, rng=1).logits

    return {
        "1 process": lambda: train("loky", 1),
        "2 processes": lambda: train("loky", 2),
        "2 Dask workers": lambda: train("dask", 2),
    }


def in_turns(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every side, the sides one after the other in each repetition, after one round that does not count."""
    runs: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(-1, repeats):
        for name, work in sides.items():
            seconds = seconds_of(work)
            if repeat >= 0:
                runs[name].append(seconds)
    return runs


def main() -> int:
    """Measure, print, write."""
    parser = _common.parser_for(__doc__, repeats=3)
    options = parser.parse_args()
    from distributed import Client, LocalCluster

    load = os.getloadavg()[0]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster),
    ):
        tiny = in_turns(tiny_sides(), options.repeats)
        sides = training_sides()
        same = len({np.asarray(work()).tobytes() for work in sides.values()}) == 1
        training = in_turns(sides, options.repeats)
    medians = {
        "tiny": {name: _common.median(seconds) for name, seconds in tiny.items()},
        "training": {name: _common.median(seconds) for name, seconds in training.items()},
    }
    places = ("1 process", "2 processes", "2 Dask workers")
    overhead = {
        place: 1e3 * (medians["tiny"][f"whosin, {place}"] - medians["tiny"][f"joblib, {place}"]) / TASKS
        for place in places
    }
    gain = {place: medians["training"]["1 process"] / medians["training"][place] for place in places[1:]}
    print(f"{TASKS} tasks that do nothing (load of the machine before: {load:.1f})")
    rows = [(name, f"{1e3 * seconds / TASKS:.3f}") for name, seconds in medians["tiny"].items()]
    _common.print_table(("", "median ms a task"), rows)
    print(f"\n{MODELS} reference models; the same bits everywhere: {same}")
    rows = [(name, f"{seconds:.2f}", f"{gain.get(name, 1.0):.2f}") for name, seconds in medians["training"].items()]
    _common.print_table(("", "median s", "times as fast as 1 process"), rows)
    _common.write_results(
        "parallel",
        ("whosin", "joblib", "distributed", "numpy", "scikit-learn"),
        {
            "tasks": TASKS,
            "models": MODELS,
            "repeats": options.repeats,
            "load_before": load,
            "same_bits": same,
            "tiny_seconds": tiny,
            "training_seconds": training,
            "median_seconds": medians,
            "milliseconds_a_task_over_joblib": overhead,
            "training_gain_over_one_process": gain,
        },
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
