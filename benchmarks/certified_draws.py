"""How close certified draws of the exponential mechanism come to the truth: python benchmarks/certified_draws.py.

Pools of normal points, clipped, and ten candidates on the unit sphere, δ = 1e-3, 95 % confidence, draws as many as the
library takes by default, on all cores. ``estimate`` is the same without a margin; being the largest of many noisy
numbers it is rather above the truth than below it. ``again`` is the estimate for the same record from other draws, so
nothing was picked by their luck: the largest ε̃ is no smaller, up to the noise of one number. Writes
benchmarks/results/certified_draws.json.

``--records 100000`` is one unattended run with ``--draws`` of them, with a journal from which the same command resumes
if it was interrupted. Writes benchmarks/results/certified_draws_100000.json.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

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


def measure(records: int, temperature: float, draws: int | None = None, journal: Path | None = None) -> dict:
    """One certificate, its estimates and its cost."""
    wall, cpu = time.perf_counter(), time.process_time()
    logits, workers = pool(records, temperature), os.cpu_count()
    found = certify(logits, records // 2, delta=DELTA, rng=0, draws=draws, n_jobs=workers, journal=journal)
    seconds = {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}
    other_draws, other_journal = (found.draws, None) if journal is None else (found.draws // 5, f"{journal}.again")
    again = certify(logits, records // 2, delta=DELTA, rng=1, draws=other_draws, n_jobs=workers, journal=other_journal)
    estimate, other = float(found.point.max()), float(again.point[found.point.argmax()])
    return {
        "records": records,
        "inverse_temperature": temperature,
        "draws": found.draws,
        "limit": found.epsilon,
        "estimate": estimate,
        "again": other,
        "limit_over_estimate": found.epsilon / estimate,
        "limit_over_again": found.epsilon / other,
        "without_draws": float(found.certain.max()),
        **seconds,
    }


def main() -> int:
    """Measure every setting, or one large one."""
    parser = _common.parser_for(__doc__)
    parser.add_argument("--records", type=int, help="one unattended run with so many records")
    parser.add_argument("--draws", type=int, default=100_000, help="draws of the unattended run (default 100,000)")
    parser.add_argument("--journal", type=Path, help="file of the unattended run (default certified_draws_<N>.npz)")
    options = parser.parse_args()
    name, rows = "certified_draws", []
    if options.records is not None:
        name = f"{name}_{options.records}"
        journal = options.journal or Path(f"{name}.npz")
        rows.append(measure(options.records, 5.0 * options.records**0.5, options.draws, journal))
    for setting in SETTINGS if options.records is None else ():
        rows.append(measure(*setting))
        print({key: round(value, 4) for key, value in rows[-1].items()}, flush=True)
    _common.write_results(name, ("whosin", "numpy"), {"measurements": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
