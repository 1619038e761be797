"""All queries beside a single one at 200 rows a side: python benchmarks/small_releases.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds releases_adult (four generators that were trained once on 200
rows; 16 times 200 of the held-out rows) and the tables of _made_releases.py, from which 200 rows are drawn eight times
and up to five generators are trained each time. Shown for each generator: the advantage on records that did not choose
the attack, mean over all splits and draws, for the default queries together and for single ones, and how far the
default is ahead of the plain distance to the nearest released row, with its standard error over the draws. No timing.
Writes benchmarks/results/small_releases.json.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import _common
import _made_releases as made
import numpy as np

from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.limits import ADVANTAGE, best_value
from whosin.auditing.measuring.splits import split
from whosin.auditing.releases.tables_to_answers import answer_queries

DATASET = "releases_adult"
ROWS = 200
SINGLE = ("nearest", "soft_rarity_share", "repeated_values")
TABLES = ("german", "small compas", "small census")
GIVEN_DRAWS, MADE_DRAWS = 16, 8


def given(folder: Path) -> Iterator[tuple[str, object, object, object]]:
    """Yield (generator, train, holdout, release) of the releases of 200 rows of Adult, the held-out rows drawn anew."""
    import pandas as pd

    train, holdout = (pd.read_csv(folder / f"small_{name}.csv.gz") for name in ("train", "holdout"))
    for path in sorted(folder.glob("small_release_*.csv.gz")):
        release = pd.read_csv(path)
        for draw in range(GIVEN_DRAWS):
            rows = np.random.default_rng(draw).permutation(len(holdout))[:ROWS]
            yield f"adult {path.name[14:-7]}", train, holdout.iloc[rows].reset_index(drop=True), release


def trained(folder: Path) -> Iterator[tuple[str, object, object, object]]:
    """Yield the same of generators that are trained here, on rows drawn anew."""
    for table in TABLES:
        for draw in range(MADE_DRAWS):
            (*sides, reference), rng = made.parts(folder, table, draw)
            train, holdout = (side.iloc[:ROWS].reset_index(drop=True) for side in sides)
            for name, model in made.makers(train, reference, draw).items():
                yield f"{table} {name}", train, holdout, model.sample(ROWS, rng)


def found(train: object, holdout: object, release: object) -> dict[str, tuple[float, float]]:
    """Return mean advantage over the splits and lower limit, of all queries together and of single ones."""
    answers = answer_queries(
        train, holdout, release, query="auto", reference=None, columns=None, groups=None, n_jobs=1, rng=None,
        progress=lambda share: None,
    )  # fmt: skip
    values = {"default": (answers.answers, answers.names)}
    for name in SINGLE:
        values[name] = answers.answers[:, [answers.names.index(name)]], (name,)
    shown = {}
    for way, (columns, names) in values.items():
        sides = np.split(columns, [answers.train_rows])
        splits = split(Experiment(*sides, names=names, directed=True))
        mean = np.mean([attack.tpr - attack.fpr for attack in splits.attacks(ADVANTAGE)])
        shown[way] = float(mean), best_value(splits, ADVANTAGE, 0.05).value.lower
    return shown


def main() -> int:
    """Audit every draw in every way and write the means."""
    options = _common.parser_for(__doc__, data=DATASET).parse_args()
    folder = _common.data_folder(options.data, DATASET)
    warnings.simplefilter("ignore")
    draws: dict[str, list[dict[str, tuple[float, float]]]] = {}
    for draw in (*given(folder), *trained(folder.parent)):
        draws.setdefault(draw[0], []).append(found(*draw[1:]))
        print(draw[0], draws[draw[0]][-1], file=sys.stderr)
    table, kept = [], {}
    for name, several in draws.items():
        means = {way: np.mean([one[way] for one in several], axis=0).tolist() for way in several[0]}
        ahead = np.array([one["default"][0] - one["nearest"][0] for one in several])
        error = float(ahead.std(ddof=1) / np.sqrt(len(ahead)))
        kept[name] = {"draws": len(several), "means": means, "ahead_of_nearest": [float(ahead.mean()), error]}
        table.append((name, *(f"{means[way][0]:.3f}" for way in means), f"{ahead.mean():+.3f} ± {error:.3f}"))
    _common.print_table(("generator", "default", *SINGLE, "default - nearest"), table)
    _common.write_results("small_releases", ("whosin",), {"generators": kept})
    return 0


if __name__ == "__main__":
    sys.exit(main())
