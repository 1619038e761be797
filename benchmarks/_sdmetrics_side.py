"""The SDMetrics side of audit_vs_peers.py: python _sdmetrics_side.py MEASURE FOLDER RELEASE SEED."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import _common

_start = time.process_time()
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sdmetrics.single_table import DCROverfittingProtection  # noqa: E402

IMPORT_SECONDS = time.process_time() - _start
PACKAGES = ("sdmetrics", "numpy", "scipy", "scikit-learn", "pandas")

ROWS, ITERATIONS = 1000, 5


def overfitting(folder: Path, release: str, seed: int) -> dict:
    """Whether released rows lie nearer to training rows than to held-out rows, on five samples of 1,000 rows each."""
    np.random.seed(seed)  # noqa: NPY002 - the package draws from the global generator
    metadata = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["sdv_metadata"]
    found = DCROverfittingProtection.compute_breakdown(
        real_training_data=pd.read_csv(folder / "train.csv"),
        synthetic_data=pd.read_csv(folder / f"{release}.csv"),
        real_validation_data=pd.read_csv(folder / "holdout.csv"),
        metadata=metadata,
        table_name="t",
        num_rows_subsample=ROWS,
        num_iterations=ITERATIONS,
    )
    return {"score": found["score"], **found["synthetic_data_percentages"]}


MEASURES = {"overfitting": overfitting}

if __name__ == "__main__":
    measure, folder, release, seed = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    _common.report_cost(lambda: MEASURES[measure](folder, release, seed), PACKAGES, IMPORT_SECONDS)
