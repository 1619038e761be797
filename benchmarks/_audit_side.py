"""The whosin side of the audits: python _audit_side.py audit FOLDER RELEASE SEED, run by audit_vs_peers.py."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import _common

_start = time.process_time()
import numba  # noqa: E402, F401
import polars  # noqa: E402, F401
import sklearn.ensemble  # noqa: E402
import sklearn.linear_model  # noqa: E402, F401

import whosin as wi  # noqa: E402
from whosin.tables import read_table  # noqa: E402

IMPORT_SECONDS = time.process_time() - _start
PACKAGES = ("whosin", "numpy", "scipy", "scikit-learn", "numba", "polars")


def summary(found: dict) -> dict:
    """What an audit answers, without the lists."""
    return {
        "advantage": {side: found["advantage"][side] for side in ("estimate", "lower", "upper")},
        "members": found["members"],
        "copies": found["copies"],
        "shared_rows": found["shared_rows"],
        "records_alone": {side: found["records_alone"][side] for side in ("differs", "p_value")},
        "points_of_roc": len(found["roc"]["fpr"]),
        "groups": len(found["groups"]),
        "exposed_groups": len(found["exposed_groups"]),
        "release_sizes": len(found["release_size"]["sizes"]),
    }


def audit(folder: Path, release: str, seed: int) -> dict:
    """Read the three tables and make the whole audit of the release."""
    train, holdout, synthetic = (read_table(folder / f"{name}.csv") for name in ("train", "holdout", release))
    return summary(wi.audit_synthetic(train, holdout, synthetic, groups=["sex", "race"], rng=seed).to_dict())


MEASURES = {"audit": audit}

if __name__ == "__main__":
    measure, folder, release, seed = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    _common.report_cost(lambda: MEASURES[measure](folder, release, seed), PACKAGES, IMPORT_SECONDS)
