"""Independent tasks on this machine or on others: the one way in for every heavy loop.

Where the tasks run is joblib's choice of backend. Without one they run here, in processes, or in threads where the work
is done outside the interpreter's lock. Inside ``joblib.parallel_config(backend="dask")`` they go to the workers of the
active Dask client, inside ``backend="ray"`` or any other registered backend through joblib itself. Tasks get all their
chance from their arguments and numerical libraries are held to one thread, so results do not depend on where, in which
order and how many at a time they run. (Processors of different kinds may round differently in the last place.)

Dask is called directly, not through joblib, for three reasons. The function travels once, as a task of its own that the
scheduler can repeat: data scattered by joblib is lost with the worker that holds it. A task that ends four workers in a
row comes back as an error, on which joblib waits for ever. And what is left after an error is cancelled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import pickle
import sys
import threading
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent import futures
from typing import Any

import numpy as np

from whosin.compute.fingerprint import versions
from whosin.compute.journal import Journal
from whosin.compute.threads import Progress, number_of_threads
from whosin.errors import InputError, WhosinError

__all__ = ["by_rows", "in_order", "on_cluster", "run", "stream"]

Keep = Callable[[int, Any], None]
Numbered = Iterator[tuple[int, Any]]
Found = Generator[tuple[int, Any], None, None]

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

    Parameters
    ----------
    function : callable
        Goes to each process once or, without a cluster, with each task; what it holds is not changed by a call. It can
        be pickled, by cloudpickle at least.
    items : sequence
        Small: a number, a seed.
    n_jobs : int, optional
        Processes on this machine, as in joblib; a cluster is used as it is.
    journal : Journal, optional
        What it holds is not computed again, and every result goes there as soon as it is known. It takes arrays of
        floats; other results are not kept.
    done : callable, optional
        Called here after each task.

    Notes
    -----
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
    ``threads`` the tasks of this machine share its memory, for work that is done outside the interpreter's lock, and
    see to it themselves that numerical libraries stay on one thread. A cluster is given ``ahead`` tasks a thread at a
    time, so that small ones do not wait for each other's way.
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
        if journal is not None and isinstance(value, float | np.ndarray):
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
) -> Iterator[Any]:
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
    entry a row, by themselves or in a tuple or a dataclass. The blocks depend on the number of rows alone, and
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
        client = getattr(_backend(), "client", None)
        call = functools.partial(_elsewhere, expected=versions(), threads=threads)
        if client is not None and type(_backend()).__name__ == "DaskDistributedBackend":
            return _on_dask(client, call, function, numbered, ahead, keep)
        return _by_joblib(functools.partial(call, function=function), numbered, n_jobs, keep)
    if threads:
        return _in_threads(function, numbered, workers, keep)
    if workers == 1:
        return _here(functools.partial(_quietly, function), numbered, keep)
    return _by_joblib(functools.partial(_quietly, function), numbered, n_jobs, keep)


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

    tasks = (joblib.delayed(_numbered)(call, number, item) for number, item in numbered)
    if _backend_now().supports_return_generator:
        found = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
    else:
        found = _in_lists(tasks, n_jobs)
    with _closing(found):
        for number, value in found:
            if isinstance(value, _Error):
                raise value.as_it_was()
            keep(number, value)
            yield number, value


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
        yield from sorted(ended, key=lambda result: isinstance(result[1], _Error))


def _on_dask(
    client: Any, call: Callable[..., Any], function: Callable[[Any], Any], numbered: Numbered, ahead: int, keep: Keep
) -> Found:
    """Tasks of a Dask client, ``ahead`` a thread of the cluster at a time; whoever joins the cluster gets some too."""
    import dask
    from distributed import as_completed

    name = f"whosin-{uuid.uuid4().hex}"
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        placed = client.submit(_unpacked, _packed(function), key=f"{name}-function")
    running: dict[Any, int] = {}
    ended: Any = as_completed(with_results=True, raise_errors=False)  # type: ignore[no-untyped-call]
    room = _Room(client, ahead)
    try:
        while True:
            if begin := list(itertools.islice(numbered, max(0, room.size() - len(running)))):
                numbers, items = zip(*begin, strict=True)
                begun = client.map(call, items, function=placed, key=[f"{name}-{number}" for number in numbers])
                running.update(zip(begun, numbers, strict=True))
                ended.update(begun)
            if not running:
                return
            for future, result in ended.next_batch():
                value, number = _value(future, result), running[future]
                keep(number, value)
                del running[future]
                yield number, value
    finally:
        if client.status == "running":
            for future, number in running.items():
                if future.status == "finished":
                    keep(number, future.result(timeout=10))
            client.cancel([placed, *running], force=True)


class _Room:
    """How many tasks a cluster is given at a time: some a thread, looked up once a second."""

    def __init__(self, client: Any, ahead: int) -> None:
        self.client, self.ahead, self.looked, self.tasks = client, ahead, -1.0, ahead

    def size(self) -> int:
        if time.monotonic() - self.looked > 1.0:
            self.tasks = self.ahead * max(1, sum(self.client.nthreads().values()))
            self.looked = time.monotonic()
        return self.tasks


def _value(future: Any, result: Any) -> Any:
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    if future.status == "finished":
        return result
    try:
        return future.result()
    except KilledWorker as error:
        raise WhosinError(
            f"a task ended every worker that tried it: too little memory, or code that crashes Python ({error})"
        ) from error
    except FutureCancelledError as error:
        raise WhosinError(f"the Dask scheduler is gone, or dropped a task ({error})") from error
    except ModuleNotFoundError as error:
        raise WhosinError(f"the workers lack a package that is installed here: {error}") from error


def _packed(function: Callable[[Any], Any]) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return bytes(cloudpickle.dumps(function, protocol=5))
    except Exception as error:
        raise InputError(
            f"work on other machines takes functions and data that can be pickled, got: {error}"
        ) from error


def _unpacked(packed: bytes) -> Any:
    return pickle.loads(packed)


def _numbered(call: Callable[[Any], Any], number: int, item: Any) -> tuple[int, Any]:
    try:
        return number, call(item)
    except Exception as error:
        return number, _Error(error, traceback.format_exc())


class _Error:
    """What a task raised, and where."""

    def __init__(self, error: Exception, place: str) -> None:
        self.error, self.place = error, place

    def as_it_was(self) -> Exception:
        if self.error.__traceback__ is None:  # it comes from another process
            self.error.add_note(self.place)
        return self.error

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            pickle.loads(pickle.dumps(self.error))
        except Exception:
            return _Error, (WhosinError(f"{type(self.error).__name__}: {self.error}"), self.place)
        return _Error, (self.error, self.place)


def _elsewhere(item: Any, *, expected: dict[str, str], threads: bool, function: Callable[[Any], Any]) -> Any:
    """Do a task in a process of another machine: with the same versions, and without spreading it any further."""
    import joblib

    if (own := versions()) != expected:
        differ = ", ".join(
            f"{name} {own[name]} instead of {expected[name]}" for name in own if own[name] != expected[name]
        )
        raise InputError(f"workers take the packages of the caller, for the same results: one has {differ}")
    with joblib.parallel_config(backend="sequential"):
        return function(item) if threads else _quietly(function, item)


def _quietly(function: Callable[[Any], Any], item: Any) -> Any:
    with _one_thread:
        return function(item)


def _backend() -> Any:
    """The active backend of joblib; None where nobody can have chosen one, as joblib is not even imported."""
    return _backend_now() if "joblib" in sys.modules else None


def _backend_now() -> Any:
    from joblib.parallel import get_active_backend

    return get_active_backend()[0]


class _OneThread:
    """Holds numerical libraries to one thread while tasks run in this process, in whichever threads.

    BLAS has one setting for all threads: the first task in sets it, the last one out restores it. OpenMP has one for
    each thread.
    """

    def __init__(self) -> None:
        self.lock, self.tasks, self.modules = threading.Lock(), 0, 0
        self.controller: Any = None
        self.blas: Any = None
        self.own = threading.local()

    def __enter__(self) -> None:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

        with self.lock:
            if self.modules != len(sys.modules):  # looking for libraries takes 10 ms: only where some may be new
                self.controller, self.modules = ThreadpoolController(), len(sys.modules)
            self.tasks += 1
            if self.tasks == 1:
                _release_openblas()
                self.blas = self.controller.select(user_api="blas").limit(limits=1)
            openmp = self.controller.select(user_api="openmp").limit(limits=1)
        self.own.stack = [*getattr(self.own, "stack", []), openmp]

    def __exit__(self, *reason: object) -> None:
        self.own.stack.pop().restore_original_limits()
        with self.lock:
            self.tasks -= 1
            if self.tasks == 0:
                _release_openblas()
                self.blas.restore_original_limits()
                _release_openblas()


def _release_openblas() -> None:
    """Let any thread set OpenBLAS: recent versions of threadpoolctl ignore all but the first that did."""
    import threadpoolctl

    release = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


_one_thread = _OneThread()
