"""What sweeps over a growing table share: independent tasks on threads (numpy, compiled code), and sizes to stop at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

from whosin.errors import InputError, check_whole

MOST_JOBS = 2**15
Progress = Callable[[float], None]
"""Called with the share of the work that is done, up to 1."""


def silent(_: float) -> None:
    """The progress of callers who do not ask for it."""


def check_jobs(n_jobs: int | None) -> None:
    """Refuse a number of jobs that joblib cannot count with; None leaves it to the backend that is configured."""
    if n_jobs is not None and check_whole("n_jobs", n_jobs, low=-MOST_JOBS, high=MOST_JOBS) == 0:
        raise InputError("n_jobs must be a whole number other than 0, got 0")


def number_of_threads(n_jobs: int | None) -> int:
    """Return how many threads ``n_jobs`` asks for, as joblib counts: -1 is all cores, None one unless configured.

    They are threads of this machine: a backend of joblib that reaches others does not count for more than one.
    """
    check_jobs(n_jobs)
    if n_jobs == 1:
        return 1
    from joblib.parallel import ThreadingBackend, get_active_backend

    backend, configured = get_active_backend()
    if type(backend).__module__ != "joblib._parallel_backends":
        backend, configured = ThreadingBackend(), 1
    return int(backend.effective_n_jobs(configured if n_jobs is None else n_jobs))


def run_tasks(tasks: Sequence[Callable[[], None]], threads: int, done: Callable[[], None]) -> None:
    """Run every task, each of which writes to places of its own, and call ``done`` here after each.

    An error in a task, or an interrupt, drops the tasks that have not started and is raised again.
    """
    if threads == 1 or len(tasks) < 2:
        for task in tasks:
            task()
            done()
        return
    pool = ThreadPoolExecutor(min(threads, len(tasks)))
    try:
        for future in as_completed([pool.submit(task) for task in tasks]):
            future.result()
            done()
    finally:
        pool.shutdown(cancel_futures=True)


def check_prefixes(prefixes: Sequence[int] | None, count: int) -> tuple[int, ...]:
    """Return growing sizes from 1 to ``count``; none for None."""
    if prefixes is None:
        return ()
    sizes = np.asarray(prefixes)
    if sizes.ndim != 1 or len(sizes) == 0 or not np.issubdtype(sizes.dtype, np.integer):
        raise InputError(f"prefixes must be a list of whole numbers, got {prefixes!r}")
    if sizes[0] < 1 or sizes[-1] > count or np.any(np.diff(sizes) <= 0):
        raise InputError(f"prefixes must be growing sizes from 1 to {count}, got {prefixes!r}")
    return tuple(int(size) for size in sizes)
