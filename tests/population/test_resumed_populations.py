"""The journal of simulated populations: an interrupted run draws only what is missing, and nothing changes."""

import functools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.app import app
from whosin.errors import InputError
from whosin.population.exponential import draws, plan
from whosin.population.sums import analysis as additive
from whosin.population.sums import groups

POOL = np.random.default_rng(3).normal(size=(30, 2))
CANDIDATES = np.random.default_rng(4).normal(size=(3, 2))


class Stop(BaseException):
    """Stands for an interrupt."""


def exponential(**options):
    options = {"epsilon": 1.0, "delta": 0.01, "clip": 1.0, "method": "monte_carlo", "draws": 20_000, "rng": 5} | options
    return wi.population.exponential(POOL, CANDIDATES, **options)


def gaussian(**options):
    options = {"epsilon": 8.0, "delta": 0.05, "clip": 1.0, "method": "groups", "rng": 5} | options
    return wi.population.gaussian(POOL, **options)


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(plan, "BLOCK", 2**10)
    monkeypatch.setattr(draws, "BATCH", 2**11)
    monkeypatch.setattr(groups, "_BATCH", 2**18)
    monkeypatch.setattr(additive, "group_epsilons", functools.partial(groups.group_epsilons, draws=400))


@pytest.fixture
def tasks(monkeypatch):
    """Counts what is drawn."""
    begun = []
    for room, task in ((plan, "_Drawing"), (groups, "_Batches")):
        kind = getattr(room, task)
        call = kind.__call__

        def counted(self, job, call=call):
            begun.append(job)
            return call(self, job)

        monkeypatch.setattr(kind, "__call__", counted)
    return begun


@pytest.mark.parametrize("population", [exponential, gaussian])
def test_an_interrupted_population_resumes(population, tasks, tmp_path):
    alone = population().per_record
    everything = len(tasks)
    assert everything > 10
    tasks.clear()

    def interrupt(share):
        if share > 0.5:
            raise Stop

    with pytest.raises(Stop):
        population(journal=tmp_path / "journal", progress=interrupt)
    interrupted = len(tasks)
    assert 0 < interrupted < everything
    np.testing.assert_array_equal(population(journal=tmp_path / "journal").per_record, alone)
    assert len(tasks) == everything
    np.testing.assert_array_equal(population(journal=tmp_path / "journal", confidence_level=0.9).records, 30)
    assert len(tasks) == everything, "another level needs no other draws"
    other = population(journal=tmp_path / "journal", rng=6).per_record
    assert len(tasks) == 2 * everything
    assert np.any(other != alone), "where the draws decide nothing, this test would show nothing"


def test_other_records_are_drawn_again(tasks, tmp_path):
    gaussian(journal=tmp_path / "journal")
    everything = len(tasks)
    wi.population.gaussian(
        POOL * 0.9, epsilon=8.0, delta=0.05, clip=1.0, method="groups", rng=5, journal=tmp_path / "journal"
    )
    assert len(tasks) == 2 * everything


@pytest.mark.parametrize("population", [exponential, gaussian])
def test_more_workers_change_no_bit(population):
    np.testing.assert_array_equal(population(n_jobs=2).per_record, population().per_record)


@pytest.mark.parametrize("population", [exponential, gaussian])
def test_a_journal_of_draws_needs_a_seed(population, tmp_path):
    with pytest.raises(InputError, match="rng must be given with a journal"):
        population(journal=tmp_path / "journal", rng=None)


def test_a_search_shares_a_journal(tasks, tmp_path):
    options = {"mechanism": "exponential", "candidates": CANDIDATES, "target": 0.5, "clip": 1.0, "points": 3}
    options |= {"method": "monte_carlo", "draws": 500, "rng": 1, "journal": tmp_path / "journal"}
    first = wi.population.largest_epsilon(POOL, **options)
    drawn = len(tasks)
    assert drawn > 3
    again = wi.population.largest_epsilon(POOL, **options)
    assert len(tasks) == drawn
    np.testing.assert_array_equal(first.per_record, again.per_record)
    with pytest.raises(InputError, match="rng must be given with a journal"):
        wi.population.largest_epsilon(POOL, **options | {"rng": None})


def test_the_journals_of_the_command_line(tasks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("records.csv", POOL, delimiter=",", header="a,b", comments="")
    command = ["population", "gaussian", "records.csv", "--epsilon", "8", "--delta", "0.05", "--clip", "1"]
    command += ["--method", "groups", "--json", "--journal", "draws", "--jobs", "1"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "--seed" in refused.stderr
    found = [CliRunner().invoke(app, [*command, "--seed", "5"]) for _ in range(2)]
    assert json.loads(found[0].stdout) == json.loads(found[1].stdout)
    np.testing.assert_array_equal(json.loads(found[0].stdout)["per_record"], gaussian().per_record)
    assert len(tasks) == 2 * len(set(tasks))


def test_the_journal_of_protect_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("records.csv", POOL, delimiter=",", header="a,b", comments="")
    command = ["protect", "records.csv", "--statistic", "median", "--eta", "0.3", "--subsets", "32", "--force"]
    command += ["--out", "out.json", "--journal", "trainings", "--confidence-level", "0.8"]
    assert CliRunner().invoke(app, command).exit_code == 2
    sizes = []
    for _ in range(2):
        done = CliRunner().invoke(app, [*command, "--seed", "1"])
        assert done.exit_code == 0, done.output
        sizes.append((tmp_path / "trainings").stat().st_size)
    assert sizes[0] == sizes[1] > 1000
