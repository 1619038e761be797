"""Real Ray workers: the same bits as here, also when one is killed in the middle. ``make test-ray`` runs this."""

import json
import os
import warnings

import checks
import joblib
import numpy as np
import pytest
from checks import POOL, here
from fatal import Calls, Square

import whosin as wi
from whosin.auditing.releases.matching.neighbours import nearest
from whosin.errors import WhosinError
from whosin.parallel import clusters
from whosin.parallel import tasks as parallel

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")


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


def where(item):
    return os.getpid()


def test_tasks_run_elsewhere():
    assert os.getpid() not in parallel.run(where, range(20))


def test_reference_models_survive_killed_workers(tmp_path):
    checks.reference_models_survive_killed_workers(tmp_path)


def test_retraining_survives_a_killed_worker(tmp_path):
    checks.retraining_survives_a_killed_worker(tmp_path)


def test_protect_survives_a_killed_worker(tmp_path):
    checks.protect_survives_a_killed_worker(tmp_path)


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
    checks.an_error_comes_back_as_it_is(tmp_path)
    assert len(parallel.run(Square(Calls(tmp_path / "again")), range(5))) == 5


def test_an_error_of_a_class_of_its_own_comes_back_as_one():
    class Own(Exception):
        pass

    def fails(item):
        raise Own(f"item {item}")

    with pytest.raises(Own, match="item"):
        parallel.run(fails, range(4))


def test_a_full_disk_cancels_the_rest(tmp_path, monkeypatch):
    calls = checks.a_full_disk_cancels_the_rest(tmp_path, monkeypatch)
    begun = calls.count()
    assert len(parallel.run(Square(calls), range(5))) == 5
    assert calls.count() - begun < 50


def test_a_task_that_ends_every_worker_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "RETRIES", 0)
    with pytest.raises(WhosinError, match="ended every worker"):
        parallel.run(Square(Calls(tmp_path / "calls"), always=2), range(6))


def test_an_interrupt_loses_nothing_that_was_ready(tmp_path):
    checks.an_interrupt_loses_nothing_that_was_ready(tmp_path)


def test_other_versions_on_a_worker_are_refused(tmp_path, monkeypatch):
    checks.other_versions_on_a_worker_are_refused(tmp_path, monkeypatch)


def test_what_cannot_be_pickled_is_refused(tmp_path):
    checks.what_cannot_be_pickled_is_refused(tmp_path)


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
