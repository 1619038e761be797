"""Where the bound on a noisy sum of many columns is loose, and by how much: python benchmarks/low_noise_sums.py.

Normal pools of which a half is drawn, Gaussian noise with which the two records farthest apart cost the label (replace
one). For the most exposed record: ``limit``, what ``wi.population.gaussian`` ships (the smaller of the
normal bound and the pairwise one), ``pairwise`` alone, ``normal``, ε̃ if both laws
were normal, and ``at_least``, a limit on the truth from below: somebody who looks in one direction only. Writes
benchmarks/results/low_noise_sums.json.
"""

from __future__ import annotations

import time

import _common
import numpy as np

import whosin as wi
from whosin.numerics.gaussian_noise import epsilon_for
from whosin.population.pool import widest_distance
from whosin.population.sums.normal import Whitened
from whosin.population.sums.pairwise import pairwise_epsilons

SETTINGS = (
    (2, 1000, 5.0, 1e-2), (2, 10_000, 5.0, 1e-2), (5, 200, 5.0, 1e-2), (5, 1000, 5.0, 1e-2), (5, 10_000, 5.0, 1e-2),
    (5, 10_000, 8.0, 1e-2), (10, 1000, 5.0, 1e-2), (10, 1000, 8.0, 1e-2), (20, 200, 4.0, 1e-2), (20, 1000, 3.0, 1e-2),
    (20, 1000, 5.0, 1e-2), (20, 1000, 8.0, 1e-2), (20, 10_000, 3.0, 1e-2), (20, 10_000, 5.0, 1e-2),
    (2, 1000, 8.0, 1e-5), (5, 1000, 4.0, 1e-5), (20, 1000, 4.0, 1e-5), (5, 10_000, 8.0, 1e-5), (20, 10_000, 8.0, 1e-5),
)  # fmt: skip
"""Columns, records, labels and δ."""


def measure(columns: int, records: int, label: float, delta: float) -> dict:
    """One pool: its limit and what stands beside it."""
    pool = np.random.default_rng(6).standard_normal((records, columns))
    clip = widest_distance(pool) / 2.0
    pool -= pool.mean(axis=0)
    pool *= np.minimum(1.0, clip / np.linalg.norm(pool, axis=1))[:, None]
    cpu = time.process_time()
    found = wi.population.gaussian(pool, epsilon=label, delta=delta, clip=clip, query="sum", method="normal")
    seconds = time.process_time() - cpu
    scale = float(found.noise_scale)
    shift = float(Whitened(pool / scale, records // 2).shifts[found.most_exposed])
    alone = pairwise_epsilons(pool, scale, delta, records=[found.most_exposed])
    return {
        "columns": columns,
        "records": records,
        "label": label,
        "delta": delta,
        "limit": found.pmp.epsilon,
        "pairwise": float(alone[0]),
        "normal": epsilon_for(1.0, delta, shift),
        "at_least": found.at_least,
        "cpu_seconds": seconds,
    }


def main() -> int:
    """Measure every pool."""
    _common.parser_for(__doc__).parse_args()
    rows = []
    for setting in SETTINGS:
        rows.append(measure(*setting))
        print({key: value if value is None else round(value, 4) for key, value in rows[-1].items()}, flush=True)
    _common.write_results("low_noise_sums", ("whosin", "numpy", "scipy"), {"measurements": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
