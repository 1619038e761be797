"""Independent tasks on this machine or on others: the one way in for every heavy loop.

Where the tasks run is joblib's choice of backend. Without one they run here, in processes, or in threads where the work
is done outside the interpreter's lock. Inside ``joblib.parallel_config(backend="dask")`` they go to the workers of the
active Dask client, inside ``backend="ray"`` to those of the Ray cluster (:mod:`whosin.parallel.clusters`), inside any
other registered backend through joblib itself. Tasks get all their chance from their arguments and numerical libraries
are held to one thread, so results do not depend on where, in which order and how many at a time they run. (Processors
of different kinds may round differently in the last place.)
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent import futures
from typing import Any

import numpy as np

from whosin.errors import InputError, WhosinError
from whosin.parallel.clusters import Found, Keep, Numbered, on_dask, on_ray
from whosin.parallel.fingerprint import versions
from whosin.parallel.journal import Journal
from whosin.parallel.one_thread import one_thread
from whosin.parallel.orphans import end_with
from whosin.parallel.safe_path import safe_path
from whosin.parallel.task_errors import TaskError, numbered_call
from whosin.parallel.threads import Progress, number_of_threads

ROWS = 1024
"""Rows of a block of :func:`by_rows`, at least; at most ``BLOCKS`` blocks."""
BLOCKS = 256


def on_cluster() -> bool:
    """Whether the active backend of joblib is none of joblib's own, all of which stay on this machine."""
    backend = _backend()
    return backend is not None and type(backend).__module__ != "joblib._parallel_backends"


def run(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    n_jobs: int | None = None,
    journal: Journal | None = None,
    done: Callable[[], None] | None = None,
) -> list[Any]:
    """Return function(item) for every item, in order.

    The function goes to each process once or, without a cluster, with each task: it can be pickled, by cloudpickle at
    least, and what it holds is not changed by a call. Items are small: a number, a seed. ``n_jobs`` counts processes
    on this machine, as in joblib; a cluster is used as it is. What the journal holds is not computed again, and every
    result that is an array of floats (of 64 bits) goes there as soon as it is known. ``done`` is called here after each
    task.

    An error in a task is raised here as it is, and tasks that have not begun are dropped. The same goes for an
    interrupt; results that were ready by then are in the journal.
    """
    results: dict[int, Any] = {}
    with contextlib.closing(stream(function, items, n_jobs=n_jobs, journal=journal)) as found:
        for number, value in found:
            results[number] = value
            if done is not None:
                done()
    return [results[number] for number in range(len(items))]


def stream(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    n_jobs: int | None = None,
    threads: bool = False,
    journal: Journal | None = None,
    ahead: int = 16,
) -> Found:
    """Yield (number, function(item)): first what the journal holds, then the others as they end.

    Takes what :func:`run` does, and items that come one by one, which are taken only as tasks can begin. With
    ``threads`` the tasks of this machine share its memory, for work that is done outside the interpreter's lock. A
    cluster is given ``ahead`` tasks a thread at a time, so that small ones do not wait for each other's way.
    """
    if journal is not None:
        yield from journal.read(len(items) if isinstance(items, Sized) else math.inf)
    todo: list[int] = []

    def missing() -> Iterator[Any]:
        for number, item in enumerate(items):
            if journal is None or number not in journal.known:
                todo.append(number)
                yield item

    def keep(place: int, value: Any) -> None:
        if journal is not None and isinstance(value, float | np.ndarray) and np.asarray(value).dtype == np.float64:
            journal.write(todo[place], value)

    with contextlib.closing(_carried(function, missing(), n_jobs, threads, keep, ahead)) as found:
        for place, value in found:
            yield todo[place], value


def in_order(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    n_jobs: int | None = None,
    threads: bool = False,
    journal: Journal | None = None,
) -> Generator[Any, None, None]:
    """Yield function(item) in the order of the items, as :func:`stream` does in the order in which they end.

    Results that end early wait for their turn: as many as overtake the slowest of the tasks before them.
    """
    waiting: dict[int, Any] = {}
    due = 0
    found = stream(function, items, n_jobs=n_jobs, threads=threads, journal=journal, ahead=2)
    with contextlib.closing(found):
        for number, value in found:
            waiting[number] = value
            while due in waiting:
                yield waiting.pop(due)
                due += 1


def by_rows(
    function: Callable[..., Any],
    rows: Any,
    *others: Any,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Return ``function(rows, *others, n_jobs=n_jobs, progress=progress, **options)``, on a cluster in blocks of rows.

    The function is one that answers for each row by itself, whichever rows stand beside it: with arrays that have one
    entry per row, by themselves or in a tuple or a dataclass. The blocks depend on the number of rows alone, and
    everything travels to each worker once.
    """
    count = len(rows)
    if not on_cluster() or count <= ROWS:
        return function(rows, *others, n_jobs=n_jobs, progress=progress, **options)
    size = max(ROWS, -(-count // BLOCKS))
    cuts = [(start, min(start + size, count)) for start in range(0, count, size)]
    finished = itertools.count(1)

    def done() -> None:
        if progress is not None:
            progress(next(finished) / len(cuts))

    return _joined(run(_Block(function, rows, others, options), cuts, n_jobs=n_jobs, done=done))


def _joined(parts: Sequence[Any]) -> Any:
    """Put arrays together, also inside tuples and dataclasses; what else is there is the same in all parts."""
    first: Any = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, tuple):
        return tuple(_joined(entries) for entries in zip(*parts, strict=True))
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in dataclasses.fields(first)]
        return type(first)(**{name: _joined([getattr(part, name) for part in parts]) for name in names})
    return first


class _Block:
    """The task of a block of rows."""

    def __init__(self, function: Callable[..., Any], rows: Any, others: tuple[Any, ...], options: dict[str, Any]):
        self.function, self.rows, self.others, self.options = function, rows, others, options

    def __call__(self, cut: tuple[int, int]) -> Any:
        return self.function(self.rows[slice(*cut)], *self.others, n_jobs=1, **self.options)


def _carried(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    n_jobs: int | None,
    threads: bool,
    keep: Keep,
    ahead: int,
) -> Found:
    """Yield number and result of each task as it ends, after ``keep`` was called with them."""
    numbered = enumerate(items)
    workers = number_of_threads(n_jobs)
    if on_cluster():
        backend, call = _backend(), functools.partial(_elsewhere, expected=versions())
        if type(backend).__name__ == "DaskDistributedBackend" and backend.client is not None:
            return on_dask(backend.client, call, function, numbered, ahead, keep)
        if type(backend).__name__ == "RayBackend":
            return on_ray(call, function, numbered, ahead, keep)
        return _by_joblib(functools.partial(call, function=function), numbered, n_jobs or -1, keep)
    if threads:
        return _in_threads(functools.partial(_quietly, function), numbered, workers, keep)
    if workers == 1:
        return _here(functools.partial(_quietly, function), numbered, keep)
    return _by_joblib(functools.partial(_beside, function, os.getpid()), numbered, n_jobs, keep)


def _here(call: Callable[[Any], Any], numbered: Numbered, keep: Keep) -> Found:
    for number, item in numbered:
        value = call(item)
        keep(number, value)
        yield number, value


def _in_threads(call: Callable[[Any], Any], numbered: Numbered, workers: int, keep: Keep) -> Found:
    """Threads of the standard library: those of joblib throw away what is ready when the caller is interrupted."""
    if workers == 1:
        yield from _here(call, numbered, keep)
        return
    running: dict[futures.Future[Any], int] = {}
    pool = futures.ThreadPoolExecutor(workers)
    try:
        while True:
            for number, item in itertools.islice(numbered, workers + 1 - len(running)):
                running[pool.submit(call, item)] = number
            if not running:
                return
            for future in futures.wait(running, return_when=futures.FIRST_COMPLETED).done:
                value, number = future.result(), running[future]
                keep(number, value)
                del running[future]
                yield number, value
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for future, number in running.items():
            if not future.cancelled() and future.exception() is None:
                keep(number, future.result())


def _by_joblib(call: Callable[[Any], Any], numbered: Numbered, n_jobs: int | None, keep: Keep) -> Found:
    """Through joblib; where its backend hands over whole lists only, a few tasks a worker at a time.

    Errors travel as results: where joblib raises one, it throws away what was ready before.
    """
    import joblib

    tasks = (joblib.delayed(numbered_call)(call, number, item) for number, item in numbered)
    with contextlib.ExitStack() as stack:
        stack.enter_context(safe_path)
        if _backend_now().supports_return_generator:
            found = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
        else:
            found = _in_lists(tasks, n_jobs)
        found = _explained(found)
        stack.enter_context(_closing(found))
        for number, value in found:
            if isinstance(value, TaskError):
                raise value.as_it_was()
            keep(number, value)
            yield number, value


def _explained(found: Found) -> Found:
    """Say what to do where a worker is gone, or cannot be sent its work, or does not find what that needs."""
    try:
        yield from found
    except (futures.BrokenExecutor, pickle.PicklingError) as error:
        if error.__cause__ is None and isinstance(error, futures.BrokenExecutor):
            raise WhosinError(
                "a worker process ended in the middle of its work, killed or for lack of memory: do less at a time "
                "(n_jobs=1); with a journal, what is done is not done again"
            ) from error
        why = str(error.__cause__ or error).strip('"\n').splitlines()[-1]  # joblib's cause is a traceback as text
        raise InputError(
            "work in other processes needs modules that are found there, and functions and data that can be pickled "
            f"(n_jobs=1 does not), got: {why}"
        ) from error


@contextlib.contextmanager
def _closing(found: Found) -> Iterator[None]:
    """Close a generator of joblib without its warnings that tasks were cancelled, or results not used."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", r"\d+ tasks (have been successfully executed|which were still being processed)", UserWarning
            )
            found.close()


def _in_lists(tasks: Iterator[Any], n_jobs: int | None) -> Found:
    import joblib

    some = 4 * joblib.effective_n_jobs(n_jobs)
    while part := list(itertools.islice(tasks, some)):
        ended = joblib.Parallel(n_jobs=n_jobs)(part)
        yield from sorted(ended, key=lambda result: isinstance(result[1], TaskError))


def _elsewhere(item: Any, *, expected: dict[str, str], function: Callable[[Any], Any]) -> Any:
    """Do a task in a process of another machine: with the same versions, and without spreading it any further."""
    import joblib

    if (own := versions()) != expected:
        differ = ", ".join(
            f"{name} {own[name]} instead of {expected[name]}" for name in own if own[name] != expected[name]
        )
        raise InputError(f"workers take the packages of the caller, for the same results: one has {differ}")
    with joblib.parallel_config(backend="sequential"):
        return _quietly(function, item)


def _beside(function: Callable[[Any], Any], caller: int, item: Any) -> Any:
    """Do a task in a process of this machine, which ends with its caller."""
    end_with(caller)
    return _quietly(function, item)


def _quietly(function: Callable[[Any], Any], item: Any) -> Any:
    with one_thread:
        return function(item)


def _backend() -> Any:
    """The active backend of joblib; None where nobody can have chosen one, as joblib is not even imported."""
    return _backend_now() if "joblib" in sys.modules else None


def _backend_now() -> Any:
    from joblib.parallel import get_active_backend

    return get_active_backend()[0]
