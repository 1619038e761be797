"""Releases made here, from tables other than Adult and by small generators: what queries were not chosen on."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
from retraining import Cart, Smote

COMPAS = [
    "sex",
    "age",
    "race",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "days_b_screening_arrest",
    "c_days_from_compas",
    "c_charge_degree",
    "c_charge_desc",
    "is_recid",
    "decile_score",
    "v_decile_score",
    "two_year_recid",
]


def german(folder: Path):
    """Statlog German credit: 1,000 rows, 21 columns."""
    import pandas as pd

    return pd.read_csv(folder / "german_credit" / "german.data", sep=" ", header=None)


def compas(folder: Path):
    """ProPublica's Compas: 7,214 rows, 15 of the columns."""
    import pandas as pd

    table = pd.read_csv(folder / "compas" / "compas-scores-two-years.csv")[COMPAS]
    return table.fillna({"days_b_screening_arrest": 0, "c_days_from_compas": 0, "c_charge_desc": "none"})


def location(folder: Path):
    """Location-30: 5,010 rows, 446 truth values and a label."""
    import pandas as pd

    with tarfile.open(folder / "location30" / "dataset_location.tgz") as archive:
        file = archive.extractfile("bangkok")
        assert file is not None
        table = pd.read_csv(file, header=None)
    return table.astype(str)


def census(folder: Path):
    """Census-Income: 42 columns, the first 40,000 rows."""
    import pandas as pd

    path = folder / "census_income_kdd" / "census_income_1994_1995_train.csv.gz"
    return pd.read_csv(path, header=None, nrows=40_000, skipinitialspace=True)


TABLES = {
    "german": (german, 300, 400, 300),
    "compas": (compas, 800, 3000, 3000),
    "small compas": (compas, 200, 3000, 3000),
    "location": (location, 500, 2000, 2000),
    "census": (census, 1000, 5000, 5000),
    "small census": (census, 200, 5000, 5000),
}
"""How each table is read, and its training, held-out and reference rows."""


class Independent:
    """Every column drawn on its own from a law that was smoothed with rows of others: nothing of a row is left."""

    def __init__(self, others):
        self.others = others

    def sample(self, n, rng):
        """Draw each column by itself."""
        import pandas as pd

        return pd.DataFrame({name: rng.choice(self.others[name].to_numpy(), n) for name in self.others.columns})


class Noisy:
    """Training rows, a share of the cells redrawn from their columns and numbers moved by a tenth of their spread."""

    def __init__(self, share=0.4):
        self.share = share

    def fit(self, table):
        """Keep the rows."""
        self.table = table
        return self

    def sample(self, n, rng):
        """Draw rows and disturb them."""
        import pandas as pd

        rows, columns = rng.integers(len(self.table), size=n), {}
        for name in self.table.columns:
            values = self.table[name].to_numpy()
            drawn = np.where(rng.random(n) < self.share, rng.choice(values, n), values[rows])
            if values.dtype.kind in "if":
                moved = drawn.astype(float) + 0.1 * values.std() * rng.normal(size=n)
                drawn = np.rint(moved).astype(int) if values.dtype.kind == "i" else moved
            columns[name] = drawn
        return pd.DataFrame(columns)


class Copula:
    """The Gaussian copula of whosin."""

    def fit(self, table):
        """Fit it."""
        from whosin.training import GaussianCopula

        self.model = GaussianCopula().fit(table)
        return self

    def sample(self, n, rng):
        """Draw rows."""
        return self.model.sample(n, rng=rng)


def parts(folder: Path, name: str, seed: int = 0):
    """Training, held-out and reference rows of a table, disjoint, and the generator of chance that drew them."""
    read, *sizes = TABLES[name]
    rng = np.random.default_rng([seed, list(TABLES).index(name)])
    table = read(folder).drop_duplicates()
    table.columns = [f"c{i}" for i in range(table.shape[1])]
    order = rng.permutation(len(table))
    ends = np.cumsum(sizes)
    return [
        table.iloc[order[end - size : end]].reset_index(drop=True) for end, size in zip(ends, sizes, strict=True)
    ], rng


def makers(train, reference, seed: int = 0) -> dict:
    """Train all generators that go with the table; one never sees the rows."""
    found = {
        "cart": Cart().fit(train, seed),
        "noisy": Noisy().fit(train),
        "copula": Copula().fit(train),
        "independent": Independent(reference),
    }
    if any(train[column].dtype.kind in "if" for column in train):
        found["smote"] = Smote().fit(train)
    return found


def made(folder: Path, name: str, seed: int = 0):
    """Yield (generator, train, holdout, reference, release); as many rows are released as were trained on."""
    (train, holdout, reference), rng = parts(folder, name, seed)
    for generator, model in makers(train, reference, seed).items():
        yield generator, train, holdout, reference, model.sample(len(train), rng)
