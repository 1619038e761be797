"""Training rows that appear in a release: counted, and never called a verdict."""

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.auditing import count_copies
from whosin.auditing.releases.copies import NO_HOLDOUT
from whosin.errors import InputError


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {"id": np.arange(n), "x": rng.normal(size=n), "y": rng.normal(size=n), "sex": ["f", "m"] * (n // 2)}
    )


def test_copies_and_near_copies_are_counted_once_each():
    train, fresh = rows(40, 0).drop("id"), rows(20, 1).drop("id")
    near = train[10:14].with_columns(pl.col("x") + 1.0)
    found = count_copies(train, pl.concat([train[:6], train[:6], near, fresh]))
    assert (found.copies, found.near_copies, found.rows, found.synthetic) == (6, 10, 40, 36)
    assert "6 appear in the release of 36 rows word for word, and 10 in all cells but at most one" in found.sentence
    assert found.to_dict()["sentence"] == str(found) == found.sentence
    assert "not known without held-out rows" in found.sentence


def test_the_counts_are_those_of_the_audit():
    train, holdout = rows(60, 0).drop("id"), rows(60, 1).drop("id")
    release = pl.concat([train[:9], train[20:25].with_columns(pl.col("y") - 1.0), rows(30, 2).drop("id")])
    audited, counted = wi.audit_synthetic(train, holdout, release, rng=0), count_copies(train, release)
    assert (counted.copies, counted.near_copies) == (audited.copies[0], audited.near_copies[0])


def test_the_column_of_the_person_is_not_compared(tmp_path):
    train = rows(20, 0)
    released = train.drop("id").head(5)
    assert count_copies(train, released, person="id").copies == 5
    released.with_columns(id=pl.Series(range(100, 105))).write_parquet(tmp_path / "release.parquet")
    assert count_copies(train, tmp_path / "release.parquet", person="id").copies == 5
    kept = count_copies(train, tmp_path / "release.parquet", keep=["id"])
    assert (kept.copies, kept.left_out) == (0, {})
    found = count_copies(train, tmp_path / "release.parquet")
    assert (found.copies, found.left_out) == (5, {"id": "a running number"})
    assert "Column 'id' was left out: a running number" in found.sentence
    assert count_copies(train, released.with_columns(x=0.0), ignore=["x"]).copies == 5
    with pytest.raises(InputError, match="person must be a column of train, got 'who'"):
        count_copies(train, released, person="who")


def test_arrays_streams_and_few_columns():
    train = np.random.default_rng(0).normal(size=(30, 4))
    assert count_copies(train, train[:7]).copies == 7
    assert count_copies(train[:, :2], train[:7, :2]).near_copies is None
    assert count_copies(rows(20, 0), rows(20, 0).lazy()).copies == 20


def test_what_to_do_without_held_out_rows_is_said():
    assert NO_HOLDOUT.startswith("No verdict without held-out rows.")
    for way in (
        "Keep some rows back",
        "train it again on random halves",
        "Count the training rows",
        "no verdict, since",
    ):
        assert way in NO_HOLDOUT
