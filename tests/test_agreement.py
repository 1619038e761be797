"""However the same records come, and however the work is shared, every public number is the same."""

import copy
import datetime as dt

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from whosin.errors import InputError


def people(seed, rows):
    rng = np.random.default_rng(seed)
    columns = {
        "age": rng.integers(18, 90, rows),
        "income": rng.lognormal(10, 1, rows).round(2),
        "job": rng.choice(["cook", "clerk", "nurse"], rows),
        "left": [
            None if missing else float(value)
            for missing, value in zip(rng.random(rows) < 0.1, rng.integers(0, 5, rows), strict=True)
        ],
    }
    return pl.DataFrame(columns)


LIBRARIES = {
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
    "lazy": lambda frame: frame.lazy(),
    "columns": lambda frame: frame.to_dict(as_series=False),
}


@pytest.fixture(scope="module", params=[2, 3])
def tables(request):
    train, holdout = people(request.param, 90), people(request.param + 10, 80)
    return train, holdout, pl.concat([train.head(40), people(request.param + 20, 50)])


@pytest.fixture(scope="module")
def in_memory(tables):
    return wi.audit_synthetic(*tables, rng=3, n_jobs=1)


def numbers(found, *, in_blocks=False):
    """Everything that an audit of a release says but the name of its file, and the closest row of each record.

    What takes the whole release at once is not said of one that is read in blocks: which rows and cells repeat or are
    missing, and which columns reveal most.
    """
    told = copy.deepcopy(found.to_dict())
    for table in told["preview"]["tables"]:
        table.pop("origin")
    if in_blocks:
        told.pop("revealing_columns")
        told["preview"].pop("overlaps")
        for column in told["preview"]["columns"]:
            column["missing"].pop("synthetic", None)
    return told, found.closest.tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_any_library(tables, in_memory, library):
    found = wi.audit_synthetic(*map(LIBRARIES[library], tables), rng=3, n_jobs=1)
    assert numbers(found) == numbers(in_memory)


@pytest.mark.parametrize("way", ["two jobs", "blocks", "parquet", "parquet in blocks", "csv in blocks"])
def test_releases_in_blocks_files_and_threads(tables, in_memory, way, tmp_path):
    train, holdout, release = tables
    options = {"n_jobs": 2} if way == "two jobs" else {"block_rows": 17} if way.endswith("blocks") else {}
    if way.startswith("parquet"):
        release.write_parquet(tmp_path / "r.parquet", row_group_size=30)
        release = tmp_path / "r.parquet"
    elif way.startswith("csv"):
        release.write_csv(tmp_path / "r.csv")
        release = tmp_path / "r.csv"
    found = wi.audit_synthetic(train, holdout, release, rng=3, **options)
    in_blocks = "block_rows" in options
    assert numbers(found, in_blocks=in_blocks) == numbers(in_memory, in_blocks=in_blocks)


CELLS = {
    "whole": lambda rng, rows: rng.integers(-5, 60, rows).tolist(),
    "real": lambda rng, rows: rng.normal(size=rows).round(3).tolist(),
    "word": lambda rng, rows: rng.choice(["ä", "b,", " c", "d"], rows).tolist(),
    "truth": lambda rng, rows: (rng.random(rows) < 0.4).tolist(),
    "day": lambda rng, rows: [dt.date(2000, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(900, size=rows)],
}


def drawn(kinds, rng, rows):
    """A table of these kinds of columns, in which some cells are missing."""
    return pl.DataFrame(
        {
            f"{kind} {place}": [None if rng.random() < 0.05 else cell for cell in CELLS[kind](rng, rows)]
            for place, kind in enumerate(kinds)
        }
    )


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")
@settings(max_examples=12)
@given(
    kinds=st.lists(st.sampled_from(sorted(CELLS)), min_size=2, max_size=5),
    rows=st.lists(st.integers(20, 70), min_size=3, max_size=3),
    seed=st.integers(0, 10**6),
    block=st.none() | st.integers(1, 80),
    library=st.sampled_from(sorted(LIBRARIES)),
    jobs=st.sampled_from([1, 2]),
    backend=st.sampled_from([None, "threading"]),
)
def test_any_tables_in_any_way(kinds, rows, seed, block, library, jobs, backend):
    rng = np.random.default_rng(seed)
    train, holdout, fresh = (drawn(kinds, rng, size) for size in rows)
    tables = train, holdout, pl.concat([train.head(10), fresh])

    def answer(*given, **options):
        try:
            return numbers(wi.audit_synthetic(*given, rng=seed, **options), in_blocks=block is not None)
        except InputError as error:
            return str(error)

    with joblib.parallel_config(backend=backend or "sequential"):
        found = answer(*map(LIBRARIES[library], tables), n_jobs=jobs, block_rows=block)
    assert found == answer(*tables, n_jobs=1)


SERIES = {
    "list": lambda values: values.tolist(),
    "pandas": pd.Series,
    "polars": lambda values: pl.Series("score", values),
    "pyarrow": pa.array,
    "strided": lambda values: np.stack([values, -values], axis=1)[:, 0],
    "read only": lambda values: np.frombuffer(values.tobytes()),
}


def from_scores(given):
    """Answers from scores of both sides, with labels of groups and people."""
    rng = np.random.default_rng(4)
    members, others = rng.normal(0.7, 1.0, 150).round(2), rng.normal(0.0, 1.0, 120).round(2)
    included = np.repeat([True, False], [150, 120])
    people = [np.repeat(np.arange(size // 2), 2) + first for size, first in ((150, 0.0), (120, 100.0))]
    groups = [rng.integers(3, size=size).astype(float) for size in (150, 120)]
    sides, by_person, by_group = ([given(side) for side in part] for part in ((members, others), people, groups))
    yield wi.audit(*sides, rng=1)
    yield wi.audit(*sides, rng=1, person=tuple(by_person), groups=tuple(by_group))
    yield wi.audit_one_run(given(np.concatenate([members, others])), included, rng=1)
    yield wi.population.laplace(given(members), epsilon=2.0, clip=3.0)
    yield wi.population.randomized_response(given(groups[0]), epsilon=1.0)


@pytest.mark.parametrize("kind", SERIES)
def test_scores_of_any_library(kind):
    for found, expected in zip(from_scores(SERIES[kind]), from_scores(np.asarray), strict=True):
        assert found.to_dict() == expected.to_dict()


TABLES = {
    "pandas": lambda records: pd.DataFrame(records, columns=["a", "b"]),
    "polars": lambda records: pl.DataFrame(records, schema=["a", "b"]),
    "pyarrow": lambda records: pa.table({"a": records[:, 0], "b": records[:, 1]}),
    "rows": lambda records: records.tolist(),
    "other order in memory": np.asfortranarray,
}


def population(records, **options):
    return wi.population.gaussian(
        records, epsilon=2.0, delta=1e-5, clip=3.0, method="pairwise", rng=1, **options
    ).to_dict()


def choice(records, **options):
    grid = np.linspace(-1.0, 1.0, 12).reshape(6, 2)
    return wi.population.exponential(
        records, grid, epsilon=2.0, clip=1.0, rng=1, draws=64, method="monte_carlo", **options
    ).to_dict()


def largest(records):
    asked = {"mechanism": "gaussian", "delta": 1e-5, "clip": 3.0, "method": "pairwise"}
    return wi.population.largest_epsilon(records, target=0.8, points=5, rng=1, **asked).to_dict()


def certificate(estimator, records, **options):
    """What a release says, but not the noise: the draw of the subsets has a seed, the noise has none."""
    source = wi.mechanisms.SeededSource(7)
    found = wi.protect(estimator, records, eta=0.3, subsets=64, rng=2, testing_source=source, **options)
    return found.to_dict()


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    "answer",
    [population, largest, lambda records: certificate("mean", records)],
    ids=["population", "largest", "protect"],
)
def test_records_of_any_library(answer, kind):
    records = np.random.default_rng(6).normal(size=(60, 2)).round(3)
    assert answer(TABLES[kind](records)) == answer(records)


def median(records):
    return np.median(records, axis=0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_certificates_by_any_number_of_workers(n_jobs):
    records = np.random.default_rng(6).normal(size=(60, 2))
    assert certificate(median, records, n_jobs=n_jobs) == certificate(median, records)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_populations_by_any_number_of_workers(n_jobs):
    records = np.random.default_rng(6).normal(size=(40, 2))
    assert population(records, n_jobs=n_jobs) == population(records)
    assert choice(records, n_jobs=n_jobs) == choice(records)


ARRAYS = {
    "rows": lambda records: records.tolist(),
    "other order in memory": np.asfortranarray,
    "whole numbers": lambda records: (1000 * records).round().astype(np.int32) / 1000.0,
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_any_kind(kind):
    records = np.random.default_rng(7).normal(size=(200, 2)).round(3)
    parts = records[:80], records[80:150], np.concatenate([records[:40], records[150:]])
    expected = wi.audit_synthetic(*parts, rng=3, n_jobs=1).to_dict()
    assert wi.audit_synthetic(*map(ARRAYS[kind], parts), rng=3, n_jobs=2).to_dict() == expected


class Redrawn:
    """A generator that draws its records again, blurred."""

    def fit(self, records):
        self.records = records
        return self

    def sample(self, n, rng):
        chosen = self.records[rng.integers(len(self.records), size=n)]
        return chosen + 0.05 * rng.normal(size=chosen.shape)


class Means:
    """An adapter: which of two means, blurred by chance, is nearer."""

    def fit(self, X, y, rng):
        self.means = np.array([X[y == label].mean(axis=0) for label in (0, 1)]) + 0.1 * rng.normal(size=(2, X.shape[1]))
        return self

    def predict_proba(self, X):
        weights = np.exp(-((X[:, None] - self.means) ** 2).sum(axis=2))
        return weights / weights.sum(axis=1, keepdims=True)


def retrained(records):
    return wi.audit_retrained(Redrawn(), records, trainings=12, attack="linear", rng=4).to_dict()


def references(records):
    labels = (records[:, 0] > 0).astype(int)
    models = wi.ReferenceModels.train(Means(), records, labels, models=8, rng=1)
    return wi.audit_with_references(models, 0, rng=2).to_dict()


def exact(records):
    grid = np.linspace(-1.0, 1.0, 6).reshape(3, 2)
    return wi.population.exponential(records[:12], grid, epsilon=2.0, clip=1.0, method="exact").to_dict()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_trainings_and_draws_on_any_backend(backend):
    """Dask and Ray: tests/cluster."""
    records = np.random.default_rng(8).normal(size=(60, 2))
    answers = [retrained, references, exact, choice, lambda own: certificate(median, own)]
    expected = [answer(records) for answer in answers]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert [answer(records) for answer in answers] == expected
