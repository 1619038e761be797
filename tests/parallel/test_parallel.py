"""Tasks here, in threads, in processes and through any backend: the same results, errors as they are, nothing lost."""

import importlib
import itertools
import os
import threading
import time

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend, register_parallel_backend
from threadpoolctl import threadpool_info, threadpool_limits

from whosin.errors import InputError, WhosinError
from whosin.parallel import tasks as parallel
from whosin.parallel.journal import Journal
from whosin.parallel.tasks import by_rows, in_order, on_cluster, run, stream
from whosin.parallel.threads import number_of_threads


class Foreign(ThreadingBackend):
    """Stands for backends of other machines; hands over whole lists only."""

    supports_return_generator = False


class Streaming(ThreadingBackend):
    """The same, with generators."""


register_parallel_backend("foreign", Foreign)
register_parallel_backend("streaming", Streaming)
BACKENDS = [None, "threading", "loky", "foreign", "streaming"]


def on(backend):
    return joblib.parallel_config(backend=backend, n_jobs=2) if backend else joblib.parallel_config()


def draw(seed):
    matrix = np.random.default_rng(seed).normal(size=(20, 20))
    return np.linalg.solve(matrix @ matrix.T, matrix[0])


def wrong(item):
    if item == 2:
        raise ZeroDivisionError(f"item {item}")
    return float(item)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_gives_the_same_bits(backend):
    seeds = [(7, number) for number in range(25)]
    alone, ticks = [draw(seed) for seed in seeds], []
    with on(backend):
        for n_jobs in (None, 1, 2):
            np.testing.assert_array_equal(run(draw, seeds, n_jobs=n_jobs, done=lambda: ticks.append(1)), alone)
        np.testing.assert_array_equal(list(in_order(draw, iter(seeds), threads=True)), alone)
    assert len(ticks) == 75


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [True, False])
def test_an_error_comes_as_it_is(backend, threads):
    with on(backend), pytest.raises(ZeroDivisionError, match="item 2"):
        list(stream(wrong, range(40), n_jobs=2, threads=threads))


def wrong_at_once(item):
    if item == 0:
        raise ZeroDivisionError("item 0")
    time.sleep(0.3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_cancels_what_runs_without_a_warning(backend):
    """joblib warns of cancelled tasks, and warnings are errors in this suite: none may hide the error."""
    with on(backend), pytest.raises(ZeroDivisionError, match="item 0"):
        list(stream(wrong_at_once, range(8), n_jobs=2))


def test_on_cluster():
    assert not on_cluster()
    for name in ("loky", "threading", "multiprocessing", "sequential"):
        with joblib.parallel_config(backend=name):
            assert not on_cluster()
    with on("foreign"):
        assert on_cluster()
        assert number_of_threads(None) == 1
        assert number_of_threads(2) == 2


def test_a_task_on_a_cluster_is_not_spread_any_further():
    with on("foreign"):
        assert not any(run(lambda item: on_cluster(), range(4)))


@pytest.mark.parametrize("backend", [None, "threading", "foreign"])
def test_numerical_libraries_stay_on_one_thread(backend):
    np.ones((2, 2)) @ np.ones((2, 2))

    def threads(item):
        time.sleep(0.001)
        return max(library["num_threads"] for library in threadpool_info())

    with threadpool_limits(limits=2):
        if max(library["num_threads"] for library in threadpool_info()) < 2:
            pytest.skip("no library with threads")
        with on(backend):
            assert set(run(threads, range(12), n_jobs=2)) == {1}
        assert max(library["num_threads"] for library in threadpool_info()) == 2


@pytest.mark.parametrize("threads", [True, False])
def test_numerical_libraries_are_held_in_threads_too(threads):
    from threadpoolctl import threadpool_info, threadpool_limits

    def count(item):
        time.sleep(0.001)
        return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

    with threadpool_limits(limits=2, user_api="blas"):
        if count(0) < 2:
            pytest.skip("no library with threads")
        assert {number for _, number in stream(count, range(6), threads=threads)} == {1}
        assert count(0) == 2


def test_an_interrupt_on_the_way_in_holds_nothing_for_ever(monkeypatch):
    from whosin.parallel import one_thread

    held, calls = one_thread._OneThread(), itertools.count()
    release = one_thread._release_openblas

    def interrupted():
        release()
        if next(calls) == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(one_thread, "_release_openblas", interrupted)
    with pytest.raises(KeyboardInterrupt), held:
        pass
    assert held.tasks == 0
    with held:
        assert held.tasks == 1
    assert (held.tasks, held.limits) == (0, [])


def test_an_error_of_a_class_of_its_own_comes_back_as_one():
    class Own(Exception):
        pass

    def fails(item):
        raise Own(f"item {item}")

    with on("loky"), pytest.raises(Own, match="item"):
        run(fails, range(4), n_jobs=2)


def test_only_arrays_of_floats_are_kept(tmp_path):
    for value in (np.float32([1.5]), np.array([2**60 + 1]), np.array([1j]), np.array([True])):
        run(lambda item, value=value: value, range(2), journal=Journal(tmp_path / "journal", "run"))
    assert not list(Journal(tmp_path / "journal", "run").read())


def test_the_order_is_kept_and_items_are_taken_as_tasks_begin():
    taken, gate = [], threading.Event()

    def items():
        for number in itertools.count():
            if len(taken) == 9:
                return
            taken.append(number)
            yield number

    def slow_first(number):
        if number == 0:
            gate.wait(10)
        elif number == 2:
            gate.set()
        elif number == 3:
            time.sleep(1.0)
        return number

    results = in_order(slow_first, items(), n_jobs=2, threads=True)
    assert next(results) == 0
    assert len(taken) <= 6
    assert list(results) == list(range(1, 9))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_all_that_was_ready(tmp_path, n_jobs):
    """With two threads the second task has ended, or ends in the meantime: it is kept too."""
    begun, book = [], Journal(tmp_path / "journal", "run")

    def square(item):
        begun.append(item)
        return float(item**2)

    found = stream(square, range(50), n_jobs=n_jobs, threads=True, journal=book)
    next(found)
    with pytest.raises(KeyboardInterrupt):
        found.throw(KeyboardInterrupt)
    kept = dict(Journal(tmp_path / "journal", "run").read(50))
    assert sorted(kept) == sorted(begun)
    assert len(kept) < 50
    begun.clear()
    assert run(square, range(50), journal=Journal(tmp_path / "journal", "run")) == [float(i**2) for i in range(50)]
    assert not set(begun) & set(kept)
    begun.clear()
    assert run(square, range(50), journal=Journal(tmp_path / "journal", "run")) == [float(i**2) for i in range(50)]
    assert begun == []


@pytest.mark.parametrize("backend", ["threading", "loky", "foreign", "streaming"])
def test_an_error_keeps_what_came_before_it(tmp_path, backend):
    with on(backend), pytest.raises(ZeroDivisionError):
        run(wrong, [0, 1, *range(3, 30), 2], journal=Journal(tmp_path / "journal", "run"))
    assert len(dict(Journal(tmp_path / "journal", "run").read(40))) >= 20


class Odd(Exception):
    """Cannot be pickled."""

    def __init__(self, one, two):
        super().__init__("odd")


def odd(item):
    raise Odd(1, 2)


def test_errors_of_other_processes_say_where():
    with on("loky"):
        with pytest.raises(ZeroDivisionError, match="item 2") as caught:
            run(wrong, range(4))
        assert "in wrong" in "".join(caught.value.__notes__)
        with pytest.raises(WhosinError, match="Odd: odd"):
            run(odd, range(4))


def gone(item):
    if item == 2:
        os._exit(9)
    return float(item)


def test_a_worker_that_is_gone_and_work_that_cannot_be_sent(tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def own(item):\n    return item\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        own = importlib.import_module("only_here").own
    with on("loky"):
        with pytest.raises(InputError, match=r"modules that are found there.*No module named 'only_here'"):
            run(own, range(4))
        with pytest.raises(WhosinError, match=r"a worker process ended in the middle of its work.*n_jobs=1"):
            run(gone, range(4))
        lock = threading.Lock()
        with pytest.raises(InputError, match=r"pickled .n_jobs=1 does not.*lock"):
            run(lambda item: lock and item, range(4))


def test_results_that_are_no_numbers_are_not_kept(tmp_path):
    assert run(str, range(3), journal=Journal(tmp_path / "journal", "run")) == ["0", "1", "2"]
    assert (tmp_path / "journal").read_bytes() == b""


def test_a_worker_with_other_versions_is_refused(monkeypatch):
    monkeypatch.setattr(parallel, "versions", lambda: dict(zip(("whosin", "numpy"), (next(calls), "2.0"), strict=True)))
    calls = iter(["1.0", *["1.1"] * 50])
    with on("foreign"), pytest.raises(InputError, match=r"one has whosin 1\.1 instead of 1\.0"):
        run(float, range(3))


def test_rows_stay_together_on_this_machine():
    def function(rows, factor, *, n_jobs, progress, shift):
        return len(rows), factor, n_jobs, progress, shift

    assert by_rows(function, range(5000), 3, n_jobs=2, shift=1) == (5000, 3, 2, None, 1)


def test_blocks_of_rows_are_put_together(monkeypatch):
    monkeypatch.setattr(parallel, "ROWS", 7)

    def function(rows, factor, *, n_jobs):
        return rows * factor, {"same": factor}, np.stack([rows, rows], axis=1)

    rows, done = np.arange(30), []
    with on("foreign"):
        product, same, pairs = by_rows(function, rows, 3, progress=done.append)
        assert by_rows(lambda rows, n_jobs, progress: len(rows), rows[:7]) == 7
    np.testing.assert_array_equal(product, 3 * rows)
    assert same == {"same": 3}
    np.testing.assert_array_equal(pairs, np.stack([rows, rows], axis=1))
    assert done == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_nothing_to_do(tmp_path):
    assert run(float, []) == []
    with on("foreign"):
        assert run(float, [], journal=Journal(tmp_path / "journal", "run")) == []


def test_processes_are_others():
    with on("loky"):
        assert os.getpid() not in run(_process, range(4))


def _process(item):
    return os.getpid()
