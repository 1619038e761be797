"""What a task raised, as a result that travels: where a backend raises it, what was ready before is thrown away."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

from whosin.errors import WhosinError

__all__ = ["TaskError", "numbered_call"]


def numbered_call(call: Callable[[Any], Any], number: int, item: Any) -> tuple[int, Any]:
    try:
        return number, call(item)
    except Exception as error:
        return number, TaskError(error, traceback.format_exc())


class TaskError:
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
            return TaskError, (WhosinError(f"{type(self.error).__name__}: {self.error}"), self.place)
        return TaskError, (self.error, self.place)
