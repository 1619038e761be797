"""The side of jax-privacy: lower limits on ε from the scores in a file, by both of its one-run methods."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Split


def main() -> int:
    """Print one limit per run, method and way to choose the threshold, with the seconds they took."""
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found, start = [], time.process_time()
    for number, run in enumerate(given["runs"]):
        auditor = CanaryScoreAuditor(np.array(run["inside"]), np.array(run["outside"]))
        limits = {}
        for way, strategy in (("all thresholds", Bonferroni()), ("split", Split(seed=number))):
            for method in ("epsilon_one_run", "epsilon_one_run_fdp"):
                limit = getattr(auditor, method)(0.05, given["delta"], threshold_strategy=strategy)
                limits[f"{method}, {way}"] = float(limit)
        found.append(limits)
    print(json.dumps({"limits": found, "cpu_seconds": time.process_time() - start}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
