"""Where the bound on a noisy sum of many columns is loose, and by how much: python benchmarks/low_noise_sums.py.

Normal pools of which a half is drawn, Gaussian noise with which the two records farthest apart cost the label (replace
one). For the most exposed record: ``limit``, what ``wi.population.gaussian`` ships (the smaller of the normal bound and
the pairwise one), ``pairwise`` alone, ``normal``, ε̃ if both laws were normal, and ``at_least``, a limit on the truth
from below: somebody who looks in one direction only. Writes benchmarks/results/low_noise_sums.json.

``--reaches``: the largest label of LABELS up to which the limit of the most exposed record is at most half above
``normal`` (``near_up_to``), and how many times it is at each (``off``). Writes
benchmarks/results/low_noise_reaches.json.
"""

from __future__ import annotations

import time

import _common
import numpy as np

import whosin as wi
from whosin.numerics.gaussian_noise import epsilon_for, noise_for
from whosin.population.pool import widest_distance
from whosin.population.sums.normal import Whitened, limits_of
from whosin.population.sums.pairwise import pairwise_epsilons

SETTINGS = (
    (2, 1000, 5.0, 1e-2), (2, 10_000, 5.0, 1e-2), (5, 200, 5.0, 1e-2), (5, 1000, 5.0, 1e-2), (5, 10_000, 5.0, 1e-2),
    (5, 10_000, 8.0, 1e-2), (10, 1000, 5.0, 1e-2), (10, 1000, 8.0, 1e-2), (20, 200, 4.0, 1e-2), (20, 1000, 3.0, 1e-2),
    (20, 1000, 5.0, 1e-2), (20, 1000, 8.0, 1e-2), (20, 10_000, 3.0, 1e-2), (20, 10_000, 5.0, 1e-2),
    (2, 1000, 8.0, 1e-5), (5, 1000, 4.0, 1e-5), (20, 1000, 4.0, 1e-5), (5, 10_000, 8.0, 1e-5), (20, 10_000, 8.0, 1e-5),
)  # fmt: skip
"""Columns, records, labels and δ."""
LABELS = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
REACHES = tuple((d, n, delta) for delta in (1e-2, 1e-5) for n in (200, 1000, 10_000) for d in (2, 5, 20))
"""Columns, records and δ."""


def normal_pool(columns: int, records: int) -> np.ndarray:
    """The same numbers for each size."""
    return np.random.default_rng(6).standard_normal((records, columns))


def reach(columns: int, records: int, delta: float) -> dict:
    """Up to which label the limit is near for one pool, and by how much it is off at each."""
    pool, off = normal_pool(columns, records), {}
    for label in LABELS:
        scale = noise_for(label, delta, widest_distance(pool))
        whitened = Whitened(pool / scale, records // 2)
        x = int(np.argmax(whitened.shifts))
        with np.errstate(over="ignore", invalid="ignore"):
            limit = float(limits_of(whitened, np.array([x]), delta)[0])
        limit = min(limit, float(pairwise_epsilons(pool, scale, delta, records=[x])[0]), label)
        off[label] = limit / epsilon_for(1.0, delta, float(whitened.shifts[x]))
    near = [label for place, label in enumerate(LABELS) if all(off[each] <= 1.5 for each in LABELS[: place + 1])]
    return {"columns": columns, "records": records, "delta": delta, "near_up_to": max(near, default=0.0), "off": off}


def measure(columns: int, records: int, label: float, delta: float) -> dict:
    """One pool: its limit and what stands beside it."""
    pool = normal_pool(columns, records)
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
    parser = _common.parser_for(__doc__)
    parser.add_argument("--reaches", action="store_true", help="up to which label the limit is near, instead")
    if parser.parse_args().reaches:
        found = [reach(*setting) for setting in REACHES]
        _common.write_results("low_noise_reaches", ("whosin", "numpy", "scipy"), {"reaches": found})
        return 0
    rows = []
    for setting in SETTINGS:
        rows.append(measure(*setting))
        print({key: value if value is None else round(value, 4) for key, value in rows[-1].items()}, flush=True)
    _common.write_results("low_noise_sums", ("whosin", "numpy", "scipy"), {"measurements": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
