"""Tasks on the workers of a Dask or a Ray cluster, which are called directly, not through their backends of joblib.

There are three reasons. The function travels once, and the cluster can hand it out again when a worker dies: data that
joblib scatters on Dask is lost with the worker that holds it. A task whose worker died is done again, and one that ends
four workers in a row comes back as an error, on which joblib waits for ever with Dask. And what is left after an error
is cancelled.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import pickle
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any

from whosin.errors import InputError, WhosinError
from whosin.parallel.task_errors import TaskError, numbered_call, pickler_of_joblib

Keep = Callable[[int, Any], None]
Numbered = Iterator[tuple[int, Any]]
Found = Generator[tuple[int, Any], None, None]

RETRIES = 3
"""How often Ray begins a task again whose worker died."""


def on_dask(
    client: Any, call: Callable[..., Any], function: Callable[[Any], Any], numbered: Numbered, ahead: int, keep: Keep
) -> Found:
    """Tasks of a Dask client, ``ahead`` a thread of the cluster at a time; whoever joins the cluster gets some too."""
    import dask
    from distributed import as_completed

    name, packed = f"whosin-{uuid.uuid4().hex}", _packed(importlib.import_module("cloudpickle"), function)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        placed = client.submit(pickle.loads, packed, key=f"{name}-function")
    running: dict[Any, int] = {}
    ended: Any = as_completed(with_results=True, raise_errors=False)  # type: ignore[no-untyped-call]
    room = _Room(lambda: sum(client.nthreads().values()), ahead)
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
            try:
                for future, number in running.items():
                    if future.status == "finished":
                        keep(number, future.result(timeout=10))
            finally:
                client.cancel([placed, *running], force=True)


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
        if error.name is None or not _is_here(error.name):
            raise
        raise WhosinError(f"the workers lack a package that is installed here: {error}") from error


def on_ray(
    call: Callable[..., Any], function: Callable[[Any], Any], numbered: Numbered, ahead: int, keep: Keep
) -> Found:
    """Tasks of the Ray cluster that this process is connected to, ``ahead`` a processor of the cluster at a time."""
    import ray  # type: ignore[import-not-found]

    name, placed = uuid.uuid4().hex, ray.put(_packed(pickler_of_joblib(), function))
    begin = ray.remote(num_cpus=1, max_retries=RETRIES)(_ray_task)
    room = _Room(lambda: int(ray.cluster_resources().get("CPU", 1)), ahead)
    running: dict[Any, int] = {}
    try:
        while True:
            for number, item in itertools.islice(numbered, max(0, room.size() - len(running))):
                running[begin.remote(call, name, placed, number, item)] = number
            if not running:
                return
            for ended in ray.wait(list(running), num_returns=1)[0]:
                number, value = _ray_value(ray, ended)
                if isinstance(value, TaskError):
                    del running[ended]
                    raise value.as_it_was()
                keep(number, value)
                del running[ended]
                yield number, value
    finally:
        if running and ray.is_initialized():
            ready = ray.wait(list(running), num_returns=len(running), timeout=0)[0]
            try:
                for number, value in _ray_values(ray, ready):
                    keep(number, value)
            finally:
                for left in set(running) - set(ready):
                    ray.cancel(left)


def _ray_task(call: Callable[..., Any], name: str, packed: bytes, number: int, item: Any) -> tuple[int, Any]:
    if name not in _unpacked:
        _unpacked.clear()
        _unpacked[name] = pickle.loads(packed)
    return numbered_call(lambda one: call(one, function=_unpacked[name]), number, item)


_unpacked: dict[str, Callable[[Any], Any]] = {}
"""The function that this worker of Ray was given last, under the name of its run."""


def _ray_values(ray: Any, ready: list[Any]) -> Iterator[tuple[int, Any]]:
    """What went well among the tasks that ended while another one failed."""
    for ended in ready:
        with contextlib.suppress(WhosinError):
            number, value = _ray_value(ray, ended)
            if not isinstance(value, TaskError):
                yield number, value


def _ray_value(ray: Any, ended: Any) -> Any:
    try:
        return ray.get(ended)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise WhosinError(
            f"a task ended every worker that tried it: too little memory, or code that crashes Python ({error})"
        ) from error
    except ray.exceptions.RayError as error:
        raise WhosinError(f"Ray lost a task; do its workers have the packages of the caller? ({error})") from error


class _Room:
    """How many tasks a cluster is given at a time: some a thread, looked up once a second."""

    def __init__(self, threads: Callable[[], int], ahead: int) -> None:
        self.threads, self.ahead, self.looked, self.tasks = threads, ahead, -1.0, ahead

    def size(self) -> int:
        if time.monotonic() - self.looked > 1.0:
            self.tasks = self.ahead * max(1, self.threads())
            self.looked = time.monotonic()
        return self.tasks


def _packed(pickler: Any, function: Callable[[Any], Any]) -> bytes:
    """The function by the pickler that brings back what its tasks raise, classes of a notebook included."""
    try:
        return bytes(pickler.dumps(function, protocol=5))
    except Exception as error:
        raise InputError(
            f"work on other machines needs functions and data that can be pickled, got: {error}"
        ) from error


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
