"""Questions that are answered while somebody waits: few at a time, and the heavy ones in processes that can be ended.

The curve of DP-SGD can take minutes and gigabytes for hostile settings. So it is computed by a helper process with a
limit on its memory, which lives on for the next question, and is ended when one takes too long. Functions, arguments
and answers travel as pickles through pipes that nobody else holds.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from whosin.errors import InputError
from whosin.web.processes import end
from whosin.web.worker import limit_memory

Answer = TypeVar("Answer")

PATIENCE = 20.0
LINGER = 1.0
"""Seconds that a question nobody waits for may still take: less than a helper takes to start again."""
_GRACE = 5
"""Seconds after which a helper whose server is gone ends itself in the middle of a question."""


class Busy(Exception):
    """Too many people ask at the same time."""


class _Lost(InputError):
    """A helper ended before it gave its answer."""


class Questions:
    """A few computations at a time; whoever waits longer than twenty seconds is sent away.

    ``places`` is how many at the same time, and the most helper processes; a helper may take so many ``seconds`` for
    one answer and, where the system can limit it, so much address space.
    """

    def __init__(self, places: int, seconds: float, memory_bytes: int) -> None:
        self._places, self._heavy = threading.BoundedSemaphore(places), threading.BoundedSemaphore(places)
        self._seconds, self._memory_bytes = seconds, memory_bytes
        self._helpers: list[subprocess.Popen[bytes]] = []
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def place(self, apart: bool = False, gone: threading.Event | None = None) -> Iterator[None]:
        """Hold a place while something is computed; heavy questions have places of their own."""
        places = self._heavy if apart else self._places
        until = time.monotonic() + PATIENCE
        while not places.acquire(timeout=0.2):
            if time.monotonic() > until or (gone is not None and gone.is_set()):
                raise Busy("the server is busy: try again in a moment")
        try:
            yield
        finally:
            places.release()

    def answer(
        self, function: Callable[..., Answer], *arguments: Any, apart: bool, gone: threading.Event | None = None
    ) -> Answer:
        """Return the function's answer, computed here, or apart in a helper process if it may take long.

        Once ``gone`` is set nobody waits for the answer: its place in the queue is given up, and a helper that does
        not answer within a second is ended. Another is started in its stead.
        """
        with self.place(apart, gone):
            if not apart:
                return function(*arguments)
            try:
                return self._ask(function, *arguments, gone=gone)
            except _Lost:
                self.warm()
                raise

    def warm(self) -> None:
        """Start a helper in the background, so that the first heavy question does not wait for its imports."""
        threading.Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        with contextlib.suppress(ValueError, OSError):  # the server may end meanwhile, or have no memory for helpers
            self._ask(_load)

    def close(self) -> None:
        """End the helpers."""
        with self._lock:
            self._closed = True
            helpers, self._helpers, self._idle = self._helpers, [], []
        for helper in helpers:
            end(helper)

    def _ask(self, function: Callable[..., Answer], *arguments: Any, gone: threading.Event | None = None) -> Answer:
        helper = self._take()
        assert helper.stdin is not None
        assert helper.stdout is not None
        clock = threading.Timer(self._seconds, helper.kill)
        clock.start()
        done = threading.Event()
        if gone is not None:
            threading.Thread(target=_end_if_gone, args=(helper, gone, done), daemon=True).start()
        try:
            pickle.dump((function, arguments), helper.stdin)
            helper.stdin.flush()
            answer, refusal = pickle.load(helper.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._drop(helper)
            raise _Lost(
                f"this takes more than {self._seconds:g} seconds or {self._memory_bytes / 1e9:.3g} GB of memory to "
                "compute: give other numbers"
            ) from None
        except BaseException:
            self._drop(helper)
            raise
        finally:
            clock.cancel()
            done.set()
        with self._lock:
            self._idle.append(helper)
        if refusal is not None:
            raise InputError(refusal)
        return answer  # type: ignore[no-any-return]

    def _take(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise InputError("the server is ending")
            while self._idle:
                helper = self._idle.pop()
                if helper.poll() is None:
                    return helper
                self._helpers.remove(helper)
            helper = subprocess.Popen(
                [sys.executable, "-P", "-m", "whosin.web.questions", str(self._memory_bytes), str(self._seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._helpers.append(helper)
            return helper

    def _drop(self, helper: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if helper in self._helpers:
                self._helpers.remove(helper)
        end(helper)


def _load() -> None:
    """Import what heavy questions need."""
    import whosin as wi

    wi.DPSGD(1.0, 0.5, 1).tpr_at(0.5)


def _end_if_gone(helper: subprocess.Popen[bytes], gone: threading.Event, done: threading.Event) -> None:
    """End a helper when nobody waits for its answer any more."""
    while not done.wait(0.1):
        if gone.is_set():
            if not done.wait(LINGER):
                helper.kill()
            return


def main(memory_bytes: int, seconds: float) -> None:
    """Answer questions from standard input until it closes; what others print goes elsewhere."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limit_memory(memory_bytes)
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if hasattr(signal, "alarm"):
            signal.alarm(int(seconds) + _GRACE)
        pickle.dump(_attempt(function, arguments), answers)
        answers.flush()
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def _attempt(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
    """Return the answer, or what is wrong with the question."""
    try:
        return function(*arguments), None
    except MemoryError:
        return None, "this takes more memory to compute than the server allows: give other numbers"
    except (ValueError, TypeError) as error:
        return None, str(error)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
