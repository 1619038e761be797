"""Releases in an object store: a real server that speaks S3 (moto), asked by polars and s3fs; `make test-s3`."""

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.auditing.releases import streamed
from whosin.errors import InputError

moto = pytest.importorskip("moto.server", reason="moto is not installed")
s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")


@pytest.fixture(scope="module")
def store():
    """A bucket, in the environment of which polars and s3fs read their settings."""
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "nobody",
            "AWS_SECRET_ACCESS_KEY": "nothing",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        }.items():
            environment.setenv(name, value)
        files = s3fs.S3FileSystem()
        files.mkdir("releases")
        yield files
    server.stop()


def people(seed, rows):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"age": rng.integers(18, 90, rows), "job": rng.choice(["cook", "clerk", "nurse"], rows)})


TRAIN, HOLDOUT = people(0, 200), people(1, 200)
RELEASE = pl.concat([TRAIN.head(80), people(2, 1920)])


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_the_same_as_from_a_disk(store, kind, tmp_path):
    path = tmp_path / f"release.{kind}"
    if kind == "parquet":
        RELEASE.write_parquet(path, row_group_size=300)
    else:
        RELEASE.write_ipc(path)
    store.put(str(path), f"releases/release.{kind}")
    there = f"s3://releases/release.{kind}"
    found = wi.audit_synthetic(TRAIN, HOLDOUT, there, rng=1, block_rows=500, journal=tmp_path / "journal")
    assert found.to_dict() == wi.audit_synthetic(TRAIN, HOLDOUT, path, rng=1, block_rows=500).to_dict()
    assert (tmp_path / "journal").stat().st_size > 0


def test_a_release_that_changes_while_it_is_read(store, tmp_path, monkeypatch):
    path, compared = tmp_path / "release.parquet", streamed._Block.__call__
    RELEASE.write_parquet(path)
    store.put(str(path), "releases/changing.parquet")

    def change_first(task, item):
        RELEASE.head(1999).write_parquet(path)
        store.put(str(path), "releases/changing.parquet")
        return compared(task, item)

    monkeypatch.setattr(streamed._Block, "__call__", change_first)
    with pytest.raises(InputError, match="changed while it was read"):
        wi.audit_synthetic(TRAIN, HOLDOUT, "s3://releases/changing.parquet", rng=1, block_rows=500)


def test_a_release_that_is_not_there(store):
    with pytest.raises(InputError, match=r"no such file: s3://releases/none\.parquet"):
        wi.audit_synthetic(TRAIN, HOLDOUT, "s3://releases/none.parquet", rng=1)
