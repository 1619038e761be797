"""Time of the exact exponential mechanism over every n-subset of 2n records: python benchmarks/exponential_exact.py.

For each n the sums with and without every record are computed by matrix products (numpy) and by the fused kernel
(numba, if installed), and beside them runs what no matrix-product route can undercut: the three bare products of the
same shapes, without the reciprocal, the exponentials and the sums by membership. The routes take turns. Tiles are small
enough for BLAS to stay in the calling thread. Run it with a Python that has whosin; other load on the machine stretches
wall seconds, so compare the ratios and the CPU seconds. Writes benchmarks/results/exponential_exact.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import _common
import numpy as np

from whosin.compute import subset_softmax

DIMENSIONS = 5
INVERSE_TEMPERATURE = 5.0


def pool(n: int, m: int) -> np.ndarray:
    """Logits of 2n standard normal points and m unit vectors as candidates: λ/n times the distance."""
    rng = np.random.default_rng(n)
    points = rng.standard_normal((2 * n, DIMENSIONS))
    candidates = rng.standard_normal((m, DIMENSIONS))
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    return INVERSE_TEMPERATURE / n * np.linalg.norm(points[:, None] - candidates, axis=2)


def bare_products(n: int, m: int) -> None:
    """The three matrix products of every tile that the matrix-product route visits, and nothing else."""
    rng = np.random.default_rng(0)
    entries = max(2**12, min(2**15, subset_softmax._ONE_THREAD // m))
    for j in range(n + 1):
        rows = rng.random((math.comb(n, j), m))
        height = min(len(rows), 256)
        width = max(entries // height, 1)
        for a in range(0, len(rows), height):
            short = rows[a : a + height]
            for b in range(0, len(rows), width):
                long = rows[b : b + width]
                shares = short @ long.T
                shares @ long
                shares.T @ short


def seconds_of(work: Callable[[], object]) -> tuple[object, dict[str, float]]:
    """Result, CPU seconds and wall seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}


def measure(n: int, m: int, repeats: int, workers: int, routes: list[str]) -> dict:
    """Every repetition of every route for one n, their medians a subset, and how far the routes agree."""
    logits = pool(n, m)
    subsets = math.comb(2 * n, n)
    runs: dict[str, list[dict[str, float]]] = {}
    laws = {}
    for _ in range(repeats):
        for route in routes:
            for n_jobs in sorted({1, workers}):
                name = f"{route}, {n_jobs} thread" + ("s" if n_jobs > 1 else "")
                laws[name], seconds = seconds_of(
                    lambda route=route, n_jobs=n_jobs: subset_softmax.subset_laws(
                        logits, n, method=route, n_jobs=n_jobs
                    )
                )
                runs.setdefault(name, []).append(seconds)
        _, seconds = seconds_of(lambda: bare_products(n, m))
        runs.setdefault("bare matrix products, 1 thread", []).append(seconds)
    reference = next(iter(laws.values()))
    agreement = max(
        float(np.abs(getattr(other, side) / getattr(reference, side) - 1.0).max())
        for other in laws.values()
        for side in ("inside", "outside", "total")
    )
    nanoseconds = {
        name: {
            clock: 1e9 * _common.median([one[f"{clock}_seconds"] for one in times]) / subsets
            for clock in ("cpu", "wall")
        }
        for name, times in runs.items()
    }
    return {
        "n": n,
        "subsets": subsets,
        "epsilon": float(np.abs(reference.log_ratio).max()),
        "largest_relative_difference": agreement,
        "nanoseconds_per_subset": nanoseconds,
        "runs": runs,
    }


def main() -> int:
    """Measure every n asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="low", type=int, default=10, help="smallest n (default 10)")
    parser.add_argument(
        "--to", dest="high", type=int, default=15, help="largest n (default 15; 18 and 20 take minutes)"
    )
    parser.add_argument("--candidates", type=int, default=10, help="number of candidates m (default 10)")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions, 1 from n = 16 on (default 3)")
    options = parser.parse_args()
    if not 1 <= options.low <= options.high <= 22 or options.repeats < 1 or options.candidates < 2:
        parser.error("takes 1 <= --from <= --to <= 22, --repeats of at least 1 and --candidates of at least 2")

    routes = ["blas"]
    compilation = None
    if importlib.util.find_spec("numba") is not None:
        routes.append("fused")
        _, compilation = seconds_of(subset_softmax._fused_kernel)
    workers = os.cpu_count() or 1
    measurements = []
    for n in range(options.low, options.high + 1):
        repeats = options.repeats if n < 16 else 1
        record = measure(n, options.candidates, repeats, workers, routes)
        measurements.append(record)
        print(f"\nn = {n}: {record['subsets']:,} subsets, epsilon {record['epsilon']:.6f}")
        for name, taken in record["nanoseconds_per_subset"].items():
            seconds = taken["wall"] * record["subsets"] * 1e-9
            print(f"  {name:32} CPU {taken['cpu']:7.2f} ns, wall {taken['wall']:7.2f} ns a subset, {seconds:9.3f} s")

    packages = ["whosin", "numpy", *(["numba"] if "fused" in routes else [])]
    content = {
        "benchmark": "exponential_exact",
        "candidates": options.candidates,
        "repeats": options.repeats,
        "machine": _common.machine(),
        "versions": {package: version(package) for package in packages},
        "kernel_loading_seconds": compilation,
        "measurements": measurements,
    }
    _common.write_results("exponential_exact", content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
