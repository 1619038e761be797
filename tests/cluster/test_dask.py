"""Real Dask workers: the same bits as here, also when one of them is killed in the middle."""

import os
import signal
import time
import warnings

import checks
import joblib
import numpy as np
import polars as pl
import pytest
from checks import here
from fatal import Calls, Square

import whosin as wi
from experiments.mace.heuristics import monte_carlo_attack
from whosin.auditing.releases.matching.match import match_rows
from whosin.auditing.releases.matching.neighbours import counts_within, nearest
from whosin.errors import WhosinError
from whosin.parallel import tasks as parallel
from whosin.population.exponential.exact import subset_laws

distributed = pytest.importorskip("distributed")

LOGITS = np.random.default_rng(26).normal(size=(18, 4))


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Two worker processes on this machine, each of which is started again when it dies."""
    os.environ["TEST_PROCESS"] = str(os.getpid())
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as found,
    ):
        yield found
    del os.environ["TEST_PROCESS"]


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=True) as found:
        found.wait_for_workers(2, timeout=180)
        with joblib.parallel_config(backend="dask", client=found):
            yield found


def kill_one(client, share=0.0):
    """Return a callback that kills a worker the first time that such a share is done."""
    processes = list(client.run(os.getpid).values())
    assert os.getpid() not in processes

    def progress(done):
        if processes and share <= done < 1:
            os.kill(processes[0], signal.SIGKILL)
            processes.clear()

    progress.pending = processes
    return progress


def wait_until(holds, seconds=30.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_reference_models_survive_killed_workers(client, tmp_path):
    checks.reference_models_survive_killed_workers(tmp_path)


def test_retraining_survives_a_killed_worker(client, tmp_path):
    checks.retraining_survives_a_killed_worker(tmp_path)


def test_protect_survives_a_killed_worker(client, tmp_path):
    checks.protect_survives_a_killed_worker(tmp_path)


def test_simulated_populations_survive_a_killed_worker(client):
    options = {"epsilon": 8.0, "clip": 1.0, "method": "monte_carlo", "rng": 4, "draws": 40_000}
    rows = np.random.default_rng(8).normal(size=(120, 3))
    candidates = np.eye(3)
    kill = kill_one(client)
    found = wi.population.exponential(rows, candidates, progress=kill, **options)
    assert not kill.pending
    expected = here(wi.population.exponential, rows, candidates, **options)
    np.testing.assert_array_equal(found.per_record, expected.per_record)


def test_exact_populations_are_the_same(client):
    found = subset_laws(LOGITS, 9, memory=2**16)
    np.testing.assert_array_equal(found.log_inside, here(subset_laws, LOGITS, 9, memory=2**16).log_inside)


def test_blocks_of_rows_on_the_cluster(client, monkeypatch):
    monkeypatch.setattr(parallel, "ROWS", 50)
    rng = np.random.default_rng(1)
    points, references, done = rng.normal(size=(180, 3)), rng.normal(size=(400, 3)), []
    found = parallel.by_rows(nearest, points, references, k=2, prefixes=[100, 400], progress=done.append)
    for one, other in zip(found, nearest(points, references, k=2, prefixes=[100, 400]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert done == [0.25, 0.5, 0.75, 1.0]
    counts = parallel.by_rows(counts_within, points, references, [0.5, 1.0])
    np.testing.assert_array_equal(counts, counts_within(points, references, [0.5, 1.0]))
    cells, rows = rng.integers(4, size=(180, 3)), rng.integers(4, size=(300, 3))
    weights = [np.arange(4.0), np.ones(4), np.ones(4)]
    tables = {"numbers": [None, np.arange(4.0), None], "ranks": [None, np.linspace(-1.0, 1.0, 4), None]}
    options = {**tables, "prefixes": [100, 300], "method": "plain"}
    found, expected = (
        parallel.by_rows(match_rows, cells, rows, weights, **options),
        match_rows(cells, rows, weights, **options),
    )
    for one, other in ((found, expected), (found.by_prefix, expected.by_prefix)):
        for name, value in vars(other).items():
            if name != "by_prefix":
                np.testing.assert_array_equal(getattr(one, name), value, err_msg=name)


@pytest.fixture
def spread(monkeypatch):
    """Blocks of 50 rows, and the names of the functions that were cut into blocks."""
    monkeypatch.setattr(parallel, "ROWS", 50)
    names, run = [], parallel.run

    def counted(function, *args, **kwargs):
        names.append(function.function.__name__)
        return run(function, *args, **kwargs)

    monkeypatch.setattr(parallel, "run", counted)
    return names


@pytest.mark.parametrize("query", ["nearest", "ball", "ball_by_distance"])
def test_audits_of_released_numbers_are_the_same(client, spread, query):
    rng = np.random.default_rng(5)
    people = rng.normal(size=(160, 3))
    release = np.concatenate([people[:40] + 1e-3, rng.normal(size=(80, 3))])
    options = {"query": query, "rng": 2}
    found = wi.audit_synthetic(people[:80], people[80:], release, **options)
    assert "nearest" in spread
    assert "counts_within" in spread
    assert ("ball_log_sums" in spread) == (query == "ball_by_distance")
    expected = here(wi.audit_synthetic, people[:80], people[80:], release, **options)
    assert found.to_dict() == expected.to_dict()


def test_audits_of_released_tables_are_the_same(client, spread):
    rng = np.random.default_rng(6)
    people = pl.DataFrame({"age": rng.integers(90, size=160), "job": rng.choice(["cook", "clerk", "smith"], 160)})
    release = pl.concat([people[:30], people[rng.integers(160, size=90)]])
    found = wi.audit_synthetic(people[:80], people[80:], release, rng=2)
    assert "match_rows" in spread
    assert found.to_dict() == here(wi.audit_synthetic, people[:80], people[80:], release, rng=2).to_dict()


def test_blocks_of_a_release_survive_a_killed_worker(client, tmp_path, monkeypatch):
    checks.blocks_of_a_release_survive_a_killed_worker(tmp_path, monkeypatch, kill_one(client, share=0.3))


def test_the_attack_by_balls_is_the_same(client, spread):
    rng = np.random.default_rng(7)
    people, release = rng.normal(size=(160, 3)), rng.normal(size=(120, 3))
    found = monte_carlo_attack(people[:80], people[80:], release, by_distance=True)
    assert {*spread} == {"nearest", "counts_within", "ball_log_sums"}
    assert found == here(monte_carlo_attack, people[:80], people[80:], release, by_distance=True)


def test_an_error_comes_back_as_it_is_and_the_rest_is_cancelled(client, cluster, tmp_path):
    checks.an_error_comes_back_as_it_is(tmp_path)
    wait_until(lambda: not cluster.scheduler.tasks)
    assert len(parallel.run(Square(Calls(tmp_path / "again")), range(5))) == 5


def test_a_full_disk_cancels_the_rest(client, cluster, tmp_path, monkeypatch):
    calls = checks.a_full_disk_cancels_the_rest(tmp_path, monkeypatch)
    wait_until(lambda: not cluster.scheduler.tasks)
    assert calls.count() < 100


def test_a_task_that_ends_every_worker_is_an_error(client, cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(WhosinError, match="ended every worker"):
        parallel.run(Square(Calls(tmp_path / "calls"), always=2), range(6))


def test_an_interrupt_loses_nothing_that_was_ready(client, tmp_path):
    checks.an_interrupt_loses_nothing_that_was_ready(tmp_path)


def test_other_versions_on_a_worker_are_refused(client, tmp_path, monkeypatch):
    checks.other_versions_on_a_worker_are_refused(tmp_path, monkeypatch)


def test_what_cannot_be_pickled_is_refused(client, tmp_path):
    checks.what_cannot_be_pickled_is_refused(tmp_path)


def test_closures_travel(client):
    shift = 5
    assert parallel.run(lambda item: item + shift, range(4)) == [5, 6, 7, 8]
