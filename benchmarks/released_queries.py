"""What the queries of an audit find in real releases: python benchmarks/released_queries.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds releases_adult: rows of Adult and what eight generators that were
trained on 1,000 (small_: 200) of them released. Each release is audited with the queries that were the default before
soft rarity, with soft rarity in their place, and with the default of today, with and without the reference rows. Shown:
the advantage on records that did not choose the attack, mean over all splits, and the lower limit. Writes
benchmarks/results/released_queries.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import _common

DATASET = "releases_adult"
HARD = ["rarity_share", "rarity", "equal_cells", "nearest", "nearest_ratio", "copies"]
SOFT = ["soft_rarity_share", "soft_rarity", "equal_cells", "nearest", "nearest_ratio", "copies"]
WAYS: dict[str, tuple[object, bool]] = {
    "before": (HARD, False),
    "soft instead": (SOFT, False),
    "default": ("auto", False),
    "default, reference": ("auto", True),
}


def audit(folder: Path, release: str, query: object, reference: bool) -> dict:
    """Audit one release in one way."""
    import numpy as np

    import whosin as wi
    from whosin.auditing.measuring.limits import ADVANTAGE

    kind = "small_" if release.startswith("small_") else ""
    paths = [folder / f"{name}.csv.gz" for name in (f"{kind}train", f"{kind}holdout", release)]
    others = str(folder / f"{kind}ref.csv.gz") if reference else None
    start = time.process_time()
    found = wi.audit_synthetic(*map(str, paths), query=query, reference=others)
    attacks = found._splits.attacks(ADVANTAGE)
    return {
        "advantage": float(np.mean([attack.tpr - attack.fpr for attack in attacks])),
        "lower": found.advantage.lower,
        "cpu_seconds": time.process_time() - start,
    }


def main() -> int:
    """Audit every release in every way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help=f"folder that holds {DATASET} (default: the variable WHOSIN_DATA)")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS), help="print, write nothing")
    options = parser.parse_args()
    folder = _common.data_folder(options.data, DATASET)
    releases = sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*release_*.csv.gz"))
    found: dict[str, dict[str, dict]] = {}
    for release in releases:
        found[release] = {way: audit(folder, release, *WAYS[way]) for way in options.ways}
        print(release, {way: round(one["advantage"], 3) for way, one in found[release].items()}, file=sys.stderr)
    table = [
        (release, *(f"{one['advantage']:.3f} ({one['lower']:.3f})" for one in ways.values()))
        for release, ways in found.items()
    ]
    _common.print_table(("release", *options.ways), table)
    if tuple(options.ways) == tuple(WAYS):
        path = _common.RESULTS / "released_queries.json"
        path.write_text(
            json.dumps({"machine": _common.machine(), "releases": found}, indent=2) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
