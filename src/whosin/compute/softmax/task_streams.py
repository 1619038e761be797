"""Results of tasks on threads, handed over one by one: as they end, or in order.

Threads are enough, as the work is done outside the interpreter's lock. They come from the standard library rather than
from joblib, whose generators throw away results that are ready when the caller is interrupted.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from typing import Any, TypeVar

__all__ = ["as_they_end", "in_order"]

Result = TypeVar("Result")


def as_they_end(
    worker: Callable[[int], Result], numbers: list[int], threads: int
) -> Generator[dict[int, Result], None, None]:
    """Yield worker(number) by number, in batches as they end."""
    if threads == 1 or len(numbers) < 2:
        for number in numbers:
            yield {number: worker(number)}
        return
    queue = iter(numbers)
    running: dict[futures.Future[Result], int] = {}
    pool = futures.ThreadPoolExecutor(threads)
    try:
        while True:
            for number in itertools.islice(queue, threads + 1 - len(running)):
                running[pool.submit(worker, number)] = number
            if not running:
                return
            ended, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
            yield {running.pop(future): future.result() for future in ended}
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_order(
    worker: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], threads: int, stop: Callable[[], bool]
) -> Iterator[Result]:
    """Yield worker(*job) in the order of the jobs; after the first, none is begun once ``stop`` says so."""
    if threads == 1:
        for number, job in enumerate(jobs):
            if number and stop():
                return
            yield worker(*job)
        return
    waiting: deque[futures.Future[Result]] = deque()
    with futures.ThreadPoolExecutor(threads) as pool:
        for number, job in enumerate(jobs):
            if number and stop():
                break
            waiting.append(pool.submit(worker, *job))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
