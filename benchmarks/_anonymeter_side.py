"""The Anonymeter side of audit_vs_peers.py: python _anonymeter_side.py MEASURE FOLDER RELEASE SEED."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import _common

_start = time.process_time()
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from anonymeter.evaluators import LinkabilityEvaluator, SinglingOutEvaluator  # noqa: E402

IMPORT_SECONDS = time.process_time() - _start
PACKAGES = ("anonymeter", "numpy", "scipy", "scikit-learn", "numba", "pandas")

# Columns and counts of the example in Anonymeter's repository, which uses the same census.
KNOWN_TO_ONE = ["workclass", "education", "hours", "capital_loss", "capital_gain"]
KNOWN_TO_OTHER = ["race", "sex", "fnlwgt", "age", "country"]
LINK_ATTACKS, NEIGHBOURS = 2000, 10
SINGLING_ATTACKS, SINGLING_COLUMNS = 100, 4


def tables(folder: Path, release: str) -> dict[str, pd.DataFrame]:
    """Original, synthetic and control rows under Anonymeter's names."""
    files = {"ori": "train", "syn": release, "control": "holdout"}
    return {name: pd.read_csv(folder / f"{file}.csv") for name, file in files.items()}


def answer(evaluator: LinkabilityEvaluator | SinglingOutEvaluator) -> dict:
    """Risk beyond the control group with its interval, and the success rates behind it."""
    risk, rates = evaluator.risk(), evaluator.results()
    return {
        "risk": risk.value,
        "interval": list(risk.ci),
        "success_on_training": rates.attack_rate.value,
        "success_on_control": rates.control_rate.value,
        "success_of_guessing": rates.baseline_rate.value,
    }


def linkability(folder: Path, release: str, seed: int) -> dict:
    """Whether the two halves of a person's columns have a neighbour in common in the release."""
    np.random.seed(seed)  # noqa: NPY002 - the package draws from the global generator
    evaluator = LinkabilityEvaluator(
        **tables(folder, release),
        aux_cols=(KNOWN_TO_ONE, KNOWN_TO_OTHER),
        n_attacks=LINK_ATTACKS,
        n_neighbors=NEIGHBOURS,
    )
    return answer(evaluator.evaluate(n_jobs=1))


def singling_out(folder: Path, release: str, seed: int) -> dict:
    """Whether a condition on four columns that one released row meets is met by one training row."""
    evaluator = SinglingOutEvaluator(
        **tables(folder, release), n_attacks=SINGLING_ATTACKS, n_cols=SINGLING_COLUMNS, seed=seed
    )
    return answer(evaluator.evaluate(mode="multivariate"))


MEASURES = {"linkability": linkability, "singling_out": singling_out}

if __name__ == "__main__":
    measure, folder, release, seed = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    _common.report_cost(lambda: MEASURES[measure](folder, release, seed), PACKAGES, IMPORT_SECONDS)
