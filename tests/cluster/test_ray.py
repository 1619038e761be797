"""Real Ray workers: the same bits as here, also when one is killed in the middle. ``make test-ray`` runs this."""

import json
import os
import warnings

import joblib
import numpy as np
import pytest
from fatal import Calls, Means, Middle, Square

import whosin as wi
from whosin.auditing.models import ReferenceModels
from whosin.compute import clusters, parallel
from whosin.compute.journal import Journal
from whosin.compute.neighbours import nearest
from whosin.errors import InputError, WhosinError
from whosin.mechanisms.secure import SeededSource

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")

POOL = np.random.default_rng(3).normal(size=(60, 3))


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ["TEST_PROCESS"] = str(os.getpid())
    from ray.util.joblib import register_ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        environment = {"env_vars": {"PYTHONPATH": os.path.dirname(__file__), "TEST_PROCESS": str(os.getpid())}}
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    register_ray()
    with joblib.parallel_config(backend="ray"):
        yield
    ray.shutdown()
    del os.environ["TEST_PROCESS"]


def here(function, *args, **kwargs):
    """Call without the cluster."""
    with joblib.parallel_config(backend="sequential"):
        return function(*args, **kwargs)


def where(item):
    return os.getpid()


def test_tasks_run_elsewhere():
    assert os.getpid() not in parallel.run(where, range(20))


def test_reference_models_survive_killed_workers(tmp_path):
    labels = (POOL[:, 0] > 0).astype(int)
    calls = Calls(tmp_path / "calls", (1, 5))
    found = ReferenceModels.train(Means(calls), POOL, labels, models=8, rng=1)
    assert calls.count() >= 10
    expected = here(ReferenceModels.train, Means(calls), POOL, labels, models=8, rng=1)
    np.testing.assert_array_equal(found.logits, expected.logits)


def test_protect_survives_a_killed_worker(tmp_path):
    calls = Calls(tmp_path / "calls", (20,))
    options = {"eta": 0.3, "subsets": 32, "confidence_level": 0.8, "rng": 5, "ball": "pilot"}
    found = wi.protect(Middle(calls), POOL, testing_source=SeededSource(2), **options)
    assert calls.count() > 20 + 1
    expected = here(wi.protect, Middle(calls), POOL, testing_source=SeededSource(2), **options)
    assert found.value.tolist() == expected.value.tolist()
    assert found.certificate.to_dict() == expected.certificate.to_dict()


@pytest.mark.parametrize("method", ["monte_carlo", "exact"])
def test_populations_are_the_same(method):
    options = {"epsilon": 8.0, "clip": 1.0, "method": method, "rng": 4, "draws": 4000}
    rows, candidates = POOL[:16], np.eye(3)
    found = wi.population.exponential(rows, candidates, **options)
    np.testing.assert_array_equal(
        found.per_record, here(wi.population.exponential, rows, candidates, **options).per_record
    )


def test_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(parallel, "ROWS", 50)
    rows, others = np.random.default_rng(1).normal(size=(2, 400, 3))
    found = parallel.by_rows(nearest, rows, others)
    for mine, expected in zip(found, here(nearest, rows, others), strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_an_error_comes_back_as_it_is_and_the_rest_is_cancelled(tmp_path):
    calls = Calls(tmp_path / "calls")
    with pytest.raises(ZeroDivisionError, match="item 3, on purpose"):
        parallel.run(Square(calls, wrong=3), range(500))
    assert calls.count() < 100
    assert len(parallel.run(Square(calls), range(5))) == 5


def test_an_error_of_a_class_of_its_own_comes_back_as_one():
    class Own(Exception):
        pass

    def fails(item):
        raise Own(f"item {item}")

    with pytest.raises(Own, match="item"):
        parallel.run(fails, range(4))


def test_a_full_disk_cancels_the_rest(tmp_path, monkeypatch):
    calls, book = Calls(tmp_path / "calls"), Journal(tmp_path / "journal", "run")

    def full(number, value):
        raise InputError("no room")

    monkeypatch.setattr(book, "write", full)
    with pytest.raises(InputError, match="no room"):
        parallel.run(Square(calls), range(500), journal=book)
    begun = calls.count()
    assert len(parallel.run(Square(calls), range(5))) == 5
    assert calls.count() - begun < 50


def test_a_task_that_ends_every_worker_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "RETRIES", 0)
    with pytest.raises(WhosinError, match="ended every worker"):
        parallel.run(Square(Calls(tmp_path / "calls"), always=2), range(6))


def test_an_interrupt_loses_nothing_that_was_ready(tmp_path):
    calls, items, done = Calls(tmp_path / "calls"), range(30), []

    def interrupt():
        done.append(1)
        if len(done) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel.run(Square(calls), items, journal=Journal(tmp_path / "journal", "run"), done=interrupt)
    kept = len(list(Journal(tmp_path / "journal", "run").read(30)))
    assert kept >= 7
    again = Calls(tmp_path / "again")
    found = parallel.run(Square(again), items, journal=Journal(tmp_path / "journal", "run"))
    assert again.count() == 30 - kept
    np.testing.assert_array_equal(found, here(parallel.run, Square(calls), items))


def test_other_versions_on_a_worker_are_refused(tmp_path, monkeypatch):
    own = parallel.versions()
    monkeypatch.setattr(parallel, "versions", lambda: {**own, "whosin": "99.0"})
    with pytest.raises(InputError, match=f"whosin {own['whosin']} instead of 99.0"):
        parallel.run(Square(Calls(tmp_path / "calls")), range(3))


def test_what_cannot_be_pickled_is_refused(tmp_path):
    with open(tmp_path / "file", "w") as file, pytest.raises(InputError, match="can be pickled"):
        parallel.run(lambda item: file, range(3))


def test_the_command_line_on_ray(tmp_path):
    """In a process of its own: it connects to a cluster that it starts."""
    import subprocess
    import sys

    np.savetxt(tmp_path / "records.csv", POOL[:14], delimiter=",", header="a,b,c", comments="")
    np.savetxt(tmp_path / "candidates.csv", np.eye(3), delimiter=",", header="a,b,c", comments="")
    command = ["population", "exponential", "records.csv", "--candidates", "candidates.csv", "--clip", "1"]
    command += ["--epsilon", "8", "--method", "monte_carlo", "--seed", "1", "--json"]

    def whosin(*options):
        done = subprocess.run(
            [sys.executable, "-m", "whosin", *options, *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert whosin("--backend", "ray", "--workers", "2") == whosin()
