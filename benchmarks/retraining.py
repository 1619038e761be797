"""What audits by retraining find, beside audits of one release: python benchmarks/retraining.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds releases_adult with train.csv.gz, 1,000 rows of Adult. Three
models are trained on random halves of them: sequential decision trees (CART, leaves of at least 5 rows, as synthpop
does), SMOTE-NC (a row moved towards one of its 5 nearest), and a random forest that predicts the income. Releases have
as many rows as the training. For each: wi.audit_retrained with --trainings trainings, and, for the two that release
tables, the mean over five halves of what wi.audit_synthetic finds in the release alone, the other half held out.
Individual risk is compared with that of --truth further trainings which the audit never saw. Writes
benchmarks/results/retraining.json if all models were asked for.
"""

from __future__ import annotations

import time
import warnings

import _common
import numpy as np

NAME, DATASET = "retraining", "releases_adult"
MODELS = ("cart", "smote", "forest")


class Cart:
    """Column by column: a tree on the columns before, and a draw from the rows of its leaf."""

    def __init__(self, leaf=5):
        self.leaf = leaf

    def fit(self, table, rng):
        """Grow one tree per column."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        rng = np.random.default_rng(rng)
        self.columns, self.table = list(table.columns), table
        self.codes = np.column_stack([_codes(table[name]) for name in self.columns])
        self.trees = []
        for j in range(1, len(self.columns)):
            whole = table[self.columns[j]].dtype.kind in "if"
            kind = DecisionTreeRegressor if whole else DecisionTreeClassifier
            tree = kind(min_samples_leaf=self.leaf, random_state=int(rng.integers(2**31)))
            self.trees.append(tree.fit(self.codes[:, :j], self.codes[:, j]))
        return self

    def sample(self, n, rng):
        """Draw the first column, and every other one from the leaf that the columns before lead to."""
        import pandas as pd

        drawn = np.empty((n, len(self.columns)))
        rows = rng.integers(len(self.codes), size=(n, 1))
        drawn[:, 0], found = self.codes[rows[:, 0], 0], [rows[:, 0]]
        for j, tree in enumerate(self.trees, start=1):
            own, asked = tree.apply(self.codes[:, :j]), tree.apply(drawn[:, :j])
            order = np.argsort(own, kind="stable")
            first, last = (np.searchsorted(own[order], asked, side=side) for side in ("left", "right"))
            chosen = order[first + (rng.random(n) * (last - first)).astype(int)]
            drawn[:, j] = self.codes[chosen, j]
            found.append(chosen)
        return pd.DataFrame(
            {name: self.table[name].to_numpy()[rows] for name, rows in zip(self.columns, found, strict=True)}
        )


class Smote:
    """A training row, its numbers moved towards one of its five nearest, its categories those most common there."""

    def fit(self, table):
        """Find the neighbours of every row."""
        from sklearn.neighbors import NearestNeighbors

        self.table = table
        self.numeric = [name for name in table.columns if table[name].dtype.kind in "if"]
        self.other = [name for name in table.columns if name not in self.numeric]
        self.numbers = table[self.numeric].to_numpy(dtype=float)
        penalty = np.median(self.numbers.std(axis=0)) / np.sqrt(2.0)
        codes = [_codes(table[name]) for name in self.other]
        marked = [(column[:, None] == np.unique(column)) * penalty for column in codes]
        space = np.column_stack([self.numbers, *marked])
        self.near = NearestNeighbors(n_neighbors=6).fit(space).kneighbors(space)[1][:, 1:]
        return self

    def sample(self, n, rng):
        """Draw rows and move them."""
        import pandas as pd

        rows = rng.integers(len(self.numbers), size=n)
        partner = self.near[rows, rng.integers(5, size=n)]
        share = rng.random((n, 1))
        moved = self.numbers[rows] + share * (self.numbers[partner] - self.numbers[rows])
        whole = [self.table[name].dtype.kind == "i" for name in self.numeric]
        columns = {
            name: np.rint(moved[:, i]).astype(int) if whole[i] else moved[:, i] for i, name in enumerate(self.numeric)
        }
        for name in self.other:
            values, codes = np.unique(self.table[name].to_numpy(dtype=str), return_inverse=True)
            around = codes[self.near[rows]]
            counts = np.stack([(around == k).sum(axis=1) for k in range(len(values))], axis=1)
            columns[name] = values[counts.argmax(axis=1)]
        return pd.DataFrame(columns)[list(self.table.columns)]


def _codes(column):
    """Numbers as they are, categories by number."""
    values = column.to_numpy()
    return values.astype(float) if values.dtype.kind in "if" else np.unique(values.astype(str), return_inverse=True)[1]


def subject(model: str, people):
    """What is trained, and on what."""
    if model != "forest":
        return (Cart() if model == "cart" else Smote()), people
    from sklearn.ensemble import RandomForestClassifier

    rest = people.drop(columns="income")
    X = np.column_stack([_codes(rest[name]) for name in rest.columns])
    return RandomForestClassifier(100, n_jobs=1), (X, (people["income"] == ">50K").to_numpy().astype(int))


def one(model: str, people, trainings: int, truth: int, jobs: int) -> dict:
    """Audit one model by retraining; compare its individual risks with those of other trainings."""
    import whosin as wi

    made, records = subject(model, people)
    start = time.perf_counter()
    found = wi.audit_retrained(made, records, trainings=trainings, rng=0, n_jobs=jobs, groups=None)
    seconds = time.perf_counter() - start
    values = {
        "estimate": found.advantage.estimate,
        "typical": found.advantage.lower,
        "upper": found.advantage.upper,
        "four of five": found.most(0.8),
        "mean": found.mean_lower,
        "worst": found.worst.lower,
        "tpr at 1%": found.tpr_at(0.01).estimate,
        "epsilon": found.epsilon_lower(),
        "epsilon replace": found.epsilon_lower(adjacency="replace"),
        "shown at risk": int((found.individual.simultaneous_lower > 0).sum()),
        "spread": found.individual.spread,
        "error": found.individual.error,
        "alike": found.individual.alike,
        "seconds": seconds,
    }
    if model != "forest":
        values["release alone"] = float(np.mean([alone(made, people, seed) for seed in range(5)]))
    if truth:
        values["rank correlation"] = ranked(found, truth, jobs)
    return values


def alone(made, people, seed: int) -> float:
    """What the release of one half gives away by itself."""
    import whosin as wi

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(people))
    half = len(people) // 2
    inside, outside = people.iloc[order[:half]], people.iloc[order[half:]]
    made.fit(inside, rng=seed) if isinstance(made, Cart) else made.fit(inside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = wi.audit_synthetic(inside, outside, made.sample(half, rng), assignment="random")
    return found.advantage.estimate


def ranked(found, truth: int, jobs: int) -> float:
    """Rank correlation of the estimated risks with the right guesses in trainings that the audit never saw."""
    from scipy.stats import spearmanr

    from whosin.parallel.tasks import run

    numbers = range(10_000, 10_000 + truth)
    answers = run(found.trainings, numbers, n_jobs=jobs)
    coins = np.array([found.trainings.coins(number) for number in numbers])
    scores = np.array([found.scores.attack.scores(one) for one in answers])
    return float(spearmanr(found.individual.risk, ((scores > 0) == coins).mean(axis=0)).statistic)


def main() -> int:
    """Run all models and print a table."""
    parser = _common.parser_for(__doc__, data=DATASET)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="print, write nothing")
    parser.add_argument("--trainings", type=int, default=32, help="trainings of each audit (default 32)")
    parser.add_argument("--truth", type=int, default=0, help="further trainings to compare individual risks with")
    parser.add_argument("--rows", type=int, default=1000, help="rows to take (default 1000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    options = parser.parse_args()
    import pandas as pd

    people = pd.read_csv(_common.data_folder(options.data, DATASET) / "train.csv.gz").head(options.rows)
    found = {}
    for model in options.models:
        found[model] = one(model, people, options.trainings, options.truth, options.jobs)
        shown = [
            (name, f"{value:.3g}" if isinstance(value, float) else str(value)) for name, value in found[model].items()
        ]
        _common.print_table((model, "value"), shown)
        print(flush=True)
    if tuple(options.models) == MODELS:
        packages = ("whosin", "numpy", "scipy", "scikit-learn", "pandas")
        content = {
            "trainings": options.trainings,
            "truth": options.truth,
            "rows": options.rows,
            "models": found,
        }
        _common.write_results(NAME, packages, content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
