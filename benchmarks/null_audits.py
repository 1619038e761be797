"""Audits of releases in which nothing is to find: python benchmarks/null_audits.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds the tables of _made_releases.py. Training rows, held-out rows,
reference rows and the rows that a generator repeats with noise are drawn anew from one table each time, none of them
twice, so that every lower limit above 0 is a false alarm. Counted at several confidence levels: without a reference,
with spare held-out rows for one, with a given one, and with a given one and the release read in blocks. No timing.
Writes benchmarks/results/null_audits.json.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import _common
import _made_releases as made
import numpy as np

import whosin as wi

DATASET = "compas"
LEVELS = 0.95, 0.8, 0.5
WAYS = {
    "no reference": (200, False, {"reference": None}),
    "spare held-out rows": (600, False, {}),
    "given reference": (200, True, {}),
    "given, in blocks": (200, True, {"block_rows": 60}),
}
"""Held-out rows, whether a reference is given, and the options of the audit."""


def drawn(table, rng: np.random.Generator, holdout: int):
    """Training, held-out and reference rows, and a release of noisy copies of others, all disjoint."""
    sizes = 200, holdout, 500, 200
    order = rng.permutation(len(table))[: sum(sizes)]
    *sides, others = (table.iloc[rows].reset_index(drop=True) for rows in np.split(order, np.cumsum(sizes)[:-1]))
    return *sides, made.Noisy().fit(others).sample(200, rng)


def main() -> int:
    """Count the alarms of every way."""
    parser = _common.parser_for(__doc__, data=DATASET)
    parser.add_argument("--runs", type=int, default=400, help="audits of each kind (default 400)")
    options = parser.parse_args()
    folder = _common.data_folder(options.data, DATASET).parent
    warnings.simplefilter("ignore")
    tables = [made.TABLES[name][0](folder).drop_duplicates() for name in ("compas", "census")]
    for table in tables:
        table.columns = [f"c{i}" for i in range(table.shape[1])]
    found = {}
    for place, (way, (holdout, given, asked)) in enumerate(WAYS.items()):
        alarms, rng = np.zeros(len(LEVELS), dtype=int), np.random.default_rng([20, place])
        for run in range(options.runs):
            train, outside, reference, release = drawn(tables[run % len(tables)], rng, holdout)
            more = {"reference": reference} if given else {}
            audit = wi.audit_synthetic(train, outside, release, **asked, **more)
            looks = [replace(audit, confidence_level=level) for level in LEVELS]
            alarms += [look.advantage.lower > 0 for look in looks]
        found[way] = {"runs": options.runs, "alarms": alarms.tolist()}
        print(way, found[way], file=sys.stderr)
    allowed = [(1 - level) / 2 for level in LEVELS]
    rows = [(way, *(f"{count / one['runs']:.3f}" for count in one["alarms"])) for way, one in found.items()]
    _common.print_table(("nothing to find", *(f"allowed {share:.3f}" for share in allowed)), rows)
    _common.write_results("null_audits", ("whosin",), {"levels": LEVELS, "allowed": allowed, "found": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
