"""Time of the exact exponential mechanism over every n-subset of 2n records: python benchmarks/exponential_exact.py.

For n = 12, 15, 16 and 18 the sums with and without every record are computed by matrix products (numpy) and by the
fused kernel (numba, if installed), on one thread and on all cores. Beside them, in the same run and in turns with them,
goes what no matrix-product route can undercut: the three bare products of the same shapes, without the reciprocal, the
exponentials and the sums by membership. Tiles are small enough for BLAS to stay in the calling thread. Run it with a
Python that has whosin; other load on the machine stretches wall seconds, so compare the ratios and the CPU seconds.
Writes benchmarks/results/exponential_exact.json.

``--n 20`` (or any other n above 18) is one unattended run on all cores, with a journal from which the same command
resumes if it was interrupted. Writes benchmarks/results/exponential_exact_20.json.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import _common
import numpy as np
from _common import peak_mebibytes

from whosin.population.exponential.exact import SubsetLaws, subset_laws
from whosin.population.exponential.kernels import fused_kernel, product_tile

SIZES = (12, 15, 16, 18)
UNATTENDED = 19
DIMENSIONS = 5
INVERSE_TEMPERATURE = 5.0
BARE = "bare matrix products, 1 thread"


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
    for j in range(n + 1):
        rows = rng.random((math.comb(n, j), m))
        height, width = product_tile(*rows.shape)
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
    """Every repetition of every route for one n, their medians, and how far the routes agree."""
    logits = pool(n, m)
    runs: dict[str, list[dict[str, float]]] = {}
    laws = {}
    for _ in range(repeats):
        for route in routes:
            for n_jobs in sorted({1, workers}):
                name = f"{route}, {n_jobs} thread" + ("s" if n_jobs > 1 else "")
                laws[name], seconds = seconds_of(
                    lambda route=route, n_jobs=n_jobs: subset_laws(logits, n, method=route, n_jobs=n_jobs)
                )
                runs.setdefault(name, []).append(seconds)
        _, seconds = seconds_of(lambda: bare_products(n, m))
        runs.setdefault(BARE, []).append(seconds)
    reference = next(iter(laws.values()))
    agreement = max(
        float(np.abs(getattr(other, side) / getattr(reference, side) - 1.0).max())
        for other in laws.values()
        for side in ("inside", "outside", "total")
    )
    medians = {
        name: {clock: _common.median([one[f"{clock}_seconds"] for one in times]) for clock in ("cpu", "wall")}
        for name, times in runs.items()
    }
    subsets = math.comb(2 * n, n)
    return {
        "n": n,
        "subsets": subsets,
        "epsilon": float(np.abs(reference.log_ratio).max()),
        "largest_relative_difference": agreement,
        "median_seconds": medians,
        "nanoseconds_per_subset": {
            name: {clock: 1e9 * seconds / subsets for clock, seconds in taken.items()}
            for name, taken in medians.items()
        },
        "cpu_per_bare_products": {
            name: taken["cpu"] / medians[BARE]["cpu"] for name, taken in medians.items() if name != BARE
        },
        "runs": runs,
    }


def show(record: dict) -> None:
    """Print one n."""
    print(f"\nn = {record['n']}: {record['subsets']:,} training sets, epsilon {record['epsilon']:.6f}")
    rows = [
        (
            name,
            *(f"{taken[clock]:.3f}" for clock in ("cpu", "wall")),
            *(f"{record['nanoseconds_per_subset'][name][clock]:.2f}" for clock in ("cpu", "wall")),
        )
        for name, taken in record["median_seconds"].items()
    ]
    _common.print_table(("", "CPU s", "wall s", "CPU ns a set", "wall ns a set"), rows)


def unattended(n: int, m: int, journal: Path, workers: int) -> dict:
    """One run on all cores that can be interrupted; what an earlier one did is not in its seconds."""
    shares: list[float] = []
    start = time.monotonic()

    def progress(share: float) -> None:
        shares.append(share)
        if len(shares) % 50 == 1:
            print(f"{100 * share:6.2f} % after {time.monotonic() - start:7.0f} s", flush=True)

    resumed = journal.exists()
    laws, seconds = seconds_of(lambda: subset_laws(pool(n, m), n, n_jobs=workers, progress=progress, journal=journal))
    assert isinstance(laws, SubsetLaws)
    subsets = math.comb(2 * n, n)
    return {
        "n": n,
        "subsets": subsets,
        "threads": workers,
        "resumed": resumed,
        "method": laws.method,
        **seconds,
        "nanoseconds_per_subset": {clock: 1e9 * seconds[f"{clock}_seconds"] / subsets for clock in ("cpu", "wall")},
        "peak_mebibytes": peak_mebibytes(),
        "epsilon": float(np.abs(laws.log_ratio).max()),
        "epsilon_per_record": np.abs(laws.log_ratio).max(axis=1).tolist(),
        "probabilities": laws.total.tolist(),
    }


def main() -> int:
    """Measure every n asked for."""
    parser = _common.parser_for(__doc__)
    parser.add_argument(
        "--n", type=int, nargs="+", default=SIZES, help="sizes (default 12 15 16 18; others: print only)"
    )
    parser.add_argument("--candidates", type=int, default=10, help="number of candidates m (default 10)")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions, 1 from n = 16 on (default 3)")
    parser.add_argument("--journal", type=Path, help="file of an unattended run (default exponential_exact_<n>.npz)")
    options = parser.parse_args()
    sizes, m = tuple(options.n), options.candidates
    if not all(1 <= n <= 22 for n in sizes) or options.repeats < 1 or m < 2:
        parser.error("takes n from 1 to 22, --repeats of at least 1 and --candidates of at least 2")
    if len(sizes) > 1 and max(sizes) >= UNATTENDED:
        parser.error(f"an n of {UNATTENDED} or more takes minutes to hours and is run alone")

    routes, compilation = ["blas"], None
    if importlib.util.find_spec("numba") is not None:
        routes.append("fused")
        _, compilation = seconds_of(fused_kernel)
    workers = os.cpu_count() or 1
    packages = ["whosin", "numpy", *(["numba"] if "fused" in routes else [])]
    content = {"candidates": m, "kernel_loading_seconds": compilation}
    if sizes[0] >= UNATTENDED:
        name = f"exponential_exact_{sizes[0]}"
        content |= unattended(sizes[0], m, options.journal or Path(f"{name}.npz"), workers)
        print(f"epsilon {content['epsilon']:.6f}, {content['cpu_seconds']:.0f} CPU s, {content['wall_seconds']:.0f} s")
        _common.write_results(name, packages, content)
        return 0
    measurements = []
    for n in sizes:
        measurements.append(measure(n, m, options.repeats if n < 16 else 1, workers, routes))
        show(measurements[-1])
    if sizes == SIZES:
        content |= {"repeats": options.repeats, "measurements": measurements}
        _common.write_results("exponential_exact", packages, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
