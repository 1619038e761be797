"""What holds on every cluster: tests of Dask and of Ray call these inside their backend."""

import re

import joblib
import numpy as np
import polars as pl
import pytest
from fatal import Calls, Means, Middle, Redraws, Square

import whosin as wi
from whosin.auditing.models import ReferenceModels
from whosin.auditing.releases import streamed
from whosin.errors import InputError
from whosin.mechanisms.secure import SeededSource
from whosin.parallel import tasks as parallel
from whosin.parallel.journal import Journal

POOL = np.random.default_rng(3).normal(size=(60, 3))


def here(function, *args, **kwargs):
    """Call without the cluster."""
    with joblib.parallel_config(backend="sequential"):
        return function(*args, **kwargs)


def reference_models_survive_killed_workers(folder):
    """One dies in the very first training, maybe with the only copy of the data, and one in the middle."""
    labels = (POOL[:, 0] > 0).astype(int)
    calls = Calls(folder / "calls", (1, 5))
    found = ReferenceModels.train(Means(calls), POOL, labels, models=8, rng=1)
    assert calls.count() >= 10
    expected = here(ReferenceModels.train, Means(calls), POOL, labels, models=8, rng=1)
    np.testing.assert_array_equal(found.logits, expected.logits)


def retraining_survives_a_killed_worker(folder):
    """The trainings run on the cluster, one worker dies in the middle of one, and the result is that of one process."""
    calls = Calls(folder / "calls", (6,))
    options = {"trainings": 12, "attack": "linear", "rng": 4}
    found = wi.audit_retrained(Redraws(calls), POOL, journal=folder / "journal", **options)
    assert calls.count() >= 13
    expected = here(wi.audit_retrained, Redraws(Calls(folder / "others")), POOL, **options)
    np.testing.assert_array_equal(found.scores.answers, expected.scores.answers)
    assert found.to_dict() == expected.to_dict()


def protect_survives_a_killed_worker(folder):
    calls = Calls(folder / "calls", (20,))
    options = {"eta": 0.3, "subsets": 32, "confidence_level": 0.8, "rng": 5, "ball": "pilot"}
    found = wi.protect(Middle(calls), POOL, testing_source=SeededSource(2), **options)
    assert calls.count() > 20 + 1
    expected = here(wi.protect, Middle(calls), POOL, testing_source=SeededSource(2), **options)
    assert found.value.tolist() == expected.value.tolist()
    assert found.certificate.to_dict() == expected.certificate.to_dict()


def blocks_of_a_release_survive_a_killed_worker(folder, monkeypatch, kill):
    """Workers read their own rows of a file, one of them dies in the middle, and every bit is that of one process."""
    monkeypatch.setattr("whosin.auditing.releases.streamed.SMALL_BLOCK", 50)
    monkeypatch.setattr("whosin.auditing.releases.streamed.MOST_ROWS", 300)
    rng = np.random.default_rng(6)

    def people(rows):
        return pl.DataFrame(
            {
                "age": rng.integers(90, size=rows),
                "job": rng.choice(["cook", "smith"], rows),
                "pay": rng.normal(size=rows),
            }
        )

    train, holdout = people(80), people(80)
    release = pl.concat([people(2000), train.head(30)])
    release.write_parquet(folder / "release.parquet", row_group_size=100)
    release.write_ipc(folder / "release.arrow")
    release.write_csv(folder / "release.csv")
    expected = here(wi.audit_synthetic, train, holdout, release, rng=2, block_rows=7000)
    read = []
    monkeypatch.setattr(streamed._Block, "__call__", lambda self, item: read.append(item))
    for name in ("release.parquet", "release.arrow", "release.csv"):
        found = wi.audit_synthetic(
            train, holdout, folder / name, rng=2, block_rows=200, journal=folder / "journal", progress=kill
        )
        assert not kill.pending
        assert not read, "rows were compared here"
        for one, other in zip(_without_origin(found), _without_origin(expected), strict=True):
            assert one == other
    kept = (folder / "journal").stat().st_size
    again = here(wi.audit_synthetic, train, holdout, release, rng=2, block_rows=200, journal=folder / "journal")
    assert not read, "what the journal holds was compared again"
    assert (folder / "journal").stat().st_size == kept
    assert again.to_dict()["advantage"] == expected.to_dict()["advantage"]


def _without_origin(found):
    known = found.to_dict()
    known.pop("preview")
    return [*known.items()]


def an_error_comes_back_as_it_is(folder):
    calls = Calls(folder / "calls")
    with pytest.raises(ZeroDivisionError, match="item 3, on purpose"):
        parallel.run(Square(calls, wrong=3), range(500))
    assert calls.count() < 100


def a_full_disk_cancels_the_rest(folder, monkeypatch):
    calls, book = Calls(folder / "calls"), Journal(folder / "journal", "run")

    def full(number, value):
        raise InputError("no room")

    monkeypatch.setattr(book, "write", full)
    with pytest.raises(InputError, match="no room"):
        parallel.run(Square(calls), range(500), journal=book)
    return calls


def an_interrupt_loses_nothing_that_was_ready(folder):
    calls, items, done = Calls(folder / "calls"), range(30), []

    def interrupt():
        done.append(1)
        if len(done) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel.run(Square(calls), items, journal=Journal(folder / "journal", "run"), done=interrupt)
    kept = len(list(Journal(folder / "journal", "run").read(30)))
    assert kept >= 7
    again = Calls(folder / "again")  # workers may still be at a task of the first run
    found = parallel.run(Square(again), items, journal=Journal(folder / "journal", "run"))
    assert again.count() == 30 - kept
    np.testing.assert_array_equal(found, here(parallel.run, Square(calls), items))


def other_versions_on_a_worker_are_refused(folder, monkeypatch):
    own = parallel.versions()
    monkeypatch.setattr(parallel, "versions", lambda: {**own, "whosin": "99.0"})
    with pytest.raises(InputError, match=re.escape(f"whosin {own['whosin']} instead of 99.0")):
        parallel.run(Square(Calls(folder / "calls")), range(3))


def what_cannot_be_pickled_is_refused(folder):
    with open(folder / "file", "w") as file, pytest.raises(InputError, match="can be pickled"):
        parallel.run(lambda item: file, range(3))
