"""How close certified draws of the exponential mechanism come to the truth: python benchmarks/certified_draws.py.

Pools of normal points, clipped, and ten candidates on the unit sphere, δ = 1e-3, 95 % confidence, draws as many as the
library takes by default, on all cores. ``estimate`` is the same without a margin; being the largest of many noisy
numbers it is rather above the truth than below it. Writes benchmarks/results/certified_draws.json.
"""

from __future__ import annotations

import argparse
import os
import time
from importlib.metadata import version

import _common
import numpy as np

from whosin.population.exponential.monte_carlo import certify

SETTINGS = ((1000, 50.0), (1000, 150.0), (1000, 500.0), (10_000, 500.0))
"""Records and inverse temperatures."""
DIMENSIONS, CANDIDATES, CLIP, DELTA = 5, 10, 3.0, 1e-3


def pool(records: int, temperature: float) -> np.ndarray:
    """Logits: the inverse temperature times the distance between record and candidate, divided by the size of D."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((records, DIMENSIONS))
    options = rng.standard_normal((CANDIDATES, DIMENSIONS))
    options /= np.linalg.norm(options, axis=1, keepdims=True)
    points *= np.minimum(1.0, CLIP / np.linalg.norm(points, axis=1))[:, None]
    return temperature / (records // 2) * np.linalg.norm(points[:, None] - options, axis=2)


def measure(records: int, temperature: float) -> dict:
    """One certificate, its estimate and its cost."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = certify(pool(records, temperature), records // 2, delta=DELTA, rng=0, n_jobs=os.cpu_count())
    estimate = float(found.point.max())
    return {
        "records": records,
        "inverse_temperature": temperature,
        "draws": found.draws,
        "limit": found.epsilon,
        "estimate": estimate,
        "limit_over_estimate": found.epsilon / estimate,
        "without_draws": float(found.certain.max()),
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
    }


def main() -> int:
    """Measure every setting."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rows = []
    for setting in SETTINGS:
        rows.append(measure(*setting))
        print({name: round(value, 4) for name, value in rows[-1].items()}, flush=True)
    versions = {package: version(package) for package in ("whosin", "numpy")}
    content = {"benchmark": "certified_draws", "machine": _common.machine(), "versions": versions, "measurements": rows}
    _common.write_results("certified_draws", content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
