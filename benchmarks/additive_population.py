"""Time and memory of the bounds for noisy sums over a pool: python benchmarks/additive_population.py.

Each task runs in a fresh process with one thread. Run it with a Python that has whosin. Writes
benchmarks/results/additive_population.json.

pairwise        20,000 records in 20 dimensions, Gaussian noise, every record
pairwise_exact  2,000 numbers, pair by pair
spectral_200    200 normal numbers, half drawn, Gaussian noise with ε = 5 on the records, every record
spectral_2000   2,000 numbers, the largest, the smallest and the median record
spectral_20000  20,000 numbers, the same three records
laplace_2000    2,000 numbers with Laplace noise, the same three records
groups_1d       200 numbers, 64 pairs a group, 20,000 draws, the largest record
groups_5d       200 records in 5 dimensions, the farthest record
groups_5d_all   the same with 10 records at once
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import _common

DELTA = 0.01
LABEL = 5.0


def numbers(half: int):
    """A normal pool of 2·half numbers for a mean over half of them, and the noise with ε = 5 on the records."""
    import numpy as np

    from whosin.numerics.gaussian_noise import noise_for

    f = np.random.default_rng(5).standard_normal(2 * half) / half
    return f, (f.max() - f.min()) * noise_for(LABEL, DELTA, 1.0)


def rows():
    """A normal pool of 200 rows in five dimensions, its noise, and the records by their mean distance to the others."""
    import numpy as np

    from whosin.numerics.gaussian_noise import noise_for

    f = np.random.default_rng(6).standard_normal((200, 5)) / 100
    distances = np.linalg.norm(f[:, None] - f[None], axis=2)
    return f, distances.max() * noise_for(LABEL, DELTA, 1.0), np.argsort(-distances.mean(axis=1))


def pairwise() -> dict:
    import numpy as np

    from whosin.population.sums.pairwise import pairwise_epsilons

    found = pairwise_epsilons(np.random.default_rng(5).standard_normal((20_000, 20)), 5.0, 1e-5)
    return {"smallest": float(found.min()), "largest": float(found.max())}


def pairwise_exact() -> dict:
    from whosin.population.sums.pairwise import pairwise_epsilons

    f, scale = numbers(1000)
    found = pairwise_epsilons(f, scale, DELTA)
    return {"at_largest_number": float(found[f.argmax()]), "largest": float(found.max())}


def spectral(half: int, noise: str = "gaussian", every: bool = False) -> dict:
    import numpy as np

    from whosin.population.sums.spectral import SubsetSumLaws

    f, scale = numbers(half)
    order = np.argsort(f)
    records = None if every else [int(order[-1]), int(order[0]), int(order[half])]
    limits = SubsetSumLaws(f, half, scale, noise, records).epsilon(DELTA)
    worst = limits[:, 1].argmax()
    return {
        "records": len(limits),
        "largest": limits[worst].tolist(),
        "at_largest_number": limits[order[-1] if every else 0].tolist(),
        "widest_enclosure": float((limits[:, 1] - limits[:, 0]).max()),
    }


def groups(dimension: int, count: int = 1) -> dict:
    import numpy as np

    from whosin.population.sums.groups import group_epsilons
    from whosin.population.sums.pairwise import pairwise_epsilons

    if dimension == 1:
        f, scale = numbers(100)
        chosen = np.argsort(-f)[:count]
    else:
        f, scale, order = rows()
        chosen = order[:count]
    upper, estimate = group_epsilons(f, 100, scale, DELTA, records=chosen, rng=0)
    bound = pairwise_epsilons(f, scale, DELTA, records=chosen)
    return {"upper": float(upper[0]), "estimate": float(estimate[0]), "pairwise": float(bound[0])}


TASKS: dict[str, Callable[[], dict]] = {
    "pairwise": pairwise,
    "pairwise_exact": pairwise_exact,
    "spectral_200": lambda: spectral(100, every=True),
    "spectral_2000": lambda: spectral(1000),
    "spectral_20000": lambda: spectral(10_000),
    "laplace_2000": lambda: spectral(1000, "laplace"),
    "groups_1d": lambda: groups(1),
    "groups_5d": lambda: groups(5),
    "groups_5d_all": lambda: groups(5, 10),
}


def measure(task: str) -> dict:
    """One task, after the imports."""
    import scipy.special

    import whosin.population.sums.groups
    import whosin.population.sums.spectral  # noqa: F401

    scipy.special.erfcx(1.0)
    return _common.measured(task, TASKS[task])


def show(runs: dict, medians: dict) -> dict:
    """Print the table; nothing else is kept."""
    table = []
    for task, records in runs.items():
        memory = records[0]["peak_mebibytes"]
        values = ", ".join(f"{key} {value}" for key, value in records[0]["values"].items())
        table.append((task, f"{medians[task]:.2f}", f"{memory:.0f}" if memory else "", values))
    _common.print_table(("task", "median CPU s", "peak MiB", "values"), table)
    return {}


if __name__ == "__main__":
    packages = ("whosin", "numpy", "scipy")
    sys.exit(_common.run_tasks("additive_population", __doc__.splitlines()[0], tuple(TASKS), measure, show, packages))
