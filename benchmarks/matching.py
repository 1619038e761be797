"""Time and memory of matching targets with synthetic rows: python benchmarks/matching.py.

Each task runs in a fresh process with one thread. Run it with a Python that has whosin[fast]. Writes
benchmarks/results/matching.json. Compilation is not counted: a small call comes first.

match_15         20,000 targets, 10,000 synthetic rows, 15 columns of which 6 numeric, 20 prefixes
match_15_plain   the same columns and rows with 1,000 targets, in blocks with numpy only
match_15_fast    those 1,000 targets compiled
match_41         20,000 targets, 100,000 synthetic rows, 41 columns of which 20 numeric
nearest_15       20,000 points, 20,000 references, 15 coordinates, the two nearest
sklearn_15       the same by scikit-learn, brute force in double precision
nearest_3072     2,000 points, 2,000 references, 3,072 coordinates
sklearn_3072     the same by scikit-learn
counts_15        references of nearest_15 within two radii
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import _common


def tables(targets: int, rows: int, columns: int, numeric: int):
    """Skewed categories of 2 to 40 values, and numeric columns of 5,000; rarity as weights."""
    import numpy as np

    rng = np.random.default_rng(0)
    weights, numbers, ranks, cells = [], [], [], []
    for column in range(columns):
        size = 5000 if column < numeric else int(rng.integers(2, 41))
        shares = rng.dirichlet(np.full(size, 0.5)) + 1e-6
        shares /= shares.sum()
        weights.append(-np.log(shares))
        numbers.append(np.sort(rng.random(size)) if column < numeric else None)
        ranks.append(2.0 * np.cumsum(shares) - shares - 1.0 if column < numeric else None)
        cells.append(rng.choice(size, targets + rows, p=shares).astype(np.int32))
    both = np.stack(cells, axis=1)
    return both[:targets], both[targets:], weights, {"numbers": numbers, "ranks": ranks}


def match(targets: int, rows: int, columns: int, numeric: int, method: str, prefixes: int = 0) -> Callable[[], dict]:
    from whosin.auditing.releases.matching.match import match_rows

    first, second, weights, numeric_tables = tables(targets, rows, columns, numeric)
    match_rows(first[:2], second[:2], weights, **numeric_tables, method=method)
    sizes = [rows * (place + 1) // prefixes for place in range(prefixes)] or None

    def run() -> dict:
        found = match_rows(first, second, weights, **numeric_tables, method=method, prefixes=sizes)
        return {
            "pairs": targets * rows,
            "mean_matches": float(found.matches.mean()),
            "mean_weight": float(found.weight.mean()),
            "mean_distance": float(found.distance.mean()),
        }

    return run


def clouds(count: int, dimension: int):
    import numpy as np

    rng = np.random.default_rng(1)
    return rng.standard_normal((count, dimension)), rng.standard_normal((count, dimension))


def neighbours(count: int, dimension: int, side: str) -> Callable[[], dict]:
    from sklearn.neighbors import NearestNeighbors

    from whosin.auditing.releases.matching.neighbours import nearest

    points, references = clouds(count, dimension)

    def run() -> dict:
        if side == "whosin":
            distances, _ = nearest(points, references, k=2)
        else:
            distances, _ = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(references).kneighbors(points)
        return {"pairs": count * count, "mean_distance": float(distances.mean())}

    return run


def counts() -> Callable[[], dict]:
    from whosin.auditing.releases.matching.neighbours import counts_within

    points, references = clouds(20_000, 15)
    return lambda: {
        "pairs": len(points) * len(references),
        "mean_counts": counts_within(points, references, [2.0, 3.0]).mean(axis=0).tolist(),
    }


TASKS: dict[str, Callable[[], Callable[[], dict]]] = {
    "match_15": lambda: match(20_000, 10_000, 15, 6, "compiled", prefixes=20),
    "match_15_plain": lambda: match(1_000, 10_000, 15, 6, "plain"),
    "match_15_fast": lambda: match(1_000, 10_000, 15, 6, "compiled"),
    "match_41": lambda: match(20_000, 100_000, 41, 20, "compiled"),
    "nearest_15": lambda: neighbours(20_000, 15, "whosin"),
    "sklearn_15": lambda: neighbours(20_000, 15, "sklearn"),
    "nearest_3072": lambda: neighbours(2_000, 3072, "whosin"),
    "sklearn_3072": lambda: neighbours(2_000, 3072, "sklearn"),
    "counts_15": counts,
}


def measure(task: str) -> dict:
    """One task, after its preparation."""
    return _common.measured(task, TASKS[task]())


def show(runs: dict, medians: dict) -> dict:
    """Print the table; return the ratios of what was measured side by side."""
    table = []
    for task, records in runs.items():
        pairs, cpu = records[0]["values"].get("pairs"), medians[task]
        memory, before = records[0]["peak_mebibytes"], records[0]["before_mebibytes"]
        extra = f"{memory - before:.0f}" if memory else ""
        table.append((task, f"{cpu:.3f}", f"{cpu / pairs * 1e9:.2f}" if pairs else "", extra))
    _common.print_table(("task", "median CPU s", "ns a pair", "extra MiB"), table)
    sides = {
        "plain / compiled, 15 columns": ("match_15_plain", "match_15_fast"),
        "scikit-learn / whosin, 15 coordinates": ("sklearn_15", "nearest_15"),
        "scikit-learn / whosin, 3072 coordinates": ("sklearn_3072", "nearest_3072"),
    }
    known = {name: pair for name, pair in sides.items() if set(pair) <= set(medians)}
    return {"ratios": {name: medians[slow] / medians[fast] for name, (slow, fast) in known.items()}}


if __name__ == "__main__":
    packages = ("whosin", "numpy", "scipy", "scikit-learn", "numba")
    sys.exit(_common.run_tasks("matching", __doc__.splitlines()[0], tuple(TASKS), measure, show, packages))
