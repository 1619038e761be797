"""What the verdict finds and how much it depends on the seed: python benchmarks/verdicts.py [--data FOLDER].

scores   scores of n members and n non-members from known laws: share of runs with a lower limit above 0, mean limits
copies   a release that repeats some training rows word for word, and no held-out row: the same
seeds    german credit and COMPAS (FOLDER, or the environment variable WHOSIN_DATA, holds german_credit and compas), 400
         training and 400 held-out rows, a release of 400 rows, 160 of them training rows with cells redrawn: the range
         of the lower limit over 20 seeds

Not a timing. Writes benchmarks/results/verdicts.json; --tasks runs some of them and only prints.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator

import _common
import numpy as np
from scipy.special import ndtri

import whosin as wi
from whosin.errors import AssumptionWarning

Array = np.ndarray
RUNS = 40
SEEDS = 20
CASES = ("equal", "shift .1", "shift .2", "shift .6", "scale", "spike .05", "spike .1", "10 + spike", "10 weak")
COPIES = ((500, 500, 50), (1000, 1000, 60), (200, 150, 50), (500, 500, 0))


def draw(case: str, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return scores of n members and n non-members: one query, or eleven, or ten."""
    kind, _, size = case.partition(" ")
    if case == "10 + spike":
        members, others = rng.normal(size=(n, 11)), rng.normal(size=(n, 11))
        members[rng.random(n) < 0.1, 10] += 6.0
        return members, others
    if case == "10 weak":
        return rng.normal(0.29, 1.0, (n, 10)), rng.normal(size=(n, 10))
    members, others = rng.normal(size=n), rng.normal(size=n)
    if kind == "shift":
        members += 2.0 * ndtri(0.5 + 0.5 * float(size))
    elif kind == "scale":
        members *= 1.6
    elif kind == "spike":
        members[rng.random(n) < float(size)] += 6.0
    return members, others


def scores(sizes: tuple[int, ...] = (100, 285, 1000)) -> dict:
    """Audit each case at each size."""
    found = {}
    for n in sizes:
        for case in CASES:
            limits = [wi.audit(*draw(case, n, np.random.default_rng([run, n]))).advantage for run in range(RUNS)]
            found[f"{case}, n = {n}"] = _summary(limits)
    return found


def table(n: int, rng: np.random.Generator):
    """Return n rows of five columns of numbers and categories."""
    import polars as pl

    return pl.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10.0, 1.0, n).round(0),
            "sex": np.array(["m", "f"])[rng.integers(0, 2, n)],
            "job": np.array(list("abcdefgh"))[rng.integers(0, 8, n)],
            "height": rng.normal(170.0, 10.0, n).round(1),
        }
    )


def copies() -> dict:
    """Audit releases that repeat training rows word for word."""
    import polars as pl

    found = {}
    for train_rows, held_out, copied in COPIES:
        limits = []
        for run in range(RUNS):
            rng = np.random.default_rng([run, train_rows, copied])
            train, holdout, release = (table(n, rng) for n in (train_rows, held_out, train_rows))
            release = pl.concat([release[: train_rows - copied], train[:copied]])
            limits.append(wi.audit_synthetic(train, holdout, release).advantage)
        found[f"{copied} of {train_rows} rows copied, {held_out} held out"] = _summary(limits)
    return found


def _summary(limits: list) -> dict:
    lower, upper = (np.array([getattr(limit, side) for limit in limits]) for side in ("lower", "upper"))
    return {
        "runs": len(limits),
        "found": float(np.mean(lower > 0.0)),
        "mean_lower": float(lower.mean()),
        "mean_upper": float(upper.mean()),
    }


def real_tables(data: str | None) -> Iterator[tuple[str, object]]:
    """Yield german credit and COMPAS as frames without names and identifiers."""
    import polars as pl

    german = _common.data_folder(data, "german_credit") / "german.data"
    yield "german credit", pl.read_csv(german, separator=" ", has_header=False)
    compas = pl.read_csv(_common.data_folder(data, "compas") / "compas-scores-two-years.csv", infer_schema_length=None)
    kept = ["sex", "age", "race", "juv_fel_count", "decile_score", "juv_misd_count", "juv_other_count", "priors_count"]
    yield "compas", compas.select([*kept, "c_charge_degree", "c_charge_desc", "is_recid", "two_year_recid"])


def seeds(data: str | None) -> dict:
    """Audit one release of each table with many seeds."""
    import polars as pl

    found = {}
    for name, everyone in real_tables(data):
        rng = np.random.default_rng(0)
        rows = rng.permutation(everyone.height)
        train, holdout, others = (everyone[rows[400 * i : 400 * (i + 1)]] for i in range(3))
        others = others if others.height == 400 else everyone[rows[-400:]]
        redrawn = []
        for column in train[:160].get_columns():
            draw_again = pl.Series(rng.random(160) < 0.4)
            redrawn.append(train[column.name][rng.integers(400, size=160)].zip_with(draw_again, column))
        release = pl.concat([pl.DataFrame(redrawn), others[:240]])
        limits = [wi.audit_synthetic(train, holdout, release, rng=seed).advantage for seed in range(SEEDS)]
        default = wi.audit_synthetic(train, holdout, release).advantage
        lower = [limit.lower for limit in limits]
        found[name] = {
            "default": default.to_dict(),
            "seeds": SEEDS,
            "smallest_lower": min(lower),
            "largest_lower": max(lower),
            "range": max(lower) - min(lower),
            "estimates": [min(limit.estimate for limit in limits), max(limit.estimate for limit in limits)],
        }
    return found


def main() -> int:
    """Run all tasks and write what was found, or some of them and print it."""
    parser = _common.parser_for(__doc__, data="german_credit and compas")
    parser.add_argument("--tasks", nargs="+", choices=("scores", "copies", "seeds"), help="print, write nothing")
    options = parser.parse_args()
    tasks: dict[str, Callable[[], dict]] = {"scores": scores, "copies": copies, "seeds": lambda: seeds(options.data)}
    warnings.simplefilter("ignore", AssumptionWarning)
    found = {}
    for name in options.tasks or tasks:
        found[name] = tasks[name]()
        print(json.dumps({name: found[name]}, indent=2), flush=True)
    if options.tasks is None:
        _common.write_results("verdicts", ("whosin",), found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
