"""Audits of releases that are read in blocks: the same answers as in memory, in little memory."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from whosin.auditing.releases import streamed
from whosin.auditing.releases.streamed import _cuts, _passes, size_classes
from whosin.auditing.releases.tables_to_answers import STREAMED_FROM, answer_queries
from whosin.errors import InputError, InputTypeError


def people(rows, rng):
    """Mixed columns; some cells are missing."""
    job = rng.choice(["cook", "clerk", "smith", "diver"], rows, p=[0.4, 0.3, 0.25, 0.05])
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "income": np.where(rng.random(rows) < 0.05, np.nan, rng.lognormal(10, 1, rows).round(-2)),
            "job": pl.Series(job).set(pl.Series(rng.random(rows) < 0.03), None),
            "married": rng.random(rows) < 0.4,
        }
    )


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(3)
    train, holdout, reference = people(120, rng), people(100, rng), people(50, rng)
    return train, holdout, pl.concat([people(300, rng), train.head(40)]), reference


def gathered(tables, synthetic, **options):
    return answer_queries(
        tables[0],
        tables[1],
        synthetic,
        query="auto",
        reference=tables[3],
        columns=None,
        groups="job",
        n_jobs=options.pop("n_jobs", 1),
        rng=np.random.default_rng(0),
        progress=options.pop("progress", lambda _: None),
        **options,
    )


def same(one, other):
    assert (one.names, one.sizes, one.synthetic_rows, one.notes) == (
        other.names,
        other.sizes,
        other.synthetic_rows,
        other.notes,
    )
    assert one.fingerprints == other.fingerprints
    assert (one.shared_rows, one.in_reference, one.failed) == (other.shared_rows, other.in_reference, other.failed)
    assert np.array_equal(one.pool.cells, other.pool.cells)
    for name in ("answers", "copied", "nearly_copied", "closest"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name, answers in one.by_size.items():
        assert np.array_equal(answers, other.by_size[name]), name


@settings(max_examples=6, deadline=None)
@given(block=st.sampled_from([1, 7, 64, 339, 340, 5000]), rows=st.sampled_from([1, 2, 30, 340]), way=st.integers(0, 2))
def test_answers_do_not_depend_on_the_blocks(tables, block, rows, way):
    rows = min(rows, 40 * block)
    release = tables[2].tail(rows)
    frames = (release[start : start + 50] for start in range(0, rows, 50))
    given = (release, release.lazy(), frames)[way]
    same(gathered(tables, release), gathered(tables, given, block_rows=block))


def test_a_whole_audit_of_a_file(tables, tmp_path, monkeypatch):
    train, holdout, release, _ = tables
    release.write_parquet(tmp_path / "big.parquet", row_group_size=100)
    whole = wi.audit_synthetic(train, holdout, release, rng=0)
    assert str(wi.audit_synthetic(train, holdout, tmp_path / "big.parquet", rng=0)) == str(whole)
    monkeypatch.setattr("whosin.auditing.releases.tables_to_answers.STREAMED_FROM", 300)
    read = []
    monkeypatch.setattr("whosin.tables.stream.TableStream.table", lambda self: read.append(self))
    seen = []
    found = wi.audit_synthetic(train, holdout, str(tmp_path / "big.parquet"), rng=0, progress=seen.append)
    assert not read
    assert seen == sorted(seen)
    assert (found.advantage, found.copies, found.synthetic) == (whole.advantage, whole.copies, whole.synthetic)
    assert found.fingerprints == whole.fingerprints
    assert np.array_equal(found.closest, whole.closest)


def test_a_path_of_text_in_memory_and_in_blocks(tables, tmp_path, monkeypatch):
    train, holdout, release, _ = tables
    release.write_csv(tmp_path / "release.csv", separator=";", null_value="?")
    whole = wi.audit_synthetic(train, holdout, tmp_path / "release.csv", rng=0)
    monkeypatch.setattr("whosin.tables.text_blocks.PIECE", 1000)
    found = wi.audit_synthetic(train, holdout, str(tmp_path / "release.csv"), rng=0, block_rows=50)
    assert (found.advantage, found.copies) == (whole.advantage, whole.copies)
    assert found.fingerprints == whole.fingerprints
    assert found.preview.tables == whole.preview.tables
    release.write_ndjson(tmp_path / "release.jsonl")
    with pytest.raises(InputError, match=r"release\.jsonl cannot be read in blocks: that needs text, \.parquet"):
        wi.audit_synthetic(train, holdout, tmp_path / "release.jsonl", block_rows=10)


def test_what_is_refused(tables, tmp_path):
    train, holdout, release, _ = tables
    with pytest.raises(InputTypeError, match="query must be names for a release that is read in blocks"):
        wi.audit_synthetic(train, holdout, release, query=lambda records, _: np.zeros(len(records)), block_rows=10)
    with pytest.raises(InputError, match="no such file"):
        wi.audit_synthetic(train, holdout, tmp_path / "gone.parquet")
    with pytest.raises(InputError, match="block_rows"):
        wi.audit_synthetic(train, holdout, release, block_rows=0)
    bad = release.with_columns(income=pl.Series([1.0] * 331 + [np.inf] + [1.0] * 8))
    with pytest.raises(InputError, match="synthetic column 'income' must hold finite numbers, got inf in row 331"):
        wi.audit_synthetic(train, holdout, bad.lazy(), block_rows=10)


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks a reading, and several readings, of a small release."""
    monkeypatch.setattr("whosin.auditing.releases.streamed.SMALL_BLOCK", 8)
    monkeypatch.setattr("whosin.auditing.releases.streamed.MOST_ROWS", 60)


@pytest.mark.parametrize(("block", "threads"), [(30, 1), (30, 3), (1000, 2)])
def test_answers_do_not_depend_on_the_threads(tables, small_blocks, block, threads):
    release = tables[2]
    same(gathered(tables, release), gathered(tables, release, block_rows=block, n_jobs=threads))


def test_a_journal_goes_on_from_the_blocks_that_are_done(tables, small_blocks, tmp_path, monkeypatch):
    calls, whole = [], streamed._Block.__call__

    def counted(self, item):
        calls.append(item[:2])
        if len(calls) == stop:
            raise KeyboardInterrupt
        return whole(self, item)

    monkeypatch.setattr(streamed._Block, "__call__", counted)
    stop, options = 0, {"journal": tmp_path / "journal", "block_rows": 50}
    expected = gathered(tables, tables[2], **{**options, "journal": tmp_path / "another"})
    every, stop = len(calls), len(calls) - 3
    assert every > 16
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        gathered(tables, tables[2], **options)
    calls.clear()
    stop = 0
    same(expected, gathered(tables, tables[2], **options))
    assert len(calls) == 4
    calls.clear()
    same(expected, gathered(tables, tables[2], **options))
    assert not calls
    other = tables[2].with_columns(age=pl.col("age").shuffle(seed=1))
    same(gathered(tables, other), gathered(tables, other, **options))
    assert len(calls) == every


def test_a_journal_reads_a_small_release_in_blocks(tables, tmp_path):
    found = wi.audit_synthetic(*tables[:3], rng=0, journal=tmp_path / "journal")
    assert (tmp_path / "journal").stat().st_size > 0
    assert found.advantage == wi.audit_synthetic(*tables[:3], rng=0).advantage
    assert found.advantage == wi.audit_synthetic(*tables[:3], rng=0, journal=tmp_path / "journal").advantage


def test_classes_are_random_prefixes():
    sizes, classes = size_classes(1000, np.random.default_rng(1))
    assert tuple(np.cumsum(np.bincount(classes)).tolist()) == sizes
    order = np.random.default_rng(1).permutation(1000)
    assert set(np.flatnonzero(classes == 0).tolist()) == set(order[: sizes[0]].tolist())


def test_classes_that_fit_into_a_block_are_read_together():
    assert _passes(np.array([1, 2, 3, 9, 30]), 10) == [[0, 1, 2], [3], [4]]
    assert _passes(np.array([5]), 1) == [[0]]


@given(rows=st.integers(1, 10**9), share=st.floats(0.001, 1.0), most=st.integers(1, 2**20))
def test_blocks_cover_every_row_once(rows, share, most):
    most = max(most, rows // 500)
    cuts = _cuts(rows, max(1, int(rows * share)), most)
    assert (cuts[0][0], cuts[-1][1]) == (0, rows)
    assert all(start < stop for start, stop in cuts)
    assert [stop for _, stop in cuts[:-1]] == [start for start, _ in cuts[1:]]
    assert max(stop - start for start, stop in cuts) * share <= most + 1


MEMORY = """
import re, sys
from pathlib import Path
import numpy as np
import polars as pl
from whosin.auditing.releases.tables_to_answers import answer_queries

def frame(rows, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({f"c{i}": rng.integers(0, 50, rows).astype(float) for i in range(16)})

def write(rows):
    pieces = [frame(10_000, seed) for seed in range(rows // 10_000)]
    pl.concat(pieces).write_parquet(f"{sys.argv[1]}/{rows}.parquet", row_group_size=10_000)

def run(path, **options):
    answer_queries(frame(20, 1), frame(20, 2), path, query="auto", reference=None, columns=None, groups=None,
                    n_jobs=1, rng=np.random.default_rng(0), progress=lambda _: None, **options)
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

if sys.argv[2] == "write":
    for rows in (60_000, 600_000):
        write(rows)
else:
    print(run(f"{sys.argv[1]}/{sys.argv[2]}.parquet", block_rows=int(sys.argv[3])))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory of this program alone")
def test_memory_does_not_grow_with_the_release(tmp_path):
    def child(*words):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(tmp_path), *words],
            env={"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout or 0)

    child("write")
    small, large = child("60000", "20000"), child("600000", "20000")
    assert large - small < 50, (small, large)


def test_the_rule_is_documented():
    assert f"{STREAMED_FROM:,} rows" in wi.audit_synthetic.__doc__
