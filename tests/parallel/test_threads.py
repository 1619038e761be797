"""Tasks on threads: all are run, errors come back, and sizes are checked."""

import threading
import time

import joblib
import pytest

from whosin.errors import InputError, InputTypeError
from whosin.parallel.threads import check_prefixes, number_of_threads, run_tasks


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_task_is_run_and_reported_here(threads):
    results, reports = [0] * 20, []

    def task(place):
        results[place] += place

    tasks = [lambda place=place: task(place) for place in range(20)]
    run_tasks(tasks, threads, lambda: reports.append(threading.get_ident()))
    assert results == list(range(20))
    assert reports == [threading.get_ident()] * 20


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_back_and_stops_the_rest(threads):
    started = []

    def fails():
        raise ZeroDivisionError("on purpose")

    def lasts():
        started.append(1)
        time.sleep(0.005)

    tasks = [fails, *[lasts] * 1000]
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run_tasks(tasks, threads, lambda: None)
    assert len(started) < 1000


def test_number_of_threads():
    assert number_of_threads(None) == 1
    assert number_of_threads(1) == 1
    assert number_of_threads(3) == 3
    assert number_of_threads(-1) == joblib.cpu_count()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert number_of_threads(None) == 2
    for wrong, error in ((0, InputError), (1.5, InputError), ("2", InputTypeError)):
        with pytest.raises(error, match="n_jobs"):
            number_of_threads(wrong)


def test_check_prefixes():
    assert check_prefixes(None, 5) == ()
    assert check_prefixes([1, 3, 5], 5) == (1, 3, 5)
    for wrong in ([], [[1]], [0, 2], [2, 1], [2, 2], [6], [1.0]):
        with pytest.raises(InputError, match="prefixes"):
            check_prefixes(wrong, 5)
