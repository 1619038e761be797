"""What the queries of an audit find in real releases: python benchmarks/released_queries.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds releases_adult: rows of Adult and what eight generators that were
trained on 1,000 (small_: 200) of them released. Each release is audited with the queries that were the default before
soft rarity, with those of today on all held-out rows, with the default (some of the held-out rows serve as reference)
and with the reference rows. --made audits releases made here instead, from other tables in FOLDER and by other
generators (_made_releases.py), and writes nothing. Shown: the advantage on records that did not choose the attack, mean
over all splits, and the lower limit. Writes benchmarks/results/released_queries.json.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import _common

DATASET = "releases_adult"
HARD = ["rarity_share", "rarity", "equal_cells", "nearest", "nearest_ratio", "copies"]
WAYS: dict[str, tuple[object, str | None]] = {
    "before": (HARD, None),
    "no reference": ("auto", None),
    "default": ("auto", "auto"),
    "default, reference": ("auto", "given"),
}


def audit(train: object, holdout: object, release: object, query: object, reference: object) -> dict:
    """Audit one release in one way."""
    import numpy as np

    import whosin as wi
    from whosin.auditing.measuring.limits import ADVANTAGE

    start = time.process_time()
    found = wi.audit_synthetic(train, holdout, release, query=query, reference=reference)
    attacks = found._splits.attacks(ADVANTAGE)
    return {
        "advantage": float(np.mean([attack.tpr - attack.fpr for attack in attacks])),
        "lower": found.advantage.lower,
        "set_aside": found.set_aside,
        "cpu_seconds": time.process_time() - start,
    }


def given(folder: Path) -> Iterator[tuple[str, object, object, object, object]]:
    """Yield (name, train, holdout, reference, release) of every release of Adult, as paths."""
    for release in sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*release_*.csv.gz")):
        kind = "small_" if release.startswith("small_") else ""
        names = (f"{kind}train", f"{kind}holdout", f"{kind}ref", release)
        yield (release, *(str(folder / f"{name}.csv.gz") for name in names))


def made(folder: Path) -> Iterator[tuple[str, object, object, object, object]]:
    """Yield the same of releases that are made here."""
    import _made_releases

    for table in _made_releases.TABLES:
        for generator, *tables in _made_releases.made(folder, table):
            yield (f"{table} {generator}", *tables)


def main() -> int:
    """Audit every release in every way."""
    parser = _common.parser_for(__doc__, data=DATASET)
    parser.add_argument("--made", action="store_true", help="audit releases of other tables, made here; write nothing")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS), help="print, write nothing")
    options = parser.parse_args()
    folder = _common.data_folder(options.data, DATASET)
    found: dict[str, dict[str, dict]] = {}
    for release, train, holdout, others, released in made(folder.parent) if options.made else given(folder):
        found[release] = {}
        for way in options.ways:
            query, reference = WAYS[way]
            own = others if reference == "given" else reference
            found[release][way] = audit(train, holdout, released, query, own)
        print(release, {way: round(one["advantage"], 3) for way, one in found[release].items()}, file=sys.stderr)
    table = [
        (release, *(f"{one['advantage']:.3f} ({one['lower']:.3f})" for one in ways.values()))
        for release, ways in found.items()
    ]
    _common.print_table(("release", *options.ways), table)
    if tuple(options.ways) == tuple(WAYS) and not options.made:
        _common.write_results("released_queries", ("whosin",), {"releases": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
