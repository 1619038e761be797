"""What generators of tables give away, measured: python benchmarks/tabular_generators.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds bench_adult10k: train and holdout as CSV files of 10,000 rows
each, and meta.json. A bootstrap, which repeats training rows, and the Gaussian copula of whosin are trained here;
SDV's copula, CTGAN and TVAE in an environment of their own, which is made when absent (--generators leaves some out).
CTGAN and TVAE train for --epochs epochs, 20 by default instead of SDV's 300: longer training may leak more. Every
release has as many rows as the training data and is audited by whosin; each step runs in a fresh process with one
thread. Writes benchmarks/results/tabular_generators.json, if all generators were asked for. Standard library only, but
for the processes it starts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import _common

DATASET = "bench_adult10k"
OURS = ("bootstrap", "zoo copula")
SDV = ("sdv copula", "sdv ctgan", "sdv tvae")
SDV_VERSION = "2.0.0"
TORCH = "torch==2.13.0"
PACKAGES = ("whosin", "numpy", "scipy", "scikit-learn", "polars")


class Bootstrap:
    """Rows drawn again, with replacement: the leakiest synthesiser."""

    def fit(self, table):
        """Keep the rows."""
        self.table = table
        return self

    def sample(self, n, random_state=None):
        """Draw rows."""
        return self.table.sample(n, with_replacement=True, seed=random_state)


def audit(generator: str, folder: Path, seed: int, released: str | None) -> dict:
    """Train a generator of ours and audit it, or audit what another one released."""
    import polars as pl

    import whosin as wi
    from whosin.training import GaussianCopula

    train, holdout = (pl.read_csv(folder / f"{name}.csv") for name in ("train", "holdout"))
    if released is not None:
        found = wi.audit_generator(None, train, holdout, synthetic=pl.read_csv(released), rng=seed)
    else:
        model = Bootstrap() if generator == "bootstrap" else GaussianCopula()
        found = wi.audit_generator(model, train, holdout, fit=True, rng=seed)
    return {"advantage": found.advantage.to_dict(), "copies": list(found.copies), "query": found.query}


def sides_of(generator: str, folder: Path, epochs: int, seed: int) -> dict:
    """Train, release and audit with one generator; return the audit with the cost of the training where it is apart."""
    run = ("--run", generator, "--data", str(folder.parent), "--seed", str(seed))
    if generator in OURS:
        return _common.run_side(_common.whosin_python(), Path(__file__).name, *run)
    python = _common.peer_python("sdv", SDV_VERSION, first=(TORCH,))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "released.csv"
        trained = _common.run_side(python, "_sdv_side.py", generator, str(folder), str(epochs), str(seed), str(path))
        found = _common.run_side(_common.whosin_python(), Path(__file__).name, *run, "--released", str(path))
    return {**found, "training": trained}


def show(runs: dict) -> None:
    """Print the answers."""
    rows = []
    for generator, records in runs.items():
        for one in records:
            found, (inside, outside) = one["values"]["advantage"], one["values"]["copies"]
            limits = f"{found['lower']:.3f} to {found['upper']:.3f}"
            training = f"{one['training']['cpu_seconds']:.0f}" if "training" in one else "-"
            rows.append((generator, f"{found['estimate']:.3f}", limits, f"{inside} / {outside}", training))
    _common.print_table(("generator", "advantage", "limits", "copies of train / holdout", "training CPU s"), rows)


def keep(runs: dict, epochs: int) -> None:
    """Write what was measured."""
    content = {
        "epochs_of_ctgan_and_tvae": epochs,
        "threads": 1,
        "runs": runs,
    }
    _common.write_results("tabular_generators", PACKAGES, content)


def main() -> int:
    """Run the comparison."""
    parser = _common.parser_for(__doc__, data=DATASET, repeats=2)
    parser.add_argument("--epochs", type=int, default=20, help="epochs of CTGAN and TVAE (default 20)")
    parser.add_argument(
        "--generators", nargs="+", choices=(*OURS, *SDV), default=(*OURS, *SDV), help="print, write nothing"
    )
    parser.add_argument("--run", choices=(*OURS, *SDV), help=argparse.SUPPRESS)
    parser.add_argument("--released", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = _common.data_folder(options.data, DATASET)
    if options.run:
        print(
            json.dumps(
                _common.measured(options.run, lambda: audit(options.run, folder, options.seed, options.released))
            )
        )
        return 0
    if options.repeats < 1 or options.epochs < 1:
        parser.error("--repeats and --epochs must be at least 1")
    runs: dict[str, list[dict]] = {}
    try:
        for seed in range(options.repeats):
            for generator in options.generators:
                print(f"{generator}: {seed + 1}/{options.repeats}", file=sys.stderr, flush=True)
                runs.setdefault(generator, []).append(sides_of(generator, folder, options.epochs, seed))
    except _common.SideFailed as failure:
        print(failure, file=sys.stderr)
        return 2
    show(runs)
    if set(runs) == {*OURS, *SDV}:
        keep(runs, options.epochs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
